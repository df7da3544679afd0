"""A model in a notebook: what is shown of it, and its page in a cell."""

from __future__ import annotations

from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import graphfield as gf
from graphfield.report import explore
from report_cases import fitted, table


def test_a_fitted_model_shows_its_edges_and_names_stay_text():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["<b>a", "b", "c"])
    X["b"] += 0.8 * X["<b>a"]
    model = gf.RegGMM().fit(X, pd.DataFrame({"age": rng.uniform(20, 60, 300)}))
    shown = model._repr_html_()
    assert "&lt;b&gt;a" in shown
    assert "<b>a" not in shown
    mean = model.partial_correlations(pd.DataFrame({"age": np.linspace(20, 60, 41)})).mean(axis=0)
    assert f"<td>{mean[0, 1]:+.1f}" in shown, "to one digit: over which ages the mean goes is the page's own"
    assert "fitted to 3 nodes" in shown
    assert shown.count("<tr>") == 2
    assert model._repr_mimebundle_()["text/plain"] == "RegGMM()"


def test_a_model_that_is_not_fitted_shows_its_parameters_and_has_no_page():
    model = gf.RegGMM(ridge=0.5)
    assert model._repr_html_() is None
    assert model._repr_mimebundle_() == {"text/plain": "RegGMM(ridge=0.5)"}
    with pytest.raises(NotFittedError):
        model.explore()


@pytest.mark.parametrize("name", ["linear", "static"])
def test_the_page_in_a_cell_is_the_page(name):
    model, Z = fitted(name), table()[1]
    cell = model.explore(Z, height=500)
    shown = cell._repr_html_()
    assert shown.startswith("<iframe")
    assert "height: 500px" in shown
    assert unescape(shown).count("<html") == cell.html.count("<html") == 1
    assert shown.count('"') == 6, "quotes of the page are escaped: it cannot end the attribute"
    assert explore(model.field_, Z).html.count("<html") == 1


def test_a_cell_has_a_height():
    with pytest.raises(gf.ParameterError, match="height"):
        gf.RegGMM().fit(np.eye(30)[:, :3], np.arange(30.0)[:, None]).explore(height=-5)
