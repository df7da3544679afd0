"""What the page says at its top: which edges matter, what to be careful with, what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.check.findings import NOTES
from graphfield.exceptions import agreed, count, first_few
from graphfield.fields import GraphField
from graphfield.graphs.false_discoveries import false_words
from graphfield.inference.edge_record import FDR, EdgeRecord
from graphfield.report import glance
from graphfield.report.figures import DENSITY, STILL, Survey
from graphfield.report.glance import Edges
from graphfield.report.rows import Rows
from graphfield.report.words import number

Pairs = Sequence[tuple[str, str]]
_END = 0.995  # what is shown as 1.00
_NAMED = 4  # edges that are named
_LEAST = 5e-4  # what is shown as 0.001: a covariate that moves edges by less is not said to move them
# What is said of one pair, or of several, that may be an edge.
_TESTED = ("passes its test", "pass their tests")
_PASSING = (f"pair {_TESTED[0]}", f"pairs {_TESTED[1]}")
_CLEAR = ("stands clear of its noise", "stand clear of their noise")
_FEW = 20  # edges up to which their average number has a decimal
# Codes of a data check: what may make the graph wrong comes first, what is in the nature of the data last.
FIRST = (
    "identifier-node",
    "duplicate-nodes",
    "collinear-nodes",
    "broken-relation",
    "product-nodes",
    "monotone-nodes",
    "missing-code",
    "coded-category",
    "text-among-numbers",
    "repeated-subjects",
    "neighbours-alike",
    "gaps-follow-covariate",
    "lost-rows-follow-covariate",
    "missing-groups",
    "duplicate-rows",
    "ordered-rows",
    "many-rows-lost",
    "too-few-rows",
    "few-rows",
    "few-groups",
)
LAST = ("outliers", "discrete-node", "rare-category", "mostly-one-value", "cyclic-covariate", "unused-dates")


def summary(
    field: GraphField,
    rows: Rows,
    survey: Survey,
    effects: Mapping[str, float],
    pairs: Pairs,
    *,
    moves: bool = True,
    tests: EdgeRecord | None = None,
) -> dict[str, Any]:
    """The edges to name first; how many there are, which vary most, which covariate moves the graph most.

    Where it is not supported that the graph ``moves``, nothing is said about how it does: of one graph for
    all, the strongest edges are named. Where there are ``tests``, they say what moves, and not the model.
    What is named first, ``glance``, is not named again.
    """
    if not moves:
        survey = replace(survey, least=survey.mean, most=survey.mean)
    still = not moves or _stands_still(survey)
    largest = _strongest(field, survey, pairs) if still else []
    varying = None if still or tests else _varying(survey, pairs)
    first = _glance(tests, largest, varying)
    return {
        "glance": first,
        "tested": _tested(tests, moves) if tests else [],
        "edges": _edges(field, rows, survey, pairs, tests)
        if moves
        else _average_edges(field, survey, pairs, tests),
        "strongest": [one for one in largest if one[0] not in first.listed],
        "varying": None if varying is None else [one for one in varying if one[0] not in first.listed],
        "cut_off": _cut_off(survey, pairs),
        "movers": [] if still or tests or len(effects) < 2 else _movers(effects),
    }


def _glance(tests: EdgeRecord | None, strongest: Edges, varying: Edges | None) -> glance.Glance:
    """What tests see to move; otherwise what is strongest by the tests or, without any, what varies most."""
    if tests is None:
        return glance.varying(varying) if varying else glance.strongest(strongest)
    return glance.clearest_movers(tests) if glance.names_movers(tests) else glance.strongest_tested(tests)


def warnings(check: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What to look at in the data and what to do about it, each once, what matters most first."""
    found = [one for one in (check or {}).get("warnings") or [] if one.get("code") not in NOTES]
    found.sort(key=lambda one: _place(one.get("code")))
    said = ((str(one.get("message", "")).strip(), str(one.get("advice", "")).strip()) for one in found)
    return list(dict.fromkeys(said))


def _place(code: Any) -> int:
    order = [*FIRST, None, *LAST]
    return order.index(code if code in order else None)


def _tested(tests: EdgeRecord, moves: bool) -> list[str]:
    """What tests of every pair found, and how much of that is expected to be false."""
    rows = count(tests.n_rows, "row")
    rows += f" of {count(tests.n_groups, 'group')}" if tests.n_groups is not None else ""
    n_edges, n_moving = int(tests.are_edges.sum()), int(tests.are_moving.sum())

    def expected(rates: Sequence[float | None], what: str) -> str:
        return "" if tests.caveat else false_words(rates, what, FDR)

    found = (
        f"Each of {count(tests.n_tested, 'pair')} of nodes was tested for an edge on {rows}, at a "
        f"false-discovery level of {FDR:.2f}{', as if they were independent' if tests.caveat else ''}. "
        f"{_number(n_edges)} {agreed(max(n_edges, 1), *_PASSING)}{expected(tests.q_value, 'to be false')}. "
    )
    found += f"{_number(n_moving)} {agreed(max(n_moving, 1), 'edge is', 'edges are')} seen to move with the "
    found += f"covariates{expected(tests.q_varies, 'not to move')}"
    if not n_moving and tests.movers:
        found += " together"
    found += "."
    if n_moving and not moves:
        found += f" {agreed(n_moving, 'Its curve below has a band', 'Their curves below have bands')}."
    return [found, *tests.notes]


def _number(found: int) -> str:
    return f"{found:,}" if found else "No"


def _edges(
    field: GraphField, rows: Rows, survey: Survey, pairs: Pairs, tests: EdgeRecord | None
) -> dict[str, str]:
    """Where there is an edge, how many are ``found``; otherwise the ``largest`` that is none."""
    where = "Over covariates drawn from the ranges of the training table the graph"
    if rows.n_given:
        where = f"Over {count(len(rows.Z), 'row')} of the training table the graph"
    still = _stands_still(survey)
    if still:
        where = "The graph"
    most = float(np.maximum(np.abs(survey.least), np.abs(survey.most)).max(initial=0.0))
    found = _edge_counts(survey, still) if survey.present.any() else ""
    rule = _rule(field, survey, pairs, tests)
    return {"where": where, "found": found, "largest": f"{most:.3f}", "rule": rule}


def _rule(field: GraphField, survey: Survey, pairs: Pairs, tests: EdgeRecord | None) -> str:
    """What is an edge, and how their number goes with that of the pairs that may be one."""
    clear, some = field.threshold.clear_pairs, survey.present > 0
    if not clear.any():
        return ""
    n_some, may_be = int(some.sum()), _TESTED if tests else _CLEAR
    rule = f"Edges are pairs that {may_be[1]} and whose strength is {_above(field, 'from both nodes')}."
    if n_some and not _stands_still(survey):
        rule += f" {n_some:,} {agreed(n_some, 'pair is', 'pairs are')} an edge in at least one of these rows."
    weak = np.flatnonzero(clear & ~some)
    if len(weak):
        does = agreed(len(weak), f"{may_be[0]} but is", f"{may_be[1]} but are")
        rule += f" {len(weak):,} more {does} never that strong{_by_tests(weak, pairs, tests)}."
    return rule


def _above(field: GraphField, what: str) -> str:
    """In words, the strength of an edge."""
    steady = field.threshold.steady
    but = (
        ""
        if steady is None or not steady.any()
        else ", or of any size where tests find a clear average and no movement"
    )
    return f"above {field.threshold.value:.3f} {what}{but}"


def _by_tests(weak: NDArray[np.intp], pairs: Pairs, tests: EdgeRecord | None) -> str:
    """What tests estimate of pairs that are weak in the model; nothing where nobody tested."""
    if tests is None:
        return ""
    named = _strongest_of(weak, np.array(tests.estimate, dtype=np.float64), pairs)
    return f" in the model, which draws weak ones towards zero; on average the tests estimate {named}"


def _strongest_of(some: NDArray[np.intp], strengths: NDArray[np.float64], pairs: Pairs) -> str:
    """The first few of some pairs, the strongest first, with their strengths."""
    order = some[np.argsort(-np.abs(strengths[some]), kind="stable")]
    ends = [" \u2013 ".join(pairs[int(i)]) for i in order]
    named = [f"{own} ({number(float(strengths[i]))})" for own, i in zip(ends, order, strict=True)]
    return first_few(named, _NAMED)


def _stands_still(survey: Survey) -> bool:
    return bool(survey.spread.max(initial=0.0) <= STILL)


def _edge_counts(survey: Survey, still: bool) -> str:
    density, n_pairs = survey.measures[DENSITY], len(survey.mean)
    low, high = (round(float(np.quantile(density, q)) * n_pairs) for q in (0.05, 0.95))
    average = float(density.mean())
    shown = f"{average * n_pairs:,.{0 if still or average * n_pairs >= _FEW else 1}f}"
    spread = f"; nine rows in ten have {low:,} to {high:,}" if high > low else ""
    return (
        f"{shown} of {n_pairs:,} possible edges{'' if still else ' on average'} "
        f"({100 * average:.2g}\u00a0%{spread})"
    )


def _average_edges(
    field: GraphField, survey: Survey, pairs: Pairs, tests: EdgeRecord | None
) -> dict[str, str]:
    is_edge, may_be = average_edges(field, survey), _TESTED if tests else _CLEAR
    n_edges, n_pairs = int(is_edge.sum()), len(survey.mean)
    found = (
        f"{n_edges:,} of {n_pairs:,} possible edges: pairs that {may_be[1]} and whose partial "
        f"correlation, averaged over the rows, is {_above(field, 'in size')}"
    )
    weak = np.flatnonzero(field.threshold.clear_pairs & ~is_edge)
    does = agreed(len(weak), f"{may_be[0]} but is", f"{may_be[1]} but are")
    named = f" on average: {_strongest_of(weak, survey.mean, pairs)}"
    rule = f"{len(weak):,} more {does} weaker{named}." if len(weak) else ""
    return {"where": f"The average graph{' (by the tests)' if tests else ''}", "found": found, "rule": rule}


def average_edges(field: GraphField, survey: Survey) -> NDArray[np.bool_]:
    """Pairs that are edges of the average graph over the rows."""
    return np.abs(survey.mean) > field.threshold.pair_cuts


def _strongest(field: GraphField, survey: Survey, pairs: Pairs) -> Edges:
    """The strongest edges of one graph, each with its partial correlation."""
    sizes = np.abs(survey.mean) * average_edges(field, survey)
    order = [int(i) for i in np.argsort(-sizes, kind="stable")[:_NAMED] if sizes[i] > 0]
    return [(pairs[i], number(float(survey.mean[i]))) for i in order]


def _varying(survey: Survey, pairs: Pairs) -> Edges | None:
    """The edges that vary most, each with its range; None where nothing is to be said of that."""
    if not survey.present.any():
        return None
    spread = survey.spread * (survey.present > 0)
    order = [int(i) for i in np.argsort(-spread, kind="stable")[:_NAMED] if spread[i] > STILL]
    return [(pairs[i], _range(survey.least[i], survey.most[i]) + _where(survey.present[i])) for i in order]


def _where(share: float) -> str:
    """In how many rows the pair is an edge, where that is not in all."""
    return "" if share > 0.995 else f"; an edge in {max(1, round(100 * share))}\u00a0% of rows"


def _range(least: float, most: float) -> str:
    """With as many digits as show that the two differ."""
    for digits in (2, 3, 4):
        low, high = number(least, digits), number(most, digits)
        if low != high:
            break
    return f"{low} to {high}"


def _cut_off(survey: Survey, pairs: Pairs) -> list[tuple[str, str]]:
    """Partial correlations that are shown as 1: a mean of two regressions can overshoot, and is cut off."""
    sizes = np.maximum(np.abs(survey.least), np.abs(survey.most))
    return [pairs[int(i)] for i in np.flatnonzero(sizes >= _END)]


def _movers(effects: Mapping[str, float]) -> list[str]:
    """What moves the graph most, and by how much."""
    moved = {name: size for name, size in effects.items() if size >= _LEAST}
    return [f"{name} ({size:.3f})" for name, size in list(moved.items())[:6]]
