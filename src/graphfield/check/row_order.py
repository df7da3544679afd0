"""Rows that are like those before them: as in a series over time, or because somebody sorted them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.stats import rankdata

from graphfield.check.covariates import filled_numbers
from graphfield.check.nodes import NO_NODE
from graphfield.check.relations import rank_correlation
from graphfield.data.dates import are_number_dates
from graphfield.data.frames import Frame
from graphfield.data.identifiers import has_distinct_numbers
from graphfield.data.level_text import as_text, is_categorical

# From this factor on, by which products of two nodes vary more than if rows were independent, order matters:
# standard errors of edges are a tenth too small.
FOLLOWING_ROWS = 1.2
# Rows are sorted by a column where no more than this share of its steps goes back, and its rank correlation
# with the row number is this large: a few rows may be far out of place.
_STEPS_BACK, _IN_ORDER = 0.05, 0.9
# Gaps between sorted values differ from the next ones by half of their sum where values are drawn at random,
# and by less than this share of it in clocks, row numbers and smooth trends.
_UNEVEN_GAPS = 0.25
_YEARS = (1800, 2100)
# Of the order of rows, what nodes must explain if somebody sorted the rows by something that is made of them.
_BY_NODES = 0.85
# Rows that a stretch of one level needs at least to have a shape of its own.
_ROWS_PER_RUN = 40
# Rows per value of a covariate, on average, from which means at each value leave what varies within them.
_ROWS_PER_VALUE = 20
_TENTHS = 10
ORDER_ROWS, _ORDER_NODES, _ORDER_LEVELS, _ORDER_LAGS = 20_000, 40, 100, 50
_NODE_LEVELS = 10
_FEWEST_ROWS, _ROUNDING = 20, 1e-11


def sort_columns(nodes: pd.DataFrame, Z: Frame, rest: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Columns of numbers by which somebody sorted these rows, but for a few out of place."""
    found = {}
    for table in (nodes, Z.values, rest):
        for name, column in table.iloc[: len(nodes)].items():
            gaps = (column.isna() | column.isin([np.inf, -np.inf])).to_numpy()
            if _may_sort(str(name), column[~gaps]):
                values = filled_numbers(column, gaps)
                if _is_sorted(values[~gaps]):
                    found[str(name)] = values
    return found


def _may_sort(name: str, present: pd.Series) -> bool:
    """Whether a column measures something; times and identifiers rise by themselves."""
    numeric = pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_complex_dtype(present)
    if not numeric or len(present) < _FEWEST_ROWS or NO_NODE.fullmatch(name):
        return False
    years = present.between(*_YEARS).all() and (present % 1 == 0).all()
    return not (years or are_number_dates(present) or has_distinct_numbers(present))


def _is_sorted(values: NDArray[np.float64]) -> bool:
    """Whether values are in rising or falling order, as if drawn at random and then sorted."""
    steps = np.diff(values)
    if not steps.any() or min((steps < 0).mean(), (steps > 0).mean()) > _STEPS_BACK:
        return False
    numbers = np.arange(len(values), dtype=np.float64)
    if abs(rank_correlation(values[:, None], numbers[:, None]).item()) < _IN_ORDER:
        return False
    gaps = np.diff(np.sort(values))
    return bool(np.abs(np.diff(gaps)).sum() > _UNEVEN_GAPS * (gaps[1:] + gaps[:-1]).sum())


def without_leaks(nodes: pd.DataFrame, Z: Frame, leaks: Iterable[tuple[str, ...]]) -> pd.DataFrame:
    """Of nodes that a covariate says, what is left within its values where these repeat, if anything is."""
    nodes = nodes.copy()
    for covariate, name in leaks:
        codes = pd.factorize(Z.values[covariate])[0]
        if name not in nodes or len(np.unique(codes)) * _ROWS_PER_VALUE > len(codes):
            continue
        within = nodes[name].groupby(codes)
        if (within.max() == within.min()).all():
            nodes = nodes.drop(columns=name)
        else:
            nodes[name] -= within.transform("mean")
    return nodes


def following_rows(nodes: pd.DataFrame, features: NDArray[np.float64]) -> list[float]:
    """Correlations of rows with the next, the one after it and so on, as long as there are any to speak of.

    Means over nodes, linear effects of ``features`` taken out. What is missing, NaN, does not count: filled
    in, rows that lack the same would be like each other.
    """
    chosen = np.linspace(0, nodes.shape[1] - 1, min(nodes.shape[1], _ORDER_NODES)).round().astype(np.intp)
    n = len(features)
    if n <= 2 * features.shape[1] or n < _FEWEST_ROWS or len(chosen) == 0:
        return []
    values = nodes.to_numpy()[:n, chosen]
    values = values[:, ~np.isnan(values).all(axis=0)]
    there = ~np.isnan(values)
    values = np.where(there, values, np.nanmedian(values, axis=0))
    left = np.where(there, values - features @ np.linalg.lstsq(features, values, rcond=None)[0], 0)
    size = np.sqrt(np.square(left).sum(axis=0) / there.sum(axis=0))
    varies = size > _ROUNDING * np.abs(values).max(axis=0)  # not what is left where effects say it all
    left, there = left[:, varies] / size[varies], there[:, varies]
    found: list[float] = []
    for lag in range(1, min(n // 2, _ORDER_LAGS) if left.size else 0):
        pairs = left.size * (there[lag:] & there[:-lag]).mean()
        found.append(float(np.vdot(left[lag:], left[:-lag]) / max(1.0, pairs)))
        if found[-1] < 1 / np.sqrt(n):  # what one node has by chance
            break
    return found


def inflation(following: list[float]) -> float:
    """By what products of two nodes vary more than those of independent rows (Bartlett, 1946)."""
    return 1 + 2 * float(np.square(following).sum())


def effects_of_covariates(
    Z: Frame, bad_z: pd.DataFrame, n: int, rest: pd.DataFrame | None = None
) -> NDArray[np.float64]:
    """A one, numbers with their squares, levels where there are not too many: of the first n rows.

    Of columns that nobody uses, ``rest``, texts: rows may be sorted by such a label.
    """
    design = [np.ones((n, 1))]
    for name in Z.names:
        gaps = bad_z[name].to_numpy()
        column, present = Z.values[name], Z.values[name][~gaps]
        if len(present) == 0:
            continue
        if is_categorical(present, name):
            design.append(levels_of(column, n))
            continue
        design.append(_curve(filled_numbers(column, gaps)[:n]))
    labels = (
        [] if rest is None else [own for _, own in rest.items() if not pd.api.types.is_numeric_dtype(own)]
    )
    return np.hstack([*design, *(levels_of(own, n) for own in labels)])


def _curve(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    numbers = (numbers - numbers.mean()) / (numbers.std() or 1.0)
    return np.column_stack([numbers, numbers**2])


def any_shape(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns that leave little of an effect of these numbers, whatever its shape: ranks and their tenths."""
    ranks = (rankdata(numbers) - 0.5) / len(numbers)
    tenths = np.eye(_TENTHS)[(ranks * _TENTHS).astype(np.intp)]
    return np.column_stack([_curve(numbers), ranks, tenths[:, 1:]])


def levels_of(column: pd.Series, n: int) -> NDArray[np.float64]:
    """Indicators of all levels but the first; none where there are too many."""
    codes = pd.factorize(as_text(column))[0][:n]
    if codes.max() >= min(_ORDER_LEVELS, n / 10):
        return np.empty((n, 0))
    return np.eye(codes.max() + 1)[codes][:, 1:]


def indicators_of_levels(X: Frame, bad_x: pd.DataFrame, numbers: Iterable[Any]) -> pd.DataFrame:
    """Of nodes that are no ``numbers`` but have few levels; what is missing is NaN."""
    found = {}
    for name in sorted({*X.names} - {*numbers}):
        gaps, column = bad_x[name].to_numpy(), X.values[name]
        if gaps.all() or not is_categorical(column[~gaps], name) or column.nunique() > _NODE_LEVELS:
            continue
        for level, own in enumerate(levels_of(column, len(gaps)).T, 1):
            found[f"{name} {level}"] = np.where(gaps, np.nan, own)
    return pd.DataFrame(found, index=range(len(bad_x)))


def is_sorted_by_nodes(nodes: pd.DataFrame, Z: Frame, bad_z: pd.DataFrame, n: int) -> bool:
    """Whether the first n rows stand in an order that is made of the nodes, and beyond it are no series.

    As when companies are sorted by their size, or animals of each sex by their length. A stretch of rows with
    the same levels counts by itself. All is done with ranks: the ends of a sorted table are far out.
    """
    runs = _runs_of_levels(Z, bad_z, n)
    each = [np.flatnonzero(runs == run) for run in range(runs.max() + 1)]
    places = [np.arange(len(rows), dtype=np.float64) for rows in each]
    along = block_diag(*(np.column_stack([np.ones(len(place)), any_shape(place)]) for place in places))
    share = np.concatenate([(place + 0.5) / len(place) for place in places])
    ranks = nodes.iloc[:n].rank(pct=True)
    if inflation(following_rows(ranks, along)) > FOLLOWING_ROWS:
        return False
    shapes = [any_shape(ranks[name].fillna(0.5).to_numpy()) for name in ranks]
    known = np.hstack([np.eye(len(each))[runs], *shapes])
    if n <= 2 * known.shape[1]:
        return False
    left = share - known @ np.linalg.lstsq(known, share, rcond=None)[0]
    return bool(left.var() < (1 - _BY_NODES) * share.var())


def _runs_of_levels(Z: Frame, bad_z: pd.DataFrame, n: int) -> NDArray[np.intp]:
    """Stretches of rows with the same levels, numbered; one where they are short."""
    changes = np.zeros(n, dtype=bool)
    for name in Z.names:
        if is_categorical(Z.values[name][~bad_z[name].to_numpy()], name):
            codes = pd.factorize(as_text(Z.values[name]))[0][:n]
            changes |= np.diff(codes, prepend=codes[:1]) != 0
    runs = np.cumsum(changes)
    return runs if (np.bincount(runs) >= _ROWS_PER_RUN).all() else np.zeros(n, dtype=np.intp)
