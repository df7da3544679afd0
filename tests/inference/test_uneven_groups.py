"""Groups of very different sizes, some of which have a level nearly to themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.inference.design import Design


def owners(seed: int, n_groups: int = 260) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Independent nodes of owners with 1 to some 100 rows each, who have one country each."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(1 + rng.pareto(1.0, n_groups).astype(int), 100)
    owner = np.repeat(np.arange(n_groups), sizes)
    country = np.array(list("abcdefghijkl"))[np.clip(rng.geometric(0.2, n_groups) - 1, 0, 11)]
    Z = pd.DataFrame({"country": country[owner], "altitude": rng.normal(size=len(owner))})
    rows, groups = Z.groupby("country").size(), pd.Series(country).groupby(country).size()
    few = [level for level in rows.index if rows[level] < 20 or groups[level] < 2]
    Z["country"] = Z["country"].where(~Z["country"].isin(few), "a")
    X = rng.normal(size=(len(owner), 6)) + 0.4 * rng.normal(size=(n_groups, 6))[owner]
    return pd.DataFrame(X, columns=list("uvwxyz")), Z, owner


def uneven_design(seed: int, n_columns: int) -> Design:
    rng = np.random.default_rng(seed)
    sizes = np.append(rng.integers(1, 20, size=30), 80)
    columns = np.column_stack([np.ones(sizes.sum()), rng.normal(size=(sizes.sum(), n_columns))])
    return Design.of(columns, np.append(0, np.cumsum(sizes)[:-1]))


@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 6), slice(None)], ids=str)
def test_freedom_is_that_of_the_estimated_covariance(which):
    """Of normal rows the moments of the covariance are those of a Wishart matrix of so many degrees."""
    design, rng = uneven_design(0, 5), np.random.default_rng(1)
    n, pairs = len(design.reading), 4_000
    scores = rng.normal(size=(n, pairs))
    found = design.fit(scores, np.empty((0, 0)), np.ones(pairs)).covariance[:, which, which]
    reading = design.reading[:, which]
    root = np.linalg.inv(np.linalg.cholesky(reading.T @ reading))
    found = root @ found @ root.T
    r = found.shape[1]
    np.testing.assert_allclose(found.mean(axis=0), np.eye(r), atol=0.06)
    spread = np.einsum("iab->ab", np.square(found - np.eye(r))).sum() / pairs
    assert design.freedom(which) == pytest.approx(r * (r + 1) / spread, rel=0.1)


def test_freedom_from_sizes_alone_is_no_larger(monkeypatch):
    exact = uneven_design(0, 5).freedom(slice(None))
    monkeypatch.setattr("graphfield.inference.design._MOST_SHARED", 0)
    assert exact / 2 < uneven_design(0, 5).freedom(slice(None)) <= exact


def test_what_one_group_decides_is_not_tested():
    """A column that one group has nearly alone says nothing; the others are tested as without it."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(40), 5)
    starts, columns = np.arange(0, 200, 5), rng.normal(size=(200, 3))
    alone = np.where(label == 7, 1.0, np.where(label == 8, 0.2, 0.0))[:, None]
    design = Design.of(np.column_stack([columns, alone]), starts)
    assert design.by_many(slice(0, 3)).shape == (3, 3)
    assert design.by_many(slice(None)).shape == (4, 3)
    assert design.by_many(slice(3, 4)).shape == (1, 0)
    scores = rng.normal(size=(200, 5)) + 2 * alone
    fit = design.fit(scores, np.empty((0, 0)), np.ones(5))
    assert (design.p_values(fit, slice(3, 4)) == 1).all()
    among = design.by_many(slice(None))
    np.testing.assert_allclose(np.linalg.matrix_rank(np.vstack([among.T, np.eye(4)[3]])), 4)
    assert (design.p_values(fit, slice(None)) > 1e-3).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Groups have levels")
def test_nothing_is_found_where_nothing_is():
    """With degrees of freedom that were counted, half of these p-values were below .05."""
    shares, found = [], 0
    for seed in range(12):
        X, Z, owner = owners(seed)
        table = gf.infer_edges(X, Z, groups=owner).table
        columns = table[["p_value", "p_varies", "p_country", "p_altitude"]]
        shares.append((columns <= 0.05).mean())
        found += int((table[["q_value", "q_varies"]] <= 0.1).to_numpy().any())
    assert (np.mean(shares, axis=0) < 0.1).all()
    assert found <= 4
