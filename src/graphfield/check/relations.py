"""Nodes that are copies of others, functions of one other, or made of several, as totals and ratios are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from graphfield.check.codes import few_different
from graphfield.check.findings import Finding, drop_argument
from graphfield.check.size import SPARE_ROWS
from graphfield.exceptions import agreed, listing
from graphfield.messages import Message

# Correlations this close to one are copies; what is left is rounding.
COPY_TOLERANCE = 1e-9
# Nodes with a larger rank correlation are nearly functions of each other, straight lines or not.
MONOTONE = 0.995
# A node of whose variance the others explain this share nearly follows from them (cholesterol from its
# kinds), and one of which they explain this share is made of them but for rounding.
NEARLY, EXACTLY = 0.98, 0.9999
# Share of the rows in which amounts, whose products and ratios are looked for, are above zero.
_POSITIVE = 0.9
# What may be missing of the explained share where the nodes that explain are named: what is unexplained may
# grow by this factor, and by rounding.
_MORE_LEFT, _ROUNDING = 1.5, 1e-6
_RIDGE = 1e-10  # keeps the correlations of exact totals invertible
# Relations that are told in full, nodes named in one that holds nearly, and relations that are looked for.
_MOST_NAMED, _PARTS, _MOST = 5, 4, 40
# Nodes that one is said to follow from, at most: where all are mixtures of the same, any may do.
_MOST_PARTS = 40


@dataclass(frozen=True)
class Relation:
    """A node (by its position) that follows from ``parts``, and the share of its variance they explain."""

    node: int
    parts: list[int]
    explained: float


def relation_findings(names: list[str], values: NDArray[np.float64]) -> Iterator[Finding]:
    """Copies, then curves, totals, products and ratios of what is left when one of each of these is kept.

    So all advice can be followed at once.
    """
    same = _copies(values)
    yield from _copy_findings(names, values, same)
    kept = np.unique(same, return_index=True)[1]
    amounts = kept  # a ratio may be one of two that are nearly functions of each other
    if len(kept) > 1 and len(values) > SPARE_ROWS:
        curves = connected_components(np.abs(rank_correlation(values[:, kept])) > MONOTONE)[1]
        yield from _curve_findings([names[i] for i in kept], curves)
        kept = kept[np.unique(curves, return_index=True)[1]]
    if len(kept) > 1 and len(values) > len(kept) + SPARE_ROWS:
        relations = find_totals(_correlation(values[:, kept]), len(values))
        yield from _total_findings([names[i] for i in kept], relations)
        amounts = np.setdiff1d(amounts, kept[[one.node for one in relations]])
        yield from _product_findings([names[i] for i in amounts], values[:, amounts])


def new_relations(
    where: str, names: list[str], values: NDArray[np.float64], left: NDArray[np.floating]
) -> Iterator[Finding]:
    """The same of what is ``left`` of values, ``where`` this is so, of nodes that these say nothing of."""
    varies = (np.ptp(left, axis=0) > 0) & (np.ptp(values, axis=0) > 0) if len(values) > 2 else np.zeros(1)
    if varies.sum() < 2:
        return
    own = [name for name, one in zip(names, varies, strict=True) if one]
    found = list(relation_findings(own, left[:, varies].astype(np.float64)))
    known = [set(one.columns) for one in relation_findings(own, values[:, varies])] if found else []
    for one in found:
        if all(len(nodes & set(one.columns)) < 2 for nodes in known):
            yield replace(one, message=f"{where}: {one.message[:1].lower()}{one.message[1:]}")


def _correlation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = values / np.abs(values).max(axis=0)  # powers of 1e100 would be infinite
    centred -= centred.mean(axis=0)
    scaled = centred / np.sqrt(np.square(centred).sum(axis=0))
    return scaled.T @ scaled


def rank_correlation(values: NDArray[np.float64], others: NDArray[np.float64] | None = None) -> NDArray:
    """Spearman's correlation of every column with every column, or with those of ``others``; 0 if constant.

    >>> x = np.arange(1.0, 9.0)
    >>> rank_correlation(np.column_stack([x, np.exp(x), -x])).round(3).tolist()[0]
    [1.0, 1.0, -1.0]
    """
    first = _standard_ranks(values)
    second = first if others is None else _standard_ranks(others)
    return first.T @ second / len(values)


def _standard_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = ranks.std(axis=0)
    return ranks / np.where(spread > 0, spread, 1.0)


def _copies(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """A number for each node, the same for copies."""
    found: NDArray[np.intp] = connected_components(np.abs(_correlation(values)) > 1 - COPY_TOLERANCE)[1]
    return found


def _copy_findings(
    names: list[str], values: NDArray[np.float64], same: NDArray[np.intp]
) -> Iterator[Finding]:
    for which in np.flatnonzero(np.bincount(same) > 1):
        members = np.flatnonzero(same == which)
        own = tuple(names[i] for i in members)
        equal = (values[:, members] == values[:, members[:1]]).all()
        yield Finding(
            "duplicate-nodes",
            own,
            f"Nodes {listing(own)} are the same{'' if equal else ' up to scale'}.",
            Message(
                "Keep one of them ({drop}): between copies no graph can tell who is connected to what.",
                drop=drop_argument(own[1:]),
            ),
        )


def _curve_findings(names: list[str], curves: NDArray[np.intp]) -> Iterator[Finding]:
    for which in np.flatnonzero(np.bincount(curves) > 1):
        members = tuple(names[i] for i in np.flatnonzero(curves == which))
        yield Finding(
            "monotone-nodes",
            members,
            f"Nodes {listing(members)} are nearly functions of each other (rank correlation beyond "
            f"{MONOTONE}), as an area is of its radius.",
            Message(
                "Keep one of them ({drop}); else their edges show the arithmetic, not the data.",
                drop=drop_argument(members[1:]),
            ),
        )


def find_totals(correlation: NDArray[np.float64], n: int, least: float = NEARLY) -> list[Relation]:
    """Nodes of which others explain the ``least`` share, and which; without those found first, none do.

    In units of their own spread, the total of a sum has the largest coefficient and is explained best.
    """
    left = np.arange(len(correlation))
    found: list[Relation] = []
    while len(left) > 1 and len(found) < _MOST:
        unexplained = _unexplained(correlation[np.ix_(left, left)])
        best = int(np.argmin(unexplained))
        share = float(unexplained[best]) * (n - 1) / (n - len(left))
        if share > 1 - least:
            break
        node, left = int(left[best]), np.delete(left, best)
        wanted = 1 - _MORE_LEFT * float(unexplained[best]) - _ROUNDING
        found.append(Relation(node, _parts(correlation, node, left, wanted), 1 - share))
    return found


def _unexplained(correlation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of each node's variance that the others do not explain."""
    return 1 / np.diag(np.linalg.inv(correlation + _RIDGE * np.eye(len(correlation))))


def _parts(correlation: NDArray[np.float64], node: int, others: NDArray[np.intp], wanted: float) -> list[int]:
    """Few of the ``others`` that explain the wanted share of a node: added one by one, then thinned out."""
    chosen: list[int] = []
    while len(chosen) < min(len(others), _MOST_PARTS):
        coefficients, explained = _explained(correlation, node, chosen)
        if explained >= wanted:
            break
        left = np.abs(correlation[node] - correlation[:, chosen] @ coefficients)
        candidates = np.setdiff1d(others, chosen)
        chosen.append(int(candidates[np.argmax(left[candidates])]))
    for one in list(chosen):
        without = [other for other in chosen if other != one]
        if _explained(correlation, node, without)[1] >= wanted:
            chosen = without
    return chosen


def _explained(
    correlation: NDArray[np.float64], node: int, by: list[int]
) -> tuple[NDArray[np.float64], float]:
    """Coefficients of some nodes for another, and the share of its variance that they explain."""
    own = correlation[np.ix_(by, by)] + _RIDGE * np.eye(len(by))
    coefficients = np.asarray(np.linalg.solve(own, correlation[by, node]), dtype=np.float64)
    return coefficients, float(correlation[by, node] @ coefficients)


def _total_findings(names: list[str], relations: list[Relation]) -> Iterator[Finding]:
    """One for what is made of other nodes, and one for what nearly is."""
    for exact in (True, False):
        own = [one for one in relations if (one.explained >= EXACTLY) is exact]
        if own:
            yield (_totals if exact else _near_totals)(names, own)


def _product_findings(names: list[str], values: NDArray[np.float64]) -> Iterator[Finding]:
    """Amounts whose logarithms follow from those of others."""
    amounts = [
        j
        for j, own in enumerate(values.T)
        if own.min() >= 0 and (own > 0).mean() >= _POSITIVE and not few_different(own)
    ]
    own = values[:, amounts]
    own = own[(own > 0).all(axis=1)]
    if len(amounts) < 3 or len(own) <= max(len(amounts) + SPARE_ROWS, len(values) / 2):
        return
    names, logarithms = [names[j] for j in amounts], np.log(own)
    if (np.ptp(logarithms, axis=0) == 0).any():
        return
    found = find_totals(_correlation(logarithms), len(own), EXACTLY)
    relations = [one for one in found if len(one.parts) > 1]  # a power of one other is a curve
    if relations:
        nodes = [names[one.node] for one in relations]
        one, many = (
            "a node follows from others, as a ratio or product does",
            "nodes follow from others, as ratios or products do",
        )
        yield Finding(
            "product-nodes",
            _columns(names, relations),
            f"{_how_many(relations, one, many)} (R^2 1.000 of logarithms): {_made_of(names, relations)}.",
            Message(
                "Leave out what is computed from the others, or any one of them ({drop}); else their edges "
                "show the arithmetic, not the data.",
                drop=drop_argument(nodes),
            ),
        )


def _made_of(names: list[str], relations: list[Relation]) -> str:
    parts = [
        f"{names[one.node]!r} from {listing(names[i] for i in sorted(one.parts))}"
        for one in relations[:_MOST_NAMED]
    ]
    return f"{'; '.join(parts)}{_more([names[one.node] for one in relations])}"


def _totals(names: list[str], relations: list[Relation]) -> Finding:
    totals = [names[one.node] for one in relations]
    one, many = "a node follows from others, as a total does", "nodes follow from others, as totals do"
    return Finding(
        "collinear-nodes",
        _columns(names, relations),
        f"{_how_many(relations, one, many)} from {agreed(len(totals), 'its', 'their')} parts (R^2 1.000): "
        f"{_made_of(names, relations)}.",
        Message(
            "Leave {them} out ({drop}); else {their} edges show the arithmetic, not the data.",
            them=agreed(len(totals), "it", "them"),
            their=agreed(len(totals), "its", "their"),
            drop=drop_argument(totals),
        ),
    )


def _near_totals(names: list[str], relations: list[Relation]) -> Finding:
    nodes = [names[one.node] for one in relations]
    parts = [
        f"{names[one.node]!r} (R^2 {one.explained:.3f}), most of all from "
        f"{listing((names[i] for i in one.parts), most=_PARTS)}"
        for one in relations[:_MOST_NAMED]
    ]
    return Finding(
        "collinear-nodes",
        _columns(names, relations),
        f"{_how_many(relations, 'a node nearly follows', 'nodes nearly follow')} from others: "
        f"{'; '.join(parts)}{_more(nodes)}.",
        Message(
            "What is computed from others, as a total is, is to be left out ({drop}): its edges show the "
            "arithmetic. Where all are measured, edges among them rest on the little in which they differ.",
            drop=drop_argument(nodes),
        ),
    )


def _how_many(relations: list[Relation], one: str, many: str) -> str:
    number = len(relations)
    said = agreed(number, one, f"{number:,} {many}")
    return f"at least {said}".capitalize() if number == _MOST else said[0].upper() + said[1:]


def _more(nodes: list[str]) -> str:
    more = nodes[_MOST_NAMED:]
    return f"; and {listing(more, most=4 * _MOST_NAMED)}" if more else ""


def _columns(names: list[str], relations: list[Relation]) -> tuple[str, ...]:
    found = [i for one in relations[:_MOST_NAMED] for i in (one.node, *one.parts)]
    found += [one.node for one in relations[_MOST_NAMED:]]
    return tuple(names[i] for i in dict.fromkeys(found))


def covariate_relation_findings(names: list[str], values: NDArray[np.float64]) -> Iterator[Finding]:
    """Covariates that follow from several others, such as the yes-or-no columns of one category."""
    varies = np.ptp(values, axis=0) > 0
    own, kept = values[:, varies], [name for name, one in zip(names, varies, strict=True) if one]
    if len(kept) < 3 or len(values) <= len(kept) + SPARE_ROWS:
        return
    for one in find_totals(_correlation(own), len(values)):
        if one.explained < EXACTLY or len(one.parts) < 2:  # pairs are another finding
            continue
        parts = [kept[i] for i in sorted(one.parts)]
        yield Finding(
            "dependent-covariates",
            (kept[one.node], *parts),
            f"Covariate {kept[one.node]!r} follows from {listing(parts)}, as one of the yes-or-no columns of "
            "a category does from the others.",
            "Leave it out, or make one column of them that names the category: what moves with one of them, "
            "given the others, cannot be told.",
        )
