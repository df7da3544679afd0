"""Levels of groups that drift along a covariate, before these are subtracted by their mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import DRIFTING, Finding
from graphfield.data.drifting_levels import WHAT_TO_DO, drifting_covariates, what_drift_is
from graphfield.data.frames import Frame


def drift_findings(
    within: NDArray[np.floating], Z: Frame, bad_z: pd.DataFrame, codes: NDArray[np.intp]
) -> Iterator[Finding]:
    """Of nodes less their levels, (n, p), in rows whose covariates may have gaps; groups are from 0 on."""
    rows = np.flatnonzero((codes >= 0) & ~bad_z.to_numpy(dtype=bool).any(axis=1))
    along = drifting_covariates(within[rows], Z.take(rows), codes[rows])
    if along:
        yield Finding(
            DRIFTING,
            tuple(along),
            what_drift_is(along),
            f"{WHAT_TO_DO} Tests of movement do so by themselves where nodes are numbers; a fit does not.",
        )
