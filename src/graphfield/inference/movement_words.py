"""What a pair does along a covariate, in a few words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from graphfield.exceptions import agreed, first_few

# Of tests of movement with all covariates together, and with one given the others.
TWO_TESTS = "Tests of all covariates together and of each given the others may find different pairs."
# Places that are all told.
_MOST_NAMED = 4


def pair_name(source: str, target: str) -> str:
    return f"{source} - {target}"


def words_of_unclear(edges: pd.DataFrame, fdr: float) -> str:
    """About edges whose average may be zero and whose movement is not clear by itself, if there are any."""
    unclear = edges[(edges["low"] <= 0) & (edges["high"] >= 0) & (edges["q_varies"] > fdr)]
    if unclear.empty:
        return ""
    names = [pair_name(*pair) for pair in unclear[["source", "target"]].to_numpy()]
    averages = agreed(len(names), "its average", "their averages")
    return (
        f" Least clear: {first_few(names, _MOST_NAMED)}; {averages} may be zero and movement is not clear by "
        "itself, only both together are."
    )


def movement_words(
    values: Sequence[str],
    estimates: Sequence[float],
    *,
    in_order: bool,
    places: Sequence[int] | None = None,
    signed: bool = True,
) -> str:
    """Partial correlations at the places that tell most: all of a few, otherwise those at ``places``.

    Of levels these are the two that differ most clearly, which need not be the extremes. Where they are not
    given: both extremes or, of values that have an order, both ends, and the middle
    unless it is between them.

    >>> movement_words(["ctl", "trt"], [0.021, 0.38], in_order=False)
    '+0.02 at ctl, +0.38 at trt'
    >>> movement_words(list("abcdefghijk"), [0.1 * i for i in range(11)], in_order=True, places=(1, 9))
    '+0.10 at b, +0.90 at j'
    >>> movement_words(list("abcde"), [0.9, 0.1, 0.4, 0.1, 0], in_order=False, places=(2, 4))
    'clearest of 5: +0.40 at c, 0.00 at e'
    >>> movement_words(list("abcde"), [0, 0.1, 0.4, 0.1, 0], in_order=True)
    '0.00 at a, +0.40 at c, 0.00 at e'
    """
    last = len(values) - 1
    told = list(range(last + 1))
    if last >= _MOST_NAMED and places is not None:
        told = list(places)
    elif last >= _MOST_NAMED and in_order:
        least, most = sorted((estimates[0], estimates[last]))
        between = least <= estimates[last // 2] <= most
        told = [0, last] if between else [0, last // 2, last]
    elif last >= _MOST_NAMED:
        told = [min(told, key=estimates.__getitem__), max(told, key=estimates.__getitem__)]
    shown = [_number(estimates[i]) for i in told]
    if not signed:
        shown = [number.lstrip("+") for number in shown]
    text = ", ".join(f"{number} at {values[i]}" for number, i in zip(shown, told, strict=True))
    chosen = places is not None and not in_order and len(told) < len(values)
    return f"clearest of {len(values)}: {text}" if chosen else text


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
