"""A scikit-learn citizen. Each check that cannot pass is named with its reason."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import graphfield as gf
from conftest import ESTIMATORS, SMALL, small_data

NEEDS_Z = "calls predict(X): a prediction needs the covariates of its rows, and guessing them would be wrong"
NAMED_Z = "insists that the second argument of fit and score is called y; ours is Z, which it is"
PREDICT_NEEDS_Z = dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_estimators_dtypes",
        "check_estimators_nan_inf",
        "check_estimators_pickle",
        "check_estimators_unfitted",
        "check_f_contiguous_array_estimator",
        "check_fit2d_predict1d",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    ],
    NEEDS_Z,
)
OTHERS = {
    "check_fit_score_takes_y": NAMED_Z,
    "check_n_features_in_after_fitting": NAMED_Z,
    "check_dtype_object": "wants a TypeError for a dict in X; ours is a DataError that names column and row",
}


def _marks(estimator: Any) -> list[pytest.MarkDecorator]:
    """The compiled solver takes its time in each process that uses it, models made of models in each fit."""
    long = isinstance(estimator, (gf.ArchetypeCGM, gf.AutoCGM, gf.Ensemble))
    return [pytest.mark.slow] if long or getattr(estimator, "penalty", None) == "sparse-group" else []


def _checks(
    estimators: list[Any], *, but: Collection[str] = (), only: Collection[str] | None = None
) -> list[Any]:
    """Each estimator with each of scikit-learn's checks: but for these, or only these."""
    pairs = [pair for estimator in estimators for pair in estimator_checks_generator(estimator)]
    named = [(estimator, check, check.func.__name__) for estimator, check in pairs]
    return [
        pytest.param(estimator, check, id=f"{type(estimator).__name__}-{name}", marks=_marks(estimator))
        for estimator, check, name in named
        if name not in but and (only is None or name in only)
    ]


def _tiny(name: str):
    return ESTIMATORS[name](**({"rank": None} if name == "dnncgm" else {}))


@pytest.fixture
def _scikit_learns_own_randomness():
    """Some of its checks draw from NumPy's global generator themselves."""
    state = np.random.get_state()  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002


def test_the_checks_that_are_left_out_are_checks():
    """A check that scikit-learn renames would run again, or be left out of both lists below."""
    names = {check.func.__name__ for _, check in estimator_checks_generator(gf.RegGMM())}
    assert {*PREDICT_NEEDS_Z, *OTHERS} <= names


@pytest.mark.parametrize(
    ("estimator", "check"),
    # Random numbers as Z hold no levels: those that need some are checked below.
    _checks(
        [_tiny(name) for name in ESTIMATORS if name not in ("by-cluster", "joint")],
        but={**PREDICT_NEEDS_Z, **OTHERS},
    ),
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_scikit_learns_own_randomness")
def test_estimator_checks(estimator, check):
    check(estimator)


class _AtAverageZ:
    """Predicts at the average training covariate: lets the checks run that are left out above."""

    def fit(self, X, y):
        super().fit(X, y)
        self.average_z_ = np.asarray(y, dtype=float).mean(axis=0)
        return self

    def predict(self, X, Z=None):
        if Z is None and hasattr(self, "average_z_"):
            Z = np.tile(self.average_z_, (np.shape(X)[0] if np.ndim(X) == 2 else 1, 1))
        return super().predict(X, Z)


class DNNCGMAtAverageZ(_AtAverageZ, gf.DNNCGM):
    pass


class GraphicalLassoAtAverageZ(_AtAverageZ, gf.GraphicalLasso):
    pass


class NodewiseLassoAtAverageZ(_AtAverageZ, gf.NodewiseLasso):
    pass


class RegGMMAtAverageZ(_AtAverageZ, gf.RegGMM):
    pass


class AutoCGMAtAverageZ(_AtAverageZ, gf.AutoCGM):
    pass


class EnsembleAtAverageZ(_AtAverageZ, gf.Ensemble):
    pass


class TreeCGMAtAverageZ(_AtAverageZ, gf.TreeCGM):
    pass


class _InHalves:
    """The checks bring random numbers as Z: here the rows are in cluster A and B by turns."""

    def fit(self, X, y):
        return super().fit(X, y if y is None else np.where(np.arange(len(y)) % 2, "A", "B")[:, None])

    def predict(self, X):
        return super().predict(X, self._all_in_a(X))

    def score(self, X, y):  # noqa: ARG002
        return super().score(X, self._all_in_a(X))

    def _all_in_a(self, X):
        return np.full((np.shape(X)[0] if np.ndim(X) == 2 else 1, 1), "A")


class ByClusterInHalves(_InHalves, gf.ByCluster):
    pass


class JointGraphicalLassoInHalves(_InHalves, gf.JointGraphicalLasso):
    pass


TOO_SMALL = {"check_estimators_nan_inf": "brings 10 rows, which are too few for two clusters"}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        # Not among the estimators above, at least not like this: every check.
        *_checks(
            [EnsembleAtAverageZ(estimator=gf.RegGMM(), n_members=2, resample=True, random_state=0)],
            but=OTHERS,
        ),
        *_checks([ByClusterInHalves(estimator=gf.GraphicalLasso(penalty=0.1))], but={**OTHERS, **TOO_SMALL}),
        *_checks([JointGraphicalLassoInHalves(penalty=0.1, strength=0.5)], but=OTHERS),
        *_checks(
            [
                RegGMMAtAverageZ(),
                AutoCGMAtAverageZ(candidates=("linear",), random_state=0),
                TreeCGMAtAverageZ(random_state=0),
                DNNCGMAtAverageZ(**{**SMALL, "rank": None}),
                GraphicalLassoAtAverageZ(n_penalties=3, n_folds=3),
                NodewiseLassoAtAverageZ(n_penalties=10, n_folds=3),
            ],
            only=PREDICT_NEEDS_Z,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_scikit_learns_own_randomness")
def test_estimator_checks_that_need_a_prediction(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_cross_val_score(estimator, data):
    X, Z = data
    scores = cross_val_score(estimator(), X, Z, cv=3)
    assert np.isfinite(scores).all()
    groups = np.repeat(np.arange(30), 4)
    assert np.isfinite(cross_val_score(estimator(), X, Z, cv=GroupKFold(3), groups=groups)).all()


@pytest.mark.slow
def test_grid_search_prefers_a_model_that_can_see_the_covariate():
    X, Z = small_data(400)
    search = GridSearchCV(
        gf.DNNCGM(rank=4, max_steps=100, device="cpu", random_state=0),
        {"penalty": [0.01, 10.0]},
        cv=2,
    ).fit(X, Z)
    assert search.best_params_ == {"penalty": 0.01}
    assert search.best_estimator_.predict_coef(Z).shape == (400, 6, 6)


def test_pipeline(estimator, fitted, data):
    X, Z = data
    pipeline = make_pipeline(StandardScaler(), estimator()).fit(X, Z)
    assert np.isfinite(pipeline.score(X, Z))
    assert pipeline.predict(X, Z=Z).shape == X.shape
    assert pipeline[-1].edge_weights(Z).shape == (120, 6, 6)
    np.testing.assert_allclose(pipeline[-1].edge_weights(Z), fitted.edge_weights(Z), atol=1e-4)


def test_set_params_rejects_a_typo(estimator):
    with pytest.raises(ValueError, match="Invalid parameter 'dropuot'"):
        estimator().set_params(dropuot=0.1)
