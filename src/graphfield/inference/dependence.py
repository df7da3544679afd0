"""Does the graph depend on the covariates at all?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from graphfield.check.filled_in import first_of, gap_findings
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame
from graphfield.data.wide_counts import words_of_wide
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import Inputs, check_number, root_seed, training_inputs
from graphfield.estimators.reggmm import RegGMM
from graphfield.exceptions import DataError, ParameterError, listing, suggestion
from graphfield.inference.common_nodes import CommonNodes, wanted_nodes
from graphfield.inference.covariate_basis import Smooth
from graphfield.inference.drift import Drift
from graphfield.inference.drift_confirmed import confirmed_evidence, shows_any
from graphfield.inference.evidence import (
    OF_KINDS,
    OF_NUMBERS,
    CovariateEvidence,
    Evidence,
    Measured,
    covariate_sentence,
    overall_sentence,
    verdict,
)
from graphfield.inference.held_out_gain import MAX_WIDTH, Gains, held_out_gains
from graphfield.inference.kind_regressions import gains_of_kinds, scores_of_kinds
from graphfield.inference.question import (
    MIN_STRETCHES,
    Question,
    in_even_units,
    numbers_alone,
    sort_rows,
    times_of,
    within_groups,
    without_wide_counts,
)
from graphfield.inference.row_order import are_in_order, rows_as_series, rows_one_by_one
from graphfield.inference.running_tests import Tested, holm, settle
from graphfield.inference.sign_tests import SignTests
from graphfield.inference.tests_of_covariates import Tests
from graphfield.inference.unseen_rows import can_compare, copy_of, predict_held_out
from graphfield.numbers import p_text
from graphfield.training.progress import progress_bar

# More rows than this, or than so many values of nodes make, are thinned evenly: for rearrangements, and for
# held-out gains.
_TEST_ROWS, _TEST_ENTRIES = 10_000, 1_000_000
_GAIN_ROWS, _GAIN_ENTRIES = 50_000, 2_000_000
# Rearrangements where nobody says how many, at first.
_PERMUTATIONS = 199
# Fewer independent stretches of a time series than this are spoken of.
_FEW_STRETCHES = 25
_TOGETHER = "all covariates together"
_NEAR = "So near to .05 that other rearrangements might bring p to the other side"


def dependence_test(
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    time: Any = None,
    in_order: bool | None = None,
    covariates: Sequence[str] | None = None,
    n_permutations: int | None = None,
    degrees: int = 3,
    n_folds: int = 5,
    model: Any = None,
    missing: str = "error",
    node_types: str | Mapping[str, str] = "auto",
    random_state: Any = 0,
) -> Evidence:
    """Test whether the graph depends on the covariates, and say by how much held-out rows gain from it.

    Each node is freed of a mean and a scale that move with z (a level of a category has its own; of numbers
    they may be waves and products of up to three, as rough as the rows ask for, and may jump at values that
    are looked for where rows are independent), and brought to normal scores. If no partial
    correlation depends on z, products of two nodes are then unrelated to z. Whether
    they are is tested by rearranging the covariates (see ``Evidence.scheme``): rows change places; with
    ``groups`` whole groups do, and for what varies within groups rows of one group; with ``time``
    covariates are shifted circularly. No model is fitted for that, so the test takes seconds. How much it
    matters is measured by cross-validation: ridge regressions of every node on all others, whose
    coefficients do not move, are linear in z, or are splines of z.

    A covariate is tested given all others: what products of nodes, and the covariate itself, owe to
    functions of the others and to products of these is subtracted. What each row then adds to the scores
    gets random signs; groups exchange what is left of their mean products, in units of how much these vary
    by chance, more with few rows; with ``time``, the covariate is shifted.

    Parameters
    ----------
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``.
    groups : sequence of length n, optional
        Rows with equal labels (one subject) are not independent. Levels that groups have of their own are
        subtracted first, as in ``fit``, so that the test is about the graph that a model shows. Where these
        drift, what is found must be there in differences of neighbouring rows, too (``Evidence.drifting``).
    time : sequence of length n, optional
        Numbers or dates; rows that follow each other are not independent.
    in_order : bool, optional
        Whether rows follow each other though nobody says when; by default as :func:`graphfield.check_data`
        finds. They are tested as a series then, in their order. Where covariates change too slowly for that,
        rows are taken one by one: the answer is "not known" unless there is no evidence even so, and
        ``caveat`` says why. Without effect beside groups or time.
    covariates : sequence of str, optional
        Which to test one by one, each given all others; default all. P-values are adjusted for the number
        tested, so name the one that the question is about where there is one. None (``[]``) saves time.
    n_permutations : int, optional
        By default 199, and more where the p-value (of a covariate, the adjusted one) is so near to .05 that
        these might have brought it to the other side: twice as many until that has a chance of 1 %, or
        9,999 are done. The smallest possible p-value is one over this number plus one. With ``time`` there
        are no more different shifts than rows. Where a covariate's p-value is small, it is made finer with
        more permutations, so that it can stay small when adjusted for the number of covariates.
    degrees : int, default 3
        Columns of the spline of a numeric covariate. More see finer movements, at the expense of power.
    n_folds : int, default 5
        Of the cross-validation: by group, by stretch of time, or by row.
    model : estimator, optional
        One more line of evidence: copies of it are fitted without some of the rows and predict these, as in
        :func:`graphfield.gain_over_one_graph`; see ``Evidence.model_gain_over_static``.
    missing : {"error", "drop", "impute"}
        As for ``fit``.
    node_types : "auto" or mapping
        Which nodes are no numbers, as in :func:`graphfield.compare_graphs`. What is tested then is whether
        log-odds ratios (or ratios of rates, or partial correlations) depend on z, by scores of pairs as in
        :func:`graphfield.infer_edges`: what a row (a group, a stretch of time) adds to them gets a random
        sign. Gains are those of held-out deviance.
    random_state : int, Generator or None

    Returns
    -------
    Evidence

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=600, random_state=0)
    >>> found = gf.dependence_test(sim.X[:, :20], sim.Z, covariates=[], n_permutations=99)
    >>> found.verdict, found.p_value
    ('strong evidence', 0.01)
    """
    goes_on = n_permutations is None
    n_permutations = _PERMUTATIONS if n_permutations is None else n_permutations
    check_number("n_permutations", n_permutations, 19, integer=True)
    check_number("degrees", degrees, 1, 10, integer=True)
    check_number("n_folds", n_folds, 2, integer=True)
    inputs, wide = without_wide_counts(training_inputs(X, Z, missing, node_types=node_types, groups=groups))
    inputs = numbers_alone(inputs)
    inputs, labels, levels, _ = within_groups(inputs, groups, X)
    drift = Drift.of(inputs, labels, levels)
    if levels is not None:
        inputs = _without_nodes(inputs, levels.untested(inputs.node_names))
    labels = None if labels is None else np.unique(labels, return_inverse=True)[1]
    times = None if time is None else times_of(time, X)[inputs.rows]
    in_order = are_in_order(X, Z, groups, time, in_order)
    inputs, labels = sort_rows(inputs, labels, times, in_order)
    encoder = CovariateEncoder().fit(inputs.Z)
    wanted = chosen_covariates(covariates, encoder)
    timed = time is not None or in_order
    even, about_units = in_even_units(inputs, labels)
    question = Question(even, encoder, labels, timed, degrees, n_folds, n_permutations)
    lacking, caveat = question.lacking(), rows_as_series() if in_order else ""
    one_by_one = replace(question, timed=False)
    if in_order and lacking and not one_by_one.lacking():
        caveat = rows_one_by_one(question)
        if question.node_stretches() >= MIN_STRETCHES:
            question, lacking = one_by_one, None
    if lacking:
        return replace(_not_known(question, lacking), caveat=caveat)
    evidence = _answer(question.with_jumps(), wanted, root_seed(random_state), goes_on=goes_on)
    if drift is not None and shows_any(evidence):
        again = drift.ask_again(
            partial(
                dependence_test,
                covariates=wanted,
                n_permutations=None if goes_on else n_permutations,
                degrees=degrees,
                n_folds=n_folds,
                random_state=random_state,
            )
        )
        evidence = confirmed_evidence(evidence, drift, again)
    if missing == "impute":
        evidence = _beside_gaps(evidence, X, Z)
    evidence = replace(evidence, notes=(*evidence.notes, *filter(None, [about_units, words_of_wide(wide)])))
    if in_order:
        evidence = replace(evidence, caveat=caveat) if question.timed else evidence.as_if_independent(caveat)
    if model is None:
        return evidence
    if not isinstance(model, GraphEstimator):
        raise ParameterError.of("model", f"must be a graphfield estimator such as DNNCGM(), got {model!r}.")
    units, in_time = (question.units(), True) if labels is None and question.timed else (labels, False)
    if not can_compare(len(inputs.X), units):
        return evidence
    nodes = CommonNodes.choose(inputs, wanted_nodes(model), labels)
    copied, seen = nodes.take_over(copy_of(model)), nodes.turn(inputs)
    left = predict_held_out(copied, seen, units, ordered=in_time, others=(RegGMM(),))
    return replace(
        evidence,
        model_gain_over_static=left.over(left.average),
        model_gain_over_linear=left.over(left.others[0]),
    )


def _without_nodes(inputs: Inputs, names: Sequence[str]) -> Inputs:
    """Without nodes that have levels of groups alone; with them, where too few others would be left."""
    kept = np.flatnonzero(~np.isin(inputs.node_names, names))
    if not names or len(kept) < 2 or inputs.types is not None:
        return inputs
    return replace(inputs, X=inputs.X[:, kept], node_names=[inputs.node_names[j] for j in kept])


def _beside_gaps(evidence: Evidence, X: Any, Z: Any) -> Evidence:
    """Values that were filled in where a covariate says so are no answer of that covariate."""
    found = list(gap_findings(as_frame(X, "X"), as_frame(Z, "Z")))
    return evidence.as_if_seen([one.columns[0] for one in found], first_of(found)) if found else evidence


def _answer(question: Question, wanted: list[str], seed: int, *, goes_on: bool) -> Evidence:
    notes: list[str] = []
    tested = question.thinned(_TEST_ROWS, _TEST_ENTRIES)
    smooths, rng = tested.smooths(question.degrees), np.random.default_rng(seed)
    kinds = question.inputs.types is not None
    tests = (_sign_tests if kinds else _permutation_tests)(tested, smooths, rng)
    of = OF_KINDS if kinds else OF_NUMBERS
    n, n_tested = len(question.inputs.X), len(tested.inputs.X)
    if n_tested < n:
        notes.append(f"{n_tested:,} of {n:,} rows, evenly chosen, were rearranged.")
    total = tests.n_ticks(wanted) + len(smooths) + 2
    with progress_bar("Rearranging covariates", total, "parts") as advance:
        done = iter(range(1, total + 1))

        def tick() -> None:
            advance(next(done, total), "")

        whole = tests.overall(tick)
        is_only = len(smooths) == 1
        # Before others draw from the same generator: its p-value does not depend on which are asked for.
        near = settle({_TOGETHER: whole}) if goes_on else []
        one_by_one = {
            name: whole if is_only else tests.given_others(name, len(wanted), tick) for name in wanted
        }
        near += settle(one_by_one) if goes_on and not is_only else []
        overall = whole.result()
        given_others = {name: None if test is None else test.result() for name, test in one_by_one.items()}
        gains = (_gains_of_kinds if kinds else _gains)(question, notes, tick)
    if overall.n_permutations < question.n_permutations:
        notes.append(
            f"There are {overall.n_permutations} different shifts only, so no p-value is below "
            f"{1 / (overall.n_permutations + 1):.2g}."
        )
    slowest, stretches = question.slowest()
    if stretches < _FEW_STRETCHES:
        notes.append(
            f"{slowest} changes so slowly that the series holds only about {stretches:.0f} independent "
            "stretches: only large effects can be seen, and p-values are rough."
        )
    names = [smooth.name for smooth in smooths]
    lines = _lines(given_others, gains, is_only, of)
    if near:
        known = {_TOGETHER: overall.p_value, **{line.name: line.adjusted_p_value for line in lines}}
        told = [f"{name} ({p_text(known[name] or 0.0)})" for name in near]
        notes.insert(0, f"{_NEAR}: {', '.join(told)}.")
    return Evidence(
        verdict=verdict(overall.p_value, gains.over_still),
        sentence=overall_sentence(names, overall, gains.over_still, of),
        p_value=overall.p_value,
        gain_over_static=gains.over_still,
        gain_over_linear=gains.over_linear,
        per_covariate=lines,
        n_permutations=overall.n_permutations,
        scheme=tests.words,
        n_rows=n,
        n_folds=len(question.splits()),
        notes=tuple(notes),
        error=of.error,
        regressions=of.regressions,
        together=tuple(names),
    )


def _permutation_tests(question: Question, smooths: list[Smooth], rng: np.random.Generator) -> Tests:
    return Tests(question.nodes(), smooths, question.apart, question.schemes, question.n_permutations, rng)


def _sign_tests(question: Question, smooths: list[Smooth], rng: np.random.Generator) -> SignTests:
    name = "row" if question.labels is None and not question.timed else "stretch of time"
    return SignTests(
        scores_of_kinds(question),
        smooths,
        question.apart,
        question.units(),
        name if question.labels is None else "group",
        question.n_permutations,
        rng,
    )


def _gains_of_kinds(question: Question, notes: list[str], tick: Callable[[], None]) -> Gains:
    fewer = question.thinned(_TEST_ROWS, _TEST_ENTRIES)
    if len(fewer.inputs.X) < len(question.inputs.X):
        notes.append("Held-out gains are those of these rows.")
    return gains_of_kinds(fewer, tick)


def _gains(question: Question, notes: list[str], tick: Callable[[], None]) -> Gains:
    """Held-out gains, with fewer functions of z or fewer nodes where the regressions would be too large."""
    question = question.thinned(_GAIN_ROWS, _GAIN_ENTRIES)
    smooths = question.smooths(question.degrees)
    nodes = question.nodes().values
    p = nodes.shape[1]
    if p * (1 + sum(smooth.columns.shape[1] for smooth in smooths)) > MAX_WIDTH:
        smooths = [replace(smooth, columns=smooth.linear) for smooth in smooths]
        notes.append("Held-out gains are those of edges linear in z: with splines there would be too many.")
    most = max(2, MAX_WIDTH // (1 + sum(smooth.columns.shape[1] for smooth in smooths)))
    if p > most:
        nodes = nodes[:, np.linspace(0, p - 1, most).round().astype(np.intp)]
        notes.append(f"Held-out gains are those of a part of the graph: {most} of {p} nodes, evenly chosen.")
    return held_out_gains(nodes, smooths, question.splits(), question.units(), tick)


def _lines(
    tests: dict[str, Tested | None], gains: Gains, is_only: bool, of: Measured
) -> tuple[CovariateEvidence, ...]:
    adjusted = holm({name: None if test is None else test.p_value for name, test in tests.items()})
    lines = []
    for name, test in tests.items():
        gain = gains.of_covariate[name]
        lines.append(
            CovariateEvidence(
                name=name,
                gain=gain.value,
                standard_error=gain.standard_error,
                p_value=None if test is None else test.p_value,
                adjusted_p_value=adjusted[name],
                n_permutations=0 if test is None else test.n_permutations,
                verdict=verdict(adjusted[name], gain),
                sentence=covariate_sentence(
                    name, test, adjusted[name], gain, is_only=is_only, n_tested=len(tests), of=of
                ),
            )
        )
    return tuple(lines)


def _not_known(question: Question, lacking: str) -> Evidence:
    return Evidence(
        verdict="not known",
        sentence=f"No permutation test was possible. {lacking}.",
        p_value=None,
        gain_over_static=None,
        gain_over_linear=None,
        per_covariate=(),
        n_permutations=0,
        scheme="no test was made",
        n_rows=len(question.inputs.X),
        n_folds=0,
    )


def chosen_covariates(covariates: Sequence[str] | None, encoder: CovariateEncoder) -> list[str]:
    """Names of covariates that are to be looked at one by one; all where none are named."""
    known = [column.name for column in encoder.columns]
    if covariates is None:
        return known
    chosen = [covariates] if isinstance(covariates, str) else [str(name) for name in covariates]
    for name in chosen:
        if name not in known:
            raise DataError.of(
                "covariates",
                f"names {name!r}, which Z does not have or which is constant."
                f"{suggestion(name, known)} It has {listing(known)}.",
            )
    return chosen
