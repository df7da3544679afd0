"""What may be wrong with covariates, alone and against the nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from graphfield.check.codes import FEW_VALUES, few_different
from graphfield.check.corners import are_levels, cell_findings, corner_findings
from graphfield.check.far_within_levels import far_within_levels
from graphfield.check.findings import LEAK, Finding, drop_argument
from graphfield.check.levels import level_findings, still_nodes
from graphfield.check.relations import COPY_TOLERANCE, covariate_relation_findings, rank_correlation
from graphfield.check.values import (
    SKEWED,
    bad_dates,
    far_out_values,
    missing_codes,
    standard_units,
    value_findings,
)
from graphfield.data.dates import are_number_dates, is_date, to_days
from graphfield.data.frames import Frame
from graphfield.data.identifiers import has_distinct_numbers, has_rising_numbers
from graphfield.data.level_text import as_text, is_categorical
from graphfield.data.two_numbers import level_text
from graphfield.messages import Argument, Message

# Above this rank correlation a covariate is nearly a function of a node; above this share of its variance a
# node is determined by a covariate.
LEAK_CORRELATION, LEAK_SHARE = 0.95, 0.98
# Above this rank correlation two covariates are nearly the same.
SAME_COVARIATES = 0.98
# A rank correlation, or a share, with gaps filled in below which columns are not compared without them.
_WORTH_A_LOOK = 0.3
# Bins of a numeric covariate, and rows per bin at least, for the share of a node that it determines.
_BINS, _ROWS_PER_BIN = 50, 20
# Whole numbers up to this under such a name go round: hour 23 is followed by 0.
_CYCLE_NAME = re.compile(
    r"(^|[_\W])(month|hour|weekday|wday|dow|day_?of_?week|season|quarter|mon|hr)($|[_\W])", re.IGNORECASE
)
_YEAR_NAME = re.compile(r"(^|[_\W])(day_?of_?(the_?)?year|yday|doy)($|[_\W])", re.IGNORECASE)
_LONGEST_CYCLE, _LONGEST_YEAR, _LEAST_YEAR = 31, 366, 330


def covariate_findings(
    Z: Frame,
    bad: pd.DataFrame,
    nodes: pd.DataFrame,
    bad_nodes: pd.DataFrame,
    rows: NDArray[np.intp],
    pooled: dict[str, list[str]],
    labels: pd.Series | None,
    coded: Collection[float] = (),
) -> Iterator[Finding]:
    """Findings about the covariates; ``nodes`` are numbers, filled where bad, ``rows`` those to look at.

    ``labels`` are the groups of the rows, ``coded`` numbers that stand for "missing" in some column.
    """
    whole: dict[str, NDArray[np.float64]] = {}
    numbers: dict[str, NDArray[np.float64]] = {}
    codes: dict[str, NDArray[np.intp]] = {}
    levels: dict[str, NDArray[np.object_]] = {}
    seen = nodes.mask(bad_nodes[list(nodes.columns)].to_numpy(dtype=bool))
    for name in Z.names:
        gaps = bad[name].to_numpy()
        present = Z.values[name][~gaps]
        if present.nunique() < 2:
            yield from _constant(name, present, len(Z.names))
            continue
        if is_categorical(present, name):
            dates = list(bad_dates(Z.values[name].where(~gaps)))
            own = None if labels is None else labels[~gaps]
            yield from dates or level_findings(name, present, pooled.get(name, []), own)
            level = pd.factorize(as_text(Z.values[name]))[0]
            codes[name] = np.where(gaps, -1, level)[rows]
            text = pd.Series(as_text(Z.values[name])).where(~gaps, None)
            yield from still_nodes(name, text.to_numpy(), seen)
            yield from far_within_levels(name, text.to_numpy(dtype=object), seen)
            levels[name] = text.to_numpy(dtype=object)[rows]
        else:
            whole[name] = filled_numbers(Z.values[name], gaps)
            numbers[name] = whole[name][rows]
            if are_levels(numbers[name]) and not is_date(present):
                levels[name] = np.array([level_text(value) for value in numbers[name]], dtype=object)
                levels[name][gaps[rows]] = None
            yield from _code_findings(name, present)
            yield from _identifier(name, present)
    plain = [name for name in whole if not is_date(Z.values[name])]
    if plain:
        values = np.where(bad[plain], np.nan, np.column_stack([whole[name] for name in plain]))
        yield from value_findings(values, np.array(plain, dtype=object), "covariate", coded)
        for name, own in zip(plain, values.T, strict=True):
            yield from _skewed(name, own[~np.isnan(own)], coded)
    known = {name: ~bad[name].to_numpy()[rows] for name in numbers}
    same = list(_same_covariates(numbers, known, codes))
    yield from same
    if numbers:
        complete = np.all(list(known.values()), axis=0)
        whole_rows = {name: own[complete] for name, own in numbers.items()}
        yield from corner_findings(
            whole_rows, set(numbers) - set(plain), [frozenset(one.columns) for one in same]
        )
    yield from cell_findings(levels)
    two = {name: own.astype(np.float64) for name, own in codes.items() if np.ptp(own) == 1 and own.min() == 0}
    linear = {**numbers, **two}
    if linear:
        yield from covariate_relation_findings(list(linear), np.column_stack(list(linear.values())))
    measured = ~bad_nodes[list(nodes.columns)].to_numpy(dtype=bool)[rows]
    yield from _leaks(numbers, known, codes, nodes.iloc[rows], measured)


def _constant(name: str, present: pd.Series, n_covariates: int) -> Iterator[Finding]:
    if len(present) == 0:
        return  # told with the empty columns
    if n_covariates == 1:
        message = (
            f"Covariate {name!r}, the only one, has the same value in every row: no graph can depend on it."
        )
        advice = "Name another covariate."
    else:
        message = f"Covariate {name!r} has one value only ({_only(present)}) and is ignored."
        advice = "Leave it out."
    yield Finding("constant-covariate", (name,), message, advice)


def _only(present: pd.Series) -> str:
    return repr(str(as_text(present.iloc[:1])[0]))


def _code_findings(name: str, present: pd.Series) -> Iterator[Finding]:
    if is_date(present) or are_number_dates(present):
        return
    values = np.unique(present.to_numpy(dtype=np.float64))
    first = values[0]
    is_day = _YEAR_NAME.search(name) is not None
    longest = _LONGEST_YEAR if is_day else _LONGEST_CYCLE
    whole = np.array_equal(values, np.round(values)) and first >= 0 and values[-1] <= longest
    whole = whole and (values[-1] - first >= _LEAST_YEAR if is_day else first <= 1)  # else no ends meet
    if whole and (is_day or _CYCLE_NAME.search(name)):
        yield Finding(
            "cyclic-covariate",
            (name,),
            f"Covariate {name!r} is taken as a number, so that {first:g} and {values[-1]:g} are far apart, "
            "although the one may come right after the other.",
            "Leave it so where what happens near these ends is not the question: curves along it hold, but "
            "need not meet there. Its sine and cosine go round, but neither can be read without the other."
            if is_day
            else Message(
                "Take it as categories with {categories}.",
                categories=Argument("categories", [name], "from_table"),
            ),
        )
        return
    if (
        2 < len(values) <= FEW_VALUES
        and first in (0, 1)
        and np.array_equal(values - first, np.arange(len(values)))
    ):
        yield Finding(
            "coded-category",
            (name,),
            f"Covariate {name!r} is taken as a number, but its values {first:g} to {values[-1]:g} may be "
            "codes of a category.",
            Message(
                "If so, use {categories}; a count or a scale is fine.",
                categories=Argument("categories", [name], "from_table"),
            ),
        )


def _identifier(name: str, present: pd.Series) -> Iterator[Finding]:
    """Whole numbers that never come up twice; in rising order they are a time, which may well matter."""
    if are_number_dates(present) or has_rising_numbers(present) or not has_distinct_numbers(present):
        return
    yield Finding(
        "identifier-covariate",
        (name,),
        f"Covariate {name!r} has a different whole number in every row, as identifiers do.",
        "Leave it out, unless it measures something.",
    )


def _skewed(name: str, values: NDArray[np.float64], coded: Collection[float]) -> Iterator[Finding]:
    """A number whose rows crowd at one end of its range; single values that look wrong are left aside."""
    known = values[
        ~np.isin(values, list(missing_codes(values, coded))) & ~far_out_values(values[:, None])[:, 0]
    ]
    if few_different(known):
        return
    skewness = float(np.mean(standard_units(known[:, None]) ** 3))
    if abs(skewness) <= SKEWED:
        return
    beyond = (known - (known.min() + known.max()) / 2) * skewness > 0
    yield Finding(
        "skewed-covariate",
        (name,),
        f"Covariate {name!r} is skewed (skewness {skewness:.1f}): {beyond.mean():.1%} of the rows lie in the "
        f"{'upper' if skewness > 0 else 'lower'} half of its range, and curves and slopes rest on these.",
        f"Take its {'logarithm' if skewness > 0 and known.min() > 0 else 'ranks'} instead, of which rows are "
        "spread more evenly.",
    )


def filled_numbers(column: pd.Series, gaps: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers, or dates in days, with the median in place of what is missing."""
    if is_date(column[~gaps]):
        values = to_days(column)
    else:
        values = column.astype(object).where(~gaps, np.nan).to_numpy(dtype=np.float64)
    return np.where(gaps, np.median(values[~gaps]), values)


def _both_known(
    values: NDArray[np.float64],
    known: NDArray[np.bool_],
    others: NDArray[np.float64],
    others_known: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Rank correlations of columns, of each pair over the rows that have both where these could matter."""
    ranked = rank_correlation(values, others)
    gaps = np.logical_or.outer(~known.all(axis=0), ~others_known.all(axis=0))
    for i, j in zip(*np.nonzero(gaps & (np.abs(ranked) > _WORTH_A_LOOK)), strict=True):
        both = known[:, i] & others_known[:, j]
        if both.sum() >= _ROWS_PER_BIN:
            ranked[i, j] = rank_correlation(values[both, i : i + 1], others[both, j : j + 1])[0, 0]
    return ranked


def _same_covariates(
    numbers: dict[str, NDArray[np.float64]],
    known: dict[str, NDArray[np.bool_]],
    codes: dict[str, NDArray[np.intp]],
) -> Iterator[Finding]:
    pairs = []
    if len(numbers) > 1:
        names = list(numbers)
        values, there = np.column_stack(list(numbers.values())), np.column_stack(list(known.values()))
        correlation = _both_known(values, there, values, there)
        for i, j in zip(*np.nonzero(np.triu(np.abs(correlation) > SAME_COVARIATES, 1)), strict=True):
            pairs.append((names[i], names[j], f"rank correlation {correlation[i, j]:.3f}"))
    for one, other in combinations(codes, 2):
        together = pd.Series(codes[one]).groupby([codes[one], codes[other]]).ngroups
        if together == len(np.unique(codes[one])) == len(np.unique(codes[other])):
            pairs.append((one, other, "the same categories under other names"))
    for one, other, why in pairs:
        yield Finding(
            "same-covariates",
            (one, other),
            f"Covariates {one!r} and {other!r} are nearly the same ({why}).",
            "Keep one of them: which of the two the graph depends on cannot be told.",
        )


def _leaks(
    numbers: dict[str, NDArray[np.float64]],
    known: dict[str, NDArray[np.bool_]],
    codes: dict[str, NDArray[np.intp]],
    nodes: pd.DataFrame,
    measured: NDArray[np.bool_],
) -> Iterator[Finding]:
    """Covariates that are (nearly) a node, and nodes that are (nearly) a function of a covariate."""
    values = nodes.to_numpy()
    if values.size == 0:
        return
    names = list(nodes.columns)
    ranked = np.empty((0, len(names)))
    if numbers:
        columns, there = np.column_stack(list(numbers.values())), np.column_stack(list(known.values()))
        ranked = _both_known(columns, there, values, measured)
    for i, name in enumerate(numbers):
        close = np.flatnonzero(np.abs(ranked[i]) > LEAK_CORRELATION)
        for j in close:
            both = known[name] & measured[:, j]
            how = _likeness(numbers[name][both], values[both, j], f"node {names[j]!r}", ranked[i, j])
            yield _leak(name, names[j], f"Covariate {name!r} {how}")
        bins = np.where(known[name], _bins(numbers[name]), -1)
        share = _determined_where_known(bins, values, measured)
        for j in np.flatnonzero(share > LEAK_SHARE):
            if j not in close:
                how = f"is determined by covariate {name!r} ({share[j]:.1%} of its variance)"
                yield _leak(name, names[j], f"Node {names[j]!r} {how}")
    yield from _follow_nodes(numbers, nodes, measured, ranked)
    for name, own in codes.items():
        share = _determined_where_known(own, values, measured)
        for j in np.flatnonzero(share > LEAK_SHARE):
            how = f"is determined by covariate {name!r} ({share[j]:.1%} of its variance)"
            yield _leak(name, names[j], f"Node {names[j]!r} {how}")


def _follow_nodes(
    numbers: dict[str, NDArray[np.float64]],
    nodes: pd.DataFrame,
    measured: NDArray[np.bool_],
    ranked: NDArray[np.float64],
) -> Iterator[Finding]:
    """Covariates that are functions of a node with turns, which rank correlations do not see."""
    many = [i for i, own in enumerate(numbers.values()) if len(np.unique(own)) > _BINS]
    if not many:
        return
    names, some = list(numbers), slice(None, None, max(1, len(nodes) // (2 * _BINS * _ROWS_PER_BIN)))
    values, there = nodes.to_numpy()[some], measured[some]
    ranks = rankdata(np.column_stack(list(numbers.values()))[some, many], axis=0)
    for j, node in enumerate(nodes.columns):
        share = _determined(np.where(there[:, j], _bins(values[:, j]), -1), ranks)
        for place in np.flatnonzero(share > LEAK_SHARE):
            i = many[place]
            if abs(ranked[i, j]) <= LEAK_CORRELATION:
                how = f"is determined by node {node!r} ({share[place]:.1%} of the variance of its ranks)"
                yield _leak(names[i], node, f"Covariate {names[i]!r} {how}")


def _likeness(
    values: NDArray[np.float64], others: NDArray[np.float64], other: str, correlation: float
) -> str:
    if np.array_equal(values, others):
        return f"is the same as {other}"
    if abs(np.corrcoef(values, others)[0, 1]) > 1 - COPY_TOLERANCE:
        return f"is the same as {other} up to scale"
    return f"is nearly a function of {other} (rank correlation {correlation:.3f})"


def _leak(covariate: str, node: str, message: str) -> Finding:
    return Finding(
        LEAK,
        (covariate, node),
        f"{message}.",
        Message(
            "Leave one of the two out ({drop} for the node): a graph given a covariate cannot show edges of "
            "what the covariate says already.",
            drop=drop_argument([node]),
        ),
    )


def _bins(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Bins of about equal numbers of rows, or the values themselves where these are few.

    Too few rows make one bin, which determines nothing.
    """
    n_bins = min(_BINS, len(values) // _ROWS_PER_BIN)
    if n_bins < 2:
        return np.zeros(len(values), dtype=np.intp)
    distinct = np.unique(values)
    if len(distinct) <= n_bins:
        return np.searchsorted(distinct, values)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right")


def _determined_where_known(
    codes: NDArray[np.intp], values: NDArray[np.float64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The share that codes determine of each node, over the rows that have it where these could matter."""
    share = _determined(codes, values)
    for j in np.flatnonzero(~known.all(axis=0) & (share > _WORTH_A_LOOK)):
        share[j] = _determined(np.where(known[:, j], codes, -1), values[:, j : j + 1])[0]
    return share


def _determined(codes: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of each node's variance between the codes, rows without a code left out."""
    known = codes >= 0
    level, sizes = np.unique(codes[known], return_inverse=True, return_counts=True)[1:]
    n = int(known.sum())
    if n < 2 or len(sizes) < 2 or len(sizes) * _ROWS_PER_BIN > n:
        return np.zeros(values.shape[1])
    kept = values[known] - values[known].mean(axis=0)
    total = np.square(kept).sum(axis=0)
    order = np.argsort(level, kind="stable")
    sums = np.add.reduceat(kept[order], np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=0)
    between = (np.square(sums) / sizes[:, None]).sum(axis=0)
    return np.divide(between, total, out=np.zeros_like(total), where=total > 0)
