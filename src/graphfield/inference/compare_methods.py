"""Several methods on the same rows: which predicts best, what it costs, how far they agree."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from graphfield.analysis.rows import spread
from graphfield.cores import in_processes
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import given_estimator
from graphfield.estimators.inputs import Inputs, check_number, root_seed, training_inputs
from graphfield.estimators.one_graph import STATIC, static_model, static_models
from graphfield.estimators.parameters import MARGINAL
from graphfield.estimators.registry import ESTIMATORS, find_estimator
from graphfield.exceptions import DataError, ParameterError, count, listing, suggestion
from graphfield.inference.common_nodes import AUTO, CommonNodes
from graphfield.inference.method_comparison import MethodComparison
from graphfield.inference.method_fits import Failed, MethodFit, MethodTask
from graphfield.inference.method_folder import MethodFolder
from graphfield.inference.model_gain import Units, read_units
from graphfield.inference.unseen_rows import MIN_ROWS, MIN_UNITS, can_compare
from graphfield.training.progress import progress_bar

# Values of z at which graphs are compared: so many, or fewer where there are many pairs.
_MOST_ROWS, _FEWEST_ROWS, _ENTRIES = 200, 10, 5_000_000
_NAME = re.compile(r"[\w][\w .+-]{0,60}")


def compare_methods(
    X: Any,
    Z: Any,
    methods: str | Sequence[str] | Mapping[str, GraphEstimator] = "all",
    *,
    groups: Any = None,
    time: Any = None,
    n_folds: int | None = None,
    missing: str = "error",
    folder: str | Path | None = None,
    random_state: Any = 0,
    in_order: bool = False,
    marginals: str = AUTO,
    say: Callable[[str], None] | None = None,
) -> MethodComparison:
    """Fit several methods and compare them on rows that took no part in any of their choices.

    Each method is fitted to all rows (for its graphs, time and memory) and, choices and all, without some of
    the rows, which it then predicts: each node from all others. Up to 3,000 rows every row is predicted
    once, in five folds; of more, a fifth is held out. The same rows, and the same rules for what is clear,
    as in :func:`graphfield.gain_over_one_graph` and the verdict of a fit. One graph for all, a graphical
    lasso whose means follow z on a line ("static"), is always among the methods. Whether a graph moves is
    judged against one graph with the method's own means and scales, which may be better than those of
    "static": its gain is in the table, too.

    Parameters
    ----------
    X, Z : tables of shape (n, p), (n, q)
        As for ``fit``; nodes must be numbers.
    methods : "all", "quick", list of names, or mapping of names to estimators
        Names of the command line ("static", "tree", "joint", ...) or of classes, as :class:`AutoCGM` would
        fit them; or estimators of your own. "all" has every estimator but those made of others; "quick" has
        these but for neural ones, which take most of the time. Numbers of the others stay the same.
    groups : sequence of length n, optional
        Rows with equal labels (one subject) are held out together, and count as one.
    time : sequence of numbers or dates of length n, optional
        Folds are stretches of time. Without effect beside groups.
    n_folds : int, optional
        1 holds one fifth out.
    missing : {"error", "drop", "impute"}
    folder : path, optional
        Keeps every finished method, so that a call that was killed goes on, and one with more methods adds
        to them.
    random_state : int, Generator or None
        For what is random in the methods.
    in_order : bool
        Whether rows that follow each other depend on each other, as in ``gain_over_one_graph``.
    marginals : {"auto", "raw", "normal", "log1p", "clr"}
        What nodes are taken as, for all methods alike, and errors counted in: as they are, normal scores, or
        logarithms, as in :class:`AutoCGM`; by default normal scores where held-out rows prefer these.
    say : callable, optional
        Told a line about each method as it is finished, such as ``print``.

    Returns
    -------
    MethodComparison
        ``table``, ``agreement``, ``best``, ``verdict``, ``summary``; ``graphfield.plots.plot_methods`` draws
        it. A method that cannot be fitted is a line with the reason.

    Examples
    --------
    >>> import graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> Z, X = rng.uniform(-1, 1, (300, 1)), rng.normal(size=(300, 4))
    >>> X[:, 1] += 2 * Z[:, 0] * X[:, 0]  # an edge that changes its sign
    >>> found = gf.compare_methods(X, Z, ["linear", "joint"], n_folds=1)
    >>> found.best, found.table["method"].tolist()
    ('linear', ['linear', 'static', 'joint'])
    >>> found.table["note"].iloc[-1][:46]
    'JointGraphicalLasso needs covariates with leve'
    """
    check_number("n_folds", n_folds, 1, integer=True, optional=True)
    MARGINAL.check("marginals", marginals)
    models = read_methods(methods, root_seed(random_state))
    inputs = training_inputs(X, Z, missing, groups=groups)
    inputs, units = read_units(inputs, X, groups, time, in_order=in_order)
    _check_rows(inputs, units)
    nodes = CommonNodes.choose(inputs, marginals, units.groups)
    models = {name: nodes.take_over(clone(model)) for name, model in models.items()}
    task = MethodTask(models, nodes.turn(inputs), units, n_folds, _asked_rows(inputs), nodes.name)
    kept = None if folder is None else MethodFolder(folder, task)
    known = {} if kept is None else kept.read()
    todo, start = [name for name in task.models if name not in known], clock.perf_counter()
    neural = [name for name in todo if is_neural(task.models[name])]
    if neural and say is not None:
        say(f"Most of the time goes to networks ({listing(neural)}), which begin first.")
    # What takes longest first, so that no core waits for it at the end.
    todo = [*neural, *(name for name in todo if name not in neural)]
    with progress_bar("Methods", len(todo), "methods") as advance:
        for done, found in enumerate(in_processes(task.run, todo, sure=bool(neural), ordered=False), start=1):
            known[found.name] = found
            if kept is not None and isinstance(found, MethodFit):
                kept.write(found)
            advance(done, found.name)
            if say is not None:
                what = "is done" if isinstance(found, MethodFit) else "cannot be fitted"
                seconds = clock.perf_counter() - start
                say(f"{found.name} {what} ({done} of {count(len(todo), 'method')}, {seconds:.0f} s).")
    return _compare([known[name] for name in task.models], nodes.name)


def _compare(found: Sequence[MethodFit | Failed], nodes: str) -> MethodComparison:
    failed = tuple(one for one in found if isinstance(one, Failed))
    for one in failed:
        if one.name == STATIC:
            raise DataError(
                f"There is nothing to compare with: one graph for all cannot be fitted. {one.why}"
            ).about(argument="X")
    return MethodComparison(tuple(one for one in found if isinstance(one, MethodFit)), failed, nodes)


def _check_rows(inputs: Inputs, units: Units) -> None:
    n, labels = len(inputs.X), units.labels
    if not can_compare(n, labels):
        in_groups = "" if labels is None else f" in {len(np.unique(labels))} groups"
        raise DataError(
            f"{n} rows{in_groups} are too few to compare methods on rows that they have not seen: at least "
            f"{MIN_ROWS} rows{'' if labels is None else f' and {MIN_UNITS} groups'} are needed."
        ).about(argument="X")


def _asked_rows(inputs: Inputs) -> Any:
    """Values of z at which graphs are compared."""
    p, rows = inputs.X.shape[1], inputs.Z.values
    most = int(np.clip(2 * _ENTRIES / (p * (p - 1)), _FEWEST_ROWS, _MOST_ROWS))
    return rows.iloc[np.sort(spread(rows)[:most])].reset_index(drop=True)


def read_methods(methods: Any, seed: int) -> dict[str, GraphEstimator]:
    """Estimators by name, one graph for all first."""
    static: dict[str, GraphEstimator] = {STATIC: static_model()}
    if isinstance(methods, Mapping):
        given = {_own_name(name): given_estimator(model) for name, model in methods.items()}
        return static | given
    if isinstance(methods, str) and methods in ("all", "quick"):
        single = [name for name, entry in ESTIMATORS.items() if entry.is_there and not entry.composite]
        methods = [name for name in single if methods == "all" or not ESTIMATORS[name].neural]
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not len(methods):
        raise ParameterError.of(
            "methods", f"must be 'all', 'quick', a list of names, or estimators by name, got {methods!r}."
        )
    names = [_class_name(name) for name in methods]
    return static | {ESTIMATORS[name].command: _make(name, seed) for name in names}


def _own_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == STATIC:
        raise ParameterError(
            f"Names of methods must be letters, digits, and - . + or spaces, and not {STATIC!r}, which is "
            f"one graph for all and always there; got {name!r}."
        ).about(argument="methods")
    return name


def _class_name(name: Any) -> str:
    known = {entry.command: kind for kind, entry in ESTIMATORS.items()} | {kind: kind for kind in ESTIMATORS}
    if not isinstance(name, str) or name not in known:
        hint = suggestion(name, known) if isinstance(name, str) else ""
        commands = [entry.command for entry in ESTIMATORS.values()]
        raise ParameterError(
            f"There is no method {name!r}.{hint} Methods are {listing(commands, most=20)}."
        ).about(argument="methods")
    return known[name]


def _make(name: str, seed: int) -> GraphEstimator:
    """As :class:`AutoCGM` fits it or would, else as it is by default."""
    entry = ESTIMATORS[name]
    if entry.one_graph is not None:
        return static_models()[entry.one_graph]
    model: GraphEstimator = find_estimator(name)(**(entry.candidate or {}))
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def is_neural(model: GraphEstimator) -> bool:
    entry = ESTIMATORS.get(type(model).__name__)
    return entry is not None and entry.neural
