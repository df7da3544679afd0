"""A model against one graph on rows it has not seen, and one answer from test, model and choice."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import graphfield as gf
from conftest import small_data
from graphfield.cli import main
from graphfield.estimators.one_graph import static_models
from graphfield.inference import unseen_rows
from graphfield.inference.edge_record import EdgeRecord, MovesWith
from graphfield.inference.evidence import CovariateEvidence, verdict
from graphfield.inference.unseen_rows import explained_share
from graphfield.inference.verdict import HEADLINES, Fitted, reach_verdict
from graphfield.numbers import Gain
from graphfield.report.folder import gain_record, recorded_gain

CLEAR, UNCLEAR, LOSS = Gain(0.05, 0.01), Gain(0.005, 0.01), Gain(-0.05, 0.01)
NAMES = ("age", "sex", "site")


@pytest.fixture(autouse=True)
def _quick(request, monkeypatch):
    if "slow" not in request.keywords:
        monkeypatch.setattr(unseen_rows, "static_models", quick_models)


def quick_models(types=None, **options):
    """One method with one penalty in place of a search, for what does not depend on it."""
    name = "graphical lasso" if types is None else "nodewise lasso"
    return {name: static_models(types, penalty=0.05, **options)[name]}


def chain(
    n: int, strength: float, slope: float = 0.0, seed: int = 0, p: int = 4
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes in a chain whose edges are ``strength + slope * z``; w has no part in it."""
    rng = np.random.default_rng(seed)
    z, X = rng.uniform(-1, 1, n), rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += (strength + slope * z) * X[:, j - 1]
    return pd.DataFrame(X, columns=list("abcdefgh"[:p])), pd.DataFrame({"z": z, "w": rng.normal(size=n)})


def gain_of(over_average: Gain, over_static: Gain | None = CLEAR) -> gf.ModelGain:
    return gf.ModelGain(over_average, over_static, Gain(0.3, 0.02), n_rows=198, n_units=198, n_folds=5)


def evidence_of(p_value: float | None, *adjusted: float) -> dict:
    lines = [{"name": n, "adjusted_p_value": p} for n, p in zip(NAMES, adjusted, strict=False)]
    return {"p_value": p_value, "n_rows": 198, "covariates": lines}


TESTS = {
    "yes": evidence_of(0.005, 0.01, 0.2, 0.6),
    "yes, which is not known": evidence_of(0.01, 0.3, 0.2, 0.6),
    "no": evidence_of(0.4, 0.9, 0.9, 0.9),
    "no, but one": evidence_of(0.4, 0.01, 0.9, 0.9),
    "not known": evidence_of(None),
    "not run": None,
}
GAINS = {
    "better": gain_of(CLEAR),
    "better than its average only": gain_of(CLEAR, UNCLEAR),
    "no clear difference": gain_of(UNCLEAR, UNCLEAR),
    "worse": gain_of(LOSS, LOSS),
    "worse than a static graph": gain_of(CLEAR, LOSS),
    "not compared": None,
}
MODELS = {
    "moves": Fitted(NAMES, moves=True),
    "does not use one": Fitted(NAMES, moves=True, unused=("sex",)),
    "one graph": Fitted(NAMES, moves=False, unused=NAMES),
    "one graph was kept": Fitted(NAMES, moves=False, unused=NAMES, kept=("static",), compared=5),
}


@pytest.mark.parametrize(("test", "gain", "model"), [*itertools.product(TESTS, GAINS, MODELS)])
def test_one_voice(test, gain, model):
    """For every combination: the fields follow from the facts, and no sentence denies another."""
    fitted = MODELS[model]
    found = reach_verdict(fitted, GAINS[gain], TESTS[test])
    text = found.paragraph.lower()
    better = fitted.moves and gain.startswith("better")
    assert found.supported is (None if fitted.moves and gain == "not compared" else better)
    assert found.test == test.split(",")[0]
    assert found.headline == HEADLINES[found.answer]
    assert found.paragraph.startswith(found.sentence)
    assert found.sentence
    assert "evidence" not in text, "a word of the test alone"
    assert ("the graph moves with" in text) == better
    assert ("one graph for all predicts" in text) == (
        fitted.moves and gain not in ("not compared",) and not better
    )
    assert ("matter (permutation test" in text) == (found.test == "yes" and not better)
    assert ("yet " in text) == (found.test == "yes" and found.supported is False)
    assert ("cannot be told" in text) == (found.test == "yes")
    assert ("does not use sex" in text) == (model == "does not use one")
    assert ("look at is the average" in text) == (fitted.moves and found.supported is False)
    if found.answer == "one graph":
        assert found.test != "yes"
    if found.answer == "moves":
        assert found.test != "no"
    # Every number of a comparison comes with its standard error.
    assert text.count("%") == text.count("(±")


def test_what_filled_in_values_may_look_like_is_a_hint():
    gaps = "Gaps of 'A' go with 'age' (50 of 90 values are missing where it is 20 to 40, 0 of 90 elsewhere)."
    check = {"warnings": [{"code": "gaps-follow-covariate", "columns": ["age", "A"], "message": gaps}]}
    found = reach_verdict(MODELS["moves"], GAINS["better"], check=check)
    assert found.answer == "hint"
    assert found.paragraph.startswith(gaps)
    by_another = evidence_of(0.005, 0.01, 0.01, 0.6)
    assert reach_verdict(MODELS["moves"], GAINS["better"], by_another, check=check).answer == "moves"


def test_a_test_that_agrees_says_that_it_is_weak_evidence():
    weak = {**evidence_of(0.02, 0.03, 0.9, 0.9), "verdict": "weak evidence"}
    weak["covariates"][0]["verdict"] = "weak evidence"
    weakly = "agrees (p = .020), as weak evidence."
    found = reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), weak)
    assert found.paragraph.startswith("Held-out rows support that the graph moves with age")
    assert f"A permutation test {weakly}" in found.paragraph
    record = pairs_tested(1e-6, 0.4, 0.9, movers=("a - b",))
    assert weakly in reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), weak, record).paragraph
    assert "weak" not in reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), TESTS["yes"]).paragraph


def test_the_paragraph_of_the_issue():
    found = reach_verdict(
        Fitted(("age", "gender"), moves=True, unused=("gender",)),
        gain_of(UNCLEAR),
        {
            "p_value": 0.01,
            "n_rows": 198,
            "covariates": [{"name": n, "adjusted_p_value": 0.2} for n in ("age", "gender")],
        },
    )
    assert found.answer == "not established"
    for part in (
        "together the covariates matter (permutation test, p = .010)",
        "Which of the covariates it is cannot be told from 198 rows.",
        "The fitted model does not use gender.",
    ):
        assert part in found.paragraph


def test_weak_evidence_has_that_name_everywhere():
    """In the words of the test itself, whichever way a verdict gets them, and in its headline."""
    lines = tuple(
        CovariateEvidence(name, 0.0, 0.001, p / 3, p, 299, verdict(p, gain), "")
        for name, p, gain in zip(NAMES, (0.04, 0.009, 0.3), (UNCLEAR, CLEAR, UNCLEAR), strict=True)
    )
    test = gf.Evidence(verdict(0.03, UNCLEAR), "It seems so.", 0.03, UNCLEAR, None, lines, 199, "", 198, 5)
    which = (
        "sex matters, and there is weak evidence that age matters (p = .040; held-out rows do not clearly "
        "gain); whether site does cannot be told"
    )
    assert test.paragraph.startswith("Weak evidence. It seems so. Given the others")
    assert which in test.paragraph
    for evidence in (test, json.loads(test.to_json())):
        found = reach_verdict(MODELS["moves"], GAINS["no clear difference"], evidence)
        assert (found.answer, found.weak, found.matter) == ("not established", True, ("sex", "age"))
        assert found.headline == "Weak evidence that the covariates matter, but this model does not show how"
        together = (
            "Yet there is weak evidence that together the covariates matter (permutation test, p = .030),"
        )
        assert together in found.paragraph
        assert which in found.paragraph
        assert "probably" not in found.paragraph
        alone = reach_verdict(evidence=evidence).paragraph
        assert alone.startswith(
            "There is weak evidence that together the covariates matter (permutation test"
        )


def pairs_tested(
    *q_varies: float, movers: tuple[str, ...] = (), moved_by: tuple[str, ...] = ()
) -> EdgeRecord:
    """Three pairs of three nodes."""
    return EdgeRecord(tuple("abc"), 198, None, (0.01,) * 3, q_varies, movers=movers, moved_by=moved_by)


EDGES = {
    "sure": pairs_tested(
        1e-6, 0.4, 0.9, movers=("a - b with sex (+0.02 at f, +0.38 at m)",), moved_by=("sex",)
    ),
    "at the level only": pairs_tested(0.08, 0.4, 0.9, movers=("a - b",)),
    "none": pairs_tested(0.4, 0.4, 0.9),
    "with one given the others": pairs_tested(
        0.12, 0.4, 0.9, movers=("a - b with sex (+0.02 at f, +0.38 at m)",), moved_by=("sex",)
    ),
}


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("model", MODELS)
def test_edges_that_move_are_part_of_the_verdict(edges, model):
    """Whatever test and model say: edges that move are named, and nothing says that how is not known."""
    fitted, record = MODELS[model], EDGES[edges]
    for test, gain in itertools.product(TESTS, GAINS):
        found = reach_verdict(fitted, GAINS[gain], TESTS[test], record)
        without = reach_verdict(fitted, GAINS[gain], TESTS[test])
        text = found.paragraph
        assert (found.supported, found.shows_average) == (without.supported, without.shows_average)
        assert ("moves with the covariates (tests of 3 pairs" in text) == record.are_moving.any()
        assert all(mover in text for mover in record.movers)
        if edges == "with one given the others":
            unseen = without.answer in ("one graph", "not known")
            assert found.answer == ("hint" if unseen else without.answer)
            assert found.moving_pairs == ()
            assert "No edge by itself" not in text, "one is named"
            continue
        if edges == "none":
            assert (found.answer, found.moving_pairs) == (without.answer, ())
            assert ("No edge by itself is seen to move" in text) == (
                found.test == "yes" or found.model == "better"
            )
            continue
        assert found.moving_pairs == ("a - b",)
        assert found.answer in ("moves", "edges", "hint")
        agrees = found.test == "yes" or (found.model == "better" and found.test != "no")
        assert (found.answer == "hint") == (edges != "sure" and not agrees)
        assert "how is more than this model can tell" not in text
        assert "does not draw" not in text
        if found.answer == "edges":
            assert found.headline == "One edge moves with the covariates"
        if edges == "sure" and found.test == "yes":
            assert "whether sex" not in text.lower(), "it is known to move an edge"
            if found.matter and "sex" in found.undecided:
                assert "single edges move with sex" in text


def test_pairs_that_move_with_one_covariate_alone_are_named_beside_the_others():
    record = replace(EDGES["sure"], with_one=(MovesWith(0, "sex", 0.01), MovesWith(2, "age", 0.09)))
    assert record.moving_with_one_alone == ["b - c"]
    text = reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), TESTS["yes"], record).paragraph
    assert "Tests of one covariate given the others see movement of b - c as well." in text
    assert "as well" not in reach_verdict(Fitted(NAMES, moves=True), edges=EDGES["sure"]).paragraph


def test_held_out_rows_support_movement_with_what_passed_a_test():
    """Not with covariates of which the same paragraph says that it cannot be told."""
    said = {
        name: reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), TESTS[name]).sentence
        for name in ("yes", "yes, which is not known")
    }
    assert said["yes"].startswith("Held-out rows support that the graph moves with age: ")
    assert "moves with the covariates: " in said["yes, which is not known"]
    plain = reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR))
    assert "moves with the covariates: " in plain.sentence, "none was tested by itself"
    alone = reach_verdict(Fitted(("age",), moves=True), gain_of(CLEAR))
    assert "moves with age: " in alone.sentence
    found = reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), TESTS["no, but one"])
    assert "age would matter, which the test of all together does not confirm" in found.paragraph
    assert "moves with the covariates: " in found.sentence
    edges = reach_verdict(Fitted(NAMES, moves=True), gain_of(CLEAR), TESTS["yes"], EDGES["sure"])
    assert "moves with age and sex: " in edges.sentence


def test_judge_knows_the_tests_of_pairs():
    X, Z = chain(300, 0.3, 0.5)
    edges = gf.infer_edges(X, Z[["z"]], random_state=0)
    found = gf.judge(gf.GraphicalLasso(penalty=0.05).fit(X, Z[["z"]]), X, Z[["z"]], edges=edges)
    assert (found.answer, found.model) == ("edges", "one graph")
    assert edges.movers()[0] in found.paragraph
    curve = edges.bands("a", "b", "z", n_points=41, simultaneous=True)
    told = next(one for one in edges.movers(most=9) if one.startswith("a - b with z"))
    pairs = re.findall(r"([+-]\d\.\d+) at (-?\d+\.\d+)", told)
    assert len(pairs) > 1
    for estimate, place in pairs:
        low, high = (np.interp(float(place), curve["value"], curve[side]) for side in ("low", "high"))
        assert low < float(estimate) < high


def test_a_test_alone_has_a_verdict():
    found = reach_verdict(evidence=TESTS["yes"])
    assert (found.answer, found.supported, found.matter) == ("not established", None, ("age",))
    assert reach_verdict(evidence=TESTS["no"]).answer == "one graph"
    assert reach_verdict().answer == "not known"


# -- numbers -----------------------------------------------------------------------------------


def test_clear_movement_is_seen_and_none_is_not():
    X, Z = chain(300, 0.0, 1.0)
    found = gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X, Z)
    assert found.answer == "better"
    assert found.over_static.is_clear
    fitted = Fitted.of(gf.RegGMM(ridge=0.1).fit(X, Z), Z)
    assert reach_verdict(fitted, found).answer == "moves"
    answers = []
    for seed in range(3):
        X, Z = chain(200, 0.6, seed=seed)
        answers.append(gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X, Z))
    assert not any(one.over_average.is_clear for one in answers)
    assert reach_verdict(fitted, answers[0]).answer == "one graph"


def test_gains_are_those_of_folds_by_hand(monkeypatch):
    """Fit to the other rows, predict these; the average graph has the same means."""
    X, Z = chain(120, 0.0, 0.8)
    splits = list(KFold(3).split(X))
    monkeypatch.setattr(unseen_rows, "folds", lambda *_, **__: splits)
    found = gf.gain_over_one_graph(gf.RegGMM(), X, Z, n_folds=3)
    own, average = np.empty(X.shape), np.empty(X.shape)
    for train, rows in splits:
        model = gf.RegGMM().fit(X.iloc[train], Z.iloc[train])
        mean = model.field_.at(Z.iloc[rows]).offsets
        values = X.iloc[rows].to_numpy()
        own[rows] = values - model.predict(X.iloc[rows], Z.iloc[rows])
        coef = model.predict_coef(Z.iloc[train]).mean(axis=0)
        average[rows] = values - mean - (values - mean) @ coef.T
    ratio = (average**2 - own**2) / (average**2).mean(axis=0)
    assert found.over_average.value == pytest.approx(ratio.mean(), abs=1e-5)
    of_rows = ratio.mean(axis=1).std(ddof=1) / np.sqrt(len(X))
    of_folds = np.std([ratio[rows].mean() for _, rows in splits], ddof=1) / np.sqrt(3)
    assert found.over_average.standard_error == pytest.approx(max(of_rows, of_folds), rel=1e-3)
    share = 1 - (own**2).mean(axis=0) / X.var(axis=0, ddof=0).to_numpy()
    assert found.explained.value == pytest.approx(np.maximum(share, 0).mean(), abs=1e-6)


def test_rows_of_one_group_are_held_out_together_and_count_as_one():
    X, Z = chain(60, 0.5)
    X, Z = (pd.concat([part] * 4, ignore_index=True) for part in (X, Z))
    alone = gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X, Z)
    whole = gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X, Z, groups=np.tile(np.arange(60), 4))
    assert (whole.n_units, whole.unit) == (60, "group")
    assert whole.over_average.value < alone.over_average.value, "copies are no news"
    assert whole.explained.standard_error > 1.5 * alone.explained.standard_error


def test_levels_of_groups_are_no_variance_to_explain():
    X, Z = chain(600, 0.5)
    groups = np.repeat(np.arange(100), 6)
    levels = 2 * np.random.default_rng(1).normal(size=(100, X.shape[1]))[groups]
    plain = gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X, Z, groups=groups)
    moved = gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X + levels, Z, groups=groups)
    assert (plain.within_groups, moved.within_groups) == (False, True)
    assert moved.explained.value == pytest.approx(plain.explained.value, abs=0.08)
    assert gf.ModelGain.from_json(moved.to_json()) == moved


def test_time_is_held_out_in_stretches(monkeypatch):
    X, Z = chain(200, 0.5)
    seen = []
    original = unseen_rows._field
    monkeypatch.setattr(
        unseen_rows, "_field", lambda m, i, labels, rows: seen.append(rows) or original(m, i, labels, rows)
    )
    found = gf.gain_over_one_graph(gf.RegGMM(), X, Z, time=np.arange(200)[::-1])
    assert (found.n_folds, found.unit, found.n_units) == (5, "time block", 50)
    held_out = [np.setdiff1d(np.arange(200), rows) for rows in seen]
    assert all(np.ptp(rows) == len(rows) - 1 for rows in held_out)
    assert len(np.unique(np.concatenate(held_out))) == 200


def test_few_rows_have_no_number():
    X, Z = chain(40, 0.0, 1.0)
    with pytest.raises(gf.DataError, match="40 rows are too few"):
        gf.gain_over_one_graph(gf.RegGMM(), X, Z)
    X, Z = chain(80, 0.0, 1.0)
    with pytest.raises(gf.DataError, match="4 groups are too few"):
        gf.gain_over_one_graph(gf.RegGMM(), X, Z, groups=np.arange(80) % 4)
    with pytest.raises(gf.ParameterError, match="graphfield estimator"):
        gf.gain_over_one_graph("DNNCGM", X, Z)


def test_the_explained_share_knows_its_error():
    """Against the spread over fresh samples of the same size."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(60):
        signal, noise = rng.normal(size=(2, 150, 2))
        draws.append(explained_share(signal + noise, noise, np.arange(150)))
    spread = np.std([one.value for one in draws])
    assert np.mean([one.standard_error for one in draws]) == pytest.approx(spread, rel=0.3)
    far = np.where(np.arange(150)[:, None] == 3, 1e6, signal)  # one value far out, and nobody predicts it
    assert explained_share(far, far - far.mean(axis=0), np.arange(150)).value < 0.01


def test_what_covariates_explain_is_not_credited_to_other_nodes():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(300, 1)), rng.normal(size=(300, 5))
    X[:, :2] += 3 * Z
    assert gf.gain_over_one_graph(gf.RegGMM(), X, Z, n_folds=2).explained.value < 0.02


def test_means_that_do_not_follow_the_covariates_are_said():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 1))
    X = rng.normal(size=(200, 3)) + 2 * Z
    texts = {}
    for center in ("constant", "covariates"):
        model = gf.GraphicalLasso(center=center, penalty=0.1)
        gain = gf.gain_over_one_graph(model, X, Z)
        assert gain.follows_means == (center == "covariates")
        texts[center] = reach_verdict(Fitted.of(model.fit(X, Z), pd.DataFrame(Z)), gain).paragraph
    told = ("beyond the covariates", "do not follow the covariates")
    assert [words in texts["covariates"] for words in told] == [True, False]
    assert [words in texts["constant"] for words in told] == [False, True]


def test_an_ensemble_is_compared_by_single_fits(monkeypatch):
    """Refitting all members in every fold would take as many times as long."""
    X, Z = chain(120, 0.0, 0.8)
    fits = []
    fit = gf.RegGMM._fit
    monkeypatch.setattr(gf.RegGMM, "_fit", lambda self, data: fits.append(1) or fit(self, data))
    several = gf.Ensemble(estimator=gf.RegGMM(ridge=0.1), n_members=9, resample=True, random_state=0)
    found = gf.gain_over_one_graph(several, X, Z, n_folds=2)
    assert len(fits) == 2
    one = gf.gain_over_one_graph(gf.RegGMM(ridge=0.1), X, Z, n_folds=2)
    assert found.over_average == one.over_average
    seeds = [
        gf.Ensemble(estimator=gf.TreeCGM(), random_state=seed).single_fit().random_state for seed in (0, 0, 1)
    ]
    assert seeds[0] == seeds[1] != seeds[2]
    said = reach_verdict(MODELS["moves"], found).sentence
    assert "the squared error of a single fit, of which the model averages 9, is" in said
    assert "the squared error of the fitted model is" in reach_verdict(MODELS["moves"], one).sentence


def test_covariates_that_are_not_used_are_named():
    X, Z = chain(300, 0.0, 1.0)
    tree = gf.TreeCGM(max_leaves=2, random_state=1).fit(X, Z)
    found = Fitted.of(tree, Z)
    assert (found.moves, found.unused) == (True, ("w",))
    static = Fitted.of(gf.GraphicalLasso().fit(X, Z), Z)
    assert (static.moves, static.unused) == (False, ("z", "w"))


@pytest.mark.slow
def test_what_auto_kept_is_judged_without_the_others():
    X, Z = chain(120, 0.6)
    model = gf.AutoCGM(candidates=("static", "linear"), random_state=0).fit(X, Z)
    assert list(model.chosen_) == ["static"]
    found = gf.gain_over_one_graph(model, X, Z, n_folds=2)
    assert abs(found.over_average.value) < 1e-6
    said = reach_verdict(Fitted.of(model, Z), found)
    assert (said.model, said.answer) == ("one graph", "one graph")
    assert "chosen among" in said.sentence


def test_a_comparison_survives_a_file():
    for gain in (GAINS["better"], gain_of(CLEAR, None)):
        record = json.loads(json.dumps(gain_record(gain)))
        assert recorded_gain(record) == (gain, "")
    assert recorded_gain(gain_record(None, "too few")) == (None, "too few")
    assert recorded_gain(None) == (None, "")


def test_fit_says_it_first_and_keeps_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(unseen_rows, "N_FOLDS", 2)
    X, Z = small_data(60, p=3)
    pd.concat([X, Z[["age"]]], axis=1).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m"
    arguments = ["fit", str(tmp_path / "t.csv"), "--covariates", "age", "--out", str(out)]
    assert main([*arguments, "--set", "rank=None", "--set", "max_steps=5"]) == 0
    said = capsys.readouterr().out
    gain, _ = recorded_gain(json.loads((out / "gain.json").read_text()))
    fitted = Fitted.of(gf.load(out), Z[["age"]])
    verdict = reach_verdict(
        fitted, gain, edges=EdgeRecord.from_json(json.loads((out / "edges.json").read_text()))
    )
    assert said.index(f"\n{verdict.headline}.\n{verdict.paragraph}\n") < said.index("\nEdges: ")


@pytest.mark.slow
def test_a_covariate_that_is_a_node_is_said_in_the_verdict(tmp_path, capsys):
    X, Z = chain(100, 0.8)
    Z = Z.assign(w=X["a"])
    wanted = (
        "Covariate 'w' is the same as node 'a': edges of that node, how these move, and its part in "
        "what nodes explain of each other mean little beside it."
    )
    assert wanted in str(gf.judge(gf.RegGMM().fit(X, Z), X, Z))
    two, three = X.assign(b=X["a"]), X.assign(b=X["a"], c=X["a"])
    said = reach_verdict(check=gf.check_data(two, Z)).paragraph
    assert "'w' is the same as node 'a'; covariate 'w' is the same as node 'b': edges" in said.lower()
    assert "and 2 more such pairs: edges" in reach_verdict(check=gf.check_data(three, Z)).paragraph
    assert "mean little" not in str(gf.judge(gf.RegGMM().fit(X, Z[["z"]]), X, Z[["z"]]))
    X.join(Z.rename(columns={"w": "copy"})).to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "--covariates", "z,copy", "--model", "linear"]
    assert main([*fit, "--no-verdict", "--out", str(tmp_path / "m")]) == 0
    assert wanted.replace("'w'", "'copy'") in capsys.readouterr().out
    assert main(["report", str(tmp_path / "m")]) == 0
    page = (tmp_path / "m" / "report.html").read_text(encoding="utf-8")
    assert "how these move, and its part" in page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphfield.ExtrapolationWarning", "ignore::graphfield.NoGapWarning")
def test_a_network_on_few_rows_claims_what_other_folds_find():
    """The number that is said agrees with five folds from outside, other rows and seeds, within its error."""
    X, Z = chain(200, 0.6, 0.5, p=8)
    model = gf.DNNCGM(rank=4, max_steps=150, device="cpu", random_state=0)
    found = gf.gain_over_one_graph(model, X, Z)
    left = np.empty(X.shape)
    for fold, (train, rows) in enumerate(KFold(5, shuffle=True, random_state=9).split(X)):
        copy = gf.DNNCGM(rank=4, max_steps=150, device="cpu", random_state=50 + fold)
        copy.fit(X.iloc[train], Z.iloc[train])
        left[rows] = X.iloc[rows] - copy.predict(X.iloc[rows], Z.iloc[rows])
    outside = explained_share(X.to_numpy(), left, np.arange(len(X)))
    assert abs(found.explained.value - outside.value) < 2 * found.explained.standard_error


@pytest.mark.slow
def test_null_data_give_one_graph():
    """Of ten tables whose graph does not move, at most one is said to."""
    said = []
    for seed in range(10):
        X, Z = chain(300, 0.5, seed=seed, p=6)
        model = gf.DNNCGM(rank=4, max_steps=100, device="cpu", random_state=0)
        said.append(gf.gain_over_one_graph(model, X, Z).answer)
    assert said.count("better") <= 1


def test_a_comparison_that_is_not_in_favour_of_one_graph_is_said():
    gain = gf.ModelGain(
        Gain(0, 0), Gain(-0.015, 0.01), Gain(0.4, 0.01), 400, 400, 5, static="graphical lasso"
    )
    said = reach_verdict(Fitted(covariates=("age",), moves=False), gain).paragraph
    assert "above that of the best single graph (graphical lasso)" in said


@pytest.mark.parametrize("moves", [True, False])
def test_no_error_is_more_than_all_of_another_below_it(moves):
    """As that of curves may be, in units of the error of their own average."""
    gain = gf.ModelGain(Gain(0.1, 0.02), Gain(2.7, 0.5), Gain(0.4, 0.01), 400, 400, 5)
    said = reach_verdict(Fitted(covariates=("age",), moves=moves), gain).paragraph
    assert "25 % of that of the best single graph (graphical lasso)" in said
    assert "270" not in said


@pytest.mark.slow
def test_the_best_single_graph_is_not_compared_with_itself():
    X, Z = chain(200, 0.0, seed=1)
    auto = gf.AutoCGM(candidates=("linear",)).fit(X, Z)
    assert list(auto.chosen_) == ["static"]
    for model in (gf.GraphicalLasso(), auto):
        found = gf.gain_over_one_graph(model, X, Z, n_folds=1)
        assert (found.static, found.over_static) == ("graphical lasso", None)
        told = reach_verdict(Fitted(covariates=("age",), moves=False), found).paragraph
        assert "best single graph" not in told
    for model in (gf.GraphicalLasso(penalty=0.3), gf.NodewiseLasso()):
        assert gf.gain_over_one_graph(model, X, Z, n_folds=1).over_static is not None


def test_a_model_is_judged_on_its_own_nodes():
    X, Z = chain(200, 0.0)
    model = gf.RegGMM().fit(X, Z)
    with pytest.raises(gf.DataError):
        gf.judge(model, X.iloc[:, :2], Z)
    with pytest.raises(NotFittedError):
        gf.judge(gf.RegGMM(), X, Z)
