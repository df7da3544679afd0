"""What may be wrong with node columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from graphfield.check.codes import code_findings, few_different
from graphfield.check.findings import Finding, drop_argument
from graphfield.check.values import far_out_findings, missing_code_findings, missing_codes
from graphfield.data.frames import Frame
from graphfield.data.identifiers import find_identifiers
from graphfield.data.ranks import COPY_TOLERANCE, rank_correlation
from graphfield.exceptions import agreed, count, listing, named
from graphfield.messages import Argument, Message

# A node whose variance the others explain by more than this share follows from them (total = a + b).
COLLINEAR_R2 = 0.999
# Nodes with a larger rank correlation are nearly functions of each other, straight lines or not.
MONOTONE = 0.995
# Rows beyond the number of nodes without which that share is no information.
_SPARE_ROWS = 30
# Partial correlations (among nodes that follow from others) that put two of them in one relation.
_RELATED = 0.2
# Beyond this skewness or excess kurtosis a node is far from Gaussian (an exponential has 2 and 6).
SKEWED, HEAVY_TAILS = 2.0, 10.0
# A node with one value in more than this share of the rows has little left that could vary.
MOSTLY_ONE_VALUE = 0.8
# Names of columns that are numbers but hardly ever measurements.
_NO_NODE = re.compile(
    r"time|date|year|month|day|hour|week|weekday|id|index|row|.*[_ .](id|index)", re.IGNORECASE
)
_NAMED = 5  # columns with their numbers in one message


def node_findings(
    X: Frame, nodes: pd.DataFrame, empty: Sequence[str], rows: NDArray[np.intp]
) -> Iterator[Finding]:
    """Findings about the nodes; ``nodes`` holds those that are numbers, filled where missing."""
    text = [n for n in X.names if n not in nodes.columns and n not in empty]
    if text:
        yield Finding(
            "text-node",
            tuple(text),
            f"{named('Node', text)} {agreed(len(text), 'holds', 'hold')} text or dates, and nodes must hold "
            "numbers.",
            Message(
                "Convert to numbers, use as covariates, or leave out ({drop}).", drop=drop_argument(text)
            ),
        )
    ids = list(_identifiers(X, nodes))
    yield from ids
    values = nodes.to_numpy()[rows]
    varies = np.array([nodes[name].min() < nodes[name].max() for name in nodes.columns], dtype=bool)
    constant = [name for name, own in zip(nodes.columns, varies, strict=True) if not own]
    if constant:
        number = len(constant)
        yield Finding(
            "constant-node",
            tuple(constant),
            f"{named('Node', constant)} {agreed(number, 'has', 'have')} the same value in every row, so "
            f"{agreed(number, 'it', 'they')} can have no edge; fit refuses {agreed(number, 'it', 'them')}.",
            Message(
                "Leave {them} out ({drop}).",
                them=agreed(number, "it", "them"),
                drop=drop_argument(constant),
            ),
        )
    names = [name for name, own in zip(nodes.columns, varies, strict=True) if own]
    if len(names) > 1 and len(values) > 2:
        kept = values[:, varies]
        still = np.ptp(kept, axis=0) > 0  # a value that only rows outside the sample have
        yield from _copies([n for n, own in zip(names, still, strict=True) if own], kept[:, still])
    told = {name for finding in ids for name in finding.columns}
    yield from _shape_findings(nodes[names], told)


def _identifiers(X: Frame, nodes: pd.DataFrame) -> Iterator[Finding]:
    """Row numbers and times by their order or their name, and numbers that never come up twice."""
    names = list(nodes.columns)
    rising, distinct = find_identifiers(X.values, names)
    ids = [name for name in names if name in rising or _NO_NODE.fullmatch(name)]
    if ids:
        yield Finding(
            "identifier-node",
            tuple(ids),
            f"{named('Node', ids)} {agreed(len(ids), 'looks', 'look')} like a row number, an identifier or a "
            "time.",
            Message(
                "Leave {them} out ({drop}), or make it the group ({group}) or the time ({time}).",
                them=agreed(len(ids), "it", "them"),
                drop=drop_argument(ids),
                group=Argument("group"),
                time=Argument("time"),
            ),
        )
    codes = [name for name in distinct if name not in ids]
    if codes:
        yield Finding(
            "identifier-node",
            tuple(codes),
            f"{named('Node', codes)} {agreed(len(codes), 'has', 'have')} a different whole number in every "
            "row, as identifiers do.",
            Message(
                "Leave {them} out ({drop}), unless {they_measure} something.",
                them=agreed(len(codes), "it", "them"),
                drop=drop_argument(codes),
                they_measure=agreed(len(codes), "it measures", "they measure"),
            ),
        )


def _copies(names: list[str], values: NDArray[np.float64]) -> Iterator[Finding]:
    """Duplicated nodes, then nodes that follow from several others, then functions of one other."""
    centred = values - values.mean(axis=0)
    scaled = centred / np.sqrt(np.square(centred).sum(axis=0))
    correlation = scaled.T @ scaled
    same = connected_components(np.abs(correlation) > 1 - COPY_TOLERANCE)[1]
    keep = np.unique(same, return_index=True)[1]
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
    n, p = len(values), len(keep)
    kept = [names[i] for i in keep]
    sums: list[Finding] = []
    if p > 2 and n > p + _SPARE_ROWS:
        sums = list(_collinear(kept, correlation[np.ix_(keep, keep)], n))
    curves: list[Finding] = []
    if p > 1 and n > _SPARE_ROWS:
        curves = list(_monotone(kept, values[:, keep], [set(finding.columns) for finding in sums]))
    # Where all of them are curves of each other and of more, one is to be kept, and that is said once.
    yield from (one for one in sums if not any(set(one.columns) < set(curve.columns) for curve in curves))
    yield from curves


def _collinear(names: list[str], correlation: NDArray[np.float64], n: int) -> Iterator[Finding]:
    precision, unexplained = _unexplained(correlation, n)
    flagged = np.flatnonzero(unexplained < 1 - COLLINEAR_R2)
    if len(flagged) < 2:
        return
    own = precision[np.ix_(flagged, flagged)]
    partial = np.abs(own) / np.sqrt(np.outer(np.diag(own), np.diag(own)))
    part = connected_components(partial > _RELATED)[1]
    for which in range(part.max() + 1):
        related = flagged[part == which]
        members = tuple(names[i] for i in related)
        if len(members) > 1:
            sums = [names[i] for i in _totals(correlation, related, n)]
            yield Finding(
                "collinear-nodes",
                members,
                f"Nodes {listing(members)} follow from each other (R^2 above {COLLINEAR_R2}), as a total "
                f"does from its parts: {listing(sums)} {agreed(len(sums), 'follows', 'follow')} from the "
                "others.",
                Message(
                    "Leave {them} out ({drop}); else their edges show the arithmetic, not the data.",
                    them=agreed(len(sums), "it", "them"),
                    drop=drop_argument(sums),
                ),
            )


def _unexplained(correlation: NDArray[np.float64], n: int) -> tuple[NDArray, NDArray[np.float64]]:
    """The precision matrix, and the share of each node's variance that the others do not explain."""
    p = len(correlation)
    precision = np.linalg.inv(correlation + 1e-10 * np.eye(p))
    return precision, (n - 1) / (n - p) / np.diag(precision)


def _totals(correlation: NDArray[np.float64], related: NDArray[np.intp], n: int) -> list[int]:
    """Those of the ``related`` nodes without which the others do not follow from each other any more.

    In units of their own spread, the total of a sum has the largest coefficient and is explained best.
    """
    left = np.arange(len(correlation))
    found: list[int] = []
    for _ in related[1:]:
        unexplained = _unexplained(correlation[np.ix_(left, left)], n)[1]
        unexplained[~np.isin(left, related)] = 1.0
        best = int(np.argmin(unexplained))
        if unexplained[best] >= 1 - COLLINEAR_R2:
            break
        found.append(int(left[best]))
        left = np.delete(left, best)
    return sorted(found)


def _monotone(names: list[str], values: NDArray[np.float64], told: list[set[str]]) -> Iterator[Finding]:
    """Nodes of which one is a curve of the other; relations that were ``told`` of are left out."""
    part = connected_components(np.abs(rank_correlation(values)) > MONOTONE)[1]
    for which in np.flatnonzero(np.bincount(part) > 1):
        members = tuple(names[i] for i in np.flatnonzero(part == which))
        if any(set(members) <= relation for relation in told):
            continue
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


def _shape_findings(nodes: pd.DataFrame, told: set[str]) -> Iterator[Finding]:
    """Codes for missing values, few values, one value, skewed and heavy-tailed nodes, values far out.

    Those ``told`` of as identifiers or times need not be called codes as well.
    """
    values = nodes.to_numpy()
    if values.size == 0:
        return
    names = np.array(nodes.columns, dtype=object)
    codes = [missing_codes(column) for column in values.T]
    known = [column[~np.isin(column, list(own))] for column, own in zip(values.T, codes, strict=True)]
    yield from missing_code_findings(codes, names, "node")
    few = np.array([few_different(column) for column in known])
    asked = few & ~np.isin(names, list(told))
    yield from code_findings(
        [known[j] for j in np.flatnonzero(asked)], names[asked].tolist(), int((~few).sum())
    )
    modes = np.array([_largest_share(values[:, j]) for j in range(values.shape[1])])
    stuck = (modes > MOSTLY_ONE_VALUE) & ~few
    if stuck.any():
        number, worst = int(stuck.sum()), names[stuck][np.argmax(modes[stuck])]
        yield Finding(
            "mostly-one-value",
            tuple(names[stuck]),
            f"{named('Node', names[stuck])} {agreed(number, 'has', 'have')} one and the same value in most "
            f"rows ({modes[stuck].max():.0%} of them in {worst!r}).",
            Message(
                "{their} edges rest on the few other rows; leave {them} out ({drop}), or look at those rows "
                "alone.",
                their=agreed(number, "Its", "Their"),
                them=agreed(number, "it", "them"),
                drop=drop_argument(names[stuck]),
            ),
        )
    yield from _tails(names[~few & ~stuck], values[:, ~few & ~stuck])
    plain = ~stuck & np.array([not own for own in codes])
    yield from far_out_findings(values[:, plain], names[plain], "node")


def _tails(names: NDArray, values: NDArray[np.float64]) -> Iterator[Finding]:
    if values.shape[1] == 0:
        return
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    centred /= np.where(spread > 0, spread, 1.0)
    squares = np.square(centred)
    skewness, kurtosis = (squares * centred).mean(axis=0), np.square(squares).mean(axis=0) - 3
    skewed = np.abs(skewness) > SKEWED
    scores = Message(
        "neural models and comparisons of models try normal scores{option}",
        option=Message(" (marginals='auto')", code="by-default"),
    )
    if skewed.any():
        yield Finding(
            "skewed-nodes",
            tuple(names[skewed]),
            Message(
                "{how_many} skewed ({largest}): {scores}; for others a logarithm may help.",
                how_many=_how_many(skewed),
                largest=_largest(names, skewness, skewed, "skewness"),
                scores=scores,
            ),
            "",
        )
    heavy = (kurtosis > HEAVY_TAILS) & ~skewed
    if heavy.any():
        yield Finding(
            "heavy-tails",
            tuple(names[heavy]),
            Message(
                "{how_many} heavy-tailed ({largest}): {scores}.",
                how_many=_how_many(heavy),
                largest=_largest(names, kurtosis, heavy, "excess kurtosis"),
                scores=scores,
            ),
            "",
        )


def _how_many(which: NDArray[np.bool_]) -> str:
    number = int(which.sum())
    return f"{count(number, 'node')} {agreed(number, 'is', 'are')}"


def _largest(names: NDArray, numbers: NDArray, which: NDArray[np.bool_], what: str) -> str:
    order = [j for j in np.argsort(-np.abs(numbers)) if which[j]]
    parts = [f"{names[j]!r} {numbers[j]:.1f}" for j in order[:_NAMED]]
    more = f" and {len(order) - _NAMED} more" if len(order) > _NAMED else ""
    return f"{what} {', '.join(parts)}{more}"


def _largest_share(values: NDArray[np.float64]) -> float:
    """Share of the most frequent value; the median is it where the share is above one half."""
    return float((values == np.median(values)).mean())
