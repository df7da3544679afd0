"""What every estimator of covariate-dependent graphs can be asked, defined once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from graphfield.data.covariates import CovariateEncoder, Encoded
from graphfield.data.frames import (
    Frame,
    as_frame,
    check_same_length,
    match_columns,
    node_values,
)
from graphfield.data.marginals import NormalScores
from graphfield.data.missing import check_complete, handle_missing
from graphfield.data.nodes import NodeScaler
from graphfield.estimators.edge_list import DEFAULT_MAX_ROWS, edge_blocks, long_frame, pair_magnitudes
from graphfield.estimators.inputs import Inputs, one_row
from graphfield.estimators.streaming import Part, groups_of, joined_parts, mean_r2, rows_within, slices
from graphfield.exceptions import DataError
from graphfield.graphs.export import to_networkx
from graphfield.graphs.strength import (
    apply_rule,
    directed_strengths,
    edge_magnitudes,
    partial_correlations,
    precision_matrices,
    precision_shrinkage,
    symmetrise,
)
from graphfield.graphs.threshold import Threshold, chosen_cut, find_threshold, gap_rows

# Bytes of coefficients held at a time by the methods that stream.
_CHUNK_BYTES = 64 * 2**20
# Distinct covariate values whose coefficients are kept while streaming over repeated rows.
_CACHE_BYTES = 256 * 2**20

TableLike = Any


class GraphEstimator(BaseEstimator, ABC):
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
        The cut that ``threshold="gap"`` stands for, found at fit time.
    """

    node_names_: list[str]
    covariate_names_: list[str]
    residual_scale_: NDArray[np.float64]
    threshold_: Threshold
    encoder_: CovariateEncoder
    scaler_: NodeScaler
    n_features_in_: int
    missing: str
    # Where the model is one of normal scores, coefficients, means and residuals are those of the scores.
    _scores: NormalScores | None = None
    # Whether coefficients and residual scales are those of a precision matrix, whose edges never shrink.
    _definite = False
    # An estimator that ignores covariates accepts a Z without columns.
    _uses_covariates = True

    @abstractmethod
    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        """Coefficients in the user's units, (m, p, p), one matrix per encoded row."""

    @abstractmethod
    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """Conditional means in the user's units, (m, p)."""

    def _residual_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """Standard deviation of each node given the others, (m, p); here the same at every z."""
        return np.broadcast_to(self.residual_scale_, (len(encoded), self.n_features_in_))

    def _node_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """Standard deviation of each node around its mean, (m, p); infinite where it does not matter."""
        known = getattr(self, "standardize", True) and not self._definite
        scale = self.scaler_.scale if known else np.inf
        return np.broadcast_to(scale, (len(encoded), self.n_features_in_))

    def _scales_at(self, encoded: Encoded) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._residual_scale_at(encoded), self._node_scale_at(encoded)

    def _encode_frame(self, frame: Frame) -> Encoded:
        """Covariates (checked, columns in the order of ``fit``) as the methods above want them."""
        return self.encoder_.transform(frame)

    def _missing_policy(self) -> str:
        return self.missing

    def _encoded_shape(self) -> tuple[int, int]:
        """Numeric columns and columns of codes that :meth:`_encode_frame` gives."""
        return len(self.encoder_.numeric), len(self.encoder_.categorical)

    @abstractmethod
    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """What this estimator learned beyond the base, as JSON values and arrays."""

    @abstractmethod
    def _set_state(self, state: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        """Inverse of :meth:`_get_state`."""

    # -- graphs -----------------------------------------------------------------------------

    def predict_coef(self, Z: TableLike) -> NDArray[np.float32]:
        """Coefficients at each row of Z.

        Returns
        -------
        ndarray of shape (n, p, p), float32
            ``[i, j, k]`` is beta_jk(z_i), the weight of node k in the regression of node j, in the
            user's units; the diagonal is zero.
        """
        return self._per_row(Z, lambda coef, _: coef)

    def iter_coef(self, Z: TableLike) -> Iterator[NDArray[np.float32]]:
        """:meth:`predict_coef` in consecutive blocks of rows, in bounded memory.

        Examples
        --------
        >>> import graphfield as gf
        >>> sim = gf.make_setting("G1", n_samples=60, random_state=0)
        >>> model = gf.GraphicalLasso().fit(sim.X, sim.Z)
        >>> sum(len(block) for block in model.iter_coef(sim.Z))
        60
        """
        yield from self._row_blocks(self._encode(Z))

    def partial_correlations(self, Z: TableLike) -> NDArray[np.float32]:
        """Signed partial correlations at each row of Z: (n, p, p), symmetric, zero diagonal."""
        return self._per_row(Z, partial_correlations)

    def edge_weights(self, Z: TableLike) -> NDArray[np.float32]:
        """The score an edge is ranked by: the size of its partial correlation, (n, p, p)."""
        return self._per_row(Z, edge_magnitudes)

    def predict_graph(
        self, Z: TableLike, threshold: float | str | None = "gap", rule: str = "and"
    ) -> NDArray[np.bool_]:
        """Which edges are present at each row of Z.

        Parameters
        ----------
        Z : table of shape (n, q)
        threshold : float, "gap" or None
            In units of partial correlation; higher means fewer edges. "gap" is the cut found at fit time
            between weak and strong edges (``threshold_``). None keeps all that are not exactly zero.
        rule : {"and", "or"}
            Whether both directions of a pair must exceed the threshold, or one.

        Returns
        -------
        ndarray of shape (n, p, p), bool
            Symmetric, with a False diagonal.
        """
        cut = self._resolve_threshold(threshold)

        def graph(coef: NDArray, scale: NDArray) -> NDArray:
            return apply_rule(directed_strengths(coef, scale), cut, rule)

        return self._per_row(Z, graph, np.bool_)

    def predict_precision(self, Z: TableLike) -> NDArray[np.float64]:
        """Precision matrices at each row of Z: (n, p, p), symmetric and positive definite.

        Off-diagonal entries follow from :meth:`partial_correlations`, the diagonal from the residual
        standard deviations. Where separately estimated edges do not add up to a positive definite
        matrix, or imply that a node varies more than four times as much (in variance) as it does in the
        training rows, all edges of that graph are shrunk by one factor until they do not.
        :meth:`precision_shrinkage` says by which.
        """
        return self._per_row(Z, precision_matrices, np.float64, self._scales_at)

    def precision_shrinkage(self, Z: TableLike) -> NDArray[np.float64]:
        """The factors by which :meth:`predict_precision` multiplies the edges at each row of Z: (n,).

        1 means as they are: always so for a model that estimates precision matrices (`GraphicalLasso`,
        `TreeCGM`, `ArchetypeCGM`). Much less than 1 says that the separate regressions contradict each
        other there; the matrix is then that of a graph with weaker edges.
        """
        return self._per_row(Z, precision_shrinkage, np.float64, self._scales_at, shape=())

    def edges(
        self,
        Z: TableLike,
        threshold: float | str | None = "gap",
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
        blocks = [b for coef, scale in self._chunks(distinct) for b in edge_blocks(coef, scale, cut, rule)]
        return long_frame(blocks, index, self.node_names_, max_rows)

    def iter_edges(
        self, Z: TableLike, threshold: float | str | None = "gap", rule: str = "and"
    ) -> Iterator[pd.DataFrame]:
        """:meth:`edges` in consecutive blocks of rows, in bounded memory."""
        cut = self._resolve_threshold(threshold)
        distinct, index = self._encode(Z).distinct()
        shared = None
        if self._worth_keeping(len(distinct), len(index)):
            shared = [
                b for coef, scale in self._chunks(distinct) for b in edge_blocks(coef, scale, cut, rule)
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

    def to_networkx(self, z: TableLike, threshold: float | str | None = "gap", rule: str = "and") -> nx.Graph:
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
        for rows, part in self._fitted_values(node_values(x_frame), self._encode_frame(z_frame)):
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
        values = node_values(x_frame)
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

    def _set_threshold(self, encoded: Encoded, seed: int) -> None:
        """Find the gap from training covariates, so that no prediction depends on its company."""
        n = len(encoded)
        distinct, index = encoded.take(gap_rows(n, self.n_features_in_, seed)).distinct()
        weights = np.concatenate([pair_magnitudes(coef, scale) for coef, scale in self._chunks(distinct)])
        self.threshold_ = find_threshold(weights if len(distinct) == len(index) else weights[index], n)

    def _resolve_threshold(self, threshold: float | str | None) -> float:
        check_is_fitted(self)
        return chosen_cut(threshold, self.threshold_)

    def _match_nodes(self, X: TableLike) -> Frame:
        return match_columns(as_frame(X, "X"), self.node_names_, self._nodes_named, "X")

    def _match_covariates(self, Z: TableLike) -> Frame:
        return match_columns(as_frame(Z, "Z"), self.encoder_.names, self.encoder_.named, "Z")

    def _encode(self, Z: TableLike) -> Encoded:
        check_is_fitted(self)
        frame = self._match_covariates(Z)
        check_complete(None, frame)
        return self._encode_frame(frame)

    def _fitted_values(self, values: NDArray, encoded: Encoded) -> Iterator[Part]:
        """Positions of some rows and their fitted node values, until all rows were there."""
        if self._scores is None:
            yield from self._regressions(values, encoded)
            return
        scores = self._scores.transform(values, values.dtype)
        for rows, fitted in joined_parts(self._regressions(scores, encoded)):
            yield rows, self._scores.restore(fitted)

    def _regressions(self, values: NDArray, encoded: Encoded) -> Iterator[Part]:
        """Positions of some rows and ``mu(z) + beta(z) (x - mu(z))`` there, until all rows were there."""
        for group in groups_of(encoded, self._rows_per_chunk()):
            yield from group.regressions(values, self._coef_at(group.distinct), self._mean_at(group.distinct))

    def _chunks(self, distinct: Encoded) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float64]]]:
        """Coefficients and residual scales of consecutive rows, in bounded memory."""
        for part in slices(len(distinct), self._rows_per_chunk()):
            rows = distinct.take(np.arange(part.start, part.stop))
            yield self._coef_at(rows), self._residual_scale_at(rows)

    def _rows_per_chunk(self) -> int:
        return rows_within(_CHUNK_BYTES, self.n_features_in_)

    def _worth_keeping(self, n_distinct: int, n_rows: int) -> bool:
        """Whether rows repeat, and their distinct coefficients fit in memory while going through them."""
        return n_distinct < n_rows and 4 * self.n_features_in_**2 * n_distinct <= _CACHE_BYTES

    def _per_row(
        self,
        Z: TableLike,
        function: Callable[..., NDArray],
        dtype: DTypeLike = np.float32,
        scales: Callable[[Encoded], tuple[NDArray, ...]] | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> NDArray:
        """``function`` of coefficients and scales (those of the residuals) at every row, (p, p) each;
        equal rows are done once."""
        encoded = self._encode(Z)
        p = self.n_features_in_
        result = np.empty((len(encoded), *((p, p) if shape is None else shape)), dtype=dtype)
        for group in groups_of(encoded, self._rows_per_chunk()):
            at = (self._residual_scale_at(group.distinct),) if scales is None else scales(group.distinct)
            group.fill(result, function, self._coef_at(group.distinct), *at)
        return result

    def _row_blocks(self, encoded: Encoded) -> Iterator[NDArray[np.float32]]:
        """Coefficients of blocks of consecutive rows, in bounded memory."""
        distinct, index = encoded.distinct()
        table = self._coef_at(distinct) if self._worth_keeping(len(distinct), len(index)) else None
        for rows in slices(len(index), self._rows_per_chunk()):
            if table is not None:
                yield table[index[rows]]
            elif len(distinct) == len(index):
                yield self._coef_at(distinct.take(np.arange(rows.start, rows.stop)))
            else:
                which, inverse = np.unique(index[rows], return_inverse=True)
                yield self._coef_at(distinct.take(which))[inverse]
