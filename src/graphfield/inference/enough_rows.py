"""Are there rows, groups and values enough for what is asked? Functions of z by how many there are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.data.rare_levels import rare_enough
from graphfield.data.splits import fold_labels
from graphfield.estimators.inputs import Inputs
from graphfield.exceptions import DataError, DataWarning, count, first_few
from graphfield.inference.covariate_basis import covariate_columns
from graphfield.inference.edge_basis import n_functions
from graphfield.messages import Argument, Message

N_FOLDS = 5
# Fewer rows are cut into folds several times, so that all cuts together hold as many, at most so often.
_ROWS_OF_CUTS, _MOST_CUTS = 2_000, 3
# With more nodes, once.
_MOST_CUT_NODES = 100
# Rows or groups that are needed at all, and for each function of z.
_LEAST_ROWS, _PER_FUNCTION = 60, 3
# Rows or groups for each function of z where numbers bend or products are looked at.
_PER_BEND, _MOST_PRODUCTS = 20, 40
# With fewer rows or groups for each covariate or level as it is, few are taken to matter to a pair.
_PER_EFFECT = 10
# Columns of the spline of a number in tests, in graphs at one z at most, and in the curve of one edge.
_DEGREES, _MOST_GRAPH, _LEAST_CURVE, _MOST_CURVE = 3, 8, 4, 15
# Coefficients of one node's regression on all others at most, and columns of a spline in it.
_MOST_COEFFICIENTS, _MOST_BENDS = 700, 5
# Functions from smooth to rough in such a regression, where there are so many rows for each: of several
# numbers, and of one number or beside levels, where a spline or two does until there are many rows.
_ROUGH, _ROWS_PER_ROUGH, _ROWS_PER_ROUGH_OF_ONE = 40, 5, 100
LEAST_LEVEL = 10
_NAMED = 4  # nodes that a warning names
# A level with fewer rows has the regressions of all others: coefficients of so few would be noise.
LEAST_LEVEL_OF_REGRESSION = 40


def test_degrees(encoder: CovariateEncoder, n_units: int) -> int:
    """Columns of the spline of a number: one where there are too few rows for bends."""
    return _DEGREES if n_units >= _PER_BEND * (1 + n_functions(encoder, _DEGREES)) else 1


def graph_degrees(encoder: CovariateEncoder, n_units: int) -> int:
    """The same for graphs at one z: with more rows, a curve that is too smooth shows edges that are none."""
    degrees = min(_MOST_GRAPH, round(0.4 * n_units ** (1 / 3)))
    many = 1 + n_functions(encoder, degrees) + n_products(encoder)
    return degrees if degrees > _DEGREES and n_units >= _PER_BEND * many else test_degrees(encoder, n_units)


def has_products(encoder: CovariateEncoder, n_units: int) -> bool:
    """Whether there are rows enough to look at products of covariates."""
    products = n_products(encoder)
    total = 1 + n_functions(encoder, _DEGREES) + products
    return 0 < products <= _MOST_PRODUCTS and n_units >= _PER_BEND * total


def can_cross(encoder: CovariateEncoder, n_units: int, degrees: Mapping[str, int]) -> bool:
    """Whether there are rows enough for levels that have curves of numbers of their own."""
    levels = sum(len(column.levels) - 1 for column in encoder.categorical)
    bends = sum(degrees[column.name] for column in encoder.numeric)
    return levels * bends > 0 and n_units >= _PER_BEND * (1 + levels + bends + levels * bends)


def curve_degrees(n_units: int) -> int:
    """Columns of the spline of the number along which one edge is drawn: bias small beside chance.

    >>> curve_degrees(200), curve_degrees(800), curve_degrees(3_000)
    (5, 8, 12)
    """
    return int(np.clip(round(0.85 * n_units ** (1 / 3)), _LEAST_CURVE, _MOST_CURVE))


def value_degrees(encoder: CovariateEncoder, n_units: int, named: Iterable[str]) -> dict[str, int]:
    """Columns of the splines of all numbers where an edge is asked for at values of those that are named."""
    degrees = dict.fromkeys((column.name for column in encoder.columns), test_degrees(encoder, n_units))
    return degrees | dict.fromkeys(named, curve_degrees(n_units))


def has_curves(encoder: CovariateEncoder, n_units: int) -> bool:
    """Whether there are rows enough for curves along all numbers."""
    return n_units >= _PER_BEND * (1 + n_functions(encoder, curve_degrees(n_units)))


def are_many(encoder: CovariateEncoder, n_units: int) -> bool:
    """Whether covariates are too many for a regression of scores on all of them, as they are."""
    return n_units < _PER_EFFECT * (1 + n_functions(encoder, 1))


def most_functions(n_nodes: int) -> int:
    """Functions of z beside the one that coefficients of a node's regression may follow."""
    return max(0, _MOST_COEFFICIENTS // n_nodes - 1)


def regression_functions(encoder: CovariateEncoder, n_nodes: int) -> tuple[int, bool]:
    """Columns of the spline of a number in the regressions of nodes, and whether products enter.

    As many as there is room for; no column at all where even numbers as they are would be too many.
    """
    room = most_functions(n_nodes)
    for degrees in range(_MOST_BENDS, 0, -1):
        own = n_functions(encoder, degrees)
        if own + n_products(encoder) <= room:
            return degrees, n_products(encoder) > 0
    fitting = [degrees for degrees in range(_MOST_BENDS + 1) if n_functions(encoder, degrees) <= room]
    return max(fitting, default=0), False


def rough_functions(encoder: CovariateEncoder, n_rows: int, n_nodes: int) -> int:
    """Functions of numbers, products of up to three and with levels among them, in the regressions of nodes.

    None where there is no room for many. Of one number, or where levels are cut into products, they need
    more rows: what splines miss of an edge is seen then.
    """
    several = len(encoder.numeric) > 1 and not encoder.categorical
    per_function = _ROWS_PER_ROUGH if several else _ROWS_PER_ROUGH_OF_ONE
    enough = most_functions(n_nodes) >= _ROUGH and n_rows >= per_function * _ROUGH
    return _ROUGH if enough and encoder.numeric else 0


def n_products(encoder: CovariateEncoder) -> int:
    """Products of numbers and levels, as they are, of two different covariates."""
    linear = [len(c.levels) - 1 if isinstance(c, Categorical) else 1 for c in encoder.columns]
    return (sum(linear) ** 2 - sum(own**2 for own in linear)) // 2


def check_enough(encoder: CovariateEncoder, encoded: Encoded, labels: NDArray[np.intp] | None) -> None:
    """Raise where there are fewer rows, groups or rows of a level than are needed."""
    n = len(encoded)
    needed = max(_LEAST_ROWS, _PER_FUNCTION * (1 + n_functions(encoder, 1)))
    if n < needed:
        raise DataError(
            f"At least {needed} rows are needed for these covariates, got {n}. Add rows, or leave covariates "
            "(or levels of them) out."
        ).about(argument="Z")
    if labels is not None and (n_groups := int(labels.max()) + 1) < N_FOLDS:
        raise DataError(
            f"groups has {count(n_groups, 'label')}, fewer than the {N_FOLDS} folds that groups are put in. "
            f"Give at least {N_FOLDS} groups, or leave groups out if rows are independent."
        ).about(argument="groups")
    for column, codes in zip(encoder.categorical, encoded.codes.T, strict=True):
        _check_levels(column, codes, labels)


def _check_levels(column: Categorical, codes: NDArray[np.int64], labels: NDArray[np.intp] | None) -> None:
    sizes = np.bincount(codes, minlength=len(column.levels)).tolist()
    for code, level in enumerate(column.levels):
        rows = codes == code
        if rows.sum() < LEAST_LEVEL:
            raise DataError(
                "Level {level!r} of covariate {column!r} has {rows}, and {least} are needed to say anything "
                "of its edges. {advice}.",
                level=level,
                column=column.name,
                rows=count(int(rows.sum()), "row"),
                least=LEAST_LEVEL,
                advice=_what_to_do(column.name, sizes),
            )
        if labels is not None and len(np.unique(labels[rows])) == 1:
            raise DataError(
                "Level {level!r} of covariate {column!r} occurs in one group only: what is special about the "
                "level cannot be told from what is special about the group. Pool it with another, or leave "
                "these rows out.",
                level=level,
                column=column.name,
            )


def _what_to_do(name: str, sizes: Sequence[int]) -> Message:
    """About levels that are too few: a pool needs several of them, and another level beside it."""
    most = rare_enough(sizes, LEAST_LEVEL)
    few = [size for size in sizes if size < most]
    if len(few) < 2 or sum(few) < LEAST_LEVEL:
        return Message("Leave these rows out, or this covariate")
    rare = Argument("rare", {name: most}, "from_table")
    return Message("Pool rare levels ({rare}), or leave these rows out", rare=rare)


def check_nodes_vary(values: NDArray[Any], names: Sequence[str], where: str) -> None:
    """Raise where a node has one value in all of these rows, (n, p)."""
    for name in _constant(values, names):
        raise DataError(
            f"Node {name!r} has the same value in all {count(len(values), 'row')} with {where}, so nothing "
            "is known of its edges there. Leave the node out, or pool these rows with others."
        ).about(column=name)


def warn_of_constants(
    encoder: CovariateEncoder, inputs: Inputs, but: Iterable[str] = (), *, tested: bool = True
) -> list[str]:
    """Say which nodes have one value at a level, of all categories but some, and return these.

    ``tested``: whether something is said of their edges all the same.
    """
    codes = encoder.transform(inputs.Z).codes
    found = [
        (name, f"{name!r} with {column.name} = {level!r}")
        for position, column in enumerate(encoder.categorical)
        for code, level in enumerate(column.levels if column.name not in but else ())
        for name in _constant(inputs.X[codes[:, position] == code], inputs.node_names)
    ]
    if found:
        so = "what is said of these means nothing" if tested else "these are not tested"
        warnings.warn(
            f"Nodes that have the same value in all rows of a level: "
            f"{first_few([words for _, words in found], _NAMED)}. Nothing is known of their edges there, so "
            f"{so}. Leave these nodes or these rows out.",
            DataWarning,
            stacklevel=3,
        )
    return list(dict.fromkeys(name for name, _ in found))


def _constant(values: NDArray[Any], names: Sequence[str]) -> list[str]:
    spread = np.ptp(values, axis=0) if len(values) else np.ones(len(names))
    return [name for name, own in zip(names, spread, strict=True) if own == 0]


def cut_rows(shape: tuple[int, ...], together: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """The folds, numbered through all cuts, that hold each row out, (cuts, n).

    What a row says depends a little on who else is held out with it, the more the fewer rows there are. So
    few rows are cut several times, and the mean counts. Rows that are held out ``together`` are cut once, and
    so are those of tables whose ``shape`` has many nodes: there the regressions take long.

    >>> [len(cut_rows((n, 10), None)) for n in (100, 900, 1_000, 2_000)], len(cut_rows((100, 200), None))
    ([3, 3, 2, 1], 1)
    """
    n_rows, n_nodes = shape
    once = together is not None or n_nodes > _MOST_CUT_NODES
    n_cuts = 1 if once else min(_MOST_CUTS, -(-_ROWS_OF_CUTS // n_rows))
    return np.stack([cut * N_FOLDS + fold_labels(n_rows, N_FOLDS, together, cut) for cut in range(n_cuts)])


def check_folds(encoder: CovariateEncoder, encoded: Encoded, fold: NDArray[np.intp]) -> None:
    """Raise where a covariate has one value in all rows outside a fold."""
    for column, _, values in covariate_columns(encoder, encoded):
        for number in range(int(fold.max()) + 1):
            if len(np.unique(values[(fold != number).all(axis=0)])) < 2:
                raise DataError(
                    f"Covariate {column.name!r} has one value in all rows outside one of {N_FOLDS} folds: "
                    "its other values are those of a few rows or groups. Leave the covariate out."
                ).about(column=column.name)
