"""Regressions of nodes of several kinds behind tests of pairs, and of the whole graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.estimators.held_out import Yardstick
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.enough_rows import cut_rows, has_products
from graphfield.inference.held_out_gain import Gains
from graphfield.inference.kind_scores import KindScores, kind_scores
from graphfield.inference.pair_scores import scores_inflation
from graphfield.inference.question import Question
from graphfield.solvers.family_folds import cross_fitted_families, held_out_losses
from graphfield.solvers.node_likelihood import NUMBERS
from graphfield.solvers.working import FamilyRows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KindRows:
    """Rows of nodes without what covariates do to each alone, and by how much that inflates variances."""

    rows: FamilyRows  # of edges that do not move
    inflation: Array  # (p, p)

    @classmethod
    def of(cls, question: Question) -> KindRows:
        """Numbers (and ordinal nodes) are freed of means and scales that move with z, as where all are such.

        Of the others, log-odds and logarithms of rates begin with those of means that move with z, found in
        the same way, and follow the functions that edges may follow.
        """
        types = question.inputs.types
        assert types is not None
        codes = question.inputs.X.astype(np.float64)
        blocks = Blocks.learn(types, codes)
        numbers = np.isin(np.array(types.kinds), NUMBERS)[blocks.nodes]
        columns = blocks.columns(codes)
        moved = replace(question, inputs=replace(question.inputs, X=columns)).with_jumps()
        nodes, means = moved.nodes(), np.where(numbers, 0.0, moved.means())
        values, ones = np.where(numbers, nodes.values, columns), np.ones((len(codes), 1))
        inflation = scores_inflation(nodes)[np.ix_(blocks.starts, blocks.starts)]
        U = _functions(question)
        return cls(FamilyRows(blocks, values, means, ones, U, blocks.offsets_at(means)), inflation)

    def moving(self, functions: Array) -> FamilyRows:
        """With edges that follow functions of z, (n, m), the first one."""
        return replace(self.rows, W=functions)


def _functions(question: Question) -> Array:
    """Of z, that tests look at, the first one, (n, m)."""
    encoded = question.encoder.transform(question.inputs.Z)
    n_units = len(encoded) if question.labels is None else len(question.rows.starts)
    products = has_products(question.encoder, n_units)
    return learn_basis(question.encoder, encoded, question.degrees, products=products).at(encoded)


def scores_of_kinds(question: Question, tick: Callable[[], None] = lambda: None) -> KindScores:
    """What each row says of each pair, from regressions that have not seen it."""
    known, fold = KindRows.of(question), cut_rows(question.inputs.X.shape, question.together)
    tick()
    rows = known.moving(known.rows.U)
    return kind_scores(rows, cross_fitted_families(rows, fold, tick), fold, rows.W, known.inflation)


def gains_of_kinds(question: Question, tick: Callable[[], None]) -> Gains:
    """By how much edges that follow the covariates lower the held-out deviance of regressions.

    As :func:`graphfield.inference.held_out_gain.held_out_gains`, with sparse regressions by likelihood.
    """
    known, smooths = KindRows.of(question), question.smooths(question.degrees)
    fold, ones = np.empty(len(question.inputs.X), dtype=np.intp), np.ones((len(question.inputs.X), 1))
    for number, (_, rows) in enumerate(question.splits()):
        fold[rows] = number

    def errors(columns: list[Array]) -> Array:
        found = np.sqrt(held_out_losses(known.moving(np.hstack([ones, *columns])), fold[None]))
        tick()
        return found

    unmoved = errors([])
    stick = Yardstick.of(unmoved, question.units())
    still = stick.errors(unmoved)

    def relative(columns: list[Array]) -> Array:
        return _preferred([still, stick.errors(errors(columns))], fold) if columns else still

    every = relative([own.columns for own in smooths])
    without = {
        left_out.name: relative([own.columns for own in smooths if own is not left_out])
        for left_out in smooths
    }
    best = _preferred([every, *without.values()], fold)
    linear = None
    if not all(own.is_linear for own in smooths):
        linear = stick.gain(relative([own.linear for own in smooths]), best)
    own = {name: stick.gain(rest, _preferred([rest, every], fold)) for name, rest in without.items()}
    return Gains(stick.gain(still, best), linear, own)


def _preferred(candidates: list[Array], fold: NDArray[np.intp]) -> Array:
    """Errors of rows, of the candidate that the other folds prefer, fold by fold."""
    errors, found = np.array(candidates), np.empty(len(fold))
    for number in range(fold.max() + 1):
        rows = fold == number
        found[rows] = errors[np.argmin(errors[:, ~rows].sum(axis=1))][rows]
    return found
