"""Gaps that go with a covariate: filled in, they look like edges that move with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from graphfield.check.findings import GAPS_FOLLOW, LOST_FOLLOW, Finding, drop_argument
from graphfield.check.gaps import rows_with_gaps
from graphfield.data.dates import is_date, to_days
from graphfield.data.frames import Frame
from graphfield.data.level_text import as_text
from graphfield.data.missing import bad_entries, leaves_enough
from graphfield.exceptions import agreed, listing
from graphfield.messages import Argument, Message, join_messages

# Shares of gaps differ from the whole by this much, as a root mean square over rows (a fifth between two
# halves of the rows), and so clearly, allowing for all nodes and covariates: correlations lose about the
# share of values that was filled in.
_APART, _LEVEL = 0.1, 0.01
# Shares of rows that are lost at two places of a covariate, which are this far apart, are told, and which
# nodes cost them where so many rows are left without these.
_LOST, _NEARLY_ALL = 0.15, 0.95
_STRETCHES = 5  # into which the values of a number are cut, as many rows in each
_NAMED = 4
_TINY = 1e-12


@dataclass(frozen=True)
class Place:
    """A level of a covariate or a stretch of its values: rows, those without a value, those without gaps."""

    words: str
    rows: int
    gaps: int
    complete: int

    @property
    def share(self) -> float:
        return self.gaps / self.rows


@dataclass(frozen=True)
class GapRelation:
    """Nodes whose gaps go with a covariate, clearest first; where most and least of the first is missing."""

    covariate: str
    nodes: tuple[str, ...]
    most: Place
    least: Place

    def __str__(self) -> str:
        also = f"; so do those of {listing(self.nodes[1:], most=_NAMED)}" if len(self.nodes) > 1 else ""
        return (
            f"Gaps of {self.nodes[0]!r} go with {self.covariate!r} ({self.most.gaps:,} of {self.most.rows:,} "
            f"values are missing where it is {self.most.words}, {self.least.gaps:,} of {self.least.rows:,} "
            f"where it is {self.least.words}){also}"
        )


def gap_relations(
    Z: Frame, bad_x: pd.DataFrame, bad_z: pd.DataFrame, apart: float = _APART
) -> list[GapRelation]:
    """Covariates that tell where nodes have no value, clearest first."""
    names = [str(name) for name in bad_x.columns if bad_x[name].any() and not bad_x[name].all()]
    gaps, complete = bad_x[names].to_numpy(dtype=np.float64), ~rows_with_gaps(bad_x, bad_z)
    found = []
    for name in Z.names if names else ():
        known = ~bad_z[name].to_numpy()
        words, codes = _places(Z.values[name][known].reset_index(drop=True))
        if len(words) < 2:
            continue
        rows = np.bincount(codes)
        missing = np.array([gaps[known][codes == place].sum(axis=0) for place in range(len(words))])
        share = missing.sum(axis=0) / len(codes)
        beyond = (missing / rows[:, None] - share) * np.sqrt(rows)[:, None]  # (place, node)
        squares = np.square(beyond).sum(axis=0)
        by_chance = chi2.sf(squares / np.maximum(share * (1 - share), _TINY), len(words) - 1)
        clear = (np.sqrt(squares / len(codes)) > apart) & (by_chance * gaps.shape[1] * len(Z.names) <= _LEVEL)
        own = [j for j in np.argsort(-squares, kind="stable") if clear[j]]
        if own:
            left = np.bincount(codes, complete[known])
            most, least = (
                Place(words[i], int(rows[i]), int(missing[i, own[0]]), int(left[i]))
                for i in (beyond[:, own[0]].argmax(), beyond[:, own[0]].argmin())
            )
            relation = GapRelation(name, tuple(names[j] for j in own), most, least)
            found.append((squares[own[0]] / len(codes), relation))
    return [relation for _, relation in sorted(found, key=lambda one: -one[0])]


def _places(present: pd.Series) -> tuple[list[str], NDArray[np.intp]]:
    """Levels of a covariate, or stretches of a number or a date, in words; and that of every row."""
    dates = is_date(present)
    number = dates or (pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_bool_dtype(present))
    if not number or present.nunique() <= _STRETCHES:
        codes, levels = pd.factorize(pd.Series(as_text(present)), sort=True)
        return [repr(str(level)) for level in levels], codes
    values = to_days(present) if dates else present.to_numpy(dtype=np.float64)
    inner = np.unique(np.quantile(values, np.linspace(0, 1, _STRETCHES + 1)[1:-1]))
    codes = np.unique(np.searchsorted(inner, values, side="left"), return_inverse=True)[1]
    shown = present if dates else pd.Series(values)
    ends = [(shown[codes == one].min(), shown[codes == one].max()) for one in range(codes.max() + 1)]
    return [f"{_end(low)} to {_end(high)}" for low, high in ends], codes


def _end(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def gap_findings(
    X: Frame, Z: Frame, bad_x: pd.DataFrame | None = None, bad_z: pd.DataFrame | None = None
) -> Iterator[Finding]:
    """What there is to say of gaps before they are filled in, by covariate."""
    bad_x = bad_entries(X) if bad_x is None else bad_x
    bad_z = bad_entries(Z) if bad_z is None else bad_z
    for one in gap_relations(Z, bad_x, bad_z):
        nodes = agreed(len(one.nodes), "that node", "such nodes")
        ask = "To ask how the graph moves with it, "
        drop = drop_argument(one.nodes)
        enough = all(leaves_enough(at.complete, at.rows, len(X.names)) for at in (one.most, one.least))
        yield Finding(
            GAPS_FOLLOW,
            (one.covariate, *one.nodes),
            f"{one}: filled in, they make edges of {nodes} weaker there, which looks like a graph that moves "
            f"with {one.covariate!r}.",
            Message(
                ask + "use complete rows ({complete}) or leave {nodes} out ({drop}).",
                complete=Argument("missing", "drop"),
                nodes=nodes,
                drop=drop,
            )
            if enough
            else Message(ask + "leave {nodes} out ({drop}).", nodes=nodes, drop=drop),
        )


def lost_row_findings(Z: Frame, bad_x: pd.DataFrame, bad_z: pd.DataFrame) -> Iterator[Finding]:
    """Rows with gaps, which "drop" leaves out, where a covariate tells which they are."""
    lost = rows_with_gaps(bad_x, bad_z)
    table = pd.DataFrame({"rows": lost})
    found = [
        one for one in gap_relations(Z, table, bad_z, apart=0.0) if one.most.share - one.least.share >= _LOST
    ]
    if not found:
        return
    first, others = found[0], [one.covariate for one in found[1:]]
    gaps = bad_x.sum().sort_values(ascending=False)
    gaps = gaps[gaps > 0]
    without: Message | str = ""
    for number in range(1, min(len(gaps), _NAMED) + 1):
        names = [str(name) for name in gaps.index[:number]]
        left = int((~rows_with_gaps(bad_x.drop(columns=gaps.index[:number]), bad_z)).sum())
        if left >= _NEARLY_ALL * len(lost) and len(bad_x.columns) - number >= 2:
            without = Message(
                " Without {nodes} ({drop}) {left:,} of {n:,} rows are left.",
                nodes=listing(names),
                drop=drop_argument(names),
                left=left,
                n=len(lost),
            )
            break
    also = f"; {listing(others)} {agreed(len(others), 'tells', 'tell')} as well" if others else ""
    yield Finding(
        LOST_FOLLOW,
        tuple(one.covariate for one in found),
        f"Rows with missing values, which complete rows leave out, go with {first.covariate!r}: "
        f"{first.most.gaps:,} of {first.most.rows:,} where it is {first.most.words}, {first.least.gaps:,} of "
        f"{first.least.rows:,} where it is {first.least.words}{also}.",
        Message("What is found holds for the rows that are left.{without}", without=without),
    )


def first_of(findings: Sequence[Finding]) -> Message:
    """The clearest of :func:`gap_findings` with its advice, and the other covariates by name."""
    others = [one.columns[0] for one in findings[1:]]
    also = [f"The same holds for {listing(others)}."] if others else []
    return join_messages(" ", [findings[0].message, findings[0].advice, *also])
