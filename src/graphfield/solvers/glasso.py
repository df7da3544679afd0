"""Graphical lasso, at one penalty or with the penalty chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import GraphicalLassoCV, graphical_lasso
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold

from graphfield.exceptions import DataError

_ILL_CONDITIONED = (
    "The graphical lasso breaks down: some nodes are too nearly copies, or sums, of others. Drop some of "
    "them, or use a larger penalty."
)


def graphical_lasso_precision(
    covariance: NDArray[np.float64], penalty: float, tol: float = 1e-4
) -> NDArray[np.float64]:
    """Sparse precision matrix at one penalty, to a duality gap of ``tol``."""
    try:
        with _quiet():
            # Inner problems must be solved more closely than the gap, or it never closes.
            solved = graphical_lasso(covariance, penalty, tol=tol, enet_tol=tol / 10, max_iter=100)
    except FloatingPointError as error:
        raise DataError(_ILL_CONDITIONED) from error
    return np.asarray(solved[1], dtype=np.float64)


def graphical_lasso_cv(
    X: NDArray[np.float64], groups: NDArray | None, n_penalties: int, n_folds: int
) -> tuple[NDArray[np.float64], float]:
    """Sparse precision matrix of centred ``X`` (n, p) and the penalty that was chosen.

    scikit-learn's search refines its grid of penalties twice around the best one.
    """
    folds = KFold(n_folds) if groups is None else GroupKFold(n_folds)
    splits = list(folds.split(X, groups=groups))
    # Where nodes are nearly copies of each other the solver breaks down at small penalties.
    searches = [n_penalties, *(np.geomspace(1, low, 2 * n_penalties) for low in (0.02, 0.1, 0.3))]
    for penalties in searches:
        model = GraphicalLassoCV(
            alphas=penalties, cv=splits, n_refinements=2, assume_centered=True, max_iter=200
        )
        try:
            with _quiet():
                model.fit(X)
        except FloatingPointError:
            continue
        return np.asarray(model.precision_, dtype=np.float64), float(model.alpha_)
    raise DataError(_ILL_CONDITIONED)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), _numpy_random_state_kept():
        # The smallest penalties of a search often stop short, and with fewer rows than nodes their
        # likelihood is not finite; the chosen one decides.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@contextmanager
def _numpy_random_state_kept() -> Iterator[None]:
    """scikit-learn's solver draws (and ignores) a seed from NumPy's global generator."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
