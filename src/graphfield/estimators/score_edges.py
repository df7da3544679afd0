"""When a pair of a :class:`ScoreField` is an edge: tests of pairs and a cut, as everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from graphfield.estimators.score_field import MatchedRows, ScoreField
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields.edge_list import pair_correlations
from graphfield.graphs.cut_choice import CUTS, largest_cut
from graphfield.graphs.pair_tests import FALSE_SHARE, PairTests, n_directions
from graphfield.graphs.threshold import Threshold, auto_threshold, find_gap, gap_rows

# With fewer rows, or groups, that had no part in the fit, only tests say which pairs are edges.
_MIN_NEW_UNITS = 50


def score_threshold(field: ScoreField, data: TrainingSet) -> Threshold:
    """Pairs that stand clear of their noise, above the largest cut that fits held-out rows as well as any."""
    rows, n = field.encode(data.Z), len(data.X)
    distinct, index = field.distinct(rows.take(gap_rows(n, field.n_nodes, data.streams["gap"])))
    found = np.concatenate([pair_correlations(here.weights, here.scales) for here in field.chunks(distinct)])
    gap = find_gap(found if len(distinct) == len(index) else found[index], n)
    freedom = field.network.terms.size * n_directions(found, index)
    tests = _pair_tests(field, data, freedom)
    rates, least = tests.rates(), min(1.0, tests.standard_error)
    clear = rates <= FALSE_SHARE
    cut = _largest_cut(field, data, clear) if clear.any() else 0.0
    return auto_threshold(rates, max(cut, least), found, gap)


def _pair_tests(field: ScoreField, data: TrainingSet, freedom: float) -> PairTests:
    """Each pair along its own course, which was found in the same rows.

    It had ``freedom`` directions to choose from; a pair that training held still, one for each kind of term.
    """
    units = _units(data.labels, len(data.X))
    sums = np.zeros((int(units.max()) + 1, field.network.n_pairs))
    rows = field.encode(data.Z)
    for part, matched in field.pair_slopes(field.standardize(data.X, rows), rows):
        np.add.at(sums, units[part], matched.gains)
    p, (j, k) = field.n_nodes, field.network.get_buffer("ends").numpy()
    p_values, used = np.ones((p, p)), np.zeros((p, p), dtype=bool)
    free = field.network.get_buffer("free").numpy()[: field.network.n_outputs : field.network.terms.size] > 0
    chosen = np.where(free, freedom, field.network.terms.size)
    left = 1.0 - 2 * chosen.sum() / p / len(data.X)
    if left > 0 and len(sums) > 1:
        squares = np.maximum(np.square(sums).sum(axis=0) / left**2, 1e-30)
        own = np.square(np.maximum(sums.sum(axis=0), 0.0)) / squares
        p_values[j, k] = p_values[k, j] = fdtrc(chosen, max(1.0, (len(sums) - 1) * left), own / chosen)
        used[j, k] = used[k, j] = True
    return PairTests(p_values, len(sums) ** -0.5, np.ones((p, p)), used)


def _largest_cut(field: ScoreField, data: TrainingSet, clear: NDArray[np.bool_]) -> float:
    """From rows that had no part in training; zero where these are few."""
    if data.new is None:
        return 0.0
    values, Z, labels = data.new
    units = _units(labels, len(values))
    if units.max() + 1 < _MIN_NEW_UNITS:
        return 0.0
    order, rows = np.argsort(units, kind="stable"), field.encode(Z)
    j, k = field.network.get_buffer("ends").numpy()
    strengths = np.abs(field.at(rows).partial_correlations[:, j, k])
    strengths = np.where(clear[j, k], strengths, 0.0)
    losses = np.empty((len(values), len(CUTS)))
    for part, matched in field.pair_slopes(field.standardize(values, rows), rows):
        losses[part] = _losses_by_cut(field, matched, strengths[part])
    return largest_cut(losses[order], units[order])


def _losses_by_cut(field: ScoreField, rows: MatchedRows, strengths: NDArray) -> NDArray[np.float64]:
    """Up to what no cut changes, (b, cuts)."""
    one_hot = np.eye(field.n_nodes)[field.network.get_buffer("ends").numpy()]  # (2, E, p)
    losses = np.empty((len(strengths), len(CUTS)))
    for i, cut in enumerate(CUTS):
        dropped = strengths <= cut
        along = rows.slopes - (dropped * rows.first) @ one_hot[0] - (dropped * rows.second) @ one_hot[1]
        bend = -(dropped * rows.bend_first) @ one_hot[0] - (dropped * rows.bend_second) @ one_hot[1]
        losses[:, i] = (rows.weights * (np.square(along) / 2 + bend) + rows.falls * along).mean(axis=1)
    return losses


def _units(labels: NDArray | None, n: int) -> NDArray[np.intp]:
    return np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
