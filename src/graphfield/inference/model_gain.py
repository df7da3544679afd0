"""Does a model beat one graph for all, on rows that took no part in its fit or in any choice?"""

from __future__ import annotations

import time as clock
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphfield.data.splits import time_blocks
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.ensemble import Ensemble
from graphfield.estimators.inputs import Inputs, training_inputs
from graphfield.estimators.one_graph import STATIC, static_models
from graphfield.estimators.training_set import without_levels
from graphfield.exceptions import DataWarning, ParameterError
from graphfield.inference.common_nodes import RAW, CommonNodes, wanted_nodes
from graphfield.inference.question import TIME_BLOCKS, times_of
from graphfield.inference.unseen_rows import Predicted, copy_of, explained_share, predict_held_out
from graphfield.numbers import Gain

FORMAT = "graphfield-gain"
FITTED = "the fitted model"
# What estimators call it (``center``) where means of nodes do not follow the covariates.
ONE_MEAN = ("constant", "none")
# What is counted where rows follow each other and nobody says when.
ROW_BLOCK = "row block"


_SHARES = ("over_average", "over_static", "explained", "by_average")


@dataclass(frozen=True)
class ModelGain:
    """A model against one graph for all, on rows that took no part in its fit or in any choice.

    It judges how the model is fitted, not one fit: copies without some of the rows, with seeds of their own.
    All gains are shares of the squared error (the deviance, where some nodes are no plain numbers) of the
    model's own average graph, averaged over nodes.

    Attributes
    ----------
    over_average : Gain
        Over the model's own graph averaged over z, with the same means: what is gained because the graph
        moves, and by nothing else. ``value`` and ``standard_error``.
    over_static : Gain or None
        Over the best graph that does not depend on z, by the method ``static``; None where the model is that
        itself. It is fitted to what the model's own means, scales and normal scores leave of the same rows
        (of nodes that are no plain numbers, with means of its own), so that what differs is the graph. Its
        edges are lines: what a model of curves (``features``) gains is for its curves as well.
    explained : Gain or None
        Share of a node's variance around its mean given the covariates (or of its deviance) that the others
        explain, averaged over nodes; around one mean where means do not follow the covariates.
    by_average : Gain or None
        The same by the model's own average graph.
    n_rows, n_units, n_folds : int
        Rows that were predicted, and groups (or stretches of time) of them; 1 fold is one part held out.
    unit : str
        What the units are: "row", "group", ...
    rows : str
        What the rows are, for sentences.
    fitted, average, static : str
        What was compared, and what "one graph" is. Of an :class:`~graphfield.Ensemble` it is a single fit of
        its estimator; the gain of all members together, which saw drawn rows, may be a little more or less.
    seconds : float
        Time of the extra fits.
    error : str
        What gains are shares of: "squared error" or "deviance".
    within_groups : bool
        Whether groups have levels of their own, which were subtracted from held-out rows as they are in a
        fit: all is about what varies within a group then.
    follows_means : bool
        Whether means of nodes may follow the covariates in the model. Where not, what moves nodes together is
        a part of its edges.
    moving_means : bool
        Whether they do, in some of the fits. Where not, ``explained`` is of the variance around one mean.
    nodes : str
        What errors are counted in, which is what the model takes nodes as: "raw" (as they are), "normal"
        (normal scores), "log1p" or "clr". Scores and logarithms are those of all rows.
    """

    over_average: Gain
    over_static: Gain | None
    explained: Gain | None
    n_rows: int
    n_units: int
    n_folds: int
    unit: str = "row"
    rows: str = "rows"
    fitted: str = FITTED
    average: str = "its own average graph"
    static: str = "graphical lasso"
    seconds: float = 0.0
    within_groups: bool = False
    error: str = "squared error"
    follows_means: bool = True
    moving_means: bool = True
    nodes: str = RAW
    by_average: Gain | None = None

    @property
    def answer(self) -> str:
        """ "better", "no clear difference" or "worse" than one graph.

        Better is clearly better than the own average and no worse than the best static graph, as far as it
        can be told.
        """
        over_static = self.over_static or Gain(0.0, 0.0)
        if self.over_average.is_clear_loss or over_static.is_clear_loss:
            return "worse"
        is_better = self.over_average.is_clear and over_static.value >= 0
        return "better" if is_better else "no clear difference"

    def to_json(self) -> dict[str, Any]:
        """As it is kept beside a model."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {k: v.to_json() if isinstance(v, Gain) else v for k, v in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ModelGain:
        """From what :meth:`to_json` gave; entries that are not known are left out."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        gains = {n: Gain.from_json(known.get(n)) for n in _SHARES if n in known}
        return cls(**{**known, **gains})


def gain_over_one_graph(
    model: GraphEstimator,
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    time: Any = None,
    n_folds: int | None = None,
    missing: str | None = None,
    in_order: bool = False,
) -> ModelGain:
    """Compare a model with one graph for all, on rows that took no part in its fit or in any choice.

    Copies of the model are fitted without some of the rows, choices and all, and predict these: each node
    from all others. Up to 3,000 rows, every row is predicted once, in five folds; of more, a fifth is held
    out. Folds of a :class:`~graphfield.DNNCGM` train together, which takes one to three times as long as a
    fit; other models take a fit for each fold. An :class:`~graphfield.Ensemble` is compared by single fits of
    its estimator, which takes as long as if it had no members.

    Parameters
    ----------
    model : estimator
        Fitted or not; it is not changed.
    X, Z : tables
        As for ``fit``.
    groups : sequence of length n, optional
        Rows with equal labels stay together, and standard errors are those of groups. Levels that groups
        have of their own are subtracted first, as in ``fit``. Without groups and time, standard errors are
        those of rows that do not depend on each other.
    time : sequence of numbers or dates of length n, optional
        When rows were taken: folds are stretches of time.
    n_folds : int, optional
        1 holds one fifth out.
    missing : {"error", "drop", "impute"}, optional
        By default as the model has it.
    in_order : bool
        Whether rows that follow each other depend on each other, though the model was not told: they are
        predicted and counted in blocks. Without effect beside groups or time.

    Examples
    --------
    >>> import graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> Z, X = rng.uniform(-1, 1, (300, 1)), rng.normal(size=(300, 4))
    >>> X[:, 1] += 2 * Z[:, 0] * X[:, 0]  # an edge that changes its sign
    >>> gf.gain_over_one_graph(gf.RegGMM(), X, Z).answer
    'better'
    """
    if not isinstance(model, GraphEstimator):
        raise ParameterError.of("model", f"must be a graphfield estimator such as DNNCGM(), got {model!r}.")
    policy = missing or model.missing_policy()
    types = getattr(model, "node_types", None)
    inputs = training_inputs(X, Z, policy, node_types=types, groups=groups)
    wanted = getattr(model, "center", "") != "none"
    inputs, units = read_units(inputs, X, groups, time, in_order=in_order, wanted=wanted)
    start = clock.perf_counter()
    single, fitted = _single_fit(model)
    nodes = CommonNodes.choose(inputs, wanted_nodes(model), units.groups)
    copied = nodes.take_over(copy_of(single))
    found = gain_of_copies(single, units.predict(copied, nodes.turn(inputs), n_folds), units)
    return replace(found, fitted=fitted, nodes=nodes.name, seconds=round(clock.perf_counter() - start, 2))


class Units(NamedTuple):
    """Rows that are held out together and count as one.

    Fits know of ``labels``, numbered from 0 (groups, or stretches of time), and not of ``blocks``.
    """

    labels: NDArray[np.intp] | None
    blocks: NDArray[np.intp] | None
    unit: str  # what they are: "row", "group", "time block" or "row block"
    within_groups: bool  # levels of groups were subtracted

    @property
    def groups(self) -> NDArray[np.intp] | None:
        """Labels, where they are those of groups."""
        return self.labels if self.unit == "group" else None

    def predict(self, model: GraphEstimator, inputs: Inputs, n_folds: int | None) -> Predicted:
        """Held-out rows, by copies of a model."""
        ordered = self.unit == "time block"
        return predict_held_out(
            model, inputs, self.labels, ordered=ordered, n_folds=n_folds, blocks=self.blocks
        )


def read_units(
    inputs: Inputs, X: Any, groups: Any, time: Any, *, in_order: bool, wanted: bool = True
) -> tuple[Inputs, Units]:
    """What counts as one, and rows without the levels of groups where these are ``wanted`` out."""
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # a fit says it
        inputs, labels, levels = without_levels(inputs, groups, X, wanted=wanted)
    unit, blocks = "group", None
    if labels is None and time is not None:
        labels, unit = time_blocks(times_of(time, X), TIME_BLOCKS)[inputs.rows], "time block"
    elif labels is None:
        unit = ROW_BLOCK if in_order else "row"
        blocks = time_blocks(inputs.rows.astype(np.float64), TIME_BLOCKS) if in_order else None
    labels = None if labels is None else np.unique(labels, return_inverse=True)[1]
    return inputs, Units(labels, blocks, unit, levels is not None and levels.prefers)


def gain_of_copies(model: GraphEstimator, left: Predicted, units: Units) -> ModelGain:
    """What held-out rows say, where copies of ``model`` predicted them."""
    follows = getattr(model, "center", "covariates") not in ONE_MEAN
    found = gain_of(left, units.unit, model=model)
    moving = left.moving_means and follows
    return replace(found, within_groups=units.within_groups, follows_means=follows, moving_means=moving)


def _single_fit(model: GraphEstimator) -> tuple[GraphEstimator, str]:
    """What is fitted in each fold, and what to call it: members of an ensemble would multiply the time."""
    if not isinstance(model, Ensemble):
        return model, FITTED
    return model.single_fit(), f"a single fit, of which the model averages {model.n_members},"


def gain_of(
    left: Predicted, unit: str = "row", rows: str = "rows", model: GraphEstimator | None = None
) -> ModelGain:
    """What held-out rows say of a model; they are called ``rows``, and differ by ``unit``."""
    best = left.best_static

    def explained(by: NDArray[np.float64]) -> Gain | None:
        return explained_share(left.unconnected, by, left.units, around=not left.deviances)

    return ModelGain(
        over_average=left.over(left.average),
        over_static=None if _is_static(model, best, left) else left.over(left.static[best]),
        explained=explained(left.model),
        by_average=explained(left.average),
        error="deviance" if left.deviances else "squared error",
        n_rows=len(left.model),
        n_units=len(np.unique(left.units)),
        n_folds=left.n_folds,
        unit=unit,
        rows=rows,
        static=best,
    )


def _is_static(model: GraphEstimator | None, name: str, left: Predicted) -> bool:
    """Whether a model is the static one of this name, which chooses its penalty as that does."""
    if list(getattr(model, "chosen_", ())) == [STATIC]:  # what AutoCGM kept is the first
        return name == next(iter(left.static))
    own = static_models()[name]
    return isinstance(model, type(own)) and model.penalty == own.penalty
