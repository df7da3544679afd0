"""What every fitted estimator can be asked about values of its nodes, of whichever kind these are."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from graphfield.data.frames import KIND_MODELS
from graphfield.data.group_levels import LevelCheck
from graphfield.exceptions import DataWarning
from graphfield.fields import GraphField, effects
from graphfield.fields import questions as ask

TableLike = Any
_KNOWS_NO_LEVELS = (
    "Levels of groups were subtracted before this model was fitted, and it knows none: what it predicts of "
    "rows as they are is far off where levels differ. Subtract from each row by how much the mean of its "
    "group is above that of all rows, and add that to what is predicted."
)


def _has_levels(model: Any) -> bool:
    """Whether a fitted model has nodes with levels: only such a model has probabilities of them."""
    if hasattr(model, "field_") and model.node_levels_:
        return True
    raise AttributeError(
        "predict_proba is there after a fit to nodes with levels (binary, categorical or ordinal): see "
        f"node_types of {KIND_MODELS}."
    )


class NodeQuestions:
    """Kinds and levels of nodes, predictions of them, and what one node does to another."""

    level_check_: LevelCheck | None

    @abstractmethod
    def _known(self) -> GraphField: ...

    @abstractmethod
    def _field(self) -> GraphField: ...

    @abstractmethod
    def missing_policy(self) -> str: ...

    @property
    def node_kinds_(self) -> dict[str, str]:
        """What each node is: "gaussian" (a number), "binary", "categorical", "ordinal" or "count"."""
        schema = self._known().schema
        return dict(zip(schema.node_names, schema.node_kinds, strict=True))

    @property
    def node_levels_(self) -> dict[str, list[str]]:
        """Levels of the nodes that have any, in the order of their codes 0, 1, ..."""
        types = self._known().schema.types
        pairs = () if types is None else zip(types.names, types.types, strict=True)
        return {name: list(one.levels) for name, one in pairs if one.levels}

    def predict(self, X: TableLike, Z: TableLike) -> NDArray[np.float64]:
        """Fitted node values ``mu(z) + beta(z) (x - mu(z))``: each node from all the others.

        Where the model is one of normal scores, these are brought back to the node's values. Of a binary node
        it is the probability of its second level, of a count its mean, of an ordinal node the mean of its
        codes 0, 1, ..., of a categorical one the code of the most likely level; ``node_levels_`` names them.

        A model from which levels of groups were subtracted (``level_check_``) is of what varies within a
        group, and knows no levels: of rows with their levels it says so.
        """
        self._warn_of_levels()
        return ask.predict_values(self._field(), X, Z)

    def score(self, X: TableLike, Z: TableLike) -> float:
        """Mean over nodes of the R^2 of :meth:`predict` on these rows; 1 is perfect.

        Of nodes that are no plain numbers it is the share of the deviance that the others explain. Rows with
        missing values are handled as in ``fit`` (parameter ``missing``). Levels of groups are no part of a
        model, as in :meth:`predict`.
        """
        self._warn_of_levels()
        return effects.explained(self._field(), X, Z, self.missing_policy())

    def _warn_of_levels(self) -> None:
        if self.level_check_ is not None and self.level_check_.prefers:
            warnings.warn(_KNOWS_NO_LEVELS, DataWarning, stacklevel=3)

    @available_if(_has_levels)
    def predict_proba(self, X: TableLike, Z: TableLike, node: str) -> pd.DataFrame:
        """Probabilities of the levels of a node given all the others.

        An ordinal node is fitted as a number, by its codes. The probability of a level is proportional to its
        share in the training rows times the normal density that its code has given the others, over that
        which it has without them: the odds of neighbouring levels are linear in the mean of the codes.

        Returns
        -------
        DataFrame
            One row per row of X, one column per level; rows add up to one.
        """
        return effects.probabilities(self._field(), X, Z, node)

    def predict_effect(self, Z: TableLike, source: str, target: str) -> pd.DataFrame:
        """What node ``source`` does to node ``target`` at each row of Z.

        Returns
        -------
        DataFrame
            ``sample`` (position of the row in Z), ``source_level``, ``target_level`` and ``effect``: on the
            mean of a number (of the codes 0, 1, ... of ordinal levels), the log-odds of a binary node, the
            logarithm of a count, per unit of the source. A node with more than two levels has a line for
            each: effects are on the logarithm of its probability, up to one constant for all, and those of a
            source add up to zero over its levels. A number that enters by a curve (``features``) has a line
            for each of some of its values, at most two standard deviations from its mean (in the rows of the
            fit of each cluster; on average over the members of an ensemble). Other nodes have no level ("").
        """
        return effects.effects(self._field(), Z, source, target)
