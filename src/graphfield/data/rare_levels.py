"""Levels of categories that have few rows become one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariate_text import MANY_LEVELS, alike_levels
from graphfield.data.covariates import OTHER, POOLED, CovariateEncoder
from graphfield.data.frames import Frame, with_columns
from graphfield.data.level_text import as_text, is_categorical, is_ordered, level_order
from graphfield.data.missing import bad_entries
from graphfield.exceptions import (
    DataError,
    DataWarning,
    ParameterError,
    agreed,
    count,
    first_few,
    listing,
    suggestion,
)
from graphfield.messages import Argument, Message

# Rows without which a level has no graph; those that many levels are to have on average, and a pool in all;
# those of a level that is not pooled for the sake of others. Levels that are named.
_LEAST, _FEW, _LARGE, _NAMED = 2, 5, 20, 6


def pool_counted(
    X: pd.DataFrame, Z: pd.DataFrame, rare: int | Mapping[str, int], missing: str | None
) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Like :func:`pool_rare`, by the rows that stay where those with gaps are dropped."""
    if missing != "drop":
        return pool_rare(Z, rare)
    gaps = (bad_entries(Frame(part, True)).to_numpy().any(axis=1) for part in (X, Z))
    return pool_rare(Z, rare, ~np.any(list(gaps), axis=0))


def pool_rare(
    Z: pd.DataFrame, rare: int | Mapping[str, int], counted: NDArray[np.bool_] | None = None
) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Levels of categories with fewer than ``rare`` rows become "other"; also says which these were.

    ``counted``: the rows that count, if not all do.

    >>> Z, pooled = pool_rare(pd.DataFrame({"site": ["A", "A", "A", "B", "C"]}), rare=2)
    >>> Z.site.tolist(), pooled
    (['A', 'A', 'A', 'other', 'other'], {'site': ['B', 'C']})
    """
    named = isinstance(rare, Mapping)
    least = dict(rare) if isinstance(rare, Mapping) else dict.fromkeys(Z.columns, rare)
    _check_numbers(least, list(Z.columns))
    pooled: dict[str, list[str]] = {}
    columns = {}
    for name, rows in least.items():
        column = Z[name]
        present = (~bad_entries(Frame(Z[[name]], True))[name]).to_numpy()
        is_levels = present.any() and is_categorical(column[present], name)
        if named and present.any() and not is_levels:
            raise DataError(
                "Covariate {column!r} is no category, so it has no levels to pool ({rare}). If its numbers "
                "are codes, say so ({categories}).",
                column=name,
                rare=Argument("rare"),
                categories=Argument("categories"),
            )
        if not is_levels:
            continue
        text = pd.Series(as_text(column), index=column.index)
        counts = text[present].value_counts()
        if counted is not None:
            counts = text[present & counted].value_counts().reindex(counts.index, fill_value=0)
            counts = counts.sort_values(ascending=False, kind="stable")
        # Rows of 'f' beside 'F' are not few: how they are written is to be mended, which a pool would hide.
        sizes = counts.groupby(pd.Series(alike_levels(counts))).transform("sum")
        few = sorted(str(level) for level in counts.index[sizes < rows] if level != OTHER)
        if few:
            _warn_of_own(str(name), few, counts)
            pooled[str(name)] = few
            columns[name] = _in_order(column, text.where(~text.isin(few), OTHER).where(present, None))
    result = with_columns(Z, columns)
    result.attrs[POOLED] = pooled  # for the encoder of a model, which is asked about these levels later
    return result, pooled


def _warn_of_own(name: str, few: list[str], counts: pd.Series) -> None:
    """Where a covariate has a level of its own that is nearly called like the pool."""
    own = [level for level in counts.index if level not in few and str(level).strip().lower() == OTHER]
    if own and own[0] != OTHER:
        warnings.warn(
            f"Covariate {name!r} has a level {own[0]!r} ({count(int(counts[own[0]]), 'row')}) of its own, "
            f"and {listing(few, most=4)} {agreed(len(few), 'is', 'are')} pooled into {OTHER!r} beside it: "
            "call it otherwise in the table.",
            DataWarning,
            stacklevel=4,
        )


def rare_enough(sizes: Sequence[int], least: int) -> int:
    """Below how many rows levels are to be pooled, so that what is pooled has at least so many together.

    One level alone would be as rare under another name.

    >>> rare_enough([4, 11, 40, 60], 10), rare_enough([4, 4, 4, 60], 10), rare_enough([40, 60], 10)
    (12, 10, 10)
    """
    ordered, total = sorted(sizes), 0
    for place, size in enumerate(ordered[:-1]):
        total += size
        if place and total >= least:
            return max(least, size + 1)
    return least


def warn_of_rare(method: str, encoder: CovariateEncoder) -> None:
    """Name the levels that a method, which tells levels apart, has too few training rows for."""
    for column in encoder.categorical:
        rows = encoder.level_rows(column)
        least = _FEW if len(rows) > max(MANY_LEVELS, encoder.n_rows / _FEW) else _LEAST
        few = [f"{level!r} ({n})" for level, n in rows.items() if n < least]
        if few:
            said = Message(
                "{method} needs {least} rows of a level at least to tell it from the others, and {few} of "
                "the {all} levels of covariate {column!r} {have} fewer: {shown}. {graphs}. {pool}.",
                method=method,
                least=least,
                few=f"{len(few):,}",
                all=f"{len(rows):,}",
                column=column.name,
                have=agreed(len(few), "has", "have"),
                shown=first_few(few, _NAMED),
                graphs=agreed(len(few), "Its graph is a guess", "Their graphs are guesses"),
                pool=_how_to_pool(list(rows.values())),
            )
            warnings.warn(said, DataWarning, stacklevel=4)


def _how_to_pool(sizes: list[int]) -> Message | str:
    """Where rare levels have enough rows together, and a level is left to differ from."""
    least = rare_enough(sizes, _FEW)
    together = sum(size for size in sizes if size < least)
    if together < _FEW or least > _LARGE or max(sizes) < least:
        return "Merge levels that are alike in meaning, or leave the covariate out"
    return Message("Pool rare levels with {rare}", rare=Argument("rare", least, "from_table"))


def _check_numbers(least: Mapping[str, object], names: list[str]) -> None:
    for name, rows in least.items():
        if name not in names:
            raise DataError(
                f"There is no covariate {name!r} whose levels could be pooled."
                f"{suggestion(str(name), names)} The covariates are {listing(names)}."
            ).about(argument="rare", column=name)
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 2:
            raise ParameterError.of("rare", f"must be a whole number of rows, 2 or more, got {rows!r}.")


def _in_order(column: pd.Series, pooled: pd.Series) -> pd.Series:
    """Levels of an ordered category after pooling, in their order and "other" at the end."""
    if not is_ordered(column):
        return pooled
    levels = level_order(column, set(pooled.dropna()) - {OTHER})
    return pooled.astype(pd.CategoricalDtype([*levels, OTHER], ordered=True))
