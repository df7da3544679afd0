"""DNNCGM of nodes that are no plain numbers, or enter by curves: patterns of design columns are mixed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.blocks import Blocks
from graphfield.data.covariates import features
from graphfield.data.frames import Frame
from graphfield.data.node_types import NodeTypes
from graphfield.data.nodes import NodeScaler
from graphfield.estimators.dnncgm_setup import Parameters
from graphfield.estimators.family_fit import check_standard
from graphfield.estimators.moving_means import MovingMean, fit_means
from graphfield.estimators.neural import make_samples
from graphfield.estimators.neural_field import NeuralField, NeuralMean
from graphfield.estimators.training_jobs import Job
from graphfield.estimators.training_set import TrainingSet
from graphfield.estimators.ways import Edges, MixedPatterns, Way
from graphfield.exceptions import ParameterError
from graphfield.fields.blocks import BlockField, block_field, column_common, column_schema
from graphfield.fields.schema import Schema
from graphfield.nn.fields import Samples
from graphfield.nn.threads import one_thread_each
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.family_patterns import FamilyFit, FamilyTable, fit_families


@dataclass(frozen=True, eq=False)
class ColumnRows:
    """Design columns of the rows of a fit, after them those of the user's own held-out rows."""

    schema: Schema
    blocks: Blocks
    X: NDArray[np.float64]  # codes, and covariates, of the rows of the fit alone
    Z: Frame
    columns: NDArray[np.float64]
    samples: Samples
    features: NDArray[np.float64]  # of the covariates

    @classmethod
    def of(
        cls, data: TrainingSet, schema: Schema, features_of_edges: str, device: torch.device
    ) -> ColumnRows:
        types = schema.types or NodeTypes.of_numbers(schema.node_names)
        schema = replace(schema, types=types)
        X, encoded = np.asarray(data.X, dtype=np.float64), data.encode(schema.encoder)
        blocks = Blocks.learn(types, X, features_of_edges)
        columns, W = blocks.columns(data.all_nodes), features(schema.encoder, encoded)
        return cls(schema, blocks, X, data.Z, columns, make_samples(columns, encoded, device), W)

    @property
    def column_schema(self) -> Schema:
        return column_schema(self.schema, self.blocks)

    @property
    def nodes(self) -> Tensor | None:
        """The node that owns each column, where some own several."""
        own = self.blocks.nodes
        return None if (self.blocks.widths == 1).all() else torch.as_tensor(own, device=self.samples.x.device)

    @property
    def answers(self) -> Tensor | None:
        """Which columns are explained by others, where some are not."""
        own = self.blocks.answers
        return None if own.all() else torch.as_tensor(own, device=self.samples.x.device)

    def field(self, found: FamilyFit, mean: MovingMean | None) -> BlockField:
        """The field of the nodes."""
        d = self.blocks.n_columns
        plain = NodeScaler(np.zeros(d), np.ones(d))
        columns = NeuralField(column_common(self.schema, self.blocks), found.coef, NeuralMean.of(mean, plain))
        slopes = None if mean is None else found.slopes
        return block_field(
            self.schema, self.blocks, self.X, columns, found.base[None], columns.encode(self.Z), slopes
        )


def check_options(model: Parameters, data: TrainingSet, start: object) -> None:
    """Raise for what a fit of design columns does not know."""
    check_standard(model, data)
    if start is not None:
        raise ParameterError.of(
            "start",
            "must be None where nodes are no plain numbers or enter by curves (features): such a fit "
            "begins anew. Leave it out.",
        )


def check_way(way: Way, model: Parameters) -> MixedPatterns:
    """The way of fitting, which must be the one that knows families."""
    if not isinstance(way, MixedPatterns):
        raise ParameterError(
            "Nodes that are no plain numbers, or enter by curves (features), need coefficients that mix "
            "patterns: rank='auto' or a number, sharing='all', loss='squared' and a network with hidden "
            f"layers. Got rank={model.rank!r}, sharing={model.sharing!r}, loss={model.loss!r} and network="
            f"{model.network!r} ({way.reason}). RegGMM takes such nodes, too, with coefficients that are "
            "linear in the covariates."
        ).about(argument="rank")
    return way


@one_thread_each()
def fit_columns(
    job: Job,
    rows: ColumnRows,
    way: MixedPatterns,
    training: TrainingConfig,
    center: str,
    folder: CheckpointFolder | None,
) -> tuple[BlockField, Edges]:
    """Means of the columns, where they may move with z, a mixture of what is left, and nodes by likelihood.

    ``training`` is that of the means.
    """
    job = replace(job, rescale=False, nodes=rows.nodes, answers=rows.answers)
    data, mean, shift = rows.samples, None, torch.zeros_like(rows.samples.x)
    if center == "covariates":
        (mean,) = fit_means([job], data, training, folder, rows.features)
    if mean is not None:
        shift = mean.at(data, rows.features)
    left = replace(data, x=data.x - shift)
    (edges,) = way.fit([job], left, folder, compete=False)
    links = rows.blocks.bounded_at(shift.double().cpu().numpy())
    table = FamilyTable(rows.blocks, rows.columns, links, left, rows.nodes)
    assert edges.again is not None
    used = job.rows if job.spares_held_out else torch.cat([job.rows, job.held_out])
    return rows.field(fit_families(table, edges.again, used, edges.coef), mean), edges
