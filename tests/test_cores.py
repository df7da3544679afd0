"""How work is spread over the cores, and that results do not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

import graphfield as gf
from conftest import SMALL, change_plans, small_data
from graphfield import cores
from graphfield.cores import core_count, in_processes, one_ahead, side_by_side
from graphfield.estimators.auto_candidates import Plan
from graphfield.nn.threads import one_thread_each, spread
from graphfield.training import sparse_patterns


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(cores, "core_count", lambda: 2)


def test_cores_are_counted_as_joblib_does_and_fewer_where_asked_for(monkeypatch):
    monkeypatch.setattr(cores.joblib, "cpu_count", lambda: 6)
    for wanted, expected in (("", 6), ("4", 4), ("8", 6), ("3,2", 3), ("0", 6), ("many", 6)):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert core_count() == expected
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert core_count() == 6


def test_results_come_in_order_and_errors_come_out(two_cores):
    assert side_by_side(lambda x: x * x, range(20)) == [x * x for x in range(20)]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda x: 1 / x, [1, 0])


def test_two_at_a_time(two_cores):
    """Each of two waits for the other: one after the other they would never end."""
    meeting = threading.Barrier(2, timeout=30)
    side_by_side(lambda _: meeting.wait(), range(2))


def test_what_is_finished_first_comes_first_where_order_does_not_matter(two_cores, tmp_path):
    quick_is_done = tmp_path / "done"

    def work(name: str) -> str:
        if name == "quick":
            quick_is_done.touch()
        while name == "slow" and not quick_is_done.exists():
            time.sleep(0.1)
        time.sleep(0.3 * (name == "slow"))
        return name

    done = list(in_processes(work, ["first", "slow", "quick"], sure=True, ordered=False))
    assert done == ["first", "quick", "slow"]


def test_an_item_is_made_while_the_one_before_is_used(two_cores):
    made = threading.Event()

    def items():
        yield 0
        made.set()
        yield 1

    for item in one_ahead(items()):
        if item == 0:
            assert made.wait(timeout=30)
    assert item == 1


def test_an_error_while_making_an_item_comes_out(two_cores):
    def items():
        yield 0
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(one_ahead(items()))


def test_the_users_number_of_threads_comes_back():
    before = torch.get_num_threads()
    with one_thread_each():
        assert torch.get_num_threads() == 1
        with one_thread_each():
            pass
        assert torch.get_num_threads() == 1
        assert spread(lambda _: torch.get_num_threads(), range(3), torch.device("cpu")) == [1, 1, 1]
    assert torch.get_num_threads() == before
    with pytest.raises(KeyError), one_thread_each():
        raise KeyError
    assert torch.get_num_threads() == before


def test_one_thread_each_holds_until_the_last_of_several_threads_is_done(monkeypatch):
    """One thread of the user is done while another still computes: that one must not get more threads."""
    default, seen = 2, []
    state = {"global": default}
    mine = threading.local()
    monkeypatch.setattr(torch, "get_num_threads", lambda: getattr(mine, "count", state["global"]))

    def set_threads(count):
        mine.count = state["global"] = count

    monkeypatch.setattr(torch, "set_num_threads", set_threads)
    inside, go_on = threading.Event(), threading.Event()

    def compute():
        with one_thread_each():
            inside.set()
            assert go_on.wait(timeout=30)
            seen.append(spread(lambda _: torch.get_num_threads(), range(2), torch.device("cpu")))

    other = threading.Thread(target=compute)
    other.start()
    assert inside.wait(timeout=30)
    with one_thread_each():
        pass
    assert state["global"] == 1
    go_on.set()
    other.join()
    assert seen == [[1, 1]]
    assert state["global"] == default
    with one_thread_each():
        pass
    assert (state["global"], torch.get_num_threads()) == (default, default)


def test_a_product_has_the_same_bits_in_a_thread_of_ours(two_cores):
    x = torch.randn(3_000, 400, generator=torch.Generator().manual_seed(0))
    with one_thread_each():
        expected = x.T @ x
    for found in spread(lambda _: x.T @ x, range(2), torch.device("cpu")):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("changes", [{"rank": 2}, {"rank": None}], ids=str)
def test_the_same_bits_on_any_number_of_cores(monkeypatch, changes):
    monkeypatch.setattr(sparse_patterns, "_LEAST_RESPONSES", 10)
    monkeypatch.setattr(sparse_patterns, "_BLOCK_WORK", 100_000)
    X, Z = small_data(100, p=34)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(cores, "core_count", lambda count=count: count)
        model = gf.DNNCGM(**{**SMALL, "max_steps": 2, **changes}).fit(X, Z)
        found.append(model.predict_coef(Z))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.slow
def test_candidates_side_by_side_are_those_one_after_the_other(monkeypatch):
    X, Z = small_data(150)
    change_plans(monkeypatch, dnncgm=lambda *_: Plan(gf.DNNCGM(**SMALL)))
    found = []
    for count in (1, 2):
        monkeypatch.setattr(cores, "core_count", lambda count=count: count)
        model = gf.AutoCGM(random_state=0, candidates=("static", "linear", "dnncgm"), device="cpu")
        found.append(model.fit(X, Z))
    one, two = found
    assert one.chosen_ == two.chosen_
    assert one.held_out_["model"].tolist() == two.held_out_["model"].tolist()
    np.testing.assert_array_equal(one.held_out_["error"], two.held_out_["error"])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_the_affinity_of_the_process_counts():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from graphfield.cores import core_count; print(core_count())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) == 1
