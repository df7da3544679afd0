"""A fitted model as a folder: ``model.json`` and ``arrays.safetensors``. No pickle anywhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as save_arrays
from sklearn.base import BaseEstimator

from graphfield import __version__
from graphfield.data.group_levels import LevelCheck
from graphfield.data.saved_arrays import AtMost, SavedArrays, open_arrays
from graphfield.data.saved_files import (
    MAX_DIGITS,
    check_seal,
    finite_values,
    json_bytes,
    open_regular,
    read_json,
    sealed,
)
from graphfield.data.saved_values import Saved, optional
from graphfield.estimators.registry import ESTIMATORS, find_estimator
from graphfield.exceptions import ModelFileError, OutputError, ParameterError
from graphfield.fields import GraphField
from graphfield.fields.base import State
from graphfield.fields.state import has_finite_answers, unpack_field
from graphfield.folders import check_folder, restore, write_folder
from graphfield.messages import Message

FORMAT = "graphfield-model"
FORMAT_VERSION = 5
HEADER, ARRAYS = "model.json", "arrays.safetensors"
CHECKSUM = "model_sha256"  # of model.json
FILES = "files_sha256"  # of what else is written with the model
# Of a table whose held-out rows are named in a file.
_MAX_ROWS = 2**40
# A fitted estimator. Its class knows this module, which therefore does not know it.
Model = Any


def save_model(model: Model, path: Path, *, overwrite: bool, extra: dict[str, bytes] | None = None) -> Path:
    """Write the folder (and ``extra`` files in it) beside its final place, then move it there."""
    files = model_files(model, extra or {})
    check_writable(path, overwrite=overwrite)
    return write_folder(path, files, overwrite=overwrite)


def model_files(model: Model, extra: dict[str, bytes]) -> dict[str, bytes]:
    """Name to content of the files that :func:`load` reads, and of ``extra`` ones beside them."""
    content, arrays = pack_model(model)
    payload = save_arrays({k: np.ascontiguousarray(v) for k, v in arrays.items()})
    header = finite_values(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "graphfield_version": __version__,
            "arrays_sha256": hashlib.sha256(payload).hexdigest(),
            FILES: {name: hashlib.sha256(file).hexdigest() for name, file in (extra or {}).items()},
            **content,
        }
    )
    return {HEADER: json_bytes(sealed(header, CHECKSUM)), ARRAYS: payload, **extra}


def pack_model(model: Model) -> State:
    """A fitted model as values of JSON and arrays; :func:`unpack_model` is the inverse."""
    shell, arrays = pack_shell(model)
    field, own = model.field_.state()
    return {**shell, "field": field}, {**arrays, **{f"field/{name}": array for name, array in own.items()}}


def pack_shell(model: Model) -> State:
    """All of a fitted model but its field."""
    learned, arrays = model._get_learned()
    shell = {
        "estimator": type(model).__name__,
        "params": plain_params(model),
        "levels": None if model.level_check_ is None else asdict(model.level_check_),
        "learned": learned,
    }
    rows = {} if model.held_out_rows_ is None else {"held_out_rows": model.held_out_rows_}
    return shell, {**rows, **{f"learned/{name}": array for name, array in arrays.items()}}


def load(path: str | Path) -> Model:
    """Read a model that ``save`` wrote. It needs no GPU and runs no code from the folder.

    Examples
    --------
    >>> import graphfield as gf, tempfile
    >>> sim = gf.make_setting("G1", n_samples=60, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X, sim.Z)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = gf.load(model.save(folder + "/model"))
    >>> bool((again.predict_coef(sim.Z) == model.predict_coef(sim.Z)).all())
    True
    """
    path = Path(path)
    header = read_header(path)
    if not (path / ARRAYS).exists():
        raise ModelFileError(
            f"{path} lacks {ARRAYS}, the numbers of the model; {HEADER} alone is none. Copy the whole folder "
            "again from where it was written, or fit again."
        ).about(file=path)
    with open_arrays(path / ARRAYS) as arrays:  # of the size that it says it has, or an error at once
        with open_regular(path / ARRAYS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        if digest != header.get("arrays_sha256"):
            raise ModelFileError(
                f"{path / ARRAYS} is damaged: its checksum does not match {HEADER}. Copy the folder "
                "again from where it was written."
            ).about(file=path / ARRAYS)
        return unpack_model(Saved(header, str(path / HEADER)), arrays)


def read_header(path: Path) -> dict[str, Any]:
    """``model.json`` of a folder; what is no model of ours is an error that says so."""
    restore(path)
    if not os.path.isfile(path / HEADER):
        raise ModelFileError(
            "{file} is not a graphfield model: expected a folder with {header}, as written by {writer}.",
            file=path,
            header=HEADER,
            writer=Message("model.save", code="save-model"),
        )
    header = read_json(path / HEADER)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("{file} is not a graphfield model file.", file=path / HEADER)
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, this graphfield ({__version__}) reads "
            f"{FORMAT_VERSION}. Install the version that wrote it: "
            f"{header.get('graphfield_version')}."
        ).about(file=path)
    check_seal(header, path / HEADER, CHECKSUM)
    return header


def check_written(path: Path, content: bytes) -> None:
    """Raise unless a file beside a model is as it was written with the model, if it was."""
    header = read_json(path.parent / HEADER)
    digests = Saved(header, str(path.parent / HEADER)).known(FILES)
    written = None if digests is None else digests.known(path.name)
    if written is not None and written.text() != hashlib.sha256(content).hexdigest():
        raise ModelFileError(
            f"{path} is damaged or was edited: its checksum does not match {HEADER}. Copy it again from "
            "where it was written, or remove it to go on without it."
        ).about(file=path)


def unpack_model(header: Saved, arrays: SavedArrays) -> Model:
    """The model that :func:`pack_model` took apart, with everything in it checked against the rest."""
    field = unpack_field(header["field"], arrays.below("field/"))
    if not has_finite_answers(field):
        arrays.refuse("", "numbers that can be computed with", "graphs that are not finite")
    if field.common.threshold is None:
        header["field"]["threshold"].refuse("that of a fitted model")
    return unpack_shell(header, arrays, field)


def unpack_shell(header: Saved, arrays: SavedArrays, field: GraphField) -> Model:
    """The model that :func:`pack_shell` took apart, with its field."""
    model = _unfitted(header)
    model.field_ = field
    if field.schema.nodes_named:
        model.feature_names_in_ = np.array(field.schema.node_names, dtype=object)
    model.level_check_ = optional(header.known("levels"), LevelCheck.from_saved, None)
    if "held_out_rows" in arrays:
        model.held_out_rows_ = arrays.read("held_out_rows", (AtMost(_MAX_ROWS),), np.int64, low=0)
    try:
        model._set_learned(header["learned"], arrays.below("learned/"))
    except AssertionError:
        header["field"]["kind"].refuse(f"a kind of field that {type(model).__name__} fits")
    return model


def _unfitted(header: Saved) -> Model:
    name = header["estimator"].text()
    if name not in ESTIMATORS:
        raise ModelFileError(f"{header.file} holds an unknown estimator {name!r}.").about(file=header.file)
    given = {key: _param(value) for key, value in header["params"].items().items()}
    try:
        model: Model = find_estimator(name)(**given)
        model.check_parameters()
    except (ParameterError, TypeError) as error:  # a TypeError names a parameter that there is not
        header["params"].refuse(f"those of {name}", str(error))
    return model


def plain_params(model: BaseEstimator) -> dict[str, Any]:
    """Hyper-parameters as JSON; a random generator cannot be written and becomes None."""
    return {k: _plain_param(v) for k, v in model.get_params(deep=False).items()}


def _plain_param(value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return {"estimator": type(value).__name__, "params": plain_params(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):  # types of nodes by name
        return {str(name): str(kind) for name, kind in value.items()}
    return value if _is_plain(value) else None


def _param(saved: Saved) -> Any:
    """JSON knows lists only, hyper-parameters are tuples; a mapping is an estimator, or types of nodes."""
    value = saved.value
    if saved.field.endswith("node_types") and isinstance(value, dict):
        return {name: kind.text() for name, kind in saved.items().items()}
    if isinstance(value, dict):
        return _unfitted(saved)
    if isinstance(value, list):
        return tuple(_param(inner) for inner in saved.listed())
    if saved.field.endswith("random_state") and value is not None:
        return saved.whole(high=10**MAX_DIGITS)
    if isinstance(value, int) and not isinstance(value, bool):
        return saved.whole(-(2**63))
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Say before hours of work that its result could not be stored, or would cost other files."""
    check_folder(path, overwrite=overwrite)
    if path.is_dir() and any(path.iterdir()) and not (path / HEADER).is_file():
        raise OutputError(
            "{file} holds other files and no graphfield model, so it is not replaced. Choose another folder.",
            file=path,
        )
