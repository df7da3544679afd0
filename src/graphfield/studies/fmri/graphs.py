"""Graphs of subjects by a score: what a study found, as tables, numbers and words."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis import Bands, average_graphs, connectivity, edge_curves, graph_at
from graphfield.analysis.rows import covariate_rows, grid, pair_positions, places
from graphfield.exceptions import DataError, listing, suggestion
from graphfield.graphs.groups import block_means
from graphfield.studies.fmri.subjects import Subjects
from graphfield.studies.study import Study, Wording

_MEASURES = ("density", "mean_strength", "clustering", "largest_part", "modularity", "within", "between")
# Subjects over whose other covariates the effect of the score is averaged.
_AVERAGED = 200
# Pairs of regions in the table of edges by score.
_MOST_EDGES = 20_000


@dataclass(frozen=True, kw_only=True)
class SubjectGraphs(Study):
    """All of a study of brain networks but its figures; see :class:`FmriStudy`."""

    wording = Wording(
        not_compared="not compared with a static graph",
        not_supported="not supported by subjects left out of training",
        nowhere="for any subject",
        group="subject",
    )

    subjects: Subjects
    networks: list[str]

    @property
    def score(self) -> str:
        return self.subjects.score

    @property
    def bands(self) -> Bands:
        """The average graph of the subjects in each quantile band of the score."""
        return self.averages

    @property
    def node_groups(self) -> list[str]:
        return self.networks

    @property
    def score_evidence(self) -> Any:
        """What the permutation test says of the score, given the other covariates; None without a test."""
        lines = () if self.evidence is None else self.evidence.per_covariate
        return next((line for line in lines if line.name == self.score), None)

    @property
    def doubt(self) -> str:
        found = super().doubt
        if not found and self.score_evidence is not None and self.score not in self.verdict.matter:
            return f"by the permutation test {self.score} cannot be told from chance"
        return found

    def graph(self, subject: str, *, threshold: float | str | None = None) -> pd.DataFrame:
        """Partial correlations at the covariates of one subject, with names on both sides."""
        ids = self.subjects.ids
        if str(subject) not in ids:
            raise DataError(
                f"There is no subject {str(subject)!r}.{suggestion(str(subject), ids)} "
                f"The subjects are {listing(ids, most=5)}."
            ).about(argument="subject")
        z = self.subjects.table.loc[[str(subject)]].reset_index(drop=True)
        return graph_at(self.model, z, threshold=threshold)

    def graphs(self) -> NDArray[np.float32]:
        """Partial correlations of all subjects, (subjects, regions, regions)."""
        return self.model.partial_correlations(self.Z)

    def connectivity(self, measures: Sequence[str] = _MEASURES) -> pd.DataFrame:
        """One row per subject: covariates, and measures of its graph at the threshold."""
        found = connectivity(
            self.model, self.Z, list(measures), groups=self.networks, threshold=self.threshold
        )
        return pd.concat([self.subjects.table, found.set_axis(self.subjects.table.index)], axis=1)

    def network_table(self) -> pd.DataFrame:
        """Mean size of edges and density within and between sub-networks, for every band of the score."""
        names, sizes = block_means(np.abs(self.bands.matrices), self.networks)
        density = block_means(self.bands.presence, self.networks)[1]
        parts = [
            (band, names[a], names[b], sizes[i, a, b], density[i, a, b])
            for i, band in enumerate(self.bands.labels)
            for a in range(len(names))
            for b in range(a, len(names))
        ]
        return pd.DataFrame(parts, columns=["band", "first", "second", "mean_weight", "density"])

    def score_edges(self) -> pd.DataFrame:
        """Every pair of regions at a low and a high score, other covariates averaged; largest change first.

        Low and high are the ends of where the model is asked: the 1st and 99th percentile of the score, or
        the first and last of its levels. The change is what the model learned and has no error bar; whether
        the score matters at all is for ``gain`` and ``evidence`` to say.
        """
        values = places(self.model.field_, self.score, self.Z[self.score], 2)
        rows = covariate_rows(self.model.field_, self.Z, _AVERAGED)
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
        return edge_curves(self.model, self.score, self.Z, most=most)

    def tables(self) -> dict[str, pd.DataFrame]:
        return {
            "subjects": self.connectivity().rename_axis("subject"),
            "bands": self.bands.table.rename(columns={"n_rows": "n_subjects"}),
            "networks": self.network_table(),
            "edges_by_score": self.score_edges().head(_MOST_EDGES),
            "regions": pd.DataFrame({"region": self.subjects.regions, "network": self.networks}),
        }

    @property
    def about(self) -> str:
        return self.subjects.summary

    def _findings(self) -> list[str]:
        lines = []
        if self.doubt and self.has_edges:
            lines.append(
                f"Differences between bands below are what the model drew, and not established: {self.doubt}."
            )
        labels, density = self.bands.labels, self.bands.density
        values = ", ".join(f"{100 * d:.1f} % ({label})" for label, d in zip(labels, density, strict=True))
        lines.append(
            f"Density at |partial correlation| > {self.bands.threshold:.3g} by {self.score}, mean over "
            f"subjects: {values}."
        )
        return [*lines, *self.notes]

    def _numbers(self) -> dict[str, Any]:
        gain = None
        if self.gain is not None:
            verdict = {"verdict": self.gain.answer, "n_folds": self.gain.n_folds}
            gain = {**self.gain.over_average.to_json(), **verdict}
        return {
            "sentences": self.sentences(),
            "score": self.score,
            "n_subjects": len(self.subjects.ids),
            "n_rows": self.n_rows,
            "n_regions": len(self.subjects.regions),
            "gain_over_static": gain,
            "bands": self.bands.table.to_dict(orient="records"),
        }

    def _own_files(self) -> dict[str, bytes]:
        """Partial correlations of all subjects with the names of subjects and regions."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            partial_correlations=self.graphs(),
            subjects=np.array(self.subjects.ids),
            regions=np.array(self.subjects.regions),
            networks=np.array(self.networks),
            threshold=np.array(self.bands.threshold),
        )
        return {"graphs.npz": buffer.getvalue()}
