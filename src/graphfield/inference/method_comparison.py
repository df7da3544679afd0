"""What a comparison of methods says: one line each, how far they agree, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.estimators.one_graph import STATIC
from graphfield.exceptions import agreed, count, first_few
from graphfield.inference.common_nodes import RAW, taken_as
from graphfield.inference.method_fits import Failed, MethodFit
from graphfield.inference.model_gain import ModelGain
from graphfield.inference.unseen_rows import Predicted
from graphfield.inference.verdict import Verdict, reach_verdict
from graphfield.inference.verdict_facts import BETTER
from graphfield.numbers import Gain

_NAMED = 12  # methods that a sentence names one by one
_READING = (
    "score is the share of a node's variance that is explained, gain the share of the error of static that "
    "is saved, averaged over nodes. They may order methods differently: a node that the others nearly "
    "determine counts little in score, and like any other in gain, which orders the table. behind_first is "
    "by how much the error is above that of the first method of the table, in units of that of static, and "
    "behind_error its standard error: methods err on the same rows, so this is not that of their gains. "
    "gain_one_graph is the gain of the best single graph with the means and scales of the method. moves says "
    "how a method predicts beside its own average graph, whatever others do."
)
_TWICE = -1.0  # a gain below which the error is more than twice that of static
_WORSE, _FAR_OFF = "predicts worse than one graph", "more than twice the error of one graph"
COLUMNS = [
    "method",
    "estimator",
    "score",
    "gain",
    "standard_error",
    "behind_first",
    "behind_error",
    "gain_one_graph",
    "moves",
    "n_edges",
    "seconds",
    "memory_mb",
    "note",
]


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Several methods on the same rows, none of which a method had seen when it predicted them.

    Attributes
    ----------
    table : DataFrame
        One line per method, the largest gain first: ``method``, ``estimator``; ``score`` (mean R^2 of nodes);
        ``gain``, by how much its squared error is below that of one graph for all ("static"), as a share of
        the latter, and the ``standard_error`` of that; ``behind_first``, by how much its error is above that
        of the first line, in the same units, and ``behind_error``, the standard error of that difference on
        the same rows (a method is clearly behind where it is above two of these); ``gain_one_graph``, the
        gain of the best single graph with this method's own means and scales (NaN where its graph does not
        move): what ``gain`` has beyond that comes from a graph that moves; ``moves``, what held-out rows say
        of that movement, as in :class:`~graphfield.Verdict` ("better", "no clear difference", "worse" than
        its own average, or "one graph"); ``n_edges`` in the graph at a row's z, on average, at the automatic
        cut; ``seconds`` and ``memory_mb`` of a fit to all rows (beside other methods, where they run side by
        side; at its peak, above what the process held before; NaN where that cannot be told); ``note``, why a
        method could not be fitted, that it clearly predicts worse than one graph, or has more than twice its
        error, though that rests on few rows.
    agreement : DataFrame
        Of each pair of methods ``one`` and ``other``: ``edges_in_common`` (share of the edges of either
        graph that both have, over all z; NaN where there are none) and ``correlation`` of partial
        correlations.
    best : str
        The method with the smallest error of those that clearly beat one graph for all; "static" where none
        does, as in :class:`~graphfield.AutoCGM`.
    verdict : Verdict
        What held-out rows say of the graph of the best method.
    summary : str
        All of this in words.
    reading : str
        What scores and gains are, and why they may order methods differently.
    nodes : str
        What all methods took nodes as, and errors are counted in: "raw" (as they are), "normal" (normal
        scores), "log1p" or "clr".
    """

    reading: ClassVar[str] = _READING
    fits: tuple[MethodFit, ...]  # the static one first
    failed: tuple[Failed, ...]
    nodes: str = RAW

    def over(self, better: str, other: str) -> Gain:
        """By how much the error of a method is below that of another one, in units of that of one graph."""
        return self._over(self._fit(better).left, self._fit(other).left)

    def _over(self, one: NDArray[np.float64], two: NDArray[np.float64]) -> Gain:
        """The same, of what is left."""
        static = self._fit(STATIC)
        rows = (static.units, static.fold)
        return Predicted(static.values, static.values, one, static.left, {}, *rows).over(two)

    def _with_one_graph(self, fit: MethodFit) -> Gain | None:
        """Gain of one graph with the means of a method over static; None where its own graph is one."""
        return self._over(fit.left_by_one_graph, self._fit(STATIC).left) if fit.fitted.moves else None

    def _fit(self, name: str) -> MethodFit:
        return next(fit for fit in self.fits if fit.name == name)

    @cached_property
    def _gains(self) -> dict[str, Gain]:
        """Over one graph, the largest first."""
        found = {fit.name: self.over(fit.name, STATIC) for fit in self.fits}
        return dict(sorted(found.items(), key=lambda item: -item[1].value))

    @cached_property
    def best(self) -> str:
        return next((name for name, gain in self._gains.items() if gain.is_clear), STATIC)

    @property
    def close(self) -> list[str]:
        """Methods that are not clearly behind the best one."""
        others = [name for name in self._gains if name != self.best]
        return [name for name in others if not self.over(self.best, name).is_clear]

    @cached_property
    def table(self) -> pd.DataFrame:
        lines = [self._line(self._fit(name), gain) for name, gain in self._gains.items()]
        lines += [(one.name, one.estimator, *[np.nan] * 6, "", *[np.nan] * 3, one.why) for one in self.failed]
        return pd.DataFrame(lines, columns=COLUMNS)

    def _line(self, fit: MethodFit, gain: Gain) -> tuple[object, ...]:
        one_graph = self._with_one_graph(fit)
        behind = self.over(next(iter(self._gains)), fit.name)
        gains = (gain.value, gain.standard_error, behind.value, behind.standard_error)
        single = np.nan if one_graph is None else one_graph.value
        judged = (fit.score, *gains, single, reach_verdict(fit.fitted, fit.gain).model)
        note = _WORSE if gain.is_clear_loss else _FAR_OFF if _is_far_off(gain) else ""
        return (fit.name, fit.estimator, *judged, fit.n_edges, fit.seconds, fit.memory, note)

    @cached_property
    def agreement(self) -> pd.DataFrame:
        pairs = combinations([self._fit(name) for name in self._gains], 2)
        lines = [(one.name, two.name, *_agreement(one, two)) for one, two in pairs]
        return pd.DataFrame(lines, columns=["one", "other", "edges_in_common", "correlation"])

    @property
    def gain(self) -> ModelGain:
        """Of the best method: what held-out rows say of its movement."""
        return self._fit(self.best).gain

    @property
    def verdict(self) -> Verdict:
        return reach_verdict(self._fit(self.best).fitted, self.gain)

    @property
    def summary(self) -> str:
        parts = [self.ranking, self.verdict.paragraph, self._left_out()]
        return " ".join(part for part in parts if part)

    @property
    def ranking(self) -> str:
        """Which method predicts best, which are close to it, and how far their graphs agree."""
        parts = (self._first(), self._behind(), self._worse(), self._agreed())
        return " ".join(part for part in parts if part)

    def _first(self) -> str:
        static, gain = self._fit(STATIC), self._gains[self.best]
        of = f"Of {count(len(self.fits), 'method')}, on {len(static.left):,} rows that took no part in a fit"
        of += f"{taken_as(self.nodes)},"
        if self.best == STATIC:
            return f"{of} none predicts clearly better than {STATIC} (one graph for all)."
        ahead = [name for name, own in self._gains.items() if own.value > gain.value]
        text = f"{of} {self.best} predicts best: its squared error is {gain.side} that of {STATIC}."
        if ahead:
            text = (
                f"{of} {self.best} is the best of those that predict clearly better than {STATIC}: its "
                f"squared error is {gain.side} that of {STATIC}. {first_few(ahead, _NAMED)} "
                f"{agreed(len(ahead), 'is', 'are')} ahead of it, but not clearly better than {STATIC}."
            )
        one_graph = self._with_one_graph(self._fit(self.best))
        if one_graph is None:
            return text
        beyond = "what is beyond comes from a graph that moves"
        if self.verdict.model != BETTER:
            beyond = "whether what is beyond comes from a graph that moves cannot be told"
        if gain.value <= one_graph.value:
            beyond = f"{self.best} is ahead by these, not by a graph that moves"
        return (
            f"{text} That of one graph with the means and scales of {self.best} is {one_graph.side} that of "
            f"{STATIC}: {beyond}."
        )

    def _behind(self) -> str:
        close = self.close
        if not close:
            if len(self.fits) == 1:
                return ""
            by = "by more than two standard errors of the difference"
            return f"All others are clearly behind {self.best}, {by}."
        if self.best == STATIC:
            close = [name for name in close if not _is_far_off(self._gains[name])]
            return f"No clear difference to it: {first_few(close, _NAMED)}." if close else ""
        return f"Not clearly behind {agreed(len(close), 'is', 'are')} {first_few(close, _NAMED)}."

    def _worse(self) -> str:
        worse = [name for name, gain in self._gains.items() if gain.is_clear_loss]
        far = [name for name, gain in self._gains.items() if _is_far_off(gain) and name not in worse]
        by = [
            f"{name} (by {Gain(-self._gains[name].value, self._gains[name].standard_error)})"
            for name in worse
        ]
        texts = (
            f"Worse than {STATIC}, by more than two standard errors: {first_few(by, _NAMED)}.",
            f"{first_few(far, _NAMED)} {agreed(len(far), 'has', 'have')} more than twice the error of "
            f"{STATIC}, which rests on few rows.",
        )
        return " ".join(text for text, names in zip(texts, (worse, far), strict=True) if names)

    def _agreed(self) -> str:
        """How far the best one and those close to it have the same edges."""
        near = [self.best, *self.close]
        empty = [name for name in near if not self._fit(name).graph.any()]
        text = f"No edge at all: {first_few(empty, _NAMED)}." if empty else ""
        near = [name for name in near if name not in empty]
        table = self.agreement
        own = table[table["one"].isin(near) & table["other"].isin(near)]["edges_in_common"]
        if not len(own):
            return text
        low, middle, high = (f"{100 * share:.0f} %" for share in own.quantile([0, 0.5, 1]))
        span = low if low == high else f"{low} to {high}"
        half = f", half of these pairs {middle} or more" if low != high and len(own) > 2 else ""
        return f"Any two of these have {span} of their edges in common{half}. {text}".strip()

    def _left_out(self) -> str:
        names = [one.name for one in self.failed]
        return f"Not fitted: {', '.join(names)} (see the notes of the table)." if names else ""

    def __str__(self) -> str:
        return self.summary


def _is_far_off(gain: Gain) -> bool:
    """Worse by so much that it hardly matters whether errors of a few rows hide it."""
    return gain.value < _TWICE


def _agreement(one: MethodFit, two: MethodFit) -> tuple[float, float]:
    """Share of edges in common and correlation; NaN where no graph has an edge, or edges do not differ."""
    either, both = (one.graph | two.graph).sum(), (one.graph & two.graph).sum()
    a, b = (fit.partial.ravel().astype(np.float64) for fit in (one, two))
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(both / either) if either else np.nan, float(a @ b / norm) if norm > 0 else np.nan
