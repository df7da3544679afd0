"""Functions of the covariates that get trained: the coefficient field and the mean field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphfield.nn.backbone import CovariateEmbedding, CovariateShape, make_backbone
from graphfield.nn.layers import Dense, fill_off_diagonal, uniform_parameter

SHARING = ("all", "node", "edge")
HUBER_DELTA = 1.0  # in standard units of x


def _squared(error: Tensor) -> Tensor:
    return error.square().mean()


def _huber(error: Tensor) -> Tensor:
    return nn.functional.huber_loss(error, torch.zeros_like(error), delta=HUBER_DELTA)


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {"squared": _squared, "huber": _huber}


def node_fit(coef: Tensor, x: Tensor) -> Tensor:
    """``sum_k coef_jk x_k`` per row: (b, p, p) and (b, p) to (b, p).

    On the CPU a batched product runs row by row, and multiplying out is three times faster.
    """
    if coef.device.type == "cpu":
        return (coef * x[:, None, :]).sum(dim=2)
    return torch.bmm(coef, x[:, :, None])[:, :, 0]


@dataclass(frozen=True)
class Samples:
    """Rows of node values and encoded covariates on one device."""

    x: Tensor  # (n, p)
    numeric: Tensor  # (n, q_num)
    codes: Tensor  # (n, q_cat)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Tensor | slice) -> Samples:
        return Samples(self.x[rows], self.numeric[rows], self.codes[rows])

    def to(self, device: torch.device) -> Samples:
        return Samples(self.x.to(device), self.numeric.to(device), self.codes.to(device))


@dataclass(frozen=True)
class FieldConfig:
    """The architecture of a field; everything needed to build it again from a file."""

    n_nodes: int
    covariates: CovariateShape
    network: str
    sharing: str
    hidden_size: int
    dropout: float
    batch_norm: bool
    loss: str
    penalty: float

    @property
    def n_groups(self) -> int:
        """How many networks there are."""
        p = self.n_nodes
        return {"all": 1, "node": p, "edge": p * (p - 1)}[self.sharing]

    @property
    def n_weights(self) -> int:
        """About how many weights the coefficient field has."""
        hidden = 0 if self.network == "linear" else self.n_groups * self.hidden_size**2
        return hidden + self.hidden_size * self.n_nodes * (self.n_nodes - 1)


class CoefField(nn.Module):
    """beta(z): covariates to a (p, p) matrix of coefficients with a zero diagonal.

    The diagonal does not exist as a parameter or an output: the head has p (p - 1) units.
    """

    def __init__(self, config: FieldConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        p = config.n_nodes
        groups = config.n_groups
        self.embedding = CovariateEmbedding(config.covariates, generator)
        self.backbone = make_backbone(
            config.network,
            self.embedding.width,
            config.hidden_size,
            groups=groups,
            rate=config.dropout,
            batch_norm=config.batch_norm,
            generator=generator,
        )
        width = self.backbone.width
        self.head: nn.Module = (
            SharedHead(width, p, generator)
            if config.sharing == "all"
            else GroupedHead(groups, width, p, generator)
        )

    def forward(self, numeric: Tensor, codes: Tensor, generator: torch.Generator | None = None) -> Tensor:
        z = self.embedding(numeric, codes)
        return self.head(self.backbone(z, generator))  # (b, j, k)

    def loss(self, batch: Samples, generator: torch.Generator | None = None) -> Tensor:
        """Eq. (loss) divided by p: the same minimiser, and a size that does not grow with p.

        The penalty on the edges belongs to training alone: without a generator (evaluation) the
        loss is that of prediction.
        """
        coef = self(batch.numeric, batch.codes, generator)
        fitted = node_fit(coef, batch.x)
        error = LOSSES[self.config.loss](batch.x - fitted)
        if generator is None or self.config.penalty == 0:
            return error
        return error + self.config.penalty * coef.abs().sum(dim=2).mean()


class SharedHead(nn.Module):
    """One backbone for all edges: v_jk(u) = <w_jk, u> + c_jk, stored for j != k only."""

    def __init__(self, width: int, n_nodes: int, generator: torch.Generator) -> None:
        super().__init__()
        n_edges = n_nodes * (n_nodes - 1)
        bound = 1 / max(width, 1) ** 0.5
        self.n_nodes = n_nodes
        self.weight = uniform_parameter((width, n_edges), bound, generator)
        self.bias = uniform_parameter((n_edges,), bound, generator)

    def forward(self, u: Tensor) -> Tensor:  # (1, b, h)
        p = self.n_nodes
        # Zeros are put on the diagonal of the weights (h x p x p), not of every sample (b x p x p).
        weight = fill_off_diagonal(self.weight, p).reshape(-1, p * p)
        bias = fill_off_diagonal(self.bias, p).reshape(p * p)
        return torch.addmm(bias, u[0], weight).reshape(-1, p, p)


class GroupedHead(nn.Module):
    """One backbone per node (p - 1 outputs each) or per edge (one output each)."""

    def __init__(self, groups: int, width: int, n_nodes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.n_nodes = n_nodes
        self.dense = Dense(groups, width, n_nodes * (n_nodes - 1) // groups, generator)

    def forward(self, u: Tensor) -> Tensor:  # (g, b, h)
        out = self.dense(u)  # (g, b, outputs of one group)
        flat = out.transpose(0, 1).reshape(out.shape[1], -1)
        return fill_off_diagonal(flat, self.n_nodes)


class MeanField(nn.Module):
    """mu(z): the conditional mean of every node given the covariates."""

    def __init__(self, config: FieldConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.embedding = CovariateEmbedding(config.covariates, generator)
        self.backbone = make_backbone(
            config.network,
            self.embedding.width,
            config.hidden_size,
            groups=1,
            rate=config.dropout,
            batch_norm=config.batch_norm,
            generator=generator,
        )
        self.head = Dense(1, self.backbone.width, config.n_nodes, generator)

    def forward(self, numeric: Tensor, codes: Tensor, generator: torch.Generator | None = None) -> Tensor:
        z = self.embedding(numeric, codes)
        return self.head(self.backbone(z, generator))[0]  # (b, p)

    def loss(self, batch: Samples, generator: torch.Generator | None = None) -> Tensor:
        error = batch.x - self(batch.numeric, batch.codes, generator)
        return LOSSES[self.config.loss](error)
