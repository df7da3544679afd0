"""Functions of the covariates from smooth to rough, for what covariates do to each node alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from graphfield.data.covariates import Categorical, CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.inference.covariate_basis import covariate_columns, level_columns

# Functions of one number at most, and of those the smoothest that enter products.
_MOST_TURNS, _IN_PRODUCTS = 40, 8
# Products of so many covariates at most, and how rough they may be: no more than fills the room there is.
MOST_FACTORS, _LIMITS = 3, (4.0, 8.0, 16.0, 32.0, 64.0)
# A level with fewer rows has no mean or scale of its own; one with fewer does not enter products.
_LEVEL_ROWS, _PRODUCT_ROWS = 3, 10
# A function of which smoother ones leave less than this share of its variance is one of them.
_COPY = 1e-4

# Values of numbers, by the name of the covariate.
Cuts = dict[str, tuple[float, ...]]
# Roughness, and the factors as positions of covariate and column.
_Product = tuple[float, tuple[tuple[int, int], ...]]


class Room(NamedTuple):
    """How many functions of a number there may be, and how many levels of a category, at most.

    A number of no more than ``values`` values has a mean of its own at each, as a category has.
    """

    functions: int
    levels: int
    values: int = 0


@dataclass(frozen=True)
class Directions:
    """Functions of z as columns with mean zero, uncorrelated, with mean square one, (n, m).

    ``roughness`` is zero for the levels of a category, one plus the number of turns of a function of one
    number, and multiplies in products; ``factors`` says of how many covariates a column is a product.
    """

    columns: NDArray[np.float64]
    roughness: NDArray[np.float64]
    factors: NDArray[np.intp]

    def after(self, columns: NDArray[np.float64]) -> Directions:
        """With other columns before these, of which all is taken as of levels."""
        n = columns.shape[1]
        found, kept = _in_order(np.hstack([columns, self.columns]))
        roughness, factors = np.append(np.zeros(n), self.roughness), np.append(np.ones(n, int), self.factors)
        return Directions(found, roughness[kept], factors[kept])


@dataclass(frozen=True)
class _Part:
    """Functions of one covariate, what each counts in a product, and those that enter products."""

    columns: NDArray[np.float64]
    roughness: NDArray[np.float64]
    in_products: NDArray[np.intp]
    level: bool
    room: int  # for functions in all, products with this covariate among them
    n_counted: int = 0  # columns that fill it


def directions(
    encoder: CovariateEncoder,
    encoded: Encoded,
    room: Room | Mapping[str, Room],
    names: set[str] | None = None,
    cuts: Cuts | None = None,
) -> Directions:
    """Every level of a category, functions of each number, and products of up to three covariates.

    At most ``room.functions`` columns beside levels: the roughest are left out, but for one of each number.
    Of levels of all categories ``room.levels``: the rarest are one together. Where covariates have rooms of
    their own, functions of those with no more room fill it as well, and products are in the least room of
    their factors. ``names``: of these covariates only. ``cuts`` are values of numbers between which the
    number is a category as well.
    """
    rooms = (
        dict.fromkeys((column.name for column in encoder.columns), room) if isinstance(room, Room) else room
    )
    parts = list(_parts(encoder, encoded, rooms, names, cuts or {}))
    order = np.argsort([not part.level for part in parts], kind="stable")  # levels first
    columns = [parts[i].columns for i in order]
    roughness = [
        np.zeros(c.shape[1]) if parts[i].level else parts[i].roughness
        for i, c in zip(order, columns, strict=True)
    ]
    products = _smoothest_products(parts)
    factors = [1] * sum(part.shape[1] for part in columns) + [len(which) for _, which in products]
    columns += [_multiplied(parts, which)[:, None] for _, which in products]
    together = np.concatenate([*roughness, [rough for rough, _ in products]])
    found, kept = _in_order(np.hstack(columns))
    return Directions(found, together[kept], np.array(factors)[kept])


def in_order(columns: NDArray) -> NDArray:
    """Each column without what those before it explain, mean square one; zero where nothing is left."""
    found, kept = _in_order(columns)
    result = np.zeros_like(columns)
    result[:, kept] = found
    return result


def _in_order(columns: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    centred = columns - columns.mean(axis=0)
    size = np.sqrt(np.square(centred).mean(axis=0))
    kept = np.flatnonzero(size > 1e-9)
    centred = centred[:, kept] / size[kept]
    n = len(columns)
    # A column that is left out must not take a direction of its own from those that follow.
    left = np.zeros(len(kept))
    diagonal = np.diag(np.linalg.qr(centred, mode="r"))
    left[: len(diagonal)] = np.square(diagonal) / n
    kept, centred = kept[left > _COPY], centred[:, left > _COPY]
    return np.linalg.qr(centred)[0] * np.sqrt(n), kept


def _parts(
    encoder: CovariateEncoder,
    encoded: Encoded,
    rooms: Mapping[str, Room],
    names: set[str] | None,
    cuts: Cuts,
) -> Iterator[_Part]:
    chosen = [own for own in covariate_columns(encoder, encoded) if names is None or own[0].name in names]
    kinds = [(rooms[column.name], isinstance(column, Categorical)) for column, _, _ in chosen]
    for (column, _, values), (room, is_level) in zip(chosen, kinds, strict=True):
        sharing = sum(other <= room and level == is_level for other, level in kinds)
        if isinstance(column, Categorical):
            yield _levels(values, len(column.levels), max(1, room.levels // sharing), room)
            continue
        for_single = room.functions if len(chosen) == 1 else room.functions // 2  # the rest is for products
        yield _functions(values, min(_MOST_TURNS, max(1, for_single // sharing)), room)
        if at := cuts.get(column.name):
            yield _levels(np.searchsorted(at, values), len(at) + 1, len(at), room)


def _levels(codes: NDArray[np.int64], n_levels: int, most: int, room: Room) -> _Part:
    counts = np.sort(np.bincount(codes, minlength=n_levels))[::-1]
    least = max(_LEVEL_ROWS, counts[most] + 1 if n_levels > most + 1 else 0)
    columns = level_columns(codes, n_levels, least)
    common = np.flatnonzero(columns.sum(axis=0) >= _PRODUCT_ROWS)
    return _Part(columns, np.full(columns.shape[1], 2.0), common, True, room.functions)


def _functions(values: NDArray[np.float64], most: int, room: Room) -> _Part:
    """A line, a bend, and cosines of a place that is half the rank and half the value."""
    n_values = len(np.unique(values))
    counted, most = most, max(most, n_values - 1) if n_values <= room.values else most
    rank = (rankdata(values) - 0.5) / len(values)
    place = (rank + (values - values.min()) / (np.ptp(values) or 1.0)) / 2
    most = min(most, n_values - 1)
    cosines = np.cos(np.pi * np.arange(1, most + 1) * place[:, None])
    raw = np.column_stack([values, place**2, cosines])[:, :most]
    columns, kept = _in_order(raw)
    in_products = np.arange(min(_IN_PRODUCTS, columns.shape[1]))
    rough, n_counted = 2.0 + kept.astype(np.float64), min(counted, columns.shape[1])
    return _Part(columns, rough, in_products, False, room.functions, n_counted)


def _smoothest_products(parts: list[_Part]) -> list[_Product]:
    """As many as there is room for, those of least roughness."""
    left = {
        room: max(0, room - sum(part.n_counted for part in parts if part.room <= room))
        for room in {part.room for part in parts}
    }
    for limit in _LIMITS:
        found = list(_products(parts, limit))
        if len(found) >= max(left.values()):
            break
    kept = []
    for product in sorted(found, key=lambda product: product[0]):
        least = min(parts[part].room for part, _ in product[1])
        filled = [room for room in left if room >= least]
        if all(left[room] for room in filled):
            kept.append(product)
            left |= {room: left[room] - 1 for room in filled}
    return kept


def _products(
    parts: list[_Part], limit: float, rough: float = 1.0, chosen: tuple[tuple[int, int], ...] = ()
) -> Iterator[_Product]:
    """Products of covariates later than those chosen, no rougher than ``limit``."""
    for covariate in range(chosen[-1][0] + 1 if chosen else 0, len(parts)):
        for column in parts[covariate].in_products:
            own = rough * float(parts[covariate].roughness[column])
            if own > limit:
                break
            longer = (*chosen, (covariate, int(column)))
            if len(longer) > 1:
                yield own, longer
            if len(longer) < MOST_FACTORS:
                yield from _products(parts, limit, own, longer)


def _multiplied(parts: list[_Part], which: tuple[tuple[int, int], ...]) -> NDArray[np.float64]:
    result = np.ones(len(parts[0].columns))
    for part, column in which:
        values = parts[part].columns[:, column]
        result = result * (values - values.mean())
    return result
