"""Which edges differ between two values of the covariates?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.analysis.wide_tables import WideTable
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import ExtrapolationWarning, ParameterError, listing
from graphfield.inference.asked_values import average_at, check_covariates
from graphfield.inference.design import Design
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.edge_tests import fit_scores
from graphfield.inference.edges import read_question, scores_of
from graphfield.inference.enough_rows import N_FOLDS, has_products, test_degrees
from graphfield.inference.pair_scores import PairScores
from graphfield.inference.sparse_differences import q_values_of_differences
from graphfield.solvers.moving_lasso import n_ticks
from graphfield.training.progress import progress_bar


def compare_graphs(
    X: Any,
    Z: Any,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    *,
    groups: Any = None,
    level: float = 0.9,
    missing: str = "error",
) -> pd.DataFrame:
    """Which edges differ between two values of the covariates, and by how much?

    The same scores as those of :func:`graphfield.infer_edges` are read at both values. Covariates that are
    not named are averaged over the rows, the same ones on both sides, so that they make no difference.

    Parameters
    ----------
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``.
    a, b : mapping
        Values of the same covariates, such as ``{"group": "a"}`` and ``{"group": "b"}``.
    groups : sequence of length n, optional
        Rows with equal labels (one subject before and after) are not independent. Levels that subjects have
        of their own are a part of both graphs here: they are not subtracted, unlike in ``fit``.
    level : float
        Of the intervals, one by one.
    missing : {"error", "drop", "impute"}
        As for ``fit``.

    Returns
    -------
    DataFrame
        One line per pair: ``source``, ``target``, ``difference`` (partial correlation at ``b`` less that at
        ``a``, as in ``analysis.compare``), ``low``, ``high``, ``p_value`` (of the pair alone) and
        ``q_value``: the share of false ones among pairs that differ as clearly. The latter knows that most
        pairs have no edge at either value: it
        is learned from all pairs how many do, and an edge that is clear at one value and absent at the other
        speaks louder than its difference. It is never below twice the p-value.

    Examples
    --------
    >>> import numpy as np, pandas as pd, graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 200)
    >>> X = rng.normal(size=(400, 4))
    >>> X[:, 1] += np.where(group == "a", 0.8, 0.0) * X[:, 0]
    >>> found = gf.compare_graphs(X, pd.DataFrame({"group": group}), {"group": "a"}, {"group": "b"})
    >>> found[found.q_value <= 0.1][["source", "target"]].to_numpy().tolist()
    [['x1', 'x2']]
    """
    check_number("level", level, 0, 1, open_low=True, open_high=True)
    question = read_question(X, Z, groups, missing, subtract_levels=False)
    encoder, encoded = question.encoder, question.encoder.transform(question.inputs.Z)
    _check_sides(encoder, a, b)
    starts = None if question.labels is None else question.rows.starts
    total = n_ticks(N_FOLDS) + 1
    with progress_bar("Comparing graphs", total, "parts") as advance:
        done = iter(range(1, total + 1))
        scores = scores_of(question, encoded, lambda: advance(next(done, total), ""), scales_move=True)
    names = np.array(question.inputs.node_names, dtype=object)
    first, second = np.triu_indices(len(names), 1)
    found = _differences(scores, encoder, encoded, starts, a, b, level)
    return WideTable({"source": names[first], "target": names[second], **found})


def _differences(
    scores: PairScores,
    encoder: CovariateEncoder,
    encoded: Encoded,
    starts: NDArray[np.intp] | None,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    level: float,
) -> dict[str, NDArray[np.float64]]:
    n_units = len(encoded) if starts is None else len(starts)
    degrees, products = test_degrees(encoder, n_units), has_products(encoder, n_units)
    basis = learn_basis(encoder, encoded, degrees, products=products)
    design = Design.of(basis.at(encoded), starts)
    at = np.stack([average_at(basis, encoder, encoded, side) for side in (a, b)])
    estimates, covariance = np.empty((2, scores.n_pairs)), np.empty((scores.n_pairs, 2, 2))
    for part in scores.parts():
        fit, _ = fit_scores(part, design)
        estimates[:, part.pairs] = at @ fit.coef
        covariance[part.pairs] = at @ fit.covariance @ at.T
    difference = estimates[1] - estimates[0]
    error = np.sqrt(np.maximum(covariance @ [1, -1] @ [1, -1], 1e-20))
    freedom = design.freedom(slice(None))
    p_values = 2 * student.sf(np.abs(difference) / error, freedom)
    half = student.ppf((1 + level) / 2, freedom) * error
    return {
        "difference": difference,
        "low": np.maximum(difference - half, -2.0),
        "high": np.minimum(difference + half, 2.0),
        "p_value": p_values,
        "q_value": q_values_of_differences(estimates, covariance, p_values),
    }


def _check_sides(encoder: CovariateEncoder, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    known = [column.name for column in encoder.columns]
    for side in (a, b):
        if not isinstance(side, Mapping) or not side:
            raise ParameterError(
                f"a and b must give values of covariates, for example {{{known[0]!r}: ...}}, got {side!r}."
            )
        check_covariates(encoder, side)
    if set(a) != set(b):
        raise ParameterError(f"a and b must name the same covariates, got {listing(a)} and {listing(b)}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # it is said where the graphs are found
        same = all(encoder.encode_value(name, a[name]) == encoder.encode_value(name, b[name]) for name in a)
    if same:
        raise ParameterError("a and b are the same: nothing can differ between them.")
