"""Edges that follow single covariates: the features, the field that they make, and how movement is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import graphfield as gf
from engine_cases import FIELD, generator
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import Samples
from graphfield.training.additive_features import AdditiveFeatures
from graphfield.training.additive_movement import AdditiveRecipe
from graphfield.training.relaxed_patterns import SingleGraph
from graphfield.training.sparse_patterns import Moments, total

LEVELS = ((0.5, 0.5), (0.4, 0.3, 0.2, 0.1))


def rows_with_levels(n: int = 300) -> Samples:
    """A number, a covariate with two levels and one with four."""
    x, z = torch.randn(n, 6, generator=generator(1)), torch.randn(n, 1, generator=generator(2))
    codes = torch.stack([torch.arange(n) % 2, torch.arange(n) // 3 % 4], dim=1)
    return Samples(x, z, codes)


def features_of(data: Samples) -> AdditiveFeatures:
    config = replace(FIELD, covariates=CovariateShape(1, LEVELS), hidden_size=16, rank=None)
    found = AdditiveFeatures.of(config, data, torch.arange(len(data)))
    assert found is not None
    return found


def test_features_are_lines_and_indicators():
    data = rows_with_levels()
    found = features_of(data)
    values = found.at(data) + found.average
    line, bend, second, *levels = values.T
    inner = data.numeric[:, 0].abs() < 1.5
    offset = (line - data.numeric[:, 0])[inner]
    torch.testing.assert_close(offset, offset[:1].expand_as(offset), rtol=0, atol=1e-5)
    assert float(bend[data.numeric[:, 0] < data.numeric.median()].abs().max()) < 1e-5
    torch.testing.assert_close(second, data.codes[:, 0].float())
    for level, own in enumerate(levels):
        torch.testing.assert_close(own, (data.codes[:, 1] == level).float(), rtol=0, atol=1e-5)


def test_the_field_is_the_sum_of_its_patterns():
    data = rows_with_levels()
    found = features_of(data)
    V = found.at(data)
    patterns = torch.randn(1 + V.shape[1], 6, 6, generator=generator()) * (1 - torch.eye(6))
    expected = patterns[0] + torch.tensordot(V, patterns[1:], dims=1)
    coef = found.field(patterns)(data.numeric[None], data.codes[None])[0]
    torch.testing.assert_close(coef, expected, rtol=1e-4, atol=1e-4)


def test_a_level_with_few_rows_has_the_average_of_the_others():
    data = rows_with_levels()
    data.codes[5:, 1] = torch.arange(295) % 3  # the last level keeps a row or two
    data.codes[:2, 1] = 3
    found = features_of(data)
    V = found.at(data)
    patterns = torch.randn(1 + V.shape[1], 6, 6, generator=generator()) * (1 - torch.eye(6))
    field = found.field(patterns)
    codes = torch.tensor([[0, 0], [0, 1], [0, 2], [0, 3]])
    *known, rare = field(torch.zeros(1, 4, 1), codes[None])[0]
    shares = data.codes[data.codes[:, 1] < 3, 1].bincount() / int((data.codes[:, 1] < 3).sum())
    average = sum(share * own for share, own in zip(shares, known, strict=True))
    torch.testing.assert_close(rare, average, rtol=1e-3, atol=1e-3)


def test_an_edge_that_moves_is_found_in_its_size_and_alone():
    """Beside a graph that does not move; a penalty alone would take much of it away."""
    data = rows_with_levels(600)
    x, arm = data.x, data.codes[:, 0].float()
    x[:, 1] += 0.5 * x[:, 0]
    x[:, 4] += 0.6 * (arm - 0.5) * x[:, 3]
    shares = torch.nn.functional.pad(features_of(data).at(data), (1, 0), value=1.0)
    parts = [Moments.of(shares[own], x[own]) for own in torch.arange(600).split(200)]
    single = SingleGraph.choose([part.of_shares(slice(1)) for part in parts])
    recipe, _ = AdditiveRecipe.choose(single, parts)
    found = recipe.find(total(parts), 1.0)
    assert float(found[3, 4, 3]) == pytest.approx(0.6, abs=0.15)
    moves = found[1:].abs().amax(dim=0)
    moves[4, 3] = moves[3, 4] = 0
    assert float(moves.max()) < 0.25
    slope = float(x[:, 0] @ x[:, 1] / x[:, 0].square().sum())
    assert float(found[0, 1, 0]) == pytest.approx(slope, abs=0.05)


def arm_rows(seed: int, n: int = 900) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A chain whose means move with age, and one edge more, in cases only."""
    rng = np.random.default_rng(seed)
    age, arm = rng.uniform(-1, 1, n), rng.choice(["case", "control"], n)
    precision = np.repeat((np.eye(6) - 0.35 * (np.eye(6, k=1) + np.eye(6, k=-1)))[None], n, axis=0)
    precision[:, 4, 5] = precision[:, 5, 4] = 0
    precision[:, 0, 5] = precision[:, 5, 0] = -0.45 * (arm == "case")
    X = (np.linalg.cholesky(np.linalg.inv(precision)) @ rng.normal(size=(n, 6, 1)))[..., 0]
    X += np.column_stack([2 * age, -1.5 * age, 1.5 * age**2, np.sin(3 * age), age, 0 * age])
    return pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame({"age": age, "arm": arm})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_an_edge_that_only_cases_have_is_found_with_every_seed(seed, tmp_path):
    X, Z = arm_rows(seed)
    model = gf.DNNCGM(device="cpu", random_state=seed).fit(X, Z)
    asked = pd.DataFrame({"age": [0.0, 0.0], "arm": ["case", "control"]})
    case, control = model.partial_correlations(asked)[:, 0, 5]
    assert case - control > 0.25
    assert abs(control) < 0.15
    model.save(tmp_path / "model")
    again = gf.load(tmp_path / "model")
    assert again.additive_ == model.additive_
    np.testing.assert_array_equal(again.partial_correlations(asked), model.partial_correlations(asked))
    gf.DNNCGM(device="cpu", random_state=seed, max_steps=30).fit(X, Z, start=model)


@pytest.mark.slow
def test_means_of_levels_are_taken_out_as_they_are():
    """Otherwise what is left of them looks like edges, which then depend on the seed."""
    from sklearn.datasets import load_iris

    table = load_iris(as_frame=True)
    X, Z = table.data, table.target.map(lambda code: f"species {code}").to_frame()
    edges = []
    for seed in range(3):
        model = gf.DNNCGM(device="cpu", random_state=seed).fit(X, Z)
        left = (X - model.field_.offsets_at(model.field_.rows(Z))) / X.std()
        assert left.groupby(Z["target"]).mean().abs().to_numpy().max() < 0.08
        edges.append(model.partial_correlations(Z[:1])[0, 2, 3])
    assert np.ptp(edges) < 0.25
