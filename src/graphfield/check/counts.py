"""Nodes that are parts of a whole, and counts of which many are zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.check.codes import few_different
from graphfield.check.findings import Finding
from graphfield.data.frames import KIND_MODELS
from graphfield.data.identifiers import is_whole
from graphfield.data.wide_counts import describe_wide, find_wide_counts
from graphfield.exceptions import agreed, count, first_few, listing, named
from graphfield.messages import Argument, Message

# So many nodes at least are parts of a whole if their sums vary by no more than this share of what sums of
# unrelated nodes would: by rounding.
_PARTS, _SAME_SUM = 3, 0.02
# Counts with at least this share of zeros are far from any bell.
_MANY_ZEROS = 0.2
# Log-ratios of fewer parts have many edges that their common level makes: with 1,500 rows and two true edges
# all of 28 pairs of 8 parts, 65 of 190 of 20 parts.
_MANY_PARTS = 30
# Counts whose variance is a larger multiple of their mean, be it for edges or covariates, have another law.
_MOST_SPREAD = 5.0
_NAMED = 5  # columns with their share in one message


def composition_findings(names: Sequence[str], values: NDArray[np.float64]) -> Iterator[Finding]:
    """Of complete rows (n, p)."""
    if len(names) < _PARTS or values.min() < 0:
        return
    sums = values.sum(axis=1)
    total = float(np.median(sums))
    if total > 0 and sums.std() <= _SAME_SUM * np.sqrt(values.var(axis=0).sum()):
        yield Finding(
            "parts-of-a-whole",
            tuple(names),
            f"In every row nodes {listing(names)} sum to {total:.4g}: they are parts of a whole, of which "
            "some must go down where others go up.",
            Message(
                "Model their log-ratios ({clr}, of neural models and AutoCGM): logarithms less the level of "
                "the row.{few}",
                clr=Argument("marginals", "clr"),
                few=_few_parts(len(names)),
            ),
        )


def _few_parts(n: int) -> str:
    """The level of the row is made of the parts: the fewer they are, the more they have in common by it."""
    if n >= _MANY_PARTS:
        return ""
    return f" Of only {n} parts many edges come from that level alone: do not read single ones."


def wide_count_findings(
    names: Sequence[str], values: NDArray[np.float64], counts: NDArray[np.bool_]
) -> Iterator[Finding]:
    """About nodes that are told to be counts, of complete rows (n, p)."""
    if not counts.any() or not len(values):
        return
    wide = find_wide_counts(names, np.maximum(values, 0), counts, values, np.arange(len(names)))
    if not wide:
        return
    yield Finding(
        "wide-counts",
        tuple(wide),
        f"{named('Count', wide)} {agreed(len(wide), 'varies', 'vary')} by more than counts of separate "
        f"events do: the variance given the other nodes is so many times the mean ({describe_wide(wide)}).",
        Message(
            "Tests of edges take {them} as {numbers} all the same; a model by the law of counts makes too "
            "much of {their} large values. Leave {them} out of {types}: neural models and AutoCGM have "
            "{their} logarithms ({logs}).",
            them=agreed(len(wide), "it", "them"),
            their=agreed(len(wide), "its", "their"),
            numbers=agreed(len(wide), "a number", "numbers"),
            types=Argument("node_types"),
            logs=Argument("marginals", "log1p"),
        ),
    )


def zero_findings(names: Sequence[str], columns: Sequence[NDArray[np.float64]]) -> Iterator[Finding]:
    """Of the values that are there in each column."""
    shares = {
        name: float((own == 0).mean()) for name, own in zip(names, columns, strict=True) if is_count(own)
    }
    many = {name: share for name, share in shares.items() if share >= _MANY_ZEROS}
    spread = {name: own.var() for name, own in zip(names, columns, strict=True) if name in many}
    means = {name: own.mean() for name, own in zip(names, columns, strict=True) if name in many}
    poisson = [name for name in many if spread[name] <= _MOST_SPREAD * means[name]]
    if not many:
        return
    worst = sorted(many, key=lambda name: -many[name])
    told = first_few([f"{name!r} {many[name]:.0%}" for name in worst], _NAMED)
    yield Finding(
        "zero-counts",
        tuple(many),
        f"{count(len(many), 'node')} {agreed(len(many), 'is', 'are')} counts with many zeros ({told}).",
        Message(
            "Neural models and AutoCGM have their logarithms ({logs}){ratios}{counts}.",
            logs=Argument("marginals", "log1p"),
            ratios=_log_ratios() if len(names) >= _MANY_PARTS else "",
            counts=_as_counts(poisson, every=len(poisson) == len(many)),
        ),
    )


def _log_ratios() -> Message:
    return Message(
        " or, where rows have totals of their own, as reads of a sample do, log-ratios ({clr})",
        clr=Argument("marginals", "clr"),
    )


def _as_counts(names: list[str], *, every: bool) -> Message | str:
    """How those whose variance may be that of counts can be told; the law of the others is another."""
    if not names:
        return ""
    return Message(
        "; {models} can take {which} as {counts} ({types})",
        models=KIND_MODELS,
        which="them" if every else listing(names, most=_NAMED),
        counts=agreed(len(names), "a count" if not every else "counts", "counts"),
        types=Argument("node_types"),
    )


def is_count(values: NDArray[np.float64]) -> bool:
    """Whether they are whole numbers from zero on, and not just a few."""
    return len(values) > 0 and values.min() >= 0 and is_whole(values) and not few_different(values)
