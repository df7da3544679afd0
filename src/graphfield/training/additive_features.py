"""Functions of single covariates that edges may move with: bent lines, and one level against the others.

They are hidden units of the ordinary network whose weights are set rather than trained, so a graph that moves
with them is an ordinary field.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphfield.nn.fields import CoefField, FieldConfig, Samples

# A line is flat beyond these quantiles: a wild value decides nothing.
_OUTER = 0.01
# Rows of a level, at least; others count as the average of the levels.
_MIN_LEVEL_ROWS = 10
# Different values from which a line may bend in the middle.
_MIN_BENT = 5


@dataclass(frozen=True)
class _Unit:
    """``max(0, scale * z @ direction + offset)``, with a sign, as a part of one feature."""

    direction: Tensor
    offset: float
    feature: int
    sign: float = 1.0


@dataclass(frozen=True)
class AdditiveFeatures:
    """What edges may move with, (n, m), each zero on the average."""

    skeleton: CoefField  # whose hidden units they are made of; its head is empty
    mix: Tensor  # (units, m)
    average: Tensor  # (m,)
    levels: tuple[slice, ...]  # the features of each category with three levels or more

    @classmethod
    @torch.no_grad()
    def of(cls, config: FieldConfig, data: Samples, rows: Tensor) -> AdditiveFeatures | None:
        """Of the covariates of these rows; None where the network has no room for them, or they have none."""
        if config.network != "residual" or config.sharing != "all":
            return None
        drawing = _Drawing(config, data, rows)
        if not 0 < len(drawing.units) <= config.hidden_size:
            return None
        skeleton = _empty_field(config, data.x.device)
        for table, places in zip(skeleton.embedding.tables, drawing.places, strict=True):
            table[0] = places
        mix = data.x.new_zeros(config.hidden_size, drawing.n_features)
        weight, bias = (skeleton.get_parameter(f"backbone.second.{name}") for name in ("weight", "bias"))
        for i, unit in enumerate(drawing.units):
            weight[0, 0, : len(unit.direction), i] = unit.direction
            bias[0, 0, 0, i] = unit.offset
            mix[i, unit.feature] += unit.sign
        self = cls(skeleton, mix, data.x.new_zeros(drawing.n_features), tuple(drawing.levels))
        return replace(self, average=self.at(data)[rows].mean(dim=0))

    @torch.no_grad()
    def at(self, data: Samples) -> Tensor:
        """(n, m)."""
        hidden = self.skeleton.hidden(data.numeric[None], data.codes[None])[0, 0]
        return hidden @ self.mix - self.average

    @torch.no_grad()
    def field(self, patterns: Tensor) -> CoefField:
        """``patterns[0] + sum_m feature_m(z) patterns[m]`` as a field; patterns are (1 + m, p, p)."""
        still, moving = patterns[0], patterns[1:].clone()
        constant = still - torch.tensordot(self.average, moving, dims=1)
        for own in self.levels:  # a level that has no feature gets the average of the others
            shares = self.average[own] / self.average[own].sum()
            common = torch.tensordot(shares, moving[own], dims=1)
            moving[own] -= common
            constant = constant + common
        field = CoefField(self.skeleton.config, torch.Generator()).to(patterns.device)
        field.load_state_dict(self.skeleton.state_dict())
        head = torch.cat([torch.tensordot(self.mix, moving, dims=1), constant[None]])
        field.head.get_parameter("weight")[0] = head
        return field.eval()


class _Drawing:
    """The units, and where the levels of each category lie: so that a line parts each from the others."""

    def __init__(self, config: FieldConfig, data: Samples, rows: Tensor) -> None:
        self.units: list[_Unit] = []
        self.levels: list[slice] = []
        self.n_features = 0
        n_levels = [len(shares) for shares in config.covariates.level_shares]
        self.places = [_places(count, data.x) for count in n_levels]
        n_numeric = data.numeric.shape[1]
        self.width = n_numeric + sum(places.shape[1] for places in self.places)
        for column in range(n_numeric):
            self._draw_line(column, data.numeric[rows, column])
        first = n_numeric
        for which, places in enumerate(self.places):
            counts = data.codes[rows, which].bincount(minlength=len(places))
            self._draw_levels(first, places, counts[: len(places)] >= _MIN_LEVEL_ROWS)
            first += places.shape[1]

    def _draw_line(self, column: int, values: Tensor) -> None:
        different = torch.unique(values)
        low, middle, high = torch.quantile(values, values.new_tensor([_OUTER, 0.5, 1 - _OUTER])).tolist()
        if low == high:
            low, high = float(different[0]), float(different[-1])
        if low == high:
            return
        direction = values.new_zeros(self.width)
        direction[column] = 1.0
        starts = [low, middle] if len(different) >= _MIN_BENT and low < middle < high else [low]
        for start in starts:
            self.units += [
                _Unit(direction, -start, self.n_features),
                _Unit(direction, -high, self.n_features, -1.0),
            ]
            self.n_features += 1

    def _draw_levels(self, first: int, places: Tensor, frequent: Tensor) -> None:
        if int(frequent.sum()) < 2:
            return
        count, begin = len(places), self.n_features
        apart = math.cos(2 * math.pi / count)  # of the neighbours of a level
        for level in [1] if count == 2 else torch.nonzero(frequent)[:, 0].tolist():
            direction = places.new_zeros(self.width)
            direction[first : first + places.shape[1]] = places[level] / (1 - apart)
            self.units.append(_Unit(direction, -apart / (1 - apart), self.n_features))
            self.n_features += 1
        if count > 2:
            self.levels.append(slice(begin, self.n_features))


def _places(n_levels: int, like: Tensor) -> Tensor:
    """Two levels at -1 and 1, more on a circle: (levels, width of their embedding)."""
    places = like.new_zeros(n_levels, min(16, -(-n_levels // 2)))
    angle = 2 * math.pi * torch.arange(n_levels, device=like.device) / n_levels
    places[:, 0] = -torch.cos(angle)
    if n_levels > 2:
        places[:, 1] = torch.sin(angle)
    return places


def _empty_field(config: FieldConfig, device: torch.device) -> CoefField:
    field = CoefField(replace(config, rank=None), torch.Generator()).to(device)
    for parameter in field.parameters():
        parameter.zero_()
    return field.eval()
