"""Thousands of edited model folders, records and checkpoints: refused with words, or as good as any other."""

from __future__ import annotations

import copy
import hashlib
import json
import resource
import struct
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import save_file

import graphfield as gf
from conftest import SMALL
from graphfield.cli import main
from model_edits import (
    MODELS,
    Folder,
    ask_everything,
    edit_arrays,
    edit_json,
    signed,
    steps_data,
)

pytestmark = pytest.mark.fuzz
EDITS, DAMAGES = 150, 25
# Seconds for one folder, and bytes by which the process may grow with all of them.
MOST_SECONDS, MOST_BYTES = 30.0, 500 * 2**20


@pytest.fixture(autouse=True)
def _quiet():
    """Edited numbers overflow here and there; what comes out is what counts."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", sorted(MODELS))
def test_an_edited_folder_is_refused_or_answers_everything(name, tmp_path):
    X, Z = steps_data()
    path = MODELS[name]().fit(X, Z).save(tmp_path / "model")
    X, Z, original = X.iloc[:12], Z.iloc[:12], Folder.read(path)
    found: Counter[str] = Counter()
    failures: list[str] = []
    memory = _most_memory()
    for case in range(EDITS):
        rng = np.random.default_rng([sorted(MODELS).index(name), case])
        folder = original.copy()
        edited = edit_json(folder.header, rng) if case % 2 else edit_arrays(folder.arrays, rng)
        folder.write(tmp_path / "edited")
        start = time.perf_counter()
        try:
            ask_everything(gf.load(tmp_path / "edited"), X, Z, tmp_path, page=case % 30 == 1)
            found["fine"] += 1
        except gf.ModelFileError:
            found["refused"] += 1
        except Exception as error:  # noqa: BLE001 - what may be raised is what is tested
            failures.append(f"{case}: {edited}: {type(error).__name__}: {error}")
        if time.perf_counter() - start > MOST_SECONDS:
            failures.append(f"{case}: {edited}: too slow")
    assert _most_memory() - memory < MOST_BYTES
    assert not failures, "\n".join(failures)
    assert min(found["fine"], found["refused"]) > EDITS // 20, found


def _most_memory() -> int:
    """Bytes that this process has held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@pytest.mark.parametrize("name", sorted(MODELS))
def test_flipped_bits_and_short_files_are_damage(name, tmp_path):
    X, Z = steps_data()
    path = MODELS[name]().fit(X, Z).save(tmp_path / "model")
    rng = np.random.default_rng(0)
    for file in (path / "model.json", path / "arrays.safetensors"):
        whole = file.read_bytes()
        content = json.loads(whole) if file.suffix == ".json" else whole
        for case in range(DAMAGES):
            damaged = bytearray(whole)
            if case % 2:
                damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
            else:
                damaged = damaged[: rng.integers(len(whole))]
            file.write_bytes(damaged)
            if not _same(bytes(damaged), content):
                with pytest.raises(gf.ModelFileError):
                    gf.load(path)
        file.write_bytes(whole)
    gf.load(path)


def _same(damaged: bytes, content: Any) -> bool:
    """A space for a line break is no damage to JSON."""
    try:
        return json.loads(damaged) == content
    except ValueError:
        return False


def test_a_file_as_large_as_it_says_is_not_read_where_the_model_has_no_such_array(tmp_path):
    """A gigabyte of nothing, with a table of contents and a checksum that fit."""
    X, Z = steps_data()
    path = gf.RegGMM().fit(X, Z).save(tmp_path / "model")
    folder = Folder.read(path)
    size = 2**30
    table = {"interactions": {"dtype": "F64", "shape": [size // 8], "data_offsets": [0, size]}}
    head = json.dumps(table).encode()
    with (path / "arrays.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.truncate(8 + len(head) + size)
    with (path / "arrays.safetensors").open("rb") as file:
        folder.header["arrays_sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    (path / "model.json").write_text(signed(folder.header))
    tracemalloc.start()
    with pytest.raises(gf.ModelFileError):
        gf.load(path)
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


# -- what lies beside a model -----------------------------------------------------------------

RECORDS = {
    "fit.json": {
        "table": "t.csv",
        "rows": 260,
        "nodes": ["n0"],
        "covariates": ["age"],
        "group": None,
        "unused": ["id"],
        "seconds": 1.5,
        "missing": "error",
        "rare": None,
        "time": None,
        "categories": [],
        "pooled": {"site": ["Q"]},
    },
    "data_check.json": {
        "format": "graphfield-data-check",
        "format_version": 2,
        "columns": [
            {"name": "age", "role": "covariate", "kind": "number", "missing": 0, "distinct": 9, "note": ""}
        ],
        "n_rows": 260,
        "rows_left_out": 3,
        "changes": ["Dropped 3 of 260 rows with missing values."],
        "warnings": [{"message": "It looks odd.", "advice": "Look."}],
    },
    "evidence.json": {
        "format": "graphfield-evidence",
        "format_version": 1,
        "verdict": "evidence",
        "sentence": "It does.",
        "gain_over_static": {"value": 0.1, "standard_error": 0.01},
        "gain_over_linear": None,
        "p_value": 0.005,
        "n_permutations": 199,
        "scheme": "rows",
        "n_rows": 260,
        "n_folds": 5,
        "notes": ["Note."],
        "covariates": [
            {
                "name": "age",
                "gain": 0.1,
                "standard_error": 0.01,
                "p_value": 0.01,
                "adjusted_p_value": 0.02,
                "n_permutations": 199,
                "verdict": "evidence",
                "sentence": "It moves.",
            }
        ],
        "model_gain_over_static": {"value": 0.1, "standard_error": 0.01},
        "model_gain_over_linear": None,
    },
    "gain.json": {
        "format": "graphfield-gain",
        "format_version": 1,
        "gain": {
            "over_average": {"value": 0.1, "standard_error": 0.01},
            "over_static": {"value": 0.1, "standard_error": 0.01},
            "explained": None,
            "n_rows": 260,
            "n_units": 260,
            "n_folds": 5,
            "unit": "row",
            "rows": "rows",
            "average": "its own average graph",
            "static": "graphical lasso",
            "fitted": "the fitted model",
            "error": "squared error",
            "within_groups": False,
            "follows_means": True,
            "moving_means": True,
            "nodes": "raw",
            "seconds": 1.5,
        },
        "why_not": "",
    },
}


@pytest.mark.parametrize("name", [*RECORDS, "covariates.csv"])
def test_an_edited_record_is_refused_or_shown(name, tmp_path, capsys):
    X, Z = steps_data()
    path = gf.RegGMM().fit(X, Z).save(tmp_path / "model")
    rows = Z.iloc[:30].to_csv(index=False)
    ends = Counter()
    for case in range(40):
        rng = np.random.default_rng(case)
        for other, record in RECORDS.items():
            (path / other).write_text(json.dumps(record))
        (path / "covariates.csv").write_text(rows)
        if name == "covariates.csv":
            (path / name).write_bytes(_edited_text(rows, rng))
        else:
            record = copy.deepcopy(RECORDS[name])
            edit_json(record, rng)
            (path / name).write_text(json.dumps(record))
        out = tmp_path / "page.html"
        ends[main(["report", str(path), "--out", str(out), "--force"])] += 1
        assert "Traceback" not in capsys.readouterr().err
    assert set(ends) == {0, 2}, ends


def _edited_text(text: str, rng: np.random.Generator) -> bytes:
    content = bytearray(text.encode())
    at = int(rng.integers(len(content)))
    pieces = [
        b"",
        b"1",
        b",",
        b"\n",
        b'"',
        b"\x00",
        b"\xff",
        b"1e999",
        b"nan",
        b"-",
        b"2020-13-45",
        b"0" * 400,
    ]
    content[at : at + int(rng.integers(3))] = pieces[rng.integers(len(pieces))]
    return bytes(content)


# -- checkpoints ------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [2, None])
def test_an_edited_checkpoint_is_refused_or_continued(rank, tmp_path):
    X, Z = steps_data(120)
    model = gf.DNNCGM(**{**SMALL, "rank": rank, "max_steps": 20})
    folder = tmp_path / "checkpoint"
    model.fit(X, Z, checkpoint=folder)
    files = {file: file.read_bytes() for file in folder.iterdir()}
    stages = [file for file in files if file.suffix == ".safetensors"]
    ends = Counter()
    for case in range(80):
        rng = np.random.default_rng(case)
        for file, content in files.items():
            file.write_bytes(content)
        _edit_stage(stages[case % len(stages)], rng)
        try:
            again = model.fit(X, Z, checkpoint=folder, resume=True)
            assert np.isfinite(again.predict_coef(Z)).all()
            ends["continued"] += 1
        except gf.GraphfieldError:
            ends["refused"] += 1
    assert min(ends["continued"], ends["refused"]) > 3, ends


def _edit_stage(path: Path, rng: np.random.Generator) -> None:
    if rng.integers(5) == 0:  # damage
        whole = path.read_bytes()
        path.write_bytes(whole[: rng.integers(len(whole))])
        return
    with safe_open(str(path), framework="pt") as file:
        metadata = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if rng.integers(2):
        record = json.loads(metadata["record"])
        edit_json(record, rng)
        metadata["record"] = json.dumps(record)
    else:
        import torch

        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        edit_arrays(arrays, rng)
        tensors = {name: torch.tensor(np.ascontiguousarray(array)) for name, array in arrays.items()}
    save_file(tensors, path, metadata=metadata)
