"""Means and scales that are taken away from nodes which nearly follow from each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.inference.cleaned_nodes import cleaned_nodes
from graphfield.inference.directions import Directions

Z = np.linspace(-1, 1, 600)
LINE = Directions(
    np.column_stack([Z, Z**2 - 1 / 3]) / [0.577, 0.298], np.array([1.0, 2.0]), np.ones(2, dtype=int)
)


def three(scale: float = 0.0) -> np.ndarray:
    """Two nodes with a mean of their own, and their sum but for a little."""
    rng = np.random.default_rng(0)
    first, second = np.add(rng.normal(size=(2, 600)), [Z, -Z])
    total = first + second + 0.05 * rng.normal(size=600)
    return np.column_stack([first, second, total]) * np.exp(scale * Z)[:, None]


def test_what_is_linear_stays_linear():
    """The sum has no mean that moves, and yet loses as much of one as its parts do; scales stay."""
    found = cleaned_nodes(three(), LINE, np.arange(600))
    assert (found.mean_shares == found.mean_shares[:, :1]).all()
    left = np.linalg.lstsq(found.values[:, :2], found.values[:, 2], rcond=None)[1].item() / 600
    assert left < 0.003, "as much as was put in, .0025 of 2"


def test_scales_that_clearly_move_are_taken_away_all_the_same():
    assert (cleaned_nodes(three(), LINE, np.arange(600)).scale_shares == 0).all()
    found = cleaned_nodes(three(0.8), LINE, np.arange(600))
    assert (found.scale_shares.max(axis=0) > 0).all()


@pytest.mark.slow
def test_intervals_of_averages_cover_where_nodes_nearly_follow_from_others():
    """Of eight nodes by three factors; they were nearly twice as far off as they said."""
    p, off = 8, []
    loadings = np.random.default_rng(9).normal(size=(p, 3))
    covariance = loadings @ loadings.T + 0.1 * np.eye(p)
    precision = np.linalg.inv(covariance)
    size = np.sqrt(np.diag(precision))
    true = (-precision / np.outer(size, size))[np.triu_indices(p, 1)]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        z = pd.DataFrame(rng.normal(size=(800, 2)), columns=["a", "b"])
        X = rng.normal(size=(800, p)) @ np.linalg.cholesky(covariance).T
        X += np.sin(2 * z[["a"]].to_numpy()) * np.arange(p) / 4
        found = gf.infer_edges(X, z, covariates=[], random_state=0)
        low, high = found.intervals
        off.append((found.table.estimate - true) / ((high - low) / 2))
    assert np.sqrt(np.mean(np.square(off))) < 1.5 / 1.645
