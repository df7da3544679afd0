"""Graphs smoothed over the covariates by a kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.encoded import Encoded
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.composite import with_typical_scale
from graphfield.estimators.node_scores import MARGINAL_OF_RANKS, OfScores
from graphfield.estimators.parameters import (
    MISSING,
    SHARE,
    UNKNOWN,
    Choice,
    Custom,
    Seed,
    WordOrNumber,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, DataWarning, ParameterError, listing
from graphfield.fields.base import Common, State
from graphfield.fields.grid import Grid, GridField, GridValues
from graphfield.solvers.interaction import linear_mean
from graphfield.solvers.kernel_graphs import (
    SOLVERS,
    Local,
    Solution,
    best_factor,
    kernel_weights,
    local_moments,
)
from graphfield.solvers.leaf_likelihood import factor_of
from graphfield.solvers.penalties import PathSearch, compare_rows

# Bandwidths that are tried, in standard deviations of a covariate: from one graph for all down.
_WIDEST, _NARROWEST, _RATIO = 4.0, 0.1, 0.6
# Bandwidths worse than the best, one after the other, after which the search ends.
_PATIENCE = 2
# Points of the grid: knots lie about a bandwidth apart, but there are no more than so many in all.
_MOST_POINTS, _MOST_LEVELS, _MOST_CORNERS = 48, 400, 1_000
# Numbers beyond which rows are too far apart for a kernel.
_MOST_NUMBERS = 3
# Held-out rows that choose.
_MOST_HELD_OUT = 2_000
# Of the regression of the nodes on z, so that it exists for any z.
_RIDGE = 1e-6
# Of final solutions, in units of the penalty.
_ACCURACY = 5e-3
_FACES = tuple(SOLVERS)
# Bandwidths in a file.
_MOST_TRIED = 1_000
_COLUMNS = ["bandwidth", "log_likelihood", "behind", "standard_error"]


def _check_bandwidth(value: Any) -> None:
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise ParameterError.of(
            "bandwidth",
            f"of KernelCGM must be 'auto' or a number above 0 (infinity: one graph for all), got {value!r}.",
        )


@hyper_parameters
class KernelCGM(OfScores):
    """The graph at z from rows near z, weighted by a kernel: for one to three covariates.

    Means, scales and correlations of the nodes are averages over rows with weights that fall with their
    distance from z, and each z has a sparse graph of its own: a graphical lasso of the weighted covariance
    (Zhou, Lafferty and Wasserman 2010), or a lasso of each node with weighted rows (Kolar, Parikh and Xing
    2010). It is computed at the points of a grid, with straight lines between these. Nothing is assumed but
    that the graph moves slowly; the price is that rows get scarce with every covariate.

    Parameters
    ----------
    method : {"joint", "nodewise"}, default "joint"
        Graphical lassos, whose precision matrices are positive definite at every z, or lassos of the nodes.
    bandwidth : "auto" or float, default "auto"
        Standard deviation of the Gaussian kernel, in standard deviations of each covariate; two levels of a
        category count as one apart. Infinity is one graph for all. "auto" is the widest whose likelihood of
        held-out rows is within one standard error of the best.
    penalty : "auto" or float, default "auto"
        Penalty of each lasso, on nodes standardised at z. "auto" is chosen on held-out rows and falls with
        the rows that a point sees.
    center : {"covariates", "constant"}, default "covariates"
        Whether a mean that is linear in z is taken out before means near z are.
    validation_fraction : float in (0, 1), default 0.2
        Share of rows (or groups) held out while bandwidth and penalty are chosen, where no X_val, Z_val is
        given. The final graphs use all rows.
    marginals : {"raw", "auto", "normal", "log1p", "clr", "skeptic"}, default "raw"
        Nodes as they are, their normal scores, also where held-out rows prefer these ("auto"), logarithms or
        log-ratios; "skeptic" has normal scores and finds the correlations near z from ranks, as in
        :class:`GraphicalLasso`.
    missing : {"error", "drop", "impute"}
    unknown : {"error", "average"}
    random_state : int, Generator or None
        Decides which rows are held out.

    Attributes
    ----------
    bandwidth_ : float
    penalty_factor_ : float
        The penalty at a point that sees as much as m rows is this times ``sqrt(log(p) / m)``; NaN where a
        penalty was given.
    held_out_ : DataFrame
        ``bandwidth``, ``log_likelihood`` (mean over held-out rows; of the nodes one by one with "nodewise"),
        ``behind`` and its ``standard_error`` (distance to the best).

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("S1", n_samples=300, random_state=0)
    >>> model = gf.KernelCGM(random_state=0).fit(sim.X[:, :5], sim.Z[:, :1])
    >>> model.edge_weights(sim.Z[:2, :1]).shape
    (2, 5, 5)
    """

    _knows_levels = True

    method: str = parameter("joint", Choice(_FACES))
    bandwidth: float | str = parameter("auto", Custom(_check_bandwidth))
    penalty: float | str = parameter("auto", WordOrNumber(("auto",)))
    center: str = parameter("covariates", Choice(("covariates", "constant")))
    validation_fraction: float = parameter(0.2, SHARE)
    marginals: str = parameter("raw", MARGINAL_OF_RANKS)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    random_state: Any = parameter(None, Seed())

    def _fit(self, data: TrainingSet) -> GridField:
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        given, (schema, data) = data, self._take_scores(schema, data)
        _check_room(schema.encoder, self.bandwidth)
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        values, z = scaler.transform(data.all_nodes), data.encode(schema.encoder)
        W = features(schema.encoder, z)
        mean = linear_mean(values[: len(data.X)], W[: len(data.X)], _RIDGE)
        mean *= self.center == "covariates"
        values = values - W @ mean
        bandwidth, factor = self._choose(values, z, schema.encoder, data)
        known = np.arange(len(data.X))
        grid, solution = self._solve(values, z, known, schema.encoder, bandwidth, factor)
        self.bandwidth_, self.penalty_factor_ = bandwidth, factor
        given.held_out, given.most_directions = data.held_out, max(1.0, solution.local.directions)
        found = GridValues(
            solution.matrices,
            solution.local.centers,
            np.log(solution.local.scales),
            None if solution.residuals is None else np.log(solution.residuals),
        )
        field = GridField(Common(schema, scaler, scaler.scale), grid, found, mean)
        return with_typical_scale(field, data.Z)

    def _solve(
        self,
        values: NDArray,
        z: Encoded,
        rows: NDArray[np.intp],
        encoder: CovariateEncoder,
        bandwidth: float,
        factor: float,
    ) -> tuple[Grid, Solution]:
        """The graphs at all points, from these rows."""
        grid, local = self._look_near(values, z, rows, encoder, bandwidth)
        given = self.penalty != "auto"
        penalties = np.full(len(local.n_rows), self.penalty) if given else local.penalties(factor)
        return grid, SOLVERS[self.method](local, penalties, _ACCURACY)

    def _choose(
        self, values: NDArray, z: Encoded, encoder: CovariateEncoder, data: TrainingSet
    ) -> tuple[float, float]:
        """Bandwidth and penalty factor, by the likelihood of held-out rows."""
        given = not isinstance(self.bandwidth, str)
        if given and self.penalty != "auto":
            self.held_out_ = pd.DataFrame(columns=_COLUMNS, dtype=float)
            return float(self.bandwidth), np.nan
        known, new = data.split(self.validation_fraction)
        new = new[:: 1 + len(new) // _MOST_HELD_OUT]

        def attempt(bandwidth: float, near: tuple[int, NDArray] | None) -> tuple[float, tuple[int, NDArray]]:
            step = None if near is None else near[0]
            found = self._judge(values, z, (known, new), encoder, bandwidth, step)
            return -float(found[1].mean()), found

        bandwidths = [float(self.bandwidth)] if given else _bandwidths()
        search = PathSearch(bandwidths, attempt).walk(0, lambda s: s.worse >= _PATIENCE)
        tried = list(search.tried.values())
        table, which = compare_rows(one.solution[1] for one in tried)
        self.held_out_ = pd.DataFrame([(one.value, *own) for one, own in zip(tried, table, strict=True)])
        self.held_out_.columns = pd.Index(_COLUMNS)
        chosen = tried[which]
        return chosen.value, factor_of(chosen.solution[0]) if self.penalty == "auto" else np.nan

    def _judge(
        self,
        values: NDArray,
        z: Encoded,
        rows: tuple[NDArray, NDArray],
        encoder: CovariateEncoder,
        bandwidth: float,
        step: int | None,
    ) -> tuple[int, NDArray[np.float64]]:
        """The penalty's step and the likelihoods of new rows."""
        known, new = rows
        grid, local = self._look_near(values, z, known, encoder, bandwidth)
        shares, solver = grid.shares(z.take(new)), SOLVERS[self.method]

        def judge(solution: Solution) -> NDArray[np.float64]:
            return solution.row_likelihood(values[new], shares)

        if self.penalty != "auto":
            penalties = np.full(len(local.n_rows), float(self.penalty))
            return 0, judge(solver(local, penalties))
        return best_factor(lambda factor: judge(solver(local, local.penalties(factor))), step)

    def _look_near(
        self,
        values: NDArray,
        z: Encoded,
        rows: NDArray[np.intp],
        encoder: CovariateEncoder,
        bandwidth: float,
    ) -> tuple[Grid, Local]:
        """The grid, and what these rows say near each of its points."""
        near = z.take(rows)
        grid = make_grid(encoder, near, bandwidth)
        weights = kernel_weights(near, grid.points(), bandwidth)
        return grid, local_moments(values[rows], weights, grid.shares(near), by_rank=self.by_rank)

    def _findings(self) -> list[str]:
        width = "infinite: one graph for all" if np.isinf(self.bandwidth_) else f"{self.bandwidth_:.2g}"
        return [f"Bandwidth of the kernel, in standard deviations of a covariate: {width}."]

    def _get_learned(self) -> State:
        table = self.held_out_.to_numpy(dtype=np.float64)
        learned = {"bandwidth": self.bandwidth_, "penalty_factor": self.penalty_factor_}
        finite = {name: float(value) if np.isfinite(value) else None for name, value in learned.items()}
        return finite, {"held_out": np.where(np.isfinite(table), table, np.nan)}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        bandwidth = state["bandwidth"].number_or_nan()
        self.bandwidth_ = np.inf if np.isnan(bandwidth) else bandwidth
        self.penalty_factor_ = state["penalty_factor"].number_or_nan()
        table = arrays.read("held_out", (AtMost(_MOST_TRIED), len(_COLUMNS)), nan=True)
        self.held_out_ = pd.DataFrame(table, columns=_COLUMNS).fillna({"bandwidth": np.inf})


def _bandwidths() -> list[float]:
    n = int(np.log(_NARROWEST / _WIDEST) / np.log(_RATIO)) + 1
    return [np.inf, *(_WIDEST * _RATIO**step for step in range(n))]


def make_grid(encoder: CovariateEncoder, known: Encoded, bandwidth: float) -> Grid:
    """Knots about a bandwidth apart over the range of each number, as many as there may be points."""
    n_levels = int(np.prod([len(column.levels) for column in encoder.categorical], initial=1))
    numbers = known.numeric.T
    most = max(2, int((_MOST_POINTS / n_levels) ** (1 / max(len(numbers), 1))))
    knots = []
    for own in numbers:
        low, high = np.quantile(own, [0.01, 0.99])
        wanted = 1 if np.isinf(bandwidth) or high <= low else int(np.ceil((high - low) / bandwidth)) + 1
        n = min(wanted, most)
        knots.append(np.linspace(low, high, n) if n > 1 else np.array([float(np.median(own))]))
    return Grid(knots, encoder)


def _check_room(encoder: CovariateEncoder, bandwidth: float | str) -> None:
    n_levels = int(np.prod([len(column.levels) for column in encoder.categorical], initial=1))
    if n_levels > _MOST_LEVELS:
        names = listing([column.name for column in encoder.categorical])
        raise DataError(
            f"KernelCGM needs a graph for every combination of levels, at most {_MOST_LEVELS}, and {names} "
            f"have {n_levels:,}. Pool rare levels, leave a covariate out, or use TreeCGM or DNNCGM."
        ).about(argument="Z")
    n_corners = n_levels * 2 ** len(encoder.numeric)
    if n_corners > _MOST_CORNERS and bandwidth != np.inf:
        levels = "" if n_levels == 1 else f" times {n_levels:,} combinations of levels"
        raise DataError(
            f"KernelCGM needs a grid over all covariates at once, of at most {_MOST_CORNERS:,} corners, and "
            f"got {len(encoder.numeric)} numbers{levels}: {n_corners:,} corners. Leave covariates out, or "
            "use TreeCGM or DNNCGM, which choose among them."
        ).about(argument="Z")
    if len(encoder.numeric) > _MOST_NUMBERS:
        warnings.warn(
            f"KernelCGM is made for up to {_MOST_NUMBERS} numeric covariates and got {len(encoder.numeric)}: "
            "rows are far apart in so many directions, so little movement can be seen. DNNCGM or TreeCGM "
            "choose among covariates.",
            DataWarning,
            stacklevel=2,
        )
