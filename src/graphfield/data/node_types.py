"""What kind of value each node has: as the table says, or as the user does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.frames import (
    Frame,
    as_frame,
    check_numeric,
    is_number,
    node_values,
    reads_as_number,
    with_columns,
)
from graphfield.data.level_text import as_text, is_ordered, level_order
from graphfield.data.missing import bad_entries
from graphfield.data.saved_values import Saved
from graphfield.exceptions import DataError, ParameterError, first_few, listing, suggestion
from graphfield.messages import Argument, Row

NODE_TYPES = ("gaussian", "binary", "categorical", "ordinal", "count")
# Those whose values are levels, which have codes 0, 1, ...
WITH_LEVELS = ("binary", "categorical", "ordinal")
# More levels make no class of a node: each is a regression of its own, from the rows that have it.
MAX_LEVELS = 50
# How far from one the shares of levels of a file may add up.
_SHARES_OFF = 1e-6


@dataclass(frozen=True)
class NodeType:
    """The kind of a node, and the levels of its training rows as text, in the order of their codes.

    ``shares`` are those of the levels of an ordinal node.
    """

    kind: str = "gaussian"
    levels: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """How many columns the node owns (:mod:`graphfield.data.blocks`)."""
        return len(self.levels) - 1 if self.kind == "categorical" else 1


@dataclass(frozen=True)
class NodeTypes:
    """The type of each node of a table in which some are no plain numbers."""

    names: tuple[str, ...]
    types: tuple[NodeType, ...]

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> NodeTypes:
        return cls(tuple(names), (NodeType(),) * len(names))

    @property
    def kinds(self) -> list[str]:
        return [one.kind for one in self.types]

    @property
    def others(self) -> list[str]:
        """Names of the nodes that are no plain numbers."""
        return [name for name, kind in zip(self.names, self.kinds, strict=True) if kind != "gaussian"]

    @property
    def widths(self) -> NDArray[np.intp]:
        """How many columns each node owns, (p,)."""
        return np.array([one.width for one in self.types], dtype=np.intp)

    @property
    def starts(self) -> NDArray[np.intp]:
        """First column of each node, (p,)."""
        return np.cumsum(self.widths) - self.widths

    def with_categories(self, frame: Frame) -> Frame:
        """The table with levels as pandas categories, which know what may stand for a missing one."""
        columns = {
            name: _as_category(frame, name, one.levels)
            for name, one in zip(self.names, self.types, strict=True)
            if one.levels
        }
        return Frame(with_columns(frame.values, columns), frame.named, frame.rows)

    def codes(self, frame: Frame) -> NDArray[np.float64]:
        """Values of a table :meth:`with_categories`, levels by their codes, (n, p); missing ones are NaN."""
        values = np.empty((len(frame.values), len(self.names)))
        for position, (name, one) in enumerate(zip(self.names, self.types, strict=True)):
            if one.levels:
                codes = frame.values[name].cat.codes.to_numpy()
                values[:, position] = np.where(codes < 0, np.nan, codes)
                continue
            values[:, position] = node_values(Frame(frame.values[[name]], True))[:, 0]
            if one.kind == "count":
                _check_counts(values[:, position], frame, name)
        return values

    def decode(self, codes: NDArray, named: bool) -> TypedRows:
        """Rows of codes as they were, with all levels, also those that none of these rows has."""
        columns = {
            name: pd.Categorical.from_codes(codes[:, j].astype(np.intp), pd.Index(one.levels))
            if one.levels
            else codes[:, j]
            for j, (name, one) in enumerate(zip(self.names, self.types, strict=True))
        }
        return TypedRows(Frame(pd.DataFrame(columns), named), self)

    def state(self) -> list[dict[str, Any]]:
        return [
            {"kind": one.kind, "levels": list(one.levels)}
            | ({"shares": list(one.shares)} if one.shares else {})
            for one in self.types
        ]

    @classmethod
    def from_state(cls, state: Saved, names: Sequence[str]) -> NodeTypes:
        """Inverse of :meth:`state`; what could not come from it is refused."""
        types = []
        for one in state.listed(len(names), len(names)):
            kind, levels = one["kind"].choice(NODE_TYPES), tuple(one["levels"].names())
            low, high = (2, 2 if kind == "binary" else MAX_LEVELS) if kind in WITH_LEVELS else (0, 0)
            if not low <= len(levels) <= high:
                one["levels"].refuse(f"those of a {kind} node", f"{len(levels)}")
            shares = _read_shares(one["shares"], len(levels)) if kind == "ordinal" else ()
            types.append(NodeType(kind, levels, shares))
        return cls(tuple(names), tuple(types))


def _read_shares(saved: Saved, n_levels: int) -> tuple[float, ...]:
    """Of the levels of an ordinal node."""
    shares = tuple(share.number(np.finfo(float).tiny, 1) for share in saved.listed(n_levels, n_levels))
    if abs(sum(shares) - 1) > _SHARES_OFF:
        saved.refuse("shares that sum to one", str(sum(shares)))
    return shares


@dataclass(frozen=True, eq=False)
class TypedRows:
    """Rows of nodes whose types are known already, as estimators that fit others hand them on as X."""

    frame: Frame
    types: NodeTypes

    def __len__(self) -> int:
        return len(self.frame.values)


def node_frame(X: Any) -> Frame:
    """A table of nodes as the user gave it, or as one estimator gives it to another."""
    return X.frame if isinstance(X, TypedRows) else as_frame(X, "X")


def check_node_types(wanted: Any) -> None:
    """Raise unless a user's ``node_types`` may be one for some table."""
    if isinstance(wanted, str) and wanted == "auto":
        return
    if not isinstance(wanted, Mapping) or not wanted:
        raise ParameterError.of(
            "node_types",
            f"must be 'auto' or say what some columns are, as in {{'x3': 'binary'}}, got {wanted!r}.",
        )
    for column, kind in wanted.items():
        if kind not in NODE_TYPES:
            hint = suggestion(kind, NODE_TYPES) if isinstance(kind, str) else ""
            raise ParameterError(
                "{argument}: column {column!r} must be one of {kinds}, got {kind!r}.{hint}",
                argument=Argument("node_types"),
                column=str(column),
                kinds=listing(NODE_TYPES),
                kind=kind,
                hint=hint,
            )


def check_are_nodes(typed: Sequence[str], names: Sequence[str]) -> None:
    """Raise where a type is given for a column that is no node."""
    for name in typed:
        if name not in names:
            raise DataError(
                "{argument} names {column!r}, which is no node.{hint} Nodes are {names}.",
                argument=Argument("node_types"),
                column=name,
                hint=suggestion(name, names),
                names=listing(names),
            )


def read_node_types(frame: Frame, wanted: str | Mapping[str, str]) -> NodeTypes | None:
    """The types of the columns of a table of nodes; None where all are plain numbers.

    What the user says counts. Else booleans are binary; text and pandas categories are binary where they have
    two levels, ordinal where they have an order, and categorical elsewhere; numbers are numbers, small whole
    ones as well.
    """
    if wanted != {}:  # which says nothing of any column
        check_node_types(wanted)
    given = {} if isinstance(wanted, str) else {str(name): kind for name, kind in wanted.items()}
    check_are_nodes(list(given), frame.names)
    types = tuple(_read_type(frame, name, given.get(name)) for name in frame.names)
    return None if all(one.kind == "gaussian" for one in types) else NodeTypes(tuple(frame.names), types)


def _read_type(frame: Frame, name: str, given: str | None) -> NodeType:
    column = frame.values[name]
    if given is None and isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return NodeType("gaussian")
    present = column[~bad_entries(Frame(frame.values[[name]], True))[name].to_numpy()]
    kind = given or _guess_kind(present)
    if kind not in WITH_LEVELS:
        if given is not None and (guess := _guess_kind(present)) in WITH_LEVELS:
            _refuse_text(frame, name, kind, guess)
        check_numeric(Frame(frame.values[[name]], True))
        return NodeType(kind)
    levels = _find_levels(present, name, kind)
    if given is None and kind == "categorical" and len(levels) == 2:
        kind = "binary"
    if kind != "ordinal":
        return NodeType(kind, levels)
    counts = pd.Series(_as_level(present)).value_counts()
    return NodeType(kind, levels, tuple(float(counts[level] / len(present)) for level in levels))


def _refuse_text(frame: Frame, name: str, kind: str, levels: str) -> None:
    """Raise where a column that is to be a number, or a count, holds text; its ``levels`` may be a node."""
    column = frame.values[name]
    bad = bad_entries(Frame(frame.values[[name]], True))[name].to_numpy()
    odd = [row for row in np.flatnonzero(~bad) if isinstance(column.iloc[row], str)]
    if odd:
        two = levels == "categorical" and column[~bad].nunique() == 2
        raise DataError(
            "Node column {column!r} is to be {kind}, but {row} holds {value!r}. If it has levels, say so "
            "({types}); else leave it out.",
            column=name,
            kind=f"a {kind}" if kind == "count" else kind,
            row=Row(int(frame.places[odd[0]])),
            value=str(column.iloc[odd[0]]),
            types=Argument("node_types", {name: "binary" if two else levels}),
        )


_YES_NO = (bool, np.bool_)  # also of columns of objects, as where some are missing, or of polars


def _guess_kind(column: pd.Series) -> str:
    """Of a column without missing values; text among numbers is a mistake, which "gaussian" will find."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "ordinal" if is_ordered(column) else "categorical"
    if pd.api.types.is_bool_dtype(column) or (len(column) and all(isinstance(v, _YES_NO) for v in column)):
        return "binary"
    if pd.api.types.is_numeric_dtype(column) or not all(isinstance(value, str) for value in column):
        return "gaussian"
    readable = [reads_as_number(level) for level in column.unique()]
    return "gaussian" if not readable or np.mean(readable) > 0.5 else "categorical"


def _find_levels(column: pd.Series, name: str, kind: str) -> tuple[str, ...]:
    """Levels of a column without missing values, in the order of their codes."""
    if len(column) == 0:
        return ()  # which is named as empty with the missing values
    numbers = not isinstance(column.dtype, pd.CategoricalDtype) and all(map(is_number, column))
    if kind == "ordinal" and not (numbers or is_ordered(column)):
        raise DataError(
            f"Node column {name!r} has text without an order, so it is not ordinal as it is. Give its levels "
            "their order: pandas.Categorical(values, categories=[...], ordered=True); or write them as "
            "numbers."
        ).about(column=name)
    text = pd.unique(pd.Series(_as_level(column)))
    if numbers and len(text) > MAX_LEVELS:
        wanted = "two different values" if kind == "binary" else f"at most {MAX_LEVELS} different values"
        raise DataError(
            f"Node column {name!r} is to be {kind}, which takes {wanted}, but has {len(text):,} of them, all "
            f"numbers ({first_few(list(text), most=3)}). Leave it as a number (gaussian), or cut it into "
            "classes."
        ).about(column=name)
    if len(text) > MAX_LEVELS or (len(text) == len(column) > 2 and not numbers):
        what = "a different text in every row" if len(text) == len(column) else f"{len(text):,} levels"
        raise DataError(
            f"Node column {name!r} has {what}; a node may have {MAX_LEVELS}. Pool rare levels, "
            "give numbers as gaussian or count, or leave the column out."
        ).about(column=name)
    if kind == "binary" and len(text) > 2:
        raise DataError(
            f"Node column {name!r} is to be binary, but has {len(text)} levels ({listing(text, most=4)}). "
            "Give it as categorical or ordinal."
        ).about(column=name)
    if numbers:
        return tuple(sorted(text, key=_as_number))
    return tuple(level_order(column, text))


def _as_number(level: str) -> float:
    return float(level == "True") if level in ("False", "True") else float(level)


def _as_level(column: pd.Series) -> NDArray[np.object_]:
    return np.array([text.strip() for text in as_text(column)], dtype=object)


def _as_category(frame: Frame, name: str, levels: tuple[str, ...]) -> pd.Series:
    column = frame.values[name]
    missing = bad_entries(Frame(frame.values[[name]], True))[name].to_numpy()
    text = _as_level(column)
    unknown = np.flatnonzero(~missing & ~np.isin(text, levels))
    if len(unknown):
        row = int(unknown[0])
        raise DataError(
            "Node {column!r} has a level that training did not have: {row} holds {value!r}, known are "
            "{levels}. Correct it, leave these rows out, or fit with rows that have it.",
            column=name,
            row=Row(int(frame.places[row])),
            value=str(text[row]),
            levels=listing(levels),
        )
    known = pd.Series(text, index=column.index).where(~missing, None)
    return known.astype(pd.CategoricalDtype(list(levels)))


def _check_counts(values: NDArray[np.float64], frame: Frame, name: str) -> None:
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero((values < 0) | (np.isfinite(values) & (values != np.floor(values))))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            "Node {column!r} is to be a count, a whole number from 0 on, but {row} holds {value:g}. Correct "
            "it, or give the node as gaussian.",
            column=name,
            row=Row(int(frame.places[row])),
            value=values[row],
        )
