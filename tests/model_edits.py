"""Saved models, edited at random, and the questions that a loaded one must be able to answer."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import graphfield as gf
from conftest import ESTIMATORS, SMALL
from graphfield import analysis, report
from graphfield.estimators.base import GraphEstimator

Arrays = dict[str, np.ndarray]
Where = tuple[Any, ...]

# Beside the estimators of the contract: other networks, normal scores, a mean that moves, trees with leaves.
MODELS: dict[str, Callable[[], GraphEstimator]] = {
    **{name: make for name, make in ESTIMATORS.items() if name != "reggmm-sparse-group"},
    "auto-average": lambda: gf.AutoCGM(candidates=("static", "linear", "tree"), random_state=0),
    "by-cluster-linear": lambda: gf.ByCluster(estimator=gf.RegGMM(), by="site"),
    "dnncgm-edge": lambda: gf.DNNCGM(**{**SMALL, "rank": None}, sharing="edge"),
    "dnncgm-linear": lambda: gf.DNNCGM(**{**SMALL, "rank": None}, network="linear"),
    "dnncgm-scores": lambda: gf.DNNCGM(
        **{**SMALL, "max_steps": 150, "learning_rate": 0.02}, marginals="normal"
    ),
    "ensemble-trees": lambda: gf.Ensemble(estimator=gf.TreeCGM(), n_members=2, resample=True, random_state=0),
    "static-center": lambda: gf.NodewiseLasso(penalty=0.1, center="covariates"),
}


def steps_data(n: int = 260, p: int = 4) -> tuple[pd.DataFrame, pd.DataFrame]:
    """An edge that turns over with age, another with the site, a mean that moves."""
    rng = np.random.default_rng(3)
    age, site = rng.uniform(20, 80, n), rng.choice(["A", "B"], n)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D")
    X = rng.normal(size=(n, p))
    X[:, 1] += np.where(age < 50, -1.5, 1.5) * X[:, 0]
    X[:, 3] += np.where(site == "A", -1.0, 1.0) * X[:, 2]
    X[:, 2] += 3 * np.sin(age / 8)
    nodes = pd.DataFrame(X, columns=[f"n{j}" for j in range(p)])
    return nodes, pd.DataFrame({"age": age, "site": site, "day": day})


# -- edits ------------------------------------------------------------------------------------


@dataclass
class Folder:
    """A saved model in memory."""

    header: dict[str, Any]
    arrays: Arrays

    @classmethod
    def read(cls, path: Path) -> Folder:
        header = json.loads((path / "model.json").read_text())
        return cls(header, load_arrays((path / "arrays.safetensors").read_bytes()))

    def copy(self) -> Folder:
        return Folder(copy.deepcopy(self.header), {name: a.copy() for name, a in self.arrays.items()})

    def write(self, path: Path) -> None:
        """With checksums that fit."""
        payload = save_arrays({name: np.ascontiguousarray(a) for name, a in self.arrays.items()})
        self.header["arrays_sha256"] = hashlib.sha256(payload).hexdigest()
        path.mkdir(exist_ok=True)
        (path / "model.json").write_text(signed(self.header), encoding="utf-8")
        (path / "arrays.safetensors").write_bytes(payload)


def signed(header: dict[str, Any]) -> str:
    """As JSON, with the checksum of its own content where it has one."""
    header = dict(header)
    if "model_sha256" in header:
        from graphfield.data.saved_files import json_digest

        header.pop("model_sha256")
        try:
            header["model_sha256"] = json_digest(header)
        except (ValueError, TypeError):  # not JSON any more: the reader stops before it looks
            header["model_sha256"] = ""
    return json.dumps(header)


def places(value: Any, where: Where = ()) -> Iterator[Where]:
    """Every position in JSON values, the top left out."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*where, key)
        yield from places(inner, (*where, key))


def chosen_place(header: dict[str, Any], rng: np.random.Generator) -> Where:
    """Long lists count as much as single values do."""
    by_kind: dict[Where, list[Where]] = {}
    for where in places(header):
        by_kind.setdefault(tuple("*" if isinstance(k, int) else k for k in where), []).append(where)
    kinds = [kind for kind in by_kind if kind[0] not in ("arrays_sha256", "model_sha256")]
    own = by_kind[kinds[rng.integers(len(kinds))]]
    return own[rng.integers(len(own))]


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, -5, 0.5, -0.5, 1.5, 1e-300, 1e300, -1e300, 1e39, 1e9, 10**9, 10**30,
    10**400, float("nan"), float("inf"), "", "x", "\ud800", "A", "n0", "gap", [], {}, [[]], [[[[1]]]], [None],
    ["a", "a"], {"a": 1}, [1, 2, 3], "1", "0.5", "nan",
]  # fmt: skip


def edit_json(header: dict[str, Any], rng: np.random.Generator) -> str:
    """One edit somewhere; returns what was done."""
    *way, last = where = chosen_place(header, rng)
    owner: Any = header
    for key in way:
        owner = owner[key]
    value = owner[last]
    kind = rng.choice(["delete", "value", "value", "value", "number", "shape", "rename", "swap"])
    if kind == "delete":
        del owner[last]
    elif kind == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        factor = [-1, 0, 0.5, 2, 1e6, 1e-6, 1e200, 1e-200][rng.integers(8)]
        owner[last] = type(value)(min(max(value * factor, -1e300), 1e300))
    elif kind == "shape" and isinstance(value, list) and value:
        at = int(rng.integers(len(value)))
        owner[last] = [[*value, value[at]], value[:at] + value[at + 1 :], value[::-1], [value], value * 3][
            rng.integers(5)
        ]
    elif kind == "rename" and isinstance(owner, dict):
        owner[str(last) + "_"] = owner.pop(last)
    elif kind == "swap":
        others = [k for k in (owner if isinstance(owner, dict) else range(len(owner))) if k != last]
        if others:
            other = others[rng.integers(len(others))]
            owner[last], owner[other] = owner[other], owner[last]
    else:
        owner[last] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    return f"{kind} {where}"


def edit_arrays(arrays: Arrays, rng: np.random.Generator) -> str:
    """One edit of one array; returns what was done."""
    names = sorted(arrays)
    name, other = names[rng.integers(len(names))], names[rng.integers(len(names))]
    array = arrays[name]
    kinds = ["drop", "extra", "swap", *CHANGES, *ENTRIES]
    kind = kinds[rng.integers(len(kinds))]
    if kind == "drop":
        del arrays[name]
    elif kind == "extra":
        arrays[name + "_"] = array
    elif kind == "swap":
        arrays[name], arrays[other] = arrays[other], array
    else:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = CHANGES[kind](array) if kind in CHANGES else _one(array, ENTRIES[kind], rng)
    return f"{kind} {name}"


def _one(array: np.ndarray, value: float, rng: np.random.Generator) -> np.ndarray:
    """One entry replaced; integers take what fits."""
    result = array.copy()
    if result.size:
        result.reshape(-1)[rng.integers(result.size)] = np.asarray(value).astype(result.dtype)
    return result


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "flat": lambda a: a.reshape(-1) if a.ndim > 1 else a.reshape(1, -1),
    "transpose": lambda a: a.T.copy(),
    "scalar": lambda a: a.reshape(-1)[:1].reshape(()) if a.size else a,
    "empty": lambda a: a.reshape(-1)[:0],
    "shorter": lambda a: a[:-1] if a.ndim else a,
    "longer": lambda a: np.concatenate([a, a[:1]]) if a.ndim else a,
    "deeper": lambda a: a[None],
    "wide": lambda a: np.zeros((*a.shape[:-1], 5000), a.dtype),
    "half": lambda a: a.astype(np.float16),
    "single": lambda a: a.astype(np.float32),
    "double": lambda a: a.astype(np.float64),
    "integers": lambda a: a.astype(np.int64),
    "bytes": lambda a: a.astype(np.uint8),
    "booleans": lambda a: a.astype(bool),
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "negative": np.negative,
    "reversed": lambda a: a[::-1].copy() if a.ndim else a,
    "shifted": lambda a: a + a.dtype.type(1),
    "all-huge": lambda a: (a * 1e150).astype(a.dtype),
    "all-tiny": lambda a: (a * 1e-160).astype(a.dtype),
}
ENTRIES = {
    "nan": np.nan, "inf": np.inf, "huge": 1e308, "large": 1e30, "million": 1e6, "minus": -1, "zero": 0,
    "tiny": 1e-308,
}  # fmt: skip


# -- questions --------------------------------------------------------------------------------


def ask_everything(
    model: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame, folder: Path, *, page: bool
) -> None:
    """All that a model can be asked. Raises ArithmeticError where an answer is not finite."""
    for method in (
        "predict_coef", "partial_correlations", "edge_weights", "predict_graph", "predict_precision"
    ):  # fmt: skip
        _ask(model, method, Z)
    _ask(model, "predict", X, Z)
    _ask(model, "score", X, Z)
    _ask(model, "edges", Z, threshold=None)
    _ask(model, "to_networkx", Z.iloc[:1])
    of_some = {"shares": (Z,), "sample": (Z, 0), "log_likelihood": (X, Z), "leaf": (Z,), "spread": (Z,)}
    for method, arguments in of_some.items():
        if hasattr(model, method):
            _ask(model, method, *arguments)
    for name in PROPERTIES:
        getattr(model, name, None)
    repr(model), model.get_params()
    _typed(lambda: analysis.connectivity(model, Z))
    _typed(lambda: analysis.varying_edges(model, Z))
    _typed(lambda: analysis.graph_at(model, dict(Z.iloc[0])))
    _typed(lambda: gf.load(model.save(folder / "again", overwrite=True)))
    if page:
        _typed(lambda: report.write_report(model, folder / "page.html", overwrite=True))


PROPERTIES = (
    "archetypes_", "archetype_names_", "chosen_", "clusters_", "held_out_", "leaf_penalties_", "members_",
    "models_", "marginals_", "n_leaves_", "path_", "rank_", "rules_", "summary_", "training_", "weights_",
)  # fmt: skip


def _ask(model: GraphEstimator, method: str, *arguments: Any, **options: Any) -> None:
    found = _typed(lambda: getattr(model, method)(*arguments, **options))
    numbers = _numbers(found)
    if numbers is not None and not np.isfinite(numbers).all():
        raise ArithmeticError(f"{method} is not finite")


def _typed(question: Callable[[], Any]) -> Any:
    """The answer; None where it is a refusal in words."""
    try:
        return question()
    except gf.GraphfieldError:
        return None


def _numbers(found: Any) -> np.ndarray | None:
    if isinstance(found, pd.DataFrame):
        found = found.select_dtypes("number").to_numpy()
    if isinstance(found, (np.ndarray, float)):
        return np.asarray(found, dtype=np.float64)
    return None
