"""Rows in which a node does not follow from others, though it does in all the rest: often typing errors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphfield.check.findings import Finding
from graphfield.check.relations import find_totals
from graphfield.check.size import SPARE_ROWS
from graphfield.exceptions import agreed, count, listing
from graphfield.messages import Message, Row, join_messages

# Share of a node's variance that others explain in all rows, from which it is looked at more closely, and the
# least in all but a few.
_LEAST, _BUT_FOR_FEW = 0.6, 0.99
# Robust standard deviations of what is left beyond which a row is far off, and such rows at most.
_FAR, _MOST_ROWS, _MOST_SHARE = 10.0, 3, 0.015
_ROUNDS, _NAMED, _PARTS = 4, 3, 4


def broken_relation_findings(names: list[str], values: NDArray[np.float64]) -> Iterator[Finding]:
    """The node with the clearest such relation; where it is one of a sum, its parts have the same."""
    n, p = values.shape
    if p < 3 or n <= p + SPARE_ROWS:
        return
    found = []
    for one in find_totals(np.asarray(np.corrcoef(values.T)), n, _LEAST):
        if one.explained >= _BUT_FOR_FEW or len(one.parts) < 2:
            continue
        far = _far_rows(values[:, one.node], values[:, one.parts])
        if far.any():
            left = _left(values[:, one.node], values[:, one.parts], ~far)
            share = 1 - float(left[~far].var() / values[~far, one.node].var())
            if share >= _BUT_FOR_FEW:
                found.append((share, one, far))
    if not found:
        return
    share, one, far = max(found, key=lambda item: item[0])
    rows, node, parts = np.flatnonzero(far), names[one.node], [names[i] for i in sorted(one.parts)]
    shown = [
        Message("{value:.4g} in {row}", value=values[row, one.node], row=Row(int(row)))
        for row in rows[:_NAMED]
    ]
    yield Finding(
        "broken-relation",
        (node, *parts),
        Message(
            "But for {rows} ({shown}{more}), node {node!r} nearly follows from {parts} (R^2 {share:.3f}; "
            "{explained:.3f} with {them}).",
            rows=count(len(rows), "row"),
            shown=join_messages(", ", shown),
            more="" if len(rows) <= _NAMED else f", and {len(rows) - _NAMED:,} more",
            node=node,
            parts=listing(parts, most=_PARTS),
            share=share,
            explained=one.explained,
            them=agreed(len(rows), "it", "them"),
        ),
        Message(
            "Look at {them}: one wrong number is enough for edges that are not there. In the rest, the edges "
            "of such a node show the arithmetic.",
            them=agreed(len(rows), "it", "them"),
        ),
    )


def _far_rows(node: NDArray[np.float64], parts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows far from what the parts say, where these are few; none otherwise."""
    far = np.zeros(len(node), dtype=bool)
    for _ in range(_ROUNDS):
        left = _left(node, parts, ~far)
        spread = 1.4826 * float(np.median(np.abs(left[~far])))
        now = np.abs(left) > _FAR * spread if spread > 0 else np.zeros(len(node), dtype=bool)
        if now.sum() > max(_MOST_ROWS, _MOST_SHARE * len(node)):
            return np.zeros(len(node), dtype=bool)
        if (now == far).all():
            break
        far = now
    return far


def _left(
    node: NDArray[np.float64], parts: NDArray[np.float64], rows: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """What parts leave of a node, by the regression of some rows."""
    known = np.column_stack([np.ones(len(node)), parts])
    return node - known @ np.linalg.lstsq(known[rows], node[rows], rcond=None)[0]
