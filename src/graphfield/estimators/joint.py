"""One sparse graph per level of categorical covariates, found together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, features
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.composite import with_typical_scale
from graphfield.estimators.level_classes import LevelRows, find_classes, find_columns
from graphfield.estimators.node_scores import MARGINAL_OF_RANKS, OfScores
from graphfield.estimators.parameters import (
    COUNT,
    MISSING,
    UNKNOWN,
    Choice,
    Custom,
    Number,
    WordOrNumber,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, ParameterError, listing
from graphfield.fields.base import Common, State
from graphfield.fields.grid import Grid, GridField
from graphfield.solvers.interaction import linear_mean
from graphfield.solvers.joint_graphs import JointSolver
from graphfield.solvers.kernel_graphs import Local, best_factor
from graphfield.solvers.leaf_likelihood import factor_of
from graphfield.solvers.penalties import PathSearch, Tried, compare_rows

# Strengths of the coupling that are tried, from one graph for all to one per level.
_STRENGTHS = (1.0, 0.9, 0.75, 0.5, 0.25, 0.0)
# Strengths worse than the best, one after the other, after which the search ends.
_PATIENCE = 2
# Of the regression of the nodes on z, so that it exists for any z.
_RIDGE = 1e-6
# Of final solutions, in units of the penalty.
_ACCURACY = 5e-3
# The step of the penalty, and likelihoods of held-out rows.
Judged = tuple[int, NDArray[np.float64]]
_COLUMNS = ["strength", "log_likelihood", "behind", "standard_error"]


def _check_by(by: Any) -> None:
    names = [by] if by is None or isinstance(by, str) else by
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(n, str | None) for n in names):
        raise ParameterError.of(
            "by", f"must be the name of a covariate, several of them, or None, got {by!r}."
        )


@hyper_parameters
class JointGraphicalLasso(OfScores):
    """One sparse graph per level of a category; levels share what they have in common.

    Graphical lassos of all levels at once, with a penalty on what differs between levels (Danaher, Wang and
    Witten 2014) or on edges that only some of them have (Guo, Levina, Michailidis and Zhu 2011; Danaher).
    Between one graph for all and a separate fit for each level (:class:`ByCluster`); held-out rows
    choose where. Each level has means and scales of its own. Covariates that are numbers move means only.

    Parameters
    ----------
    coupling : {"fused", "group"}, default "fused"
        "fused" makes edges of two levels equal unless the rows contradict; "group" lets levels have edges at
        the same places, of any size.
    strength : "auto" or float in [0, 1], default "auto"
        How strongly levels are held together. 0 is a fit for each level on its own; 1 is one graph for all
        ("fused"), or edges that are there in all levels or in none ("group"). "auto" is the strongest whose
        likelihood of held-out rows is within one standard error of the best.
    penalty : "auto" or float, default "auto"
        Penalty of the absolute off-diagonal entries of the precision matrix of nodes standardised within
        levels. Levels of equal size have this penalty each, rarer ones a larger one (``level_penalties_``).
    levels : {"auto", "ordered", "unordered"}, default "auto"
        Of "fused": whether only neighbours in the order of levels are held together, or any two. "auto"
        asks the column: an ordered pandas categorical has an order. One covariate only.
    by : str or list of str, optional
        The covariates whose levels, or combinations of levels, have graphs; the others move means only. By
        default all that are categorical.
    n_folds : int, default 5
        Cross-validation folds in which penalty and strength are chosen, where no X_val, Z_val is given.
    marginals : {"raw", "auto", "normal", "log1p", "clr", "skeptic"}, default "raw"
        Nodes as they are, their normal scores, also where held-out rows prefer these ("auto"), logarithms or
        log-ratios; "skeptic" has normal scores and finds the correlations within levels from ranks, as in
        :class:`GraphicalLasso`.
    missing : {"error", "drop", "impute"}
    unknown : {"error", "average"}

    Attributes
    ----------
    strength_ : float
    penalty_ : float
    level_penalties_ : DataFrame
        The levels of ``by`` that have a graph, ``n_rows`` and ``penalty``: of a level on its own.
    held_out_ : DataFrame
        ``strength``, ``log_likelihood`` (mean over held-out rows), ``behind`` and its ``standard_error``
        (distance to the best).

    Notes
    -----
    A level with fewer than 20 rows is named in a warning: for its means, scales and correlations rows of
    other levels count as well, as much as makes 20. A combination of levels without any row has the average
    of all graphs. The problem that is solved is written out in :mod:`graphfield.solvers.joint_graphs`.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("S2", n_samples=400, random_state=0)
    >>> model = gf.JointGraphicalLasso(n_folds=2).fit(sim.X[:, :5], sim.Z[["site"]])
    >>> model.level_penalties_["site"].tolist()
    ['A', 'B', 'C', 'D']
    """

    coupling: str = parameter("fused", Choice(("fused", "group")))
    strength: float | str = parameter("auto", Number(0, 1, auto=True))
    penalty: float | str = parameter("auto", WordOrNumber(("auto",)))
    levels: str = parameter("auto", Choice(("auto", "ordered", "unordered")))
    by: str | Sequence[str] | None = parameter(None, Custom(_check_by))
    n_folds: int = parameter(5, COUNT)
    marginals: str = parameter("raw", MARGINAL_OF_RANKS)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)

    def _fit(self, data: TrainingSet) -> GridField:
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        schema, data = self._take_scores(schema, data)
        columns = find_columns(schema.encoder, self.by)
        self._coupling = self._choose_coupling(columns)
        classes = find_classes(schema.encoder, columns, data.encode(schema.encoder).codes, len(data.X))
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        values, W = scaler.transform(data.all_nodes), features(schema.encoder, data.encode(schema.encoder))
        mean = linear_mean(values[: len(data.X)], W[: len(data.X)], _RIDGE)
        rows = LevelRows(values - W @ mean, classes, self.by_rank)
        known = np.arange(len(data.X))
        solver, local = rows.solver(known, self._coupling)
        self.strength_, self.penalty_ = self._choose(rows, data, solver, local)
        matrices = solver.solve(self.penalty_, self.strength_, _ACCURACY)
        self.level_penalties_ = classes.table(solver.level_penalties(self.penalty_), known)
        grid = Grid([np.zeros(1) for _ in schema.encoder.numeric], schema.encoder)
        found = classes.at_points(grid, solver.shares, matrices, local)
        field = GridField(Common(schema, scaler, scaler.scale), grid, found, mean)
        return with_typical_scale(field, data.Z)

    def _choose_coupling(self, columns: Sequence[Categorical]) -> str:
        if self.coupling == "group":
            return "group"
        if self.levels == "ordered" and len(columns) > 1:
            names = listing([column.name for column in columns])
            raise DataError(
                f"JointGraphicalLasso(levels='ordered') needs one covariate whose levels have an order, got "
                f"{names}. Name one with by=..., or use levels='unordered'."
            ).about(argument="by")
        in_order = (
            len(columns) == 1 and columns[0].ordered if self.levels == "auto" else self.levels == "ordered"
        )
        return "chain" if in_order else "fused"

    def _choose(
        self, rows: LevelRows, data: TrainingSet, whole: JointSolver, local: Local
    ) -> tuple[float, float]:
        """Strength and penalty, by the likelihood of held-out rows."""
        if self.strength != "auto" and self.penalty != "auto":
            self.held_out_ = pd.DataFrame(columns=_COLUMNS, dtype=float)
            return float(self.strength), float(self.penalty)
        parts = rows.parts(data.fold_labels(self.n_folds), self._coupling)

        def attempt(strength: float, near: Judged | None) -> tuple[float, Judged]:
            def judge(factor: float) -> NDArray[np.float64]:
                return rows.judge(parts, strength, partial(self._penalty, factor))

            step = None if near is None else near[0]
            found = best_factor(judge, step) if self.penalty == "auto" else (0, judge(np.nan))
            return -float(found[1].mean()), found

        strengths = list(_STRENGTHS) if self.strength == "auto" else [float(self.strength)]
        search = PathSearch(strengths, attempt).walk(0, lambda s: s.worse >= _PATIENCE)
        new = np.concatenate([part.new for part in parts])
        best = self._compare(search, None if data.labels is None or data.own else data.labels[new])
        return best.value, self._penalty(factor_of(best.solution[0]), whole, local)

    def _compare(self, search: PathSearch, units: NDArray[np.intp] | None) -> Tried:
        """The strongest coupling that is not clearly behind the best."""
        tried = list(search.tried.values())
        table, which = compare_rows([one.solution[1] for one in tried], units)
        found = [(one.value, *own) for one, own in zip(tried, table, strict=True)]
        self.held_out_ = pd.DataFrame(found, columns=_COLUMNS)
        return tried[which]

    def _penalty(self, factor: float, solver: JointSolver, local: Local) -> float:
        if self.penalty != "auto":
            return float(self.penalty)
        return float(solver.shares @ local.penalties(factor))

    def _findings(self) -> list[str]:
        words = {0.0: "each level on its own", 1.0: "one graph for all"}
        known = words.get(self.strength_ if self.coupling == "fused" or not self.strength_ else np.nan)
        return [f"Levels are held together with strength {self.strength_:g}{f' ({known})' if known else ''}."]

    def _get_learned(self) -> State:
        state = {
            "strength": self.strength_,
            "penalty": self.penalty_,
            "levels": self.level_penalties_.to_dict("list"),
        }
        return state, {"held_out": self.held_out_.to_numpy(dtype=np.float64)}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        self.strength_ = state["strength"].number(0, 1)
        self.penalty_ = state["penalty"].number(0)
        self.level_penalties_ = pd.DataFrame(state["levels"].columns())
        table = arrays.read("held_out", (AtMost(len(_STRENGTHS)), len(_COLUMNS)))
        self.held_out_ = pd.DataFrame(table, columns=_COLUMNS)
