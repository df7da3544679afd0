"""Does any edge move, where nodes are of several kinds? Tests with random signs of what rows add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.covariate_basis import Smooth, left_by, whitened
from graphfield.inference.kind_scores import KindScores
from graphfield.inference.running_tests import RunningTest, Sample
from graphfield.inference.score_test import signed_strengths
from graphfield.inference.tests_of_covariates import permutations_wanted, random_signs, sign_words

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

    def overall(self, tick: Callable[[], None]) -> RunningTest:
        """No edge moves with any covariate."""
        columns = whitened(np.hstack([smooth.columns for smooth in self.smooths]))
        return self._tested(columns, np.empty((len(columns), 0)), self.n_permutations, tick)

    def given_others(self, name: str, n_covariates: int, tick: Callable[[], None]) -> RunningTest | None:
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

    def _tested(self, columns: Array, given: Array, count: int, tick: Callable[[], None]) -> RunningTest:
        def draw(count: int) -> Array:
            found = self._statistics(columns, given, count)
            tick()
            return found

        work = 2.0 * self.values.size * columns.shape[1]
        return RunningTest([Sample(draw(count), lambda more: draw(more)[:, 1:], work)])

    def _statistics(self, columns: Array, given: Array, count: int) -> Array:
        """Sum and largest of the strengths of pairs, (2, 1 + count)."""
        signs = random_signs(count, int(self.units.max()) + 1, self.rng)[:, self.units]
        step = max(1, _ENTRIES // max(len(self.values), len(signs)))
        sums, largest = np.zeros(len(signs)), np.zeros(len(signs))
        for start in range(0, self.values.shape[1], step):
            own = slice(start, start + step)
            part = signed_strengths(self.values[:, own].copy(), columns, given, signs)
            part[0] /= self.inflation[own]
            sums += part.sum(axis=1)
            largest = np.maximum(largest, part.max(axis=1))
        return np.stack([sums, largest])
