"""Functions of the covariates that get trained: the coefficient field and the mean field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from graphfield.nn.backbone import CovariateEmbedding, CovariateShape, ResidualBackbone, make_backbone
from graphfield.nn.backbone_step import DenseStep, ResidualStep
from graphfield.nn.head_forms import choose_form, fitted
from graphfield.nn.heads import GroupedHead, SharedHead
from graphfield.nn.layers import Dense, gradient_of
from graphfield.nn.long_rows import ROWS_AT_A_TIME, gather
from graphfield.nn.losses import LOSSES, HeadTask
from graphfield.nn.private_kernels import copy_all

SHARING = ("all", "node", "edge")


@dataclass(frozen=True)
class Samples:
    """Rows of node values and encoded covariates on one device.

    As data, ``x`` is (n, p), or (m, n, p) where the members' node values differ. As a batch, every
    array has a member axis in front, of length 1 where all members see the same rows.
    """

    x: Tensor
    numeric: Tensor  # (..., q_num)
    codes: Tensor  # (..., q_cat)
    own: slice | None = None  # of a batch, the rows that ``x`` has, where other processes have the others

    def __len__(self) -> int:
        return self.x.shape[-2]

    def take(self, rows: Tensor | slice) -> Samples:
        """Rows (m or 1, b), one line per member, as a batch; a slice or (b,) as data."""
        own = self.x.ndim == 3 and isinstance(rows, Tensor) and rows.ndim == 2
        if own:
            members = torch.arange(len(self.x), device=self.x.device)[:, None]
            x = self.x[members, rows]
        else:
            x = _rows_of(self.x, rows) if self.x.ndim == 2 else self.x[..., rows, :]
        codes = _rows_of(self.codes, rows) if self.codes.shape[-1] else self.codes.new_empty(*x.shape[:-1], 0)
        return Samples(x, _rows_of(self.numeric, rows), codes)

    def take_each(self, rows: Tensor, own: slice | None = None) -> tuple[Samples, ...]:
        """The batches of several steps, rows (s, m, b), gathered at once; of x perhaps only its ``own``."""
        if own is not None:
            covariates = Samples(self.x.new_empty(len(self), 0), self.numeric, self.codes).take_each(rows)
            values = self.take_each(rows[..., own])
            return tuple(
                replace(batch, x=part.x, own=own) for batch, part in zip(covariates, values, strict=True)
            )
        if self.x.ndim == 3:
            return tuple(self.take(one) for one in rows)
        whole = self.take(rows)
        parts = (whole.x.unbind(), whole.numeric.unbind(), whole.codes.unbind())
        return tuple(Samples(*batch) for batch in zip(*parts, strict=True))

    def member(self, which: int) -> Samples:
        """The rows as one of the members has them."""
        return self if self.x.ndim == 2 else replace(self, x=self.x[which])

    def members(self, which: Sequence[int]) -> Samples:
        """The rows of some of the members."""
        return self if self.x.ndim == 2 else replace(self, x=self.x[list(which)])

    def to(self, device: torch.device) -> Samples:
        return Samples(self.x.to(device), self.numeric.to(device), self.codes.to(device))


def by_parts(function: Callable[[Samples], Tensor], data: Samples, rows: Tensor, dim: int = 0) -> Tensor:
    """What a function gives for a batch of these rows, (..., rows, ...) along ``dim``."""
    return torch.cat([function(data.take(part[None])) for part in rows.split(ROWS_AT_A_TIME)], dim=dim)


def _rows_of(values: Tensor, rows: Tensor | slice) -> Tensor:
    """``values[rows]`` of (n, d)."""
    if isinstance(rows, slice) or rows.dtype == torch.bool:
        return values[rows]
    return gather(values, rows.reshape(-1)).view(*rows.shape, values.shape[1])


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
    rank: int | None = None

    @property
    def n_groups(self) -> int:
        """How many networks there are."""
        p = self.n_nodes
        return {"all": 1, "node": p, "edge": p * (p - 1)}[self.sharing]

    @property
    def n_weights(self) -> int:
        """About how many weights the coefficient field has."""
        hidden = 0 if self.network == "linear" else self.n_groups * self.hidden_size**2
        return hidden + (self.rank or self.hidden_size) * self.n_nodes * (self.n_nodes - 1)

    @property
    def least_weights(self) -> int:
        """Weights that the coefficient field has at the least, whatever its covariates are."""
        p, h = self.n_nodes, self.hidden_size
        linear = self.network == "linear"
        head = (self.rank or (0 if linear else h)) * p * (p - 1) + p * (p - 1)
        return head + (0 if linear else self.n_groups * h * (h // 2))


class Field(nn.Module, ABC):
    """Covariates through an embedding and a backbone, and what training asks of the whole.

    A field may hold several members, see :func:`graphfield.nn.pack.packed`.
    """

    def __init__(self, config: FieldConfig, generator: torch.Generator, groups: int = 1) -> None:
        super().__init__()
        self.config = config
        self.groups = groups
        self.embedding = CovariateEmbedding(config.covariates, generator)
        self.backbone = make_backbone(
            config.network,
            self.embedding.width,
            config.hidden_size,
            groups=groups,
            batch_norm=config.batch_norm,
            generator=generator,
        )
        self.set_penalties((config.penalty,))
        self.forget_step()

    def forget_step(self) -> None:
        """To be called when the weights have moved in memory."""
        self._step: ResidualStep | None = None
        self._head_step: DenseStep | None = None

    def factors_shape(self, batch_size: int) -> tuple[int, ...] | None:
        """Of the dropout factors of one member and one step; None where nothing is dropped."""
        if self.config.dropout == 0 or self.config.network == "linear":
            return None
        return (2, self.groups, batch_size, self.backbone.width)

    def hidden(
        self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None, own: slice | None = None
    ) -> Tensor:
        """Of all rows of a batch, or of those that are this process's ``own``."""
        return self.backbone(self.embedding(numeric, codes), keep, own)  # (m or 1, g, b, h)

    @abstractmethod
    def row_losses(self, batch: Samples) -> Tensor:
        """The loss of prediction without any penalty, averaged over nodes: (m, b)."""

    @abstractmethod
    def training_loss(self, batch: Samples, keep: Tensor | None) -> Tensor:
        """What is minimised, (m,)."""

    def backward(self, batch: Samples, keep: Tensor | None) -> Tensor:
        """Training losses (m,); their gradients replace those in the parameters."""
        losses = self.training_loss(batch, keep)
        _differentiate(losses.sum(), None, list(self.parameters()))
        return losses.detach()

    def _written_out(
        self,
        backbone: ResidualBackbone,
        batch: Samples,
        keep: Tensor | None,
        head: Callable[[Tensor], tuple[Tensor, Tensor]],
    ) -> Tensor:
        """:meth:`backward` of the default network without autograd, but for the embedding of categories.

        ``head`` takes u and gives losses and their slope by u, having written its own gradients; without
        a member axis where there is one member, see :mod:`graphfield.nn.backbone_step`.
        """
        if self._step is None:
            self._step = ResidualStep(backbone)
        step = self._step
        z = self.embedding(batch.numeric, batch.codes)
        losses, slope = head(step.forward(z, keep, batch.own))
        by_z = step.backward(slope)
        if by_z is not None:
            _differentiate(z, by_z, list(self.embedding.parameters()))
        return losses.reshape(-1)

    def _dense_head(self, dense: Dense) -> DenseStep:
        if self._head_step is None:
            self._head_step = DenseStep(dense)
        return self._head_step

    def set_penalties(self, penalties: tuple[float, ...]) -> None:
        """One per member; everything else of the configuration is common to them."""
        self.penalties = penalties
        self.register_buffer("penalty", torch.tensor(penalties), persistent=False)


def _differentiate(output: Tensor, slope: Tensor | None, parameters: list[nn.Parameter]) -> None:
    """Gradients by autograd, written over those that the parameters have.

    In the thread that calls: on a GPU, autograd's own would begin without a context and warn of it.
    """
    with torch.autograd.set_multithreading_enabled(False):
        found = torch.autograd.grad(output, parameters, slope, allow_unused=True, materialize_grads=True)
    copy_all([gradient_of(parameter) for parameter in parameters], list(found))


class CoefField(Field):
    """beta(z): covariates to a (p, p) matrix of coefficients with a zero diagonal."""

    def __init__(self, config: FieldConfig, generator: torch.Generator) -> None:
        super().__init__(config, generator, config.n_groups)
        p, width = config.n_nodes, self.backbone.width
        self.bottleneck: nn.Module = nn.Identity()
        self.head: nn.Module
        if config.sharing == "all":
            if config.rank is not None:
                self.bottleneck = Dense(1, width, config.rank, generator)
                width = config.rank
            self.head = SharedHead(width, p, generator)
        else:
            self.head = GroupedHead(config.n_groups, width, p, generator)

    def hidden(
        self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None, own: slice | None = None
    ) -> Tensor:
        u = self.bottleneck(super().hidden(numeric, codes, keep, own))
        return u if self.config.rank is None else torch.softmax(u, dim=-1)

    def forward(
        self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None, own: slice | None = None
    ) -> Tensor:
        """(m or 1, b, q) to (m, b, j, k)."""
        return self.head(self.hidden(numeric, codes, keep, own))

    def fitted(self, batch: Samples) -> Tensor:
        """``sum_k beta_jk(z) x_k``, (m, b, p)."""
        u = self.hidden(batch.numeric, batch.codes)
        if isinstance(self.head, SharedHead):
            return fitted(u[:, 0], self.head.weight, batch.x)
        return node_fit(self.head(u), batch.x)

    def row_losses(self, batch: Samples) -> Tensor:
        return LOSSES[self.config.loss].value(batch.x - self.fitted(batch)).mean(dim=2)

    def training_loss(self, batch: Samples, keep: Tensor | None) -> Tensor:
        """Eq. (loss) divided by p, so that its size does not grow with p, plus the penalty."""
        coef = self(batch.numeric, batch.codes, keep, batch.own)
        error = batch.x - node_fit(coef, batch.x)
        loss = LOSSES[self.config.loss].value(error).mean(dim=(1, 2))
        return loss + self.get_buffer("penalty") * coef.abs().sum(dim=3).mean(dim=(1, 2))

    def backward(self, batch: Samples, keep: Tensor | None) -> Tensor:
        if not isinstance(self.head, SharedHead):
            return super().backward(batch, keep)
        weight = self.head.weight
        task = self.head_task()
        form = choose_form(weight, len(batch), task)

        def head(u: Tensor) -> tuple[Tensor, Tensor]:
            return form(u, weight.detach(), gradient_of(weight), batch.x, task)

        def own_head(u: Tensor) -> tuple[Tensor, Tensor]:
            losses, slope = head(u.view(len(weight), *u.shape[-2:]))
            return losses, slope.view_as(u)

        if isinstance(self.backbone, ResidualBackbone) and self.config.rank is None:
            return self._written_out(self.backbone, batch, keep, own_head)
        u = self.hidden(batch.numeric, batch.codes, keep, batch.own)
        losses, slope = head(u.detach()[:, 0].expand(len(weight), -1, -1))
        if u.requires_grad:
            _differentiate(u, slope[:, None], [p for p in self.parameters() if p is not weight])
        return losses

    def head_task(self) -> HeadTask:
        return HeadTask(self.config.loss, self.get_buffer("penalty") if any(self.penalties) else None)


def node_fit(coef: Tensor, x: Tensor) -> Tensor:
    """``sum_k coef_jk x_k`` per row: (m, b, p, p) and (m or 1, b, p) to (m, b, p).

    On the CPU a batched product runs row by row, and multiplying out is three times faster.
    """
    if coef.device.type == "cpu":
        return (coef * x[:, :, None, :]).sum(dim=3)
    return torch.matmul(coef, x[..., None])[..., 0]


class MeanField(Field):
    """mu(z): the conditional mean of every node given the covariates."""

    def __init__(self, config: FieldConfig, generator: torch.Generator) -> None:
        super().__init__(config, generator)
        self.head = Dense(1, self.backbone.width, config.n_nodes, generator)

    def forward(
        self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None, own: slice | None = None
    ) -> Tensor:
        return self.head(self.hidden(numeric, codes, keep, own))[:, 0]  # (m, b, p)

    def row_losses(self, batch: Samples) -> Tensor:
        error = batch.x - self(batch.numeric, batch.codes)
        return LOSSES[self.config.loss].value(error).mean(dim=2)

    def training_loss(self, batch: Samples, keep: Tensor | None) -> Tensor:
        error = batch.x - self(batch.numeric, batch.codes, keep, batch.own)
        return LOSSES[self.config.loss].value(error).mean(dim=(1, 2))

    def backward(self, batch: Samples, keep: Tensor | None) -> Tensor:
        if not isinstance(self.backbone, ResidualBackbone):
            return super().backward(batch, keep)
        return self._written_out(self.backbone, batch, keep, partial(self._through_head, x=batch.x))

    @torch.no_grad()
    def _through_head(self, u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        layer = self._dense_head(self.head)
        error = (x if u.ndim == 3 else x[0]) - layer.forward(u)
        loss = LOSSES[self.config.loss]
        slope = loss.slope(error).mul_(-1 / error.shape[-2:].numel())
        layer.write(u, slope)
        return loss.value(error).mean(dim=(-2, -1)), layer.back(slope)


def mean_config(config: FieldConfig) -> FieldConfig:
    """The same network for the mean, without dropout: with p outputs only, stopping early is enough."""
    return replace(config, sharing="all", dropout=0.0, rank=None)
