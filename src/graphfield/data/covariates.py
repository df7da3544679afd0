"""Covariates to numbers: standardised numeric columns and category codes for an embedding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariate_text import OTHER as OTHER
from graphfield.data.covariate_text import check_levels
from graphfield.data.dates import FIRST_DAY, LAST_DAY, date_text, is_date, to_days
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame, match_columns, with_columns
from graphfield.data.level_text import as_text, count_levels, is_categorical, is_ordered
from graphfield.data.nodes import row_blocks
from graphfield.data.ranges import MAX_COVARIATE, MAX_UNSCALED, check_covariate_range
from graphfield.data.row_store import allocate_rows
from graphfield.data.saved_values import Saved
from graphfield.data.two_numbers import are_two, codes_of_two, level_text
from graphfield.exceptions import (
    DataError,
    DataWarning,
    ExtrapolationWarning,
    agreed,
    check_choice,
    count,
    listing,
    named,
    suggestion,
)
from graphfield.messages import Message

# A numeric covariate beyond the training range by more than this share of its width is clipped.
MARGIN = 0.1
# As a share of that width, what a value may lie beside an end and be the end: people and messages round.
ROUNDING = 1e-3
UNKNOWN_POLICIES = ("error", "average")
POOLED = "graphfield.pooled"  # where the attributes of a frame say which levels of each column are OTHER
AS_TEXT = "graphfield.text"  # and which categories are text, stored so: nobody said that these are levels
# In a file: the least standard deviation as a share of the range (less takes 10^17 rows), and how far from
# one the shares of levels may add up.
_LEAST_SPREAD, _SHARES_OFF = 1e-9, 1e-6


@dataclass(frozen=True)
class Numeric:
    """A numeric column enters as ``(z - mean) / scale``; ``low`` and ``high`` bound the training rows.

    A date is a number of days since 1970-01-01.
    """

    name: str
    mean: float
    scale: float
    low: float
    high: float
    date: bool = False

    def text(self, value: float) -> str:
        """The value as a person reads it.

        >>> Numeric("day", 0.0, 1.0, 0.0, 9.0, date=True).text(1.0)
        '1970-01-02'
        """
        return date_text(value) if self.date else f"{value:g}"


@dataclass(frozen=True)
class Categorical:
    """A categorical column enters as the index of its level; shares are the training frequencies.

    Levels that are ``pooled`` stand for :data:`OTHER`, which is one of the ``levels`` then. Where the column
    was ``ordered``, the levels stand in its order, else in that of the alphabet. Those of a number with two
    values stand for these ``numbers``.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    pooled: tuple[str, ...] = ()
    ordered: bool = False
    numbers: tuple[float, float] | tuple[()] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """Levels as a user writes them: numbers where they stand for numbers."""
        of_levels = self.numbers if len(self.numbers) == len(self.levels) else ()
        return tuple(int(v) if v.is_integer() else v for v in of_levels) or self.levels

    def as_levels(self, values: pd.Series) -> NDArray[np.object_]:
        """Levels as text; where they stand for two numbers, however these are written ("1", 1, "1.0")."""
        text = as_text(values)
        codes = codes_of_two(self.name, self.numbers, values) if self.numbers else None
        return text if codes is None else np.array(self.levels, dtype=object)[codes]

    @property
    def indicators(self) -> NDArray[np.float64]:
        """A row per code with a one for its level; that of a level unseen in training has the shares."""
        return np.vstack([np.eye(len(self.levels)), self.shares])

    def by_size(self, levels: Sequence[str] | NDArray, sizes: Sequence[float] | NDArray) -> list[str]:
        """Levels from the most common down; what was pooled is last, however many rows it has.

        >>> site = Categorical("site", ("A", "B", "other"), (0.2, 0.3, 0.5), pooled=("C", "D"))
        >>> site.by_size(site.levels, site.shares)
        ['B', 'A', 'other']
        """
        is_pool = np.array([bool(self.pooled) and level == OTHER for level in levels])
        return [str(levels[i]) for i in np.lexsort((-np.asarray(sizes), is_pool))]


class CovariateEncoder:
    """Learns from training rows how each covariate is encoded; applies it to new rows by name.

    With ``standardize``, numeric columns are centred and divided by their standard deviation. A category
    that training did not have is refused by name, or, with ``unknown="average"``, gets the
    frequency-weighted average of the known ones; ``says_average``: whether the refusal names this, not where
    a user has no such choice.
    """

    def __init__(
        self, *, standardize: bool = True, unknown: str = "error", says_average: bool = True
    ) -> None:
        check_choice("unknown", unknown, UNKNOWN_POLICIES)
        self.standardize = standardize
        self.unknown = unknown
        self.says_average = says_average
        self.columns: list[Numeric | Categorical] = []
        self.names: list[str] = []
        self.named = False
        self.n_rows = 0  # that it has learned from

    @property
    def numeric(self) -> list[Numeric]:
        return [c for c in self.columns if isinstance(c, Numeric)]

    @property
    def categorical(self) -> list[Categorical]:
        return [c for c in self.columns if isinstance(c, Categorical)]

    def fit(self, Z: Frame, *, allow_empty: bool = False) -> CovariateEncoder:
        """Learn the columns of ``Z``; ``allow_empty`` accepts a Z without any, for whom it is ignored."""
        if not Z.names and not allow_empty:
            raise DataError.of("Z", "has no columns. Expected at least one covariate.")
        self.names, self.named, self.n_rows = Z.names, Z.named, len(Z.values)
        pooled, stored = Z.values.attrs.get(POOLED, {}), Z.values.attrs.get(AS_TEXT, ())
        learned = {
            name: self._learn(name, Z.values[name], Z.places, pooled.get(name, ()), name in stored)
            for name in Z.names
        }
        constant = [name for name, column in learned.items() if column is None]
        who, n = named("Covariate", constant), len(constant)
        if constant and n == len(Z.names):
            raise DataError(
                f"{who} {agreed(n, 'has', 'have')} the same value in every training row, and there is no "
                "other covariate: no graph can depend on a constant."
            ).about(column=constant[0])
        if constant:
            are = agreed(n, "is", "are")
            told = f"{who} {are} constant in the training rows and {are} ignored."
            warnings.warn(told, DataWarning, stacklevel=3)
        self.columns = [column for column in learned.values() if column is not None]
        return self

    def _learn(
        self, name: str, column: pd.Series, rows: NDArray[np.intp], pooled: Sequence[str], stored_so: bool
    ) -> Numeric | Categorical | None:
        if is_categorical(column, name):
            text = as_text(column)
            levels, counts = count_levels(column, text)
            if len(levels) == 1:
                return None
            if stored_so or not isinstance(column.dtype, pd.CategoricalDtype):  # a category says its levels
                check_levels(name, text, levels, rows)
            shares = counts / counts.sum()
            few = () if OTHER not in levels else (level for level in pooled if level not in levels)
            known = tuple(map(str, levels)), tuple(map(float, shares)), tuple(few)
            return Categorical(name, *known, is_ordered(column))
        date = is_date(column)
        values = to_days(column) if date else column.to_numpy(dtype=np.float64)
        bounds = float(values.min()), float(values.max())
        if bounds[0] == bounds[1]:
            return None
        if self.standardize and not date and are_two(values, bounds):
            share = float(np.mean(values == bounds[1]))
            return Categorical(name, tuple(map(level_text, bounds)), (1 - share, share), numbers=bounds)
        check_covariate_range(name, *bounds, MAX_COVARIATE if self.standardize else MAX_UNSCALED)
        if not self.standardize:
            return Numeric(name, 0.0, 1.0, *bounds, date)
        return Numeric(name, *_mean_and_spread(values), *bounds, date)

    def level_rows(self, column: Categorical) -> dict[str, int]:
        """How many training rows each level had."""
        rows = (round(self.n_rows * share) for share in column.shares)
        return dict(zip(column.levels, rows, strict=True))

    def pool(self, Z: Frame) -> Frame:
        """Z with the levels that were pooled before `fit` as what they were pooled into, and a warning."""
        changed = {}
        for spec in self.categorical:
            if not spec.pooled or spec.name not in Z.names:
                continue
            text = as_text(Z.values[spec.name])
            few = np.isin(text, spec.pooled)
            if few.any():
                changed[spec.name] = np.where(few, OTHER, Z.values[spec.name].astype(object))
                levels = sorted(set(text[few]))
                warnings.warn(
                    f"Covariate {spec.name!r}: {listing(levels)} had few rows and "
                    f"{agreed(len(levels), 'was', 'were')} pooled into {OTHER!r} when fitting: this is the "
                    f"graph of {OTHER!r}.",
                    DataWarning,
                    stacklevel=4,
                )
        return Frame(with_columns(Z.values, changed), Z.named, Z.rows) if changed else Z

    def transform(self, Z: Frame) -> Encoded:
        values = match_columns(Z, self.names, self.named, "Z").values
        numeric = [self._numbers(c, values[c.name]) for c in self.numeric]
        codes = [self._codes(c, values[c.name]) for c in self.categorical]
        n = len(values)
        return Encoded(
            np.column_stack(numeric) if numeric else np.empty((n, 0)),
            np.column_stack(codes) if codes else np.empty((n, 0), dtype=np.int64),
        )

    def encode_value(self, name: str, value: Any) -> float:
        """One value of one covariate: a number in standard units, or the code of a level."""
        spec, column = next(one for one in self.columns if one.name == name), pd.Series([value])
        if isinstance(spec, Categorical):
            return float(self._codes(spec, column)[0])
        if not np.isfinite(_as_numbers(spec, column)[0]):
            said = f"{name!r} must be finite, such as {spec.text(spec.mean)}, got {value!r}."
            raise DataError(said).about(column=name)
        return float(self._numbers(spec, column)[0])

    def _numbers(self, spec: Numeric, column: pd.Series) -> NDArray[np.float64]:
        values = _as_numbers(spec, column)
        margin = MARGIN * (spec.high - spec.low)
        low, high = spec.low - margin, spec.high + margin
        outside = (values < low) | (values > high)
        if outside.any():
            worst, end = values[outside][0], float(np.clip(values[outside][0], low, high))
            n_far = int(outside.sum())
            warnings.warn(
                f"Covariate {spec.name!r} was between {spec.text(spec.low)} and {spec.text(spec.high)} in "
                f"training; {count(n_far, 'row')} {agreed(n_far, 'lies', 'lie')} far outside (for example "
                f"{spec.text(worst)}, which gets the graph at {spec.text(end)}, a tenth of that range "
                "beyond its end).",
                ExtrapolationWarning,
                stacklevel=4,
            )
            values = np.clip(values, low, high)
        return (values - spec.mean) / spec.scale

    def _codes(self, spec: Categorical, column: pd.Series) -> NDArray[np.int64]:
        known = codes_of_two(spec.name, spec.numbers, column) if spec.numbers else None
        if known is not None:
            return known
        text = as_text(column)
        index = pd.Index(spec.levels).get_indexer(pd.Index(text))
        unseen = sorted(set(text[index < 0]))
        if unseen and self.unknown == "error":
            advice = " Use {average} to give new categories the average graph." if self.says_average else ""
            raise DataError(
                "Covariate {column!r} has {unseen}, which training did not have.{hint} Known: {known}."
                + advice,
                code="unknown-level",
                column=spec.name,
                unseen=listing(unseen),
                hint=suggestion(unseen[0], spec.levels) if len(unseen) == 1 else "",
                known=listing(spec.levels),
                average=Message("unknown='average'", code="average-unknown"),
            )
        return np.where(index < 0, len(spec.levels), index).astype(np.int64)

    def to_state(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_state` reads them back."""
        columns = [{"kind": type(c).__name__, **asdict(c)} for c in self.columns]
        return {
            "standardize": self.standardize,
            "unknown": self.unknown,
            "names": self.names,
            "named": self.named,
            "n_rows": self.n_rows,
            "columns": columns,
        }

    @classmethod
    def from_state(cls, state: Saved) -> CovariateEncoder:
        """Inverse of :meth:`to_state`; what could not come from it is refused."""
        encoder = cls(
            standardize=state["standardize"].flag(), unknown=state["unknown"].choice(UNKNOWN_POLICIES)
        )
        encoder.names, encoder.named = state["names"].names(), state["named"].flag()
        encoder.n_rows = state["n_rows"].whole(1)
        encoder.columns = [_column_from(column, encoder) for column in state["columns"].listed()]
        names = [column.name for column in encoder.columns]
        if names != [name for name in encoder.names if name in names]:
            state["columns"].refuse(f"some of {listing(encoder.names)} in their order", listing(names))
        return encoder


def features(encoder: CovariateEncoder, encoded: Encoded, *, all_levels: bool = False) -> NDArray[np.float64]:
    """A one, the numeric covariates, and an indicator per level: (n, m).

    The first level of each covariate has no indicator, unless ``all_levels``. A level unseen in
    training gets the training shares of the levels in place of indicators.
    """
    indicators = [column.indicators[:, 0 if all_levels else 1 :] for column in encoder.categorical]
    width = 1 + encoded.numeric.shape[1] + sum(own.shape[1] for own in indicators)
    values = allocate_rows((len(encoded), width), np.float64)
    for rows in row_blocks(*values.shape):
        of_levels = [own[codes] for own, codes in zip(indicators, encoded.codes[rows].T, strict=True)]
        values[rows, :1] = 1.0
        values[rows, 1:] = np.hstack([encoded.numeric[rows], *of_levels])
    return values


def _mean_and_spread(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation, from numbers near one: the squares of 1e-170 and 1e170 are none."""
    unit = np.ldexp(1.0, np.frexp(np.abs(values).max())[1] - 1)  # a power of two changes no digit
    near_one = values / unit
    return float(near_one.mean() * unit), float(near_one.std() * unit)


def n_features(encoder: CovariateEncoder) -> int:
    """How many columns :func:`features` gives."""
    return 1 + len(encoder.numeric) + sum(len(column.levels) - 1 for column in encoder.categorical)


def _as_numbers(spec: Numeric, column: pd.Series) -> NDArray[np.float64]:
    """A column at prediction as the numbers it was in fit; a date may come as a date or in days."""
    try:
        if spec.date and (is_date(column) or pd.api.types.is_numeric_dtype(column)):
            return to_days(column)
        if not spec.date and not is_date(column):
            numbers = is_categorical(column, spec.name)
            return (pd.to_numeric(column.astype(object)) if numbers else column).to_numpy(dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        pass
    was, example = ("a date", ", such as '2020-03-01'") if spec.date else ("numeric", "")
    raise DataError(
        f"Covariate {spec.name!r} was {was} in fit, but now holds {as_text(column)[0]!r}. Give it as it was "
        f"in fit{example}."
    ).about(column=spec.name)


def _column_from(state: Saved, encoder: CovariateEncoder) -> Numeric | Categorical:
    name = state["name"].choice(encoder.names)
    if state["kind"].choice(("Numeric", "Categorical")) == "Numeric":
        return _numeric_from(state, name, encoder.standardize)
    levels, shares = state["levels"].names(least=2), state["shares"].numbers(0, 1)
    if len(shares) != len(levels) or abs(sum(shares) - 1) > _SHARES_OFF:
        state["shares"].refuse(f"{len(levels)} shares that sum to one")
    pooled = state["pooled"].names()
    if pooled and (OTHER not in levels or not set(pooled).isdisjoint(levels)):
        state["pooled"].refuse(f"levels besides {OTHER!r} and the others")
    numbers = state["numbers"].numbers(-MAX_COVARIATE, MAX_COVARIATE)
    if numbers and not (len(numbers) == len(levels) == 2 and numbers[0] < numbers[1]):
        state["numbers"].refuse("none, or two in their order")
    ordered = state["ordered"].flag()
    two = (numbers[0], numbers[1]) if numbers else ()
    return Categorical(name, tuple(levels), tuple(shares), tuple(pooled), ordered, two)


def _numeric_from(state: Saved, name: str, standardize: bool) -> Numeric:
    date = state["date"].flag()
    ends = (FIRST_DAY, LAST_DAY) if date else (-MAX_COVARIATE, MAX_COVARIATE)
    low, high = state["low"].number(*ends), state["high"].number(*ends)
    width = high - low
    if not width > 0:
        state["high"].refuse(f"above low, {low:g}")
    if not standardize:
        return Numeric(name, state["mean"].number(0, 0), state["scale"].number(1, 1), low, high, date)
    # Rounding may put the mean of nearly equal numbers beside them.
    mean = state["mean"].number(low - width, high + width)
    return Numeric(name, mean, state["scale"].number(_LEAST_SPREAD * width, width), low, high, date)


def unknown_levels(whole: CovariateEncoder, part: CovariateEncoder) -> list[str]:
    """Levels that the first has and that the second, with the same columns, would refuse."""
    if part.unknown != "error":
        return []
    known = {column.name: column.levels for column in part.columns if isinstance(column, Categorical)}
    columns = [column for column in whole.columns if isinstance(column, Categorical)]
    return [level for column in columns for level in column.levels if level not in known.get(column.name, ())]
