"""Evaluating neural fields for an estimator: samples, fixed-size blocks, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.data.saved_arrays import MAX_COEFFICIENT, SavedArrays
from graphfield.estimators.parameters import Custom
from graphfield.fields.streaming import evaluation_rows
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, Field, FieldConfig, MeanField, Samples
from graphfield.nn.gates import GateField
from graphfield.nn.pack import load_member_arrays, member_arrays
from graphfield.nn.threads import one_thread_each, spread
from graphfield.training.config import resolve_device

F = TypeVar("F", bound=Field)

# Networks by the name that a user gives: the form, and whether its first block has a batch norm.
NETWORKS = {
    "residual": ("residual", True),
    "residual-plain": ("residual", False),
    "mlp": ("mlp", True),
    "linear": ("linear", True),
}
# A device by its name; whether it is there is asked when it is needed.
DEVICE = Custom(partial(resolve_device, fallback=True))
# Rows whose fitted values are computed at a time.
_BLOCK_ROWS = 8192
# Rows from which residual standard deviations are found.
_SCALE_ROWS = 20_000


def covariate_shape(encoder: CovariateEncoder) -> CovariateShape:
    return CovariateShape(
        n_numeric=len(encoder.numeric), level_shares=tuple(column.shares for column in encoder.categorical)
    )


def network_name(config: FieldConfig) -> str:
    """What the user calls this network."""
    return config.network if config.batch_norm or config.network == "linear" else f"{config.network}-plain"


def make_samples(X: NDArray, encoded: Encoded, device: torch.device) -> Samples:
    return Samples(torch.as_tensor(X, dtype=torch.float32, device=device), *_tensors(encoded, device))


def _tensors(encoded: Encoded, device: torch.device) -> tuple[Tensor, Tensor]:
    numeric = torch.as_tensor(encoded.numeric, dtype=torch.float32, device=device)
    return numeric, torch.as_tensor(encoded.codes, dtype=torch.int64, device=device)


@torch.no_grad()
@one_thread_each()
def evaluate_mean(field: MeanField | None, samples: Samples) -> Tensor:
    """mu(z) at each row, zero where the mean is constant."""
    if field is None:
        return torch.zeros_like(samples.x)
    field.eval()
    return field(samples.numeric[None], samples.codes[None])[0]


@torch.no_grad()
def evaluate_coef(field: CoefField, encoded: Encoded, device: torch.device) -> NDArray[np.float32]:
    """beta(z) at each row, (m, p, p), in blocks of one fixed size.

    Matrix products may round differently for different numbers of rows. Blocks are therefore
    padded to one size, so that the graph at z has the same bits whatever else is asked for.
    """
    p = field.config.n_nodes
    rows = evaluation_rows(p)
    out = np.empty((len(encoded), p, p), dtype=np.float32)
    at = _block_evaluator(field, encoded, device)

    def evaluate(start: int) -> None:
        coef = at(start)
        out[start : start + len(coef)] = coef.cpu().numpy()

    spread(evaluate, range(0, len(encoded), rows), device)
    return out


def coef_blocks(field: CoefField, encoded: Encoded, device: torch.device) -> Iterator[tuple[slice, Tensor]]:
    """What :func:`evaluate_coef` has, block by block, where it is computed."""
    at = _block_evaluator(field, encoded, device)
    for start in range(0, len(encoded), evaluation_rows(field.config.n_nodes)):
        coef = at(start)
        yield slice(start, start + len(coef)), coef


def _block_evaluator(field: CoefField, encoded: Encoded, device: torch.device) -> Callable[[int], Tensor]:
    field.to(device).eval()
    rows = evaluation_rows(field.config.n_nodes)

    @torch.no_grad()
    def coef_from(start: int) -> Tensor:
        block = encoded.take(np.minimum(np.arange(start, start + rows), len(encoded) - 1))
        numeric, codes = _tensors(block, device)
        return field(numeric[None], codes[None])[0, : min(rows, len(encoded) - start)]

    return coef_from


@torch.no_grad()
@one_thread_each()
def evaluate_shares(field: CoefField | GateField, encoded: Encoded, device: torch.device) -> Tensor:
    """Shares in which a field mixes, at each row, (m, R)."""
    field.to(device).eval()
    parts = []
    for part in zip(*(values.split(_BLOCK_ROWS) for values in _tensors(encoded, device)), strict=True):
        numeric, codes = (values[None] for values in part)
        is_gate = isinstance(field, GateField)
        parts.append(field(numeric, codes)[0] if is_gate else field.hidden(numeric, codes)[0, 0])
    return torch.cat(parts)


@torch.no_grad()
def evaluate_mixed(
    gate: GateField, order: Tensor, matrices: Tensor, encoded: Encoded
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Shares of a gate in this order, (m, R), and these matrices (R, p, p) mixed in them.

    On the CPU, block by block, all of one size: see :func:`evaluate_coef`.
    """
    p = matrices.shape[1]
    rows = evaluation_rows(p)
    for start in range(0, len(encoded), rows):
        block = encoded.take(np.minimum(np.arange(start, start + rows), len(encoded) - 1))
        shares = evaluate_shares(gate, block, torch.device("cpu"))[:, order].double()
        mixed = (shares @ matrices.flatten(1)).view(-1, p, p)
        count = min(rows, len(encoded) - start)
        yield shares[:count].numpy(), mixed[:count].numpy()


@torch.no_grad()
@one_thread_each()
def residual_scale(field: CoefField, data: Samples, rows: Tensor, held_out: Tensor) -> NDArray:
    """Standard deviation of each node given the others, in standard units.

    Training rows say how it differs between nodes; held-out rows, where there are any, say how
    much too small it is overall. Of either, 20,000 evenly spread rows are enough.
    """
    variances = []
    for part in (rows, held_out) if len(held_out) else (rows,):
        spread_out = part[:: -(-len(part) // _SCALE_ROWS)]
        total = torch.zeros(data.x.shape[1], dtype=torch.float64, device=data.x.device)
        for left in _residual_blocks(field, data, spread_out):
            total += left.double().square().sum(dim=0)
        variances.append(total.cpu().numpy() / len(spread_out))
    if len(held_out):
        variances[0] *= variances[1].mean() / variances[0].mean()
    return np.sqrt(np.maximum(variances[0], 1e-12))


@torch.no_grad()
@one_thread_each()
def residuals(field: CoefField, data: Samples, rows: Tensor) -> Tensor:
    """What is left of each node at these rows, (rows, p)."""
    return torch.cat(list(_residual_blocks(field, data, rows)))


def _residual_blocks(field: CoefField, data: Samples, rows: Tensor) -> Iterator[Tensor]:
    field.eval()
    for part in rows.split(max(1, min(_BLOCK_ROWS, 2**27 // field.groups // data.x.shape[1] ** 2))):
        batch = data.take(part[None])
        yield (batch.x - field.fitted(batch))[0]


def to_arrays(field: Field, prefix: str) -> dict[str, NDArray]:
    return {f"{prefix}/{k}": v.detach().cpu().numpy() for k, v in member_arrays(field).items()}


def from_arrays(kind: type[F], config: FieldConfig, arrays: SavedArrays) -> F:
    """The field of this configuration with the weights of a file: all that :func:`to_arrays` writes of it."""
    field = kind(config, torch.Generator())
    read = {
        name: torch.from_numpy(_read_weights(arrays, name, tuple(wanted.shape)))
        for name, wanted in member_arrays(field).items()
    }
    load_member_arrays(field, read)
    return field.eval()


def _read_weights(arrays: SavedArrays, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Variances and shares are not negative; weights stay far from the end of single precision."""
    is_positive = name.endswith("running_var") or ".shares_" in name
    low = 0.0 if is_positive else -MAX_COEFFICIENT
    return arrays.read(name, shape, np.float32, low=low, high=MAX_COEFFICIENT)
