"""Forms of the head, engines and packs: all must do what the plain one does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from engine_cases import (
    FIELD,
    TRAINING,
    field,
    generator,
    head_inputs,
    member,
    pack_and_plan,
    reference,
    samples,
)
from graphfield.nn import head_forms
from graphfield.nn.fields import MeanField, Samples, mean_config
from graphfield.nn.head_forms import by_coefficients, by_nodes, coefficients, fitted
from graphfield.nn.pack import Pack, member_arrays, packed, unpacked
from graphfield.nn.private_kernels import copy_all, softmax_slope
from graphfield.training import loop
from graphfield.training.adam import has_fused_adam
from graphfield.training.engines import GraphEngine, PlainEngine, _zero_state, make_engine, update
from graphfield.training.loop import train

SHAPES = [(1, 30, 4, 7), (3, 12, 9, 5), (2, 40, 20, 3)]


@pytest.mark.parametrize("small_tiles", [False, True])
@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("form", "penalty"), [(by_coefficients, None), (by_coefficients, 0.1), (by_nodes, None)]
)
def test_forms_of_the_head_agree_with_autograd(form, penalty, shape, loss, small_tiles, monkeypatch):
    if small_tiles:
        monkeypatch.setattr(head_forms, "_TILE_ENTRIES", 200)
        monkeypatch.setattr(head_forms, "_NODE_ENTRIES", 200)
    u, weight, grad, x, task = head_inputs(*shape, penalty, loss)
    expected_grad = torch.empty_like(grad)
    losses, slope = form(u, weight, grad, x, task)
    expected = reference(u, weight, expected_grad, x, task)
    torch.testing.assert_close(losses, expected[0])
    torch.testing.assert_close(slope, expected[1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-4, atol=1e-6)


def test_fitted_values_need_no_coefficients(monkeypatch):
    u, weight, _, x, _ = head_inputs(2, 15, 4, 6, None, "squared")
    expected = torch.einsum("mbjk,mbk->mbj", coefficients(u, weight), x)
    torch.testing.assert_close(fitted(u, weight, x), expected, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(head_forms, "_NODE_ENTRIES", 100)
    torch.testing.assert_close(fitted(u, weight, x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"penalty": 0.0},
        {"penalty": 0.0, "hidden_size": 40},
        {"loss": "huber"},
        {"sharing": "node"},
        {"sharing": "edge"},
        {"network": "mlp", "batch_norm": False},
        {"network": "linear"},
        {"rank": 3},
        {"dropout": 0.0},
    ],
    ids=str,
)
def test_gradients_of_a_field_are_those_of_its_training_loss(changes):
    """backward, with whatever form it takes, against autograd through the stored coefficients."""
    pack, plan, data = pack_and_plan(2, **changes)
    steps = plan.draw(0, 1)
    keep = None if steps.keep is None else steps.keep[0]
    batch = data.take(steps.rows[0])
    losses = pack.field.backward(batch, keep)
    found = [parameter.grad.clone() for parameter in pack.parameters]
    expected_losses = pack.field.training_loss(batch, keep)
    expected = torch.autograd.grad(
        expected_losses.sum(), pack.parameters, allow_unused=True, materialize_grads=True
    )
    torch.testing.assert_close(losses, expected_losses.detach())
    for mine, theirs in zip(found, expected, strict=True):
        if mine.shape[-2:] == (6, 6):  # the diagonal is no edge
            theirs = theirs * (1 - torch.eye(6))
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sharing", ["all", "node", "edge"])
def test_a_pack_trains_each_member_as_if_alone(sharing):
    penalties = (0.0, 0.02, 0.2)
    data = samples()
    members = [member(seed=seed, held_out=10 + seed) for seed in range(3)]

    def fields():
        return [field(s, penalty=penalties[s], sharing=sharing) for s in range(3)]

    alone = []
    for single, own in zip(fields(), members, strict=True):
        train(single, data, [own], TRAINING, description="")
        alone.append(member_arrays(single))
    together = packed(fields())
    results = train(together, data, members, TRAINING, description="")
    assert together.penalties == penalties
    for single, expected, result in zip(unpacked(together), alone, results, strict=True):
        assert len(result.curve.step) == 6
        for name, value in member_arrays(single).items():
            torch.testing.assert_close(value, expected[name], rtol=2e-3, atol=2e-4, msg=name)


def test_members_of_a_pack_do_not_touch():
    """Other values in one member's rows change nothing for the others."""
    data = samples()
    own = torch.stack([data.x, data.x])
    changed = own.clone()
    changed[1] *= 3
    outcomes = []
    for x in (own, changed):
        together = packed([field(0), field(1)])
        train(together, replace(data, x=x), [member(seed=0), member(seed=1)], TRAINING, description="")
        outcomes.append([member_arrays(together, i)["head.weight"] for i in (0, 1)])
    assert torch.equal(outcomes[0][0], outcomes[1][0])
    assert not torch.allclose(outcomes[0][1], outcomes[1][1], atol=1e-3)


def test_members_that_stop_early_leave_and_the_rest_go_on():
    """The best weights of each are kept, whatever happened to the others."""
    data = samples()
    config = replace(TRAINING, patience=1, learning_rate=0.05, max_steps=200)
    members = [member(seed=seed, held_out=30) for seed in range(4)]
    together = packed([field(seed) for seed in range(4)])
    results = train(together, data, members, config, description="")
    assert len({result.n_steps for result in results}) > 1, "no test unless they stop at different times"
    for i, (result, own) in enumerate(zip(results, members, strict=True)):
        batch = data.take(own.held_out[None])
        with torch.no_grad():
            loss = float(together.row_losses(batch)[i].mean())
        assert loss == pytest.approx(min(result.curve.held_out_loss), rel=1e-5)
        assert result.best_step == result.curve.step[result.curve.held_out_loss.index(result.best_loss)]


@pytest.mark.slow
def test_losers_are_dropped_only_when_fits_compete():
    data = samples(400)
    config = replace(TRAINING, max_steps=180, learning_rate=0.05, evaluate_every=20)
    one = member(400, held_out=200)
    for compete in (False, True):
        together = packed([field(0, penalty=penalty) for penalty in (0.0, 0.01, 50.0)])
        results = train(together, data, [one] * 3, config, description="", compete=compete)
        assert [result.lost for result in results] == [False, False, compete]
        assert results[2].n_steps == (60 if compete else 180)
        assert results[0].n_steps == 180


@pytest.fixture(params=["torch as it is", "torch without private names"])
def kernels(request, monkeypatch):
    """A torch of a later version may have lost, or changed, what has no public name."""
    has_fused_adam.cache_clear()
    if request.param == "torch without private names":
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.ones(1)
        torch.optim.Adam([parameter]).step()  # torch imports more of itself at its first step

        def changed(*_arguments):
            raise TypeError

        monkeypatch.delattr(torch, "_foreach_copy_")
        monkeypatch.setattr(torch, "_fused_adam_", changed)
        monkeypatch.setattr(torch.ops, "aten", None)
    yield request.param
    monkeypatch.undo()
    has_fused_adam.cache_clear()


def test_private_kernels_have_public_twins(kernels):
    assert has_fused_adam() == (kernels == "torch as it is")
    logits = torch.randn(5, 20, generator=generator(0), requires_grad=True)
    shares, slope = torch.softmax(logits, dim=-1), torch.randn(5, 20, generator=generator(1))
    (expected,) = torch.autograd.grad(shares, logits, slope)
    torch.testing.assert_close(softmax_slope(shares.detach(), slope), expected)
    places = [torch.zeros(3), torch.zeros(2, 2)]
    copy_all(places, [torch.ones(3), torch.ones(2, 2)])
    assert all((place == 1).all() for place in places)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("members", [1, 3])
def test_the_update_is_torchs_adam_after_clipping_each_member(members):
    pack, _, _ = pack_and_plan(members)
    twins = [torch.nn.Parameter(row.clone()) for row in pack.values]
    optimizer = torch.optim.Adam(twins, lr=0.01, weight_decay=1e-6)
    state = _zero_state(pack.values)
    for step in range(4):
        slopes = torch.randn(pack.values.shape, generator=generator(step))
        slopes *= torch.tensor([1e-4, 1.0, 10.0])[:members, None]  # only some need clipping
        pack.gradient.copy_(slopes)
        for twin, slope in zip(twins, slopes, strict=True):
            twin.grad = slope.clone()
            torch.nn.utils.clip_grad_norm_([twin], 1.0)
        update(pack, state, 0.01)
        optimizer.step()
        torch.testing.assert_close(pack.values, torch.stack(twins).detach(), rtol=1e-5, atol=1e-6)


def test_the_plain_engine_is_torchs_adam_on_the_training_loss():
    """Weights after a few steps against a loop written with torch alone."""
    pack, plan, data = pack_and_plan(1)
    twin, _, _ = pack_and_plan(1)
    steps = plan.draw(0, 5)
    make_engine(pack, data, TRAINING).run(steps)
    module = twin.field
    optimizer = torch.optim.Adam(module.parameters(), weight_decay=1e-6)
    for i, rate in enumerate(steps.rates):
        optimizer.param_groups[0]["lr"] = rate
        module.zero_grad()
        module.training_loss(data.take(steps.rows[i]), steps.keep[i]).sum().backward()
        constant = module.backbone.first.dense.bias  # a batch norm takes it out again
        assert constant.grad is None
        constant.grad = torch.zeros_like(constant)
        torch.diagonal(module.head.weight.grad, dim1=2, dim2=3).zero_()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
    for name, value in pack.field.state_dict().items():
        torch.testing.assert_close(value, module.state_dict()[name], rtol=1e-3, atol=1e-5, msg=name)


def test_an_engine_goes_on_from_its_state():
    pack, plan, data = pack_and_plan(2)
    engine = PlainEngine(pack, data, TRAINING)
    engine.run(plan.draw(0, 4))
    saved = {name: value.clone() for name, value in engine.state().items()}
    states = [pack.state(i) for i in range(2)]
    later = plan.draw(4, 4)
    engine.run(later)
    twin, _, _ = pack_and_plan(2)
    twin.assemble(states, twin.field.penalties)
    other = PlainEngine(twin, data, TRAINING)
    other.load_state(saved)
    other.run(later)
    assert torch.equal(pack.values, twin.values)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_steps_do_not_depend_on_how_many_are_drawn_at_a_time(count):
    _, whole, _ = pack_and_plan(2, batch_size=30)
    _, parts, _ = pack_and_plan(2, batch_size=30)
    expected = whole.draw(0, 12)
    drawn, step = [], 0
    while step < 12:
        drawn.append(parts.draw(step, min(count, 12 - step)))
        step += len(drawn[-1])
    assert torch.equal(torch.cat([part.rows for part in drawn]), expected.rows)
    assert sum((part.rates for part in drawn), ()) == expected.rates


def test_an_epoch_sees_each_row_once():
    _, plan, _ = pack_and_plan(2, batch_size=30)
    rows = plan.draw(0, 6).rows  # two epochs of three batches
    for i in range(2):
        for epoch in (rows[:3, i], rows[3:, i]):
            assert len(epoch.flatten().unique()) == 90
    assert not torch.equal(rows[:3, 0], rows[3:, 0])


def test_held_out_rows_of_different_number():
    """Padding of the shorter list must not enter its loss."""
    data = samples()
    together = packed([field(0, batch_norm=False), field(1, batch_norm=False)])
    members = [member(seed=0, held_out=7), member(seed=1, held_out=31)]
    config = replace(TRAINING, max_steps=10)
    results = train(together, data, members, config, description="")
    for i, own in enumerate(members):
        with torch.no_grad():
            expected = float(together.row_losses(data.take(own.held_out[None]))[i].mean())
        assert results[i].curve.held_out_loss[-1] == pytest.approx(expected, rel=1e-5)


def test_a_pack_resumes_to_the_same_bits(tmp_path, monkeypatch):
    from graphfield.training.checkpoint import StageFile

    data = samples()
    config = replace(TRAINING, patience=1, learning_rate=0.05, max_steps=200)
    members = [member(seed=seed, held_out=30) for seed in range(3)]

    def fit(file):
        together = packed([field(seed) for seed in range(3)])
        return together, train(together, data, members, config, description="", checkpoint=file)

    whole, results = fit(None)
    first_leaves = min(result.n_steps for result in results)
    assert first_leaves < max(result.n_steps for result in results)
    saved = StageFile.save

    def save_then_die(self, snapshot):
        saved(self, snapshot)
        if snapshot.step == first_leaves + 10:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.StageFile, "save", save_then_die)
    file = StageFile(tmp_path / "pack.safetensors")
    with pytest.raises(KeyboardInterrupt):
        fit(file)
    monkeypatch.undo()
    resumed, again = fit(file)
    assert [vars(r.curve) for r in again] == [vars(r.curve) for r in results]
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name


def test_the_mean_field_packs_too():
    config = mean_config(FIELD)
    together = packed([MeanField(config, generator(seed)) for seed in range(2)])
    results = train(
        together, samples(), [member(seed=s, held_out=20) for s in (0, 1)], TRAINING, description=""
    )
    assert all(math.isfinite(result.curve.held_out_loss[-1]) for result in results)


def test_samples_with_members_of_their_own_values():
    data = samples(10)
    own = Samples(torch.stack([data.x, 2 * data.x]), data.numeric, data.codes)
    rows = torch.tensor([[1, 2], [3, 4]])
    batch = own.take(rows)
    assert torch.equal(batch.x[1], 2 * data.x[[3, 4]])
    assert torch.equal(batch.numeric, data.numeric[rows])


def test_a_pack_has_one_row_of_weights_per_member():
    pack, _, _ = pack_and_plan(3)
    before = [pack.state(i) for i in range(3)]
    pack.keep([2, 0])
    assert len(pack) == 2
    assert torch.equal(pack.state(0), before[2])
    assert torch.equal(pack.state(1), before[0])
    pack.values.zero_()
    assert all((parameter == 0).all() for parameter in pack.field.parameters())
    assert isinstance(pack, Pack)


def test_a_step_that_cannot_be_recorded_is_taken_plainly(caplog):
    """Without CUDA nothing can be recorded: same losses, same weights, no warning, one line in the log."""
    outcomes = []
    for engine in (PlainEngine, GraphEngine):
        pack, plan, data = pack_and_plan(2)
        made = engine(pack, data, TRAINING)
        with caplog.at_level("INFO", logger="graphfield"):
            losses = torch.cat([made.run(plan.draw(0, 5)), made.run(plan.draw(5, 8))])
        outcomes.append((losses, pack.values.clone(), *(buffer.clone() for buffer in pack.buffers)))
    for mine, theirs in zip(*outcomes, strict=True):
        assert torch.equal(mine, theirs)
    assert [record.message.partition(" (")[0] for record in caplog.records] == [
        "the training step could not be recorded"
    ]
