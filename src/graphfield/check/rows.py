"""What may be wrong with rows: copies, subjects, groups, order in time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from graphfield.check.copied_rows import copied_rows, repeated_nodes
from graphfield.check.covariates import filled_numbers
from graphfield.check.findings import SERIES, SORTED, Finding, drop_argument
from graphfield.check.nodes import NO_NODE
from graphfield.check.relations import rank_correlation
from graphfield.data.dates import are_number_dates, is_date
from graphfield.data.frames import Frame
from graphfield.data.group_levels import levels_in_units
from graphfield.data.identifiers import has_distinct_numbers
from graphfield.data.level_text import as_text, is_categorical
from graphfield.exceptions import agreed, count, listing, named
from graphfield.messages import Argument, Message

# Fewer groups than this leave held-out scores and standard errors to a handful of subjects.
FEW_GROUPS = 20
# Rows per subject, on average, from which a column (or covariates that repeat) stands for subjects.
ROWS_PER_SUBJECT = 2.0
_FEWEST_SUBJECTS, _DISTINCT_NUMBERS = 10, 20
# A text with more than so many times the average number of rows per text is a place or a group of people.
_UNEVEN = 10
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
# Rows per value of a covariate, on average, from which means at each value leave what varies within them.
_ROWS_PER_VALUE = 20
_TENTHS = 10
_ORDER_ROWS, _ORDER_NODES, _ORDER_LEVELS, _ORDER_LAGS = 20_000, 40, 100, 50
_SUBJECT_NAME = re.compile(
    r"(^|[_\W])(id|ids|subject|subj|sub|patient|person|participant|individual|animal|mouse|unit|household)"
    r"([_\W]?(id|no|nr|number|code))?($|[_\W])|[a-z](Id|ID)$",
    re.IGNORECASE,
)


def missing_group_findings(labels: pd.Series | None) -> Iterator[Finding]:
    gaps = 0 if labels is None else int(labels.isna().sum())
    if labels is not None and gaps:
        name = str(labels.name)
        yield Finding(
            "missing-groups",
            (name,),
            f"Group {name!r} is missing in {count(gaps, 'row')}; fit refuses them.",
            "Fill in the labels, or leave these rows out.",
        )


def group_findings(labels: pd.Series | None) -> Iterator[Finding]:
    if labels is None:
        return
    name, sizes = str(labels.name), labels.value_counts()
    if len(sizes) and sizes.max() == 1:
        yield Finding(
            "groups-of-one",
            (name,),
            f"Every row has its own value of {name!r}, so the groups keep nothing together.",
            "Leave the group out, or name the column that repeats for rows of one subject.",
        )
    elif len(sizes) < FEW_GROUPS:
        yield Finding(
            "few-groups",
            (name,),
            f"{name!r} has {count(len(sizes), 'group')} only; held-out scores rest on a few of them.",
            f"With fewer than {FEW_GROUPS} groups, take what the model says about covariates with caution.",
        )


def row_findings(
    X: Frame,
    Z: Frame,
    bad_x: pd.DataFrame,
    bad_z: pd.DataFrame,
    nodes: pd.DataFrame,
    labels: pd.Series | None,
    time: pd.Series | None,
    rest: pd.DataFrame,
    identifiers: Collection[str] = (),
    leaks: Iterable[tuple[str, ...]] = (),
) -> Iterator[Finding]:
    """Copied rows, and rows that are not independent although nobody said so.

    Nodes that are ``identifiers`` follow each other whatever the rows are, and so do those that a covariate
    says in ``leaks`` (covariate, node).
    """
    n_rows = len(X.values)
    seen = nodes.mask(bad_x[list(nodes.columns)].to_numpy())
    moments = [] if time is None else [time]
    moments += [rest[name] for name in rest.columns if is_date(rest[name])]
    copies = list(copied_rows(nodes, Z, bad_x, moments, grouped=labels is not None))
    yield from copies
    if labels is not None:
        yield from _nodes_of_groups(seen, labels)
        yield from _level_findings(nodes, Z, bad_z, labels)
        return
    subjects = [name for name in rest.columns if _identifies_subjects(rest[name])]
    if subjects:
        name = subjects[0]
        yield Finding(
            "repeated-subjects",
            tuple(subjects),
            f"Column {name!r} is not used and has {rest[name].nunique():,} different values in {n_rows:,} "
            "rows: it may be a subject with several rows each.",
            Message(
                "If so, name it as the group ({group}), so that no subject is on both sides of a split: else "
                "standard errors and p-values are too small.",
                group=Argument("group", name),
            ),
        )
        return
    if _covariates_repeat(Z, n_rows):
        yield Finding(
            "repeated-subjects",
            tuple(Z.names),
            "The covariates are the same in many rows one after the other: rows look like several "
            "measurements of one subject or one place.",
            Message(
                "If so, {pass_groups}, so that none is on both sides of a split: else standard errors and "
                "p-values are too small.",
                pass_groups=Message("pass the subject as groups", code="subject-as-groups"),
            ),
        )
        return
    if time is None:
        dates = [name for name in rest.columns if is_date(rest[name])]
        if dates:
            yield Finding(
                "unused-dates",
                tuple(dates),
                f"Column {dates[0]!r} holds dates and is not used.",
                Message(
                    "If rows follow each other in time, say so ({time}): the last rows are held out then.",
                    time=Argument("time", dates[0]),
                ),
            )
        n = min(len(nodes), _ORDER_ROWS)
        measured, design = seen.drop(columns=list(identifiers)), _design(Z, bad_z, n, rest)
        measured = _without_leaks(measured, Z, leaks)
        following = _following(measured, design)
        if _inflation(following) <= FOLLOWING_ROWS:
            yield from [] if copies else repeated_nodes(nodes, bad_x)
            return
        order = _sort_columns(seen.iloc[:n], Z, rest)
        left = measured.drop(columns=list(order), errors="ignore")
        unsorted = _following(left, np.hstack([design, *map(_any_shape, order.values())]))
        if _inflation(unsorted) <= FOLLOWING_ROWS:
            yield Finding(
                SORTED,
                tuple(order),
                f"Rows are sorted by {listing(order)}, and like those before them for that reason: with "
                f"{agreed(len(order), 'it', 'them')} taken out they are no series.",
                "Nothing is to be done.",
            )
        else:
            yield Finding(
                SERIES,
                (),
                f"Rows are like those before them (correlation {following[0]:.2f} with the last one, "
                f"{np.mean(following):.2f} with the last {len(following):,} on average, covariates taken "
                "out), as in a series over time.",
                Message(
                    "Name the column with the time ({time}) or blocks of rows as groups; {otherwise}.",
                    time=Argument("time", dates[0]) if dates else Message("time", code="time-column"),
                    otherwise=Message(
                        "else held-out rows are too easy and standard errors too small", code="row-blocks"
                    ),
                ),
            )


def _nodes_of_groups(nodes: pd.DataFrame, labels: pd.Series) -> Iterator[Finding]:
    """Nodes that vary between groups only; what is missing is not a number."""
    rows = nodes.groupby(labels.to_numpy())
    several = rows.count() > 1
    still = ((rows.min() == rows.max()) | ~several).all() & several.any() & (nodes.min() < nodes.max())
    names = list(nodes.columns[still.to_numpy()])
    if names:
        number = len(names)
        yield Finding(
            "node-of-groups",
            tuple(names),
            f"{named('Node', names)} never {agreed(number, 'varies', 'vary')} within a group of "
            f"{str(labels.name)!r}, so {agreed(number, 'it says', 'they say')} nothing of what goes on "
            "within groups.",
            Message(
                "{its} edges compare {groups}. For a graph of what varies within them, leave {them} out "
                "({drop}) or make {them} {covariate}.",
                its=agreed(number, "Its", "Their"),
                groups=count(rows.ngroups, "group"),
                them=agreed(number, "it", "them"),
                drop=drop_argument(names),
                covariate=agreed(number, "a covariate", "covariates"),
            ),
        )


def _level_findings(
    nodes: pd.DataFrame, Z: Frame, bad_z: pd.DataFrame, labels: pd.Series
) -> Iterator[Finding]:
    codes = pd.factorize(labels)[0]
    known = codes >= 0
    if not known.any():
        return
    check, *_ = levels_in_units(nodes.to_numpy()[known], _design(Z, bad_z, len(nodes))[known], codes[known])
    if check.prefers:
        yield Finding(
            "group-levels",
            (str(labels.name),),
            f"Groups of {str(labels.name)!r} have levels of their own, which make up {check.share:.0%} of a "
            "node's variance on average.",
            "fit subtracts them, so that graphs are about what varies within a group. For relations between "
            f"groups, fit the means of their rows.{check.words_of_fixed(list(nodes.columns))}",
        )


def _sort_columns(nodes: pd.DataFrame, Z: Frame, rest: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
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
    if not numeric or len(present) < 2 * _FEWEST_SUBJECTS or NO_NODE.fullmatch(name):
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


def _identifies_subjects(column: pd.Series) -> bool:
    """A text or whole-number column with several rows per value, called like one or with very many values."""
    if is_date(column.dropna()) or pd.api.types.is_bool_dtype(column):
        return False
    numeric = pd.api.types.is_numeric_dtype(column)
    if numeric and not np.equal(np.mod(column.dropna().to_numpy(dtype=np.float64), 1), 0).all():
        return False
    distinct = column.nunique()
    if distinct < _FEWEST_SUBJECTS or len(column) < ROWS_PER_SUBJECT * distinct:
        return False
    if _SUBJECT_NAME.search(str(column.name)) is not None:
        return True
    if numeric or distinct <= 5 * _FEWEST_SUBJECTS or pd.to_numeric(column, errors="coerce").notna().any():
        return False
    return bool(column.value_counts().iloc[0] <= _UNEVEN * len(column) / distinct)


def _covariates_repeat(Z: Frame, n_rows: int) -> bool:
    """Whether covariates of which one is measured finely stay the same for runs of rows."""
    columns = [pd.factorize(Z.values[name].astype(object))[0] for name in Z.names]
    fine = any(
        pd.api.types.is_float_dtype(Z.values[name]) and Z.values[name].nunique() > _DISTINCT_NUMBERS
        for name in Z.names
    )
    if not fine or n_rows < 2:
        return False
    codes = np.column_stack(columns)
    runs = 1 + int((codes[1:] != codes[:-1]).any(axis=1).sum())
    return runs >= _FEWEST_SUBJECTS and n_rows >= ROWS_PER_SUBJECT * runs


def _without_leaks(nodes: pd.DataFrame, Z: Frame, leaks: Iterable[tuple[str, ...]]) -> pd.DataFrame:
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


def _following(nodes: pd.DataFrame, features: NDArray[np.float64]) -> list[float]:
    """Correlations of rows with the next, the one after it and so on, as long as there are any to speak of.

    Means over nodes, linear effects of ``features`` taken out. What is missing, NaN, does not count: filled
    in, rows that lack the same would be like each other.
    """
    chosen = np.linspace(0, nodes.shape[1] - 1, min(nodes.shape[1], _ORDER_NODES)).round().astype(np.intp)
    n = len(features)
    if n <= 2 * features.shape[1] or n < 2 * _FEWEST_SUBJECTS or len(chosen) == 0:
        return []
    values = nodes.to_numpy()[:n, chosen]
    values = values[:, ~np.isnan(values).all(axis=0)]
    there = ~np.isnan(values)
    values = np.where(there, values, np.nanmedian(values, axis=0))
    left = np.where(there, values - features @ np.linalg.lstsq(features, values, rcond=None)[0], 0)
    size = np.sqrt(np.square(left).sum(axis=0) / there.sum(axis=0))
    left, there = left[:, size > 0] / size[size > 0], there[:, size > 0]
    found: list[float] = []
    for lag in range(1, min(n // 2, _ORDER_LAGS) if left.size else 0):
        pairs = left.size * (there[lag:] & there[:-lag]).mean()
        found.append(float(np.vdot(left[lag:], left[:-lag]) / max(1.0, pairs)))
        if found[-1] < 1 / np.sqrt(n):  # what one node has by chance
            break
    return found


def _inflation(following: list[float]) -> float:
    """By what products of two nodes vary more than those of independent rows (Bartlett, 1946)."""
    return 1 + 2 * float(np.square(following).sum())


def _design(Z: Frame, bad_z: pd.DataFrame, n: int, rest: pd.DataFrame | None = None) -> NDArray[np.float64]:
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
            design.append(_levels(column, n))
            continue
        design.append(_curve(filled_numbers(column, gaps)[:n]))
    labels = (
        [] if rest is None else [own for _, own in rest.items() if not pd.api.types.is_numeric_dtype(own)]
    )
    return np.hstack([*design, *(_levels(own, n) for own in labels)])


def _curve(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    numbers = (numbers - numbers.mean()) / (numbers.std() or 1.0)
    return np.column_stack([numbers, numbers**2])


def _any_shape(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns that leave little of an effect of these numbers, whatever its shape: ranks and their tenths."""
    ranks = (rankdata(numbers) - 0.5) / len(numbers)
    tenths = np.eye(_TENTHS)[(ranks * _TENTHS).astype(np.intp)]
    return np.column_stack([_curve(numbers), ranks, tenths[:, 1:]])


def _levels(column: pd.Series, n: int) -> NDArray[np.float64]:
    """Indicators of all levels but the first; none where there are too many."""
    codes = pd.factorize(as_text(column))[0][:n]
    if codes.max() >= min(_ORDER_LEVELS, n / 10):
        return np.empty((n, 0))
    return np.eye(codes.max() + 1)[codes][:, 1:]
