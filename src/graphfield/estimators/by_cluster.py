"""One graph, or one field of graphs, per level of a categorical covariate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.data.covariate_text import MANY_LEVELS
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import MIN_SAMPLES, Frame
from graphfield.data.level_text import as_text, is_categorical
from graphfield.data.node_types import check_node_types
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import (
    check_estimator,
    fit_parts,
    given_estimator,
    pack_members,
    unpack_members,
    with_typical_scale,
)
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.parameters import MISSING, Custom, hyper_parameters, parameter
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, ParameterError, first_few, listing, suggestion
from graphfield.fields.base import Common, State
from graphfield.fields.partition import ClusterField, clusters_as_text
from graphfield.messages import Argument


def _check_by(by: Any) -> None:
    if by is not None and not isinstance(by, str):
        raise ParameterError.of("by", f"must be the name of a covariate or None, got {by!r}.")


@hyper_parameters
class ByCluster(GraphEstimator):
    """A separate fit of one estimator within each level of a categorical covariate.

    The right tool where the samples fall into a few groups that you know (diagnosis, site, subtype)
    and each has enough rows for a graph of its own: nothing is shared between the groups.

    Parameters
    ----------
    estimator : estimator of graphfield, optional
        Cloned and fitted once per cluster; by default :class:`GraphicalLasso`. The parameters of one
        that is given can be set as ``estimator__NAME``. It sees the covariates other than ``by``; one
        that ignores covariates, such as the default, is given none and works without any.
    by : str, optional
        Name of the covariate that holds the clusters (``"z1"``, ``"z2"``, ... where Z has no names). May
        be a column of whole numbers such as 0, 1, 2. By default the only categorical covariate.
    missing : {"error", "drop", "impute"}, default "error"
        Rows with missing or infinite values: refused, left out, or filled in with a warning.

    Attributes
    ----------
    by_ : str
        The covariate that holds the clusters.
    clusters_ : list of str
        Its levels, as text.
    models_ : dict
        The fitted estimator of each cluster.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("S2", n_samples=400, random_state=0)
    >>> model = gf.ByCluster(by="site").fit(sim.X[:, :8], sim.Z)
    >>> model.clusters_
    ['A', 'B', 'C', 'D']
    >>> round(model.models_["A"].penalty_, 2) > 0
    True
    """

    estimator: Any = parameter(None, Custom(check_estimator))
    by: str | None = parameter(None, Custom(_check_by))
    missing: str = parameter("error", MISSING)

    def _fit(self, data: TrainingSet) -> ClusterField:
        prototype = self._prototype()
        if self.by is not None:
            by = _known(self.by, data.Z)
            data = replace(data, inputs=replace(data.inputs, Z=clusters_as_text(data.Z, by)))
        schema = self._learn_schema(data, standardize=True, unknown="average")
        if self.by is None:
            by = _only_categorical(schema.encoder)
        _check_levels(schema.encoder, by, data.Z)
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        inner = [name for name in data.Z.names if name != by] if prototype._uses_covariates else []
        empty = ClusterField(Common(schema, scaler, scaler.scale), [], by)
        part = empty.part_of(empty.encode(data.Z))
        _check_clusters(part, empty)
        _check_others(prototype, by, inner)
        models = [clone(prototype) for _ in empty.clusters]
        names = [f"the cluster {by} = {level!r}" for level in empty.clusters]
        known = [inner] * len(models)
        parts = fit_parts(models, data, lambda Z: empty.part_of(empty.encode(Z)), known, data.groups, names)
        self._models = models
        # Numbers that enter the parts by curves do so in the whole.
        common = replace(empty.common, schema=replace(schema, types=parts[0].schema.types))
        return with_typical_scale(replace(empty, common=common, parts=parts), data.Z)

    @property
    def _clusters(self) -> ClusterField:
        return self._known().of_kind(ClusterField)

    @property
    def by_(self) -> str:
        return self._clusters.by

    @property
    def clusters_(self) -> list[str]:
        return self._clusters.clusters

    @property
    def models_(self) -> dict[str, GraphEstimator]:
        return dict(zip(self.clusters_, self._models, strict=True))

    @property
    def node_types(self) -> Any:
        """As the estimator says; None where it takes numbers alone."""
        return getattr(self._prototype(), "node_types", None)

    def _check_together(self) -> None:
        if self.node_types is not None:
            check_node_types(self.node_types)

    def _prototype(self) -> GraphEstimator:
        return GraphicalLasso() if self.estimator is None else given_estimator(self.estimator)

    def _get_learned(self) -> State:
        return pack_members(self._models)

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        field = self._clusters
        self._models = unpack_members(state, arrays, field.parts)
        self.field_ = replace(field, parts=[model.field_ for model in self._models])


def _only_categorical(encoder: CovariateEncoder) -> str:
    names = [column.name for column in encoder.categorical]
    if len(names) != 1:
        found = f"these are categorical: {listing(names)}" if names else "none is categorical"
        raise DataError(
            f"ByCluster needs one categorical covariate, which holds the clusters, and of "
            f"{listing(encoder.names)}, {found}. Name one with by=..."
        ).about(argument="by")
    return names[0]


def _check_levels(encoder: CovariateEncoder, by: str, Z: Frame) -> None:
    if by in [column.name for column in encoder.categorical]:
        return
    only = as_text(Z.values[by])[0]
    raise DataError(
        f"Covariate {by!r} has one level only ({only!r}), so there is one cluster. Fit the estimator itself "
        "instead."
    ).about(column=by)


def _check_clusters(part: NDArray[np.intp], field: ClusterField) -> None:
    counts = np.bincount(part, minlength=len(field.clusters))
    if counts.min() < MIN_SAMPLES:
        few = [f"{c!r} has {n}" for c, n in zip(field.clusters, counts, strict=True) if n < MIN_SAMPLES]
        raise DataError(
            f"ByCluster needs at least {MIN_SAMPLES} rows of each cluster for a graph of its own, but of "
            f"{field.by!r}, {first_few(few, 8)}. Drop these rows "
            "or merge the level with another."
        ).about(column=field.by)


def _check_others(prototype: GraphEstimator, by: str, others: list[str]) -> None:
    if prototype._uses_covariates and not others:
        raise DataError(
            f"{type(prototype).__name__} needs a covariate besides {by!r}, but Z has no other. Add "
            "one, or use an estimator that ignores covariates, such as GraphicalLasso."
        ).about(argument="Z")


def _known(by: Any, Z: Frame) -> str:
    if by not in Z.names:
        hint = suggestion(by, Z.names) if isinstance(by, str) else ""
        raise ParameterError(
            "{argument} is no covariate. Known: {names}.{hint}",
            argument=Argument("by", by),
            names=listing(Z.names),
            hint=hint,
        )
    column = Z.values[by]
    if not is_categorical(column, by) and column.nunique() > MANY_LEVELS:
        raise ParameterError(
            "{argument} is a number with {n} different values. Name a covariate with few levels (at most "
            "{most} if it is a number), or cut it into groups first.",
            argument=Argument("by", by),
            n=column.nunique(),
            most=MANY_LEVELS,
        )
    return str(by)
