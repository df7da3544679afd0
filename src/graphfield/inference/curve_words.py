"""What a pair does along one covariate, in words that its band does not deny."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from graphfield.data.covariates import Categorical, Numeric
from graphfield.inference.curve import Curve
from graphfield.inference.movement_words import movement_words, rounded_values

# Places of a curve that is told in words, and of one from which its values are read.
TOLD_POINTS, _FINE_POINTS = 11, 41


class Along(Protocol):
    """The curve of a pair, at so many values of a number, rough or smooth."""

    def __call__(self, *, n_points: int = TOLD_POINTS, smooth: bool) -> Curve: ...


def words_along(
    column: Numeric | Categorical, along: Along, ends: tuple[float, float], seed: int, *, signed: bool
) -> str:
    """From a smooth curve, whose single values are less of chance, unless the band leaves it out.

    Nor where it shows no movement between the ``ends`` of a number: what moves is what it leaves out. Nothing
    where neither shows any.
    """
    smooth, rough = (along(smooth=flag) for flag in (True, False))
    is_smooth = rough.covers(smooth, seed)
    curve, rough = (smooth if is_smooth else rough).known(), rough.known()
    if len(curve.values) < 2:
        return ""
    if not isinstance(column, Numeric):
        levels, clearest = list(map(str, curve.values)), None if column.ordered else curve.clearest_levels()
        estimates = curve.estimate.tolist()
        return movement_words(levels, estimates, in_order=column.ordered, places=clearest, signed=signed)
    if is_smooth and not curve.differs_between(*ends):
        curve, is_smooth = rough, False
    if not curve.differs_between(*ends):
        return ""
    told = rounded_values(curve.values)  # and what the curve is there
    fine = along(n_points=_FINE_POINTS, smooth=is_smooth).known()
    estimates, places = np.interp(told, fine.values, fine.estimate).tolist(), curve.telling_places(*ends)
    return movement_words(
        list(map(column.text, told)), estimates, in_order=True, places=places, signed=signed
    )
