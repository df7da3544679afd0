"""What the page says at its top: what to be careful with, what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphfield.check.findings import NOTES
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import count
from graphfield.report.figures import DENSITY, STILL, Survey
from graphfield.report.rows import Rows
from graphfield.report.words import number

Pairs = Sequence[tuple[str, str]]
_END = 0.995  # what is shown as 1.00


def summary(
    model: GraphEstimator,
    rows: Rows,
    survey: Survey,
    effects: Mapping[str, float],
    pairs: Pairs,
    *,
    moves: bool = True,
) -> dict[str, Any]:
    """How many edges there are, which vary most, which covariate moves the graph most.

    Where it is not supported that the graph ``moves``, nothing is said about how it does.
    """
    return {
        "edges": _edges(model, rows, survey) if moves else _average_edges(model, survey),
        "varying": _varying(survey, pairs) if moves else None,
        "cut_off": _cut_off(survey, pairs),
        "movers": _movers(effects) if moves else [],
    }


def warnings(check: Mapping[str, Any] | None) -> list[str]:
    """What to look at in the data, by name; the data card says what to do about it."""
    found = [one for one in (check or {}).get("warnings") or [] if one.get("code") not in NOTES]
    return [str(one.get("message", "")).strip().rstrip(".") for one in found]


def _edges(model: GraphEstimator, rows: Rows, survey: Survey) -> dict[str, str]:
    """Where there is an edge, how many are ``found``; otherwise the ``largest`` that is none."""
    where = "Over covariates drawn from the ranges of the training table the graph"
    if rows.n_given:
        where = f"Over {count(len(rows.Z), 'row')} of the training table the graph"
    still = survey.spread.max(initial=0.0) <= STILL
    if still:
        where = "The graph"
    rule = (
        f"{int(model.threshold_.clear_pairs.sum()):,} pairs stand clear of their noise; such a pair is an "
        f"edge where its strength is above {model.threshold_.value:.3f} from both nodes."
    )
    most = float(np.maximum(np.abs(survey.least), np.abs(survey.most)).max(initial=0.0))
    found = _edge_counts(survey, still) if survey.present.any() else ""
    return {"where": where, "found": found, "largest": f"{most:.3f}", "rule": rule}


def _edge_counts(survey: Survey, still: bool) -> str:
    density, n_pairs = survey.measures[DENSITY], len(survey.mean)
    low, high = (round(float(np.quantile(density, q)) * n_pairs) for q in (0.05, 0.95))
    average = float(density.mean())
    spread = f"; nine rows in ten have {low:,} to {high:,}" if high > low else ""
    return (
        f"{average * n_pairs:,.0f} of {n_pairs:,} possible edges{'' if still else ' on average'} "
        f"({100 * average:.2g}\u00a0%{spread})"
    )


def _average_edges(model: GraphEstimator, survey: Survey) -> dict[str, str]:
    cut, n_pairs = model.threshold_.value, len(survey.mean)
    n_edges = int(((np.abs(survey.mean) > cut) & model.threshold_.clear_pairs).sum())
    found = (
        f"{n_edges:,} of {n_pairs:,} possible edges: pairs that stand clear of their noise and whose partial "
        f"correlation, averaged over the rows, is above {cut:.3f} in size"
    )
    return {"where": "The average graph", "found": found, "rule": ""}


def _varying(survey: Survey, pairs: Pairs) -> list[tuple[tuple[str, str], str]] | None:
    """The edges that vary most, each with its range; None where nothing is to be said of that."""
    if survey.spread.max(initial=0.0) <= STILL or not survey.present.any():
        return None
    spread = survey.spread * (survey.present > 0)
    order = [int(i) for i in np.argsort(-spread, kind="stable")[:4] if spread[i] > STILL]
    return [(pairs[i], _range(survey.least[i], survey.most[i]) + _where(survey.present[i])) for i in order]


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


def _cut_off(survey: Survey, pairs: Pairs) -> list[tuple[str, str]]:
    """Partial correlations that are shown as 1: a mean of two regressions can overshoot, and is cut off."""
    sizes = np.maximum(np.abs(survey.least), np.abs(survey.most))
    return [pairs[int(i)] for i in np.flatnonzero(sizes >= _END)]


def _movers(effects: Mapping[str, float]) -> list[str]:
    """What moves the graph most, and by how much."""
    moved = {name: size for name, size in effects.items() if size > STILL}
    return [f"{name} ({size:.2g})" for name, size in list(moved.items())[:6]]
