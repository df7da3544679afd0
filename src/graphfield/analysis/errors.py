"""How sure an answer is: the same question asked of every member of an ensemble."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.special import stdtrit

from graphfield.analysis.rows import Asked
from graphfield.check.levels import RARE_LEVEL
from graphfield.data.covariates import MARGIN, ROUNDING, Numeric
from graphfield.data.level_text import as_text
from graphfield.exceptions import ExtrapolationWarning, FewRowsWarning, count
from graphfield.fields import Draws, GraphField
from graphfield.fields.average import member_parts

# Of the intervals, for one edge at a time.
LEVEL = 0.95
# Positions j and k of some pairs of nodes.
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]


def error_columns(
    asked: Asked, weights: NDArray, answer: NDArray[np.intp], pairs: Pairs, estimate: NDArray
) -> dict[str, NDArray]:
    """Columns that say how far members of an ensemble are apart; none for another model.

    The i-th answer is the sum, over the rows of the table whose ``answer`` is i, of ``weights`` times the
    partial correlations of the pairs. ``estimate`` (answers, pairs) is what the model as a whole says.

    Members on resampled rows give ``standard_error``, ``interval_low`` and ``interval_high``; members that
    all saw the same rows know nothing of sampling, and what they give is called ``spread``. Draws of a
    posterior give its standard deviation and quantiles. An interval at a level of a category with few
    training rows comes with a :class:`~graphfield.FewRowsWarning`.
    """
    draws = asked.field.draws()
    if draws is None:
        return {}
    members = _member_answers(draws, asked, weights, answer, pairs, len(estimate))
    deviation = members.std(axis=0, ddof=1)
    if draws.kind == "seeds":
        return {"spread": deviation}
    _warn_of_few_rows(asked, weights, answer)
    if draws.kind == "posterior":
        low, high = np.quantile(members, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        return {"standard_error": deviation, "interval_low": low, "interval_high": high}
    reach = interval_reach(asked.field) * deviation
    return {"standard_error": deviation, "interval_low": estimate - reach, "interval_high": estimate + reach}


def movement_columns(asked: Asked, weights: NDArray, pairs: Pairs) -> dict[str, NDArray]:
    """Columns about means over rows, and variation over rows, of the pairs; as :func:`error_columns`.

    ``weights`` are the shares of the distinct rows. Besides the standard error of the mean there is
    ``by_chance``: the root of the average over rows of the variance, over members, of the departure of an
    edge from its own mean over rows. An edge that is the same everywhere shows about so much variation.
    """
    draws = asked.field.draws()
    if draws is None:
        return {}
    j, k = pairs
    means = np.zeros((len(draws.members), len(j)))
    within = np.zeros(len(j))
    for rows, members in member_parts(draws, asked.rows):
        total, squares = (np.zeros((rows.stop - rows.start, len(j))) for _ in range(2))
        for mean, partial in zip(means, members, strict=True):
            values = partial[:, j, k].astype(np.float64)
            mean += weights[rows] @ values
            total += values
            squares += values**2
        within += weights[rows] @ (squares - total**2 / len(means)) / (len(means) - 1)
    between = means.var(axis=0, ddof=1)
    if draws.kind == "seeds":
        return {"spread": np.sqrt(between)}
    return {"standard_error": np.sqrt(between), "by_chance": np.sqrt(np.maximum(within - between, 0))}


def interval_reach(field: GraphField) -> float:
    """Standard errors from an estimate to the ends of its interval; 0 where it has none, or by quantiles.

    A standard error from few members is uncertain itself: a quantile of Student's t allows for that.
    """
    draws = field.draws()
    if draws is None or draws.kind != "resamples":
        return 0.0
    return float(stdtrit(len(draws.members) - 1, (1 + LEVEL) / 2))


def warn_of_few_rows(field: GraphField, table: pd.DataFrame) -> None:
    """Warn of rows at a level that few training rows had: their graph is mostly that of other levels."""
    found = _rare_levels(field, table, np.ones(len(table)), np.arange(len(table)))
    if found:
        warnings.warn(
            f"{'; '.join(found)}. Its graph leans on the other levels: do not rely on it.",
            FewRowsWarning,
            stacklevel=3,
        )


def warn_all_outside(asked: Asked) -> None:
    """:func:`warn_outside` for all numbers that are asked for."""
    for column, values in zip(asked.field.schema.encoder.numeric, asked.rows.encoded.numeric.T, strict=True):
        for value in column.mean + column.scale * values:
            warn_outside(column, value)


def warn_outside(column: Numeric, value: float) -> None:
    """Warn of a value a little outside the training range; what is far outside, its encoder tells itself."""
    beyond = max(column.low - value, value - column.high) / (column.high - column.low)
    if ROUNDING < beyond < MARGIN - ROUNDING:
        warnings.warn(
            f"{column.name}={column.text(value)} lies outside what training had ({column.text(column.low)} "
            f"to {column.text(column.high)}): no row supports the graph there.",
            ExtrapolationWarning,
            stacklevel=4,
        )


def _rare_levels(
    field: GraphField, table: pd.DataFrame, weights: NDArray, answer: NDArray[np.intp]
) -> list[str]:
    """Levels with few training rows that answers are about, and not only an average over many levels."""
    encoder, size = field.schema.encoder, np.abs(weights)
    total = np.bincount(answer, size)
    found = []
    for column in encoder.categorical:
        text = as_text(table[column.name])
        for level, n_rows in encoder.level_rows(column).items():
            about = np.bincount(answer, size * (text == level)) >= total / 2
            if n_rows < RARE_LEVEL and about.any():
                found.append(f"{column.name} = {level!r} had {count(n_rows, 'training row')}")
    return found


def _warn_of_few_rows(asked: Asked, weights: NDArray, answer: NDArray[np.intp]) -> None:
    found = _rare_levels(asked.field, asked.table, weights, answer)
    if found:
        warnings.warn(
            f"{'; '.join(found)}. Its graph leans on the other levels, and so does its interval, which is "
            "too narrow if it differs from them. Merge it with a level that is alike in meaning, or do not "
            "rely on it.",
            FewRowsWarning,
            stacklevel=4,
        )


def _member_answers(
    draws: Draws, asked: Asked, weights: NDArray, answer: NDArray[np.intp], pairs: Pairs, n_answers: int
) -> NDArray[np.float64]:
    """What each member answers, (members, answers, pairs)."""
    j, k = pairs
    shape = (n_answers, asked.n_distinct)
    sums = coo_matrix((weights, (answer, asked.index)), shape=shape).tocsc()
    found = np.zeros((len(draws.members), n_answers, len(j)))
    for rows, members in member_parts(draws, asked.rows):
        for own, partial in zip(found, members, strict=True):
            own += sums[:, rows] @ partial[:, j, k]
    return found
