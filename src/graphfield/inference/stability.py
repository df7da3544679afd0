"""Would half of the rows, or most of them, have given the same graph?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphfield.analysis.rows import spread
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.fingerprints import fingerprint
from graphfield.data.missing import check_complete
from graphfield.data.saved_files import finite_values
from graphfield.data.splits import group_labels
from graphfield.estimators.composite import given_estimator
from graphfield.estimators.inputs import Inputs, check_number, one_row, root_seed, training_inputs
from graphfield.exceptions import DataError, ParameterError, count
from graphfield.fields.schema import Schema
from graphfield.inference.resample_fits import MOST_ROWS, Outcome, Task, fit_resamples, fitted_parameters
from graphfield.inference.stability_folder import About, Resample, StabilityFolder, planned_resamples
from graphfield.inference.stability_result import Stability
from graphfield.training.progress import progress_bar

# Rows or groups, half of which must make a graph.
_LEAST_UNITS = 20
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def stability(
    model: Any,
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    at: Any = None,
    threshold: float | str | None = "auto",
    n_pairs: int = 50,
    n_drops: int = 50,
    shares: Sequence[float] = SHARES,
    n_bootstraps: int = 100,
    folder: str | Path | None = None,
    random_state: Any = None,
) -> Stability:
    """Fit an estimator to parts of the rows, many times: which edges and which central nodes remain?

    Three things are done with the rows (or whole groups): they are divided into complementary halves, for
    the frequency with which a pair is selected and a bound on false ones (Shah and Samworth, 2013); shares of
    them are dropped, for the CS coefficient of centralities (Epskamp, Borsboom and Fried, 2018); and they are
    drawn with replacement, for intervals. Each fit chooses its penalty and its threshold anew.

    Parameters
    ----------
    model : estimator
        Fitted or not; it is cloned, and what it was fitted to does not matter.
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``.
    groups : sequence of length n, optional
        Rows with equal labels (one subject) are dropped and drawn together.
    at : mapping, table or list of mappings, optional
        Values of all covariates, one or several, at which the graph is asked about too. Else and always, the
        average graph over the rows of Z is (over 2,000 of them where there are more).
    threshold : "auto", float, "gap" or None
        When a pair is an edge, as in ``predict_graph``.
    n_pairs : int
        Pairs of complementary halves: twice as many fits. 0: none.
    n_drops : int
        Fits for each share of rows that is dropped; half-samples count for the share .5.
    shares : sequence of float
        That are dropped, in whole percent.
    n_bootstraps : int
        Fits to rows drawn with replacement, for intervals.
    folder : path, optional
        Keeps every finished fit, so that a call that was killed goes on when it is made again (give
        ``random_state``, too). What the folder holds already counts, also of other seeds.
    random_state : int, Generator or None
        Decides which rows are drawn, and what is random in the fits. The same number with more fits keeps
        those that are there.

    Returns
    -------
    Stability

    Notes
    -----
    :class:`DNNCGM` is fitted ten at a time as one computation (:func:`fit_together`), where units of nodes
    and their normal scores come from all rows; others are fitted side by side on all cores.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=200, random_state=0)
    >>> found = gf.stability(gf.RegGMM(), sim.X[:, :5], sim.Z, n_pairs=3, n_drops=2, shares=[0.2],
    ...                      n_bootstraps=3, threshold=0.1, random_state=0)
    >>> found.table.columns.tolist()
    ['source', 'target', 'partial_correlation', 'frequency', 'low', 'high']
    >>> 0 <= found.cs_coefficient("strength") <= 0.5
    True
    """
    seed = root_seed(random_state)
    for name, number in (("n_pairs", n_pairs), ("n_drops", n_drops), ("n_bootstraps", n_bootstraps)):
        check_number(name, number, 0, integer=True)
    wanted = planned_resamples(seed, n_pairs, n_drops, _checked_shares(shares), n_bootstraps)
    task = _read_task(model, X, Z, groups, at, threshold)
    about = _describe(task)
    kept = None if folder is None else StabilityFolder(folder, about)
    graphs = {} if kept is None else kept.read()
    failures: dict[Resample, str] = {}

    def keep(resample: Resample, outcome: Outcome) -> None:
        if isinstance(outcome, str):
            failures[resample] = outcome
            return
        graphs[resample] = outcome
        if kept is not None:
            kept.write(resample, outcome)

    if Resample("all") not in graphs:
        keep(Resample("all"), task.fit_all_rows())
    todo = [resample for resample in wanted if resample not in graphs]
    with progress_bar("Fitting to parts of the rows", len(todo), "fits") as advance:
        for done, (resample, outcome) in enumerate(fit_resamples(task, todo), start=1):
            keep(resample, outcome)
            advance(done, "")
    if failures and len(failures) == len(todo):
        raise DataError(
            f"No fit to a part of the rows succeeded; the first: {next(iter(failures.values()))}"
        ).about(argument="model")
    return Stability(about, dict(sorted(graphs.items())), failures)


def _checked_shares(shares: Sequence[float]) -> list[float]:
    if isinstance(shares, (str, bytes)) or not isinstance(shares, Sequence | np.ndarray):
        raise ParameterError.of(
            "shares", f"must be a list of shares of rows, such as [0.25, 0.5], got {shares!r}."
        )
    for share in shares:
        check_number("shares", share, 0.01, 0.99)
    return sorted(set(shares))


def _read_task(model: Any, X: Any, Z: Any, groups: Any, at: Any, threshold: float | str | None) -> Task:
    estimator = given_estimator(model)
    estimator.check_parameters()
    inputs = training_inputs(X, Z, estimator.missing_policy(), groups=groups)
    labels = group_labels(groups, X, inputs.rows)
    n_units, what = (len(inputs.X), "row") if labels is None else (int(labels.max()) + 1, "group")
    if n_units < _LEAST_UNITS:
        raise DataError(
            f"At least {_LEAST_UNITS} {what}s are needed, of which halves are fitted, got "
            f"{count(n_units, what)}."
        ).about(argument="X")
    rows = inputs.Z.values
    over = rows.iloc[np.sort(spread(rows)[:MOST_ROWS])].reset_index(drop=True)
    return Task(estimator, inputs, labels, over, _read_places(at, inputs), threshold)


def _read_places(at: Any, inputs: Inputs) -> pd.DataFrame:
    """One row for each value of the covariates that was named."""
    if at is None:
        return inputs.Z.values.iloc[:0]
    several = list(at) if isinstance(at, (list, tuple)) else [at]
    if all(isinstance(one, (Mapping, pd.Series)) for one in several):
        at = pd.concat([one_row(one, inputs.Z.names) for one in several], ignore_index=True)
    encoder = CovariateEncoder(unknown="error").fit(inputs.Z, allow_empty=True)
    frame = Schema(inputs.node_names, inputs.nodes_named, encoder).match_covariates(at)
    check_complete(None, frame)
    encoder.transform(frame)  # a level that no row has is heard of before the work
    return frame.values.reset_index(drop=True)


def _describe(task: Task) -> About:
    inputs = task.inputs
    places = tuple(finite_values(_plain(place)) for place in task.at.to_dict("records"))
    settings = {
        **fitted_parameters(task.estimator),
        "threshold": task.threshold,
        "at": places,
        "nodes": inputs.node_names,
        "covariates": inputs.Z.names,
    }
    tables: list[Any] = [inputs.X, inputs.Z.values, task.labels]
    return About(
        fingerprint(settings, tables),
        type(task.estimator).__name__,
        tuple(inputs.node_names),
        places,
        len(inputs.X),
        int(task.codes.max()) + 1,
    )


def _plain(place: dict[Any, Any]) -> dict[str, Any]:
    """Numbers, truth values and text; whatever else, such as a date, as text."""
    known = (str, bool, int, float, np.generic)
    return {str(name): value if isinstance(value, known) else str(value) for name, value in place.items()}
