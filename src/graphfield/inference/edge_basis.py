"""Functions of the covariates that a partial correlation may follow, at any covariate values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.inference.covariate_basis import Spline, covariate_columns, learn_spline

# A column of which those before it leave less than this share of its variance is one of them.
_COPY = 1e-10


@dataclass(frozen=True)
class _Part:
    """Functions of one covariate: a spline of a number, or indicators of some levels."""

    position: int
    spline: Spline | None
    levels: NDArray[np.intp]

    @property
    def n_linear(self) -> int:
        return len(self.levels) if self.spline is None else 1

    def to_json(self) -> dict[str, Any]:
        spline = self.spline and {"knots": self.spline.knots.tolist(), "degrees": self.spline.degrees}
        return {"position": self.position, "spline": spline, "levels": self.levels.tolist()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> _Part:
        own = values["spline"]
        spline = own and Spline(np.array(own["knots"], dtype=np.float64), int(own["degrees"]))
        return cls(int(values["position"]), spline, np.array(values["levels"], dtype=np.intp))

    def at(self, encoded: Encoded) -> NDArray[np.float64]:
        if self.spline is not None:
            return self.spline.at(encoded.numeric[:, self.position])
        return (encoded.codes[:, self.position, None] == self.levels).astype(np.float64)


@dataclass(frozen=True)
class EdgeBasis:
    """A one, then uncorrelated functions of z with mean zero and mean square one over the training rows.

    First come numbers and levels as they are, then bends of the numbers, then products of two covariates,
    each without what those before it explain. ``ends`` says where the three kinds end.
    """

    parts: tuple[_Part, ...]
    products: bool
    mean: NDArray[np.float64]
    turn: NDArray[np.float64]
    ends: tuple[int, ...]
    crossed: bool = False  # whether levels have curves of their own

    @property
    def size(self) -> int:
        return 1 + self.turn.shape[1]

    def at(self, encoded: Encoded) -> NDArray[np.float64]:
        """(n, size)."""
        raw = _raw(self.parts, self.products, self.crossed, encoded)[0]
        return np.column_stack([np.ones(len(encoded)), (raw - self.mean) @ self.turn])

    def to_json(self) -> dict[str, Any]:
        kept = {"products": self.products, "crossed": self.crossed, "ends": list(self.ends)}
        parts = [part.to_json() for part in self.parts]
        return {**kept, "parts": parts, "mean": self.mean.tolist(), "turn": self.turn.tolist()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> EdgeBasis:
        """Of what :meth:`to_json` gave; other values are a KeyError, TypeError or ValueError."""
        mean = np.array(values["mean"], dtype=np.float64).reshape(-1)
        turn = np.array(values["turn"], dtype=np.float64).reshape(len(mean), -1)
        parts = tuple(map(_Part.from_json, values["parts"]))
        return cls(
            parts, bool(values["products"]), mean, turn, tuple(values["ends"]), bool(values["crossed"])
        )


def learn_basis(
    encoder: CovariateEncoder,
    encoded: Encoded,
    degrees: int | Mapping[str, int],
    *,
    products: bool = False,
    crossed: bool = False,
    least_rows: int = 0,
) -> EdgeBasis:
    """Splines with ``degrees`` columns for numbers (by name, or for all), indicators for levels.

    With ``products``, also those of what is linear in two different covariates; ``crossed``, of levels with
    all columns of a spline. Levels with fewer than ``least_rows`` rows count as the most frequent one.
    """
    parts = tuple(_parts(encoder, encoded, degrees, least_rows))
    raw, ends = _raw(parts, products, crossed, encoded)
    mean, turn, kept = _uncorrelated(raw)
    ends_kept = tuple(1 + int((kept < end).sum()) for end in ends)
    return EdgeBasis(parts, products, mean, turn, ends_kept, crossed)


def n_functions(encoder: CovariateEncoder, degrees: int) -> int:
    """How many columns beside the one a basis without products has at most."""
    levels = sum(len(column.levels) - 1 for column in encoder.categorical)
    return levels + degrees * len(encoder.numeric)


def _parts(
    encoder: CovariateEncoder, encoded: Encoded, degrees: int | Mapping[str, int], least_rows: int
) -> Iterator[_Part]:
    for column, position, values in covariate_columns(encoder, encoded):
        if isinstance(column, Categorical):
            counts = np.bincount(values, minlength=len(column.levels))
            frequent = np.flatnonzero(counts >= least_rows)
            yield _Part(position, None, frequent[frequent != np.argmax(counts)])
        else:
            wanted = degrees if isinstance(degrees, int) else degrees[column.name]
            yield _Part(position, learn_spline(values, wanted), np.arange(0))


def _raw(
    parts: tuple[_Part, ...], products: bool, crossed: bool, encoded: Encoded
) -> tuple[NDArray[np.float64], tuple[int, int, int]]:
    columns = [part.at(encoded) for part in parts]
    linear = [own[:, : part.n_linear] for own, part in zip(columns, parts, strict=True)]
    bends = [own[:, part.n_linear :] for own, part in zip(columns, parts, strict=True)]
    pairs = list(combinations(linear, 2)) if products else []
    if crossed:
        levels = [own for own, part in zip(columns, parts, strict=True) if part.spline is None]
        pairs += [(own, bend) for own in levels for bend in bends if bend.shape[1]]
    mixed = [(first[:, :, None] * second[:, None, :]).reshape(len(encoded), -1) for first, second in pairs]
    ends = np.cumsum([sum(own.shape[1] for own in kind) for kind in (linear, bends, mixed)])
    return np.hstack([*linear, *bends, *mixed]), (int(ends[0]), int(ends[1]), int(ends[2]))


def _uncorrelated(
    raw: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Mean, the matrix that makes columns uncorrelated in their order, and which of them are no copies."""
    mean = raw.mean(axis=0)
    size = np.sqrt(np.square(raw - mean).mean(axis=0))
    kept = np.flatnonzero(size > 1e-9)
    standard = (raw[:, kept] - mean[kept]) / size[kept]
    left = np.square(np.diag(np.linalg.qr(standard, mode="r"))) / len(raw)
    kept, standard = kept[left > _COPY], standard[:, left > _COPY]
    triangle = np.linalg.qr(standard, mode="r") / np.sqrt(len(raw))
    turn = np.zeros((raw.shape[1], len(kept)))
    turn[kept] = np.linalg.inv(triangle) / size[kept][:, None]
    return mean, turn, kept
