"""Edges that were tested one by one, as a verdict, a page and the file ``edges.json`` have them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from graphfield.analysis.rows import FieldLike, field_of
from graphfield.data.saved_files import sealed
from graphfield.exceptions import DataError, ModelFileError, agreed, count
from graphfield.fields import GraphField
from graphfield.graphs.false_discoveries import false_words
from graphfield.inference.edge_inference import EdgeInference
from graphfield.inference.movement_words import TWO_TESTS, pair_name
from graphfield.inference.pairs_at import PairsAt, TestedValue
from graphfield.numbers import CLEAR, is_significant

FORMAT, FORMAT_VERSION = "graphfield-edges", 2
# The rate at which a pair counts as found, and the level of bands.
FDR, LEVEL = 0.1, 0.9
# Curves that are kept in all, places of one, and pairs that have curves also where covariates are many.
_MOST_CURVES, _POINTS, _LEAST_PAIRS = 300, 25, 3
_DIGITS = 4
_STRONGEST = 5  # edges that are named
M = TypeVar("M", bound=FieldLike)


@dataclass(frozen=True)
class BandedCurve:
    """A pair along a covariate: estimates, intervals one by one, and intervals that cover all at once.

    None where rows are too few to tell.
    """

    pair: int
    covariate: str
    estimate: list[float | None]
    low: list[float | None]
    high: list[float | None]
    low_all: list[float | None]
    high_all: list[float | None]


@dataclass(frozen=True)
class MovesWith:
    """A pair that moves with a covariate given the others, and the q-value of that."""

    pair: int
    covariate: str
    rate: float


@dataclass(frozen=True)
class EdgeRecord:
    """What tests of every pair found, or ``why_not``: the contents of ``edges.json``.

    Pairs are in the order of ``numpy.triu_indices(p, 1)``; a rate that is not a number is None. ``estimate``
    has their partial correlations averaged over the rows, ``low`` and ``high`` intervals of 90 % for these
    (none in files from before there were any). ``values`` are the places of curves along each
    covariate. Curves are those of the pairs that are clearest. ``with_one`` has the pairs that move with one
    of several covariates, given the others. ``at`` is :class:`PairsAt` of the pairs that move.
    ``movers`` says in words what the pairs do that move most clearly (``mover_pairs``), ``moved_by`` with
    which covariates any pair moves, given the others; ``caveat`` what is to be said first, ``drifting``
    covariates whose movement may be levels that drift (:class:`EdgeInference`).
    """

    nodes: tuple[str, ...] = ()
    n_rows: int = 0
    n_groups: int | None = None
    q_value: tuple[float | None, ...] = ()
    q_varies: tuple[float | None, ...] = ()
    estimate: tuple[float | None, ...] = ()
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    values: Mapping[str, list[Any]] = field(default_factory=dict)
    curves: tuple[BandedCurve, ...] = ()
    with_one: tuple[MovesWith, ...] = ()
    at: Mapping[str, Any] | None = None
    movers: tuple[str, ...] = ()
    moved_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    why_not: str = ""
    caveat: str = ""
    drifting: tuple[str, ...] = ()
    mover_pairs: tuple[int, ...] = ()

    @classmethod
    def of(cls, found: EdgeInference, notes: Sequence[str] = ()) -> EdgeRecord:
        """With the curves of those pairs that move most clearly, then of the clearest edges."""
        names = [column.name for column in found.schema.encoder.columns]
        banded = [_banded(found, pair, name) for pair in _clearest(found, len(names)) for name in names]
        movers = found.movers(FDR)
        two_tests = TWO_TESTS if movers and len(found.covariates) > 1 else ""
        banded = [(curve, places) for curve, places in banded if any(low is not None for low in curve.low)]
        return cls(
            nodes=tuple(found.schema.node_names),
            n_rows=len(found.encoded),
            n_groups=None if found.starts is None or found.timed else len(found.starts),
            q_value=_rates(found.table["q_value"]),
            q_varies=_rates(found.table["q_varies"]),
            estimate=tuple(_rounded(found.table["estimate"])),
            low=tuple(_rounded(found.intervals[0])),
            high=tuple(_rounded(found.intervals[1])),
            values={curve.covariate: places for curve, places in banded},
            curves=tuple(curve for curve, _ in banded),
            with_one=tuple(MovesWith(*one) for one in found.moving_with_one(FDR)) if len(names) > 1 else (),
            movers=tuple(movers),
            mover_pairs=tuple(_positions(found, found.clearest_movers(FDR))[: len(movers)]),
            at=_moving_at(found, len(names)),
            moved_by=tuple(found.moved_by(FDR)),
            notes=(
                *filter(None, [found.about, found.also_moving(FDR), two_tests, found.values_to_ask(FDR)]),
                *notes,
            ),
            caveat=str(found.caveat),
            drifting=tuple(found.drifting),
        )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> EdgeRecord:
        """From a mapping that was checked (``report.folder``)."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None}
        of_pairs = ("q_value", "q_varies", "estimate", "low", "high")
        for name in ("nodes", *of_pairs, "movers", "mover_pairs", "moved_by", "notes", "drifting"):
            known[name] = tuple(known.get(name, ()))
        curves = tuple(BandedCurve(**curve) for curve in known.get("curves", ()))
        with_one = tuple(MovesWith(**one) for one in known.get("with_one", ()))
        record = cls(**{**known, "curves": curves, "with_one": with_one})
        if not record._is_whole():
            raise ModelFileError("The tests of edges do not fit together. Test the table again.")
        return record

    def _is_whole(self) -> bool:
        n_pairs = len(self.nodes) * (len(self.nodes) - 1) // 2
        known = len(self.q_value) == len(self.q_varies) == len(self.estimate) == n_pairs
        known = known and len(self.low) == len(self.high) and len(self.low) in (0, n_pairs)
        pairs = [*(one.pair for one in self.with_one), *(one.pair for one in self.curves), *self.mover_pairs]
        known = known and max(pairs, default=-1) < n_pairs
        known = known and len(self.mover_pairs) in (0, len(self.movers))
        return known and all(
            len(self.values.get(curve.covariate, ())) == len(curve.estimate) for curve in self.curves
        )

    def to_json(self) -> str:
        values = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        return json.dumps(sealed(json.loads(json.dumps(values))), allow_nan=False)

    @property
    def are_edges(self) -> NDArray[np.bool_]:
        """Pairs that have an edge at some z, (pairs,)."""
        return _below(self.q_value)

    @property
    def are_tested(self) -> NDArray[np.bool_]:
        """Pairs that could be tested, (pairs,)."""
        return np.array([rate is not None for rate in self.q_value], dtype=bool)

    @property
    def n_tested(self) -> int:
        return int(self.are_tested.sum())

    @property
    def are_moving(self) -> NDArray[np.bool_]:
        """Pairs whose edge moves with z, (pairs,)."""
        return _below(self.q_varies)

    @property
    def are_named(self) -> NDArray[np.bool_]:
        """Pairs whose edge moves with z or, given the others, with one covariate, (pairs,)."""
        found = self.are_moving
        found[[one.pair for one in self.with_one]] = True
        return found

    @property
    def are_steady(self) -> NDArray[np.bool_]:
        """Pairs whose average is clear and that no test sees to move: edges wherever one looks, (pairs,)."""
        clear = np.zeros(len(self.q_value), dtype=bool)
        clear[[pair for pair, own in self.averages().items() if own.low > 0 or own.high < 0]] = True
        return clear & self.are_edges & ~self.are_named

    @property
    def moving_pairs(self) -> list[str]:
        """Names of the pairs whose edge moves, the clearest first."""
        moving = sorted(np.flatnonzero(self.are_moving), key=lambda pair: self.q_varies[pair] or 0.0)
        first, second = np.triu_indices(len(self.nodes), 1)
        return [pair_name(self.nodes[first[pair]], self.nodes[second[pair]]) for pair in moving]

    @property
    def moving_with_one_alone(self) -> list[str]:
        """Names of pairs that move with one covariate given the others, but not with all together."""
        pairs = list(dict.fromkeys(one.pair for one in self.with_one if not self.are_moving[one.pair]))
        ends = list(combinations(self.nodes, 2))
        return [pair_name(*ends[pair]) for pair in pairs]

    def averages(self) -> dict[int, TestedValue]:
        """Averages over the rows of pairs whose edges have a sign."""
        known = zip(self.estimate, self.low, self.high, strict=True) if self.low else ()
        return {
            pair: TestedValue(estimate, low, high)
            for pair, (estimate, low, high) in enumerate(known)
            if not (estimate is None or low is None or high is None)
        }

    def averaged(self, means: NDArray[np.floating]) -> NDArray[np.float64]:
        """The averages of a model (pairs,), with those of the tests in their place where there are any."""
        found = np.array(means, dtype=np.float64)
        for pair, value in self.averages().items():
            found[pair] = value.estimate
        return found

    @property
    def surely_moves(self) -> bool:
        """Whether it is clear that any pair moves: the least q-value is that of Simes' test of all."""
        return any(rate is not None and is_significant(rate) for rate in self.q_varies)

    def edges_words(self) -> str:
        """How many pairs have an edge, and the strongest on average; of what is no number, without a sign."""
        there = np.flatnonzero(self.are_edges).tolist()
        number = f"{len(there) or 'none'} of {count(self.n_tested, 'pair')}"
        false = "" if self.caveat else false_words(self.q_value, "to be false", FDR)
        text = f"Edges: {number}, at a false-discovery level of {FDR:.2f}{false}"
        sizes = {pair: value for pair in there if (value := self.estimate[pair]) is not None}
        strongest = sorted(sizes, key=lambda pair: -abs(sizes[pair]))[:_STRONGEST]
        ends = list(combinations(self.nodes, 2))
        signed = {pair: not self.low or self.low[pair] is not None for pair in strongest}
        named = [f"{pair_name(*ends[i])} {sizes[i]:{'+' if signed[i] else ''}.2f}" for i in strongest]
        return f"{text}. Strongest on average: {', '.join(named)}." if named else f"{text}."

    def check_nodes(self, names: Sequence[str]) -> None:
        if not self.why_not and list(self.nodes) != list(names):
            raise DataError(
                "The edges that were tested are not those of this model: it has "
                f"{count(len(names), 'node')} ({', '.join(map(str, names[:3]))} ...), the tests have "
                f"{count(len(self.nodes), 'node')} ({', '.join(self.nodes[:3])} ...). Test the table that "
                "the model was fitted to, with the same nodes in the same order."
            ).about(argument="model")

    def applied_to(self, model: M) -> M:
        """With the edges of the pairs that tests find, those that may move where they are above :attr:`cut`.

        Pairs that could not be tested are edges where the fit has them.
        """
        if self.why_not:
            return model
        known = field_of(model)
        p, there, cut = len(self.nodes), self.are_edges, min(self.cut, known.threshold.value)
        pairs, tested = np.triu_indices(p, 1), self.are_tested
        clear = np.zeros((p, p), dtype=bool)
        clear[pairs] = np.where(tested, there, np.broadcast_to(known.threshold.clear, (p, p))[pairs])
        steady = np.zeros((p, p), dtype=bool)
        steady[pairs] = self.are_steady
        which = "those that move" if steady.any() else "those"
        reason = (
            f"{int(there.sum()):,} of {count(self.n_tested, 'pair')} have an edge by tests of each, at a "
            f"false-discovery level of {FDR:.2f}; at each z {which} above {cut:.3g} are shown "
            "(two standard errors, or the cut of the fit where that is lower)"
        )
        if not tested.all():
            left = len(tested) - self.n_tested
            reason += f"; {count(left, 'pair')} not tested {agreed(left, 'is', 'are')} as in the fit"
        own = replace(
            known.threshold,
            value=cut,
            clear=clear | clear.T,
            n_edges=None,
            reason=reason,
            steady=steady | steady.T,
        )
        if isinstance(model, GraphField):
            return cast(M, known.with_threshold(own))
        changed = copy(model)
        changed.field_ = known.with_threshold(own)
        return changed

    def moving_at(self, places: Mapping[str, float | str]) -> dict[int, TestedValue]:
        """Pairs that move, at one value of all covariates; one that does not is best known by its average."""
        return {} if self.at is None else PairsAt.from_json(self.at).at(places)

    def values_at(self, places: Mapping[str, float | str]) -> dict[int, TestedValue]:
        """What is best known at one value of all covariates: averages where pairs do not move."""
        known, moving = self.averages(), self.moving_at(places)
        still = {pair: value for pair, value in known.items() if not self.are_named[pair]}
        return still | {pair: value for pair, value in moving.items() if pair in known}

    @property
    def cut(self) -> float:
        """What at one z is no edge: up to two standard errors of a partial correlation of so many rows.

        Of groups, of an average as the tests have it: rows of one group are not one row.
        """
        if self.n_groups is None:
            return CLEAR / float(np.sqrt(self.n_rows))
        ends = zip(self.low, self.high, strict=True)
        widths = [
            np.arctanh(high) - np.arctanh(low)
            for low, high in ends
            if low is not None and high is not None and -1 < low < high < 1
        ]
        if not widths:
            return CLEAR / float(np.sqrt(self.n_groups))
        return CLEAR * float(np.median(widths)) / (2 * float(norm.ppf((1 + LEVEL) / 2)))


def _moving_at(found: EdgeInference, n_covariates: int) -> dict[str, Any] | None:
    """Pairs that move, the clearest first; None where there are none."""
    moving = set(np.flatnonzero(found.table["q_varies"] <= FDR).tolist())
    moving |= {pair for pair, _, _ in found.moving_with_one(FDR)} if n_covariates > 1 else set()
    order = [int(pair) for pair in np.argsort(found.table["p_varies"], kind="stable") if pair in moving]
    pairs = [pair for pair in order if found.has_sign(pair)]
    return found.pairs_at(pairs).to_json() if pairs else None


def _positions(found: EdgeInference, lines: pd.DataFrame) -> list[int]:
    """Of some lines among all pairs."""
    known = {ends: pair for pair, ends in enumerate(combinations(found.schema.node_names, 2))}
    return [known[ends] for ends in zip(lines["source"], lines["target"], strict=True)]


def _clearest(found: EdgeInference, n_covariates: int) -> list[int]:
    """Pairs whose curves are kept: those that move, with one covariate, then those that are there."""
    table = found.table
    moving, there = (table[name].to_numpy() <= FDR for name in ("q_varies", "q_value"))
    order = np.lexsort((np.where(moving, table["p_varies"], table["p_value"]), ~moving)).tolist()
    n_moving, with_one = int(moving.sum()), [pair for pair, _, _ in found.moving_with_one(FDR)]
    order = dict.fromkeys([*order[:n_moving], *with_one, *order[n_moving:]])
    kept = [pair for pair in order if (moving[pair] or there[pair]) and found.has_sign(pair)]
    return kept[: max(_LEAST_PAIRS, _MOST_CURVES // n_covariates)]


def _banded(found: EdgeInference, pair: int, covariate: str) -> tuple[BandedCurve, list[Any]]:
    """The curve, and the places at which it is known."""
    asked = (found.table["source"].iloc[pair], found.table["target"].iloc[pair], covariate, LEVEL)
    one, whole = (found.bands(*asked, simultaneous, n_points=_POINTS) for simultaneous in (False, True))
    columns = (one["estimate"], one["low"], one["high"], whole["low"], whole["high"])
    return BandedCurve(pair, covariate, *map(_rounded, columns)), one["value"].tolist()


def _rounded(column: Any) -> list[float | None]:
    return [round(float(value), _DIGITS) if np.isfinite(value) else None for value in column]


def _rates(column: Any) -> tuple[float | None, ...]:
    """Exact: a rounded one may pass where the test did not."""
    return tuple(None if np.isnan(value) else float(value) for value in column)


def _below(rates: Sequence[float | None]) -> NDArray[np.bool_]:
    return np.array([rate is not None and rate <= FDR for rate in rates], dtype=bool)
