"""The loop: budget, schedules, early stopping, breakdown, interruption."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from safetensors import safe_open

import graphfield as gf
from conftest import FULL, small_data
from graphfield.data.saved_files import parse_json
from graphfield.training import loop
from graphfield.training.checkpoint import Snapshot, StageFile
from graphfield.training.config import (
    TrainingConfig,
    default_batch_size,
    default_max_steps,
    learning_rate,
)


def config(**changes) -> TrainingConfig:
    base = {
        "batch_size": 10,
        "max_steps": 100,
        "min_steps": 0,
        "evaluate_every": 10,
        "learning_rate": 0.01,
        "schedule": "cosine",
        "patience": None,
    }
    return TrainingConfig(**{**base, **changes})


@pytest.mark.parametrize(
    ("schedule", "torchs"),
    [
        ("cosine", lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.01, total_steps=100, pct_start=0.1)),
        (("step", 2, 0.25), lambda o: torch.optim.lr_scheduler.StepLR(o, 2 * 7, 0.25)),
        (("multistep", (2, 5), 0.5), lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [14, 35], 0.5)),
        ("constant", lambda o: torch.optim.lr_scheduler.ConstantLR(o, 1.0)),
    ],
)
def test_schedules_equal_those_of_torch(schedule, torchs):
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    scheduler = torchs(optimizer)
    for step in range(100):
        ours = learning_rate(config(schedule=schedule), step, steps_per_epoch=7)
        assert ours == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9), step
        optimizer.step()
        if step < 99:
            scheduler.step()


@pytest.mark.parametrize("max_steps", [1, 2, 5, 10, 11, 20])
def test_the_cycle_of_a_very_short_run(max_steps):
    rates = [learning_rate(config(max_steps=max_steps), step, 7) for step in range(max_steps)]
    assert max(rates) <= 0.01
    assert min(rates) > 0
    assert max(rates) == pytest.approx(0.01, rel=0.3)


def test_the_budget_grows_with_the_data_but_slower():
    sizes = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
    steps = [default_max_steps(n) for n in sizes]
    assert steps == sorted(steps)
    batches = [default_batch_size(n) for n in sizes]
    assert batches == sorted(batches)
    passes = [s * b / n for s, b, n in zip(steps, batches, sizes, strict=True)]
    assert passes[-1] < passes[2] / 2
    assert default_max_steps(1_000) > 500


def test_loss_curve_and_restored_best_weights():
    X, Z = small_data(300)
    model = gf.DNNCGM(**{**FULL, "max_steps": 400, "learning_rate": 0.03, "patience": 4}).fit(X, Z)
    curve = model.training_
    assert list(curve.columns) == ["step", "train_loss", "held_out_loss", "learning_rate"]
    assert model.n_steps_ == curve.step.iloc[-1]
    assert model.n_steps_ < 400, "this fit overfits: it must stop early"
    assert model.n_steps_ >= 400 // 3, "but not before the minimum"
    assert model.best_step_ == curve.step[curve.held_out_loss.idxmin()]


def test_without_patience_it_runs_to_the_end():
    model = gf.DNNCGM(**{**FULL, "max_steps": 60, "patience": None}).fit(*small_data())
    assert model.n_steps_ == model.best_step_ == 60


def test_without_held_out_rows():
    model = gf.DNNCGM(**FULL, validation_fraction=0).fit(*small_data())
    assert model.training_.held_out_loss.isna().all()
    assert model.n_steps_ == 40


def test_a_broken_loss_is_raised_with_step_and_advice():
    with pytest.raises(gf.TrainingError, match=r"at step \d+ of 40.*learning_rate.*standardize"):
        gf.DNNCGM(**FULL, learning_rate=1e30, center="none").fit(*small_data())


def test_groups_stay_together(monkeypatch):
    X, Z = small_data()
    groups = np.repeat(np.arange(30), 4)
    seen = {}

    def spy(n, fraction, labels, seed):
        seen["train"], seen["held_out"] = original(n, fraction, labels, seed)
        return seen["train"], seen["held_out"]

    from graphfield.estimators import training_set

    original = training_set.hold_out
    monkeypatch.setattr(training_set, "hold_out", spy)
    gf.DNNCGM(**{**FULL, "max_steps": 5}).fit(X, Z, groups=groups)
    assert len(seen["held_out"]) > 0
    assert not set(groups[seen["train"]]) & set(groups[seen["held_out"]])


def test_own_validation_set_is_used():
    X, Z = small_data(200)
    train, val = slice(0, 150), slice(150, None)
    model = gf.DNNCGM(**FULL, center="constant").fit(X[train], Z[train], X_val=X[val], Z_val=Z[val])
    scaler = model.field_.common.scaler
    standard = scaler.transform(X[val].to_numpy())
    fitted = scaler.transform(model.predict(X[val], Z[val]))
    assert model.training_.held_out_loss.min() == pytest.approx(((standard - fitted) ** 2).mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("stage", "schedule"),
    [
        ("mean", "cosine"),
        ("edges", ("step", 2, 0.5)),
        pytest.param("mean", ("step", 2, 0.5), marks=pytest.mark.slow),
        pytest.param("edges", "cosine", marks=pytest.mark.slow),
    ],
)
def test_a_killed_fit_resumes_to_the_same_bits(tmp_path, monkeypatch, stage, schedule):
    X, Z = small_data(200)
    X["n3"] += 3 * np.sin(Z["age"] / 10)
    params = {**FULL, "schedule": schedule}
    whole = gf.DNNCGM(**params).fit(X, Z)

    saved = loop.StageFile.save

    def save_then_die(self, snapshot):
        saved(self, snapshot)
        if self.path.stem == stage and snapshot.step == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.StageFile, "save", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    resumed = gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.predict_coef(Z), whole.predict_coef(Z))
    np.testing.assert_array_equal(resumed.predict(X, Z), whole.predict(X, Z))
    assert resumed.training_.equals(whole.training_)


def test_the_record_of_a_checkpoint_is_finite(tmp_path):
    """Also of losses that are not known, which any reader of JSON takes."""
    path = tmp_path / "a.safetensors"
    StageFile(path).save(Snapshot(3, False, {"a": torch.ones(1)}, {"loss": [0.5, math.nan]}))
    with safe_open(str(path), framework="pt") as file:
        assert parse_json(file.metadata()["record"].encode(), path)["loss"] == [0.5, None]


def test_resuming_a_finished_fit_gives_it_back(tmp_path):
    X, Z = small_data()
    params = {**FULL, "max_steps": 5, "random_state": None}
    first = gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "c")
    again = gf.DNNCGM(**params).fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(again.predict_coef(Z), first.predict_coef(Z))


def test_checkpoints_are_not_mixed_up(tmp_path):
    X, Z = small_data()
    gf.DNNCGM(**FULL).fit(X, Z, checkpoint=tmp_path / "c")
    with pytest.raises(gf.OutputError, match="resume=True"):
        gf.DNNCGM(**FULL).fit(X, Z, checkpoint=tmp_path / "c")
    with pytest.raises(gf.ModelFileError, match="another fit"):
        gf.DNNCGM(**FULL).fit(X + 1, Z, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(gf.ModelFileError, match="another fit"):
        gf.DNNCGM(**FULL).fit(X, Z, X_val=X, Z_val=Z, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(gf.ModelFileError, match="another fit"):
        gf.DNNCGM(**{**FULL, "random_state": 1}).fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(gf.ModelFileError, match="another fit"):
        gf.DNNCGM(**{**FULL, "dropout": 0.2}).fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    (tmp_path / "c" / "edges.safetensors").write_bytes(b"rubbish")
    with pytest.raises(gf.ModelFileError, match="damaged"):
        gf.DNNCGM(**FULL).fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(gf.OutputError, match="is a file"):
        gf.DNNCGM(**FULL).fit(X, Z, checkpoint=tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    with pytest.raises(gf.OutputError, match="not empty"):
        gf.DNNCGM(**FULL).fit(X, Z, checkpoint=tmp_path / "other", resume=True)


def test_silent_when_not_a_terminal(capfd):
    gf.DNNCGM(**FULL).fit(*small_data())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sharing", ["node", "edge"])
@pytest.mark.parametrize("network", ["residual", "mlp"])
@pytest.mark.slow
def test_every_architecture_learns_a_varying_edge(sharing, network):
    X, Z = small_data(600)
    model = gf.DNNCGM(
        network=network, sharing=sharing, hidden_size=16, max_steps=400, random_state=0, device="cpu"
    ).fit(X, Z)
    young, old = (model.partial_correlations(Z.assign(age=a, site="B"))[0, 0, 1] for a in (25, 75))
    assert young < -0.2
    assert old > 0.2
