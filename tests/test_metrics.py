"""Scores against scikit-learn, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

import graphfield as gf
from graphfield.metrics import auprc, auroc, balanced_accuracy, f1, sensitivity, specificity

OFF = ~np.eye(5, dtype=bool)


@st.composite
def graphs(draw):
    """Weights from few levels, so that ties are the rule, and graphs with both kinds of pairs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.integers(1, 30))
    weights = rng.integers(0, levels, (4, 5, 5)) / levels
    skeleton = rng.random((4, 5, 5)) < draw(st.floats(0.1, 0.9))
    skeleton[:, 0, 1], skeleton[:, 1, 0] = True, False
    return weights, skeleton


@settings(max_examples=10, deadline=None)
@given(graphs())
def test_equal_to_scikit_learn(case):
    weights, skeleton = case
    pairs = [
        (auroc, reference.roc_auc_score),
        (auprc, reference.average_precision_score),
    ]
    for ours, theirs in pairs:
        expected = [theirs(s[OFF], w[OFF]) for w, s in zip(weights, skeleton, strict=True)]
        np.testing.assert_allclose(ours(weights, skeleton), expected, rtol=0, atol=1e-12)
        expected = [theirs(s.ravel(), w.ravel()) for w, s in zip(weights, skeleton, strict=True)]
        np.testing.assert_allclose(ours(weights, skeleton, diagonal=True), expected, rtol=0, atol=1e-12)
    thresholded = [
        (f1, lambda t, y: reference.f1_score(t, y, zero_division=0)),
        (balanced_accuracy, reference.balanced_accuracy_score),
        (sensitivity, reference.recall_score),
        (specificity, lambda t, y: reference.recall_score(~t, ~y)),
    ]
    for ours, theirs in thresholded:
        expected = [theirs(s[OFF], w[OFF] > 0.4) for w, s in zip(weights, skeleton, strict=True)]
        np.testing.assert_allclose(ours(weights, skeleton, threshold=0.4), expected, rtol=0, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(graphs(), st.booleans())
def test_single_precision_and_symmetric_graphs(case, signed):
    """The two short cuts of the ranking: weight and truth in one number, and each pair once."""
    weights, skeleton = (a | a.swapaxes(1, 2) if a.dtype == bool else a + a.swapaxes(1, 2) for a in case)
    skeleton[:, 0, 2] = skeleton[:, 2, 0] = False
    weights = weights.astype(np.float32)
    if signed:
        weights = np.where(weights > 0.6, weights, -weights)  # 0 becomes -0: still a tie
    for ours, theirs in ((auroc, reference.roc_auc_score), (auprc, reference.average_precision_score)):
        expected = [theirs(s[OFF], w[OFF]) for w, s in zip(weights, skeleton, strict=True)]
        np.testing.assert_allclose(ours(weights, skeleton), expected, rtol=0, atol=1e-12)
        lopsided = weights.copy()
        lopsided[:, 3, 4] += 0.5
        expected = [theirs(s[OFF], w[OFF]) for w, s in zip(lopsided, skeleton, strict=True)]
        np.testing.assert_allclose(ours(lopsided, skeleton), expected, rtol=0, atol=1e-12)


def test_the_diagonal_does_not_count():
    rng = np.random.default_rng(0)
    weights, skeleton = rng.random((3, 5, 5)), rng.random((3, 5, 5)) < 0.3
    loud = weights.copy()
    loud[:, ~OFF] = 99.0
    for score in (auroc, auprc, f1, balanced_accuracy):
        np.testing.assert_array_equal(score(loud, skeleton), score(weights, skeleton))


def test_chunks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    weights, skeleton = rng.random((7, 5, 5)), rng.random((7, 5, 5)) < 0.3
    whole = auprc(weights, skeleton)
    monkeypatch.setattr("graphfield.metrics._CHUNK_ENTRIES", 45)
    np.testing.assert_array_equal(auprc(weights, skeleton), whole)


def test_one_graph_without_a_sample_axis():
    weights = np.array([[0, 0.9, 0.1], [0.9, 0, 0.2], [0.1, 0.2, 0]])
    assert auroc(weights, weights > 0.5).shape == (1,)


def test_nothing_to_rank_is_nan():
    weights = np.random.default_rng(0).random((1, 5, 5))
    assert np.isnan(auroc(weights, np.zeros((1, 5, 5)))).all()
    assert np.isnan(auprc(weights, np.zeros((1, 5, 5)))).all()


def test_bad_shapes_and_values():
    with pytest.raises(gf.DataError, match="same shape"):
        auroc(np.zeros((2, 3, 3)), np.zeros((2, 4, 4)))
    with pytest.raises(gf.DataError, match="NaN"):
        auroc(np.full((1, 3, 3), np.nan), np.zeros((1, 3, 3)))
