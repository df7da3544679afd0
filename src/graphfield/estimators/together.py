"""Several fits trained together: a path of penalties, an ensemble, resamples, folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.frames import MIN_SAMPLES
from graphfield.data.splits import hold_out
from graphfield.estimators.dnncgm import DNNCGM, check_alike, fit_models
from graphfield.estimators.dnncgm_setup import STREAMS
from graphfield.estimators.inputs import Inputs, check_flag
from graphfield.estimators.training_set import Streams, TrainingSet
from graphfield.exceptions import DataError, ParameterError, listing
from graphfield.nn.processes import shared_work

# What may differ between models that train together; all else decides the shape of the computation.
MAY_DIFFER = ("penalty", "random_state")


@shared_work()
def fit_together(
    models: Sequence[DNNCGM],
    X: Any,
    Z: Any,
    *,
    rows: Sequence[Any] | None = None,
    groups: Any = None,
    X_val: Any = None,
    Z_val: Any = None,
    compete: bool = False,
) -> list[DNNCGM]:
    """Fit several models to one table as one batched computation.

    With all rows, each comes out as if it had been fitted alone (to rounding), but the work of a step
    is shared: on a GPU eight fits of a small network take less than twice the time of one. Models may
    differ in ``penalty`` and ``random_state``.

    Parameters
    ----------
    models : sequence of DNNCGM
        They are fitted in place and returned.
    X, Z : tables
        As for :meth:`DNNCGM.fit`. Nodes and covariates are standardised once, from all rows; whether nodes
        become normal scores is decided once, too.
    rows : sequence of integer arrays, optional
        The rows each model is fitted to, repeated where drawn with replacement (a bootstrap
        resample), or without some (a fold). By default all rows. Held-out rows are taken from these;
        copies of one row stay on one side. Scales and category levels still come from all rows, and
        models with different numbers of rows share steps, schedule and batch size.
    groups : sequence of length n, optional
        Rows with equal labels are never split between training and held-out.
    X_val, Z_val : tables, optional
        Own held-out rows, for all models.
    compete : bool
        Drop a model when another is clearly better on held-out rows: after a third and two thirds
        of the steps, by three standard errors, and by more than its loss has lately been falling.
        It keeps the weights it had then, and ``lost_`` is True. All are judged on the rows that the
        first model holds out. For choosing one among them; not for ensembles or ``rows``. Models that mix
        patterns (``rank``) all run to their end.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=80, random_state=0)
    >>> path = [gf.DNNCGM(rank=None, penalty=v, max_steps=20, random_state=0) for v in (0.1, 0.2, 0.4)]
    >>> sparse = gf.fit_together(path, sim.X[:, :8], sim.Z)[2]
    >>> sparse.edge_weights(sim.Z[:1]).shape
    (1, 8, 8)
    """
    models = _checked(models)
    first = models[0]
    check_flag("compete", compete)
    if compete and (rows is not None or first.validation_fraction == 0):
        raise ParameterError(
            "compete=True judges all models on the same held-out rows: leave rows out, and hold some out "
            f"(validation_fraction is {first.validation_fraction})."
        ).about(argument="compete")
    if first.features != "linear":
        raise ParameterError(
            f"Models that train together have features='linear', got {first.features!r}. Fit them one by one."
        ).about(argument="features")
    data = first._read_rows(X, Z, groups, X_val, Z_val)
    if data.inputs.types is not None:
        raise DataError(
            "Models that train together take numbers alone as nodes, but these are of other kinds: "
            f"{listing(data.inputs.types.others, most=4)}. Fit them one by one."
        ).about(column=data.inputs.types.others[0])
    chosen = _chosen_rows(rows, len(models), data.inputs, len(X))
    check_alike(first, data)
    others = [Streams(model._root_seed(), STREAMS) for model in models[1:]]
    tables = [data, *(replace(data, streams=streams) for streams in others)]
    splits = [
        _split(model, own, table, (data if compete else table).streams)
        for model, own, table in zip(models, chosen, tables, strict=True)
    ]
    fields = fit_models(models, tables, splits, compete=compete)
    for model, field, table in zip(models, fields, tables, strict=True):
        model._adopt(field, table)
    return models


def _checked(models: Sequence[DNNCGM]) -> list[DNNCGM]:
    if not isinstance(models, Iterable) or isinstance(models, (str, bytes)):
        raise ParameterError.of("models", f"must be a list of DNNCGM, got {type(models).__name__}.")
    models = list(models)
    if not models or not all(isinstance(model, DNNCGM) for model in models):
        kinds = ", ".join(type(model).__name__ for model in models) or "none"
        raise ParameterError.of("models", f"must be one or more DNNCGM, got {kinds}.")
    if len({id(model) for model in models}) < len(models):
        raise ParameterError(
            "The same model is there twice; each must be an object of its own (clone it)."
        ).about(argument="models")
    reference = models[0].get_params()
    for i, model in enumerate(models):
        model.check_parameters()
        for name, value in model.get_params().items():
            if name not in MAY_DIFFER and value != reference[name]:
                raise ParameterError(
                    f"Models that train together may differ in {' and '.join(MAY_DIFFER)} only, but "
                    f"{name} is {reference[name]!r} in the first and {value!r} in model {i + 1}."
                ).about(argument="models")
    return models


def _chosen_rows(rows: Any, n_models: int, inputs: Inputs, n_given: int) -> list[NDArray[np.intp]]:
    """Positions among the rows that are left after missing values were dealt with."""
    n_left = len(inputs.rows)
    if rows is None:
        return [np.arange(n_left)] * n_models
    if not isinstance(rows, (Sequence, np.ndarray)) or len(rows) != n_models:
        count = f"{len(rows)} of them" if hasattr(rows, "__len__") else f"a {type(rows).__name__}"
        raise DataError.of(
            "rows", f"must be a list with one array of row numbers per model ({n_models}), got {count}."
        )
    place = np.full(n_given, -1)
    place[inputs.rows] = np.arange(n_left)
    return [_places(own, place, i + 1) for i, own in enumerate(rows)]


def _places(own: Any, place: NDArray[np.intp], number: int) -> NDArray[np.intp]:
    index, n_given = np.asarray(own), len(place)
    if index.ndim != 1 or not (np.issubdtype(index.dtype, np.integer) or index.dtype == bool):
        raise DataError.of(
            "rows", f"of model {number} must be a list of row numbers or one True or False per row."
        )
    if index.dtype == bool:
        if len(index) != n_given:
            raise DataError.of("rows", f"of model {number} has {len(index)} flags, but X has {n_given} rows.")
        index = np.flatnonzero(index)
    elif len(index) and (index.min() < 0 or index.max() >= n_given):
        raise DataError.of(
            "rows",
            f"of model {number} must be row numbers from 0 to {n_given - 1}, got {index.min()} to "
            f"{index.max()}.",
        )
    kept = place[index]
    kept = np.sort(kept[kept >= 0])
    n_different = len(np.unique(kept))
    if n_different < MIN_SAMPLES:
        raise DataError(
            f"At least {MIN_SAMPLES} different rows are needed, but model {number} has rows for {n_different}"
            f"{' without missing values' if len(kept) < len(index) else ''}."
        ).about(argument="rows")
    return kept


def _split(
    model: DNNCGM, own: NDArray[np.intp], data: TrainingSet, streams: Streams
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and held-out rows; copies of one row (and rows of one group) go to one side."""
    if data.own is not None:
        return own, data.split(0)[1]
    labels = data.labels
    distinct, index = np.unique(own, return_inverse=True)
    names = None if labels is None else labels[distinct]
    if names is not None and len(np.unique(names)) < 2:
        raise DataError.of("rows", "of a model are all of one group, so no group can be held out.")
    train, held_out = hold_out(len(distinct), model.validation_fraction, names, streams["split"])
    data.held_out = distinct[held_out]
    if len(own) == len(distinct):
        return distinct[train], data.held_out
    return own[np.isin(index, train)], data.held_out
