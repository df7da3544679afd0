"""Fitting and evaluating neural fields for an estimator: samples, stages, fixed-size blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphfield.data.covariates import CovariateEncoder, Encoded
from graphfield.data.nodes import row_blocks
from graphfield.estimators.streaming import evaluation_rows
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, FieldConfig, MeanField, Samples, node_fit
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import TrainingResult, train

# A mean that moves with z is kept when it lowers the held-out loss by this many standard errors.
_MEAN_EVIDENCE = 2.0


def covariate_shape(encoder: CovariateEncoder) -> CovariateShape:
    return CovariateShape(
        n_numeric=len(encoder.numeric),
        level_shares=tuple(column.shares for column in encoder.categorical),
    )


def make_samples(X: NDArray, encoded: Encoded, device: torch.device) -> Samples:
    return Samples(
        torch.as_tensor(X, dtype=torch.float32),
        torch.as_tensor(encoded.numeric, dtype=torch.float32),
        torch.as_tensor(encoded.codes, dtype=torch.int64),
    ).to(device)


def fingerprint(params: dict[str, Any], tables: Sequence[Any]) -> str:
    """Changes when a hyper-parameter or any of the tables changes; float32 counts as float64."""
    digest = hashlib.sha256(json.dumps(params, sort_keys=True, default=str).encode())
    for table in tables:
        values = np.empty((0, 0)) if table is None else np.asarray(table)
        digest.update(str(values.shape if values.ndim == 2 else (len(values), 1)).encode())
        rows = np.atleast_2d(values.T).T
        blocks = [slice(None)] if values.dtype.kind not in "fiub" else row_blocks(*rows.shape)
        for block in blocks:
            part = rows[block].astype(np.float64) if values.dtype == np.float32 else rows[block]
            frame = pd.DataFrame(part, copy=False).infer_objects()
            digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Stage:
    """One field to be trained: its seeds and its place in the checkpoint folder."""

    name: str
    description: str
    seeds: tuple[int, int, int]  # initial weights, batch order, dropout

    def run(
        self,
        field: nn.Module,
        data: Samples,
        held_out: Samples | None,
        config: TrainingConfig,
        folder: CheckpointFolder | None,
    ) -> TrainingResult:
        return train(
            field.to(data.x.device),
            data,
            held_out,
            config,
            seeds=self.seeds[1:],
            description=self.description,
            checkpoint=folder.stage(self.name) if folder is not None else None,
        )

    def initial(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seeds[0])


def mean_config(config: FieldConfig) -> FieldConfig:
    """The same network for the mean, without dropout: with p outputs only, stopping early is enough."""
    return replace(config, sharing="all", dropout=0.0)


def fit_mean(
    stage: Stage,
    config: FieldConfig,
    data: Samples,
    held_out: Samples | None,
    training: TrainingConfig,
    folder: CheckpointFolder | None,
) -> MeanField | None:
    """mu(z), or None where held-out rows give no evidence that the mean moves with z."""
    field = MeanField(mean_config(config), stage.initial())
    stage.run(field, data, held_out, training, folder)
    if held_out is None or len(held_out) < 2:
        return field
    with torch.no_grad():
        moved = (held_out.x - evaluate_mean(field, held_out)).square().mean(dim=1)
        gain = held_out.x.square().mean(dim=1) - moved
    standard_error = float(gain.std()) / len(gain) ** 0.5
    return field if float(gain.mean()) > _MEAN_EVIDENCE * standard_error else None


@torch.no_grad()
def evaluate_mean(field: MeanField | None, samples: Samples) -> Tensor:
    """mu(z) at each row, zero where the mean is constant."""
    if field is None:
        return torch.zeros_like(samples.x)
    field.eval()
    return field(samples.numeric, samples.codes)


def centred(field: MeanField | None, samples: Samples) -> Samples:
    return replace(samples, x=samples.x - evaluate_mean(field, samples))


def rescaled(samples: Samples, scale: NDArray) -> Samples:
    return replace(
        samples, x=samples.x / torch.as_tensor(scale, dtype=torch.float32, device=samples.x.device)
    )


@torch.no_grad()
def evaluate_coef(field: CoefField, encoded: Encoded, device: torch.device) -> NDArray[np.float32]:
    """beta(z) at each row, (m, p, p), in blocks of one fixed size.

    Matrix products may round differently for different numbers of rows. Blocks are therefore
    padded to one size, so that the graph at z has the same bits whatever else is asked for.
    """
    field.to(device).eval()
    p = field.config.n_nodes
    rows = evaluation_rows(p)
    out = np.empty((len(encoded), p, p), dtype=np.float32)
    for start in range(0, len(encoded), rows):
        positions = np.minimum(np.arange(start, start + rows), len(encoded) - 1)
        block = encoded.take(positions)
        coef = field(
            torch.as_tensor(block.numeric, dtype=torch.float32, device=device),
            torch.as_tensor(block.codes, dtype=torch.int64, device=device),
        )
        count = min(rows, len(encoded) - start)
        out[start : start + count] = coef[:count].cpu().numpy()
    return out


@torch.no_grad()
def residual_scale(field: CoefField, data: Samples, held_out: Samples | None) -> NDArray:
    """Standard deviation of each node given the others, in standard units.

    Training rows say how it differs between nodes; held-out rows, where there are any, say how
    much too small it is overall.
    """
    train_variance = _mean_square(field, data)
    if held_out is not None and len(held_out):
        train_variance *= _mean_square(field, held_out).mean() / train_variance.mean()
    return np.sqrt(np.maximum(train_variance, 1e-12))


def _mean_square(field: CoefField, samples: Samples) -> NDArray[np.float64]:
    field.eval()
    p = samples.x.shape[1]
    rows = max(1, 8_000_000 // p**2)
    total = np.zeros(p)
    for start in range(0, len(samples), rows):
        part = samples.take(slice(start, start + rows))
        coef = field(part.numeric, part.codes)
        residual = part.x - node_fit(coef, part.x)
        total += residual.double().square().sum(dim=0).cpu().numpy()
    return total / len(samples)


def to_arrays(field: nn.Module, prefix: str) -> dict[str, NDArray]:
    return {f"{prefix}/{k}": v.detach().cpu().numpy() for k, v in field.state_dict().items()}


def from_arrays(field: nn.Module, arrays: dict[str, NDArray], prefix: str) -> None:
    start = f"{prefix}/"
    state = {
        key.removeprefix(start): torch.tensor(value) for key, value in arrays.items() if key.startswith(start)
    }
    field.load_state_dict(state)
    field.eval()
