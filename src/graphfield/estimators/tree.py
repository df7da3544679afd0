"""A tree over the covariates with one sparse graph per leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from graphfield.data.blocks import Blocks
from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.frames import MIN_SAMPLES
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import fit_parts, with_typical_scale
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.nodewise_lasso import NodewiseLasso
from graphfield.estimators.parameters import (
    MISSING,
    NODE_TYPE,
    SHARE,
    UNKNOWN,
    Number,
    Seed,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields.base import Common, State
from graphfield.fields.partition import TreeField, tree_features
from graphfield.fields.tree import Tree
from graphfield.numbers import is_clear, mean_and_error
from graphfield.solvers.interaction import linear_mean
from graphfield.solvers.leaf_likelihood import HeldOutSearch, grow_covariance_tree, penalty_of

# Leaves from this size on take the penalty that was best on their held-out rows.
_MANY_ROWS = 500
# Of the regression of the nodes on z, so that it exists for any z.
_RIDGE = 1e-6


@hyper_parameters
class TreeCGM(GraphEstimator):
    """One sparse graph per leaf of a tree that splits the covariates where the graph changes.

    A regression tree of all products x_j x_k on z finds regions between which the covariance of the
    nodes differs; each leaf gets a graphical lasso of its own, with its own means and residual
    variances. The number of leaves is the one that predicts held-out rows best (Gaussian likelihood;
    the smallest within one standard error), and leaves that predict better with one graph in common are
    merged. One leaf, a static graph, is among the choices: then the covariates do not help. Fast,
    readable, and hard to beat where the graph changes in steps; where it moves smoothly with z, or the mean
    of the nodes is not linear in z, a neural model follows better. Means that are linear in z (and of levels)
    are taken out before the tree is grown, and again in each leaf, where held-out rows support that.

    Where some nodes are no plain numbers, the tree is grown in the same way from their standardised columns
    (indicators of levels, counts), and each leaf is a :class:`NodewiseLasso` with the families of the nodes.

    Parameters
    ----------
    max_leaves : int, default 32
        Largest tree that is tried; 1 is the static graph.
    min_leaf_rows : int, optional
        Rows that a leaf must have at least; by default as many as there are nodes, and 20 or more.
    validation_fraction : float in (0, 1), default 0.2
        Share of rows (or groups) held out while leaves and penalties are chosen, where no X_val, Z_val is
        given. The final graphs use all rows.
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or sent down the tree with the
        training shares of the known levels in place of their indicators.
    random_state : int, Generator or None
        Decides which rows are held out. A whole number makes the fit reproducible.
    node_types : "auto" or mapping, default "auto"
        What nodes are, as in :class:`NodewiseLasso`: "gaussian", "binary", "categorical", "ordinal" or
        "count". A split that would leave a node with one value in a leaf is not made.

    Attributes
    ----------
    n_leaves_ : int
        Leaves with a graph of their own; merged leaves count as one.
    rules_ : list of str
        Which covariates belong to each leaf, such as ``"age <= 43 and site is 'B'"``.
    leaf_penalties_ : ndarray of shape (number of leaves,)
        Penalties of the lasso in each leaf, on nodes standardised within the leaf.
    held_out_ : DataFrame
        For each size that was tried: ``leaves`` (before merging), ``log_likelihood`` (mean over held-out
        rows, nodes in standard units), ``behind`` and its ``standard_error`` (distance to the best tree).
    tree_ : Tree
        The splits as arrays.

    Notes
    -----
    The penalty of a leaf with 500 rows or more is the one that was best on its held-out rows, scaled by
    the square root of the rows; in smaller leaves it is chosen by cross-validation. Beyond 91 nodes the
    tree is grown on 2,048 random sketches (a'x)(b'x) in place of all products; of tables with more than
    67 million products a random part of the rows grows the tree. All rows are used for the graphs.

    Which rows are held out decides how many leaves there are: without ``random_state`` two fits of the same
    table can differ much where levels are many and rows few (AUPRC .82 or .91 with 8 levels). An
    :class:`Ensemble` of trees averages over that.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=1500, random_state=0)
    >>> model = gf.TreeCGM(max_leaves=3, random_state=0).fit(sim.X[:, :10], sim.Z)
    >>> model.n_leaves_
    3
    >>> model.edge_weights(sim.Z[:2]).shape
    (2, 10, 10)
    """

    _streams = ("split", "tree", "gap")
    _knows_levels = True

    max_leaves: int = parameter(32, Number(1, integer=True))
    min_leaf_rows: int | None = parameter(None, Number(MIN_SAMPLES, integer=True, optional=True))
    validation_fraction: float = parameter(0.2, SHARE)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    random_state: Any = parameter(None, Seed())
    node_types: str | Mapping[str, str] = parameter("auto", NODE_TYPE)

    def _fit(self, data: TrainingSet) -> TreeField:
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        z = tree_features(schema.encoder, data.encode(schema.encoder))
        if schema.types is None:
            values = scaler.transform(data.all_nodes)
        else:
            values = Blocks.learn(schema.types, np.asarray(data.X, dtype=np.float64)).columns(data.all_nodes)
        rows = data.split(self.validation_fraction)
        W = features(schema.encoder, data.encode(schema.encoder))
        mean = _moving_mean(values, W, *rows, data.labels)
        if mean is not None:
            values = values - W @ mean
            values /= np.maximum(values[rows[0]].std(axis=0), 1e-9)
        tree, part_of_leaf, factors = self._choose(values, z, rows, data)
        part = part_of_leaf[tree.apply(z[: len(data.X)])]
        known = [[] if mean is None else _varying(data.Z.values[part == k]) for k in range(len(factors))]
        models = [_leaf_model(part == k, factors[k], data, moves=bool(own)) for k, own in enumerate(known)]
        names = [f"the leaf {rule!r}" for rule in _rules(tree, part_of_leaf, schema.encoder)]
        parts = fit_parts(models, replace(data, own=None), lambda _: part, known, data.labels, names)
        self.leaf_penalties_ = np.array([model.penalty_ for model in models])
        field = TreeField(Common(schema, scaler, scaler.scale), parts, tree, part_of_leaf)
        return with_typical_scale(field, data.Z)

    def leaf(self, Z: Any) -> NDArray[np.intp]:
        """Which leaf each row of Z falls into: positions in ``rules_``."""
        check_is_fitted(self)
        return self._tree_field.part_of(self.field_.rows(Z))

    @property
    def _tree_field(self) -> TreeField:
        return self._known().of_kind(TreeField)

    @property
    def tree_(self) -> Tree:
        return self._tree_field.tree

    @property
    def n_leaves_(self) -> int:
        return len(self._tree_field.parts)

    @property
    def rules_(self) -> list[str]:
        return _rules(self.tree_, self._tree_field.part_of_leaf, self.encoder_)

    def _choose(
        self, values: NDArray, z: NDArray, rows: tuple[NDArray, NDArray], data: TrainingSet
    ) -> tuple[Tree, NDArray[np.intp], list[float]]:
        """The tree, which of its leaves share a graph, and a penalty factor per graph."""
        train, seed = rows[0], data.streams["tree"]
        at_least = int(self.min_leaf_rows or max(20, values.shape[1]))
        grown = grow_covariance_tree(values[train], z[train], int(self.max_leaves), at_least, seed)
        known, new = ((values[own], z[own]) for own in rows)
        search = HeldOutSearch(grown, known, new, data.all_nodes[train])
        self.held_out_, n_leaves = search.best_size()
        tree = grown.first(n_leaves)
        parts = search.merged(tree.leaves)
        part_of_node = {node: which for which, nodes in enumerate(parts) for node in nodes}
        part_of_leaf = np.array([part_of_node[int(leaf)] for leaf in tree.leaves])
        return tree, part_of_leaf, [search.factor(nodes) for nodes in parts]

    def _findings(self) -> list[str]:
        return [f"Leaves, each with means, scales and a graph of its own: {'; '.join(self.rules_)}."]

    def _get_learned(self) -> State:
        return {"held_out": self.held_out_.to_dict("list")}, {"leaf_penalties": self.leaf_penalties_}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        self.held_out_ = pd.DataFrame(state["held_out"].columns())
        self.leaf_penalties_ = arrays.read("leaf_penalties", (self.n_leaves_,), low=0)


def _rules(tree: Tree, part_of_leaf: NDArray[np.intp], encoder: CovariateEncoder) -> list[str]:
    """Which covariates belong to each part."""
    found = []
    for part in range(int(part_of_leaf.max()) + 1):
        nodes = tree.tops(tree.leaves[part_of_leaf == part])
        found.append(_either(_joined([_rule(tree, node, encoder) for node in nodes])))
    return found


def _moving_mean(
    values: NDArray, W: NDArray, train: NDArray, held_out: NDArray, labels: NDArray | None
) -> NDArray[np.float64] | None:
    """Main effects of z on the nodes, (m, p); None where held-out rows do not gain clearly."""
    mean = linear_mean(values[train], W[train], _RIDGE)
    new = values[held_out]
    gain = (np.square(new) - np.square(new - W[held_out] @ mean)).mean(axis=1)
    units = held_out if labels is None or held_out.max() >= len(labels) else labels[held_out]
    return mean if is_clear(*mean_and_error(gain, np.unique(units, return_inverse=True)[1])) else None


def _varying(Z: pd.DataFrame) -> list[str]:
    """Covariates that have more than one value here, with which means may move."""
    return [str(name) for name in Z if Z[name].nunique() > 1]


def _leaf_model(
    rows: NDArray[np.bool_], factor: float, data: TrainingSet, *, moves: bool
) -> GraphicalLasso | NodewiseLasso:
    """Held-out rows choose the penalty of a large leaf well; a small one needs all its rows for that."""
    kind = GraphicalLasso if data.inputs.types is None else NodewiseLasso
    center = "covariates" if moves else "constant"
    penalty = penalty_of(factor, int(rows.sum()), data.X.shape[1])
    by_penalty = kind(penalty=penalty, center=center)
    if rows.sum() >= _MANY_ROWS or data.own is not None:
        return by_penalty
    by_folds = kind(center=center)
    n_units = rows.sum() if data.labels is None else len(np.unique(data.labels[rows]))
    return by_folds if n_units >= by_folds.n_folds else by_penalty


@dataclass(frozen=True)
class _Rule:
    """The way to a node of the tree: an interval of each numeric covariate, and words about levels."""

    bounds: dict[str, tuple[float, float]]
    levels: tuple[str, ...]

    def __str__(self) -> str:
        intervals = [_interval(name, *ends) for name, ends in self.bounds.items()]
        return " and ".join([part for part in [*intervals, *self.levels] if part]) or "all rows"

    def joined(self, other: _Rule) -> _Rule | None:
        """One rule for both, where they differ in one interval, which the other one continues."""
        names = {*self.bounds, *other.bounds}
        unlike = [name for name in names if self.bounds.get(name) != other.bounds.get(name)]
        if self.levels != other.levels or len(unlike) != 1 or names != {*self.bounds} & {*other.bounds}:
            return None
        (low, end), (start, high) = sorted([self.bounds[unlike[0]], other.bounds[unlike[0]]])
        return _Rule({**self.bounds, unlike[0]: (low, high)}, self.levels) if end == start else None


def _joined(rules: list[_Rule]) -> list[_Rule]:
    """As few rules as intervals that continue each other make."""
    for one, other in combinations(rules, 2):
        both = one.joined(other)
        if both is not None:
            return _joined([both, *(rule for rule in rules if rule not in (one, other))])
    return rules


def _rule(tree: Tree, node: int, encoder: CovariateEncoder) -> _Rule:
    """The way to one node in the user's units, one phrase per covariate."""
    levels = [(column.name, level) for column in encoder.categorical for level in column.levels]
    bounds: dict[str, tuple[float, float]] = {}
    is_level: dict[str, str] = {}
    is_not: dict[str, list[str]] = {}
    for split, goes_left in tree.path(node):
        which = int(tree.feature[split])
        if which < len(encoder.numeric):
            column = encoder.numeric[which]
            value = float(tree.threshold[split] * column.scale + column.mean)
            low, high = bounds.get(column.name, (-np.inf, np.inf))
            bounds[column.name] = (low, value) if goes_left else (value, high)
        else:
            name, level = levels[which - len(encoder.numeric)]
            if goes_left:
                is_not.setdefault(name, []).append(level)
            else:
                is_level[name] = level
    phrases = [f"{name} is {level!r}" for name, level in is_level.items()]
    known = {column.name: column.levels for column in encoder.categorical}
    phrases += [_without(n, out, known[n]) for n, out in is_not.items() if n not in is_level]
    return _Rule(bounds, tuple(phrases))


def _either(rules: list[_Rule]) -> str:
    """One rule or another; in brackets where it is not plain which words belong together.

    >>> _either([_Rule({"age": (-np.inf, 20.0)}, ()), _Rule({"age": (60.0, np.inf)}, ("sex is 'F'",))])
    "age <= 20 or (age > 60 and sex is 'F')"
    """
    texts = [str(rule) for rule in rules]
    if len(texts) == 1:
        return texts[0]
    return " or ".join(f"({text})" if " and " in text else text for text in texts)


def _without(name: str, out: list[str], levels: tuple[str, ...]) -> str:
    """All levels but some, by the shorter of the two lists; who is not 'female' of two is 'male'."""
    left = [level for level in levels if level not in out]
    if len(left) <= len(out):
        return f"{name} is {' or '.join(map(repr, left))}"
    return f"{name} is not {' or '.join(map(repr, out))}"


def _interval(name: str, low: float, high: float) -> str:
    if low == -np.inf:
        if high == np.inf:
            return ""
        return f"{name} <= {high:.4g}"
    return f"{name} > {low:.4g}" if high == np.inf else f"{low:.4g} < {name} <= {high:.4g}"
