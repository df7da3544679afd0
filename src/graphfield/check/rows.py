"""What may be wrong with rows: copies, subjects, groups, order in time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.copied_rows import copied_rows, repeated_nodes
from graphfield.check.drifting import drift_findings
from graphfield.check.findings import SERIES, SORTED, Finding, drop_argument
from graphfield.check.neighbours import neighbour_findings
from graphfield.check.relations import new_relations
from graphfield.check.row_order import (
    FOLLOWING_ROWS,
    ORDER_ROWS,
    any_shape,
    effects_of_covariates,
    following_rows,
    indicators_of_levels,
    inflation,
    is_sorted_by_nodes,
    levels_of,
    sort_columns,
    without_leaks,
)
from graphfield.data.dates import is_date
from graphfield.data.frames import Frame
from graphfield.data.group_levels import levels_in_units
from graphfield.exceptions import agreed, count, first_few, listing, named
from graphfield.messages import Argument, Message

# Fewer groups than this leave held-out scores and standard errors to a handful of subjects.
FEW_GROUPS = 20
# Rows per subject, on average, from which a column (or covariates that repeat) stands for subjects.
ROWS_PER_SUBJECT = 2.0
_FEWEST_SUBJECTS, _DISTINCT_NUMBERS = 10, 20
# Share of the variance of a node between values of a text from which rows of one value are alike.
_ALIKE, _NAMED = 0.2, 3
# Groups whose means make a table of its own.
_ENOUGH_GROUPS = 80
# A text with more than so many times the average number of rows per text is a place or a group of people.
_UNEVEN = 10
_SUBJECT_NAME = re.compile(
    r"(^|[_\W])(id|ids|subject|subj|sub|patient|person|participant|individual|animal|mouse|unit|household)"
    r"([_\W]?(id|no|nr|number|code))?($|[_\W])|[a-z](Id|ID)$",
    re.IGNORECASE,
)


def missing_group_findings(labels: pd.Series | None, missing: str) -> Iterator[Finding]:
    """Rows without the label of a group, where these are not left out."""
    gaps = 0 if labels is None else int(labels.isna().sum())
    if labels is not None and gaps and missing != "drop":
        name = str(labels.name)
        yield Finding(
            "missing-groups",
            (name,),
            f"Group {name!r} is missing in {count(gaps, 'row')}; fit refuses them.",
            Message(
                "Fill in the labels, or use {drop} to leave these rows out.", drop=Argument("missing", "drop")
            ),
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
    seen = nodes.mask(bad_x[list(nodes.columns)].to_numpy(dtype=bool))
    moments = [] if time is None else [time]
    moments += [rest[name] for name in rest.columns if is_date(rest[name])]
    copies = list(copied_rows(nodes, Z, bad_x, moments, grouped=labels is not None))
    yield from copies
    if labels is not None:
        yield from _nodes_of_groups(seen, labels)
        yield from _level_findings(nodes, Z, bad_x, bad_z, labels)
        return
    subjects = find_subjects(rest, seen)
    if subjects:
        yield _repeated_subjects(subjects, rest, n_rows)
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
        yield from () if copies else neighbour_findings(seen, Z.values, rest)
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
        n = min(n_rows, ORDER_ROWS)
        levels, design = indicators_of_levels(X, bad_x, list(seen)), effects_of_covariates(Z, bad_z, n, rest)
        measured = pd.concat([seen.drop(columns=list(identifiers)), levels], axis=1)
        measured = without_leaks(measured, Z, leaks)
        following = following_rows(measured, design)
        if inflation(following) <= FOLLOWING_ROWS:
            sorting = _sorting_labels(measured, effects_of_covariates(Z, bad_z, n), rest)
            yield from [] if copies or sorting else repeated_nodes(nodes, bad_x)
            yield from map(_sorted_by_label, sorting)
            return
        order = sort_columns(seen.iloc[:n], Z, rest)
        left = measured.drop(columns=list(order), errors="ignore")
        unsorted = following_rows(left, np.hstack([design, *map(any_shape, order.values())]))
        if inflation(unsorted) <= FOLLOWING_ROWS:
            yield Finding(
                SORTED,
                tuple(order),
                f"Rows are sorted by {listing(order)}, and like those before them for that reason: with "
                f"{agreed(len(order), 'it', 'them')} taken out they are no series.",
                "Nothing is to be done.",
            )
        elif is_sorted_by_nodes(measured, Z, bad_z, n):
            yield Finding(
                SORTED,
                (),
                "Rows stand in an order that follows from the nodes, as if somebody had sorted them (by size "
                "for example), and are like those before them for that reason: beyond it they are no series.",
                Message(
                    "Nothing is to be done, unless they follow each other in time: then name its column "
                    "({time}).",
                    time=Argument("time", dates[0]) if dates else Message("time", code="time-column"),
                ),
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


def _sorting_labels(nodes: pd.DataFrame, design: NDArray[np.float64], rest: pd.DataFrame) -> list[str]:
    """The text among unused columns but for whose levels rows would be like those before them, if any is."""
    if inflation(following_rows(nodes, design)) <= FOLLOWING_ROWS:
        return []
    left = {
        str(name): inflation(following_rows(nodes, np.hstack([design, levels_of(column, len(design))])))
        for name, column in rest.items()
        if not pd.api.types.is_numeric_dtype(column)
    }
    best = min(left, key=left.__getitem__, default=None)
    return [] if best is None or left[best] > FOLLOWING_ROWS else [best]


def _sorted_by_label(name: str) -> Finding:
    return Finding(
        "sorted-by-label",
        (name,),
        f"Rows stand in the order of {name!r}, which is not used, and nodes differ between its levels: rows "
        "are like those before them for that reason.",
        Message(
            "Make it a covariate, or name it as the group ({group}): else what its levels have in common "
            "looks like edges, and counts as if rows were independent.",
            group=Argument("group", name),
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
    nodes: pd.DataFrame, Z: Frame, bad_x: pd.DataFrame, bad_z: pd.DataFrame, labels: pd.Series
) -> Iterator[Finding]:
    codes = pd.factorize(labels)[0]
    known = codes >= 0
    if not known.any() or nodes.shape[1] == 0:
        return
    values = nodes.to_numpy()[known]
    check, levels, units = levels_in_units(
        values, effects_of_covariates(Z, bad_z, len(nodes))[known], codes[known]
    )
    if check.prefers:
        names, between = list(nodes.columns), ""
        if check.n_groups >= _ENOUGH_GROUPS:
            between = (
                " For relations between groups, take a table with one row for each, the means of its rows "
                f"({check.n_groups:,} rows)."
            )
        yield Finding(
            "group-levels",
            (str(labels.name),),
            f"Groups of {str(labels.name)!r} have levels of their own, which make up {check.share:.0%} of a "
            "node's variance on average.",
            "fit subtracts them, so that graphs are about what varies within a group."
            f"{check.words_of_units(names)}{between}{check.words_of_fixed(names)}",
        )
        complete = ~bad_x[names].to_numpy(dtype=bool)[known].any(axis=1)
        within = units.without_levels(values, levels[codes[known]])
        where = f"Within groups of {str(labels.name)!r}"
        yield from new_relations(where, names, values[complete], within[complete])
        moving = [j for j in range(len(names)) if j not in check.fixed_nodes]
        known_z = Z.take(np.flatnonzero(known))
        yield from drift_findings(within[:, moving], known_z, bad_z[known], codes[known])


def _identifies_subjects(column: pd.Series) -> bool:
    """A text or whole-number column with several rows per value, called like one or with very many values."""
    if is_date(column.dropna()) or pd.api.types.is_bool_dtype(column):
        return False
    numeric = pd.api.types.is_numeric_dtype(column)
    if numeric and not np.equal(np.mod(column.dropna().to_numpy(dtype=np.float64), 1), 0).all():
        return False
    distinct = column.nunique()
    if distinct < _FEWEST_SUBJECTS or len(column) < ROWS_PER_SUBJECT * distinct or _is_sparse(column):
        return False
    if _SUBJECT_NAME.search(str(column.name)) is not None:
        return True
    if numeric or distinct <= 5 * _FEWEST_SUBJECTS or pd.to_numeric(column, errors="coerce").notna().any():
        return False
    return bool(column.value_counts().iloc[0] <= _UNEVEN * len(column) / distinct)


def find_subjects(rest: pd.DataFrame, nodes: pd.DataFrame) -> dict[str, float]:
    """Unused columns that may be a subject, and the share of a node's variance that is between its values.

    Those that look like one, and text whose rows are alike beyond copies. Of columns with at least half of
    the largest share the one with the fewest values is first: as a group it is the most careful. Finer parts
    of one before are left out.
    """
    found = {}
    different = ~nodes.duplicated().to_numpy()
    for name in rest.columns:
        share = _share_between(nodes[different], rest[name][different])
        if _identifies_subjects(rest[name]) or (share >= _ALIKE and _may_be_places(rest[name])):
            found[str(name)] = share
    kept: dict[str, float] = {}
    enough = max(found.values(), default=0.0) / 2
    for name in sorted(found, key=lambda name: (found[name] < enough, rest[name].nunique())):
        if not any(rest.groupby(name)[other].nunique().max() == 1 for other in kept):
            kept[name] = found[name]
    return kept


def _may_be_places(column: pd.Series) -> bool:
    """A text with enough values to be groups, of several rows each."""
    if is_date(column.dropna()) or pd.api.types.is_numeric_dtype(column):
        return False
    distinct = column.nunique()
    return distinct >= FEW_GROUPS and len(column) >= ROWS_PER_SUBJECT * distinct and not _is_sparse(column)


def _is_sparse(column: pd.Series) -> bool:
    """Whether most rows have no value, blanks among these: of them nobody knows to whom they belong."""
    text = column.astype("string").str.strip()
    return bool((text.isna() | (text == "")).mean() > 0.5)


def _share_between(nodes: pd.DataFrame, labels: pd.Series) -> float:
    """Of the variance of a node between values of a column, less what chance gives, on average."""
    codes = pd.factorize(labels)[0]
    n, k = len(codes), int(codes.max(initial=0)) + 1
    if nodes.shape[1] == 0 or n <= k:
        return 0.0
    left = nodes - nodes.groupby(codes).transform("mean")
    within, whole = left.var(ddof=0) * n / (n - k), nodes.var()
    shares = (1 - within / whole.where(whole > 0)).to_numpy(dtype=np.float64)
    return max(0.0, float(np.nanmean(shares))) if np.isfinite(shares).any() else 0.0


def _repeated_subjects(subjects: dict[str, float], rest: pd.DataFrame, n_rows: int) -> Finding:
    first, *others = subjects
    told = (
        f"Column {first!r} is not used and has {rest[first].nunique():,} different values in {n_rows:,} rows"
    )
    each = "it"
    if others:
        named_so = [f"{name!r} ({rest[name].nunique():,} different values)" for name in subjects]
        told, each = f"Columns {first_few(named_so, _NAMED)} are not used, with {n_rows:,} rows", "each"
    alike = subjects[first]
    share = (
        f"; {alike:.0%} of the variance of a node is between values of {first!r}" if alike >= _ALIKE else ""
    )
    return Finding(
        "repeated-subjects",
        tuple(subjects),
        f"{told}: {each} may be a subject with several rows{'' if others else ' each'}{share}.",
        Message(
            "If so, name it as the group ({group}), so that no subject is on both sides of a split: else "
            "standard errors and p-values are too small.",
            group=Argument("group", first),
        ),
    )


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
