"""Neighbourhood selection: one lasso regression per node, the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import rescale_coef
from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.family_fit import family_field, family_rows
from graphfield.estimators.parameters import COUNT, MISSING, NODE_TYPE, Number, hyper_parameters, parameter
from graphfield.estimators.static import CENTER_OF_STATIC, CRITERION, RIDGE, StaticGraph, path_frame
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields.base import GraphField, State
from graphfield.fields.blocks import BlockField
from graphfield.solvers.lasso import (
    nodewise_lasso_at,
    nodewise_lasso_cv,
    nodewise_lasso_ebic,
    residual_variances,
)
from graphfield.solvers.sparse_blocks import choose_blocks
from graphfield.solvers.working import split_coefficients


@hyper_parameters
class NodewiseLasso(StaticGraph):
    """Lasso of every node on all others (Meinshausen and Buehlmann 2006), ignoring the covariates.

    Minimises ``|x_j - sum_{k != j} b_jk x_k|^2 / (2 n) + penalty sum_k |b_jk|`` for each standardised
    node j, with one penalty for all of them. Coefficients can be exactly zero, so
    ``predict_graph(Z, threshold=0.0, rule="or")`` is the classical OR graph and ``rule="and"`` the AND
    graph. Where :class:`GraphicalLasso` fits one likelihood, this solves p separate problems: it is
    fast, works with more nodes than rows, and does not promise that the two directions of an edge agree.

    Parameters
    ----------
    penalty : {"cv", "ebic"} or float, default "cv"
        On standardised nodes; more means fewer edges. "cv" takes the one with the lowest squared error
        of held-out rows, which keeps many weak edges; "ebic" the one with the lowest extended BIC,
        added up over the nodes, which keeps few; a number is used as it is.
    n_penalties : int, default 30
        Penalties between the empty graph and a tenth of the noise of a correlation; more is finer and
        slower.
    n_folds : int, default 5
        Cross-validation folds, for "cv" only.
    ebic_gamma : float, default 0.5
        For "ebic" only: 0 is the BIC, more means fewer edges.
    center : {"constant", "covariates"}, default "constant"
        One mean for each node, or one that is linear in the covariates, so that nodes that only move together
        with z get no edge. With "covariates", scales of nodes may move with z as well (node by node, where
        held-out rows support it): then it is the graph of nodes divided by them.
    missing : {"error", "drop", "impute"}, default "error"
        What to do with rows that have missing or infinite values.
    node_types : "auto" or mapping, default "auto"
        What nodes are. "auto" takes booleans as binary, text and pandas categories as binary, categorical or
        (with an order) ordinal, and numbers as numbers. A mapping such as ``{"x3": "binary", "x5": "count"}``
        says it for some columns: "gaussian", "binary", "categorical", "ordinal" or "count". Each node then
        has the likelihood of its family, and all effects of one node on another leave together.

    Attributes
    ----------
    coef_ : ndarray of shape (p, p)
        ``[j, k]`` is the weight of node k in the regression of node j, in the user's units; where scales of
        nodes move with z, with scales as in the average row. Where some nodes are no plain numbers, it is
        that of the columns of the nodes, in standard units.
    penalty_ : float
        The chosen penalty, on standardised nodes.
    path_ : DataFrame
        ``penalty``, ``score`` and ``n_edges`` (pairs with both coefficients) of every penalty that was
        tried, largest first. The score is the held-out squared error per node and row in standard
        units for "cv" (half the deviance where some nodes are no plain numbers), the extended BIC for "ebic"
        (lower is better for both), and missing for a given number.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=200, random_state=0)
    >>> model = gf.NodewiseLasso(penalty="ebic").fit(sim.X, sim.Z)
    >>> loose, strict = (model.predict_graph(sim.Z[:1], threshold=0.0, rule=r)[0] for r in ("or", "and"))
    >>> bool((strict <= loose).all()), bool((loose == ((model.coef_ != 0) | (model.coef_.T != 0))).all())
    (True, True)
    """

    _solvers = (nodewise_lasso_cv, nodewise_lasso_ebic, nodewise_lasso_at)

    penalty: float | str = parameter("cv", CRITERION)
    n_penalties: int = parameter(30, COUNT)
    n_folds: int = parameter(5, COUNT)
    ebic_gamma: float = parameter(0.5, Number(0))
    center: str = parameter("constant", CENTER_OF_STATIC)
    missing: str = parameter("error", MISSING)
    node_types: str | Mapping[str, str] = parameter("auto", NODE_TYPE)

    @property
    def takes_all_rows(self) -> bool:  # type: ignore[override]
        """Numbers: their second moments are all that is needed."""
        return self.node_types == "auto"

    def _fit(self, data: TrainingSet) -> GraphField:
        return super()._fit(data) if data.inputs.types is None else self._fit_families(data)

    def _fit_families(self, data: TrainingSet) -> BlockField:
        schema = self._learn_schema(data, standardize=True, unknown="average")
        rows = family_rows(data, schema, RIDGE, moving_edges=False, moving_means=self.center == "covariates")
        known = rows.take(slice(len(data.X)))
        given = None if isinstance(self.penalty, str) else float(self.penalty)
        folds = data.fold_labels(self.n_folds) if self.penalty == "cv" else None
        chosen = choose_blocks(rows, known, given, folds, self.n_penalties, self.ebic_gamma)
        self.penalty_, self.path_ = chosen.penalty, path_frame(chosen.path)
        field = family_field(schema, known, chosen.solution, data, RIDGE)
        self.coef_ = split_coefficients(chosen.solution, 1)[0][0].T.copy()
        return field

    def _use(self, solution: NDArray, covariance: NDArray, scale: NDArray) -> tuple[NDArray, NDArray]:
        self.coef_ = rescale_coef(solution, scale)
        left = residual_variances(solution[None], covariance)[0]
        return rescale_coef(self.coef_, 1 / scale), scale * np.sqrt(np.maximum(left, 0.0))

    def _get_learned(self) -> State:
        state, arrays = super()._get_learned()
        return state, {**arrays, "coef": self.coef_}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        super()._set_learned(state, arrays)
        most = MAX_MAGNITUDE**2  # in the user's units, which may differ as much
        size = self._known().n_columns
        self.coef_ = arrays.read_coefficients("coef", (size, size), most)
