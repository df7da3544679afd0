"""Whether a graph that varies predicts subjects that it has not seen better than one graph for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from graphfield.data.frames import Frame
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.pipelines.subjects import Subjects

# Standard errors that a difference must exceed to be called one.
_CLEAR = 2.0


@dataclass(frozen=True)
class SubjectGain:
    """By how much the squared error of each region given all others falls, on subjects left out.

    ``value`` is a share of the error of one graph for all, averaged over regions; ``standard_error`` treats
    subjects, not time points, as independent. ``subjects`` were left out of training.
    """

    value: float
    standard_error: float
    subjects: list[str]

    @property
    def verdict(self) -> str:
        """ "better", "worse" or "no clear difference"."""
        if abs(self.value) <= _CLEAR * self.standard_error:
            return "no clear difference"
        return "better" if self.value > 0 else "worse"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        size = f"{100 * self.value:+.2f} % ± {100 * self.standard_error:.2f} %"
        who = f"{len(self.subjects)} subjects that were left out of training"
        endings = {
            "better": f"On {who}, the varying graph predicts better than one graph for all",
            "worse": f"On {who}, the varying graph predicts worse than one graph for all",
            "no clear difference": f"On {who}, the varying graph predicts no better than one graph for all",
        }
        return f"{endings[self.verdict]} (error lower by {size})."


def subject_gain(
    estimator: GraphEstimator, subjects: Subjects, fraction: float, seed: int
) -> tuple[SubjectGain, GraphEstimator]:
    """The gain, and the model it was measured with: a copy of ``estimator`` that saw the other subjects only.

    The static graph is a :class:`~graphfield.GraphicalLasso`, its penalty chosen by subject too.
    """
    train, test = subjects.split(fraction, seed)
    X, Z, groups = train.X, train.Z, train.groups
    varying: Any = clone(estimator)
    varying.fit(X, Z, groups=groups)
    static = GraphicalLasso().fit(X, Z, groups=groups)
    units = np.repeat(np.arange(len(test.ids)), test.n_times)
    rows = HeldOut(test.X.to_numpy(), Frame(test.Z, named=True), units)
    left = rows.residuals(static)
    yardstick = Yardstick.of(left, units)
    lower = yardstick.errors(left) - yardstick.errors(rows.residuals(varying))
    return SubjectGain(float(lower.mean()), yardstick.standard_error(lower), test.ids), varying
