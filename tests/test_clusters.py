"""Fits that go to the workers which the user has set up with joblib: processes, threads, Dask."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest

import graphfield as gf
from conftest import SMALL, small_data
from graphfield.cores import in_processes, offered_workers
from graphfield.exceptions import DataError, TrainingError


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        distributed.Client(workers),
        joblib.parallel_config("dask"),
    ):
        yield workers


def _where(_: object) -> tuple[int, int]:
    return os.getpid(), offered_workers()


@pytest.mark.slow
def test_work_goes_to_the_workers_of_the_user_and_not_further():
    with joblib.parallel_config("loky", n_jobs=2):
        found = list(in_processes(_where, range(4)))
    assert os.getpid() not in {process for process, _ in found}
    assert {workers for _, workers in found} == {0}


def test_without_workers_quick_work_stays_here():
    assert {process for process, _ in in_processes(_where, range(4))} == {os.getpid()}


def test_inside_of_threads_of_the_user_nothing_is_spread_again():
    with joblib.parallel_config("threading", n_jobs=2):
        assert offered_workers() == 2
        assert [workers for _, workers in in_processes(_where, range(4))] == [0] * 4
        assert offered_workers() == 2


@pytest.mark.parametrize("resample", [False, True])
def test_an_ensemble_is_the_same_whoever_fits_its_members(resample):
    X, Z = small_data()
    models = [
        gf.Ensemble(estimator=gf.TreeCGM(), n_members=3, resample=resample, random_state=0) for _ in range(2)
    ]
    models[0].fit(X, Z)
    with joblib.parallel_config("threading", n_jobs=2):
        models[1].fit(X, Z)
    here, there = (model.edge_weights(Z[:5]) for model in models)
    np.testing.assert_array_equal(here, there)


def test_an_error_of_a_member_names_it_whoever_fits_it(monkeypatch):
    X, Z = small_data()
    model = gf.Ensemble(estimator=gf.TreeCGM(), n_members=3, resample=True, random_state=0)

    def fail(*_, **__):
        raise DataError("no such rows")

    monkeypatch.setattr(gf.TreeCGM, "_fit", fail)
    with (
        joblib.parallel_config("threading", n_jobs=2),
        pytest.raises(DataError, match=r"In member . of 3: no such rows"),
    ):
        model.fit(X, Z)


class _Counted:
    """Work with a large table; each copy that is made of it leaves a file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.table = folder, np.ones(200_000)

    def __getstate__(self) -> dict:
        return vars(self)

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        (self.folder / f"{os.getpid()}-{len(list(self.folder.iterdir()))}").touch()

    def __call__(self, item: int) -> float:
        return item * float(self.table.sum())


def _die(where: Path, item: int) -> int:
    if item == 1:
        os._exit(1)
    return item


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
class TestDask:
    @pytest.fixture(autouse=True)
    def _keep_random_state(self):
        """Dask itself draws from Python's."""
        state = random.getstate()
        yield
        random.setstate(state)

    def test_many_fits(self):
        """Each as without the cluster, networks to rounding."""
        X, Z = small_data()
        assert offered_workers() == 2
        assert os.getpid() not in {process for process, _ in in_processes(_where, range(4))}
        fits = [
            lambda: gf.Ensemble(estimator=gf.DNNCGM(**SMALL), n_members=2, random_state=0).fit(X, Z),
            lambda: gf.AutoCGM(candidates=["static", "linear", "tree"], random_state=0).fit(X, Z),
        ]
        for fit in fits:
            there = fit().edge_weights(Z[:5])
            with joblib.parallel_config("sequential"):
                here = fit().edge_weights(Z[:5])
            np.testing.assert_allclose(here, there, atol=1e-4)
        stable = partial(
            gf.stability, gf.RegGMM(), X, Z, n_pairs=2, n_drops=0, n_bootstraps=3, random_state=0
        )
        there = stable().table
        with joblib.parallel_config("sequential"):
            here = stable().table
        assert here.equals(there)

    def test_the_table_is_copied_to_each_worker_once(self, tmp_path):
        found = list(in_processes(_Counted(tmp_path), range(12)))
        assert found == [item * 200_000.0 for item in range(12)]
        by_process = [name.name.split("-")[0] for name in tmp_path.iterdir()]
        assert max(map(by_process.count, by_process)) <= 2  # also where it came from may keep one


@pytest.mark.slow
def test_a_worker_that_dies_is_told(tmp_path):
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(TrainingError, match="A worker was killed"):
        list(in_processes(partial(_die, tmp_path), range(4)))
