"""What a model's folder may hold by mistake or malice: an error that names file and field, and no waiting."""

from __future__ import annotations

import json
import os
import tracemalloc
from functools import cache

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL, small_data
from graphfield.data.saved_files import MAX_JSON_BYTES, MAX_NESTING, parse_json
from graphfield.report import write_report
from model_edits import Folder, steps_data

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


@cache
def fitted(name: str) -> gf.RegGMM:
    X, Z = steps_data()
    makers = {
        "cluster": lambda: gf.ByCluster(estimator=gf.RegGMM(), by="site"),
        "linear": gf.RegGMM,
        "static": lambda: gf.GraphicalLasso(penalty=0.1),
        "tree": lambda: gf.TreeCGM(random_state=0),
        "average": lambda: gf.Ensemble(estimator=gf.RegGMM(), n_members=2, resample=True, random_state=0),
        "network": lambda: gf.DNNCGM(**{**SMALL, "max_steps": 5}, marginals="normal"),
    }
    return makers[name]().fit(X, Z)


def schema(folder: Folder) -> dict:
    return folder.header["field"]["schema"]


def column(folder: Folder, which: int) -> dict:
    return schema(folder)["encoder"]["columns"][which]


def own(folder: Folder) -> dict:
    return folder.header["field"]["own"]


def array(folder: Folder, name: str) -> np.ndarray:
    return folder.arrays[f"field/{name}"]


EDITS = {
    "a name twice": ("linear", lambda f: schema(f)["node_names"].__setitem__(0, "n1"), "node_names"),
    "a name that is a number": ("linear", lambda f: schema(f)["node_names"].__setitem__(0, 3), "node_names"),
    "a level less than shares": ("linear", lambda f: column(f, 1)["levels"].append("C"), "shares"),
    "shares that are no shares": ("linear", lambda f: column(f, 1).update(shares=[0.9, 0.9]), "shares"),
    "a scale of zero": ("linear", lambda f: column(f, 0).update(scale=0.0), "scale"),
    "a column that is not there": ("linear", lambda f: column(f, 0).update(name="weight"), "name"),
    "a cut above any correlation": (
        "linear", lambda f: f.header["field"]["threshold"].update(value=7.0), "threshold"),
    "no cut at all": ("linear", lambda f: f.header["field"].update(threshold=None), "threshold"),
    "a field of another kind": ("tree", lambda f: f.header.update(estimator="AutoCGM", params={}), "kind"),
    "a kind that there is not": ("linear", lambda f: f.header["field"].update(kind="os"), "kind"),
    "a parameter out of range": ("linear", lambda f: f.header["params"].update(ridge=-1.0), "ridge"),
    "a whole number with a hundred digits": (
        "linear", lambda f: f.header["params"].update(n_folds=10**90), "n_folds"),
    "an array of another shape": (
        "linear", lambda f: f.arrays.update({"field/node/center": np.zeros(9)}), "node/center"),
    "an array that is missing": ("linear", lambda f: f.arrays.pop("field/interactions"), "interactions"),
    "a number that is none": ("linear", lambda f: array(f, "mean").__setitem__((0, 0), np.nan), "mean"),
    "another type": (
        "linear", lambda f: f.arrays.update({"field/mean": array(f, "mean").astype(np.int64)}), "mean"),
    "a node in its own regression": (
        "linear", lambda f: array(f, "interactions").__setitem__((0, 1, 1), 1.0), "interactions"),
    "a negative variance": (
        "static", lambda f: f.arrays["learned/precision"].__setitem__((0, 0), -1.0), "precision"),
    "a mean beyond every unit": (
        "linear", lambda f: array(f, "mean").__setitem__((0, 1), 1e300), "mean must be finite"),
    "numbers too large to compute with": (
        "network", lambda f: [a.fill(1e30) for a in f.arrays.values() if a.dtype == np.float32],
        "not finite"),
    "numbers of edges that are none": (
        "static", lambda f: f.arrays["learned/path"].__setitem__((0, 2), 0.5), "path"),
    "a tree that runs in a circle": ("tree", lambda f: array(f, "tree/left").__setitem__(0, 0), "left"),
    "a split on no feature": ("tree", lambda f: array(f, "tree/feature").__setitem__(0, 99), "feature"),
    "a leaf without a graph": ("tree", lambda f: array(f, "tree/part").__setitem__(0, 50), "part"),
    "parts of other nodes": (
        "cluster", lambda f: own(f)["parts"][0]["schema"]["node_names"].reverse(), "node_names"),
    "fewer parts than clusters": ("cluster", lambda f: own(f)["parts"].pop(), "parts"),
    "clusters by a number": ("cluster", lambda f: own(f).update(by="age"), "by"),
    "weights that are none": (
        "average", lambda f: f.arrays.update({"field/shares": np.array([0.5, 0.4])}), "shares"),
    "members that are nobody's draws": ("average", lambda f: own(f).pop("drawn"), "drawn"),
    "one member less than shares": ("average", lambda f: own(f)["members"].pop(), "shares"),
    "one model less than members": ("average", lambda f: f.header["learned"]["members"].pop(), "members"),
    "a network that no memory holds": (
        "network", lambda f: own(f)["network"].update(hidden_size=10**9), "weights"),
    "a network of other nodes": ("network", lambda f: own(f)["network"].update(n_nodes=10**9), "n_nodes"),
    "scores that fall": ("network", lambda f: array(f, "node/knots").__setitem__(0, 1e9), "knots"),
    "offsets beyond the knots": (
        "network", lambda f: array(f, "node/offsets").__setitem__(1, 10**6), "offsets"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(EDITS))
def test_what_does_not_fit_is_named(name, tmp_path):
    """With checksums that fit: somebody has edited the folder on purpose."""
    kind, edit, field = EDITS[name]
    folder = Folder.read(fitted(kind).save(tmp_path / "model"))
    edit(folder)
    folder.write(tmp_path / "edited")
    with pytest.raises(gf.ModelFileError, match=field) as raised:
        gf.load(tmp_path / "edited")
    assert str(tmp_path / "edited") in str(raised.value), "which file it is"


def test_the_header_has_a_checksum_of_its_own(tmp_path):
    path = fitted("linear").save(tmp_path / "model")
    text = (path / "model.json").read_text()
    (path / "model.json").write_text(text.replace('"n1"', '"m1"'))
    with pytest.raises(gf.ModelFileError, match="checksum"):
        gf.load(path)
    (path / "model.json").write_text(json.dumps(json.loads(text), sort_keys=True))
    gf.load(path)  # the order of names and spaces do not matter


@pytest.mark.parametrize("file", ["model.json", "arrays.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_only_files_of_the_right_size_are_read(file, kind, tmp_path):
    path = fitted("linear").save(tmp_path / "model")
    place, whole = path / file, (path / file).read_bytes()
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "folder":
        place.mkdir()
    else:
        with place.open("wb") as sparse:
            sparse.write(whole)
            sparse.truncate(6 * 2**30)
    tracemalloc.start()
    with pytest.raises(gf.ModelFileError):
        gf.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[" * 100_000, "nested"),
        (b"[" * (MAX_NESTING + 2) + b"]" * (MAX_NESTING + 2), "inside each other"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "too large"),
        (b"1" * 5_000, "digits"),
        (b'{"a": "\xff"}', "utf-8"),
        (b'{"a": "\\ud800"}', "surrogates"),
    ],
)
def test_json_that_we_do_not_write(content, why, tmp_path):
    with pytest.raises(gf.ModelFileError, match=why):
        parse_json(content, tmp_path / "model.json")


def test_a_header_that_is_too_large(tmp_path):
    path = fitted("linear").save(tmp_path / "model")
    with (path / "model.json").open("ab") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(gf.ModelFileError, match="bytes"):
        gf.load(path)


def test_numpy_numbers_among_the_parameters_are_kept(tmp_path):
    X, Z = small_data()
    model = gf.RegGMM(n_folds=np.int64(3), ridge=np.float64(0.5), standardize=np.bool_(True)).fit(X, Z)
    again = gf.load(model.save(tmp_path / "model"))
    assert (again.n_folds, again.ridge, again.standardize) == (3, 0.5, True)


@pytest.mark.parametrize(
    ("record", "content"),
    [
        ("fit", {"rows": "many"}),
        ("fit", {"seconds": "long"}),
        ("fit", {"unused": 3}),
        ("fit", [1]),
        ("check", {"warnings": ["odd"]}),
        ("check", {"columns": {"name": "a"}}),
        ("evidence", {"gain_over_static": 0.1}),
        ("evidence", {"gain_over_static": {"value": float("nan"), "standard_error": 0.1}}),
        ("evidence", {"covariates": [1]}),
        ("evidence", {"p_value": "small"}),
        ("evidence", {("a", "b"): 1}),
        ("gain", {"gain": {"over_average": 0.1}}),
        ("gain", {"gain": [1]}),
    ],
)
def test_malformed_records_of_a_page(record, content, tmp_path):
    with pytest.raises(gf.ModelFileError, match=record):
        write_report(fitted("linear"), tmp_path / "page.html", **{record: content})
    assert not (tmp_path / "page.html").exists()


def test_records_with_numbers_of_numpy(tmp_path):
    fit = {"rows": np.int64(260), "unused": ("a",), "nodes": np.array(["n0"]), "seconds": np.float64(1.0)}
    check = {
        "changes": np.array(["Rows were dropped."]),
        "n_rows": np.int64(260),
        "rows_left_out": np.int64(3),
    }
    page = write_report(fitted("linear"), tmp_path / "page.html", fit=fit, check=check)
    assert "257 rows (3 left out: missing or infinite values)" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("edit", ["results", "active", "text"])
def test_a_checkpoint_that_was_edited(edit, tmp_path):
    from safetensors import safe_open
    from safetensors.torch import save_file

    X, Z = small_data()
    model = gf.DNNCGM(**{**SMALL, "rank": None, "max_steps": 4, "center": "none", "marginals": "raw"})
    model.fit(X, Z, checkpoint=tmp_path / "fit")
    stage = next((tmp_path / "fit").glob("*.safetensors"))
    with safe_open(str(stage), framework="pt") as file:
        record = json.loads(file.metadata()["record"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    record.update({"results": {"results": []}, "active": {"active": [7]}, "text": {"step": "4"}}[edit])
    save_file(tensors, stage, metadata={"record": json.dumps(record)})
    with pytest.raises(gf.ModelFileError, match=str(stage)):
        model.fit(X, Z, checkpoint=tmp_path / "fit", resume=True)


def test_a_day_beyond_the_calendar_is_still_shown():
    """A number of days may be given where fit had dates."""
    model, Z = fitted("linear"), steps_data()[1].iloc[:3]
    far = Z.assign(day=pd.Series([1e9, 0.0, -1e9], index=Z.index))
    with pytest.warns(gf.ExtrapolationWarning, match="day 1e"):
        assert np.isfinite(model.predict_coef(far)).all()
