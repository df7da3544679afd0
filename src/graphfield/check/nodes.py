"""What may be wrong with node columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.broken_relations import broken_relation_findings
from graphfield.check.codes import code_findings, few_different
from graphfield.check.counts import composition_findings, is_count, wide_count_findings, zero_findings
from graphfield.check.findings import Finding, drop_argument
from graphfield.check.relations import relation_findings
from graphfield.check.size import SPARE_ROWS
from graphfield.check.values import (
    SKEWED,
    far_out_findings,
    far_out_values,
    missing_code_findings,
    missing_codes,
    standard_units,
)
from graphfield.data.frames import KIND_MODELS, Frame
from graphfield.data.identifiers import find_identifiers
from graphfield.data.text_numbers import PLAIN_NUMBERS, have_units
from graphfield.exceptions import agreed, count, first_few, named
from graphfield.messages import Argument, Message, move_rows

# Beyond this excess kurtosis a node is far from Gaussian (an exponential has 6).
HEAVY_TAILS = 10.0
# A node with one value in more than this share of the rows has little left that could vary.
MOSTLY_ONE_VALUE = 0.8
# From this share on it is good to know.
OFTEN_ONE_VALUE = 0.4
# Names of columns that are numbers but hardly ever measurements.
NO_NODE = re.compile(
    r"time|date|year|month|day|hour|week|weekday|id|index|row|.*[_ .](id|index)", re.IGNORECASE
)
_NAMED = 5  # columns with their numbers in one message
IDENTIFIER = "identifier-node"  # the code of nodes that look like one


def node_findings(
    X: Frame,
    nodes: pd.DataFrame,
    bad: pd.DataFrame,
    empty: Sequence[str],
    rows: NDArray[np.intp],
    typed: Collection[str] = (),
    coded: Collection[float] = (),
) -> Iterator[Finding]:
    """Findings about the nodes; ``nodes`` holds those that are numbers, filled where ``bad``.

    What those are whose types are known (``typed``) is not asked; numbers that are ``coded`` stand for
    "missing" in some column.
    """
    text = [n for n in X.names if n not in nodes.columns and n not in empty and n not in typed]
    for name in [name for name in text if have_units(X.values[name].dropna().astype(str))]:
        text.remove(name)
        yield Finding(
            "units-node",
            (name,),
            f"Node {name!r} holds text that looks like numbers, such as "
            f"{str(X.values[name].dropna().iloc[0])!r}, and would be taken for levels.",
            f"{PLAIN_NUMBERS}.",
        )
    if text:
        yield Finding(
            "text-node",
            tuple(text),
            Message(
                "{names} {hold} text or dates. Nodes that are levels suit {models}; other models need "
                "numbers.",
                names=named("Node", text),
                hold=agreed(len(text), "holds", "hold"),
                models=KIND_MODELS,
            ),
            Message(
                "Levels may stay; else convert to numbers, use as covariates, or leave out ({drop}).",
                drop=drop_argument(text),
            ),
        )
    ids = list(_identifiers(X, nodes))
    yield from ids
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
    complete = ~bad[names].to_numpy(dtype=bool).any(axis=1)
    whole = list(composition_findings(names, nodes[names].to_numpy()[complete])) if complete.any() else []
    yield from whole
    if len(names) > 1:
        related = _relations(nodes[names].iloc[rows], bad[names].to_numpy(dtype=bool)[rows])
        # That one part follows from the others was said.
        yield from (one for one in related if not (whole and one.code == "collinear-nodes"))
        places = np.intersect1d(np.flatnonzero(complete), rows)
        broken = () if whole else broken_relation_findings(names, nodes[names].to_numpy()[places])
        yield from (replace(one, message=move_rows(one.message, places.tolist())) for one in broken)
    if isinstance(typed, Mapping):
        places = np.intersect1d(np.flatnonzero(complete), rows)
        counts = np.array([typed.get(name) == "count" for name in names])
        yield from wide_count_findings(names, nodes[names].to_numpy()[places], counts)
    told = {*typed, *(name for finding in ids for name in finding.columns)}
    yield from _shape_findings(nodes[names].mask(bad[names].to_numpy(dtype=bool)), told, coded, bool(typed))


def _relations(nodes: pd.DataFrame, bad: NDArray[np.bool_]) -> Iterator[Finding]:
    """What filled-in values would hide is looked for among complete rows, if there are enough of them."""
    complete = ~bad.any(axis=1)
    enough = complete.sum() > max(nodes.shape[1] + SPARE_ROWS, len(bad) / 2)
    values = nodes.to_numpy()[complete] if enough else nodes.to_numpy()
    still = np.ptp(values, axis=0) == 0  # a value that only rows outside the sample have
    if len(values) > 2 and (~still).sum() > 1:
        yield from relation_findings(list(nodes.columns[~still]), values[:, ~still])


def _identifiers(X: Frame, nodes: pd.DataFrame) -> Iterator[Finding]:
    """Row numbers and times by their order or their name, and numbers that never come up twice."""
    names = list(nodes.columns)
    rising, distinct = find_identifiers(X.values, names)
    ids = [name for name in names if name in rising or NO_NODE.fullmatch(name)]
    if ids:
        yield Finding(
            IDENTIFIER,
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
            IDENTIFIER,
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


def _shape_findings(
    nodes: pd.DataFrame, told: set[str], coded: Collection[float], mixed: bool
) -> Iterator[Finding]:
    """Codes for missing values, few values, one value, skewed and heavy-tailed nodes, values far out.

    What is missing is NaN. Where kinds of nodes are ``mixed``, numbers have no normal scores. Those ``told``
    of as identifiers or times need not be called codes as well.
    """
    values = nodes.to_numpy()
    if values.size == 0:
        return
    names = np.array(nodes.columns, dtype=object)
    there = [column[~np.isnan(column)] for column in values.T]
    codes = [missing_codes(column, coded) for column in there]
    known = [column[~np.isin(column, list(own))] for column, own in zip(there, codes, strict=True)]
    yield from missing_code_findings(codes, names, "node")
    few = np.array([few_different(column) for column in known])
    asked = few & ~np.isin(names, list(told))
    are_codes = np.column_stack(
        [np.isin(column, list(own)) for column, own in zip(values.T, codes, strict=True)]
    )
    measured = pd.DataFrame(np.where(are_codes, np.nan, values), columns=names)
    yield from code_findings(
        [known[j] for j in np.flatnonzero(asked)], names[asked].tolist(), int((~few).sum()), measured
    )
    asked = ~np.isin(names, list(told))
    yield from zero_findings(names[asked].tolist(), [known[j] for j in np.flatnonzero(asked)])
    modes = np.array([_largest_share(column) for column in there])
    stuck = (modes > MOSTLY_ONE_VALUE) & ~few
    if stuck.any():
        number, worst = int(stuck.sum()), names[stuck][np.argmax(modes[stuck])]
        yield Finding(
            "mostly-one-value",
            tuple(names[stuck]),
            f"{named('Node', names[stuck])} {agreed(number, 'has', 'have')} one and the same value in "
            + agreed(
                number,
                f"{modes[stuck].max():.0%} of the rows.",
                f"most rows ({modes[stuck].max():.0%} of them in {worst!r}).",
            ),
            Message(
                "{their} edges rest on the few other rows; leave {them} out ({drop}), or look at those rows "
                "alone.",
                their=agreed(number, "Its", "Their"),
                them=agreed(number, "it", "them"),
                drop=drop_argument(names[stuck]),
            ),
        )
    yield from _often_one_value(names, there, modes * (~few & ~stuck))
    shaped = ~few & ~stuck
    wrong = are_codes | far_out_values(values)
    seen = np.where(wrong, np.nan, values)[:, shaped]
    yield from _tails(names[shaped], seen, bool(wrong[:, shaped].any()), mixed)
    plain = ~stuck & np.array([not own for own in codes])
    yield from far_out_findings(values[:, plain], names[plain], "node", has_scores=not mixed)


def _often_one_value(
    names: NDArray, columns: Sequence[NDArray[np.float64]], modes: NDArray[np.float64]
) -> Iterator[Finding]:
    """Fine numbers of which many are equal: no rain, the usual week; counts with zeros are told elsewhere."""
    often = [
        j
        for j in np.argsort(-modes, kind="stable")
        if modes[j] > OFTEN_ONE_VALUE and not is_count(columns[j])
    ]
    if not often:
        return
    parts = []
    for j in often:
        values, sizes = np.unique(columns[j], return_counts=True)
        parts.append(f"{names[j]!r} {modes[j]:.0%} are {values[sizes.argmax()]:g}")
    yield Finding(
        "often-one-value",
        tuple(names[often]),
        f"{count(len(often), 'node')} {agreed(len(often), 'has', 'have')} one and the same value in many "
        f"rows ({first_few(parts, _NAMED)}).",
        f"Rows with equal values have equal normal scores: edges of {agreed(len(often), 'it', 'them')} rest "
        "on the others, and come out weaker.",
    )


def _tails(names: NDArray, values: NDArray[np.float64], any_wrong: bool, mixed: bool) -> Iterator[Finding]:
    """Skewed and heavy-tailed nodes; values that are missing, or look wrong if ``any_wrong``, are NaN."""
    if values.shape[1] == 0:
        return
    aside = "; values that look wrong are left aside" if any_wrong else ""
    centred = standard_units(values)
    squares = np.square(centred)
    skewness = np.nanmean(squares * centred, axis=0)
    kurtosis = np.nanmean(np.square(squares), axis=0) - 3
    skewed = np.abs(skewness) > SKEWED
    scores = Message(
        "models of several kinds of nodes have numbers as they are, so write logarithms of them where that "
        "makes them even; tests of edges are about normal scores"
        if mixed
        else "neural models and comparisons of models try normal scores{option}",
        option=Message(" (marginals='auto')", code="by-default"),
    )
    if skewed.any():
        of_logarithms = skewed & (skewness > 0) & (np.nanmin(values, axis=0) > 0)
        yield Finding(
            "skewed-nodes",
            tuple(names[skewed]),
            Message(
                "{how_many} skewed ({largest}{aside}): {scores}{logarithm}.",
                how_many=_how_many(skewed),
                largest=_largest(names, skewness, skewed, "skewness"),
                aside=aside,
                scores=scores,
                logarithm="; for others a logarithm may help" if of_logarithms.any() and not mixed else "",
            ),
            "",
        )
    heavy = (kurtosis > HEAVY_TAILS) & ~skewed
    if heavy.any():
        yield Finding(
            "heavy-tails",
            tuple(names[heavy]),
            Message(
                "{how_many} heavy-tailed ({largest}{aside}): {scores}.",
                how_many=_how_many(heavy),
                largest=_largest(names, kurtosis, heavy, "excess kurtosis"),
                aside=aside,
                scores=scores,
            ),
            "",
        )


def _how_many(which: NDArray[np.bool_]) -> str:
    number = int(which.sum())
    return f"{count(number, 'node')} {agreed(number, 'is', 'are')}"


def _largest(names: NDArray, numbers: NDArray, which: NDArray[np.bool_], what: str) -> str:
    order = [j for j in np.argsort(-np.abs(numbers)) if which[j]]
    return f"{what} {first_few([f'{names[j]!r} {numbers[j]:.1f}' for j in order], _NAMED)}"


def _largest_share(values: NDArray[np.float64]) -> float:
    """Share of the most frequent value; the median is it where the share is above one half."""
    return float((values == np.median(values)).mean())
