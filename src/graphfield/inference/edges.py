"""Which edges are there, and which of them move with the covariates?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.check.filled_in import gap_findings
from graphfield.check.relations import relation_findings
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.data.frames import as_frame
from graphfield.data.wide_counts import words_of_wide
from graphfield.estimators.inputs import root_seed, training_inputs
from graphfield.exceptions import DataError, DataWarning, agreed, count, listing
from graphfield.fields.schema import Schema
from graphfield.inference.cleaned_nodes import CleanedNodes
from graphfield.inference.covariate_basis import Smooth
from graphfield.inference.dependence import chosen_covariates
from graphfield.inference.design import Design
from graphfield.inference.directions import Room, directions, in_order
from graphfield.inference.drift import Drift
from graphfield.inference.drift_confirmed import confirmed_tests, words_of_both
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.edge_inference import EdgeInference
from graphfield.inference.edge_tests import (
    EdgeTests,
    SparseEffects,
    column_p_values,
    edge_table,
    edge_tests,
    many_edge_tests,
)
from graphfield.inference.enough_rows import (
    LEAST_LEVEL_OF_REGRESSION,
    N_FOLDS,
    are_many,
    check_enough,
    check_folds,
    cut_rows,
    has_products,
    most_functions,
    regression_functions,
    rough_functions,
    test_degrees,
    warn_of_constants,
)
from graphfield.inference.kind_regressions import scores_of_kinds
from graphfield.inference.kind_scores import KindScores
from graphfield.inference.kind_tests import kind_edge_tests
from graphfield.inference.pair_scores import PairScores, pair_scores
from graphfield.inference.question import (
    Question,
    in_even_units,
    numbers_alone,
    sort_rows,
    times_of,
    within_groups,
    without_wide_counts,
)
from graphfield.inference.row_order import are_in_order, few_stretches, rows_one_by_one
from graphfield.solvers.family_folds import n_ticks as n_ticks_of_kinds
from graphfield.solvers.moving_lasso import n_ticks
from graphfield.training.progress import progress_bar

# Jumps of means are not looked for in more numbers: each step is tried times each of them.
_MOST_WITH_JUMPS = 20
# The roughness (turns, multiplied in products) from which functions in regressions count for less.
_REACH = 8.0


def infer_edges(
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    time: Any = None,
    in_order: bool | None = None,
    covariates: Sequence[str] | None = None,
    missing: str = "error",
    node_types: str | Mapping[str, str] = "auto",
    random_state: Any = None,
) -> EdgeInference:
    """Test every pair of nodes: is there an edge at any z, does it move with z, and with which covariate?

    Means and scales of nodes that move with z are taken out first, as in
    :func:`graphfield.dependence_test`. Every node is then regressed on all others by sparse regressions with
    coefficients that are splines of z, without each fifth of the rows in turn; few rows are cut into fifths
    several times, and the mean counts. From what these leave of a
    row, each pair gets a score whose mean at z is its partial correlation at z, up to products of two
    errors. Regressions of the scores on functions of z give everything: averages, curves, tests.

    Parameters
    ----------
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``.
    groups : sequence of length n, optional
        Rows with equal labels (one subject) are not independent: they are held out together, and variances
        are those between groups.
    time : sequence of length n, optional
        Numbers or dates; rows that follow each other are not independent: stretches of them are held out
        together, and variances are those between stretches, 50 of them or fewer where rows resemble each
        other for longer. Without effect beside groups.
    in_order : bool, optional
        Whether rows follow each other though nobody says when; by default as :func:`graphfield.check_data`
        finds. Rows are tested as if they were independent all the same, and the summary begins with that.
        Without effect beside groups or time.
    covariates : sequence of str, optional
        Which to test one by one, each given all others; default all. None (``[]``) saves time.
    missing : {"error", "drop", "impute"}
        As for ``fit``.
    node_types : "auto" or mapping
        Which nodes are no numbers, as in :func:`graphfield.compare_graphs`: "binary", "categorical",
        "ordinal" (which counts as a number here) or "count".
    random_state : int, Generator or None
        For simultaneous bands, which draw at random. Nothing else does.

    Returns
    -------
    EdgeInference

    Notes
    -----
    Partial correlations are those of normal scores of the nodes, at z (of near copies, those of the nodes
    as they are, where ranks would hide what is left of them). An edge "moves" as far as numbers,
    levels, bends of the numbers and products of two covariates show it; of a finer movement only its share in
    these is seen. With fewer than ten rows for each covariate (or level), effects are straight lines, few of
    which are not zero for a pair: each covariate is tested by a debiased lasso, and the result's summary says
    so. P-values are made for independent rows or groups, or for stretches of time that are long beside the
    memory of the nodes.

    Where some nodes are no numbers, their regressions are by likelihood (logistic, multinomial, Poisson), and
    the score of a pair is that of its log-odds ratio (or ratio of rates) given all others, in units of the
    standard deviations that these leave of both nodes, which are the units of partial correlations. How
    frequent levels are, or how large counts, may move with z as means may. An edge of a node with three
    levels or more is several numbers: it is tested as one, its ``estimate`` is their norm, and it has no
    bands. Levels that groups have of their own are subtracted from numbers alone.

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
    question = read_question(X, Z, groups, missing, node_types=node_types, time=time, in_order=in_order)
    question = replace(question, inputs=numbers_alone(question.inputs))
    wanted = chosen_covariates(covariates, question.encoder)
    inputs, encoded = question.inputs, question.encoder.transform(question.inputs.Z)
    untested = warn_of_constants(question.encoder, inputs, tested=False)
    fixed = [] if question.levels is None else question.levels.untested(inputs.node_names)
    starts = None if question.together is None else question.starts()
    caveat = few_stretches(question) if question.timed else ""
    if question.in_order:
        caveat = rows_one_by_one(question)
    if caveat:
        warnings.warn(caveat, DataWarning, stacklevel=2)
    n_units = len(encoded) if starts is None else len(starts)
    n_folds = int(cut_rows(question.inputs.X.shape, question.together).max()) + 1
    steps = n_ticks() if question.inputs.types is None else n_ticks_of_kinds(n_folds)
    total = steps + len(wanted) + 2
    with progress_bar("Testing edges", total, "parts") as advance:
        done = iter(range(1, total + 1))

        def tick() -> None:
            advance(next(done, total), "")

        test = _many_tests if are_many(question.encoder, n_units) else _spline_tests
        scores, tests = test(question, encoded, starts, wanted, tick)
    if len(question.encoder.columns) == 1:  # one question, one answer
        tests = replace(tests, p_of_covariate=dict.fromkeys(wanted, tests.p_varies))
    drift, told = question.drift, ""
    if drift is not None:
        again = drift.ask_again(partial(infer_edges, covariates=wanted, random_state=seed))
        if again is not None:
            tests = confirmed_tests(tests, inputs.node_names, drift, again.table)
            told = words_of_both(drift)
            drift = None
    return EdgeInference(
        table=edge_table(inputs.node_names, tests.without(np.isin(inputs.node_names, [*untested, *fixed]))),
        covariates=tuple(wanted),
        schema=Schema(inputs.node_names, inputs.nodes_named, question.encoder),
        scores=scores,
        encoded=encoded,
        starts=starts,
        seed=seed,
        timed=question.timed,
        caveat=caveat,
        about=" ".join(
            filter(
                None, [_which_graph(question), told, _untested_words(untested), words_of_wide(question.wide)]
            )
        ),
        drifting=() if drift is None else drift.names,
        untested=tuple(dict.fromkeys([*untested, *fixed])),
        intervals=tests.intervals,
    )


def _untested_words(nodes: Sequence[str]) -> str:
    if not nodes:
        return ""
    have = agreed(len(nodes), "this node has", "these nodes have")
    return (
        f"Edges of {listing(nodes)} are not tested, as there are levels at which {have} one value: whether "
        "they are there is left to a fit."
    )


def _which_graph(question: Question) -> str:
    inputs, levels = question.inputs, question.levels
    if levels is None:
        return ""
    told = levels.words_of_graph(inputs.node_names, numbers_alone=inputs.types is None)
    if not question.as_numbers:
        return told
    counts = agreed(len(question.as_numbers), "counts as a number", "count as numbers")
    nodes = listing(question.as_numbers, most=4)
    return f"{told} {nodes} {counts} here, as levels can be taken from numbers alone."


def read_question(
    X: Any,
    Z: Any,
    groups: Any,
    missing: str,
    *,
    subtract_levels: bool = True,
    node_types: str | Mapping[str, str] | None = None,
    time: Any = None,
    in_order: bool | None = None,
) -> Question:
    """Sorted rows, nodes less the levels of groups, as many functions of z as rows allow."""
    read = training_inputs(X, Z, missing, node_types=node_types, groups=groups)
    read, wide = without_wide_counts(read)
    inputs, labels, levels, as_numbers = within_groups(read, groups, X, wanted=subtract_levels)
    drift = Drift.of(inputs, labels, levels)
    codes = None if labels is None else np.unique(labels, return_inverse=True)[1]
    times = None if time is None or codes is not None else times_of(time, X)[inputs.rows]
    in_order = are_in_order(X, Z, groups, time, in_order)
    inputs, codes = sort_rows(inputs, codes, times, in_order)
    encoder = CovariateEncoder(says_average=False).fit(inputs.Z)
    check_enough(encoder, encoder.transform(inputs.Z), codes)
    about = list(relation_findings(list(inputs.node_names), inputs.X.astype(np.float64)))
    if missing == "impute":
        about += gap_findings(as_frame(X, "X"), as_frame(Z, "Z"))
    for finding in about:
        warnings.warn(f"{finding.message} {finding.advice}", DataWarning, stacklevel=3)
    inputs, _ = in_even_units(inputs, codes)
    question = Question(
        inputs,
        encoder,
        codes,
        times is not None,
        1,
        N_FOLDS,
        0,
        in_order=in_order,
        levels=levels,
        drift=drift,
        as_numbers=tuple(as_numbers),
        wide={} if as_numbers else wide,
    )
    if times is not None:
        question = question.in_blocks(np.sort(times))
    n_units = len(inputs.X) if question.together is None else len(question.starts())
    return replace(question, degrees=test_degrees(encoder, n_units))


def scores_of(
    question: Question, encoded: Encoded, tick: Callable[[], None], *, scales_move: bool | None = None
) -> PairScores:
    """What each row says of each pair, from regressions that have not seen it."""
    nodes, fold = _nodes_and_folds(question, encoded)
    tick()
    functions = _moving_functions(question.encoder, encoded, nodes.values.shape[1])
    starts = None if question.together is None else question.starts()
    return pair_scores(nodes, functions, fold, tick, scales_move=scales_move, starts=starts)


def _moving_functions(encoder: CovariateEncoder, encoded: Encoded, n_nodes: int) -> NDArray[np.float64]:
    """What coefficients of regressions of nodes are linear in, (n, m), the first one.

    Where there is room, functions of numbers, and products of up to three covariates, the rougher the
    smaller: they share one penalty, so a rough one must be worth more. What regressions miss of a movement
    that edges have in common looks like edges between neighbours of one node.
    """
    n = len(encoded)
    rough = rough_functions(encoder, n, n_nodes)
    if rough:
        found = directions(encoder, encoded, Room(rough, n // LEAST_LEVEL_OF_REGRESSION))
        shares = 1 / np.sqrt(1 + (found.roughness / _REACH) ** 4)
        return np.column_stack([np.ones(n), found.columns * shares])
    degrees, products = regression_functions(encoder, n_nodes)
    if not degrees:
        return np.ones((n, 1))
    basis = learn_basis(encoder, encoded, degrees, products=products, least_rows=LEAST_LEVEL_OF_REGRESSION)
    return basis.at(encoded)


def _nodes_and_folds(question: Question, encoded: Encoded) -> tuple[CleanedNodes, NDArray[np.intp]]:
    fold = cut_rows(question.inputs.X.shape, question.together)
    check_folds(question.encoder, encoded, fold)
    if len(question.encoder.numeric) <= _MOST_WITH_JUMPS:
        question = question.with_jumps()
    return question.nodes(), fold


def _spline_tests(
    question: Question,
    encoded: Encoded,
    starts: NDArray[np.intp] | None,
    wanted: Sequence[str],
    tick: Callable[[], None],
) -> tuple[PairScores | KindScores, EdgeTests]:
    """Tests of edges that are functions of all covariates."""
    of_numbers, of_kinds = None, None
    if question.inputs.types is None:
        of_numbers = scores_of(question, encoded, tick)
    else:
        check_folds(question.encoder, encoded, cut_rows(question.inputs.X.shape, question.together))
        of_kinds = scores_of_kinds(question, tick)
    smooths, of_covariate = question.smooths(question.degrees), {}
    for name in wanted:
        of_covariate[name] = _design_given_others(question, smooths, name, starts)
        tick()
    n_units = len(encoded) if starts is None else len(starts)
    products = has_products(question.encoder, n_units)
    basis = learn_basis(question.encoder, encoded, question.degrees, products=products)
    if of_numbers is not None:
        tests = edge_tests(of_numbers, basis, starts, encoded, of_covariate)
        return replace(of_numbers, if_still=None), tests
    assert of_kinds is not None
    return of_kinds, kind_edge_tests(of_kinds, basis, starts, encoded, of_covariate)


def _check_numbers(question: Question, n_units: int) -> None:
    """Raise where some nodes are no numbers, and covariates are too many for them."""
    if (types := question.inputs.types) is None:
        return
    other = [name for name, kind in zip(types.names, types.kinds, strict=True) if kind != "gaussian"]
    unit, covariates = "row" if question.labels is None else "group", len(question.encoder.columns)
    raise DataError(
        f"There are {count(n_units, unit)} for {count(covariates, 'covariate')}, and edges "
        f"of nodes that are no numbers ({listing(other, most=4)}) are tested with ten {unit}s for each "
        "covariate or level at least. Leave covariates out, pool levels, or leave these nodes out."
    ).about(argument="Z")


def _many_tests(
    question: Question,
    encoded: Encoded,
    starts: NDArray[np.intp] | None,
    wanted: Sequence[str],
    tick: Callable[[], None],
) -> tuple[PairScores, EdgeTests]:
    """Tests of effects of which few are not zero.

    Regressions of nodes cannot move with all covariates. A first round in which they move with none says
    which may matter to any pair, and in the second they move with these, as many as there is room for.
    """
    _check_numbers(question, len(encoded) if starts is None else len(starts))
    nodes, fold = _nodes_and_folds(question, encoded)
    smooths = question.smooths(1)
    names = tuple(own.name for own in smooths for _ in own.columns.T)
    effects = SparseEffects.of(names, np.hstack([own.columns for own in smooths]), starts)
    ones = np.ones((len(encoded), 1))
    first = pair_scores(nodes, ones, fold, tick)
    least = column_p_values(first, effects).min(axis=1)
    chosen = np.sort(np.argsort(least, kind="stable")[: most_functions(nodes.values.shape[1])])
    functions = np.column_stack([ones, in_order(effects.columns[:, chosen])])
    scores = pair_scores(nodes, functions, fold, tick)
    return replace(scores, if_still=None), many_edge_tests(scores, effects, starts, wanted)


def _design_given_others(
    question: Question, smooths: list[Smooth], name: str, starts: NDArray[np.intp] | None
) -> Design | None:
    """Functions of one covariate beside functions of the others and products of these.

    Where there are too few rows for bends, beside the others as they are.
    """
    own = next(smooth for smooth in smooths if smooth.name == name)
    others = [smooth.columns for smooth in smooths if smooth.name != name]
    columns, given = own.columns, np.hstack([np.ones((len(own.columns), 1)), *others])
    if others and question.degrees > 1:
        columns, functions = question.apart(name, columns)
        given = np.column_stack([np.ones(len(columns)), functions])
    return Design.beside(given, columns, starts)
