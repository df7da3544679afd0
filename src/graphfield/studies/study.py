"""What every study has: graphs of a fitted model, how far to trust them, and one way to files and a page."""

from __future__ import annotations

import json
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis.averages import Bands
from graphfield.data.covariate_rows import FILE_NAME, covariate_rows
from graphfield.data.saved_files import finite_values, json_bytes
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.persistence import HEADER, model_files
from graphfield.exceptions import ExtrapolationWarning, OutputError, ParameterError
from graphfield.folders import check_folder, write_folder
from graphfield.graphs.groups import Groups
from graphfield.inference.dependence import dependence_test
from graphfield.inference.evidence import Evidence
from graphfield.inference.model_gain import ModelGain
from graphfield.inference.verdict import Fitted, Verdict, reach_verdict
from graphfield.plots import png_bytes
from graphfield.report.folder import EVIDENCE, FIT, GAIN, fit_record, gain_record
from graphfield.report.html import write_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SUMMARY = "summary.json"
_DPI = 150


@dataclass(frozen=True)
class Wording:
    """How a kind of study says that its pictures show no finding, and where its model is."""

    not_compared: str
    not_supported: str
    nowhere: str  # there is an edge
    why_not: str = ""  # it was not compared
    table: str | None = None  # that the model was fitted to
    group: str | None = None  # of its rows
    model_folder: str = ""  # inside that of the study, with a slash behind


@dataclass(frozen=True, kw_only=True)
class Study(ABC):
    """Graphs that depend on something: what was found, whether it is so, and the files that show it.

    Attributes
    ----------
    model : fitted estimator
    Z : DataFrame
        The covariates at which the study looks at graphs.
    fitted : ndarray
        Which of these the model was fitted to.
    n_rows : int
        Rows that it was fitted to.
    gain : ModelGain or None
        Of the varying graph over one graph for all, on rows that took no part in the fit; None where that
        was not asked for, or not possible.
    evidence : Evidence or None
        What the permutation test says, where it was run.
    averages : Bands
        Average graphs of rows that belong together.
    threshold, rule
        When an edge counts as present, as it was asked for.
    notes : tuple of str
        What was left out or assumed, in sentences.
    seconds : dict
        Time of each step.
    """

    wording: ClassVar[Wording]

    model: GraphEstimator
    Z: pd.DataFrame
    fitted: NDArray[np.bool_]
    n_rows: int
    gain: ModelGain | None
    evidence: Any
    averages: Bands
    threshold: float | str | None
    rule: str = "and"
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float]

    # -- what a kind of study says of itself ------------------------------------------------

    @property
    @abstractmethod
    def node_groups(self) -> Groups | None:
        """Nodes that belong together."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What the data are, in words."""

    @abstractmethod
    def tables(self) -> dict[str, pd.DataFrame]:
        """Name to table; the names are those of the files."""

    @abstractmethod
    def drawings(self) -> dict[str, Callable[[], Figure]]:
        """Name to what draws the figure; the names are those of the files."""

    @abstractmethod
    def _findings(self) -> list[str]:
        """What was found, in words."""

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """What ``summary.json`` says of this kind of study alone."""

    def _own_files(self) -> dict[str, bytes]:
        """Files beside tables, figures, model and summary."""
        return {}

    # -- how far to trust it ----------------------------------------------------------------

    @cached_property
    def verdict(self) -> Verdict:
        """What rows that took no part in the fit and the permutation test say together."""
        with no_news():
            fitted = Fitted.of(self.model, self.Z)
        return reach_verdict(fitted, self.gain, self.evidence, why_not=self._why_not)

    @property
    def _why_not(self) -> str:
        return self.wording.why_not if self.gain is None else ""

    @property
    def has_edges(self) -> bool:
        """Whether any graph has an edge; without one there is nothing to be seen in the pictures."""
        return bool(self.averages.presence.any())

    @property
    def doubt(self) -> str:
        """Why pictures of a graph that moves show no finding, in a few words; empty where they do."""
        if not self.has_edges:
            return f"the model found no edge: no |partial correlation| above {self.averages.threshold:.3g}"
        if self.gain is None:
            return self.wording.not_compared
        return "" if self.gain.answer == "better" else self.wording.not_supported

    @property
    def caution(self) -> str:
        """Below a title: what must not look like a finding."""
        return f"\n({self.doubt})" if self.doubt else ""

    # -- in words and numbers ---------------------------------------------------------------

    def sentences(self) -> list[str]:
        """The answer in words: how far to trust it first, then what was found."""
        found = [self.verdict.paragraph, self.about]
        if not self.has_edges:
            empty = f"{self.doubt[0].upper()}{self.doubt[1:]} {self.wording.nowhere}."
            found.append(f"{empty} Pictures of the graph are empty.")
        return found + self._findings()

    def summary(self) -> dict[str, Any]:
        """All numbers, and the answer in words: what ``summary.json`` holds."""
        shared = {
            "verdict": self.verdict.to_json(),
            "covariates": list(self.Z.columns),
            "evidence": self._records().get(EVIDENCE),
            "threshold": self.threshold,
            "cut": self.averages.threshold,
            "has_edges": self.has_edges,
            "rule": self.rule,
            "model": type(self.model).__name__,
            "notes": self.notes,
            "seconds": {step: round(seconds, 2) for step, seconds in self.seconds.items()},
        }
        return finite_values({**self._numbers(), **shared})

    # -- figures, files, page ---------------------------------------------------------------

    def figures(self) -> dict[str, Figure]:
        """Name to figure; the names are those of the files."""
        return {name: draw() for name, draw in self.drawings().items()}

    def write(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write tables, figures, model and summary into a folder, all or none; returns what is in it."""
        self.check_place(folder, overwrite=overwrite)
        files = {f"{name}.csv": _csv(table) for name, table in self.tables().items()}
        files |= {f"{name}.png": png_bytes(draw(), _DPI) for name, draw in self.drawings().items()}
        beside = {name: json_bytes(record) for name, record in self._records().items()}
        beside[FILE_NAME] = covariate_rows(self.Z[self.fitted]).encode()
        files |= {
            self.wording.model_folder + name: content
            for name, content in model_files(self.model, beside).items()
        }
        files |= {**self._own_files(), SUMMARY: json_bytes(self.summary())}
        write_folder(folder, files, overwrite=overwrite)
        return [Path(folder, name) for name in dict.fromkeys(name.partition("/")[0] for name in files)]

    @classmethod
    def check_place(cls, folder: str | Path, *, overwrite: bool) -> None:
        """Say before the work that its results could not be written, or would cost other files."""
        check_folder(folder, overwrite=overwrite)
        there = Path(folder)
        ours = (there / name for name in (SUMMARY, cls.wording.model_folder + HEADER))
        if there.is_dir() and any(there.iterdir()) and not all(path.is_file() for path in ours):
            raise OutputError(
                "{file} holds other files and no such study, so it is not replaced. Choose another folder.",
                file=folder,
            )

    def write_page(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write one HTML page about the model, on which its covariates can be moved."""
        known = {name.removesuffix(".json"): record for name, record in self._records().items()}
        rows, groups = self.Z[self.fitted], self.node_groups
        return write_report(self.model, path, Z=rows, node_groups=groups, overwrite=overwrite, **known)

    def _records(self) -> dict[str, Any]:
        """What ``graphfield fit`` keeps beside a model too."""
        fit = fit_record(
            rows=self.n_rows,
            nodes=self.model.node_names_,
            covariates=list(self.Z.columns),
            seconds=self.seconds["fit"],
            table=self.wording.table,
            group=self.wording.group,
        )
        found = {FIT: fit, GAIN: gain_record(self.gain, self._why_not)}
        return found if self.evidence is None else {**found, EVIDENCE: json.loads(self.evidence.to_json())}


@contextmanager
def no_news() -> Iterator[None]:
    """Without another warning of rows that lie far outside the training covariates."""
    with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
        yield


def _csv(table: pd.DataFrame) -> bytes:
    """With the index where it has a name."""
    return table.to_csv(index=table.index.name is not None).encode()


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
            raise ParameterError.of(
                "estimator", f"must be a graphfield estimator such as DNNCGM(), got {estimator!r}."
            )
        with self.take("fit", f"Fitting {what} ..."):
            return clone(estimator).fit(X, Z, **options)

    def test(self, X: pd.DataFrame, Z: pd.DataFrame, what: str, **options: Any) -> Evidence:
        """Whether the graph depends on the covariates, by permutation of rows that go together."""
        with self.take("permutation test", f"Testing by permutation of {what} ..."):
            return dependence_test(X, Z, **options)
