"""What may be wrong with the levels of a categorical covariate."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import Finding
from graphfield.data.covariate_text import MANY_LEVELS, alike_levels
from graphfield.data.covariates import OTHER
from graphfield.data.level_text import as_text
from graphfield.data.rare_levels import rare_enough
from graphfield.data.text_numbers import NUMBER_WITH_UNIT
from graphfield.exceptions import agreed, count, first_few, listing
from graphfield.messages import Argument, Message

# A level with fewer rows than this says little about its graph.
RARE_LEVEL = 20
# A level that fewer groups have than this, of a covariate that groups have, is compared by a handful.
_FEW_GROUPS = 10
# Fewer rows per level than this, on average, and text identifies rows or subjects.
_ROWS_PER_LEVEL = 5
# Share of values that read as numbers or dates above which text was meant to hold them.
_MEANT = 0.8
_NAMED = 6
_A_GUESS = "from so few, a graph is a guess"


def level_findings(
    name: str, present: pd.Series, pooled: list[str], labels: pd.Series | None = None
) -> Iterator[Finding]:
    """Findings about a category without its missing entries; ``pooled`` are levels that are "other" now.

    ``labels`` are the groups of the rows.
    """
    text = pd.Series(as_text(present))
    counts = text.value_counts()
    levels = [str(level) for level in counts.index]
    meant = _meant_for(levels)
    if meant:
        yield Finding(
            f"text-{meant}",
            (name,),
            f"Covariate {name!r} is text that looks like {meant} (such as {levels[0]!r}) and is taken as a "
            f"category with {count(len(levels), 'level')}.",
            _HOW_TO_CONVERT[meant],
        )
        return
    if len(levels) > MANY_LEVELS and _ROWS_PER_LEVEL * len(levels) > len(present):
        yield Finding(
            "identifier-covariate",
            (name,),
            f"Covariate {name!r} has {count(len(levels), 'different text')} in "
            f"{count(len(present), 'row')}: it identifies rows or subjects and is no category.",
            Message("Leave it out, or make it the group ({group}).", group=Argument("group", name)),
        )
        return
    alike = alike_levels(counts.drop(OTHER) if pooled and OTHER in counts else counts)
    alike |= {OTHER: OTHER} if OTHER in counts else {}  # what was pooled is no spelling of a level
    yield from _spelling(name, counts, alike)
    sizes = counts.groupby([alike[level] for level in counts.index], sort=False).sum()
    yield from _rare_levels(name, sizes.sort_values(ascending=False, kind="stable"), pooled)
    if labels is not None:
        yield from _levels_of_few_groups(name, text.map(alike), labels.reset_index(drop=True))


def _spelling(name: str, counts: pd.Series, alike: dict[str, str]) -> Iterator[Finding]:
    odd = [level for level, other in alike.items() if level != other]
    if odd:
        parts = [
            f"{level!r} ({count(counts[level], 'row')}) beside {alike[level]!r} ({counts[alike[level]]:,})"
            for level in odd
        ]
        yield Finding(
            "level-spelling",
            (name,),
            f"Covariate {name!r} has levels that differ in blanks or capitals only: "
            f"{first_few(parts, _NAMED)}.",
            "Write them alike, without blanks at the ends: now each is a level of its own.",
        )


def _rare_levels(name: str, counts: pd.Series, pooled: list[str]) -> Iterator[Finding]:
    few = counts[counts < RARE_LEVEL]
    if not len(few):
        return
    if pooled and list(few.index) == [OTHER]:
        yield _small_pool(name, int(few.iloc[0]), pooled, counts.tolist())
        return
    shown = first_few([f"{level!r} {number}" for level, number in few.items()], _NAMED)
    merge = f"Merge {agreed(len(few), 'it with one that is', 'them with others that are')} alike in meaning"
    pool = Message(
        "Pool them into {other!r} with {rare}.", other=OTHER, rare=Argument("rare", RARE_LEVEL, "from_table")
    )
    yield Finding(
        "rare-category",
        (name,),
        f"Covariate {name!r} has {count(len(few), 'level')} with fewer than {RARE_LEVEL} rows: {shown}.",
        pool if _pooling_helps(few, len(counts)) else f"{merge}, or leave these rows out: {_A_GUESS}.",
    )


def _levels_of_few_groups(name: str, levels: pd.Series, labels: pd.Series) -> Iterator[Finding]:
    """Levels with many rows of few groups, where all rows of a group have one level."""
    rows = levels.groupby(labels)
    if rows.ngroups == len(levels) or rows.nunique().max() > 1:
        return
    counts, sizes = rows.first().value_counts(), levels.value_counts()
    few = counts[(counts < _FEW_GROUPS) & (sizes[counts.index] >= RARE_LEVEL)]
    if len(few):
        shown = first_few([f"{level!r} {number}" for level, number in few.items()], _NAMED)
        yield Finding(
            "level-of-few-groups",
            (name,),
            f"Covariate {name!r} never varies within a group of {str(labels.name)!r}, and "
            f"{count(len(few), 'level')} {agreed(len(few), 'has', 'have')} few of the "
            f"{count(rows.ngroups, 'group')}: {shown}.",
            "Comparisons with it rest on so many groups, however many rows these have.",
        )


def _small_pool(name: str, n_rows: int, pooled: list[str], sizes: list[int]) -> Finding:
    """Levels that are few even together: more of them help, where there are."""
    most = rare_enough(sizes, RARE_LEVEL)
    advice = f"Leave these rows out, or write for each of these levels the one it is most like: {_A_GUESS}."
    if most > RARE_LEVEL and sum(size >= most for size in sizes) > 1:
        rare = Argument("rare", most, "from_table")
        other = f"or write for each of these levels the one it is most like: {_A_GUESS}"
        advice = Message("Pool more levels with {rare}, {other}.", rare=rare, other=other)
    return Finding(
        "rare-category",
        (name,),
        f"Covariate {name!r}: even together, the pooled levels ({listing(pooled)}) have "
        f"{count(n_rows, 'row')} only.",
        advice,
    )


def _pooling_helps(few: pd.Series, n_levels: int) -> bool:
    """Whether the pool has enough rows, is not mostly one level, and leaves a level to differ from."""
    total = few.sum()
    return bool(n_levels > len(few) and total >= RARE_LEVEL and few.max() <= total / 2)


_HOW_TO_CONVERT = {
    "numbers": "Write a quantity as a plain number (12.5, without unit, percent or currency), the codes of a "
    "category as site-12.",
    "dates": "Write dates as 2020-03-01 or 01.03.2020 to have them taken as dates.",
}


def _meant_for(levels: list[str]) -> str | None:
    """Whether text was probably meant to hold numbers or dates; a few codes such as 01, 02 are fine."""
    if len(levels) <= MANY_LEVELS:
        return "dates" if len(levels) > 2 and _share_of_dates(levels) > _MEANT else None
    if pd.Series(levels).str.fullmatch(NUMBER_WITH_UNIT).mean() > _MEANT:
        return "numbers"
    return "dates" if _share_of_dates(levels) > _MEANT else None


def _share_of_dates(levels: list[str]) -> float:
    """How many read as a day of the calendar; at least two separators, so that 1.5 and A-3 are no dates."""
    text = pd.Series(levels)
    shaped = text.str.fullmatch(r"\d{1,4}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{1,4}([T ].*)?")
    if not shaped.any():
        return 0.0
    with warnings.catch_warnings(action="ignore"):  # pandas says that it guesses, which is all we want here
        return float(pd.to_datetime(text.where(shaped), errors="coerce", format="mixed").notna().mean())


def still_nodes(name: str, text: NDArray[np.object_], nodes: pd.DataFrame) -> Iterator[Finding]:
    """Nodes that vary, but not among the rows of some level: no edge of theirs can be seen there.

    ``text`` is the level of each row, None where there is none. What is missing of a node is NaN.
    """
    levels = pd.Series(text, index=nodes.index)
    rows = nodes.groupby(levels)
    ranges = (rows.max() - rows.min()).fillna(0)
    common = levels.value_counts()[ranges.index] >= RARE_LEVEL
    varies = (nodes.max() > nodes.min()).to_numpy()
    sizes = rows.count()
    still = [
        (str(level), str(node), bool(sizes.loc[level, node]))
        for level in ranges.index[common.to_numpy()]
        for node in nodes.columns[(ranges.loc[level] == 0).to_numpy() & varies]
    ]
    if not still:
        return
    shown = first_few(
        [f"{node!r} where it is {level!r}{'' if seen else ' (no value)'}" for level, node, seen in still],
        _NAMED,
    )
    yield Finding(
        "still-node",
        tuple(dict.fromkeys(node for _, node, _ in still)),
        f"Nodes never change at a level of {name!r}: {shown}. A model shows edges there all the same, "
        "taken over from other levels.",
        "Do not read edges of these nodes at these levels, or fit the rows of the other levels alone.",
    )
