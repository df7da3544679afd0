"""The steps that every study takes, told and timed: fit a copy of the estimator, compare it, test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from sklearn.base import clone

from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import ParameterError
from graphfield.inference.dependence import dependence_test
from graphfield.inference.evidence import Evidence


@dataclass(frozen=True)
class Steps:
    """What is being done goes to ``tell``, how long it took is kept."""

    tell: Callable[[str], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def take(self, name: str, text: str) -> Iterator[None]:
        if self.tell is not None:
            self.tell(text)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def fit(
        self, estimator: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame, what: str, **options: Any
    ) -> GraphEstimator:
        """A fitted copy."""
        if not isinstance(estimator, GraphEstimator):
            raise ParameterError(
                f"estimator must be a graphfield estimator such as DNNCGM(), got {estimator!r}."
            )
        with self.take("fit", f"Fitting {what} ..."):
            return clone(estimator).fit(X, Z, **options)

    def test(self, X: pd.DataFrame, Z: pd.DataFrame, what: str, **options: Any) -> Evidence:
        """Whether the graph depends on the covariates, by permutation of rows that go together."""
        with self.take("permutation test", f"Testing by permutation of {what} ..."):
            return dependence_test(X, Z, **options)
