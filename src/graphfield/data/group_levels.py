"""Levels of groups: subjects whose nodes are all a little higher or lower, at every visit.

Such levels are relations between subjects and hide those within them. They are random intercepts,
``x = mean(z) + level of the group + what the graph is about``; a level is estimated by the mean of the rows
of its group, drawn towards zero by as much as the noise in that mean asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.data.node_units import NodeUnits, choose_units, group_means
from graphfield.data.saved_values import Saved
from graphfield.exceptions import agreed, listing
from graphfield.numbers import is_clear, mean_and_error

# Levels are there where they are clear of chance over the groups, and make up so much of a node's variance.
_CONFIDENCE, _LEAST_SHARE = 0.975, 0.02
# Groups with two rows or more that are needed to tell.
_FEWEST_GROUPS = 5
# Of the groups with two rows or more, those in which a node varies: with fewer it has nothing but its levels.
_LEAST_VARYING = 0.5
# Values farther from the median, in robust standard deviations of these differences, count as if they were so
# far: a level is not made, or hidden, by single values.
_FARTHEST = 6.0
# Rows, beside one for each group, that are needed for each slope within groups.
_PER_SLOPE = 3
# Nodes that words about units name.
_MOST_NAMED = 12
# Parts of the groups that are left out in turn, to compare slopes within groups with those of all rows.
_PARTS = 5
# Mean square, within groups, of a feature in standard units that does not vary there.
_SAME = 1e-9


@dataclass(frozen=True)
class LevelCheck:
    """Whether groups have levels of their own.

    Attributes
    ----------
    prefers : bool
        Whether one half of a group's rows says where the other half lies, clearly over the groups, and levels
        make up 2 % of a node's variance at least. About nodes that vary within groups.
    share : float
        Of a node's variance that the levels make up, averaged over these nodes (intraclass correlation).
    gain : float
        Mean product of the means of both halves of a group's rows, as a share of a node's variance. Not a
        number with fewer than five groups of two rows.
    standard_error : float
        Of the gain, over groups.
    n_groups : int
    fixed_nodes : tuple of int
        Positions of nodes that do not vary within most groups. Their levels, which are all they have, are
        never subtracted; nor are their edges tested, as those to nodes without levels are about neither what
        is within groups nor what is between them.
    logs, scores : tuple of int
        Positions of nodes whose levels are those of logarithms, or of normal scores, in which noise is even.
        Of a logarithm, what is left is how many times its level a value is.
    """

    prefers: bool
    share: float
    gain: float
    standard_error: float
    n_groups: int
    fixed_nodes: tuple[int, ...] = ()
    logs: tuple[int, ...] = ()
    scores: tuple[int, ...] = ()

    def untested(self, names: Sequence[str]) -> list[str]:
        """Nodes whose edges cannot be tested, where levels were subtracted from the others."""
        return [names[j] for j in self.fixed_nodes] if self.prefers else []

    def words_of_fixed(self, names: Sequence[str]) -> str:
        """A sentence about nodes whose levels stay, with a space before it; nothing where there are none."""
        if not self.fixed_nodes:
            return ""
        nodes = listing(names[j] for j in self.fixed_nodes)
        return (
            f" Levels of {nodes} stay, as in most groups all rows have one value: edges of such nodes are "
            "not tested and mean little. Leave them out, or make them covariates."
        )

    def words_of_units(self, names: Sequence[str]) -> str:
        """Which levels are in other units than the nodes, with a space before it; nothing if none are."""
        parts = [
            f"{listing((names[j] for j in own), most=_MOST_NAMED)} {agreed(len(own), 'is', 'are')} {what}"
            for own, what in (
                (self.logs, "taken as ratios to the level of their group (by logarithms)"),
                (
                    self.scores,
                    "without the levels of groups in normal scores, turned back into values",
                ),
            )
            if own
        ]
        return f" {', '.join(parts)}: units in which noise is even." if parts else ""

    def words_of_graph(self, names: Sequence[str], *, numbers_alone: bool) -> str:
        """Which graph is tested, where levels were subtracted; other kinds of nodes keep theirs."""
        if not self.prefers:
            return ""
        if not numbers_alone:
            return (
                "Levels that groups have of their own were subtracted from nodes that are numbers; the "
                "others keep theirs, so edges between these are about what differs between groups as well."
                f"{self.words_of_units(names)}{self.words_of_fixed(names)}"
            )
        return (
            "The graph is the one within groups: levels that these have of their own were "
            f"subtracted.{self.words_of_units(names)}{self.words_of_fixed(names)}"
        )

    @classmethod
    def from_saved(cls, values: Saved) -> LevelCheck:
        """From the fields as JSON has them, where null stands for what is not a number."""
        share, groups = values["share"].number(0, 1), values["n_groups"].whole(1)
        gain, error = (values[name].number_or_nan() for name in ("gain", "standard_error"))
        positions = (
            tuple(position.whole() for position in values[name].listed())
            for name in ("fixed_nodes", "logs", "scores")
        )
        return cls(values["prefers"].flag(), share, gain, error, groups, *positions)


def levels_in_units(
    X: NDArray[np.floating], W: NDArray[np.floating], labels: NDArray[np.intp]
) -> tuple[LevelCheck, NDArray[np.float64], NodeUnits]:
    """:func:`find_levels` of nodes in units in which noise is even, and these units."""
    units = choose_units(X, W, labels)
    check, levels = find_levels(units.transform(X), W, labels)
    logs, scores = (
        tuple(np.flatnonzero(own & levels.any(axis=0)).tolist()) for own in (units.logs, units.scores)
    )
    return replace(check, logs=logs, scores=scores), levels, units


def find_levels(
    X: NDArray[np.floating], W: NDArray[np.floating], labels: NDArray[np.intp]
) -> tuple[LevelCheck, NDArray[np.float64]]:
    """Whether groups have levels, and these levels, (groups, p), zero for nodes that they are all of.

    A mean that is linear in the features W (n, m) of the covariates, the first of them one, is taken out
    first where it predicts the means of groups that did not help to find it; else it would be made of
    levels. Where slopes as rows of one group show them predict other groups clearly better, these are taken:
    who is ill drops out early, so the slope over all rows is one of levels, too. The first half of the rows
    of a group (``labels`` are 0, 1, 2 and so on) is compared with the second.

    >>> rng = np.random.default_rng(0)
    >>> labels, W = np.repeat(np.arange(50), 6), np.ones((300, 1))
    >>> X, levels = rng.normal(size=(300, 4)), rng.normal(size=(50, 4))
    >>> find_levels(X, W, labels)[0].prefers, find_levels(X + levels[labels], W, labels)[0].prefers
    (False, True)
    """
    sizes = np.bincount(labels)
    place = 2 * labels + _halves(labels, sizes)
    counts = np.bincount(place, minlength=2 * len(sizes)).reshape(-1, 2)
    nodes, given = (group_means(table, labels) for table in (X, W))
    used = W if _predicts_groups(nodes, given) else W[:, :1]
    slopes = _slopes_within(X, W - given[labels], used, labels)
    if slopes is not None:
        fixed = ~slopes.any(axis=1)
        used = W[:, fixed] if _predicts_groups(nodes - given @ slopes, given[:, fixed]) else W[:, :1]
    of_mean = np.linalg.pinv(used)  # node by node, so that no copy of X is made
    levels, products = (np.zeros((len(sizes), X.shape[1])) for _ in range(2))
    shares = np.zeros(X.shape[1])
    fixed = np.zeros(X.shape[1], dtype=bool)
    for j in range(X.shape[1]):
        trend = 0.0 if slopes is None else W @ slopes[:, j]

        def left_of(values: NDArray[np.float64], trend: NDArray[np.float64] | float = trend) -> NDArray:
            values = values - trend
            return values - used @ (of_mean @ values)

        values = X[:, j].astype(np.float64)
        # Whether there are levels is judged by values that know nothing of their groups.
        tamed = _without_far_values(values, float(np.median(values)))
        left = left_of(tamed)
        variance = float(left.var())
        if variance == 0:
            continue
        sums = np.bincount(place, weights=left, minlength=counts.size).reshape(-1, 2)
        products[:, j] = (sums / np.maximum(counts, 1)).prod(axis=1) / variance
        levels[:, j], shares[j] = _shrunken(left, labels, sizes)
        near = _without_far_values(tamed, _group_medians(tamed, labels, sizes)[labels])
        if near is not tamed:
            levels[:, j] = _shrunken(left_of(near), labels, sizes)[0]
        fixed[j] = _share_varying(X[:, j], labels, sizes) < _LEAST_VARYING
    levels[:, fixed] = 0.0
    check = _judged(products[sizes > 1][:, ~fixed], shares[~fixed], len(sizes))
    return replace(check, fixed_nodes=tuple(np.flatnonzero(fixed).tolist())), levels


def _without_far_values(
    values: NDArray[np.float64], middles: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Values far from their middle, drawn to where they are at the edge of being far; or just these."""
    apart = np.abs(values - middles)
    if not apart.any():
        return values
    most = _FARTHEST * 1.4826 * float(np.median(apart[apart > 0]))
    return middles + np.clip(values - middles, -most, most) if (apart > most).any() else values


def _share_varying(values: NDArray[np.floating], labels: NDArray[np.intp], sizes: NDArray[np.intp]) -> float:
    """Of the groups with two rows or more, those in which not all values are the same."""
    ordered, starts = values[np.argsort(labels, kind="stable")], np.cumsum(sizes) - sizes
    least, most = (of.reduceat(ordered, starts) for of in (np.minimum, np.maximum))
    several = sizes > 1
    return float((least < most)[several].mean()) if several.any() else 1.0


def _group_medians(
    values: NDArray[np.float64], labels: NDArray[np.intp], sizes: NDArray[np.intp]
) -> NDArray[np.float64]:
    ordered, starts = values[np.lexsort((values, labels))], np.cumsum(sizes) - sizes
    return (ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2]) / 2


def _predicts_groups(nodes: NDArray[np.float64], given: NDArray[np.float64]) -> bool:
    """Whether features predict the mean of a group from those of the others, node by node."""
    spread = nodes.std(axis=0)
    nodes = (nodes - nodes.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    errors = [_left_out_errors(nodes, features) for features in (given[:, :1], given)]
    return _is_clear(errors[0] - errors[1])


def _slopes_within(
    X: NDArray[np.floating],
    inner: NDArray[np.float64],
    used: NDArray[np.floating],
    labels: NDArray[np.intp],
) -> NDArray[np.float64] | None:
    """Slopes (m, p) by features less the means of their groups (``inner``); zero for those that do not vary.

    None unless they predict what varies within groups that are left out clearly better than the slopes that
    all rows have on ``used``, the first columns of the same features.
    """
    varies = np.square(inner).mean(axis=0) > _SAME
    n_within = len(X) - int(labels.max()) - 1
    if not varies.any() or n_within < _PER_SLOPE * int(varies.sum()):  # so many would fit anything
        return None
    inner, part = np.where(varies, inner, 0.0), labels % _PARTS
    slopes, pooled = (_slopes_by_part(X, features, part) for features in (inner, used))
    gains = np.zeros(int(labels.max()) + 1)
    for j in range(X.shape[1]):
        own = X[:, j] - group_means(X[:, [j]], labels)[labels, 0]
        variance = float(np.square(own).mean())
        if variance > 0:
            errors = (
                np.square(own - np.einsum("ia,ia->i", inner[:, : by.shape[1]], by[part, :, j]))
                for by in (pooled, slopes)
            )
            gains += np.bincount(labels, weights=(next(errors) - next(errors)) / variance)
    if not _is_clear(gains[np.bincount(labels) > 1]):
        return None
    found = np.zeros((inner.shape[1], X.shape[1]))
    found[varies] = np.linalg.pinv(inner[:, varies]) @ X
    return found


def _slopes_by_part(
    X: NDArray[np.floating], features: NDArray[np.floating], part: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Least squares without each part of the rows in turn, (parts, m, p)."""
    squares, products = (
        np.stack([features[part == k].T @ table[part == k] for k in range(_PARTS)]) for table in (features, X)
    )
    return np.linalg.pinv(squares.sum(axis=0) - squares, hermitian=True) @ (products.sum(axis=0) - products)


def _left_out_errors(nodes: NDArray[np.float64], features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared error of each group's means when that group is left out of the regression."""
    hat = features @ np.linalg.pinv(features)
    own = np.clip(1 - np.diag(hat), 1e-3, None)
    return np.square((nodes - hat @ nodes) / own[:, None]).mean(axis=1)


def _is_clear(gains: NDArray[np.float64], least: float = 0.0) -> bool:
    """Whether the mean of the gains of groups is above ``least`` and clear of chance."""
    if len(gains) < _FEWEST_GROUPS:
        return False
    n_errors = float(student.ppf(_CONFIDENCE, len(gains) - 1))  # groups are few
    return bool(is_clear(*mean_and_error(gains), n_errors, least))


def _halves(labels: NDArray[np.intp], sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """0 for the first half of the rows of a group, 1 for the second.

    Not every other row: rows that follow each other may be alike without any level.
    """
    order = np.argsort(labels, kind="stable")
    place = np.empty(len(labels), dtype=np.intp)
    place[order] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (2 * place >= sizes[labels]).astype(np.intp)


def _shrunken(
    left: NDArray[np.float64], labels: NDArray[np.intp], sizes: NDArray[np.intp]
) -> tuple[NDArray[np.float64], float]:
    """Best linear predictions of the levels of one node, and their share of its variance."""
    n, groups = len(left), len(sizes)
    sums = np.bincount(labels, weights=left)
    between = float((sums**2 / sizes).sum())
    within = max(0.0, float(np.square(left).sum()) - between) / max(1, n - groups)
    typical = (n - float(np.square(sizes).sum()) / n) / max(1, groups - 1)
    spread = max(0.0, (between / max(1, groups - 1) - within) / typical) if typical > 0 else 0.0
    if spread == 0:
        return np.zeros(groups), 0.0
    return sums / sizes * spread / (spread + within / sizes), spread / (spread + within)


def _judged(products: NDArray[np.float64], shares: NDArray[np.float64], n_groups: int) -> LevelCheck:
    if not len(shares):
        return LevelCheck(False, 0.0, float("nan"), float("nan"), n_groups)
    gains = products.mean(axis=1)
    gain, error = float("nan"), float("nan")
    if len(gains) >= _FEWEST_GROUPS:
        gain, error = (float(own) for own in mean_and_error(gains))
    share = float(shares.mean())
    return LevelCheck(_is_clear(gains, _LEAST_SHARE) and share >= _LEAST_SHARE, share, gain, error, n_groups)
