"""The benchmark compares like with like: same model, same data, same scores; and its arithmetic is right."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from graphfield.cli import main
from graphfield.experiments.bench import ours, peers
from graphfield.experiments.bench.cases import CASES, Case
from graphfield.experiments.bench.child import in_child
from graphfield.experiments.bench.machine import MatrixProduct
from graphfield.experiments.bench.problems import Problem
from graphfield.experiments.bench.records import (
    Check,
    Record,
    Timing,
    first_at_or_below,
    interleaved,
)
from graphfield.experiments.bench.run import Results, markdown
from graphfield.experiments.bench.straightforward import StraightforwardField, StraightforwardTraining
from graphfield.metrics import auprc, auroc
from graphfield.nn.fields import CoefField
from graphfield.nn.pack import load_member_arrays
from graphfield.simulate import make_setting

CPU = torch.device("cpu")
SMALL = Problem(96, 7, 3, hidden=10, batch=16, dropout=0.2)


@pytest.fixture
def reference():
    """A straightforward model after a few steps, so that its batch norm has seen data."""
    training = StraightforwardTraining(SMALL, *SMALL.data(), CPU)
    training.steps(5)
    return training.model.eval()


def off_diagonal(coef: torch.Tensor) -> torch.Tensor:
    n, p, _ = coef.shape
    return coef[:, ~torch.eye(p, dtype=torch.bool)].reshape(n, p, p - 1)


def with_weights_of(reference):
    """Our field with the weights of a straightforward one: same coefficients, same loss."""
    field = CoefField(ours.field_config(SMALL), torch.Generator().manual_seed(0))
    parts = {
        "backbone.first.dense": reference.first,
        "backbone.narrow": reference.narrow,
        "backbone.second": reference.second,
        "head": reference.head,
    }
    arrays = {f"{name}.weight": theirs.weight.detach().T for name, theirs in parts.items()}
    arrays |= {f"{name}.bias": theirs.bias.detach() for name, theirs in parts.items()}
    state = reference.norm.state_dict()
    arrays |= {f"backbone.first.norm.{key}": state[key] for key in state if key != "num_batches_tracked"}
    load_member_arrays(field, arrays)
    return field.eval()


def test_both_sides_are_the_same_model(reference):
    X, Z = SMALL.data(seed=1)
    field = with_weights_of(reference)
    samples = ours.make_samples(X, Z, CPU)
    with torch.no_grad():
        coef = field(samples.numeric[None], samples.codes[None])[0]
        torch.testing.assert_close(off_diagonal(coef), reference(torch.as_tensor(Z)))
        loss = float(reference.loss(torch.as_tensor(X), torch.as_tensor(Z)))
        our_loss = float(field.row_losses(samples.take(torch.arange(len(samples))[None])).mean())
    assert our_loss == pytest.approx(loss, rel=1e-5)
    assert not torch.diagonal(coef, dim1=1, dim2=2).any()


def test_the_straightforward_loss_is_the_formula(reference):
    X, Z = (torch.as_tensor(table[:4]) for table in SMALL.data(seed=2))
    with torch.no_grad():
        beta, loss = reference(Z), float(reference.loss(X, Z))
    errors = [
        float(X[i, j] - sum(b * x for b, x in zip(beta[i, j], np.delete(X[i].numpy(), j), strict=True))) ** 2
        for i in range(4)
        for j in range(SMALL.n_nodes)
    ]
    assert loss == pytest.approx(np.mean(errors), rel=1e-5)


def test_both_sides_use_the_same_optimiser_settings():
    from graphfield.experiments.bench import straightforward as theirs
    from graphfield.experiments.specs import paper_recipe
    from graphfield.training.config import CLIP_NORM, WEIGHT_DECAY

    recipe = paper_recipe("G1", 10_000)
    assert recipe["learning_rate"] == theirs.LEARNING_RATE
    assert WEIGHT_DECAY == theirs.WEIGHT_DECAY
    assert recipe["schedule"] == ("step", theirs.DROP_EVERY, theirs.DROP_FACTOR)
    assert CLIP_NORM == theirs.CLIP_NORM


def test_the_straightforward_training_learns_and_repeats():
    sim = make_setting("G1", 400, 0)
    X, Z = sim.X.astype(np.float32), sim.Z.astype(np.float32)
    problem = Problem(300, 50, 2, hidden=16, batch=50, dropout=0.0)

    def losses():
        training = StraightforwardTraining(problem, X[:300], Z[:300], CPU, seed=3)
        return [loss for _, loss in training.train(6, X[300:], Z[300:])]

    first = losses()
    assert first[-1] < first[0]
    assert first == losses()


def test_the_learning_rate_falls_by_epochs():
    training = StraightforwardTraining(SMALL, *SMALL.data(), CPU)
    training.steps(20 * SMALL.steps_per_epoch)
    assert training.optimizer.param_groups[0]["lr"] == pytest.approx(5e-4)
    training.steps(1)
    assert training.optimizer.param_groups[0]["lr"] == pytest.approx(5e-4 / 4)


def test_options_of_the_straightforward_network():
    with torch.random.fork_rng(devices=[]):
        bare = StraightforwardField(Problem(1, 4, 1, hidden=6, batch=1, batch_norm=False, bias=False))
    assert {name.partition(".")[2] for name, _ in bare.named_parameters()} == {"weight"}
    assert not any("norm" in name for name, _ in bare.named_parameters())


@pytest.mark.parametrize("rank", [None, pytest.param("auto", marks=pytest.mark.slow)])
def test_our_curve_stops_at_the_target(rank):
    from graphfield.estimators.dnncgm import DNNCGM

    sim = make_setting("G1", 500, 0)
    X, Z = sim.X.astype(np.float32), sim.Z.astype(np.float32)
    model = DNNCGM(rank=rank, max_steps=80, hidden_size=16, patience=None)
    rows = (X[:400], Z[:400], X[400:], Z[400:])
    whole = ours.our_curve(model, *rows, CPU, until=0.0)
    losses = [loss for _, loss in whole]
    target = next(later for before, later in pairwise(losses) if later == min(losses[:20]) < before)
    part = ours.our_curve(model, *rows, CPU, until=target)
    assert [loss for _, loss in part] == [loss for _, loss in whole[: len(part)]]
    assert part[-1][1] <= target < min(loss for _, loss in part[:-1])
    seconds = [at for at, _ in whole]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("setting", ["G1", "D1"])
def test_the_loops_draw_from_the_same_distribution(setting):
    n = 800
    sim = make_setting(setting, n, 0)
    rng = np.random.default_rng(1)
    X, Z, graphs = peers.simulate_g1(n, rng) if setting == "G1" else peers.simulate_d1(n, sim.candidates, rng)
    np.testing.assert_array_equal(graphs, sim.field.skeleton(Z))
    # Standard errors are about 1 / sqrt(n) for both; 5 of them over all entries.
    np.testing.assert_allclose(np.corrcoef(X.T), np.corrcoef(sim.X.T), atol=5 * (2 / n) ** 0.5)
    np.testing.assert_allclose(X.std(0), sim.X.std(0), rtol=5 / n**0.5)
    np.testing.assert_allclose(Z.mean(0), sim.Z.mean(0), atol=0.1)


def test_scores_of_the_loop_are_ours():
    sim = make_setting("G1", 20, 0)
    weights = np.abs(np.asarray(sim.coef) + np.random.default_rng(0).normal(0, 0.05, sim.skeleton.shape))
    for theirs, score in zip(peers.scores(weights, sim.skeleton), (auroc, auprc), strict=True):
        np.testing.assert_allclose(theirs, score(weights, sim.skeleton, diagonal=True), atol=1e-12)


def test_the_ratio_is_the_median_of_the_rounds():
    timing = Timing(ours=[1.0, 2.0, 4.0], reference=[10.0, 4.0, 20.0])
    record = timing.record("a", "A", "ms", scale=1e3, required=5.0)
    assert record.ratio == 5.0
    assert record.spread == (2.0, 10.0)
    assert (record.ours, record.reference) == (2_000.0, 10_000.0)
    assert record.met is True


def test_interleaving_alternates_and_divides_by_the_work():
    calls: list[str] = []
    between: list[int] = []
    timing = interleaved(
        lambda: calls.append("o"), lambda: calls.append("r"), 3, (1e6, 1), lambda: between.append(1)
    )
    assert "".join(calls) == "or" + "or" + "ro" + "or"
    assert len(timing.ours) == len(between) == 3
    assert max(timing.ours) < min(timing.reference)


@pytest.mark.parametrize(
    ("required", "checks", "met"),
    [
        (None, (), None),
        (2.0, (), True),
        (2.5, (), False),
        (2.0, (Check("share", 0.5, 0.55),), False),
        (2.0, (Check("memory", 0.3, 0.25, at_most=True),), False),
        (None, (Check("seconds", 9.0, 10.0, at_most=True),), True),
    ],
)
def test_met(required, checks, met):
    record = Record("a", "A", 1.0, 2.0, "s", 2.0, (2.0, 2.0), required=required, checks=checks)
    assert record.met is met
    assert json.loads(json.dumps(record.to_json()))["met"] is met


def test_a_target_that_is_not_reached():
    assert first_at_or_below([(1.0, 0.9)], 0.5) is None


def test_matrix_product_rate_is_that_of_torch():
    before = torch.get_float32_matmul_precision()
    product = MatrixProduct(CPU)
    assert 1e8 < product.rate(1) < 1e14
    torch.testing.assert_close(product.out, product.a @ product.b)
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.slow
def test_memory_of_a_child_is_its_own():
    ballast = np.ones(30_000_000)  # 240 MB here must not count there
    found = in_child("step", side="reference", problem={**vars(SMALL), "n_rows": 50_000, "n_nodes": 100})
    assert ballast.nbytes / 1e6 > 200
    assert 20 < found["peak_mb"] - found["base_mb"] < 200  # the data alone are 20 MB


def test_markdown_says_what_was_not_measured():
    results = Results(True, "graphfield bench --quick", {"cpu": "x"}, not_measured={"gpu-fmri": "no GPU"})
    results.failures["metrics"] = "ValueError: y"
    text = markdown(results)
    assert "- gpu-fmri: no GPU" in text
    assert "- metrics failed: ValueError: y" in text


@pytest.mark.parametrize(("share", "warned"), [(0.5, True), (0.95, False)])
def test_a_busy_machine_is_mentioned(share, warned):
    results = Results(True, "graphfield bench", {"free_share_of_cores": share})
    assert ("Other programs" in markdown(results)) is warned


@pytest.mark.slow
def test_bench_command(tmp_path, capsys):
    out = tmp_path / "bench"
    arguments = ["bench", "--only", "metrics", "--quick", "--device", "cpu", "--out", str(out)]
    assert main(arguments) == 0
    assert "metrics" in capsys.readouterr().out
    found = json.loads((out / "bench.json").read_text())
    assert [record["name"] for record in found["records"]] == ["metrics/good", "metrics/poor"]
    assert all(record["ratio"] > 5 and record["required"] == 50 for record in found["records"])
    assert found["machine"]["gflops"]["cpu"]["float32"] > 0
    table = [line for line in (out / "bench.md").read_text().splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert len({line.count("|") for line in table}) == 1
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "metrcis"], "Did you mean 'metrics'?"),
        (["--only", ""], "No case was named"),
        (["--device", "tpu"], "device must be"),
    ],
)
def test_bad_input_is_refused_before_any_work(tmp_path, capsys, arguments, message):
    out = tmp_path / "bench"
    assert main(["bench", "--out", str(out), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not out.exists()


def test_a_failing_case_does_not_stop_the_others(tmp_path, monkeypatch):
    def broken(effort):
        raise ValueError("broken")

    def fine(effort):
        return [Record("metrics", "M", 1.0, 2.0, "s", 2.0, (2.0, 2.0))]

    monkeypatch.setitem(CASES, "simulators", Case("any", broken))
    monkeypatch.setitem(CASES, "metrics", Case("any", fine))
    arguments = ["--only", "simulators,metrics", "--quick", "--device", "cpu", "--out", str(tmp_path / "b")]
    assert main(["bench", *arguments]) == 1
    found = json.loads((tmp_path / "b" / "bench.json").read_text())
    assert found["failures"] == {"simulators": "ValueError: broken"}
    assert len(found["records"]) == 1
