"""Whether a graph that varies predicts subjects that it has not seen better than one graph for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis.model_gain import ModelGain
from graphfield.data.frames import Frame
from graphfield.data.splits import folds
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.estimators.inputs import check_number
from graphfield.numbers import Gain
from graphfield.studies.fmri.subjects import Subjects


@dataclass(frozen=True)
class SubjectGain:
    """By how much the squared error of each region given all others falls, on subjects left out.

    ``value`` is a share of the error of one graph for all, averaged over regions; ``standard_error`` treats
    subjects, not time points, as independent. Every subject was left out of training in one of the folds.
    """

    value: float
    standard_error: float
    n_subjects: int
    n_folds: int

    @property
    def model_gain(self) -> ModelGain:
        """The same comparison as for any other table."""
        return ModelGain(
            over_average=Gain(self.value, self.standard_error),
            over_static=None,
            explained=None,
            n_rows=self.n_subjects,
            n_units=self.n_subjects,
            n_folds=self.n_folds,
            rows="subjects",
            average="one graph for all that is fitted in the same way",
        )

    @property
    def verdict(self) -> str:
        """ "better", "worse" or "no clear difference"."""
        return self.model_gain.answer


def subject_gain(
    estimator: GraphEstimator, subjects: Subjects, n_folds: int, tell: Callable[[str], None]
) -> SubjectGain:
    """Every subject is predicted once, by models that saw the subjects of the other folds only.

    The static graph is that of :func:`static_twin`.
    """
    check_number("n_folds", n_folds, 2, len(subjects.ids), integer=True)
    parts: list[tuple[NDArray, NDArray, NDArray]] = []
    for fold, (train, test) in enumerate(folds(len(subjects.ids), None, n_folds, shuffle=True), start=1):
        tell(f"Fold {fold} of {n_folds}: fitting {len(train)} subjects, predicting the other {len(test)} ...")
        known, new = subjects.take(train), subjects.take(test)
        X, Z, groups = known.X, known.Z, known.groups
        rows = HeldOut(new.X.to_numpy(), Frame(new.Z, named=True), np.repeat(test, new.n_times))
        models: tuple[Any, Any] = static_twin(estimator), clone(estimator)
        static, varying = (rows.residuals(model.fit(X, Z, groups=groups).field_) for model in models)
        parts.append((static, varying, rows.units))
    left, right, units = (np.concatenate(column) for column in zip(*parts, strict=True))
    yardstick = Yardstick.of(left, units)
    value, error = yardstick.gain(yardstick.errors(left), yardstick.errors(right))
    return SubjectGain(value, error, len(subjects.ids), n_folds)


def static_twin(estimator: GraphEstimator) -> GraphEstimator:
    """One graph for all, fitted like the varying one: a :class:`~graphfield.DNNCGM` with a single pattern.

    Another static estimator would not do: on real scans a graphical lasso predicts so much worse than a
    single pattern that any model of this kind would seem to gain from varying.
    """
    from graphfield.estimators.dnncgm import DNNCGM

    like = DNNCGM(center="constant", marginals="raw", random_state=0)
    if isinstance(estimator, DNNCGM) and estimator.rank is not None:
        like = clone(estimator)
    # With one pattern its share is 1 whatever the network says, so that one step of training is enough.
    return like.set_params(rank=1, max_steps=1)
