"""A moving picture shows its graphs in their order and back, each under its title, at places that stay."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf

pytest.importorskip("matplotlib").use("Agg")
Image = pytest.importorskip("PIL.Image")

from graphfield import plots  # noqa: E402
from graphfield.plots import moving  # noqa: E402

NAMES = ["a", "b", "c"]


def graph(first: float, second: float) -> pd.DataFrame:
    values = np.array([[0, first, 0], [first, 0, second], [0, second, 0]])
    return pd.DataFrame(values, index=NAMES, columns=NAMES)


def test_to_and_fro_at_places_that_stay(tmp_path, monkeypatch):
    seen = []
    draw = moving.plot_network
    monkeypatch.setattr(
        moving, "plot_network", lambda *args, **parts: seen.append(parts) or draw(*args, **parts)
    )
    graphs = [graph(0.1, 0.4), graph(0.2, 0.0), graph(0.6, 0.0)]
    file = plots.save_moving_network(tmp_path / "g.gif", graphs, ["20", "40", "60"], per_second=10, dpi=40)
    assert [parts["title"] for parts in seen] == ["20", "40", "60"]
    assert all(parts["positions"] == seen[0]["positions"] for parts in seen)
    assert {parts["limit"] for parts in seen} == {0.6}
    with Image.open(file) as picture:
        pictures, times = [], []
        for which in range(picture.n_frames):
            picture.seek(which)
            pictures.append(np.asarray(picture.convert("RGB")))
            times.append(picture.info["duration"])
    assert times == [500, 100, 500, 100]
    assert np.array_equal(pictures[1], pictures[3])
    assert not any(np.array_equal(pictures[i], pictures[i + 1]) for i in range(3))
    assert not moving.pyplot().get_fignums()


def test_groups_and_arrays_without_names(tmp_path):
    graphs = [graph(0.1, 0.4).to_numpy(), graph(0.2, 0.0).to_numpy()]
    for parts in ({}, {"names": NAMES, "groups": ["x", "x", "y"], "layout": "circle"}):
        assert plots.save_moving_network(tmp_path / "g.gif", graphs, ["1", "2"], dpi=30, **parts).exists()


@pytest.mark.parametrize(
    ("file", "graphs", "titles", "parts", "said"),
    [
        ("g.mp4", 2, 2, {}, "must end in .gif"),
        ("g.gif", 1, 1, {}, "two or more"),
        ("g.gif", 2, 3, {}, "a title for each"),
        ("g.gif", 2, 2, {"per_second": 0}, "per_second"),
        ("g.gif", 2, 2, {"layout": "square"}, "layout"),
    ],
)
def test_what_cannot_be_drawn(tmp_path, file, graphs, titles, parts, said):
    given = [graph(0.1, 0.2)] * graphs
    with pytest.raises(gf.GraphfieldError, match=said):
        plots.save_moving_network(tmp_path / file, given, ["1"] * titles, **parts)
    assert not (tmp_path / file).exists()


def test_graphs_of_other_nodes(tmp_path):
    other = graph(0.1, 0.2).rename(columns={"a": "z"}, index={"a": "z"})
    with pytest.raises(gf.DataError, match="the same nodes"):
        plots.save_moving_network(tmp_path / "g.gif", [graph(0.1, 0.2), other], ["1", "2"])
