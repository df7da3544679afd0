"""The static baseline: one sparse precision matrix for everybody."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import rescale_coef
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.node_scores import MARGINAL_OF_RANKS, OfScores
from graphfield.estimators.parameters import COUNT, MISSING, Number, hyper_parameters, parameter
from graphfield.estimators.static import CENTER_OF_STATIC, CRITERION, StaticGraph
from graphfield.fields.base import State
from graphfield.solvers.glasso import graphical_lasso_at, graphical_lasso_cv, graphical_lasso_ebic
from graphfield.solvers.moments import FoldMoments, RowMoments
from graphfield.solvers.rank_correlations import rank_correlations, rank_folds


@hyper_parameters
class GraphicalLasso(OfScores, StaticGraph):
    """Graphical lasso on all samples; the covariates are checked and then ignored.

    The line that every covariate-dependent estimate should be compared with: if it predicts held-out
    rows as well, the covariates do not matter.

    Parameters
    ----------
    penalty : {"cv", "ebic"} or float, default "cv"
        Weight of the absolute off-diagonal entries of the precision matrix of standardised nodes; more
        means fewer edges. "cv" takes the one with the best likelihood of held-out rows, which
        keeps many weak edges; "ebic" the one with the lowest extended BIC (Foygel and Drton 2010),
        which keeps few; a number is used as it is.
    n_penalties : int, default 6
        Penalties in each round of the search; more is finer and slower.
    n_folds : int, default 5
        Cross-validation folds, for "cv" only.
    ebic_gamma : float, default 0.5
        For "ebic" only: 0 is the BIC, more means fewer edges.
    center : {"constant", "covariates"}, default "constant"
        One mean for each node, or one that is linear in the covariates, so that nodes that only move together
        with z get no edge. With "covariates", scales of nodes may move with z as well (node by node, where
        held-out rows support it): then it is the graph of nodes divided by them.
    marginals : {"raw", "auto", "normal", "skeptic"}, default "raw"
        Nodes as they are, or their normal scores (the nonparanormal model: Liu, Lafferty and Wasserman
        2009), also where held-out rows prefer these ("auto"). "skeptic" has the normal scores and finds the
        graph from rank correlations, ``2 sin(pi / 6 rho)`` with Spearman's rho, projected to a correlation
        matrix (Liu et al. 2012): increasing functions of the nodes change nothing, and wild values little.
    missing : {"error", "drop", "impute"}, default "error"
        What to do with rows that have missing or infinite values.

    Attributes
    ----------
    precision_ : ndarray of shape (p, p)
        In the user's units (of normal scores: in units of scores with the spread of the node); where scales
        of nodes move with z, with scales as in the average row.
    marginals_ : str
        "raw", "normal" or "skeptic": what the nodes were taken as.
    penalty_ : float
        The chosen penalty, on standardised nodes.
    path_ : DataFrame
        ``penalty``, ``score`` and ``n_edges`` of every penalty that was tried, largest first. The score
        is the mean log-likelihood of held-out rows for "cv" (higher is better), the extended BIC for
        "ebic" (lower is better), and missing for a given number. Penalty 0 is the unpenalised matrix.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=200, random_state=0)
    >>> model = gf.GraphicalLasso().fit(sim.X[:, :10], sim.Z)
    >>> model.predict_graph(sim.Z[:2], threshold=0.1).shape
    (2, 10, 10)
    >>> sparse = gf.GraphicalLasso(penalty="ebic").fit(sim.X[:, :10], sim.Z)
    >>> sparse.penalty_ > model.penalty_
    True
    """

    _solvers = (graphical_lasso_cv, graphical_lasso_ebic, graphical_lasso_at)
    _definite = True

    penalty: float | str = parameter("cv", CRITERION)
    n_penalties: int = parameter(6, COUNT)
    n_folds: int = parameter(5, COUNT)
    ebic_gamma: float = parameter(0.5, Number(0))
    center: str = parameter("constant", CENTER_OF_STATIC)
    marginals: str = parameter("raw", MARGINAL_OF_RANKS)
    missing: str = parameter("error", MISSING)

    @property
    def takes_all_rows(self) -> bool:  # type: ignore[override]
        """Second moments are all that is needed; ranks are not."""
        return not self.by_rank

    def _correlations(self, values: NDArray, moments: RowMoments) -> NDArray[np.float64]:
        return rank_correlations(values) if self.by_rank else super()._correlations(values, moments)

    def _fold_correlations(self, values: NDArray, folds: NDArray[np.intp]) -> list[FoldMoments]:
        return rank_folds(values, folds) if self.by_rank else super()._fold_correlations(values, folds)

    def _use(
        self,
        solution: NDArray,
        covariance: NDArray,  # noqa: ARG002
        scale: NDArray,
    ) -> tuple[NDArray, NDArray]:
        self.precision_ = solution / (scale[:, None] * scale[None, :])
        diagonal = np.diag(self.precision_)
        weights = rescale_coef(-self.precision_ / diagonal[:, None], 1 / scale)
        np.fill_diagonal(weights, 0.0)
        return weights, 1 / np.sqrt(diagonal)

    def _get_learned(self) -> State:
        state, arrays = super()._get_learned()
        return state, {**arrays, "precision": self.precision_}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        super()._set_learned(state, arrays)
        precision = arrays.read("precision", (self.n_features_in_, self.n_features_in_))
        if not (np.diag(precision) > 0).all():
            arrays.refuse("precision", "positive on its diagonal", str(np.diag(precision).min()))
        self.precision_ = precision
