"""Which edges are there, and which of them move with the covariates?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.analysis.covariate_basis import Smooth
from graphfield.analysis.dependence import chosen_covariates
from graphfield.analysis.question import Question, sort_rows
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.splits import fold_labels
from graphfield.estimators.group_inputs import without_levels
from graphfield.estimators.inputs import root_seed, training_inputs
from graphfield.inference.design import Design
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.edge_inference import EdgeInference, edge_table
from graphfield.inference.edge_tests import edge_tests
from graphfield.inference.enough_rows import (
    LEAST_LEVEL_OF_REGRESSION,
    N_FOLDS,
    check_enough,
    check_folds,
    has_products,
    regression_functions,
    test_degrees,
)
from graphfield.inference.pair_scores import pair_scores
from graphfield.fields.schema import Schema
from graphfield.solvers.moving_lasso import n_ticks
from graphfield.training.progress import progress_bar


def infer_edges(
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    covariates: Sequence[str] | None = None,
    missing: str = "error",
    random_state: Any = None,
) -> EdgeInference:
    """Test every pair of nodes: is there an edge at any z, does it move with z, and with which covariate?

    Means and scales of nodes that move with z are taken out first, as in
    :func:`graphfield.dependence_test`. Every node is then regressed on all others by sparse regressions with
    coefficients that are splines of z, without each fifth of the rows in turn. From what these leave of a
    row, each pair gets a score whose mean at z is its partial correlation at z, up to products of two
    errors. Regressions of the scores on functions of z give everything: averages, curves, tests.

    Parameters
    ----------
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``.
    groups : sequence of length n, optional
        Rows with equal labels (one subject) are not independent: they are held out together, and variances
        are those between groups.
    covariates : sequence of str, optional
        Which to test one by one, each given all others; default all. None (``[]``) saves time.
    missing : {"error", "drop", "impute"}
        As for ``fit``.
    random_state : int, Generator or None
        For simultaneous bands, which draw at random. Nothing else does.

    Returns
    -------
    EdgeInference

    Notes
    -----
    Partial correlations are those of normal scores of the nodes, at z. An edge "moves" as far as numbers, levels,
    bends of the numbers and products of two covariates show it; of a finer movement only its share in these
    is seen. P-values are made for independent rows or groups, not for time series.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=400, random_state=0)
    >>> found = gf.infer_edges(sim.X[:, :6], sim.Z)
    >>> list(found.table.columns[:7])
    ['source', 'target', 'estimate', 'p_value', 'q_value', 'p_varies', 'q_varies']
    >>> found.predict_graph(sim.Z[:3], fdr=0.1).shape
    (3, 6, 6)
    """
    seed = root_seed(random_state)
    inputs, labels, _ = without_levels(training_inputs(X, Z, missing), groups, X)
    codes = None if labels is None else np.unique(labels, return_inverse=True)[1]
    inputs, codes = sort_rows(inputs, codes, None)
    encoder = CovariateEncoder().fit(inputs.Z)
    encoded = encoder.transform(inputs.Z)
    check_enough(encoder, encoded, codes)
    wanted = chosen_covariates(covariates, encoder)
    n, p = inputs.X.shape
    fold = fold_labels(n, N_FOLDS, codes)
    check_folds(encoder, encoded, fold)
    n_units = n if codes is None else int(codes.max()) + 1
    degrees = test_degrees(encoder, n_units)
    question = Question(inputs, encoder, codes, False, degrees, N_FOLDS, 0)
    starts = None if codes is None else question.rows.starts
    bends, mixed = regression_functions(encoder, p)
    functions = np.ones((n, 1))
    if bends:
        in_regressions = learn_basis(
            encoder, encoded, bends, products=mixed, least_rows=LEAST_LEVEL_OF_REGRESSION
        )
        functions = in_regressions.at(encoded)
    basis = learn_basis(encoder, encoded, degrees, products=has_products(encoder, n_units))
    total = n_ticks(N_FOLDS) + len(wanted) + 2
    with progress_bar("Testing edges", total, "parts") as advance:
        done = iter(range(1, total + 1))

        def tick() -> None:
            advance(next(done, total), "")

        nodes = question.with_jumps().nodes()
        tick()
        scores = pair_scores(nodes, functions, fold, tick)
        design = Design.of(basis.at(encoded), starts=starts)
        assert design is not None  # a one is always there
        of_covariate = {}
        for smooth in question.smooths(degrees):
            if smooth.name in wanted:
                of_covariate[smooth.name] = _design_given_others(question, smooth, starts)
                tick()
        tests = edge_tests(scores, basis, design, {name: of_covariate[name] for name in wanted})
        tick()
    schema = Schema(inputs.node_names, inputs.nodes_named, encoder)
    table = edge_table(inputs.node_names, tests)
    return EdgeInference(table, schema, n, n_units if codes is not None else None, encoded, starts, scores, basis, seed)


def _design_given_others(
    question: Question, smooth: Smooth, starts: NDArray[np.intp] | None
) -> Design | None:
    """Functions of one covariate beside functions of the others and products of these."""
    one = np.ones((len(smooth.columns), 1))
    if len(question.encoder.columns) == 1:
        return Design.of(smooth.columns, one, starts)
    columns, given = question.apart(smooth.name, smooth.columns)
    return Design.of(columns, np.column_stack([one, given]), starts)
