"""How many rows it takes: power against the number of rows, and where it is what was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from graphfield.exceptions import count, first_few
from graphfield.numbers import mean_and_error

_RESAMPLES = 1_000
_NAMED = 8  # pairs that a summary names


@dataclass(frozen=True, eq=False, repr=False)
class SamplePlan:
    """The answer of :func:`gf.plan_samples`.

    Attributes
    ----------
    curve : DataFrame
        One line per number of rows: ``n``, ``power`` (share of the true ones that were found, mean over
        ``sets`` simulated tables), ``power_error`` (its standard error), ``fdr`` (share of false ones among
        those that were found), ``fdr_error``, ``sets``.
    n_rows : int or None
        Rows at which the power is what was asked for, or the fewest that were tried where these are enough;
        None where no number of rows that was tried gives it.
    low, high : float
        Interval of 95 % for it, from the spread over tables; ``high`` is infinite where the power may not be
        reached. It knows nothing of how far the truth is from what was simulated.
    power, fdr : float
        What was asked for.
    question : str
        "edges" or "varying".
    subject : str
        What rows were drawn from.
    n_true : int
        Pairs that were to be found.
    true_pairs : tuple of str
        Their names, the largest first; where it is not all, with the share of z at which they are edges.
    """

    curve: pd.DataFrame
    n_rows: int | None
    low: float
    high: float
    power: float
    fdr: float
    question: str
    subject: str
    n_true: int
    true_pairs: tuple[str, ...] = ()

    def summary(self) -> str:
        """In a sentence or two."""
        what = "edges at some z" if self.question == "edges" else "edges that move with z"
        of = f"{self.power:.0%} of the {self.n_true} {what} of {self.subject}"
        which = f" The pairs: {first_few(self.true_pairs, _NAMED)}." if self.true_pairs else ""
        at = f"at a false discovery rate of {self.fdr:.0%}"
        last = self.curve.iloc[-1]
        if self.n_rows is None:
            most = f"with {int(last.n):,} rows {last.power:.0%} are found on average"
            return f"To find {of} {at} takes more rows than were tried: {most}.{which}"
        until = f"{self.high:,.0f}" if np.isfinite(self.high) else "more than were tried"
        first = self.curve.iloc[0]
        if self.n_rows == first.n:
            rows = f"{self.n_rows:,} rows or fewer"
            if self.high > self.n_rows:
                rows += f" (95 % interval over simulated tables: up to {until})"
            least = (
                f"with {self.n_rows:,}, the fewest that were tried, {first.power:.0%} are found on average"
            )
            return f"To find {of} {at} takes {rows}: {least}.{which}"
        return (
            f"To find {of} {at} takes about {self.n_rows:,} rows (95 % interval over simulated tables: "
            f"{self.low:,.0f} to {until}).{which}"
        )

    def __repr__(self) -> str:
        return f"<SamplePlan from {count(int(self.curve.sets.sum()), 'simulated table')}>\n{self.summary()}"


def plan_from(outcomes: dict[int, NDArray[np.float64]], power: float, seed: int, **about: Any) -> SamplePlan:
    """From (power, share of false ones) of each table, (sets, 2), by number of rows."""
    sizes = np.array(sorted(outcomes))
    tables = [outcomes[n] for n in sizes]
    rng = np.random.default_rng(seed)
    again = [
        needed_rows(sizes, np.array([rng.choice(own[:, 0], len(own)).mean() for own in tables]), power)
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(again, [0.025, 0.975], method="nearest")
    needed = needed_rows(sizes, np.array([own[:, 0].mean() for own in tables]), power)
    known = None if np.isinf(needed) else int(np.ceil(needed))
    return SamplePlan(_curve(sizes, tables), known, float(low), float(high), power, **about)


def needed_rows(sizes: NDArray[np.int64], powers: NDArray[np.float64], power: float) -> float:
    """Where a curve that never falls reaches this power, straight between sizes on a logarithmic scale.

    The first size where that is enough already, infinite where no size is.

    >>> round(needed_rows(np.array([100, 400]), np.array([0.6, 1.0]), 0.8))
    200
    """
    rising = isotonic_regression(powers).x
    if rising[-1] < power:
        return float("inf")
    after = int(np.argmax(rising >= power))
    if after == 0:
        return float(sizes[0])
    between = (power - rising[after - 1]) / (rising[after] - rising[after - 1])
    return float(np.exp(np.interp(between, [0, 1], np.log(sizes[after - 1 : after + 1]))))


def _curve(sizes: NDArray[np.int64], tables: list[NDArray[np.float64]]) -> pd.DataFrame:
    power, fdr = np.array([mean_and_error(own) for own in tables]).T
    columns = {"n": sizes, "power": power[0], "power_error": power[1], "fdr": fdr[0], "fdr_error": fdr[1]}
    return pd.DataFrame({**columns, "sets": [len(own) for own in tables]})
