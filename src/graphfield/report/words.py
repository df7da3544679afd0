"""What the page says in words and small tables, as plain text: the templates in ``page/`` make it HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield import __version__
from graphfield.analysis.errors import LEVEL
from graphfield.analysis.rows import FieldLike, field_of
from graphfield.check.findings import NOTES
from graphfield.estimators.registry import entry_of
from graphfield.exceptions import agreed, count, first_few
from graphfield.fields import GraphField
from graphfield.fields.base import Draws
from graphfield.inference.curve import WHY_GAPS
from graphfield.inference.edge_record import BandedCurve, EdgeRecord
from graphfield.inference.evidence import Evidence, more_for_covariates
from graphfield.inference.verdict import ONE_GRAPH, Verdict
from graphfield.inference.verdict_facts import NO, YES
from graphfield.numbers import Gain, p_digits, p_text
from graphfield.report.folder import RowsUsed

_TRAINING = (
    "How badly the model fits (the loss per node in standard units: lower is better) after so many steps of "
    "training, on the rows that it learns from and on rows held out, which decide when to stop and what to "
    "keep.{kept} In a good fit both fall, level off and stay close together; where the loss of held-out rows "
    "rises again, noise is learned."
)
_MOST_NAMED = 6  # covariates that a sentence names
_FEW_CROSSING = 2  # pairs that are an edge in some rows and not in others, which are named
_CHOSEN = {
    "penalty_": "Penalty in use",
    "variation_": "Share of variation kept",
    "n_steps_": "Gradient steps",
}


def number(value: float, digits: int = 2) -> str:
    """With its sign, unless it is zero to so many digits."""
    shown = f"{value:+.{digits}f}"
    return shown.replace("-", "\u2212") if float(shown) else shown[1:]


def file_name(path: object) -> str:
    """The last part of a path; where a reader keeps files is not for the page."""
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]


def about(
    model: FieldLike, fit: Mapping[str, Any] | None, verdict: Verdict, used: RowsUsed | None = None
) -> dict[str, str]:
    """What was fitted to what, and how that kind of model works."""
    field = field_of(model)
    names = [column.name for column in field.schema.encoder.columns]
    given = first_few(names, 8)
    what = f"A model of {count(field.n_nodes, 'node')} and {count(len(names), 'covariate')}"
    what += f" ({given})" if names else ""
    if fit and used:
        table = f" of {file_name(fit['table'])}" if fit.get("table") else ""
        what += f", fitted to {count(used.used, 'row')}{table}{used.left_out_words()}"
    entry = entry_of(model)
    how = entry.how
    if verdict.model == ONE_GRAPH and entry.one_graph is None:
        how = "one graph for everybody; such a model may follow the covariates, this one does not"
    return {"fitted": what, "estimator": type(model).__name__, "how": how}


def evidence(found: Mapping[str, Any]) -> dict[str, Any]:
    """The test that the verdict rests on, covariate by covariate, and notes."""
    gains = [_covariate_gain(row) for row in found.get("covariates") or []]
    of = {name: found.get(name, getattr(Evidence, name)) for name in ("error", "regressions")}
    return {"test": _tested(found), "gains": gains, **of, "notes": found.get("notes") or []}


def opening(verdict: Verdict) -> str:
    """What the page shows first: a graph that follows its controls, one that does not, or the only one."""
    return "one" if verdict.model == ONE_GRAPH else "average" if verdict.shows_average else "moving"


def _tested(found: Mapping[str, Any]) -> list[str]:
    """How the test was made."""
    of = []
    if found.get("p_value") is not None:
        of.append(p_text(found["p_value"]))
        if found.get("n_permutations"):
            n = int(found["n_permutations"])
            of[-1] += f" from {count(n, 'rearrangement')}"
            singles = [int(row.get("n_permutations") or 0) for row in found.get("covariates") or []]
            of[-1] += more_for_covariates(n, singles)
    if found.get("scheme"):
        of.append(str(found["scheme"]))
    if found.get("n_rows"):
        of.append(count(int(found["n_rows"]), "row"))
    return of


def _covariate_gain(row: Mapping[str, Any]) -> list[str]:
    """Name, p, adjusted p, and the gain or why there is no p."""
    ps = [row.get(key) for key in ("p_value", "adjusted_p_value")]
    gain = _gain_cell(row.get("gain"), row.get("standard_error"))
    if ps[0] is None:
        gain = str(row.get("sentence", ""))
    return [str(row.get("name", "")), *("" if p is None else p_digits(p) for p in ps), gain]


def _gain_cell(gain: float | None, error: float | None) -> str:
    if gain is None:
        return ""
    if gain == error == 0:
        return "no movement chosen"
    told = f"{100 * gain:+.2g} %" if error is None else Gain(gain, error).signed
    return told.replace("-", "\u2212")


_NODES = {
    "raw": "as they are",
    "normal": "normal scores",
    "skeptic": "normal scores, correlations from ranks",
}


def model_card(model: Any, fit: Mapping[str, Any] | None) -> dict[str, Any]:
    """Estimator, what was chosen, and its parameters, of which a field has none."""
    params = {} if isinstance(model, GraphField) else model.get_params(deep=False)
    facts = [("Estimator", type(model).__name__), ("graphfield", __version__)]
    if "random_state" in params:
        facts.append(("Seed", str(params["random_state"])))
    if getattr(model, "marginals_", None):
        facts.append(("Nodes", _NODES.get(model.marginals_, model.marginals_)))
    levels = getattr(model, "level_check_", None)
    if levels is not None and levels.prefers:
        units = levels.words_of_units(field_of(model).schema.node_names)
        facts.append(("Levels of groups", f"subtracted.{units}"))
    chosen = {
        label: getattr(model, name, None) for name, label in {**entry_of(model).chosen, **_CHOSEN}.items()
    }
    facts += [(label, _cell(value)) for label, value in chosen.items() if value is not None]
    if hasattr(model, "mean_depends_on_covariates_"):
        moves = "moves with the covariates" if model.mean_depends_on_covariates_ else "constant"
        facts.append(("Mean of the nodes", moves))
    if hasattr(model, "weights_"):
        facts.append(_members(model))
    facts.append(("Edges", field_of(model).threshold.reason))
    if fit and fit.get("seconds") is not None:
        facts.append(("Time to fit", f"{fit['seconds']:.1f} s"))
    given = [(name, value) for name, value in params.items() if name != "random_state"]
    return {"facts": facts, "leaves": getattr(model, "rules_", None), "parameters": given}


def _members(model: Any) -> tuple[str, str]:
    """What an average is made of; many members of one kind and weight are counted."""
    kinds = [type(member).__name__ for member in model.members_]
    if len(kinds) == 1:
        return "Kept", kinds[0]
    if len(set(kinds)) == 1 and np.ptp(model.weights_) == 0:
        return "Average of", f"{len(kinds)} {kinds[0]}"
    parts = zip(kinds, model.weights_, strict=True)
    return "Average of", ", ".join(f"{kind} ({weight:.2f})" for kind, weight in parts)


def intervals(draws: Draws) -> str:
    """What is shaded around the curves of edges."""
    return (
        f" Shaded: intervals of {100 * LEVEL:.0f} %, from how far {len(draws.members)} fits to rows drawn "
        "with replacement are apart. They do not know of the bias of a fit, and cover less often than that "
        "where a network is fitted; for bands that do cover, test the pairs."
    )


def crossing(present: NDArray[np.floating], pairs: Sequence[tuple[str, str]]) -> str:
    """Where the graphs of all rows differ by an edge or two, these: shares of edges would say no more.

    >>> crossing(np.array([1.0, 0.4, 0.0]), [("a", "b"), ("a", "c"), ("b", "c")])
    'All rows have the same edges but for a \u2013 c (an edge in 40 % of the rows).'
    """
    some = np.flatnonzero((present > 0) & (present < 1)).tolist()
    if not 0 < len(some) <= _FEW_CROSSING:
        return ""
    named = [
        f"{pairs[i][0]} \u2013 {pairs[i][1]} (an edge in {100 * present[i]:.0f} % of the rows)" for i in some
    ]
    return f"All rows have the same edges but for {' and '.join(named)}."


def unsure_movement(verdict: Verdict, tests: EdgeRecord | None, covariates: Sequence[str]) -> str:
    """What is to be said of pictures of how the model's graph moves, where that is not supported."""
    moved = [name for name in covariates if name not in verdict.unused]
    confirmed = verdict.matter if verdict.test == YES else ()
    known = {*confirmed, *(() if tests is None else tests.moved_by)}
    seen, unseen = ([name for name in moved if (name in known) == flag] for flag in (True, False))
    noise = "what is drawn may be noise of the fit"
    if verdict.shows_average:
        return f"Held-out rows do not support this movement: {noise}."
    if not unseen or (tests is None and verdict.test not in (YES, NO)):
        return ""
    if seen:
        shown = [first_few(names, _MOST_NAMED) for names in (seen, unseen)]
        which = "Tests of single pairs" if verdict.test == NO else "Tests"
        return f"{which} see the graph move with {shown[0]}; along {shown[1]}, {noise}."
    if verdict.test != YES and not (tests and tests.movers):
        return f"Tests do not see that the graph moves: {noise}."
    return f"Tests do not tell with which covariate the graph moves: {noise}." if len(moved) > 1 else ""


def near_the_cut(tests: EdgeRecord | None, present: NDArray[np.floating]) -> str:
    """Of pairs that are an edge in some rows and not in others, how many are not seen to move."""
    some = (present > 0) & (present < 1)
    if tests is None or not tests.are_moving.any() or not (some & ~tests.are_moving).any():
        return ""
    number, moving = int(some.sum()), int((some & tests.are_moving).sum())
    return (
        f"Of {count(number, 'pair')} that {agreed(number, 'is', 'are')} an edge in some rows only, "
        f"{moving or 'none'} {agreed(max(moving, 1), 'is', 'are')} seen to move by tests of each: one near "
        "the cut may cross it by chance."
    )


def bands(model: FieldLike, level: float, curves: Sequence[BandedCurve], *, moves: bool) -> str:
    """On which scale and rows curves are that were tested, what is shaded, and why some have gaps.

    Picture and table are those of the model where it ``moves``.
    """
    schema = field_of(model).schema
    scores = "" if schema.types is not None else ", of normal scores of the nodes"
    raw = f", of nodes {_NODES['raw']}" if getattr(model, "marginals_", schema.marginals) == "raw" else ""
    rows = ""
    if len(schema.encoder.columns) > 1:
        levels = {column.name for column in schema.encoder.categorical}
        over_levels = {curve.covariate in levels for curve in curves}
        kinds = {False: "with that value", True: "with all levels of a category"}
        occur = ", or ".join(words for kind, words in kinds.items() if kind in over_levels)
        rows = f", averaged over rows whose other covariates occur {occur}"
    of = f"that of the model{raw}, which may differ" if moves else "its average by the same tests"
    gaps = "" if all(None not in curve.estimate for curve in curves) else f"; gaps: {WHY_GAPS}"
    return (
        f"Partial correlation of the chosen edges along one covariate by the tests{scores}{rows}{gaps}. The "
        f"picture and the table have {of}. Bands of {100 * level:.0f} %, "
        "of the clearest pairs, cover the true value at each place (dark) or the whole curve (light, where "
        "one edge is chosen). Bold (filled) where the light one leaves out 0; bars at the bottom show where "
        "the rows are."
    )


def training(model: FieldLike) -> dict[str, Any] | None:
    """What was compared on held-out rows, or a note on the curve that is drawn below; None without both."""
    compared = getattr(model, "held_out_", None)
    if isinstance(compared, pd.DataFrame) and len(compared):
        return {
            "head": [str(name).replace("_", " ") for name in compared.columns],
            "body": [[_rounded(value) for value in row] for row in compared.itertuples(index=False)],
            "numbers": [i for i, kind in enumerate(compared.dtypes) if kind.kind in "if"],
        }
    if training_lines(model) is None:
        return None
    return {"note": _TRAINING.format(kept=_describe_step(model))}


def _describe_step(model: Any) -> str:
    """Which step of training the model is, and why, if it is one."""
    if none := _why_no_step(model):
        return f" None of these steps was kept{none}."
    share, step = getattr(model, "variation_", 1.0), getattr(model, "best_step_", None)
    part = f", with {100 * share:.0f} % of how its graph moves" if share < 1 else ""
    return "" if step is None else f" Kept: step {step:,}{part}{_why_this_step(model.training_, step)}."


def _why_no_step(model: Any) -> str:
    """Why the model is none of the steps, where it is none."""
    if getattr(model, "additive_", False):
        return ": edges that follow single covariates predict better"
    if getattr(model, "variation_", 1.0) == 0:
        return ", but one graph for all: held-out rows support no movement"
    if not getattr(model, "moves_", True):
        return ": a density that stays the same predicts as well or better"
    return ""


def _why_this_step(history: pd.DataFrame, step: int) -> str:
    """The rule by which a step was: the least loss, but more patterns only where they are clearly better.

    >>> losses = {"step": [0, 100, 100], "rank": [8, 8, 16], "held_out_loss": [0.8, 0.7, 0.69]}
    >>> _why_this_step(pd.DataFrame(losses), 0)
    ''
    """
    known = history.dropna(subset="held_out_loss")
    loss = known["held_out_loss"]
    if step in known.loc[loss == loss.min(), "step"].tolist():
        return f", where held-out rows have the least loss ({loss.min():.3f})"
    for rank, own in known.groupby("rank") if "rank" in known else ():
        least = own["held_out_loss"].min()
        if step in own.loc[own["held_out_loss"] == least, "step"].tolist():
            return (
                f", where held-out rows have the least loss with {rank:g} patterns ({least:.3f}): more "
                "patterns are not clearly better"
            )
    return ", the last" if step == history["step"].max() else ""


def _rounded(value: Any) -> str:
    """A number to four decimals: what is smaller is no difference between models.

    >>> _rounded(0.0032151), _rounded(-1e-10), _rounded(-0.05), _rounded("linear")
    ('0.0032', '0', '\u22120.05', 'linear')
    """
    if not isinstance(value, float):
        return _cell(value)
    return _cell(round(value, 4) + 0.0).replace("-", "\u2212")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4g}"
    return "" if value is None else str(value)


def training_lines(model: FieldLike) -> dict[str, Any] | None:
    """The loss of training and of held-out rows, where the number of patterns changed, and what was kept."""
    history = getattr(model, "training_", None)
    if not isinstance(history, pd.DataFrame) or "train_loss" not in history or len(history) < 2:
        return None
    lines = []
    for column, name in (("held_out_loss", "held-out rows"), ("train_loss", "training rows")):
        kept = history[["step", column]].dropna()
        if len(kept):
            lines.append({"name": name, "points": kept.astype(float).to_numpy().tolist()})
    marks: list[list[Any]] = []
    if "rank" in history:
        first = history.drop_duplicates("rank")
        marks = [[float(s), f"{r:g} patterns"] for s, r in zip(first["step"], first["rank"], strict=True)]
    step = getattr(model, "best_step_", None)
    if step is not None and not _why_no_step(model):
        marks.append([float(step), "kept", 1])  # in the line below
    return {"lines": lines, "marks": marks} if lines else None


def data_card(
    check: Mapping[str, Any] | None, fit: Mapping[str, Any] | None, used: RowsUsed | None = None
) -> dict[str, Any]:
    """What the fit was given, and what the data check found; None for what nobody recorded."""
    return {"facts": _data_facts(fit, used) if fit else None, "check": _checked(check) if check else None}


def _data_facts(fit: Mapping[str, Any], used: RowsUsed | None) -> list[tuple[str, str]]:
    facts = [("Table", file_name(fit["table"]))] if fit.get("table") else []
    facts += [("Rows", f"{used.used:,}{used.left_out_words()}")] if used else []
    facts += [("Groups by", str(fit["group"]))] if fit.get("group") is not None else []
    if fit.get("unused"):
        facts.append(("Columns not used", ", ".join(map(str, fit["unused"]))))
    return facts


def _checked(check: Mapping[str, Any]) -> dict[str, Any]:
    shown = ("name", "role", "kind", "missing", "distinct", "note")
    notes = [one for one in check.get("warnings") or [] if one.get("code") in NOTES]
    return {
        "notes": [f"{one.get('message', '')} {one.get('advice', '')}".strip() for one in notes],
        "changes": check.get("changes") or [],
        "columns": [[_count(column.get(key, "")) for key in shown] for column in check.get("columns") or []],
    }


def _count(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) else value
