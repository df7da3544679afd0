"""The field of a fitted model: a value that says what the model says, and that algebra makes others of."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import ESTIMATORS, small_data
from graphfield import analysis as an
from graphfield.cli import main
from graphfield.estimators.registry import ESTIMATORS as REGISTERED
from graphfield.estimators.registry import candidates, entry_of, find_estimator
from graphfield.fields.average import average
from graphfield.fields.streaming import evaluation_rows
from graphfield.report import write_report
from toy_estimator import TOY, Correlations

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


def test_a_field_says_what_its_model_says(fitted, data):
    X, Z = data
    field = fitted.field_
    here = field.at(Z)
    np.testing.assert_array_equal(here.partial_correlations, fitted.partial_correlations(Z))
    np.testing.assert_allclose(here.scales * here.units, fitted.predict_scale(Z))
    assert (field.schema.node_names, field.schema.encoder.names) == (list(X.columns), list(Z.columns))
    assert field.threshold is fitted.threshold_
    with pytest.raises(dataclasses.FrozenInstanceError):
        field.common = None


def test_analysis_takes_a_field_for_a_model(fitted, data):
    Z = data[1]
    one, other = Z.iloc[0].to_dict(), Z.iloc[1].to_dict()
    questions = (
        lambda asked: an.graph_at(asked, one),
        lambda asked: an.compare(asked, one, other),
        lambda asked: an.connectivity(asked, Z, ["density", "mean_strength"]),
        lambda asked: an.varying_edges(asked, Z),
        lambda asked: an.average_graph(asked, Z),
    )
    for question in questions:
        pd.testing.assert_frame_equal(question(fitted.field_), question(fitted))


def test_rows_that_are_alike_have_the_same_graph(fitted, data):
    field, Z = fitted.field_, data[1]
    rows = field.rows(Z)
    distinct, index = field.distinct(rows)
    np.testing.assert_array_equal(field.at(distinct).weights[index], field.at(rows).weights)


def test_distinct_rows_are_passed_on_and_not_copied(fitted, data):
    _, Z = data
    rows = fitted.field_.rows(Z[:3])
    distinct, index = fitted.field_.distinct(rows)
    assert (distinct is rows) == (len(distinct) == 3)
    one = fitted.field_.rows(Z[:1])
    assert fitted.field_.distinct(one)[0] is one
    assert index[0] == 0


def test_one_z_costs_a_small_block():
    assert all(evaluation_rows(p) * p**2 <= 640_000 for p in (50, 100, 200))
    assert evaluation_rows(5_000) == 1


def test_an_average_of_averages_is_an_average(data):
    X, Z = data
    fields = [model.fit(X, Z).field_ for model in (gf.RegGMM(), gf.RegGMM(ridge=10.0), gf.GraphicalLasso())]
    common = fields[0].common
    at_once = average(common, fields, [0.25, 0.25, 0.5])
    in_steps = average(common, [average(common, fields[:2], [1, 1]), fields[2]], [1, 1])
    np.testing.assert_allclose(in_steps.at(Z).weights, at_once.at(Z).weights, atol=1e-6)
    np.testing.assert_allclose(in_steps.at(Z).scales, at_once.at(Z).scales, rtol=1e-6)


def test_members_of_a_model_of_scores_take_the_users_nodes(data):
    X, Z = np.exp(data[0] / data[0].std()), data[1]
    single = gf.DNNCGM(rank=None, max_steps=10, hidden_size=8, marginals="normal", device="cpu")
    model = gf.Ensemble(estimator=single, n_members=2, random_state=0).fit(X, Z)
    assert model.marginals_ == "normal"
    for member in model.members_:
        assert member.score(X, Z) == pytest.approx(model.score(X, Z), abs=0.2)
        assert (member.predict(X, Z) >= X.min().to_numpy()).all()


# -- a new estimator is one file and one line -------------------------------------------------------


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(REGISTERED, "Correlations", TOY)
    return Correlations


def test_a_toy_estimator_goes_through_everything(toy, data, tmp_path):
    X, Z = data
    model = toy(shrink=0.2).fit(X, Z)
    assert find_estimator("Correlations") is toy
    again = gf.load(model.save(tmp_path / "model"))
    assert isinstance(again, toy)
    assert again.shrink == 0.2
    np.testing.assert_array_equal(again.predict_coef(Z), model.predict_coef(Z))
    page = write_report(again, tmp_path / "page.html", Z=Z).read_text()
    assert all(said in page for said in ("n0", "one graph for everybody", "Correlated"))
    assert entry_of(again).how == "what correlates is joined"
    assert len(an.graph_at(again, Z.iloc[0].to_dict())) == X.shape[1]
    with pytest.raises(gf.ParameterError, match="shrink must be a number"):
        toy(shrink=2.0).fit(X, Z)
    assert gf.Correlations is toy
    assert "Correlations" in dir(gf)
    compared = gf.AutoCGM(candidates=("correlations",), random_state=0).fit(X, Z)
    assert "correlations" in list(compared.held_out_.model)
    averaged = gf.Ensemble(estimator=toy(), n_members=2, resample=True, random_state=0).fit(X, Z)
    assert averaged.spread(Z[:2]).shape == (2, X.shape[1], X.shape[1])


def test_a_toy_estimator_is_fitted_from_the_command_line(toy, data, tmp_path):
    X, Z = data
    pd.concat([X, Z], axis=1).to_csv(tmp_path / "t.csv", index=False)
    asked = ["fit", tmp_path / "t.csv", "--covariates", ",".join(Z), "--model", "correlations"]
    main([str(word) for word in [*asked, "--set", "shrink=0.2", "--out", tmp_path / "model"]])
    again = gf.load(tmp_path / "model")
    assert isinstance(again, toy)
    assert again.shrink == 0.2


@pytest.mark.slow
def test_a_toy_estimator_keeps_the_contract(tmp_path):
    """The tests of the battery that ask an estimator, in a process that has it in the registry."""
    tests = Path(__file__).parents[1]
    (tmp_path / "test_toy.py").write_text(
        "import inspect\n"
        "import pytest\n"
        "import test_contract\n"
        "from graphfield.estimators.registry import ESTIMATORS\n"
        "from toy_estimator import TOY, Correlations\n"
        "ESTIMATORS['Correlations'] = TOY\n"
        "pytestmark, again = test_contract.pytestmark, test_contract.again\n"
        "estimator = pytest.fixture(scope='session')(lambda: Correlations)\n"
        "quick = pytest.fixture(scope='session')(lambda: Correlations)\n"
        "for name, test in vars(test_contract).items():\n"
        "    if name.startswith('test_') and {'estimator', 'quick', 'fitted', 'again'} & set(\n"
        "        inspect.signature(test).parameters\n"
        "    ):\n"
        "        globals()[name] = test\n"
    )
    path = os.pathsep.join(map(str, [tests, tests / "estimators"]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider"]
    command += ["-c", str(tests.parent / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]
    assert done.stdout.count(".") > 30, "so many tests"


# -- what follows from one place ---------------------------------------------------------------------


def test_every_estimator_is_in_the_battery():
    in_battery = {type(make()).__name__ for make in ESTIMATORS.values()}
    assert in_battery == {name for name, entry in REGISTERED.items() if entry.is_there}


def test_candidates_are_those_of_the_registry():
    assert [*candidates()] == [entry.command for entry in REGISTERED.values() if entry.candidate is not None]


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_every_parameter_is_declared_and_refuses_what_it_cannot_be(name):
    kind = find_estimator(name)
    if not REGISTERED[name].is_there:
        pytest.skip(f"{REGISTERED[name].needs} is not installed")
    assert kind.parameter_names() == sorted(kind().get_params(deep=False))
    X, Z = small_data(30)
    for given in kind.parameter_names():
        for value in (object(), -7.5, float("nan"), [], {}, "no such word", b"x", (1, -2)):
            with pytest.raises(gf.ParameterError, match=given):
                kind(**{given: value}).fit(X, Z)


def test_the_state_of_a_field_is_plain(fitted):
    header, arrays = fitted.field_.state()
    assert header["kind"] == fitted.field_.kind
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
