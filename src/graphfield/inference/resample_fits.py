"""The graphs of one estimator fitted to many choices of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
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
from graphfield.cores import in_processes, offered_workers
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import covariate_table, node_table
from graphfield.estimators.ensemble import Ensemble
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.registry import trains_together
from graphfield.exceptions import GraphfieldError
from graphfield.fields import GraphField
from graphfield.inference.stability_folder import Resample

# Fits that train as one computation.
_PACK = 10
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
    def trains_together(self) -> bool:
        return trains_together(self.estimator)

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
        X, Z = node_table(self.inputs, slice(None)), covariate_table(self.inputs.Z, slice(None))
        return self.graphs_of(clone(self.estimator).fit(X, Z, groups=self.labels).field_)

    def fit_one(self, resample: Resample) -> Outcome:
        """In this process, with one thread: those of BLAS wait for each other with so small matrices."""
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all rows have told of the data; parts of them say it again
            return self._fit_rows(resample)

    def _fit_rows(self, resample: Resample) -> Outcome:
        rows = resample.rows(self.codes)
        X, Z = node_table(self.inputs, rows), covariate_table(self.inputs.Z, rows)
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
        X, Z = node_table(self.inputs, slice(None)), covariate_table(self.inputs.Z, slice(None))
        rows = [resample.rows(self.codes) for resample in some]
        try:
            with warnings.catch_warnings(action="ignore"):
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


def fit_resamples(task: Task, todo: Sequence[Resample]) -> Iterator[tuple[Resample, Outcome]]:
    """What becomes of each: neural ones a pack at a time, others on all cores."""
    if task.trains_together:
        yield from _fit_packs(task, todo)
    else:
        yield from zip(todo, in_processes(task.fit_one, todo), strict=True)


def _fit_packs(task: Task, todo: Sequence[Resample]) -> Iterator[tuple[Resample, Outcome]]:
    """Those with equally many rows together: a pack has one schedule. Workers of the user get one each."""
    workers = offered_workers()
    size = max(1, min(_PACK, len(todo) // workers)) if workers else _PACK
    alike = [list(part) for _, part in groupby(todo, lambda one: (one.kind, one.dropped))]
    packs = [part[start : start + size] for part in alike for start in range(0, len(part), size)]
    found = in_processes(task.fit_pack, packs) if workers else map(task.fit_pack, packs)
    for some, outcomes in zip(packs, found, strict=True):
        yield from zip(some, outcomes, strict=True)


def fitted_parameters(estimator: GraphEstimator) -> dict[str, Any]:
    """What decides a fit apart from chance, as text: hyper-parameters, those of estimators inside too."""
    params = estimator.get_params(deep=True)
    kept = {name: value for name, value in params.items() if name.split("__")[-1] != "random_state"}
    kinds = {n: type(v).__name__ if hasattr(v, "get_params") else repr(v) for n, v in sorted(kept.items())}
    return {"estimator": type(estimator).__name__, **kinds}
