"""What a model folder holds besides the model, for the report page; every file may be missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphfield.check import findings
from graphfield.check.findings import DataCheck
from graphfield.data.covariate_rows import FILE_NAME as ROWS
from graphfield.data.covariate_rows import parse_covariates
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.saved_files import SEAL, check_seal, finite_values, parse_json, read_regular
from graphfield.data.saved_values import Saved
from graphfield.estimators.persistence import check_written
from graphfield.exceptions import ModelFileError
from graphfield.inference import edge_record, evidence, model_gain
from graphfield.inference.evidence import Evidence
from graphfield.inference.model_gain import ModelGain

CHECK, EDGES, EVIDENCE = "data_check.json", "edges.json", "evidence.json"
FIT, GAIN = "fit.json", "gain.json"
# Of a gain, which is a share.
_LARGE = 1e9
FORMATS = {CHECK: findings.FORMAT, EVIDENCE: evidence.FORMAT, GAIN: model_gain.FORMAT}
FORMATS |= {EDGES: edge_record.FORMAT}


def fit_record(
    *,
    rows: int,
    nodes: Sequence[str],
    covariates: Sequence[str],
    seconds: float,
    table: str | None = None,
    group: str | None = None,
    unused: Sequence[str] = (),
) -> dict[str, Any]:
    """What ``fit.json`` says of every fit: what it was fitted to, and how long that took."""
    return {
        **({} if table is None else {"table": table}),
        "rows": rows,
        "nodes": list(nodes),
        "covariates": list(covariates),
        "group": group,
        "unused": list(unused),
        "seconds": round(seconds, 2),
    }


def gain_record(gain: ModelGain | None, why_not: str = "") -> dict[str, Any]:
    """What ``gain.json`` says: how the model does against one graph, or why nobody knows."""
    values = None if gain is None else gain.to_json()
    return {"format": model_gain.FORMAT, "format_version": 1, "gain": values, "why_not": why_not}


def recorded_gain(record: Mapping[str, Any] | None) -> tuple[ModelGain | None, str]:
    """The comparison of a ``gain.json``, or None and why there is none."""
    found = (record or {}).get("gain")
    return (ModelGain.from_json(found) if found else None), str((record or {}).get("why_not") or "")


@dataclass(frozen=True)
class RowsUsed:
    """Rows that a fit used, and rows of its table that it left out because of missing values."""

    used: int
    left_out: int = 0

    @classmethod
    def of(cls, fit: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> RowsUsed | None:
        """From ``fit.json`` and what ``data_check.json`` says was dropped; None where neither tells."""
        if not fit or fit.get("rows") is None:
            return None
        rows, checked = int(fit["rows"]), check or {}
        left_out = int(checked.get("rows_left_out") or 0) if checked.get("n_rows") == rows else 0
        return cls(rows - left_out, left_out)

    def left_out_words(self) -> str:
        return f" ({self.left_out:,} left out: missing or infinite values)" if self.left_out else ""


def read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """A JSON file of the folder, or None where there is none."""
    content = _read(folder / name)
    return None if content is None else _as_record(content, folder / name)


def read_rows(folder: Path, encoder: CovariateEncoder) -> pd.DataFrame | None:
    """Training rows of the covariates, or None where the folder has none."""
    path = folder / ROWS
    content = _read(path)
    if content is None:
        return None
    check_written(path, content)
    return parse_covariates(content, path, encoder)


def _read(path: Path) -> bytes | None:
    return read_regular(path) if path.is_file() else None


def _as_record(content: bytes, path: Path) -> dict[str, Any]:
    record, name = parse_json(content, path), path.name
    expected = FORMATS.get(name)
    if not isinstance(record, dict) or (expected and record.get("format") != expected):
        raise ModelFileError(
            f"{path} is not what it should be ({expected or 'a JSON object'}). Write it again."
        ).about(file=path)
    if SEAL in record:  # it may have been written after the model
        check_seal(record, path)
    else:
        check_written(path, content)
    _check_record(Saved(record, str(path)), name)
    return record


def checked_record(record: Any, name: str) -> dict[str, Any] | None:
    """The content of such a file as JSON would have it, from a mapping or from the object that is written
    there; what it cannot be is refused."""
    if record is None:
        return None
    if name in _RECORDED and isinstance(record, _RECORDED[name]):
        record = _content_of(record)
    if not isinstance(record, Mapping):
        raise ModelFileError(f"{name} must be a mapping, as a model's folder has it, got {record!r:.60}.")
    try:
        plain = finite_values(json.loads(json.dumps(dict(record), default=_plain)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{name} must be what JSON can hold, but {error}.") from error
    _check_record(Saved(plain, name), name)
    return plain


def _content_of(found: Evidence | DataCheck | ModelGain) -> dict[str, Any]:
    """The content of the file in which this is kept."""
    if isinstance(found, ModelGain):
        return gain_record(found)
    return found.to_json() if isinstance(found, DataCheck) else json.loads(found.to_json())


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and mappings of other kinds; whatever else is shown as text."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


def _check_record(saved: Saved, name: str) -> None:
    """What a page reads of it must be what it should be; anything may be missing."""
    for field, read in _FIELDS[name].items():
        _read_known(saved, field, read)


def _read_known(saved: Saved, name: str, read: Callable[[Saved], object]) -> None:
    value = saved.known(name)
    if value is not None:
        read(value)


def _gain(value: Saved) -> None:
    value["value"].number(-_LARGE, _LARGE)
    value["standard_error"].number(0, _LARGE)


def _model_gain(value: Saved) -> None:
    _gain(value["over_average"])
    for name in ("over_static", "explained", "by_average"):
        _read_known(value, name, _gain)
    for name in ("n_rows", "n_units", "n_folds"):
        value[name].whole()
    for name in ("unit", "rows", "average", "static", "fitted", "error", "nodes"):
        value[name].text()
    for name in ("within_groups", "follows_means", "moving_means"):
        value[name].flag()


def _tested_covariates(value: Saved) -> None:
    for line in value.listed():
        for name, low in (("gain", -_LARGE), ("standard_error", 0), ("p_value", 0), ("adjusted_p_value", 0)):
            _read_known(line, name, partial(Saved.number, low=low, high=_LARGE))
        _read_known(line, "n_permutations", Saved.whole)


def _objects(value: Saved) -> None:
    for one in value.listed():
        one.items()


def _rates(value: Saved, low: float = 0) -> int:
    """How many there are; one that is not known is None."""
    rates = list(value.listed())
    for rate in rates:
        if rate.value is not None:
            rate.number(low, 1)
    return len(rates)


def _banded_curves(value: Saved) -> None:
    for curve in value.listed():
        curve["pair"].whole()
        curve["covariate"].text()
        lengths = {_rates(curve[name], -1) for name in ("estimate", "low", "high", "low_all", "high_all")}
        if len(lengths) > 1:
            curve.refuse("lists of one length")


def _moves_with(value: Saved) -> None:
    for one in value.listed():
        one["pair"].whole()
        one["covariate"].text()
        one["rate"].number(0, 1)


def _positions(value: Saved) -> None:
    for position in value.listed():
        position.whole()


def _places(value: Saved) -> None:
    for places in value.items().values():
        for place in places.listed():
            if not isinstance(place.value, str):
                place.number()


_not_negative = partial(Saved.number, low=0)
# What is read as more than text; everything else is shown as it is.
_RECORDED: dict[str, Any] = {CHECK: DataCheck, EVIDENCE: Evidence, GAIN: ModelGain}
_FIELDS: dict[str, dict[str, Callable[[Saved], object]]] = {
    FIT: {
        "rows": Saved.whole,
        "seconds": _not_negative,
        "unused": Saved.texts,
        "nodes": Saved.texts,
        "covariates": Saved.texts,
        "categories": Saved.texts,
    },
    CHECK: {
        "n_rows": Saved.whole,
        "rows_left_out": Saved.whole,
        "warnings": _objects,
        "changes": Saved.texts,
        "columns": _objects,
    },
    GAIN: {"gain": _model_gain},
    EDGES: {
        **dict.fromkeys(("n_rows", "n_groups"), Saved.whole),
        **dict.fromkeys(("nodes", "movers", "moved_by", "notes", "drifting"), Saved.texts),
        "mover_pairs": _positions,
        **dict.fromkeys(("q_value", "q_varies"), _rates),
        **dict.fromkeys(("estimate", "low", "high"), partial(_rates, low=-1)),
        "values": _places,
        "curves": _banded_curves,
        "with_one": _moves_with,
        **dict.fromkeys(("why_not", "caveat"), Saved.text),
    },
    EVIDENCE: {
        **dict.fromkeys(("n_rows", "n_folds", "n_permutations"), Saved.whole),
        **dict.fromkeys(("gain_over_static", "gain_over_linear"), _gain),
        **dict.fromkeys(("model_gain_over_static", "model_gain_over_linear"), _gain),
        "p_value": _not_negative,
        "covariates": _tested_covariates,
        **dict.fromkeys(("notes", "drifting"), Saved.texts),
        **dict.fromkeys(("error", "regressions", "verdict", "sentence", "caveat", "differences"), Saved.text),
    },
}
