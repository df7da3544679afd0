"""Counts and parts of a whole: nodes as logarithms or log-ratios, and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli import main
from graphfield.metrics import auprc

P = 8


def composition(n: int = 400, seed: int = 0, depth: float | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    """Parts of a whole whose logarithms have a chain as their graph; counts where there is a depth."""
    rng = np.random.default_rng(seed)
    signs = np.diag(np.where(np.arange(P - 1) % 2, 0.4, -0.4), 1)
    chain = np.eye(P) + signs + signs.T
    parts = np.exp(rng.multivariate_normal(np.zeros(P), np.linalg.inv(chain), n) + rng.normal(size=P))
    parts /= parts.sum(axis=1, keepdims=True)
    if depth is not None:
        totals = np.exp(rng.normal(np.log(depth * P), 0.7, n))
        parts = rng.poisson(parts * totals[:, None])
    names = [f"taxon{j}" for j in range(P)]
    return pd.DataFrame(parts.astype(float), columns=names), np.abs(chain - np.eye(P)) > 0


Z = np.random.default_rng(9).normal(size=(400, 1))
LINEAR = {"candidates": ("static",), "random_state": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("marginals", "depth"), [("clr", None), ("log1p", 30)])
def test_logarithms_find_the_graph_that_shares_and_counts_hide(marginals, depth):
    X, truth = composition(depth=depth)
    ours, raw = (
        auprc(gf.AutoCGM(marginals=one, **LINEAR).fit(X, Z).edge_weights(Z[:1]), truth[None])[0]
        for one in (marginals, "raw")
    )
    assert ours > raw + 0.15


@pytest.mark.parametrize("marginals", ["log1p", "clr"])
def test_predictions_come_back_in_the_units_of_the_nodes(marginals, tmp_path):
    X, _ = composition(depth=30)
    model = gf.AutoCGM(marginals=marginals, **LINEAR).fit(X, Z)
    assert model.marginals_ == marginals
    assert "log" in model.describe()
    fitted = model.predict(X, Z)
    assert (fitted >= 0).all()
    middle = np.median(X, axis=0)
    assert (np.abs(np.median(fitted, axis=0) - middle) < 0.3 * middle + 1).all()
    again = gf.load(model.save(tmp_path / "model"))
    assert again.marginals_ == marginals
    np.testing.assert_array_equal(again.predict(X, Z), fitted)
    np.testing.assert_array_equal(again.edge_weights(Z[:3]), model.edge_weights(Z[:3]))


def test_totals_of_rows_do_not_matter_to_log_ratios():
    X, _ = composition()
    totals = np.exp(np.random.default_rng(1).normal(size=(400, 1)))
    one, other = (gf.AutoCGM(marginals="clr", **LINEAR).fit(table, Z) for table in (X, X * totals))
    # But for what is added to all values, half the smallest of them.
    np.testing.assert_allclose(one.edge_weights(Z[:1]), other.edge_weights(Z[:1]), atol=0.03)
    np.testing.assert_allclose(other.predict(X * totals, Z), one.predict(X, Z) * totals, rtol=0.1, atol=0.01)


def test_values_below_zero_have_no_logarithm():
    X, _ = composition()
    with pytest.raises(gf.DataError, match=r"marginals='clr' takes logarithms.*'taxon2' goes down to -1"):
        gf.AutoCGM(marginals="clr", **LINEAR).fit(X.assign(taxon2=X.taxon2 - 1 - X.taxon2.min()), Z)


def test_the_check_and_the_fit_from_the_shell(tmp_path, capsys):
    X, _ = composition()
    X.assign(age=Z[:, 0]).to_csv(tmp_path / "table.csv", index=False)
    table = [str(tmp_path / "table.csv"), "--covariates", "age"]
    assert main(["check", *table]) == 0
    said = capsys.readouterr().out
    assert "sum to 1: they are parts of a whole" in said
    assert "--set marginals=clr" in said
    more = [
        "--model",
        "auto",
        "--set",
        "candidates=static",
        "--set",
        "marginals=clr",
        "--no-verdict",
        "--details",
    ]
    assert main(["fit", *table, *more, "--out", str(tmp_path / "model")]) == 0
    assert "Nodes: log-ratios" in capsys.readouterr().out


def test_new_rows_below_zero_are_refused_as_rows_of_a_fit_are():
    X, _ = composition(depth=30)
    model = gf.GraphicalLasso(marginals="log1p", n_penalties=3, n_folds=3).fit(X, Z)
    new = X.assign(taxon2=X.taxon2.where(X.index != 5, -3.0))
    for ask in (model.predict, model.score):
        with pytest.raises(gf.DataError, match=r"takes logarithms .* 'log1p'.*'taxon2' goes down to -3"):
            ask(new, Z)
    assert np.isfinite(model.predict(X, Z)).all()
