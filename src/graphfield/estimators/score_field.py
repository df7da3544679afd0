"""A field whose edges are second derivatives of a log-density of the nodes given z."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.neural import from_arrays, make_samples, to_arrays
from graphfield.estimators.neural_field import NeuralMean, read_config
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.schema import Rows
from graphfield.fields.streaming import Part, evaluation_rows, slices
from graphfield.nn.energies import EnergyConfig, EnergyField, hermite_functions, tail_weights
from graphfield.nn.threads import one_thread_each

DEGREES = (2, 3, 4)
# Values of a node, in standard units, over which its conditional density is summed.
_GRID = torch.linspace(-4, 4, 65)
# Values of a node over which another is followed: so many, up to so many standard deviations.
_REACH, _N_VALUES = 2.0, 21
# In files: as many weights as may be.
_ANY = 2**62


@dataclass(frozen=True)
class MatchedRows:
    """Slopes of log p, weights in the loss and their derivatives, (b, p); what pairs add and gain, (b, E)."""

    slopes: NDArray[np.float64]
    weights: NDArray[np.float64]
    falls: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    bend_first: NDArray[np.float64]
    bend_second: NDArray[np.float64]
    gains: NDArray[np.float64]


def _ends(n_nodes: int, n_pairs: int) -> NDArray[np.intp]:
    """Where the columns of :class:`MatchedRows` end, side by side."""
    return np.cumsum([n_nodes] * 3 + [n_pairs] * 4)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreField(GraphField):
    """Strengths are root mean squares of ``d_j d_k log p(x | z)``, free of units.

    Weights are those that lines of the same strength would have, so that graphs and tables are made of them
    as of any others. Predictions are conditional means of the density, not sums of these weights.
    """

    network: EnergyField
    mean: NeuralMean

    kind: ClassVar[str] = "score"

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        p, scale = self.n_nodes, self.common.residual_scale / self.common.scaler.scale
        first, second = self.network.get_buffer("ends").cpu().numpy()
        strengths = np.zeros((len(rows), p, p), dtype=np.float32)
        for part, found in self._evaluate(rows, None, lambda *given: self._strengths(*given[:2])):
            strengths[part, first, second] = strengths[part, second, first] = found
        return strengths * (scale[:, None] / scale).astype(np.float32)

    def _strengths(self, pairs: Tensor, own: Tensor) -> Tensor:
        """Signed as the product of both nodes themselves, (b, E)."""
        sizes, nodes = self.network.sizes(pairs, own)
        nodes = nodes.clamp(min=1e-6).sqrt()
        first, second = self.network.get_buffer("ends")
        sign = torch.where(pairs[..., 0] < 0, -1.0, 1.0)
        return sign * (sizes / nodes[..., first] / nodes[..., second]).clamp(max=1)

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.mean.at(rows, self.schema.encoder)

    def fit_values(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """In double precision: scores in single precision have less than the values they are made of."""
        return super().fit_values(np.asarray(values, dtype=np.float64), rows)

    def regressions(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        offsets, units = self.offsets_at(rows), self.units_at(rows)
        x = (values - offsets) / units
        for part, fitted in self._evaluate(rows, x, self._conditional_means):
            yield part, offsets[part] + units[part] * fitted

    def _conditional_means(self, pairs: Tensor, own: Tensor, x: Tensor) -> Tensor:
        """Of each node given the others, in standard units, (b, p)."""
        pulls = self.network.pulls(pairs, own, x)
        density = pulls @ hermite_functions(_GRID, pulls.shape[-1])[0].T
        return torch.softmax(density, dim=-1) @ _GRID

    def effects(self, rows: Rows, source: int, target: int) -> pd.DataFrame:
        """The mean of one node over values of another, with all others at their means, at each row."""
        values = np.linspace(-_REACH, _REACH, _N_VALUES)
        repeated = rows.take(np.repeat(np.arange(len(rows)), len(values)))
        x = np.zeros((len(repeated), self.n_nodes))
        x[:, source] = np.tile(values, len(rows))
        means = [found for _, found in self._evaluate(repeated, x, self._conditional_means)]
        x[:, target] = np.concatenate([np.empty((0, self.n_nodes)), *means])[:, target]
        nodes, scores = self.offsets_at(repeated) + self.units_at(repeated) * x, self.schema.scores
        nodes = nodes if scores is None else scores.restore(nodes)
        sample = np.repeat(np.arange(len(rows)), len(values))
        return pd.DataFrame({"sample": sample, "source_value": nodes[:, source], "effect": nodes[:, target]})

    def pair_slopes(self, x: NDArray, rows: Rows) -> Iterator[tuple[slice, MatchedRows]]:
        """What score matching says of pairs at some rows after the other."""
        p, n_pairs = self.n_nodes, self.network.n_pairs

        def joined(pairs: Tensor, own: Tensor, nodes: Tensor) -> Tensor:
            added = self.network.pair_slopes(pairs, nodes)
            along = self.network.slopes(own, added, nodes)
            gains = self.network.pair_gains(along, added, nodes)
            return torch.cat([along, *tail_weights(nodes), *vars(added).values(), gains], dim=-1)

        for part, found in self._evaluate(rows, x, joined):
            slopes, weights, falls, *added = np.split(found.astype(np.float64), _ends(p, n_pairs), axis=1)
            yield part, MatchedRows(slopes, weights, falls, *added)

    @torch.no_grad()
    @one_thread_each()
    def _evaluate(
        self, rows: Rows, x: NDArray | None, compute: Callable[[Tensor, Tensor, Tensor], Tensor]
    ) -> list[tuple[slice, NDArray]]:
        """Of coefficients and nodes, in blocks of one size: the same bits whatever else is asked for."""
        network, size = self.network.cpu().eval(), evaluation_rows(self.n_nodes)
        nodes = np.zeros((len(rows), self.n_nodes)) if x is None else x
        samples = make_samples(nodes, rows.encoded, torch.device("cpu"))
        found = []
        for part in slices(len(rows), size):
            block = samples.take(torch.arange(part.start, part.start + size).clamp(max=len(rows) - 1)[None])
            pairs, own = network(block.numeric, block.codes)
            result = compute(pairs, own, block.x)[0]
            found.append((part, result[: part.stop - part.start].numpy()))
        return found

    def own_state(self) -> State:
        state, arrays = self.mean.state()
        return {"network": asdict(self.network.config), **state}, {
            **arrays,
            **to_arrays(self.network, "energies"),
        }

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> ScoreField:
        weights = arrays.below("energies/")
        config = _read_config(state["network"], common, weights.n_entries())
        network = from_arrays(EnergyField, config, weights)
        return cls(common, network, NeuralMean.from_state(common, config, state, arrays))


def _read_config(state: Saved, common: Common, n_entries: int) -> EnergyConfig:
    plain, p = read_config(state, common.schema, _ANY), common.schema.n_nodes
    ends = [[end.whole(0, p - 1) for end in pair.listed(2, 2)] for pair in state["pairs"].listed()]
    pairs = tuple((first, second) for first, second in ends)
    if any(first >= second for first, second in pairs) or len(set(pairs)) < len(pairs):
        state["pairs"].refuse("pairs of two nodes, the first one before the other, each once")
    config = EnergyConfig(**vars(plain), degree=state["degree"].whole(DEGREES[0], DEGREES[-1]), pairs=pairs)
    if config.least_weights > n_entries:
        state.refuse(f"a network of the {n_entries:,} weights in the file", f"{config.least_weights:,}")
    return config
