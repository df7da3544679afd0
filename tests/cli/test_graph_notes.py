"""What ``graphfield graph`` says of values that few rows, or none, support."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.analysis import compare, graph_at
from graphfield.analysis.rows import typical_row
from graphfield.cli import main
from graphfield.data.covariate_rows import covariate_rows
from graphfield.estimators.persistence import save_model
from graphfield.inference.asked_values import ask_of_values
from graphfield.report.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    X["b"] += X["a"]
    site = np.where(np.arange(200) < 2, "new", np.where(np.arange(200) % 2, "A", "B"))
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 200), "site": site})
    return gf.RegGMM().fit(X, Z)


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    fitted.save(path)
    return path


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"age": 50, "site": "A"}, None),
        ({"age": 50, "site": "new"}, "site = 'new' had 2 training rows"),
        ({"age": 82, "site": "A"}, "age=82 lies outside what training had"),
        ({"age": 300, "site": "A"}, "which gets the graph at 8"),
    ],
)
def test_notes_of_one_graph(folder, capsys, at, said):
    assert main(["graph", str(folder), *(f"--at={name}={value}" for name, value in at.items())]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "note:" in line]
    whole = "are those of the whole table."
    notes = [line for line in lines if whole not in line]
    assert len(lines) == len(notes) + 1
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]


def test_python_names_values_outside_the_range(fitted):
    known = {"age": 78, "site": "A"}
    for ask in (lambda z: graph_at(fitted, z), lambda z: compare(fitted, known, z)):
        with pytest.warns(gf.ExtrapolationWarning, match=r"age=82 lies outside what .* \(2.* to 78") as said:
            ask(known | {"age": 82})
        assert len(said) == 1
        with pytest.warns(gf.ExtrapolationWarning, match="far outside") as said:
            ask(known | {"age": 300})
        assert len(said) == 1
        ask(known)


def test_python_names_the_rows_of_a_rare_level(fitted):
    rare, known = {"age": 50, "site": "new"}, {"age": 50, "site": "A"}
    with pytest.warns(gf.FewRowsWarning, match="'new' had 2 training rows"):
        graph_at(fitted, rare)
    with pytest.warns(gf.FewRowsWarning, match="'new' had 2 training rows"):
        compare(fitted, known, rare)
    graph_at(fitted, known)  # and says nothing of others


@pytest.fixture(scope="module")
def by_site(tmp_path_factory):
    """A model that does not look at age."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    site = np.where(np.arange(120) % 2, "A", "B")
    X["b"] += np.where(site == "A", 1, -1) * X["a"]
    model = gf.ByCluster(estimator=gf.GraphicalLasso(penalty=0.05), by="site")
    model.fit(X, pd.DataFrame({"age": rng.uniform(20, 80, 120), "site": site}))
    path = tmp_path_factory.mktemp("by_site") / "model"
    model.save(path)
    return path


def test_what_the_model_does_not_use_may_be_left_out(by_site, capsys):
    def graph(*at, code=0):
        assert main(["graph", str(by_site), *(f"--at={one}" for one in at)]) == code
        return capsys.readouterr()

    alone = graph("site=A")
    assert alone.out == graph("site=A", "age=30").out != graph("site=B").out
    assert alone.err.count("note:") == 1
    assert "which pairs may be edges, and the cut of " in alone.err
    typical = graph().err
    assert "site=" in typical
    assert "age=" not in typical
    assert "does not name are at typical values" in graph("age=30").err


def test_what_was_pooled_is_no_typical_level(tmp_path, capsys):
    """Most rows are of rare levels; whether rows lie beside the model or not, a level stands for them."""
    rng = np.random.default_rng(0)
    site = np.repeat(["A", "B", *(f"rare {i}" for i in range(25))], [30, 40, *[3] * 25])
    table = pd.DataFrame(rng.normal(size=(145, 3)), columns=list("abc")).assign(site=site)
    data = gf.from_table(table, ["site"], rare=20)
    model = gf.RegGMM().fit(data.X, data.Z)
    assert model.encoder_.columns[0].levels == ("A", "B", "other")
    assert Rows.of(model.field_, data.Z).describe_covariates(model.field_)[0]["start"] == "B"
    for rows in (data.Z, None):
        path = tmp_path / ("bare" if rows is None else "rows")
        extra = {} if rows is None else {"covariates.csv": covariate_rows(rows).encode()}
        save_model(model, path, overwrite=False, extra=extra)
        assert main(["graph", str(path), "--threshold", "0.02"]) == 0
        assert "site=B." in capsys.readouterr().err
    assert str(ask_of_values(model.encoder_, ["site"])).endswith("gf.compare_graphs(X, Z, 'site').")
    only_pooled = data.Z[data.Z["site"] == "other"]
    assert typical_row(model.field_, only_pooled) == {"site": "other"}


@pytest.fixture(scope="module")
def by_plan(tmp_path_factory):
    """Nearly all with a trend of more than 30 have a plan; one has none."""
    rng = np.random.default_rng(0)
    trend = rng.integers(0, 40, 400)
    plan = np.where((trend > 30) | (rng.random(400) < 0.5), "yes", "no")
    plan[np.flatnonzero(trend == 35)[0]] = "no"
    X = rng.normal(size=(400, 3))
    X[:, 1] += (trend - 20) / 20 * X[:, 0]
    X[:, 2] += np.where(plan == "yes", 1, -1) * X[:, 0]
    Z = pd.DataFrame({"trend": trend.astype(float), "plan": plan, "size": np.where(plan == "yes", "L", "S")})
    return gf.RegGMM().fit(pd.DataFrame(X, columns=list("abc")), Z), Z


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"trend": 36, "plan": "no"}, "only 1 training row has plan=no near trend=36 (with the former, most"),
        ({"trend": 36, "plan": "yes"}, None),
        ({"trend": 10, "plan": "no"}, None),
        ({"trend": 10, "plan": "no", "size": "L"}, "no training row has plan=no together with size=L: the"),
    ],
)
def test_a_graph_at_values_that_hardly_any_row_has_together_says_so(by_plan, tmp_path, capsys, at, said):
    model, Z = by_plan
    size = "L" if at["plan"] == "yes" else "S"
    save_model(model, tmp_path / "m", overwrite=False, extra={"covariates.csv": covariate_rows(Z).encode()})
    at = {"size": size} | at
    assert main(["graph", str(tmp_path / "m"), *(f"--at={name}={value}" for name, value in at.items())]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "extrapolated" in line]
    assert len(told) == (said is not None)
    assert said is None or said in told[0]
