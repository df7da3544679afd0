"""What a pair does along a covariate, in a few words."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Places that are all told, and the share of a longer curve that is left out at each end, where rows are few.
_MOST_TOLD, _ENDS = 4, 0.1


def pair_name(source: str, target: str) -> str:
    return f"{source} - {target}"


def movement_words(values: Sequence[str], estimates: Sequence[float], *, in_order: bool) -> str:
    """Partial correlations at the places that tell most: all of a few, otherwise both ends or both extremes.

    Of values that have an order, the middle is told as well where it is not between the ends.

    >>> movement_words(["ctl", "trt"], [0.021, 0.38], in_order=False)
    '+0.02 at ctl, +0.38 at trt'
    >>> movement_words(list("abcdefghijk"), [0.1 * i for i in range(11)], in_order=True)
    '+0.10 at b, +0.90 at j'
    >>> movement_words(list("abcdefghijk"), [0, 0, 0, 0.2, 0.3, 0.4, 0.3, 0.2, 0.1, 0, 0], in_order=True)
    '0.00 at b, +0.40 at f, 0.00 at j'
    """
    last = len(values) - 1
    told = list(range(last + 1))
    if last >= _MOST_TOLD and in_order:
        low, middle, high = round(_ENDS * last), last // 2, last - round(_ENDS * last)
        least, most = sorted((estimates[low], estimates[high]))
        told = [low, high] if least <= estimates[middle] <= most else [low, middle, high]
    elif last >= _MOST_TOLD:
        told = [min(told, key=estimates.__getitem__), max(told, key=estimates.__getitem__)]
    return ", ".join(f"{_number(estimates[i])} at {values[i]}" for i in told)


def rounded_values(values: Sequence[float]) -> list[float]:
    """With two digits of their range.

    >>> rounded_values([20.123, 61.987]), rounded_values([2015.02, 2015.98])
    ([20.0, 62.0], [2015.02, 2015.98])
    """
    reach = max(values) - min(values)
    digits = 0 if reach <= 0 else max(0, 2 - math.ceil(math.log10(reach)))
    return [round(value, digits) for value in values]


def _number(value: float) -> str:
    shown = f"{value:+.2f}"
    return shown if float(shown) else shown[1:]
