"""Pictures: they show the numbers they were given, under the right names, and text never covers text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield import analysis as an

pytest.importorskip("matplotlib").use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.dates import date2num  # noqa: E402

from graphfield import plots  # noqa: E402
from report_cases import model_and_tests  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


@pytest.fixture(scope="module")
def data() -> tuple[gf.RegGMM, pd.DataFrame]:
    X, Z = small_data(n=300)
    return gf.RegGMM().fit(X, Z), Z


def random_graph(p: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(0, 0.2, (p, p)) * (rng.random((p, p)) < min(0.5, 6 / p)), 1)
    names = [f"region {i}" for i in range(p)]
    return pd.DataFrame(upper + upper.T, index=names, columns=names)


def groups_of(graph: pd.DataFrame, count: int = 4) -> dict[str, str]:
    return {name: f"part {i % count}" for i, name in enumerate(graph.columns)}


def drawn_texts(figure) -> list[tuple[str, np.ndarray]]:
    """Everything that is written in a figure, with its corners in pixels."""
    seen = {}
    original = plt.Text.draw

    def draw(self, renderer):
        if self.get_visible() and self.get_text().strip():
            seen[id(self)] = self
        original(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt.Text, "draw", draw)
        figure.canvas.draw()
    return [(text.get_text(), corners(text)) for text in seen.values()]


def corners(text) -> np.ndarray:
    """Corners of the text as it is turned; the box of an annotation would have its arrow in it."""
    angle = text.get_rotation()
    box = plt.Text.get_window_extent(text)
    centre = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    text.set_rotation(0)
    flat = plt.Text.get_window_extent(text)
    text.set_rotation(angle)
    turn = np.deg2rad(angle)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    half = np.array([flat.width, flat.height]) / 2
    return np.array([centre + rotation @ (half * sign) for sign in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """How many pixels two convex shapes are into each other: the smallest over the directions of sides."""
    depth = np.inf
    for shape in (one, other):
        for side in np.roll(shape, -1, axis=0) - shape:
            normal = np.array([-side[1], side[0]]) / max(1e-9, np.hypot(*side))
            a, b = one @ normal, other @ normal
            depth = min(depth, a.max() - b.min(), b.max() - a.min())
    return float(depth)


def check_readable(figure) -> None:
    """No text covers another by more than a pixel and a half, and none leaves the figure."""
    found = drawn_texts(figure)
    shapes = np.array([corners for _, corners in found])  # (m, 4, 2)
    low, high = shapes.min(axis=1), shapes.max(axis=1)
    outside = (low < -2).any(axis=1) | (high > np.array(figure.canvas.get_width_height()) + 2).any(axis=1)
    assert not outside.any(), f"{found[int(np.argmax(outside))][0]!r} leaves the figure"
    near = ((low[:, None] < high) & (low < high[:, None])).all(axis=-1)
    for i, j in zip(*np.nonzero(np.triu(near, 1)), strict=True):
        assert overlap(shapes[i], shapes[j]) <= 1.5, f"{found[i][0]!r} covers {found[j][0]!r}"


PICTURES = {
    "graph": lambda graph, _: plots.plot_graph(graph, title="age 60").get_figure(),
    "groups": lambda graph, groups: plots.plot_graph(graph, groups=groups, title="age 60").get_figure(),
    "difference": lambda graph, groups: plots.plot_difference(graph, -graph, groups=groups)[0].figure,
    "circle": lambda graph, groups: plots.plot_network(graph, groups=groups, title="age 60").get_figure(),
    "spring": lambda graph, _: plots.plot_network(graph, layout="spring", title="age 60").get_figure(),
}


@pytest.mark.parametrize(
    ("p", "picture"),
    [
        (5, "graph"),
        (5, "circle"),
        (22, "difference"),
        (60, "spring"),
        (100, "groups"),
        (79, "circle"),
        (200, "circle"),
    ],
)
def test_text_is_readable_at_every_size(p, picture):
    graph = random_graph(p)
    check_readable(PICTURES[picture](graph, groups_of(graph)))


def test_names_are_dropped_where_they_cannot_be_read():
    assert len(plots.plot_graph(random_graph(22)).get_xticklabels()) == 22
    assert len(plots.plot_graph(random_graph(200)).get_xticklabels()) == 0


def test_small_groups_have_their_names_pushed_apart():
    graph = random_graph(120)
    groups = ["large"] * 114 + [f"small {i}" for i in range(6)]
    axes = plots.plot_graph(graph, groups=groups)
    assert [text.get_text() for text in axes.texts] == ["large", *(f"small {i}" for i in range(6))]
    check_readable(axes.get_figure())


def test_a_heatmap_sorts_nodes_by_group_and_draws_lines_between_them():
    graph = random_graph(5)
    groups = ["b", "a", "b", "a", "b"]
    axes = plots.plot_graph(graph, groups=groups, limit=0.7)
    order = [0, 2, 4, 1, 3]
    np.testing.assert_array_equal(axes.images[0].get_array(), graph.to_numpy()[np.ix_(order, order)])
    assert [label.get_text() for label in axes.get_yticklabels()] == [graph.columns[i] for i in order]
    assert [text.get_text() for text in axes.texts] == ["b", "a"]
    assert {line.get_ydata()[0] for line in axes.lines if line.get_ydata()[0] == line.get_ydata()[1]} == {2.5}
    assert axes.images[0].get_clim() == (-0.7, 0.7)


def test_a_difference_is_on_the_scale_of_both_graphs():
    first, second = random_graph(6), random_graph(6, seed=1)
    panels = plots.plot_difference(first, second, labels=["25", "75"])
    assert [axis.get_title() for axis in panels] == ["25", "75", "75 minus 25"]
    shown = [axis.images[0].get_array() for axis in panels]
    np.testing.assert_allclose(shown[2], second - first)
    largest = max(np.abs(part).max() for part in shown)
    assert {axis.images[0].get_clim() for axis in panels} == {(-largest, largest)}


def test_bands_have_counts_and_density_in_their_titles(data):
    model, Z = data
    bands = an.bands(model, Z, "age", threshold=0.1)
    axes = plots.plot_bands(bands, groups=["x", "y"] * 3)
    titles = [axis.get_title() for axis in axes]
    for title, label, share in zip(titles, bands.labels, bands.density, strict=True):
        assert title == f"age {label}\n75 rows, density {100 * share:.0f} %"
    check_readable(axes[0].figure)
    # White up to the threshold of the bands, or one that was asked for; the density stays that of the bands.
    for options, cut, said in (
        ({}, 0.1, "> 0.1; density: mean over rows"),
        ({"threshold": 0.2}, 0.2, "> 0.2; density: mean over rows, at > 0.1"),
        ({"threshold": 0}, 0.0, "averages of all pairs; density: mean over rows, at > 0.1"),
    ):
        axes = plots.plot_bands(bands, **options)
        shown = axes[0].images[0].get_array()
        np.testing.assert_array_equal(shown, bands.matrices[0] * (np.abs(bands.matrices[0]) > cut))
        assert axes[0].figure.get_suptitle().endswith(said)
        assert [axis.get_title() for axis in axes] == titles


def test_a_network_draws_every_edge_between_its_nodes():
    graph = random_graph(8)
    positions = plots.network_positions(graph, groups=groups_of(graph))
    axes = plots.plot_network(graph, positions=positions, threshold=0.05)
    drawn = {
        frozenset(tuple(np.round(end, 9)) for end in line) for line in axes.collections[0].get_segments()
    }
    j, k = np.nonzero(np.triu(np.abs(graph.to_numpy()) > 0.05, 1))
    places = {name: tuple(np.round(place, 9)) for name, place in positions.items()}
    ends = zip(graph.columns[j], graph.columns[k], strict=True)
    assert drawn == {frozenset((places[a], places[b])) for a, b in ends}


def test_positive_edges_are_red_and_negative_ones_blue():
    graph = np.array([[0, 0.5, -0.5], [0.5, 0, 0], [-0.5, 0, 0]])
    colours = plots.plot_network(graph, list("abc")).collections[0].get_colors()
    by_red = sorted(colours, key=lambda colour: colour[0])
    assert by_red[0][2] > by_red[0][0]
    assert by_red[1][0] > by_red[1][2]


def test_edges_without_a_sign_are_grey_and_the_legend_says_so():
    rng = np.random.default_rng(0)
    number = rng.normal(size=300)
    kind = np.digitize(number + 0.5 * rng.normal(size=300), [-0.5, 0.5])
    X = pd.DataFrame({"number": number, "kind": np.array(list("abc"))[kind], "other": rng.normal(size=300)})
    X["other"] += number
    model = gf.RegGMM().fit(X, pd.DataFrame({"z": rng.uniform(size=300)}))
    axes = plots.plot_network(an.graph_at(model, {"z": 0.5}, threshold=0.05))
    graph = an.average_graph(model, pd.DataFrame({"z": [0.2, 0.8]}), threshold=0.05)
    assert graph.attrs["signless"] == ["kind"]
    greys = [np.ptp(colour[:3]) < 1e-6 for colour in axes.collections[0].get_colors()]
    assert any(greys)
    assert not all(greys)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "no sign (levels without an order)"
    ]
    numbers = graph.loc[["number", "other"], ["number", "other"]]
    assert plots.plot_network(numbers).get_legend() is None
    heatmap = plots.plot_graph(graph, groups=["g", "h", "g"])  # sorted: number, other, kind
    sizes = heatmap.images[1].get_array()
    assert np.ma.getmaskarray(sizes).tolist() == [[True, True, False], [True, True, False], [False] * 3]
    assert sizes[0, 2] == graph.loc["number", "kind"] > 0
    assert heatmap.get_xlabel() == "grey: no sign (levels without an order)"
    assert len(plots.plot_graph(numbers).images) == 1


def test_positions_are_the_same_every_time_and_hardly_move_with_the_graph():
    graph = random_graph(20)
    first = plots.network_positions(graph, layout="spring")
    assert first == plots.network_positions(graph, layout="spring")
    slightly = graph * (1 + 0.01 * random_graph(20, seed=5))
    moved = plots.network_positions(slightly, layout="spring")
    shifts = [np.hypot(*np.subtract(first[name], moved[name])) for name in first]
    assert max(shifts) < 0.1
    circle = plots.network_positions(graph, groups=groups_of(graph))
    assert all(np.hypot(*place) == pytest.approx(1) for place in circle.values())


def test_only_the_strongest_of_many_edges_are_drawn_and_the_title_says_so():
    graph = random_graph(40)
    axes = plots.plot_network(graph, threshold=0.05, max_edges=10)
    assert len(axes.collections[0].get_segments()) == 10
    size = np.abs(graph.to_numpy()[np.triu_indices(40, 1)])
    many = f"the strongest 10 of {(size > 0.05).sum()} edges with |partial correlation| > 0.05"
    assert axes.get_title() == many
    every = plots.plot_network(graph, title="all")
    assert len(every.collections[0].get_segments()) == (size > 0).sum()
    assert every.get_title() == "all"
    assert (
        plots.plot_network(graph * 0.01, threshold=0.05).get_title()
        == "no edge with |partial correlation| > 0.05"
    )


def test_tiny_values_have_a_faint_colour():
    tiny = random_graph(6) * 1e-3
    assert plots.plot_graph(tiny).images[0].get_clim() == (-0.05, 0.05)
    assert plots.plot_difference(tiny, -tiny)[2].images[0].get_clim() == (-0.05, 0.05)
    assert plots.plot_graph(tiny, limit=0.001).images[0].get_clim() == (-0.001, 0.001)


def test_the_groups_of_a_network_are_named_below_it():
    graph = random_graph(12)
    axes = plots.plot_network(graph, groups=groups_of(graph))
    axes.get_figure().canvas.draw()
    box, legend = axes.get_window_extent(), axes.get_legend().get_window_extent()
    assert legend.y1 <= box.y0 + 1
    assert abs((legend.x0 + legend.x1) / 2 - (box.x0 + box.x1) / 2) < 3


def test_what_cannot_be_negative_has_no_negative_axis():
    where = np.linspace(0, 1, 40)
    for values in (np.zeros(40), np.full(40, 0.3), np.r_[np.zeros(20), np.linspace(0, 1, 20)]):
        low, high = plots.plot_connectivity(pd.Series(values, name="density"), where).get_ylim()
        assert -0.031 * high <= low <= 0
        assert high >= max(0.1, values.max())


def test_curves_show_the_table(data):
    model, Z = data
    curves = an.edge_curves(model, "age", Z, [("n0", "n1"), ("n2", "n3")], n_points=9)
    axes = plots.plot_edge_curves(curves)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "partial correlation")
    lines = {line.get_label(): line for line in axes.lines}
    part = curves[curves["source"] == "n0"]
    np.testing.assert_allclose(lines["n0 - n1"].get_ydata(), part["partial_correlation"])
    np.testing.assert_allclose(lines["n0 - n1"].get_xdata(), part["value"])
    check_readable(axes.get_figure())
    levels = plots.plot_edge_curves(an.edge_curves(model, "site", Z))
    assert [label.get_text() for label in levels.get_xticklabels()] == ["A", "B", "C"]
    check_readable(levels.get_figure())


def test_two_levels_of_a_category_are_joined_and_three_are_not(data):
    model, Z = data
    curves = an.edge_curves(model, "site", Z, [("n0", "n1"), ("n2", "n3")])
    assert len(plots.plot_edge_curves(curves).lines) == 3  # the dots of two edges, and zero
    two = curves[curves["value"] != "C"]
    joined = plots.plot_edge_curves(two).lines
    assert len(joined) == 5
    for line in joined[:4]:
        part = two[two["source"] == ("n0" if line in joined[:2] else "n2")]
        np.testing.assert_allclose(line.get_ydata(), part["partial_correlation"])


def test_tested_edges_have_a_band_at_each_value_and_one_of_the_whole_curve():
    found = model_and_tests()[2]
    axes = plots.plot_edge_curves(found, "age")
    whole, one = (np.ptp(band.get_paths()[0].vertices[:, 1]) for band in reversed(axes.collections))
    assert whole > one > 0
    line = next(line for line in axes.lines if len(line.get_xdata()) > 2)
    bands = found.bands("c", "d", "age")  # the one that moves
    np.testing.assert_allclose(line.get_ydata(), bands["estimate"])
    bars = plots.plot_edge_curves(found, "drug", [("a", "b"), ("c", "d")])
    assert len(bars.collections) == 4
    with pytest.raises(gf.ParameterError, match="'age', 'drug'"):
        plots.plot_edge_curves(found)
    with pytest.raises(gf.ParameterError, match="leave along and edges out"):
        plots.plot_edge_curves(pd.DataFrame(), "age")


def test_varying_edges_and_drivers_show_their_tables(data):
    model, Z = data
    table = an.varying_edges(model, Z)
    axes = plots.plot_varying_edges(table, most=4)
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{a} - {b}" for a, b in zip(table["source"][:4], table["target"][:4], strict=True)
    ]
    means = next(line for line in axes.lines if line.get_label() == "mean")
    np.testing.assert_allclose(means.get_xdata(), table["mean"][:4])
    check_readable(axes.get_figure())
    drivers = an.edge_drivers(model, Z, most=5)
    axes = plots.plot_drivers(drivers, value="alone", most=3)
    shown = axes.images[0].get_array()
    np.testing.assert_allclose(shown, drivers["alone"].to_numpy().reshape(5, 2)[:3])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["age", "site"]
    first = drivers.iloc[0]
    named = f"{first['source']} - {first['target']} (±{first['standard_deviation']:.2f})"
    assert axes.get_yticklabels()[0].get_text() == named
    check_readable(axes.get_figure())


def test_connectivity_against_numbers_text_and_time(data):
    model, Z = data
    table = an.connectivity(model, Z, ["density", "mean_strength"], threshold=0.1)
    axes = plots.plot_connectivity(table, Z["age"], measure="mean_strength")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "mean strength")
    mean = next(line for line in axes.lines if line.get_label() == "mean")
    lowest = np.argsort(Z["age"].to_numpy())[: 300 // 20]
    assert mean.get_ydata()[0] == pytest.approx(table["mean_strength"].iloc[lowest].mean())
    check_readable(axes.get_figure())
    by_site = plots.plot_connectivity(table["density"], Z["site"])
    assert [label.get_text() for label in by_site.get_xticklabels()] == ["A", "B", "C"]
    days = pd.Series(pd.date_range("2020-01-01", periods=300), name="date")
    events = {
        "2020-03-01": "first",
        "2020-03-03": "second",
        ("2020-05-01", "2020-06-01"): "a long one",
        "2020-01-01": "at the very beginning",
        "2020-10-26": "at the very end of it all",
    }
    fear = pd.Series(Z["age"].to_numpy(), name="vix")
    over_time = plots.plot_connectivity(
        table, days, beside=fear, events=events, smooth=21, title="density and VIX"
    )
    assert [text.get_text() for text in over_time.texts] == [
        "at the very beginning",
        "first",
        "second",
        "a long one",
        "at the very end of it all",
    ]
    np.testing.assert_allclose(over_time.lines[0].get_ydata(), table["density"])
    marked = {line.get_xdata()[0] for line in over_time.lines[2:]}
    assert date2num(np.datetime64("2020-03-01")) in marked
    beside = over_time.get_figure().axes[1]
    assert beside.get_ylabel() == "vix"
    np.testing.assert_array_equal(beside.lines[0].get_ydata(), fear)
    check_readable(over_time.get_figure())


def test_the_training_curve_shows_both_losses_and_the_step_kept():
    X, Z = small_data()
    model = gf.DNNCGM(rank=2, max_steps=5, hidden_size=8, device="cpu", random_state=0).fit(X, Z)
    model.additive_, model.variation_ = False, 1.0
    axes = plots.plot_training(model)
    shown = np.concatenate([line.get_ydata() for line in axes.lines])
    for column in ("train_loss", "held_out_loss"):
        assert set(model.training_[column]) <= set(shown)
    kept = next(line for line in axes.lines if line.get_label().startswith("kept"))
    assert kept.get_xdata()[0] == model.best_step_
    for (name, value), instead in {
        ("variation_", 0.0): "one graph for all",
        ("additive_", True): "edges that follow single covariates",
    }.items():
        setattr(model, name, value)
        labels = [" ".join(line.get_label().split()) for line in plots.plot_training(model).lines]
        kept = [label for label in labels if label.startswith("kept")]
        assert kept == [f"kept: no step, but {instead}"]
    phases = pd.DataFrame(
        {"step": [0, 9, 9, 20], "rank": [8, 8, 16, 16], "train_loss": [4, 3, 2, 1.0], "held_out_loss": 5.0}
    )
    axes = plots.plot_training(phases)
    assert [text.get_text() for text in axes.texts] == ["8 patterns", "16 patterns"]
    check_readable(axes.get_figure())


def test_pictures_draw_on_given_axes(data):
    model, Z = data
    graph = random_graph(5)
    losses = pd.DataFrame({"step": [0], "train_loss": [1.0], "held_out_loss": [1.0]})
    drawings = (
        lambda ax: plots.plot_graph(graph, ax=ax),
        lambda ax: plots.plot_network(graph, ax=ax),
        lambda ax: plots.plot_edge_curves(an.edge_curves(model, "age", Z), ax=ax),
        lambda ax: plots.plot_varying_edges(an.varying_edges(model, Z), ax=ax),
        lambda ax: plots.plot_drivers(an.edge_drivers(model, Z), ax=ax),
        lambda ax: plots.plot_connectivity(Z["age"], Z["age"], ax=ax),
        lambda ax: plots.plot_training(losses, ax=ax),
    )
    for draw in drawings:
        ax = plt.subplots()[1]
        assert draw(ax) is ax


def test_several_pictures_are_as_many_axes_of_one_figure(data):
    model, Z = data
    graph = random_graph(4)
    values = graph.to_numpy()
    two = {"true": np.stack([values] * 3), "estimated": np.stack([values] * 3)}
    drawings = {
        2 * 3: lambda: plots.plot_graphs(two, ["a", "b", "c"]),
        3: lambda: plots.plot_difference(graph, -graph),
        4: lambda: plots.plot_bands(an.bands(model, Z, "age", threshold=0.1)),
        5: lambda: plots.plot_heatmaps([values] * 5, list("abcde")),  # a sixth place stays empty
    }
    for count, draw in drawings.items():
        axes = draw()
        assert axes.shape == (count,)
        assert all(isinstance(axis, plt.Axes) and len(axis.images) == 1 for axis in axes)
        assert {axis.figure for axis in axes} == {plt.gcf()}


def test_intervals_are_shaded_where_the_table_has_them(data):
    model, Z = data
    edges = [("n0", "n1")]
    for along in ("age", "site"):
        table = an.edge_curves(model, along, Z, edges, n_points=5)
        middle = table["partial_correlation"]
        sure = table.assign(interval_low=middle - 0.5, interval_high=middle + 0.7)
        for shown, low, high, title in (
            (table, "low", "high", ""),
            (sure, "interval_low", "interval_high", "with intervals of 95 %"),
        ):
            axes = plots.plot_edge_curves(shown)
            (band,) = axes.collections
            drawn = np.concatenate([path.vertices[:, 1] for path in band.get_paths()])
            assert (drawn.min(), drawn.max()) == pytest.approx((shown[low].min(), shown[high].max()))
            assert axes.get_legend().get_title().get_text() == title
            texts = [text.get_text() for text in axes.get_legend().get_texts()]
            assert any("10 to 90 % of rows" in text for text in texts) == (shown is table)
            check_readable(axes.get_figure())


def test_edges_without_shares_are_cells_without_a_number(data):
    model, Z = data
    drivers = an.edge_drivers(model, Z, most=3)
    drivers.loc[drivers.index[:2], ["alone", "total"]] = np.nan
    axes = plots.plot_drivers(drivers)
    assert np.isnan(np.ma.filled(axes.images[0].get_array(), np.nan)[0]).all()
    assert len(axes.texts) == 4
    plots.plot_drivers(drivers.assign(effect=np.nan), value="effect").get_figure().canvas.draw()


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: plots.plot_graph(np.zeros((2, 3))), gf.DataError, "square matrix"),
        (lambda: plots.plot_graph(np.zeros((2, 2)), ["a"]), gf.DataError, "2 nodes, 1 names"),
        (lambda: plots.plot_graph(random_graph(5), groups=["a"]), gf.DataError, "each of the 5 nodes"),
        (lambda: plots.plot_network(random_graph(3), layout="cirle"), gf.ParameterError, "'circle'"),
        (lambda: plots.plot_network(random_graph(3), positions={}), gf.DataError, "lacks 'region 0'"),
        (lambda: plots.plot_edge_curves(pd.DataFrame({"a": [1]})), gf.DataError, "analysis.edge_curves"),
        (lambda: plots.plot_drivers(pd.DataFrame(), value="share"), gf.ParameterError, "'total'"),
        (lambda: plots.plot_connectivity(np.ones(3), np.ones(4)), gf.DataError, "got 3 and 4"),
        (lambda: plots.plot_connectivity(np.ones(2), [1, 2], beside=[1]), gf.DataError, "beside"),
        (
            lambda: plots.plot_connectivity(pd.DataFrame({"density": [1.0]}), [1.0], measure="degree"),
            gf.ParameterError,
            "'density'",
        ),
        (lambda: plots.plot_training(gf.RegGMM()), gf.ParameterError, "DNNCGM"),
    ],
)
def test_what_cannot_be_drawn_is_told_why(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


# -- stability and plans ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stable():
    X, Z = small_data(n=120)
    keys = {"n_pairs": 2, "n_drops": 2, "shares": [0.2, 0.4], "n_bootstraps": 0, "random_state": 0}
    return gf.stability(gf.RegGMM(), X, Z, threshold=0.1, **keys)


def test_lines_are_mean_correlations_by_dropped_share(stable):
    axes = plots.plot_stability(stable, ["strength", "closeness"])
    lines = {line.get_label().split(" ")[0]: line for line in axes.lines}
    expected = stable.correlations("closeness").groupby("dropped").correlation.mean()
    assert np.allclose(lines["closeness"].get_xdata(), [0.2, 0.4, 0.5])
    assert np.allclose(lines["closeness"].get_ydata(), expected)


def test_bars_are_frequencies_of_the_pairs_selected_most(stable):
    axes = plots.plot_selection(stable, most=3)
    top = stable.edges(0.0).iloc[:3]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{a} - {b}" for a, b in zip(top.source, top.target, strict=True)
    ]
    assert sorted(bar.get_width() for bar in axes.patches) == sorted(top.frequency)


def test_a_plan_is_drawn_over_its_rows():
    curve = pd.DataFrame({"n": [100, 400], "power": [0.5, 0.9], "power_error": 0.02, "fdr": 0.1})
    plan = gf.SamplePlan(
        curve.assign(fdr_error=0.01, sets=8), 250, 200.0, 300.0, 0.8, 0.1, "edges", "a model", 5
    )
    axes = plots.plot_sample_plan(plan)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "400"]
    assert "250 rows" in [text.get_text() for text in axes.get_legend().get_texts()]
