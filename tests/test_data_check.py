"""The data check: every warning has a table that triggers it, and ordinary tables trigger none."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import REAL_DATA
from graphfield.data.findings import DataCheck

N = 400


def clean(n: int = N) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table with nothing wrong: correlated nodes, a number, a category, a yes or no, a date."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, n)
    X = rng.normal(size=(n, 5)) @ (np.eye(5) + 0.3)
    X[:, 1] += (age - 50) / 20 * X[:, 0]
    Z = pd.DataFrame({"age": age, "site": rng.choice(["A", "B", "C"], n), "smoker": rng.random(n) < 0.4})
    Z["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(n), unit="D")
    return pd.DataFrame(X, columns=list("abcde")), Z


def found(X, Z, code, **options):
    """The findings with this code."""
    return [one for one in gf.check_data(X, Z, **options).warnings if one.code == code]


def test_an_ordinary_table_has_nothing_wrong():
    X, Z = clean()
    check = gf.check_data(X, Z, groups=np.arange(N) // 4)
    assert check.codes() == []
    assert gf.check_data(X, Z).codes() == []
    kinds = {column.name: (column.role, column.kind) for column in check.columns}
    assert kinds["a"] == ("node", "number")
    assert kinds["age"] == ("covariate", "number")
    assert kinds["site"] == ("covariate", "category")
    assert kinds["smoker"] == ("covariate", "yes/no")
    assert kinds["day"] == ("covariate", "date")
    assert kinds["group"][0] == "group"
    assert check.columns[-1].note == f"{N // 4} groups of 4 rows"
    uneven = gf.check_data(X, Z, groups=np.minimum(np.arange(N) // 4, 9)).columns[-1].note
    assert uneven == f"10 groups of 4 to {N - 36} rows"
    assert [one for one in check.changes if "'day' is taken as a date" in one]


def node(name, values):
    """A change that sets one node, to values or to a function of the whole table."""
    return lambda X, Z: (X.assign(**{name: values(X.join(Z)) if callable(values) else values}), Z)


def covariate(name, values):
    return lambda X, Z: (X, Z.assign(**{name: values(X.join(Z)) if callable(values) else values}))


RNG = np.random.default_rng(1)
LEVELS = np.array(["A"] * (N - 12) + ["B"] * 7 + ["C"] * 5)
# Code: a change of the clean table that triggers it, the columns it names; and a near miss that does not.
CASES = {
    "constant-node": (node("a", 3.0), {"a"}, node("a", lambda T: np.where(T.a > 0, 3.0, T.a))),
    "duplicate-nodes": (
        node("f", lambda T: -2.54 * T.a + 1),
        {"a", "f"},
        node("f", lambda T: T.a + 0.3 * RNG.normal(size=N)),
    ),
    "collinear-nodes": (
        node("total", lambda T: T.a + 2 * T.b),
        {"a", "b", "total"},
        node("total", lambda T: T.a + 2 * T.b + 0.5 * RNG.normal(size=N)),
    ),
    "monotone-nodes": (
        node("area", lambda T: np.pi * (5 - T.a) ** 2),
        {"a", "area"},
        node("area", lambda T: np.pi * (5 - T.a) ** 2 + 6 * RNG.normal(size=N)),
    ),
    "text-node": (
        node("f", lambda T: np.where(T.a > 0, "high", "low")),
        {"f"},
        node("f", lambda T: T.a.astype(object) ** 2),
    ),
    "identifier-node": (
        node("row", np.arange(N)),
        {"row"},
        node("f", RNG.permutation(N)),
    ),
    "discrete-node": (
        node("f", RNG.integers(0, 3, N)),
        {"f"},
        node("f", RNG.integers(0, 30, N)),
    ),
    "mostly-one-value": (
        node("f", lambda T: np.where(RNG.random(N) < 0.9, 0.0, T.a)),
        {"f"},
        node("f", lambda T: np.where(RNG.random(N) < 0.4, 0.0, T.a)),
    ),
    "skewed-nodes": (node("f", lambda T: np.exp(2 * T.a)), {"f"}, node("f", lambda T: np.exp(0.3 * T.a))),
    "heavy-tails": (
        node("f", lambda T: np.where(np.arange(N) % 40, T.a, 15 * (-1) ** (np.arange(N) // 40))),
        {"f"},
        node("f", lambda T: T.a * np.where(np.arange(N) % 40, 1, 2)),
    ),
    "outliers": (
        node("f", np.where(np.arange(N) == 7, 60.0, RNG.normal(size=N))),
        {"f"},
        node("f", np.where(np.arange(N) == 7, 6.0, RNG.normal(size=N))),
    ),
    "missing-code": (
        covariate("bmi", np.where(np.arange(N) % 50, RNG.normal(25, 3, N), 999)),
        {"bmi"},
        covariate("bmi", RNG.normal(999, 300, N).round()),
    ),
    "constant-covariate": (
        covariate("year", 2020),
        {"year"},
        covariate("year", 2015 + RNG.integers(0, 5, N)),
    ),
    "rare-category": (
        covariate("site", LEVELS),
        {"site"},
        covariate("site", np.array(["A", "B"] * (N // 2))),
    ),
    "identifier-covariate": (
        covariate("site", [f"s{i // 2}" for i in range(N)]),
        {"site"},
        covariate("site", [f"s{i % 16}" for i in range(N)]),
    ),
    "coded-category": (
        covariate("site", RNG.integers(1, 5, N)),
        {"site"},
        covariate("site", 2001 + 2 * RNG.integers(0, 7, N)),  # years of a survey
    ),
    "cyclic-covariate": (
        covariate("month", RNG.integers(1, 13, N)),
        {"month"},
        covariate("months_since", RNG.integers(0, 200, N)),
    ),
    "text-numbers": (
        covariate("dose", [f"{i % 90},5 mg" for i in range(N)]),
        {"dose"},
        covariate("dose", [f"0{i % 4}" for i in range(N)]),
    ),
    "text-dates": (
        covariate("seen", [f"{1 + i % 28}/{1 + i % 12}/2020" for i in range(N)]),
        {"seen"},
        covariate("seen", [f"2020-0{1 + i % 9}-1{i % 7}" for i in range(N)]),
    ),
    "same-covariates": (
        covariate("born", lambda T: 2020.5 - T.age + 0.1 * RNG.normal(size=N)),
        {"age", "born"},
        covariate("born", lambda T: 2020.5 - T.age + 10 * RNG.normal(size=N)),
    ),
    "leak": (
        covariate("score", lambda T: np.exp(T.a) + 0.001 * RNG.normal(size=N)),
        {"score", "a"},
        covariate("score", lambda T: T.a + RNG.normal(size=N)),
    ),
    "mostly-missing": (
        node("a", lambda T: T.a.where(np.arange(N) % 2 == 0)),
        {"a"},
        node("a", lambda T: T.a.where(np.arange(N) % 9 > 0)),
    ),
    "missing-values": (
        node("a", lambda T: T.a.where(np.arange(N) != 3, np.inf)),
        {"a"},
        node("a", lambda T: T.a.where(np.arange(N) != 3, 1.0)),
    ),
    "many-rows-lost": (
        node("a", lambda T: T.a.where(np.arange(N) % 2 == 0)),
        {"a"},
        node("a", lambda T: T.a.where(np.arange(N) % 9 > 0)),
    ),
    "duplicate-rows": (
        lambda X, Z: (
            X.iloc[np.arange(N) // 2 * 2].reset_index(drop=True),
            Z.iloc[np.arange(N) // 2 * 2].reset_index(drop=True),
        ),
        set(),
        lambda X, Z: (X.iloc[np.arange(N) // 2 * 2].reset_index(drop=True), Z),
    ),
    "repeated-subjects": (
        lambda X, Z: (X, Z.iloc[np.arange(N) // 4 * 4].reset_index(drop=True)),
        {"age", "site", "smoker", "day"},
        lambda X, Z: (X, Z.assign(age=Z.age.round())),
    ),
    "number-dates": (
        covariate("seen", [20200101 + i % 28 for i in range(N)]),
        {"seen"},
        covariate("seen", [20200101 + i % 40 for i in range(N)]),
    ),
    "ordered-rows": (
        lambda X, Z: (X.rolling(5, min_periods=1).mean(), Z),
        set(),
        lambda X, Z: (X + 0.15 * X.shift(1, fill_value=0), Z),
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("code", CASES)
def test_each_warning_has_its_table_and_a_near_miss(code):
    change, columns, near_miss = CASES[code]
    (one, *_) = found(*change(*clean()), code)
    assert columns <= set(one.columns)
    for name in columns:
        assert repr(name) in one.message or len(columns) > 3
    assert one.message.endswith(".")
    assert one.advice.endswith(".")
    assert found(*near_miss(*clean()), code) == []


def test_rows_sorted_by_a_covariate_are_no_series():
    """Rows sorted by a covariate that moves the means follow each other only through that covariate."""
    X, Z = clean()
    Z = Z.sort_values("site").reset_index(drop=True)
    assert found(X.add(4.0 * (Z.site == "A"), axis=0), Z, "ordered-rows") == []


def test_few_rows_few_groups_and_groups_that_keep_nothing_together():
    X, Z = clean()
    assert found(X.iloc[:49], Z.iloc[:49], "few-rows")
    assert not found(X.iloc[:50], Z.iloc[:50], "few-rows")
    assert found(X, Z, "few-groups", groups=np.arange(N) % 19)
    assert not found(X, Z, "few-groups", groups=np.arange(N) % 20)
    assert found(X, Z, "groups-of-one", groups=np.arange(N))
    labels = pd.Series(np.arange(N) % 50, dtype=object, name="subject").where(np.arange(N) > 2, None)
    assert found(X, Z, "missing-groups", groups=labels)[0].columns == ("subject",)


def test_columns_that_are_not_used_are_looked_at():
    X, Z = clean()
    subject = [f"p{i // 4}" for i in range(N)]
    assert "--group pid" in found(X, Z, "repeated-subjects", rest=pd.DataFrame({"pid": subject}))[0].advice
    for rest in ({"score": np.arange(N) % 7}, {"id": np.arange(N)}, {"note": ["fine", "late"] * (N // 2)}):
        assert gf.check_data(X, Z, rest=pd.DataFrame(rest)).codes() == []
    assert found(X, Z, "unused-dates", rest=Z[["day"]].rename(columns={"day": "when"}))
    assert not found(X, Z, "unused-dates", rest=Z[["day"]].rename(columns={"day": "when"}), time=np.arange(N))
    lost = pd.DataFrame({"crp": ["<0.1", *map(str, range(1, N))]})
    assert "'<0.1'" in found(X, Z, "text-among-numbers", rest=lost)[0].message


def test_a_node_that_a_category_or_a_curve_determines_leaks():
    X, Z = clean()
    assert found(X.assign(f=Z.site.map({"A": 1.0, "B": 5.0, "C": 2.5}) + 0.01 * X.a), Z, "leak")
    assert found(X.assign(f=(Z.age - 50) ** 2), Z, "leak")
    assert not found(X.assign(f=(Z.age - 50) ** 2 + 300 * X.a), Z, "leak")


def test_two_relations_are_told_apart():
    X, Z = clean()
    both = X.assign(f=X.a + X.b, g=X.c - X.d)
    relations = [set(one.columns) for one in found(both, Z, "collinear-nodes")]
    assert sorted(relations, key=sorted) == [{"a", "b", "f"}, {"c", "d", "g"}]


def test_areas_and_radii_of_real_cells_are_told_once():
    """A relation that was told as a sum is not told again as a curve, unless more nodes are in it."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    X, Z = bunch.data.filter(regex="radius$|perimeter$|area$|texture$"), pd.DataFrame({"d": bunch.target})
    told = [set(one.columns) for one in found(X, Z, "monotone-nodes")]
    assert told == [{"mean radius", "mean perimeter", "mean area"}, {"worst radius", "worst area"}]
    X, Z = clean()
    nearly = X.assign(f=X.a + 0.01 * RNG.normal(size=N))
    assert [set(one.columns) for one in found(nearly, Z, "collinear-nodes")] == [{"a", "f"}]
    assert found(nearly, Z, "monotone-nodes") == []
    assert found(X.assign(f=X.a), Z, "monotone-nodes") == []
    few = X.assign(f=np.exp(X.a)).iloc[:30]  # so few rows that it may be chance
    assert found(few, Z.iloc[:30], "monotone-nodes") == []


def test_changes_say_what_fit_then_does():
    X, Z = clean()
    X, Z = X.assign(a=X.a.where(np.arange(N) % 20 > 0)), Z.assign(site=Z.site.where(np.arange(N) % 50 > 0))
    for policy in ("drop", "impute"):
        check = gf.check_data(X, Z, missing=policy, planned=False)
        (change,) = [one for one in check.changes if "missing or inf" in one]
        with pytest.warns(gf.DataWarning) as caught:
            gf.GraphicalLasso(n_penalties=2, missing=policy).fit(X, Z)
        assert change in [str(one.message) for one in caught]
        # Before the fit the same is told as a plan, with the names of columns and no word of X and Z.
        (plan,) = [one for one in gf.check_data(X, Z, missing=policy).changes if "missing or inf" in one]
        done, numbers = {"drop": ("Dropped", "24 of 400 rows"), "impute": ("Imputed", "28 missing")}[policy]
        assert change.startswith(f"{done} {numbers}")
        assert plan.startswith(numbers)
        assert f" would be {done.lower()}: " in plan
        assert plan.split(": ", 1)[1] == change.split(": ", 1)[1]
        assert f"In a fit: {plan}" in str(gf.check_data(X, Z, missing=policy))
    level = Z.site.mode()[0]
    assert f"'site' 8 by the most frequent level {level!r}" in change
    assert f"'a' 20 by the median {X.a.median():.4g}" in change


def test_a_check_survives_json_and_reads_well():
    X, Z = clean()
    check = gf.check_data(X.assign(f=1.0), Z)
    again = DataCheck.from_json(json.loads(json.dumps(check.to_json())))
    assert again == check
    text = str(check)
    assert text.splitlines()[0] == "400 rows, 6 nodes, 4 covariates."
    assert "  covariate 'day': date, 2020-01-01 to 2021-02-03" in text
    assert "Look: Node 'f' has the same value in every row" in text
    with pytest.raises(gf.DataError, match="no data check"):
        DataCheck.from_json({"format": "graphfield-model"})


def test_wide_tables_are_described_in_few_lines():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 200))).add_prefix("roi_")
    Z = pd.DataFrame(rng.normal(size=(500, 30))).add_prefix("z_")
    assert len(str(gf.check_data(X, Z)).splitlines()) <= 4


def test_arrays_nothing_missing_nothing_at_all():
    rng = np.random.default_rng(0)
    assert gf.check_data(rng.normal(size=(200, 3)), rng.normal(size=(200, 1))).codes() == []
    X, Z = clean()
    assert gf.check_data(X.assign(a=np.nan), Z, missing="impute").codes() != []
    with pytest.raises(gf.DataError, match="no rows"):
        gf.check_data(X.iloc[:0], Z.iloc[:0])
    with pytest.raises(gf.DataError, match="group must hold one value per row"):
        gf.check_data(X, Z, groups=[1, 2])
    with pytest.raises(gf.ParameterError, match="missing must be one of"):
        gf.check_data(X, Z, missing="ignore")


@pytest.fixture(scope="module")
def real():
    if not (REAL_DATA / "load.py").is_file():
        pytest.skip("the real tables are not here")
    sys.path.insert(0, str(REAL_DATA))
    try:
        from load import load
    finally:
        sys.path.pop(0)

    def table(name):
        data = load(name)
        Z = pd.DataFrame(data["z_num"], columns=[str(n) for n in data["z_num_names"]])
        return pd.DataFrame(data["x"], columns=[str(n) for n in data["x_names"]]), Z.assign(**data["z_cat"])

    return table


def test_nhanes_and_sachs_raise_no_false_alarm(real):
    X, Z = real("nhanes_biomarkers")
    assert set(gf.check_data(X, Z, missing="drop").codes()) <= {"outliers"}
    X, Z = real("sachs")
    assert set(gf.check_data(np.log(X), Z).codes()) <= {"outliers"}
    assert "skewed-nodes" in gf.check_data(X, Z).codes()


@pytest.mark.parametrize("write", ["{:.1f} %", "€ {:.2f}", "{:.0f},000 CHF", "$1,{:03.0f}"])
def test_numbers_with_units_are_not_left_out_without_a_word(write):
    X, Z = clean()
    rest = pd.DataFrame({"share": [write.format(value) for value in np.linspace(10, 90, N)]})
    (one,) = found(X, Z, "numbers-with-units", rest=rest)
    assert "'share' is not used" in one.message
    for other in ("s{:.0f}", "{:.0f}a{:.0f}", "{:02.0f}.01.2020"):
        rest = pd.DataFrame({"share": [other.format(value, value) for value in np.linspace(10, 28, N)]})
        assert found(X, Z, "numbers-with-units", rest=rest) == []


def test_dates_as_numbers_are_questioned_in_every_role():
    X, Z = clean()
    days = pd.Series(pd.date_range("2020-01-01", periods=N).strftime("%Y%m%d").astype(int), name="when")
    assert [one.columns for one in found(X.assign(when=days), Z, "number-dates")] == [("when",)]
    (one,) = found(X, Z, "number-dates", time=days)
    assert "yyyymmdd" in one.advice
    data = gf.from_table(X.join(Z).assign(when=days), ["age", "when"], list("abcde"), date_format="yyyymmdd")
    assert found(data.X, data.Z, "number-dates") == []
    assert {column.name: column.kind for column in gf.check_data(data.X, data.Z).columns}["when"] == "date"
