"""Tables that are read by rows: roles and values as in memory, and files that are not what they were."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data import row_store
from graphfield.data.room import resident_file_pages
from graphfield.data.row_store import allocate_rows, bounded_memory, memory_bound

SMALL = "200KB"  # so little that everything long goes to scratch files


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4_000, 5)), columns=list("abcde"))
    frame["z"] = rng.uniform(size=len(frame))
    frame["site"] = rng.choice(["north", "south", "west"], len(frame))
    frame["subject"] = rng.integers(0, 400, len(frame))
    return frame


def write_parts(table: pd.DataFrame, folder: Path, n_parts: int = 3) -> Path:
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(table)), n_parts)):
        table.iloc[rows].to_parquet(folder / f"part-{i}.parquet", row_group_size=500)
    return folder


def test_a_folder_gives_the_rows_of_the_table(table: pd.DataFrame, tmp_path: Path) -> None:
    path = write_parts(table, tmp_path / "parts")
    source = gf.open_table(path, covariates=["z", "site"], group="subject", memory=SMALL)
    assert len(source) == 4_000
    assert not source.fits
    assert source.nodes == tuple("abcde")
    with source.bounded():
        found = source.read("error")
    np.testing.assert_array_equal(found.X, table[list("abcde")])
    np.testing.assert_array_equal(found.Z["z"], table["z"])
    assert list(found.Z["site"]) == list(table["site"])
    assert found.groups is not None
    assert list(found.groups) == list(table["subject"])
    some = source.take(np.array([3, 1_700, 3_999]))
    np.testing.assert_array_equal(some.X, table[list("abcde")].iloc[[3, 1_700, 3_999]])
    assert "4,000 rows" in repr(source)


def test_a_sample_keeps_groups_whole(table: pd.DataFrame, tmp_path: Path) -> None:
    path = write_parts(table, tmp_path / "parts")
    source = gf.open_table(path, covariates=["z"], group="subject", memory="1MB")
    rows = source.sample(0)
    drawn = table["subject"].iloc[rows]
    assert 0 < len(rows) < 2_500
    assert len(rows) == table["subject"].isin(drawn).sum()


def test_numbers_of_an_npy_file_have_names_by_position(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", values)
    source = gf.open_table(tmp_path / "rows.npy", covariates=["x4"])
    found = source.read("error")
    assert found.X.to_numpy().dtype == np.float32
    np.testing.assert_array_equal(found.X, values[:, :3])


def test_files_with_different_columns(table: pd.DataFrame, tmp_path: Path) -> None:
    path = write_parts(table, tmp_path / "parts")
    table.drop(columns="b").to_parquet(path / "part-9.parquet")
    with pytest.raises(gf.DataError, match=r"part-9.parquet' lacks 'b'.*same columns"):
        gf.open_table(path, covariates=["z"])


def test_a_column_whose_type_changes(table: pd.DataFrame, tmp_path: Path) -> None:
    path = write_parts(table, tmp_path / "parts")
    table.assign(b=table["b"].round().astype(int)).to_parquet(path / "part-9.parquet")
    with pytest.raises(gf.DataError, match=r"'b' is of type int64 in .*part-9.*double in") as caught:
        gf.open_table(path, covariates=["z"])
    assert caught.value.parts["column"] == "b"
    assert len(gf.open_table(path, covariates=["z"], nodes=["a", "c"])) == 8_000


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_a_file_that_shrinks_while_it_is_read(table: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(file, np.ascontiguousarray(table[list("abcde")]))
        source = gf.open_table(file, covariates=["x5"])
    else:
        table.to_parquet(file, row_group_size=500)
        source = gf.open_table(file, covariates=["z"], nodes=list("abcde"))
    file.write_bytes(file.read_bytes()[:-5_000])
    with pytest.raises(gf.DataError, match=r"changed while it was read.*open the table again") as caught:
        source.read("error")
    assert caught.value.parts["file"] == str(file)


def test_a_file_that_is_cut_off_is_named(table: pd.DataFrame, tmp_path: Path) -> None:
    path = write_parts(table, tmp_path / "parts")
    (path / "part-1.parquet").write_bytes((path / "part-1.parquet").read_bytes()[:-5_000])
    with pytest.raises(gf.DataError, match=r"part-1.parquet' cannot be read"):
        gf.open_table(path, covariates=["z"])


def test_what_cannot_be_read_by_rows(table: pd.DataFrame, tmp_path: Path) -> None:
    table.to_csv(tmp_path / "rows.csv")
    with pytest.raises(gf.DataError, match="Parquet"):
        gf.open_table(tmp_path / "rows.csv", covariates=["z"])
    with pytest.raises(gf.DataError, match="There is no file"):
        gf.open_table(tmp_path / "none.parquet", covariates=["z"])
    table.to_parquet(tmp_path / "rows.parquet")
    source = gf.open_table(tmp_path / "rows.parquet", covariates=["z"], nodes=["a", "site"])
    with pytest.raises(gf.DataError, match=r"'site'.*must be numbers"):
        source.read("error")
    with pytest.raises(gf.ParameterError, match="memory must be a size"):
        gf.open_table(tmp_path / "rows.parquet", covariates=["z"], memory="much")
    with pytest.raises(gf.DataError, match="columns of the table"):
        gf.RegGMM().fit(source, table[["z"]])


@pytest.mark.parametrize("missing", ["drop", "impute"])
def test_gaps_are_treated_as_in_memory(table: pd.DataFrame, tmp_path: Path, missing: str) -> None:
    table.loc[[5, 1_500, 3_900], "b"] = np.nan
    table.loc[[5, 2_000], "z"] = np.inf
    path = write_parts(table, tmp_path / "parts")
    source = gf.open_table(path, covariates=["z", "site"], nodes=list("abcde"), memory=SMALL)
    with pytest.raises(gf.DataError, match=r"node 'b' has 3 \(first at row 5\); covariate 'z' has 2"):
        source.read("error")
    with pytest.warns(gf.DataWarning) as said, source.bounded():
        found = source.read(missing)
    with pytest.warns(gf.DataWarning) as expected:
        known = gf.from_table(table, ["z", "site"], list("abcde"), missing=missing)
    assert str(said[0].message) == str(expected[0].message)
    np.testing.assert_array_equal(found.X, known.X)
    np.testing.assert_array_equal(found.Z["z"], known.Z["z"])
    assert len(found.rows) == (3_996 if missing == "drop" else 4_000)


def test_long_arrays_go_to_scratch_files() -> None:
    with bounded_memory(10_000):
        long, short = allocate_rows((100, 50), np.float32), allocate_rows((5, 2), np.float32)
    assert long.base is not None
    assert short.base is None
    long[:] = 3
    assert float(long.sum()) == 15_000
    assert allocate_rows((100, 50), np.float32).base is None
    assert memory_bound("2GB") == 2_000_000_000


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured by Linux")
def test_rows_far_apart_are_let_go_of_in_any_thread(monkeypatch) -> None:
    """With no time for the thread that looks from time to time."""
    torch = pytest.importorskip("torch")
    long_rows = pytest.importorskip("graphfield.nn.long_rows")
    monkeypatch.setattr(row_store, "_PAUSE", 60.0)
    with bounded_memory(10_000):
        values = torch.from_numpy(allocate_rows((400_000, 200), np.float32))  # 320 MB
        before = resident_file_pages()
        rows = torch.arange(0, len(values), 20)
        gathering = threading.Thread(target=long_rows.gather, args=(values, rows))
        gathering.start()
        gathering.join()
        assert resident_file_pages() - before < 150e6


def test_backed_files_of_other_kinds(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(300, 4))
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "rows.zarr"), values)
    found = gf.open_table(tmp_path / "rows.zarr", covariates=["x4"]).read("error")
    np.testing.assert_array_equal(found.X, values[:, :3])


def test_annotated_matrices(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(300, 4))
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = values
        file["var/_index"] = ["g1", "g2", "g3", "g4"]
        file["var"].attrs["_index"] = "_index"
        file["obs/age"] = np.arange(300.0)
        file["obs/kind/codes"] = np.arange(300) % 2
        file["obs/kind/categories"] = ["T", "B"]
        file["obs"].attrs["column-order"] = ["age", "kind"]
    source = gf.open_table(tmp_path / "cells.h5ad", covariates=["age", "kind"])
    found = source.read("error")
    np.testing.assert_array_equal(found.X, values)
    assert list(found.Z["kind"][:2]) == ["T", "B"]
