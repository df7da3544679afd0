"""Does any edge move, where nodes are of several kinds? Tests with random signs of what rows add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.covariate_basis import Smooth, left_by, whitened
from graphfield.inference.kind_scores import KindScores
from graphfield.inference.score_test import combined_p_value, signed_strengths
from graphfield.inference.tests_of_covariates import Tested, permutations_wanted, sign_words

Array = NDArray[np.float64]
Apart = Callable[[str, Array], tuple[Array, Array]]
# Scores that are held at a time.
_ENTRIES = 4_000_000


class SignTests:
    """The questions of :class:`~graphfield.inference.tests_of_covariates.Tests`, asked of scores of pairs.

    Where nodes are no numbers, how much a score varies depends on z also if no edge moves, as log-odds do.
    So rows keep their covariates, and what a row adds (or all rows of a group, or of a stretch of time) gets
    a random sign. ``units`` (n,) say which rows belong together.
    """

    def __init__(
        self,
        scores: KindScores,
        smooths: list[Smooth],
        apart: Apart,
        units: NDArray[np.intp],
        unit_name: str,
        n_permutations: int,
        rng: np.random.Generator,
    ) -> None:
        self.values, self.smooths, self.apart, self.units = scores.values, smooths, apart, units
        # Signs do not show what regressions add to variances.
        self.inflation = np.repeat(scores.inflation, scores.pairs.widths)
        self.unit_name, self.n_permutations, self.rng = unit_name, n_permutations, rng

    @property
    def words(self) -> str:
        return sign_words(self.unit_name)

    def n_ticks(self, wanted: list[str]) -> int:
        return 1 + len(wanted)

    def overall(self, tick: Callable[[], None]) -> Tested:
        """No edge moves with any covariate."""
        columns = whitened(np.hstack([smooth.columns for smooth in self.smooths]))
        return self._tested(columns, np.empty((len(columns), 0)), self.n_permutations, tick)

    def given_others(self, name: str, n_covariates: int, tick: Callable[[], None]) -> Tested | None:
        """No edge moves with this covariate beyond how it moves with the others; None if nothing is left."""
        own = next(smooth.columns for smooth in self.smooths if smooth.name == name)
        others = [smooth.columns for smooth in self.smooths if smooth.name != name]
        apart, functions = self.apart(name, whitened(own))
        given = whitened(np.hstack([*others, functions]))
        columns = left_by(given, apart)
        if not columns.shape[1]:
            return None
        most = max(self.n_permutations, permutations_wanted(n_covariates))
        return self._tested(columns, given, most, tick)

    def _tested(self, columns: Array, given: Array, count: int, tick: Callable[[], None]) -> Tested:
        n_units = int(self.units.max()) + 1
        signs = self.rng.choice(np.array([-1, 1], dtype=np.float32), size=(count, n_units))
        signs = np.vstack([np.ones(n_units, dtype=np.float32), signs])[:, self.units]
        step = max(1, _ENTRIES // max(len(self.values), len(signs)))
        sums, largest = np.zeros(len(signs)), np.zeros(len(signs))
        for start in range(0, self.values.shape[1], step):
            own = slice(start, start + step)
            part = signed_strengths(self.values[:, own].copy(), columns, given, signs)
            part[0] /= self.inflation[own]
            sums += part.sum(axis=1)
            largest = np.maximum(largest, part.max(axis=1))
        tick()
        return Tested(combined_p_value(np.stack([sums, largest])), count)
