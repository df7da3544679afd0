"""Units of nodes and covariates do not matter; numbers that cannot be computed with are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL, small_data
from graphfield.data.nodes import rescale_coef

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
# Powers of two, so that digits stay as they are: about 1e40, 1e-60, 1e-90, 1e90 and 1e-25.
NODE_UNITS = 2.0 ** np.array([133, -200, -300, 300, 0, -83])
TINY = 2.0**-565  # about 1e-170


@pytest.fixture(scope="module")
def lasso():
    return gf.GraphicalLasso(penalty=0.1)


def test_no_unit_of_nodes_or_covariates_changes_the_graph(estimator, fitted, data):
    X, Z = data
    other = Z.assign(age=Z.age * TINY)
    model = estimator().fit(X * NODE_UNITS, other)
    expected, found = fitted.partial_correlations(Z), model.partial_correlations(other)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_array_equal(model.predict_graph(other, 0.1), fitted.predict_graph(Z, 0.1))
    np.testing.assert_allclose(
        model.predict(X * NODE_UNITS, other) / NODE_UNITS, fitted.predict(X, Z), rtol=1e-4
    )
    assert model.score(X * NODE_UNITS, other) == pytest.approx(fitted.score(X, Z), abs=1e-5)
    precision = model.predict_precision(other[:3]) * NODE_UNITS[:, None] * NODE_UNITS
    np.testing.assert_allclose(precision, fitted.predict_precision(Z[:3]), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(model.residual_scale_ / NODE_UNITS, fitted.residual_scale_, rtol=1e-4)


@pytest.mark.parametrize("unit", [1e40, 1e-60])
def test_coefficients_of_nodes_in_one_odd_unit(lasso, unit):
    X, Z = small_data()
    expected = lasso.fit(X, Z).predict_coef(Z[:1])
    np.testing.assert_allclose(lasso.fit(X * unit, Z).predict_coef(Z[:1]), expected, rtol=1e-4, atol=1e-7)


def test_coefficients_that_float32_cannot_hold_are_refused_by_name(lasso):
    X, Z = small_data()
    model = lasso.fit(X * NODE_UNITS, Z)
    with pytest.raises(gf.DataError, match=r"'n.*float32.*partial_correlations"):
        model.predict_coef(Z)
    with pytest.raises(gf.DataError, match="float32"):
        list(model.iter_coef(Z))


def test_rescaled_coefficients_keep_zeros_and_say_infinite():
    coef = np.array([[[0, 1], [0, 0]]], dtype=np.float32)
    assert np.array_equal(rescale_coef(coef, np.array([1e30, 1e-30])), [[[0, np.inf], [0, 0]]])
    units = np.array([[1.0, 2.0], [4.0, 1.0]])
    many = rescale_coef(np.repeat(coef, 2, axis=0), units)
    np.testing.assert_allclose(many[:, 0, 1], [0.5, 4.0])


@pytest.mark.parametrize("factor", [1e150, 1e-150])
def test_nodes_beyond_double_precision_are_refused_by_name(lasso, factor):
    X, Z = small_data()
    X["n3"] *= factor
    with pytest.raises(gf.DataError, match=r"'n3' cannot be computed with.*other units"):
        lasso.fit(X, Z)


@pytest.mark.parametrize("unit", [5e-324, 1e-303, 1e306])
def test_covariates_beyond_double_precision_are_refused_by_name(lasso, unit):
    X, Z = small_data()
    with pytest.raises(gf.DataError, match=r"'age' cannot be computed with.*other units"):
        lasso.fit(X, Z.assign(age=unit * np.arange(120)))


@pytest.mark.parametrize("model", [gf.RegGMM(standardize=False), gf.DNNCGM(**SMALL, standardize=False)])
@pytest.mark.parametrize("factor", [1e30, 1e-30])
def test_numbers_that_are_used_as_they_are_must_be_moderate(model, factor):
    X, Z = small_data()
    with pytest.raises(gf.DataError, match=r"'n.' cannot be computed with.*standardize=True"):
        model.fit(X * factor, Z)
    with pytest.raises(gf.DataError, match=r"'age' cannot be computed with.*standardize=True"):
        model.fit(X, Z.assign(age=Z.age * factor))


def test_new_nodes_that_are_nowhere_near_are_refused_by_name(lasso):
    X, Z = small_data()
    model = lasso.fit(X, Z)
    far = X.copy()
    far.loc[5, "n2"] = 1e200
    for ask in (model.predict, model.score):
        with pytest.raises(gf.DataError, match=r"'n2' of X cannot be computed with: row 5 holds 1e\+200"):
            ask(far, Z)
    with pytest.raises(gf.DataError, match="'n2' of X_val cannot be computed with"):
        gf.DNNCGM(**SMALL).fit(X, Z, X_val=far, Z_val=Z)


class Broken(gf.RegGMM):
    """One coefficient is not a number."""

    def _fit(self, data):
        field = super()._fit(data)
        field.interactions[:, 0, 1] = np.nan
        return field


def test_a_fit_that_is_not_finite_is_an_error_with_advice():
    with pytest.raises(gf.TrainingError, match=r"not numbers.*Leave them out"):
        Broken().fit(*small_data())


def test_page_of_a_model_in_odd_units_has_the_same_edges():
    X, Z = small_data()
    X = pd.DataFrame(X)
    for model in (gf.RegGMM(), gf.GraphicalLasso(penalty=0.1)):
        plain, odd = (model.fit(nodes, Z).field_.program() for nodes in (X, X * NODE_UNITS))
        np.testing.assert_allclose(odd.patterns, plain.patterns, atol=1e-5)
