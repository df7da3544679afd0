"""Numbers with their standard errors: when they are clear, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

# By how many standard errors a number must differ from zero to be called clear, where nothing else is said.
CLEAR = 2.0
# A p-value up to this says that something is there.
SIGNIFICANT = 0.05
_ROUNDING = 1e-9  # 6 / 600 is not quite 0.01 in binary
_EQUAL = 1e-6  # a difference of rounding
_MOST_DIGITS = 6
_EXACT = 17  # digits from which a number is read back as it was
_SMALLEST = 0.001  # p-values below it are not written out


def is_clear(value: Any, standard_error: Any, n_errors: float = CLEAR, least: float = 0.0) -> Any:
    """Whether numbers are above zero by more than so many of their standard errors, and above ``least``.

    This is what "clear" means everywhere; of arrays, entry by entry. A number whose error is not known (NaN)
    is not clear.

    >>> is_clear(0.05, 0.01), is_clear(0.05, 0.02, n_errors=3), is_clear(0.05, 0.01, least=0.1)
    (True, False, False)
    """
    found = np.asarray(value) > np.maximum(n_errors * np.asarray(standard_error), least)
    return found if found.ndim else bool(found)


@dataclass(frozen=True)
class Gain:
    """A share, mostly of a held-out squared error, and its standard error.

    >>> Gain(0.05, 0.01).is_clear, Gain(0.01, 0.01).is_clear, Gain(-0.05, 0.01).is_clear_loss
    (True, False, True)
    """

    value: float
    standard_error: float

    @property
    def is_clear(self) -> bool:
        """Above zero by more than two standard errors (and more than rounding makes)."""
        return self.is_clear_by(CLEAR)

    def is_clear_by(self, n_errors: float) -> bool:
        """The same by another number of standard errors."""
        return bool(is_clear(self.value, self.standard_error, n_errors, least=_EQUAL))

    @property
    def is_clear_loss(self) -> bool:
        """Below zero by more than two standard errors."""
        return Gain(-self.value, self.standard_error).is_clear

    @property
    def side(self) -> str:
        """Where the error is: "2.31 % (± 0.40) below", or "equal to".

        >>> Gain(0.0231, 0.004).side, Gain(-0.001, 0.004).side, Gain(0.0, 0.0).side
        ('2.3 % (± 0.4) below', '0.1 % (± 0.4) above', 'equal to')
        """
        if abs(self.value) < _EQUAL:
            return "equal to"
        return f"{Gain(abs(self.value), self.standard_error)} {'below' if self.value > 0 else 'above'}"

    def __str__(self) -> str:
        """In percent, with as many digits as the standard error has meaning.

        >>> str(Gain(-0.0004, 0.003)), str(Gain(-0.0014, 0.003))
        ('0.0 % (± 0.3)', '-0.1 % (± 0.3)')
        """
        return self._written("")

    @property
    def signed(self) -> str:
        """The same with a sign in front, also of gains.

        >>> Gain(0.0231, 0.004).signed, Gain(-0.0014, 0.003).signed, Gain(0.0004, 0.003).signed
        ('+2.3 % (± 0.4)', '-0.1 % (± 0.3)', '0.0 % (± 0.3)')
        """
        return self._written("+")

    def _written(self, sign: str) -> str:
        digits = _digits(self.standard_error or self.value)
        # A zero has no sign, also one that is rounded.
        value, error = (round(100 * size, digits) + 0.0 for size in (self.value, self.standard_error))
        return f"{value:{sign if value else ''}.{digits}f} % (± {error:.{digits}f})"

    def to_json(self) -> dict[str, float]:
        return {"value": self.value, "standard_error": self.standard_error}

    @classmethod
    def from_json(cls, values: dict[str, Any] | None) -> Gain | None:
        return None if values is None else cls(float(values["value"]), float(values["standard_error"]))


def mean_and_error(
    gains: NDArray[np.floating], units: NDArray[np.intp] | None = None, ddof: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means over rows of (n,) or (n, p), and their standard errors: what :func:`is_clear` asks for."""
    return gains.mean(axis=0, dtype=np.float64), standard_errors(gains, units, ddof)


def standard_errors(
    gains: NDArray[np.floating], units: NDArray[np.intp] | None = None, ddof: int = 1
) -> NDArray[np.float64]:
    """Of the means over rows of (n,) or (n, p); rows of one unit may go together in any way.

    With units of equal size these are the standard errors of the means of the units' means. Without units,
    each row is one.

    >>> float(standard_errors(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1])))
    1.0
    """
    if units is None:
        if len(gains) <= ddof:
            return np.full(gains.shape[1:], np.nan)
        return gains.std(axis=0, dtype=np.float64, ddof=ddof) / np.sqrt(len(gains))
    mean = gains.mean(axis=0, dtype=np.float64, keepdims=True)
    order = np.argsort(units, kind="stable")
    starts = np.flatnonzero(np.diff(units[order], prepend=-1))
    totals = np.add.reduceat((gains - mean)[order], starts, axis=0)
    return np.sqrt(np.square(totals).sum(axis=0) * len(starts) / max(1, len(starts) - ddof)) / len(gains)


def _digits(size: float) -> int:
    """Decimals of a percentage that show one digit of ``size``, and two where that is a 1.

    >>> _digits(0.004), _digits(0.0012), _digits(0.12), _digits(0.0)
    (1, 2, 0, 1)
    """
    if size == 0 or not math.isfinite(size):
        return 1
    place = math.floor(math.log10(abs(100 * size)))
    leading = abs(100 * size) / 10**place
    return min(_MOST_DIGITS, max(0, -place + (leading < 2)))


def is_significant(p_value: float) -> bool:
    return p_value - _ROUNDING <= SIGNIFICANT


def format_beside(level: float, values: Iterable[float], digits: int, kind: str = "g") -> str:
    """The format with the fewest digits, at least so many, that leaves each value on its side of a level.

    >>> format_beside(0.1, [0.02, 0.5], 4), format_beside(0.1, [0.02, 0.100002], 4)
    ('%.4g', '%.6g')
    """
    sides = [(value, value <= level) for value in values]
    formats = (f"%.{n}{kind}" for n in range(digits, _EXACT))
    kept = (own for own in formats if all((float(own % value) <= level) == side for value, side in sides))
    return next(kept, f"%.{_EXACT}{kind}")


def p_digits(p_value: float) -> str:
    """Three decimals without the zero in front, more where these look significant; below .001 only that.

    A half goes up, as a person rounds: 39 / 2000 is not quite .0195 in binary.

    >>> p_digits(0.0123), p_digits(0.4), p_digits(0.00004), p_digits(1.0), p_digits(0.0502)
    ('.012', '.400', '< .001', '1.000', '.0502')
    >>> p_digits(0.0195), p_digits(0.0125)
    ('.020', '.013')
    """
    if p_value < _SMALLEST:
        return "< .001"
    exact = Decimal(repr(float(p_value)))
    rounded = (exact.quantize(Decimal(10) ** -digits, ROUND_HALF_UP) for digits in range(3, _EXACT + 1))
    shown = next((p for p in rounded if is_significant(float(p)) == is_significant(p_value)), exact)
    return f"{shown:f}".removeprefix("0")


def p_text(p_value: float) -> str:
    """The same with the letter in front.

    >>> p_text(0.0123), p_text(0.00004)
    ('p = .012', 'p < .001')
    """
    return f"p {p_digits(p_value)}" if p_value < _SMALLEST else f"p = {p_digits(p_value)}"
