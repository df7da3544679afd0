"""Files and roles."""

from __future__ import annotations

import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield.data import npz_tables, room
from graphfield.data.tables import read_pairs


@pytest.fixture
def table() -> pd.DataFrame:
    X, Z = small_data(30)
    return pd.concat([X, Z], axis=1).assign(
        subject=np.repeat([f"s{i}" for i in range(10)], 3), free_text="hi"
    )


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
def test_the_same_table_from_every_format(table, tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    if ending in ("parquet", "feather"):
        pytest.importorskip("pyarrow")
        getattr(table, f"to_{ending}")(path)
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


def test_patterns_of_nodes_pass_over_columns_that_have_a_role(table):
    data = gf.from_table(table, covariates=["n0"], nodes=["n*"], group="n1", time="n2")
    assert list(data.X.columns) == ["n3", "n4", "n5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariates": ["agee"]}, "no column 'agee' for a covariate. Did you mean 'age'"),
        ({"covariates": []}, "at least one column for a covariate"),
        ({"covariates": ["age"], "nodes": ["roi_*"]}, "no column 'roi_\\*' for a node"),
        ({"covariates": ["age"], "nodes": ["n0", "age"]}, "node or a covariate"),
        ({"covariates": ["age"], "group": "subj"}, "Did you mean 'subject'"),
        ({"covariates": ["age"], "nodes": ["n*", "n0"], "group": "n0"}, "cannot be a node"),
        ({"covariates": ["age"], "nodes": ["a*"]}, "No column is left for a node: 'age' has another role"),
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


def npz(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def test_npz_of_other_machines_and_kinds(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    path = npz(
        tmp_path / "t.npz",
        X=X.astype(">f8"),
        z=np.array([1, 2, 3], dtype=">i4"),
        site=np.array(["a", "b", "c"], dtype=">U1"),
        by=np.array(["ä".encode(), b"b", b"c"]),
        wide=np.arange(3, dtype=np.longdouble),
        narrow=np.arange(3, dtype=np.float16),
        day=np.array(["2020-01-01"] * 3, dtype="M8[D]"),
    )
    frame = gf.read_table(path)
    assert all(kind.isnative for kind in frame.dtypes if isinstance(kind, np.dtype))
    np.testing.assert_array_equal(frame[["x1", "x2"]], X)
    assert frame["by"].tolist() == ["ä", "b", "c"]
    assert frame["wide"].dtype == frame["narrow"].dtype == np.float64
    data = gf.from_table(path, covariates=["z", "site", "day"])
    assert list(data.X.columns) == ["x1", "x2", "wide", "narrow"]


X2 = np.zeros((3, 2))
BAD_ARRAYS = {
    "complex": ({"X": X2.astype(complex)}, "'X' holds complex numbers"),
    "records": ({"X": np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])}, "records of several fields"),
    "pickled": ({"X": X2, "who": np.array([{}, 1, "a"], dtype=object)}, "'who' holds pickled objects"),
    "a name for all": ({"X": X2, "X_names": np.array("ab")}, "'X_names' must name each of the 2 columns"),
    "a name too few": ({"X": X2, "X_names": ["a"]}, "'X_names' must name each of the 2 columns"),
    "a name twice": ({"X": X2, "x1": np.zeros(3)}, "more than one column called 'x1'"),
    "one dimension": ({"X": np.zeros(3)}, "no 2-D array"),
    "three dimensions": ({"X": np.zeros((3, 2, 2))}, "no 2-D array"),
    "bytes": ({"X": X2, "by": np.array([b"\xff", b"b", b"c"])}, "'by' holds bytes that are no UTF-8"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_arrays_that_are_no_columns(tmp_path, case):
    arrays, message = BAD_ARRAYS[case]
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(npz(tmp_path / "t.npz", **arrays))


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "."), content)
    return path


def member(shape, content=b"", **other):
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape, **other}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"X__npy": member((1, 1), bytes(8)), "notes__txt": b"hi"}, "'notes.txt', which is no array"),
        ({"X__npy": b"hi"}, "'X' is no array"),
        ({"X__npy": b""}, "'X' is no array"),
        ({"X__npy": member((1, 1), bytes(7))}, "'X' is damaged: by its header it has 8 bytes"),
        ({"X__npy": member((10**6, 10**6))}, "'X' is damaged"),
        ({"X__npy": member((-1, 2))}, "'X' is no array"),
        ({"X__npy": member((1, 1), bytes(8)).replace(b"NUMPY\x01", b"NUMPY\x09")}, "'X' is no array"),
        ({"X__npy": member((1, 1), bytes(8)).replace(b"<f8", b"<q9")}, "'X' is no array"),
    ],
)
def test_archives_that_are_no_tables(tmp_path, members, message):
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(archive(tmp_path / "t.npz", **members))


def test_arrays_beyond_the_memory_are_refused_unread(tmp_path, monkeypatch):
    path = npz(tmp_path / "t.npz", X=np.zeros((1000, 100)), truth_all=np.zeros(1_000_000))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(npz_tables, "_array", lambda *_: pytest.fail("an array was read"))
    monkeypatch.setattr(room, "free_memory", lambda: 1_000_000)
    with pytest.raises(gf.DataError, match=r"1,000 x 100 values of 8 bytes.* 1\.6 MB .* 1\.0 MB are free"):
        gf.read_table(path)


def test_a_cut_archive_is_a_typed_error(tmp_path):
    path = npz(tmp_path / "t.npz", X=np.random.default_rng(0).normal(size=(50, 4)))
    whole = path.read_bytes()
    for length in range(30, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(gf.DataError, match="npz"):
            gf.read_table(path)


def test_excel(table, tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    # openpyxl writes 16 digits of a number
    table = table.round(6).assign(day=pd.date_range("2020-01-01", periods=len(table)))
    table.to_excel(path, index=False)
    pd.testing.assert_frame_equal(gf.read_table(path), table, check_dtype=False, check_exact=True)
    with pd.ExcelWriter(path) as book:
        table.to_excel(book, sheet_name="first", index=False)
        table.iloc[:5].to_excel(book, sheet_name="second", index=False, startrow=2, startcol=1)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
    with pytest.raises(gf.DataError, match=r"several sheets: 'first', 'second'\..*sheet='first'"):
        gf.read_table(path)
    assert len(gf.read_table(path, sheet="second")) == 5
    with pytest.raises(gf.DataError, match="no sheet 'third'"):
        gf.read_table(path, sheet="third")
    with pytest.raises(gf.ParameterError, match="decimal is for text tables"):
        gf.read_table(path, decimal=",")
    pd.DataFrame([["a", "a"], [1, 2]]).to_excel(path, index=False, header=False)
    with pytest.raises(gf.DataError, match="more than one column called 'a'"):
        gf.read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "package"),
    [
        ("t.xlsx", b"PK\x03\x04", "openpyxl"),
        ("t.feather", b"ARROW1", "pyarrow"),
        ("t.parquet", b"PAR1", "pyarrow"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(tmp_path, monkeypatch, name, content, package):
    (tmp_path / name).write_bytes(content)
    for known in [known for known in sys.modules if known.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setattr("graphfield.exceptions.find_spec", lambda _: None)
    with pytest.raises(gf.MissingDependencyError, match=f"{package}: pip install 'graphfield"):
        gf.read_table(tmp_path / name)


@pytest.mark.parametrize("ending", ["parquet", "feather", "frame"])
def test_ordered_categories_keep_their_order(tmp_path, ending):
    X, Z = small_data(120)
    levels = ["none", "some", "much", "all"]
    pain = pd.Categorical([levels[i % 4] for i in range(120)], [*levels, "unused"], ordered=True)
    table = pd.concat([X, Z[["age"]]], axis=1).assign(pain=pain)
    if ending == "frame":
        source = table
    else:
        pytest.importorskip("pyarrow")
        source = tmp_path / f"t.{ending}"
        getattr(table, f"to_{ending}")(source)
    data = gf.from_table(source, covariates=["age", "pain"])
    assert "'none' 30, 'some' 30, 'much' 30, 'all' 30" in str(gf.check_data(data.X, data.Z))
    model = gf.load(gf.RegGMM().fit(data.X, data.Z).save(tmp_path / "m"))
    assert model.encoder_.categorical[0].levels == tuple(levels)
    curves = gf.analysis.edge_curves(model, "pain", data.Z, n_rows=5)
    assert list(dict.fromkeys(curves["value"].astype(str))) == levels
    plain = table.assign(pain=table["pain"].astype(str))
    assert gf.RegGMM().fit(data.X, plain[["age", "pain"]]).encoder_.categorical[0].levels == tuple(
        sorted(levels)
    )


def test_ordered_categories_keep_their_order_when_pooled_and_filled(tmp_path):
    X, Z = small_data(120)
    values = np.array(["much", "some", "none", "all"] * 30, dtype=object)
    values[:3], values[9] = "rare", None
    pain = pd.Categorical(values, ["none", "some", "rare", "much", "all"], ordered=True)
    table = pd.concat([X, Z[["age"]]], axis=1).assign(pain=pain)
    with pytest.warns(gf.DataWarning, match="Imputed"):
        data = gf.from_table(table, ["age", "pain"], rare=10, missing="impute", categories=["pain"])
    assert data.pooled == {"pain": ["rare"]}
    levels = gf.RegGMM().fit(data.X, data.Z).encoder_.categorical[0].levels
    assert levels == ("none", "some", "much", "all", "other")
    pain = pd.Categorical(np.where(values == "rare", "all", values), pain.categories, ordered=True)
    clusters = gf.ByCluster(by="pain").fit(data.X, pd.DataFrame({"pain": pain.fillna("all")}))
    assert clusters.clusters_ == ["none", "some", "much", "all"]


def test_an_enum_of_polars_keeps_its_order():
    pl = pytest.importorskip("polars")
    levels = ["none", "some", "much"]
    X, Z = small_data(60)
    frame = pl.DataFrame({"age": Z["age"].to_numpy(), "pain": pl.Series(levels * 20, dtype=pl.Enum(levels))})
    assert gf.RegGMM().fit(X, frame).encoder_.categorical[0].levels == tuple(levels)


def test_a_level_called_like_the_pool_is_told():
    X, _ = small_data(60)
    table = X.assign(site=["Other"] * 20 + ["a"] * 30 + ["b"] * 6 + ["c"] * 4)
    with pytest.warns(
        gf.DataWarning, match=r"a level 'Other' \(20 rows\) of its own, and 'b', 'c' are pooled"
    ):
        gf.from_table(table, ["site"], rare=10)


def test_nodes_that_are_named_can_be_left_out():
    """What a check advises is added to the same command."""
    X, Z = small_data(60)
    table = pd.concat([X, Z[["age"]]], axis=1)
    data = gf.from_table(table, ["age"], nodes=list(X.columns), drop=[X.columns[1]])
    assert list(data.X.columns) == [X.columns[0], *X.columns[2:]]
    with pytest.raises(gf.DataError, match="cannot be left out"):
        gf.from_table(table, ["age"], drop=["age"])
    with pytest.raises(gf.DataError, match="No column is left for a node"):
        gf.from_table(table, ["age"], nodes=[X.columns[1]], drop=[X.columns[1]])
