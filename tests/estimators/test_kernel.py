"""Graphs smoothed over the covariates by a kernel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.encoded import Encoded
from graphfield.fields.program import evaluate
from graphfield.solvers.kernel_graphs import kernel_weights, local_moments


def moving_edge(n: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    """x1 = sin(2 z) x0 + noise; x3 = .7 x2 + noise; scales of x2 and x3 follow z."""
    rng = np.random.default_rng(0)
    Z, X = rng.uniform(-1, 1, (n, 1)), rng.normal(size=(n, 4))
    X[:, 1] += np.sin(2 * Z[:, 0]) * X[:, 0]
    X[:, 3] += 0.7 * X[:, 2]
    return X * np.exp(Z * [0, 0, 1, -1]), Z


def truth(z: np.ndarray) -> np.ndarray:
    return np.sin(2 * z) / np.sqrt(1 + np.sin(2 * z) ** 2)


@pytest.mark.parametrize("method", ["joint", "nodewise"])
def test_recovers_an_edge_that_moves_and_one_that_does_not(method):
    X, Z = moving_edge()
    model = gf.KernelCGM(method=method, bandwidth=0.4, penalty=0.02).fit(X, Z)
    at = np.linspace(-0.8, 0.8, 5)
    found = model.partial_correlations(at[:, None])
    # The kernel flattens a curve: .4 standard deviations are .23 of z. Twice the sampling error beside it.
    assert np.abs(found[:, 0, 1] - truth(at)).max() < 0.2
    assert np.abs(found[:, 2, 3] - 0.57).max() < 0.15
    assert np.abs(found[:, 0, 2]).max() < 0.15
    assert model.predict_scale([[0.8]])[0, 2] > 2 * model.predict_scale([[-0.8]])[0, 2]


@pytest.mark.slow
def test_bandwidth_is_narrow_where_the_graph_moves_and_infinite_where_nothing_does():
    X, Z = moving_edge()
    assert gf.KernelCGM(random_state=0).fit(X, Z).bandwidth_ < 1
    idle = (np.random.default_rng(seed).normal(size=X.shape) for seed in range(10))
    widths = [gf.KernelCGM(random_state=0).fit(own, Z).bandwidth_ for own in idle]
    assert np.isinf(widths).sum() >= 8  # by the rule of one standard error, one in thirty is not


@pytest.mark.parametrize(("method", "static"), [("joint", gf.GraphicalLasso), ("nodewise", gf.NodewiseLasso)])
@pytest.mark.parametrize("center", ["constant", "covariates"])
def test_infinite_bandwidth_is_one_lasso_for_all(method, static, center):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)), rng.normal(size=(300, 2))
    one = static(penalty=0.1, center=center).fit(X, Z)
    kernel = gf.KernelCGM(method=method, bandwidth=np.inf, penalty=0.1, center=center).fit(X, Z)
    difference = kernel.partial_correlations(Z[:3]) - one.partial_correlations(Z[:3])
    assert np.abs(difference).max() < 2e-3  # solved to half a percent of the penalty


def test_small_bandwidth_is_one_graph_per_level():
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(400, 3)), np.repeat(["a", "b"], 200)
    X[:200, 1] += X[:200, 0]
    model = gf.KernelCGM(bandwidth=0.05, penalty=0.05, center="constant").fit(X, pd.DataFrame({"site": site}))
    for level in ("a", "b"):
        alone = gf.GraphicalLasso(penalty=0.05).fit(X[site == level], rng.normal(size=(200, 1)))
        found = model.partial_correlations(pd.DataFrame({"site": [level]}))
        assert np.abs(found - alone.partial_correlations([[0.0]])).max() < 2e-3


@pytest.mark.parametrize("method", ["joint", "nodewise"])
def test_the_page_carries_out_the_same(method):
    X, Z = moving_edge(300)
    frame = pd.DataFrame({"age": Z[:, 0], "site": np.where(Z[:, 0] > 0.3, "a", "b")})
    model = gf.KernelCGM(method=method, bandwidth=0.5, penalty=0.05).fit(X, frame)
    j, k = np.triu_indices(4, 1)
    found = evaluate(model.field_.program(), frame.iloc[:20])
    assert np.abs(found - model.partial_correlations(frame.iloc[:20])[:, j, k]).max() < 1e-5


def test_few_rows_near_a_point():
    """A point far from most rows looks further, and has numbers."""
    rng = np.random.default_rng(0)
    Z = np.append(rng.normal(size=99), 40.0)[:, None]
    model = gf.KernelCGM(bandwidth=0.01, random_state=0).fit(rng.normal(size=(100, 3)), Z)
    assert np.isfinite(model.partial_correlations(Z)).all()


def test_what_a_kernel_cannot_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    for bandwidth in (0, -1, "wide", True, None):
        with pytest.raises(gf.ParameterError, match=r"of KernelCGM must be 'auto' or a number above 0.*got"):
            gf.KernelCGM(bandwidth=bandwidth).fit(X, X[:, :1])
    letters = np.array(list("abcdefghijklmnopqrstuvwxy"))
    levels = pd.DataFrame({name: rng.choice(letters, 600) for name in ("site", "day")})
    with pytest.raises(gf.DataError, match="KernelCGM needs a graph for every combination of levels"):
        gf.KernelCGM().fit(X, levels)
    many = rng.normal(size=(600, 10))
    with pytest.raises(gf.DataError, match=r"KernelCGM needs a grid .* got 10 numbers: 1,024 corners"):
        gf.KernelCGM().fit(X, many)
    with pytest.warns(gf.DataWarning, match="made for up to 3 numeric covariates and got 10"):
        gf.KernelCGM(bandwidth=np.inf, penalty=0.1).fit(X, many)
    with pytest.warns(gf.DataWarning, match="made for up to 3 numeric covariates and got 4"):
        gf.KernelCGM(bandwidth=2.0, penalty=0.1).fit(X, rng.normal(size=(600, 4)))


def test_directions_are_those_of_the_smoother():
    """A point that sees all rows alike has one, points that see their own level alone have one each."""
    rng = np.random.default_rng(0)
    values, codes = rng.normal(size=(90, 3)), np.repeat([0, 1, 2], 30)[:, None]
    rows = Encoded(np.empty((90, 0)), codes)
    points = Encoded(np.empty((3, 0)), np.arange(3)[:, None])
    shares = np.eye(3)[codes[:, 0]]
    for bandwidth, directions in ((np.inf, 1.0), (0.05, 3.0)):
        local = local_moments(values, kernel_weights(rows, points, bandwidth), shares)
        assert local.directions == pytest.approx(directions)


@pytest.mark.slow
def test_few_rows_do_not_hide_edges_behind_how_freely_the_kernel_may_vary():
    """144 pairs are an edge somewhere. Counted from penalised graphs, 67 stood clear."""
    sim = gf.make_setting("G1", n_samples=1_000, random_state=100)
    model = gf.KernelCGM(random_state=0).fit(sim.X, sim.Z)
    true = sim.skeleton.any(axis=0)
    found = model.threshold_.clear
    assert found.sum() / 2 > 100
    assert (found & ~true).sum() <= 0.1 * found.sum()


def test_rows_that_chose_are_known_with_scores_too():
    X, Z = moving_edge(300)
    raw, scores = (gf.KernelCGM(marginals=m, random_state=0).fit(X, Z) for m in ("raw", "normal"))
    assert raw.held_out_rows_ is not None
    np.testing.assert_array_equal(raw.held_out_rows_, scores.held_out_rows_)
