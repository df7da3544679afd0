"""What was found of every pair of nodes, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.analysis.wide_tables import WideTable
from graphfield.data.covariates import Numeric
from graphfield.data.drifting_levels import words_of_drift
from graphfield.data.encoded import Encoded
from graphfield.data.missing import check_complete
from graphfield.estimators.inputs import check_flag, check_number
from graphfield.exceptions import DataError, ParameterError, agreed, count, listing
from graphfield.fields.schema import Schema
from graphfield.graphs.false_discoveries import false_words, q_values
from graphfield.graphs.groups import node_positions
from graphfield.inference.asked_values import ask_of_values, position_of
from graphfield.inference.curve import Curve, curve_of_pair
from graphfield.inference.curve_words import TOLD_POINTS, words_along
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_tests import column_label, fit_scores
from graphfield.inference.enough_rows import are_many
from graphfield.inference.kind_scores import KindScores
from graphfield.inference.kind_tests import fit_columns, kind_p_values_at
from graphfield.inference.movement_words import (
    TWO_TESTS,
    pair_name,
    words_of_unclear,
)
from graphfield.inference.overlap import Common
from graphfield.inference.pair_scores import PairScores
from graphfield.inference.pairs_at import PairsAt, graph_basis
from graphfield.messages import join_messages

# Covariates of a pair that are named, and the shares of rows up to the ends of a curve in words.
_MOST_NAMED, _USUAL_ROWS = 2, (0.1, 0.9)


@dataclass(frozen=True, eq=False, repr=False)
class EdgeInference:
    """Which edges there are and which of them move: the answer of :func:`graphfield.infer_edges`.

    Attributes
    ----------
    table : DataFrame
        One line per pair: ``source``, ``target``, ``estimate`` (partial correlation averaged over the rows;
        of a pair that is several numbers, since a node has three levels or more, their norm),
        ``p_value`` and ``q_value`` (is there an edge at any z), ``p_varies`` and ``q_varies`` (does it move
        with z), and for each covariate that was tested ``p_NAME`` and ``q_NAME`` (does it move with this one,
        given the others; not a number where the covariate cannot be told apart from the others). Q-values are
        those of Benjamini and Hochberg over all pairs, question by question; those of covariates hold over
        the pairs of the covariate and over all pairs and covariates that were tested. What moves is an edge
        at some z: no q-value of movement is below ``q_value``.
    covariates : tuple of str
        Those that were tested one by one.
    schema : Schema
        Names of the nodes, and how covariates are read.
    scores : PairScores or KindScores
        What each row says of each pair.
    encoded, starts, seed
        Covariates of the rows, where each group begins, or each stretch of time (None without both), what
        random draws start from.
    intervals : pair of ndarray
        Of 90 %, for estimates: ``low`` and ``high`` of lists; NaN for a pair that is several numbers.
    timed : bool
        Whether rows are in the order of time, in stretches that count as one each.
    caveat : str
        What is to be said first, where rows are like those before them: p-values hold only if they are
        independent, or the series changes too slowly.
    about : str
        Which graph it is, where levels that groups have of their own were subtracted; which nodes are
        untested.
    drifting : tuple of str
        Covariates along which levels of groups drift, which looks like movement, where differences of
        neighbouring rows could not be asked. Where they could, pairs count as moving if these show it too.
    untested : tuple of str
        Nodes that have one value at a level of a covariate: p- and q-values of their edges are not numbers.
    """

    table: pd.DataFrame
    covariates: tuple[str, ...]
    schema: Schema
    scores: PairScores | KindScores
    encoded: Encoded
    starts: NDArray[np.intp] | None
    seed: int
    intervals: tuple[NDArray[np.float64], NDArray[np.float64]]
    timed: bool = False
    caveat: str = ""
    about: str = ""
    untested: tuple[str, ...] = ()
    drifting: tuple[str, ...] = ()
    _averaged: dict[Any, list[Common]] = field(default_factory=dict, init=False)  # rows along covariates

    def edges(self, fdr: float = 0.1) -> pd.DataFrame:
        """Pairs with an edge at some z, strongest evidence first; about a share ``fdr`` of them is false."""
        return self._found("q_value", "p_value", fdr)

    def varying(self, fdr: float = 0.1) -> pd.DataFrame:
        """Pairs whose partial correlation moves with z; about a share ``fdr`` of them does not."""
        return self._found("q_varies", "p_varies", fdr)

    def pairs(self) -> pd.DataFrame:
        """All pairs, in the order of the nodes, with intervals as in :meth:`edges`."""
        return self._with_ends(self.table)

    def _found(self, q: str, p: str, fdr: float) -> pd.DataFrame:
        check_number("fdr", fdr, 0, 1, open_low=True, open_high=True)
        return self._with_ends(self.table[self.table[q] <= fdr].sort_values(p, kind="stable"))

    def _with_ends(self, found: pd.DataFrame) -> pd.DataFrame:
        low, high = (ends[found.index] for ends in self.intervals)
        first, others = found.iloc[:, :3].assign(low=low, high=high), found.iloc[:, 3:]
        return WideTable(pd.concat([first, others], axis=1).reset_index(drop=True))

    def predict_graph(self, Z: Any, fdr: float = 0.1) -> NDArray[np.bool_]:
        """The edges at each z, (n, p, p).

        Whether a pair has an edge at z is tested for all pairs and all z that are asked for, and about a
        share ``fdr`` of all edges in the answer is false. So the answer at one z depends on which others are
        asked for: of many z at which nothing is there, more evidence is wanted. What is tested is the partial
        correlation as the functions of z show it that the tests look at (numbers, levels, bends, products).
        """
        check_number("fdr", fdr, 0, 1, open_low=True, open_high=True)
        frame = self.schema.match_covariates(Z)
        check_complete(None, frame)
        p = self.schema.n_nodes
        if not len(frame.values):
            return np.zeros((0, p, p), dtype=bool)
        distinct, index = self.schema.encoder.transform(frame).distinct()
        p_values = self._p_values_at(distinct)
        p_values[:, self.table["p_value"].isna()] = np.nan  # what was not tested is no edge here
        there = q_values(p_values) <= fdr
        graph = np.zeros((len(distinct), p, p), dtype=bool)
        first, second = np.triu_indices(p, 1)
        graph[:, first, second] = graph[:, second, first] = there
        return graph[index]

    def _p_values_at(self, asked: Encoded) -> NDArray[np.float64]:
        """Of every pair at each z, (n, pairs)."""
        basis = graph_basis(self.schema.encoder, self.encoded, self.starts)
        design, functions = Design.of(basis.at(self.encoded), self.starts), basis.at(asked)
        if isinstance(self.scores, KindScores):
            return kind_p_values_at(self.scores, design, functions)
        freedom = design.freedom(slice(None))
        found = np.empty((len(asked), self.scores.n_pairs))
        for part in self.scores.parts():
            fit, _ = fit_scores(part, design)
            error = np.sqrt(np.einsum("za,pab,zb->zp", functions, fit.covariance, functions, optimize=True))
            size = np.abs(functions @ fit.coef) / np.maximum(error, 1e-12)
            found[:, part.pairs] = 2 * student.sf(size, freedom)
        return found

    @property
    def _n_units(self) -> int:
        """Rows, or groups where there are any."""
        return len(self.encoded) if self.starts is None else len(self.starts)

    def bands(
        self,
        source: str,
        target: str,
        covariate: str,
        level: float = 0.9,
        simultaneous: bool = False,
        *,
        others: Mapping[str, Any] | None = None,
        n_points: int = 50,
    ) -> pd.DataFrame:
        """The partial correlation of a pair along one covariate, with intervals.

        Parameters
        ----------
        source, target : str
            Names of nodes.
        covariate : str
            That moves: from the 1st to the 99th percentile of its values, or over its levels.
        level : float
            The share of intervals that cover the truth; with ``simultaneous``, the share of whole curves.
        simultaneous : bool
            Whether all intervals are to cover at once.
        others : mapping, optional
            Values of other covariates at which the curve is drawn. Those not named take the values of real
            rows, and the curve is the average over these: along a number, at each value of rows whose others
            occur with it; over levels, as in :func:`graphfield.compare_graphs`, with all levels.
        n_points : int
            Values at most.

        Returns
        -------
        DataFrame
            ``value``, ``estimate``, ``low``, ``high``. The last three are NaN where rows are too few to tell:
            the fit is beyond what a partial correlation can be, or no rows are near such values.
        """
        check_number("level", level, 0, 1, open_low=True, open_high=True)
        check_flag("simultaneous", simultaneous)
        check_number("n_points", n_points, 2, integer=True)
        pair = self._pair(source, target)
        if not self.has_sign(pair):
            raise ParameterError(
                f"The edge of {source!r} and {target!r} is several numbers, since a node has three levels or "
                "more, and a band has one. Ask for its strength by level with predict_effect of a fitted "
                "model, or name two other nodes."
            ).about(argument="target")
        if unknown := [name for name in (source, target) if name in self.untested]:
            raise DataError(
                f"Node {unknown[0]!r} has one value in all rows of a level of a covariate, or of most "
                "groups, so nothing is known of its edges there. Leave these rows out, or name other nodes."
            ).about(column=unknown[0])
        curve = self._curve(pair, covariate, others, n_points)
        low, high = curve.intervals(level, simultaneous, self.seed)
        return WideTable({"value": curve.values, "estimate": curve.estimate, "low": low, "high": high})

    def _pair(self, source: str, target: str) -> int:
        j, k = np.sort(node_positions([source, target], self.schema.node_names))
        if j == k:
            raise ParameterError(f"{source!r} has no edge to itself: name two different nodes.").about(
                argument="target"
            )
        p = self.schema.n_nodes
        return int(j * (2 * p - j - 1) // 2 + k - j - 1)

    def _curve(
        self,
        pair: int,
        covariate: str,
        others: Mapping[str, Any] | None = None,
        n_points: int = TOLD_POINTS,
        *,
        smooth: bool = False,
    ) -> Curve:
        known = partial(self._fit_pair, pair), self.schema.encoder, self.encoded, self.starts
        asked = covariate, others or {}, n_points
        return curve_of_pair(*known, *asked, self._averaged, smooth=smooth)

    def _fit_pair(self, pair: int, rows: NDArray[np.intp] | slice, design: Design) -> Fit:
        if isinstance(self.scores, KindScores):
            return fit_columns(self.scores, pair, design, rows)
        return fit_scores(self.scores.of(slice(pair, pair + 1)).at(rows), design)[0]

    def pairs_at(self, pairs: Sequence[int]) -> PairsAt:
        """What these pairs, which have a sign, are at any one value of all covariates."""
        return PairsAt.of(
            lambda pair, design: self._fit_pair(pair, slice(None), design),
            self.schema.encoder,
            self.encoded,
            self.starts,
            pairs,
        )

    def has_sign(self, pair: int) -> bool:
        """Whether an edge is one number: not where one of its nodes has three levels or more."""
        return isinstance(self.scores, PairScores) or bool(self.scores.pairs.widths[pair] == 1)

    def movers(self, fdr: float = 0.1, most: int = 3) -> list[str]:
        """What the pairs do that move most clearly, in words: with which covariates, and what they are where.

        Covariates are those with which the pair moves given the others; of one pair two at most. Where no
        pair moves by the test of all covariates together, those that move with one given the others.
        """
        return [self._movement(line, fdr) for _, line in self.clearest_movers(fdr).head(most).iterrows()]

    def clearest_movers(self, fdr: float = 0.1) -> pd.DataFrame:
        found = self.varying(fdr)
        return found if len(found) else self._lines_with_one(fdr)

    def moving_with_one(self, fdr: float = 0.1) -> list[tuple[int, str, float]]:
        """Line, covariate and q-value of what moves with a covariate given the others, the clearest first."""
        found = []
        for name in self.covariates:
            rates, p_values = (self.table[f"{what}_{column_label(name)}"].tolist() for what in "qp")
            found += [(p_values[i], i, name, rate) for i, rate in enumerate(rates) if rate <= fdr]
        return [(i, name, rate) for _, i, name, rate in sorted(found)]

    def _lines_with_one(self, fdr: float) -> pd.DataFrame:
        """The lines of these pairs."""
        order = list(dict.fromkeys(i for i, _, _ in self.moving_with_one(fdr)))
        return self.table.iloc[order].reset_index(drop=True)

    def also_moving(self, fdr: float = 0.1, most: int = 3) -> str:
        """A sentence on pairs that move with one covariate, but are not :meth:`varying` with all together."""
        if len(self.covariates) < 2 or not len(self.varying(fdr)):
            return ""
        found = self._lines_with_one(fdr)
        found = found[~(found["q_varies"] <= fdr)]
        named = [self._movement(line, fdr) for _, line in found.head(most).iterrows()]
        if len(found) > most:
            named.append(f"and {len(found) - most:,} more")
        said = "Tests of one covariate given the others also see movement"
        return f"{said}: {'; '.join(named)}." if named else ""

    def moved_by(self, fdr: float = 0.1) -> list[str]:
        """Covariates with which any pair moves, given the others; the only one with which any pair moves."""
        if len(self._names) == 1:
            return self._names if len(self.varying(fdr)) else []
        return [name for name in self.covariates if (self.table[f"q_{column_label(name)}"] <= fdr).any()]

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.schema.encoder.columns]

    def _movement(self, line: pd.Series, fdr: float) -> str:
        pair = pair_name(line["source"], line["target"])
        if together := self._product_words(line["source"], line["target"]):
            return f"{pair} {together}"
        columns = {name: column_label(name) for name in self.covariates}
        known = {name: line[f"p_{own}"] for name, own in columns.items() if line[f"q_{own}"] <= fdr}
        names = self._names if len(self._names) == 1 else sorted(known, key=known.__getitem__)[:_MOST_NAMED]
        along = [self._along(line["source"], line["target"], name) for name in names]
        told = [f"{name} ({words})" if words else name for name, words in zip(names, along, strict=True)]
        return f"{pair} " + (
            f"with {' and '.join(told)}" if told else "(with which covariate cannot be told)"
        )

    def _product_words(self, source: str, target: str) -> str:
        """Of a pair that one covariate moves differently by another, which its curves average away."""
        pair = self._pair(source, target)
        if len(self._names) < 2 or not self.has_sign(pair):
            return ""
        return self.pairs_at([pair]).clearest_product(self.encoded, self.schema.encoder)

    def _along(self, source: str, target: str, covariate: str) -> str:
        column = next(one for one in self.schema.encoder.columns if one.name == covariate)
        pair, ends = self._pair(source, target), (0.0, 0.0)
        if isinstance(column, Numeric):
            rows = self.encoded.numeric[:, position_of(self.schema.encoder, covariate)[0]]
            ends = tuple((column.mean + column.scale * np.quantile(rows, _USUAL_ROWS)).tolist())
        along = partial(self._curve, pair, covariate)
        return words_along(column, along, ends, self.seed, signed=self.has_sign(pair))

    def __repr__(self) -> str:
        return f"<EdgeInference of {self.schema.n_nodes} nodes>\n{self.summary()}"

    def values_to_ask(self, fdr: float = 0.1) -> str:
        """A sentence on covariates of levels with which no pair is found to move."""
        unseen = [name for name in self.covariates if self.table[f"q_{column_label(name)}"].min() > fdr]
        return ask_of_values(self.schema.encoder, unseen)

    def summary(self, fdr: float = 0.1) -> str:
        """What was found, in one paragraph."""
        return join_messages(" ", filter(None, [self._found_words(fdr), self.values_to_ask(fdr)]))

    def _found_words(self, fdr: float) -> str:
        rows, unit = count(len(self.encoded), "row"), "row"
        if self.starts is not None:
            of, unit = ("in", "time block") if self.timed else ("of", "group")
            rows += f" {of} {count(self._n_units, unit)}"
        edges, n_moving, movers = self.edges(fdr), len(self.varying(fdr)), self.movers(fdr)
        as_if = ", as if they were independent" if self.caveat else ""

        def expected(q: str, what: str) -> str:
            unsure = self.caveat or (self.drifting and q == "q_varies")
            return "" if unsure else false_words(self.table[q], what, fdr)

        tested = count(int(self.table["p_value"].notna().sum()), "pair")
        text = (
            f"By {rows}{as_if}, at a false-discovery level of {fdr:.2f}: of "
            f"{tested} of nodes, {_having(len(edges))} an edge at some value of the covariates"
            f"{expected('q_value', 'to be false')}.{words_of_unclear(edges, fdr)} "
            f"{_having(n_moving).capitalize()} one that moves with them{expected('q_varies', 'not to move')}"
        )
        text = " ".join(filter(None, [self.caveat, words_of_drift(self.drifting), self.about, text]))
        if n_moving:
            text += f". {agreed(n_moving, 'It is', 'Moving most clearly:')} {'; '.join(movers)}"
        elif movers:
            text += " by the test of all covariates together; by that of one given the others, "
            text += f"these do: {'; '.join(movers)}"
        text += "."
        if are_many(self.schema.encoder, self._n_units):
            text += (
                f" There are only {count(self._n_units, unit)} for these covariates and levels: tests "
                "look at straight lines and single levels, few of which are taken to matter."
            )
        if len(self.covariates) < 2:
            return text
        rates = {name: self.table[f"q_{column_label(name)}"] for name in self.covariates}
        unknown = [name for name, own in rates.items() if own.isna().all()]
        moving = {name: int((own <= fdr).sum()) for name, own in rates.items() if name not in unknown}
        if moving and n_moving and not any(moving.values()):
            whose = agreed(n_moving, "it", "any of them")
            text += f" With which covariate, given the others, cannot be told for {whose}."
        elif moving:
            each = ", ".join(f"{name} {number}" for name, number in moving.items())
            text += f" Edges that move with one covariate, given the others: {each}."
            text = f"{text} {self.also_moving(fdr)}".strip()
        if unknown:
            text += f" Of {listing(unknown)} that cannot be told: the other covariates determine it."
        return f"{text} {TWO_TESTS}" if movers and moving else text


def _having(number: int) -> str:
    return f"{number or 'none'} {agreed(max(number, 1), 'has', 'have')}"
