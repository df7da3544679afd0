"""Values that are ordinary over all rows, and far from all others of their level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import Finding
from graphfield.check.values import FAR, far_and_apart, far_out_values, robust_spread
from graphfield.exceptions import agreed, count, first_few
from graphfield.messages import Message, Row

# Rows of a level from which its others are known, and how many nodes are named.
_LEAST_ROWS, _NAMED = 30, 6
# Of the spread over all rows: in levels with less, what all rows hide is seen.
_HIDDEN = 2 / 3


def far_within_levels(name: str, levels: NDArray[np.object_], nodes: pd.DataFrame) -> Iterator[Finding]:
    """Few values of a node that are far from the rest of their level of covariate ``name``.

    What is missing is NaN, a missing level None. Values that are far from all rows are told elsewhere. One
    child among the heights of adults is such a value, or a row with a wrong level.
    """
    values = nodes.to_numpy(dtype=np.float64)
    if values.size == 0:
        return
    strange = np.zeros(values.shape, dtype=bool)
    centre = np.zeros(values.shape)
    for level in pd.unique(levels):
        rows = np.flatnonzero(levels == level) if level is not None else np.arange(0)
        if len(rows) < _LEAST_ROWS:
            continue
        held = np.flatnonzero((~np.isnan(values[rows])).sum(axis=0) >= _LEAST_ROWS)
        if len(held):
            own = np.ix_(rows, held)
            hidden = robust_spread(values[own]) < _HIDDEN * robust_spread(values[:, held])
            strange[own], centre[own] = far_and_apart(values[own]) & hidden, np.nanmedian(values[own], axis=0)
    strange &= ~far_out_values(values)
    found = [j for j in np.argsort(-strange.sum(axis=0), kind="stable") if strange[:, j].any()]
    if not found:
        return
    told = []
    for j in found:
        rows = np.flatnonzero(strange[:, j])
        worst = rows[np.argmax(np.abs(values[rows, j] - centre[rows, j]))]
        told.append(
            Message(
                "{node!r} ({several}{value:.4g} in {row}, where {level!r} has {middle:.4g})",
                node=str(nodes.columns[j]),
                several=agreed(len(rows), "", f"{len(rows):,}, such as "),
                value=values[worst, j],
                row=Row(int(worst)),
                level=str(levels[worst]),
                middle=centre[worst, j],
            )
        )
    total = int(strange.sum())
    yield Finding(
        "outliers-within-levels",
        (name, *(str(nodes.columns[j]) for j in found)),
        Message(
            "{values} {lie} {far} the median of {its} level of {name!r}, though not from that of all rows: "
            "{told}.",
            values=count(total, "value"),
            lie=agreed(total, "lies", "lie"),
            far=FAR,
            its=agreed(total, "its", "their"),
            name=name,
            told=first_few(told, _NAMED),
        ),
        "Look at these rows: a wrong level or a typing error makes, or hides, what differs between levels.",
    )
