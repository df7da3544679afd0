"""Bad input gets an error that names the column, the row or the option."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli.words import render_for_shell


def test_different_lengths(estimator, data):
    X, Z = data
    with pytest.raises(gf.DataError, match="X has 120 rows and Z has 100"):
        estimator().fit(X, Z.iloc[:100])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_or_infinite_values_name_column_count_and_way_out(estimator, data, value):
    X, Z = data[0].copy(), data[1].copy()
    X.loc[[3, 5], "n1"] = value
    Z.loc[7, "age"] = value
    with pytest.raises(gf.DataError) as error:
        estimator().fit(X, Z)
    for part in ("'n1' has 2 (first at row 3)", "'age' has 1 (first at row 7)", "missing='drop'"):
        assert part in str(error.value)


def test_missing_drop_equals_fitting_the_complete_rows(quick, data):
    X, Z = data[0].copy(), data[1].copy()
    X.loc[[3, 5], "n1"] = np.nan
    Z.loc[7, "site"] = None
    with pytest.warns(gf.DataWarning, match="Dropped 3 of 120 rows"):
        dropped = quick(missing="drop").fit(X, Z)
    complete = X.notna().all(axis=1) & Z.notna().all(axis=1)
    expected = quick().fit(X[complete], Z[complete])
    np.testing.assert_array_equal(dropped.predict_coef(data[1]), expected.predict_coef(data[1]))
    with pytest.warns(gf.DataWarning):
        assert np.isfinite(dropped.score(X, Z))


def test_missing_impute_fills_medians_and_modes(quick, data):
    X, Z = data[0].copy(), data[1].copy()
    X.loc[3, "n1"], Z.loc[7, "site"] = np.nan, None
    filled = X.fillna({"n1": X.n1.median()}), Z.fillna({"site": Z.site.mode()[0]})
    with pytest.warns(gf.DataWarning, match="Imputed"):
        imputed = quick(missing="impute").fit(X, Z)
    expected = quick().fit(*filled)
    np.testing.assert_array_equal(imputed.predict_coef(data[1]), expected.predict_coef(data[1]))


def test_text_in_a_node_column(estimator, data):
    X = data[0].astype({"n2": object})
    X.loc[4, "n2"] = "high"
    with pytest.raises(gf.DataError, match="'n2' must hold numbers, but row 4 holds 'high'"):
        estimator().fit(X, data[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda Z: Z.rename(columns={"age": "agee"}),
            "lacks 'age' and has unexpected 'agee'.*Should 'agee' be called 'age'",
        ),
        (lambda Z: Z.drop(columns="site"), "lacks 'site'"),
        (lambda Z: Z.assign(extra=1), "unexpected 'extra'"),
        (lambda Z: Z.to_numpy()[:, :1], "1 features, but graphfield is expecting 2"),
        (lambda Z: Z["age"], "1-D"),
        (lambda Z: Z.assign(age=np.nan), "'age' has 120"),
        (lambda Z: Z.assign(age="old"), "'age' was numeric in fit, but now holds 'old'"),
    ],
)
def test_columns_at_prediction(fitted, data, change, message):
    with pytest.raises(gf.DataError, match=message):
        fitted.predict_coef(change(data[1]))


def test_an_unknown_category_is_named(data):
    model = gf.DNNCGM(rank=None, max_steps=5).fit(*data)
    with pytest.raises(gf.DataError, match=r"'site' has 'D'.*Known: 'A', 'B', 'C'"):
        model.predict_coef(pd.DataFrame({"age": [50.0], "site": ["D"]}))


def test_one_dimensional_covariates(estimator, data):
    with pytest.raises(gf.DataError, match=r"Z\.reshape\(-1, 1\)"):
        estimator().fit(data[0], data[1]["age"].to_numpy())


def test_one_node_few_rows_constant_node(estimator, data):
    X, Z = data
    with pytest.raises(gf.DataError, match="at least 2 nodes"):
        estimator().fit(X[["n0"]], Z)
    with pytest.raises(gf.DataError, match="n_samples = 9"):
        estimator().fit(X.iloc[:9], Z.iloc[:9])
    with pytest.raises(gf.DataError, match="'n3' has the same value"):
        estimator().fit(X.assign(n3=1.5), Z)


def test_duplicate_names_and_double_roles(estimator, data):
    X, Z = data
    twice = X.copy()
    twice.columns = ["n0", "n0", *X.columns[2:]]
    with pytest.raises(gf.DataError, match="more than one column called 'n0'"):
        estimator().fit(twice, Z)
    with pytest.raises(gf.DataError, match="'age': in X and in Z"):
        estimator().fit(X.assign(age=Z.age), Z)


def test_constant_covariates(quick, data):
    X, Z = data
    with pytest.warns(gf.DataWarning, match="'year' is constant"):
        quick().fit(X, Z.assign(year=2020))
    with pytest.raises(gf.DataError, match="'year' has the same value"):
        quick().fit(X, Z.assign(year=2020)[["year"]])


def _dates(Z):
    day = pd.Series(pd.date_range("2020-01-01", periods=len(Z)))
    return day, (day - pd.Timestamp("1970-01-01")).dt.days.astype(float)


def test_dates_are_days(quick, data):
    X, Z = data
    day, days = _dates(Z)
    expected = quick().fit(X, Z.assign(day=days)).predict_coef(Z.assign(day=days))
    model = quick().fit(X, Z.assign(day=day))
    for form in (day, days):
        np.testing.assert_array_equal(model.predict_coef(Z.assign(day=form)), expected)
    if model.field_.uses_covariates:
        with pytest.raises(gf.DataError, match="'day' was a date in fit, but now holds 'yesterday'"):
            model.predict_coef(Z.assign(day="yesterday"))


def test_dates_are_days_whether_they_come_as_dates_or_as_text(data):
    X, Z = data
    day, days = _dates(Z)
    expected = gf.RegGMM().fit(X, Z.assign(day=days)).predict_coef(Z.assign(day=days))
    for form in (day, day.dt.strftime("%Y-%m-%d"), pd.Series(day.dt.date, dtype=object)):
        model = gf.RegGMM().fit(X, Z.assign(day=form))
        np.testing.assert_array_equal(model.predict_coef(Z.assign(day=form)), expected)
    np.testing.assert_array_equal(model.predict_coef(Z.assign(day=days)), expected)
    with pytest.raises(gf.DataError, match="'day' was a date in fit, but now holds 'yesterday'"):
        model.predict_coef(Z.assign(day="yesterday"))


def test_identifiers_and_lengths_of_time_as_covariates(estimator, data):
    X, Z = data
    with pytest.raises(gf.DataError, match="'late' holds lengths of time"):
        estimator().fit(X, Z.assign(late=pd.to_timedelta(np.arange(len(Z)), unit="h")))
    with pytest.raises(gf.DataError, match=r"'day' holds dates, but row 2 holds '2020-02-30'"):
        estimator().fit(X, Z.assign(day=[f"2020-02-{28 + i % 3}" for i in range(len(Z))]))
    with pytest.raises(gf.DataError, match="'id' has a different text in every row"):
        estimator().fit(X, Z.assign(id=[f"subject {i}" for i in range(len(Z))]))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dropout": -0.1}, "dropout must be a number in"),
        ({"dropout": 1.0}, "dropout"),
        ({"hidden_size": 0}, "hidden_size must be a whole number"),
        ({"network": "residul"}, "Did you mean 'residual'"),
        ({"sharing": "none"}, "sharing must be one of"),
        ({"loss": "mse"}, "loss must be one of 'squared', 'huber'"),
        ({"center": True}, "center must be one of"),
        ({"standardize": "yes"}, "standardize must be True or False"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"batch_size": 1}, "batch_size"),
        ({"max_steps": 2.5}, "max_steps must be a whole number"),
        ({"schedule": ("step", 20)}, "schedule must be"),
        ({"patience": 0}, "patience"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"penalty": -1}, r"penalty must be a number in \[0, inf\) or 'auto', got -1"),
        ({"penalty": "none"}, "or 'auto', got 'none'"),
        ({"rank": 0}, r"rank must be a whole number in \[1, inf\), 'auto' or None, got 0"),
        ({"rank": "all"}, "'auto' or None, got 'all'"),
        (
            {"marginals": "gaussian"},
            "marginals must be one of 'auto', 'raw', 'normal', 'log1p', 'clr', got 'gaussian'",
        ),
        ({"marginals": True}, "marginals must be one of"),
        ({"marginals": "normal", "center": "none"}, "needs standardize=True and center='covariates'"),
        ({"marginals": "normal", "standardize": False}, "standardize=False .* use marginals='raw'"),
        ({"network": "residual_plain"}, "Did you mean 'residual-plain'"),
        ({"missing": "ignore"}, "missing must be one of"),
        ({"device": "tpu"}, "device must be"),
        ({"learning_rate": np.inf}, "learning_rate"),
        ({"random_state": "seed"}, "random_state"),
        ({"network": "linear", "sharing": "edge"}, "sharing only applies"),
    ],
)
def test_hyper_parameters(data, params, message):
    with pytest.raises(gf.ParameterError, match=message):
        gf.DNNCGM(**params).fit(*data)


@pytest.mark.parametrize("threshold", ["gapp", [0.1], -0.1, np.nan, True])
def test_thresholds(fitted, data, threshold):
    with pytest.raises(gf.ParameterError, match="threshold must be"):
        fitted.predict_graph(data[1], threshold=threshold)


def test_rules(fitted, data):
    with pytest.raises(gf.ParameterError, match="rule must be one of 'and', 'or'"):
        fitted.predict_graph(data[1], threshold=0.1, rule="xor")


def test_one_graph_needs_every_covariate(fitted):
    with pytest.raises(gf.DataError, match="lacks 'site'"):
        fitted.to_networkx({"age": 50})
    with pytest.raises(gf.DataError, match="has unknown 'Age'"):
        fitted.to_networkx({"Age": 50, "age": 50, "site": "A"})
    with pytest.raises(gf.DataError, match="got 2 rows"):
        fitted.to_networkx(pd.DataFrame({"age": [1.0, 2.0], "site": ["A", "B"]}))


def test_groups_must_fit_the_rows(estimator, data):
    with pytest.raises(gf.DataError, match="one label per row"):
        estimator().fit(*data, groups=[1, 2, 3])
    with pytest.raises(gf.DataError, match="one label only"):
        estimator().fit(*data, groups=[1] * 120)


def test_rows_in_another_order_are_not_paired_silently(estimator, fitted, data):
    X, Z = data
    shuffled = Z.sample(frac=1, random_state=0)
    with pytest.raises(gf.DataError, match="same row labels in a different order"):
        estimator().fit(X, shuffled)
    with pytest.raises(gf.DataError, match="same row labels in a different order"):
        fitted.score(X, shuffled)
    with pytest.raises(gf.DataError, match="same row labels in a different order"):
        estimator().fit(X, Z, groups=pd.Series(np.arange(120) // 4).sample(frac=1, random_state=0))


def test_rows_with_labels_in_one_table_alone_are_paired_by_place(quick, data):
    X, Z = data
    quick().fit(X.set_axis([f"row {i}" for i in range(120)]), Z)


@pytest.mark.parametrize("value", [1e300, -1e200])
def test_values_too_large_to_compute_with(estimator, data, value):
    X = data[0].copy()
    X.loc[17, "n2"] = value
    with pytest.raises(gf.DataError, match="Node 'n2' cannot be computed with: row 17"):
        estimator().fit(X, data[1])
    with pytest.raises(gf.DataError, match="Node 'n0' cannot be computed with"):
        estimator().fit(data[0].assign(n0=data[0].n0 * 1e-300), data[1])


def test_text_that_was_meant_to_be_numbers(quick, data):
    X, Z = data
    odd = Z.astype({"age": object})
    odd.loc[5, "age"] = "."
    with pytest.raises(gf.DataError, match=r"'age' holds numbers, but row 5 holds '\.'"):
        quick().fit(X, odd)
    with pytest.raises(gf.DataError, match="'age' holds numbers stored as text"):
        quick().fit(X, Z.assign(age=Z.age.round().astype(int).astype(str)))
    quick().fit(X, Z.assign(site=np.tile(["1", "2", "3"], 40)))


def test_a_row_of_a_part_is_named_as_in_the_whole_table():
    """Only in the first cluster, after a row that is left out, are most levels numbers."""
    rng = np.random.default_rng(0)
    first = rng.random(240) < 0.5
    code = np.where(first, rng.choice(["1", "2", "3", "x"], 240), rng.choice(["a", "b", "c", "d"], 240))
    X, Z = rng.normal(size=(240, 4)), pd.DataFrame({"part": np.where(first, "p", "q"), "code": code})
    X[0, 0] = np.nan
    row = 1 + int(np.argmax(code[1:] == "x"))
    by_part = gf.ByCluster(estimator=gf.RegGMM(), by="part", missing="drop")
    with (
        pytest.warns(gf.DataWarning, match="Dropped 1 of 240 rows"),
        pytest.raises(gf.DataError, match=rf"cluster part = 'p' .* but row {row} holds 'x'"),
    ):
        by_part.fit(X, Z)


def test_rows_of_the_users_own_held_out_table_are_named_as_they_came(data):
    (X, Z), model = data, gf.RegGMM(missing="drop")
    own, Z_own = X[:20].astype({"n2": object}), Z[:20]
    own.loc[3, "n1"] = np.nan
    with pytest.raises(gf.DataError, match="'n2' must hold numbers, but row 8 holds 'high'"):
        model.fit(X, Z, X_val=own.assign(n2=own["n2"].where(own.index != 8, "high")), Z_val=Z_own)
    far = own.assign(n2=own["n2"].where(own.index != 8, 1e40))
    with (
        pytest.warns(gf.DataWarning, match="Dropped 1 of 20 rows"),
        pytest.raises(gf.DataError, match="'n2' of X_val cannot be computed with: row 8 holds"),
    ):
        model.fit(X, Z, X_val=far, Z_val=Z_own)


def test_empty_text_is_missing(estimator, data):
    X, Z = data
    with pytest.raises(gf.DataError, match=r"'site' has 1 \(first at row 3\)"):
        estimator().fit(X, Z.assign(site=Z.site.where(Z.index != 3, " ")))


def test_far_outside_the_training_range(fitted, data):
    Z = data[1].iloc[:1]
    edge = fitted.partial_correlations(Z.assign(age=85.0))
    if (
        not fitted.field_.uses_covariates
    ):  # no range matters to one graph for everybody, and warnings are errors
        np.testing.assert_array_equal(fitted.partial_correlations(Z.assign(age=1000.0)), edge)
        return
    with pytest.warns(gf.ExtrapolationWarning, match="'age' was between .* far outside .*1000"):
        far = fitted.partial_correlations(Z.assign(age=1000.0))
    assert np.abs(far).max() <= 1
    np.testing.assert_allclose(far, edge, atol=0.2)


@pytest.mark.filterwarnings("ignore:The chains of BayesianCGM:graphfield.TrainingWarning")
def test_copies_of_a_node_have_partial_correlations_of_at_most_one(quick, data):
    X, Z = data
    noise = 1e-3 * np.random.default_rng(0).normal(size=120)
    model = quick().fit(X.assign(copy=X.n2 + noise), Z)
    assert model.edge_weights(Z).max() <= 1


def test_rows_without_a_label_are_left_out_with_gaps(data):
    X, Z = data
    groups = pd.Series(np.arange(120) % 30, dtype=object)
    groups[[3, 8]] = None
    gaps = X.copy()
    gaps.loc[[8, 50], "n1"] = np.nan
    model = gf.RegGMM(missing="drop")
    with pytest.warns(gf.DataWarning) as said:
        found = model.fit(gaps, Z, groups=groups)
    assert any("Dropped 1 row without the label of a group." in str(one.message) for one in said)
    left = np.setdiff1d(np.arange(120), [3, 8, 50])
    whole = gf.RegGMM().fit(X.iloc[left], Z.iloc[left], groups=groups[left])
    np.testing.assert_array_equal(found.edge_weights(Z), whole.edge_weights(Z))
    with pytest.warns(gf.DataWarning, match="Dropped"):
        dropped = gf.infer_edges(gaps, Z, groups=groups, missing="drop")
    same = gf.infer_edges(X.iloc[left], Z.iloc[left], groups=groups[left])
    np.testing.assert_array_equal(dropped.table.p_value, same.table.p_value)
    with pytest.raises(gf.DataError, match="missing label"):
        gf.infer_edges(X, Z, groups=groups)


def test_labels_fractions_and_rows_that_make_no_sense(fitted, data):
    X, Z = data
    with pytest.raises(
        gf.DataError, match=r"1 missing label \(first at row 0\)\. Use missing='drop' to leave this row out"
    ):
        gf.DNNCGM(max_steps=5).fit(X, Z, groups=[None, *range(119)])
    with pytest.raises(gf.ParameterError, match="leaves no rows to train on"):
        gf.DNNCGM(max_steps=5, validation_fraction=0.999).fit(X, Z)
    with pytest.raises(gf.DataError, match="have no rows"):
        gf.DNNCGM(max_steps=5).fit(X, Z, X_val=X[:0], Z_val=Z[:0])
    with pytest.raises(gf.DataError, match="at least 2 rows, got 1"):
        fitted.score(X[:1], Z[:1])
    assert fitted.predict_coef(Z[:0]).shape == (0, 6, 6)
    with pytest.raises(gf.ParameterError, match="which no memory holds"):
        gf.DNNCGM(hidden_size=10**9).fit(X, Z)


def test_things_that_are_no_tables(estimator, fitted, data):
    with pytest.raises(gf.DataError, match=r"gf\.from_table\('t\.csv'"):
        estimator().fit("t.csv", data[1])
    with pytest.raises(gf.DataError, match=r"pandas\.DataFrame"):
        fitted.predict_coef({"age": 50, "site": "A"})
    with pytest.raises(gf.DataError, match="not a rectangular table"):
        estimator().fit([[1, 2], [3]], data[1])


def test_half_a_validation_set(data):
    with pytest.raises(gf.DataError, match="given together"):
        gf.DNNCGM(max_steps=5).fit(*data, X_val=data[0])


@pytest.mark.parametrize("texts", [["$1,499", "$12"], ["12 %", "7.5 %"]])
def test_numbers_with_a_currency_or_a_percent_sign_say_so(texts):
    X = pd.DataFrame({"a": np.arange(20.0), "b": texts * 10})
    with pytest.raises(gf.DataError, match=r"Node column 'b' must hold numbers.*without unit, percent"):
        gf.GraphicalLasso().fit(X, pd.DataFrame({"z": np.arange(20.0)}))


@pytest.mark.parametrize("groups", [iter(range(120)), 3, np.zeros((120, 2)), [1, 2, 3]])
def test_groups_that_are_no_labels_are_refused_where_gaps_are_dropped(data, groups):
    with pytest.raises(gf.DataError, match=r"groups must hold one label per row of X \(120\)"):
        gf.RegGMM(missing="drop").fit(*data, groups=groups)


TELL_LEVELS = [
    gf.KernelCGM(bandwidth=1.0, penalty=0.2),
    gf.BayesianCGM(n_sweeps=10, n_draws=8, inclusion=0.5, slab=0.3, random_state=0),
    gf.RegGMM(),
    gf.TreeCGM(max_leaves=1, random_state=0),
]


@pytest.mark.parametrize("model", TELL_LEVELS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore::graphfield.TrainingWarning", "ignore::graphfield.ThresholdWarning")
def test_levels_with_hardly_a_row_are_named(model):
    """The method, what it needs, what it got, and what to do, also in the words of the shell."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    site = pd.Series(["usual", "other"] * 185 + [f"s{i}" for i in range(30)])
    with pytest.warns(gf.DataWarning) as told:
        model.fit(X, pd.DataFrame({"site": site, "age": X.sum(axis=1)}))
    assert len([one for one in told if issubclass(one.category, gf.DataWarning)]) == 1
    said = told[0].message.args[0]
    assert said.startswith(f"{type(model).__name__} needs 2 rows of a level at least")
    assert "30 of the 32 levels of covariate 'site' have fewer: 's0' (1), 's1' (1)" in said
    assert said.endswith(
        "and 24 more. Their graphs are guesses. Pool rare levels with from_table(..., rare=5)."
    )
    assert render_for_shell(said, argparse.Namespace(rare=None)).endswith("Pool rare levels with --rare 5.")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"a": 100, "b": 50, "c": 1}, "1 of the 3 levels .* has fewer: 'c' .1.. Its graph .* Merge levels"),
        ({"a": 100, "b": 1}, "1 of the 2 levels .* Merge levels that are alike in meaning, or leave"),
        ({f"s{i}": 4 for i in range(30)}, "needs 5 rows .* 30 of the 30 levels .* Merge levels"),
        ({"a": 100, "b": 1, "c": 7}, r"1 of the 3 levels .* Pool rare levels with from_table\(..., rare=8\)"),
    ],
)
def test_pooling_is_advised_where_it_helps(sizes, message):
    site = np.repeat(list(sizes), list(sizes.values()))
    X = np.random.default_rng(0).normal(size=(len(site), 3))
    with pytest.warns(gf.DataWarning, match=message):
        gf.RegGMM().fit(X, pd.DataFrame({"site": site}))


@pytest.mark.parametrize("sizes", [{"a": 100, "b": 2, "c": 3}, {f"s{i}": 5 for i in range(30)}])
def test_levels_with_some_rows_need_no_words(sizes):
    site = np.repeat(list(sizes), list(sizes.values()))
    X = np.random.default_rng(0).normal(size=(len(site), 3))
    gf.RegGMM().fit(X, pd.DataFrame({"site": site}))
