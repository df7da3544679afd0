"""The summary at the top of the page: what is there, what varies, what to be careful with, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import count
from graphfield.report.figures import DENSITY, Survey
from graphfield.report.rows import Rows
from graphfield.report.words import number, paragraphs

Pairs = Sequence[tuple[str, str]]
_STILL = 1e-4  # a standard deviation below which nothing varies
_END = 0.995  # what is shown as 1.00
_NAMED = 5  # warnings and pairs that are named one by one


def summary(
    model: GraphEstimator,
    rows: Rows,
    survey: Survey,
    effects: Mapping[str, float],
    pairs: Pairs,
    *,
    evidence: Mapping[str, Any] | None = None,
    check: Mapping[str, Any] | None = None,
) -> str:
    """How many edges there are, which vary most, which covariate moves the graph most; warnings first."""
    sentences = [
        _edges(model, rows, survey),
        _kept(model),
        _varying(survey, pairs),
        _end_of_scale(survey, pairs),
        _moving(effects, evidence or {}),
    ]
    return _warnings(check or {}) + paragraphs(sentences)


def _warnings(check: Mapping[str, Any]) -> str:
    found = [str(one.get("message", "")).strip().rstrip(".") for one in check.get("warnings") or []]
    if not found:
        return ""
    left = len(found) - _NAMED
    told = "; ".join(map(escape, found[:_NAMED])) + (f"; and {left} more" if left > 0 else "")
    what = "One thing in the data looks" if len(found) == 1 else f"{len(found)} things in the data look"
    where = 'See the <a href="#data">data card</a> for what to do.'
    return f'<p class="note"><strong>{what} wrong:</strong> {told}. {where}</p>\n'


def _edges(model: GraphEstimator, rows: Rows, survey: Survey) -> str:
    density = survey.measures[DENSITY]
    n_pairs = len(survey.mean)
    low, high = (round(float(np.quantile(density, q)) * n_pairs) for q in (0.05, 0.95))
    average = float(density.mean())
    cut = model.threshold_.value
    where = "Over covariates drawn from the ranges of the training table the graph"
    if rows.n_given:
        where = f"Over {count(len(rows.Z), 'row')} of the training table the graph"
    if not model.encoder_.columns:
        where = "The graph"
    clear = int(model.threshold_.clear.sum()) // 2
    rule = (
        f"{clear:,} of {n_pairs:,} pairs stand clear of their noise; such a pair counts as an edge where its "
        f"strength is above {cut:.3f} from both nodes, that is in the regression of each of the two on the "
        "others. Its partial correlation is the mean of both strengths."
    )
    if not survey.present.any():
        most = float(np.maximum(np.abs(survey.least), np.abs(survey.most)).max(initial=0.0))
        none = f"{where} has <strong>no edge that stands clear of its noise</strong>"
        return f"{none}; the largest |partial correlation| of any pair is {most:.3f}. {rule}"
    spread = f"; nine rows in ten have {low:,} to {high:,}" if high > low else ""
    return (
        f"{where} has {average * n_pairs:,.0f} of {n_pairs:,} possible edges on average "
        f"({100 * average:.2g}\u00a0%{spread}). {rule}"
    )


def _kept(model: Any) -> str:
    """How much of the movement that was found is left, where held-out rows did not support all of it."""
    members = [one for one in getattr(model, "members_", [model]) if hasattr(one, "variation_")]
    kept = [float(one.variation_) for one in members]
    if not kept or min(kept) == 1:
        return ""
    if max(kept) == 0:
        return (
            "The graph does not move with the covariates: held-out rows support none of the movement that "
            "was found, so the graphs were drawn all the way to their average."
        )
    shares = [
        0 if share == 0 else min(99, max(1, round(100 * share))) if share < 1 else 100 for share in kept
    ]
    low, high = min(shares), max(shares)
    share = f"{low}" if low == high else f"{low} to {high}"
    among = f" of its {len(kept)} fits" if len(kept) > 1 else ""
    return (
        f"Held-out rows support {share}\u00a0% of the movement that was found{among}; the graphs were drawn "
        "towards their average by as much, so curves are rather too flat than too steep."
    )


def _varying(survey: Survey, pairs: Pairs) -> str:
    if survey.spread.max(initial=0.0) <= _STILL:
        return "No edge varies: there is one graph for everybody."
    spread = survey.spread * (survey.present > 0)
    order = [int(i) for i in np.argsort(-spread, kind="stable")[:4] if spread[i] > _STILL]
    if not order:
        return "None of these edges varies." if survey.present.any() else ""
    named = [
        f"{_pair(pairs[i])} ({_range(survey.least[i], survey.most[i])}{_where(survey.present[i])})"
        for i in order
    ]
    return f"The edges that vary most over these rows: {', '.join(named)}."


def _pair(pair: tuple[str, str]) -> str:
    return f"<strong>{escape(pair[0])} \u2013 {escape(pair[1])}</strong>"


def _where(share: float) -> str:
    """In how many rows the pair is an edge, where that is not in all."""
    return "" if share > 0.995 else f"; an edge in {max(1, round(100 * share))}\u00a0% of them"


def _range(least: float, most: float) -> str:
    """With as many digits as show that the two differ."""
    for digits in (2, 3, 4):
        low, high = number(least, digits), number(most, digits)
        if low != high:
            break
    return f"{low} to {high}"


def _end_of_scale(survey: Survey, pairs: Pairs) -> str:
    """Partial correlations that are shown as 1: a mean of two regressions can overshoot, and is cut off."""
    sizes = np.maximum(np.abs(survey.least), np.abs(survey.most))
    ends = [int(i) for i in np.flatnonzero(sizes >= _END)]
    if not ends:
        return ""
    named = ", ".join(_pair(pairs[i]) for i in ends[:_NAMED])
    named += f" and {len(ends) - _NAMED} more" if len(ends) > _NAMED else ""
    verb = "reaches" if len(ends) == 1 else "reach"
    return (
        f"{named} {verb} the end of the scale (\u00b11.00) at some rows, where estimates are cut off: "
        "not to be taken literally."
    )


def _moving(effects: Mapping[str, float], evidence: Mapping[str, Any]) -> str:
    moved = {name: size for name, size in effects.items() if size > _STILL}
    if not moved:
        return ""
    verdicts = {str(one.get("name")): str(one.get("verdict")) for one in evidence.get("covariates") or []}
    ranked = []
    for name, size in list(moved.items())[:6]:
        verdict = f": {escape(verdicts[name])}" if name in verdicts else ""
        ranked.append(f"{escape(name)} ({size:.3f}{verdict})")
    beside = ", with the verdict of the test above" if verdicts else ""
    return (
        "What moves the graph, by the model alone (standard deviation of an average edge while one covariate "
        f"goes from its 1st to its 99th percentile or through its levels, the others typical{beside}): "
        f"{', '.join(ranked)}."
    )
