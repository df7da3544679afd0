"""The modules: diagonal, sharing, embeddings, losses."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

from graphfield.nn.backbone import CovariateEmbedding, CovariateShape, make_backbone
from graphfield.nn.fields import CoefField, FieldConfig, Samples, node_fit
from graphfield.nn.layers import Dense, dropout_factors, fill_off_diagonal, take_off_diagonal
from graphfield.nn.pack import load_member_arrays, member_arrays


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def config(**changes) -> FieldConfig:
    base = {
        "n_nodes": 4,
        "covariates": CovariateShape(2, ()),
        "network": "residual",
        "sharing": "all",
        "hidden_size": 8,
        "dropout": 0.3,
        "batch_norm": True,
        "loss": "squared",
        "penalty": 0.0,
    }
    return FieldConfig(**{**base, **changes})


def rows(n: int = 7, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Covariates of a batch that all members share."""
    return torch.randn(1, n, 2, generator=generator(seed)), torch.zeros(1, n, 0, dtype=torch.long)


def test_fill_off_diagonal_puts_entries_in_row_order():
    filled = fill_off_diagonal(torch.arange(1.0, 7.0), 3)
    assert filled.tolist() == [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    assert take_off_diagonal(filled).tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("sharing", ["all", "node", "edge"])
@pytest.mark.parametrize("network", ["residual", "mlp"])
def test_the_diagonal_is_absent_from_outputs_and_files(sharing, network):
    field = CoefField(config(sharing=sharing, network=network), generator())
    coef = field(*rows(5))[0]
    assert coef.shape == (5, 4, 4)
    assert (torch.diagonal(coef, dim1=1, dim2=2) == 0).all()
    assert (coef != 0).sum() == 5 * 12
    outputs = sum(v.numel() for name, v in member_arrays(field).items() if re.match("head.*bias", name))
    assert outputs == 12


@pytest.mark.parametrize(("sharing", "per_group"), [("node", 3), ("edge", 1)])
def test_networks_of_different_groups_do_not_touch(sharing, per_group):
    """Changing the weights of the first network changes its own coefficients and no others."""
    field = CoefField(config(sharing=sharing, batch_norm=False), generator()).eval()
    z = rows(5)
    before = field(*z)
    with torch.no_grad():
        field.backbone.first.dense.weight[0, 0] += 1.0
    changed = (field(*z) != before)[0].any(dim=0)
    assert changed.sum() <= per_group
    assert changed[0, 1]
    assert not changed[1:].any()


def test_residual_backbone_is_the_published_network():
    """Against torch's own layers wired as described."""
    state = torch.get_rng_state()  # torch's layers draw their first weights from the global state
    ours = make_backbone("residual", 2, 8, groups=1, batch_norm=True, generator=generator())
    first, norm = nn.Linear(2, 8), nn.BatchNorm1d(8)
    narrow, second = nn.Linear(8, 4), nn.Linear(6, 8)
    torch.set_rng_state(state)
    with torch.no_grad():
        for theirs, mine in ((first, ours.first.dense), (narrow, ours.narrow), (second, ours.second)):
            theirs.weight.copy_(mine.weight[0, 0].T)
            theirs.bias.copy_(mine.bias[0, 0, 0])
    z = torch.randn(16, 2, generator=generator())
    for training in (True, False):
        ours.train(training)
        norm.train(training)
        u1 = narrow(torch.relu(norm(first(z))))
        expected = torch.relu(second(torch.cat([z, u1], dim=1)))
        torch.testing.assert_close(ours(z[None], None)[0, 0], expected)


def test_layers_start_like_torch_linear():
    weights = Dense(50, 16, 30, generator()).weight.detach()
    assert weights.abs().max() <= 0.25
    assert weights.std() == pytest.approx(0.25 / 3**0.5, rel=0.02)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_factors_have_mean_one_and_are_independent(rate):
    factors = dropout_factors((200, 1_001), rate, generator(), torch.device("cpu"))
    assert factors.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])
    kept = (factors > 0).double()
    assert kept.mean() == pytest.approx(1 - rate, abs=0.004)
    flat = kept.flatten() - kept.mean()
    for lag in (1, 2, 3, 4, 1_001):
        assert abs((flat[lag:] * flat[:-lag]).mean() / flat.var()) < 0.01, lag
    again = dropout_factors((200, 1_001), rate, generator(), torch.device("cpu"))
    assert torch.equal(factors, again)


def test_embedding_gives_an_unknown_level_the_average():
    embedding = CovariateEmbedding(CovariateShape(1, ((0.25, 0.75),)), generator())
    out = embedding(torch.zeros(1, 3, 1), torch.tensor([[[0], [1], [2]]]))[0]
    torch.testing.assert_close(out[2], 0.25 * out[0] + 0.75 * out[1])


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_loss_is_that_of_the_paper_divided_by_p(loss):
    field = CoefField(config(loss=loss), generator()).eval()
    x = 3 * torch.randn(1, 7, 4, generator=generator(1))
    coef = field(*rows())[0].detach().numpy()
    error = x[0].numpy() - np.einsum("bjk,bk->bj", coef, x[0].numpy())
    each = error**2 if loss == "squared" else np.where(abs(error) < 1, error**2 / 2, abs(error) - 0.5)
    with torch.no_grad():
        by_row = field.row_losses(Samples(x, *rows()))
        in_training = field.training_loss(Samples(x, *rows()), None)
    np.testing.assert_allclose(by_row[0].numpy(), each.mean(axis=1), rtol=1e-4)
    assert float(in_training) == pytest.approx(each.sum() / 7 / 4, rel=1e-5)


@torch.no_grad()
def test_penalty_is_per_node_and_only_in_training():
    plain, heavy = (CoefField(config(penalty=p, batch_norm=False), generator()) for p in (0.0, 0.5))
    batch = Samples(torch.randn(1, 7, 4, generator=generator(1)), *rows())
    extra = heavy.training_loss(batch, None) - plain.training_loss(batch, None)
    size = plain(*rows())[0].abs().sum(dim=2).mean()
    assert float(extra) == pytest.approx(0.5 * float(size), rel=1e-5)
    assert torch.equal(heavy.row_losses(batch), plain.row_losses(batch))


def test_node_fit_is_a_matrix_vector_product():
    coef, x = torch.randn(2, 3, 4, 4, generator=generator()), torch.randn(2, 3, 4, generator=generator(1))
    torch.testing.assert_close(node_fit(coef, x), torch.einsum("mbjk,mbk->mbj", coef, x))


@pytest.mark.parametrize("changes", [{}, {"sharing": "node"}, {"network": "linear"}, {"rank": 2}])
@torch.no_grad()
def test_files_hold_a_member_as_it_is(changes):
    one, two = (CoefField(config(**changes), generator(seed)).eval() for seed in (0, 1))
    load_member_arrays(two, member_arrays(one))
    assert torch.equal(one(*rows()), two(*rows()))


@torch.no_grad()
def test_rank_bounds_how_many_matrices_are_mixed():
    """Coefficients at many z, less the constant, span as many dimensions as the rank says (shares add up)."""
    for rank, dimensions in ((3, 2), (None, 8)):
        field = CoefField(config(rank=rank, n_nodes=6), generator()).eval()
        coef = field(*rows(60))[0].reshape(60, -1)
        singular = torch.linalg.svdvals((coef - coef.mean(dim=0)).double())
        assert int((singular > 1e-5 * singular[0]).sum()) == dimensions
