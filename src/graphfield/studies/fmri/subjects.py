"""Subjects with their standardised time series, regions, sub-networks and covariates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.tables import check_described, read_table
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, DataWarning, ParameterError, check_choice, listing
from graphfield.graphs.groups import Groups, group_labels, node_positions
from graphfield.messages import Argument
from graphfield.studies.fmri.phenotypes import incomplete, match_subjects, read_phenotypes, unmatched
from graphfield.studies.fmri.scans import (
    check_shapes,
    collect,
    describe_dropped,
    region_names,
    transpose,
    usable,
)

# Fewer subjects cannot be parted into some to learn from and some to judge by.
FEWEST_SUBJECTS = 10
_DEFAULT_CLUSTERS = 7


@dataclass(frozen=True)
class Subjects:
    """Time series, (time, regions) each, of subjects with covariates.

    Attributes
    ----------
    ids : list of str
    series : list of ndarray
        Every region has mean 0 and standard deviation 1 within every subject.
    regions : list of str
    networks : list of str or None
        The sub-network of every region.
    table : DataFrame
        One row per subject: the score first, then the other covariates. Its index has the ids.
    notes : list of str
        What was left out or assumed on the way, in sentences.
    """

    ids: list[str]
    series: list[NDArray[np.float64]]
    regions: list[str]
    networks: list[str] | None
    table: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def score(self) -> str:
        return str(self.table.columns[0])

    @property
    def n_times(self) -> list[int]:
        return [len(values) for values in self.series]

    @property
    def X(self) -> pd.DataFrame:
        """All time points of all subjects, (rows, regions)."""
        return pd.DataFrame(np.concatenate(self.series), columns=self.regions)

    @property
    def Z(self) -> pd.DataFrame:
        """The covariates of the subject of every row of X."""
        return self.table.iloc[np.repeat(np.arange(len(self.ids)), self.n_times)].reset_index(drop=True)

    @property
    def groups(self) -> pd.Series:
        """The subject of every row of X."""
        return pd.Series(np.repeat(np.array(self.ids, dtype=object), self.n_times), name="subject")

    @property
    def summary(self) -> str:
        """Numbers of subjects, time points and regions, in words."""
        few, many = min(self.n_times), max(self.n_times)
        times = f"{few}" if few == many else f"{few} to {many}"
        others = listing(self.table.columns[1:])
        return (
            f"{len(self.ids):,} subjects with {times} time points each ({sum(self.n_times):,} rows), "
            f"{len(self.regions)} regions; score {self.score!r}, "
            f"{f'other covariates {others}' if others else 'alone'}."
        )

    def correlations(self) -> NDArray[np.float64]:
        """Correlations of the regions within subjects, averaged over subjects, (p, p)."""
        total = np.zeros((len(self.regions),) * 2)
        for values in self.series:
            total += values.T @ values / len(values)
        return total / len(self.series)

    def clustered(self, n_clusters: int = _DEFAULT_CLUSTERS) -> list[str]:
        """Sub-networks found in these data: regions whose time series go together.

        Ward's linkage of regions by how alike their correlations with all regions are.
        """
        from scipy.cluster.hierarchy import fcluster, linkage
        from scipy.spatial.distance import squareform

        check_number("n_clusters", n_clusters, 1, len(self.regions), integer=True)
        distance = np.clip(1 - np.corrcoef(self.correlations()), 0, None)
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), method="ward")
        codes = fcluster(tree, n_clusters, criterion="maxclust")
        return [f"cluster {code + 1}" for code in pd.factorize(codes)[0]]


def load_subjects(
    series: Any,
    phenotypes: Any,
    *,
    score: str,
    covariates: Sequence[str] = (),
    id_column: str | None = None,
    subjects: Sequence[Any] | None = None,
    regions: Sequence[str] | None = None,
    networks: Groups | str | Path | None = None,
    pattern: str | None = None,
    transposed: bool = False,
    drop_regions: Sequence[str] = (),
    every: int = 1,
    missing: str = "error",
) -> Subjects:
    """Time series of many subjects and their phenotypes, checked, matched and standardised.

    Parameters
    ----------
    series : folder, mapping, list or array
        A folder with one file per subject (.npy, .npz, .csv, .tsv, .1D, .txt); a mapping from subject to
        array (time, regions), or a list of these, as nilearn's maskers return them, of any lengths; or one
        array (subjects, time, regions).
    phenotypes : path or DataFrame
        One row per subject.
    score : str
        The column whose relation to the graph is of interest.
    covariates : sequence of str
        Other columns on which the graph may depend: motion, sex, site. What goes along with the score and
        is left out here is credited to the score.
    id_column : str, optional
        The column with the subjects. Without it the rows of the table are taken to be in the order of a
        list or array.
    subjects : sequence, optional
        Names for the items of a list or array.
    regions : sequence of str, optional
        Names of the regions; by default those in the files.
    networks : mapping, sequence, or path of a table with the columns region and network, optional
        The sub-network of every region.
    pattern : str, optional
        How files are named, with ``{id}`` where the subject is: ``"NYU_{id}_rois_cc200.1D"``.
    transposed : bool
        Whether the arrays are regions x time.
    drop_regions : sequence of str
        Regions to leave out, for example those outside the field of view of some subjects.
    every : int
        Use every k-th time point only. Neighbouring time points are alike; leaving some out costs little
        and saves time.
    missing : {"error", "drop"}
        Subjects without a row or a scan, with an unknown score or covariate, with a region that never
        changes or too few time points, and time points with NaN: refused, or left out with a warning.

    Returns
    -------
    Subjects

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from graphfield.studies.fmri import load_subjects
    >>> scans = np.random.default_rng(0).normal(size=(12, 30, 4))
    >>> people = pd.DataFrame({"who": range(12), "age": np.linspace(20, 80, 12)})
    >>> found = load_subjects(scans, people, id_column="who", score="age")
    >>> found.X.shape
    (360, 4)
    """
    check_choice("missing", missing, ("error", "drop"))
    check_number("every", every, 1, integer=True)
    if isinstance(covariates, str):
        raise ParameterError.of(
            "covariates", f"must be a list of names, got {covariates!r}: write [{covariates!r}]."
        )
    scans = collect(series, subjects, pattern)
    if transposed:
        scans = transpose(scans)
    table, ids = read_phenotypes(phenotypes, id_column, [score, *covariates])
    notes: list[str] = []
    if ids is None:
        ids = _in_order(series, list(scans), len(table), notes)
    labels = read_networks(networks) if isinstance(networks, (str, Path)) else networks
    n_given = len(regions) if regions is not None else len(labels) if labels is not None else None
    by_name = isinstance(labels, Mapping) and regions is None
    n_regions = check_shapes(scans, _plausible(scans, n_given) if by_name else n_given)
    names = region_names(scans, regions, n_regions)
    if isinstance(networks, (str, Path)) and isinstance(labels, Mapping):
        check_described(labels, names, Argument("networks"), networks, "region", "network")
    groups = None if labels is None else group_labels(labels, names)
    found, alone, absent = match_subjects(list(scans), ids)
    if alone or absent:
        text = unmatched(alone, absent, len(found), ids)
        _refuse_missing(text, missing if found else "error")
        _note(f"{text} They were left out.", notes)
    people = table.iloc[list(found.values())]
    people.index = pd.Index(list(found), name="subject")
    unknown, counts = incomplete(people)
    if unknown.any():
        who = listing(people.index[unknown.to_numpy()], most=5)
        text = f"{int(unknown.sum())} of {len(people)} subjects lack a covariate: {counts} ({who})."
        _refuse_missing(text, missing)
        _note(f"{text} They were left out.", notes)
    keep = np.ones(n_regions, dtype=bool)
    keep[node_positions(list(drop_regions), names)] = False
    names = [name for name, kept in zip(names, keep, strict=True) if kept]
    wanted = [subject for subject, bad in zip(people.index, unknown, strict=True) if not bad]
    values, dropped = usable({who: scans[who].values[:, keep] for who in wanted}, names, every, missing)
    for line in describe_dropped(dropped, len(wanted)):
        _note(line, notes)
    _check_enough(values, score)
    people = people.loc[list(values)]
    if people[score].nunique() < 2:
        raise DataError(
            f"The score {score!r} is the same for every subject: there is nothing to relate to it."
        ).about(argument="score", column=score)
    return Subjects(
        list(values),
        list(values.values()),
        names,
        None if groups is None else [group for group, kept in zip(groups, keep, strict=True) if kept],
        people.infer_objects(),
        notes,
    )


def read_networks(path: str | Path) -> dict[str, str] | list[str]:
    """A table with the columns region and network (or two columns in this order), or with one alone."""
    table = read_table(path).rename(columns=str)
    lower = {name.lower(): name for name in table.columns}
    if table.shape[1] == 1:
        return [str(value) for value in table.iloc[:, 0]]
    chosen = [lower.get("region"), lower.get("network")]
    if None in chosen:
        if table.shape[1] > 2:
            raise DataError(
                f"{str(path)!r} must have the columns 'region' and 'network', "
                f"it has {listing(table.columns)}."
            ).about(file=str(path))
        chosen = list(table.columns)
    region, network = (table[name].astype(str).str.strip() for name in chosen)
    return dict(zip(region, network, strict=True))


def _plausible(scans: Mapping[str, Any], n_given: int | None) -> int | None:
    """The number of regions that a mapping names, unless it names some that are not there."""
    lengths = {length for scan in scans.values() for length in scan.values.shape}
    return n_given if n_given in lengths else None


def _in_order(series: Any, scans: list[str], n_rows: int, notes: list[str]) -> list[str]:
    if isinstance(series, (str, Path, Mapping)):
        raise ParameterError.of(
            "id_column",
            "must name the column of the phenotype table that has the subjects: files and mappings "
            "have no order.",
        )
    if n_rows != len(scans):
        raise DataError(
            f"Without id_column the phenotype table must have one row per time series, in the same order: "
            f"{len(scans)} series, {n_rows} rows. Name the subjects, and the column that has them."
        ).about(argument="id_column")
    notes.append("The rows of the phenotype table were taken to be in the order of the time series.")
    return scans


def _refuse_missing(text: str, missing: str) -> None:
    if missing == "error":
        raise DataError(
            "{text} Use {drop} to go on without them.", text=text, drop=Argument("missing", "drop")
        )


def _note(text: str, notes: list[str]) -> None:
    notes.append(text)
    warnings.warn(text, DataWarning, stacklevel=3)


def _check_enough(values: Mapping[str, Any], score: str) -> None:
    if len(values) < FEWEST_SUBJECTS:
        raise DataError(
            f"At least {FEWEST_SUBJECTS} subjects are needed to relate graphs to {score!r} and to judge by "
            f"subjects left out, got {len(values)}."
        ).about(argument="score")
