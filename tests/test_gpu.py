"""On a CUDA device: same seed, same bits; close to the CPU; resumes; loads on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import graphfield as gf
from conftest import small_data
from engine_cases import TRAINING, head_inputs, pack_and_plan, reference
from graphfield.estimators.judged_pairs import FieldRows

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
PARAMS = {"rank": None, "max_steps": 200, "hidden_size": 32, "random_state": 0}


@pytest.mark.parametrize("sharing", ["all", "node", "edge"])
def test_same_seed_same_bits_on_cuda(sharing):
    X, Z = small_data(400)
    one, two = (gf.DNNCGM(**PARAMS, sharing=sharing, device="cuda").fit(X, Z) for _ in range(2))
    np.testing.assert_array_equal(one.predict_coef(Z), two.predict_coef(Z))


def test_a_mixture_has_the_same_bits_again_and_comes_close_to_the_cpu():
    X, Z = small_data(600)
    params = {"rank": 4, "max_steps": 200, "center": "constant", "random_state": 0}
    one, two, cpu = (gf.DNNCGM(**params, device=d).fit(X, Z) for d in ("cuda", "cuda", "cpu"))
    np.testing.assert_array_equal(one.predict_coef(Z), two.predict_coef(Z))
    gap = one.training_.held_out_loss.min() - cpu.training_.held_out_loss.min()
    assert abs(gap) < 0.01
    # Devices drop other units: they may be as far apart as two seeds are.
    seeds = [gf.DNNCGM(**{**params, "random_state": seed}, device="cpu").fit(X, Z) for seed in (1, 2, 3, 4)]
    apart, *usual = (np.linalg.norm(m.edge_weights(Z) - cpu.edge_weights(Z)) for m in (one, *seeds))
    assert apart < max(usual)


def test_cuda_is_close_to_the_cpu_without_dropout():
    X, Z = small_data(400)
    params = {**PARAMS, "max_steps": 50, "dropout": 0.0}
    cpu, cuda = (gf.DNNCGM(**params, device=d).fit(X, Z) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(cuda.edge_weights(Z), cpu.edge_weights(Z), atol=2e-2)


@pytest.mark.parametrize("grouped", [False, True])
def test_pairs_are_judged_alike_on_cuda_and_on_the_cpu(grouped):
    X, Z = small_data(400)
    groups = np.arange(400) // 4 if grouped else None
    model = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z, groups=groups)
    field = model.field_
    rows = field.encode(field.schema.match_covariates(Z))
    labels = groups if grouped else None
    ours, theirs = (
        FieldRows(X.to_numpy(), rows, labels, replace(field, device=device)).judge(2.0, None)
        for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-2, atol=1e-6)
    assert ours[1] == pytest.approx(theirs[1], rel=1e-3)


def test_resume_on_cuda(tmp_path, monkeypatch):
    from graphfield.training.checkpoint import StageFile

    X, Z = small_data(400)
    whole = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z)
    saved = StageFile.save

    def save_then_die(self, snapshot):
        saved(self, snapshot)
        if self.path.stem == "edges" and snapshot.step == 100:
            raise KeyboardInterrupt

    monkeypatch.setattr(StageFile, "save", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    resumed = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.predict_coef(Z), whole.predict_coef(Z))


def test_a_cuda_model_predicts_on_the_cpu(tmp_path):
    X, Z = small_data(400)
    model = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z)
    again = gf.load(model.save(tmp_path / "m")).set_params(device="cpu")
    np.testing.assert_allclose(again.predict_coef(Z), model.predict_coef(Z), rtol=1e-3, atol=1e-4)
    assert again.field_.network.head.get_parameter("weight").device.type == "cpu"


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("penalty", [None, 0.1])
@pytest.mark.parametrize("shape", [(1, 70, 5, 7), (3, 40, 17, 35), (2, 130, 64, 130), (1, 64, 128, 50)])
def test_the_fused_head_agrees_with_autograd(shape, penalty, loss):
    from graphfield.nn.triton_head import fused

    u, weight, grad, x, task = head_inputs(*shape, penalty, loss, "cuda")
    expected_grad = torch.empty_like(grad)
    expected = reference(u, weight, expected_grad, x, task)
    for precision, tolerance in (("ieee", 1e-5), ("tf32", 5e-3), ("bf16", 3e-2)):
        losses, slope = fused(u, weight, grad, x, task, precision)
        for mine, theirs in ((losses, expected[0]), (slope, expected[1]), (grad, expected_grad)):
            # In the mean: a coefficient next to zero may get the other sign in bfloat16.
            assert float((mine - theirs).abs().mean() / theirs.abs().mean()) < tolerance, precision


@pytest.mark.parametrize(
    "changes", [{}, {"penalty": 0.0}, {"sharing": "node"}, {"network": "linear"}], ids=str
)
@pytest.mark.parametrize("members", [1, 3])
def test_a_recorded_step_is_the_plain_step(members, changes):
    """The same steps, dropout included, by both engines: losses close, weights close."""
    from graphfield.training.engines import GraphEngine, PlainEngine

    changes = {"batch_norm": False, **changes}
    outcomes = []
    for engine in (PlainEngine, GraphEngine):
        pack, plan, data = pack_and_plan(members, "cuda", **changes)
        made = engine(pack, data, TRAINING)
        losses = torch.cat([made.run(plan.draw(0, 8)), made.run(plan.draw(8, 3))])
        if members > 1:
            made.keep([2, 0])
            plan.keep([2, 0])
            losses = torch.cat([losses[:, [2, 0]], made.run(plan.draw(11, 8))])
        outcomes.append((losses, pack.values.clone()))
    torch.testing.assert_close(outcomes[1][0], outcomes[0][0], rtol=1e-2, atol=1e-3)
    assert float((outcomes[1][1] - outcomes[0][1]).abs().mean()) < 2e-3


@pytest.mark.parametrize("fails_at", ["recording", "warming up"])
def test_a_step_that_cannot_be_recorded_on_cuda_is_taken_plainly(monkeypatch, fails_at):
    from graphfield.training.engines import GraphEngine, PlainEngine

    def refuse(*_args, **_kwargs):
        raise RuntimeError("operation not permitted when stream is capturing")

    outcomes = []
    for engine in (PlainEngine, GraphEngine):
        if engine is GraphEngine and fails_at == "recording":
            monkeypatch.setattr(torch.cuda, "graph", refuse)
        elif engine is GraphEngine:
            monkeypatch.setattr("graphfield.training.triton_adam.clipped_adam", refuse)
        pack, plan, data = pack_and_plan(2, "cuda")
        made = engine(pack, data, TRAINING)
        outcomes.append((torch.cat([made.run(plan.draw(0, 8)), made.run(plan.draw(8, 3))]), pack.values))
    assert torch.equal(outcomes[0][0], outcomes[1][0])
    assert torch.equal(outcomes[0][1], outcomes[1][1])


def test_triton_that_does_not_compile_is_not_used(monkeypatch):
    from graphfield.nn import precision, triton_probe

    def refuse():
        raise RuntimeError("Failed to find C compiler")

    assert precision.has_triton.__wrapped__()
    monkeypatch.setattr(triton_probe, "probe", refuse)
    assert not precision.has_triton.__wrapped__()


@pytest.mark.slow
def test_a_thousand_nodes_and_100_000_rows_fit_in_16_gb():
    """All that the fit holds on the device, predictions of some graphs included."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 1000), dtype=np.float32)
    Z = rng.uniform(-1, 1, (100_000, 5))
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = gf.DNNCGM(max_steps=300, device="cuda", random_state=0).fit(X, Z)
    assert model.rank_ == 8
    assert model.predict_coef(Z[:20]).shape == (20, 1000, 1000)
    peak = torch.cuda.max_memory_reserved() / 2**30
    print(f"peak of the device's memory: {peak:.2f} GiB")  # noqa: T201
    assert peak < 16


def test_the_cpu_takes_the_same_steps():
    """Fed the same rows and dropout factors, CPU and CUDA give the same losses."""
    from graphfield.training.engines import make_engine
    from graphfield.training.plan import Steps

    cpu, plan, data = pack_and_plan(2, batch_norm=False)
    cuda, _, cuda_data = pack_and_plan(2, "cuda", batch_norm=False)
    steps = plan.draw(0, 20)
    moved = Steps(steps.rows.cuda(), steps.keep.cuda(), steps.rates)
    losses = make_engine(cpu, data, TRAINING).run(steps)
    torch.testing.assert_close(
        make_engine(cuda, cuda_data, TRAINING).run(moved).cpu(), losses, rtol=1e-2, atol=1e-3
    )


def test_adam_on_cuda_is_torchs():
    from graphfield.training.engines import _zero_state
    from graphfield.training.triton_adam import clipped_adam

    generator = torch.Generator("cuda").manual_seed(0)
    values = torch.randn(3, 5_000, device="cuda", generator=generator)
    weights = torch.nn.Parameter(values.clone())
    optimizer = torch.optim.Adam([weights], lr=0.01, weight_decay=1e-2)
    state, rate, on = _zero_state(values), torch.tensor([0.01], device="cuda"), torch.ones((), device="cuda")
    for _ in range(5):
        gradient = torch.randn(3, 5_000, device="cuda", generator=generator)
        gradient *= torch.tensor([[1e-3], [1.0], [10.0]], device="cuda")
        weights.grad = gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1)
        optimizer.step()
        clipped_adam(values, gradient, state, rate, on, clip_norm=1.0, weight_decay=1e-2)
        torch.testing.assert_close(values, weights.detach(), rtol=1e-5, atol=1e-6)
    before = values.clone()
    clipped_adam(values, gradient, state, rate, 0 * on, clip_norm=1.0, weight_decay=1e-2)
    assert torch.equal(values, before)
