"""What every estimator of covariate-dependent graphs can be asked, defined once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.group_levels import LevelCheck
from graphfield.data.rare_levels import warn_of_rare
from graphfield.data.row_source import RowSource
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.in_notebooks import InNotebooks
from graphfield.estimators.inputs import check_options, one_row, root_seed
from graphfield.estimators.judged_pairs import KnownCut, KnownPairs, NewRows, find_threshold
from graphfield.estimators.node_questions import NodeQuestions
from graphfield.estimators.parameters import Rule, check_all
from graphfield.estimators.row_outputs import RowOutputs
from graphfield.estimators.training_set import Streams, TrainingSet, read_training_set
from graphfield.fields import GraphField, Schema, effects
from graphfield.fields import questions as ask
from graphfield.fields.base import State
from graphfield.fields.edge_list import DEFAULT_MAX_ROWS
from graphfield.graphs.strength import apply_rule, symmetrise
from graphfield.graphs.threshold import Threshold, chosen_cut
from graphfield.solvers.marginal_choice import describe_nodes

TableLike = Any


class GraphEstimator(InNotebooks, NodeQuestions, RowOutputs, BaseEstimator, ABC):
    """Base of the estimators: what is fitted is a field of graphs, and everything else asks it.

    A subclass says how the field is found (:meth:`_fit`), what else it learned (:meth:`_get_learned`,
    :meth:`_set_learned`) and which hyper-parameters make sense (:meth:`check_parameters`).

    Attributes
    ----------
    field_ : GraphField
        The fitted field itself: z -> graph, as a value.
    node_names_, covariate_names_ : list of str
        Names in the order of the outputs.
    residual_scale_ : ndarray of shape (p,)
        Standard deviation of each node given the others, in the user's units; its root mean square over z.
    threshold_ : Threshold
        What ``threshold="auto"`` stands for, found at fit time, and beside it the "gap".
    level_check_ : LevelCheck or None
        Whether ``groups`` have levels of their own, which were then subtracted; None without groups.
    held_out_rows_ : ndarray or None
        Positions, among the rows of X, of those that were held out and chose what had to be chosen; None
        where none were, or where they were the user's own.
    """

    field_: GraphField
    level_check_: LevelCheck | None = None
    held_out_rows_: NDArray[np.intp] | None = None
    missing: str
    random_state: Any

    # What each hyper-parameter may be.
    _parameters: ClassVar[Mapping[str, Rule]]
    # What random numbers are drawn for, in this order.
    _streams: ClassVar[tuple[str, ...]] = ("split", "gap")
    # An estimator that ignores covariates accepts a Z without columns.
    _uses_covariates: ClassVar[bool] = True
    _knows_levels: ClassVar[bool] = False  # whether it tells levels of a category apart, which takes rows
    # Whether it fits rows that do not fit in memory; others are given a sample of them.
    takes_all_rows: ClassVar[bool] = False

    # -- fitting ----------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        Z: TableLike = None,
        *,
        groups: Any = None,
        X_val: TableLike = None,
        Z_val: TableLike = None,
        **options: Any,
    ) -> Self:
        """Learn z -> graph.

        Parameters
        ----------
        X : table of shape (n, p)
            Node values: array, pandas or polars frame. Or all of a table in files, without Z and groups:
            :func:`~graphfield.open_table`.
        Z : table of shape (n, q)
            Covariates, numeric or categorical (text, pandas categoricals, booleans).
        groups : sequence of length n, optional
            Rows with equal labels (one subject) are never split between training and held-out rows, or
            between folds. Levels that groups have of their own are subtracted.
        X_val, Z_val : tables, optional
            Own held-out rows. They train nothing; whatever is to be chosen is chosen on them (penalties,
            numbers of patterns, leaves or archetypes, which candidate), and where to cut for edges.
        **options
            Of some estimators: see their own documentation.
        """
        with X.bounded() if isinstance(X, RowSource) else nullcontext():
            return self._adopt(*self._learn(X, Z, groups, X_val, Z_val, options))

    def learn_field(self, X: TableLike, Z: TableLike, *, groups: Any = None) -> GraphField:
        """The field that :meth:`fit` finds, without the threshold: for those who ask it for no graph."""
        return self._learn(X, Z, groups, None, None, {})[0]

    def _learn(
        self, X: TableLike, Z: TableLike, groups: Any, X_val: TableLike, Z_val: TableLike, options: dict
    ) -> tuple[GraphField, TrainingSet]:
        self.check_parameters()
        check_options(self._fit, options)
        self._check_machine()
        data = self._read_rows(X, Z, groups, X_val, Z_val)
        return self._fit(data, **options), data

    def _read_rows(self, *tables: Any) -> TrainingSet:
        """The checked rows of a fit: from X, Z, groups, X_val and Z_val."""
        return read_training_set(
            *tables,
            missing=self.missing_policy(),
            standardize=bool(getattr(self, "standardize", True)),
            subtract_levels=getattr(self, "center", "") != "none",
            streams=Streams(self._root_seed(), self._streams),
            node_types=getattr(self, "node_types", None),
            sampled_by=None if self.takes_all_rows else type(self).__name__,
            uses_covariates=self._uses_covariates,
        )

    def _root_seed(self) -> int:
        """What all random numbers of a fit follow from."""
        return root_seed(getattr(self, "random_state", 0))

    @abstractmethod
    def _fit(self, data: TrainingSet) -> GraphField:
        """The field that these rows support; what else was learned is kept in attributes."""

    def _adopt(self, field: GraphField, data: TrainingSet) -> Self:
        """The field with the threshold that the rows support, and what the base keeps of a fit."""
        self.level_check_ = data.levels
        self.held_out_rows_ = None if data.held_out is None else data.Z.places[data.held_out]
        self.field_ = field.with_threshold(self._find_threshold(field, data))
        self.__dict__.pop("feature_names_in_", None)
        if field.schema.nodes_named:
            self.feature_names_in_ = np.array(field.schema.node_names, dtype=object)
        return self

    def _find_threshold(self, field: GraphField, data: TrainingSet) -> Threshold:
        """When an edge is there, from these rows."""
        return find_threshold(field, data, self._new_rows(field, data))

    def _new_rows(self, field: GraphField, data: TrainingSet) -> NewRows | KnownCut | KnownPairs | None:
        """What says above which strength a pair is an edge; None: the training rows."""
        judged = field if data.own is not None and data.judged is None else data.judged
        if judged is None or data.new is None or judged.schema.types is not None:
            return None
        values, Z, labels = data.new
        return NewRows(values, judged.encode(Z), labels, judged)

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Names of the hyper-parameters, sorted."""
        return sorted(cls._parameters)

    def check_parameters(self) -> None:
        """Raise a ``ParameterError`` for a hyper-parameter that makes no sense, whatever the machine."""
        check_all(self._parameters, self.get_params(deep=False))
        self._check_together()

    def _check_together(self) -> None:
        """Raise for hyper-parameters that make no sense together."""

    def _check_machine(self) -> None:
        """Raise where something that the fit needs is not installed or not there."""

    def missing_policy(self) -> str:
        return self.missing

    def _learn_schema(self, data: TrainingSet, *, standardize: bool, unknown: str) -> Schema:
        encoder = CovariateEncoder(standardize=standardize, unknown=unknown)
        encoder.fit(data.Z, allow_empty=not self._uses_covariates)
        if self._knows_levels:
            warn_of_rare(type(self).__name__, encoder)
        inputs = data.inputs
        return Schema(list(inputs.node_names), inputs.nodes_named, encoder, types=inputs.types)

    # -- what the field knows ---------------------------------------------------------------

    def _known(self) -> GraphField:
        """The field; an attribute of a model that was not fitted is none."""
        if not hasattr(self, "field_"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        return self.field_

    @property
    def n_features_in_(self) -> int:
        return self._known().n_nodes

    @property
    def node_names_(self) -> list[str]:
        return self._known().schema.node_names

    @property
    def covariate_names_(self) -> list[str]:
        return list(self._known().schema.encoder.names)

    @property
    def encoder_(self) -> CovariateEncoder:
        return self._known().schema.encoder

    @property
    def residual_scale_(self) -> NDArray[np.float64]:
        return self._known().common.residual_scale

    @property
    def threshold_(self) -> Threshold:
        return self._known().threshold

    # -- graphs -----------------------------------------------------------------------------

    def predict_coef(self, Z: TableLike) -> NDArray[np.float32]:
        """Coefficients at each row of Z.

        Returns
        -------
        ndarray of shape (n, p, p), float32
            ``[i, j, k]`` is beta_jk(z_i), the weight of node k in the regression of node j, in the
            user's units; the diagonal is zero. Where units differ so much that float32 cannot hold a
            coefficient, a :class:`DataError` says so; partial correlations need no units. To a binary
            node it leads to its log-odds, to a count to its logarithm; where a node has more than two levels,
            a :class:`DataError` points to :meth:`predict_effect`.
        """
        if self._field().schema.types is not None:
            return np.concatenate(list(self.iter_coef(Z)))
        return ask.coefficients(self._field(), Z)

    def iter_coef(self, Z: TableLike) -> Iterator[NDArray[np.float32]]:
        """:meth:`predict_coef` in consecutive blocks of rows, in bounded memory."""
        of_numbers = self._field().schema.types is None
        yield from (ask.coefficient_blocks if of_numbers else effects.natural_coefficients)(self._field(), Z)

    def partial_correlations(self, Z: TableLike) -> NDArray[np.float32]:
        """Signed partial correlations at each row of Z: (n, p, p); no sign where nodes have many levels."""
        return ask.correlations(self._field(), Z)

    def edge_weights(self, Z: TableLike) -> NDArray[np.float32]:
        """The score an edge is ranked by: the size of its partial correlation, (n, p, p)."""
        return ask.magnitudes(self._field(), Z)

    def predict_graph(
        self, Z: TableLike, threshold: float | str | None = "auto", rule: str = "and"
    ) -> NDArray[np.bool_]:
        """Which edges are present at each row of Z.

        Parameters
        ----------
        Z : table of shape (n, q)
        threshold : "auto", float, "gap" or None
            "auto" has the pairs that stand clear of their noise in the training rows, at a false-discovery
            level of .1, where they are above the largest cut that predicts as well as any; a number is a cut
            in units of partial correlation (higher: fewer edges); "gap" is the paper's cut between weak and
            strong edges; None keeps all that are not exactly zero. "auto" and "gap" are found at fit time
            (``threshold_``), so no graph depends on which others are asked for with it.
        rule : {"and", "or"}
            Whether both directions of a pair must exceed the threshold, or one.

        Returns
        -------
        ndarray of shape (n, p, p), bool
            Symmetric, with a False diagonal.
        """
        return ask.graphs(self._field(), Z, self._cut(threshold), rule)

    def predict_precision(self, Z: TableLike) -> NDArray[np.float64]:
        """Precision matrices at each row of Z: (n, p, p), symmetric and positive definite.

        Off-diagonal entries follow from :meth:`partial_correlations`, the diagonal from the residual
        standard deviations. Where separately estimated edges do not add up to a positive definite
        matrix, or imply that a node varies more than four times as much (in variance) as it does in the
        training rows (at z, where its scale moves), all edges of that graph are shrunk by one factor until
        they do not. :meth:`precision_shrinkage` says by which.
        """
        return ask.precisions(self._field(), Z)

    def precision_shrinkage(self, Z: TableLike) -> NDArray[np.float64]:
        """The factors by which :meth:`predict_precision` multiplies the edges at each row of Z: (n,).

        1 means as they are: always so for a model that estimates precision matrices (`GraphicalLasso`,
        `TreeCGM`, `ArchetypeCGM`). Much less than 1 says that the separate regressions contradict each
        other there; the matrix is then that of a graph with weaker edges.
        """
        return ask.shrinkages(self._field(), Z)

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
        return ask.residual_scales(self._field(), Z)

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
        return ask.edge_table(self._field(), Z, self._cut(threshold), rule, max_rows)

    def iter_edges(
        self, Z: TableLike, threshold: float | str | None = "auto", rule: str = "and"
    ) -> Iterator[pd.DataFrame]:
        """:meth:`edges` in consecutive blocks of rows, in bounded memory."""
        yield from ask.edge_table_blocks(self._field(), Z, self._cut(threshold), rule)

    def to_networkx(
        self, z: TableLike, threshold: float | str | None = "auto", rule: str = "and"
    ) -> nx.Graph:
        """The graph at one covariate value, given as a mapping, a sequence or a one-row table.

        Nodes carry their names; edges carry ``weight`` and ``partial_correlation``.
        """
        directed = self._field().at(one_row(z, self.covariate_names_)).directed
        graph = apply_rule(directed, self._cut(threshold), rule)[0]
        return self._field().schema.network(graph, symmetrise(directed)[0])

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted model to a folder (JSON and safetensors); read it with ``gf.load``."""
        from graphfield.estimators.persistence import save_model

        check_is_fitted(self)
        return save_model(self, Path(path), overwrite=overwrite)

    def describe(self) -> str:
        """What was fitted, and which pairs are edges and why, in a few sentences."""
        check_is_fitted(self)
        nodes = describe_nodes(self.facts()["marginals"], getattr(self, "marginal_check_", None))
        return "\n".join([*self._findings(), nodes, f"Edges (threshold auto): {self.threshold_.reason}."])

    def facts(self) -> dict[str, Any]:
        """What was fitted as values of JSON, as ``graphfield fit`` writes it beside the model."""
        marginals = getattr(self, "marginals_", self._known().schema.marginals)
        return {"model": type(self).__name__, "marginals": marginals}

    # -- shared by the subclasses -----------------------------------------------------------

    def _findings(self) -> list[str]:  # what this fit found, in sentences
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    def _get_learned(self) -> State:
        """What the estimator learned beyond its field, as values of JSON and arrays."""
        return {}, {}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        """Inverse of :meth:`_get_learned`; what that could not have written is refused here, not later."""

    def _field(self) -> GraphField:
        check_is_fitted(self)
        return self.field_

    def _cut(self, threshold: float | str | None) -> float | NDArray[np.float64]:
        return chosen_cut(threshold, self._field().threshold)
