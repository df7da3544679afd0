"""Tables in whatever people keep them in: masks count, names are kept, what is no table is refused."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

import graphfield as gf
from conftest import SMALL, small_data
from graphfield.cli import main
from graphfield.data.frames import as_frame
from graphfield.graphs.export import graph_text, write_graph

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


def lasso(**params) -> gf.GraphicalLasso:
    return gf.GraphicalLasso(penalty=0.1, **params)


def numbers() -> tuple[np.ndarray, np.ndarray]:
    X, Z = small_data(n=40, p=4)
    return X.to_numpy(), Z[["age"]].to_numpy()


# -- masks -----------------------------------------------------------------------------------


def masked(values: np.ndarray, row: int, column: int) -> np.ma.MaskedArray:
    """A value of a million under the mask."""
    mask = np.zeros(values.shape, dtype=bool)
    mask[row, column] = True
    return np.ma.array(np.where(mask, 1e6, values), mask=mask)


def test_what_is_masked_is_missing():
    X, Z = numbers()
    with pytest.raises(gf.DataError, match=r"'x2' has 1 \(first at row 3\)"):
        lasso().fit(masked(X, 3, 1), Z)
    with pytest.raises(gf.DataError, match=r"'z1' has 1 \(first at row 5\)"):
        lasso().fit(X, masked(Z, 5, 0))
    with pytest.warns(gf.DataWarning, match="Dropped 2 of 40"):
        model = lasso(missing="drop").fit(masked(X, 3, 1), masked(Z, 5, 0))
    keep = np.delete(np.arange(40), [3, 5])
    kept = lasso().fit(X[keep], Z[keep])
    np.testing.assert_array_equal(model.field_.common.scaler.center, kept.field_.common.scaler.center)
    with pytest.raises(gf.DataError, match="'z1' has 1"):
        model.predict_coef(masked(Z, 5, 0))


def test_a_mask_counts_in_held_out_rows():
    X, Z = numbers()
    with pytest.raises(gf.DataError, match="'x2' has 1"):
        gf.DNNCGM(**SMALL).fit(X, Z, X_val=masked(X, 3, 1), Z_val=Z)


def test_a_mask_over_whole_numbers_text_and_labels():
    mask = [[True], [False]]
    whole = as_frame(np.ma.array([[1], [2]], mask=mask), "Z").values
    text = as_frame(np.ma.array([["a"], ["b"]], mask=mask), "Z").values
    assert whole.isna().to_numpy().tolist() == text.isna().to_numpy().tolist() == mask
    X, Z = numbers()
    groups = np.ma.array(np.arange(40) % 5, mask=np.arange(40) == 7)
    with pytest.raises(gf.DataError, match=r"groups has 1 missing label \(first at row 7\)"):
        lasso().fit(X, Z, groups=groups)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([pd.NA, *range(39)], dtype="Int64"),
        pd.array([pd.NA, *([True, False, True] * 13)], dtype="boolean"),
        pd.array([pd.NA, *(["a", "b", "a"] * 13)], dtype="string"),
    ],
)
def test_missing_values_of_pandas_own_types(column):
    X, _ = numbers()
    Z = pd.DataFrame({"c": column, "d": np.arange(40.0)})
    with pytest.raises(gf.DataError, match="'c' has 1"):
        lasso().fit(X, Z)
    for policy in ("drop", "impute"):
        with pytest.warns(gf.DataWarning):
            assert gf.RegGMM(missing=policy).fit(X, Z).edge_weights(Z[1:3]).shape == (2, 4, 4)


# -- names -----------------------------------------------------------------------------------


class OnlyArrow:
    """A table of a library that we have never heard of."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class OnlyToPandas:
    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def to_pandas(self) -> pd.DataFrame:
        return self.table.to_pandas()


NAMED = {
    "arrow": lambda table: table,
    "arrow batch": lambda table: table.combine_chunks().to_batches()[0],
    "polars": pl.from_arrow,
    "speaks Arrow": OnlyArrow,
    "to_pandas": OnlyToPandas,
    "records": lambda table: table.to_pandas().to_records(index=False),
}


@pytest.mark.parametrize("kind", NAMED)
def test_names_are_kept_and_columns_matched_by_name(kind):
    X, Z = (pa.Table.from_pandas(table) for table in small_data(n=40, p=4))
    make = NAMED[kind]
    model = gf.RegGMM().fit(make(X), make(Z))
    assert model.node_names_ == X.column_names
    assert model.covariate_names_ == ["age", "site"]
    shuffled = make(X.select([2, 0, 3, 1])), make(Z.select([1, 0]))
    np.testing.assert_array_equal(model.predict(*shuffled), model.predict(make(X), make(Z)))
    with pytest.raises(gf.DataError, match="lacks 'n0' and has unexpected 'other'"):
        model.predict(make(X.rename_columns(["other", "n1", "n2", "n3"])), make(Z))


# -- what is unusual, and what is no table ---------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(">f8"),
        lambda X: pd.DataFrame(X.astype(">f8"), columns=["x1", "x2", "x3", "x4"]),
        lambda X: torch.tensor(X, requires_grad=True),
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
    ],
)
def test_unusual_arrays_are_the_numbers_that_they_hold(change):
    X, Z = numbers()
    expected = lasso().fit(X, Z)
    np.testing.assert_array_equal(lasso().fit(change(X), Z).precision_, expected.precision_)


def test_numbers_that_only_torch_has():
    tensor = torch.tensor([[1.5, 2.0], [0.25, 3.0]], dtype=torch.bfloat16)
    np.testing.assert_array_equal(as_frame(tensor, "X").values, [[1.5, 2.0], [0.25, 3.0]])


def test_numbers_beside_text_and_dates_stay_numbers():
    rows = [[31.5, "A"], [42.0, "B"]]
    assert pd.api.types.is_float_dtype(as_frame(rows, "Z").values["z1"])
    dated = [[31.5, np.datetime64("2020-03-01")], [42.0, np.datetime64("2020-03-02")]]
    assert pd.api.types.is_float_dtype(as_frame(dated, "Z").values["z1"])


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, np.zeros(2), (1, 2)])
def test_cells_that_hold_several_values_are_refused_by_row_and_column(data, cell):
    X, Z = data[0].astype(object), data[1].astype(object)
    X.at[4, "n2"] = Z.at[4, "site"] = cell
    for tables in ((X, data[1]), (data[0], Z)):
        with pytest.raises(gf.DataError, match=r"row 4 of column '(n2|site)'"):
            lasso().fit(*tables)


def test_integers_of_400_digits_are_no_numbers_to_compute_with(data):
    for which, name in ((0, "n2"), (1, "age")):
        tables = [table.astype(object) for table in data]
        tables[which].at[4, name] = 10**400
        with pytest.raises(gf.DataError, match=rf"'{name}' has 1 \(first at row 4\)"):
            lasso().fit(*tables)


def test_complex_cells_and_dates_in_nodes_are_refused_by_row(data):
    for value in (1j, np.datetime64("2020-03-01")):
        X = data[0].astype(object)
        X.at[4, "n2"] = value
        with pytest.raises(gf.DataError, match="'n2' must hold numbers, but row 4"):
            lasso().fit(X, data[1])


def test_rows_of_x_alone_may_have_two_levels_of_labels(data):
    X, Z = data
    labelled = X.set_axis(pd.MultiIndex.from_product([["s"], range(len(X))]))
    np.testing.assert_array_equal(lasso().fit(labelled, Z).precision_, lasso().fit(X, Z).precision_)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros(20, dtype=[("a", float, 2), ("b", float)]),
        np.zeros((20, 2), dtype=[("a", float)]),
        np.zeros((20, 2), dtype=complex),
        np.array(1.0),
        (row for row in range(3)),
        np.full((20, 2), 10**9).astype("datetime64[Y]"),
    ],
)
def test_what_is_no_table_is_refused(table):
    with pytest.raises(gf.DataError):
        lasso().fit(table, numbers()[1][:20])


def test_an_arrow_column_that_pandas_cannot_hold_is_refused():
    X, _ = numbers()
    struct = pa.DictionaryArray.from_arrays(np.arange(40) % 2, pa.array([{"a": 1}, {"a": 2}]))
    with pytest.raises(gf.DataError, match="pandas cannot hold"):
        lasso().fit(X, pa.table({"c": struct}))


def test_names_that_no_file_can_hold_are_refused(data):
    names = pd.Index([*data[0].columns[:-1], "n\ud800"], dtype=object)
    X = data[0].set_axis(names, axis=1)
    with pytest.raises(gf.DataError, match="no valid text"):
        lasso().fit(X, data[1])


def test_one_covariate_value_may_be_a_number():
    X, Z = numbers()
    model = lasso().fit(X, Z)
    assert set(model.to_networkx(50.0)) == set(model.node_names_)


# -- what is written -------------------------------------------------------------------------


def test_graphml_refuses_characters_that_xml_lacks(tmp_path):
    good, bad = nx.Graph(), nx.Graph()
    good.add_node("tab\t, line\n and <&>")
    bad.add_node("a\x01b")
    assert set(nx.read_graphml(io.BytesIO(graph_text(good, "graphml").encode()))) == set(good)
    with pytest.raises(gf.DataError, match=r"'\\x01' of 'a\\x01b'.*csv or json"):
        write_graph(bad, tmp_path / "g.graphml")
    assert graph_text(bad, "json")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_behind_the_standard_output_is_one_line(tmp_path, monkeypatch, capsys):
    X, Z = small_data(n=40, p=4)
    folder = lasso().fit(X, Z).save(tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", open("/dev/full", "w"))  # noqa: SIM115 - main closes it
        code = main(["graph", str(folder), "--at", "age=50", "--at", "site=A"])
    assert code == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "No space left" in lines[0]
