"""A fitted model as a folder: ``model.json`` and ``arrays.safetensors``. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as save_arrays

from graphfield import __version__
from graphfield.data.covariates import CovariateEncoder, n_features
from graphfield.data.frames import MIN_NODES
from graphfield.data.group_levels import LevelCheck
from graphfield.data.marginals import NormalScores
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import NodeScaler, read_scale
from graphfield.data.saved_arrays import ArrayFile, AtMost, SavedArrays
from graphfield.data.saved_files import MAX_DIGITS, check_seal, read_json, sealed
from graphfield.data.saved_values import Saved, optional
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import CompositeGraph
from graphfield.estimators.probe import has_finite_answers
from graphfield.exceptions import ModelFileError, OutputError, ParameterError
from graphfield.folders import check_folder, restore, write_folder
from graphfield.graphs.threshold import Gap, Threshold, earlier_threshold

FORMAT = "graphfield-model"
FORMAT_VERSION = 1
# Hyper-parameters of earlier versions, which files may still name, and what others were then.
_RETIRED = {"DNNCGM": ("weight_decay", "batch_norm")}
_BEFORE = {"DNNCGM": {"marginals": "raw"}}
HEADER, ARRAYS = "model.json", "arrays.safetensors"
CHECKSUM = "model_sha256"  # of model.json; files of earlier versions have none
FILES = "files_sha256"  # of what else is written with the model
# Of a cut: twice the noise of a correlation, of two rows.
_MAX_CUT = 2.0

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
    header = _without_nan(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "graphfield_version": __version__,
            "arrays_sha256": hashlib.sha256(payload).hexdigest(),
            FILES: {name: hashlib.sha256(file).hexdigest() for name, file in (extra or {}).items()},
            **content,
        }
    )
    text = json.dumps(sealed(header, CHECKSUM), indent=1, allow_nan=False)
    files = {HEADER: text.encode(), ARRAYS: payload, **(extra or {})}
    check_writable(path, overwrite=overwrite)
    return write_folder(path, files, overwrite=overwrite)


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
        "threshold": _plain_threshold(model.threshold_),
        "levels": None if model.level_check_ is None else asdict(model.level_check_),
        "state": state,
    }
    node = {
        "node/center": model.scaler_.center,
        "node/scale": model.scaler_.scale,
        "node/residual_scale": model.residual_scale_,
        "node/clear": np.flatnonzero(model.threshold_.clear),
    }
    if model._scores is not None:
        node |= {f"node/{name}": array for name, array in model._scores.to_arrays().items()}
    for kind, scales in (("scales", model._scales), ("residual_scales", model._residual_scales)):
        if scales is not None:
            node |= {f"node/{kind}/{name}": array for name, array in scales.to_arrays().items()}
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
    header = read_header(path)
    if not (path / ARRAYS).exists():
        raise ModelFileError(
            f"{path} lacks {ARRAYS}, the numbers of the model; {HEADER} alone is none. Copy the whole folder "
            "again from where it was written, or fit again."
        )
    with ArrayFile(path / ARRAYS) as file:
        if file.sha256() != header.get("arrays_sha256"):
            raise ModelFileError(
                f"{path / ARRAYS} is damaged: its checksum does not match {HEADER}. Copy the folder "
                "again from where it was written."
            )
        return unpack(Saved(header, str(path / HEADER)), SavedArrays(file))


def read_header(path: Path) -> dict[str, Any]:
    """``model.json`` of a folder; what is no model of ours is an error that says so."""
    restore(path)
    if not os.path.isfile(path / HEADER):
        raise ModelFileError(
            f"{path} is not a graphfield model: expected a folder with {HEADER}, as written by "
            "model.save or 'graphfield fit'."
        )
    header = read_json(path / HEADER)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path / HEADER} is not a graphfield model file.")
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, this graphfield ({__version__}) reads "
            f"{FORMAT_VERSION}. Install the version that wrote it: "
            f"{header.get('graphfield_version')}."
        )
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
        )


def unpack(header: Saved, arrays: SavedArrays) -> GraphEstimator:
    """The model that :func:`pack` took apart, with everything in it checked against the rest."""
    model = _unfitted(header)
    model.node_names_ = header["node_names"].names(least=MIN_NODES)
    model.n_features_in_ = p = len(model.node_names_)
    model._nodes_named = header["nodes_named"].flag()
    if model._nodes_named:
        model.feature_names_in_ = np.array(model.node_names_, dtype=object)
    model.encoder_ = CovariateEncoder.from_state(header["encoder"])
    model.covariate_names_ = list(model.encoder_.names)
    node = arrays.below("node/")
    model.scaler_ = NodeScaler.from_arrays(node, p)
    model.residual_scale_ = read_scale(node, "residual_scale", p)
    if "knots" in node:
        model._scores = NormalScores.from_arrays(node, p)
    model._scales = _moving_scales(node.below("scales/"), model.encoder_, p)
    model._residual_scales = _moving_scales(node.below("residual_scales/"), model.encoder_, p)
    model.threshold_ = _threshold(header["threshold"], node, p)
    model.level_check_ = optional(header.known("levels"), LevelCheck.from_saved, None)
    with np.errstate(all="ignore"):  # what overflows is found next
        model._set_state(header["state"], arrays)
    if not isinstance(model, CompositeGraph) and not has_finite_answers(model):
        arrays.refuse("", "numbers that can be computed with", "graphs that are not finite")
    return model


def _moving_scales(arrays: SavedArrays, encoder: CovariateEncoder, n_nodes: int) -> MovingScales | None:
    """None where they do not move, as in all files of earlier versions."""
    if "weights" not in arrays:
        return None
    return MovingScales.from_arrays(arrays, n_features(encoder), n_nodes)


def _plain_threshold(found: Threshold) -> dict[str, Any]:
    own = {"value": found.value, "n_edges": found.n_edges, "reason": found.reason}
    return {**own, "gap": asdict(found.gap)}


def _threshold(found: Saved, node: SavedArrays, p: int) -> Threshold:
    if "clear" not in node:  # files of earlier versions have the gap alone
        return earlier_threshold(_gap(found), p)
    clear = np.zeros((p, p), dtype=bool)
    clear.flat[node.read("clear", (AtMost(p**2),), np.int64, low=0, high=p**2 - 1)] = True
    if (clear != clear.T).any() or clear.diagonal().any():
        node.refuse("clear", "pairs of two nodes, each in both orders", "others")
    n_edges = optional(found.known("n_edges"), lambda value: value.whole(high=p**2), None)
    value = found["value"].number(0, _MAX_CUT)
    return Threshold(value, clear, n_edges, found["reason"].text(), _gap(found["gap"]))


def _gap(found: Saved) -> Gap:
    return Gap(
        found["value"].number(0, _MAX_CUT),
        found["largest"].number(0),
        found["is_gap"].flag(),
        found["reason"].text(),
    )


def _unfitted(header: Saved) -> GraphEstimator:
    name = header["estimator"].text()
    if name not in _ESTIMATORS:
        raise ModelFileError(f"{header.file} holds an unknown estimator {name!r}.")
    kind: type[GraphEstimator] = getattr(import_module(_ESTIMATORS[name]), name)
    given = {key: _param(value) for key, value in header["params"].items().items()}
    given = {**_BEFORE.get(name, {}), **given}
    if given.get("batch_norm") is False and given.get("network") == "residual":
        given["network"] = "residual-plain"
    retired = _RETIRED.get(name, ())
    try:
        return _with_checked_parameters(kind, {k: v for k, v in given.items() if k not in retired})
    except (ParameterError, TypeError) as error:  # a TypeError names a parameter that there is not
        header["params"].refuse(f"those of {name}", str(error))


def _with_checked_parameters(kind: type[GraphEstimator], given: dict[str, Any]) -> GraphEstimator:
    model = kind(**given)
    try:
        model._check_parameters()
    except ParameterError:
        # Earlier versions wrote a NumPy number as null: the default takes its place.
        known = {name: value for name, value in given.items() if value is not None}
        if len(known) == len(given):
            raise
        model = kind(**known)
        model._check_parameters()
    return model


def plain_params(model: GraphEstimator) -> dict[str, Any]:
    """Hyper-parameters as JSON; a random generator cannot be written and becomes None."""
    return {k: _plain_param(v) for k, v in model.get_params(deep=False).items()}


def _plain_param(value: Any) -> Any:
    if isinstance(value, GraphEstimator):
        return {"estimator": type(value).__name__, "params": plain_params(value)}
    if isinstance(value, np.generic):
        value = value.item()
    return value if _is_plain(value) else None


def _param(saved: Saved) -> Any:
    """JSON knows lists only, hyper-parameters are tuples; a mapping is an estimator."""
    value = saved.value
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


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: it is written as null."""
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Say before hours of work that its result could not be stored, or would cost other files."""
    check_folder(path, overwrite=overwrite)
    if path.is_dir() and any(path.iterdir()) and not (path / HEADER).is_file():
        raise OutputError(
            f"{path} holds other files and no graphfield model, so it is not replaced. Choose another folder."
        )
