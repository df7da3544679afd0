"""A saved model loads anywhere and says what is wrong when it does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL, plain_params, small_data
from graphfield.cli import main
from graphfield.report.folder import read_record, read_rows
from model_edits import signed

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


@pytest.mark.parametrize("make", [gf.Ensemble, gf.ByCluster])
def test_members_are_computed_where_they_were_asked_to_be(make, tmp_path):
    """On a machine with a GPU, too."""
    X, Z = small_data(90)
    inner = gf.DNNCGM(**{**SMALL, "rank": None})
    options = {"n_members": 2, "random_state": 0} if make is gf.Ensemble else {"by": "site"}
    again = gf.load(make(estimator=inner, **options).fit(X, Z).save(tmp_path / "m")).field_
    assert {part.device for part in (again.members if make is gf.Ensemble else again.parts)} == {"cpu"}


def test_round_trip_is_exact(fitted, data, tmp_path):
    X, Z = data
    again = gf.load(fitted.save(tmp_path / "model"))
    assert type(again) is type(fitted)
    assert plain_params(again) == plain_params(fitted)
    assert again.node_names_ == fitted.node_names_
    assert again.threshold_ == fitted.threshold_
    for method in ("predict_coef", "edge_weights", "predict_graph", "predict_precision"):
        np.testing.assert_array_equal(getattr(again, method)(Z), getattr(fitted, method)(Z))
    np.testing.assert_array_equal(again.predict(X, Z), fitted.predict(X, Z))
    assert again.save(tmp_path / "second").joinpath("arrays.safetensors").read_bytes() == (
        (tmp_path / "model" / "arrays.safetensors").read_bytes()
    )


@pytest.mark.slow
def test_a_moving_mean_and_a_schedule_survive(tmp_path):
    X, Z = small_data(200)
    X["n3"] += 50 * np.sin(Z["age"] / 10)
    params = {
        **SMALL,
        "max_steps": 60,
        "learning_rate": 0.01,
        "schedule": ("multistep", (20, 40), 0.5),
    }
    model = gf.DNNCGM(**params).fit(X, Z)
    assert model.mean_depends_on_covariates_
    again = gf.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X, Z), model.predict(X, Z))
    assert again.training_.equals(model.training_)
    assert again.get_params() == model.get_params()


def test_the_folder_is_json_and_safetensors(fitted, tmp_path):
    path = fitted.save(tmp_path / "model")
    assert sorted(f.name for f in path.iterdir()) == ["arrays.safetensors", "model.json"]
    header = json.loads((path / "model.json").read_text())
    assert header["format"] == "graphfield-model"
    assert header["format_version"] == 5


def test_an_existing_folder_is_kept_unless_told_otherwise(fitted, tmp_path):
    path = fitted.save(tmp_path / "model")
    with pytest.raises(gf.OutputError, match="already exists"):
        fitted.save(path)
    fitted.save(path, overwrite=True)
    gf.load(path)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["model"], "no temporary folder is left"


def test_a_folder_with_other_files_is_never_replaced(fitted, tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(gf.OutputError, match="holds other files"):
        fitted.save(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def _edit(path, **changes):
    header = json.loads((path / "model.json").read_text())
    _write_header(path, {**header, **changes})


def _write_header(path, header):
    (path / "model.json").write_text(signed(header))


def _flip_last_bit(path):
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / "model.json").unlink(), "is not a graphfield model"),
        (lambda p: (p / "model.json").write_text("{"), "not JSON"),
        (lambda p: (p / "model.json").write_text("[1]"), "not a graphfield model file"),
        (
            lambda p: (p / "arrays.safetensors").unlink(),
            r"lacks arrays\.safetensors.*Copy the whole folder again",
        ),
        (lambda p: (p / "arrays.safetensors").write_bytes(b"x" * 100), "is damaged"),
        (lambda p: _flip_last_bit(p / "arrays.safetensors"), "checksum"),
        (lambda p: _edit(p, format_version=99), "format version 99"),
        (lambda p: _edit(p, estimator="os.system"), "unknown estimator"),
        (lambda p: _edit(p, params={"no_such": 1}), "damaged or was edited"),
        (lambda p: _edit(p, field={}), "damaged or was edited"),
    ],
)
def test_damaged_or_foreign_folders(fitted, tmp_path, damage, message):
    path = fitted.save(tmp_path / "model")
    damage(path)
    with pytest.raises(gf.ModelFileError, match=message):
        gf.load(path)


def test_nothing_there(tmp_path):
    with pytest.raises(gf.ModelFileError, match="is not a graphfield model"):
        gf.load(tmp_path / "nothing")


def test_a_model_fitted_on_cuda_loads_without_one(data, tmp_path):
    """The device of the file does not matter: a machine without CUDA predicts on its CPU."""
    model = gf.DNNCGM(**SMALL).fit(*data)
    path = model.save(tmp_path / "model")
    header = json.loads((path / "model.json").read_text())
    header["params"]["device"] = "cuda"
    _write_header(path, header)
    np.testing.assert_allclose(
        gf.load(path).predict_coef(data[1]), model.predict_coef(data[1]), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    # Without torch, which takes its time to be imported.
    "model",
    [gf.TreeCGM(random_state=0), pytest.param(gf.DNNCGM(**SMALL), marks=pytest.mark.slow)],
    ids=lambda model: type(model).__name__,
)
def test_another_process_gets_the_same_numbers(data, tmp_path, model):
    model.fit(*data)
    path = model.save(tmp_path / "model")
    data[1].to_csv(tmp_path / "z.csv", index=False)
    code = (
        "import sys, numpy as np, pandas as pd, graphfield as gf\n"
        "np.save(sys.argv[3], gf.load(sys.argv[1]).predict_coef(pd.read_csv(sys.argv[2])))"
    )
    out = tmp_path / "coef.npy"
    subprocess.run([sys.executable, "-c", code, str(path), str(tmp_path / "z.csv"), str(out)], check=True)
    np.testing.assert_allclose(np.load(out), model.predict_coef(data[1]), atol=1e-6)


def test_a_full_head_round_trips(tmp_path, data):
    X, Z = data
    model = gf.DNNCGM(**{**SMALL, "rank": None}).fit(X, Z)
    again = gf.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict_coef(Z), model.predict_coef(Z))
    np.testing.assert_array_equal(again.predict(X, Z), model.predict(X, Z))
    assert (again.rank_, again.penalty_) == (None, model.penalty_)


@pytest.fixture(scope="module")
def folder_with_all(tmp_path_factory):
    """All that may lie beside a model; the evidence came later, as users are told to get it."""
    tmp = tmp_path_factory.mktemp("beside")
    pd.concat(small_data(120, p=3), axis=1).to_csv(tmp / "t.csv", index=False)
    table = [str(tmp / "t.csv"), "--covariates", "age", "--nodes", "n*"]
    assert main(["fit", *table, "--model", "linear", "--no-verdict", "--out", str(tmp / "m")]) == 0
    evidence = ["--permutations", "19", "--out", str(tmp / "m" / "evidence.json")]
    assert main(["evidence", *table, *evidence]) == 0
    return tmp / "m"


BESIDE = ["covariates.csv", "fit.json", "gain.json", "data_check.json", "evidence.json"]


@pytest.mark.parametrize("name", BESIDE)
def test_what_lies_beside_a_model_is_refused_when_it_was_edited(name, folder_with_all, tmp_path, capsys):
    folder = Path(shutil.copytree(folder_with_all, tmp_path / "m"))
    whole = (folder / name).read_bytes()
    encoder = gf.load(folder).encoder_

    def read():
        return read_rows(folder, encoder) if name == "covariates.csv" else read_record(folder, name)

    assert read() is not None
    text = name == "covariates.csv"
    edited = whole[: whole.rindex(b"\n", 0, -2) + 1] if text else whole.replace(b" 1", b" 2", 1)
    assert edited != whole
    (folder / name).write_bytes(edited)
    told = f"{name} is damaged or was edited: its checksum does not match.*Copy it again"
    with pytest.raises(gf.ModelFileError, match=told):
        read()
    assert main(["report", str(folder)]) == 2
    (folder / name).unlink()
    assert read() is None
