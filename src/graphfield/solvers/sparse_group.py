"""Coefficients linear in the covariates under a sparse-group penalty. Needs the package skglm.

For every node j, with one group g per covariate (all its effects on the edges of j), minimise

    |x_j - sum_{k != j} (sum_w B_wjk W_w) x_k|^2 / (2n)
        + penalty * (mix |B_j|_1 + (1 - mix) sum_g sqrt(size of g) |B_jg|_2) .

This is the penalty of Zhang and Li (JASA 2023), who write two free strengths in place of ``penalty``
and ``mix``; their groups are all of one size, the square root (Simon et al., 2013) treats groups of
several sizes alike. What does not depend on covariates, w = 0, is in no group: it has the L1 part only.

The rows are needed once, for Gram matrices of the interaction design. skglm's block coordinate descent
then runs on a Gram matrix in the place of the design: what it keeps up to date as ``X w`` is ``G w``,
from which gradients are read off, and a coefficient that stays zero costs nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numba import float64
from numpy.typing import NDArray
from skglm.datafits import QuadraticGroup
from skglm.penalties import WeightedL1GroupL2
from skglm.solvers import GroupBCD

from graphfield.exceptions import TrainingWarning
from graphfield.numbers import standard_errors
from graphfield.solvers.interaction import fold_grams, interaction_gram
from graphfield.solvers.penalties import PathSearch, zero_penalty

# The path ends at this share of the penalty at which everything is zero: with more rows than columns of
# the design, and with fewer, where small penalties leave the problem almost singular ...
_LAST_SHARE, _LAST_SHARE_FEW_ROWS = 1e-3, 1e-2
# ... or below the best penalty so far by this factor. Covariates enter below the population part, so
# that the held-out error can rise a little before it falls again.
_BEYOND_BEST = 6.0
# How far a block may be from its fixed point, in coefficients of standardised data.
_TOLERANCE, _PATH_TOLERANCE = 1e-6, 1e-4
# Far above what 60 tables with fewer rows than nodes, copies among them, needed (421 at most).
_MAX_ITERATIONS = 5_000
# skglm's block soft-thresholding divides zero by zero in a group that weighs nothing. This is nothing:
# 1 - weight / norm rounds to 1.
_NO_WEIGHT = 1e-100


@dataclass(frozen=True)
class PenaltyPath:
    """Held-out squared error, the mean over rows and nodes, of penalties in falling order."""

    penalty: NDArray[np.float64]
    error: NDArray[np.float64]
    standard_error: NDArray[np.float64]

    @property
    def best(self) -> float:
        """The penalty with the smallest held-out error."""
        return float(self.penalty[np.argmin(self.error)])


def sparse_group_coefficients(
    X: NDArray[np.float64], W: NDArray[np.float64], covariate: NDArray[np.intp], penalty: float, mix: float
) -> NDArray[np.float64]:
    """Solve the problem at the head of this module for every node: ``[w, j, k]``, (m, p, p).

    Nodes are centred and on one scale; the first of the features W (n, m) is one. Features of one covariate
    form one group (the first entry of ``covariate``, of the one, is not read); ``mix`` is the share of the L1
    part, in (0, 1].
    """
    regressions = _Regressions(interaction_gram(X, W), covariate, mix)
    distance = regressions.solve(penalty, _TOLERANCE)
    if distance > _PATH_TOLERANCE:
        warnings.warn(
            f"The sparse-group solver stopped early (distance {distance:.2g} to a fixed point, aim "
            f"{_TOLERANCE:g}), so small coefficients are inexact. A larger penalty than {penalty:.3g} "
            "makes the problem easier.",
            TrainingWarning,
            stacklevel=3,
        )
    m, p = W.shape[1], X.shape[1]
    return np.ascontiguousarray(regressions.coef.reshape(m, p, p).transpose(0, 2, 1))


def sparse_group_path(
    X: NDArray[np.float64],
    W: NDArray[np.float64],
    covariate: NDArray[np.intp],
    mix: float,
    n_penalties: int,
    folds: NDArray[np.intp],
) -> PenaltyPath:
    """Cross-validate penalties, each common to all nodes, from "all zero" downward.

    ``folds`` (n,) is the fold, counted from 0, that holds a row out, or -1 for rows that none does; the other
    arguments are those of :func:`sparse_group_coefficients`. The path of ``n_penalties`` stops early once
    the error rises.
    """
    counts = np.bincount(folds[folds >= 0])
    parts, total = fold_grams(X, W, folds)
    # A hair above the edge, so that rounding lets nothing in.
    top = _zero_penalty(total / len(X), covariate, mix) * (1 + 1e-9)
    training = [
        _Regressions((total - part) / (len(X) - c), covariate, mix)
        for part, c in zip(parts, counts, strict=True)
    ]
    share = _LAST_SHARE if len(X) > len(total) else _LAST_SHARE_FEW_ROWS
    penalties = np.geomspace(top, top * share, n_penalties)

    def attempt(penalty: float, _: NDArray | None) -> tuple[float, NDArray[np.float64]]:
        for fold in training:
            fold.solve(penalty, _PATH_TOLERANCE)
        both = zip(training, parts, strict=True)
        sums = np.array([_squared_error(fold.coef, part) / X.shape[1] for fold, part in both])
        return sum(sums) / counts.sum(), sums / counts

    search = PathSearch(penalties, attempt).walk(0, lambda s: s.last.value * _BEYOND_BEST < s.best.value)
    tried = search.tried.values()
    spread = standard_errors(np.array([one.solution for one in tried]).T)
    return PenaltyPath(penalties[: len(tried)], np.array([one.loss for one in tried]), spread)


def _squared_error(coef: NDArray, gram: NDArray) -> float:
    """Sum over nodes and rows of the squared residuals, from the Gram matrix of those rows."""
    p = coef.shape[1]
    residual = -coef
    residual[:p] += np.eye(p)  # W_0 = 1, so column j of the design is x_j itself
    return float(np.einsum("cj,cj->", residual, gram @ residual))


class GramQuadraticGroup(QuadraticGroup):
    """``w' G w / 2 - y' w``: least squares by the Gram matrix G = D'D / n, given as X, and y = D't / n."""

    def __init__(self, gram: NDArray, grp_ptr: NDArray, grp_indices: NDArray, lipschitz: NDArray) -> None:
        self.gram, self.lipschitz = gram, lipschitz
        self.grp_ptr, self.grp_indices = grp_ptr, grp_indices

    def get_spec(self) -> tuple:
        return (*super().get_spec(), ("gram", float64[::1, :]), ("lipschitz", float64[:]))

    def params_to_dict(self) -> dict[str, NDArray]:
        return {**super().params_to_dict(), "gram": self.gram, "lipschitz": self.lipschitz}

    def get_lipschitz(self, X: NDArray, y: NDArray) -> NDArray:  # noqa: ARG002
        return self.lipschitz

    def value(self, y: NDArray, w: NDArray, Xw: NDArray) -> float:
        """The objective at ``w``; ``Xw`` is computed afresh, in place.

        The solver accepts an extrapolated w if its value is smaller. Where iterates are nearly parallel the
        extrapolated Xw is rounding error, and w'Xw, unlike a sum of squares, can then be anything
        below zero: the solver would jump to infinity.
        """
        Xw[:] = self.gram @ w
        return 0.5 * (w @ Xw) - y @ w

    def gradient_g(self, X: NDArray, y: NDArray, w: NDArray, Xw: NDArray, g: int) -> NDArray:  # noqa: ARG002
        group = self.grp_indices[self.grp_ptr[g] : self.grp_ptr[g + 1]]
        return Xw[group] - y[group]


class _Regressions:
    """The p regressions on one Gram matrix; each penalty starts from the solution of the last."""

    def __init__(self, gram: NDArray[np.float64], covariate: NDArray[np.intp], mix: float) -> None:
        self.gram = np.asfortranarray(gram)  # the solver reads columns
        self.mix = mix
        self.n_nodes = len(gram) // len(covariate)
        # Coefficients that share no group converge fastest as blocks of their own.
        alone = np.arange(self.n_nodes, dtype=np.int32)[:, None]
        self.blocks = [*alone, *_groups(covariate, self.n_nodes)]
        # With the response's own columns: a bound for the block without them.
        largest = np.array([np.linalg.eigvalsh(gram[np.ix_(b, b)])[-1] for b in self.blocks])
        self.lipschitz = np.where(largest > 0, largest, 1.0)
        self.coef = np.zeros((len(gram), self.n_nodes), order="F")  # (column of the design, j)

    def solve(self, penalty: float, tolerance: float) -> float:
        """Update ``coef``; returns how far the worst node is from a fixed point."""
        solver = GroupBCD(
            max_iter=_MAX_ITERATIONS, tol=tolerance, fit_intercept=False, ws_strategy="fixpoint"
        )
        fitted = np.asfortranarray(self.gram @ self.coef)
        worst = 0.0
        for j in range(self.n_nodes):
            with np.errstate(all="ignore"):  # the solver discards an extrapolation that breaks down
                distance = solver.solve(
                    self.gram,
                    self.gram[:, j],
                    *self._problem(j, penalty),
                    w_init=self.coef[:, j],  # both are changed in place
                    Xw_init=fitted[:, j],
                    run_checks=False,
                )[2]
            worst = max(worst, float(distance))
        return worst

    def _problem(self, j: int, penalty: float) -> tuple[GramQuadraticGroup, WeightedL1GroupL2]:
        """Data fit and penalty of node j. Its own columns are in no block, so they stay zero."""
        blocks = [b[b % self.n_nodes != j] for k, b in enumerate(self.blocks) if k != j]
        sizes = np.array([len(b) for b in blocks])
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        indices = np.concatenate(blocks)
        weights = np.maximum((1 - self.mix) * np.sqrt(sizes), _NO_WEIGHT)
        weights[: self.n_nodes - 1] = _NO_WEIGHT
        # skglm 0.5 looks up the weight of a feature by the number of its group (issue 332 there). That
        # is harmless here, where all of them are equal.
        features = np.full(len(self.gram), float(self.mix))
        datafit = GramQuadraticGroup(self.gram, ends, indices, np.delete(self.lipschitz, j))
        return datafit, WeightedL1GroupL2(float(penalty), weights, features, ends, indices)


def _groups(covariate: NDArray[np.intp], n_nodes: int) -> list[NDArray[np.int32]]:
    """Columns of the design that belong to each covariate."""
    columns = np.arange(len(covariate) * n_nodes, dtype=np.int32).reshape(-1, n_nodes)
    return [columns[1:][covariate[1:] == c].ravel() for c in np.unique(covariate[1:])]


def _zero_penalty(gram: NDArray[np.float64], covariate: NDArray[np.intp], mix: float) -> float:
    """The smallest penalty at which every coefficient of every node is zero."""
    p = len(gram) // len(covariate)
    gradient = np.abs(gram[:, :p].T)  # (j, column), at zero
    gradient[np.arange(len(gram)) % p == np.arange(p)[:, None]] = 0.0  # of j's own columns
    largest = gradient[:, :p].max() / mix
    for group in _groups(covariate, p):
        size = len(group) * (p - 1) / p
        largest = max(largest, zero_penalty(gradient[:, group], size, mix))
    return float(largest)
