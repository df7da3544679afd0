"""Published values and recipes: one TOML file per table, read here."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from graphfield.exceptions import ParameterError, listing, suggestion

FORMAT_VERSION = 1


@cache
def load_spec(name: str) -> dict[str, Any]:
    """The spec called ``name``, for example ``"table1"``."""
    folder = files(__name__)
    known = sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
    if name not in known:
        raise ParameterError(f"Unknown table {name!r}.{suggestion(name, known)} Known: {listing(known)}.")
    spec = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    if spec.get("format_version") != FORMAT_VERSION:
        raise ParameterError(f"Spec {name!r} has format version {spec.get('format_version')!r}.")
    return spec


def published(table: str, method: str, setting: str) -> dict[str, float]:
    """Published values of one cell, for example ``{"auroc": 0.99, "auprc": 0.98, ...}``."""
    return dict(load_spec(table)["published"][method][setting])


def paper_recipe(setting: str, n_train: int) -> dict[str, Any]:
    """Hyper-parameters of ``DNNCGM`` that rebuild the published training of one setting.

    >>> paper_recipe("G1", 10_000)["max_steps"]
    950
    """
    recipe = load_spec("table1")["recipe"]
    if setting not in recipe["by_setting"]:
        raise ParameterError(f"No recipe for setting {setting!r}. Known: {listing(recipe['by_setting'])}.")
    params = {**recipe["common"], **recipe["by_setting"][setting]}
    epochs = params.pop("epochs")
    params["schedule"] = tuple(params["schedule"])
    params["max_steps"] = epochs * (n_train // params["batch_size"])
    return {**params, "patience": None}
