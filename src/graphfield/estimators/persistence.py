"""A fitted model as a folder: ``model.json`` and ``arrays.safetensors``. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from graphfield import __version__
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.marginals import NormalScores
from graphfield.data.nodes import NodeScaler
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import ModelFileError, OutputError
from graphfield.graphs.threshold import Threshold

FORMAT = "graphfield-model"
FORMAT_VERSION = 1
# Hyper-parameters of earlier versions, which files may still name, and what others were then.
_RETIRED = {"DNNCGM": ("weight_decay", "batch_norm")}
_BEFORE = {"DNNCGM": {"marginals": "raw"}}
_SCORES = ("knots", "targets", "offsets")  # arrays of NormalScores
HEADER, ARRAYS = "model.json", "arrays.safetensors"

# Estimators that may be named in a file, and nothing else.
_ESTIMATORS = {
    "ArchetypeCGM": "graphfield.estimators.archetype",
    "AutoCGM": "graphfield.estimators.auto",
    "ByCluster": "graphfield.estimators.by_cluster",
    "DNNCGM": "graphfield.estimators.dnncgm",
    "Ensemble": "graphfield.estimators.ensemble",
    "GraphicalLasso": "graphfield.estimators.graphical_lasso",
    "NodewiseLasso": "graphfield.estimators.nodewise_lasso",
    "RegGMM": "graphfield.estimators.reggmm",
    "TreeCGM": "graphfield.estimators.tree",
}


def save_model(
    model: GraphEstimator, path: Path, *, overwrite: bool, extra: dict[str, bytes] | None = None
) -> Path:
    """Write the folder (and ``extra`` files in it) beside its final place, then move it there."""
    content, arrays = pack(model)
    payload = save_arrays({k: np.ascontiguousarray(v) for k, v in arrays.items()})
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "graphfield_version": __version__,
        "arrays_sha256": hashlib.sha256(payload).hexdigest(),
        **content,
    }
    text = json.dumps(_without_nan(header), indent=1, allow_nan=False)
    files = {HEADER: text.encode(), ARRAYS: payload, **(extra or {})}
    write_folder(path, files, overwrite=overwrite)
    return path


def pack(model: GraphEstimator) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """A fitted model as JSON values and arrays; :func:`unpack` is the inverse.

    A model that holds other models packs each of them and keeps their arrays under a prefix.
    """
    state, arrays = model._get_state()
    header = {
        "estimator": type(model).__name__,
        "params": plain_params(model),
        "node_names": model.node_names_,
        "nodes_named": model._nodes_named,
        "encoder": model.encoder_.to_state(),
        "threshold": asdict(model.threshold_),
        "state": state,
    }
    node = {
        "node/center": model.scaler_.center,
        "node/scale": model.scaler_.scale,
        "node/residual_scale": model.residual_scale_,
    }
    if model._scores is not None:
        node |= {f"node/{name}": getattr(model._scores, name) for name in _SCORES}
    return header, {**arrays, **node}


def load(path: str | Path) -> GraphEstimator:
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
    header, payload = _read_header(path), _read_bytes(path / ARRAYS)
    if hashlib.sha256(payload).hexdigest() != header.get("arrays_sha256"):
        raise ModelFileError(
            f"{path / ARRAYS} is damaged: its checksum does not match {HEADER}. Copy the folder "
            "again from where it was written."
        )
    try:
        return unpack(header, load_arrays(payload))
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelFileError(
            f"{path / HEADER} is damaged or was edited: {type(error).__name__}: {error}."
        ) from error


def _read_header(path: Path) -> dict[str, Any]:
    if not path.is_dir() or not (path / HEADER).is_file():
        raise ModelFileError(
            f"{path} is not a graphfield model: expected a folder with {HEADER}, as written by "
            "model.save or 'graphfield fit'."
        )
    try:
        header = json.loads(_read_bytes(path / HEADER))
    except ValueError as error:
        raise ModelFileError(f"{path / HEADER} is damaged: it is not JSON ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path / HEADER} is not a graphfield model file.")
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, this graphfield ({__version__}) reads "
            f"{FORMAT_VERSION}. Install the version that wrote it: "
            f"{header.get('graphfield_version')}."
        )
    if header.get("estimator") not in _ESTIMATORS:
        raise ModelFileError(f"{path} holds an unknown estimator {header.get('estimator')!r}.")
    return header


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"Cannot read {path}: {error.strerror}.") from error


def unpack(header: dict[str, Any], arrays: dict[str, NDArray]) -> GraphEstimator:
    """The model that :func:`pack` took apart."""
    model = _unfitted(header)
    model.node_names_ = list(header["node_names"])
    model.n_features_in_ = len(model.node_names_)
    model._nodes_named = header["nodes_named"]
    if model._nodes_named:
        model.feature_names_in_ = np.array(model.node_names_, dtype=object)
    model.encoder_ = CovariateEncoder.from_state(header["encoder"])
    model.covariate_names_ = list(model.encoder_.names)
    model.scaler_ = NodeScaler(arrays["node/center"], arrays["node/scale"])
    model.residual_scale_ = arrays["node/residual_scale"]
    if "node/knots" in arrays:
        model._scores = NormalScores(*(arrays[f"node/{name}"] for name in _SCORES))
    model.threshold_ = Threshold(**header["threshold"])
    model._set_state(header["state"], arrays)
    return model


def _unfitted(header: dict[str, Any]) -> GraphEstimator:
    name = header["estimator"]
    kind: type[GraphEstimator] = getattr(import_module(_ESTIMATORS[name]), name)
    given = {**_BEFORE.get(name, {}), **header["params"]}
    if given.get("batch_norm") is False and given.get("network") == "residual":
        given["network"] = "residual-plain"
    retired = _RETIRED.get(name, ())
    return kind(**{k: _param(v) for k, v in given.items() if k not in retired})


def plain_params(model: GraphEstimator) -> dict[str, Any]:
    """Hyper-parameters as JSON; a random generator cannot be written and becomes None."""
    return {k: _plain_param(v) for k, v in model.get_params(deep=False).items()}


def _plain_param(value: Any) -> Any:
    if isinstance(value, GraphEstimator):
        return {"estimator": type(value).__name__, "params": plain_params(value)}
    return value if _is_plain(value) else None


def _param(value: Any) -> Any:
    """JSON knows lists only, hyper-parameters are tuples; a mapping is an estimator."""
    if isinstance(value, dict):
        return _unfitted(value)
    return tuple(_param(v) for v in value) if isinstance(value, list) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: it is written as null."""
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_folder(path: Path, files: dict[str, bytes], *, overwrite: bool) -> None:
    """All of the files or none: an existing folder survives until the new one is whole."""
    check_writable(path, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror}.") from error
    try:
        for name, content in files.items():
            (part / name).write_bytes(content)
        part.chmod(0o755)
        _swap(part, path)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise OutputError(f"Cannot write {path}: {error.strerror}.") from error


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Say before hours of work that its result could not be stored, or would cost other files."""
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file. Name a folder.")
    if path.is_dir() and any(path.iterdir()):
        if not overwrite:
            raise OutputError(f"{path} already exists. Choose another folder, or pass overwrite=True.")
        if not (path / HEADER).is_file():
            raise OutputError(
                f"{path} holds other files and no graphfield model, so it is not replaced. Choose "
                "another folder."
            )
    existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".graphfield-", dir=existing)).rmdir()
    except OSError as error:
        raise OutputError(f"Cannot write to {path}: {existing}: {error.strerror}.") from error


def _swap(part: Path, path: Path) -> None:
    if not path.exists():
        os.replace(part, path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
    os.replace(path, old / "old")
    os.replace(part, path)
    shutil.rmtree(old)
