"""Tests of all pairs: is there an edge at any z, does it move, does it move with one covariate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.analysis.wide_tables import WideTable
from graphfield.data.encoded import Encoded
from graphfield.graphs.false_discoveries import combine_tests, q_values
from graphfield.inference.curve import intervals_of
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_basis import EdgeBasis
from graphfield.inference.pair_scores import PairScores, Scores
from graphfield.solvers.shrinkage import shrink_entries

_SWEEPS, _PRECISION = 50, 1e-4


@dataclass(frozen=True)
class SparseEffects:
    """Effects of each of many covariates on edges, given all others, few of which have any.

    A lasso of the scores of a pair on all covariates is freed of its bias: to each effect is added what the
    covariate explains of the rest of the scores, the covariate being without what a lasso of it on the others
    explains (van de Geer et al., 2014; SAGE of Meng, Zhang and Li, 2025). With as many covariates as a third
    of the rows this has nearly the errors of a regression on one alone.
    """

    names: tuple[str, ...]  # of the covariates, all numbers or categories with two levels
    columns: NDArray[np.float64]  # (n, q), mean zero, mean square one
    reading: NDArray[np.float64]  # (n, q), what turns scores into effects
    starts: NDArray[np.intp] | None  # of groups; None where rows are independent

    @classmethod
    def of(
        cls, names: tuple[str, ...], columns: NDArray[np.float64], starts: NDArray[np.intp] | None
    ) -> SparseEffects:
        n = len(columns)
        gram = columns.T @ columns / n
        on_others = _lasso(gram, gram, _penalty(columns), alone=True)
        left = columns - columns @ on_others
        return cls(names, columns, left / (left * columns).sum(axis=0), starts)

    def p_values(
        self, scores: NDArray[np.float64], variances: NDArray[np.float64], inflation: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Of every covariate and pair, (q, pairs)."""
        n = len(scores)
        centred = scores - scores.mean(axis=0)
        together = self.columns.T @ centred / n
        sizes = _penalty(self.columns) * np.sqrt(np.square(centred).mean(axis=0))
        effects = _lasso(self.columns.T @ self.columns / n, together, sizes)
        left = centred - self.columns @ effects
        found = effects + self.reading.T @ left
        units = n if self.starts is None else len(self.starts)
        if self.starts is None:
            variance = np.square(self.reading).T @ (
                variances * np.square(left).mean(axis=0) / variances.mean(axis=0)
            )
        else:
            sums = (np.add.reduceat(own[:, None] * left, self.starts) for own in self.reading.T)
            variance = np.stack([np.square(own).sum(axis=0) for own in sums]) * units / (units - 1)
        size = np.abs(found) / np.sqrt(np.maximum(variance * inflation, 1e-20))
        freedom = np.maximum(1, units - 2 - (effects != 0).sum(axis=0))
        return np.asarray(2 * student.sf(size * np.sqrt(freedom / units), freedom))


def _penalty(columns: NDArray[np.float64]) -> float:
    """The size of the largest chance correlation with one of so many columns."""
    return float(np.sqrt(2 * np.log(max(2, columns.shape[1])) / len(columns)))


def _lasso(
    gram: NDArray[np.float64],
    together: NDArray[np.float64],
    penalty: NDArray[np.float64] | float,
    alone: bool = False,
) -> NDArray[np.float64]:
    """Of many responses at once, (q, responses), by coordinate descent; ``alone``: not on themselves."""
    found = np.zeros_like(together)
    for _ in range(_SWEEPS):
        change = 0.0
        for row, own in enumerate(gram):
            rest = together[row] - own @ found + own[row] * found[row]
            new = shrink_entries(rest, penalty) / own[row]
            if alone:
                new[row] = 0.0
            change = max(change, float(np.abs(new - found[row]).max(initial=0)))
            found[row] = new
        if change < _PRECISION:
            break
    return found


@dataclass(frozen=True)
class EdgeTests:
    """Of every pair: the average partial correlation, its standard error and p-values.

    ``p_average`` is that the average is zero, ``p_moving`` that parts that move are, which may be the average
    together with these. An edge is there where any of them says so. Of pairs that cannot be tested no p-value
    is a number, nor is ``p_of_covariate`` for a covariate that cannot be told apart from the others.
    """

    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    p_average: NDArray[np.float64]
    p_moving: tuple[NDArray[np.float64], ...]
    p_varies: NDArray[np.float64]
    p_of_covariate: dict[str, NDArray[np.float64]]
    freedom: float = np.inf  # of the standard errors

    @property
    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of the average, 90 %; not a number where it cannot be one, or is a norm."""
        inner = np.where(np.abs(self.estimate) < 1, self.estimate, np.nan)
        return intervals_of(inner, self.standard_error, self.freedom)

    @property
    def p_value(self) -> NDArray[np.float64]:
        """That there is no edge at any z; a small one of movement is at most some times larger here."""
        return combine_tests([self.p_average, *self.p_moving])

    def without(self, nodes: NDArray[np.bool_]) -> EdgeTests:
        """Without p-values of all pairs of some nodes, (p,)."""
        first, second = np.triu_indices(len(nodes), 1)
        of_these = nodes[first] | nodes[second]

        def known(own: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(of_these, np.nan, own)

        return replace(
            self,
            p_average=known(self.p_average),
            p_moving=tuple(map(known, self.p_moving)),
            p_varies=known(self.p_varies),
            p_of_covariate={name: known(own) for name, own in self.p_of_covariate.items()},
        )

    def with_doubt(self, other: EdgeTests) -> EdgeTests:
        """With the larger p-values of both where it is asked what moves.

        An average is what it is: where the coefficients of others should move and do not, what they leave of
        two nodes is not what these have in common.
        """
        both = zip(self.p_moving, other.p_moving, strict=True)
        return replace(
            self,
            p_moving=tuple(np.maximum(one, two) for one, two in both),
            p_varies=np.maximum(self.p_varies, other.p_varies),
            p_of_covariate={
                n: np.maximum(p, other.p_of_covariate[n]) for n, p in self.p_of_covariate.items()
            },
        )


def fit_scores(scores: Scores, design: Design) -> tuple[Fit, NDArray[np.float64]]:
    """Coefficients of scores on functions of z, and what rows add to variances, (n, pairs).

    The latter go by first estimates, which were not fitted to these rows, as for Gaussian nodes. Their mean
    is brought to that of the squares that the functions leave, which is larger where two nodes are extreme
    together.
    """
    expected = scores.variances(scores.partial)
    left = scores.values - design.whole @ (design.whole.T @ scores.values)
    found = np.square(left).sum(axis=0) / max(1, len(left) - design.whole.shape[1])
    variances = expected * (found / np.maximum(expected.mean(axis=0), 1e-12))
    return design.fit(scores.values, variances, scores.inflation), variances


def edge_tests(
    scores: PairScores,
    basis: EdgeBasis,
    starts: NDArray[np.intp] | None,
    encoded: Encoded,
    of_covariate: Mapping[str, Design | None],
) -> EdgeTests:
    """Wald tests of the coefficients of scores on functions of z.

    Where it is in doubt whether coefficients of regressions move, movement must be clear either way: such
    that move by chance alone let edges between near copies seem to move, and such that should move and do
    not, edges between neighbours.
    """
    design = Design.of(basis.at(encoded), starts=starts)
    parts = [_test_pairs(part, basis, design, of_covariate) for part in scores.parts()]
    together = [np.concatenate(column) for column in zip(*parts, strict=True)]
    estimate, error, p_average, p_together, p_varies, *p_of_covariate = together
    named = dict(zip(of_covariate, p_of_covariate, strict=True))
    found = EdgeTests(
        estimate, error, p_average, (p_together, p_varies), p_varies, named, design.freedom(slice(0, 1))
    )
    if scores.if_still is None:
        return found
    return found.with_doubt(edge_tests(scores.if_still, basis, starts, encoded, of_covariate))


def presence_and_movement(
    p_value: Callable[[slice], NDArray[np.float64]], ends: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """P-values that the average is zero, that all is, and that it does not move, from tests of coefficients.

    A test of few functions sees best what is simple, one of many what is not. Of those that look at numbers
    and levels as they are, at bends as well, and at products as well, none is chosen: they are combined.
    An edge is there where its average is not zero, where it moves, or where both together say so.
    """
    ends = sorted(set(ends))
    together, varies = (combine_tests([p_value(slice(first, end)) for end in ends]) for first in (0, 1))
    return p_value(slice(0, 1)), together, varies


def _test_pairs(
    scores: Scores, basis: EdgeBasis, design: Design, of_covariate: Mapping[str, Design | None]
) -> list[NDArray[np.float64]]:
    fit, variances = fit_scores(scores, design)
    p_values = presence_and_movement(lambda which: design.p_values(fit, which), basis.ends)
    found = [fit.coef[0], np.sqrt(fit.covariance[:, 0, 0]), *p_values]
    for own in of_covariate.values():
        if own is None:
            found.append(np.full(len(fit.coef[0]), np.nan))
        else:
            found.append(own.p_values(own.fit(scores.values, variances, scores.inflation), slice(None)))
    return found


def many_edge_tests(
    scores: PairScores, effects: SparseEffects, starts: NDArray[np.intp] | None, wanted: Sequence[str]
) -> EdgeTests:
    """The same where covariates are many: the average, and each covariate by itself.

    Whether an edge moves is what the tests of all covariates say together.
    """
    design = Design.of(np.ones((len(effects.columns), 1)), starts)
    averages = []
    for part in scores.parts():
        fit, _ = fit_scores(part, design)
        averages.append((fit.coef[0], fit.covariance[:, 0, 0], design.p_values(fit, slice(None))))
    estimate, variance, p_average = (np.concatenate(column) for column in zip(*averages, strict=True))
    columns = column_p_values(scores, effects)
    p_varies = combine_tests(list(columns))
    named = np.array(effects.names)
    of_covariate = {name: combine_tests(list(columns[named == name])) for name in wanted}
    freedom = design.freedom(slice(None))
    found = EdgeTests(estimate, np.sqrt(variance), p_average, (p_varies,), p_varies, of_covariate, freedom)
    if scores.if_still is None:
        return found
    return found.with_doubt(many_edge_tests(scores.if_still, effects, starts, wanted))


def column_p_values(scores: PairScores, effects: SparseEffects) -> NDArray[np.float64]:
    """Of every column of the covariates and every pair."""
    parts = [
        effects.p_values(part.values, part.variances(part.partial), part.inflation) for part in scores.parts()
    ]
    return np.hstack(parts)


def column_label(covariate: str) -> str:
    """What its columns are called after; two names are taken."""
    return f"{covariate}_" if covariate in ("value", "varies") else covariate


def edge_table(node_names: Sequence[str], tests: EdgeTests) -> pd.DataFrame:
    """One line per pair."""
    names = np.array(node_names, dtype=object)
    first, second = np.triu_indices(len(names), 1)
    q_value = q_values(tests.p_value)
    columns: dict[str, Any] = {
        "source": names[first],
        "target": names[second],
        "estimate": np.clip(tests.estimate, -1, 1),
        "p_value": tests.p_value,
        "q_value": q_value,
        "p_varies": tests.p_varies,
        "q_varies": np.maximum(q_values(tests.p_varies), q_value),
    }
    of_covariate = tests.p_of_covariate
    together = q_values(np.array(list(of_covariate.values())))
    for (name, p_values), rates in zip(of_covariate.items(), together, strict=True):
        both = np.maximum(q_values(p_values), rates)
        columns |= {f"p_{column_label(name)}": p_values, f"q_{column_label(name)}": np.maximum(both, q_value)}
    return WideTable(columns)
