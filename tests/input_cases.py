"""Generated inputs for the fuzz tests: one number makes one case, always the same."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import graphfield as gf
from graphfield.exceptions import GraphfieldError

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

SMALL = {"max_steps": 15, "hidden_size": 8, "device": "cpu"}


def _lasso() -> gf.GraphicalLasso:
    return gf.GraphicalLasso(n_penalties=3, n_folds=3)


# Each with how often it is drawn.
QUICK: list[tuple[int, Callable[[np.random.Generator], Any]]] = [
    (6, lambda rng: gf.GraphicalLasso(n_penalties=3, n_folds=3, **_static(rng))),
    (4, lambda rng: gf.NodewiseLasso(n_penalties=6, n_folds=3, **_static(rng))),
    (6, lambda rng: gf.RegGMM(**_shared(rng))),
    (2, lambda rng: gf.RegGMM(penalty="sparse-group", n_penalties=4, n_folds=3, **_shared(rng))),
    (3, lambda rng: gf.TreeCGM(max_leaves=4, random_state=0, **_policies(rng))),
    (3, lambda rng: gf.ByCluster(estimator=_lasso(), missing=_missing(rng))),
    (1, lambda rng: gf.AutoCGM(candidates=("static", "linear"), random_state=0, **_policies(rng))),
]
DEEP: list[tuple[int, Callable[[np.random.Generator], Any]]] = [
    (12, lambda rng: gf.DNNCGM(rank=2, random_state=0, **SMALL, **_shared(rng), **_marginals(rng))),
    (6, lambda rng: gf.DNNCGM(rank=None, random_state=0, **SMALL, **_shared(rng), **_marginals(rng))),
    (1, lambda rng: gf.DNNCGM(max_steps=30, device="cpu", random_state=0, **_policies(rng))),
]
OTHER: list[tuple[int, Callable[[np.random.Generator], Any]]] = [
    (2, lambda rng: gf.ArchetypeCGM(n_archetypes=2, penalty=0.05, random_state=0, **SMALL, **_policies(rng))),
    (1, lambda *_: gf.Ensemble(estimator=gf.DNNCGM(rank=2, **SMALL), n_members=2, random_state=0)),
    (1, lambda *_: gf.Ensemble(estimator=gf.RegGMM(), n_members=3, resample=True, random_state=0)),
]
POOLS = {"quick": QUICK, "deep": DEEP, "other": OTHER}


def _missing(rng: np.random.Generator) -> str:
    return str(rng.choice(["error", "drop", "drop", "impute"]))


def _policies(rng: np.random.Generator) -> dict[str, Any]:
    return {"missing": _missing(rng), "unknown": str(rng.choice(["error", "average"]))}


def _static(rng: np.random.Generator) -> dict[str, Any]:
    penalty: Any = ["cv", "ebic", 0.2][int(rng.integers(3))]
    center = str(rng.choice(["constant", "covariates"]))
    return {"missing": _missing(rng), "penalty": penalty, "center": center}


def _shared(rng: np.random.Generator) -> dict[str, Any]:
    center = str(rng.choice(["covariates", "covariates", "constant", "none"]))
    return {**_policies(rng), "center": center, "standardize": bool(rng.random() < 0.85)}


def _marginals(rng: np.random.Generator) -> dict[str, Any]:
    return {"marginals": str(rng.choice(["auto", "raw", "normal"]))}


@dataclass
class Case:
    """An estimator, its tables, and in ``story`` what was done to them."""

    pool: str
    seed: int
    model: Any
    X: Any
    Z: Any
    Z_new: Any
    options: dict[str, Any] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"make_case({self.pool!r}, {self.seed}): {self.model}; {', '.join(self.story)}"


def make_case(pool: str, seed: int) -> Case:
    rng = np.random.default_rng([sorted(POOLS).index(pool), seed])
    model = _drawn(rng, POOLS[pool])(rng)
    story: list[str] = []
    with np.errstate(all="ignore"):
        X = _nodes(rng, story)
        Z = _covariates(rng, X, story)
    Z_new = Z.iloc[rng.integers(len(Z), size=3)].reset_index(drop=True)
    if rng.random() < 0.2:
        Z_new = _moved(Z_new, story)
    options = _options(rng, pool, model, X, Z, story)
    named = _packed_nodes(rng, X, story)
    z_kind = str(rng.choice(Z_KINDS))
    story.append(f"Z {z_kind}")
    return Case(pool, seed, model, named, _packed(z_kind, Z), _packed(z_kind, Z_new), options, story)


def _drawn(rng: np.random.Generator, pool: list[tuple[int, Any]]) -> Any:
    weights = np.array([weight for weight, _ in pool], dtype=float)
    return pool[int(rng.choice(len(pool), p=weights / weights.sum()))][1]


# -- node values -----------------------------------------------------------------------------


def _nodes(rng: np.random.Generator, story: list[str]) -> np.ndarray:
    n = int(rng.choice([1, 2, 9, 10, 11, 12] if rng.random() < 0.15 else [20, 30, 40, 60, 80]))
    p = int(rng.choice([1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6]))
    X = rng.normal(size=(n, p))
    if p > 1:
        X[:, 1] += 0.8 * X[:, 0]
    story.append(f"n = {n}, p = {p}")
    for which in rng.choice(list(NODE_TWISTS), size=int(rng.choice([0, 1, 1, 2])), replace=False):
        X = NODE_TWISTS[which](rng, X)
        story.append(f"X {which}")
    return X


def _any(rng: np.random.Generator, X: np.ndarray) -> int:
    return int(rng.integers(X.shape[1]))


def _with(X: np.ndarray, column: int, values: Any) -> np.ndarray:
    X = X.copy()
    X[:, column] = values
    return X


def _scaled(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return X * 10.0 ** float(rng.uniform(-320, 310))


def _within_reach(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X * 10.0 ** float(rng.uniform(-95, 95))


def _wild_columns(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X * 10.0 ** rng.uniform(-90, 90, X.shape[1])


def _moderate_columns(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X * 10.0 ** rng.uniform(-15, 15, X.shape[1])


def _near_copy(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    noise = 10.0 ** float(rng.uniform(-17, -3)) * rng.normal(size=len(X))
    return np.column_stack([X, X[:, 0] + noise])


def _with_entries(rng: np.random.Generator, X: np.ndarray, values: list[float]) -> np.ndarray:
    X = X.copy()
    for _ in range(int(rng.integers(1, 4))):
        X[rng.integers(len(X)), rng.integers(X.shape[1])] = values[int(rng.integers(len(values)))]
    return X


NODE_TWISTS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "scaled": _scaled,
    "scaled within reach": _within_reach,
    "columns of wild scales": _wild_columns,
    "columns of other scales": _moderate_columns,
    "constant": lambda rng, X: _with(X, _any(rng, X), rng.choice([0.0, 1.0, -1e-300, 1e8])),
    "nearly constant": lambda rng, X: _with(X, _any(rng, X), 1.0 + 1e-16 * rng.integers(0, 9, len(X))),
    "constant but one": lambda rng, X: _with(X, _any(rng, X), np.arange(len(X)) == len(X) // 2),
    "far from zero": lambda rng, X: X + 10.0 ** float(rng.uniform(2, 17)),
    "copy": lambda _, X: np.column_stack([X, X[:, 0]]),
    "near copy": _near_copy,
    "negated copy": lambda _, X: np.column_stack([X, -X[:, 0]]),
    "x and -x": lambda _, X: np.column_stack([X[:, 0], -X[:, 0]]),
    "x and x": lambda _, X: np.column_stack([X[:, 0], X[:, 0]]),
    "sum": lambda _, X: np.column_stack([X, X.sum(axis=1)]),
    "affine copy": lambda _, X: np.column_stack([X, 1e6 - 1e3 * X[:, 0]]),
    "outlier": lambda rng, X: _with_entries(rng, X, [1e3, -1e6, 1e15, 1e30, 1e60]),
    "not finite": lambda rng, X: _with_entries(rng, X, [np.nan, np.inf, -np.inf]),
    "heavy tails": lambda rng, X: rng.standard_cauchy(X.shape) * np.abs(rng.standard_cauchy(X.shape)),
    "whole numbers": lambda _, X: np.round(X),
    "two values": lambda _, X: (X > 0).astype(float),
    "mostly zero": lambda _, X: np.where(np.abs(X) > 1.5, X, 0.0),
    "exponential": lambda _, X: np.exp(5 * X),
    "more nodes than rows": lambda rng, X: np.column_stack([X, rng.normal(size=(len(X), 12))]),
    "sorted": lambda _, X: np.sort(X, axis=0),
    "smallest numbers": lambda _, X: 5e-324 * np.round(3 * X),
}

# Containers that are drawn more often, so that many fits go through.
SOUND = ("array", "Fortran order", "float32", "list", "frame", "polars", "arrow", "tensor", "int")

NAMES: dict[str, Callable[[int], list[Any]]] = {
    "plain": lambda p: [f"n{i}" for i in range(p)],
    "unicode": lambda p: [f"Knoten_{'äßΩ日本🧠'[i % 6]}{i}" for i in range(p)],
    "empty": lambda p: ["", *[" " * i for i in range(1, p)]],
    "control": lambda p: [f"a{chr(i + 1)}b{i}" for i in range(p)],
    "twice": lambda p: ["same"] * p,
    "numbers": lambda p: list(range(p)),
    "mixed": lambda p: [("n", 1.5, None, True, "x", (1, 2))[i % 6] if i < 6 else i for i in range(p)],
    "markup": lambda p: [f"<b>&{i}'\"</b>" for i in range(p)],
    "long": lambda p: ["n" * 3000 + str(i) for i in range(p)],
    "surrogate": lambda p: [f"\ud800{i}" for i in range(p)],
}


def _packed_nodes(rng: np.random.Generator, X: np.ndarray, story: list[str]) -> Any:
    """Node values in some container; some of them mean nothing and must be refused."""
    kind = str(rng.choice(SOUND if rng.random() < 0.7 else list(X_KINDS)))
    names = str(rng.choice(list(NAMES))) if rng.random() < 0.3 else "plain"
    story.append(f"X {kind}, names {names}")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return X_KINDS[kind](X, NAMES[names](X.shape[1]))
        except (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError):
            return X  # the container itself cannot hold it


def _frame(X: np.ndarray, names: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(X)
    frame.columns = pd.Index(names, tupleize_cols=False, dtype=object)
    return frame


def _masked(X: np.ndarray, _: list[Any]) -> Any:
    mask = np.zeros(X.shape, dtype=bool)
    mask[len(X) // 2, 0] = True
    return np.ma.array(np.where(mask, 1e6, X), mask=mask)


def _nullable(X: np.ndarray, names: list[Any]) -> pd.DataFrame:
    frame = _frame(np.round(X), names).astype("Float64")
    frame.iloc[len(X) // 2, 0] = pd.NA
    return frame


def _odd_cell(value: Any) -> Callable[[np.ndarray, list[Any]], pd.DataFrame]:
    def put(X: np.ndarray, names: list[Any]) -> pd.DataFrame:
        cells = X.astype(object)
        cells[len(X) // 2, 0] = value
        return _frame(cells, names)

    return put


def _structured(X: np.ndarray, _: list[Any]) -> np.ndarray:
    table = np.empty(len(X), dtype=[(f"f{i}", float) for i in range(X.shape[1])])
    for i in range(X.shape[1]):
        table[f"f{i}"] = X[:, i]
    return table


def _two_levels(X: np.ndarray, _: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], range(X.shape[1])]))


def _row_levels(X: np.ndarray, names: list[Any]) -> pd.DataFrame:
    frame = _frame(X, names)
    frame.index = pd.MultiIndex.from_product([["s"], range(len(X))])
    return frame


X_KINDS: dict[str, Callable[[np.ndarray, list[Any]], Any]] = {
    "array": lambda X, _: X,
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "every other row": lambda X, _: np.repeat(X, 2, axis=0)[::2],
    "read only": lambda X, _: _locked(X),
    "big endian": lambda X, _: X.astype(">f8"),
    "big endian frame": lambda X, names: _frame(X.astype(">f8"), names),
    "float32": lambda X, _: X.astype(np.float32),
    "float16": lambda X, _: X.astype(np.float16),
    "long double": lambda X, _: X.astype(np.longdouble),
    "int": lambda X, _: np.round(3 * X).astype(np.int64),
    "small int": lambda X, _: np.round(3 * X).astype(np.int8),
    "bool": lambda X, _: X > 0,
    "object": lambda X, _: X.astype(object),
    "text": lambda X, _: X.astype(str),
    "list": lambda X, _: X.tolist(),
    "tuple": lambda X, _: tuple(map(tuple, X.tolist())),
    "frame": _frame,
    "frame of objects": lambda X, names: _frame(X.astype(object), names),
    "nullable frame": _nullable,
    "two levels of names": _two_levels,
    "two levels of rows": _row_levels,
    "polars": lambda X, names: pl.DataFrame(X, schema=[str(name) for name in names]),
    "arrow": lambda X, names: pa.table(list(X.T), names=[str(name) for name in names]),
    "arrow batch": lambda X, names: pa.record_batch(list(map(pa.array, X.T)), [str(n) for n in names]),
    "arrow frame": lambda X, names: _frame(X, names).astype(pd.ArrowDtype(pa.float64())),
    "masked": _masked,
    "tensor": lambda X, _: torch.tensor(X),
    "tensor with gradients": lambda X, _: torch.tensor(X, requires_grad=True),
    "half tensor": lambda X, _: torch.tensor(X).to(torch.bfloat16),
    "matrix": lambda X, _: np.asmatrix(X),
    "structured": _structured,
    "complex": lambda X, _: X.astype(complex),
    "dates": lambda X, _: np.round(X).astype("datetime64[D]"),
    "bytes": lambda X, _: X.astype("S8"),
    "list in a cell": _odd_cell([1, 2]),
    "dict in a cell": _odd_cell({"a": 1}),
    "array in a cell": _odd_cell(np.zeros(2)),
    "long number in a cell": _odd_cell(10**400),
    "complex in a cell": _odd_cell(1j),
    "date in a cell": _odd_cell(datetime.date(2020, 3, 1)),
    "None in a cell": _odd_cell(None),
    "text in a cell": _odd_cell("n/a"),
    "flat": lambda X, _: X[:, 0],
    "cube": lambda X, _: X[None],
    "number": lambda *_: np.array(1.0),
    "ragged": lambda X, _: [*X.tolist(), [1.0] * (X.shape[1] + 1)],
    "no rows": lambda X, names: _frame(X[:0], names),
    "no columns": lambda X, _: X[:, :0],
}


def _locked(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


# -- covariates ------------------------------------------------------------------------------


def _covariates(rng: np.random.Generator, X: np.ndarray, story: list[str]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for i in range(int(rng.choice([1, 1, 2, 2, 3]))):
        kind = str(rng.choice(list(Z_COLUMNS))) if rng.random() < 0.5 else ("number", "site")[i % 2]
        columns[f"c{i}"] = Z_COLUMNS[kind](rng, X)
        story.append(f"covariate {kind}")
    if rng.random() < 0.03:
        columns |= {f"m{i}": rng.normal(size=len(X)) for i in range(30)}
        story.append("many covariates")
    return pd.DataFrame(columns, index=range(len(X)))


def _levels(*names: Any) -> Callable[[np.random.Generator, np.ndarray], Any]:
    def draw(rng: np.random.Generator, X: np.ndarray) -> Any:
        column = np.empty(len(X), dtype=object)
        column[:] = [names[i] for i in rng.integers(len(names), size=len(X))]
        return column

    return draw


def _days(rng: np.random.Generator, X: np.ndarray) -> pd.DatetimeIndex:
    return pd.Timestamp("2020-02-27") + pd.to_timedelta(rng.integers(0, 900, len(X)), unit="D")


def _z_scaled(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return rng.normal(size=len(X)) * 10.0 ** float(rng.uniform(-323, 308.2))


def _with_gap(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    column = rng.normal(size=len(X))
    column[rng.integers(len(X))] = rng.choice([np.nan, np.inf])
    return column


Z_COLUMNS: dict[str, Callable[[np.random.Generator, np.ndarray], Any]] = {
    "number": lambda rng, X: rng.uniform(20, 80, len(X)),
    "scaled": _z_scaled,
    "tiny": lambda rng, X: 1e-170 * rng.normal(size=len(X)),
    "smallest": lambda rng, X: 5e-324 * rng.integers(0, 3, len(X)),
    "huge": lambda rng, X: 1e307 * rng.normal(size=len(X)),
    "far from zero": lambda rng, X: 1e15 + rng.integers(0, 5, len(X)),
    "outlier": lambda rng, X: np.where(np.arange(len(X)) == 0, 1e150, rng.normal(size=len(X))),
    "constant": lambda _, X: np.ones(len(X)),
    "a node": lambda _, X: X[:, 0],
    "two values": lambda rng, X: rng.integers(0, 2, len(X)).astype(float),
    "whole numbers": lambda rng, X: rng.integers(-5, 5, len(X)),
    "unsigned": lambda rng, X: rng.integers(0, 2**64 - 1, len(X), dtype=np.uint64),
    "float32": lambda rng, X: (1e38 * rng.uniform(-1, 1, len(X))).astype(np.float32),
    "float16": lambda rng, X: rng.normal(size=len(X)).astype(np.float16),
    "time": lambda _, X: np.arange(len(X)),
    "site": _levels("A", "B"),
    "rare levels": lambda _, X: np.where(np.arange(len(X)) == 0, "rare", "usual").astype(object),
    "odd levels": _levels("", " ", "nan", "None", "é"),
    "more odd levels": _levels("a\nb", "\x00", "<b>", "1e999", "'\""),
    "mixed levels": _levels("a", 1, 1.0, True, (1, 2)),
    "levels that are lists": _levels([1], [1, 2]),
    "numbers as text": _levels("1", "2", "3.5"),
    "True and False": _levels(True, False),
    "bool": lambda rng, X: rng.random(len(X)) < 0.5,
    "category": lambda rng, X: pd.Categorical(rng.choice(["u", "v"], len(X)), categories=["v", "u", "w"]),
    "category of numbers": lambda rng, X: pd.Categorical(rng.integers(0, 3, len(X))),
    "ordered": lambda rng, X: pd.Categorical(rng.choice(["lo", "hi"], len(X)), ["lo", "hi"], ordered=True),
    "nullable": lambda rng, X: pd.array(rng.integers(0, 4, len(X)), dtype="Int64"),
    "nullable with a gap": lambda rng, X: pd.array([pd.NA, *rng.integers(0, 4, len(X) - 1)], dtype="Int64"),
    "string with a gap": lambda rng, X: pd.array(
        [pd.NA, *rng.choice(["a", "b"], len(X) - 1)], dtype="string"
    ),
    "nullable bool": lambda rng, X: pd.array(rng.random(len(X)) < 0.5, dtype="boolean"),
    "dates": _days,
    "dates as text": lambda rng, X: _days(rng, X).strftime("%Y-%m-%d").to_numpy(dtype=object),
    "dates as objects": lambda rng, X: np.array([day.date() for day in _days(rng, X)], dtype=object),
    "dates with a zone": lambda rng, X: _days(rng, X).tz_localize("UTC"),
    "periods": lambda rng, X: _days(rng, X).to_period("M"),
    "lengths of time": lambda rng, X: pd.to_timedelta(rng.integers(0, 9, len(X)), unit="h"),
    "gap": _with_gap,
    "an own text in each row": lambda _, X: np.array([f"subject {i}" for i in range(len(X))], dtype=object),
    "complex": lambda rng, X: rng.normal(size=len(X)) * 1j,
    "long numbers": _levels(10**400, 1, 2),
    "intervals": lambda rng, X: pd.cut(rng.normal(size=len(X)), [-9, 0, 9]),
}

Z_KINDS = ("frame",) * 6 + ("array", "polars", "arrow", "list", "masked", "tensor", "records")


def _packed(kind: str, Z: pd.DataFrame) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _Z_PACKED[kind](Z)
        except (ValueError, TypeError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
            return Z


def _masked_covariates(Z: pd.DataFrame) -> Any:
    values = Z.to_numpy(dtype=np.float64)
    mask = np.zeros(values.shape, dtype=bool)
    mask[len(values) // 3, 0] = True
    return np.ma.array(values, mask=mask)


_Z_PACKED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "frame": lambda Z: Z,
    "array": lambda Z: Z.to_numpy(),
    "polars": lambda Z: pl.DataFrame({name: Z[name].tolist() for name in Z.columns}),
    "arrow": lambda Z: pa.Table.from_pandas(Z),
    "list": lambda Z: Z.to_numpy().tolist(),
    "masked": _masked_covariates,
    "tensor": lambda Z: torch.tensor(Z.to_numpy(dtype=np.float64), requires_grad=True),
    "records": lambda Z: Z.to_records(index=False),
}


def _moved(Z: pd.DataFrame, story: list[str]) -> pd.DataFrame:
    """New rows far outside of the training range, or of a new level."""
    story.append("new z far outside")
    moved = {}
    with np.errstate(all="ignore"):
        for name in Z.columns:
            number = pd.api.types.is_float_dtype(Z[name])
            moved[name] = Z[name].to_numpy() * 1e10 if number else Z[name]
    return pd.DataFrame(moved)


# -- what else fit takes ---------------------------------------------------------------------


def _options(
    rng: np.random.Generator, pool: str, model: Any, X: np.ndarray, Z: pd.DataFrame, story: list[str]
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.15:
        kind = str(rng.choice(list(GROUPS)))
        options["groups"] = GROUPS[kind](rng, len(X))
        story.append(f"groups {kind}")
    if isinstance(model, gf.DNNCGM) and rng.random() < 0.2:
        rows = rng.integers(len(X), size=int(rng.choice([1, 2, 10])))
        options |= {"X_val": X[rows], "Z_val": Z.iloc[rows].reset_index(drop=True)}
        if rng.random() < 0.3:
            with np.errstate(all="ignore"):
                options["X_val"] = options["X_val"] * 1e80
        story.append(f"{len(rows)} rows of X_val")
    return options


GROUPS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "many": lambda rng, n: rng.integers(0, max(2, n // 3), n),
    "two": lambda rng, n: rng.integers(0, 2, n),
    "text": lambda rng, n: rng.choice(["s1", "s2", "s3", "é", ""], n),
    "one": lambda _, n: np.zeros(n),
    "each its own": lambda _, n: np.arange(n),
    "too few": lambda _, n: np.arange(n + 1),
    "with a gap": lambda _, n: [None, *range(n - 1)],
    "pairs": lambda _, n: [(i % 3, 1) for i in range(n)],
    "table": lambda _, n: np.zeros((n, 2)),
    "series": lambda rng, n: pd.Series(rng.integers(0, 4, n), index=range(n)),
    "text alone": lambda *_: "subject",
    "number": lambda *_: 3,
    "masked": lambda rng, n: np.ma.array(rng.integers(0, 4, n), mask=np.arange(n) == 0),
    "tensor": lambda _, n: torch.arange(n) % 4,
    "generator": lambda _, n: (i % 4 for i in range(n)),
}


# -- the property ----------------------------------------------------------------------------


def run_case(case: Case) -> str:
    """ "fitted" or "refused"; anything that must not happen is raised as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            case.model.fit(case.X, case.Z, **case.options)
        except GraphfieldError:
            return "refused"
        for Z in (case.Z, case.Z_new):
            _check_graphs(case.model, Z)
        _check_values(case.model, case.X, case.Z)
    return "fitted"


def _asked(question: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The answer, or None where the question was refused."""
    try:
        return question(*arguments, **options)
    except GraphfieldError:
        return None


def _check_graphs(model: Any, Z: Any) -> None:
    coef = _asked(model.predict_coef, Z)
    assert coef is None or np.isfinite(coef).all(), "predict_coef is not finite"
    partial = _asked(model.partial_correlations, Z)
    if partial is None:
        return  # rows with gaps, say
    assert np.isfinite(partial).all(), "partial_correlations is not finite"
    assert np.array_equal(partial, partial.swapaxes(1, 2)), "partial_correlations is not symmetric"
    weights = model.edge_weights(Z)
    assert ((weights >= 0) & (weights <= 1)).all(), "edge_weights is outside [0, 1]"
    graph = model.predict_graph(Z)
    assert np.array_equal(graph, graph.swapaxes(1, 2)), "predict_graph is not symmetric"
    _check_precision(_asked(model.predict_precision, Z))
    edges = model.edges(Z)
    assert np.isfinite(edges[["weight", "partial_correlation"]].to_numpy()).all(), "edges is not finite"
    network = _asked(model.to_networkx, Z[:1])
    if network is not None:
        assert network.number_of_nodes() == model.n_features_in_
        assert all(np.isfinite(d["weight"]) for _, _, d in network.edges(data=True))


def _check_precision(precision: Any) -> None:
    if precision is None:
        return
    assert np.isfinite(precision).all(), "predict_precision is not finite"
    assert np.allclose(precision, precision.swapaxes(1, 2), rtol=1e-6, atol=0), "precision is not symmetric"
    root = np.sqrt(np.diagonal(precision, axis1=1, axis2=2))
    standard = precision / root[:, :, None] / root[:, None, :]
    assert (np.linalg.eigvalsh(standard) > 0).all(), "predict_precision is not positive definite"


def _check_values(model: Any, X: Any, Z: Any) -> None:
    fitted = _asked(model.predict, X, Z)
    assert fitted is None or np.isfinite(fitted).all(), "predict is not finite"
    score = _asked(model.score, X, Z)
    assert score is None or np.isfinite(score), "score is not finite"
    assert np.isfinite(model.residual_scale_).all(), "residual_scale_ is not finite"
    assert np.isfinite(model.threshold_.value), "threshold_ is not finite"
