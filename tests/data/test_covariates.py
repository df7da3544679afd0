"""The covariate encoder and what it means for the graphs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL, small_data
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.data.frames import as_frame
from graphfield.data.saved_values import Saved


def test_numbers_are_standardised_and_levels_are_codes():
    Z = as_frame(pd.DataFrame({"age": [10.0, 20.0, 30.0], "smoker": [True, False, True]}), "Z")
    encoded = CovariateEncoder().fit(Z).transform(Z)
    np.testing.assert_allclose(encoded.numeric[:, 0], [-1.2247449, 0, 1.2247449])
    assert encoded.codes[:, 0].tolist() == [1, 0, 1]


def test_state_round_trip():
    Z = small_data()[1]
    Z = as_frame(Z.assign(dose=pd.Categorical(Z["site"], ["C", "A", "B"], ordered=True)), "Z")
    encoder = CovariateEncoder(unknown="average").fit(Z)
    state = json.loads(json.dumps(encoder.to_state()))
    again = CovariateEncoder.from_state(Saved(state, "model.json"))
    assert again.columns == encoder.columns
    assert [column.ordered for column in again.categorical] == [False, True]
    np.testing.assert_array_equal(again.transform(Z).codes, encoder.transform(Z).codes)
    np.testing.assert_array_equal(again.transform(Z).numeric, encoder.transform(Z).numeric)


def test_distinct_rows_rebuild_the_table():
    rng = np.random.default_rng(0)
    encoded = Encoded(rng.integers(0, 3, (50, 1)) * 1.0, rng.integers(0, 2, (50, 1)))
    encoded.numeric[0] = -0.0
    distinct, index = encoded.distinct()
    assert len(distinct) == 6
    rebuilt = distinct.take(index)
    np.testing.assert_array_equal(rebuilt.numeric, encoded.numeric)
    np.testing.assert_array_equal(rebuilt.codes, encoded.codes)


def test_levels_read_alike_as_whole_numbers():
    Z = as_frame(pd.DataFrame({"group": pd.Categorical([1, 2, 1, 2])}), "Z")
    encoder = CovariateEncoder().fit(Z)
    again = as_frame(pd.DataFrame({"group": pd.Categorical([1.0, 2.0])}), "Z")
    assert encoder.transform(again).codes[:, 0].tolist() == [0, 1]


def test_units_of_covariates_do_not_matter():
    X, Z = small_data()
    months = Z.assign(age=Z.age * 16)
    plain, other = gf.DNNCGM(**SMALL).fit(X, Z), gf.DNNCGM(**SMALL).fit(X, months)
    np.testing.assert_allclose(other.predict_coef(months), plain.predict_coef(Z), rtol=1e-4, atol=1e-5)


def test_a_mistyped_level_gets_a_suggestion():
    encoder = CovariateEncoder().fit(as_frame(pd.DataFrame({"kind": ["Personal", "Business"] * 9}), "Z"))
    for typed in ("Perosnal", "personal"):
        with pytest.raises(gf.DataError, match=r"did not have\. Did you mean 'Personal'\? Known: "):
            encoder.encode_value("kind", typed)
    with pytest.raises(gf.DataError, match=r"did not have\. Known: "):
        encoder.encode_value("kind", "zzz")


def test_unknown_category_averages_when_told_to():
    X, Z = small_data()
    model = gf.DNNCGM(**{**SMALL, "rank": None}, unknown="average").fit(X, Z)
    coef = model.predict_coef(pd.DataFrame({"age": [50.0], "site": ["never seen"]}))
    assert np.isfinite(coef).all()


@pytest.mark.slow
def test_a_category_changes_the_graph():
    X, Z = small_data(600)
    model = gf.DNNCGM(max_steps=400, patience=None, random_state=0, device="cpu").fit(X, Z)
    at_a, at_b = (model.partial_correlations(pd.DataFrame({"age": [50.0], "site": [s]}))[0] for s in "AB")
    assert at_a[0, 1] - at_b[0, 1] > 0.3


def test_what_two_values_are_called_does_not_matter():
    """0 and 1, 1 and 0, F and M are one covariate: the same tests, to the last digit."""
    rng = np.random.default_rng(0)
    sex, age = (rng.uniform(size=150) < 0.4).astype(int), rng.uniform(size=150)
    X = rng.normal(size=(150, 4))
    X[:, 1] += np.where(sex, 0.8, -0.2) * X[:, 0]
    written = [sex, 1 - sex, sex * 2.5 + 1, np.where(sex, "M", "F"), np.where(sex, "F", "M"), sex == 1]
    tables = [gf.infer_edges(X, pd.DataFrame({"sex": own, "age": age})).table for own in written]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0], rtol=1e-9)


def test_a_number_of_two_values_is_a_category_that_takes_numbers():
    """With rows enough at both; a number that is neither gets the graph of the nearer one, and is named."""
    two = pd.DataFrame({"sex": np.repeat([0.0, 1.0], [10, 20])})
    encoder = CovariateEncoder().fit(as_frame(two, "Z"))
    assert encoder.columns[0].levels == ("0", "1")
    assert encoder.columns[0].values == (0, 1)
    for written in ([0, 1], [0.0, 1.0], ["0", "1"], ["0", "1.0"], [False, True], np.float32([0, 1])):
        assert encoder.transform(as_frame(pd.DataFrame({"sex": written}), "Z")).codes[:, 0].tolist() == [0, 1]
    with pytest.warns(gf.ExtrapolationWarning, match=r"0 or 1 .* 1 row has .* 0.3, which gets .* at 0"):
        assert encoder.transform(as_frame(pd.DataFrame({"sex": [0.3]}), "Z")).codes.tolist() == [[0]]
    with pytest.raises(gf.DataError, match="has '2', which training did not have"):
        encoder.transform(as_frame(pd.DataFrame({"sex": ["2"]}), "Z"))
    assert not CovariateEncoder().fit(as_frame(two[1:], "Z")).categorical, "nine rows are too few"
    alike = pd.DataFrame({"sex": np.repeat([1.00000001, 1.00000002], 20)})
    assert not CovariateEncoder().fit(as_frame(alike, "Z")).categorical, "they would be called alike"
    assert not CovariateEncoder(standardize=False).fit(as_frame(two, "Z")).categorical, "as the paper has it"
    again = CovariateEncoder.from_state(Saved(json.loads(json.dumps(encoder.to_state())), "file"))
    assert again.columns == encoder.columns
