"""How an estimate is scored against the truth, one row per test sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.experiments.specs import THRESHOLDS
from graphfield.metrics import edge_counts, ranking_scores


@dataclass(frozen=True)
class Evaluation:
    """Edge weights of the test samples, and whether the diagonal is left in their ranking.

    ``weights`` is (n, p, p), or one such array per truth where a penalty was chosen on the truth.
    """

    weights: NDArray | Mapping[str, NDArray]
    diagonal: bool = False

    def against(self, truth: str) -> NDArray:
        return self.weights[truth] if isinstance(self.weights, Mapping) else self.weights


def metric_column(metric: str, threshold: float | None) -> str:
    """Name under which a metric is stored: ``"auprc"``, ``"f1@0.05"``."""
    return metric if threshold is None else f"{metric}@{threshold:g}"


def score_samples(
    evaluations: Mapping[str, Evaluation], truths: Mapping[str, NDArray[np.bool_]]
) -> pd.DataFrame:
    """All metrics of every evaluation against every truth: one row per evaluation, truth, sample."""
    parts = []
    for name, evaluation in evaluations.items():
        for truth, skeleton in truths.items():
            weights = evaluation.against(truth)
            ranking = ranking_scores(weights, skeleton, diagonal=evaluation.diagonal)
            scores = {
                "evaluation": name,
                "truth": truth,
                "sample": np.arange(len(skeleton)),
                "auroc": ranking.auroc,
                "auprc": ranking.auprc,
            }
            for cut in THRESHOLDS:
                counts = edge_counts(weights, skeleton, cut)
                scores[metric_column("f1", cut)] = counts.f1()
                scores[metric_column("balanced_accuracy", cut)] = counts.balanced_accuracy()
            parts.append(pd.DataFrame(scores))
    return pd.concat(parts, ignore_index=True)


def summarise(samples: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Mean over samples: evaluation -> truth -> metric."""
    summary: dict[str, dict[str, dict[str, float]]] = {}
    for (evaluation, truth), part in samples.groupby(["evaluation", "truth"], sort=False):
        means = part.drop(columns=["evaluation", "truth", "sample"]).mean()
        found = {str(k): float(v) for k, v in means.dropna().items()}
        summary.setdefault(str(evaluation), {})[str(truth)] = found
    return summary
