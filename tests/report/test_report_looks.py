"""What the report page looks like with many nodes and levels, on a wide and on a narrow screen."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from browser import Browser, chromium
from conftest import change_threshold
from graphfield.numbers import Gain
from report_cases import model_and_tests

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome on this machine"),
]
SCREENS = [(1280, 900), (390, 844)]
LEVELS = [f"{'a rather long name of level' if i % 2 else 'level'} {i}" for i in range(14)]
WAIT = "new Promise((done) => setTimeout(done, 300))"
# Names beside nodes that can be seen, with their places.
LABELS = """[...document.querySelectorAll('#net g.node')].flatMap((g) => {
  const text = g.querySelector('text'), box = text.getBoundingClientRect();
  return getComputedStyle(text).display === 'none' || !text.textContent ? []
    : [[g.querySelector('title').textContent, box.left, box.top, box.right, box.bottom]];
})"""
# Names of levels below an axis: where their ends are, how they are turned.
TICKS = """[...document.querySelectorAll('#curve-panels svg')].map((chart) =>
  [...chart.querySelectorAll('text.tick')].map((text) => {
    const turned = /rotate\\((-?[0-9.]+)/.exec(text.getAttribute('transform') || '');
    return [Number(text.getAttribute('x')), turned ? Number(turned[1]) : 0, text.getComputedTextLength()];
  }))"""
# The top of the page as it opens: where verdict, named edges, graph and text are (tops and bottoms).
FIRST = """(() => {
  const ends = (what) => [...document.querySelectorAll(what)].filter((e) => e.checkVisibility()).map((e) => {
    const box = e.getBoundingClientRect();
    return [box.top, box.bottom];
  });
  const named = [...document.querySelectorAll('.first li strong')].filter((e) => e.checkVisibility());
  const long = [...document.querySelectorAll('.first p')].filter((e) => e.textContent.length > 160);
  return {
    verdict: ends('.verdict'), edges: ends('.first li'), graph: ends('#net'),
    named: named.map((e) => e.textContent), long: long.filter((e) => e.checkVisibility()).length,
  };
})()"""
SET = """(() => {{ const field = document.getElementById('{id}');
  field.value = {value}; field.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"""


@cache
def many(p: int) -> tuple[Any, pd.DataFrame]:
    """Chains of eight nodes whose edges come and go with age, and ten nodes without an edge."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 600), "site": rng.choice(LEVELS, 600)})
    X = rng.normal(size=(600, p))
    turn = 0.9 * np.sin(Z["age"].to_numpy() / 15)
    for j in range(1, p - 10):
        if j % 8:
            X[:, j] += (0.9 if j % 3 else turn) * X[:, j - 1]
    names = [f"protein_{i}_{'phosphorylated' if i % 5 == 0 else 'total'}" for i in range(p)]
    model = gf.RegGMM().fit(pd.DataFrame(X, columns=names), Z[["age"]])
    change_threshold(model, value=0.25)
    return model, Z


@cache
def moving() -> tuple[Any, pd.DataFrame, gf.EdgeInference]:
    """Ten nodes of which four pairs move with one of two covariates, and their tests."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 500), "group": rng.choice(["ctl", "trt"], 500)})
    X = rng.normal(size=(500, 10))
    along = (Z["age"].to_numpy() - 50) / 25
    for j in range(1, 10):
        X[:, j] += (along if j % 3 == 0 else Z["group"].eq("trt") if j == 4 else 0.8) * X[:, j - 1]
    table = pd.DataFrame(X, columns=[f"m{j}" for j in range(10)])
    return gf.RegGMM().fit(table, Z), Z, gf.infer_edges(table, Z, random_state=0)


def what_opens(kind: str) -> tuple[Any, pd.DataFrame, dict[str, Any]]:
    """Model, rows and records of a page of each kind."""
    if kind == "many nodes":
        model, Z = many(76)
        return model, Z[["age"]], {}
    model, Z, tests = moving()
    own = Gain(0.1, 0.01) if kind != "average" else Gain(0.001, 0.01)
    gain = gf.ModelGain(own, own, own, n_rows=500, n_units=500, n_folds=5)
    check = {"warnings": [{"message": "Look at this. " * 9, "advice": "Do that."}] * 3}
    return model, Z, {"gain": gain, "check": check} | ({} if kind == "untested" else {"edges": tests})


@pytest.mark.parametrize("kind", ["tested", "untested", "average", "many nodes"])
def test_the_first_screen_has_verdict_edges_and_graph(opened, tmp_path, kind):
    model, Z, records = what_opens(kind)
    browser = opened(model, Z, **records)
    pairs = {f"{a} \u2013 {b}" for a, b in combinations(model.node_names_, 2)}
    for width, height in ((390, 844), (1280, 800)):
        browser.resize(width, height)
        browser.open(tmp_path / "report.html")
        browser.run(WAIT)
        found = browser.run(FIRST)
        assert len(set(found["named"]) & pairs) == len(found["edges"]) == 3
        ((above, verdict),), ((graph, end),) = found["verdict"], found["graph"]
        assert above >= 0
        assert max(bottom for _, bottom in found["edges"]) <= graph
        assert verdict < graph < height, "below the fold"
        assert found["long"] == 0, "longer text before the graph"
    assert 800 - graph > 0.8 * min(end - graph, 480), "most of the graph is to be seen"


def test_text_behind_a_click_is_on_paper(opened):
    model, Z, records = what_opens("tested")
    browser = opened(model, Z, **records)
    closed = "[...document.querySelectorAll('.first details')].filter((one) => !one.open).length"
    assert browser.run(closed) >= 3
    browser.pdf()
    assert browser.run(closed) == 0


def linked_nodes(browser: Browser, model: Any) -> set[str]:
    """Nodes that have an edge in what the page computes at its covariates."""
    present = browser.run("window.graphfield.evaluate(window.graphfield.state().z).present")
    names = np.array(model.node_names_)
    j, k = np.triu_indices(len(names), 1)
    return {*names[j[present]], *names[k[present]]}


def overlapping(boxes: np.ndarray) -> int:
    """Pairs of boxes (left, top, right, bottom) that share more than a margin of the letters."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = ((high - low) > [1.0, 3.0]).all(axis=2)
    return int(np.triu(shared, 1).sum())


@pytest.mark.parametrize("p", [76, 150])
@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_every_node_with_an_edge_has_its_name(opened, p, width, height):
    model, Z = many(p)
    browser = opened(model, Z[["age"]])
    browser.resize(width, height)
    browser.run(WAIT)
    found = browser.run(LABELS)
    wanted = linked_nodes(browser, model)
    assert 0.5 * p < len(wanted) < p, "a test of nothing"
    assert {label[0] for label in found} == wanted
    boxes = np.array([label[1:] for label in found])
    assert overlapping(boxes) == 0
    box = "document.getElementById('net').getBoundingClientRect()"
    assert boxes[:, 0].min() > browser.run(f"{box}.left") - 2
    assert boxes[:, 2].max() < browser.run(f"{box}.right") + 2
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_nodes_without_an_edge_are_counted_and_listed(opened):
    model, Z = many(76)
    browser = opened(model, Z[["age"]])
    counts = []
    for age in (24, 47):
        browser.run(SET.format(id="z0", value=age))
        browser.run(WAIT)
        lonely = set(model.node_names_) - linked_nodes(browser, model)
        assert len(lonely) >= 10
        told = browser.run("document.getElementById('isolated-short').textContent")
        assert told.startswith(f"{len(lonely)} nodes without an edge at these covariates: ")
        assert set(browser.run("document.getElementById('isolated-all').textContent").split(", ")) == lonely
        assert browser.run("document.querySelectorAll('#net g.lonely').length") == len(lonely)
        counts.append(len(lonely))
    assert counts[0] != counts[1], "a test of nothing"


def test_a_lower_threshold_brings_nodes_back_into_the_picture(opened):
    model, Z = many(76)
    browser = opened(model, Z[["age"]])
    below = "document.querySelectorAll('#net g.node').length"
    aside = browser.run(f"{below} - document.querySelectorAll('#net g.node:not(.lonely)').length")
    assert aside >= 10
    browser.run(SET.format(id="cut", value=0.03))
    browser.run(WAIT)
    assert browser.run("document.querySelectorAll('#net g.lonely').length") == 0
    assert browser.run("document.getElementById('isolated').hidden")
    assert browser.run("document.getElementById('isolated-few').textContent") == ""
    boxes = np.array([label[1:] for label in browser.run(LABELS)])
    assert len(boxes) == 76
    assert overlapping(boxes) == 0


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("count", [3, 14])
def test_names_of_levels_do_not_run_into_each_other(opened, count, width, height):
    X, Z = np.random.default_rng(1).normal(size=(600, 4)), many(76)[1]
    X[:, 1] += X[:, 0]
    Z = Z[["site"]].where(Z["site"].isin(LEVELS[:count]), LEVELS[0])
    browser = opened(gf.RegGMM().fit(X, Z), Z)
    browser.resize(width, height)
    browser.run(WAIT)
    (ticks,) = browser.run(TICKS)
    assert len(ticks) >= 3
    for (x, turn, long), (after, _, long_after) in pairwise(ticks):
        if turn:  # lines of text beside each other: 11 pixels high
            assert (after - x) * np.sin(np.radians(abs(turn))) >= 11
        else:
            assert after - x >= (long + long_after) / 2 + 2


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_many_levels_take_the_width_that_their_names_need(opened, width, height):
    """All have their names where there is room, none beyond the left of its chart; pointing tells each."""
    rng = np.random.default_rng(1)
    levels = [f"a rather long name of level {i}" for i in range(40)]
    Z = pd.DataFrame({"site": rng.choice(levels, 600), "age": rng.uniform(20, 80, 600)})
    X = rng.normal(size=(600, 4))
    X[:, 1] += X[:, 0]
    browser = opened(gf.RegGMM().fit(X, Z), Z)
    browser.resize(width, height)
    browser.run(WAIT)
    (ticks, _) = browser.run(TICKS)
    assert len(ticks) == 40 if width > 1000 else len(ticks) >= 15
    lefts = "[...document.querySelectorAll('#curve-panels {what}')].map((t) => t.getBoundingClientRect().x)"
    first, chart = (min(browser.run(lefts.replace("{what}", what))) for what in ("text.tick", "svg"))
    assert first > chart - 12, "but for a corner of letters that are turned"
    titles = "[...document.querySelectorAll('#curve-panels svg .level title')].map((t) => t.textContent)"
    rows = Z["site"].iloc[np.linspace(0, 599, 500).astype(int)].value_counts()
    told = [f"{level} ({rows[level]} of the rows shown)" for level in sorted(levels)]
    assert browser.run(titles) == told
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_long_names_are_whole_where_there_is_room(opened):
    rng = np.random.default_rng(1)
    names = ["R", "number of employees", "cost of goods sold per", "shareholder equity a"]
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=names)
    X.iloc[:, 1:] += X.iloc[:, :-1].to_numpy()
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 400)})
    browser = opened(gf.RegGMM().fit(X, Z), Z)
    shown = browser.run("[...document.querySelectorAll('#net g.node text')].map((t) => t.textContent)")
    assert sorted(shown) == sorted(names)


def test_a_rate_is_not_broken_into_two_lines(opened):
    model, Z, found = model_and_tests()
    browser = opened(model, Z, edges=found)
    browser.run("document.getElementById('only').click()")
    lines = """[...document.querySelectorAll('#table td.rates')].filter((td) => td.textContent).map((td) => {
      const all = document.createRange();
      all.selectNodeContents(td);
      return all.getClientRects().length;
    })"""
    assert browser.run(lines) == [1]


@pytest.mark.parametrize(("days", "wanted"), [(3000, "-01-01"), (120, "-01")])
def test_dates_have_marks_at_months_and_years(opened, days, wanted):
    X, Z = (
        np.random.default_rng(1).normal(size=(500, 4)),
        pd.DataFrame({"day": pd.date_range("2020-03-05", periods=500)}),
    )
    X[:, 1] += X[:, 0]
    Z["day"] = Z["day"].iloc[0] + (Z["day"] - Z["day"].iloc[0]) * (days / 500)
    browser = opened(gf.RegGMM().fit(X, Z), Z)
    texts = browser.run("[...document.querySelectorAll('#curve-panels text.tick')].map((t) => t.textContent)")
    assert texts
    assert all(text.endswith(wanted) for text in texts)


def test_the_table_of_edges_is_not_cut_off(opened):
    model, Z = many(76)
    browser = opened(model, Z[["age"]])
    browser.run("document.getElementById('only').click()")
    browser.run("document.getElementById('pin').click()")
    browser.run(WAIT)
    box = "document.querySelector('#edges .scroll')"
    assert len(browser.run("[...document.querySelectorAll('#table th')].map((h) => h.textContent)")) == 11
    assert browser.run(f"{box}.scrollWidth <= {box}.clientWidth")
    buttons = "[...document.querySelectorAll('#table td button')].map((b) => b.offsetHeight)"
    assert max(browser.run(buttons)) < 30, "a word in two lines"


def test_the_window_is_used(opened):
    model, Z = many(76)
    browser = opened(model, Z[["age"]])
    for width in (1280, 1700):
        browser.resize(width, 900)
        browser.run(WAIT)
        share = "document.getElementById('{id}').getBoundingClientRect().width / innerWidth"
        assert browser.run(share.format(id="net")) > 0.6
        for name in ("explore", "curves", "edges", "data"):
            assert browser.run(share.format(id=name)) > 0.9, name
    assert browser.run("document.getElementById('net').getBoundingClientRect().top") < 900, "below the fold"
