"""Fits to tables in files: the same as in memory, in bounded memory, and resumed after a kill."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.row_store import bounded_memory
from graphfield.estimators import row_outputs
from graphfield.training import loop, mixture, plan

TINY = 20_000  # bytes: all that is long goes to scratch files


def make_table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z, X = rng.uniform(-1, 1, n), rng.normal(size=(n, 6))
    X[:, 1] += 0.9 * z * X[:, 0]
    X[:, 3] += 0.7 * X[:, 2] + z
    table = pd.DataFrame(X, columns=list("abcdef")).assign(z=z, site=rng.choice(["n", "s"], n))
    return table.assign(subject=np.arange(n) // 4)


@pytest.fixture
def table() -> pd.DataFrame:
    return make_table(900)


def write(table: pd.DataFrame, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for i, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[rows].to_parquet(folder / f"{i}.parquet", row_group_size=100)
    return folder


@pytest.mark.parametrize(
    "model",
    [
        gf.DNNCGM(max_steps=20, rank=4, random_state=0, marginals="normal"),
        gf.DNNCGM(max_steps=20, rank=None, random_state=0),
        gf.RegGMM(),
        gf.RegGMM(ridge="cv", center="constant"),
        gf.NodewiseLasso(),
        gf.NodewiseLasso(center="covariates", penalty="ebic"),
        gf.GraphicalLasso(center="covariates"),
        gf.GraphicalLasso(marginals="normal", penalty=0.05),
        gf.BayesianCGM(n_sweeps=200, n_draws=10, random_state=0),
    ],
    ids=[
        "patterns",
        "full head",
        "RegGMM",
        "RegGMM by cv",
        "NodewiseLasso",
        "NodewiseLasso, moving means",
        "GraphicalLasso, moving means",
        "GraphicalLasso of scores",
        "BayesianCGM",
    ],
)
def test_a_fit_is_the_same_as_in_memory(model, table: pd.DataFrame, tmp_path: Path) -> None:
    """All rows, none of which is drawn at random: a warning would be an error here."""
    source = gf.open_table(
        write(table, tmp_path / "parts"), covariates=["z", "site"], nodes=list("abcdef"), memory=TINY
    )
    assert not source.fits
    Z = table[["z", "site"]]
    expected = model.fit(table[list("abcdef")], Z).predict_coef(Z)
    found = model.fit(source)
    np.testing.assert_allclose(found.predict_coef(Z), expected, atol=1e-6)
    assert found.node_names_ == list("abcdef")


def test_groups_are_split_as_in_memory(table: pd.DataFrame, tmp_path: Path) -> None:
    source = gf.open_table(write(table, tmp_path / "parts"), ["z"], list("abcdef"), "subject", memory=TINY)
    model = gf.DNNCGM(max_steps=10, rank=2, random_state=0)
    known = model.fit(table[list("abcdef")], table[["z"]], groups=table["subject"]).held_out_rows_
    np.testing.assert_array_equal(model.fit(source).held_out_rows_, known)
    assert model.level_check_ is not None
    assert not model.level_check_.prefers


def test_an_estimator_that_holds_its_rows_gets_a_sample(table: pd.DataFrame, tmp_path: Path) -> None:
    source = gf.open_table(write(table, tmp_path / "parts"), ["z"], list("abcdef"), memory="200KB")
    for model in (gf.GraphicalLasso(marginals="skeptic"), gf.RegGMM(node_types={"a": "gaussian"})):
        with pytest.warns(gf.DataWarning, match=rf"{type(model).__name__} is fitted to 357 of 900 rows"):
            model.fit(source)


@pytest.mark.parametrize("column", ["c", "site"])
def test_a_row_of_a_sample_is_named_as_in_the_files(table: pd.DataFrame, tmp_path: Path, column: str) -> None:
    """Some of the last rows are odd, the others left out."""
    table["site"] = np.resize(["1", "2", "3"], 900)
    table.loc[600:, column] = 1e300 if column == "c" else "south"
    source = gf.open_table(write(table, tmp_path / "parts"), ["site"], list("abcdef"), memory="200KB")
    with (
        pytest.warns(gf.DataWarning, match="of 900 rows") if column == "site" else nullcontext(),
        pytest.raises(gf.DataError, match=f"'{column}'.* row .* holds") as error,
    ):
        gf.ByCluster(by="site").fit(source)
    assert error.value.parts["row"].index >= 600


@pytest.mark.parametrize("rank", [2, None])
def test_rows_that_no_step_draws_are_not_looked_at(
    monkeypatch, table: pd.DataFrame, rank: int | None
) -> None:
    """The same bits as with all rows."""
    X, Z = table[list("abcdef")], table[["z", "site"]]
    model = gf.DNNCGM(max_steps=6, batch_size=16, rank=rank, random_state=0)
    seen = []

    def spy(members, config):
        members, rows = plan.seen_rows(members, config)
        seen.append(rows)
        return members, rows

    for module in (loop, mixture):
        monkeypatch.setattr(module, "seen_rows", spy)
    quick = model.fit(X, Z).predict_coef(Z)
    assert any(rows is not None and len(rows) < 300 for rows in seen)
    for module in (loop, mixture):
        monkeypatch.setattr(module, "seen_rows", lambda members, _: (list(members), None))
    np.testing.assert_allclose(model.fit(X, Z).predict_coef(Z), quick, atol=1e-6)


def test_a_killed_fit_goes_on(monkeypatch, table: pd.DataFrame, tmp_path: Path) -> None:
    source = gf.open_table(write(table, tmp_path / "parts"), ["z"], list("abcdef"), memory=TINY)
    model = gf.DNNCGM(max_steps=10, rank=2, random_state=0)
    expected = model.fit(source).predict_coef(table[["z"]])
    rounds = mixture.MixtureFits._improve_gates

    def killed(self, *arguments):
        if self.rounds == 2:
            raise KeyboardInterrupt
        rounds(self, *arguments)

    monkeypatch.setattr(mixture.MixtureFits, "_improve_gates", killed)
    with pytest.raises(KeyboardInterrupt):
        model.fit(source, checkpoint=tmp_path / "state")
    monkeypatch.setattr(mixture.MixtureFits, "_improve_gates", rounds)
    found = model.fit(source, checkpoint=tmp_path / "state", resume=True).predict_coef(table[["z"]])
    np.testing.assert_array_equal(found, expected)
    changed = write(table.assign(a=table["a"] + 1), tmp_path / "parts")
    with pytest.raises(gf.GraphfieldError, match="another fit"):
        model.fit(
            gf.open_table(changed, ["z"], list("abcdef"), memory=TINY),
            checkpoint=tmp_path / "state",
            resume=True,
        )


def test_scratch_files_are_of_this_process_alone(table: pd.DataFrame, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    with bounded_memory(TINY):
        assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("lines", [1_000, 10**6])
def test_edges_and_predictions_are_written_in_parts(
    monkeypatch, table: pd.DataFrame, tmp_path: Path, lines: int
) -> None:
    monkeypatch.setattr(row_outputs, "_PART_LINES", lines)
    source = gf.open_table(write(table, tmp_path / "parts"), ["z"], list("abcdef"), memory="1GB")
    model = gf.RegGMM().fit(source)
    expected = model.edges(table[["z"]], threshold=0.05)
    for rows, name in ((source, "edges"), (table[["z"]], "edges of a table")):
        found = model.write_edges(rows, tmp_path / name, threshold=0.05)
        pd.testing.assert_frame_equal(
            pd.read_parquet(found), expected, check_dtype=False, check_categorical=False
        )
    assert (len(list((tmp_path / "edges").iterdir())) > 1) == (lines < len(expected))
    predicted = pd.read_parquet(model.write_predictions(source, tmp_path / "predicted"))
    X, Z = table[list("abcdef")], table[["z"]]
    np.testing.assert_allclose(predicted, model.predict(X, Z), atol=1e-6)
    with pytest.raises(gf.OutputError, match="already exists"):
        model.write_predictions(source, tmp_path / "predicted")


_MEASURED = """
import sys, graphfield as gf
from pathlib import Path
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
import torch
source = gf.open_table(sys.argv[1], covariates=["z"], memory="100MB")
before = peak()
eval(sys.argv[2]).fit(source)
print(source.size, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured by Linux")
@pytest.mark.parametrize(
    "model",
    [
        "gf.DNNCGM(random_state=0, device='cpu', max_steps=200, rank=8)",
        "gf.RegGMM(ridge='cv')",
        "gf.GraphicalLasso(center='covariates')",
    ],
)
def test_a_fit_takes_little_more_memory_than_it_may(model: str, tmp_path: Path) -> None:
    """A million rows of 20 nodes, 170 MB of doubles, with 100 MB: that, 100 bytes a row, and workspace.

    All in memory it is 690 MB.
    """
    rng = np.random.default_rng(0)
    (tmp_path / "parts").mkdir()
    for i in range(4):
        X = rng.normal(size=(250_000, 20))
        X[:, 1:] += 0.4 * X[:, :-1]
        table = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]).assign(z=rng.uniform(size=len(X)))
        table.to_parquet(tmp_path / "parts" / f"{i}.parquet", row_group_size=50_000)
    words = [sys.executable, "-c", _MEASURED, str(tmp_path / "parts"), model]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    size, grown = map(int, done.stdout.split())
    assert size > 165e6
    assert grown < 100e6 + 100 * 1e6 + 400e6
