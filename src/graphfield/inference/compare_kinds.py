"""Which edges differ between levels of covariates, where nodes are of several kinds?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.data.covariates import Categorical
from graphfield.data.marginals import normal_scores
from graphfield.data.node_types import NodeTypes
from graphfield.exceptions import DataError, DataWarning, ParameterError, count, listing
from graphfield.inference.asked_values import position_of
from graphfield.inference.covariate_basis import smooth_covariates
from graphfield.inference.enough_rows import check_nodes_vary, test_degrees
from graphfield.inference.kind_differences import Units, kind_differences
from graphfield.inference.node_effects import fit_effects
from graphfield.inference.question import Question

Array = NDArray[np.float64]
# Rows of a graph for each coefficient of the regression of a node, at least.
_ROWS_PER_COEFFICIENT = 4


def compare_kinds(
    question: Question, sides: Sequence[Mapping[str, Any]], level: float
) -> dict[str, NDArray[np.float64]]:
    """Each graph from its own rows: regressions of every node on all others by the likelihood of its kind.

    Covariates that are not named move how large a number or how frequent a level is, but no edge.
    """
    graphs = {_words(side): _rows_at(question, side) for side in sides}
    rows = np.concatenate(list(graphs.values()))
    types, codes = _types_of(question, rows)
    ends = np.cumsum([0, *map(len, graphs.values())])
    places = dict(zip(graphs, map(np.arange, ends[:-1], ends[1:]), strict=True))
    _check_values(types, codes, places)
    values = _in_scores(types, codes, places.values())
    blocks, given = Blocks.learn(types, values), _given(question, sides[0])[rows]
    _check_rows(blocks.n_columns - 1 + given.shape[1], graphs)
    effects = fit_effects(blocks, blocks.columns(values), given, list(places.values()))
    labels = question.together
    units = None if labels is None else Units([labels[own] for own in graphs.values()])
    return kind_differences(effects, units, level)


def _words(side: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in side.items())


def _rows_at(question: Question, side: Mapping[str, Any]) -> NDArray[np.intp]:
    """Those with the levels that are asked for."""
    encoder, found = question.encoder, np.full(len(question.inputs.X), True)
    codes = encoder.transform(question.inputs.Z).codes
    for name, value in side.items():
        position, column = position_of(encoder, name)
        if not isinstance(column, Categorical):
            raise ParameterError(
                f"{name!r} is a number. Where some nodes are no numbers, graphs are compared between levels "
                "of categories: make classes of it (pandas.cut), or leave the other nodes out."
            ).about(argument="a", column=name)
        found &= codes[:, position] == int(encoder.encode_value(name, value))
    if not found.any():
        raise DataError(f"No row has {_words(side)}. Compare values that occur together.").about(argument="a")
    return np.flatnonzero(found)


def _types_of(question: Question, rows: NDArray[np.intp]) -> tuple[NodeTypes, Array]:
    """Types and codes of some rows, without levels that none of them has."""
    types, codes = question.inputs.types, question.inputs.X[rows].astype(np.float64)
    assert types is not None
    found = []
    for position, one in enumerate(types.types):
        if one.levels:
            present, codes[:, position] = np.unique(codes[:, position], return_inverse=True)
            one = replace(one, levels=tuple(one.levels[int(code)] for code in present))
        found.append(one)
    return NodeTypes(types.names, tuple(found)), codes


def _check_values(types: NodeTypes, codes: Array, places: Mapping[str, NDArray[np.intp]]) -> None:
    """A node must vary in each graph; levels that one of them lacks are said."""
    absent = []
    for words, rows in places.items():
        check_nodes_vary(codes[rows], types.names, words)
        for name, one, values in zip(types.names, types.types, codes[rows].T, strict=True):
            present = np.unique(values)
            if one.kind == "categorical" and len(present) < len(one.levels):
                lacking = [level for code, level in enumerate(one.levels) if code not in present]
                absent.append(f"{listing(lacking)} of {name!r} with {words}")
    if absent:
        warnings.warn(
            f"Levels that no row has: {'; '.join(absent)}. Nothing is known of their edges there, so "
            "these make no difference.",
            DataWarning,
            stacklevel=4,
        )


def _in_scores(types: NodeTypes, codes: Array, places: Iterable[NDArray[np.intp]]) -> Array:
    """Numbers without the mean and the scale that each graph has, as normal scores; others as they are."""
    numbers = np.array(types.kinds) == "gaussian"
    if not numbers.any():
        return codes
    values, found = codes[:, numbers], codes.copy()
    for rows in places:
        own = values[rows] - values[rows].mean(axis=0)
        values[rows] = own / own.std(axis=0)
    found[:, numbers] = normal_scores(values)
    return found


def _given(question: Question, named: Mapping[str, Any]) -> Array:
    """Ones and functions of the covariates that are not compared, (n, m)."""
    encoder, n = question.encoder, len(question.inputs.X)
    smooths = smooth_covariates(encoder, encoder.transform(question.inputs.Z), test_degrees(encoder, n))
    return np.hstack([np.ones((n, 1)), *(own.columns for own in smooths if own.name not in named)])


def _check_rows(n_coefficients: int, graphs: Mapping[str, NDArray[np.intp]]) -> None:
    needed = _ROWS_PER_COEFFICIENT * n_coefficients
    for words, rows in graphs.items():
        if len(rows) < needed:
            raise DataError(
                f"There are {count(len(rows), 'row')} with {words}, and {needed:,} are needed for "
                f"regressions of {n_coefficients} coefficients each. Leave nodes or covariates out, pool "
                "levels of nodes, or compare larger groups of rows."
            ).about(argument="X")
