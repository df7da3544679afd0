"""From the parameters of a :class:`DNNCGM` to what is built and how it is trained."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from graphfield.data.covariates import features
from graphfield.data.encoded import Encoded
from graphfield.data.fingerprints import fingerprint
from graphfield.data.room import free_memory, size_text
from graphfield.data.row_store import is_bounded
from graphfield.data.saved_values import Saved
from graphfield.estimators.memory import estimate_fit_memory
from graphfield.estimators.neural import NETWORKS, covariate_shape, to_arrays
from graphfield.estimators.training_jobs import StartingPoint
from graphfield.estimators.training_set import Streams
from graphfield.estimators.ways import FullHead, MixedPatterns
from graphfield.exceptions import ParameterError, TrainingWarning, count
from graphfield.fields import Schema
from graphfield.nn.fields import FieldConfig
from graphfield.training.config import (
    Schedule,
    TrainingConfig,
    default_batch_size,
    default_max_steps,
    resolve_device,
)
from graphfield.training.mixture import RANKS
from graphfield.training.plan import Seeds

# What random numbers of a fit are drawn for, in this order.
_NETWORKS = ("mean", "edge")
STREAMS = ("split", "gap", *(f"{network} {what}" for network in _NETWORKS for what in Seeds._fields))
EVALUATIONS = 40  # of the held-out loss in a full run
LEARNING_RATE, DEFAULT_PENALTY = 2e-3, 0.04  # of a full head
# Of the network that gives the shares of patterns, in each round.
GATE_STEPS, GATE_BATCH, GATE_RATE, GATE_EVALUATIONS = 600, 512, 5e-3, 20
# More than the first number of patterns: at most so many patterns times nodes, at least so many rows each.
MAX_PATTERN_COLUMNS, MIN_PATTERN_ROWS = 3_200, 50
_FEWER = (4, 2)  # patterns where memory is short
MAX_WEIGHTS = 2_000_000_000  # of one network: with gradients and Adam's state four times 8 GB


class Parameters(Protocol):
    """The hyper-parameters of a :class:`DNNCGM`."""

    network: str
    sharing: str
    hidden_size: int
    rank: int | str | None
    dropout: float
    loss: str
    center: str
    marginals: str
    standardize: bool
    penalty: float | str
    learning_rate: float | None
    batch_size: int | None
    max_steps: int | None
    schedule: Schedule
    patience: int | None
    device: str
    random_state: Any

    def get_params(self) -> dict[str, Any]: ...


def check_together(model: Parameters) -> None:
    """Raise for hyper-parameters that make no sense together."""
    if isinstance(model.rank, (int, np.integer)) and not _can_mix(model):
        raise ParameterError(
            f"rank={model.rank} mixes patterns in shares that one network gives, by squared errors: it "
            "needs sharing='all', loss='squared' and a network with hidden layers. Use rank=None here."
        ).about(argument="rank")
    if model.marginals not in ("auto", "raw") and not _has_scores(model):
        raise ParameterError(
            f"marginals={model.marginals!r} needs standardize=True and center='covariates' or 'constant'; "
            f"with standardize={model.standardize} and center={model.center!r}, use marginals='raw'."
        ).about(argument="marginals")
    if model.network == "linear" and model.sharing != "all":
        raise ParameterError.of(
            "sharing",
            "only applies to networks with hidden layers; a linear beta(z) has separate "
            "weights for every edge already. Use sharing='all'.",
        )


def read_training_columns(state: Saved) -> dict[str, list[Any]]:
    """The loss curve of a saved model, with the number of patterns where there are any."""
    columns = state.columns(required=("step", "rank") if state.get("rank") else ("step",))
    for name in ("train_loss", "held_out_loss"):
        for value in state[name].listed():
            value.number_or_nan()
    return columns


def wanted_marginals(model: Parameters, start: StartingPoint | None) -> str:
    """Nodes as they are, their normal scores, or "auto" where the rows decide."""
    if model.marginals != "auto":
        return model.marginals
    if not _has_scores(model):
        return "raw"
    return "auto" if start is None else start.marginals


def scale_features(model: Parameters, schema: Schema, encoded: Encoded) -> NDArray[np.float64] | None:
    """Features of the covariates that scales of nodes may move with; None where they may not.

    Where the mean does not move, a scale that does may be a mean that does.
    """
    if model.center != "covariates" or not model.standardize:
        return None
    as_trained = replace(encoded, numeric=encoded.numeric.astype(np.float32).astype(np.float64))
    return features(schema.encoder, as_trained)


def _has_scores(model: Parameters) -> bool:
    """Scores keep the mean and the spread of a node, which means something once these are taken out."""
    return bool(model.standardize) and model.center != "none"


def field_config(model: Parameters, schema: Schema, rank: int | None) -> FieldConfig:
    """Of the coefficients."""
    network, batch_norm = NETWORKS[model.network]
    config = FieldConfig(
        n_nodes=schema.n_nodes,
        covariates=covariate_shape(schema.encoder),
        network=network,
        sharing=model.sharing,
        hidden_size=int(model.hidden_size),
        dropout=float(model.dropout),
        batch_norm=batch_norm,
        loss=model.loss,
        penalty=DEFAULT_PENALTY if isinstance(model.penalty, str) else float(model.penalty),
        rank=rank,
    )
    if config.n_weights > MAX_WEIGHTS:
        raise ParameterError(
            f"{config.n_nodes} nodes with hidden_size={config.hidden_size} and sharing="
            f"{config.sharing!r} make a network of {config.n_weights:.2g} weights, which no memory "
            "holds. Use a smaller hidden_size or rank, and sharing='all'."
        ).about(argument="hidden_size")
    return config


def gate_training(model: Parameters, n_train: int) -> TrainingConfig:
    """How the network that gives the shares of patterns is trained, in each round."""
    max_steps = int(model.max_steps or GATE_STEPS)
    return replace(
        training_config(model, n_train),
        batch_size=int(model.batch_size or max(2, min(GATE_BATCH, n_train // 4))),
        max_steps=max_steps,
        min_steps=max_steps // 3,
        evaluate_every=max(1, max_steps // GATE_EVALUATIONS),
        learning_rate=float(model.learning_rate or GATE_RATE),
    )


def chosen_penalty(model: Parameters) -> float | None:
    """The penalty on patterns; None where held-out rows choose it."""
    return None if isinstance(model.penalty, str) else float(model.penalty)


def _can_mix(model: Parameters) -> bool:
    return model.sharing == "all" and model.loss == "squared" and model.network != "linear"


def choose_way(
    model: Parameters,
    schema: Schema,
    n_train: int,
    start: StartingPoint | None = None,
    *,
    additive: bool = True,
) -> FullHead | MixedPatterns:
    """Which of the two ways of fitting it is to be, and why; ``additive``: what few rows may prefer."""
    ranks, reason = _patterns_to_try(model, schema, n_train, start)
    if ranks:
        additive = additive and isinstance(model.rank, str)
        return MixedPatterns(gate_training(model, n_train), reason, ranks, additive)
    return FullHead(training_config(model, n_train), reason)


def _patterns_to_try(
    model: Parameters, schema: Schema, n_train: int, start: StartingPoint | None
) -> tuple[tuple[int, ...], str]:
    """Numbers of patterns, none for a full head; and the reason."""
    asked = model.rank
    if start is not None and not start.additive and isinstance(asked, str):
        asked = start.coef.config.rank
    if not isinstance(asked, str):
        reason = f"rank={asked}" if asked == model.rank else "as in start"
        if asked is None:
            return (), reason
        needed, free = _room_for(model, schema, n_train, int(asked))
        if needed > free:
            raise ParameterError(
                f"{count(int(asked), 'pattern')} of {schema.n_nodes:,} nodes would take {size_text(needed)} "
                f"of memory, but {size_text(free)} are free. Use a smaller rank, fewer nodes, or a machine "
                "with more memory."
            ).about(argument="rank")
        return (int(asked),), reason
    if not _can_mix(model):
        return (), "sharing='all', loss='squared' and hidden layers are needed for patterns"
    return _find_room(model, schema, n_train)


def default_ranks(n_nodes: int, n_train: int) -> tuple[int, ...]:
    """Numbers of patterns to try, one after the other."""
    most = min(MAX_PATTERN_COLUMNS // n_nodes, n_train // MIN_PATTERN_ROWS)
    return (RANKS[0], *(rank for rank in RANKS[1:] if rank <= most))


def _find_room(model: Parameters, schema: Schema, n_train: int) -> tuple[tuple[int, ...], str]:
    """The numbers of patterns to try where memory is enough; else fewer, of which the user is told."""
    p, (needed, free) = schema.n_nodes, _room_for(model, schema, n_train, RANKS[0])
    if needed <= free:
        return default_ranks(p, n_train), "the default"
    needs = {rank: _room_for(model, schema, n_train, rank)[0] for rank in _FEWER}
    rank = next((rank for rank, size in needs.items() if size <= free), 0)
    need = f"{RANKS[0]} patterns of {p:,} nodes need {size_text(needed)}"
    lacking = f"{need} of memory, but {size_text(free)} are free"
    if rank == 0:
        raise ParameterError(
            f"{lacking}, and {_FEWER[-1]} patterns would need {size_text(needs[_FEWER[-1]])}. Use fewer "
            "nodes, or a machine with more memory."
        ).about(argument="rank")
    warnings.warn(
        f"{lacking}, so {rank} are fitted, which follow movement less closely. Use fewer nodes or a machine "
        "with more memory; graphfield.estimate_cost says how long fits take.",
        TrainingWarning,
        stacklevel=6,
    )
    return (rank,), lacking


def _room_for(model: Parameters, schema: Schema, n_train: int, rank: int) -> tuple[int, int]:
    """Bytes that so many patterns take, and that are free."""
    device, q = resolve_device(model.device), max(1, len(schema.encoder.names))
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory()
    n_rows = 1 if is_bounded() else n_train  # long arrays are in files then
    return estimate_fit_memory(n_rows, schema.n_nodes, q, rank=rank)["peak"], free


def training_config(model: Parameters, n_train: int) -> TrainingConfig:
    max_steps = int(model.max_steps or default_max_steps(n_train))
    return TrainingConfig(
        batch_size=int(model.batch_size or default_batch_size(n_train)),
        max_steps=max_steps,
        min_steps=max_steps // 3,
        evaluate_every=max(1, max_steps // EVALUATIONS),
        learning_rate=float(model.learning_rate or LEARNING_RATE),
        schedule=model.schedule,
        patience=model.patience,
    )


def problem_of(model: Parameters, tables: list[Any], origin: StartingPoint | None) -> str:
    """What decides the result of a fit, as one text: parameters (a seed if the user chose one) and data."""
    params = model.get_params()
    if not isinstance(model.random_state, (int, np.integer)):
        params["random_state"] = None
    if origin is not None:
        tables = [*tables, *(array.reshape(-1) for array in to_arrays(origin.coef, "start").values())]
    return fingerprint(params, tables)


def trained_seeds(streams: Streams) -> tuple[Seeds, Seeds]:
    """Those of the network of the mean and of that of the edges."""
    mean, edge = (Seeds(*(streams[f"{network} {what}"] for what in Seeds._fields)) for network in _NETWORKS)
    return mean, edge
