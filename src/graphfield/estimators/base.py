"""What every estimator of covariate-dependent graphs can be asked, defined once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from graphfield.data.covariates import CovariateEncoder, Encoded
from graphfield.data.frames import (
    Frame,
    as_frame,
    check_same_length,
    match_columns,
    node_values,
)
from graphfield.data.group_levels import LevelCheck
from graphfield.data.missing import check_complete, handle_missing
from graphfield.data.ranges import check_reach
from graphfield.estimators.edge_list import DEFAULT_MAX_ROWS, edge_blocks, long_frame, pair_correlations
from graphfield.estimators.inputs import Inputs, one_row
from graphfield.estimators.judged_pairs import KnownCut, NewRows, judge_pairs
from graphfield.estimators.per_row import PerRow
from graphfield.estimators.streaming import mean_r2, slices
from graphfield.exceptions import DataError, TrainingError
from graphfield.graphs.export import to_networkx
from graphfield.graphs.pair_tests import n_directions
from graphfield.graphs.strength import (
    apply_rule,
    directed_strengths,
    edge_magnitudes,
    partial_correlations,
    precision_matrices,
    precision_shrinkage,
    symmetrise,
)
from graphfield.graphs.threshold import Threshold, auto_threshold, chosen_cut, find_gap, gap_rows

TableLike = Any


class GraphEstimator(PerRow):
    """Base of the estimators: turns coefficients at z into everything else.

    A subclass implements ``fit``, :meth:`_coef_at` and :meth:`_mean_at`, and calls
    :meth:`_remember` and :meth:`_set_threshold` on the way.

    Attributes
    ----------
    node_names_, covariate_names_ : list of str
        Names in the order of the outputs.
    residual_scale_ : ndarray of shape (p,)
        Standard deviation of each node given the others, in the user's units. Where it differs with
        z, this is its root mean square over the training rows.
    threshold_ : Threshold
        What ``threshold="auto"`` stands for, found at fit time, and beside it the "gap".
    level_check_ : LevelCheck or None
        Whether ``groups`` have levels of their own, which were then subtracted; None without groups.
    """

    covariate_names_: list[str]
    threshold_: Threshold
    level_check_: LevelCheck | None = None

    # -- graphs -----------------------------------------------------------------------------

    def predict_coef(self, Z: TableLike) -> NDArray[np.float32]:
        """Coefficients at each row of Z.

        Returns
        -------
        ndarray of shape (n, p, p), float32
            ``[i, j, k]`` is beta_jk(z_i), the weight of node k in the regression of node j, in the
            user's units; the diagonal is zero. Where units differ so much that float32 cannot hold a
            coefficient, a :class:`DataError` says so; partial correlations need no units.
        """
        return self._per_row(Z, lambda coef, _, unit: self._restored(coef, unit))

    def iter_coef(self, Z: TableLike) -> Iterator[NDArray[np.float32]]:
        """:meth:`predict_coef` in consecutive blocks of rows, in bounded memory.

        Examples
        --------
        >>> import graphfield as gf
        >>> sim = gf.make_setting("G1", n_samples=60, random_state=0)
        >>> model = gf.RegGMM().fit(sim.X, sim.Z)
        >>> sum(len(block) for block in model.iter_coef(sim.Z))
        60
        """
        yield from self._row_blocks(self._encode(Z))

    def partial_correlations(self, Z: TableLike) -> NDArray[np.float32]:
        """Signed partial correlations at each row of Z: (n, p, p), symmetric, zero diagonal."""
        return self._per_row(Z, lambda coef, scale, _: partial_correlations(coef, scale))

    def edge_weights(self, Z: TableLike) -> NDArray[np.float32]:
        """The score an edge is ranked by: the size of its partial correlation, (n, p, p)."""
        return self._per_row(Z, lambda coef, scale, _: edge_magnitudes(coef, scale))

    def predict_graph(
        self, Z: TableLike, threshold: float | str | None = "auto", rule: str = "and"
    ) -> NDArray[np.bool_]:
        """Which edges are present at each row of Z.

        Parameters
        ----------
        Z : table of shape (n, q)
        threshold : "auto", float, "gap" or None
            "auto" has the pairs that stand clear of their noise in the training rows, where they are above
            the largest cut that predicts as well as any; a number is a cut in units of partial correlation,
            higher means fewer edges; "gap" is the paper's cut between weak and strong edges; None keeps all
            that are not exactly zero. "auto" and "gap" are found at fit time (``threshold_``), so no graph
            depends on which others are asked for with it.
        rule : {"and", "or"}
            Whether both directions of a pair must exceed the threshold, or one.

        Returns
        -------
        ndarray of shape (n, p, p), bool
            Symmetric, with a False diagonal.
        """
        cut = self._resolve_threshold(threshold)

        def graph(coef: NDArray, scale: NDArray, _: NDArray) -> NDArray:
            return apply_rule(directed_strengths(coef, scale), cut, rule)

        return self._per_row(Z, graph, np.bool_)

    def predict_precision(self, Z: TableLike) -> NDArray[np.float64]:
        """Precision matrices at each row of Z: (n, p, p), symmetric and positive definite.

        Off-diagonal entries follow from :meth:`partial_correlations`, the diagonal from the residual
        standard deviations. Where separately estimated edges do not add up to a positive definite
        matrix, or imply that a node varies more than four times as much (in variance) as it does in the
        training rows (at z, where its scale moves), all edges of that graph are shrunk by one factor until
        they do not.
        :meth:`precision_shrinkage` says by which.
        """

        def precision(coef: NDArray, scale: NDArray, unit: NDArray, node_scale: NDArray) -> NDArray:
            return precision_matrices(coef, scale, node_scale) / (unit[:, :, None] * unit[:, None, :])

        return self._per_row(Z, precision, np.float64, (self._node_scale_at,))

    def precision_shrinkage(self, Z: TableLike) -> NDArray[np.float64]:
        """The factors by which :meth:`predict_precision` multiplies the edges at each row of Z: (n,).

        1 means as they are: always so for a model that estimates precision matrices (`GraphicalLasso`,
        `TreeCGM`, `ArchetypeCGM`). Much less than 1 says that the separate regressions contradict each
        other there; the matrix is then that of a graph with weaker edges.
        """

        def shrinkage(coef: NDArray, scale: NDArray, _: NDArray, node_scale: NDArray) -> NDArray:
            return precision_shrinkage(coef, scale, node_scale)

        return self._per_row(Z, shrinkage, np.float64, (self._node_scale_at,), shape=())

    def predict_scale(self, Z: TableLike) -> NDArray[np.float64]:
        """Standard deviation of each node given all others, at each row of Z: (n, p).

        In the user's units. Of a model of normal scores it is that of the scores. Its root mean square over
        the training rows is about ``residual_scale_``.

        Examples
        --------
        >>> import graphfield as gf
        >>> rng = np.random.default_rng(0)
        >>> Z = rng.uniform(-1, 1, (500, 1))
        >>> model = gf.RegGMM().fit(np.exp(Z) * rng.normal(size=(500, 2)), Z)
        >>> low, high = model.predict_scale([[-0.8], [0.8]])[:, 0]
        >>> bool(3 < high / low < 8)
        True
        """
        distinct, index = self._encode(Z).distinct()
        return (self._residual_scale_at(distinct) * self._unit_at(distinct))[index]

    def edges(
        self,
        Z: TableLike,
        threshold: float | str | None = "auto",
        rule: str = "and",
        max_rows: int = DEFAULT_MAX_ROWS,
    ) -> pd.DataFrame:
        """The edges at each row of Z as a long table.

        Returns
        -------
        DataFrame
            ``sample`` (position of the row in Z), ``source``, ``target``, ``weight`` (as in
            :meth:`edge_weights`) and ``partial_correlation``; each pair once. More than
            ``max_rows`` rows raise instead of filling the memory: use :meth:`iter_edges`.
        """
        cut = self._resolve_threshold(threshold)
        distinct, index = self._encode(Z).distinct()
        blocks = [b for coef, scale, _ in self._chunks(distinct) for b in edge_blocks(coef, scale, cut, rule)]
        return long_frame(blocks, index, self.node_names_, max_rows)

    def iter_edges(
        self, Z: TableLike, threshold: float | str | None = "auto", rule: str = "and"
    ) -> Iterator[pd.DataFrame]:
        """:meth:`edges` in consecutive blocks of rows, in bounded memory."""
        cut = self._resolve_threshold(threshold)
        distinct, index = self._encode(Z).distinct()
        shared = None
        if self._worth_keeping(len(distinct), len(index)):
            shared = [
                b for coef, scale, _ in self._chunks(distinct) for b in edge_blocks(coef, scale, cut, rule)
            ]
        for rows in slices(len(index), self._rows_per_chunk()):
            blocks, which = shared, index[rows]
            if blocks is None:
                own, which = np.unique(which, return_inverse=True)
                part = distinct.take(own)
                blocks = edge_blocks(self._coef_at(part), self._residual_scale_at(part), cut, rule)
            frame = long_frame(blocks, which, self.node_names_, DEFAULT_MAX_ROWS)
            frame["sample"] = frame["sample"].to_numpy() + np.int32(rows.start)
            yield frame

    def to_networkx(
        self, z: TableLike, threshold: float | str | None = "auto", rule: str = "and"
    ) -> nx.Graph:
        """The graph at one covariate value, given as a mapping, a sequence or a one-row table.

        Nodes carry their names; edges carry ``weight`` and ``partial_correlation``.
        """
        check_is_fitted(self)
        encoded = self._encode(one_row(z, self.covariate_names_))
        cut = self._resolve_threshold(threshold)
        directed = directed_strengths(self._coef_at(encoded), self._residual_scale_at(encoded))
        graph = apply_rule(directed, cut, rule)[0]
        return to_networkx(graph, symmetrise(directed)[0], self.node_names_)

    # -- node values ------------------------------------------------------------------------

    def predict(self, X: TableLike, Z: TableLike) -> NDArray[np.float64]:
        """Fitted node values ``mu(z) + beta(z) (x - mu(z))``: each node from all the others.

        Where the model is one of normal scores, these are brought back to the node's values.
        """
        check_is_fitted(self)
        x_frame, z_frame = self._match_nodes(X), self._match_covariates(Z)
        check_same_length(x_frame, z_frame)
        check_complete(x_frame, z_frame)
        fitted = np.empty(x_frame.values.shape)
        for rows, part in self._fitted_values(self._values_in_reach(x_frame), self._encode_frame(z_frame)):
            fitted[rows] = part
        return fitted

    def score(self, X: TableLike, Z: TableLike) -> float:
        """Mean over nodes of the R^2 of :meth:`predict` on these rows; 1 is perfect.

        Rows with missing values are handled as in ``fit`` (parameter ``missing``).
        """
        check_is_fitted(self)
        x_frame, z_frame = self._match_nodes(X), self._match_covariates(Z)
        check_same_length(x_frame, z_frame)
        x_frame, z_frame, _ = handle_missing(x_frame, z_frame, self._missing_policy())
        values = self._values_in_reach(x_frame)
        if len(values) < 2:
            raise DataError(f"R^2 needs at least 2 rows, got {len(values)}.")
        return mean_r2(values, self._fitted_values(values, self._encode_frame(z_frame)))

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted model to a folder (JSON and safetensors); read it with ``gf.load``."""
        from graphfield.estimators.persistence import save_model

        check_is_fitted(self)
        return save_model(self, Path(path), overwrite=overwrite)

    # -- shared by the subclasses -----------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def _remember(self, inputs: Inputs) -> None:
        """Names and number of the nodes, as scikit-learn and we call them."""
        self.node_names_ = list(inputs.node_names)
        self.n_features_in_ = len(inputs.node_names)
        self._nodes_named = inputs.nodes_named
        if inputs.nodes_named:
            self.feature_names_in_ = np.array(inputs.node_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _learn_covariates(self, inputs: Inputs, *, standardize: bool, unknown: str) -> None:
        encoder = CovariateEncoder(standardize=standardize, unknown=unknown)
        self.encoder_ = encoder.fit(inputs.Z, allow_empty=not self._uses_covariates)
        self.covariate_names_ = list(self.encoder_.names)

    def _set_threshold(
        self,
        X: NDArray,
        encoded: Encoded,
        labels: NDArray | None,
        seed: int,
        new: NewRows | KnownCut | None = None,
    ) -> None:
        """Find from the training rows when an edge is there, so that no prediction depends on its company."""
        n = len(encoded)
        distinct, index = encoded.take(gap_rows(n, self.n_features_in_, seed)).distinct()
        found = np.concatenate([pair_correlations(coef, scale) for coef, scale, _ in self._chunks(distinct)])
        self._check_finite(found, self._mean_at(distinct), self.residual_scale_)
        gap = find_gap(found if len(distinct) == len(index) else found[index], n)
        freedom = n_directions(found, index)
        clear, value = judge_pairs(self, X, encoded, labels, freedom, new)
        self.threshold_ = auto_threshold(clear, value, found, gap)

    def _check_finite(self, *results: NDArray) -> None:
        """The last step of every fit: what is not a number is an error, not a result."""
        if all(np.isfinite(result).all() for result in results):
            return
        raise TrainingError(
            f"The fit of {type(self).__name__} broke down: some of its results are not numbers. Nodes that "
            "are copies or sums of others and far outliers can do this; gf.check_data names them. Leave them "
            "out, or use another estimator, such as GraphicalLasso."
        )

    def _resolve_threshold(self, threshold: float | str | None) -> float | NDArray[np.float64]:
        check_is_fitted(self)
        return chosen_cut(threshold, self.threshold_)

    def _match_nodes(self, X: TableLike) -> Frame:
        return match_columns(as_frame(X, "X"), self.node_names_, self._nodes_named, "X")

    def _values_in_reach(self, frame: Frame, argument: str = "X") -> NDArray[np.floating]:
        """Node values of new rows; those that are nowhere near the training rows are refused."""
        values = node_values(frame)
        check_reach(values, frame.names, self.scaler_.center, self.scaler_.scale, argument)
        return values
