"""Rows of groups: their labels, and nodes less the levels that groups have."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.group_levels import LevelCheck, find_levels
from graphfield.data.splits import group_labels
from graphfield.estimators.inputs import Inputs
from graphfield.exceptions import DataWarning


def without_levels(
    inputs: Inputs, groups: Any, X: Any, *, wanted: bool = True
) -> tuple[Inputs, NDArray | None, LevelCheck | None]:
    """The nodes less the levels of their groups, where these have any; codes of the groups; the comparison.

    ``groups`` are the user's labels for all rows of X. Nothing is subtracted, or compared, unless ``wanted``.
    """
    labels = group_labels(groups, X)
    labels = None if labels is None else labels[inputs.rows]
    if labels is None or not wanted:
        return inputs, labels, None
    codes = np.unique(labels, return_inverse=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model's own encoder says it
        encoder = CovariateEncoder(standardize=True, unknown="average").fit(inputs.Z, allow_empty=True)
    W = features(encoder, encoder.transform(inputs.Z))
    check, levels = find_levels(inputs.X, np.column_stack([W, W[:, 1:] ** 2]), codes)
    if not check.prefers:
        return inputs, labels, check
    warnings.warn(
        f"Groups have levels of their own ({check.share:.0%} of a node's variance on average); these were "
        "subtracted, so that graphs are about what varies within a group. Predictions for other groups are "
        "about the mean of all.",
        DataWarning,
        stacklevel=3,
    )
    if inputs.types is not None:  # what is taken from a code is none
        levels[:, [kind != "gaussian" for kind in inputs.types.kinds]] = 0.0
    values = inputs.X - levels[codes].astype(inputs.X.dtype)
    return replace(inputs, X=values), labels, check
