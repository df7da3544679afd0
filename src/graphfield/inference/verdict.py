"""One answer from what the tests, the fitted model and a choice between models say, made in one place.

Nothing else puts into words whether the graph depends on the covariates: two modules that do not know of each
other would contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from graphfield.check.findings import DRIFTING, GAPS_FOLLOW, DataCheck
from graphfield.check.table import check_table
from graphfield.data.drifting_levels import words_of_drift
from graphfield.exceptions import agreed
from graphfield.inference.edge_inference import EdgeInference
from graphfield.inference.edge_record import EdgeRecord
from graphfield.inference.model_gain import ROW_BLOCK, ModelGain, gain_over_one_graph
from graphfield.inference.row_order import IN_BLOCKS
from graphfield.inference.verdict_facts import (
    BETTER,
    NO,
    NOT_COMPARED,
    ONE_GRAPH,
    YES,
    Fitted,
    Tested,
    TestResult,
)
from graphfield.inference.verdict_words import (
    advice,
    edges_sentence,
    explained_sentence,
    findings_of,
    first_sentence,
    gaps_sentence,
    leak_sentence,
    tested_sentence,
    use_sentence,
    which_sentence,
)

if TYPE_CHECKING:
    from graphfield.estimators.base import GraphEstimator

HEADLINES = {
    "moves": "The graph moves with the covariates",
    "hint": "A hint that the graph moves with the covariates",
    "edges": "{edges} with the covariates",
    "not established": "The covariates matter, but this model does not show how",
    "weak": "Weak evidence that the covariates matter, but this model does not show how",
    "one graph": "One graph for all",
    "not known": "Not known whether the graph moves with the covariates",
}


@dataclass(frozen=True)
class Verdict:
    """Does the graph move with the covariates, as far as tests, model and choice can tell together?

    Attributes
    ----------
    answer : str
        "moves" (held-out rows support the movement of the fitted model, and no test speaks against it),
        "hint" (they do, but the test does not see it; or single edges seem to move, and neither the test
        nor the model sees it; or filled-in values, or levels that drift, may look like it), "edges" (tests of
        every pair find edges that move, but the model does not predict better than one graph), "not
        established" (the test sees it, but neither the model nor tests of pairs show how), "one graph", "not
        known".
    supported : bool or None
        Whether held-out rows support that the graph of such a model moves, by fits of the same kind without
        these rows; None where that was not looked at. Where it is False, the graph to show is the average
        (``shows_average``).
    sentence : str
        How the fitted model does against one graph for all.
    doubt : str
        What makes all of it doubtful, if anything does: rows that are like those before them though nobody
        said why, gaps that go with a covariate, levels that drift.
    reasons : str
        The sentence, and what the tests and the choice between models add to it.
    paragraph : str
        Both.
    test : {"yes", "no", "not known", "not run"}
    model : {"better", "no clear difference", "worse", "one graph", "not compared"}
    matter, undecided : tuple of str
        Covariates that matter given the others, by the test, and those of which it cannot be told.
    unused : tuple of str
        Covariates that do not move the graph of the fitted model.
    moving_pairs : tuple of str
        Pairs whose edge moves by tests of every pair, the clearest first.
    gain : ModelGain or None
    weak : bool
        Whether the test is weak evidence only (see :class:`graphfield.Evidence`).
    """

    answer: str
    supported: bool | None
    sentence: str
    reasons: str
    test: str
    model: str
    matter: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    moving_pairs: tuple[str, ...] = ()
    gain: ModelGain | None = None
    weak: bool = False
    doubt: str = ""

    @property
    def paragraph(self) -> str:
        return " ".join(filter(None, [self.doubt, self.reasons]))

    @property
    def shows_average(self) -> bool:
        """Whether the graph to show is the average: the model moves, and held-out rows do not support it."""
        return self.supported is False and self.model != ONE_GRAPH

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        n_moving = len(self.moving_pairs)
        answer = "weak" if self.weak and self.answer == "not established" else self.answer
        return HEADLINES[answer].format(edges=agreed(n_moving, "One edge moves", f"{n_moving:,} edges move"))

    def __str__(self) -> str:
        return self.paragraph

    def to_json(self) -> dict[str, Any]:
        """For the data of a page, or a summary."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values |= {"gain": None if self.gain is None else self.gain.to_json()}
        values |= {"headline": self.headline, "shows_average": self.shows_average}
        values |= {"paragraph": self.paragraph}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def judge(
    model: GraphEstimator,
    X: Any,
    Z: Any,
    *,
    groups: Any = None,
    time: Any = None,
    evidence: TestResult | None = None,
    edges: EdgeInference | None = None,
    n_folds: int | None = None,
) -> Verdict:
    """Does the graph of a fitted model move with the covariates? One answer, with what it rests on.

    The model is compared with one graph for all on rows that took no part in its fit or in any choice
    (:func:`graphfield.gain_over_one_graph`, which fits copies of it), and that is put together with what a
    permutation test says. So it judges the recipe, this kind of model with these settings, not this one fit.

    Parameters
    ----------
    model : fitted estimator
    X, Z : tables
        The rows it was fitted to.
    groups, time, n_folds
        As in :func:`graphfield.gain_over_one_graph`.
    evidence : Evidence, optional
        From :func:`graphfield.dependence_test`.
    edges : EdgeInference, optional
        From :func:`graphfield.infer_edges`.

    Examples
    --------
    >>> import numpy as np, graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> Z, X = rng.uniform(-1, 1, (300, 1)), rng.normal(size=(300, 4))
    >>> X[:, 1] += 2 * Z[:, 0] * X[:, 0]  # an edge that changes its sign
    >>> found = gf.judge(gf.RegGMM().fit(X, Z), X, Z)
    >>> found.answer, found.supported
    ('moves', True)
    """
    check_is_fitted(model)
    model.field_.schema.match_nodes(X)  # other nodes would be those of another model
    gain = gain_over_one_graph(model, X, Z, groups=groups, time=time, n_folds=n_folds)
    tests = None if edges is None else EdgeRecord.of(edges)
    policy = model.missing_policy()
    check = check_table(X, Z, groups, missing=policy)
    return reach_verdict(Fitted.of(model, Z), gain, evidence, tests, check=check)


def reach_verdict(
    fitted: Fitted | None = None,
    gain: ModelGain | None = None,
    evidence: TestResult | Mapping[str, Any] | None = None,
    edges: EdgeRecord | None = None,
    *,
    why_not: str = "",
    check: DataCheck | Mapping[str, Any] | None = None,
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
    edges : EdgeRecord, optional
        What tests of every pair found.
    why_not : str
        Why there is no ``gain``.
    check : DataCheck or mapping, optional
        From :func:`graphfield.check_data`, or the contents of ``data_check.json``.
    """
    test, found = Tested.of(evidence), None if edges is None or edges.why_not else edges
    caveat = (found.caveat if found else "") or test.caveat
    if not caveat and gain is not None and gain.unit == ROW_BLOCK:
        caveat = IN_BLOCKS
    # What holds only if rows are independent decides nothing.
    tests = None if found and found.caveat else found
    model = _model_state(fitted, gain)
    covariates = fitted.covariates if fitted else test.together
    moving = _seen_to_matter(test, tests, covariates) if model == BETTER else covariates
    first = first_sentence(model, fitted, gain, moving, why_not)
    gaps = findings_of(check, GAPS_FOLLOW)
    answer = _answer(test.answer, model, tests, doubtful=tests is not found)
    drifting = _may_drift(findings_of(check, DRIFTING), test, tests)
    if answer not in ("moves", "edges", "hint") and not test.drifting:
        drifting = ()  # nothing is said to move
    doubts = [
        caveat,
        words_of_drift(drifting, test.differences),
        gaps_sentence(gaps) or test.filled_in,
    ]
    reasons = [
        first,
        leak_sentence(check),
        edges_sentence(found, test, model),
        tested_sentence(test, model, covariates, tests),
        which_sentence(test, covariates, () if tests is None else tests.moved_by),
        use_sentence(model, fitted),
        advice(model, tests),
        explained_sentence(model, gain),
    ]
    filled_in = _may_be_filled_in([str(one["columns"][0]) for one in gaps], test, tests)
    if answer in ("moves", "edges") and (filled_in or drifting):
        answer = "hint"
    return Verdict(
        answer=answer,
        supported=None if model == NOT_COMPARED else model == BETTER,
        sentence=first,
        doubt=" ".join(filter(None, doubts)),
        reasons=" ".join(filter(None, reasons)),
        test=test.answer,
        model=model,
        matter=test.matter,
        undecided=test.undecided,
        unused=fitted.unused if fitted else (),
        moving_pairs=() if tests is None else tuple(tests.moving_pairs),
        gain=gain,
        weak=test.weak,
    )


def _seen_to_matter(test: Tested, tests: EdgeRecord | None, covariates: tuple[str, ...]) -> tuple[str, ...]:
    """Of several covariates those that passed a test, which that of all together has to confirm."""
    if len(covariates) < 2:
        return covariates
    confirmed = test.matter if test.answer == YES else ()
    passed = {*confirmed, *(() if tests is None else tests.moved_by)}
    return tuple(name for name in covariates if name in passed)


def _may_be_filled_in(covariates: Sequence[str], test: Tested, tests: EdgeRecord | None) -> bool:
    """Whether nothing but covariates that say where values were filled in is seen to matter."""
    passed = {*test.matter, *(() if tests is None else tests.moved_by)}
    return bool(covariates) and passed <= set(covariates)


def _may_drift(
    findings: Sequence[Mapping[str, Any]], test: Tested, tests: EdgeRecord | None
) -> tuple[str, ...]:
    """Covariates along which levels drift, unless something else is seen to matter.

    Or these themselves: where differences of neighbouring rows were asked, tests have the larger p-values.
    """
    unsure = (*test.drifting, *(() if tests is None else tests.drifting))
    names = dict.fromkeys([*unsure, *(str(name) for one in findings for name in one["columns"])])
    passed = {*test.matter, *(() if tests is None else tests.moved_by)} - set(unsure)
    return () if passed or test.answer == YES else tuple(names)


def _model_state(fitted: Fitted | None, gain: ModelGain | None) -> str:
    if fitted is not None and not fitted.moves:
        return ONE_GRAPH
    return NOT_COMPARED if gain is None else gain.answer


def _answer(test: str, model: str, tests: EdgeRecord | None, *, doubtful: bool) -> str:
    moving = tests is not None and tests.are_moving.any()
    if model == BETTER:
        return "hint" if test == NO and not (tests and tests.surely_moves) else "moves"
    if tests and moving:
        return "edges" if tests.surely_moves or test == YES else "hint"
    if test == YES:
        return "not established"
    if tests and tests.moved_by:  # with one covariate given the others
        return "hint"
    unknown = test != NO and (model == NOT_COMPARED or (doubtful and model != ONE_GRAPH))
    return "not known" if unknown else "one graph"
