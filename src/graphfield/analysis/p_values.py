"""How a p-value is written: everywhere in the same way."""

from __future__ import annotations

_SMALLEST = 0.001


def p_digits(p_value: float) -> str:
    """Three decimals without the zero in front; below .001 only that.

    >>> p_digits(0.0123), p_digits(0.4), p_digits(0.00004), p_digits(1.0)
    ('.012', '.400', '< .001', '1.000')
    """
    return "< .001" if p_value < _SMALLEST else f"{p_value:.3f}".removeprefix("0")


def p_words(p_value: float) -> str:
    """The same with the letter in front.

    >>> p_words(0.0123), p_words(0.00004)
    ('p = .012', 'p < .001')
    """
    return f"p {p_digits(p_value)}" if p_value < _SMALLEST else f"p = {p_digits(p_value)}"
