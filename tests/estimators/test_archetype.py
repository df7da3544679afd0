"""Archetypes: the convex problem against another solver, likelihood, samples, choices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal

import graphfield as gf
from conftest import small_data
from graphfield.exceptions import DataError, ParameterError
from graphfield.solvers.glasso import graphical_lasso_path
from graphfield.training.archetypes import coordinates, extreme_points
from graphfield.training.joint_precision import JointProblem, best_penalty, row_losses

SMALL = {"max_steps": 60, "hidden_size": 16, "device": "cpu", "random_state": 0}


def two_regimes(n: int, p: int = 6, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """A chain whose edges are positive for the young and negative for the old; all precisions."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, n)
    precisions = np.stack([np.eye(p) + s * 0.45 * (np.eye(p, k=1) + np.eye(p, k=-1)) for s in (-1, 1)])
    old = (age > 50).astype(int)
    roots = np.linalg.cholesky(np.linalg.inv(precisions))
    X = np.einsum("njk,nk->nj", roots[old], rng.normal(size=(n, p)))
    return pd.DataFrame(X, columns=[f"n{i}" for i in range(p)]), pd.DataFrame({"age": age}), precisions


@pytest.fixture(scope="module")
def regimes():
    return two_regimes(1500)


@pytest.fixture(scope="module")
def model(regimes):
    return gf.ArchetypeCGM(n_archetypes=2, **SMALL).fit(*regimes[:2])


@pytest.fixture(scope="module")
def few():
    """Enough for what holds however well archetypes are found."""
    X, Z, _ = two_regimes(300)
    return X, Z, gf.ArchetypeCGM(n_archetypes=2, **{**SMALL, "max_steps": 20}).fit(X, Z)


def standardised(X: np.ndarray) -> torch.Tensor:
    return torch.tensor((X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize("penalty", [0.02, 0.1, 0.3])
def test_one_archetype_is_the_graphical_lasso(penalty):
    x = standardised(small_data(200)[0].to_numpy())
    problem = JointProblem(torch.ones(len(x), 1, dtype=torch.float64), x)
    found = problem.matrices(problem.solve(penalty, problem.start()))[0].numpy()
    expected = graphical_lasso_path((x.T @ x / len(x)).numpy(), [penalty])[0]
    np.testing.assert_allclose(found, expected, atol=5e-3)
    assert ((found == 0) == (expected == 0)).all()


def test_the_path_begins_where_the_last_edge_goes():
    x = standardised(small_data(200)[0].to_numpy())
    problem = JointProblem(torch.ones(len(x), 1, dtype=torch.float64), x)
    largest = problem.largest_penalty(problem.start())
    for factor, has_edges in ((1.01, False), (0.8, True)):
        found = problem.solve(factor * largest, problem.start()) * problem.off_diagonal
        assert bool((found != 0).any()) == has_edges


def test_nothing_near_the_solution_is_better():
    rng = np.random.default_rng(1)
    x = standardised(small_data(300, seed=3)[0].to_numpy())
    shares = torch.as_tensor(rng.dirichlet([0.5, 0.5, 0.5], len(x)))
    problem = JointProblem(shares, x)
    best = problem.solve(0.05, problem.start())
    least = problem._at(best)[0] + problem._penalty(best, 0.05)
    for scale in (1e-3, 1e-2, 1e-1):
        step = torch.as_tensor(rng.normal(size=best.shape) * scale)
        other = best + step + step.transpose(1, 2)
        found = problem._value_and_slope(other)
        assert found is None or found[0] + problem._penalty(other, 0.05) > least - 1e-3


def test_known_shares_give_back_the_archetypes():
    X, Z, truth = two_regimes(20_000, p=5)
    old = (Z["age"] > 50).to_numpy()
    shares = torch.as_tensor(np.stack([~old, old], axis=1).astype(float))
    x = torch.tensor(X.to_numpy())
    penalty, found = best_penalty(JointProblem(shares[:16_000], x[:16_000]), (shares[16_000:], x[16_000:]))
    np.testing.assert_allclose(found.numpy(), truth, atol=0.06)
    assert 0 < penalty < 0.05


def test_archetypes_are_put_at_the_extremes_of_what_rows_have():
    """Shares in the middle of the simplex are mixtures of their own extremes, exactly."""
    rng = np.random.default_rng(0)
    points = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.3, 0.2, 0.5]])
    inside = rng.dirichlet([0.3, 0.3, 0.3], 4000)
    inside[:30] = np.eye(3)[rng.integers(3, size=30)]
    shares = torch.as_tensor(inside @ points)
    found = extreme_points(shares)
    nearest = torch.cdist(torch.as_tensor(points), found).min(dim=1).values
    assert float(nearest.max()) < 0.05
    assert len(found) == 3
    exact = coordinates(shares, torch.as_tensor(points))
    np.testing.assert_allclose(exact.numpy(), inside, atol=1e-6)


def test_points_on_a_line_are_two_archetypes():
    along = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None]
    ends = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], dtype=torch.float64)
    shares = along * ends[0] + (1 - along) * ends[1]
    assert len(extreme_points(shares)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("share", [1e-7, 1.0])
def test_collinear_nodes_leave_archetypes_positive_definite(share):
    X = np.random.default_rng(0).normal(size=(300, 5))
    X[:, 4] = X[:, 3] + share * 1e-7 * X[:, 0]
    Z = np.linspace(0, 1, 300)[:, None]
    model = gf.ArchetypeCGM(n_archetypes=2, **SMALL).fit(X, Z)
    assert np.linalg.eigvalsh(model.archetypes_).min() > 0
    assert np.isfinite(model.sample(Z, random_state=0)).all()


def test_a_step_out_of_the_positive_definite_matrices_is_halved():
    x = standardised(small_data(300)[0].to_numpy())
    problem = JointProblem(torch.full((len(x), 2), 0.5, dtype=torch.float64), x)
    reference = problem.matrices(problem.solve(0.05, problem.start()))
    eager = JointProblem(torch.full((len(x), 2), 0.5, dtype=torch.float64), x)
    eager.step = 1e4
    found = eager.matrices(eager.solve(0.05, eager.start()))
    torch.testing.assert_close(found.mean(dim=0), reference.mean(dim=0), atol=2e-2, rtol=0)


@pytest.mark.slow
def test_the_regimes_are_found(regimes, model):
    X, _, truth = regimes
    assert model.n_archetypes_ == 2
    at = pd.DataFrame({"age": [30.0, 70.0]})
    expected = [-p / np.sqrt(np.outer(p.diagonal(), p.diagonal())) * (1 - np.eye(len(p))) for p in truth]
    # Forty steps: the last digits, and with them up to .1, depend on the number of threads.
    np.testing.assert_allclose(model.partial_correlations(at), expected, atol=0.2)
    shares = model.shares(at)
    assert list(shares.columns) == ["A", "B"]
    assert shares.to_numpy().max(axis=1).min() > 0.8
    assert len(X) == 1500


def test_precision_is_the_mixture_of_archetypes(few):
    Z, model = few[1].iloc[:40], few[2]
    mixed = np.einsum("nr,rjk->njk", model.shares(Z).to_numpy(), model.archetypes_)
    np.testing.assert_allclose(model.predict_precision(Z), mixed, rtol=1e-4, atol=1e-6)
    assert np.allclose(model.shares(Z).sum(axis=1), 1)
    assert (np.diff(model.mean_shares_) <= 0).all()


def test_the_likelihood_is_that_of_the_normal_distribution(few):
    X, Z, model = few[0].iloc[:20], few[1].iloc[:20], few[2]
    means = model.field_.at(Z).offsets
    covariances = np.linalg.inv(np.einsum("nr,rjk->njk", model.shares(Z).to_numpy(), model.archetypes_))
    expected = [
        multivariate_normal(mean, cov).logpdf(x)
        for mean, cov, x in zip(means, covariances, X.to_numpy(), strict=True)
    ]
    np.testing.assert_allclose(model.log_likelihood(X, Z), expected, rtol=1e-8)


def test_samples_have_the_moments_of_the_model(few):
    model = few[2]
    Z = pd.DataFrame({"age": np.full(40_000, 30.0)})
    drawn = model.sample(Z, random_state=0)
    precision = np.einsum("r,rjk->jk", model.shares(Z[:1]).to_numpy()[0], model.archetypes_)
    np.testing.assert_allclose(np.cov(drawn.T), np.linalg.inv(precision), atol=0.06)
    np.testing.assert_allclose(drawn.mean(axis=0), model.field_.at(Z[:1]).offsets[0], atol=0.03)
    assert (model.sample(Z[:5], random_state=1) == model.sample(Z[:5], random_state=1)).all()
    assert (model.sample(Z[:5], random_state=1) != model.sample(Z[:5], random_state=2)).all()


@pytest.mark.slow
def test_units_of_the_nodes_do_not_matter(regimes, model):
    X, Z, _ = regimes
    factors = np.geomspace(0.01, 100, X.shape[1])
    scaled = gf.ArchetypeCGM(n_archetypes=2, **SMALL).fit(X * factors + 5, Z)
    np.testing.assert_allclose(
        scaled.partial_correlations(Z[:5]), model.partial_correlations(Z[:5]), atol=5e-3
    )


@pytest.mark.slow
def test_one_archetype_where_covariates_do_not_help():
    X = np.random.default_rng(0).normal(size=(400, 5))
    X[:, 1] += X[:, 0]
    Z = np.random.default_rng(1).normal(size=(400, 2))
    model = gf.ArchetypeCGM(**{**SMALL, "max_steps": 20}).fit(X, Z)
    assert model.n_archetypes_ == 1
    assert model.held_out_["archetypes"].tolist()[0] == 1
    assert np.ptp(model.partial_correlations(Z), axis=0).max() == 0


@pytest.mark.slow
def test_more_than_one_where_they_do(regimes):
    found = gf.ArchetypeCGM(**SMALL).fit(*regimes[:2])
    assert found.n_archetypes_ > 1
    assert found.held_out_["behind"].iloc[0] > 5 * found.held_out_["standard_error"].iloc[0]


@pytest.mark.slow
def test_the_network_of_a_fitted_model_can_be_used(regimes):
    X, Z, _ = regimes
    network = gf.DNNCGM(rank=2, **SMALL).fit(X, Z)
    before = network.predict_coef(Z[:3])
    found = gf.ArchetypeCGM(**SMALL).fit(X, Z, start=network)
    assert found.n_archetypes_ == 2
    assert (network.predict_coef(Z[:3]) == before).all()
    assert found.network_ is not network
    assert (network.predict_coef(Z[:3]) == found.network_.predict_coef(Z[:3])).all()


def test_a_start_that_does_not_fit_is_refused(few):
    X, Z, _ = few
    full = gf.DNNCGM(**{**SMALL, "rank": None, "max_steps": 5}).fit(X, Z)
    with pytest.raises(ParameterError, match="mixes patterns"):
        gf.ArchetypeCGM(**SMALL).fit(X, Z, start=full)
    with pytest.raises(ParameterError, match="fitted DNNCGM"):
        gf.ArchetypeCGM(**SMALL).fit(X, Z, start=gf.DNNCGM())
    small = gf.DNNCGM(**{**SMALL, "rank": 2, "max_steps": 2}).fit(X, Z)
    with pytest.raises(DataError, match="n0"):
        gf.ArchetypeCGM(**SMALL).fit(X.rename(columns={"n0": "other"}), Z, start=small)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_archetypes": 0},
        {"n_archetypes": 500},
        {"n_archetypes": "many"},
        {"n_archetypes": 2.5},
        {"penalty": -1},
        {"penalty": "none"},
        {"center": "mean"},
        {"dropout": 1.0},
        {"validation_fraction": 0.0},
        {"hidden_size": 0},
        {"max_steps": 0},
    ],
)
def test_wrong_parameters_are_named(regimes, wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        gf.ArchetypeCGM(**{**SMALL, **wrong}).fit(*regimes[:2])


def test_row_losses_do_not_depend_on_blocks():
    rng = np.random.default_rng(0)
    matrices = (
        torch.eye(3, dtype=torch.float64)[None].repeat(2, 1, 1) * torch.tensor([1.0, 2.0])[:, None, None]
    )
    shares = torch.as_tensor(rng.dirichlet([1, 1], 1300))
    x = torch.as_tensor(rng.normal(size=(1300, 3)))
    factor = (shares @ torch.tensor([1.0, 2.0], dtype=torch.float64))[:, None]
    expected = (factor * x.square()).sum(dim=1) - 3 * factor[:, 0].log()
    torch.testing.assert_close(row_losses(matrices, shares, x), expected)


def test_the_picture_shows_archetypes_and_shares(few):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.pyplot import close

    from graphfield.plots import plot_archetypes

    X, Z, model = few
    *heatmaps, below = plot_archetypes(model, Z)
    expected = [f"{name}: {100 * share:.0f} %" for name, share in model.shares(Z).mean().items()]
    assert [axis.get_title() for axis in heatmaps] == expected
    assert below.get_xlabel() == "age"
    # The lowest band ends where the share of A does.
    area = below.collections[0].get_paths()[0].vertices
    assert area[:, 1].max() == pytest.approx(1.0, abs=0.1)
    with pytest.raises(ParameterError, match="covariate"):
        plot_archetypes(model, Z, "weight")
    with pytest.raises(ParameterError, match="most"):
        plot_archetypes(model, Z, most=0)
    with pytest.raises(ParameterError, match="RegGMM"):
        plot_archetypes(gf.RegGMM().fit(X, Z), Z)
    close(below.figure)


@pytest.mark.slow
def test_missing_values_are_spoken_of_once_and_the_network_holds_out_the_same_rows():
    """Its network is the one that DNNCGM gives for the same rows and groups, whatever the labels are."""
    X, Z = small_data(150)
    X.iloc[3, 0] = np.nan
    Z["year"] = 2020
    groups = np.arange(150) // 6  # 25 labels: sorted as text, 10 comes before 2
    params = {**SMALL, "max_steps": 2, "missing": "drop"}
    with pytest.warns(gf.DataWarning) as caught:
        model = gf.ArchetypeCGM(n_archetypes=2, penalty=0.1, **params).fit(X, Z, groups=groups)
    assert sorted(str(one.message).split()[0] for one in caught) == ["Covariate", "Dropped"]
    alone = gf.DNNCGM(rank=4, validation_fraction=model.validation_fraction, **params)
    with pytest.warns(gf.DataWarning):
        alone.fit(X, Z, groups=groups)
    np.testing.assert_array_equal(model.network_.predict_coef(Z), alone.predict_coef(Z))


def test_covariates_without_names_stay_without():
    X, Z = small_data(100)
    params = {**SMALL, "max_steps": 2}
    model = gf.ArchetypeCGM(n_archetypes=2, penalty=0.1, **params).fit(X.to_numpy(), Z[["age"]].to_numpy())
    assert model.covariate_names_ == ["z1"]
    assert model.predict_coef(Z[["age"]].iloc[:2]).shape == (2, 6, 6)
