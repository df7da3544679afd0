"""Fields that know draws of themselves from a posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.fields.base import Common, Draws, State
from graphfield.fields.linear import LinearField

_MOST_DRAWS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorField(LinearField):
    """The mean of a posterior over fields that are linear in the features of z, with draws from it."""

    coefficient_draws: NDArray[np.float32]  # (n, m, p, p)
    scale_draws: NDArray[np.float64]  # (n, p), residual scales in standard units

    kind: ClassVar[str] = "posterior"

    def draws(self) -> Draws:
        return self.some_draws(np.arange(len(self.scale_draws)))

    def some_draws(self, which: NDArray[np.intp]) -> Draws:
        """Those at these positions, each a field of its own."""
        return Draws([self._draw(i) for i in which], "posterior")

    def _draw(self, position: int) -> LinearField:
        scale = self.common.scaler.scale * self.scale_draws[position]
        coefficients = self.coefficient_draws[position].astype(np.float64)
        return LinearField(
            replace(self.common, residual_scale=scale), coefficients, self.mean, bends=self.bends
        )

    def own_state(self) -> State:
        state, arrays = super().own_state()
        arrays |= {"coefficient_draws": self.coefficient_draws, "scale_draws": self.scale_draws}
        return {**state, "n_draws": len(self.scale_draws)}, arrays

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> PosteriorField:
        known = LinearField.from_state(common, state, arrays)
        n_draws, (m, p, _) = state["n_draws"].whole(2, _MOST_DRAWS), known.interactions.shape
        scales = arrays.read("scale_draws", (n_draws, p), low=0, above=True)
        coefficients = arrays.read_coefficients("coefficient_draws", (n_draws, m, p, p), dtype=np.float32)
        return cls(common, known.interactions, known.mean, coefficients, scales, bends=known.bends)
