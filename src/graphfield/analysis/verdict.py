"""One answer from what the test, the fitted model and a choice between models say, made in one place.

Nothing else puts into words whether the graph depends on the covariates: two modules that do not know of each
other would contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from graphfield.analysis.model_gain import ModelGain, gain_over_one_graph
from graphfield.analysis.rows import covariate_rows
from graphfield.estimators.auto_choice import AVERAGE
from graphfield.exceptions import count
from graphfield.numbers import is_significant, p_text

if TYPE_CHECKING:
    from graphfield.analysis.evidence import Evidence
    from graphfield.estimators.base import GraphEstimator

# What a permutation test says: correlations follow the covariates, or not; nothing where none was possible or
# none was made.
YES, NO, NOT_KNOWN, NOT_RUN = "yes", "no", "not known", "not run"
# What held-out rows say of the fitted model; ONE_GRAPH does not move, so there is nothing to say.
BETTER, UNCLEAR, WORSE, ONE_GRAPH, NOT_COMPARED = (
    "better",
    "no clear difference",
    "worse",
    "one graph",
    "not compared",
)
HEADLINES = {
    "moves": "The graph moves with the covariates",
    "hint": "A hint that the graph moves with the covariates",
    "not established": "The covariates matter, but this model does not show how",
    "one graph": "One graph for all",
    "not known": "Not known whether the graph moves with the covariates",
}
_STILL = 1e-4  # a partial correlation that changes by less does not change
_ROWS, _VALUES = 30, 7  # rows, and values of a covariate, at which a model is asked whether it moves
_NAMED = 4  # covariates that a sentence names one by one


@dataclass(frozen=True)
class Fitted:
    """What there is to know of a fitted model: whether its graph moves at all, and with what.

    ``kept`` names the kinds of models that :class:`~graphfield.AutoCGM` kept, of ``compared`` ones.
    """

    covariates: tuple[str, ...]
    moves: bool
    unused: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    compared: int = 0

    @classmethod
    def of(cls, model: GraphEstimator, Z: Any) -> Fitted:
        """Asked at some rows of Z: a covariate that may have any of its values in all of them is not used."""
        names = tuple(column.name for column in model.encoder_.columns)
        everything, rows = covariate_rows(model, Z), covariate_rows(model, Z, _ROWS)
        before = model.partial_correlations(rows)

        def moved(after: NDArray) -> bool:
            return bool(np.abs(after - before).max(initial=0.0) > _STILL)

        def used(name: str) -> bool:
            distinct = everything[name].drop_duplicates()
            by = None if is_numeric_dtype(distinct) else _as_text  # levels may be of several types
            values = distinct.sort_values(key=by).to_list()
            some = np.unique(np.linspace(0, len(values) - 1, _VALUES).round().astype(int))
            others = (rows.assign(**{name: [values[i]] * len(rows)}) for i in some)
            return any(moved(model.partial_correlations(other)) for other in others)

        unused = tuple(name for name in names if not used(name))
        moves = len(unused) < len(names) or moved(before[:1])
        kept, compared = (), 0
        if hasattr(model, "chosen_"):
            kept = tuple(model.chosen_)
            compared = int((model.held_out_["model"] != AVERAGE).sum())
        return cls(names, moves, unused, kept, compared)


def _as_text(values: pd.Series) -> pd.Series:
    return values.astype(str)


@dataclass(frozen=True)
class Tested:
    """What is read of an :class:`~graphfield.Evidence`, or of an ``evidence.json``."""

    answer: str = NOT_RUN
    p_value: float | None = None
    n_rows: int = 0
    adjusted: Mapping[str, float | None] | None = None  # p-values of covariates, given the others

    @classmethod
    def of(cls, evidence: Evidence | Mapping[str, Any] | None) -> Tested:
        if evidence is None:
            return cls()
        if isinstance(evidence, Mapping):
            lines = evidence.get("covariates") or []
            p_value, n_rows = evidence.get("p_value"), int(evidence.get("n_rows") or 0)
            adjusted = {str(line.get("name")): line.get("adjusted_p_value") for line in lines}
        else:
            p_value, n_rows = evidence.p_value, evidence.n_rows
            adjusted = {line.name: line.adjusted_p_value for line in evidence.per_covariate}
        if p_value is None:
            return cls(NOT_KNOWN, None, n_rows, adjusted)
        return cls(YES if is_significant(p_value) else NO, p_value, n_rows, adjusted)

    @property
    def matter(self) -> tuple[str, ...]:
        """Covariates that matter given all others."""
        found = self.adjusted or {}
        return tuple(name for name, p in found.items() if p is not None and is_significant(p))

    @property
    def undecided(self) -> tuple[str, ...]:
        """Covariates that were tested, and of which it cannot be told."""
        return tuple(name for name in self.adjusted or {} if name not in self.matter)


@dataclass(frozen=True)
class Verdict:
    """Does the graph move with the covariates, as far as test, model and choice can tell together?

    Attributes
    ----------
    answer : str
        "moves" (held-out rows support the movement of the fitted model, and no test speaks against it),
        "hint" (they do, but the test does not see it), "not established" (the test sees it, but the model
        does not predict better than one graph), "one graph", "not known".
    supported : bool or None
        Whether held-out rows support that the graph of the fitted model moves; None where that was not
        looked at. Where it is False, the graph to show is the average.
    sentence : str
        How the fitted model does against one graph for all; to be said first.
    paragraph : str
        That, and what the test and the choice between models add to it.
    test : {"yes", "no", "not known", "not run"}
    model : {"better", "no clear difference", "worse", "one graph", "not compared"}
    matter, undecided : tuple of str
        Covariates that matter given the others, by the test, and those of which it cannot be told.
    unused : tuple of str
        Covariates that do not move the graph of the fitted model.
    gain : ModelGain or None
    """

    answer: str
    supported: bool | None
    sentence: str
    paragraph: str
    test: str
    model: str
    matter: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    gain: ModelGain | None = None

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        return HEADLINES[self.answer]

    def __str__(self) -> str:
        return self.paragraph

    def to_json(self) -> dict[str, Any]:
        """For the data of a page, or a summary."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values |= {"gain": None if self.gain is None else self.gain.to_json(), "headline": self.headline}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def judge(
    model: GraphEstimator,
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    time: Any = None,
    evidence: Evidence | None = None,
    n_folds: int | None = None,
) -> Verdict:
    """Does the graph of a fitted model move with the covariates? One answer, with what it rests on.

    The model is compared with one graph for all on rows that took no part in its fit or in any choice
    (:func:`graphfield.gain_over_one_graph`, which fits copies of it), and that is put together with what a
    permutation test says.

    Parameters
    ----------
    model : fitted estimator
    X, Z : tables
        The rows it was fitted to.
    groups, time, n_folds
        As in :func:`graphfield.gain_over_one_graph`.
    evidence : Evidence, optional
        From :func:`graphfield.dependence_test`.

    Examples
    --------
    >>> import graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> Z, X = rng.uniform(-1, 1, (300, 1)), rng.normal(size=(300, 4))
    >>> X[:, 1] += 2 * Z[:, 0] * X[:, 0]  # an edge that changes its sign
    >>> found = gf.judge(gf.RegGMM().fit(X, Z), X, Z)
    >>> found.answer, found.supported
    ('moves', True)
    """
    gain = gain_over_one_graph(model, X, Z, groups=groups, time=time, n_folds=n_folds)
    return reach_verdict(Fitted.of(model, Z), gain, evidence)


def reach_verdict(
    fitted: Fitted | None = None,
    gain: ModelGain | None = None,
    evidence: Evidence | Mapping[str, Any] | None = None,
    *,
    why_not: str = "",
) -> Verdict:
    """The one answer, from whatever is known.

    Parameters
    ----------
    fitted : Fitted, optional
        ``Fitted.of(model, Z)``; None where there is only a test.
    gain : ModelGain, optional
        From :func:`graphfield.gain_over_one_graph`.
    evidence : Evidence or mapping, optional
        From :func:`graphfield.dependence_test`, or the contents of ``evidence.json``.
    why_not : str
        Why there is no ``gain``.
    """
    test = Tested.of(evidence)
    model = _model_state(fitted, gain)
    covariates = fitted.covariates if fitted else tuple(test.adjusted or {})
    first = _first_sentence(model, fitted, gain, covariates, why_not)
    parts = [
        first,
        _test_sentence(test, model, covariates),
        _which_sentence(test, covariates),
        _use_sentence(model, fitted),
        _advice(model),
        _explained_sentence(model, gain),
    ]
    return Verdict(
        answer=_answer(test.answer, model),
        supported=None if model == NOT_COMPARED else model == BETTER,
        sentence=first,
        paragraph=" ".join(part for part in parts if part),
        test=test.answer,
        model=model,
        matter=test.matter,
        undecided=test.undecided,
        unused=fitted.unused if fitted else (),
        gain=gain,
    )


def _model_state(fitted: Fitted | None, gain: ModelGain | None) -> str:
    if fitted is not None and not fitted.moves:
        return ONE_GRAPH
    return NOT_COMPARED if gain is None else gain.answer


def _answer(test: str, model: str) -> str:
    if model == BETTER:
        return "hint" if test == NO else "moves"
    if test == YES:
        return "not established"
    return "not known" if model == NOT_COMPARED and test != NO else "one graph"


def _first_sentence(
    model: str, fitted: Fitted | None, gain: ModelGain | None, covariates: tuple[str, ...], why_not: str
) -> str:
    if model == ONE_GRAPH:
        kept = "" if not fitted or not fitted.kept else f", kept out of {fitted.compared} kinds of models"
        return f"The fitted model is one graph for all{kept}: it does not move with {_named(covariates)}."
    if gain is None:
        if fitted is None:
            return ""
        why = f" ({why_not.rstrip('.')})" if why_not else ""
        return f"Whether the fitted model predicts better than one graph for all was not looked at{why}."
    start = {
        BETTER: f"Held-out rows support that the graph moves with {_named(covariates)}",
        UNCLEAR: "One graph for all predicts as well as the fitted model, as far as can be told",
        WORSE: "One graph for all predicts better than the fitted model",
    }[model]
    return f"{start}: on {_where(gain)} {_compared(gain)}."


def _where(gain: ModelGain) -> str:
    units = "" if gain.unit == "row" else f", {count(gain.n_units, gain.unit)}"
    folds = f", in {gain.n_folds} folds" if gain.n_folds > 1 else ""
    unseen = f"{gain.n_rows:,} {gain.rows} that took no part in the fit"
    return unseen + (f" ({(units + folds)[2:]})" if units or folds else "")


def _compared(gain: ModelGain) -> str:
    own = f"the squared error of the fitted model is {gain.over_average.side} that of {gain.average}"
    if gain.over_static is None:
        return own
    return f"{own} and {gain.over_static.side} that of the best single graph ({gain.static})"


def _test_sentence(test: Tested, model: str, covariates: tuple[str, ...]) -> str:
    if test.answer == NOT_KNOWN:
        return "No permutation test was possible: there are too few rows or groups."
    if test.p_value is None:
        return ""
    p = p_text(test.p_value)
    if test.answer == NO:
        return {
            BETTER: f"A permutation test does not see it ({p}): take it for a hint, to be confirmed on more "
            "rows.",
            NOT_COMPARED: f"A permutation test finds no sign that the graph depends on {_named(covariates)} "
            f"({p}).",
        }.get(model, f"A permutation test sees no movement either ({p}).")
    if model == BETTER:
        return f"A permutation test agrees ({p})."
    alone = len(covariates) == 1
    matters = f"{covariates[0]} matters" if alone else "together the covariates matter"
    matters, them = f"{matters} (permutation test, {p})", "it" if alone else "them"
    if model == NOT_COMPARED:
        return f"{matters if alone else matters.capitalize()}."
    how = {ONE_GRAPH: "in a way that this model does not draw"}.get(
        model, "but how is more than this model can tell from these rows"
    )
    return f"Yet {matters}: the graph probably depends on {them}, {how}."


def _which_sentence(test: Tested, covariates: tuple[str, ...]) -> str:
    """Which of several covariates it is."""
    if len(covariates) < 2 or not test.adjusted or test.answer not in (YES, NO):
        return ""
    matter, undecided = (_listed(names) for names in (test.matter, test.undecided))
    given = "Given the others" + (" and allowing for their number," if len(test.adjusted) > 1 else ",")
    if test.answer == NO:
        if not test.matter:
            return ""
        return f"{given} {matter} would matter, which the test of all together does not confirm."
    rows = f"from {test.n_rows:,} rows" if test.n_rows else "from these rows"
    if not test.matter and set(test.undecided) >= set(covariates):
        return f"Which of them cannot be told {rows}."
    if not test.matter:
        return f"Whether {undecided} {_verb(test.undecided)}, given the others, cannot be told {rows}."
    rest = f"; whether {undecided} {_do(test.undecided)} cannot be told {rows}" if test.undecided else ""
    return f"{given} {matter} {_verb(test.matter)}{rest}."


def _use_sentence(model: str, fitted: Fitted | None) -> str:
    if fitted is None or model == ONE_GRAPH:
        return ""
    kept = f"Of {fitted.compared} kinds of models, {_listed(fitted.kept)} was kept." if fitted.kept else ""
    unused = f"The fitted model does not use {_listed(fitted.unused)}." if fitted.unused else ""
    return f"{kept} {unused}".strip()


def _explained_sentence(model: str, gain: ModelGain | None) -> str:
    if gain is None or gain.explained is None:
        return ""
    where = f"On {_where(gain)}" if model == ONE_GRAPH else f"In the held-out {gain.rows}"
    return f"{where}, the other nodes explain {gain.explained} of a node's variance on average."


def _advice(model: str) -> str:
    """What to make of pictures."""
    if model in (UNCLEAR, WORSE):
        return "So the graph to look at is the average; how it moves in this model is not supported."
    return ""


def _named(covariates: tuple[str, ...]) -> str:
    if not covariates or len(covariates) > _NAMED:
        return f"the {len(covariates)} covariates" if covariates else "the covariates"
    return _listed(covariates)


def _listed(names: tuple[str, ...]) -> str:
    """ "a", "a and b", "a, b, c, d and 3 more"."""
    shown = [*names[:_NAMED], f"{len(names) - _NAMED} more"] if len(names) > _NAMED else list(names)
    return "".join(shown) if len(shown) < 2 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _verb(names: tuple[str, ...]) -> str:
    return "matters" if len(names) == 1 else "matter"


def _do(names: tuple[str, ...]) -> str:
    return "does" if len(names) == 1 else "do"
