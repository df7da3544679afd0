"""Nodes with few different values: answers on a scale, counts, or codes of a category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import Finding, drop_argument
from graphfield.check.orders import follow_an_order
from graphfield.data.frames import KIND_MODELS
from graphfield.data.identifiers import is_whole
from graphfield.exceptions import agreed, count, first_few, listing, named
from graphfield.messages import Argument, Message

# A node with at most so many different values is no measurement, and one with at most so many different
# whole numbers may be none (a cluster from 0 to 10, an item from 1 to 7) if they come up a few times each.
DISCRETE, FEW_VALUES, _TIMES = 5, 15, 4
# So many nodes with the same smallest and largest value are items of one questionnaire.
_ITEMS = 3
# Fewer answers than this are expected of an item that has none of them.
_RARE_ANSWERS = 10
_NAMED = 5  # columns with their values, or scales with their columns, in one message

Ends = tuple[float, float]


def few_different(values: NDArray[np.float64]) -> bool:
    """Whether a column without its codes for missing values has few different ones.

    >>> few_different(np.arange(300.0) % 11), few_different(np.arange(300.0) % 11 + 0.5)
    (True, False)
    """
    if len(np.unique(values[:1000])) > FEW_VALUES:
        return False
    distinct = len(np.unique(values))
    return distinct <= DISCRETE or (distinct <= min(FEW_VALUES, len(values) / _TIMES) and is_whole(values))


def code_findings(
    columns: Sequence[NDArray[np.float64]],
    names: Sequence[str],
    n_others: int,
    nodes: pd.DataFrame,
) -> Iterator[Finding]:
    """Findings about columns of :func:`few_different` values, beside ``n_others`` nodes with many.

    Several columns with the same range are items or counts. One that has no like may hold codes, which only
    the user can tell, unless the other ``nodes`` rise or fall along its numbers.
    """
    scales = _scales(columns, unlike=bool(n_others))
    items = {ends: [names[j] for j in own] for ends, own in scales.items()}
    if items:
        yield _items(items)
    single = [j for j in range(len(names)) if not any(j in own for own in scales.values())]
    pairs = [j for j in single if len(np.unique(columns[j])) == 2]
    if pairs:
        yield _yes_or_no([names[j] for j in pairs])
    codes = [j for j in single if j not in pairs and not follow_an_order(nodes, names[j])]
    if codes:
        yield _codes([names[j] for j in codes], [columns[j] for j in codes], beside_items=bool(items))


def _scales(columns: Sequence[NDArray[np.float64]], unlike: bool) -> dict[Ends, list[int]]:
    """Positions of items by the range of their scale.

    An item need not reach both ends of it, if answers beyond its own range are rare in the others. Where
    there is nothing that few-valued nodes could be ``unlike``, all of them are items.
    """
    ends = [(float(values.min()), float(values.max())) for values in columns]
    found = {own: [j for j, other in enumerate(ends) if other == own] for own in dict.fromkeys(ends)}
    scales = {own: items for own, items in found.items() if len(items) >= _ITEMS}
    if not scales and not unlike:
        return found
    alone = [j for own, items in found.items() if own not in scales for j in items]
    complete = {own: np.concatenate([columns[j] for j in items]) for own, items in scales.items()}
    for j in alone:
        low, high = ends[j]
        for own, items in scales.items():
            answers = complete[own]
            beyond = len(columns[j]) * ((answers < low) | (answers > high)).mean()
            if own[0] <= low and high <= own[1] and beyond < _RARE_ANSWERS:
                items.append(j)
                break
    return scales


def _items(scales: dict[Ends, list[str]]) -> Finding:
    nodes = [name for own in scales.values() for name in own]
    parts = [f"{low:g} to {high:g}: {listing(own)}" for (low, high), own in scales.items()]
    return Finding(
        "discrete-node",
        tuple(nodes),
        f"{count(len(nodes), 'node')} {agreed(len(nodes), 'has', 'have')} few different values, like answers "
        f"on a scale (Likert items), yes or no, or counts. {first_few(parts, _NAMED, '; ', 'scale')}.",
        Message(
            "Such nodes may stay: edges are between the numbers as they are, and come out weaker than those "
            "of what stands behind the answers. Say which are yes or no, counts or levels without an order "
            "({kinds}); one that holds codes of a category belongs among the covariates ({categories}).",
            kinds=Argument("node_types"),
            categories=Argument("categories"),
        ),
    )


def _yes_or_no(names: list[str]) -> Finding:
    number = len(names)
    return Finding(
        "discrete-node",
        tuple(names),
        f"{named('Node', names)} {agreed(number, 'has', 'have')} two values, as yes and no.",
        Message(
            "As numbers {they} may stay, with edges that come out weaker. {models} take {them} as yes or no, "
            "if told ({types}).",
            they=agreed(number, "it", "they"),
            them=agreed(number, "it", "them"),
            models=KIND_MODELS,
            types=Argument("node_types"),
        ),
    )


def _codes(names: list[str], columns: list[NDArray[np.float64]], *, beside_items: bool) -> Finding:
    number = len(names)
    unlike = ", too, but not on the scale of the items" if beside_items else ", unlike the other nodes"
    parts = [f"{name!r} ({_values(own)})" for name, own in zip(names, columns, strict=True)]
    asked = agreed(number, "a count, a rating, or codes", "counts, ratings, or codes")
    return Finding(
        "discrete-node",
        tuple(names),
        f"{agreed(number, 'Node', 'Nodes')} {first_few(parts, _NAMED)} {agreed(number, 'has', 'have')} few "
        f"different values{unlike}: {asked} of a category (a cluster, a batch, a site)? Codes have no order "
        "and mean nothing as numbers.",
        Message(
            "Make codes covariates ({covariates}, {categories}) or leave {them} out ({drop}). Levels and "
            "counts may be nodes of {models}, if these are told ({types}).",
            models=KIND_MODELS,
            types=Argument("node_types"),
            covariates=Argument("covariates"),
            categories=Argument("categories"),
            them=agreed(number, "it", "them"),
            drop=drop_argument(names),
        ),
    )


def _values(values: NDArray[np.float64]) -> str:
    distinct = np.unique(values)
    what = "whole number" if is_whole(distinct) else "value"
    return f"{count(len(distinct), what)}, {distinct[0]:g} to {distinct[-1]:g}"
