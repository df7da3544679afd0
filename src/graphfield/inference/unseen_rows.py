"""Rows that took no part in a fit or in any choice, as a model and one graph for all predict them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.data.frames import Frame
from graphfield.data.splits import folds, hold_out, is_elsewhere
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import covariate_table, node_table
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.one_graph import static_models
from graphfield.estimators.registry import trains_together
from graphfield.exceptions import DataError, ExtrapolationWarning
from graphfield.fields import GraphField
from graphfield.fields.blocks import BlockField
from graphfield.fields.questions import coefficients
from graphfield.inference.unseen_kinds import (
    kind_table,
    known_part,
    known_rows,
    null_deviances,
    with_known_types,
)
from graphfield.numbers import Gain, standard_errors

# Up to so many rows each of them is predicted once, in folds; of more rows, one part is held out.
FOLD_ROWS, N_FOLDS, HELD_OUT = 3_000, 5, 0.2
# With fewer rows, or groups, nothing is said.
MIN_ROWS, MIN_UNITS = 50, 10
# Blocks of units that are left out in turn for a standard error.
_JACKKNIFE = 50
# So many folds have a standard error of their own.
_LEAST_FOLDS = 3

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Predicted:
    """What is left of held-out nodes, (m, p) each, by a model and by others beside it."""

    values: NDArray[np.float64]
    alone: NDArray[np.float64]  # without any other node: what the covariates leave
    model: NDArray[np.float64]
    average: NDArray[np.float64]
    static: dict[str, NDArray[np.float64]]
    units: NDArray[np.intp]
    fold: NDArray[np.intp]
    others: list[NDArray[np.float64]] = field(default_factory=list)
    deviances: bool = False  # all are roots of deviances, not residuals
    moving_means: bool = True  # whether ``alone`` is around a mean that follows the covariates

    @property
    def n_folds(self) -> int:
        return int(self.fold.max()) + 1

    @property
    def unconnected(self) -> NDArray[np.float64]:
        """What is left without any other node, by the mean at z or by one mean, whichever leaves less."""
        if self.deviances:
            less = np.square(self.alone).mean(axis=0) < np.square(self.values).mean(axis=0)
            return np.where(less, self.alone, self.values)
        return np.where(self.alone.var(axis=0) < self.values.var(axis=0), self.alone, self.values)

    @property
    def yardstick(self) -> Yardstick:
        return Yardstick.of(self.average, self.units)

    @property
    def best_static(self) -> str:
        """The better of the static graphs on these rows, which flatters that one, if anyone."""
        return min(self.static, key=lambda name: float(self.yardstick.errors(self.static[name]).mean()))

    def over(self, other: NDArray[np.float64]) -> Gain:
        """Of the model over something else.

        The standard error is that of rows, or of the means of folds where they differ more than their rows
        make them: fits to few rows differ, too.
        """
        stick = self.yardstick
        before, after = stick.errors(other), stick.errors(self.model)
        gain = stick.gain(before, after)
        if self.n_folds < _LEAST_FOLDS:
            return gain
        means = np.array([(before - after)[self.fold == k].mean() for k in range(self.n_folds)])
        return Gain(gain.value, max(gain.standard_error, float(standard_errors(means))))


def predict_held_out(
    model: GraphEstimator,
    inputs: Inputs,
    labels: NDArray[np.intp] | None,
    *,
    ordered: bool = False,
    n_folds: int | None = None,
    others: tuple[GraphEstimator, ...] = (),
    blocks: NDArray[np.intp] | None = None,
) -> Predicted:
    """Copies of ``model`` (and of ``others``) and static graphs, each on rows that it has not seen.

    ``labels`` are numbered from 0; ``ordered`` ones follow each other in time and make folds that do. Copies
    know of them, as the model does, and not of ``blocks``, which stay together and count as one.
    """
    together = labels if blocks is None else blocks
    splits = _splits(inputs.Z.values, together, ordered, n_folds)
    parts = []
    with warnings.catch_warnings(action="ignore"):  # what there is to say of the data was said of all rows
        for (train, rows), fitted in zip(splits, _fields(model, inputs, labels, splits), strict=True):
            units = rows if together is None else together[rows]
            if inputs.types is not None:
                parts.append(_predicted_kinds(fitted, inputs, labels, (train, rows), units, others))
                continue
            held_out = HeldOut(inputs.X[rows], inputs.Z.take(rows), units)
            groups = None if labels is None else labels[train]
            beside = [_field(other, inputs, labels, train) for other in others]
            parts.append(_predicted(fitted, inputs.X[train], inputs.Z.take(train), groups, held_out, beside))
    return _joined(parts)


def predict_new_rows(
    model: GraphEstimator, X: Any, Z: Any, X_new: Any, Z_new: Any, units: NDArray[np.intp]
) -> Predicted:
    """The fitted model itself, and static graphs of the rows that it was fitted to, on new rows."""
    with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
        schema = model.field_.schema
        held_out = HeldOut(
            schema.node_values(schema.match_nodes(X_new)), schema.match_covariates(Z_new), units
        )
        known = schema.node_values(schema.match_nodes(X)), schema.match_covariates(Z)
        return _joined([_predicted(model.field_, *known, None, held_out)])


def _predicted(
    model: GraphField,
    X: NDArray,
    Z: Frame,
    groups: NDArray[np.intp] | None,
    rows: HeldOut,
    others: Sequence[GraphField] = (),
) -> Predicted:
    """``rows`` as the model sees them, and one graph for all from the rows X, Z that it was fitted to."""
    static = {
        name: rows.residuals_with(model, coef) for name, coef in _static_coefs(model, X, Z, groups).items()
    }
    values = np.asarray(rows.values, dtype=np.float64)
    alone = rows.residuals_alone(model)
    return Predicted(
        values=values,
        alone=alone,
        model=rows.residuals(model),
        average=rows.residuals_of_average(model, Z),
        static=static,
        units=rows.units,
        fold=np.zeros(len(rows.values), dtype=np.intp),
        others=[rows.residuals(other) for other in others],
        moving_means=_is_moving(values - alone),
    )


def _is_moving(means: NDArray[np.float64]) -> bool:
    """Whether means of nodes differ between rows, by more than rounding."""
    return bool((np.ptp(means, axis=0) > 1e-9 * np.abs(means).max(axis=0)).any())


def _predicted_kinds(
    model: GraphField,
    inputs: Inputs,
    labels: NDArray[np.intp] | None,
    split: Split,
    units: NDArray[np.intp],
    others: Sequence[GraphEstimator],
) -> Predicted:
    """The same where some nodes are no numbers; rows with a level that training lacks are left out."""
    train, rows = split[0], known_rows(model, inputs, split[1])
    n_folds = _static_folds(None if labels is None else labels[train])
    static = {
        name: _field(with_known_types(kind, inputs), inputs, labels, train).of_kind(BlockField)
        for name, kind in static_models(inputs.types, n_folds=n_folds).items()
    }
    beside = [_field(with_known_types(other, inputs), inputs, labels, train) for other in others]
    known = known_part(model, inputs, rows)
    return Predicted(
        values=null_deviances(next(iter(static.values())), known),
        alone=known.residuals_alone(model),
        model=known.residuals(model),
        average=known.residuals_of_average(model, inputs.Z.take(train)),
        static={name: known.residuals(one) for name, one in static.items()},
        units=units[np.isin(split[1], rows)],
        fold=np.zeros(len(rows), dtype=np.intp),
        others=[known.residuals(other) for other in beside],
        deviances=True,
    )


def _joined(parts: list[Predicted]) -> Predicted:
    """The rows of all folds."""

    def stacked(name: str, key: Any = None) -> NDArray:
        found = (getattr(part, name) for part in parts)
        return np.concatenate([own if key is None else own[key] for own in found])

    return Predicted(
        **{name: stacked(name) for name in ("values", "alone", "model", "average")},
        static={key: stacked("static", key) for key in parts[0].static},
        units=np.unique(stacked("units"), return_inverse=True)[1],
        fold=np.repeat(np.arange(len(parts)), [len(part.model) for part in parts]),
        others=[stacked("others", i) for i in range(len(parts[0].others))],
        deviances=parts[0].deviances,
        moving_means=any(part.moving_means for part in parts),
    )


def can_compare(n: int, labels: NDArray[np.intp] | None) -> bool:
    """Whether so many rows, and groups of them, say something about a model."""
    return n >= MIN_ROWS and (labels is None or len(np.unique(labels)) >= MIN_UNITS)


def _splits(
    Z: pd.DataFrame, labels: NDArray[np.intp] | None, ordered: bool, n_folds: int | None
) -> list[Split]:
    """Training and held-out rows. Parts of a series that follow each other stay together, where the others
    have values of covariates such as theirs."""
    n = len(Z)
    n_units = n if labels is None else len(np.unique(labels))
    if not can_compare(n, labels):
        what = f"{n} rows" if labels is None else f"{n} rows in {n_units} groups"
        raise DataError(
            f"{what} are too few to compare a model with one graph on rows that it has not seen: at least "
            f"{MIN_ROWS} rows{'' if labels is None else f' and {MIN_UNITS} groups'} are needed."
        ).about(argument="X")
    if n_folds is None:
        n_folds = N_FOLDS if n <= FOLD_ROWS else 1
    if ordered and labels is not None:
        parts = [np.flatnonzero(labels * N_FOLDS // n_units == part) for part in range(N_FOLDS)]
        parts = parts[-1:] if n_folds == 1 else parts
        ordered = not any(is_elsewhere(Z, rows) for rows in parts)
    if ordered and labels is not None:
        return [(np.setdiff1d(np.arange(n), rows), rows) for rows in parts]
    if n_folds == 1:
        return [hold_out(n, HELD_OUT, labels, seed=0)]
    return folds(n, labels, n_folds, shuffle=True)


def _fields(
    model: GraphEstimator, inputs: Inputs, labels: NDArray[np.intp] | None, splits: list[Split]
) -> Iterator[GraphField]:
    """One for each split, from its training rows; folds of a neural network train together."""
    if len(splits) > 1 and inputs.types is None and trains_together(model):
        from graphfield.estimators.together import fit_together

        copies: list[Any] = [copy_of(model, seed) for seed in range(len(splits))]
        X, Z = node_table(inputs, slice(None)), covariate_table(inputs.Z, slice(None))
        rows = [train for train, _ in splits]
        yield from (one.field_ for one in fit_together(copies, X, Z, rows=rows, groups=labels))
        return
    copied = copy_of(model) if inputs.types is None else with_known_types(copy_of(model), inputs)
    for train, _ in splits:
        yield _field(copied, inputs, labels, train)


def copy_of(model: GraphEstimator, seed: int | None = None) -> GraphEstimator:
    """An unfitted copy; a level that its rows do not have is no mistake.

    What AutoCGM kept is compared with one graph again, the other kinds of models are not.
    """
    copied = clone(model)
    if hasattr(model, "chosen_"):
        copied.set_params(candidates=tuple(model.chosen_))
    copied.set_params(**{k: "average" for k in copied.get_params() if k.split("__")[-1] == "unknown"})
    return copied if seed is None else copied.set_params(random_state=seed)


def _field(
    model: GraphEstimator, inputs: Inputs, labels: NDArray[np.intp] | None, rows: NDArray[np.intp]
) -> GraphField:
    own: GraphEstimator = clone(model)
    groups = None if labels is None else labels[rows]
    X = node_table(inputs, rows) if inputs.types is None else kind_table(inputs, rows)
    return own.learn_field(X, covariate_table(inputs.Z, rows), groups=groups)


def _static_coefs(
    model: GraphField, X: NDArray, Z: Frame, groups: NDArray[np.intp] | None
) -> dict[str, NDArray]:
    """Coefficients of one graph for all, by each of the static models, of nodes in the model's units.

    They are fitted to what the means, scales and normal scores of ``model`` leave of its rows, so that what
    differs from the model is the graph alone.
    """
    left = model.standardize(X.astype(np.float64), model.encode(Z))
    nothing = pd.DataFrame(index=range(len(left)))
    rivals = static_models(center="constant", n_folds=_static_folds(groups))
    fields = {name: rival.learn_field(left, nothing, groups=groups) for name, rival in rivals.items()}
    return {name: coefficients(field, nothing.iloc[:1])[0] for name, field in fields.items()}


def _static_folds(groups: NDArray[np.intp] | None) -> int:
    """Few groups cannot make five folds."""
    return N_FOLDS if groups is None else min(N_FOLDS, len(np.unique(groups)))


def explained_share(
    values: NDArray[np.float64], left: NDArray[np.float64], units: NDArray[np.intp], *, around: bool = True
) -> Gain | None:
    """Share of the variance of ``values`` that is explained, averaged over nodes; a jackknife over units.

    Not ``around`` their mean, of their mean square.

    A node of which nothing is explained counts as 0 and no less: one value far out in training would outweigh
    all other nodes.
    """
    block = np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % _JACKKNIFE
    n_blocks = int(block.max()) + 1
    squares, sums, totals = (np.zeros((n_blocks, values.shape[1])) for _ in range(3))
    centred = values - values.mean(axis=0) if around else values  # so that sums of squares keep their digits
    for total, part in ((squares, left**2), (sums, centred), (totals, centred**2)):
        np.add.at(total, block, part)
    counts = np.bincount(block, minlength=n_blocks).astype(np.float64)

    def share(keep: NDArray[np.bool_]) -> float:
        n = counts[keep].sum()
        variance = totals[keep].sum(axis=0) / n
        if around:
            variance = variance - (sums[keep].sum(axis=0) / n) ** 2
        error = squares[keep].sum(axis=0) / n
        part = 1 - np.divide(error, variance, out=np.ones_like(error), where=variance > 0)
        return float(np.maximum(part, 0.0).mean())

    without = np.array([share(np.arange(n_blocks) != one) for one in range(n_blocks)])
    error = np.sqrt((n_blocks - 1) / n_blocks * np.sum((without - without.mean()) ** 2))
    return Gain(share(np.ones(n_blocks, dtype=bool)), float(error))
