"""Graphical lasso with its penalty chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import GraphicalLassoCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold


def graphical_lasso_cv(
    X: NDArray[np.float64], groups: NDArray | None, n_penalties: int, n_folds: int
) -> tuple[NDArray[np.float64], float]:
    """Sparse precision matrix of centred ``X`` (n, p) and the penalty that was chosen.

    scikit-learn's search refines its grid of penalties twice around the best one.
    """
    folds = KFold(n_folds) if groups is None else GroupKFold(n_folds)
    splits = list(folds.split(X, groups=groups))
    model = GraphicalLassoCV(
        alphas=n_penalties, cv=splits, n_refinements=2, assume_centered=True, max_iter=200
    )
    with warnings.catch_warnings(), _numpy_random_state_kept():
        # The smallest penalties of the search often stop short, and with fewer rows than nodes their
        # likelihood is not finite; the chosen one decides.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        model.fit(X)
    return np.asarray(model.precision_, dtype=np.float64), float(model.alpha_)


@contextmanager
def _numpy_random_state_kept() -> Iterator[None]:
    """scikit-learn's solver draws (and ignores) a seed from NumPy's global generator."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
