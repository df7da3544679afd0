"""Files and roles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield.data.tables import read_pairs


@pytest.fixture
def table() -> pd.DataFrame:
    X, Z = small_data(30)
    return pd.concat([X, Z], axis=1).assign(
        subject=np.repeat([f"s{i}" for i in range(10)], 3), free_text="hi"
    )


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_the_same_table_from_every_format(table, tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    pd.testing.assert_frame_equal(gf.read_table(path), table, check_dtype=False)


def test_pairs_of_names_are_complete_and_there_once(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("node,group,remark\na,north,\n1,south,x\n")
    assert read_pairs(path, "node", "group") == {"a": "north", "1": "south"}
    for text, message in (
        ("node,group\na,north\na,south\n", "must name each node once, but has 'a' again"),
        ("node,group\na,north\nb,\n", "empty cells in its first two columns, node and group"),
        ("node\na\n", "must have two columns, node and group, got 1"),
    ):
        path.write_text(text)
        with pytest.raises(gf.DataError, match=message):
            read_pairs(path, "node", "group")


def test_npz_columns(tmp_path):
    rng = np.random.default_rng(0)
    X, Z, t = rng.random((5, 2)), rng.random((5, 1)), np.arange(5)
    np.savez(tmp_path / "t.npz", X=X, Z=Z, t=t, X_names=["a", "b"], truth_regime=t, other=np.zeros(3))
    frame = gf.read_table(tmp_path / "t.npz")
    assert list(frame.columns) == ["a", "b", "z1", "t"]
    np.testing.assert_array_equal(frame[["a", "b"]], X)


def test_roles_by_name_pattern_and_default(table):
    data = gf.from_table(table, covariates=["age", "site"], nodes=["n[0-2]"], group="subject")
    assert list(data.X.columns) == ["n0", "n1", "n2"]
    assert list(data.Z.columns) == ["age", "site"]
    assert data.groups.nunique() == 10
    assert data.unused == ["n3", "n4", "n5", "free_text"]
    rest = gf.from_table(table, covariates="age", group="subject")
    assert list(rest.X.columns) == [f"n{i}" for i in range(6)]


def test_a_printed_table_is_its_roles(table):
    wide = table.assign(**{f"extra{i}": "text" for i in range(20)})
    text = repr(gf.from_table(wide, covariates=["age"]))
    assert len(text.splitlines()) <= 5
    assert text.startswith(f"{len(table)} rows\n")
    assert "1 covariate: 'age'" in text
    assert "unused:" in text
    assert "more" in text


def test_row_numbers_are_no_nodes(table):
    table.insert(0, "Unnamed: 0", np.arange(30))
    with pytest.warns(gf.DataWarning, match="'code' looks like an identifier"):
        data = gf.from_table(table.assign(code=np.arange(100, 130)), covariates="age", group="subject")
    assert list(data.X.columns) == [*(f"n{i}" for i in range(6)), "code"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariates": ["agee"]}, "no column 'agee' for a covariate. Did you mean 'age'"),
        ({"covariates": []}, "at least one column for a covariate"),
        ({"covariates": ["age"], "nodes": ["roi_*"]}, "no column 'roi_\\*' for a node"),
        ({"covariates": ["age"], "nodes": ["n0", "age"]}, "node or a covariate"),
        ({"covariates": ["age"], "group": "subj"}, "Did you mean 'subject'"),
        ({"covariates": ["age"], "nodes": ["n*"], "group": "n0"}, "cannot be a node"),
        ({"covariates": ["age", "site"], "group": "site"}, "cannot be a covariate"),
    ],
)
def test_bad_roles(table, arguments, message):
    with pytest.raises(gf.DataError, match=message):
        gf.from_table(table, **arguments)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "holds no data"),
        ("t.csv", b"a,a\n1,2\n", "more than one column"),
        ("t.csv", b"a;b\n1;2;3\n4;5;6\n", "line 1 has 2 cells, line 2 has 3"),
        ("t.csv", b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "cannot be read as csv"),
        ("t.parquet", b"not parquet", "cannot be read as parquet"),
        ("t.npz", b"not a zip", "cannot be read as npz"),
        ("t.xlsx", b"PK", "cannot be read as xlsx"),
        ("t.docx", b"PK", "is not a table"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(gf.DataError, match="There is no file"):
        gf.read_table(tmp_path / "gone.csv")


def test_npz_with_pickled_objects_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[{"a": 1}]], dtype=object))
    with pytest.raises(gf.DataError, match="cannot be read as npz"):
        gf.read_table(tmp_path / "t.npz")
