"""From whatever the user passed to checked arrays and frames."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.containers import plain_array
from graphfield.data.frames import (
    Frame,
    as_frame,
    check_numeric,
    check_roles_disjoint,
    check_same_length,
    node_values,
)
from graphfield.data.level_text import is_categorical
from graphfield.data.missing import dropped_unlabelled, handle_missing
from graphfield.data.node_types import WITH_LEVELS, NodeTypes, TypedRows, node_frame, read_node_types
from graphfield.data.ranges import MAX_MAGNITUDE, MAX_UNSCALED, check_nodes
from graphfield.data.row_order import value_order
from graphfield.data.row_store import take_rows
from graphfield.data.splits import labelled_rows
from graphfield.exceptions import DataError, DataWarning, ParameterError, listing, suggestion
from graphfield.messages import Argument, Message

# What may be subtracted from the nodes: a mean that moves with z, one mean each, nothing.
CENTERS = ("covariates", "constant", "none")
# Nodes, covariates and labels of groups of rows that are kept out of a fit.
HeldOutTable = tuple[NDArray[np.floating], Frame, NDArray | None]


@dataclass(frozen=True)
class Inputs:
    """Node values as an array, covariates as a frame, and which of the user's rows they are.

    ``X`` is float32 or float64 as the user gave it, and may be the user's own memory: read only. Where some
    nodes are no plain numbers, ``types`` says which, and levels are in it by their codes.
    """

    X: NDArray[np.floating]
    Z: Frame
    node_names: list[str]
    nodes_named: bool
    rows: NDArray[np.intp]
    types: NodeTypes | None = None

    def value_order(self, *, by_covariates: bool = True) -> NDArray[np.intp]:
        """Positions of rows, sorted by covariates, then nodes: those that are numbers, and levels last.

        So what levels of nodes are called mostly does not matter, nor what those of covariates are.
        """
        covariates = [_places(own) for _, own in self.Z.values.items()] if by_covariates else []
        kinds = ["gaussian"] * self.X.shape[1] if self.types is None else self.types.kinds
        nodes: tuple[list[NDArray], list[NDArray]] = ([], [])
        for kind, column in zip(kinds, self.X.T, strict=True):
            nodes[kind in WITH_LEVELS].append(column)
        return value_order(covariates, *nodes)

    def take(self, rows: NDArray[np.intp]) -> Inputs:
        """The rows at these positions, in this order."""
        return replace(self, X=take_rows(self.X, rows), Z=self.Z.take(rows), rows=self.rows[rows])


def _places(column: pd.Series) -> NDArray[np.intp]:
    """Places of values in their order; of levels, and of two numbers, the more common one comes first."""
    text = column.astype(str) if column.dtype == object else column
    codes = text.factorize(sort=True)[0]
    sizes = np.bincount(codes)
    if len(sizes) > 2 and not is_categorical(column, str(column.name)):
        return codes
    return np.argsort(np.argsort(-sizes, kind="stable"))[codes]


def training_inputs(
    X: Any,
    Z: Any,
    missing: str,
    *,
    standardize: bool = True,
    node_types: str | Mapping[str, str] | None = None,
    groups: Any = None,
) -> Inputs:
    """Every check that `fit` makes of its data, in the order a person would want to hear of them.

    Without ``node_types`` all nodes must be numbers. Rows without the label of one of ``groups`` are left
    out with those that have gaps, where these are.
    """
    x_frame, z_frame = node_frame(X), as_frame(Z, "Z")
    check_same_length(x_frame, z_frame)
    check_roles_disjoint(x_frame, z_frame)
    types = None
    if isinstance(X, TypedRows):
        types = X.types
    elif node_types is None:
        check_numeric(x_frame)  # text is named as such before it is counted as missing
    else:
        types = read_node_types(x_frame, node_types)
    if types is not None:
        x_frame = types.with_categories(x_frame)
    x_frame, z_frame, rows = handle_missing(x_frame, z_frame, missing)
    if groups is not None and missing == "drop":
        x_frame, z_frame, rows = _labelled(x_frame, z_frame, rows, groups)
    values = node_values(x_frame) if types is None else types.codes(x_frame)
    check_nodes(values, x_frame.names, z_frame.places, MAX_MAGNITUDE if standardize else MAX_UNSCALED)
    return Inputs(values, z_frame, x_frame.names, x_frame.named, rows, types)


def _labelled(
    X: Frame, Z: Frame, rows: NDArray[np.intp], groups: Any
) -> tuple[Frame, Frame, NDArray[np.intp]]:
    """Rows with the label of a group."""
    known = labelled_rows(groups)
    if known.ndim != 1 or rows.max(initial=-1) >= len(known):
        return X, Z, rows  # these are no labels, or too few, which is said where they are read
    kept = np.flatnonzero(known[rows])
    if len(kept) == len(rows):
        return X, Z, rows
    warnings.warn(dropped_unlabelled(len(rows) - len(kept)), DataWarning, stacklevel=3)
    return X.take(kept), Z.take(kept), rows[kept]


def one_row(z: Any, names: Sequence[str]) -> Any:
    """One covariate value, given as a mapping, a Series, a sequence or a one-row table."""
    if isinstance(z, pd.Series):
        z = z.to_dict()
    if isinstance(z, Mapping):
        unknown = [str(name) for name in z if str(name) not in names]
        lacking = [name for name in names if name not in {str(k) for k in z}]
        if unknown or lacking:
            parts = [f"lacks {listing(lacking)}"] if lacking else []
            parts += [f"has unknown {listing(unknown)}"] if unknown else []
            hint = suggestion(unknown[0], names) if unknown else ""
            raise DataError(
                "{argument} must give every covariate once ({names}), but it {what}.{hint}",
                argument=Argument("z"),
                names=listing(names),
                what=" and ".join(parts),
                hint=hint,
            )
        return pd.DataFrame({str(name): [value] for name, value in z.items()})
    if not hasattr(z, "columns"):
        array = plain_array(z, "z")
        z = np.atleast_2d(array)
    if len(z) != 1:
        raise DataError(f"One covariate value was expected, got {len(z)} rows.").about(argument="z")
    return z


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float = np.inf,
    *,
    integer: bool = False,
    optional: bool = False,
    auto: bool = False,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Raise unless ``value`` is a number (a whole one if ``integer``) in the interval.

    None is fine too where it is ``optional``, and "auto" where there is an ``auto``.
    """
    if (optional and value is None) or (auto and isinstance(value, str) and value == "auto"):
        return
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    is_number = isinstance(value, kinds) and not isinstance(value, bool) and np.isfinite(value)
    inside = (
        is_number
        and (value > low if open_low else value >= low)
        and (value < high if open_high else value <= high)
    )
    if not inside:
        what = "a whole number" if integer else "a number"
        left, right = "(" if open_low else "[", ")" if open_high or high == np.inf else "]"
        others = {(True, True): ", 'auto' or None", (True, False): " or 'auto'", (False, True): " or None"}
        raise ParameterError(
            "{argument} must be {what} {where}{others}, got {value!r}.",
            argument=Argument(name),
            what=what,
            where=_interval(low, high, left, right),
            others=others.get((auto, optional), ""),
            value=value,
        )


def check_options(fit: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise unless an estimator, which is given its rows by ``fit``, knows these options."""
    known = list(inspect.signature(fit).parameters)[1:]
    unknown = [name for name in options if name not in known]
    if unknown:
        more = f"; its own options are {listing(known)}" if known else ""
        raise TypeError(
            f"fit() got an unexpected keyword argument {unknown[0]!r}: it takes X, Z, groups, X_val and "
            f"Z_val{more}."
        )


def _interval(low: float, high: float, left: str, right: str) -> str:
    if left == "[" and high == np.inf:
        return Message("in [{low:g}, inf)", code="at-least", low=low)
    return f"in {left}{low:g}, {high:g}{right}"


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError.of(name, f"must be True or False, got {value!r}.")


def root_seed(random_state: Any) -> int:
    """One whole number from an int, a NumPy generator or None; no global state is touched."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ParameterError.of("random_state", f"must not be negative, got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**63))
    raise ParameterError.of(
        "random_state", f"must be a whole number, a numpy Generator or None, got {random_state!r}."
    )


def child_seeds(seed: int, count: int) -> list[int]:
    """Independent seeds below 2**63 for parts that must not share a random stream."""
    children = np.random.SeedSequence(seed).spawn(count)
    return [int(child.generate_state(1, np.uint64)[0] >> np.uint64(1)) for child in children]
