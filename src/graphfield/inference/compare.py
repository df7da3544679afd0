"""Which edges differ between values of the covariates?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.wide_tables import WideTable
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.wide_counts import words_of_wide
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataWarning
from graphfield.graphs.false_discoveries import q_values
from graphfield.inference.asked_values import average_at, places_of, read_sides
from graphfield.inference.compare_kinds import compare_kinds
from graphfield.inference.compare_words import (
    Estimates,
    adding_up,
    few_words,
    place_words,
    reading,
    summary,
)
from graphfield.inference.design import Design
from graphfield.inference.edge_basis import EdgeBasis, learn_basis
from graphfield.inference.edge_record import FDR
from graphfield.inference.edge_tests import fit_scores
from graphfield.inference.edges import read_question, scores_of
from graphfield.inference.enough_rows import (
    LEAST_LEVEL,
    can_cross,
    check_nodes_vary,
    has_products,
    test_degrees,
    value_degrees,
    warn_of_constants,
)
from graphfield.inference.overlap import Stratum, common_rows, held, rows_with_levels, stratum_of
from graphfield.inference.pair_scores import PairScores
from graphfield.inference.question import Question
from graphfield.inference.row_order import few_stretches, rows_one_by_one
from graphfield.inference.sparse_differences import q_values_of_differences
from graphfield.messages import Message, join_messages
from graphfield.solvers.moving_lasso import n_ticks
from graphfield.training.progress import progress_bar

# A q-value up to which what is rough is taken for more than chance.
_ROUGH = 0.1
_WITH_LEVELS = (
    "Levels that groups have of their own are a part of these graphs; fits and tests of edges subtract them, "
    "where there are any."
)

_MAY_FIND_FEWER = Message(
    "Tests of all edges and covariates ({edges}) ask another question, and may find other pairs.",
    edges=Message("gf.infer_edges", code="infer-edges"),
)


def compare_graphs(
    X: Any,
    Z: Any,
    a: Mapping[str, Any] | str,
    b: Mapping[str, Any] | None = None,
    *more: Mapping[str, Any],
    groups: Any = None,
    time: Any = None,
    in_order: bool | None = None,
    level: float = 0.9,
    missing: str = "error",
    node_types: str | Mapping[str, str] = "auto",
) -> pd.DataFrame:
    """Which edges differ between two or more values of the covariates, and by how much?

    The same scores as those of :func:`graphfield.infer_edges` are read at all values. Covariates that are
    not named are averaged over the rows, the same ones everywhere, so that they make no difference. Where
    more than a tenth of rows have other values than rows at (or near) each of the sides have, over the rest,
    which the summary says. Where hardly any are left, all rows are taken, with a warning. A level that all
    sides name is asked of its own rows, where these are enough; otherwise effects of covariates are taken to
    add up, which the summary says.

    Parameters
    ----------
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``.
    a, b, *more : mapping
        Values of the same covariates, such as ``{"group": "a"}`` and ``{"group": "b"}``. With more than two,
        each pair of nodes is tested once: is its edge the same at all of them? The name of a category alone,
        ``compare_graphs(X, Z, "group")``, stands for all its levels. Numbers must be within what the rows
        have.
    groups : sequence of length n, optional
        Rows with equal labels (one subject before and after) are not independent. Levels that subjects have
        of their own are a part of all graphs here: they are not subtracted, unlike in ``fit``.
    time, in_order
        As in :func:`graphfield.infer_edges`: stretches of time count as one each, and where rows follow each
        other though nobody says when, the summary begins with that.
    level : float
        Of the intervals, one by one.
    missing : {"error", "drop", "impute"}
        As for ``fit``.
    node_types : "auto" or mapping
        Which nodes are no numbers, as in ``{"x3": "binary", "x5": "categorical"}``: "gaussian", "binary",
        "categorical", "ordinal" or "count". By default booleans, text and pandas categories are, and whole
        numbers are numbers. With such nodes, levels of categories are compared: each graph comes from
        its own rows, by regressions of every node on all others (logistic, multinomial, Poisson, linear), and
        covariates that are not named move how frequent a level or how large a number is, but no edge.

    Returns
    -------
    DataFrame
        One line per pair: ``source``, ``target``, ``difference`` (partial correlation at ``b`` less that at
        ``a``, as in ``analysis.compare``; of more values, the largest less the smallest), ``low``, ``high``
        (of more values, wide enough for any two of them; Scheffe), ``p_value`` (of the pair alone: the same
        everywhere) and ``q_value``: the share of false ones among pairs that differ as clearly. The latter
        knows that most pairs have no edge at any value: it is learned from all pairs how many do, and an
        edge that is clear at one value and absent at the other speaks louder than its difference, so
        q-values need not have the order of p-values. It is never below the p-value, nor above ten times
        that of p-values alone. Of fewer than 13 pairs,
        and where the values are points of one curve or model that have most of their errors in common, it is
        that of p-values alone (Benjamini and Hochberg). Between nodes that are
        no numbers, ``difference`` is that of their log-odds (or logarithms of rates) in units of the
        standard deviations that all others leave of both, which are the units of partial correlations; of
        an edge of a node with three levels or more, which is several such numbers, it is the norm of their
        differences and has no sign. ``attrs["p_value"]`` is one p-value for all pairs: is the whole graph
        the same everywhere (Simes)? It knows nothing of how many pairs have an edge, so it may miss a few
        that differ; where it does, these are called hints. ``attrs["summary"]`` says in words how many
        pairs differ, what the clearest of them are, and which values have few groups (fewer than 10) or
        rows (fewer than 50, or than two for each node); it is printed above the table.

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
    question = read_question(
        X,
        Z,
        groups,
        missing,
        subtract_levels=False,
        node_types=node_types,
        time=time,
        in_order=in_order,
    )
    caveat = few_stretches(question) if question.timed else ""
    if question.in_order:
        caveat = rows_one_by_one(question)
    if caveat:
        warnings.warn(caveat, DataWarning, stacklevel=2)
    sides = read_sides(question.encoder, a, b, *more)
    inputs = question.inputs
    warn_of_constants(question.encoder, inputs, but=sides[0])
    estimates, known = None, list[str]()
    if inputs.types is None:
        found, estimates, known = _compare_numbers(question, sides, level)
    else:
        found = compare_kinds(question, sides, level)
    names = np.array(inputs.node_names, dtype=object)
    first, second = np.triu_indices(len(names), 1)
    table = WideTable({"source": names[first], "target": names[second], **found})
    table.attrs["p_value"] = float(q_values(found["p_value"]).min(initial=1.0))
    places = [place_words(side) for side in sides]
    levels = "" if question.labels is None else _WITH_LEVELS
    fewer = _MAY_FIND_FEWER if (table["q_value"] <= FDR).any() else ""
    said = [caveat, summary(table, places, estimates, caveat), fewer, levels]
    said += [few_words(question, sides, places), words_of_wide(question.wide)]
    if estimates is not None:
        said += [reading(table, places, level), *known]
    table.attrs["summary"] = join_messages(" ", filter(None, said))
    return table


def _compare_numbers(
    question: Question, sides: Sequence[Mapping[str, Any]], level: float
) -> tuple[dict[str, NDArray[np.float64]], Estimates, list[str]]:
    """Columns of the table, partial correlations on each side, and at which values they hold, in words."""
    encoder, encoded = question.encoder, question.encoder.transform(question.inputs.Z)
    asked = places_of(encoder, sides)
    for place, side in zip(asked, sides, strict=True):
        rows = rows_with_levels(encoder, encoded, place)
        if rows.sum() >= LEAST_LEVEL:  # a few rows with two levels know little, but others do
            check_nodes_vary(question.inputs.X[rows], question.inputs.node_names, place_words(side))
    common = common_rows(encoder, encoded, asked)
    if not common.share:
        warnings.warn(common.words, DataWarning, stacklevel=3)
    starts = None if question.together is None else question.starts()
    total = n_ticks() + 1
    with progress_bar("Comparing graphs", total, "parts") as advance:
        done = iter(range(1, total + 1))
        scores = scores_of(question, encoded, lambda: advance(next(done, total), ""), scales_move=True)
    known = stratum_of(encoder, encoded, starts, asked)
    basis = _chosen_basis(scores, encoder, known, sides[0])
    at = np.stack([average_at(basis, encoder, common.rows, side) for side in sides])
    columns, estimates = _differences(scores, known, basis, at, level)
    return columns, estimates, [adding_up(_unknown_to(basis, known, encoder, asked)), common.words]


def _unknown_to(
    basis: EdgeBasis, known: Stratum, encoder: CovariateEncoder, places: Sequence[Mapping[str, float]]
) -> list[str]:
    """Covariates with one value at all places on which differences cannot depend."""
    if basis.products:
        return []
    own = {column.name for column in encoder.categorical} if known.is_part else set()
    return [name for name in held(places) if name not in own]


def _differences(
    scores: PairScores, known: Stratum, basis: EdgeBasis, at: NDArray[np.float64], level: float
) -> tuple[dict[str, NDArray[np.float64]], Estimates]:
    """Columns of the table, and partial correlations on each side, where functions of z are ``at``."""
    design = Design.of(basis.at(known.encoded), known.starts)
    estimates, covariance = np.empty((len(at), scores.n_pairs)), np.empty((scores.n_pairs, len(at), len(at)))
    between, p_values = design.toward(at[1:] - at[0]), np.empty(scores.n_pairs)
    for part in (own.at(known.rows) for own in scores.parts()):
        fit, variances = fit_scores(part, design)
        estimates[:, part.pairs] = at @ fit.coef
        covariance[part.pairs] = at @ fit.covariance @ at.T
        apart = between.fit(part.values, variances, part.inflation)
        p_values[part.pairs] = between.p_values(apart, slice(None))
    possible = np.clip(estimates, -1, 1)  # near the end of a range an edge of .9 may be estimated as 1.1
    difference, error = _largest_differences(possible, covariance)
    half = between.width(slice(None), level) * error
    q = q_values_of_differences(estimates, covariance, p_values, dependent=known.starts is not None)
    columns = {
        "difference": difference,
        "low": np.maximum(
            difference - half, -2.0 if len(at) == 2 else 0.0
        ),  # of the largest less the smallest
        "high": np.minimum(difference + half, 2.0),
        "p_value": p_values,
        "q_value": q,
    }
    return columns, Estimates(possible, covariance)


def _chosen_basis(
    scores: PairScores, encoder: CovariateEncoder, known: Stratum, named: Iterable[str]
) -> EdgeBasis:
    """Smooth functions of z; those of the curves of edges, and curves of each level, where they say more."""
    counted = known.counted, known.n_units
    products, of_sides = has_products(*counted), value_degrees(*counted, named)
    chosen = learn_basis(encoder, known.encoded, test_degrees(*counted), products=products)
    rough = learn_basis(encoder, known.encoded, of_sides, products=products)
    if _explains_more(scores, known, rough, chosen):
        chosen = rough
    if can_cross(*counted, of_sides):
        crossed = learn_basis(encoder, known.encoded, of_sides, products=products, crossed=True)
        if _explains_more(scores, known, crossed, chosen):
            chosen = crossed
    return chosen


def _explains_more(scores: PairScores, known: Stratum, basis: EdgeBasis, than: EdgeBasis) -> bool:
    """Whether any pair follows functions that the other basis lacks."""
    if basis.size == than.size:
        return False
    more = Design.beside(than.at(known.encoded), basis.at(known.encoded)[:, 1:], known.starts)
    if more is None:
        return False
    p_values = np.empty(scores.n_pairs)
    for part in (own.at(known.rows) for own in scores.parts()):
        found = more.fit(part.values, fit_scores(part, more)[1], part.inflation)
        p_values[part.pairs] = more.p_values(found, slice(None))
    return bool(q_values(p_values).min(initial=1.0) <= _ROUGH)


def _largest_differences(
    estimates: NDArray[np.float64], covariance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The second less the first of two; of more, the largest less the smallest. With standard errors."""
    pairs = np.arange(estimates.shape[1])
    if len(estimates) == 2:
        low, high = np.zeros_like(pairs), np.ones_like(pairs)
    else:
        low, high = estimates.argmin(axis=0), estimates.argmax(axis=0)
    variance = covariance[pairs, low, low] + covariance[pairs, high, high] - 2 * covariance[pairs, low, high]
    return estimates[high, pairs] - estimates[low, pairs], np.sqrt(np.maximum(variance, 1e-20))
