"""The partial correlation of one pair along one covariate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.data.covariates import Categorical, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded
from graphfield.exceptions import DataError, ParameterError, listing, suggestion
from graphfield.inference.design import Design
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.edge_tests import fit_scores
from graphfield.inference.enough_rows import curve_degrees, has_products, test_degrees
from graphfield.inference.pair_scores import Scores

# Rows that other covariates are averaged over at most, draws of a whole curve, and the largest estimate.
_MOST_ROWS, _DRAWS, _MOST = 200, 10_000, 0.999


@dataclass(frozen=True)
class Curve:
    """Estimates at values of a covariate, their covariance, and its degrees of freedom."""

    values: list[Any]
    estimate: NDArray[np.float64]
    covariance: NDArray[np.float64]
    freedom: float

    def intervals(
        self, level: float, simultaneous: bool, seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """On the scale of Fisher's z, where estimates near one are not skewed."""
        error = np.sqrt(np.maximum(np.diag(self.covariance), 1e-20))
        width = float(student.ppf((1 + level) / 2, self.freedom))
        if simultaneous:
            width = max(width, self._largest(error, level, seed))
        at = np.clip(self.estimate, -_MOST, _MOST)
        half = width * error / (1 - at**2)
        return np.tanh(np.arctanh(at) - half), np.tanh(np.arctanh(at) + half)

    def _largest(self, error: NDArray[np.float64], level: float, seed: int) -> float:
        """Quantile of the largest of all deviations (Chernozhukov, Chetverikov and Kato, 2013)."""
        rng = np.random.default_rng(seed)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(error, error))
        root = vectors * np.sqrt(np.maximum(values, 0))
        drawn = np.abs(rng.normal(size=(_DRAWS, len(error))) @ root.T).max(axis=1)
        noise = np.sqrt(rng.chisquare(self.freedom, _DRAWS) / self.freedom)
        return float(np.quantile(drawn / noise, level))


def curve_of_pair(
    scores: Scores,
    encoder: CovariateEncoder,
    encoded: Encoded,
    starts: NDArray[np.intp] | None,
    covariate: str,
    others: Mapping[str, Any],
    n_points: int,
) -> Curve:
    """By a spline of the covariate that is rough enough for bias to be small beside chance."""
    names = [column.name for column in encoder.columns]
    for name in (covariate, *others):
        if name not in names:
            raise DataError(
                f"There is no covariate called {name!r}.{suggestion(str(name), names)} The covariates are "
                f"{listing(names)}."
            )
    if covariate in others:
        raise ParameterError(f"{covariate!r} is the covariate that moves: it cannot be fixed in others.")
    n_units = len(encoded) if starts is None else len(starts)
    degrees = dict.fromkeys(names, test_degrees(encoder, n_units)) | {covariate: curve_degrees(n_units)}
    basis = learn_basis(encoder, encoded, degrees, products=has_products(encoder, n_units))
    design = Design.of(basis.at(encoded), starts)
    fit, _ = fit_scores(scores, design)
    values, places = _places(encoder, encoded, covariate, n_points)
    rows = encoded.take(
        np.linspace(0, len(encoded) - 1, min(len(encoded), _MOST_ROWS)).round().astype(np.intp)
    )
    for name, value in others.items():
        rows = _moved(encoder, rows, name, encoder.encode_value(name, value))
    at = np.stack([basis.at(_moved(encoder, rows, covariate, place)).mean(axis=0) for place in places])
    freedom = design.freedom(slice(None))
    return Curve(values, at @ fit.coef[:, 0], at @ fit.covariance[0] @ at.T, freedom)


def _places(
    encoder: CovariateEncoder, encoded: Encoded, name: str, n_points: int
) -> tuple[list[Any], NDArray[np.float64]]:
    """Values as the user has them, and as they are encoded."""
    position, column = _position(encoder, name)
    if isinstance(column, Categorical):
        return list(column.levels), np.arange(float(len(column.levels)))
    own = encoded.numeric[:, position]
    low, high = np.quantile(own, [0.01, 0.99])
    distinct = np.unique(own[(own >= low) & (own <= high)])
    places = distinct if len(distinct) <= n_points else np.linspace(low, high, n_points)
    return [float(value) for value in column.mean + column.scale * places], places


def _position(encoder: CovariateEncoder, name: str) -> tuple[int, Numeric | Categorical]:
    """Of a covariate among those of its kind, and the covariate."""
    column = next(column for column in encoder.columns if column.name == name)
    kind = encoder.categorical if isinstance(column, Categorical) else encoder.numeric
    return [other.name for other in kind].index(name), column


def _moved(encoder: CovariateEncoder, rows: Encoded, name: str, place: float) -> Encoded:
    """Rows with one covariate at one place, as it is encoded."""
    position, column = _position(encoder, name)
    if isinstance(column, Categorical):
        codes = rows.codes.copy()
        codes[:, position] = int(place)
        return replace(rows, codes=codes)
    numeric = rows.numeric.copy()
    numeric[:, position] = place
    return replace(rows, numeric=numeric)
