"""A study of brain networks: fit, judge on subjects left out, average by bands of the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphfield.analysis import bands
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number, root_seed
from graphfield.inference.model_gain import gain_over_one_graph
from graphfield.studies.fmri.figures import drawings
from graphfield.studies.fmri.graphs import SubjectGraphs
from graphfield.studies.fmri.subjects import Subjects
from graphfield.studies.study import Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Regions above which the number of patterns is not searched for, and what it is then.
_MANY_REGIONS, _FEW_PATTERNS = 60, 4


@dataclass(frozen=True, kw_only=True)
class FmriStudy(SubjectGraphs):
    """What :func:`fmri_study` found, beside what every :class:`~graphfield.studies.study.Study` has.

    Attributes
    ----------
    subjects : Subjects
    networks : list of str
        The sub-network of every region; clusters of these data where none were given.
    bands : Bands
        The average graph of the subjects in each quantile band of the score.
    gain : ModelGain or None
        Of the varying graph over one graph for all, on subjects left out.
    evidence : Evidence or None
        Permutation test of whether the graph depends on the covariates and, as its only line, on the score
        given the others; where asked for.
    """

    def drawings(self) -> dict[str, Callable[[], Figure]]:
        return drawings(self)


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
        Folds of subjects in which the varying graph is compared with one graph for all, as
        :func:`graphfield.gain_over_one_graph` does; each costs a fit more. 0 leaves the comparison out.
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
    >>> study.bands.n_rows, study.gain.answer
    ([5, 5, 5, 5], 'worse')
    """
    seed, n_regions, notes = root_seed(random_state), len(subjects.regions), list(subjects.notes)
    check_number("n_folds", n_folds, 2 if n_folds else 0, len(subjects.ids), integer=True)
    estimator = default_estimator(n_regions, seed) if estimator is None else estimator
    X, Z, groups = subjects.X, subjects.Z, subjects.groups
    steps, gain, found = Steps(tell), None, None
    model = steps.fit(estimator, X, Z, "all subjects", groups=groups)
    if n_folds:
        with steps.take("held-out subjects", f"Predicting subjects left out, in {n_folds} folds ..."):
            gain = gain_over_one_graph(model, X, Z, groups=groups, n_folds=n_folds)
            gain = replace(gain, unit="subject", rows="time points")
    if evidence:
        # The score is the question, so it is tested given the others, and they are not.
        options = {"groups": groups, "covariates": [subjects.score], "random_state": seed}
        found = steps.test(X, Z, "subjects", **options)
    if getattr(model, "rank", None) == _FEW_PATTERNS and n_regions > _MANY_REGIONS:
        notes.append(
            f"With more than {_MANY_REGIONS} regions the graphs mix {_FEW_PATTERNS} patterns; trying more "
            "(rank='auto') takes many times as long."
        )
    networks = subjects.networks
    if networks is None:
        networks = subjects.clustered(min(n_networks, n_regions))
        notes.append(
            f"No sub-networks were given: regions were put into {len(set(networks))} clusters by how their "
            "time series go together."
        )
    table = subjects.table.reset_index(drop=True)
    with steps.take("bands", "Averaging graphs ..."):
        by_band = bands(model, table, subjects.score, quantiles=quantiles, threshold=threshold)
    return FmriStudy(
        model=model,
        Z=table,
        fitted=np.ones(len(table), dtype=bool),
        n_rows=len(X),
        gain=gain,
        evidence=found,
        averages=by_band,
        threshold=threshold,
        notes=tuple(notes),
        seconds=steps.seconds,
        subjects=subjects,
        networks=networks,
    )


def default_estimator(n_regions: int, seed: int) -> GraphEstimator:
    """What :func:`fmri_study` fits: regions have mean zero within every subject, so no mean is learned.

    Above 60 regions the graphs mix four patterns: trying 8, 16 and 32 costs many times as much there. Three
    subjects in ten decide how much graphs may move: there are few, and one in ten can mislead.
    """
    from graphfield.estimators.dnncgm import DNNCGM

    rank = "auto" if n_regions <= _MANY_REGIONS else _FEW_PATTERNS
    return DNNCGM(rank=rank, center="constant", marginals="raw", validation_fraction=0.3, random_state=seed)
