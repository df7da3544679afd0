"""A cell: one fit of an experiment, with what decides its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import pandas as pd


@dataclass
class Result:
    """What a cell found.

    ``metrics`` are means over the test samples (evaluation -> truth -> metric), ``samples`` what they are
    means of; ``config`` is the full configuration of the model, ``details`` what else was learned.
    """

    title: str
    metrics: dict[str, dict[str, dict[str, float]]]
    samples: pd.DataFrame
    seconds: dict[str, float]
    config: dict[str, Any]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell(ABC):
    """One fit: its fields and ``parameters`` decide its result, and nothing else."""

    setting: str
    method: str
    n_train: int
    n_test: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.setting}/{self.method}/n{self.n_train}-test{self.n_test}-seed{self.seed}"

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Of the model, as JSON can hold them."""

    @abstractmethod
    def run(self, device: str) -> Result:
        """Simulate, fit, predict, score."""

    def check_installed(self) -> None:  # noqa: B027 - most need nothing
        """Raise where a package is missing that ``run`` needs."""
