"""What seems to move along covariates in whose order levels drift: does it in differences of rows as well?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.drifting_levels import words_of_drift
from graphfield.inference.drift import Drift
from graphfield.inference.edge_tests import EdgeTests, column_label
from graphfield.inference.evidence import CovariateEvidence, Evidence
from graphfield.inference.verdict_facts import WEAK
from graphfield.numbers import is_significant, p_text

_VERDICTS = ("strong evidence", "evidence", WEAK)
_SHOWN_TOO = "differences of neighbouring rows, in which levels cancel, show it as well"
_SEEN = "Differences of neighbouring rows, in which levels cancel, show it as well"
_UNSEEN = "Differences of neighbouring rows, in which levels cancel, do not show it"


def shows_any(found: Evidence) -> bool:
    """Whether any p-value is small, of all covariates together or of one."""
    return any(map(_is_small, [found.p_value, *(line.adjusted_p_value for line in found.per_covariate)]))


def confirmed_evidence(found: Evidence, drift: Drift, again: Evidence | None) -> Evidence:
    """What of an answer stands beside that of differences (None where they could not be asked).

    Covariates along which nothing drifts are believed, and with one of them that matters all together.
    """
    known = {} if again is None else {line.name: line for line in again.per_covariate}
    doubted: list[str] = []

    def confirmed(line: CovariateEvidence) -> CovariateEvidence:
        p, other = line.adjusted_p_value, known.get(line.name)
        if line.name not in drift.names or not _is_small(p):
            return line
        if other is None or not _is_small(other.adjusted_p_value):
            doubted.append(line.name)
            return line
        both = (line.p_value, other.p_value), (p, other.adjusted_p_value)
        p_value, adjusted = (max(own for own in pair if own is not None) for pair in both)
        return replace(
            line,
            p_value=p_value,
            adjusted_p_value=adjusted,
            verdict=_weaker(line.verdict, other.verdict),
            sentence=f"{line.sentence} {_SEEN} ({p_text(other.adjusted_p_value or 0.0)}).",
        )

    lines = tuple(map(confirmed, found.per_covariate))
    sure = any(_is_small(line.adjusted_p_value) for line in lines if line.name not in drift.names)
    found = replace(found, per_covariate=lines)
    if not sure and _is_small(found.p_value):
        if again is not None and _is_small(again.p_value):
            found = replace(
                found,
                p_value=max(found.p_value or 0.0, again.p_value or 0.0),
                verdict=_weaker(found.verdict, again.verdict),
                sentence=f"{found.sentence} {_SEEN} ({p_text(again.p_value or 0.0)}).",
            )
        else:
            return found.as_if_steady(doubted or drift.names, doubted, _not_shown(again), whole=True)
    if doubted:
        return found.as_if_steady(doubted, doubted, _not_shown_of(doubted, known), whole=False)
    return found


def _not_shown(again: Evidence | None) -> str:
    if again is None or again.p_value is None:
        return ""
    return f"{_UNSEEN} ({p_text(again.p_value)})."


def _not_shown_of(doubted: Sequence[str], known: Mapping[str, CovariateEvidence]) -> str:
    p_values = [known[name].adjusted_p_value for name in doubted if name in known]
    told = [p_text(p) for p in p_values if p is not None]
    return f"{_UNSEEN} ({', '.join(told)})." if told else ""


def _is_small(p_value: float | None) -> bool:
    return p_value is not None and is_significant(p_value)


def confirmed_tests(tests: EdgeTests, nodes: Sequence[str], drift: Drift, again: pd.DataFrame) -> EdgeTests:
    """With the larger p-values of both, ``again`` of differences, where it is asked what moves."""
    pairs = pd.MultiIndex.from_frame(again[["source", "target"]])
    names = np.array(nodes, dtype=object)
    own = pd.MultiIndex.from_arrays([names[ends] for ends in np.triu_indices(len(names), 1)])

    def larger(known: NDArray[np.float64], column: str) -> NDArray[np.float64]:
        other = again[column].set_axis(pairs).reindex(own).to_numpy(dtype=np.float64)
        return np.where(np.isnan(other), np.where(np.isnan(known), np.nan, 1.0), np.maximum(known, other))

    of_covariate = {
        name: larger(p, f"p_{column_label(name)}") if name in drift.names else p
        for name, p in tests.p_of_covariate.items()
    }
    return replace(tests, p_varies=larger(tests.p_varies, "p_varies"), p_of_covariate=of_covariate)


def words_of_both(drift: Drift) -> str:
    """What is said of pairs that were tested on rows and on differences."""
    return words_of_drift(drift.names, f"So pairs count as moving where {_SHOWN_TOO}.")


def _weaker(one: str, other: str) -> str:
    """Of two verdicts of tests that both have a small p-value."""
    return max(one, other, key=lambda word: _VERDICTS.index(word) if word in _VERDICTS else len(_VERDICTS))
