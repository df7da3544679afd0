"""The paper's tables and recipes as TOML files, read and checked here.

A table is a list of rows (method, evaluation, perhaps a threshold) with the published value per
column where there is one. A column is a setting, or a setting with ``-pseudo`` for the truth without
edges between married parents.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphfield.exceptions import ParameterError, listing, suggestion
from graphfield.simulate import SETTINGS

FORMAT_VERSION = 1
TABLES = ("table1", "table3", "table4", "table5", "remark30k")
METRICS = ("auroc", "auprc", "f1", "balanced_accuracy")
EVALUATIONS = ("published", "corrected", "strength", "best")
# Cuts at which the paper reports F1 and balanced accuracy.
THRESHOLDS = (0.01, 0.025, 0.05, 0.075, 0.1)
_CUT_METRICS = ("f1", "balanced_accuracy")  # the others rank all edges and need no cut
# Settings whose truth has edges between married parents, so that there is a graph without them.
PSEUDO_SETTINGS = ("D1", "D2")
_RESERVED = (*TABLES, "all", "figures", "rates", "cells")
_PSEUDO = "-pseudo"
_TABLE_KEYS = {"format_version", "title", "source", "n_train", "n_test", "columns", "metrics", "rows"}
_ROW_KEYS = {"method", "evaluation", "threshold", *METRICS}


@dataclass(frozen=True)
class Published:
    """A printed mean, and its standard deviation over replicates where that is printed."""

    mean: float
    sd: float | None


@dataclass(frozen=True)
class Row:
    """One line of a table: how an estimate was made, how it is scored, what the paper printed."""

    method: str
    evaluation: str
    threshold: float | None = None
    published: Mapping[tuple[str, str], Published] = field(default_factory=dict)  # (metric, column)


@dataclass(frozen=True)
class TableSpec:
    name: str
    title: str
    source: str
    n_train: int
    n_test: int
    columns: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(split_column(column)[0] for column in self.columns))


def split_column(column: str) -> tuple[str, str]:
    """Setting and truth of a column.

    >>> split_column("D1-pseudo"), split_column("G1")
    (('D1', 'pseudo'), ('G1', 'skeleton'))
    """
    if column.endswith(_PSEUDO):
        return column.removesuffix(_PSEUDO), "pseudo"
    return column, "skeleton"


def load_table(name: str) -> TableSpec:
    """The table called ``name``, for example ``"table1"``, or a TOML file of the same form."""
    if name in TABLES:
        text = (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
        return _table(name, text)
    path = Path(name)
    if path.suffix == ".toml" and path.stem in _RESERVED:
        raise ParameterError(f"{path} would take the name of a table of ours. Rename the file.").about(
            argument="name"
        )
    if path.suffix != ".toml":
        raise ParameterError(
            f"Unknown table {name!r}.{suggestion(name, TABLES)} Known: {listing(TABLES)}, or a .toml file."
        ).about(argument="name")
    try:
        return _table(path.stem, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"Cannot read {path}: {error}.").about(argument="name", file=name) from error
    except ParameterError as error:
        error.about(argument="name", file=name)
        raise


def published(table: str, method: str, setting: str) -> dict[str, float]:
    """Published values of one method in one column, for example ``{"auroc": 0.99, "auprc": 0.98}``."""
    values = {
        metric: value.mean
        for row in load_table(table).rows
        if row.method == method
        for (metric, column), value in row.published.items()
        if column == setting
    }
    if not values:
        raise ParameterError(f"{table} has no published value of {method!r} in {setting!r}.").about(
            argument="setting"
        )
    return values


def paper_recipe(setting: str, n_train: int, method: str = "dnn-cgm") -> dict[str, Any]:
    """Hyper-parameters of ``DNNCGM`` that rebuild the published training in one setting.

    ``method`` is "dnn-cgm", or "reggmm-adam" for the paper's way to fit a linear model.

    >>> paper_recipe("G1", 10_000)["max_steps"]
    950
    """
    recipe = _recipes()[method]
    if setting not in recipe["by_setting"]:
        raise ParameterError(
            f"No recipe for setting {setting!r}. Known: {listing(recipe['by_setting'])}."
        ).about(argument="setting")
    params = {**recipe["common"], **recipe["by_setting"][setting]}
    epochs = params.pop("epochs")
    params["schedule"] = _tuples(params["schedule"])
    params["batch_size"] = min(params["batch_size"], n_train)
    params["max_steps"] = epochs * (n_train // params["batch_size"])
    return {**params, "rank": None, "patience": None}


@cache
def _recipes() -> dict[str, Any]:
    return tomllib.loads((files(__name__) / "recipes.toml").read_text(encoding="utf-8"))


def _table(name: str, text: str) -> TableSpec:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"Spec {name!r} is not valid TOML: {error}.") from error
    if raw.get("format_version") != FORMAT_VERSION:
        raise ParameterError(
            f"Spec {name!r} has format_version {raw.get('format_version')!r}; this version of graphfield "
            f"reads {FORMAT_VERSION}."
        )
    _check_keys(f"Spec {name!r}", raw, _TABLE_KEYS)
    lacking = [key for key in ("columns", "metrics", "rows") if not raw.get(key)]
    if lacking:
        raise ParameterError(f"Spec {name!r} lacks {listing(lacking)}.")
    columns, metrics = (_texts(name, key, raw[key]) for key in ("columns", "metrics"))
    for column in columns:
        setting, truth = split_column(column)
        known = SETTINGS if truth == "skeleton" else PSEUDO_SETTINGS
        _check_known(f"Spec {name!r}: unknown setting", setting, known)
    for metric in metrics:
        _check_known(f"Spec {name!r}: unknown metric", metric, METRICS)
    if not isinstance(raw["rows"], list) or not all(isinstance(row, dict) for row in raw["rows"]):
        raise ParameterError(f"Spec {name!r}: rows must be written as [[rows]] tables.")
    return TableSpec(
        name,
        str(raw.get("title", name)),
        str(raw.get("source", "")),
        _count(name, "n_train", raw.get("n_train", 10_000)),
        _count(name, "n_test", raw.get("n_test", 1_000)),
        columns,
        metrics,
        tuple(_row(name, row, columns, metrics) for row in raw["rows"]),
    )


def _row(name: str, raw: dict[str, Any], columns: tuple[str, ...], metrics: tuple[str, ...]) -> Row:
    where = f"Spec {name!r}, row of method {raw.get('method')!r}"
    _check_keys(where, raw, _ROW_KEYS)
    if not isinstance(raw.get("method"), str):
        raise ParameterError(f"{where} must name a method.")
    _check_known(f"{where}: unknown evaluation", raw.get("evaluation"), EVALUATIONS)
    cut = raw.get("threshold")
    needs_cut = any(metric in _CUT_METRICS for metric in metrics)
    if needs_cut and cut not in THRESHOLDS:
        raise ParameterError(f"{where}: threshold must be one of {listing(THRESHOLDS)}, got {cut!r}.")
    if cut is not None and not all(metric in _CUT_METRICS for metric in metrics):
        raise ParameterError(f"{where}: a threshold is for {listing(_CUT_METRICS)} only.")
    values = {}
    for metric in METRICS:
        published = raw.get(metric, {})
        if not isinstance(published, dict):
            raise ParameterError(f"{where}: {metric} must be a table of columns, got {published!r}.")
        for column, numbers in published.items():
            _check_known(f"{where}: unknown column", column, columns)
            values[metric, column] = _published(f"{where}: {metric}.{column}", numbers)
    return Row(raw["method"], raw["evaluation"], cut, values)


def _published(where: str, numbers: Any) -> Published:
    valid = isinstance(numbers, list) and len(numbers) in (1, 2)
    if not valid or not all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in numbers):
        raise ParameterError(f"{where} must be [mean] or [mean, sd], got {numbers!r}.")
    return Published(numbers[0], numbers[1] if len(numbers) == 2 else None)


def _texts(name: str, key: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ParameterError(f"Spec {name!r}: {key} must be a list of names, got {values!r}.")
    return tuple(values)


def _check_keys(where: str, raw: dict[str, Any], known: Iterable[str]) -> None:
    known = sorted(known)
    for key in raw:
        _check_known(f"{where}: unknown key", key, known)


def _check_known(what: str, name: Any, known: Iterable[str]) -> None:
    known = list(known)
    if name not in known:
        hint = suggestion(name, known) if isinstance(name, str) else ""
        raise ParameterError(f"{what} {name!r}.{hint} Known: {listing(known, most=len(known))}.")


def _count(name: str, key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ParameterError(f"Spec {name!r}: {key} must be a whole number >= 1, got {value!r}.")
    return value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
