"""Partial correlations of some pairs at one value of all covariates, as tests know them, also from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import ROUNDING, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded
from graphfield.exceptions import ModelFileError
from graphfield.inference.curve import intervals_of
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_basis import EdgeBasis, learn_basis
from graphfield.inference.enough_rows import graph_degrees, has_products
from graphfield.inference.movement_words import rounded_values
from graphfield.numbers import is_clear

# Of all pairs and their covariances, in a file; the largest partial correlation that is told.
_MOST_NUMBERS, _LARGEST = 60_000, 0.999
# Quantiles of a number, and standard errors, by which the effect of one covariate differs by another.
_ENDS, _CLEAR = (0.1, 0.9), 3.0


class TestedValue(NamedTuple):
    """A partial correlation by the tests, and its interval of 90 %."""

    estimate: float
    low: float
    high: float


class Place(NamedTuple):
    """A value of a covariate: encoded, and as a user has it."""

    code: float
    text: str


@dataclass(frozen=True)
class Reading:
    """How values of one covariate are encoded: a number within a range, or a level."""

    name: str
    mean: float = 0.0
    scale: float = 1.0
    low: float = 0.0
    high: float = 0.0
    levels: tuple[str, ...] | None = None

    def code(self, value: float | str) -> float | None:
        """None where tests know nothing of it."""
        if self.levels is not None:
            return float(self.levels.index(str(value))) if str(value) in self.levels else None
        value, room = float(value), ROUNDING * (self.high - self.low)
        if not self.low - room <= value <= self.high + room:
            return None
        return (min(max(value, self.low), self.high) - self.mean) / self.scale


@dataclass(frozen=True)
class PairsAt:
    """For some pairs what they are at z: coefficients (pairs, k) of functions of z, and their covariances.

    The functions are those of :meth:`EdgeInference.predict_graph`: smooth in numbers, with products.
    """

    readings: tuple[Reading, ...]
    basis: EdgeBasis
    pairs: tuple[int, ...]
    coef: NDArray[np.float64]
    covariance: NDArray[np.float64]
    freedom: float

    @classmethod
    def of(
        cls,
        fit_pair: Callable[[int, Design], Fit],
        encoder: CovariateEncoder,
        encoded: Encoded,
        starts: NDArray[np.intp] | None,
        pairs: Sequence[int],
    ) -> PairsAt:
        """The first of these pairs, as many as fit into a file."""
        basis = graph_basis(encoder, encoded, starts)
        design = Design.of(basis.at(encoded), starts)
        pairs = pairs[: max(1, _MOST_NUMBERS // basis.size**2)]
        fits = [fit_pair(pair, design) for pair in pairs]
        coef = np.array([fit.coef[:, 0] for fit in fits]).reshape(len(pairs), basis.size)
        covariance = np.array([fit.covariance[0] for fit in fits]).reshape(len(pairs), *(basis.size,) * 2)
        readings = tuple(
            Reading(one.name, one.mean, one.scale, one.low, one.high)
            if isinstance(one, Numeric)
            else Reading(one.name, levels=tuple(map(str, one.levels)))
            for one in encoder.columns
        )
        freedom = float(np.min(design.freedom(slice(None))))
        return cls(readings, basis, tuple(map(int, pairs)), coef, covariance, freedom)

    def at(self, places: Mapping[str, float | str]) -> dict[int, TestedValue]:
        """By pair, at values of all covariates; nothing where one of them is beyond all rows."""
        codes = [one.code(places[one.name]) for one in self.readings]
        if any(code is None for code in codes):
            return {}
        functions = self.basis.at(self._row([code for code in codes if code is not None]))[0]
        found = np.clip(self.coef @ functions, -_LARGEST, _LARGEST)
        error = np.sqrt(np.maximum(np.einsum("pab,a,b->p", self.covariance, functions, functions), 1e-20))
        ends = intervals_of(found, error, self.freedom)
        columns = (found.tolist(), ends[0].tolist(), ends[1].tolist())
        return {pair: TestedValue(*own) for pair, *own in zip(self.pairs, *columns, strict=True)}

    def _row(self, codes: Sequence[float]) -> Encoded:
        is_level = [one.levels is not None for one in self.readings]
        numbers = [code for code, flag in zip(codes, is_level, strict=True) if not flag]
        levels = [int(code) for code, flag in zip(codes, is_level, strict=True) if flag]
        return Encoded(np.array([numbers], dtype=np.float64), np.array([levels], dtype=np.int64))

    def clearest_product(self, encoded: Encoded, encoder: CovariateEncoder) -> str:
        """Of the first pair, in words how one covariate moves it differently by another; empty if unclear."""
        if not self.basis.products:
            return ""
        known = dict(zip((one.name for one in encoder.columns), _ends(encoder, encoded), strict=True))
        typical = {
            one.name: 0.0 if isinstance(one, Numeric) else known[one.name][0].code for one in encoder.columns
        }
        best, words = 0.0, ""
        for by, along in combinations(sorted(known, key=lambda name: len(self._levels(name)) == 0), 2):
            corners = list(product(known[by], known[along]))
            rows = [
                [{**typical, by: one.code, along: two.code}[own.name] for own in self.readings]
                for one, two in corners
            ]
            functions = np.vstack([self.basis.at(self._row(row)) for row in rows])
            contrast = np.array([1.0, -1.0, -1.0, 1.0]) @ functions
            error = float(np.sqrt(max(contrast @ self.covariance[0] @ contrast, 1e-20)))
            size = abs(float(contrast @ self.coef[0]))
            if is_clear(size, error, _CLEAR) and size / error > best:
                found = np.clip(functions @ self.coef[0], -_LARGEST, _LARGEST)
                parts = [
                    f"{value:+.2f} at {two.text}" for value, (_, two) in zip(found, corners, strict=True)
                ]
                wheres = [f"where {by}={one.text}" for one in known[by]]
                best = size / error
                words = (
                    f"with {along} differently by {by} ({', '.join(parts[:2])} {wheres[0]}; "
                    f"{', '.join(parts[2:])} {wheres[1]})"
                )
        return words

    def _levels(self, name: str) -> tuple[str, ...]:
        return next(one.levels or () for one in self.readings if one.name == name)

    def to_json(self) -> dict[str, Any]:
        arrays = {"coef": self.coef.tolist(), "covariance": self.covariance.tolist()}
        readings = [{**vars(one), "levels": one.levels and list(one.levels)} for one in self.readings]
        kept = {"readings": readings, "basis": self.basis.to_json(), "pairs": list(self.pairs)}
        return {**kept, **arrays, "freedom": self.freedom}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PairsAt:
        try:
            readings = tuple(
                Reading(**{**one, "levels": one["levels"] and tuple(one["levels"])})
                for one in values["readings"]
            )
            basis, pairs = EdgeBasis.from_json(values["basis"]), tuple(map(int, values["pairs"]))
            coef = np.array(values["coef"], dtype=np.float64).reshape(len(pairs), basis.size)
            covariance = np.array(values["covariance"], dtype=np.float64)
            covariance = covariance.reshape(len(pairs), basis.size, basis.size)
            return cls(readings, basis, pairs, coef, covariance, float(values["freedom"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError("The tests of edges do not fit together. Test the table again.") from error


def graph_basis(encoder: CovariateEncoder, encoded: Encoded, starts: NDArray[np.intp] | None) -> EdgeBasis:
    """Functions of z that graphs at one z follow."""
    n_units = len(encoded) if starts is None else len(starts)
    degrees, products = graph_degrees(encoder, n_units), has_products(encoder, n_units)
    return learn_basis(encoder, encoded, degrees, products=products)


def _ends(encoder: CovariateEncoder, encoded: Encoded) -> list[tuple[Place, Place]]:
    """Two places of each covariate: nearly the ends of a number, the most frequent levels."""
    found, numbers, codes = [], iter(encoded.numeric.T), iter(encoded.codes.T)
    for column in encoder.columns:
        if isinstance(column, Numeric):
            ends = np.quantile(next(numbers), _ENDS).tolist()
            told = [
                column.text(value)
                for value in rounded_values([column.mean + column.scale * end for end in ends])
            ]
        else:
            ends = np.argsort(-np.bincount(next(codes), minlength=2), kind="stable")[:2].tolist()
            told = [str(column.levels[end]) if end < len(column.levels) else "" for end in ends]
        found.append((Place(float(ends[0]), told[0]), Place(float(ends[1]), told[1])))
    return found
