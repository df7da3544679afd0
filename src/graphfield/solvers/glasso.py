"""Graphical lasso with its penalty chosen by cross-validation."""

from __future__ import annotations

import warnings

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
    with warnings.catch_warnings():
        # The smallest penalties of the search often stop short; the chosen one decides.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return np.asarray(model.precision_, dtype=np.float64), float(model.alpha_)
