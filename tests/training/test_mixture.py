"""Mixtures of patterns: the convex half, the gate, and both in turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso

import graphfield as gf
from conftest import SMALL, small_data
from engine_cases import FIELD, TRAINING, generator, samples
from graphfield.data.splits import cross_parts
from graphfield.nn.fields import Samples
from graphfield.nn.gates import GateField, mixed_field, mixture_table, split_gate
from graphfield.nn.pack import Pack, member_arrays
from graphfield.training import mixture as mixture_module
from graphfield.training import sparse_patterns
from graphfield.training.finished_mixture import LastStep
from graphfield.training.mixture import MixtureFits, MixtureTask, shares_of
from graphfield.training.mixture_state import Mixture
from graphfield.training.penalty_path import best_penalty
from graphfield.training.plan import Seeds
from graphfield.training.sparse_patterns import ALPHA, Moments, PatternProblem
from graphfield.training.supported_variation import Copy, support_of, supported_share

CONFIG = replace(FIELD, rank=3)
AUTO = {**SMALL, "rank": "auto"}


def shares_and_x(n: int = 400, rank: int = 3, p: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    g = generator()
    shares = torch.softmax(2 * torch.randn(n, rank, generator=g), dim=1)
    x = torch.randn(n, p, generator=g)
    x[:, 1] += (shares[:, 0] - shares[:, 1]) * x[:, 0]
    return shares, x


def objective(patterns, shares, x, penalty, alpha):
    """As documented, straight from the formula."""
    fitted = torch.einsum("nr,rjk,nk->nj", shares, patterns, x)
    units = torch.einsum("nr,nk->nrk", shares, x).square().mean(dim=0).sqrt()
    scaled = patterns * units[:, None, :]
    sizes = alpha * scaled.abs().sum(dim=0) + (1 - alpha) * len(patterns) ** 0.5 * scaled.norm(dim=0)
    return float((x - fitted).square().mean() + penalty * sizes.sum() / x.shape[1])


def test_moments_add_up_and_give_the_error():
    shares, x = shares_and_x()
    whole = Moments.of(shares, x)
    parts = Moments.of(shares[:150], x[:150]) + Moments.of(shares[150:], x[150:])
    torch.testing.assert_close(parts.gram, whole.gram, rtol=1e-4, atol=1e-3)
    left = whole.without(Moments.of(shares[:150], x[:150]))
    torch.testing.assert_close(left.cross, Moments.of(shares[150:], x[150:]).cross, rtol=1e-3, atol=1e-3)
    patterns = torch.randn(3, 5, 5, generator=generator())
    fitted = torch.einsum("nr,rjk,nk->nj", shares, patterns, x)
    assert whole.error(patterns) == pytest.approx(float((x - fitted).square().mean()), rel=1e-4)


def test_moments_are_those_of_the_products():
    """Against the products themselves, row by row; in blocks of a few rows."""
    shares, x = shares_and_x(50)
    features = torch.einsum("nr,nk->nrk", shares, x).flatten(1)
    for rows in (1_000, 7):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sparse_patterns, "_BLOCK_ENTRIES", 25 * rows)  # 10 pairs of shares, 15 of nodes
            found = Moments.of(shares, x)
        torch.testing.assert_close(found.gram, features.T @ features, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found.cross, x.T @ features, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found.power, x.square().sum(dim=0), rtol=1e-4, atol=1e-4)
        assert found.count == 50


def test_blocks_of_responses_solve_what_all_of_them_do(monkeypatch):
    problem = PatternProblem(Moments.of(*shares_and_x()))
    whole = problem.solve(0.08, tolerance=1e-6)
    monkeypatch.setattr(sparse_patterns, "_LEAST_RESPONSES", 1)
    monkeypatch.setattr(sparse_patterns, "_BLOCK_WORK", 500)
    assert len(problem.blocks()) == 2
    torch.testing.assert_close(problem.solve(0.08, tolerance=1e-6), whole, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_patterns_minimise_the_documented_objective(alpha):
    shares, x = shares_and_x()
    penalty = 0.08
    found = PatternProblem(Moments.of(shares, x), alpha).solve(penalty, tolerance=1e-6)
    assert (torch.diagonal(found, dim1=1, dim2=2) == 0).all()
    best = objective(found, shares, x, penalty, alpha)
    g = generator(1)
    for size in (0.3, 0.03, 0.003):
        for _ in range(20):
            change = size * torch.randn(found.shape, generator=g) * (found != 0)
            assert objective(found + change, shares, x, penalty, alpha) >= best - 1e-6
            other = size * torch.randn(found.shape, generator=g) * (1 - torch.eye(5))
            assert objective(found + other, shares, x, penalty, alpha) >= best - 1e-6


def test_one_pattern_is_scikit_learns_lasso():
    _, x = shares_and_x()
    x = x.double()  # what single precision can reach differs between machines
    x = (x - x.mean(dim=0)) / x.std(dim=0, correction=0)
    found = PatternProblem(Moments.of(x.new_ones(len(x), 1), x), 1.0).solve(0.1, tolerance=1e-9)[0]
    for j in range(5):
        others = [k for k in range(5) if k != j]
        lasso = Lasso(alpha=0.05, fit_intercept=False, tol=1e-8, random_state=0)
        lasso.fit(x[:, others].numpy(), x[:, j].numpy())
        np.testing.assert_allclose(found[j, others], lasso.coef_, atol=1e-6)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_copies_and_opposites_do_not_hide_the_curvature(sign):
    x = torch.randn(60, 1, generator=generator())
    x = torch.cat([x, sign * x], dim=1)
    problem = PatternProblem(Moments.of(torch.full((60, 2), 0.5), x))
    assert problem.curvature == pytest.approx(float(torch.linalg.eigvalsh(problem.gram)[-1]), rel=0.03)
    assert problem.curvature >= float(torch.linalg.eigvalsh(problem.gram)[-1])


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60])
def test_a_node_and_its_opposite(n):
    """The sign of a node is the sign of its edges, and nothing else."""
    rng = np.random.default_rng(n)
    x, Z = rng.normal(size=n), rng.uniform(size=(n, 1))
    same, opposite = (gf.DNNCGM(**SMALL).fit(np.c_[x, sign * x], Z) for sign in (1, -1))
    found = opposite.partial_correlations(Z)
    assert found[:, 0, 1].max() < -0.9
    # Next to no error is left, so rounding, which differs by machine, has a say in the choice of the penalty.
    np.testing.assert_allclose(found, -same.partial_correlations(Z), atol=0.01)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_the_largest_penalty_is_where_the_first_edge_appears(alpha):
    problem = PatternProblem(Moments.of(*shares_and_x()), alpha)
    top = problem.largest_penalty()
    assert not problem.solve(1.001 * top).any()
    assert problem.solve(0.97 * top).any()


def test_the_path_finds_the_best_of_a_fine_grid():
    shares, x = shares_and_x(600)
    problem, held_out = PatternProblem(Moments.of(shares[:400], x[:400])), Moments.of(shares[400:], x[400:])
    top = problem.largest_penalty()
    grid = [held_out.error(problem.solve(top * 0.9**k)) for k in range(40)]
    for known in (None, 0.5 * top, 0.01 * top):
        penalty, (patterns,) = best_penalty([(problem, held_out)], known)
        assert held_out.error(patterns) <= min(grid) * 1.002
        assert 0 < penalty <= top


@pytest.mark.parametrize("has_mkl", [True, False])
@pytest.mark.parametrize("rank", [3, 20])
def test_the_table_holds_the_error_of_every_mixture(rank, has_mkl, monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    shares, x = shares_and_x(50, rank)
    patterns = torch.randn(rank, 5, 5, generator=generator())
    gate = GateField(replace(CONFIG, n_nodes=5, rank=rank), generator())
    errors = gate._errors(shares[None], mixture_table(patterns, x)[None])[0]
    fitted = torch.einsum("nr,rjk,nk->nj", shares, patterns, x)
    torch.testing.assert_close(errors, (x - fitted).square().mean(dim=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("has_mkl", [True, False])
@pytest.mark.parametrize("rank", [3, 20])
@pytest.mark.parametrize("members", [1, 2])
def test_the_written_out_step_of_a_gate_is_autograds(members, rank, has_mkl, monkeypatch):
    """Also the forms of other processors and other numbers of patterns."""
    from graphfield.nn.pack import packed

    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    data = samples(40)
    table = mixture_table(torch.randn(rank, 6, 6, generator=generator()), data.x)
    batch = Samples(table[None], data.numeric[None], data.codes[None])
    config = replace(CONFIG, rank=rank)
    gate = packed([GateField(config, generator(i)) for i in range(members)]).train()
    pack = Pack(gate)
    losses = gate.backward(batch, None)
    written = pack.gradient.clone()
    gate.train()
    other = super(GateField, gate).backward(batch, None)
    torch.testing.assert_close(losses, other)
    torch.testing.assert_close(written, pack.gradient, rtol=1e-4, atol=1e-6)


def test_splitting_keeps_the_sum_of_the_shares_near():
    data = samples(200)
    gate = GateField(CONFIG, generator()).eval()
    gate.spread(data)
    before, after = shares_of(gate, data), shares_of(split_gate(gate, generator(1)), data)
    assert after.shape == (200, 6)
    assert float((after[:, :3] - after[:, 3:]).abs().mean()) > 0.02, "the halves must differ"
    assert float((after[:, :3] + after[:, 3:] - before).abs().mean()) < 0.25


def test_a_mixture_as_a_field():
    data = samples(30)
    gate = GateField(CONFIG, generator()).eval()
    patterns = torch.randn(3, 6, 6, generator=generator()) * (1 - torch.eye(6))
    coef = mixed_field(gate, patterns)(data.numeric[None], data.codes[None])[0]
    torch.testing.assert_close(coef, torch.einsum("nr,rjk->njk", shares_of(gate, data), patterns))


@pytest.mark.slow
@torch.no_grad()
def test_rounds_recover_two_regimes():
    """The sign of one edge flips with z; a static model sees none of it."""
    g = generator()
    n = 900
    z = torch.rand(n, 1, generator=g) * 2 - 1
    x = torch.randn(n, 4, generator=g)
    x[:, 1] += 0.8 * torch.sign(z[:, 0]) * x[:, 0]
    data = Samples(x, z, torch.zeros(n, 0, dtype=torch.int64))
    config = replace(FIELD, n_nodes=4, covariates=replace(FIELD.covariates, n_numeric=1, level_shares=()))
    parts = tuple(torch.as_tensor(part) for part in cross_parts(np.arange(800), None))
    task = MixtureTask(parts, torch.arange(800, n), Seeds(1, 2, 3), None)
    training = replace(TRAINING, batch_size=200, max_steps=200, evaluate_every=20, patience=20)
    (standing,) = MixtureFits(config, data, [task], training, (2,)).run()
    coef = (
        LastStep(standing.chosen, config, data, task, training).finish().field(z[None], data.codes[None])[0]
    )
    right = coef[z[:, 0] > 0.3][:, 1, 0].mean(), coef[z[:, 0] < -0.3][:, 1, 0].mean()
    assert right[0] > 0.6
    assert right[1] < -0.6
    assert float(coef[:, 2:].abs().max()) < 0.05, "no other edge"


@torch.no_grad()
@pytest.mark.parametrize("truth", [0.0, 0.4, 1.5])
def test_held_out_rows_decide_how_much_of_the_variation_is_kept(truth):
    """Held-out rows that vary ``truth`` times as much about the average graph as the mixture says."""
    data = samples(4_000, seed=5)
    gate = GateField(CONFIG, generator()).eval()
    gate.spread(data)
    patterns = 0.5 * torch.randn(3, 6, 6, generator=generator()) * (1 - torch.eye(6))
    shares, task = (
        shares_of(gate, data),
        MixtureTask(tuple(torch.arange(2_000).split(1_000)), torch.arange(2_000, 4_000), Seeds(1, 2, 3), 0.0),
    )
    mean = shares[task.rows].mean(dim=0)
    average = torch.tensordot(mean, patterns, dims=1)
    beta = average + truth * (torch.tensordot(shares, patterns, dims=1) - average)
    # x_j given all other nodes cannot be drawn for any beta, so one node is put on the others' values.
    x = torch.randn(4_000, 6, generator=generator(7))
    x[:, 0] = torch.einsum("nk,nk->n", beta[:, 0, 1:], x[:, 1:]) + 0.1 * x[:, 0]
    patterns[:, 1:] = 0
    data = replace(data, x=x)
    mixture = Mixture(dict(member_arrays(gate)), patterns, 3, 0.0, 0.0, 0)
    done = LastStep(mixture, FIELD, data, task, TRAINING).finish()
    assert done.kept_share == pytest.approx(min(truth, 1.0), abs=0.03)
    z = (data.numeric[None], data.codes[None])
    whole = mixed_field(gate, patterns)(*z)[0]
    about = torch.tensordot(mean, patterns, dims=1)
    torch.testing.assert_close(
        done.judged(*z)[0], about + done.kept_share * (whole - about), rtol=1e-4, atol=1e-5
    )


def moving_rows(truth: float, seed: int, n: int = 200):
    """A mixture of one response, its average, and rows that vary ``truth`` times as much as it says."""
    data = samples(n, seed=seed)
    gate = GateField(CONFIG, generator()).eval()
    gate.spread(data)
    patterns = 0.5 * torch.randn(3, 6, 6, generator=generator()) * (1 - torch.eye(6))
    patterns[:, 1:] = 0
    shares = shares_of(gate, data)
    mean = shares.mean(dim=0)
    average = torch.tensordot(mean, patterns, dims=1)
    beta = average + truth * (torch.tensordot(shares, patterns, dims=1) - average)
    x = torch.randn(n, 6, generator=generator(seed))
    x[:, 0] += torch.einsum("nk,nk->n", beta[:, 0, 1:], x[:, 1:])
    return mixed_field(gate, patterns), average, replace(data, x=x), torch.arange(n)


def test_movement_that_is_within_chance_is_not_kept():
    kept = {}
    for truth in (0.0, 2.0):
        cases = (moving_rows(truth, seed) for seed in range(7))
        kept[truth] = [supported_share(support_of(*case), torch.arange(200)) for case in cases]
    assert np.median(kept[0.0]) == 0
    assert np.median(kept[2.0]) > 0.8


def test_an_average_that_is_too_weak_is_brought_to_the_one_graph():
    """The movement stays as it is; an average that is right stays where it is."""
    steps = {}
    for weaker in (0.5, 1.0):
        _, average, data, rows = moving_rows(1.0, seed=1, n=3_000)
        gate = GateField(CONFIG, generator()).eval()
        gate.spread(samples(3_000, seed=1))
        patterns = 0.5 * torch.randn(3, 6, 6, generator=generator()) * (1 - torch.eye(6))
        patterns[:, 1:] = 0
        mean = shares_of(gate, data).mean(dim=0)
        copy = Copy(gate, patterns + (weaker - 1) * average, mean, data, rows)
        nearer = copy.brought_to(average, 1.0)
        torch.testing.assert_close(nearer.average, average)
        torch.testing.assert_close(nearer.patterns - nearer.average, copy.patterns - copy.average)
        off = average + 0.3 * (1 - torch.eye(6))  # what is no better is not gone to
        still = average if weaker < 1 else off
        steps[weaker] = supported_share(copy.support_of_one(still, 1.0), rows, 1.0)
    assert steps[0.5] > 0.7
    assert steps[1.0] < 0.2


def test_copies_of_rows_in_one_group_are_no_further_evidence():
    support, rows = support_of(*moving_rows(1.0, seed=1)), torch.arange(200)
    copies = support.repeat(1, 4)
    once, grouped = supported_share(support, rows), supported_share(copies, rows.repeat(4))
    alone = supported_share(copies, torch.arange(800))
    assert 0 < once == pytest.approx(grouped, rel=1e-4)
    assert alone > once


def test_relaxed_patterns_are_nearer_to_the_truth_and_let_nothing_new_in():
    """One strong edge among noise: at the same penalty it loses less, and what was zero stays zero."""
    shares = torch.softmax(torch.randn(400, 3, generator=generator()), dim=1)
    x = torch.randn(400, 8, generator=generator(1))
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    problem = PatternProblem(Moments.of(shares, x))
    patterns = problem.solve(0.25, tolerance=1e-5)
    relaxed = problem.relaxed(patterns, 0.06).solve(0.25, patterns, tolerance=1e-5)
    strong = [
        float(torch.tensordot(shares.mean(dim=0), found, dims=1)[1, 0]) for found in (patterns, relaxed)
    ]
    assert 0.3 < strong[0] < 0.7
    assert strong[0] + 0.1 < strong[1] < 0.85
    assert not relaxed[patterns == 0].any()


def test_a_relaxed_problem_without_patterns_is_the_problem_itself():
    problem = PatternProblem(Moments.of(*shares_and_x()))
    relaxed = problem.relaxed(torch.zeros(3, 5, 5), 0.02)
    torch.testing.assert_close(relaxed.solve(0.08), problem.solve(0.08))


@torch.no_grad()
@pytest.mark.parametrize("penalty", [None, 0.2])
def test_strong_edges_are_relaxed_where_the_penalty_was_chosen(penalty):
    """A penalty that the user gives means what it says."""
    data = samples(900, seed=3)
    x = torch.randn(900, 6, generator=generator(4))
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    data = replace(data, x=x)
    gate = GateField(CONFIG, generator()).eval()
    parts = tuple(torch.arange(800).split(270))
    shares = shares_of(gate, data)
    patterns = PatternProblem(Moments.of(shares[:800], x[:800])).solve(0.2)
    mixture = Mixture(dict(member_arrays(gate)), patterns, 3, 0.2, 0.0, 0)
    task = MixtureTask(parts, torch.arange(800, 900), Seeds(1, 2, 3), penalty)
    field = LastStep(mixture, FIELD, data, task, TRAINING).finish().field
    edge = float(field(data.numeric[None], data.codes[None])[0, :, 1, 0].mean())
    assert (edge > 0.72) == (penalty is None)


def test_the_table_of_a_row_comes_from_patterns_found_without_it(monkeypatch):
    data = samples(300)
    parts = tuple(torch.arange(270).split(90))
    task = MixtureTask(parts, torch.arange(270, 300), Seeds(1, 2, 3), 0.05)
    calls = []

    def spy(patterns, x):
        calls.append((patterns, x))
        return mixture_table(patterns, x)

    monkeypatch.setattr(mixture_module, "mixture_table", spy)
    (standing,) = MixtureFits(replace(FIELD), data, [task], replace(TRAINING, max_steps=20), (2,)).run()
    gate = mixture_module.gate_of(_first_gate(data, task), 2, FIELD, data.x.device)
    shares = shares_of(gate, data)
    # Cores share the work, so the first tables come in any order.
    (whole,), *cross = (
        [patterns for patterns, x in calls[:4] if torch.equal(x, data.x[rows])]
        for rows in (task.held_out, *parts)
    )
    penalty = 0.05 * 1.5**0.5  # two thirds of the rows
    for part, (patterns,) in zip(parts, cross, strict=True):
        others = torch.cat([other for other in parts if other is not part])
        problem = PatternProblem(Moments.of(shares[others], data.x[others]))
        best, used, from_all = (
            objective(one, shares[others], data.x[others], penalty, ALPHA)
            for one in (problem.solve(penalty, tolerance=1e-6), patterns, whole)
        )
        assert used - best < 0.2 * (from_all - best)
    assert standing.chosen is not None


def _first_gate(data, task):
    gate = GateField(replace(FIELD, rank=2), torch.Generator().manual_seed(task.seeds.weights))
    gate.spread(data)
    return {name: value.detach() for name, value in member_arrays(gate).items()}


@pytest.mark.slow
def test_more_patterns_are_kept_only_where_they_help():
    """One regime: more patterns cannot help, and the first number stays. Four: they must."""
    for regimes, kept in ((1, 1), (4, 4)):
        g = generator()
        z = torch.rand(2_000, 1, generator=g) * regimes
        x = torch.randn(2_000, 6, generator=g)
        for k in range(regimes):
            inside = (z[:, 0] >= k) & (z[:, 0] < k + 1)
            x[inside, k + 1] += x[inside, 0] * (1 if k % 2 else -1)
        data = Samples(x, z / regimes, torch.zeros(2_000, 0, dtype=torch.int64))
        shape = replace(FIELD.covariates, n_numeric=1, level_shares=())
        config = replace(FIELD, covariates=shape, hidden_size=16, dropout=0.0)
        parts = tuple(torch.as_tensor(part) for part in cross_parts(np.arange(1_600), None))
        task = MixtureTask(parts, torch.arange(1_600, 2_000), Seeds(1, 2, 3), None)
        training = replace(TRAINING, batch_size=400, max_steps=200, evaluate_every=20, patience=20)
        (standing,) = MixtureFits(config, data, [task], training, (1, 2, 4)).run()
        assert standing.chosen.rank == kept


def test_parts_keep_groups_and_copies_together():
    rows = np.repeat(np.arange(0, 40, 2), 2)
    groups = np.arange(40) // 8
    parts = cross_parts(rows, groups)
    assert sorted(np.concatenate(parts)) == sorted(rows)
    sides = [set(groups[part]) for part in parts]
    assert sum(len(side) for side in sides) == 5, "each group on one side"
    parts = cross_parts(rows, None)
    assert not (set(parts[0]) & set(parts[1]))
    assert len(cross_parts(np.array([3, 4]), None)) == 2


@pytest.mark.slow
def test_the_number_of_patterns_and_the_penalty_are_chosen():
    X, Z = small_data(300)
    model = gf.DNNCGM(**AUTO).fit(X, Z, additive=False)
    assert model.rank_ in mixture_module.RANKS
    assert list(model.training_.columns) == ["step", "rank", "penalty", "train_loss", "held_out_loss"]
    own = model.training_[model.training_["rank"] == model.rank_]
    row = own.loc[own.held_out_loss.idxmin()]
    assert model.penalty_ == row.penalty
    fixed = gf.DNNCGM(**SMALL, penalty=0.3).fit(X, Z)
    assert (fixed.rank_, fixed.penalty_) == (2, 0.3)
    assert set(fixed.training_.penalty) == {0.3}
    coef = fixed.predict_coef(Z)
    assert (coef == 0).mean() > 0.6, "most edges are exactly zero"
    there = (coef != 0) & (coef != 0).transpose(0, 2, 1)
    np.testing.assert_array_equal(fixed.predict_graph(Z, threshold=None), there)
    assert len(fixed.edges(Z, threshold=None)) == there.sum() // 2


@pytest.mark.slow
def test_no_held_out_rows_leave_the_choice_to_cross_fitting():
    X, Z = small_data(300)
    model = gf.DNNCGM(**SMALL, validation_fraction=0).fit(X, Z)
    assert model.training_.held_out_loss.isna().all()
    assert 0 < model.penalty_ < 1
    # Training rows cannot tell whether more patterns help.
    more = gf.DNNCGM(**{**SMALL, "rank": "auto", "max_steps": 5}, validation_fraction=0)
    assert more.fit(*small_data(900)).rank_ == 8


@pytest.mark.parametrize(
    "changes", [{"sharing": "node"}, {"network": "linear"}, {"loss": "huber"}, {"rank": None}], ids=str
)
def test_where_patterns_do_not_apply_a_full_head_is_trained(changes):
    X, Z = small_data()
    model = gf.DNNCGM(**{**AUTO, **changes}).fit(X, Z)
    assert model.rank_ is None
    assert "learning_rate" in model.training_
    if "rank" not in changes:
        with pytest.raises(gf.ParameterError, match="rank=4 mixes patterns"):
            gf.DNNCGM(**{**SMALL, **changes, "rank": 4}).fit(X, Z)


@pytest.mark.parametrize(
    ("name", "value"), [("rank", "all"), ("rank", 0), ("penalty", "none"), ("penalty", -1)]
)
def test_wrong_choices_are_named(name, value):
    with pytest.raises(gf.ParameterError, match=name):
        gf.DNNCGM(**{**SMALL, name: value}).fit(*small_data())


@pytest.mark.parametrize(
    "after",
    [pytest.param("first", marks=pytest.mark.slow), "middle", pytest.param("last", marks=pytest.mark.slow)],
)
def test_a_killed_mixture_resumes_to_the_same_bits(tmp_path, monkeypatch, after):
    """Killed after one of its snapshots, of which the rows decide how many there are."""
    from graphfield.training.checkpoint import StageFile

    X, Z = small_data(200)
    params = {**AUTO, "center": "constant"}
    whole = gf.DNNCGM(**params).fit(X, Z)
    saved, count, deadly = StageFile.save, [], 0

    def save_then_die(self, snapshot):
        saved(self, snapshot)
        count.append(1)
        if len(count) == deadly:
            raise KeyboardInterrupt

    monkeypatch.setattr(StageFile, "save", save_then_die)
    gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "counted")
    assert len(count) >= 3
    deadly = {"first": 1, "middle": len(count) // 2 + 1, "last": len(count)}[after]
    count.clear()
    with pytest.raises(KeyboardInterrupt):
        gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    resumed = gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.predict_coef(Z), whole.predict_coef(Z))
    assert resumed.training_.equals(whole.training_)
