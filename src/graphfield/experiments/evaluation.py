"""How an estimate is scored against the truth, one row per test sample.

The paper reports glasso and the nodewise lasso at "the highest metric" over a path of ten penalties.
No user could make that choice, so no estimator offers it; it lives here, in the experiment runner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError
from graphfield.experiments.specs import THRESHOLDS
from graphfield.graphs.strength import partial_correlations, partial_from_precision
from graphfield.metrics import auprc, auroc, edge_counts, ranking_scores
from graphfield.solvers.glasso import graphical_lasso_path
from graphfield.solvers.lasso import nodewise_lasso_path
from graphfield.solvers.penalties import penalty_path


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


# The published path: ten penalties down to a tenth of the first. Ours goes on to a hundredth in the
# same steps, so that the published path is its first half.
PUBLISHED_PENALTIES = 10
PENALTIES, RATIO = 19, 0.01
PATH = {"path_penalties": PENALTIES, "path_ratio": RATIO, "published_penalties": PUBLISHED_PENALTIES}


def glasso_path(S: NDArray, penalties: NDArray) -> tuple[NDArray, NDArray]:
    """As published: |precision| with its diagonal. Correctly: |partial correlation|."""
    precision = graphical_lasso_path(S, penalties)
    return np.abs(precision), np.abs(partial_from_precision(precision))


def lasso_path(S: NDArray, penalties: NDArray) -> tuple[NDArray, NDArray]:
    """As published: the 0/1 graph by the OR rule. Correctly: |partial correlation|."""
    coef = nodewise_lasso_path(S, penalties)
    found = coef != 0
    graph = found | found.transpose(0, 2, 1)
    explained = 2 * np.einsum("mjk,jk->mj", coef, S) - np.einsum("mjk,kl,mjl->mj", coef, S, coef)
    scale = np.sqrt(np.maximum(np.diag(S) - explained, 1e-12))
    strength = [partial_correlations(c, s) for c, s in zip(coef, scale, strict=True)]
    return graph.astype(np.float64), np.abs(np.array(strength))


def oracle_evaluations(
    solve: Callable[[NDArray, NDArray], tuple[NDArray, NDArray]],
    X: NDArray,
    clusters: NDArray | None,
    test_regime: NDArray,
    truths: dict[str, NDArray],
) -> tuple[dict[str, Evaluation], dict[str, list[float]]]:
    """Three evaluations of one penalty path per cluster (``None``: one path on all samples).

    * ``published``: the published path and score, the penalty with the highest AUROC.
    * ``corrected``: the same estimates ranked by the strength of their edges, off the diagonal; the
      penalty with the highest AUPRC.
    * ``best``: the same with the longer path.

    Also returns the penalties chosen against the true skeleton, one per part.
    """
    scored = {"published": (auroc, PUBLISHED_PENALTIES), "corrected": (auprc, PUBLISHED_PENALTIES)}
    scored["best"] = (auprc, PENALTIES)
    shape = next(iter(truths.values())).shape
    weights = {name: {t: np.zeros(shape, dtype=np.float32) for t in truths} for name in scored}
    chosen: dict[str, list[float]] = {name: [] for name in scored}
    for rows, wanted in _parts(len(X), clusters, test_regime):
        S = np.corrcoef(X[rows].T)
        penalties = penalty_path(S, PENALTIES, RATIO)
        published, strength = solve(S, penalties)
        for name, (metric, length) in scored.items():
            path = published if name == "published" else strength
            for truth, skeleton in truths.items():
                best = _best(path[:length], metric, name == "published", skeleton[wanted])
                weights[name][truth][wanted] = path[best]
                if truth == "skeleton":
                    chosen[name].append(float(penalties[best]))
    return {name: Evaluation(weights[name], diagonal=name == "published") for name in scored}, chosen


def _parts(
    n_train: int, clusters: NDArray | None, test_regime: NDArray
) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Training rows and the test rows they speak for."""
    if clusters is None:
        return [(np.ones(n_train, dtype=bool), np.ones(len(test_regime), dtype=bool))]
    parts = [(clusters == label, test_regime == label) for label in np.unique(test_regime)]
    if any(rows.sum() < 3 for rows, _ in parts):
        raise DataError(
            "A cluster of the test samples has fewer than 3 training samples; train on more."
        ).about(argument="n_train")
    return parts


def _best(path: NDArray, metric: Callable, diagonal: bool, skeletons: NDArray) -> int:
    """Index of the penalty with the highest mean of ``metric`` over the test samples.

    Samples of one cluster mostly share their skeleton, so each distinct one is scored once.
    """
    flat = skeletons.reshape(len(skeletons), -1)
    distinct, counts = np.unique(flat, axis=0, return_counts=True)
    solved = np.isfinite(path).all(axis=(1, 2))
    total = np.where(solved, 0.0, -np.inf)
    for truth, count in zip(distinct.reshape(-1, *path.shape[1:]), counts, strict=True):
        total[solved] += count * metric(
            path[solved], np.broadcast_to(truth, path[solved].shape), diagonal=diagonal
        )
    return int(total.argmax())
