"""The data check: every warning has a table that triggers it, and ordinary tables trigger none."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

import graphfield as gf
from conftest import REAL_DATA
from graphfield.check.findings import DataCheck
from graphfield.check.row_order import following_rows
from graphfield.check.values import far_out_findings
from graphfield.messages import Argument

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


def shares_of(X):
    """Percentages to one decimal, as tables have them."""
    parts = np.exp(0.5 * X)
    return parts.div(parts.sum(axis=1), axis=0).mul(100).round(1)


def by_site(T):
    """Levels that a node has at each site."""
    return T.site.map({"A": 0, "B": 60, "C": 120})


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
        node("total", lambda T: T.a + 2 * T.b + RNG.normal(size=N)),
    ),
    "product-nodes": (
        lambda X, Z: (np.exp(X).assign(rate=np.exp(X.a - X.b).round(3)), Z),
        {"a", "b", "rate"},
        lambda X, Z: (np.exp(X).assign(rate=np.exp(X.a - X.b + 0.05 * RNG.normal(size=N))), Z),
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
    "units-node": (
        node("f", lambda T: (1_500 + 400 * T.a).map("${:,.0f}".format)),
        {"f"},
        node("f", lambda T: np.where(T.a > 0, "12a", "13b")),  # codes of levels
    ),
    "identifier-node": (
        node("row", np.arange(N)),
        {"row"},
        node("f", (1000 * RNG.normal(size=N)).round()),  # now and then the same
    ),
    "discrete-node": (
        node("f", RNG.integers(0, 3, N)),
        {"f"},
        node("f", RNG.integers(0, 30, N)),
    ),
    "parts-of-a-whole": (
        lambda X, Z: (shares_of(X), Z),
        {"a", "b", "c"},
        lambda X, Z: (shares_of(X).mul(RNG.uniform(0.9, 1.1, N), axis=0), Z),
    ),
    "zero-counts": (
        node("f", RNG.negative_binomial(0.3, 0.02, N)),
        {"f"},
        node("f", RNG.poisson(30, N)),
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
    "outliers-within-levels": (
        node("a", lambda T: T.a + by_site(T) + 60 * (np.arange(N) == 7)),
        {"site", "a"},
        node("a", lambda T: T.a + by_site(T) + 4 * (np.arange(N) == 7)),
    ),
    "outliers of a few rows apart": (
        node("f", RNG.normal(size=N) + 60 * (np.arange(N) < 5)),
        {"f"},
        node("f", np.exp(1.5 * RNG.normal(size=N))),
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
    "skewed-covariate": (
        covariate("density", np.exp(1.2 * np.random.default_rng(3).normal(size=N))),
        {"density"},
        covariate("density", np.exp(0.3 * np.random.default_rng(3).normal(size=N))),
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
    "dependent-covariates": (
        lambda X, Z: (X, Z[["age"]].join(pd.get_dummies(Z.site, dtype=int))),
        {"A", "B", "C"},
        lambda X, Z: (X, Z[["age"]].join(pd.get_dummies(Z.site, dtype=int)[["A", "B"]])),
    ),
    "empty-corner": (
        covariate("year", lambda T: (1960 + T.age / 4 + RNG.uniform(0, 10, N)).round()),
        {"age", "year"},
        covariate("year", lambda T: (1960 + T.age / 4 + RNG.uniform(0, 30, N)).round()),
    ),
    "empty-corner of levels": (
        covariate("grade", lambda T: np.where(T.site == "A", "7", np.resize(["7", "8"], N))),
        {"grade", "site"},
        covariate("grade", np.resize(["7", "7", "7", "8", "8"], N)),
    ),
    "cyclic-covariate of days": (
        covariate("day_of_year", RNG.integers(1, 367, N)),
        {"day_of_year"},
        covariate("day_of_study", RNG.integers(1, 367, N)),
    ),
    "cyclic-covariate of a season": (
        covariate("month", RNG.integers(1, 13, N)),
        {"month"},
        covariate("month", RNG.integers(5, 10, N)),
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
    "gaps-follow-covariate": (
        node("a", lambda T: T.a.mask((T.site == "A") & (np.arange(N) % 2 == 0))),
        {"a", "site"},
        node("a", lambda T: T.a.where(np.arange(N) % 2 == 0)),
    ),
    "rows-lack-the-same": (
        lambda X, Z: (X.assign(**X.loc[: 0.94 * N, ["a", "b"]]), Z),
        {"a", "b"},
        lambda X, Z: (X.assign(**X.loc[: 0.96 * N, ["a", "b"]]), Z),
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
    "neighbours-alike": (  # couples, not neighbours in a sorted table
        node("c", lambda T: T.c.iloc[np.arange(N) // 2 * 2].to_numpy()),
        {"c"},
        node("c", lambda T: np.sort(T.c.iloc[np.arange(N) // 2 * 2].to_numpy())),
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x, "upper half of its range, and curves and slopes rest on these. Take its logarithm"),
        (lambda x: x - 1, "upper half of its range, and curves and slopes rest on these. Take its ranks"),
        (lambda x: 100 - x, "lower half of its range, and curves and slopes rest on these. Take its ranks"),
        (lambda x: np.where(x > 8, 1.0, x), ""),
        (lambda x: np.minimum(np.round(x), 9), ""),
    ],
)
def test_a_skewed_covariate_is_advised_on(change, said):
    """Not one with a few values, or with one value far out, which is told by itself."""
    X, Z = clean()
    skewed = np.exp(1.2 * np.random.default_rng(3).normal(size=N))
    told = found(X, Z.assign(density=change(skewed)), "skewed-covariate")
    assert said in str(told[0]) if said else not told
    far = np.where(np.arange(N) == 3, 500.0, np.random.default_rng(4).normal(size=N))
    assert not found(X, Z.assign(density=far), "skewed-covariate")


def test_empty_corners_are_told_with_values_that_rows_have():
    """People of 25 came later, in numbers and dates; levels, skewed and missing values make no corner."""
    X, Z = clean()
    rng = np.random.default_rng(5)
    year = rng.integers(1966, 1974, N)
    age = np.where(year > 1967, rng.integers(16, 31, N), rng.integers(16, 25, N))
    (one,) = found(X, Z.assign(age=age, year=year), "empty-corner")
    assert not one.looks_wrong
    told = "'age' from 25 on with 'year' up to 1967 (none, where "
    assert f"some combinations of covariates 'age' and 'year': {told}" in one.message
    assert (
        "Name values that rows have together: with 'age' from 25 on, most have 'year' 1968 to" in one.advice
    )
    days = pd.Timestamp("1966-01-01") + pd.to_timedelta(365 * (year - 1966), unit="D")
    (one,) = found(X, Z[["site"]].assign(age=age, seen=days), "empty-corner")
    assert "'seen' up to 1967-01-01" in one.message
    gaps = np.where(np.arange(N) % 2 == 0, age, np.nan)
    others = np.where(np.arange(N) % 2 == 1, year, np.nan)
    assert not found(X, Z.assign(age=gaps, year=others), "empty-corner", missing="drop")
    assert not found(X, Z.assign(age=age, late=1.0 * (year > 1967)), "empty-corner")
    for size, alike in ((N, 0.5), (60, 0.0)):
        both = rng.multivariate_normal([0, 0], [[1, alike], [alike, 1]], size)
        pair = pd.DataFrame({"a": np.exp(both[:, 0]), "b": np.round(both[:, 1], 1)})
        assert not found(rng.normal(size=(size, 3)), pair, "empty-corner")
    many = pd.DataFrame(rng.normal(size=(N, 1)) + 0.2 * rng.normal(size=(N, 5)), columns=list("pqrst"))
    assert len(found(X, many, "empty-corner")) == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("code", CASES)
def test_each_warning_has_its_table_and_a_near_miss(code):
    change, columns, near_miss = CASES[code]
    code = code.split(" of ")[0]  # some have several cases
    (one, *_) = found(*change(*clean()), code)
    assert columns <= set(one.columns)
    for name in columns:
        assert repr(name) in one.message or len(columns) > 3
    assert one.message.endswith(".")
    assert one.advice.endswith(".") or not one.looks_wrong
    assert found(*near_miss(*clean()), code) == []


def test_parts_of_a_whole_are_told_once():
    X, Z = clean()
    assert found(shares_of(X), Z, "collinear-nodes") == []


def test_row_numbers_among_the_nodes_make_no_series():
    X, Z = clean()
    X = X.assign(row=np.arange(len(X)))
    assert found(X, Z, "identifier-node")
    assert found(X, Z, "ordered-rows") == []


def test_rows_sorted_by_a_covariate_are_no_series():
    """Rows sorted by a covariate that moves the means follow each other only through that covariate."""
    X, Z = clean()
    Z = Z.sort_values("site").reset_index(drop=True)
    assert found(X.add(4.0 * (Z.site == "A"), axis=0), Z, "ordered-rows") == []


def test_rows_sorted_by_a_label_that_nobody_uses_are_no_series():
    X, Z = clean()
    Z = Z.sort_values("site").reset_index(drop=True)
    X = X.add(4.0 * (Z.site == "A"), axis=0)
    assert found(X, Z[["age"]], "ordered-rows")
    assert not found(X, Z[["age"]], "ordered-rows", rest=Z[["site"]].rename(columns={"site": "label"}))


def test_a_row_that_is_a_little_like_many_before_it_belongs_to_a_series():
    """What edges lose by the order of rows is the sum over all lags, not the correlation with one row."""
    X, Z = clean()
    rng = np.random.default_rng(0)
    slow = pd.DataFrame(rng.normal(size=X.shape), columns=X.columns).rolling(40).mean().bfill()
    (said,) = found(X + 0.8 * slow / slow.std(), Z, "ordered-rows")
    numbers = r"correlation 0\.\d\d with the last one, 0\.1\d with the last \d\d on average"
    assert re.search(numbers, said.message), said.message


def test_a_row_that_breaks_a_relation_is_named():
    X, Z = clean()
    rng = np.random.default_rng(0)
    X = X.assign(total=X.a + X.b + 0.02 * rng.normal(size=len(X)))
    assert not found(X, Z, "broken-relation"), "it is a relation in all rows"
    X.loc[[7, 90], "total"] += [9.0, -12.0]
    (one,) = found(X, Z, "broken-relation")
    assert one.columns == ("total", "a", "b")
    assert "in row 7" in one.message
    assert "But for 2 rows" in one.message
    gaps = X.copy()
    gaps.loc[2, "c"] = np.nan
    assert "in row 7" in found(gaps, Z, "broken-relation")[0].message, "rows are those of the whole table"
    X["total"] = X.a + X.b + 0.5 * rng.normal(size=len(X))
    X.loc[7, "total"] += 9
    assert not found(X, Z, "broken-relation"), "without it there is none"


def test_few_rows_few_groups_and_groups_that_keep_nothing_together():
    X, Z = clean()
    assert "9.8 rows per node" in found(X.iloc[:49], Z.iloc[:49], "few-rows")[0].message
    assert "150 or more are wanted" in found(X.iloc[:149], Z.iloc[:149], "few-rows")[0].message
    assert not found(X.iloc[:150], Z.iloc[:150], "few-rows")
    assert found(X.iloc[:60], Z[["age"]].iloc[:60], "few-rows"), "60 rows are few for anything that moves"
    assert not found(X.iloc[:100], Z[["age"]].iloc[:100], "few-rows")
    assert found(X, Z, "few-groups", groups=np.arange(N) % 19)
    assert not found(X, Z, "few-groups", groups=np.arange(N) % 20)
    assert found(X, Z, "groups-of-one", groups=np.arange(N))
    labels = pd.Series(np.arange(N) % 50, dtype=object, name="subject").where(np.arange(N) > 2, None)
    assert found(X, Z, "missing-groups", groups=labels)[0].columns == ("subject",)
    dropped = gf.check_data(X, Z, labels, missing="drop")
    assert "3 rows without the label of a group would be dropped." in dropped.changes
    assert dropped.rows_left_out == 3
    assert not [one for one in dropped.warnings if one.code == "missing-groups"]


def test_a_node_that_groups_have_says_nothing_of_what_goes_on_within_them():
    X, Z = clean()
    county = pd.Series(np.arange(N) // 4, name="county")
    (one,) = found(X.assign(f=X.a.groupby(county).transform("mean")), Z, "node-of-groups", groups=county)
    assert one.columns == ("f",)
    assert "never varies within a group of 'county'" in one.message
    assert not one.looks_wrong
    assert one.advice.startswith("Its edges compare 100 groups.")
    gaps = X.a.groupby(county).transform("mean").where(np.arange(N) % 5 > 0)
    assert found(X.assign(f=gaps), Z, "node-of-groups", groups=county, missing="drop")
    assert not found(X, Z, "node-of-groups", groups=np.arange(N)), "a group of one row never varies"


def test_levels_that_few_groups_have_are_named():
    X, Z = clean()
    county = pd.Series(np.arange(N) // 4, name="county")
    city = np.where(county < 9, "yes", "no")
    (one,) = found(X, Z.assign(city=city), "level-of-few-groups", groups=county)
    assert one.message.endswith("of 'county', and 1 level has few of the 100 groups: 'yes' 9.")
    assert not one.looks_wrong
    within = np.where(np.arange(N) == 0, "no", city)
    for other in (np.where(county < 10, "yes", "no"), within):
        assert not found(X, Z.assign(city=other), "level-of-few-groups", groups=county)
    assert not found(X, Z.assign(city=city), "level-of-few-groups", groups=np.arange(N))
    (one,) = found(X, Z.assign(city=np.where(county < 3, "yes", "no")), "rare-category", groups=county)
    assert "'yes' 12" in one.message


def test_texts_whose_rows_are_alike_may_be_subjects_the_widest_first():
    """Artists with several lists each: both are named, and the artist, who is more careful, is advised."""
    X, Z = clean()
    rng = np.random.default_rng(5)
    artist = rng.integers(0, 24, N)
    part = 3 * artist + rng.integers(0, 3, N)
    alike = X + 1.2 * rng.normal(size=(24, X.shape[1]))[artist]
    rest = pd.DataFrame({"part": [f"l{i}" for i in part], "artist": [f"a{i}" for i in artist]})
    rest["other"] = [f"o{i}" for i in rng.integers(0, 24, N)]
    (one,) = found(alike, Z, "repeated-subjects", rest=rest.drop(columns="part"))
    assert one.columns == ("artist",)
    assert "of the variance of a node is between values of 'artist'" in one.message
    assert one.advice.parts["group"] == Argument("group", "artist")
    (one,) = found(alike, Z, "repeated-subjects", rest=rest)
    assert one.columns == ("artist",)  # a part of an artist says no more
    sparse = rest.where(pd.Series(rng.random(N) < 0.4), " ")
    assert not found(alike, Z, "repeated-subjects", rest=sparse)
    assert not found(X, Z, "repeated-subjects", rest=rest[["artist", "other"]])
    several = rest.assign(part=[f"l{i}" for i in np.where(rng.random(N) < 0.9, part, 0)])
    (one,) = found(alike, Z, "repeated-subjects", rest=several)
    assert one.columns[0] == "artist"
    assert one.message.startswith("Columns 'artist' (24 different values), 'part' (")


def test_a_value_that_many_rows_have_is_good_to_know():
    X, Z = clean()
    dry = X.assign(rain=np.where(np.arange(N) % 4 > 0, 0.0, np.exp(X.a)), hours=np.arange(N) % 50 + 0.5)
    (one,) = found(dry, Z, "often-one-value")
    assert one.message == "1 node has one and the same value in many rows ('rain' 75% are 0)."
    assert not one.looks_wrong


def test_rows_that_are_lost_more_often_at_a_level_are_told_with_what_costs_them():
    """Also where a fit is to leave them out; not where they are lost alike, or filled in."""
    X, Z = clean()
    rng = np.random.default_rng(8)
    smoker = Z.smoker.to_numpy()
    gone = rng.random(N) < np.where(smoker, 0.5, 0.15)
    gaps = X.assign(b=X.b.mask(gone))
    for missing in ("drop", "error"):
        (one,) = found(gaps, Z, "lost-rows-follow-covariate", missing=missing)
        lost, n = int(gone[smoker].sum()), int(smoker.sum())
        assert f"go with 'smoker': {lost} of {n} where it is 'True', " in one.message
        assert one.advice.parts["without"].parts["left"] == N
    assert not found(gaps, Z, "lost-rows-follow-covariate", missing="impute")
    alike = X.assign(b=X.b.mask(rng.random(N) < 0.3))
    assert not found(alike, Z, "lost-rows-follow-covariate", missing="drop")


def test_rows_that_share_a_value_with_the_next_one_may_be_a_household():
    """Whichever column has it; not where a group or the time is named, nor values that many rows have."""
    X, Z = clean()
    pairs = np.arange(N) // 2
    income = np.random.default_rng(6).normal(size=N)[2 * pairs]
    (one,) = found(X, Z, "neighbours-alike", rest=pd.DataFrame({"income": income}))
    assert one.message.startswith("200 rows have the same 'income' as the next row, where 2 would by chance")
    assert not found(X.assign(a=income), Z, "neighbours-alike", groups=pairs)
    assert not found(X.assign(a=income), Z, "neighbours-alike", time=np.arange(N))
    assert not found(X.assign(a=np.round(income)), Z, "neighbours-alike")
    slow = np.cumsum(np.random.default_rng(7).normal(size=N))[2 * pairs]
    assert not found(X, Z, "neighbours-alike", rest=pd.DataFrame({"level": slow}))
    few = np.where(np.arange(N) < 30, income, X.a)
    assert not found(X.assign(a=few), Z, "neighbours-alike")


def test_copies_with_other_covariates_are_counted_beside_copies():
    X, Z = clean()
    again = np.r_[np.arange(N), np.arange(60), np.arange(60, 110)]
    X2, Z2 = X.iloc[again].reset_index(drop=True), Z.iloc[again].reset_index(drop=True)
    (one,) = found(X2, Z2, "duplicate-rows")
    assert one.message.startswith(f"110 rows of {N + 110} are copies of an earlier row.")
    Z2.loc[N + 60 :, "site"] = Z2.loc[N + 60 :, "site"].map({"A": "B", "B": "C", "C": "A"})
    (one,) = found(X2, Z2, "duplicate-rows")
    assert one.message.startswith(f"60 rows of {N + 110} are copies of an earlier row, and 50 more repeat")


def test_columns_that_are_not_used_are_looked_at():
    X, Z = clean()
    subject = [f"p{i // 4}" for i in range(N)]
    (one,) = found(X, Z, "repeated-subjects", rest=pd.DataFrame({"pid": subject}))
    assert one.advice.parts["group"] == Argument("group", "pid")
    for rest in ({"score": np.arange(N) % 7}, {"id": np.arange(N)}, {"note": ["fine", "late"] * (N // 2)}):
        assert gf.check_data(X, Z, rest=pd.DataFrame(rest)).codes() == []
    assert found(X, Z, "unused-dates", rest=Z[["day"]].rename(columns={"day": "when"}))
    assert not found(X, Z, "unused-dates", rest=Z[["day"]].rename(columns={"day": "when"}), time=np.arange(N))
    lost = pd.DataFrame({"crp": ["<0.1", *map(str, range(1, N))]})
    (one,) = found(X, Z, "text-among-numbers", rest=lost.set_axis(np.arange(N) + 7))
    assert f"1 of {N} values is text ('<0.1', row 0)" in one.message
    checked = gf.check_data(X, Z, rest=lost)
    assert checked.reminders() == [f"Look again: {one}"]
    assert checked.reminders(meant=["crp"]) == []


def test_a_node_that_a_category_or_a_curve_determines_leaks():
    X, Z = clean()
    assert found(X.assign(f=Z.site.map({"A": 1.0, "B": 5.0, "C": 2.5}) + 0.01 * X.a), Z, "leak")
    assert found(X.assign(f=(Z.age - 50) ** 2), Z, "leak")
    assert not found(X.assign(f=(Z.age - 50) ** 2 + 300 * X.a), Z, "leak")


def test_a_node_that_has_one_value_at_each_value_of_a_number_leaks():
    """Budgets by month, up and down; each of twelve values has twenty rows, and bins would join some."""
    rng = np.random.default_rng(0)
    month, X = rng.integers(1, 13, 240), pd.DataFrame(rng.normal(size=(240, 3)), columns=list("abc"))
    Z = pd.DataFrame({"month": month})
    (one,) = found(X.assign(ads=7 * month % 12 * 10.0), Z, "leak")
    assert one.columns == ("month", "ads")
    assert not found(X.assign(ads=7 * month % 12 * 10.0 + 20 * X.a), Z, "leak")


def test_a_covariate_that_a_node_determines_leaks():
    """Also where it turns: no correlation sees it, and edges of the node follow its own size."""
    rng = np.random.default_rng(0)
    X, Z = (
        pd.DataFrame(rng.normal(size=(500, 3)), columns=list("abc")),
        pd.DataFrame({"z": rng.normal(size=500)}),
    )
    (one,) = found(X, Z.assign(size=X.b**2), "leak")
    assert one.columns == ("size", "b")
    assert re.match(r"Covariate 'size' is determined by node 'b' \(9\d\.\d% of the variance of", one.message)
    assert not found(X, Z.assign(size=X.b**2 + 0.5 * X.c), "leak")
    assert not found(X, Z.assign(high=(X.b > 0).astype(int)), "leak"), (
        "one of two values may be clear from a node"
    )


def test_two_relations_are_told_apart():
    X, Z = clean()
    both = X.assign(f=X.a + X.b, g=X.c - X.d)
    (one,) = found(both, Z, "collinear-nodes")
    said = {
        frozenset(part.replace("'", "").replace(" from ", ", ").split(", "))
        for part in one.message.partition(": ")[2].rstrip(".").split("; ")
    }
    assert said == {frozenset("abf"), frozenset("cdg")}


def test_areas_and_radii_of_real_cells_are_told_once():
    """A relation that was told as a sum is not told again as a curve, unless more nodes are in it."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    X, Z = bunch.data.filter(regex="radius$|perimeter$|area$|texture$"), pd.DataFrame({"d": bunch.target})
    told = [set(one.columns) for one in found(X, Z, "monotone-nodes")]
    assert told == [{"mean radius", "mean perimeter", "mean area"}, {"worst radius", "worst area"}]
    (one,) = found(X, Z, "collinear-nodes")
    assert set(one.advice.parts["drop"].value) < {"worst radius", "worst perimeter"}, "one of two is left"
    X, Z = clean()
    nearly = X.assign(f=X.a + 0.01 * RNG.normal(size=N))
    assert [set(one.columns) for one in found(nearly, Z, "monotone-nodes")] == [{"a", "f"}]
    assert found(nearly, Z, "collinear-nodes") == []
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
    X = pd.DataFrame(rng.normal(size=(400, 100))).add_prefix("roi_")
    Z = pd.DataFrame(rng.normal(size=(400, 30))).add_prefix("z_")
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
    assert "'share' is left out" in one.message
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
    short = days % 1_000_000
    (one,) = found(X, Z.assign(trade_date=short), "number-dates")
    assert "date_format='yymmdd'" in one.advice
    assert found(X, Z.assign(income=short), "number-dates") == [], "many numbers are such"


AGE = clean()[1][["age"]]  # enough covariates for what is about nodes


def test_numbers_that_never_come_up_twice_are_asked_about():
    X, Z = clean()[0], AGE
    code = 100_000 + RNG.permutation(899_999)[:N]
    (one,) = found(X.assign(code=code), Z, "identifier-node")
    assert one.columns == ("code",)
    assert one.advice.parts["drop"] == Argument("drop", ["code"])
    gaps = pd.Series(code, dtype=float).where(np.arange(N) % 9 > 0)
    assert found(X.assign(code=gaps), Z, "identifier-node", missing="drop"), "a gap makes floats of them"
    with pytest.warns(gf.DataWarning, match="Column 'code' looks like an identifier but is used as a node"):
        gf.from_table(X.assign(code=code, age=Z.age), ["age"])
    assert found(X, Z.assign(code=code), "identifier-covariate")[0].columns == ("code",)
    assert not found(X, Z.assign(day_number=np.arange(N)), "identifier-covariate"), "a time may matter"
    counts = (X * 1e6).round()  # fine counts, all of them different: measurements
    assert not found(counts, Z, "identifier-node")
    by_score = X.assign(score=np.sort(np.random.default_rng(0).binomial(40, 0.5, N)))
    assert not found(by_score, Z, "identifier-node"), "a table that somebody sorted"
    assert found(X.assign(subject=np.arange(N) // 20), Z, "identifier-node")


def test_a_cluster_label_among_measurements_is_asked_about():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 12))).add_prefix("gene_")
    (one,) = found(X.assign(cluster=rng.integers(0, 11, N)), AGE, "discrete-node")
    assert one.columns == ("cluster",)
    assert "'cluster' (11 whole numbers, 0 to 10)" in one.message
    assert "codes of a category" in one.message
    assert "?" in one.message
    assert one.advice.parts["drop"] == Argument("drop", ["cluster"])
    two = X.assign(cluster=rng.integers(0, 11, N), her2=rng.integers(0, 2, N))
    yes_or_no, one = found(two, AGE, "discrete-node")
    assert (yes_or_no.columns, one.columns) == (("her2",), ("cluster",))
    assert yes_or_no.message == "Node 'her2' has two values, as yes and no."
    assert not found(X.assign(steps=rng.integers(0, 11, N) / 2), AGE, "discrete-node")


def test_whole_numbers_that_other_nodes_follow_are_no_codes():
    """Visits and years of school, also where most have none; not labels, of which two may have most rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1_000, 5))).add_prefix("node_")
    age = clean(1_000)[1][["age"]]
    school = np.digitize(rng.normal(size=1_000) + X.node_0, np.linspace(-2, 2, 9))
    visits = np.minimum(rng.poisson(np.exp(0.8 * X.node_1 - 0.2)), 14)
    assert not found(X.assign(school=school, visits=visits), age, "discrete-node")
    place = rng.choice(8, 1_000, p=[0.45, 0.4, *[0.025] * 6])
    moved = X + 1.5 * rng.normal(size=(8, 5))[place]
    (one,) = found(moved.assign(place=place, school=school), age, "discrete-node")
    assert one.columns == ("place",)


@pytest.mark.parametrize("n_values", [4, 6, 7, 11])
def test_items_of_a_questionnaire_are_known_by_their_scale(n_values):
    rng = np.random.default_rng(0)
    items = pd.DataFrame(rng.integers(0, n_values - 1, (N, 6))).add_prefix("item_") + 1
    items.loc[:2, items.columns != "item_2"] = n_values  # an answer that few give, and nobody to item 2
    X = clean()[0].join(items)
    (one,) = found(X, AGE, "discrete-node")
    assert set(one.columns) == set(items.columns)
    assert "6 nodes have few different values, like answers on a scale (Likert items)" in one.message
    assert f"1 to {n_values}: 'item_" in one.message
    for ward in (rng.integers(0, 3, N), rng.integers(2, n_values, N)):  # another range: no item
        for nodes in (X, items):
            several = [set(one.columns) for one in found(nodes.assign(ward=ward), AGE, "discrete-node")]
            assert several == [set(items.columns), {"ward"}]
            assert "unlike the other nodes" not in str(gf.check_data(nodes.assign(ward=ward), AGE))
    two = items[["item_0", "item_2"]]
    (one,) = found(two, AGE, "discrete-node")
    assert set(one.columns) == set(two.columns), "there is nothing that they could be unlike"


def test_a_ratio_of_two_that_nearly_go_together_is_found():
    rng = np.random.default_rng(3)
    pupils = np.exp(rng.normal(7, 1.5, N))
    ratio = np.exp(rng.normal(3, 0.05, N))
    X = clean()[0].assign(pupils=pupils, teachers=pupils / ratio, ratio=ratio)
    assert found(X, AGE, "monotone-nodes")
    (one,) = found(X, AGE, "product-nodes")
    assert set(one.columns) == {"pupils", "teachers", "ratio"}
    assert not found(X.assign(ratio=ratio * np.exp(rng.normal(0, 0.02, N))), AGE, "product-nodes")
    assert not found(X.assign(ratio=pupils**2).drop(columns="teachers"), AGE, "product-nodes")


def test_every_code_for_missing_is_named():
    X, Z = clean()[0], AGE
    bmi = RNG.normal(25, 3, N)
    bmi[:4], bmi[4:9] = -9, 999
    for table in ({"X": X, "Z": Z.assign(bmi=bmi)}, {"X": X.assign(bmi=bmi), "Z": Z}):
        (one,) = found(code="missing-code", **table)
        assert "'bmi' has -9 in 4 rows and 999 in 5 rows" in one.message
    item = RNG.integers(1, 6, N).astype(float)
    item[:5], item[5:8] = 99, 98
    (one,) = found(X.assign(item=item), Z, "missing-code")
    assert "'item' has 98 in 3 rows and 99 in 5 rows" in one.message
    assert "(5 whole numbers, 1 to 5)" in found(X.assign(item=item), Z, "discrete-node")[0].message


def test_a_code_that_is_clear_in_one_column_is_named_in_all_that_have_it():
    rng = np.random.default_rng(4)
    X, Z = clean()[0], AGE
    coded = np.arange(N) % 40 == 0
    bmi, income = (np.where(coded, -9, own) for own in (rng.normal(25, 3, N), rng.lognormal(10, 1.5, N)))
    assert not found(X.assign(income=income), Z, "missing-code"), "-9 may be a loss"
    (one,) = found(X.assign(income=income, bmi=bmi), Z, "missing-code")
    assert set(one.columns) == {"income", "bmi"}
    nodes, covariates = found(X.assign(income=income), Z.assign(bmi=bmi), "missing-code")
    assert (nodes.columns, covariates.columns) == (("income",), ("bmi",))
    inside, edge = rng.normal(0, 20, N).round(), rng.normal(0, 3, N).round().clip(-9, None)
    (one,) = found(X.assign(inside=inside, edge=edge), Z.assign(bmi=bmi), "missing-code")
    assert one.columns == ("bmi",), "-9 within or at the end of what is measured is a value"


def test_what_looks_wrong_is_no_shape():
    """A code for missing values or a typing error makes no node skewed, and no logarithm mends it."""
    X, Z = clean()[0], AGE
    hdl = np.where(np.arange(N) % 30, RNG.normal(55, 15, N), -99)
    bmi = np.where(np.arange(N) == 7, 260, RNG.normal(26, 4, N))
    assert gf.check_data(X.assign(hdl=hdl, bmi=bmi), Z).codes() == ["missing-code", "outliers"]
    assert gf.check_data(X.assign(f=[-0.0, *X.a[1:].abs()]), Z).columns[5].note.startswith("0 to ")


def test_values_far_out_are_counted_in_all_columns():
    X, Z = clean()[0], AGE
    f = np.where(np.arange(N) == 7, 60.0, RNG.normal(size=N))
    g = np.where(np.arange(N) % 33, RNG.normal(size=N), 90.0)
    (one,) = found(X.assign(f=f, g=g), Z, "outliers")
    n_far = (g == 90).sum()
    assert one.message.startswith(f"{1 + n_far} values are more than 10 robust standard deviations from")
    assert "may be errors: 'f' (60 in row 7)." in one.message
    assert f"rather a long tail, or another unit: 'g' ({n_far}, such as 90 in row 0)." in one.message
    assert one.columns == ("f", "g")
    assert not found(X.assign(g=g), Z, "outliers"), "a long tail alone is told as one"
    skewed = found(X.assign(f=f, g=g), Z, "skewed-nodes")[0]
    assert "; values that look wrong are left aside)" in skewed.message


def levels(**sizes):
    """A covariate with so many rows of each level, the rest "most"."""
    column = [level for level, size in sizes.items() for _ in range(size)]
    return AGE.assign(site=column + ["most"] * (N - len(column)))


def test_pooling_is_advised_where_it_helps():
    X = clean()[0]
    for rare in ({"a": 2}, {"a": 1, "b": 1}, {"a": 16, "b": 14}, {"a": 7, "b": 5}, {"a": 19, "b": 1, "c": 1}):
        (one,) = found(X, levels(**rare), "rare-category")
        assert "rare=" not in one.advice, rare
    for rare in ({"a": 9, "b": 8, "c": 7}, {f"s{i}": 4 for i in range(6)}):
        (one,) = found(X, levels(**rare), "rare-category")
        assert one.advice.parts["rare"] == Argument("rare", 20, "from_table"), rare
    few = {f"s{i}": 16 for i in range(5)}  # all levels are rare: a pool of all is constant
    (one,) = found(X.iloc[:80], levels(**few).iloc[:80], "rare-category")
    assert "rare=" not in one.advice


def test_after_pooling_the_pool_is_not_to_be_pooled():
    X = clean()[0]
    table = X.join(levels(a=4, b=3, c=40))
    data = gf.from_table(table, ["site"], list("abcde"), rare=20)
    (one,) = found(data.X, data.Z, "rare-category", pooled=data.pooled)
    assert "the pooled levels ('a', 'b') have 7 rows only" in one.message
    assert "rare" not in one.advice
    assert "'other'" not in str(one), "nobody can say what that is alike"
    table = X.join(levels(a=9, b=8, c=3, d=2))  # a larger pool helps
    data = gf.from_table(table, ["site"], list("abcde"), rare=5)
    (one,) = found(data.X, data.Z, "rare-category", pooled=data.pooled)
    assert one.advice.parts["rare"] == Argument("rare", 20, "from_table")


def test_levels_that_differ_in_blanks_want_trimming():
    X, Z = clean()
    sex = np.where(np.arange(N) % 2, "F", "M").astype(object)
    sex[1:14:2], sex[0] = " F", "m"
    check = gf.check_data(X, Z.assign(sex=sex))
    (one,) = [one for one in check.warnings if one.columns == ("sex",)]
    assert one.code == "level-spelling"
    assert "' F' (7 rows) beside 'F' (193), 'm' (1 row) beside 'M' (199)" in one.message
    assert "without blanks" in one.advice
    assert not found(X, Z, "level-spelling")


def test_one_node_is_no_graph():
    X, Z = clean()[0], AGE
    (one,) = found(X[["a"]], Z, "too-few-nodes")
    assert "at least 2 nodes" in one.message


def test_nodes_in_a_sentence_agree_with_their_verb():
    X, Z = clean()
    several = X.assign(f=1.0, g=2.0, h="text", i="more", j=np.arange(N), k=np.arange(N) + 7)
    said = str(gf.check_data(several, Z))
    assert (
        "Nodes 'f', 'g' have the same value in every row, so they can have no edge; fit refuses them." in said
    )
    assert "Nodes 'h', 'i' hold text" in said
    assert "Nodes 'j', 'k' look like" in said
    with pytest.raises(gf.DataError, match=r"Nodes 'f', 'g' have the same value .* Drop them from X\."):
        gf.RegGMM().fit(X.assign(f=1.0, g=2.0), Z[["age"]])
    with pytest.warns(
        gf.DataWarning, match="Covariates 'u', 'v' are constant in the training rows and are ig"
    ):
        gf.RegGMM().fit(X, Z[["age"]].assign(u=1, v=2))


def test_totals_are_told_from_their_parts():
    X, Z = clean()[0], AGE
    sums = X.assign(first=X.a + X.b, second=X.c + X.d + X.e)
    sums["all"] = sums["first"] + sums["second"]
    (one,) = found(sums, Z, "collinear-nodes")
    assert set(one.advice.parts["drop"].value) == {"first", "second", "all"}
    assert "'first' from 'a', 'b'" in one.message
    assert "'second' from 'c', 'd', 'e'" in one.message
    assert not found(sums.drop(columns=["first", "second", "all"]), Z, "collinear-nodes")
    gaps = sums.where(np.random.default_rng(3).random(sums.shape) > 0.03)
    (one,) = found(gaps, Z, "collinear-nodes")
    assert set(one.advice.parts["drop"].value) == {"first", "second", "all"}, "whatever is missing"


def test_ratios_and_products_are_told_from_their_parts():
    rng = np.random.default_rng(0)
    pupils, computers, pay = rng.lognormal([7.0, 4.0, 3.0], 0.9, size=(N, 3)).round().T
    computers[:20] = 0
    X = pd.DataFrame({"pupils": pupils, "computers": computers, "per_pupil": computers / pupils, "pay": pay})
    (one,) = found(X, AGE, "product-nodes")
    assert set(one.columns) == {"pupils", "computers", "per_pupil"}
    assert one.message.startswith("A node follows from others, as a ratio or product does (R^2 1.000 of log")
    assert not found(X.drop(columns=one.advice.parts["drop"].value), AGE, "product-nodes")
    height, weight = rng.normal(1.7, 0.1, N), rng.normal(75, 12, N)
    body = pd.DataFrame({"height": height, "weight": weight, "bmi": (weight / height**2).round(1)})
    assert "bmi" in gf.check_data(body, AGE).warnings[0].columns


@pytest.mark.parametrize("seed", range(5))
def test_amounts_that_are_alike_are_no_products(seed):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(N, 1))
    X = pd.DataFrame(np.exp(2 * common + 0.3 * rng.normal(size=(N, 8)))).add_prefix("x")
    assert not found(X, AGE, "product-nodes")
    assert not found(X.assign(total=X.x0 + X.x1), AGE, "product-nodes"), "a total is told as one"


def test_a_node_that_nearly_follows_from_others_is_named_with_them():
    """Cholesterol is the sum of its kinds, one of which is not in the table."""
    X, Z = clean()[0], AGE
    left = np.random.default_rng(0).normal(size=N)
    spread = (X.a + X.b).std()
    (one,) = found(X.assign(f=X.a + X.b + 0.12 * spread * left), Z, "collinear-nodes")
    assert set(one.columns) == {"a", "b", "f"}
    assert "'f' (R^2 0.98" in one.message
    assert one.advice.parts["drop"] == Argument("drop", ["f"])
    assert not found(X.assign(f=X.a + X.b + 0.2 * spread * left), Z, "collinear-nodes")


@pytest.mark.parametrize("unit", [1e100, 1e-100])
def test_totals_are_found_in_any_unit(unit):
    X = clean()[0] * unit
    assert not found(X, AGE, "collinear-nodes")
    assert found(X.assign(f=X.a + X.b), AGE, "collinear-nodes")


def test_where_nodes_are_as_many_as_rows_totals_cannot_be_told():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 70))).add_prefix("x")
    X["total"] = X.x0 + X.x1
    check = gf.check_data(X, AGE.iloc[:80])
    assert check.codes() == ["few-rows"]
    assert "cannot be told" in check.warnings[0].message
    assert "cannot be told" not in found(X.iloc[:, :40], AGE.iloc[:80], "few-rows")[0].message


def test_rows_of_few_answers_are_alike_by_chance():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (N, 5))).add_prefix("symptom_")
    assert not found(X, clean()[1][["smoker"]], "duplicate-rows")
    items = pd.DataFrame(rng.integers(0, 4, (N // 2, 12)))
    twice = pd.concat([items, items], ignore_index=True).add_prefix("item_")
    Z = clean(N // 2)[1]
    assert found(twice, pd.concat([Z, Z], ignore_index=True), "duplicate-rows")
    trait = 2 * rng.normal(size=(4 * N, 1))  # most people have no symptom, or all
    answers = pd.DataFrame((trait + rng.normal(size=(4 * N, 12)) > 0.5).astype(int)).add_prefix("item_")
    sex = pd.DataFrame({"sex": rng.choice(["F", "M"], 4 * N)})
    assert answers.join(sex).duplicated().mean() > 0.3
    assert not found(answers, sex, "duplicate-rows")
    noise = rng.normal(scale=0.01, size=12)
    assert not found(answers.assign(score=answers @ (1 + noise)), sex, "duplicate-rows")


def test_rows_at_different_times_are_no_copies():
    """Whatever stays the same for a while is measured again; what is written twice is a copy."""
    X, Z = (table.iloc[np.arange(N) // 2].reset_index(drop=True) for table in clean())
    Z, day = Z[["site", "smoker"]], pd.Series(pd.date_range("2020-01-01", periods=N), name="when")
    assert not found(X, Z, "duplicate-rows", time=day)
    assert not found(X, Z, "duplicate-rows", rest=pd.DataFrame({"when": day}))
    (one,) = found(X, Z, "duplicate-rows", time=day.repeat(2).iloc[:N].reset_index(drop=True))
    assert one.message.startswith("200 rows of 400 are copies")
    assert "group" in one.advice
    (one,) = found(X, Z, "duplicate-rows", groups=np.arange(N) // 4)
    assert "group" not in one.advice, "it is named already"


def test_places_and_padded_numbers_are_no_subjects():
    X, Z = clean()[0], AGE
    countries = [f"c{i}" if i < 60 else "US" for i in range(N)]
    hours = ["     " if i % 3 else f"{i:<5d}" for i in range(N)]
    assert not found(X, Z, "repeated-subjects", rest=pd.DataFrame({"country": countries, "hours": hours}))
    (one,) = found(X, Z, "text-among-numbers", rest=pd.DataFrame({"hours": hours}))
    assert f"266 of {N} values are text ('     ', first in row 1)" in one.message


def test_a_series_beside_dates_that_nobody_uses_is_still_one():
    X, Z = clean()
    walks, days = X.cumsum(), pd.DataFrame({"when": pd.date_range("2020-01-01", periods=N)})
    (one,) = found(walks, Z[["age"]], "ordered-rows", rest=days)
    assert one.advice.parts["time"] == Argument("time", "when")
    assert found(walks, Z[["age"]], "unused-dates", rest=days)
    assert not found(X, Z[["age"]], "ordered-rows", rest=days)


def test_a_table_that_was_sorted_by_a_node_is_no_series():
    rng = np.random.default_rng(0)
    score = np.sort(rng.binomial(40, 0.5, N))
    X = pd.DataFrame({f"item_{i}": score + rng.normal(size=N) for i in range(4)}).assign(score=score)
    assert not found(X, AGE, "ordered-rows")


def sorted_scores(shape, n: int = N) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Four items of a skewed score by which rows are sorted, six of them out of place."""
    rng = np.random.default_rng(0)
    score = np.sort(rng.gamma(2.0, size=n))
    score[rng.choice(n, 6, replace=False)] = rng.gamma(2.0, size=6)
    effect = shape(score)[:, None] * [1.0, 0.8, -0.6, 0.5]
    return pd.DataFrame(effect + rng.normal(size=(n, 4)), columns=list("abcd")), score


@pytest.mark.parametrize("shape", [lambda v: v, np.log, lambda v: 4.0 * (v > 2), lambda v: -np.square(v) / 4])
def test_rows_that_are_sorted_by_any_column_but_for_a_few_are_no_series(shape):
    X, score = sorted_scores(shape)
    gaps = pd.Series(score).where(np.arange(N) % 50 > 0)
    tables = {
        "node": (X.assign(score=score), AGE, None),
        "covariate": (X, AGE.assign(score=score), None),
        "unused": (X, AGE, pd.DataFrame({"row": np.arange(N), "score": score})),
        "falling": (X[::-1].reset_index(drop=True), AGE, pd.DataFrame({"score": score[::-1]})),
        "gaps": (X, AGE, pd.DataFrame({"score": gaps.astype("Float64")})),
    }
    for name, (nodes, Z, rest) in tables.items():
        check = gf.check_data(nodes, Z, rest=rest)
        assert not check.is_series, name
        if name != "covariate":  # which may be all that is to be taken out
            (one,) = found(nodes, Z, "sorted-rows", rest=rest)
            assert one.columns == ("score",), name
            assert str(one).startswith("Rows are sorted by 'score', "), name
            assert f"Note: {one}" in check.lines(), name
    assert found(
        X, AGE, "ordered-rows", rest=pd.DataFrame({"other": np.random.default_rng(0).permutation(score)})
    )


def by_size(n: int = 400) -> pd.DataFrame:
    """Companies that somebody sorted by a rank that is made of all their numbers."""
    numbers = np.exp(np.random.default_rng(0).normal(size=(n, 4)) @ (np.eye(4) + 0.4))
    order = np.argsort(-np.argsort(np.argsort(numbers, axis=0), axis=0).sum(axis=1), kind="stable")
    return pd.DataFrame(numbers[order], columns=list("abcd"))


def test_rows_that_are_sorted_by_something_made_of_the_nodes_are_no_series():
    X, Z = by_size(), pd.DataFrame({"age": np.random.default_rng(1).normal(size=400)})
    rest = pd.DataFrame({"rank": np.arange(1, 401)})
    assert not gf.check_data(X, Z, rest=rest).is_series
    (one,) = found(X, Z, "sorted-rows", rest=rest)
    assert "follows from the nodes" in one.message
    both = pd.concat([X, X**1.5], ignore_index=True)  # sorted within each sex
    sexes = pd.DataFrame({"sex": np.repeat(["f", "m"], 400)})
    assert not gf.check_data(both, sexes).is_series


@pytest.mark.parametrize("memory", [0.8, 0.98, 1.0])
def test_a_series_with_a_trend_is_not_taken_for_a_sorted_table(memory):
    rng = np.random.default_rng(0)
    noise = lfilter([1.0], [1.0, -memory], rng.normal(size=(400, 4)), axis=0)
    trend = np.linspace(0, 20, 400)[:, None] * noise.std()
    assert gf.check_data(pd.DataFrame(noise + trend), pd.DataFrame({"age": rng.normal(size=400)})).is_series


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "code": np.sort(np.random.default_rng(0).choice(90_000, N, replace=False)),
        "Unnamed: 0": np.arange(N),
        "seconds": np.arange(N) * 0.5 + np.random.default_rng(0).normal(scale=0.03, size=N),
        "yr": np.sort(1990 + np.random.default_rng(0).binomial(30, 0.5, N)),
        "day": np.sort(np.random.default_rng(0).gamma(2.0, size=N)),
        "seen": 20_200_101 + 100 * (np.arange(N) // 40) + np.arange(N) % 40 // 2,
    }.items(),
)
def test_clocks_years_and_row_numbers_are_no_order_by_a_value(name, values):
    """Means that drift along them are those of a series."""
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(N, 4)), columns=list("abcd"))
    X = X.add(np.linspace(0, 3, N), axis=0)
    assert gf.check_data(X, AGE, rest=pd.DataFrame({name: values})).is_series


def test_a_series_is_one_whatever_rises_with_it():
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
    X = noise.rolling(5, min_periods=1).mean()
    total = np.cumsum(rng.exponential(size=N))
    assert found(X.assign(total=total), AGE, "ordered-rows"), "its steps are as those of sorted values"
    assert found(X, AGE, "ordered-rows", rest=pd.DataFrame({"elapsed": total}))
    walk = (noise + 0.5).cumsum()
    assert found(walk, AGE, "ordered-rows"), "prices that rise"


def test_every_column_is_listed_on_request():
    X, Z = clean()
    check = gf.check_data(X.assign(f=1.0), Z, rest=pd.DataFrame({"note": ["late", None] * (N // 2)}))
    table = check.table.set_index("name")
    assert list(table.index) == [*"abcdef", "age", "site", "smoker", "day", "note"]
    assert table.loc["f", "noticed"] == "constant-node"
    assert table.loc["a", "noticed"] == ""
    assert table.loc["note", ["role", "distinct", "missing"]].tolist() == ["unused", 1, N // 2]
    rows = Z["site"].value_counts()
    assert table.loc["site", "values"] == f"3 levels (rows): 'A' {rows.A}, 'B' {rows.B}, 'C' {rows.C}"
    lines = check.column_lines()
    assert len(lines) == 1 + len(table)
    assert lines[0].split() == ["name", "role", "kind", "distinct", "missing", "values", "noticed"]
    assert len({line.find(word) for line, word in zip(lines[:2], ("role", "node"), strict=True)}) == 1


def test_rare_codes_that_are_numbers_can_be_pooled_and_fitted():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    table["cylinders"] = rng.choice([3, 4, 6, 8], 200, p=[0.03, 0.4, 0.3, 0.27])
    data = gf.from_table(table, covariates=["cylinders"], categories=["cylinders"], rare=20)
    model = gf.RegGMM().fit(data.X, data.Z)
    assert model.encoder_.categorical[0].levels == ("4", "6", "8", "other")


def test_a_node_that_never_changes_at_a_level_is_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["fare", "tip", "tolls"])
    Z = pd.DataFrame({"payment": rng.choice(["card", "cash"], 200)})
    assert "still-node" not in gf.check_data(X, Z).codes()
    X.loc[Z.payment == "cash", "tip"] = 0.0
    (found,) = (one for one in gf.check_data(X, Z).warnings if one.code == "still-node")
    assert found.columns == ("tip",)
    assert "'tip' where it is 'cash'" in found.message


@pytest.mark.parametrize(
    ("shape", "helps"),
    [(lambda right: 1 + right, True), (lambda right: 100 - right, False), (lambda right: right - 1, False)],
    ids=["right", "left", "right and below zero"],
)
def test_logarithms_are_advised_where_they_help(shape, helps):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    X["d"] = shape(rng.exponential(size=300) ** 2)
    (skewed,) = found(X, pd.DataFrame({"z": rng.normal(size=300)}), "skewed-nodes")
    assert ("logarithm" in skewed.message) == helps


@pytest.mark.parametrize(("far", "helps"), [([30.0], True), ([30.0, 1e-3, 2e-3], False), ([-60.0], False)])
def test_logarithms_are_advised_of_far_values_where_they_bring_them_nearer(far, helps):
    """Not where small values are far then in place of large ones, nor where there are none."""
    values = np.exp(np.random.default_rng(0).normal(1, 0.3, (1000, 1)))
    values[: len(far), 0] = far
    (one,) = far_out_findings(values, np.array(["a"], dtype=object), "node", has_scores=False)
    assert ("logarithms" in str(one.advice)) == helps


@pytest.mark.parametrize("off", [0.0, 0.5, 20.0])
def test_a_node_that_follows_from_another_and_a_covariate_is_named(off):
    """Experience is age less years at school and six: given age the two are one."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"school": rng.integers(8, 19, 300), "wage": rng.normal(size=300)})
    age = rng.integers(24, 35, 300)
    X["work"] = age - X["school"] - 6 + off * rng.normal(size=300)
    check = gf.check_data(X, pd.DataFrame({"age": age}))
    told = [one for one in check.warnings if "Given the covariates" in one.message]
    assert [one.code for one in told] == {0.0: ["duplicate-nodes"], 0.5: ["collinear-nodes"], 20.0: []}[off]
    assert all({"school", "work"} <= set(one.columns) for one in told)


def test_a_node_that_a_covariate_determines_makes_no_series():
    """One value in every month, which rises and falls: rows are like those before them for that reason."""
    rng = np.random.default_rng(0)
    X, month = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc")), np.arange(1500) // 50
    spent, Z = rng.normal(size=30)[month], pd.DataFrame({"wave": month})
    assert gf.check_data(X.assign(spent=spent), Z).codes() == ["leak"]
    mistyped = np.where(np.arange(1500) == 7, spent + 0.1, spent)
    assert gf.check_data(X.assign(spent=mistyped), Z).codes() == ["leak"]


def test_rows_follow_each_other_however_yes_and_no_are_written():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 2)), columns=list("ab"))
    Z = pd.DataFrame({"z": rng.normal(size=1000)})
    near, other = (np.cumsum(rng.random(1000) < share) % 2 for share in (0.05, 0.5))
    for names in ([0, 1], ["no", "yes"], [False, True]):
        table = X.assign(near=np.array(names)[near], other=np.array(names)[other])
        assert "ordered-rows" in gf.check_data(table, Z).codes(), names
        mixed = table.assign(near=rng.permutation(table.near))
        assert "ordered-rows" not in gf.check_data(mixed, Z).codes(), names


def test_a_series_that_a_covariate_follows_is_still_one():
    walk = np.cumsum(np.random.default_rng(0).normal(size=(1500, 3)), axis=0)
    X = pd.DataFrame(walk, columns=list("abc"))
    for rows in (1, 50):
        codes = gf.check_data(X, pd.DataFrame({"month": np.arange(1500) // rows})).codes()
        assert {"leak", "ordered-rows"} <= set(codes)


def made_computers(n, rng):
    """Prices, often round ones, that depend on the other nodes; speed and memory have few values."""
    speed, ram = rng.integers(1, 8, n), rng.integers(0, 4, n)
    price = np.exp(6 + 0.3 * speed + 0.1 * ram**2 + 0.15 * rng.normal(size=n))
    price = np.where(rng.random(n) < 0.3, 100 * np.round(price / 100) - 5, np.round(price))
    return pd.DataFrame({"price": price, "speed": speed, "ram": ram})


def test_one_thing_that_is_measured_again_is_told_from_chance():
    rng = np.random.default_rng(0)
    month = pd.DataFrame({"trend": rng.uniform(size=3000)})
    different = made_computers(3000, rng)
    assert different.duplicated().mean() > 0.1, "a test of nothing"
    assert not found(different, month, "repeated-nodes")
    again = made_computers(500, rng).iloc[rng.integers(0, 500, 3000)].reset_index(drop=True)
    (one,) = found(again, month, "repeated-nodes")
    n_again = again[again.price > again.price.min()].duplicated().sum()
    assert one.message.startswith(f"{n_again:,} of 3,000 rows repeat the nodes of an earlier row exactly")
    assert not one.looks_wrong
    assert not found(again.sort_values("price", ignore_index=True), month, "repeated-nodes"), "as in a series"
    assert not found(again, month, "repeated-nodes", groups=again.groupby(list(again)).ngroup())
    exact = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
    assert not found(pd.concat([exact, -exact], ignore_index=True), month, "repeated-nodes")
    assert found(exact.iloc[rng.integers(0, 1500, 3000)].reset_index(drop=True), month, "repeated-nodes")


def test_values_below_a_limit_are_no_repeats():
    """Two substances, most of both below what can be measured in the same samples."""
    rng = np.random.default_rng(0)
    amount = np.exp(rng.normal(size=(3000, 1)) + 0.3 * rng.normal(size=(3000, 3)))
    X = pd.DataFrame(np.maximum(amount, 1.2).round(1), columns=list("abc"))
    assert X.duplicated().mean() > 0.3, "a test of nothing"
    assert not found(X, pd.DataFrame({"age": rng.uniform(size=3000)}), "repeated-nodes")


def test_what_follows_from_other_nodes_repeats_with_them():
    rng = np.random.default_rng(0)
    height = rng.normal(170, 10, 5000).round()
    weight = (rng.normal(75, 12, 5000) + 0.5 * (height - 170)).round()
    X = pd.DataFrame({"height": height, "weight": weight, "bmi": (1e4 * weight / height**2).round(1)})
    assert X.duplicated().mean() > 0.3, "a test of nothing"
    age = pd.DataFrame({"age": rng.uniform(size=5000)})
    assert not found(X, age, "repeated-nodes")
    assert not found(X.drop(columns="bmi"), age, "repeated-nodes")


def test_shapes_of_nodes_are_those_of_the_values_that_are_there():
    """Filled in, gaps sharpen tails, make one value of many, and hide zeros and values far out."""
    rng = np.random.default_rng(5)
    X, Z = clean()
    f = rng.exponential(size=N) ** 0.9
    X["f"] = np.where(rng.random(N) < 0.4, np.nan, f)
    kept = X.f.dropna()
    skewness = ((kept - kept.mean()) ** 3).mean() / kept.std(ddof=0) ** 3
    assert skewness < 2.0 < pd.Series(X.f.fillna(kept.median())).skew(), "the table is no case for this test"
    assert not found(X, Z, "skewed-nodes", missing="impute")
    X["f"] = X.f**1.3
    kept = X.f.dropna()
    skewness = ((kept - kept.mean()) ** 3).mean() / kept.std(ddof=0) ** 3
    (one,) = found(X, Z, "skewed-nodes", missing="impute")
    assert f"'f' {skewness:.1f})" in one.message, "no value looks wrong"
    X, _ = clean()
    X["a"] = X.a.where(rng.random(N) < 0.15)
    assert not found(X, Z, "mostly-one-value", missing="impute")
    X.loc[7, "a"] = 400.0
    (one,) = found(X, Z, "outliers", missing="impute")
    assert "400 in row 7" in one.message
    (one,) = found(clean()[0], Z.assign(age=Z.age.where(X.a.notna()).mask(Z.index == 7, 4000)), "outliers")
    assert "4000 in row 7" in one.message
    X["a"] = rng.poisson(20, N) * (rng.random(N) < 0.7)
    X["a"] = X.a.astype(float).where(rng.random(N) < 0.6)
    (one,) = found(X, Z, "zero-counts", missing="impute")
    assert f"'a' {(X.a == 0).sum() / X.a.notna().sum():.0%}" in one.message


def test_rows_that_lack_the_same_are_no_series_for_that():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.normal(size=(N, 4)) + 10 * (rng.random((N, 4)) < 0.45), columns=list("abcd"))
    X.loc[N // 2 :, ["a", "b", "c"]] = np.nan
    Z = pd.DataFrame({"z": rng.normal(size=N)})
    assert not gf.check_data(X, Z, missing="impute").is_series
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd")).cumsum()
    X.loc[N // 2 :, ["a", "b", "c"]] = np.nan
    assert gf.check_data(X, Z, missing="impute").is_series


def test_where_rows_are_dropped_those_that_are_left_are_described():
    X, Z = clean()
    X.loc[::2, "a"] = np.nan
    X.loc[[8, 21], "b"] = [700.0, 600.0]
    Z.loc[0, "age"] = 300.0
    Z.loc[2, "day"] = pd.Timestamp("1995-01-01")
    Z["site"] = np.where(np.arange(N) == 4, "D", Z.site)
    for policy in ("error", "impute"):
        check = gf.check_data(X, Z, missing=policy)
        assert "such as 700 in row 8" in str(check)
        assert "'D'" in check.table.set_index("name")["values"]["site"]
    assert "many-rows-lost" in gf.check_data(X, Z).codes()
    check = gf.check_data(X, Z, missing="drop", rest=pd.DataFrame({"u": np.arange(N) % 2}))
    assert (check.n_rows, check.rows_left_out) == (N, N // 2)
    assert "many-rows-lost" not in check.codes(), "what it advises was done"
    assert "median, 600 in row 21" in str(check)
    assert not found(X, Z, "rare-category", missing="drop")
    assert "such as 2020-" in check.changes[-1]
    columns = check.table.set_index("name")
    assert columns["missing"]["a"] == N // 2
    assert columns["distinct"][["a", "u"]].tolist() == [N // 2, 1]
    assert (
        columns["values"]["age"] == gf.check_data(X[1::2], Z[1::2]).table.set_index("name")["values"]["age"]
    )
    assert columns["values"]["site"].startswith("3 levels (rows): 'A' ")
    X["b"] = X.b.where(X.a.isna())
    assert "0 rows without missing values" in str(gf.check_data(X, Z, missing="drop"))


def test_rows_that_lack_the_same_columns_are_named():
    rng = np.random.default_rng(7)
    X, Z = clean()
    X.loc[300:, ["a", "b", "c"]] = np.nan
    X.loc[310:315, "d"] = np.nan
    Z.loc[rng.permutation(300)[:60], "age"] = np.nan
    scattered = rng.permutation(300)[:40]
    X.loc[scattered, ["b", "d"]] = np.nan
    first, second = found(X, Z, "rows-lack-the-same")
    assert first.message.startswith("100 rows (from row 300 to row 399) lack 'a', 'b', 'c' together:")
    assert "missing='drop'" in first.advice
    assert second.message.startswith(f"40 rows (the first at row {scattered.min()}) lack 'b', 'd' together:")
    assert "the other rows alone" in found(X, Z, "rows-lack-the-same", missing="drop")[0].advice
    by_chance = clean()[0].mask(rng.random((N, 5)) < 0.4)
    assert not found(by_chance, Z, "rows-lack-the-same"), "many pairs are missing together by chance"


def test_what_filling_in_does_is_said_where_it_is_offered_or_done():
    X, Z = clean()
    X.loc[:5, "a"] = np.nan
    caution = "illed-in values weaken the edges of their columns, and count as if they had been seen."
    assert str(gf.check_data(X, Z)).count(caution) == 1
    assert str(gf.check_data(X, Z, missing="impute")).count(caution) == 1
    assert caution not in str(gf.check_data(X, Z, missing="drop"))
    with pytest.warns(gf.DataWarning, match=caution):
        gf.GraphicalLasso(n_penalties=2, missing="impute").fit(X, Z)


def test_gaps_that_follow_a_number_are_found_and_complete_rows_advised_where_enough_are_left():
    X, Z = clean()
    young, rng = Z.age < 40, np.random.default_rng(2)
    half = X.assign(b=X.b.mask(young & (rng.random(N) < 0.4)))
    (one,) = found(half, Z, "gaps-follow-covariate")
    assert one.columns == ("age", "b")
    assert " to " in one.message
    assert "missing='drop'" in one.advice
    (one,) = found(X.assign(b=X.b.mask(young)), Z, "gaps-follow-covariate", missing="impute")
    assert "missing='drop'" not in one.advice, "nobody young would be left"
    assert "drop=['b']" in one.advice
    assert not found(half, Z, "gaps-follow-covariate", missing="drop")


def test_rows_are_not_to_be_dropped_where_hardly_any_would_be_left():
    X, Z = clean()
    X.loc[10:, "a"] = np.nan
    X.loc[: N - 10, "b"] = np.nan
    said = [one.advice for one in gf.check_data(X, Z).warnings]
    assert not [advice for advice in said if "missing='drop'" in advice]
    assert [advice for advice in said if "no row is complete" in advice]
    with pytest.raises(gf.DataError, match="missing='impute'") as refused:
        gf.GraphicalLasso().fit(X, Z)
    assert "missing='drop'" not in str(refused.value)


def test_a_first_column_without_a_name_is_told_as_one():
    X, Z = clean()
    rest = pd.DataFrame({"Unnamed: 0": np.arange(N), "u": 1.0})
    told = str(gf.check_data(X, Z, rest=rest))
    assert "  not used: 'Unnamed: 0' (the first column, which has no name), 'u'\n" in f"{told}\n"


def test_a_node_with_gaps_that_a_covariate_determines_is_found():
    X, Z = clean(2000)
    Z["step"] = np.random.default_rng(8).choice(list("uvw"), 2000)
    for values in (np.sin(Z.age / 5), Z.step.map({"u": 0.0, "v": 1.0, "w": 7.0}) + 0.01 * X.b):
        leaky = X.assign(f=values.where(np.arange(2000) % 5 > 0))
        assert [one.columns[1] for one in found(leaky, Z, "leak", missing="impute")] == ["f"]


@pytest.mark.parametrize("left", [1, 2, 5])
def test_few_rows_are_left_where_others_are_dropped(left):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 4)), columns=list("abcd"))
    X.loc[left:, "a"] = np.nan
    check = gf.check_data(X, AGE, missing="drop")
    assert check.rows_left_out == N - left


def test_what_covariates_leave_of_a_node_by_rounding_is_no_series() -> None:
    """Such a rest is the same in neighbouring rows on one machine and not on another."""
    z = np.sort(np.random.default_rng(0).normal(size=300))
    features = np.column_stack([np.ones(300), z, z**2])
    nodes = pd.DataFrame({"said": 0.3 * z + 0.1, "noise": np.random.default_rng(1).normal(size=300)})
    rounding = nodes["said"] - features @ np.linalg.lstsq(features, nodes["said"], rcond=None)[0]
    assert 0 < rounding.abs().max() < 1e-12
    assert following_rows(nodes, features) == pytest.approx(following_rows(nodes[["noise"]], features))


def test_rows_in_the_order_of_a_label_that_is_not_used():
    rng = np.random.default_rng(0)
    sport = np.repeat([f"sport {i}" for i in range(8)], 50)
    X = rng.normal(size=(400, 5)) + np.repeat(rng.normal(size=(8, 5)), 50, axis=0)
    X, Z = pd.DataFrame(X, columns=list("abcde")), pd.DataFrame({"age": rng.uniform(20, 60, 400)})
    rest = pd.DataFrame({"sport": sport, "note": rng.choice(["x", "y"], 400)})
    (one,) = found(X, Z, "sorted-by-label", rest=rest)
    assert one.columns == ("sport",)
    assert "Make it a covariate, or name it as the group" in one.advice
    assert found(X, Z, "ordered-rows"), "who does not know the label sees a series"
    assert not found(X, Z.assign(sport=sport), "sorted-by-label", rest=rest[["note"]])
    mixed = rng.permutation(400)
    assert not found(X.iloc[mixed], Z.iloc[mixed], "sorted-by-label", rest=rest.iloc[mixed])


@pytest.mark.parametrize("gaps", [0, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_all_nodes_may_be_levels(gaps, grouped):
    """Nothing is a number then: there is nothing to measure, and rows may still follow each other."""
    rng = np.random.default_rng(0)
    near = np.cumsum(rng.random((400, 2)) < 0.05, axis=0) % 2
    X = pd.DataFrame(np.array(["no", "yes"])[near], columns=["a", "b"]).astype(object)
    X["c"] = rng.choice(list("uvw"), 400)
    X.iloc[:gaps, 0] = None
    Z = pd.DataFrame({"z": rng.normal(size=400), "site": rng.choice(["A", "B"], 400)})
    kinds = {"a": "binary", "b": "binary", "c": "categorical"}
    groups = np.arange(400) // 4 if grouped else None
    codes = gf.check_data(X, Z, groups, missing="drop", typed=kinds).codes()
    assert ("ordered-rows" in codes) is not grouped
    plain = X.iloc[rng.permutation(400)].reset_index(drop=True)
    assert gf.check_data(plain, Z, groups, missing="drop", typed=kinds).codes() == []


def test_a_category_of_one_level_is_no_number():
    X = pd.DataFrame(
        {"a": pd.Categorical(["x"] * 60), "b": pd.Categorical([None] * 60), "c": np.arange(60) % 7}
    )
    codes = gf.check_data(X, pd.DataFrame({"z": np.arange(60.0)})).codes()
    assert {"text-node", "empty-column"} <= set(codes)
