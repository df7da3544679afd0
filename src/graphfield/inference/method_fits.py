"""One method of a comparison: a fit to all rows, and its predictions of rows that it has not seen."""

from __future__ import annotations

import ctypes
import gc
import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis.rows import ask, pair_positions
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import covariate_table, node_table
from graphfield.estimators.ensemble import Ensemble
from graphfield.estimators.inputs import Inputs
from graphfield.exceptions import GraphfieldError
from graphfield.fields import GraphField
from graphfield.inference.common_nodes import RAW
from graphfield.inference.model_gain import ModelGain, Units, gain_of_copies
from graphfield.inference.verdict_facts import Fitted

# What a fit may end with: a matrix that has no inverse, or more memory than there is, is the method's affair.
_FAILURES = (GraphfieldError, np.linalg.LinAlgError, FloatingPointError, MemoryError)
# Where Linux says how much memory a process has had, and is asked to count anew.
_STATUS, _COUNT_ANEW = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True, eq=False)
class MethodFit:
    """What a method found, and what it leaves of rows that it has not seen.

    ``values``, ``left``, ``left_by_one_graph`` (m, p), ``units`` and ``fold`` (m,) are of these rows, the
    same for all methods but for ``left`` and what the best single graph leaves with the method's own means;
    ``partial`` and ``graph`` (rows, pairs) are partial correlations and edges at the same values of z.
    """

    name: str
    estimator: str
    seconds: float  # of the fit to all rows
    memory: float  # at its peak, MB above what there was before; NaN where it cannot be told
    fitted: Fitted
    gain: ModelGain
    values: NDArray[np.float64]
    left: NDArray[np.float64]
    left_by_one_graph: NDArray[np.float64]
    units: NDArray[np.intp]
    fold: NDArray[np.intp]
    partial: NDArray[np.float32]
    graph: NDArray[np.bool_]

    @property
    def n_edges(self) -> float:
        """In the graph at a row's z, on average."""
        return float(self.graph.sum(axis=1).mean())

    @property
    def score(self) -> float:
        """Mean over nodes of R^2 of rows that were not seen, as ``score`` of an estimator."""
        total = np.square(self.values - self.values.mean(axis=0)).sum(axis=0)
        return float((1 - np.square(self.left).sum(axis=0) / np.where(total > 0, total, 1.0)).mean())


@dataclass(frozen=True)
class Failed:
    """A method that could not be fitted, and why."""

    name: str
    estimator: str
    why: str


@dataclass(frozen=True, eq=False)
class MethodTask:
    """Methods by name, the rows, what counts as one, and the values of z at which graphs are compared."""

    models: Mapping[str, GraphEstimator]
    inputs: Inputs
    units: Units
    n_folds: int | None
    over: pd.DataFrame
    nodes: str = RAW  # what ``inputs`` have nodes as

    def run(self, name: str) -> MethodFit | Failed:
        kind = type(self.models[name]).__name__
        try:
            with warnings.catch_warnings(action="ignore"):  # every method would say the same of the data
                return self._run(name, kind)
        except _FAILURES as error:
            return Failed(name, kind, str(error) or type(error).__name__)

    def _run(self, name: str, kind: str) -> MethodFit:
        model = clone(self.models[name])
        X, Z = node_table(self.inputs, slice(None)), covariate_table(self.inputs.Z, slice(None))
        before, start = count_memory(), time.perf_counter()
        model.fit(X, Z, groups=self.units.labels)
        seconds, memory = time.perf_counter() - start, peak_memory(before)
        single = model.single_fit() if isinstance(model, Ensemble) else model
        held_out = self.units.predict(single, self.inputs, self.n_folds)
        gain = gain_of_copies(single, held_out, self.units)
        gain = replace(gain, fitted=f"this model ({name})", nodes=self.nodes)
        partial, graph = _graphs(model.field_, self.over)
        return MethodFit(
            name,
            kind,
            seconds,
            memory,
            Fitted.of(model, Z.values),
            gain,
            held_out.values,
            held_out.model,
            held_out.static[gain.static],
            held_out.units,
            held_out.fold,
            partial,
            graph,
        )


def _graphs(field: GraphField, over: pd.DataFrame) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Partial correlations of all pairs, and edges at the automatic cut, at these values of z."""
    pairs, asked = pair_positions(field.n_nodes), ask(field, over, "auto")
    blocks = [(block.partial[:, *pairs], block.graph[:, *pairs]) for block in asked.blocks()]
    partial, graph = (np.concatenate(own)[asked.index] for own in zip(*blocks, strict=True))
    return partial, graph


def count_memory() -> float:
    """What this process holds now, MB (NaN where that cannot be told); its peak is counted from here on."""
    if not _COUNT_ANEW.exists():  # no Linux
        return math.nan
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else what the method before has let go of would not count again
        with _COUNT_ANEW.open("r+b", buffering=0) as counter:  # of the kernel, no file of ours
            counter.write(b"5")
    except (OSError, AttributeError):
        return math.nan
    return _memory("VmRSS")


def peak_memory(before: float) -> float:
    """The most that it held since then, above what it held then."""
    return max(_memory("VmHWM") - before, 0.0)


def _memory(name: str) -> float:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return math.nan
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return float(found[0]) / 1024 if found else math.nan
