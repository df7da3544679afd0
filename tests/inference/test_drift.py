"""Where levels of groups drift, what seems to move must move in differences of neighbouring rows as well."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from test_verdict import GAINS, MODELS, evidence_of

import graphfield as gf
from graphfield.inference import dependence, question
from graphfield.inference.drift import Drift
from graphfield.inference.drift_confirmed import confirmed_evidence
from graphfield.inference.edge_record import EdgeRecord
from graphfield.inference.evidence import CovariateEvidence, Evidence
from graphfield.inference.verdict import reach_verdict

N_FIRMS, WAVES, NODES = 500, 8, 4
FEW = {"n_permutations": 199, "random_state": 0}


def panel(*, moving=False, seed=5):
    """Slow levels with one graph, noise with another one, which may move with the year; no law does else."""
    rng = np.random.default_rng(seed)
    slow_graph, noise_graph = np.eye(NODES), np.eye(NODES)
    slow_graph[0, 1] = slow_graph[1, 0] = 0.8
    now, rows = rng.normal(size=(N_FIRMS, NODES)) @ np.linalg.cholesky(slow_graph).T, []
    for wave in range(WAVES):
        noise_graph[2, 3] = noise_graph[3, 2] = 0.8 * (2 * wave / (WAVES - 1) - 1) if moving else 0.0
        rows.append(now + 0.6 * rng.normal(size=now.shape) @ np.linalg.cholesky(noise_graph).T)
        now = 0.9 * now + np.sqrt(1 - 0.9**2) * rng.normal(size=now.shape) @ np.linalg.cholesky(slow_graph).T
    X = pd.DataFrame(np.stack(rows, axis=1).reshape(-1, NODES), columns=list("abcd"))
    return X, pd.DataFrame({"year": np.tile(np.arange(WAVES) + 1983, N_FIRMS)})


FIRM = np.repeat(np.arange(N_FIRMS), WAVES)


def answer(**options):
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        return gf.dependence_test(*panel(**options), groups=FIRM, **FEW)


def edges(**options):
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        return gf.infer_edges(*panel(**options), groups=FIRM, random_state=0)


@pytest.fixture(scope="module")
def still():
    return answer()


def test_levels_that_drift_are_no_evidence(still):
    """The table itself has a small p-value, as what is left of the drift is larger at the ends."""
    assert still.p_value <= 0.05
    assert (still.verdict, still.drifting) == ("not known", ("year",))
    assert still.covariates.verdict["year"] == "not known"
    assert still.paragraph.startswith("Levels of groups drift along 'year'")
    assert "Differences of neighbouring rows, in which levels cancel, do not show it (p = " in still.paragraph
    assert "Not known. As if levels of groups did not drift: " in still.paragraph
    assert Evidence.from_json(still.to_json()) == still


def test_movement_that_differences_show_is_evidence():
    found = answer(moving=True)
    assert (found.verdict, found.drifting, found.differences) == ("strong evidence", (), "")
    assert "Differences of neighbouring rows, in which levels cancel, show it as well" in found.sentence


def test_pairs_move_where_differences_show_it(monkeypatch):
    known = edges(moving=True)
    assert known.drifting == ()
    assert set(known.varying().iloc[0][["source", "target"]]) == {"c", "d"}
    assert "So pairs count as moving where differences" in known.summary()
    found = edges()
    monkeypatch.setattr(Drift, "of", lambda *_: None)
    assert len(edges().varying()) > len(found.varying()) == 0
    assert (found.table["p_year"] == found.table["p_varies"]).all()
    assert found.table["p_value"].equals(edges().table["p_value"]), "whether there are edges is not asked"


def test_where_differences_cannot_be_asked_edges_begin_with_that(monkeypatch):
    monkeypatch.setattr(Drift, "ask_again", lambda *_: None)
    found = edges()
    assert found.drifting == ("year",)
    assert found.summary().startswith("Levels of groups drift along 'year'")
    assert "is no evidence" in found.summary()
    assert "not to move" not in found.summary(), "no share of false ones is promised"
    record = EdgeRecord.of(found)
    assert EdgeRecord.from_json(json.loads(record.to_json())).drifting == ("year",)
    assert record.are_moving.any()
    verdict = reach_verdict(edges=record)
    assert verdict.answer == "hint"
    assert verdict.paragraph.startswith("Levels of groups drift along 'year'")
    unasked = answer()
    assert (unasked.verdict, unasked.differences) == ("not known", "")
    assert "Ask again of differences of neighbouring rows" in unasked.paragraph


def test_only_tables_with_drift_are_asked_again(monkeypatch):
    """Shuffled years leave nothing to drift along; without groups no levels are subtracted."""
    X, Z = panel()
    rng = np.random.default_rng(0)
    Z["year"] = rng.permuted(Z["year"].to_numpy().reshape(N_FIRMS, WAVES), axis=1).ravel()
    monkeypatch.setattr(Drift, "ask_again", lambda *_: pytest.fail("asked"))
    monkeypatch.setattr(dependence, "shows_any", lambda _: True)
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        assert gf.dependence_test(X, Z, groups=FIRM, **FEW).drifting == ()
    assert question.Drift.of(None, None, None) is None


def line(name, p):
    verdict = "strong evidence" if p <= 0.05 else "no evidence"
    return CovariateEvidence(name, 0.1, 0.01, p, p, 99, verdict, "A sentence.")


def test_what_does_not_drift_is_believed(still):
    drift = Drift(("year",), None, np.zeros(0, dtype=np.intp))
    sure = replace(still, verdict="strong evidence", drifting=(), differences="", sentence="Both.")
    sure = replace(sure, per_covariate=(line("year", 0.01), line("mood", 0.01)), together=("year", "mood"))
    no = replace(sure, p_value=0.5, per_covariate=(line("year", 0.5), line("mood", 0.5)))
    found = confirmed_evidence(sure, drift, no)
    assert (found.verdict, found.drifting) == ("strong evidence", ("year",))
    assert found.covariates.verdict.to_dict() == {"year": "not known", "mood": "strong evidence"}
    assert "Given the others, mood matters; whether year does cannot be told." in found.paragraph
    assert "year, given the others: p = .010" in str(found)
    assert "that without it, as if levels of groups did not drift." in str(found)
    weak = replace(sure, verdict="weak evidence", p_value=0.04)
    sure = replace(sure, p_value=0.01)
    alone = replace(sure, per_covariate=(line("year", 0.01),))
    both = confirmed_evidence(alone, drift, weak)
    assert (both.verdict, both.p_value, both.drifting) == ("weak evidence", 0.04, ())
    assert confirmed_evidence(no, drift, None) == no


def test_a_model_that_predicts_better_is_a_hint_where_levels_drift(still):
    check = {"warnings": [{"code": "drifting-levels", "columns": ["age"], "message": "", "advice": ""}]}
    found = reach_verdict(MODELS["moves"], GAINS["better"], check=check)
    assert found.answer == "hint"
    assert found.paragraph.startswith("Levels of groups drift along 'age'")
    shown = reach_verdict(MODELS["moves"], GAINS["better"], evidence_of(0.005, 0.01, 0.01, 0.6), check=check)
    assert shown.answer == "moves", "the test has asked differences as well"
    assert "drift" not in shown.paragraph
    doubted = reach_verdict(MODELS["moves"], GAINS["better"], still)
    assert doubted.answer == "hint"
    assert still.differences in doubted.paragraph
    one = reach_verdict(MODELS["moves"], GAINS["worse"], check=check)
    assert "drift" not in one.paragraph, "nothing is said to move"
