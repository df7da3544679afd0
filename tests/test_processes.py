"""Two processes that share a fit: the answer of one, one voice, and errors that say what to do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import process_tasks
from conftest import FAST_FIT, small_data
from graphfield.cli import processes as cli_processes
from graphfield.exceptions import DataError, ParameterError, TrainingError
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, Field, FieldConfig, MeanField, Samples
from graphfield.nn.gates import GateField
from graphfield.nn.pack import Pack, packed
from graphfield.nn.processes import ALONE, Processes, _as, current, shared_work
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import train
from graphfield.training.plan import Member

TASKS = Path(__file__).with_name("process_tasks.py")
# Sums of single precision in another order, after at most 100 steps; a near tie may be decided otherwise.
TOLERANCE = 2e-5


def start(command: list[str], count: int, **variables: str) -> list[subprocess.Popen]:
    """So many processes with what torchrun tells them, or one that is told nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    told = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}
    common = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **variables}
    common["PYTHONPATH"] = os.pathsep.join([str(TASKS.parent), *sys.path])
    return [
        subprocess.Popen(
            [sys.executable, *command],
            env=common
            if count == 1
            else {**common, **told, "MASTER_PORT": port, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]


def finish(started: list[subprocess.Popen]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each; none may go on for ever."""
    said = [one.communicate(timeout=240) for one in started]
    return [(one.returncode, *words) for one, words in zip(started, said, strict=True)]


def carry_out(task: str, folder: Path, count: int = 2, **variables: str) -> list[dict]:
    """What the processes say of a task; one that was killed says nothing."""
    codes = finish(start([str(TASKS), task, str(folder)], count, **variables))
    files = [folder / f"{task}-{count}-{rank}.json" for rank in range(count)]
    assert any(file.exists() for file in files), codes
    return [json.loads(file.read_text()) if file.exists() else {} for file in files]


def check_answers(folder: Path, *names: str) -> None:
    for name in names:
        one, *two = (np.load(folder / f"{name}-{who}.npy") for who in ("1-0", "2-0", "2-1"))
        np.testing.assert_array_equal(*two, err_msg=name)
        np.testing.assert_allclose(two[0], one, atol=TOLERANCE, err_msg=name)


def small_field(kind: type, network: str, batch_norm: bool) -> Field:
    rank = 3 if kind is GateField else None
    shape = CovariateShape(2, ((0.3, 0.3, 0.4),))
    config = FieldConfig(5, shape, network, "all", 8, 0.3, batch_norm, "squared", 0.01, rank)
    return kind(config, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("network", ["residual", "mlp", "linear"])
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("kind", [MeanField, CoefField, GateField])
@pytest.mark.parametrize("members", [1, 2])
def test_gradients_of_parts_of_a_batch_add_up_to_those_of_the_batch(kind, network, batch_norm, members):
    rng = torch.Generator().manual_seed(1)
    fields = [small_field(kind, network, batch_norm) for _ in range(members)]
    width = 13 if kind is GateField else 5
    n = 11
    data = Samples(
        torch.randn(40, width, generator=rng),
        torch.randn(40, 2, generator=rng),
        torch.randint(0, 3, (40, 1), generator=rng),
    )
    rows = torch.stack([torch.randperm(40, generator=rng)[:n] for _ in range(members)])[None]
    pack = Pack(packed(fields).train())
    shape = pack.field.factors_shape(n)
    keep = None if shape is None else torch.rand(2, members, *shape[1:], generator=rng).round() / 0.5
    (whole,) = data.take_each(rows)
    losses, gradient = pack.field.backward(whole, keep), pack.gradient.clone()
    total = torch.zeros_like(gradient)
    parts = []
    for rank in range(3):
        own = Processes(rank, 3).own_part(n)
        (batch,) = data.take_each(rows, own)
        parts.append(pack.field.backward(batch, None if keep is None else keep[..., own, :]) * len(batch) / n)
        total += pack.gradient * len(batch) / n
    torch.testing.assert_close(sum(parts), losses, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(total, gradient, rtol=1e-4, atol=1e-6)


def test_without_a_group_a_process_is_alone():
    with shared_work() as found:
        assert found == current() == ALONE
    values = torch.ones(3)
    ALONE.add_up(values)
    ALONE.fill_rows(values)
    assert ALONE.own_part(7) == slice(0, 7)
    assert values.tolist() == [1, 1, 1]
    assert ALONE.gather("a") == ["a"]


def test_more_processes_than_rows_of_a_step_are_refused(monkeypatch):
    monkeypatch.setattr("graphfield.training.engines.SHARED_WORK", 0)
    field = small_field(MeanField, "residual", True)
    data = Samples(torch.zeros(20, 5), torch.zeros(20, 2), torch.zeros(20, 1, dtype=torch.int64))
    member = Member(torch.arange(16), torch.arange(16, 20), 0, 0)
    config = TrainingConfig(4, 2, 1, 1, 0.01, "constant", None)
    with _as(Processes(0, 5)), pytest.raises(DataError, match=r"4 rows .* 5 processes.*fewer"):
        train(field, data, [member], config, description=None)


@pytest.mark.slow
def test_two_processes_find_what_one_finds(tmp_path):
    process_tasks.short(tmp_path)
    carry_out("short", tmp_path)
    check_answers(tmp_path, "short")


@pytest.mark.slow
def test_there_may_be_fewer_groups_than_processes(tmp_path):
    carry_out("few_groups", tmp_path, 1)
    carry_out("few_groups", tmp_path, 3)
    alone, *shared = (np.load(tmp_path / f"few-{who}.npy") for who in ("1-0", "3-0", "3-1", "3-2"))
    for found in shared:
        np.testing.assert_array_equal(found, shared[0])
        np.testing.assert_allclose(found, alone, atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("fits", ("patterns", "full head", "linear", "by node", "kinds")),
        ("together", ("model 0", "model 1", "model 2")),
    ],
)
def test_every_way_of_fitting_has_the_answer_of_one_process(tmp_path, task, names):
    (alone,), both = (carry_out(task, tmp_path, count) for count in (1, 2))
    assert both[0] == both[1]
    check_answers(tmp_path, *names)
    if task == "together":
        assert alone == both[0]


@pytest.mark.slow
def test_processes_without_a_seed_take_that_of_the_first(tmp_path):
    carry_out("any_seed", tmp_path)
    np.testing.assert_array_equal(*(np.load(tmp_path / f"own-2-{rank}.npy") for rank in (0, 1)))


@pytest.mark.slow
def test_processes_with_other_rows_are_refused(tmp_path):
    for said in carry_out("other_rows", tmp_path):
        assert said["error"] == "DataError"
        assert "process 1 has others" in said["message"]


@pytest.mark.slow
def test_a_process_that_dies_ends_the_other_and_the_fit_goes_on_later(tmp_path):
    said, nothing = carry_out("killed", tmp_path)
    assert nothing == {}
    assert said["error"] == "TrainingError"
    assert "resume=True" in said["message"]
    assert (tmp_path / "checkpoint" / "fit.json").exists()
    carry_out("checkpointed", tmp_path, RESUME="1")
    resumed = [np.load(tmp_path / f"checkpointed-2-{rank}.npy") for rank in (0, 1)]
    (tmp_path / "again").mkdir()
    carry_out("checkpointed", tmp_path / "again")
    for found in resumed:
        np.testing.assert_array_equal(found, np.load(tmp_path / "again" / "checkpointed-2-0.npy"))


def table(folder: Path) -> str:
    X, Z = small_data()
    pd.concat([X, Z], axis=1).to_csv(folder / "table.csv", index=False)
    return str(folder / "table.csv")


@pytest.mark.slow
def test_of_a_command_that_processes_share_the_first_alone_speaks_and_writes(tmp_path):
    command = ["-m", "graphfield", "fit", table(tmp_path), "--covariates", "age,site", *FAST_FIT]
    (first, second), (alone,) = (
        finish(start([*command, "--out", str(tmp_path / f"of-{count}")], count)) for count in (2, 1)
    )
    assert first[0] == second[0] == alone[0] == 0, (first, second)
    assert "Wrote" in first[1]
    assert second[1:] == ("", "")
    assert sorted(path.name for path in (tmp_path / "of-2").iterdir()) == sorted(
        path.name for path in (tmp_path / "of-1").iterdir()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--covariates", "height"], "height"),
        (["--covariates", "age", "--model", "tree"], "without torchrun"),
    ],
)
def test_bad_input_is_said_once(tmp_path, options, said):
    command = ["-m", "graphfield", "fit", table(tmp_path), *options, "--out", str(tmp_path / "model")]
    first, second = finish(start(command, 2))
    assert first[0] == second[0] == 2
    assert said in first[2]
    assert second[1:] == ("", "")


@pytest.mark.slow
def test_torchrun_starts_a_fit(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "graphfield"]
    command = [
        "fit",
        table(tmp_path),
        "--covariates",
        "age,site",
        "--out",
        str(tmp_path / "model"),
        *FAST_FIT,
    ]
    ((code, out, err),) = finish(start([*launcher, *command], 1))
    assert code == 0, err
    assert out.count("Wrote") == 1


@pytest.mark.parametrize(
    ("n_devices", "has_nccl", "said"), [(8, False, "NCCL"), (1, True, "--nproc-per-node 1")]
)
def test_devices_that_are_too_few_or_cannot_talk_are_refused(monkeypatch, n_devices, has_nccl, said):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ParameterError, match=said):
        cli_processes._own_device(n_devices, has_nccl)


def test_a_lost_process_is_told_in_the_words_of_where_it_is_read(monkeypatch):
    from graphfield.cli.words import render_for_shell

    def fail(*_: object) -> None:
        raise RuntimeError("Connection closed by peer")

    monkeypatch.setattr("torch.distributed.all_reduce", fail)
    with pytest.raises(TrainingError, match="resume=True") as caught:
        Processes(0, 2).add_up(torch.ones(2))
    assert "--resume" in render_for_shell(caught.value.message)
