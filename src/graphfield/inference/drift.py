"""Levels of groups that drift, and differences of neighbouring rows, in which levels cancel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.drifting_levels import drifting_covariates
from graphfield.data.frames import as_frame, with_columns
from graphfield.data.group_levels import LevelCheck
from graphfield.estimators.inputs import Inputs
from graphfield.exceptions import DataError

# Differences are of neighbours that are about as far apart as most are, in units of the median; with less
# than this share of all neighbours, nothing is asked of them.
_NEAREST, _FARTHEST, _ENOUGH = 0.6, 1.5, 0.5
T = TypeVar("T")


@dataclass(frozen=True)
class Drift:
    """Covariates along which levels drift that were subtracted, and the rows with their groups."""

    names: tuple[str, ...]
    inputs: Inputs
    labels: NDArray[np.intp]

    @classmethod
    def of(cls, inputs: Inputs, labels: NDArray | None, levels: LevelCheck | None) -> Drift | None:
        """Of rows less their levels; nothing where none were subtracted, or they do not drift."""
        if labels is None or levels is None or not levels.prefers:
            return None
        codes = np.unique(labels, return_inverse=True)[1]
        kinds = None if inputs.types is None else inputs.types.kinds
        numbers = [
            j
            for j in range(inputs.X.shape[1])
            if j not in levels.fixed_nodes and (kinds is None or kinds[j] == "gaussian")
        ]
        names = drifting_covariates(inputs.X[:, numbers], inputs.Z, codes, inputs.rows)
        if not names:
            return None
        kept = replace(inputs, X=inputs.X[:, numbers], node_names=[inputs.node_names[j] for j in numbers])
        return cls(tuple(names), inputs if inputs.types is not None else kept, codes)

    def ask_again(self, test: Callable[..., T]) -> T | None:
        """The same of differences of neighbouring rows, if they can say more: they may drift themselves."""
        if self.inputs.types is not None:
            return None
        X, Z, labels = self._differences()
        if len(X) < _ENOUGH * (len(self.labels) - len(np.unique(self.labels))):
            return None
        if drifting_covariates(X.to_numpy(), as_frame(Z, "Z"), labels):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said of the rows themselves
            try:
                return test(X, Z, groups=labels)
            except DataError:
                return None

    def _differences(self) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.intp]]:
        """Nodes less those of the row before, covariates in the middle between both, the later of levels."""
        encoder = CovariateEncoder(standardize=False, unknown="average", says_average=False)
        encoded = encoder.fit(self.inputs.Z).transform(self.inputs.Z)
        places = [column.name for column in encoder.numeric]
        numbers = encoded.numeric
        levels = {column.name: own for column, own in zip(encoder.categorical, encoded.codes.T, strict=True)}
        place = numbers[:, places.index(self.names[0])] if self.names[0] in places else levels[self.names[0]]
        order = np.lexsort((place, self.labels))
        before, after = order[:-1], order[1:]
        steps = place[after] - place[before]
        same = (self.labels[before] == self.labels[after]) & (steps > 0)
        usual = float(np.median(steps[same])) if same.any() else 0.0
        same &= (steps > _NEAREST * usual) & (steps < _FARTHEST * usual)
        before, after = before[same], after[same]
        values = self.inputs.X.astype(np.float64)
        X = pd.DataFrame(values[after] - values[before], columns=self.inputs.node_names)
        Z = self.inputs.Z.values.iloc[after].reset_index(drop=True)
        middle = (numbers[after] + numbers[before]) / 2
        return X, with_columns(Z, dict(zip(places, middle.T, strict=True))), self.labels[after]
