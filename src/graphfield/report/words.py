"""What the page says in words and small tables, as HTML. Everything a user wrote is escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from graphfield import __version__
from graphfield.analysis.errors import LEVEL
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import count
from graphfield.report.figures import DENSITY, Survey
from graphfield.report.rows import Rows

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
_GAINS = {
    "gain_over_static": "over one graph for everybody",
    "gain_over_linear": "over a linear model",
    "model_gain_over_static": "by this kind of model over its own average graph",
    "model_gain_over_linear": "by this kind of model over a linear one",
}
_YES = ("strong evidence", "evidence")


def number(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "\u2212")


def file_name(path: object) -> str:
    """The last part of a path; where a reader keeps files is not for the page."""
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]


def _paragraphs(sentences: Iterable[str]) -> str:
    return "\n".join(f"<p>{sentence}</p>" for sentence in sentences if sentence)


def about(model: GraphEstimator, fit: Mapping[str, Any] | None) -> str:
    """One sentence: what was fitted to what."""
    kind = type(model).__name__
    names = [column.name for column in model.encoder_.columns]
    given = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    what = f"A model of {count(len(model.node_names_), 'node')} and {count(len(names), 'covariate')}"
    what += f" ({escape(given)})" if names else ""
    if fit and "rows" in fit:
        table = f" of {escape(file_name(fit['table']))}" if fit.get("table") else ""
        what += f", fitted to {count(int(fit['rows']), 'row')}{table}"
    return _paragraphs([f"{what}. <strong>{escape(kind)}</strong>: {_KINDS.get(kind, 'a fitted model')}."])


def summary(
    model: GraphEstimator,
    rows: Rows,
    survey: Survey,
    effects: Mapping[str, float],
    pairs: Sequence[tuple[str, str]],
) -> str:
    """How many edges there are, which vary most, which covariate moves the graph most."""
    return _paragraphs([_edges(model, rows, survey), _varying(survey, pairs), _moving(effects)])


def _edges(model: GraphEstimator, rows: Rows, survey: Survey) -> str:
    density = survey.measures[DENSITY]
    n_pairs = len(survey.mean)
    low, high = (round(float(np.quantile(density, q)) * n_pairs) for q in (0.05, 0.95))
    average = float(density.mean())
    where = "Over covariates drawn from the ranges of the training table the graph"
    if rows.n_given:
        where = f"Over {count(len(rows.Z), 'row')} of the training table the graph"
    if not model.encoder_.columns:
        where = "The graph"
    spread = f"; nine rows in ten have {low:,} to {high:,}" if high > low else ""
    return (
        f"{where} has {average * n_pairs:,.0f} of {n_pairs:,} possible edges on average "
        f"({100 * average:.2g}\u00a0%{spread}). A pair counts as an edge where its |partial "
        f"correlation|, judged from either node, is above {model.threshold_.value:.3f}."
    )


def _varying(survey: Survey, pairs: Sequence[tuple[str, str]]) -> str:
    ranked = np.argsort(-survey.spread, kind="stable")[:4]
    order = [int(i) for i in ranked if survey.spread[i] > 1e-4]
    if not order:
        return "No edge varies: there is one graph for everybody."
    named = [
        f"<strong>{escape(pairs[i][0])} \u2013 {escape(pairs[i][1])}</strong> "
        f"({number(survey.least[i])} to {number(survey.most[i])})"
        for i in order
    ]
    return f"The edges that vary most over these rows: {', '.join(named)}."


def _moving(effects: Mapping[str, float]) -> str:
    moved = {name: size for name, size in effects.items() if size > 1e-4}
    if not moved:
        return ""
    ranked = [f"{escape(name)} ({size:.3f})" for name, size in list(moved.items())[:6]]
    return (
        "What moves the graph, by the model alone (standard deviation of an average edge while one covariate "
        "goes from its 1st to its 99th percentile or through its levels, the others typical): "
        f"{', '.join(ranked)}."
    )


def evidence(found: Mapping[str, Any] | None, command: str, model: GraphEstimator) -> str:
    """The answer to the first question, or that nobody has asked it."""
    if not found:
        return _not_tested(command, model)
    verdict = str(found.get("verdict", "not known"))
    mark = "yes" if verdict in _YES else "no"
    parts = [
        f'<p><span class="verdict {mark}">{escape(verdict[:1].upper() + verdict[1:])}</span></p>',
        f"<p>{escape(str(found.get('sentence', '')))}</p>",
        _gains(found),
        _covariate_gains(found.get("covariates") or []),
        _list(found["notes"]) if found.get("notes") else "",
    ]
    return "\n".join(part for part in parts if part)


def _not_tested(command: str, model: GraphEstimator) -> str:
    run = f"To test it on held-out rows, run <code>{escape(command)}</code> and write this page again."
    why = "A model that may vary always varies a little, so the pictures below are no evidence by themselves."
    if not model._uses_covariates:
        why = "This model has one graph whatever the covariates are."
        run = run if model.encoder_.columns else ""
    told = getattr(model, "summary_", None)
    own = f"<p>When the model was chosen: {escape(str(told))}</p>" if told else ""
    return f'<p class="note"><strong>Not tested.</strong> {why} {run}</p>{own}'


def _gains(found: Mapping[str, Any]) -> str:
    phrases = []
    for key, against in _GAINS.items():
        gain = found.get(key)
        if gain:
            value, error = 100 * gain["value"], 100 * gain["standard_error"]
            shown = f"{value:+.2f}".replace("-", "\u2212")
            phrases.append(
                f"{shown}\u00a0% (\u00b1 {error:.2f}) of the held-out squared error gained {against}"
            )
    text = "; ".join(phrases)
    if found.get("p_value") is not None:
        text += ("; " if text else "") + f"p = {found['p_value']:.3g}"
        if found.get("n_permutations"):
            text += f" from {count(int(found['n_permutations']), 'permutation')}"
    if found.get("scheme"):
        text += f" ({escape(str(found['scheme']))})"
    of = []
    if found.get("n_rows"):
        of.append(count(int(found["n_rows"]), "row"))
    if found.get("n_folds"):
        of.append(count(int(found["n_folds"]), "fold"))
    return f'<p class="small">{text}{", " if text and of else ""}{", ".join(of)}.</p>' if text or of else ""


def _covariate_gains(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    body = []
    for row in rows:
        gain, error = row.get("gain"), row.get("standard_error")
        size = "" if gain is None else f"{100 * gain:+.2f} %".replace("-", "\u2212")
        size += "" if error is None or gain is None else f" \u00b1 {100 * error:.2f}"
        p_value = "" if row.get("p_value") is None else f"{row['p_value']:.3g}"
        told = [str(row.get(key, "")) for key in ("verdict", "sentence")]
        body.append([str(row.get("name", "")), size, p_value, *told])
    return table(["Covariate", "Gain from edges that vary with it", "p", "Verdict", "In words"], body, (1, 2))


def table(head: Sequence[str], body: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> str:
    """Everything in it is escaped; columns whose position is in ``numbers`` are set to the right."""

    def cells(tag: str, row: Sequence[str], extra: str = "") -> str:
        marks = (' class="number"' if i in numbers else "" for i, _ in enumerate(row))
        both = zip(marks, row, strict=True)
        return "".join(f"<{tag}{extra}{mark}>{escape(str(cell))}</{tag}>" for mark, cell in both)

    lines = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in body)
    top = cells("th", head, ' scope="col"')
    inner = f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{inner}</table></div>'


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
        parts = zip(model.members_, model.weights_, strict=True)
        facts.append(("Average of", ", ".join(f"{type(m).__name__} ({w:.2f})" for m, w in parts)))
    facts.append(("Threshold", f"{model.threshold_.value:.4g} ({model.threshold_.reason})"))
    if fit and fit.get("seconds") is not None:
        facts.append(("Time to fit", f"{fit['seconds']:.1f} s"))
    given = [(name, str(value)) for name, value in params.items() if name != "random_state"]
    rules = getattr(model, "rules_", None)
    leaves = "<h3>Leaves of the tree</h3>" + _list(rules) if rules else ""
    left = f"<div><h3>What it is</h3>{_facts(facts)}{leaves}</div>"
    return f'<div class="cards">{left}<div><h3>Parameters</h3>{_facts(given)}</div></div>'


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


def data_card(check: Mapping[str, Any] | None, fit: Mapping[str, Any] | None) -> str:
    """Columns, changes and warnings of the data check; what the fit was given."""
    parts = []
    if fit:
        facts = [("Table", file_name(fit["table"]))] if fit.get("table") else []
        keys = (("rows", "Rows"), ("group", "Groups by"))
        facts += [(label, str(fit[key])) for key, label in keys if fit.get(key) is not None]
        if fit.get("unused"):
            facts.append(("Columns not used", ", ".join(map(str, fit["unused"]))))
        parts.append(_facts(facts))
    if check:
        warnings = check.get("warnings") or []
        if warnings:
            told = [f"{w.get('message', '')} {w.get('advice', '')}".strip() for w in warnings]
            parts.append("<h3>What looks wrong</h3>" + _list(told))
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
