"""The sentences of a verdict; each knows all facts that another one speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphfield.check.findings import LEAK, DataCheck
from graphfield.exceptions import agreed, count, first_few
from graphfield.inference.common_nodes import taken_as
from graphfield.inference.edge_record import FDR, EdgeRecord
from graphfield.inference.model_gain import FITTED, ROW_BLOCK, ModelGain
from graphfield.inference.row_order import AS_IF
from graphfield.inference.verdict_facts import (
    BETTER,
    NO,
    NOT_COMPARED,
    NOT_KNOWN,
    ONE_GRAPH,
    UNCLEAR,
    WEAK,
    WORSE,
    YES,
    Fitted,
    Tested,
)
from graphfield.numbers import Gain, p_text

_NAMED = 4  # covariates that a sentence names one by one


def first_sentence(
    model: str, fitted: Fitted | None, gain: ModelGain | None, covariates: tuple[str, ...], why_not: str
) -> str:
    if model == ONE_GRAPH:
        kept = "" if not fitted or not fitted.kept else f", chosen among {fitted.compared} kinds of models"
        who = FITTED if gain is None else gain.fitted
        text = f"{who} is one graph for all{kept}: it does not move with {_named(covariates)}."
        return text[0].upper() + text[1:]
    if gain is None:
        if fitted is None:
            return ""
        why = f" ({why_not.rstrip('.')})" if why_not else ""
        return f"Whether the fitted model predicts better than one graph for all was not looked at{why}."
    start = {
        BETTER: f"Held-out rows support that the graph moves with {_named(covariates)}",
        UNCLEAR: "One graph for all predicts about as well as the fitted model",
        WORSE: "One graph for all predicts better than the fitted model",
    }[model]
    where = _where(gain, "of them" if model == BETTER and gain.rows == "rows" else "")
    return f"{start}: on {where} {_compared(gain)}."


def findings_of(check: DataCheck | Mapping[str, Any] | None, code: str) -> list[Mapping[str, Any]]:
    found = (check.to_json() if isinstance(check, DataCheck) else check or {}).get("warnings") or []
    return [one for one in found if one.get("code") == code]


def leak_sentence(check: DataCheck | Mapping[str, Any] | None) -> str:
    """What the data check finds of covariates that are nodes, or determine one."""
    leaks = [str(one.get("message", "")).rstrip(".") for one in findings_of(check, LEAK)]
    if not leaks:
        return ""
    return (
        f"{first_few(leaks, 1, '; ', 'such pair')}: edges of that node, how these move, and its part in "
        "what nodes explain of each other mean little beside it."
    )


def gaps_sentence(findings: Sequence[Mapping[str, Any]]) -> str:
    """What the data check finds of gaps that go with covariates, where these were filled in."""
    others = tuple(str(one["columns"][0]) for one in findings[1:])
    also = f" The same holds for {_listed(others)}." if others else ""
    return f"{findings[0].get('message', '')}{also}" if findings else ""


def _where(gain: ModelGain, rows: str = "") -> str:
    units = "" if gain.unit == "row" else f", {_units(gain)}"
    folds = f", in {gain.n_folds} folds" if gain.n_folds > 1 else ""
    unseen = f"{gain.n_rows:,} {rows or f'held-out {gain.rows}'}"
    return unseen + (f" ({(units + folds)[2:]})" if units or folds else "")


def _units(gain: ModelGain) -> str:
    if gain.unit == ROW_BLOCK:  # 50 of them, not of 50 rows
        return f"{count(gain.n_units, 'block')} of rows"
    return count(gain.n_units, gain.unit)


def _compared(gain: ModelGain) -> str:
    own = f"the {gain.error} of {gain.fitted} is {gain.over_average.side} that of {gain.average}"
    return own if gain.over_static is None else f"{own} and {_beside_single(gain, gain.over_static)}"


def _beside_single(gain: ModelGain, over_static: Gain) -> str:
    """Where the error is, in units of that of the own average graph, of which a gain may be more than all."""
    single = f"that of the best single graph ({gain.static})"
    if over_static.value < 1:
        return f"{over_static.side} {single}"
    left = 1 - gain.over_average.value
    return f"{100 * left / (left + over_static.value):.0f} % of {single}"


def edges_sentence(tests: EdgeRecord | None, test: Tested, model: str) -> str:
    """What tests of every pair say of movement: which edges move, and what they do."""
    if tests is None:
        return ""
    n_moving = int(tests.are_moving.sum())
    how = f"tests of {count(tests.n_tested, 'pair')} one by one, false-discovery level {FDR:.2f}"
    if not n_moving and tests.movers:
        return (
            f"With all covariates together no edge is seen to move ({how}); with one given the others: "
            f"{'; '.join(tests.movers)}."
        )
    if not n_moving:
        return f"No edge by itself is seen to move ({how})." if test.answer == YES or model == BETTER else ""
    yet = "Yet " if model in (UNCLEAR, WORSE, ONE_GRAPH) else ""
    yet += f"{AS_IF}, " if tests.caveat else ""
    edges = agreed(n_moving, "one edge moves", f"{n_moving:,} edges move")
    text = f"{yet}{edges} with the covariates ({how})"
    if tests.movers:
        few = n_moving <= len(tests.movers)
        text += f"{':' if few else ', most clearly'} {'; '.join(tests.movers)}"
    more = tests.moving_with_one_alone
    if more:
        text += f". Tests of one covariate given the others see movement of {first_few(more, 3)} as well"
    return f"{text[0].upper()}{text[1:]}."


def tested_sentence(test: Tested, model: str, covariates: tuple[str, ...], tests: EdgeRecord | None) -> str:
    if test.answer == NOT_KNOWN:
        return test.why_not or "No permutation test was possible."
    if test.p_value is None:
        return ""
    p = p_text(test.p_value)
    if tests is not None and tests.are_moving.any():
        return _beside_edges(test, p, sure=tests.surely_moves)
    if test.answer == NO:
        return {
            BETTER: f"A permutation test does not see it ({p}): take it for a hint, to be confirmed on more "
            "rows.",
            NOT_COMPARED: f"A permutation test finds no sign that the graph depends on {_named(covariates)} "
            f"({p}).",
        }.get(model, f"A permutation test sees no movement either ({p}).")
    if model == BETTER:
        return f"A permutation test agrees ({p}){_but_weak(test)}."
    alone = len(covariates) == 1
    matters = f"{covariates[0]} matters" if alone else "together the covariates matter"
    matters = f"{f'there is {WEAK} that ' if test.weak else ''}{matters} (permutation test, {p})"
    if model == NOT_COMPARED:
        return f"{matters if alone and not test.weak else matters[0].upper() + matters[1:]}."
    how = {ONE_GRAPH: "in a way that this model does not draw"}.get(model, "but this model cannot tell how")
    return f"Yet {matters}, {how}."


def _but_weak(test: Tested) -> str:
    """Where regressions beside a test that agrees do not clearly gain: its details say so."""
    return f", as {WEAK}" if test.weak else ""


def _beside_edges(test: Tested, p: str, *, sure: bool) -> str:
    """What a test of all pairs together adds to edges that move."""
    if test.answer == YES:
        return f"A permutation test of all together agrees ({p}){_but_weak(test)}."
    hint = "" if sure else ": take it for a hint, to be confirmed on more rows"
    return f"A permutation test of all together, which may miss single edges, does not see it ({p}){hint}."


def which_sentence(test: Tested, covariates: tuple[str, ...], moved_by: Sequence[str] = ()) -> str:
    """Which of several covariates it is; single edges are seen to be ``moved_by`` some."""
    single = tuple(name for name in test.undecided if name in moved_by)
    test = test.without(moved_by)
    if len(covariates) < 2 or not test.adjusted or test.answer not in (YES, NO):
        return ""
    matter, undecided = (_listed(names) for names in (test.matter, test.undecided))
    given = "Given the others,"
    if test.answer == NO:
        if not test.matter:
            return ""
        return f"{given} {matter} would matter, which the test of all together does not confirm."
    rows = f"from {test.n_rows:,} rows" if test.n_rows else "from these rows"
    which = "Which of the covariates it is cannot be told"
    whether = f"Whether {undecided} {_verb(test.undecided)}, given the others, cannot be told"
    if set(test.untested) >= set(test.adjusted):
        each = "it" if len(test.untested) == 1 else "each"
        begin = which if set(test.untested) >= set(covariates) else whether
        return f"{begin}: {each} follows from the others, or varies in too few groups."
    if not test.matter and set(test.undecided) >= set(covariates):
        return f"{which} {rows}."
    if not test.matter:
        return f"{whether} {rows}."
    weak = tuple(name for name in test.matter if name in test.weak_ones)
    clear = tuple(name for name in test.matter if name not in weak)
    found = [f"{_listed(clear)} {_verb(clear)}"] if clear else []
    if weak:
        p = p_text(max(test.adjusted[name] or 0.0 for name in weak))
        largest = "largest " if len(weak) > 1 else ""
        no_gain = "held-out rows do not clearly gain"
        found.append(f"there is {WEAK} that {_listed(weak)} {_verb(weak)} ({largest}{p}; {no_gain})")
    rest = f"; single edges move with {_listed(single)}" if single else ""
    rest += f"; whether {undecided} {_do(test.undecided)} cannot be told" if test.undecided else ""
    return f"{given} {', and '.join(found)}{rest}."


def use_sentence(model: str, fitted: Fitted | None) -> str:
    if fitted is None or model == ONE_GRAPH:
        return ""
    kept = f"Of {fitted.compared} kinds of models, {_listed(fitted.kept)} was kept." if fitted.kept else ""
    unused = f"The fitted model does not use {_listed(fitted.unused)}." if fitted.unused else ""
    return f"{kept} {unused}".strip()


def explained_sentence(model: str, gain: ModelGain | None) -> str:
    if gain is None or gain.explained is None:
        return ""
    known = ["the covariates"] if gain.moving_means else []
    known += ["the levels of groups"] if gain.within_groups else []
    of_node = "variance" if gain.error == "squared error" else gain.error
    what = f"the {of_node} of a node{taken_as(gain.nodes)}"
    where = f"On {_where(gain)}" if model == ONE_GRAPH else f"On held-out {gain.rows}"
    where += f", beyond {' and '.join(known)}" if known else ""
    share, who = gain.explained, "the other nodes explain"
    if model in (UNCLEAR, WORSE) and gain.by_average is not None:  # the graph to look at
        share, who = gain.by_average, "the average graph explains"
    beside = ""
    if model == ONE_GRAPH and gain.over_static is not None:
        beside = f"; the {gain.error} of {gain.fitted} is {_beside_single(gain, gain.over_static)}"
    text = f"{where}, {who} {share} of {what}{beside}."
    if gain.follows_means:
        return text
    return (
        f"{text} Means of nodes do not follow the covariates in this model: nodes that only move together "
        "with these have an edge, too."
    )


def advice(model: str, tests: EdgeRecord | None) -> str:
    """What to make of pictures."""
    if model not in (UNCLEAR, WORSE):
        return ""
    if tests is not None and tests.are_moving.any():
        return (
            "The graph to look at is the average, beside the curves of the edges that move: what else moves "
            "in this model is not supported."
        )
    return "The graph to look at is the average: how it moves in this model is not supported."


def _named(covariates: tuple[str, ...]) -> str:
    if not covariates or len(covariates) > _NAMED:
        return f"the {len(covariates)} covariates" if covariates else "the covariates"
    return _listed(covariates)


def _listed(names: tuple[str, ...]) -> str:
    """ "a", "a and b", "a, b, c, d and 3 more"."""
    if len(names) > _NAMED + 1:
        return first_few(names, _NAMED)
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(names: tuple[str, ...]) -> str:
    return "matters" if len(names) == 1 else "matter"


def _do(names: tuple[str, ...]) -> str:
    return "does" if len(names) == 1 else "do"
