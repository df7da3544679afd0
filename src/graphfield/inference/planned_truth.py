"""What samples are planned for: a field to draw rows from, and which of its pairs are to be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.rows import ask, covariate_rows, field_of
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import DataError, ParameterError
from graphfield.fields import GraphField
from graphfield.graphs.strength import partial_from_precision, precision_from_partial
from graphfield.inference.movement_words import pair_name
from graphfield.simulate import Field, Simulation, make_setting
from graphfield.simulate.gaussian import GaussianField

# What is to be found, and what one of them is called.
QUESTIONS = {"edges": "edge", "varying": "edge that moves"}
# Rows of z at which the truth is looked at, and numbers that it may take: all rows at once.
_ROWS, _ENTRIES = 2_000, 50_000_000
# Partial correlations that differ by less between rows do not move.
_MOVES = 1e-6
# The share of rows from which an edge is said to be there at all z.
_EVERYWHERE = 0.995


@dataclass(frozen=True, eq=False)
class Truth:
    """A field, what it is called, and which of its pairs are true and which of these are to be found.

    ``names`` are those that are to be found, the largest first, with the share of z at which they are edges.
    """

    field: Field
    subject: str
    true: NDArray[np.bool_]
    wanted: NDArray[np.bool_]
    names: tuple[str, ...]


def read_truth(
    source: Any, Z: Any, threshold: float | str | None, question: str, least: float, seed: int
) -> Truth:
    """As :func:`graphfield.plan_samples` is asked."""
    field, subject = _read_field(source, Z, threshold, seed)
    p = field.candidates.shape[1]
    rows = field.covariates(min(_ROWS, max(1, _ENTRIES // p**2)), np.random.default_rng(seed))
    shares = field.skeleton(rows)[:, *np.triu_indices(p, 1)].mean(axis=0)
    true, size = _true_pairs(field, rows, question, shares > 0)
    if least > 0 and not np.isfinite(size).all():
        raise ParameterError(f"The sizes of the edges of {subject} are not known: leave least at 0.").about(
            argument="least"
        )
    wanted = true & (size >= least)
    if not wanted.any():
        of = f" of size {least:g}" if least else ""
        raise DataError(
            f"There is no {QUESTIONS[question]}{of} in {subject}: there is nothing to plan for."
        ).about(argument="question")
    nodes = (
        field.field.schema.node_names if isinstance(field, PilotField) else [f"x{i + 1}" for i in range(p)]
    )
    return Truth(field, subject, true, wanted, _named(nodes, np.where(wanted, size, -1.0), shares))


def _named(nodes: Sequence[str], size: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[str, ...]:
    """Pairs whose size is not negative, the largest first."""
    first, second = np.triu_indices(len(nodes), 1)
    found = [int(pair) for pair in np.argsort(-size, kind="stable") if size[pair] >= 0]
    return tuple(pair_name(nodes[first[i]], nodes[second[i]]) + _where(shares[i]) for i in found)


def _where(share: float) -> str:
    return "" if share >= _EVERYWHERE else f" (an edge at {max(1, round(100 * share))} % of z)"


def _true_pairs(
    field: Field, rows: Any, question: str, there: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which pairs are true, and their sizes over these rows; infinite where the field does not know."""
    upper = np.triu_indices(field.candidates.shape[1], 1)
    precision = field.precision(rows)
    if precision is None:  # nobody has said how its edges move
        return there, np.full(len(there), np.inf)
    values = partial_from_precision(precision)[:, *upper]
    if question == "edges":
        return there, np.sqrt((values**2).mean(axis=0))
    return np.ptp(values, axis=0) > _MOVES, values.std(axis=0)


def _read_field(source: Any, Z: Any, threshold: float | str | None, seed: int) -> tuple[Field, str]:
    if isinstance(source, str | Simulation):
        if Z is not None:
            raise ParameterError.of("Z", "is for a fitted model: a setting has covariates of its own.")
        sim = make_setting(source, 2, seed) if isinstance(source, str) else source
        return sim.field, f"setting {sim.setting}"
    if not isinstance(source, GraphEstimator | GraphField):
        raise ParameterError(
            "A fitted model, its field, or the name of a setting such as 'G1' was expected, got "
            f"{source!r:.60}."
        ).about(argument="source")
    if Z is None:
        raise ParameterError.of(
            "Z", "is needed for a fitted model: covariates as they will be, such as those it was fitted to."
        )
    field = field_of(source)
    return PilotField(field, covariate_rows(field, Z).reset_index(drop=True), threshold), "the fitted model"


class PilotField(GaussianField):
    """Gaussian nodes with the edges of a field, no others; covariates are rows of a table, drawn anew.

    Each node has mean zero and variance one at every z. Where edges that were estimated one by one make no
    covariance matrix, all of that z shrink by one factor.
    """

    def __init__(self, field: GraphField, table: pd.DataFrame, threshold: float | str | None) -> None:
        self.field, self.table, self.threshold = field, table, threshold
        self.candidates = np.zeros((1, field.n_nodes, field.n_nodes))

    def covariates(self, n_samples: int, rng: np.random.Generator) -> pd.DataFrame:
        rows = rng.integers(len(self.table), size=n_samples)
        return self.table.iloc[rows].reset_index(drop=True)

    def skeleton(self, Z: pd.DataFrame) -> NDArray[np.bool_]:
        return self._edges(Z) != 0

    def precision(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        precision = precision_from_partial(self._edges(Z), np.ones(self.field.n_nodes))
        spread = np.sqrt(np.diagonal(np.linalg.inv(precision), axis1=1, axis2=2))
        return precision * spread[:, :, None] * spread[:, None, :]

    def _edges(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        """Partial correlations, zero where there is no edge, (n, p, p)."""
        asked = ask(self.field, Z, self.threshold)
        found = [np.where(block.graph, block.partial, 0.0) for block in asked.blocks()]
        return np.concatenate(found)[asked.index]
