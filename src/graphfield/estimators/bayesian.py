"""BayesianCGM: coefficients linear in the covariates, with probabilities that they are there at all."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number
from graphfield.estimators.judged_pairs import KnownPairs
from graphfield.estimators.linear_rows import LinearRows, covariate_of_feature
from graphfield.estimators.parameters import (
    CENTER,
    COUNT,
    MISSING,
    UNKNOWN,
    Custom,
    Number,
    Seed,
    WordOrNumber,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, ParameterError, TrainingWarning, count, listing
from graphfield.fields.average import AverageField
from graphfield.fields.base import GraphField, State
from graphfield.fields.posterior import PosteriorField
from graphfield.fields.streaming import slices
from graphfield.fields.walker import rows_at_a_time
from graphfield.graphs.pair_tests import FALSE_SHARE
from graphfield.numbers import standard_errors
from graphfield.solvers.interaction import interaction_gram
from graphfield.solvers.spike_slab import Posterior, Prior, Products, sample_posterior

# Of the mean of the nodes, so that it exists for any z.
_RIDGE = 1e-6
# Chains disagree above these: R-hat of residual scales, Monte Carlo error of an inclusion probability.
_MOST_RHAT, _MOST_ERROR = 1.1, 0.1
# Of a number.
_MOST_BENDS = 20
# Rows at which the spread of the posterior is looked at.
_SPREAD_ROWS = 20


def _check_inclusion(value: Any) -> None:
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, (tuple, list)) and len(value) == 2:
        for one in value:
            check_number("inclusion: each of (a, b)", one, 0, open_low=True)
    else:
        check_number("inclusion, unless 'auto' or a pair as (1, 4),", value, 0, 1, open_low=True)


def least_probability(chance: NDArray[np.float64]) -> float:
    """From which probability pairs are edges: above one half, and at most a tenth of them false on average.

    >>> least_probability(np.array([1.0, 0.9, 0.8, 0.55, 0.2]))
    0.8
    >>> least_probability(np.array([0.4]))
    inf
    """
    ordered = -np.sort(-chance)
    false = np.cumsum(1 - ordered) / np.arange(1, len(chance) + 1)
    fine = ordered[(false <= FALSE_SHARE + 1e-12) & (ordered > 0.5)]
    return float(fine[-1]) if len(fine) else np.inf


@hyper_parameters
class BayesianCGM(GraphEstimator):
    """Covariate-dependent graph with linear coefficients and spike-and-slab priors, by Gibbs sampling.

    ``x_j - mu_j(z) = sum_{k != j} (b_jk0 + sum_l b_jkl z_l) (x_k - mu_k(z)) + eps_j`` as in :class:`RegGMM`,
    where each b is zero, or with probability pi drawn from ``N(0, sigma_j^2 slab^2)``: so every pair, and
    every covariate of a pair, has a probability that it is there, and every answer an interval. The
    regressions of the nodes are sampled side by side (a quasi-posterior, as that of Zeng et al. 2024 and of
    GraphR); a pair has the mean of what its two directions say, here as in every other estimator.

    Parameters
    ----------
    inclusion : "auto", pair (a, b) or float, default "auto"
        Each node has, for each feature of z, a share of coefficients ``pi ~ Beta(a, b)``, learned with them.
        (1, 4) is the prior of GraphR; "auto" is (1, 4 m) with m features, so that a pair is about as likely
        to be there however many covariates may move it. A number is pi itself; 1 is Bayesian ridge.
    slab : "auto" or float, default "auto"
        Standard deviation of a coefficient that is there, in units of what is left of its node. "auto" learns
        it for each node and feature around .3 (Student's t with four degrees of freedom).
    bends : int, default 0
        Bends of each numeric covariate: so many more features of z, piecewise linear between as many of its
        quantiles, which the means of the nodes have as well. With 0 edges are linear in numbers; with 3 they
        may rise and fall. More follow a curve more closely and take more rows.
    n_sweeps : int, default 500
        Updates of all coefficients in each chain; the first half of them is forgotten.
    n_chains : int, default 4
        Chains from different starts, whose agreement says whether they are long enough.
    n_draws : int, default 200
        Draws of all coefficients that are kept, and saved with the model.
    center : {"covariates", "constant", "none"}
        Subtract a mean that is linear in z (and divide by a scale that moves with z where held-out rows
        support it), one mean per node, or nothing. Means and scales are estimates, not drawn.
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or the average of the others.
    random_state : int, Generator or None
        Decides the chains.

    Attributes
    ----------
    inclusion_ : ndarray of shape (p, p)
        Posterior probability that a pair has an edge at some z: mean of its two directions.
    covariate_inclusion_ : ndarray of shape (1 + q, p, p)
        That the part of the edge that is common to all z is not zero, and that each covariate moves it.
    inclusion_error_ : ndarray of shape (p, p)
        Monte Carlo standard error of ``inclusion_``, from halves of chains.
    rhat_ : ndarray of shape (p,)
        Split R-hat of the residual scale of each node; above 1.1 chains disagree.
    interactions_ : ndarray of shape (m, p, p)
        Posterior means of the coefficients of the m features of z, in standard units: a one, each number
        with its bends behind it, levels.
    coefficient_draws_, scale_draws_ : ndarrays of shape (n_draws, m, p, p) and (n_draws, p)
        Draws of these, and of residual standard deviations, in standard units.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.BayesianCGM(n_sweeps=100, n_draws=40, random_state=0).fit(sim.X[:, :5], sim.Z)
    >>> low, high = model.credible_intervals(sim.Z[:2], level=0.9)
    >>> bool((low <= high).all()), model.inclusion_.shape
    (True, (5, 5))
    """

    _streams: ClassVar = ("split", "gap", "chains")
    takes_all_rows = True
    _knows_levels = True

    inclusion: float | str | tuple[float, float] = parameter("auto", Custom(_check_inclusion))
    slab: float | str = parameter("auto", WordOrNumber(("auto",)))
    bends: int = parameter(0, Number(0, _MOST_BENDS, integer=True))
    n_sweeps: int = parameter(500, Number(8, integer=True))
    n_chains: int = parameter(4, COUNT)
    n_draws: int = parameter(200, COUNT)
    center: str = parameter("covariates", CENTER)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    random_state: Any = parameter(None, Seed())

    def _check_together(self) -> None:
        most = self.n_chains * (self.n_sweeps - self.n_sweeps // 2)
        if self.n_draws > most:
            raise ParameterError.of(
                "n_draws",
                f"of BayesianCGM must be at most n_chains * n_sweeps / 2 = {most}, the sweeps that "
                f"are not forgotten, got {self.n_draws}. Raise n_sweeps, or keep fewer.",
            )

    def _fit(self, data: TrainingSet) -> PosteriorField:
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        if self.bends and not schema.encoder.numeric:
            names = listing([column.name for column in schema.encoder.categorical])
            raise DataError(
                f"BayesianCGM(bends={self.bends}) needs a numeric covariate, which may bend, and got levels "
                f"alone ({names}). Leave bends at 0: each level has coefficients of its own."
            ).about(argument="bends")
        rows = LinearRows.learn(data, schema, self.center, True, _RIDGE, int(self.bends))
        n, p = rows.nodes.shape
        freedom = max(n - (rows.W.shape[1] if self.center == "covariates" else 1), 1)
        found = sample_posterior(
            Products.of(n * interaction_gram(rows.nodes, rows.W), p, freedom),
            self._prior(rows.W.shape[1]),
            rows.covariate,
            n_sweeps=self.n_sweeps,
            n_chains=self.n_chains,
            n_draws=self.n_draws,
            rng=np.random.default_rng(data.streams["chains"]),
        )
        self._keep(found)
        mean = rows.field(found.mean)
        draws = found.draws, found.scales
        return PosteriorField(mean.common, mean.interactions, mean.mean, *draws, bends=mean.bends)

    def _prior(self, n_features: int) -> Prior:
        slab = None if isinstance(self.slab, str) else float(self.slab)
        if isinstance(self.inclusion, (tuple, list)):
            first, second = self.inclusion
            return Prior((float(first), float(second)), slab)
        if isinstance(self.inclusion, str):
            return Prior((1.0, 4.0 * n_features), slab)
        return Prior(float(self.inclusion), slab)

    def _keep(self, found: Posterior) -> None:
        present = (found.present + found.present.swapaxes(-1, -2)) / 2
        share = present.mean(axis=0)
        self.covariate_inclusion_, self.inclusion_ = share[:-1], share[-1]
        self.inclusion_error_ = standard_errors(present[:, -1])
        self.rhat_ = found.rhat
        n_pairs = int((np.triu(self.inclusion_error_) > _MOST_ERROR).sum())
        if n_pairs or self.rhat_.max() > _MOST_RHAT:
            warnings.warn(
                f"The chains of BayesianCGM have not come together: R-hat is up to {self.rhat_.max():.2f} "
                f"({_MOST_RHAT} or less is needed), and {count(n_pairs, 'pair')} "
                f"have a Monte Carlo error of their probability above {_MOST_ERROR}. "
                f"Raise n_sweeps, now {self.n_sweeps}; nodes that nearly copy each other take longest.",
                TrainingWarning,
                stacklevel=4,
            )

    def _new_rows(self, field: GraphField, data: TrainingSet) -> KnownPairs:
        """Probable pairs, where they exceed what is typically unknown of them."""
        upper = np.triu_indices(field.n_nodes, 1)
        chance = self.inclusion_[upper]
        least = least_probability(chance)
        likely = chance >= least
        some = data.Z.take(np.linspace(0, len(data.X) - 1, _SPREAD_ROWS).astype(np.intp))
        members = field.of_kind(PosteriorField).draws().members
        rows = field.encode(some)
        values = np.stack([member.at(rows).partial_correlations[:, *upper] for member in members])
        spread = values.std(axis=0)[:, likely if likely.any() else slice(None)]
        value = min(1.0, float(np.median(spread)))
        reason = f"none of {len(chance):,} pairs has an edge with a probability above one half"
        if likely.any():
            reason = (
                f"{int(likely.sum()):,} of {len(chance):,} pairs have an edge with a probability of at least "
                f"{chance[likely].min():.2f}: {(1 - chance[likely]).mean():.0%} of them are expected to be "
                f"false; at each z those above {value:.3g}, the typical spread of their posterior, are edges"
            )
        return KnownPairs(self.inclusion_ >= least, value, reason)

    # -- the posterior ----------------------------------------------------------------------

    @property
    def interactions_(self) -> NDArray[np.float64]:
        return self._known().of_kind(PosteriorField).interactions

    @property
    def coefficient_draws_(self) -> NDArray[np.float32]:
        return self._known().of_kind(PosteriorField).coefficient_draws

    @property
    def scale_draws_(self) -> NDArray[np.float64]:
        return self._known().of_kind(PosteriorField).scale_draws

    def draws(self, n: int | None = None) -> AverageField:
        """Draws of the field from its posterior, as members of one that is their mean.

        Every question of :mod:`graphfield.analysis` has posterior intervals, of the model by all draws;
        fewer, ``n`` of them, are faster. ``members`` are fields of their own.

        Examples
        --------
        >>> import graphfield as gf
        >>> from graphfield.analysis import compare
        >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
        >>> model = gf.BayesianCGM(n_sweeps=100, n_draws=40, random_state=0).fit(sim.X[:, :5], sim.Z)
        >>> list(compare(model.draws(20), sim.Z[0], sim.Z[1]).columns[-3:])
        ['standard_error', 'interval_low', 'interval_high']
        """
        field = self._field().of_kind(PosteriorField)
        n_kept = len(field.scale_draws)
        n = n_kept if n is None else n
        check_number("n", n, 2, n_kept, integer=True)
        which = np.linspace(0, n_kept - 1, int(n)).round().astype(int)
        members = field.some_draws(which).members
        return AverageField(field.common, members, np.full(len(members), 1 / len(members)), "posterior")

    def credible_intervals(self, Z: Any, level: float = 0.9) -> tuple[NDArray, NDArray]:
        """Ends of intervals that have the partial correlations at Z with this probability, (n, p, p) each.

        Each end is the mean of those of the two directions, which see the same rows.
        """
        check_number("level", level, 0, 1, open_low=True, open_high=True)
        field = self._field().of_kind(PosteriorField)
        members, rows, p = field.draws().members, field.rows(Z), field.n_nodes
        tails = [(1 - level) / 2, (1 + level) / 2]
        ends = np.empty((2, len(rows), p, p), dtype=np.float32)
        for part in slices(len(rows), max(1, rows_at_a_time(p) // len(members))):
            own = rows.between(part)
            directed = np.stack([member.at(own).directed for member in members])
            ends[:, part] = np.quantile(directed, tails, axis=0)
        low, high = (ends + ends.swapaxes(-1, -2)) / 2
        return low, high

    def inclusion_table(self) -> pd.DataFrame:
        """Pairs with their ``probability``, most probable first, and that of every covariate.

        ``probability`` is that of an edge at some z, ``error`` its Monte Carlo standard error, ``constant``
        is about the part that is common to all z, and each covariate has a column of its own.
        """
        field = self._field()
        j, k = np.triu_indices(field.n_nodes, 1)
        names, encoder = np.array(self.node_names_, dtype=object), field.schema.encoder
        parts = ["constant", *(c.name for c in encoder.numeric), *(c.name for c in encoder.categorical)]
        columns = {"source": names[j], "target": names[k], "probability": self.inclusion_[j, k]}
        columns["error"] = self.inclusion_error_[j, k]
        table = pd.DataFrame(columns)
        for name, own in zip(parts, self.covariate_inclusion_, strict=True):
            table.insert(len(table.columns), name, own[j, k], allow_duplicates=True)
        order = np.argsort(-self.inclusion_[j, k], kind="stable")
        return table.iloc[order].reset_index(drop=True)

    def _findings(self) -> list[str]:
        return [
            f"{self.n_chains} chains of {self.n_sweeps} sweeps: R-hat is at most {self.rhat_.max():.2f}, the "
            f"Monte Carlo error of a pair's probability at most {self.inclusion_error_.max():.2f}."
        ]

    def _get_learned(self) -> State:
        return {}, {
            "inclusion": np.concatenate([self.covariate_inclusion_, self.inclusion_[None]]),
            "inclusion_error": self.inclusion_error_,
            "rhat": self.rhat_,
        }

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:  # noqa: ARG002
        encoder, p = self._known().schema.encoder, self._known().n_nodes
        n_parts = len(np.unique(covariate_of_feature(encoder)))
        share = arrays.read("inclusion", (n_parts + 1, p, p), low=0, high=1)
        self.covariate_inclusion_, self.inclusion_ = share[:-1], share[-1]
        self.inclusion_error_ = arrays.read("inclusion_error", (p, p), low=0, high=1)
        self.rhat_ = arrays.read("rhat", (p,), low=0)
