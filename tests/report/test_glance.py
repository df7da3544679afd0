"""The edges that the top of the report page names."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from graphfield.inference.edge_record import EdgeRecord
from graphfield.report.glance import clearest_movers, names_movers, strongest_tested

NODES = ("a", "a - b", "b", "c")
PAIRS = list(combinations(NODES, 2))


def record_of(estimates: dict[tuple[str, str], float], movers: dict[tuple[str, str], str]) -> EdgeRecord:
    """Of four nodes, one of which is named as a pair of two others: with these averages, and what moves."""
    known = [estimates.get(ends) for ends in PAIRS]
    found = np.array([one is not None for one in known])
    moving = [0.01 if ends in movers else 0.9 for ends in PAIRS]
    return EdgeRecord(
        NODES,
        100,
        None,
        tuple(np.where(found, 0.01, 0.9).tolist()),
        tuple(moving),
        tuple(known),
        low=tuple(None if one is None else one - 0.1 for one in known),
        high=tuple(None if one is None else one + 0.1 for one in known),
        movers=tuple(f"{' - '.join(ends)} {what}" for ends, what in movers.items()),
        mover_pairs=tuple(map(PAIRS.index, movers)),
    )


AVERAGES = {("a", "b"): 0.2, ("a", "c"): -0.5, ("a - b", "c"): 0.1, ("b", "c"): 0.3}


def test_of_few_that_move_the_strongest_others_are_named_too():
    tests = record_of(AVERAGES, {("a", "c"): "with age (0.00 at 1, -0.90 at 2)"})
    assert names_movers(tests)
    found = clearest_movers(tests)
    assert found.edges == [
        (("a", "c"), "with age (0.00 at 1, -0.90 at 2)"),
        (("b", "c"), "+0.30 [+0.20, +0.40]"),
        (("a", "b"), "+0.20 [+0.10, +0.30]"),
    ]
    assert found.heading == "The edge that moves, and the strongest of the others"
    assert found.listed == {("b", "c"), ("a", "b")}, "the average of the first is not named"
    assert "90 %" in found.note


def test_a_name_that_begins_as_a_pair_of_others_is_not_taken_for_it():
    movers = {("a", "b"): "with age (1)", ("a - b", "c"): "with age (2)", ("a", "c"): "with age (3)"}
    found = clearest_movers(record_of(AVERAGES, movers))
    assert found.edges == list(movers.items())
    assert found.heading == "The 3 edges that move"
    more = record_of(AVERAGES, movers | {("b", "c"): ""})
    assert clearest_movers(more).heading == "The clearest 3 of 4 edges that move"


def test_where_nothing_moves_the_strongest_that_pass_are_named():
    tests = record_of(AVERAGES, {})
    assert not names_movers(tests)
    found = strongest_tested(tests)
    assert [ends for ends, _ in found.edges] == [("a", "c"), ("b", "c"), ("a", "b")]
    assert found.edges[0][1] == "\u22120.50 [\u22120.60, \u22120.40]"
    assert strongest_tested(record_of({}, {})).edges == []
    rates = tuple(0.9 if ends == ("a", "c") else 0.01 for ends in PAIRS)
    assert ("a", "c") not in dict(strongest_tested(replace(tests, q_value=rates)).edges)


@pytest.mark.parametrize(("low", "said"), [((), "\u22120.50"), ((None,) * 6, "0.50, no sign")])
def test_without_an_interval_there_is_none(low, said):
    """A file from before there were any has signs; a node of several levels without an order has none."""
    sizes = {ends: value if not low else abs(value) for ends, value in AVERAGES.items()}
    found = strongest_tested(replace(record_of(sizes, {}), low=low, high=low))
    assert found.edges[0] == (("a", "c"), said)
