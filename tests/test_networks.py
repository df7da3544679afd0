"""The modules: diagonal, sharing, embeddings, losses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from graphfield.nn.backbone import CovariateEmbedding, CovariateShape, make_backbone
from graphfield.nn.fields import CoefField, FieldConfig, Samples, node_fit
from graphfield.nn.layers import Dense, dropout, fill_off_diagonal


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


def test_fill_off_diagonal_puts_entries_in_row_order():
    filled = fill_off_diagonal(torch.arange(1.0, 7.0), 3)
    assert filled.tolist() == [[0, 1, 2], [3, 0, 4], [5, 6, 0]]


@pytest.mark.parametrize("sharing", ["all", "node", "edge"])
@pytest.mark.parametrize("network", ["residual", "mlp"])
def test_the_diagonal_is_absent_from_outputs_and_parameters(sharing, network):
    field = CoefField(config(sharing=sharing, network=network), generator())
    coef = field(torch.randn(5, 2, generator=generator()), torch.zeros(5, 0, dtype=torch.long))
    assert coef.shape == (5, 4, 4)
    assert (torch.diagonal(coef, dim1=1, dim2=2) == 0).all()
    assert (coef != 0).sum() == 5 * 12
    outputs = sum(p.numel() for n, p in field.head.named_parameters() if "bias" in n)
    assert outputs == 12


@pytest.mark.parametrize(("sharing", "per_group"), [("node", 3), ("edge", 1)])
def test_networks_of_different_groups_do_not_touch(sharing, per_group):
    """Changing the weights of the first network changes its own coefficients and no others."""
    field = CoefField(config(sharing=sharing, batch_norm=False), generator()).eval()
    z = torch.randn(5, 2, generator=generator()), torch.zeros(5, 0, dtype=torch.long)
    before = field(*z)
    with torch.no_grad():
        field.backbone.first.dense.weight[0] += 1.0
    changed = (field(*z) != before).any(dim=0)
    assert changed.sum() <= per_group
    assert changed[0, 1]
    assert not changed[1:].any()


def test_residual_backbone_is_the_published_network():
    """Against torch's own layers wired as described."""
    state = torch.get_rng_state()  # torch's layers draw their first weights from the global state
    ours = make_backbone("residual", 2, 8, groups=1, rate=0.0, batch_norm=True, generator=generator())
    first, norm = nn.Linear(2, 8), nn.BatchNorm1d(8)
    narrow, second = nn.Linear(8, 4), nn.Linear(6, 8)
    torch.set_rng_state(state)
    with torch.no_grad():
        for theirs, mine in ((first, ours.first.dense), (narrow, ours.narrow), (second, ours.second)):
            theirs.weight.copy_(mine.weight[0].T)
            theirs.bias.copy_(mine.bias[0, 0])
    z = torch.randn(16, 2, generator=generator())
    for training in (True, False):
        ours.train(training)
        norm.train(training)
        u1 = narrow(torch.relu(norm(first(z))))
        expected = torch.relu(second(torch.cat([z, u1], dim=1)))
        torch.testing.assert_close(ours(z, None)[0], expected)


def test_layers_start_like_torch_linear():
    weights = Dense(50, 16, 30, generator()).weight.detach()
    assert weights.abs().max() <= 0.25
    assert weights.std() == pytest.approx(0.25 / 3**0.5, rel=0.02)


def test_dropout_keeps_the_mean_and_needs_a_generator():
    x = torch.ones(200_000)
    assert torch.equal(dropout(x, 0.3, None), x)
    dropped = dropout(x, 0.3, generator())
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.01)
    assert dropped.mean() == pytest.approx(1.0, abs=0.01)


def test_embedding_gives_an_unknown_level_the_average():
    embedding = CovariateEmbedding(CovariateShape(1, ((0.25, 0.75),)), generator())
    out = embedding(torch.zeros(3, 1), torch.tensor([[0], [1], [2]]))
    torch.testing.assert_close(out[2], 0.25 * out[0] + 0.75 * out[1])


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_loss_is_that_of_the_paper_divided_by_p(loss):
    field = CoefField(config(loss=loss), generator()).eval()
    z = torch.randn(7, 2, generator=generator()), torch.zeros(7, 0, dtype=torch.long)
    x = 3 * torch.randn(7, 4, generator=generator(1))
    coef = field(*z).detach().numpy()
    error = x.numpy() - np.einsum("bjk,bk->bj", coef, x.numpy())
    each = error**2 if loss == "squared" else np.where(abs(error) < 1, error**2 / 2, abs(error) - 0.5)
    assert float(field.loss(Samples(x, *z)).detach()) == pytest.approx(each.sum() / 7 / 4, rel=1e-5)


def test_penalty_is_per_node_and_only_in_training():
    plain, heavy = (CoefField(config(penalty=p, dropout=0.0), generator()) for p in (0.0, 0.5))
    z = torch.randn(7, 2, generator=generator()), torch.zeros(7, 0, dtype=torch.long)
    batch = Samples(torch.randn(7, 4, generator=generator(1)), *z)
    extra = heavy.loss(batch, generator()) - plain.loss(batch, generator())
    size = plain(*z).abs().sum(dim=2).mean()
    assert float(extra.detach()) == pytest.approx(0.5 * float(size.detach()), rel=1e-5)
    assert torch.equal(heavy.loss(batch), plain.loss(batch))


def test_node_fit_is_a_matrix_vector_product():
    coef, x = torch.randn(3, 4, 4, generator=generator()), torch.randn(3, 4, generator=generator(1))
    torch.testing.assert_close(node_fit(coef, x), torch.einsum("bjk,bk->bj", coef, x))
