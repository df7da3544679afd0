"""Which of several judged models to keep, and how to say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.estimators.held_out import Yardstick
from graphfield.estimators.one_graph import STATIC
from graphfield.fields import GraphField
from graphfield.numbers import Gain

AVERAGE = "average"
_NAMES = {AVERAGE: "an average of several"}
TABLE_NUMBERS = ["error", "gain", "standard_error", "weight", "seconds", "gain_over_own_average"]
TABLE_COLUMNS = ["model", *TABLE_NUMBERS, "note"]
# By how many standard errors an average must beat the best model, which beats one graph clearly already.
_OVER_BEST = 1.0
# So many rows (or groups) can be compared on if the share that is held out is the default.
_ENOUGH_UNITS = 25


@dataclass(frozen=True)
class Judged:
    """A candidate, fitted without the held-out rows, and what it and its average graph leave of them."""

    name: str
    field: GraphField
    residuals: NDArray[np.float64]
    of_average: NDArray[np.float64]
    seconds: float


@dataclass(frozen=True)
class LeftOut:
    """A candidate that could not be fitted, and why."""

    name: str
    seconds: float
    note: str


@dataclass(frozen=True)
class Choice:
    """Names and weights of what to keep, the table of all candidates, and the same in words.

    ``varies`` says whether the graph of what is kept clearly beats its own average; None if not known.
    """

    weights: dict[str, float]
    table: pd.DataFrame
    summary: str
    varies: bool | None


def choose(
    judged: Sequence[Judged],
    left_out: Sequence[LeftOut],
    average: tuple[Judged, Mapping[str, float]] | None,
    yardstick: Yardstick,
    unit: str = "squared error",
) -> Choice:
    """The best of those that clearly beat one graph for everybody, or the average if it beats them all.

    ``judged`` has "static" in it; ``average`` comes with the weights of its members; ``unit`` is what errors
    are called.
    """
    errors = {one.name: yardstick.errors(one.residuals) for one in judged}
    if average is not None:
        errors[AVERAGE] = yardstick.errors(average[0].residuals)
    everything = [*judged, average[0]] if average is not None else judged
    gains = _Gains(errors, {one.name: yardstick.errors(one.of_average) for one in everything}, yardstick)
    singles = [name for name in errors if name != AVERAGE and gains.over(name, STATIC).is_clear]
    best = min(singles, key=gains.error, default=STATIC)
    weights = {best: 1.0}
    seconds = {one.name: one.seconds for one in judged}
    notes = {}
    if average is not None:
        seconds[AVERAGE] = average[0].seconds
        notes[AVERAGE] = _mix(average[1])
        if gains.over(AVERAGE, best).is_clear_by(_OVER_BEST) and gains.over(AVERAGE, STATIC).is_clear:
            best, weights = AVERAGE, dict(average[1])
    lines: list[tuple[str, float, float, float, float, float, float, str]] = []
    for name in errors:
        gain = gains.over(name, STATIC)
        weight = np.nan if name == AVERAGE else weights.get(name, 0.0)
        note = notes.get(name, "")
        error = 1 - gain.value
        own = 0.0 if name == STATIC else gains.over_own_average(name).value
        lines.append((name, error, 1 - error, gain.standard_error, weight, seconds[name], own, note))
    lines += [(one.name, np.nan, np.nan, np.nan, 0.0, one.seconds, np.nan, one.note) for one in left_out]
    table = pd.DataFrame(lines, columns=TABLE_COLUMNS)
    varies = gains.varies(best) if len(judged) > 1 else None
    return Choice(weights, table, _summary(best, weights, gains, yardstick, left_out, unit), varies)


def no_comparison(n_train: int, n_held_out: int, fraction: float, what: str) -> Choice:
    """One graph for everybody, because there is too little to compare anything on.

    ``what`` is "rows" or "groups". Where another share of them held out would do, that is to blame.
    """
    n_units = n_train + n_held_out
    why = f"{n_units} {what} are too few to hold some out and compare models on them"
    if n_units >= _ENOUGH_UNITS:
        why = (
            f"validation_fraction={fraction:g} leaves {n_train:,} of {n_units:,} {what} to fit and "
            f"{n_held_out:,} to compare models on, which is too few on one side (0.2 is the default)"
        )
    summary = f"The model is one graph for everybody: {why}, so whether the covariates help is not known."
    table = pd.DataFrame(
        [(STATIC, np.nan, np.nan, np.nan, 1.0, np.nan, np.nan, "too few rows or groups to compare")],
        columns=TABLE_COLUMNS,
    )
    return Choice({STATIC: 1.0}, table, summary, None)


class _Gains:
    """Differences between models in mean relative error, with paired standard errors."""

    def __init__(
        self,
        errors: dict[str, NDArray[np.float64]],
        of_average: dict[str, NDArray[np.float64]],
        yardstick: Yardstick,
    ) -> None:
        self.errors, self.of_average, self.yardstick = errors, of_average, yardstick

    def error(self, name: str) -> float:
        return float(self.errors[name].mean())

    def over(self, name: str, other: str) -> Gain:
        """By how much ``name`` has the smaller error."""
        return self.yardstick.gain(self.errors[other], self.errors[name])

    def over_own_average(self, name: str) -> Gain:
        """The share of the error of its average over z that the graph saves."""
        gain = self.yardstick.gain(self.of_average[name], self.errors[name])
        of_average = float(self.of_average[name].mean())
        return Gain(gain.value / of_average, gain.standard_error / of_average)

    def varies(self, name: str) -> bool:
        """Whether it is clearly better that the graph varies; the static graph does not."""
        return name != STATIC and self.over_own_average(name).is_clear


def _summary(
    best: str,
    weights: dict[str, float],
    gains: _Gains,
    yardstick: Yardstick,
    left_out: Sequence[LeftOut],
    unit: str,
) -> str:
    n_rows, n_units = len(yardstick.units), len(np.unique(yardstick.units))
    rows = f"{n_rows:,} held-out rows" + ("" if n_units == n_rows else f" ({n_units:,} groups)")
    singles = [name for name in gains.errors if name not in (best, STATIC, AVERAGE)]
    if best == STATIC:
        nearest = min((name for name in gains.errors if name != STATIC), key=gains.error, default=None)
        if nearest is None:
            text = "The model is one graph for everybody; nothing else was compared with it."
        else:
            gain = gains.over(nearest, STATIC)
            text = (
                f"The model is one graph for everybody. Nothing else predicts {rows} better by more than two "
                f"standard errors; the nearest is {_NAMES.get(nearest, nearest)}, {_better(gain.value)} "
                f"(standard error {_percent(gain.standard_error)})."
            )
    else:
        gain = gains.over(best, STATIC)
        kept = f"an average of {_mix(weights)}" if best == AVERAGE else best
        text = (
            f"The model is {kept}. On {rows} its {unit} is {_percent(gain.value)} (standard error "
            f"{_percent(gain.standard_error)}) below that of one graph for everybody"
        )
        if singles:
            nearest = min([*singles, STATIC], key=gains.error)
            ahead = 1 - gains.error(best) / gains.error(nearest)
            if nearest == STATIC:
                text += ", which is the next best"
            elif ahead >= 0:
                text += f", and {_percent(ahead)} below that of the next best ({nearest})"
            else:
                text += (
                    f"; that of {nearest} is smaller, but not by a clear margin below one graph for everybody"
                )
        text += "."
        own = gains.over_own_average(best)
        where = f"{_percent(abs(own.value))} {'below' if own.value > 0 else 'above'}"
        text += (
            f" It is {where} that of its own average graph (standard error {_percent(own.standard_error)})."
        )
    if left_out:
        text += f" Left out, see held_out_: {', '.join(one.name for one in left_out)}."
    return text


def _better(gain: float) -> str:
    """A gain of either sign in words.

    >>> _better(0.0015), _better(-0.0053)
    ('better by 0.15 %', 'worse by 0.53 %')
    """
    if gain == 0:
        return "no better and no worse"
    return f"{'better' if gain > 0 else 'worse'} by {_percent(abs(gain))}"


def _percent(share: float) -> str:
    """With two digits that say something: 9.0 %, 0.031 %."""
    return f"{100 * share:.1f} %" if abs(share) >= 0.01 else f"{100 * share:.2g} %"


def _mix(weights: Mapping[str, float]) -> str:
    return " and ".join(f"{name} ({100 * weight:.0f} %)" for name, weight in weights.items())
