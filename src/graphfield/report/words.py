"""What the page says in words and small tables, as HTML. Everything a user wrote is escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from graphfield import __version__
from graphfield.analysis.errors import LEVEL
from graphfield.analysis.verdict import ONE_GRAPH, Verdict
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import count
from graphfield.numbers import p_digits, p_text
from graphfield.report.folder import RowsUsed

_KINDS = {
    "DNNCGM": "edges follow the covariates through a neural network",
    "ArchetypeCGM": "the graph mixes a few archetypes in shares that follow the covariates",
    "RegGMM": "edges are linear in the covariates",
    "GraphicalLasso": "one sparse graph for everybody",
    "NodewiseLasso": "one sparse graph for everybody",
    "TreeCGM": "one sparse graph per leaf of a tree over the covariates",
    "ByCluster": "one graph per level of a covariate",
    "AutoCGM": "the kind of model was chosen on held-out rows",
    "Ensemble": "the average of several fits",
}
# Above a graph that follows the controls of the page, one that does not, and one that has nothing to follow.
_HEADINGS = {
    "graph": {
        "moving": "The graph at one value of the covariates",
        "average": "The average graph over the rows",
        "one": "The graph",
    },
    "edges": {
        "moving": "Edges at the current covariates",
        "average": "Edges of the average graph",
        "one": "Edges",
    },
}
_WHOLE = 15  # rows of a table of evidence that are shown without a box to scroll


def number(value: float, digits: int = 2) -> str:
    """With its sign, unless it is zero to so many digits."""
    shown = f"{value:+.{digits}f}"
    return shown.replace("-", "\u2212") if float(shown) else shown[1:]


def file_name(path: object) -> str:
    """The last part of a path; where a reader keeps files is not for the page."""
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]


def paragraphs(sentences: Iterable[str]) -> str:
    return "\n".join(f"<p>{sentence}</p>" for sentence in sentences if sentence)


def about(model: GraphEstimator, fit: Mapping[str, Any] | None, used: RowsUsed | None = None) -> str:
    """One sentence: what was fitted to what."""
    kind = type(model).__name__
    names = [column.name for column in model.encoder_.columns]
    given = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    what = f"A model of {count(len(model.node_names_), 'node')} and {count(len(names), 'covariate')}"
    what += f" ({escape(given)})" if names else ""
    if fit and used:
        table = f" of {escape(file_name(fit['table']))}" if fit.get("table") else ""
        what += f", fitted to {count(used.used, 'row')}{table}{escape(used.left_out_words())}"
    return paragraphs([f"{what}. <strong>{escape(kind)}</strong>: {_KINDS.get(kind, 'a fitted model')}."])


def verdict(reached: Verdict, command: str) -> str:
    """What stands first on the page: the answer to the first question, and how to test it if nobody has."""
    mark = "yes" if reached.answer in ("moves", "hint") else "no"
    badge = f'<p><span class="verdict {mark}">{escape(reached.headline)}</span></p>'
    return f"{badge}\n<p>{escape(reached.paragraph)}</p>\n{_not_tested(command)}"


def evidence(found: Mapping[str, Any] | None) -> str:
    """The test that the verdict rests on, covariate by covariate, and notes; empty where there was none."""
    if not found:
        return ""
    parts = [
        _tested(found),
        _covariate_gains(found.get("covariates") or []),
        _list(found["notes"]) if found.get("notes") else "",
    ]
    return "\n".join(part for part in parts if part)


def headings(verdict: Verdict) -> dict[str, str]:
    """What stands above the graph and the table of its edges as the page opens, and once the graph moves."""
    kind = "one" if verdict.model == ONE_GRAPH else "average" if verdict.shows_average else "moving"
    opening = {f"{name}_heading": texts[kind] for name, texts in _HEADINGS.items()}
    return opening | {f"{name}_moving": texts["moving"] for name, texts in _HEADINGS.items()}


def movement_note(verdict: Verdict) -> str:
    """Why the average graph is shown first, where it is."""
    if not verdict.shows_average:
        return ""
    return (
        '<p class="note"><strong>Shown is the average graph over the rows.</strong> Held-out rows do not '
        "support that the graph of this model moves with the covariates; to see it move all the same, tick "
        "the box above the covariates.</p>"
    )


def _not_tested(command: str) -> str:
    run = f"run <code>{escape(command)}</code> and write this page again."
    return f'<p class="small">No permutation test was made. For one, {run}</p>' if command else ""


def _tested(found: Mapping[str, Any]) -> str:
    """How the test was made."""
    of = []
    if found.get("p_value") is not None:
        of.append(escape(p_text(found["p_value"])))
        if found.get("n_permutations"):
            of[-1] += f" from {count(int(found['n_permutations']), 'rearrangement')}"
    if found.get("scheme"):
        of.append(escape(str(found["scheme"])))
    if found.get("n_rows"):
        of.append(count(int(found["n_rows"]), "row"))
    return f'<p class="small">Permutation test: {"; ".join(of)}.</p>' if of else ""


def percent(value: float, error: float) -> tuple[str, str]:
    """A share and its standard error in percent, with two digits of the smaller one.

    >>> percent(0.0676, 0.0071), percent(-0.000058, 0.000033), percent(0.0, 0.0)
    (('6.76', '0.71'), ('-0.0058', '0.0033'), ('0.00', '0.00'))
    """
    sizes = [100 * abs(size) for size in (value, error) if size]
    digits = int(np.clip(1 - np.floor(np.log10(min(sizes))), 2, 6)) if sizes else 2
    return f"{100 * value:.{digits}f}", f"{100 * error:.{digits}f}"


def _covariate_gains(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    body = []
    for row in rows:
        ps = [row.get(key) for key in ("p_value", "adjusted_p_value")]
        shown = ["" if p is None else p_digits(p) for p in ps]
        gain = _gain_cell(row.get("gain"), row.get("standard_error"))
        if ps[0] is None:  # why there is none
            gain = str(row.get("sentence", ""))
        body.append([str(row.get("name", "")), *shown, gain])
    head = ["Covariate", "p", "Adjusted p", "Gain"]
    rule = (
        "Each covariate given the others. The adjusted p allows for their number; the gain is by how much "
        "edges that move with it lower the held-out squared error of ridge regressions."
    )
    kind = "stack whole" if len(body) <= _WHOLE else "stack"
    return table(head, body, (1, 2, 3), kind) + f'<p class="small">{rule}</p>'


def _gain_cell(gain: float | None, error: float | None) -> str:
    if gain is None:
        return ""
    size, spread = percent(gain, error or 0.0)
    sign = "+" if gain > 0 else ""
    return f"{sign}{size} %".replace("-", "\u2212") + ("" if error is None else f" \u00b1 {spread}")


def table(
    head: Sequence[str], body: Sequence[Sequence[str]], numbers: Collection[int] = (), kind: str = ""
) -> str:
    """Everything in it is escaped; columns whose position is in ``numbers`` are set to the right.

    Of kind "stack", every row is a card with named lines on a narrow screen; "whole" has no box to scroll.
    """

    def cells(tag: str, row: Sequence[str], extra: str = "") -> str:
        marks = [' class="number"' if i in numbers else "" for i, _ in enumerate(row)]
        if "stack" in kind and tag == "td":
            marks = [f'{mark} data-label="{escape(name)}"' for mark, name in zip(marks, head, strict=True)]
        both = zip(marks, row, strict=True)
        return "".join(f"<{tag}{extra}{mark}>{escape(str(cell))}</{tag}>" for mark, cell in both)

    lines = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in body)
    top = cells("th", head, ' scope="col"')
    inner = f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody>"
    classes = f"scroll {kind}".strip()
    return f'<div class="{classes}" tabindex="0"><table>{inner}</table></div>'


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"<dl>{items}</dl>"


_CHOSEN = {"rank_": "Patterns mixed", "n_archetypes_": "Archetypes", "n_leaves_": "Leaves"}
_CHOSEN |= {"penalty_": "Penalty in use", "variation_": "Share of variation kept"}
_CHOSEN |= {"n_steps_": "Gradient steps"}
_NODES = {"raw": "as they are", "normal": "normal scores"}


def model_card(model: Any, fit: Mapping[str, Any] | None) -> str:
    """Estimator, what was chosen, and its parameters."""
    params = model.get_params(deep=False)
    facts = [("Estimator", type(model).__name__), ("graphfield", __version__)]
    if "random_state" in params:
        facts.append(("Seed", str(params["random_state"])))
    if getattr(model, "marginals_", None):
        facts.append(("Nodes", _NODES.get(model.marginals_, model.marginals_)))
    chosen = {label: getattr(model, name, None) for name, label in _CHOSEN.items()}
    facts += [(label, _cell(value)) for label, value in chosen.items() if value is not None]
    if hasattr(model, "mean_depends_on_covariates_"):
        moves = "moves with the covariates" if model.mean_depends_on_covariates_ else "constant"
        facts.append(("Mean of the nodes", moves))
    if hasattr(model, "weights_"):
        facts.append(_members(model))
    facts.append(("Edges", model.threshold_.reason))
    if fit and fit.get("seconds") is not None:
        facts.append(("Time to fit", f"{fit['seconds']:.1f} s"))
    given = [(name, str(value)) for name, value in params.items() if name != "random_state"]
    rules = getattr(model, "rules_", None)
    leaves = "<h3>Leaves of the tree</h3>" + _list(rules) if rules else ""
    left = f"<div><h3>What it is</h3>{_facts(facts)}{leaves}</div>"
    return f'<div class="cards">{left}<div><h3>Parameters</h3>{_facts(given)}</div></div>'


def _members(model: Any) -> tuple[str, str]:
    """What an average is made of; many members of one kind and weight are counted."""
    kinds = [type(member).__name__ for member in model.members_]
    if len(kinds) == 1:
        return "Kept", kinds[0]
    if len(set(kinds)) == 1 and np.ptp(model.weights_) == 0:
        return "Average of", f"{len(kinds)} {kinds[0]}"
    parts = zip(kinds, model.weights_, strict=True)
    return "Average of", ", ".join(f"{kind} ({weight:.2f})" for kind, weight in parts)


def _list(items: Iterable[str]) -> str:
    return '<ul class="plain">' + "".join(f"<li>{escape(str(item))}</li>" for item in items) + "</ul>"


def intervals(model: Any) -> str:
    """What is shaded around the curves of edges."""
    return (
        f" Shaded: intervals of {100 * LEVEL:.0f} %, from how far {len(model.members_)} fits to rows drawn "
        "with replacement are apart; they do not know of the bias of a penalty."
    )


def training(model: GraphEstimator) -> str:
    """What was compared on held-out rows; the curve is drawn below it."""
    compared = getattr(model, "held_out_", None)
    if isinstance(compared, pd.DataFrame) and len(compared):
        body = [[_cell(value) for value in row] for row in compared.itertuples(index=False)]
        head = [str(name).replace("_", " ") for name in compared.columns]
        numbers = {i for i, kind in enumerate(compared.dtypes) if kind.kind in "if"}
        return "<p>Compared on held-out rows:</p>" + table(head, body, numbers)
    if training_lines(model) is None:
        return f'<p class="small">{escape(type(model).__name__)} has no training curve.</p>'
    told = "Loss per node in standard units; held-out rows decide when to stop and what to keep."
    return f'<p class="small">{told}</p>'


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4g}"
    return "" if value is None else str(value)


def training_lines(model: GraphEstimator) -> dict[str, Any] | None:
    """The loss of training and of held-out rows, and where the number of patterns changed."""
    history = getattr(model, "training_", None)
    if not isinstance(history, pd.DataFrame) or "train_loss" not in history or len(history) < 2:
        return None
    lines = []
    for column, name in (("held_out_loss", "held-out rows"), ("train_loss", "training rows")):
        kept = history[["step", column]].dropna()
        if len(kept):
            lines.append({"name": name, "points": kept.astype(float).to_numpy().tolist()})
    marks = []
    if "rank" in history:
        first = history.drop_duplicates("rank")
        marks = [[float(s), f"{r:g} patterns"] for s, r in zip(first["step"], first["rank"], strict=True)]
    return {"lines": lines, "marks": marks} if lines else None


def data_card(
    check: Mapping[str, Any] | None, fit: Mapping[str, Any] | None, used: RowsUsed | None = None
) -> str:
    """Columns, changes and warnings of the data check; what the fit was given."""
    parts = []
    if fit:
        facts = [("Table", file_name(fit["table"]))] if fit.get("table") else []
        facts += [("Rows", f"{used.used:,}{used.left_out_words()}")] if used else []
        facts += [("Groups by", str(fit["group"]))] if fit.get("group") is not None else []
        if fit.get("unused"):
            facts.append(("Columns not used", ", ".join(map(str, fit["unused"]))))
        parts.append(_facts(facts))
    if check:
        warnings = check.get("warnings") or []
        if warnings:
            told = [f"{w.get('message', '')} {w.get('advice', '')}".strip() for w in warnings]
            parts.append("<h3>What to look at</h3>" + _list(told))
        changes = check.get("changes") or []
        parts.append("<h3>What was changed</h3>" + (_list(changes) if changes else "<p>Nothing.</p>"))
        shown = ("name", "role", "kind", "missing", "distinct", "note")
        body = [[str(column.get(key, "")) for key in shown] for column in check.get("columns") or []]
        head = ["Column", "Used as", "Kind", "Missing", "Distinct", "Note"]
        parts.append("<h3>Columns</h3>" + table(head, body, (3, 4)))
    if not parts:
        return '<p class="small">Left out: this model was saved without a record of its data.</p>'
    if not check:
        parts.append('<p class="small">Left out: the data check, which this model was saved without.</p>')
    return "\n".join(parts)
