"""Where a model cannot run in a page: its graphs at a grid of covariate values, to go between."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.fields import GraphField
from graphfield.fields.program import Features, Inputs, Linear

# Covariates that the grid moves, and values of a number that it has.
MAX_AXES = 3
MAX_KNOTS, MIN_KNOTS = 15, 3


def frames_program(
    field: GraphField,
    typical: dict[str, Any],
    ranges: dict[str, list[Any]],
    order: list[str],
    budget: int,
) -> tuple[Linear, list[str]]:
    """Graphs on a grid, and the covariates that move it; the others stay at ``typical``.

    ``ranges`` has the two ends of a number or the levels of a category, ``order`` the covariates by what
    they do to the graph, most first. ``budget`` is how many numbers there may be.
    """
    p = field.n_nodes
    values = _grid(ranges, order, max(1, budget // (p * (p - 1))))
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    Z = pd.DataFrame([{**typical, **point} for point in points], columns=list(typical))
    strengths = np.concatenate([_directed(field, Z.iloc[[row]]) for row in range(len(Z))])
    numeric, categorical, axes = [], [], []
    for name, found in values.items():
        if isinstance(found[0], str):
            table = np.vstack([np.eye(len(found)), np.full(len(found), 1 / len(found))])
            categorical.append((name, tuple(found), table))
        else:
            numeric.append({"name": name, "mean": 0.0, "scale": 1.0, "low": found[0], "high": found[-1]})
    for name in [column["name"] for column in numeric] + [name for name, *_ in categorical]:
        is_level = isinstance(values[name][0], str)
        axes.append({"levels": len(values[name])} if is_level else {"knots": values[name]})
    features = Features(Inputs(numeric, categorical), [("grid", axes)])
    return Linear.of(features, strengths, np.ones(p)), list(values)


def _grid(ranges: dict[str, list[Any]], order: list[str], n_frames: int) -> dict[str, list[Any]]:
    """The values of as many covariates as there is room for, numbers first, as finely as there is room."""
    for n_axes in range(min(MAX_AXES, len(order)), 0, -1):
        chosen = sorted(order[:n_axes], key=lambda name: isinstance(ranges[name][0], str))
        levels = [len(ranges[name]) for name in chosen if isinstance(ranges[name][0], str)]
        n_numbers = n_axes - len(levels)
        knots = MAX_KNOTS
        while knots >= MIN_KNOTS and knots**n_numbers * int(np.prod(levels, initial=1)) > n_frames:
            knots -= 1
        if knots >= MIN_KNOTS:
            return {name: _values(ranges[name], knots) for name in chosen}
    return {}


def _values(span: list[Any], knots: int) -> list[Any]:
    return list(span) if isinstance(span[0], str) else np.linspace(span[0], span[1], knots).tolist()


def _directed(field: GraphField, Z: pd.DataFrame) -> NDArray[np.float64]:
    """Strengths of both directions of every pair, (n, p, p)."""
    return field.at(Z).directed.astype(np.float64)
