"""RegGMM: coefficients linear in the covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.family_fit import check_standard, family_field, family_rows
from graphfield.estimators.linear_rows import LinearRows, covariate_of_feature
from graphfield.estimators.parameters import (
    CENTER,
    COUNT,
    MISSING,
    NODE_TYPE,
    UNKNOWN,
    Choice,
    Flag,
    Number,
    WordOrNumber,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.static import RIDGE as RIDGE_OF_STATIC
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import check_package
from graphfield.fields.base import GraphField, State
from graphfield.fields.blocks import BlockField
from graphfield.fields.linear import LinearField
from graphfield.numbers import standard_errors
from graphfield.solvers.interaction import interaction_coefficients
from graphfield.solvers.pulled_ridge import FamilyRegressions, GramRegressions, Regressions, pull
from graphfield.solvers.sparse_blocks import held_out_losses, solve_path, zero_solution
from graphfield.solvers.working import FamilyRows, RidgeStep, fit_families

PENALTIES = ("ridge", "sparse-group")
_PATH_COLUMNS = ["penalty", "error", "standard_error"]
_MAX_PATH = 1_000_000  # penalties of a path in a file
# Where the path of penalties on blocks ends, as a share of the penalty at which all are zero.
LAST_SHARE = 1e-3


@hyper_parameters
class RegGMM(GraphEstimator):
    """Covariate-dependent graphical model with linear coefficients, dense or sparse.

    ``x_j - mu_j(z) = sum_{k != j} (b_jk0 + sum_l b_jkl z_l) (x_k - mu_k(z)) + eps_j`` with a mean
    that is linear in z too: the linear line to compare a neural model with. Categorical covariates
    enter as one column per level but the first.

    ``penalty="ridge"`` is exact least squares and leaves no weight at zero. ``penalty="sparse-group"``
    is the regression of Zhang and Li (JASA 2023): each node j minimises its squared error ``/ (2n)`` plus
    ``lambda (mix |b_j|_1 + (1 - mix) sum_c sqrt(size of c) |b_jc|_2)`` with one group per covariate c,
    all its effects on the edges of j (all levels of a category together). A covariate that matters for
    no edge of a node leaves it as a whole; b_jk0, common to all z, is in no group. The sparse-group fit
    needs the package skglm and compiles its solver in the first fit of a session (about 15 s).

    Parameters
    ----------
    penalty : {"ridge", "sparse-group"}
        Small weights everywhere, or exact zeros.
    ridge : float or "cv", default 1e-3
        Penalty on the squared coefficients of standardised data; more pulls all edges to zero. "cv" pulls
        them to one sparse graph (that of :class:`NodewiseLasso`) instead, as strongly as predicts held-out
        rows best; means are then those of one graph. With "sparse-group" it steadies the mean only.
    sparsity : float or "cv"
        The lambda of "sparse-group"; more means fewer edges. "cv" takes the one, common to all nodes,
        with the smallest squared error on held-out rows.
    mix : float, default 0.75
        Share of the L1 part of "sparse-group", in (0, 1]; less drops covariates sooner than edges. 1 is
        a lasso.
    n_penalties : int, default 20
        Length of the path of "cv", from the empty graph down; more is finer and slower.
    n_folds : int, default 5
        Cross-validation folds of "cv", at most; of many rows, one of them alone chooses the ridge.
    center : {"covariates", "constant", "none"}
        Subtract a mean that is linear in z (and divide by a scale that moves with z where held-out rows
        support it and nodes are standardised), one mean per node, or nothing.
    standardize : bool
        Divide nodes and numeric covariates by their standard deviations (undone on output).
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or the average of the others.
    node_types : "auto" or mapping, default "auto"
        What nodes are, as in :class:`NodewiseLasso`: "gaussian", "binary", "categorical", "ordinal" or
        "count". Where some are no plain numbers, each node has the likelihood of its family, its mean is
        linear in z on the scale of its natural parameters (log-odds, logarithms of counts), and no scale
        moves with z.

    Attributes
    ----------
    interactions_ : ndarray of shape (m, p, p)
        Coefficients of the m features of z (a one, numeric covariates, levels), in standard units. Where some
        nodes are no plain numbers, those of the columns of the nodes.
    penalty_ : float
        The strength that was used: lambda, or ``ridge``.
    cv_path_ : DataFrame
        ``penalty``, held-out ``error`` (mean squared, standard units) and its ``standard_error`` over
        folds; empty unless "cv" was at work.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=500, random_state=0)
    >>> gf.RegGMM().fit(sim.X, sim.Z).edge_weights(sim.Z[:2]).shape
    (2, 50, 50)
    """

    _knows_levels = True

    penalty: str = parameter("ridge", Choice(PENALTIES))
    ridge: float | str = parameter(1e-3, WordOrNumber(("cv",)))
    sparsity: float | str = parameter("cv", WordOrNumber(("cv",)))
    mix: float = parameter(0.75, Number(0, 1, open_low=True))
    n_penalties: int = parameter(20, COUNT)
    n_folds: int = parameter(5, COUNT)
    center: str = parameter("covariates", CENTER)
    standardize: bool = parameter(True, Flag())
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    node_types: str | Mapping[str, str] = parameter("auto", NODE_TYPE)

    @property
    def takes_all_rows(self) -> bool:  # type: ignore[override]
        """Numbers: their second moments are all that is needed."""
        return self.node_types == "auto"

    def _fit(self, data: TrainingSet) -> GraphField:
        if data.inputs.types is not None:
            return self._fit_families(data)
        schema = self._learn_schema(data, standardize=self.standardize, unknown=self.unknown)
        rows = LinearRows.learn(data, schema, self.center, self.standardize, self._mean_ridge)
        self.cv_path_ = pd.DataFrame(columns=_PATH_COLUMNS, dtype=np.float64)
        if self.penalty == "ridge":
            if self.ridge == "cv":
                folds = self._folds(data)
                found = self._pull(GramRegressions(rows.all_nodes, rows.all_features, folds, len(data.X)))
                return rows.field(found)
            self.penalty_ = float(self.ridge)
            return rows.field(interaction_coefficients(rows.nodes, rows.W, self.penalty_))
        return rows.field(self._fit_sparse_group(rows.all_nodes, rows.all_features, schema.encoder, data))

    @property
    def interactions_(self) -> NDArray[np.float64]:
        field = self._known()
        columns = field.columns if isinstance(field, BlockField) else field
        return columns.of_kind(LinearField).interactions

    def _fit_families(self, data: TrainingSet) -> BlockField:
        check_standard(self, data)
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        moving = self.center == "covariates"
        rows = family_rows(data, schema, self._mean_ridge, moving_edges=True, moving_means=moving)
        known = rows.take(slice(len(data.X)))
        self.cv_path_ = pd.DataFrame(columns=_PATH_COLUMNS, dtype=np.float64)
        if self.penalty == "ridge":
            if self.ridge == "cv":
                S = self._pull(FamilyRegressions(rows, self._folds(data), len(data.X)))
            else:
                self.penalty_ = float(self.ridge)
                S = fit_families(known, RidgeStep(known, self.penalty_))
        else:
            S = self._fit_sparse_blocks(rows, known, schema.encoder, data)
        return family_field(schema, known, S, data, self._mean_ridge)

    @property
    def _mean_ridge(self) -> float:
        return RIDGE_OF_STATIC if self.ridge == "cv" else float(self.ridge)

    def _folds(self, data: TrainingSet) -> NDArray[np.intp]:
        return data.fold_labels(self.n_folds, at_most=True)

    def _pull(self, rows: Regressions) -> NDArray[np.float64]:
        found = pull(rows)
        self.penalty_, self.cv_path_ = found.ridge, pd.DataFrame(found.path, columns=_PATH_COLUMNS)
        return found.coef

    def _fit_sparse_blocks(
        self, rows: FamilyRows, known: FamilyRows, encoder: CovariateEncoder, data: TrainingSet
    ) -> NDArray[np.float64]:
        covariate, (start, top) = covariate_of_feature(encoder), zero_solution(known, self.mix)
        penalties = np.geomspace(top, top * LAST_SHARE, self.n_penalties)
        if self.sparsity == "cv":
            folds = data.fold_labels(self.n_folds)
            losses = held_out_losses(rows, folds, penalties, start, self.mix, covariate)
            error = losses.mean(axis=1)
            self.penalty_ = float(penalties[np.argmin(error)])
            spread = standard_errors(losses.T)
            tried = {"penalty": penalties[: len(error)], "error": error, "standard_error": spread}
            self.cv_path_ = pd.DataFrame(tried, columns=_PATH_COLUMNS)
        else:
            self.penalty_ = float(self.sparsity)
        path = np.append(penalties[penalties > self.penalty_], self.penalty_)
        return solve_path(known, path, start, self.mix, covariate)[-1]

    def _check_machine(self) -> None:
        if self.penalty == "sparse-group":
            check_sparse_group()

    def _fit_sparse_group(
        self, left: NDArray, W: NDArray, encoder: CovariateEncoder, data: TrainingSet
    ) -> NDArray[np.float64]:
        from graphfield.solvers import sparse_group as solver

        covariate = covariate_of_feature(encoder)
        if self.sparsity == "cv":
            folds = data.fold_labels(self.n_folds)
            path = solver.sparse_group_path(left, W, covariate, self.mix, self.n_penalties, folds)
            self.penalty_, self.cv_path_ = path.best, pd.DataFrame(asdict(path), columns=_PATH_COLUMNS)
        else:
            self.penalty_ = float(self.sparsity)
        n = len(data.X)
        return solver.sparse_group_coefficients(left[:n], W[:n], covariate, self.penalty_, self.mix)

    def _get_learned(self) -> State:
        return {"penalty": self.penalty_}, {"cv_path": self.cv_path_.to_numpy(dtype=np.float64)}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        self.penalty_ = state["penalty"].number(0)
        path = arrays.read("cv_path", (AtMost(_MAX_PATH), len(_PATH_COLUMNS)), nan=True)
        self.cv_path_ = pd.DataFrame(path, columns=_PATH_COLUMNS)


def check_sparse_group() -> None:
    """Raise unless the solver of ``penalty="sparse-group"`` is installed."""
    check_package("skglm", "baselines", "penalty='sparse-group'")
