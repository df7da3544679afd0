"""Time series of many subjects: any container to time x regions arrays, checked and standardised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError, first_few, listing
from graphfield.messages import Argument, Message
from graphfield.studies.fmri.scan_files import Scan, read_folder

# Time points that a subject needs: with fewer, standardising within the subject distorts correlations.
FEWEST_TIMES = 10
# A standard deviation this small beside the size of the values is rounding.
_CONSTANT = 1e-10

# Why subjects or time points were left out: reason to what.
Dropped = dict[str, list[str]]
_GAPS = "have missing or infinite values"


def collect(data: Any, subjects: Sequence[Any] | None, pattern: str | None) -> dict[str, Scan]:
    """Subject to time series, from a folder, a mapping, a list or an array (subjects, time, regions).

    Subjects of a list without ``subjects`` are called by their position, counted from zero.
    """
    if isinstance(data, (str, Path)):
        return read_folder(data, pattern)
    if isinstance(data, Mapping):
        return {str(subject): _scan(values, str(subject)) for subject, values in data.items()}
    if isinstance(data, np.ndarray) and data.ndim != 3:
        raise DataError(
            "Time series of many subjects must be an array (subjects, time, regions), a list or mapping of "
            f"arrays (time, regions), or a folder, got an array of shape {data.shape}."
        ).about(argument="series")
    items = list(data)
    names = [str(i) for i in range(len(items))] if subjects is None else [str(name) for name in subjects]
    if len(names) != len(items):
        raise DataError(
            f"There must be one subject name per time series: {len(items)}, got {len(names)}."
        ).about(argument="subjects")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"Subjects must have different names, but {listing(twice)} is there more than once."
        ).about(subject=twice[0])
    return {name: _scan(values, name) for name, values in zip(names, items, strict=True)}


def _scan(values: Any, subject: str) -> Scan:
    if isinstance(values, Scan):
        return values
    names = [str(name) for name in values.columns] if isinstance(values, pd.DataFrame) else None
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(
            f"The time series of subject {subject!r} must be a two-dimensional array of numbers (time x "
            f"regions), got shape {array.shape} of {array.dtype}."
        ).about(subject=subject)
    return Scan(np.asarray(array, dtype=np.float64), names)


def transpose(scans: dict[str, Scan]) -> dict[str, Scan]:
    """Regions x time to time x regions; names above the columns were those of time points."""
    return {subject: Scan(scan.values.T, None) for subject, scan in scans.items()}


def check_shapes(scans: dict[str, Scan], n_regions: int | None) -> int:
    """The number of regions that all subjects have; ``n_regions`` is it where names or groups say so.

    One length that all or nearly all share while the other differs is the number of regions.
    """
    heights = Counter(scan.values.shape[0] for scan in scans.values())
    widths = Counter(scan.values.shape[1] for scan in scans.values())
    common, n_common = widths.most_common(1)[0]
    turned_all = len(heights) == 1 and 2 * n_common <= len(scans)
    if n_regions is not None:
        turned_all = set(heights) == {n_regions} != set(widths)
    if turned_all:
        raise DataError(
            f"The time series look like regions x time: the first length is {next(iter(heights))} for all. "
            "Expected time x regions: pass transposed=True."
        ).about(argument="transposed")
    expected = common if n_regions is None else n_regions
    odd = [subject for subject, scan in scans.items() if scan.values.shape[1] != expected]
    if not odd:
        return expected
    if all(scans[subject].values.shape[0] == expected for subject in odd):
        raise DataError(
            f"{len(odd)} of {len(scans)} subjects look like regions x time ({listing(odd, most=5)}): they "
            f"have {expected} rows, where the others have {expected} columns. Transpose these."
        ).about(subject=odd[0])
    shapes = [f"{subject!r} {scans[subject].values.shape[1]}" for subject in odd]
    raise DataError(
        f"Every subject must have the same {expected} regions, but {len(odd)} of {len(scans)} have another "
        f"number: {first_few(shapes, most=5)}. Use the same atlas for all, or leave these subjects out."
    ).about(subject=odd[0])


def region_names(scans: dict[str, Scan], given: Sequence[str] | None, n_regions: int) -> list[str]:
    """Names that were given, or those in the data if all subjects agree, or region_1, region_2, ..."""
    if given is not None:
        names = [str(name) for name in given]
        if len(names) != n_regions:
            raise DataError(
                f"There must be one name per region: {n_regions} regions, {len(names)} names."
            ).about(argument="regions")
    else:
        own = {subject: scan.names for subject, scan in scans.items() if scan.names is not None}
        if len(own) < len(scans) or not own:
            return [f"region_{i + 1}" for i in range(n_regions)]
        first_subject, first = next(iter(own.items()))
        other = next((subject for subject, names in own.items() if names != first), None)
        if other is not None:
            raise DataError(
                f"Subjects {first_subject!r} and {other!r} name their regions differently: "
                f"{listing(first, most=3)} and {listing(own[other] or [], most=3)}. "
                "Bring the columns into one order."
            ).about(subject=other)
        names = list(first or [])
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"Regions must have different names, but {listing(twice)} is there more than once."
        ).about(column=twice[0])
    return names


def usable(
    values: dict[str, NDArray[np.float64]], regions: Sequence[str], every: int, missing: str
) -> tuple[dict[str, NDArray[np.float64]], Dropped]:
    """Every ``every``-th time point, complete and standardised within each subject.

    What cannot be used raises; with ``missing="drop"`` time points with NaN are left out, and subjects with a
    region that never changes or with too few time points; what was left out and why is returned.
    """
    names = np.array(regions, dtype=object)
    kept: dict[str, NDArray[np.float64]] = {}
    dropped: Dropped = {}
    flat: Counter[str] = Counter()
    for subject, series in values.items():
        thin = series[::every]
        whole = np.isfinite(thin).all(axis=1)
        if not whole.all():
            where = names[~np.isfinite(thin).all(axis=0)]
            detail = (
                f"{subject!r} ({int((~whole).sum())} of {len(thin)} time points, in {listing(where, most=2)})"
            )
            dropped.setdefault(_GAPS, []).append(detail)
            thin = thin[whole]
        if len(thin) < FEWEST_TIMES:
            reason = f"have fewer than {FEWEST_TIMES} complete time points"
            dropped.setdefault(reason, []).append(f"{subject!r} ({len(thin)})")
            continue
        spread = thin.std(axis=0)
        still = spread <= _CONSTANT * np.maximum(1e-30, np.abs(thin).max(axis=0))
        if still.any():
            flat.update(names[still])
            detail = f"{subject!r} ({listing(names[still], most=2)})"
            dropped.setdefault("have a region that never changes", []).append(detail)
            continue
        kept[subject] = (thin - thin.mean(axis=0)) / spread
    if dropped and missing == "error":
        raise DataError(_complaint(dropped, flat, len(values))).about(argument="missing")
    return kept, dropped


def _complaint(dropped: Dropped, flat: Counter[str], n_subjects: int) -> str:
    parts = [
        f"{len(who)} of {n_subjects} subjects {reason}: {first_few(who, most=3)}"
        for reason, who in dropped.items()
    ]
    also = ""
    if flat:
        region, count = flat.most_common(1)[0]
        also = Message(
            " {region!r} never changes in {count}; {drop} leaves out a region instead of subjects.",
            region=region,
            count=count,
            drop=Argument("drop_regions"),
        )
    return Message(
        "{what}. Use {drop} to leave these out.{also}",
        what="; ".join(parts),
        drop=Argument("missing", "drop"),
        also=also,
    )


def describe_dropped(dropped: Dropped, n_subjects: int) -> list[str]:
    """What :func:`usable` left out, one sentence per reason."""
    lines = []
    for reason, who in dropped.items():
        what = "Left out these time points" if reason == _GAPS else "Left out these subjects"
        lines.append(f"{len(who)} of {n_subjects} subjects {reason}: {first_few(who, most=3)}. {what}.")
    return lines
