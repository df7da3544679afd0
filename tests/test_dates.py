"""Dates as covariates: days inside, dates outside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.dates import date_text, is_date, parse_date, to_days
from graphfield.data.frames import as_frame


@pytest.mark.parametrize(
    "values",
    [
        ["2020-02-29", "1969-12-31"],
        ["2020-03-01T02", "2020-03-01T08"],
        ["2020-03-01 14:30", None, "2020-03-01 14:31:05.25"],
        ["2020-03-01T14:30:00Z", "2020-03-01T14:30:00+02:00"],
        [pd.Timestamp("2020-03-01"), pd.NaT],
        [pd.Timestamp("2020-03-01").date(), ""],
    ],
)
def test_dates(values):
    column = pd.Series(values, dtype=object)
    assert is_date(column)
    days = to_days(column)
    assert (np.isfinite(days) == (column.notna() & (column != ""))).all()


@pytest.mark.parametrize(
    "values",
    [
        ["2020-02-30"],
        ["01/02/2020"],
        ["2020-03"],
        ["20200301"],
        ["2020-03-01", "unknown"],
        ["2020-03-01x"],
        [2020, 2021],
        [18000.0, 18001.0],
        [True, False],
        [None, None],
        ["", " "],
        [],
    ],
)
def test_no_dates(values):
    assert not is_date(pd.Series(values, dtype=object))
    assert not is_date(pd.Series(values))


def test_days_are_those_of_the_calendar_and_back():
    days = np.random.default_rng(0).integers(-20_000, 40_000, 200).astype(float)
    text = [date_text(day) for day in days]
    np.testing.assert_array_equal(to_days(pd.Series(text)), days)
    expected = np.array(text, dtype="datetime64[D]").astype(float)
    np.testing.assert_array_equal(days, expected)
    assert parse_date("2020-03-01 06:00") == parse_date("2020-03-01") + 0.25
    assert date_text(parse_date("2020-03-01 06:00")) == "2020-03-01 06:00"
    assert parse_date("2020-03-01T14:00+02:00") == parse_date("2020-03-01 12:00")


def test_a_category_of_dates_among_other_words_stays_a_category():
    Z = as_frame(pd.DataFrame({"visit": ["2020-03-01", "none", "late"] * 10}), "Z")
    (column,) = CovariateEncoder().fit(Z).columns
    assert column.levels == ("2020-03-01", "late", "none")


def test_a_model_remembers_that_a_covariate_is_a_date(tmp_path):
    X, Z = small_data(90)
    Z["day"] = pd.date_range("2020-01-01", periods=90)
    model = gf.RegGMM().fit(X, Z)
    again = gf.load(model.save(tmp_path / "m"))
    (column,) = [c for c in again.encoder_.numeric if c.name == "day"]
    assert (column.shown(column.low), column.shown(column.high)) == ("2020-01-01", "2020-03-30")
    at = {"age": 50, "site": "A", "day": "2020-02-01"}
    edges = again.to_networkx(at, threshold=0.01).edges
    assert edges == model.to_networkx({**at, "day": pd.Timestamp("2020-02-01")}, threshold=0.01).edges
    with pytest.warns(gf.ExtrapolationWarning, match=r"2020-01-01 and 2020-03-30.*example 2030-01-01"):
        again.predict_coef(Z.assign(day="2030-01-01"))
    with pytest.raises(gf.DataError, match=r"'age' was numeric in fit, but now holds '2020-01-01"):
        again.predict_coef(Z.assign(age=Z.day.dt.strftime("%Y-%m-%d")))


def test_missing_dates_are_dropped_or_become_the_median_date():
    X, Z = small_data(91)
    day = pd.Series(pd.date_range("2020-01-01", periods=91)).where(np.arange(91) != 90)
    for form in (day, day.dt.strftime("%Y-%m-%d")):
        with pytest.warns(gf.DataWarning, match="'day' 1 by the median date '2020-02-14"):
            filled = gf.RegGMM(missing="impute").fit(X, Z.assign(day=form))
        expected = gf.RegGMM().fit(X, Z.assign(day=day.fillna(pd.Timestamp("2020-02-14 12:00"))))
        at = Z.assign(day="2020-01-15")
        np.testing.assert_allclose(filled.predict_coef(at), expected.predict_coef(at), rtol=1e-5)
    with pytest.warns(gf.DataWarning, match="Dropped 1 of 91"):
        gf.RegGMM(missing="drop").fit(X, Z.assign(day=day))


def test_polars_dates():
    pl = pytest.importorskip("polars")
    X, Z = small_data(90)
    days = pd.date_range("2020-01-01", periods=90)
    own = pl.DataFrame({"age": Z.age.to_numpy(), "day": days.date.tolist()})
    expected = gf.RegGMM().fit(X, pd.DataFrame({"age": Z.age, "day": days}))
    model = gf.RegGMM().fit(X, own)
    np.testing.assert_array_equal(model.predict_coef(own), expected.predict_coef(own))
