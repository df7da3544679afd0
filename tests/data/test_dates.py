"""Dates as covariates: days inside, dates outside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.dates import date_text, is_date, parse_date, read_dates, to_days
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
        ["31.12.2019", "1.3.2020", "01.03.2020 14:30"],
        ["2020/03/01", "2020/3/1 14:30"],
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
        ["30.02.2020"],
        ["03.25.2020"],
        ["01.03.20"],
        ["13/02/2020"],
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
    assert (column.text(column.low), column.text(column.high)) == ("2020-01-01", "2020-03-30")
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


NUMBERS = ("yyyymmdd", "%Y%m%d"), ("yymmdd", "%y%m%d")


def test_every_notation_is_the_same_day():
    days = pd.date_range("2019-12-25", periods=90)
    expected = to_days(pd.Series(days))
    for written in ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d"):
        np.testing.assert_array_equal(to_days(pd.Series(days.strftime(written))), expected)
    for notation, written in (("dd/mm/yyyy", "%d/%m/%Y"), ("mm/dd/yyyy", "%m-%d-%Y"), *NUMBERS):
        column = pd.Series(days.strftime(written))
        if (notation, written) in NUMBERS:
            column = column.astype(int)
        for asked in (notation,) if (notation, written) in NUMBERS else (notation, None):
            frame, found = read_dates(pd.DataFrame({"day": column}), ["day"], asked)
            assert found == {"day": notation}
            np.testing.assert_array_equal(to_days(frame["day"]), expected)
        asked = [parse_date(text, notation) for text in column.astype(str)[::30]]
        assert asked == expected[::30].tolist()


def test_years_of_two_digits_are_near_and_zeros_may_be_lost():
    frame, _ = read_dates(pd.DataFrame({"day": [691231, 681231, 10203, 101]}), ["day"], "yymmdd")
    assert frame["day"].dt.strftime("%Y-%m-%d").tolist() == [
        "1969-12-31",
        "2068-12-31",
        "2001-02-03",
        "2000-01-01",
    ]


@pytest.mark.parametrize(
    ("values", "date_format", "message"),
    [
        (["01/02/2020", "03/04/2020"], None, "date_format='dd/mm/yyyy' or date_format='mm/dd/yyyy'"),
        (["13/02/2020", "02/13/2020"], None, "in one notation, but row 0 holds '13/02/2020'"),
        (["01/02/2020", "02/13/2020"], "dd/mm/yyyy", "in dd/mm/yyyy, but row 1 holds '02/13/2020'"),
        (["01/02/2020", "31/02/2020"], None, "row 1 holds '31/02/2020', which is no day"),
        (["a", "b"], "dd/mm/yyyy", "none of 'day' is written so"),
        ([1.5, 2.5], "yyyymmdd", "none of 'day' is written so"),
        ([801231, 801232], "yymmdd", "none of 'day' is written so"),
    ],
)
def test_dates_that_can_be_two_are_asked_about(values, date_format, message):
    X, _ = small_data(len(values))
    with pytest.raises(gf.DataError, match=message):
        gf.from_table(X.assign(day=values), covariates="day", date_format=date_format)


def test_gaps_among_dates_stay_gaps():
    X, _ = small_data(4)
    data = gf.from_table(X.assign(day=["01/02/2020", None, "", "28/02/2020"]), covariates="day")
    assert data.Z["day"].isna().tolist() == [False, True, True, False]
    assert data.dates == {"day": "dd/mm/yyyy"}


def test_dates_that_can_be_two_are_no_categories_of_a_fit():
    X, Z = small_data(60)
    with pytest.raises(gf.DataError, match="can be read in two ways"):
        gf.RegGMM().fit(X, Z.assign(day=["01/02/2020", "03/04/2020", "05/06/2020"] * 20))
