"""Score matching: slopes against autograd, both forms of the loss, and edges that no line finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import graphfield as gf
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.energies import OWN_ORDERS, EnergyConfig, EnergyField, PairTerms, hermite_functions
from graphfield.nn.fields import Samples
from graphfield.training.pair_energies import EnergyProblem, ScoreMoments, moving_pairs

QUICK = {"max_steps": 20, "hidden_size": 16, "device": "cpu", "random_state": 0}
PAIRS = ((0, 1), (0, 3), (2, 3))


def network(degree: int = 4) -> EnergyField:
    shape = CovariateShape(2, ())
    config = EnergyConfig(4, shape, "residual", "all", 8, 0.0, True, "squared", 0.0, None, degree, PAIRS)
    return EnergyField(config, torch.Generator().manual_seed(0)).eval()


def draws(n: int, p: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, p, generator=torch.Generator().manual_seed(seed))


def log_density(field: EnergyField, pairs: torch.Tensor, own: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """As its definition has it, of one row."""
    h = hermite_functions(x, field.terms.highest)[0]
    total = (own * h[:, :OWN_ORDERS]).sum()
    for pair, (j, k) in enumerate(PAIRS):
        for kind, (m, o) in enumerate(field.terms.orders):
            total = total + pairs[pair, kind] * h[j, m - 1] * h[k, o - 1]
    return total


def test_hermite_functions_are_orthonormal_and_their_derivatives_are_theirs():
    x = torch.linspace(-9, 9, 4001, dtype=torch.float64)
    values, slopes, bends = hermite_functions(x, 4)
    density = torch.exp(-x.square() / 2) / (2 * np.pi) ** 0.5 * (x[1] - x[0])
    torch.testing.assert_close((values * density[:, None]).T @ values, torch.eye(4, dtype=torch.float64))
    for before, after in ((values, slopes), (slopes, bends)):
        found = (before[2:] - before[:-2]) / (x[2] - x[0])
        torch.testing.assert_close(found, after[1:-1], rtol=1e-3, atol=1e-2)


@torch.no_grad()
def slopes_at(field: EnergyField, x: torch.Tensor) -> torch.Tensor:
    """With the coefficients of one z."""
    pairs, own = field(torch.ones(1, 1, 2), torch.zeros(1, 1, 0, dtype=torch.int64))
    return field.slopes(own, field.pair_slopes(pairs, x[None]), x[None])[0]


def test_slopes_are_those_of_the_log_density():
    field, x = network(), draws(3, 4)
    pairs, own = (part[0, 0].detach() for part in field(torch.ones(1, 1, 2), torch.zeros(1, 1, 0).long()))
    for row, found in zip(x, slopes_at(field, x), strict=True):
        at = row.clone().requires_grad_()
        (expected,) = torch.autograd.grad(log_density(field, pairs, own, at), at)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_sizes_are_root_mean_squares_of_second_derivatives():
    field, x, step = network(), draws(4000, 4), 1e-2
    steps = step * torch.eye(4)
    hessian = torch.stack([slopes_at(field, x + one) - slopes_at(field, x - one) for one in steps]) / 2 / step
    expected = hessian.square().mean(dim=1).sqrt()
    pairs, own = (part[0, 0].detach() for part in field(torch.ones(1, 1, 2), torch.zeros(1, 1, 0).long()))
    sizes, nodes = field.sizes(pairs, own)
    torch.testing.assert_close(sizes, expected[field.get_buffer("ends").unbind()], rtol=0.15, atol=0.02)
    torch.testing.assert_close(nodes, expected.diagonal(), rtol=0.15, atol=0.02)


@pytest.mark.parametrize("degree", [2, 3, 4])
@torch.no_grad()
def test_moments_and_network_have_the_same_loss(degree):
    x, terms = draws(60, 4), PairTerms(degree)
    problem = EnergyProblem(ScoreMoments.of(torch.ones(60, 1), x, terms))
    found = problem.coefficients(problem.solve(0.02))
    pairs = found[:, : problem.moments.n_pairs].view(problem.shape)[:, 0]
    field = network(degree)
    first, second = field.get_buffer("ends")
    only = torch.zeros_like(pairs)
    only[first, :, second] = pairs[first, :, second]
    only[second, :, first] = pairs[second, :, first]
    own = found[:, problem.moments.n_pairs :]
    field.begin_at(pairs[first, :, second], own)
    losses = field.row_losses(Samples(x[None], draws(60, 2)[None], torch.zeros(1, 60, 0, dtype=torch.int64)))
    lines = torch.cat([only.flatten(1), own], dim=1)
    assert float(losses.mean()) == pytest.approx(problem.moments.loss(lines), abs=1e-4)


def test_no_small_step_lowers_the_penalised_loss():
    x = draws(200, 4)
    x[:, 1] += x[:, 0].square() / 2
    problem = EnergyProblem(ScoreMoments.of(torch.ones(200, 1), x, PairTerms(3)))
    lines = problem.solve(0.05)

    def objective(at: torch.Tensor) -> float:
        sizes = problem._sizes(at).sum() * 0.05
        return float((at * (torch.bmm(problem.gram, at[..., None])[..., 0] / 2 - problem.pull)).sum() + sizes)

    best = objective(lines)
    for seed in range(20):
        step = problem._symmetric(draws(lines.numel(), 1, seed).view_as(lines)) * 0.02
        step = step.view(problem.shape) * (1 - torch.eye(4))[:, None, None]
        assert objective(lines + step.reshape(lines.shape)) > best - 1e-4
    assert problem._sizes(problem.solve(1.01 * problem.largest_penalty())).max() == 0


def test_a_gaussian_graph_has_its_partial_correlations():
    rng = np.random.default_rng(0)
    precision = np.eye(5) + 0.4 * (np.eye(5, k=1) + np.eye(5, k=-1))
    X = rng.multivariate_normal(np.zeros(5), np.linalg.inv(precision), 3000)
    model = gf.ScoreCGM(degree=2, center="constant", **QUICK).fit(X, rng.normal(size=(3000, 1)))
    found = model.partial_correlations(np.zeros((1, 1)))[0]
    np.testing.assert_allclose(found, -0.4 * (np.eye(5, k=1) + np.eye(5, k=-1)), atol=0.12)


@pytest.fixture(scope="module")
def squares():
    """Node 1 is the square of node 0, node 3 that of node 2; without any covariance."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 5))
    X[:, 1] = X[:, 0] ** 2 + 0.5 * X[:, 1]
    X[:, 3] = X[:, 2] ** 2 + 0.5 * X[:, 3]
    Z = rng.normal(size=(600, 1))
    return X, Z, gf.ScoreCGM(center="constant", **QUICK).fit(X, Z)


def test_edges_that_no_line_finds(squares):
    X, Z, model = squares
    assert model.degree_ >= 3
    graph = model.predict_graph(Z[:1])[0]
    assert {tuple(pair) for pair in np.argwhere(np.triu(graph))} == {(0, 1), (2, 3)}
    assert model.edge_weights(Z)[:, [0, 2], [1, 3]].min() > 0.3
    # Of the nodes that are squares; from these, their roots have no mean but zero.
    fitted = model.predict(X, Z)
    for node in (1, 3):
        assert np.square(X[:, node] - fitted[:, node]).mean() < 0.5 * X[:, node].var()


def test_the_curve_of_a_square_is_one(squares):
    _, Z, model = squares
    curve = model.predict_effect(Z[:2], "x1", "x2")
    assert curve["sample"].value_counts().to_dict() == {0: 21, 1: 21}
    own = curve[curve["sample"] == 0]
    low, middle, high = own["effect"].iloc[[0, 10, 20]]
    assert min(low, high) > middle + 1
    assert own["source_value"].is_monotonic_increasing
    with pytest.raises(gf.ParameterError, match="'x9'"):
        model.predict_effect(Z[:1], "x9", "x2")


def test_a_degree_that_is_not_needed_is_not_taken():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    X[:, 1] += X[:, 0]
    assert gf.ScoreCGM(center="constant", **QUICK).fit(X, rng.normal(size=(400, 1))).degree_ == 2


@pytest.mark.slow
def test_means_that_move_with_z_are_no_edge_and_survive(tmp_path):
    """Nodes 0 and 1 both follow z and are otherwise independent."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (200, 1))
    X = rng.normal(size=(200, 3)) + [3, 3, 0] * Z
    leaky = gf.ScoreCGM(degree=2, center="constant", **QUICK).fit(X, Z)
    model = gf.ScoreCGM(degree=2, **QUICK).fit(X, Z)
    assert leaky.edge_weights(Z)[:, 0, 1].mean() > 0.4
    assert model.edge_weights(Z)[:, 0, 1].mean() < 0.2
    offsets = model.field_.at(Z).offsets
    np.testing.assert_allclose(offsets, [3, 3, 0] * Z, atol=0.6)
    # Graphs have the same bits in any batch; of means products with fewer rows may be rounded otherwise.
    np.testing.assert_allclose(model.field_.at(Z[5:6]).offsets, offsets[5:6], rtol=1e-12, atol=1e-12)
    again = gf.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(X, Z), model.predict(X, Z))


def test_pairs_that_only_move_are_found():
    """The term changes its sign with z, so that on average there is none."""
    x, z = draws(800, 4), draws(800, 1, seed=1)
    x[:, 1] += torch.sign(z[:, 0]) * (x[:, 0].square() - 1) / 2
    there = moving_pairs(-x, x, z, PairTerms(3))
    assert there[0, 1]
    assert int(there.sum()) <= 4


def test_too_many_nodes_are_refused_with_advice():
    with pytest.raises(gf.DataError, match=r"150 nodes .* but X has 160\. Use DNNCGM"):
        gf.ScoreCGM(**QUICK).fit(np.random.default_rng(0).normal(size=(40, 160)), np.zeros((40, 1)))


@pytest.mark.slow
def test_moving_squares_rank_far_above_what_lines_see():
    sim = gf.make_setting("S3", n_samples=2000, random_state=3)
    model = gf.ScoreCGM(degree=3, device="cpu", random_state=3).fit(sim.X, sim.Z)
    new = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    assert gf.metrics.auprc(model.edge_weights(new), sim.field.skeleton(new)).mean() > 0.7
