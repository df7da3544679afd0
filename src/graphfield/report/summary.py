"""What the page says at its top: how much movement is supported, what to be careful with, what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from graphfield.data.findings import NOTES
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import count
from graphfield.report.figures import DENSITY, STILL, Survey
from graphfield.report.rows import Rows
from graphfield.report.words import number, paragraphs

Pairs = Sequence[tuple[str, str]]
_END = 0.995  # what is shown as 1.00
_NAMED = 5  # warnings and pairs that are named one by one


def summary(
    model: GraphEstimator,
    rows: Rows,
    survey: Survey,
    effects: Mapping[str, float],
    pairs: Pairs,
    *,
    moves: bool = True,
) -> str:
    """How many edges there are, which vary most, which covariate moves the graph most.

    Where it is not supported that the graph ``moves``, nothing is said about how it does.
    """
    sentences = [
        _edges(model, rows, survey) if moves else _average_edges(model, survey),
        _varying(survey, pairs) if moves else "",
        _end_of_scale(survey, pairs),
        _moving(effects) if moves else "",
    ]
    return paragraphs(sentences)


def warnings(check: Mapping[str, Any] | None) -> str:
    """What to look at in the data, by name; the data card says what to do about it."""
    if not check:
        return ""
    wrong = [one for one in check.get("warnings") or [] if one.get("code") not in NOTES]
    found = [str(one.get("message", "")).strip().rstrip(".") for one in wrong]
    if not found:
        return ""
    left = len(found) - _NAMED
    told = "; ".join(map(escape, found[:_NAMED])) + (f"; and {left} more" if left > 0 else "")
    what = "One thing in the data is" if len(found) == 1 else f"{len(found)} things in the data are"
    where = 'See the <a href="#data">data card</a> for what to do.'
    return f'<p class="note"><strong>{what} worth a look:</strong> {told}. {where}</p>\n'


def _edges(model: GraphEstimator, rows: Rows, survey: Survey) -> str:
    density = survey.measures[DENSITY]
    n_pairs = len(survey.mean)
    low, high = (round(float(np.quantile(density, q)) * n_pairs) for q in (0.05, 0.95))
    average = float(density.mean())
    where = "Over covariates drawn from the ranges of the training table the graph"
    if rows.n_given:
        where = f"Over {count(len(rows.Z), 'row')} of the training table the graph"
    still = survey.spread.max(initial=0.0) <= STILL
    if still:
        where = "The graph"
    clear = model.threshold_.clear_pairs
    rule = (
        f"{int(clear.sum()):,} pairs stand clear of their noise; such a pair is an edge where its strength "
        f"is above {model.threshold_.value:.3f} from both nodes."
    )
    if not survey.present.any():
        most = float(np.maximum(np.abs(survey.least), np.abs(survey.most)).max(initial=0.0))
        none = f"{where} has <strong>no edge that stands clear of its noise</strong>"
        return f"{none}; the largest |partial correlation| of any pair is {most:.3f}. {rule}"
    spread = f"; nine rows in ten have {low:,} to {high:,}" if high > low else ""
    return (
        f"{where} has {average * n_pairs:,.0f} of {n_pairs:,} possible edges{'' if still else ' on average'} "
        f"({100 * average:.2g}\u00a0%{spread}). {rule}"
    )


def _average_edges(model: GraphEstimator, survey: Survey) -> str:
    cut, n_pairs = model.threshold_.value, len(survey.mean)
    n_edges = int(((np.abs(survey.mean) > cut) & model.threshold_.clear_pairs).sum())
    return (
        f"The average graph has {n_edges:,} of {n_pairs:,} possible edges: pairs that stand clear of their "
        f"noise and whose partial correlation, averaged over the rows, is above {cut:.3f} in size."
    )


def _varying(survey: Survey, pairs: Pairs) -> str:
    if survey.spread.max(initial=0.0) <= STILL:
        return ""
    spread = survey.spread * (survey.present > 0)
    order = [int(i) for i in np.argsort(-spread, kind="stable")[:4] if spread[i] > STILL]
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


def _moving(effects: Mapping[str, float]) -> str:
    moved = {name: size for name, size in effects.items() if size > STILL}
    if not moved:
        return ""
    ranked = [f"{escape(name)} ({size:.2g})" for name, size in list(moved.items())[:6]]
    how = (
        "Standard deviation of an average edge while one covariate goes from its 1st to its 99th percentile "
        "or through its levels, the others typical."
    )
    told = f"By the model alone, what moves the graph most: {', '.join(ranked)}."
    return f'{told} <span class="small">{how}</span>'
