"""Missing and infinite values of rows that come block by block; see :mod:`graphfield.data.missing`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphfield.data.frames import Frame
from graphfield.data.missing import (
    POLICIES,
    bad_entries,
    describe_dropped,
    describe_filled,
    describe_imputed,
    gap_counts,
    gap_refusal,
    imputed,
    is_complete,
    refuse_empty,
    replacement,
)
from graphfield.exceptions import DataWarning, check_choice


@dataclass
class Gaps:
    """What is missing in the blocks so far, by column, and what is done about it."""

    policy: str
    n_rows: int = 0
    n_incomplete: int = 0
    found: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)  # how many, and the first

    def __post_init__(self) -> None:
        check_choice("missing", self.policy, POLICIES)

    def look_at(self, X: Frame, Z: Frame) -> NDArray[np.bool_]:
        """Which of the next rows are to be kept."""
        keep, start = np.ones(len(X.values), dtype=bool), self.n_rows
        self.n_rows += len(keep)
        for role, frame in (("node", X), ("covariate", Z)):
            if is_complete(frame):
                continue
            bad = bad_entries(frame).to_numpy()
            keep &= ~bad.any(axis=1)
            for j in np.flatnonzero(bad.any(axis=0)):
                name = role, frame.names[j]
                known, first = self.found.get(name, (0, start + int(bad[:, j].argmax())))
                self.found[name] = known + int(bad[:, j].sum()), first
        self.n_incomplete += int((~keep).sum())
        return keep if self.policy == "drop" else np.ones_like(keep)

    def settle(self, X: NDArray[np.floating], names: list[str], Z: Frame) -> Frame:
        """The covariates, gaps filled in where these are to be, as those of X are, in place; or an error."""
        if not self.found:
            return Z
        counts = gap_counts([(gaps, *name, first) for name, (gaps, first) in self.found.items()])
        for role in ("node", "covariate"):
            own = [(name, gaps) for (kind, name), (gaps, _) in self.found.items() if kind == role]
            refuse_empty(role.capitalize(), [name for name, gaps in own if gaps == self.n_rows], self.n_rows)
        if self.policy == "error":
            raise gap_refusal(counts, self.n_rows - self.n_incomplete, self.n_rows, X.shape[1])
        if self.policy == "drop":
            said = describe_dropped(self.n_incomplete, self.n_rows, counts)
        else:
            said = describe_imputed(sum(gaps for gaps, _ in self.found.values()), self._fill(X, names, Z))
            Z = Z if is_complete(Z) else imputed(Z, bad_entries(Z))
        warnings.warn(said, DataWarning, stacklevel=5)
        return Z

    def _fill(self, X: NDArray[np.floating], names: list[str], Z: Frame) -> list[str]:
        """Medians into the gaps of X; what stands for the gaps of each column."""
        parts = []
        for (role, name), (gaps, _) in self.found.items():
            if role == "covariate":
                column = Z.values[name]
                value, how = replacement(column, bad_entries(Frame(column.to_frame(), True))[name].to_numpy())
            else:
                values = X[:, names.index(name)]
                bad = ~np.isfinite(values)
                value, how = float(np.median(values[~bad].astype(np.float64))), "median"
                values[bad] = value
            parts.append(describe_filled(name, gaps, value, how))
        return parts
