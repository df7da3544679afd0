"""How many rows are needed to find the edges?"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.cores import in_processes
from graphfield.estimators.inputs import check_number, child_seeds, root_seed
from graphfield.exceptions import DataError, GraphfieldError, ParameterError, check_choice
from graphfield.inference.edges import infer_edges
from graphfield.inference.planned_truth import QUESTIONS, Truth, read_truth
from graphfield.inference.sample_plan import SamplePlan, plan_from
from graphfield.training.progress import progress_bar

# Rows with which the search begins, and the fewest it goes down to.
_FIRST, _FEWEST = 250, 60
# True pairs in all tables of one number of rows, for a standard error of the power near .02; and tables.
_TRUE_PAIRS, _SETS = 300, (8, 40)
_TYPICAL_SIZES = 6  # for the progress bar: nobody knows before


def plan_samples(
    source: Any,
    power: float = 0.8,
    *,
    Z: Any = None,
    question: str = "edges",
    fdr: float = 0.1,
    least: float = 0.0,
    sizes: Sequence[int] | None = None,
    n_sets: int | None = None,
    most_rows: int = 20_000,
    threshold: float | str | None = "auto",
    random_state: Any = None,
) -> SamplePlan:
    """How many rows are needed to find the edges, or those that move, with :func:`infer_edges`?

    Tables are drawn from a truth, by number of rows, and tested; power is the share of true ones that are
    found at this false discovery rate. Numbers of rows are doubled or halved until the power that is asked
    for lies between two, then one between these is tried.

    Parameters
    ----------
    source : fitted estimator, field, str or Simulation
        Of a fitted model (a pilot), its field is taken as the truth: Gaussian nodes with its edges, at rows
        of ``Z`` drawn with replacement. Or the name of a setting ("G1"; see :func:`make_setting`), whose
        random structure comes from ``random_state``, or a simulation, whose truth is used.
    power : float
        Share of the true ones that are to be found, on average.
    Z : table, optional
        Covariates as they will be: of a model, the rows it was fitted to, as a rule. Not for settings.
    question : {"edges", "varying"}
        Whether a pair is to be found to have an edge at some z, or to have one that moves with z.
    fdr : float
        The level of ``edges(fdr)`` or ``varying(fdr)``.
    least : float
        Count only pairs of at least this size: the root mean square over z of the partial correlation or, for
        "varying", its standard deviation. Smaller ones are neither to be found nor false.
    sizes : sequence of int, optional
        Numbers of rows to try, in place of the search.
    n_sets : int, optional
        Tables for each number of rows. By default enough for 300 true pairs in all, 8 to 40 tables.
    most_rows : int
        Where the search ends.
    threshold : "auto", float, "gap" or None
        Which edges of a pilot are true, as in ``predict_graph``.
    random_state : int, Generator or None

    Returns
    -------
    SamplePlan

    Notes
    -----
    A pilot is no truth. Edges that it missed are not planned for; those it has are drawn towards zero by its
    penalty, or look larger than they are because they were found by chance. With :class:`RegGMM` on 300 rows
    of 10 nodes, plans for edges were 1.14 times too large on average, those for edges that move nine times,
    since there all edges move a little by chance: give ``least``, or a pilot that decides which edges move.
    Means and scales that move with z, and rows that belong together, are not simulated: with groups, plan
    for more.

    Examples
    --------
    >>> import graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 3)), rng.normal(size=(200, 1))
    >>> X[:, 1] += 0.5 * X[:, 0]
    >>> pilot = gf.RegGMM().fit(X, Z)
    >>> plan = gf.plan_samples(pilot, Z=Z, threshold=0.3, sizes=[60, 120], n_sets=2, random_state=0)
    >>> plan.curve.n.tolist(), plan.n_true
    ([60, 120], 1)
    """
    check_number("power", power, 0, 1, open_low=True, open_high=True)
    check_number("fdr", fdr, 0, 1, open_low=True, open_high=True)
    check_number("least", least, 0, 1)
    check_number("n_sets", n_sets, 2, integer=True, optional=True)
    check_number("most_rows", most_rows, _FEWEST, integer=True)
    check_choice("question", question, QUESTIONS)
    _check_sizes(sizes)
    seed = root_seed(random_state)
    tables_seed, spread_seed = child_seeds(seed, 2)
    truth = read_truth(source, Z, threshold, question, least, seed)
    if n_sets is None:
        n_sets = int(np.clip(_TRUE_PAIRS // truth.wanted.sum(), *_SETS))
    try_size = partial(_try_size, truth, question, fdr, n_sets, tables_seed)
    search = _search(power, most_rows) if sizes is None else _in_turn(sizes)
    outcomes = _run(search, try_size, n_sets)
    about = {"fdr": fdr, "question": question, "subject": truth.subject, "n_true": int(truth.wanted.sum())}
    return plan_from(outcomes, power, spread_seed, **about, true_pairs=truth.names)


def _check_sizes(sizes: Sequence[int] | None) -> None:
    if sizes is None:
        return
    if not isinstance(sizes, Sequence | np.ndarray) or isinstance(sizes, str) or not len(sizes):
        raise ParameterError.of(
            "sizes", f"must be a list of numbers of rows, such as [500, 1000], or None, got {sizes!r}."
        )
    for size in sizes:
        check_number("sizes", size, _FEWEST, integer=True)


# Numbers of rows, one after the other; it is sent the power at the last one.
_Search = Generator[int, float, None]


def _search(power: float, most_rows: int) -> _Search:
    """Doubled or halved until the power lies between two numbers; one between these, perhaps one beyond."""
    n = min(_FIRST, most_rows)
    found = yield n
    factor = 2.0 if found < power else 0.5
    while True:
        before, last, n = n, found, int(np.clip(round(n * factor), _FEWEST, most_rows))
        if n == before:
            return
        found = yield n
        if (found >= power) == (factor > 1):
            break
    yield round((before * n) ** 0.5)
    most = max(before, n)
    # Chance may have it that the larger one is enough: the interval of the plan needs one that is.
    if max(found, last) < (1 + power) / 2 and most < most_rows:
        yield min(2 * most, most_rows)


def _in_turn(sizes: Sequence[int]) -> _Search:
    for n in sorted(set(sizes)):
        yield int(n)


def _run(
    search: _Search, try_size: Callable[[int, Callable[[], None]], NDArray[np.float64]], n_sets: int
) -> dict[int, NDArray[np.float64]]:
    outcomes: dict[int, NDArray[np.float64]] = {}
    with progress_bar("Simulating", _TYPICAL_SIZES * n_sets, "tables") as advance:
        done = itertools.count(1)
        n = next(search)
        with suppress(StopIteration):
            while True:
                outcomes[n] = try_size(n, lambda n=n: advance(next(done), f"{n:,} rows"))  # type: ignore[misc]
                n = search.send(float(outcomes[n][:, 0].mean()))
    return outcomes


def _try_size(
    truth: Truth, question: str, fdr: float, n_sets: int, seed: int, n: int, tick: Callable[[], None]
) -> NDArray[np.float64]:
    """Power and share of false ones of each table, (sets, 2)."""
    seeds = child_seeds(seed + n, n_sets)
    found = []
    for outcome in in_processes(partial(_test_table, truth, question, fdr, n), seeds):
        found.append(outcome)
        tick()
    errors = [outcome for outcome in found if isinstance(outcome, str)]
    if len(errors) == len(found) and n >= _FIRST:
        raise DataError(f"Tables of {n:,} rows cannot be tested: {errors[0]}").about(argument="sizes")
    return np.array([(0.0, 0.0) if isinstance(outcome, str) else outcome for outcome in found])


def _test_table(truth: Truth, question: str, fdr: float, n: int, seed: int) -> tuple[float, float] | str:
    """One table; where it has too few rows to be tested nothing is found, and why is told."""
    covariate_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    Z = truth.field.covariates(n, covariate_rng)
    X = truth.field.sample(Z, noise_rng)
    try:
        with warnings.catch_warnings(action="ignore"):
            tested = infer_edges(X, Z, in_order=False, covariates=[], random_state=seed)
    except GraphfieldError as error:
        return str(error)
    rate = tested.table["q_value" if question == "edges" else "q_varies"].to_numpy()
    found = rate <= fdr
    power = (found & truth.wanted).sum() / truth.wanted.sum()
    return float(power), float((found & ~truth.true).sum() / max(1, found.sum()))
