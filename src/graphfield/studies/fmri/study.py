"""A study of brain networks: fit, judge on subjects left out, average by bands of the score."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis import (
    Bands,
    average_graphs,
    bands,
    connectivity,
    edge_curves,
    graph_at,
)
from graphfield.analysis.dependence import dependence_test
from graphfield.analysis.rows import covariate_rows, grid, pair_positions, places
from graphfield.analysis.verdict import Fitted, Verdict, reach_verdict
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number, root_seed
from graphfield.exceptions import DataError, listing, suggestion
from graphfield.graphs.groups import block_means
from graphfield.studies.fmri.held_out_subjects import SubjectGain, subject_gain
from graphfield.studies.fmri.subjects import Subjects

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MEASURES = ("density", "mean_strength", "clustering", "largest_part", "modularity", "within", "between")
# Subjects over whose other covariates the effect of the score is averaged.
_AVERAGED = 200
# Regions above which the number of patterns is not searched for, and what it is then.
_MANY_REGIONS, _FEW_PATTERNS = 60, 4


@dataclass(frozen=True)
class FmriStudy:
    """What :func:`fmri_study` found.

    Attributes
    ----------
    subjects : Subjects
    model : fitted estimator
        Of all subjects.
    networks : list of str
        The sub-network of every region; clusters of these data where none were given.
    threshold : float or str
        When an edge counts as there, as it was asked for; ``bands.threshold`` is the number that it came to.
    bands : Bands
        The average graph of the subjects in each quantile band of the score.
    gain : SubjectGain or None
        Of the varying graph over one graph for all, on subjects left out.
    evidence : Evidence or None
        Permutation test of whether the graph depends on the covariates and, as its only line, on the score
        given the others; where asked for.
    notes : list of str
        What was left out or assumed, in sentences.
    seconds : dict
        Time of each step.
    """

    subjects: Subjects
    model: GraphEstimator
    networks: list[str]
    threshold: float | str
    bands: Bands
    gain: SubjectGain | None
    evidence: Any
    notes: list[str]
    seconds: dict[str, float]

    @property
    def score(self) -> str:
        return self.subjects.score

    @property
    def score_evidence(self) -> Any:
        """What the permutation test says of the score, given the other covariates; None without a test."""
        lines = () if self.evidence is None else self.evidence.per_covariate
        return next((line for line in lines if line.name == self.score), None)

    @property
    def verdict(self) -> Verdict:
        """What subjects left out and the permutation test say together."""
        fitted = Fitted.of(self.model, self.subjects.table.reset_index(drop=True))
        gain = None if self.gain is None else self.gain.model_gain
        return reach_verdict(fitted, gain, self.evidence)

    @property
    def doubt(self) -> str:
        """Why differences along the score are not established, in a few words; empty where they are."""
        if self.gain is None:
            return "not compared with a static graph"
        if self.gain.verdict != "better":
            return "not supported by subjects left out of training"
        if self.score_evidence is not None and self.score not in self.verdict.matter:
            return f"by the permutation test {self.score} cannot be told from chance"
        return ""

    def graph(self, subject: str, *, threshold: float | str | None = None) -> pd.DataFrame:
        """Partial correlations at the covariates of one subject, with names on both sides."""
        ids = self.subjects.ids
        if str(subject) not in ids:
            raise DataError(
                f"There is no subject {str(subject)!r}.{suggestion(str(subject), ids)} "
                f"The subjects are {listing(ids, most=5)}."
            )
        z = self.subjects.table.loc[[str(subject)]].reset_index(drop=True)
        return graph_at(self.model, z, threshold=threshold)

    def graphs(self) -> NDArray[np.float32]:
        """Partial correlations of all subjects, (subjects, regions, regions)."""
        return self.model.partial_correlations(self.subjects.table.reset_index(drop=True))

    def connectivity(self, measures: Sequence[str] = _MEASURES) -> pd.DataFrame:
        """One row per subject: covariates, and measures of its graph at the threshold."""
        table = self.subjects.table
        found = connectivity(
            self.model,
            table.reset_index(drop=True),
            list(measures),
            groups=self.networks,
            threshold=self.threshold,
        )
        return pd.concat([table, found.set_axis(table.index)], axis=1)

    def network_table(self) -> pd.DataFrame:
        """Mean size of edges and density within and between sub-networks, for every band of the score."""
        parts = []
        names, sizes = block_means(np.abs(self.bands.matrices), self.networks)
        density = block_means(self.bands.presence, self.networks)[1]
        for i, band in enumerate(self.bands.labels):
            for a, first in enumerate(names):
                for b in range(a, len(names)):
                    parts.append((band, first, names[b], sizes[i, a, b], density[i, a, b]))
        return pd.DataFrame(parts, columns=["band", "first", "second", "mean_weight", "density"])

    def score_edges(self) -> pd.DataFrame:
        """Every pair of regions at a low and a high score, other covariates averaged; largest change first.

        Low and high are the ends of where the model is asked: the 1st and 99th percentile of the score, or
        the first and last of its levels. The change is what the model learned and has no error bar; whether
        the score matters at all is for ``gain`` and ``evidence`` to say.
        """
        Z = self.subjects.table.reset_index(drop=True)
        values = places(self.model, self.score, Z[self.score], 2)
        rows = covariate_rows(self.model, Z, _AVERAGED)
        labels = np.repeat(np.array(["low", "high"], dtype=object), len(rows))
        found = average_graphs(
            self.model, grid(rows, self.score, [values[0], values[-1]], {}), labels, threshold=self.threshold
        )
        j, k = pair_positions(len(self.subjects.regions))
        names, groups = np.array(self.subjects.regions), np.array(self.networks)
        low, high = found.matrices[:, j, k]
        columns = {
            "source": names[j],
            "target": names[k],
            "source_network": groups[j],
            "target_network": groups[k],
            "low": low,
            "high": high,
            "change": high - low,
            "presence_low": found.presence[0, j, k],
            "presence_high": found.presence[1, j, k],
        }
        order = np.argsort(-np.abs(columns["change"]), kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def score_curves(self, most: int = 8) -> pd.DataFrame:
        """The edges that move most with the score, as curves over it; the other covariates averaged."""
        return edge_curves(self.model, self.score, self.subjects.table.reset_index(drop=True), most=most)

    def sentences(self) -> list[str]:
        """The answer in words: how far to trust it first, then what was found."""
        lines = [self.verdict.paragraph, self.subjects.summary]
        if self.doubt:
            lines.append(
                f"Differences between bands below are what the model drew, and not established: {self.doubt}."
            )
        if not self.bands.presence.any():
            lines.append(
                f"The model found no edge: no |partial correlation| of any subject is above "
                f"{self.bands.threshold:.3g}. Pictures of the graph are empty."
            )
        labels, density = self.bands.labels, self.bands.density
        values = ", ".join(f"{100 * d:.1f} % ({label})" for label, d in zip(labels, density, strict=True))
        lines.append(
            f"Density at |partial correlation| > {self.bands.threshold:.3g} by {self.score}, mean over "
            f"subjects: {values}."
        )
        return [*lines, *self.notes]

    def summary(self) -> dict[str, Any]:
        """The numbers of the study, ready for JSON."""
        gain = self.gain
        return {
            "sentences": self.sentences(),
            "verdict": self.verdict.to_json(),
            "score": self.score,
            "covariates": list(self.subjects.table.columns),
            "n_subjects": len(self.subjects.ids),
            "n_rows": sum(self.subjects.n_times),
            "n_regions": len(self.subjects.regions),
            "threshold": self.threshold,
            "gain_over_static": None
            if gain is None
            else {
                "value": gain.value,
                "standard_error": gain.standard_error,
                "verdict": gain.verdict,
                "n_folds": gain.n_folds,
            },
            "bands": self.bands.table.to_dict(orient="records"),
            "notes": self.notes,
            "seconds": {step: round(seconds, 1) for step, seconds in self.seconds.items()},
        }

    def figures(self) -> dict[str, Figure]:
        """Name to figure: bands, sub-networks, connectivity, edges that move with the score."""
        from graphfield.studies.fmri.figures import study_figures

        return study_figures(self)

    def write(self, out: Any, *, overwrite: bool = False) -> Any:
        """Model, figures (PNG), tables (CSV), graphs of all subjects (NPZ) and a summary, in one folder."""
        from graphfield.studies.fmri.output import write_study

        return write_study(self, out, overwrite=overwrite)


def fmri_study(
    subjects: Subjects,
    *,
    estimator: GraphEstimator | None = None,
    quantiles: int = 4,
    threshold: float | str = "auto",
    n_folds: int = 3,
    n_networks: int = 7,
    evidence: bool = True,
    random_state: int = 0,
    tell: Callable[[str], None] | None = None,
) -> FmriStudy:
    """Graphs of brain regions that depend on a score: fit, judge on subjects left out, average by bands.

    Parameters
    ----------
    subjects : Subjects
        From :func:`load_subjects`.
    estimator : estimator, optional
        By default a :class:`~graphfield.DNNCGM` without a mean to learn, since regions have mean zero
        within every subject. Its splits are by subject.
    quantiles : int
        Bands of the score with about equally many subjects.
    threshold : "auto", "gap" or float
        When an edge counts as there, as in ``predict_graph``; the paper's figures have 0.05.
    n_folds : int
        Folds of subjects in which the varying graph is compared with a static one; each costs a fit more.
        0 leaves the comparison out.
    n_networks : int
        Clusters of regions to make where no sub-networks were given.
    evidence : bool
        Whether to test by permutation of subjects that the graph depends on the covariates, and on the score
        given the others. The score's p-value is not adjusted for them: they are not the question.
    random_state : int
    tell : callable, optional
        Is told what is being done.

    Returns
    -------
    FmriStudy

    Examples
    --------
    >>> import graphfield as gf, numpy as np, pandas as pd
    >>> from graphfield.studies.fmri import fmri_study, load_subjects
    >>> scans = np.random.default_rng(0).normal(size=(20, 30, 5))
    >>> people = pd.DataFrame({"age": np.linspace(20, 80, 20)})
    >>> subjects = load_subjects(scans, people, score="age", networks=["a", "a", "b", "b", "b"])
    >>> study = fmri_study(subjects, estimator=gf.RegGMM(), threshold=0.1, evidence=False)
    >>> study.bands.n_rows, study.gain.verdict
    ([5, 5, 5, 5], 'worse')
    """
    check_number("n_folds", n_folds, 0, integer=True)
    say = tell or _silent
    seed = root_seed(random_state)
    model = default_estimator(len(subjects.regions), seed) if estimator is None else clone(estimator)
    seconds: dict[str, float] = {}
    gain = None
    if n_folds:
        start = time.perf_counter()
        gain = subject_gain(model, subjects, n_folds, say)
        seconds["held-out subjects"] = time.perf_counter() - start
    start = time.perf_counter()
    say("Fitting all subjects ...")
    fit: Any = model.fit
    fit(subjects.X, subjects.Z, groups=subjects.groups)
    seconds["fit"] = time.perf_counter() - start
    found = None
    if evidence:
        start = time.perf_counter()
        found = _evidence(subjects, seed, say)
        seconds["permutation test"] = time.perf_counter() - start
    start = time.perf_counter()
    notes = list(subjects.notes)
    if getattr(model, "rank", None) == _FEW_PATTERNS and len(subjects.regions) > _MANY_REGIONS:
        notes.append(
            f"With more than {_MANY_REGIONS} regions the graphs mix {_FEW_PATTERNS} patterns; trying more "
            "(rank='auto') takes many times as long."
        )
    networks = subjects.networks
    if networks is None:
        networks = subjects.clustered(min(n_networks, len(subjects.regions)))
        notes.append(
            f"No sub-networks were given: regions were put into {len(set(networks))} clusters by how their "
            "time series go together."
        )
    by_band = bands(
        model, subjects.table.reset_index(drop=True), subjects.score, quantiles=quantiles, threshold=threshold
    )
    seconds["bands"] = time.perf_counter() - start
    return FmriStudy(subjects, model, networks, threshold, by_band, gain, found, notes, seconds)


def default_estimator(n_regions: int, seed: int) -> GraphEstimator:
    """What :func:`fmri_study` fits: regions have mean zero within every subject, so no mean is learned.

    Above 60 regions the graphs mix four patterns: trying 8, 16 and 32 costs many times as much there. Three
    subjects in ten decide how much graphs may move: there are few, and one in ten can mislead.
    """
    from graphfield.estimators.dnncgm import DNNCGM

    rank = "auto" if n_regions <= _MANY_REGIONS else _FEW_PATTERNS
    return DNNCGM(rank=rank, center="constant", marginals="raw", validation_fraction=0.3, random_state=seed)


def _evidence(subjects: Subjects, seed: int, say: Callable[[str], None]) -> Any:
    """The permutation test: the score is the question, so it is tested given the others, and they are not."""
    say("Testing by permutation of subjects ...")
    return dependence_test(
        subjects.X, subjects.Z, groups=subjects.groups, covariates=[subjects.score], random_state=seed
    )


def _silent(text: str) -> None:
    """Nobody asked to be told."""
