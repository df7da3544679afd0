"""Levels of categorical covariates that have a graph each: which there are, their rows, and rare ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.exceptions import DataError, DataWarning, ParameterError, agreed, listing, suggestion
from graphfield.fields.grid import Grid, GridValues
from graphfield.messages import Argument
from graphfield.solvers.glasso_admm import SEARCH_ACCURACY
from graphfield.solvers.joint_graphs import JointSolver, level_likelihood
from graphfield.solvers.kernel_graphs import LEAST_ROWS, Local, kernel_weights, local_moments

# So narrow a kernel sees the rows of one level alone, unless these are too few.
_OWN_LEVEL = 0.05
# Combinations of levels, each of which has a graph.
_MOST_LEVELS = 400
# Rows without which a level has no scale.
_LEAST = 2
_OTHERS = "KernelCGM, TreeCGM, RegGMM and DNNCGM follow numbers"


@dataclass(frozen=True)
class LevelClasses:
    """The combinations of levels that have rows: ``codes`` (K, columns) and the class of each row (n,)."""

    columns: Sequence[Categorical]
    which: NDArray[np.intp]  # of the columns among all categorical ones
    codes: NDArray[np.int64]
    of_row: NDArray[np.intp]

    def table(self, penalties: NDArray[np.float64], known: NDArray[np.intp]) -> pd.DataFrame:
        levels = {
            c.name: np.array(c.levels)[own].tolist()
            for c, own in zip(self.columns, self.codes.T, strict=True)
        }
        n_rows = np.bincount(self.of_row[known], minlength=len(self.codes))
        return pd.DataFrame({**levels, "n_rows": n_rows.tolist(), "penalty": penalties.tolist()})

    def at_points(self, grid: Grid, shares: NDArray, matrices: NDArray, local: Local) -> GridValues:
        """What is known of each class at the points of a grid; where there was no row, the average."""
        here = grid.points().codes[:, self.which]
        same = (here[:, None, :] == self.codes[None, :, :]).all(axis=2)
        mix = np.where(same.any(axis=1, keepdims=True), same, shares[None, :])
        mixed = np.einsum("gk,kij->gij", mix, matrices)
        return GridValues(mixed, mix @ local.centers, mix @ np.log(local.scales), None)


@dataclass(frozen=True)
class LevelRows:
    """Nodes of all rows, less means that move with z, and their classes."""

    values: NDArray[np.float64]
    classes: LevelClasses
    by_rank: bool  # correlations

    def solver(self, known: NDArray[np.intp], coupling: str) -> tuple[JointSolver, Local]:
        none = np.empty((len(self.classes.codes), 0))
        points = Encoded(none, self.classes.codes)
        of_row = self.classes.of_row[known]
        weights = kernel_weights(points.take(of_row), points, _OWN_LEVEL)
        local = local_moments(self.values[known], weights, np.eye(len(none))[of_row], by_rank=self.by_rank)
        return JointSolver(local.correlations, local.n_rows, coupling), local

    def parts(self, fold: NDArray[np.intp], coupling: str) -> list[LevelPart]:
        """What rows say that each fold does not hold out, and those that it does."""
        held_out = [np.flatnonzero(fold == which) for which in range(fold.max() + 1)]
        known = [np.flatnonzero(fold != which) for which in range(fold.max() + 1)]
        pairs = zip(known, held_out, strict=True)
        return [LevelPart(*self.solver(rows, coupling), new) for rows, new in pairs]

    def judge(
        self, parts: Sequence[LevelPart], strength: float, penalty_of: Callable[[JointSolver, Local], float]
    ) -> NDArray[np.float64]:
        """Likelihoods of all held-out rows."""
        found = []
        for solver, local, new in parts:
            matrices = solver.solve(penalty_of(solver, local), strength, SEARCH_ACCURACY)
            found.append(level_likelihood(matrices, local, self.values[new], self.classes.of_row[new]))
        return np.concatenate(found)


class LevelPart(NamedTuple):
    """What some rows say of each level, and others that judge it."""

    solver: JointSolver
    local: Local
    new: NDArray[np.intp]


def find_columns(encoder: CovariateEncoder, by: str | Sequence[str] | None) -> list[Categorical]:
    """The covariates whose levels have graphs."""
    names = (
        [column.name for column in encoder.categorical] if by is None else [by] if isinstance(by, str) else by
    )
    unknown = [name for name in names if name not in encoder.names]
    if unknown:
        hint = suggestion(unknown[0], encoder.names)
        raise ParameterError(
            "{argument} is no covariate. Known: {names}.{hint}",
            argument=Argument("by", unknown[0]),
            names=listing(encoder.names),
            hint=hint,
        )
    numbers = [column.name for column in encoder.numeric if by is None or column.name in names]
    found = [column for column in encoder.categorical if column.name in names]
    if not found or (by is not None and numbers):
        raise DataError(
            f"JointGraphicalLasso needs covariates with levels, each of which has a graph, and got "
            f"{listing(numbers or names)}: {agreed(len(numbers), 'a number', 'numbers')}. Cut "
            f"{agreed(len(numbers), 'it', 'one')} into a few groups, with pandas.cut for example; {_OTHERS}."
        ).about(argument="by")
    return found


def find_classes(
    encoder: CovariateEncoder, columns: Sequence[Categorical], codes: NDArray, n_known: int
) -> LevelClasses:
    n_points = int(np.prod([len(column.levels) for column in encoder.categorical]))
    if n_points > min(_MOST_LEVELS, n_known):
        names = listing([column.name for column in encoder.categorical])
        raise DataError(
            f"JointGraphicalLasso has a graph for every combination of levels, and {names} have {n_points:,} "
            f"for {n_known:,} rows; at most {_MOST_LEVELS}, and no more than rows. Pool rare levels, leave a "
            "covariate out, or use TreeCGM or DNNCGM."
        ).about(argument="Z")
    for column in columns:
        _name_rare(column.name, encoder.level_rows(column))
    which = np.array([encoder.categorical.index(column) for column in columns])
    found, of_known = np.unique(codes[:n_known, which], axis=0, return_inverse=True)
    same = (codes[n_known:, None, which] == found[None]).all(axis=2)
    # A row of the user's own whose combination of levels is new is judged by the first of them.
    return LevelClasses(columns, which, found, np.concatenate([of_known.ravel(), same.argmax(axis=1)]))


def _name_rare(name: str, n_rows: dict[str, int]) -> None:
    single = [level for level, n in n_rows.items() if n < _LEAST]
    if single:
        raise DataError(
            f"JointGraphicalLasso needs {_LEAST} rows of a level at least, and {listing(single)} of {name!r} "
            f"{agreed(len(single), 'has', 'have')} one. Pool rare levels with others, or drop these rows."
        ).about(column=name)
    rare = {level: n for level, n in n_rows.items() if n < LEAST_ROWS}
    if rare:
        told = ", ".join(f"{level!r} ({n})" for level, n in rare.items())
        warnings.warn(
            f"Covariate {name!r}: {told} {agreed(len(rare), 'has', 'have')} fewer than {LEAST_ROWS:g} "
            f"rows, so {agreed(len(rare), 'its graph leans', 'their graphs lean')} on the other levels.",
            DataWarning,
            stacklevel=2,
        )
