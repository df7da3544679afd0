"""The sparse-group lasso from second moments."""

from __future__ import annotations

import numpy as np
import pytest


# skglm's solver is compiled in every process that first uses it: ten seconds and more.
@pytest.mark.slow
def test_an_extrapolation_of_rounding_errors_is_not_taken_for_a_better_point():
    """The solver asks for the value at a w whose G w it has lost; on some machines it jumped to infinity."""
    solver = pytest.importorskip("graphfield.solvers.sparse_group")
    rng = np.random.default_rng(0)
    rows, w, lost = rng.normal(size=(3, 4)), rng.normal(size=4), np.full(4, -1e20)
    gram = np.asfortranarray(rows.T @ rows)
    datafit = solver.GramQuadraticGroup(gram, np.array([0, 4]), np.arange(4), np.ones(1))
    value = datafit.value(gram[:, 0], w, lost)
    assert value == pytest.approx(w @ gram @ w / 2 - gram[:, 0] @ w)
    np.testing.assert_allclose(lost, gram @ w)
