"""Networks of contextualized-ml: the same numbers as that package gives; and their field, without it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file

import graphfield as gf
from conftest import small_data
from graphfield.data.saved_arrays import open_arrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.registry import ESTIMATORS
from graphfield.fields.encoded import EncodedField
from graphfield.fields.state import unpack_field
from graphfield.report import write_report

HERE = ESTIMATORS["ContextualizedCGM"].is_there
needed = pytest.mark.skipif(not HERE, reason="contextualized-ml is not installed")


@pytest.fixture(scope="module")
def field() -> EncodedField:
    """An encoder with random weights, of two layers and three patterns, on a number and three levels."""
    known = gf.RegGMM().fit(*small_data()).field_
    rng, p = np.random.default_rng(0), known.n_nodes
    patterns = rng.normal(size=(3, p, p)) / 10
    patterns[:, np.arange(p), np.arange(p)] = 0
    layers = [(rng.normal(size=(3, 4)), rng.normal(size=4)), (rng.normal(size=(4, 3)), rng.normal(size=3))]
    return EncodedField(
        replace(known.common, scales=None, residual_scales=None), layers, patterns, rng.normal(size=(3, p))
    )


def computed(field: EncodedField, Z: pd.DataFrame) -> np.ndarray:
    """Amounts by hand."""
    first, second = field.layers
    age = (Z["age"] - field.schema.encoder.numeric[0].mean) / field.schema.encoder.numeric[0].scale
    W = np.column_stack([age, Z["site"] == "B", Z["site"] == "C"])
    return np.maximum(W @ first[0] + first[1], 0) @ second[0] + second[1]


def test_weights_are_patterns_in_amounts_of_a_network(field):
    Z = small_data(9, seed=3)[1]
    wanted = np.einsum("nr,rjk->njk", computed(field, Z), field.patterns)
    np.testing.assert_allclose(field.weights_at(field.rows(Z)), wanted, rtol=1e-5, atol=1e-6)


def test_predictions_are_a_regression_with_an_intercept(field):
    X, Z = small_data(9, seed=3)
    rows, scaler = field.rows(Z), field.common.scaler
    x = scaler.transform(X.to_numpy())
    amounts = computed(field, Z)
    wanted = np.einsum("nr,rjk,nk->nj", amounts, field.patterns, x) + amounts @ field.constants
    fitted = np.empty_like(x)
    for where, part in field.fit_values(X.to_numpy(), rows):
        fitted[where] = scaler.transform(part)
    np.testing.assert_allclose(fitted, wanted, rtol=1e-4, atol=1e-5)


def test_a_mean_that_nothing_determines_is_finite(field):
    """Two nodes that are each the other: any mean is one."""
    p = field.n_nodes
    twice = np.zeros((1, p, p))
    twice[0, 0, 1] = twice[0, 1, 0] = 1.0
    same = [(np.zeros((3, 1)), np.ones(1))]
    odd = replace(field, layers=same, patterns=twice, constants=np.zeros((1, p)))
    assert np.isfinite(odd.offsets_at(odd.rows(small_data(4)[1]))).all()


def test_the_program_of_a_page_says_the_same(field):
    Z = small_data(9, seed=3)[1]
    forward, backward, variance = field.program().at(Z)
    here, (j, k) = field.at(field.rows(Z)), np.triu_indices(field.n_nodes, 1)
    ratio = here.scales[:, k] / here.scales[:, j]
    np.testing.assert_allclose(forward, here.weights[:, j, k] * ratio, atol=1e-5)
    np.testing.assert_allclose(backward, here.weights[:, k, j] / ratio, atol=1e-5)
    np.testing.assert_allclose(variance, 1.0)


def test_it_comes_back_from_a_file(field, tmp_path):
    header, arrays = field.state()
    path, Z = tmp_path / "arrays.safetensors", small_data(9, seed=3)[1]
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    with open_arrays(path) as saved:
        back = unpack_field(Saved(json.loads(json.dumps(header)), "model.json"), saved)
    assert np.array_equal(back.weights_at(back.rows(Z)), field.weights_at(field.rows(Z)))
    assert np.array_equal(back.offsets_at(back.rows(Z)), field.offsets_at(field.rows(Z)))


@pytest.mark.skipif(HERE, reason="contextualized-ml is installed")
def test_without_the_package_it_says_what_to_install():
    with pytest.raises(gf.MissingDependencyError, match="pip install contextualized-ml"):
        gf.ContextualizedCGM().fit(*small_data())


@needed
def test_numbers_are_those_of_the_package(tmp_path):
    from graphfield.estimators import contextualized as own

    X, Z = small_data()
    kept = {}
    read = own._read_network

    def read_and_keep(network):
        kept["network"] = network
        return read(network)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "_read_network", read_and_keep)
        model = gf.ContextualizedCGM(max_epochs=3, random_state=0).fit(X, Z)
    field, network = model.field_, kept["network"]
    inputs = field.schema.features(field.rows(Z))[:, 1:]
    batches = network.dataloader(inputs, field.common.scaler.transform(X.to_numpy()))
    with own._quietly(0):
        trainer = own._trainer(1, torch.device("cpu"), tmp_path)
        wanted, intercepts = trainer.predict_params(network, batches)
    np.testing.assert_allclose(field.weights_at(field.rows(Z)), wanted, rtol=1e-4, atol=1e-6)
    c = field.amounts_at(field.rows(Z)) @ field.constants
    np.testing.assert_allclose(c, np.squeeze(intercepts), rtol=1e-4, atol=1e-6)


@needed
def test_it_finds_edges_that_move_and_has_a_page(tmp_path):
    X, Z = small_data(600)
    model = gf.ContextualizedCGM(learning_rate=0.01, random_state=0).fit(X, Z)
    ends = pd.DataFrame({"age": [25.0, 75.0], "site": ["B", "B"]})
    low, high = model.partial_correlations(ends)[:, 0, 1]
    assert low < -0.2
    assert high > 0.2
    assert write_report(model, tmp_path / "page.html").stat().st_size > 10_000
    assert "by contextualized-ml" in (tmp_path / "page.html").read_text()


@needed
def test_it_is_among_all_methods():
    from graphfield.inference.compare_methods import read_methods

    assert "contextualized" in read_methods("all", seed=0)
