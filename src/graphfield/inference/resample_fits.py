"""The graphs of one estimator fitted to many choices of rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from graphfield.analysis.averages import average_graph
from graphfield.analysis.rows import ask
from graphfield.cores import core_count, in_processes
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import covariate_table, node_table
from graphfield.estimators.ensemble import Ensemble
from graphfield.estimators.inputs import Inputs
from graphfield.exceptions import GraphfieldError
from graphfield.fields import GraphField
from graphfield.inference.resamples import Resample

# Fits that train as one computation, and fits of other kinds for each core, before what they found is kept.
_PACK, _PER_CORE = 10, 4
# Seconds of work for which other processes are worth starting.
_WORTH = 30.0
# Rows of z that a graph is averaged over at most.
MOST_ROWS = 2_000

# What became of a fit: its graphs at each place, (places, pairs), or why there are none.
Outcome = NDArray[np.float32] | str


@dataclass(frozen=True, eq=False)
class Task:
    """What is fitted to resampled rows, and which graphs are kept of each fit.

    ``over`` are the rows of z that the average graph is about, ``at`` further values, one graph each.
    """

    estimator: GraphEstimator
    inputs: Inputs
    labels: NDArray[np.intp] | None
    over: pd.DataFrame
    at: pd.DataFrame
    threshold: float | str | None

    @property
    def codes(self) -> NDArray[np.intp]:
        """What is dropped or drawn together."""
        return np.arange(len(self.inputs.X)) if self.labels is None else self.labels

    @property
    def n_places(self) -> int:
        return 1 + len(self.at)

    @property
    def trains_together(self) -> bool:
        """By name, as in ``Ensemble``: asking for the class would import torch for all others."""
        return type(self.estimator).__module__ == "graphfield.estimators.dnncgm"

    def graphs_of(self, field: GraphField) -> NDArray[np.float32]:
        """Partial correlations of all pairs, zero where there is no edge."""
        upper = np.triu_indices(field.n_nodes, 1)
        average = average_graph(field, self.over, threshold=self.threshold).to_numpy()
        found = [average[upper]]
        if len(self.at):
            asked = ask(field, self.at, self.threshold)
            graphs = np.concatenate([block.partial * block.graph for block in asked.blocks()])
            found += list(graphs[asked.index][:, *upper])
        return np.stack(found).astype(np.float32)

    def fit_all_rows(self) -> NDArray[np.float32]:
        """The fit that the others are compared with, as the user asked for it; what it warns of is heard."""
        X, Z = node_table(self.inputs, slice(None)), covariate_table(self.inputs.Z.values, slice(None))
        return self.graphs_of(clone(self.estimator).fit(X, Z, groups=self.labels).field_)

    def fit_one(self, resample: Resample) -> Outcome:
        """In this process, with one thread: those of BLAS wait for each other with so small matrices."""
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all rows have told of the data; parts of them say it again
            return self._fit_rows(resample)

    def _fit_rows(self, resample: Resample) -> Outcome:
        rows = resample.rows(self.codes)
        X, Z = node_table(self.inputs, rows), covariate_table(self.inputs.Z.values, rows)
        groups = None if self.labels is None else self.labels[rows]
        if groups is None and resample.kind == "draw":
            groups = rows  # copies of a row must not be on both sides of a split inside the fit
        try:
            return self.graphs_of(self._unfitted(resample).fit(X, Z, groups=groups).field_)
        except GraphfieldError as error:
            return str(error)

    def fit_pack(self, some: Sequence[Resample]) -> list[Outcome]:
        """All as one computation."""
        from graphfield.estimators.together import fit_together

        models = [self._unfitted(resample) for resample in some]
        X, Z = node_table(self.inputs, slice(None)), self.inputs.Z.values
        rows = [resample.rows(self.codes) for resample in some]
        try:
            fit_together(models, X, Z, rows=rows, groups=self.labels)
        except GraphfieldError as error:
            if len(some) == 1:
                return [str(error)]
            return [outcome for one in some for outcome in self.fit_pack([one])]
        return [self.graphs_of(model.field_) for model in models]

    def _unfitted(self, resample: Resample) -> GraphEstimator:
        """Levels that are not among the rows are no mistake."""
        several = Ensemble(
            estimator=self.estimator, resample=True, unknown="average", random_state=resample.fit_seed
        )
        return several.single_fit()


def fit_resamples(
    task: Task, todo: Sequence[Resample], keep: Callable[[Resample, Outcome], None]
) -> Iterator[int]:
    """Fit all, a few at a time, and ``keep`` what became of each; yields how many are done."""
    done = 0
    for some, outcomes in _fit_packs(task, todo) if task.trains_together else _fit_others(task, todo):
        for resample, outcome in zip(some, outcomes, strict=True):
            keep(resample, outcome)
        done += len(some)
        yield done


Part = tuple[Sequence[Resample], list[Outcome]]


def _fit_packs(task: Task, todo: Sequence[Resample]) -> Iterator[Part]:
    """Those with equally many rows together: a pack has one schedule."""
    alike = [list(part) for _, part in groupby(todo, lambda one: (one.kind, one.dropped))]
    for some in (pack for part in alike for pack in _in_parts(part, _PACK)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield some, task.fit_pack(some)


def _fit_others(task: Task, todo: Sequence[Resample]) -> Iterator[Part]:
    """On all cores, where that is worth the start of processes: the first fit tells how long one takes."""
    start = time.perf_counter()
    for some in _in_parts(todo[:1], 1):
        yield some, [task.fit_one(one) for one in some]
    is_long = (time.perf_counter() - start) * len(todo) > _WORTH and core_count() > 1
    for some in _in_parts(todo[1:], _PER_CORE * core_count() if is_long else 1):
        yield some, in_processes(task.fit_one, some)


def _in_parts(todo: Sequence[Resample], size: int) -> list[Sequence[Resample]]:
    return [todo[start : start + size] for start in range(0, len(todo), size)]


def fitted_parameters(estimator: GraphEstimator) -> dict[str, Any]:
    """What decides a fit apart from chance, as text: hyper-parameters, those of estimators inside too."""
    params = estimator.get_params(deep=True)
    kept = {name: value for name, value in params.items() if name.split("__")[-1] != "random_state"}
    kinds = {n: type(v).__name__ if hasattr(v, "get_params") else repr(v) for n, v in sorted(kept.items())}
    return {"estimator": type(estimator).__name__, **kinds}
