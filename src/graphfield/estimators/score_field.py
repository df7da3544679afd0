"""A field whose edges are second derivatives of a log-density of the nodes given z."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
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
from graphfield.nn.energies import EnergyConfig, EnergyField, hermite_functions
from graphfield.nn.fields import Samples
from graphfield.nn.threads import one_thread_each

DEGREES = (2, 3, 4)
# Values of a node, in standard units, over which its conditional density is summed.
_GRID = torch.linspace(-4, 4, 65)
# In files: as many weights as may be.
_ANY = 2**62


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

    def _regressions(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        offsets, units = self.offsets_at(rows), self.units_at(rows)
        x = (values - offsets) / units
        for part, fitted in self._evaluate(rows, x, self._conditional_means):
            yield part, offsets[part] + units[part] * fitted

    def _conditional_means(self, pairs: Tensor, own: Tensor, x: Tensor) -> Tensor:
        """Of each node given the others, in standard units, (b, p)."""
        pulls = self.network.pulls(pairs, own, x)
        density = pulls @ hermite_functions(_GRID, pulls.shape[-1])[0].T
        return torch.softmax(density, dim=-1) @ _GRID

    def pair_slopes(self, x: NDArray, rows: Rows) -> Iterator[tuple[slice, NDArray, NDArray]]:
        """Slopes (b, p) of some rows after the other, and what pairs add: (3, b, E), see ``PairSlopes``."""

        def both(pairs: Tensor, own: Tensor, nodes: Tensor) -> Tensor:
            added = self.network.pair_slopes(pairs, nodes)
            along = self.network.slopes(own, added, nodes)
            return torch.cat([along, added.first, added.second, added.bend], dim=-1)

        p = self.n_nodes
        for part, found in self._evaluate(rows, x, both):
            of_pairs = found[:, p:].reshape(len(found), 3, -1).swapaxes(0, 1)
            yield part, found[:, :p], of_pairs

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
            result = compute(*network(block.numeric, block.codes), block.x)[0]
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
    pairs = tuple(tuple(end.whole(0, p - 1) for end in pair.listed(2, 2)) for pair in state["pairs"].listed())
    if any(first >= second for first, second in pairs) or len(set(pairs)) < len(pairs):
        state["pairs"].refuse("pairs of two nodes, the first one before the other, each once")
    config = EnergyConfig(**vars(plain), degree=state["degree"].whole(DEGREES[0], DEGREES[-1]), pairs=pairs)
    if config.least_weights > n_entries:
        state.refuse(f"a network of the {n_entries:,} weights in the file", f"{config.least_weights:,}")
    return config
