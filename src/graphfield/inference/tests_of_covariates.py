"""Permutation tests of all covariates at once, and of one given the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.cleaned_nodes import CleanedNodes
from graphfield.inference.covariate_basis import Smooth, left_by, whitened
from graphfield.inference.directions import in_order
from graphfield.inference.rearrange import Rows, Scheme
from graphfield.inference.running_tests import RunningTest, Sample
from graphfield.inference.score_test import (
    Functions,
    Pairs,
    combined_p_value,
    flipped_statistics,
    operations,
    row_functions,
    score_statistics,
)

# Groups less columns of covariates, at least, for groups to be exchanged.
_LEAST_FREEDOM = 5


@dataclass(frozen=True)
class GroupScores:
    """What exchanging groups needs, where one covariate is tested and others are given.

    Mean products of the nodes of a group are regressed on ``given``, and what is left of them changes
    places (Freedman and Lane), or, which is the same, the covariate does. What changes places must be alike.
    But the mean of two rows is noisier than that of eighty, and a level that is rare among rows has its
    largest shares in groups of few rows. So both sides are multiplied by ``weights``, the roots of the
    inverse variances of the means: ``fixed`` and ``own`` (groups, m) are a constant and ``given``, and what
    these leave of the covariate, orthonormal; ``spreads`` (p, p) are about the variances of the scores.
    """

    rows: Rows
    fixed: NDArray[np.float64]
    own: NDArray[np.float64]
    weights: NDArray[np.float64]
    spreads: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls, nodes: CleanedNodes, columns: NDArray[np.float64], given: NDArray[np.float64], rows: Rows
    ) -> GroupScores | None:
        """None where too few groups are left to exchange; columns and given do not vary within groups."""
        raw = np.column_stack([np.ones(len(rows.starts)), given[rows.starts]])
        between, within = _variances(nodes, _orthonormal(raw), rows)
        whole = np.maximum(between + within, 1e-12)
        means = (between / whole).mean() + (within / whole).mean() / rows.sizes  # variances, up to a factor
        weights = 1 / np.sqrt(np.maximum(means, 1e-6))
        fixed = _orthonormal(weights[:, None] * raw)
        own = weights[:, None] * columns[rows.starts]
        own = _orthonormal(own - fixed @ (fixed.T @ own))
        if not own.shape[1] or len(weights) - fixed.shape[1] - own.shape[1] < _LEAST_FREEDOM:
            return None
        spreads = between * np.mean(weights**2) + within * np.mean(weights**2 / rows.sizes)
        return cls(rows, fixed, own, weights, list(spreads))

    @property
    def functions(self) -> Functions:
        sizes = self.rows.sizes
        group = np.repeat(np.arange(len(sizes)), sizes)
        share = (self.weights / sizes)[:, None]

        def functions(rows: NDArray[np.intp]) -> NDArray[np.float32]:
            moved = self.own[group[rows[self.rows.starts]]]
            moved = moved - self.fixed @ (self.fixed.T @ moved)
            root = np.linalg.cholesky(moved.T @ moved + 1e-9 * np.eye(moved.shape[1]))
            moved = np.linalg.solve(root, moved.T).T
            return (share * moved)[group].astype(np.float32)

        return functions


def _variances(nodes: CleanedNodes, fixed: NDArray[np.float64], rows: Rows) -> NDArray[np.float64]:
    """Of scores, between groups (beyond ``fixed``) and within them: (2, 2, p, p), of nodes and residuals."""
    p, n_groups = nodes.values.shape[1], len(rows.starts)
    found = np.zeros((2, 2, p, p))
    left = 1 - np.square(fixed).sum(axis=1)  # of the variance of a group's mean
    for kind, first, second, scores in Pairs.of(nodes.values).parts(rows.n_rows):
        means = rows.group_sums(scores) / rows.sizes[:, None]
        squares = np.square(scores).sum(axis=0) - rows.sizes @ np.square(means)
        within = np.maximum(squares, 0) / max(1, rows.n_rows - n_groups)
        means -= fixed @ (fixed.T @ means)
        between = (np.square(means).sum(axis=0) - within * (left / rows.sizes).sum()) / max(left.sum(), 1e-9)
        found[:, kind, first, second] = np.maximum(between, 0), within
    return found


def _orthonormal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis of the columns, without directions that are all but missing."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > 1e-6 * np.sqrt(len(columns))]


# A p-value at most this large is made finer with more permutations where several are adjusted for their
# number: as many as it takes that the adjusted one can be this small, within so many operations.
_PROMISING, _ADJUSTED, _OPERATIONS = 0.05, 0.01, 1e12

Tick = Callable[[], None]


def sign_words(unit: str) -> str:
    return f"what each {unit} says for or against movement gets a random sign"


def permutations_wanted(n_tests: int) -> int:
    """So many that a p-value can stay small when it is adjusted for the number of tests."""
    return int(n_tests / _ADJUSTED) - 1


class Tests:
    """Tests of the same nodes and covariates.

    Where one covariate is tested, what it owes to the others is taken away from it, and functions of the
    others (both from ``apart``) from the correlations: what either misses matters only as far as both do.
    A covariate that varies both between and within groups is tested twice, and so are all of them together
    if some do one and some the other; the smaller p-value then counts about twice.
    """

    def __init__(
        self,
        nodes: CleanedNodes,
        smooths: list[Smooth],
        apart: Callable[[str, NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]],
        schemes: Callable[[Smooth], list[Scheme]],
        n_permutations: int,
        rng: np.random.Generator,
    ) -> None:
        self.nodes, self.smooths, self.apart = nodes, smooths, apart
        self.n_permutations, self.rng = n_permutations, rng
        self.schemes = {smooth.name: schemes(smooth) for smooth in smooths}
        self.kinds = {scheme.between: scheme for found in self.schemes.values() for scheme in found}

    @property
    def words(self) -> str:
        found = " and, in a second test, ".join(scheme.words for scheme in self.kinds.values())
        if len(self.kinds) > 1:
            found += " (the smaller p of both counts about twice)"
        if len(self.smooths) == 1 or all(scheme.shifts for scheme in self.kinds.values()):
            return found
        how = {True: "what the others leave of it changes places between groups", False: sign_words("row")}
        given = " or ".join(how[between] for between, kind in self.kinds.items() if not kind.shifts)
        return f"{found}; for one covariate given the others, {given}"

    def n_ticks(self, wanted: list[str]) -> int:
        """How often ``tick`` is called at least."""
        n_tests = len(self.kinds) + sum(len(self.schemes[name]) for name in wanted)
        return n_tests * (1 + self.n_permutations)

    def overall(self, tick: Tick) -> RunningTest:
        """No edge moves with any covariate."""
        results = []
        for between, scheme in self.kinds.items():
            moved = [s.columns for s in self.smooths if between in {k.between for k in self.schemes[s.name]}]
            columns = whitened(scheme.part(np.hstack(moved)))
            functions = row_functions(columns, np.empty((len(columns), 0)))
            results.append(self._tested(scheme, functions, columns.shape[1], self.n_permutations, tick))
        return RunningTest(results)

    def given_others(self, name: str, n_covariates: int, tick: Tick) -> RunningTest | None:
        """No edge moves with this covariate beyond how it moves with the others.

        None where nothing of the covariate is left, or there are too few groups. ``n_covariates`` is how
        many p-values will be adjusted together.
        """
        own = next(smooth.columns for smooth in self.smooths if smooth.name == name)
        others = [smooth.columns for smooth in self.smooths if smooth.name != name]
        results = []
        for scheme in self.schemes[name]:
            apart, functions = self.apart(name, whitened(scheme.part(own)))
            given = whitened(scheme.part(np.hstack([*others, functions])))
            columns = left_by(given, scheme.part(apart))
            if columns.shape[1]:
                most = permutations_wanted(n_covariates * len(self.schemes[name]))
                results.append(self._given(scheme, columns, given, most, tick))
        found = [result for result in results if result is not None]
        return RunningTest(found) if found else None

    def _given(
        self, scheme: Scheme, columns: NDArray, given: NDArray, most: int, tick: Tick
    ) -> Sample | None:
        width = columns.shape[1]
        if scheme.shifts:
            return self._tested(scheme, row_functions(columns, given), width, most, tick)
        if not scheme.between:
            return self._flipped(columns, given, most, tick)
        scores = GroupScores.of(self.nodes, columns, given, scheme.rows)
        if scores is None:
            return None
        return self._tested(scheme, scores.functions, width, most, tick, scores.spreads)

    def _flipped(self, columns: NDArray, given: NDArray, most: int, tick: Tick) -> Sample:
        """With random signs of rows."""
        n, p = self.nodes.values.shape

        def draw(count: int) -> NDArray[np.float64]:
            found = flipped_statistics(self.nodes, columns, given, random_signs(count, n, self.rng))
            tick()
            return found

        found = draw(max(most, self.n_permutations))
        return Sample(found, lambda count: draw(count)[:, 1:], 2.0 * n * p**2 * columns.shape[1])

    def _tested(
        self,
        scheme: Scheme,
        functions: Functions,
        n_columns: int,
        most: int,
        tick: Tick,
        spreads: list[NDArray[np.float64]] | None = None,
    ) -> Sample:
        """With ``n_permutations``, and if that is promising with up to ``most`` in all.

        The first p-value only decides whether to go on, which keeps the second one valid.
        """
        alone = in_order(scheme.whole(self.nodes.columns))
        n, p = self.nodes.values.shape
        work = operations(n, p, n_columns, alone.shape[1])
        most = max(self.n_permutations, min(most, int(_OPERATIONS / work)))
        arrangements = scheme.arrangements(self.rng)

        def statistics(some: Iterable[NDArray[np.intp]]) -> NDArray[np.float64]:
            return score_statistics(
                self.nodes, functions, alone, some, tick, spreads=spreads, uneven=scheme.between
            )

        drawn = list(islice(arrangements, most))
        first, more = drawn[: self.n_permutations], drawn[self.n_permutations :]
        found = statistics([np.arange(n), *first])
        if more and combined_p_value(found) <= _PROMISING:
            found, more = np.hstack([found, statistics(more)]), []
        rest = chain(more, arrangements)
        return Sample(found, lambda count: statistics(islice(rest, count)), work)


def random_signs(count: int, n_units: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Of units, (1 + count, n_units); the first have none."""
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), size=(count, n_units))
    return np.vstack([np.ones(n_units, dtype=np.float32), signs])
