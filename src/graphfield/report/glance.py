"""The edges that the top of the page names: three, with what they do or how strong they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.edge_record import LEVEL, EdgeRecord
from graphfield.inference.movement_words import pair_name
from graphfield.inference.row_order import AS_IF
from graphfield.report.words import number

Ends = tuple[str, str]
Edges = list[tuple[Ends, str]]
NAMED = 3
NOBODY = ("", "")  # of words of earlier files, which do not say whose they are
_BY_MODEL = "Partial correlations by the model alone: lowest to highest over the rows, maybe at few of them."


@dataclass(frozen=True)
class Glance:
    """A heading, edges each with a few words, and what these words are; without an edge all is empty.

    ``which`` edges they are: "moving", "varying" or "strongest". ``listed`` are those that a list of the
    strongest, or of those that vary most, need not name again.
    """

    which: str = ""
    heading: str = ""
    edges: Edges = field(default_factory=list)
    note: str = ""
    listed: frozenset[Ends] = frozenset()


def names_movers(tests: EdgeRecord | None) -> bool:
    """Whether the edges to name are those that move by tests of each."""
    return tests is not None and bool(tests.movers) and bool(tests.are_moving.any())


def clearest_movers(tests: EdgeRecord) -> Glance:
    """The edges that move most clearly, and what they are where; of few, then the strongest of the others."""
    pairs = list(combinations(tests.nodes, 2))
    moving = [pairs[pair] for pair in np.flatnonzero(tests.are_moving)]
    ends = [pairs[pair] for pair in tests.mover_pairs] or [NOBODY] * len(tests.movers)
    told = zip(ends, tests.movers, strict=True)
    movers = [(own, text.removeprefix(pair_name(*own)).strip()) for own, text in told][:NAMED]
    others = _averages(tests, ~tests.are_moving)[: max(0, NAMED - len(moving))]
    heading = "The edge that moves" if len(moving) == 1 else f"The {len(moving)} edges that move"
    if len(moving) > len(movers):
        heading = f"The clearest {len(movers)} of {len(moving):,} edges that move"
    heading += ", and the strongest of the others" if others else ""
    note = "Partial correlations by tests of each pair"
    note += f"; of the others on average{_interval(tests)}" if others else " along a covariate"
    note += f", {AS_IF}." if tests.caveat else "."
    return Glance("moving", heading, movers + others, note, _ends(others))


def strongest_tested(tests: EdgeRecord) -> Glance:
    """The edges that are strongest on average, with intervals where they have a sign."""
    edges = _averages(tests, tests.are_edges)[:NAMED]
    note = f"Partial correlations on average over the rows{_interval(tests)}; by tests of each pair"
    return _strongest(edges, f"{note}, {AS_IF}." if tests.caveat else f"{note}.")


def _averages(tests: EdgeRecord, some: NDArray[np.bool_]) -> Edges:
    """Of some of the pairs that pass their tests the averages, the strongest first."""
    pairs, known, edges = list(combinations(tests.nodes, 2)), tests.averages(), []
    sizes = {int(pair): tests.estimate[pair] or 0.0 for pair in np.flatnonzero(tests.are_edges & some)}
    for pair in sorted(sizes, key=lambda pair: -abs(sizes[pair])):
        words = f"{sizes[pair]:.2f}, no sign"
        if pair in known:
            words = "{} [{}, {}]".format(*(number(value) for value in known[pair]))
        elif not tests.low:  # a file from before there were intervals
            words = number(sizes[pair])
        edges.append((pairs[pair], words))
    return edges


def _interval(tests: EdgeRecord) -> str:
    return f", with intervals of {100 * LEVEL:.0f} %" if tests.low else ""


def strongest(edges: Edges) -> Glance:
    """The strongest edges of one graph."""
    return _strongest(edges[:NAMED], "Partial correlations in the graph that is shown.")


def varying(edges: Edges) -> Glance:
    """The edges that vary most, by the model alone."""
    heading = "The edge that varies" if len(edges) == 1 else "The edges that vary most"
    return Glance("varying", heading, edges[:NAMED], _BY_MODEL, _ends(edges[:NAMED]))


def _strongest(edges: Edges, note: str) -> Glance:
    if not edges:
        return Glance()
    heading = "The strongest edge" if len(edges) == 1 else "The strongest edges"
    return Glance("strongest", heading, edges, note, _ends(edges))


def _ends(edges: Edges) -> frozenset[Ends]:
    return frozenset(ends for ends, _ in edges)
