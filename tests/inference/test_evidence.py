"""Does the graph depend on z: p-values that are uniform when it does not, power when it does, plain words."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.linear_model import Ridge

import graphfield as gf
from conftest import REAL_DATA, small_data
from graphfield.cli import main
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame
from graphfield.data.splits import folds
from graphfield.inference import running_tests
from graphfield.inference.covariate_basis import smooth_covariates, spline_columns, whitened
from graphfield.inference.evidence import covariate_sentence, verdict
from graphfield.inference.held_out_gain import Gain, _Comparison, held_out_gains
from graphfield.inference.rearrange import Rows, Scheme, schemes_of
from graphfield.inference.score_test import combined_p_value
from graphfield.inference.verdict import reach_verdict
from graphfield.numbers import p_text
from graphfield.report import words, write_report

FEW = {"n_permutations": 39, "random_state": 0}


def chain(rng, n, strength, p=4):
    """Each node follows the one before it."""
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += strength * X[:, j - 1]
    return X


@pytest.fixture(scope="module")
def found():
    X, Z = small_data(400, p=4)
    return gf.dependence_test(X, Z.assign(noise=np.random.default_rng(1).normal(size=400)), n_permutations=99)


def test_the_question_of_a_p_value_is_said(found):
    assert "all covariates together, then each given the others" in str(found)
    alone = replace(found, together=("age",), per_covariate=found.per_covariate[:1])
    assert "that of age alone, which beside other covariates may be another" in str(alone)


def test_filled_in_values_are_no_evidence_for_what_says_where_the_gaps_are(tmp_path, capsys):
    """One graph for all, of which much is missing where b is 1: filled in, edges are weaker there."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(1500, 1)) + rng.normal(size=(1500, 4)), columns=list("ACDE"))
    Z = pd.DataFrame({"b": rng.integers(0, 2, 1500)})
    gaps = X.assign(A=X.A.mask((Z.b == 1) & (rng.random(1500) < 0.7)))
    with pytest.warns(gf.DataWarning, match="Imputed"):
        found = gf.dependence_test(gaps, Z, missing="impute", **FEW)
    assert found.p_value <= 0.05
    assert found.verdict == found.covariates.verdict["b"] == "not known"
    missing = int(gaps.A.isna().sum())
    assert f"{missing} of {(Z.b == 1).sum()} values are missing where it is '1'" in str(found)
    assert "missing='drop'" in str(found)
    with pytest.warns(gf.DataWarning, match="Dropped"):
        assert gf.dependence_test(gaps, Z, missing="drop", **FEW).filled_in == ""
    by_chance = X.assign(A=X.A.mask(rng.random(1500) < 0.3))
    with pytest.warns(gf.DataWarning, match="Imputed"):
        assert gf.dependence_test(by_chance, Z, missing="impute", **FEW).filled_in == ""
    table = tmp_path / "table.csv"
    gaps.join(Z).to_csv(table, index=False)
    main(["evidence", str(table), "--covariates", "b", "--missing", "impute", "--permutations", "39"])
    said = capsys.readouterr().out
    assert "Not known. As if filled-in values had been seen" in said
    assert "--missing drop" in said
    assert "missing='drop'" not in said


def test_what_is_there_is_found_and_what_is_not_is_not(found):
    assert found.verdict == "strong evidence"
    assert found.p_value == 0.01
    assert found.gain_over_static.value > 5 * found.gain_over_static.standard_error
    verdicts = found.covariates.verdict
    assert list(verdicts.index) == ["age", "site", "noise"]
    assert verdicts["age"] == "strong evidence"
    assert verdicts["site"] in ("strong evidence", "evidence")
    assert verdicts["noise"] == "no evidence"
    assert (found.covariates.p_value <= found.covariates.adjusted_p_value).all()


def test_words(found):
    text = str(found)
    assert text.startswith(
        "Strong evidence. The graph depends on the covariates (age, site, noise): in ridge regressions, "
        "letting edges vary lowers"
    )
    assert text.lower().count("evidence") == 1, "the answer is given once"
    first, *lines = text.split("\n")
    assert first.endswith("matter; whether noise does cannot be told.")
    assert "  Given the others, no clearer than chance: noise (p" in lines[-2]
    test = (
        "Test: 99 random rearrangements (up to 299 for single covariates): every row gets the covariates of"
    )
    assert f"{test} another row;" in text
    assert "given the others, what each row says for or against movement gets a random sign. p is the" in text


def test_more_rearrangements_of_single_covariates_are_told(found):
    first, *others = found.per_covariate
    more = (replace(first, n_permutations=1299), *(replace(line, n_permutations=199) for line in others))
    evidence = replace(found, n_permutations=199, per_covariate=more)
    told = "199 random rearrangements (up to 1,299 for single covariates): every row"
    assert f"Test: {told}" in str(evidence)
    page = words.evidence(json.loads(evidence.to_json()))["test"][0]
    assert page.endswith("from 199 rearrangements (up to 1,299 for single covariates)")
    same = replace(evidence, n_permutations=1299)
    assert "single covariates)" not in str(same)


def test_one_kind_of_p_value_is_quoted(found):
    """That which decides: a raw one of .03 beside "cannot be told" would contradict it."""
    lines = [line for line in found.details() if line.startswith("  ")]
    assert len(lines) == 3
    text = "\n".join(lines)
    for line in found.per_covariate:
        assert p_text(line.adjusted_p_value) in text
    assert text.count("p = ") + text.count("p < ") == 3
    assert all("adjusted for the number of covariates" in line for line in lines)


def test_what_is_not_seen_of_all_is_not_to_be_told_apart(found):
    lines = tuple(replace(line, p_value=0.4, adjusted_p_value=1.0) for line in found.per_covariate)
    none = replace(found, p_value=0.5, verdict="no evidence", per_covariate=lines)
    assert "cannot be told" not in str(none)
    assert "Given the others, no clearer than chance: age (p = 1.000), site" in str(none)


def test_strong_evidence_of_all_and_none_of_each_are_reconciled_at_once(found):
    """Of two covariates that go together, neither is clear given the other."""
    lines = tuple(replace(line, p_value=0.1, adjusted_p_value=0.3) for line in found.per_covariate)
    first = str(replace(found, per_covariate=lines)).split("\n")[0]
    assert first.startswith("Strong evidence. ")
    assert first.endswith("Which of the covariates it is cannot be told from 400 rows.")
    assert found.paragraph in str(found)


def test_indicators_of_one_category_are_not_called_chance(found):
    """Each follows from the others, however many rows there are."""
    lines = tuple(replace(line, p_value=None, adjusted_p_value=None) for line in found.per_covariate)
    text = str(replace(found, per_covariate=lines))
    assert "Which of the covariates it is cannot be told: each follows from the others" in text
    assert "from 400 rows" not in text
    assert "chance:" not in text
    assert "nothing is left to test: age, site, noise." in text


def test_json_round_trip(found, tmp_path):
    path = found.save(tmp_path / "evidence.json")
    assert gf.Evidence.from_json(path.read_text()) == found
    values = json.loads(path.read_text())
    assert values["format"] == "graphfield-evidence"
    assert {"name", "gain", "standard_error", "p_value", "verdict", "sentence"} <= set(
        values["covariates"][0]
    )
    with pytest.raises(gf.OutputError, match="already exists"):
        found.save(path)
    with pytest.raises(gf.DataError, match=r"not the text of an evidence\.json"):
        gf.Evidence.from_json(json.dumps({**values, "format_version": 99}))


def test_an_inverted_u_is_seen_and_no_line_follows_it():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, 600)
    result = gf.dependence_test(chain(rng, 600, 0.9 - 1.8 * z**2), z[:, None], **FEW)
    assert result.p_value == 1 / 40
    assert result.gain_over_linear.value > 3 * result.gain_over_linear.standard_error
    assert result.gain_over_linear.value > 0.5 * result.gain_over_static.value


def test_levels_are_compared_with_one_graph_and_with_no_linear_model(tmp_path):
    """What is linear already cannot be better than linear, and nobody calls it smooth."""
    X, Z = small_data(200)
    said = gf.dependence_test(X, Z[["site"]], n_permutations=19, covariates=[])
    assert said.gain_over_linear is None
    assert said.gain_over_static is not None
    assert gf.dependence_test(X, Z[["age"]], n_permutations=19, covariates=[]).gain_over_linear is not None
    model = gf.RegGMM().fit(X, Z[["site"]])
    write_report(model, tmp_path / "r.html", evidence=json.loads(said.to_json()))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "smooth functions" not in page
    assert "than a linear model" not in page


def test_units_of_nodes_do_not_matter():
    X, Z = small_data(150, p=4)
    first = gf.dependence_test(X, Z[["age"]], **FEW)
    other = gf.dependence_test(X * [1, 1e3, 1e-3, 7] + 5, Z[["age"]], **FEW)
    assert other.p_value == first.p_value
    assert other.gain_over_static.value == pytest.approx(first.gain_over_static.value, rel=1e-6)


def test_means_and_scales_that_move_are_no_evidence():
    rng = np.random.default_rng(3)
    z = rng.uniform(-1, 1, 400)
    X = chain(rng, 400, 0.6) * np.exp(z)[:, None] + 4 * np.sin(2 * z)[:, None]
    assert gf.dependence_test(X, z[:, None], **FEW).verdict == "no evidence"


def test_subjects_are_exchanged_as_a_whole():
    """Every subject has a graph of its own; that it differs between the halves of z is chance."""
    rng = np.random.default_rng(5)
    label = np.repeat(np.arange(14), 30)
    X = chain(rng, len(label), rng.normal(0, 0.6, 14)[label])
    Z = rng.normal(size=14)[label][:, None]
    by_row, by_group = (gf.dependence_test(X, Z, groups=g, **FEW) for g in (None, label))
    assert by_row.p_value == 1 / 40
    assert by_group.p_value > 0.1
    assert by_group.scheme == "every group gets the covariates of another group"


def test_arrangements_keep_to_their_scheme():
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], [3, 4, 5])
    starts = np.array([0, 3, 7])
    for timed in (False, True):
        for rows in islice(Scheme(Rows(starts, 12, True, timed), between=False).arrangements(rng), 20):
            assert (label[rows] == label).all()
            assert sorted(rows) == list(range(12))
    for rows in islice(Scheme(Rows(starts, 12, True, False), between=True).arrangements(rng), 20):
        whole = pd.DataFrame({"to": label, "from": label[rows]}).drop_duplicates()
        assert sorted(whole["to"]) == sorted(whole["from"]) == [0, 1, 2]
    shifts = list(Scheme(Rows(np.zeros(1, dtype=int), 12, False, True), between=False).arrangements(rng))
    assert len(shifts) == 11
    assert {tuple(rows) for rows in shifts} == {tuple(np.roll(np.arange(12), k)) for k in range(1, 12)}


def test_parts_between_and_within_groups():
    rows = Rows(np.arange(0, 200, 4), 200, True, False)
    rng = np.random.default_rng(0)
    fixed, free = np.repeat(rng.normal(size=50), 4)[:, None], rng.normal(size=(200, 1))
    assert [scheme.between for scheme in schemes_of(fixed, rows)] == [True]
    assert [scheme.between for scheme in schemes_of(free - rows.group_means(free), rows)] == [False]
    both = schemes_of(fixed + free, rows)
    assert [scheme.between for scheme in both] == [True, False]
    np.testing.assert_allclose(sum(scheme.part(fixed + free) for scheme in both), fixed + free)


def test_a_series_says_how_few_shifts_there_are():
    rng = np.random.default_rng(0)
    time = pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d")
    result = gf.dependence_test(
        rng.normal(size=(60, 3)), rng.normal(size=(60, 1)), time=time, n_permutations=199
    )
    assert result.n_permutations == 59
    assert "59 different shifts" in " ".join(result.notes)
    with pytest.raises(gf.DataError, match=r"must hold dates .* or numbers"):
        gf.dependence_test(rng.normal(size=(60, 3)), rng.normal(size=(60, 1)), time=["soon"] * 60)


@pytest.mark.parametrize(("memory", "said"), [(0.5, False), (0.95, True)])
def test_a_series_says_when_it_holds_few_stretches(memory, said):
    rng = np.random.default_rng(2)
    z = np.zeros(400)
    for i in range(1, 400):
        z[i] = memory * z[i - 1] + rng.normal()
    found = gf.dependence_test(
        rng.normal(size=(400, 4)), z[:, None], time=np.arange(400), covariates=[], n_permutations=19
    )
    assert any("independent stretches" in note for note in found.notes) == said


@pytest.mark.parametrize("seed", [0, 2])
def test_levels_of_groups_hide_no_movement(seed):
    """As in a fit, the test is about what varies within a group."""
    rng = np.random.default_rng(seed)
    who, z = np.repeat(np.arange(40), 6), rng.uniform(-1, 1, 240)
    X = rng.normal(size=(240, 4))
    X[:, 1] += 1.2 * z * X[:, 0]
    X += 3 * rng.normal(size=(40, 4))[who]
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        found = gf.dependence_test(
            X, pd.DataFrame({"z": z}), groups=who, covariates=[], n_permutations=39, random_state=0
        )
    assert found.p_value == pytest.approx(2 / 40, abs=0.001)  # the least of two ways with 39 rearrangements


@pytest.mark.slow
def test_few_groups_do_not_make_a_covariate_matter_given_the_others():
    """With signs of groups, a third of such p-values was below .05."""
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        label = np.repeat(np.arange(25), 20)
        factor = rng.normal(size=(500, 1))
        Z = pd.DataFrame(
            {"a": rng.normal(size=25), "b": rng.normal(size=25), "c": rng.choice(["f", "m"], 25)}
        )
        found = gf.dependence_test(
            rng.normal(size=(500, 6)) + factor,
            Z.iloc[label].reset_index(drop=True),
            groups=label,
            covariates=["a", "c"],
            n_permutations=39,
            random_state=seed,
        )
        p_values += list(found.covariates.p_value)
    assert np.mean(np.array(p_values) <= 0.1) < 0.2
    assert 0.35 < np.mean(p_values) < 0.65


def test_a_covariate_of_25_subjects_is_seen_given_another():
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(25), 40)
    age, motion = rng.uniform(-1, 1, 25), rng.normal(size=25)
    X = rng.normal(size=(1_000, 6))
    X[:, 1:] += (0.5 + 0.5 * age)[label, None] * X[:, :-1]
    Z = pd.DataFrame({"age": age[label], "motion": motion[label]})
    found = gf.dependence_test(X, Z, groups=label).covariates
    assert found.p_value["age"] <= 0.01
    assert found.p_value["motion"] > 0.05


def test_too_little_to_tell():
    rng = np.random.default_rng(0)
    few = gf.dependence_test(rng.normal(size=(30, 3)), rng.normal(size=(30, 1)))
    assert few.verdict == "not known"
    assert "30 rows" in few.sentence
    assert str(few).count("test") == 1, "that there was none is said once"
    assert reach_verdict(evidence=few).paragraph == few.sentence, "with the reason"
    assert reach_verdict(evidence=json.loads(few.to_json())).paragraph == few.sentence
    assert gf.Evidence.from_json(few.to_json()) == few
    label = np.repeat(np.arange(6), 20)
    groups = gf.dependence_test(rng.normal(size=(120, 3)), (label % 3)[:, None] * 1.0, groups=label)
    assert groups.verdict == "not known"
    assert "at least 10" in groups.sentence


def test_a_copy_of_another_covariate_cannot_be_told_apart():
    X, Z = small_data(120, p=3)
    result = gf.dependence_test(X, Z[["age"]].assign(years=Z["age"] * 2 + 1), **FEW)
    assert set(result.covariates.verdict) == {"not known"}
    assert result.verdict != "not known"


def test_covariates_by_name():
    X, Z = small_data(120, p=3)
    assert list(gf.dependence_test(X, Z, covariates=["site"], **FEW).covariates.index) == ["site"]
    with pytest.raises(gf.DataError, match="Did you mean 'age'"):
        gf.dependence_test(X, Z, covariates=["agee"])


def test_the_answer_of_a_covariate_that_was_asked_for_is_told(found):
    """First, then that of all together; each is said once."""
    age, site, noise = found.per_covariate
    asked = replace(found, per_covariate=(age,))
    assert asked.paragraph == (
        f"Strong evidence. {age.sentence} All covariates together: strong evidence. {found.sentence}"
    )
    assert str(asked).count("age, given the others") == 1
    none = replace(asked, p_value=0.5, verdict="no evidence")
    assert f"{age.sentence} All covariates together, which may hide one: no evidence. " in none.paragraph
    unseen = replace(found, per_covariate=(noise, site))
    assert unseen.paragraph.startswith(
        f"No evidence. {noise.sentence} {site.verdict.capitalize()}. {site.sentence} All covariates together:"
    )
    assert gf.Evidence.from_json(asked.to_json()) == asked
    for verdict_of in (asked, json.loads(asked.to_json())):
        text = reach_verdict(evidence=verdict_of).paragraph
        assert text.startswith("Together the covariates matter (permutation test, p = .010)."), text
    X, Z = small_data(120, p=3)
    alone = gf.dependence_test(X, Z, covariates=["site"], **FEW)
    assert alone.together == ("age", "site")
    assert " with site, given the others" in alone.paragraph


@pytest.mark.parametrize("kind", ["numbers", pytest.param("levels", marks=pytest.mark.slow)])
def test_the_gain_of_all_covariates_is_the_same_whichever_are_asked_for(kind):
    """It was the best of the models that the single answers needed."""
    X, Z = small_data(150, p=3)
    Z = Z.assign(**dict(zip("ab", np.random.default_rng(0).normal(size=(2, 150)), strict=True)))
    if kind == "levels":
        X = X.assign(**{X.columns[0]: np.where(X.iloc[:, 0] > 0, "yes", "no")})
    every, *some = (
        gf.dependence_test(X, Z, covariates=own, n_permutations=19, random_state=0)
        for own in (None, [], ["site", "b"])
    )
    for found in some:
        assert found.gain_over_static == every.gain_over_static
        assert found.gain_over_linear == every.gain_over_linear
        for line in found.per_covariate:
            assert line.gain == every.covariates.gain[line.name]


def test_a_given_model_is_judged_on_rows_it_has_not_seen():
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, size=(400, 1))
    X = chain(rng, 400, Z[:, 0])
    result = gf.dependence_test(X, Z, covariates=[], model=gf.RegGMM(), **FEW)
    assert result.model_gain_over_static.value > 3 * result.model_gain_over_static.standard_error
    assert result.model_gain_over_linear == Gain(0.0, 0.0)
    with pytest.raises(gf.ParameterError, match="graphfield estimator"):
        gf.dependence_test(X, Z, covariates=[], model=Ridge(), **FEW)


@pytest.mark.parametrize(
    ("p_value", "gain", "word"),
    [
        (0.01, Gain(0.031, 0.01), "strong evidence"),
        (0.01, Gain(0.025, 0.01), "evidence"),
        (0.05, Gain(0.031, 0.01), "evidence"),
        (0.01, Gain(0.01, 0.01), "weak evidence"),
        (0.051, Gain(0.5, 0.01), "no evidence"),
        (None, Gain(0.5, 0.01), "not known"),
    ],
)
def test_thresholds_of_the_verdict(p_value, gain, word):
    assert verdict(p_value, gain) == word


@pytest.mark.parametrize(
    ("raw", "adjusted", "gain", "said", "unsaid"),
    [
        # The verdict is that of the adjusted p-value, and so are the words.
        (0.027, 0.08, Gain(-0.0005, 0.0003), "no more closely than chance allows when so many", "but"),
        (0.027, 0.08, Gain(0.02, 0.001), ", but correlations follow no more", ", and"),
        (
            0.3,
            0.6,
            Gain(0.0001, 0.001),
            "which may be chance, and correlations follow no more",
            "when so many",
        ),
        (
            0.02,
            0.04,
            Gain(-0.0005, 0.0003),
            "(0.05 % higher, standard error 0.03 %), but correlations",
            "raises",
        ),
        (0.02, 0.04, Gain(0.02, 0.001), "and correlations follow more closely than chance", "no more"),
        (0.005, 0.01, Gain(0.02, 0.001), "more closely than in any of 199 rearrangements", "chance"),
    ],
)
def test_words_follow_the_adjusted_p_value(raw, adjusted, gain, said, unsaid):
    test = running_tests.Tested(raw, 199)
    text = covariate_sentence("age", test, adjusted, gain, is_only=False, n_tested=3)
    assert said in text
    assert unsaid not in text
    assert text.startswith("No evidence") == (verdict(adjusted, gain) == "no evidence")
    assert p_text(raw) in text
    assert f"adjusted for the number of covariates, {p_text(adjusted)}" in text


def test_one_covariate_alone_is_not_adjusted():
    test = running_tests.Tested(0.03, 199)
    text = covariate_sentence("age", test, 0.03, Gain(0.02, 0.001), is_only=False, n_tested=1)
    assert text.startswith("Edges move with age, given the others")
    assert "adjusted" not in text
    X, Z = small_data(n=200)
    (line,) = gf.dependence_test(X, Z, covariates=["age"], n_permutations=39).per_covariate
    assert line.adjusted_p_value == line.p_value
    assert "given the others" in line.sentence
    assert "adjusted" not in line.sentence


def test_combined_p_value_is_uniform_whichever_statistic_stands_out():
    rng = np.random.default_rng(0)
    draws = np.exp(rng.normal(size=(500, 2, 20)))
    p_values = [combined_p_value(statistics) for statistics in draws]
    assert kstest(p_values, "uniform").pvalue > 0.01 or abs(np.mean(p_values) - 0.525) < 0.03
    draws[:, 1, 0] = 1e3
    assert {combined_p_value(statistics) for statistics in draws} == {1 / 20}


def test_splines_and_whitening():
    rng = np.random.default_rng(0)
    z = rng.exponential(size=500)
    columns = spline_columns(z, 3)
    assert columns.shape == (500, 3)
    centred = columns - columns.mean(axis=0)
    white = whitened(centred)
    np.testing.assert_allclose(white.T @ white / 500, np.eye(3), atol=1e-8)
    assert whitened(centred, centred).shape == (500, 0)
    apart = whitened(centred[:, 1:], centred[:, :1])
    np.testing.assert_allclose(apart.T @ centred[:, 0], 0, atol=1e-6)


def test_errors_from_gram_matrices_are_those_of_the_residuals():
    rng = np.random.default_rng(0)
    Z = as_frame(rng.normal(size=(120, 2)), "Z")
    encoder = CovariateEncoder().fit(Z)
    smooths = smooth_covariates(encoder, encoder.transform(Z), 2)
    X = rng.normal(size=(120, 3))
    comparison = _Comparison(X, smooths, folds(120, None, 4, shuffle=True), np.arange(120))
    blocks = list(comparison.blocks().values())
    left = comparison._residuals(blocks, [(0.3, 1.0)] * 4)
    direct = [
        np.square(left[rows] / np.sqrt(comparison.mean_squares)).sum() / 3 for _, rows in comparison.splits
    ]
    np.testing.assert_allclose(
        comparison._fold_errors(blocks, (0.3, 1.0), comparison.common), direct, rtol=1e-8
    )
    only = held_out_gains(X, smooths[:1], comparison.splits, np.arange(120), lambda: None)
    assert only.of_covariate["z1"] == only.over_still


def test_command_line(tmp_path, capsys):
    X, Z = small_data(150, p=3)
    table, out = tmp_path / "table.csv", tmp_path / "evidence.json"
    pd.concat([X, Z], axis=1).assign(day=np.arange(150)).to_csv(table, index=False)
    command = ["evidence", str(table), "--covariates", "age,site", "--time", "day", "--permutations", "39"]
    assert main([*command, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "39 random rearrangements" in printed
    assert ": the covariates are shifted in time against the nodes" in printed
    found = gf.Evidence.from_json(out.read_text())
    assert found.n_permutations == 39
    assert str(found) in printed
    assert main([*command, "--only", "site"]) == 0
    asked = capsys.readouterr().out.splitlines()
    assert any(" with site, given the others" in line for line in asked)
    assert not any(" with age, given the others" in line for line in asked)
    assert main([*command, "--only", "sites"]) == 2
    assert "--only names 'sites', which is no covariate here. Did you mean 'site'?" in capsys.readouterr().err
    assert main([*command, "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*command[:5], "days"]) == 2
    assert "Did you mean 'day'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:Groups have levels of their own")  # by chance, in some sets
@pytest.mark.slow
@pytest.mark.parametrize("case", ["rows", "groups", "series"])
def test_p_values_are_uniform_under_a_shuffled_covariate(case):
    p_values = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = 160
        label = np.repeat(np.arange(20), 8)
        X = chain(rng, n, rng.normal(0.3, 0.3, 20)[label] if case == "groups" else 0.5)
        z = rng.normal(size=20)[label] if case == "groups" else rng.normal(size=n)
        keys = {"rows": {}, "groups": {"groups": label}, "series": {"time": np.arange(n)}}[case]
        p_values.append(gf.dependence_test(X, z[:, None], covariates=[], n_permutations=99, **keys).p_value)
    assert kstest(p_values, "uniform").pvalue > 0.01


def real_data(name):
    """Real data are found by an environment variable that names their folder; absent, the test is skipped."""
    folder = REAL_DATA
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"set GRAPHFIELD_DATA to the folder of {name}.npz")
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


@pytest.mark.slow
def test_no_evidence_for_vix():
    d = real_data("sp100_2001_2023")
    vix = d["z_num"][:, [list(d["z_num_names"]).index("vix")]]
    result = gf.dependence_test(d["x"].astype(float), vix.astype(float), time=d["time"])
    assert result.verdict == "no evidence"


@pytest.mark.slow
def test_strong_evidence_for_age():
    d = real_data("nhanes_biomarkers")
    Z = pd.DataFrame(d["z_num"].astype(float), columns=[str(name) for name in d["z_num_names"]])
    result = gf.dependence_test(d["x"].astype(float), Z[["age", "bmi"]], missing="error")
    assert result.covariates.verdict["age"] == "strong evidence"
    assert replace(result, notes=()).gain_over_static.value > 0.015
