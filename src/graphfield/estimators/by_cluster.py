"""One graph, or one field of graphs, per level of a categorical covariate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.data.covariates import Encoded, as_text, is_categorical
from graphfield.data.frames import MIN_SAMPLES, Frame
from graphfield.data.missing import POLICIES
from graphfield.data.nodes import NodeScaler
from graphfield.data.refused_levels import MANY_LEVELS
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import given_estimator
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.group_inputs import without_levels
from graphfield.estimators.inputs import training_inputs
from graphfield.estimators.partition import PartitionedGraph
from graphfield.exceptions import DataError, ParameterError, check_choice, listing, suggestion


class ByCluster(PartitionedGraph):
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

    def __init__(self, *, estimator: Any = None, by: str | None = None, missing: str = "error") -> None:
        self.estimator = estimator
        self.by = by
        self.missing = missing

    def fit(self, X: Any, Z: Any, *, groups: Any = None) -> ByCluster:
        """Fit one model per cluster; ``groups`` (subjects, say) is passed on to each of them."""
        self._check_parameters()
        prototype = self._prototype()
        inputs = training_inputs(X, Z, self.missing)
        inputs, labels, self.level_check_ = without_levels(inputs, groups, X)
        self._remember(inputs)
        if self.by is not None:
            self.by_ = _known(self.by, inputs.Z)
            inputs = replace(inputs, Z=_clusters_as_text(inputs.Z, self.by_))
        self._learn_covariates(inputs, standardize=True, unknown="average")
        if self.by is None:
            self.by_ = self._only_categorical()
        self._column = self._find_column(inputs.Z)
        self.scaler_ = NodeScaler.learn(inputs.X, center=True, scale=True)
        self._ignores_covariates = not prototype._uses_covariates
        part = self._part_of(self.encoder_.transform(inputs.Z))
        self._check_clusters(part, prototype)
        self._fit_parts(
            [clone(prototype) for _ in self.clusters_],
            inputs,
            part,
            None if groups is None else np.asarray(groups, dtype=object)[inputs.rows],
            [f"the cluster {self.by_} = {level!r}" for level in self.clusters_],
        )
        self._finish(inputs, labels, seed=0)
        return self

    @property
    def clusters_(self) -> list[str]:
        return list(self.encoder_.categorical[self._column].levels)

    @property
    def models_(self) -> dict[str, GraphEstimator]:
        return dict(zip(self.clusters_, self._parts, strict=True))

    def _check_parameters(self) -> None:
        check_choice("missing", self.missing, POLICIES)
        self._prototype()

    def _prototype(self) -> GraphEstimator:
        return GraphicalLasso() if self.estimator is None else given_estimator(self.estimator)

    def _only_categorical(self) -> str:
        names = [column.name for column in self.encoder_.categorical]
        if len(names) != 1:
            found = f"these are categorical: {listing(names)}" if names else "none is categorical"
            raise DataError(
                f"Which covariate holds the clusters? Of {listing(self.covariate_names_)}, {found}. "
                "Name one with by=..."
            )
        return names[0]

    def _find_column(self, Z: Frame) -> int:
        """Position of the clusters among the categorical covariates of the encoder."""
        names = [column.name for column in self.encoder_.categorical]
        if self.by_ not in names:
            only = as_text(Z.values[self.by_])[0]
            raise DataError(
                f"Covariate {self.by_!r} has one level only ({only!r}), so there is one cluster. Fit the "
                "estimator itself instead."
            )
        return names.index(self.by_)

    def _check_clusters(self, part: NDArray[np.intp], prototype: GraphEstimator) -> None:
        counts = np.bincount(part, minlength=len(self.clusters_))
        if counts.min() < MIN_SAMPLES:
            few = [f"{c!r} has {n}" for c, n in zip(self.clusters_, counts, strict=True) if n < MIN_SAMPLES]
            raise DataError(
                f"Each cluster needs at least {MIN_SAMPLES} rows for a graph of its own, but of "
                f"{self.by_!r}, {', '.join(few[:8])}{' and more' if len(few) > 8 else ''}. Drop these rows "
                "or merge the level with another."
            )
        if prototype._uses_covariates and len(self.covariate_names_) == 1:
            raise DataError(
                f"{type(prototype).__name__} needs a covariate besides {self.by_!r}, but Z has no other. Add "
                "one, or use an estimator that ignores covariates, such as GraphicalLasso."
            )

    def _part_of(self, encoded: Encoded) -> NDArray[np.intp]:
        return encoded.codes[:, self._column].astype(np.intp)

    def _part_covariates(self) -> list[str]:
        """All but the clusters; none for an estimator that ignores them."""
        return [] if self._ignores_covariates else [name for name in self.encoder_.names if name != self.by_]

    def _encode_frame(self, frame: Frame) -> Encoded:
        frame = _clusters_as_text(frame, self.by_)
        unseen = sorted(set(as_text(frame.values[self.by_])) - set(self.clusters_))
        if unseen:
            raise DataError(
                f"Covariate {self.by_!r} has {listing(unseen)}, which training did not have, so there is "
                f"no graph for it. Known: {listing(self.clusters_)}."
            )
        return super()._encode_frame(frame)

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        state, arrays = super()._get_state()
        return {**state, "by": self.by_, "ignores_covariates": self._ignores_covariates}, arrays

    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        names = [column.name for column in self.encoder_.categorical]
        self.by_, self._ignores_covariates = state["by"].choice(names), state["ignores_covariates"].flag()
        self._column = names.index(self.by_)
        state["parts"].listed(len(self.clusters_), len(self.clusters_))
        super()._set_state(state, arrays)


def _known(by: Any, Z: Frame) -> str:
    if by not in Z.names:
        hint = suggestion(by, Z.names) if isinstance(by, str) else ""
        raise ParameterError(f"by={by!r} is no covariate. Known: {listing(Z.names)}.{hint}")
    column = Z.values[by]
    if not is_categorical(column, by) and column.nunique() > MANY_LEVELS:
        raise ParameterError(
            f"by={by!r} is a number with {column.nunique()} different values. Name a covariate with few "
            f"levels (at most {MANY_LEVELS} if it is a number), or cut it into groups first."
        )
    return str(by)


def _clusters_as_text(frame: Frame, by: str) -> Frame:
    """Labels 0, 1, 2 count as levels, not as numbers; categories are levels already, and have their order."""
    if isinstance(frame.values[by].dtype, pd.CategoricalDtype):
        return frame
    return Frame(frame.values.assign(**{by: as_text(frame.values[by])}), frame.named)
