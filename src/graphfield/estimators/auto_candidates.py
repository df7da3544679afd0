"""The candidates of :class:`AutoCGM`: how each is fitted, and all of them side by side."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from graphfield.cores import fit_side_by_side
from graphfield.data.frames import MIN_SAMPLES
from graphfield.data.node_types import NodeTypes
from graphfield.estimators.auto_choice import Judged, LeftOut
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import AveragedGraph, covariate_table, node_table, own_tables
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.estimators.one_graph import STATIC, static_model, static_models
from graphfield.estimators.registry import candidates, find_estimator, short_names, takes_node_types
from graphfield.estimators.static import StaticGraph
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, DataWarning, GraphfieldError
from graphfield.training.progress import progress_bar

# Fewer held-out rows (or groups) than this say nothing about which model is better.
_MIN_UNITS = 5


class Options(Protocol):
    """What candidates have in common: parameters of :class:`AutoCGM`."""

    candidates: str | Sequence[str]
    unknown: str
    device: str
    node_types: str | Mapping[str, str]


@dataclass(frozen=True)
class Plan:
    """An estimator to fit and further arguments of its ``fit``.

    Its ``random_state``, ``unknown``, ``device`` and ``node_types`` are set by :class:`AutoCGM` where it has
    them.
    """

    model: GraphEstimator
    options: dict[str, Any] = field(default_factory=dict)


def make_plan(candidate: str, fitted: Mapping[str, GraphEstimator], types: NodeTypes | None) -> Plan:
    """How a candidate is fitted, given what was fitted before it.

    ``types`` are those of the nodes where some are no plain numbers. One graph for everybody may be asked for
    by the name of its method.
    """
    if candidate == STATIC:
        return Plan(static_model(types))
    if candidate in (methods := static_models(types)):
        return Plan(methods[candidate])
    entry, own = candidates()[candidate], short_names()[candidate]
    begin = _one_of(fitted, entry.start)
    # Only a model that mixes patterns is one to begin with.
    start = {} if getattr(begin, "rank_", None) is None else {"start": begin}
    if types is not None and not takes_node_types(own):
        other = next(one for one in zip(types.names, types.kinds, strict=True) if one[1] != "gaussian")
        raise DataError(f"{own} takes numbers alone as nodes, and {other[0]!r} is {other[1]}.").about(
            column=other[0]
        )
    inner = {} if entry.of is None else {"estimator": find_estimator(short_names()[entry.of])()}
    return Plan(find_estimator(own)(**inner, **(entry.candidate or {})), start)


def _one_of(fitted: Mapping[str, GraphEstimator], candidate: str | None) -> GraphEstimator | None:
    """The fitted candidate of this name, or the first of several fits of it."""
    for name, model in fitted.items():
        if name == candidate:
            return model
        if candidate is not None and candidates()[name].of == candidate:
            return cast("AveragedGraph", model).members_[0]
    return None


@dataclass(frozen=True)
class _Done:
    """A candidate that was fitted, or the reason why it could not be."""

    name: str
    model: GraphEstimator | GraphfieldError
    seconds: float


@dataclass(frozen=True)
class _Part:
    """Some rows, what a level unseen among them means, and own held-out rows as arguments of ``fit``."""

    rows: NDArray[np.intp] | slice
    unknown: str
    own: dict[str, Any]


class Fits:
    """The rows, and the candidates fitted to some or all of them."""

    def __init__(self, auto: Options, data: TrainingSet, seeds: dict[str, int]) -> None:
        self.auto, self.data, self.seeds = auto, data, seeds
        known = auto.candidates
        self.named = self._suitable() if known == "auto" else known
        # Methods for one graph for everybody, and the one that is taken: the first until they are judged.
        self.methods, self.static = [STATIC, *list(static_models(data.inputs.types))[1:]], STATIC

    def _suitable(self) -> list[str]:
        """The candidates where none was named; several fits stand for one."""
        found = [name for name in candidates() if self._suits(name)]
        several = {candidates()[name].of for name in found}
        return [name for name in found if name not in several]

    def _suits(self, name: str) -> bool:
        """Whether a candidate that was not named is worth its time."""
        limits = candidates()[name].most
        if limits is None:
            return True
        sizes = *self.data.X.shape, len(self.data.Z.names)
        few = all(size <= most for size, most in zip(sizes, limits, strict=True))
        return few and self.data.inputs.types is None

    def n_units(self, rows: NDArray[np.intp] | slice) -> int:
        """How many rows, or groups where there are groups."""
        labels = self.data.labels
        return len(self.data.X[rows]) if labels is None else len(np.unique(labels[rows]))

    def can_compare(self, train: NDArray[np.intp], rows: HeldOut) -> bool:
        return min(self.n_units(train), rows.n_units) >= _MIN_UNITS and len(train) >= MIN_SAMPLES

    def judge(self, train: NDArray[np.intp], rows: HeldOut) -> tuple[list[Judged], list[LeftOut]]:
        """Every candidate fitted to the rows ``train``; one that fails is left out, but for "static".

        That is the best of the methods for one graph.
        """
        names = [name for name in candidates() if name in self.named and name != STATIC]
        judged: dict[str, Judged] = {}
        left_out: dict[str, LeftOut] = {}
        # A level that is in the held-out rows alone is no reason to fail.
        for one in self._fit_all([*self.methods, *names], _Part(train, "average", {})):
            start = time.perf_counter()
            if isinstance(one.model, GraphfieldError):
                if one.name == STATIC:
                    what = f"With {len(train):,} of the rows, the others held out for the comparison"
                    raise type(one.model)(f"{what}: {one.model}") from one.model
                left_out[one.name] = LeftOut(one.name, one.seconds, str(one.model))
                continue
            residuals = rows.residuals(one.model.field_)
            of_average = rows.residuals_of_average(one.model.field_, self.data.Z.take(train))
            seconds = one.seconds + time.perf_counter() - start
            judged[one.name] = Judged(one.name, one.model.field_, residuals, of_average, seconds)
        known = [judged.pop(name) for name in self.methods if name in judged]
        yardstick = Yardstick.of(known[0].residuals, rows.units)
        best = min(known, key=lambda one: yardstick.errors(one.residuals).mean())
        self.static = best.name
        static = replace(best, name=STATIC, seconds=sum(one.seconds for one in known))
        return [static, *judged.values()], [left_out[name] for name in names if name in left_out]

    def again(self, names: list[str]) -> list[GraphEstimator]:
        """The candidates of these names, fitted to all rows; the user's own held-out rows choose for them."""
        models = []
        names = [self.static if name == STATIC else name for name in names]
        for one in self._fit_all(names, _Part(slice(None), self.auto.unknown, own_tables(self.data))):
            if isinstance(one.model, GraphfieldError):
                raise one.model
            models.append(one.model)
        return models

    def _fit_all(self, names: list[str], part: _Part) -> list[_Done]:
        """The candidates in their order; neural ones, which take longest, beside the others."""
        by_kind = ([name for name in names if _is_neural(name) is neural] for neural in (True, False))
        lanes = [sorted(lane, key=_begins_with_another) for lane in by_kind if lane]
        fit_lane = partial(self._fit_lane, part, alone=len(lanes) == 1)
        with warnings.catch_warnings():  # here, as it holds for all threads
            warnings.simplefilter("ignore", DataWarning)  # said once already, about all rows
            found = {one.name: one for lane in fit_side_by_side(fit_lane, lanes) for one in lane}
        return [found[name] for name in names]

    def _fit_lane(self, part: _Part, lane: list[str], *, alone: bool) -> list[_Done]:
        done: list[_Done] = []
        for name in lane:
            before = {one.name: one.model for one in done if isinstance(one.model, GraphEstimator)}
            done.append(self._try(name, before, part, (len(done), len(lane)) if alone else None))
        return done

    def _try(
        self, name: str, fitted: Mapping[str, GraphEstimator], part: _Part, place: tuple[int, int] | None
    ) -> _Done:
        start = time.perf_counter()
        model: GraphEstimator | GraphfieldError
        try:
            # A neural model draws a bar of its own, and a terminal has room for one.
            shown = place is not None and not _is_neural(name)
            with progress_bar("Models" if shown else None, place[1] if place else 1, unit="fits") as advance:
                advance(place[0] if place else 0, name)
                model = self._fit(name, fitted, part)
        except GraphfieldError as error:
            model = error
        return _Done(name, model, time.perf_counter() - start)

    def _fit(self, name: str, fitted: Mapping[str, GraphEstimator], part: _Part) -> GraphEstimator:
        rows = part.rows
        plan = make_plan(name, fitted, self.data.inputs.types)
        model = plan.model
        candidate = STATIC if name in self.methods else name
        # One that begins with another holds out the same rows.
        seed = plan.options["start"].random_state if plan.options else self.seeds[candidate]
        common = {"random_state": seed, "unknown": part.unknown, "device": self.auto.device}
        common["marginals"] = "raw"  # the nodes are scores already, where they are to be
        common["node_types"] = self.auto.node_types
        # Also of the one of which it is several fits.
        known = {key: key.split("__")[-1] for key in model.get_params()}
        model.set_params(**{key: common[name] for key, name in known.items() if name in common})
        if isinstance(model, StaticGraph):  # few groups cannot make five folds
            model.n_folds = min(model.n_folds, self.n_units(rows))
        X, Z = node_table(self.data.inputs, rows), covariate_table(self.data.Z, rows)
        groups = None if self.data.labels is None else self.data.labels[rows]
        return model.fit(X, Z, groups=groups, **part.own, **plan.options)


def _begins_with_another(name: str) -> bool:
    return name in (known := candidates()) and known[name].start is not None


def _is_neural(name: str) -> bool:
    return name in (known := candidates()) and known[name].neural
