"""Sparse regressions of nodes of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.solvers.sparse_blocks import SparseStep
from graphfield.solvers.working import FamilyRows, fit_families
from solver_cases import COUNTED, blocks_of, mixed_table


def test_no_gradient_is_larger_than_its_penalty():
    """The conditions of the optimum: blocks that are there pull as hard as the penalty, others less."""
    X, _ = mixed_table()
    blocks, codes = blocks_of(X, COUNTED)
    columns, ones = blocks.columns(codes), np.ones((len(X), 1))
    rows = FamilyRows(blocks, columns, np.zeros_like(columns), ones, ones)
    S = fit_families(rows, SparseStep(rows, 0.08), tolerance=1e-6)
    pull = rows.gradient(columns - blocks.means(rows.predictors(S)))[: blocks.n_columns]
    for j, response in enumerate(blocks.slices):
        for k, source in enumerate(blocks.slices):
            if j == k:
                continue
            size = np.sqrt(blocks.widths[j] * blocks.widths[k])
            force, there = np.linalg.norm(pull[source, response]), np.abs(S[source, response]).max() > 0
            assert force == pytest.approx(0.08 * size, abs=1e-4) if there else force <= 0.08 * size + 1e-4
