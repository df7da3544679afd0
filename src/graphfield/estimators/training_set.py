"""The rows of one fit: checked, named, split, with a random stream for each purpose."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.encoded import Encoded
from graphfield.data.frames import (
    Frame,
    as_frame,
    check_numeric,
    check_same_length,
    match_columns,
    node_values,
)
from graphfield.data.group_levels import LevelCheck, levels_in_units
from graphfield.data.marginals import SKEPTIC, NodeMap, learn_map
from graphfield.data.missing import handle_missing
from graphfield.data.node_types import node_frame
from graphfield.data.nodes import NodeScaler, row_blocks
from graphfield.data.ranges import check_reach
from graphfield.data.row_source import RowSource, warn_of_sample
from graphfield.data.row_store import allocate_rows, followed_by, take_rows
from graphfield.data.splits import cross_labels, fold_labels, group_labels, hold_out
from graphfield.estimators.inputs import HeldOutTable, Inputs, child_seeds, training_inputs
from graphfield.exceptions import DataError, DataWarning
from graphfield.fields import GraphField
from graphfield.fields.schema import Schema
from graphfield.solvers.marginal_choice import MarginalCheck, prefer_normal_scores
from graphfield.solvers.scale_choice import ScaleRows

# Node values of a table that is copied in an order of its own. In a longer one, of which no copy is made, the
# order in which rows come has a part in which are held out.
_MOST_SORTED = 20_000_000


class Streams:
    """Seeds by the name of what they are for, none of which says anything about another.

    >>> Streams(0, ["split", "gap"])["gap"] == Streams(0, ["split", "gap", "more"])["gap"]
    True
    """

    def __init__(self, root: int, names: Sequence[str]) -> None:
        self.root = root
        self._seeds = dict(zip(names, child_seeds(root, len(names)), strict=True))

    def __getitem__(self, name: str) -> int:
        return self._seeds[name]


@dataclass
class TrainingSet:
    """What an estimator is given to fit, and what it notes about the fit while it goes on."""

    inputs: Inputs  # nodes (less the levels of groups, where these have any) and covariates
    labels: NDArray | None  # a code for the group of each row
    groups: NDArray | None  # the same as the user gave them
    levels: LevelCheck | None  # whether groups have levels of their own
    own: HeldOutTable | None  # the user's own held-out rows
    streams: Streams
    held_out: NDArray[np.intp] | None = None  # positions of the rows that :meth:`split` held out
    judged: GraphField | None = None  # the field before it saw the held-out rows, where it has
    most_directions: float = np.inf  # in which graphs can vary over rows, where an estimator knows it

    @property
    def X(self) -> NDArray[np.floating]:
        return self.inputs.X

    @property
    def Z(self) -> Frame:
        return self.inputs.Z

    @property
    def tables(self) -> list[Any]:
        """All that the user gave, as arrays."""
        own = (None, None) if self.own is None else (self.own[0], self.own[1].values)
        return [self.X, self.Z.values, self.labels, *own]

    @property
    def all_nodes(self) -> NDArray[np.floating]:
        """Nodes of the rows, and after them of the user's own held-out rows."""
        return self.X if self.own is None else followed_by(self.X, self.own[0])

    def encode(self, encoder: CovariateEncoder) -> Encoded:
        """Covariates of the same rows."""
        known = encoder.transform(self.Z)
        return known if self.own is None else known.followed_by(encoder.transform(self.own[1]))

    def split(self, share: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions, in :attr:`all_nodes`, of rows to train on and of rows that choose.

        These are the user's own, or a share of the others; rows of a group stay together.
        """
        if self.own is not None:
            return np.arange(len(self.X)), len(self.X) + np.arange(len(self.own[0]))
        train, self.held_out = hold_out(len(self.X), share, self.labels, self.streams["split"])
        return train, self.held_out

    def fold_labels(self, n_folds: int, *, at_most: bool = False, shuffle: bool = True) -> NDArray[np.intp]:
        """The fold that holds each of :attr:`all_nodes` out; -1 for those that no fold does.

        Folds are drawn at random or, without ``shuffle``, are stretches of rows. Where groups are fewer than
        folds, that is an error; with ``at_most``, there are as many folds.
        """
        if self.own is None and at_most:
            n_units = len(self.X) if self.labels is None else len(np.unique(self.labels))
            return cross_labels(len(self.X), self.labels, max(2, min(n_folds, n_units)))
        if self.own is None:
            return fold_labels(len(self.X), n_folds, self.labels, shuffle=shuffle)
        return np.repeat([-1, 0], [len(self.X), len(self.own[0])])

    def scale_rows(self, values: NDArray, W: NDArray, encoder: CovariateEncoder) -> ScaleRows:
        """What scales of nodes that move with z are learned from: centred values, features of z."""
        folds_of_rows = cross_labels(len(values), self.labels)
        return ScaleRows(values, W, len(encoder.numeric), folds_of_rows, self.labels)

    def choose_scores(
        self, encoder: CovariateEncoder, wanted: str
    ) -> tuple[NodeMap | None, MarginalCheck | None]:
        return choose_map(self.inputs, encoder, wanted, self.labels)

    def take_scores(self, schema: Schema, wanted: str) -> tuple[Schema, TrainingSet, MarginalCheck | None]:
        """Nodes of schema and rows as they are ``wanted``; with "auto", the check that decides it."""
        scores, check = self.choose_scores(schema.encoder, wanted)
        if scores is None:
            return schema, self, check
        return schema.with_scores(scores), self.with_nodes(scores.transform), check

    def with_nodes(self, change: Callable[[NDArray], NDArray]) -> TrainingSet:
        """The same rows with other node values, each row's from its own."""
        X = allocate_rows(self.X.shape, np.float64)
        for rows in row_blocks(*X.shape):
            X[rows] = change(self.X[rows])
        own = None if self.own is None else (change(self.own[0]), *self.own[1:])
        return replace(self, inputs=replace(self.inputs, X=X), own=own)

    def at_rows(self, rows: NDArray[np.intp]) -> TrainingSet:
        """The same, where the user's rows are at these positions of something longer."""
        return replace(self, inputs=replace(self.inputs, rows=rows[self.inputs.rows]))

    @property
    def new(self) -> HeldOutTable | None:
        """Rows that took no part in training: the user's own, or those that were held out."""
        rows = self.held_out
        if self.own is not None or rows is None:
            return self.own
        return take_rows(self.X, rows), self.Z.take(rows), None if self.labels is None else self.labels[rows]


def choose_map(
    inputs: Inputs, encoder: CovariateEncoder, wanted: str, labels: NDArray[np.intp] | None
) -> tuple[NodeMap | None, MarginalCheck | None]:
    """What nodes are turned into, if anything; with "auto", the check that decides it."""
    check = None
    if wanted == "auto":
        W = features(encoder, encoder.transform(inputs.Z))
        check = prefer_normal_scores(inputs.X, W, labels)
        wanted = "normal" if check.prefers else "raw"
    return learn_map(inputs.X, "normal" if wanted == SKEPTIC else wanted, inputs.node_names), check


def read_training_set(
    X: Any,
    Z: Any,
    groups: Any,
    X_val: Any,
    Z_val: Any,
    *,
    missing: str,
    standardize: bool,
    subtract_levels: bool,
    streams: Streams,
    node_types: str | Mapping[str, str] | None = None,
    sampled_by: str | None = None,
    uses_covariates: bool = True,
) -> TrainingSet:
    """Every check of the data of a fit; without ``node_types`` all nodes must be numbers.

    The order of rows means nothing, unless they come in groups or the user says which are held out.
    An estimator that is named in ``sampled_by`` holds its rows in memory: of a row source, which comes
    without Z and groups, it gets as many as fit.
    """
    if isinstance(X, RowSource):
        if Z is not None or groups is not None:
            raise DataError.of("Z", "and groups are columns of the table, which were named in gf.open_table.")
        read = partial(
            read_training_set,
            X_val=X_val,
            Z_val=Z_val,
            missing=missing,
            standardize=standardize,
            streams=streams,
            node_types=node_types,
            uses_covariates=uses_covariates,
        )
        return _read_source(X, missing, subtract_levels and X_val is None, streams.root, read, sampled_by)
    inputs = training_inputs(X, Z, missing, standardize=standardize, node_types=node_types, groups=groups)
    if groups is None and X_val is None and inputs.X.size <= _MOST_SORTED:
        mixed = np.random.default_rng(0).permutation(len(inputs.X))  # folds may be stretches of rows
        inputs = inputs.take(inputs.value_order(by_covariates=uses_covariates)[mixed])
    data = TrainingSet(inputs, None, None, None, None, streams)
    if groups is not None:
        wanted = subtract_levels and X_val is None
        data.inputs, data.labels, data.levels = without_levels(inputs, groups, X, wanted=wanted)
        data.groups = np.asarray(groups, dtype=object)[inputs.rows]
    if (X_val is None) != (Z_val is None):
        raise DataError("X_val and Z_val must be given together, or neither.").about(argument="Z_val")
    if X_val is not None:
        data.own = _read_own_rows(data.inputs, X_val, Z_val, missing)
    return data


def _read_source(
    source: RowSource,
    missing: str,
    subtract_levels: bool,
    seed: int,
    read: Callable[..., TrainingSet],
    sampled_by: str | None,
) -> TrainingSet:
    """All rows, or a sample where these are to be in memory and do not fit.

    So they are to where groups have levels of their own, which a sample of whole groups tells.
    """
    levels = None
    if not source.fits and (sampled_by is not None or (source.group is not None and subtract_levels)):
        few = source.read(missing, source.sample(seed))
        data = read(few.X, few.covariates, few.groups, subtract_levels=subtract_levels)
        if sampled_by is not None or (data.levels is not None and data.levels.prefers):
            warn_of_sample(source, len(few.rows), sampled_by or "A model without levels of groups")
            return data.at_rows(few.rows)
        levels, subtract_levels = data.levels, False
    found = source.read(missing)
    data = read(found.X, found.covariates, found.groups, subtract_levels=subtract_levels).at_rows(found.rows)
    data.levels = data.levels or levels
    return data


def _read_own_rows(inputs: Inputs, X_val: Any, Z_val: Any, missing: str) -> HeldOutTable:
    """The rows that the user holds out, checked against those of the fit."""
    x_frame = match_columns(node_frame(X_val), inputs.node_names, inputs.nodes_named, "X")
    if inputs.types is not None:
        x_frame = inputs.types.with_categories(x_frame)
    z_frame = match_columns(as_frame(Z_val, "Z"), inputs.Z.names, inputs.Z.named, "Z")
    check_same_length(x_frame, z_frame)
    if inputs.types is None:
        check_numeric(x_frame)  # before rows are left out, as it names one
    x_frame, z_frame, _ = handle_missing(x_frame, z_frame, missing)
    if len(x_frame.values) == 0:
        raise DataError("X_val and Z_val have no rows.").about(argument="X_val")
    values = node_values(x_frame) if inputs.types is None else inputs.types.codes(x_frame)
    known = NodeScaler.learn(inputs.X, center=True, scale=True)
    check_reach(values, x_frame.names, known.center, known.scale, "X_val", z_frame.places)
    return values, z_frame, None


def without_levels(
    inputs: Inputs, groups: Any, X: Any, *, wanted: bool = True
) -> tuple[Inputs, NDArray | None, LevelCheck | None]:
    """The nodes less the levels of their groups, where these have any; codes of the groups; the comparison.

    ``groups`` are the user's labels for all rows of X. Nothing is subtracted, or compared, unless ``wanted``.
    """
    labels = group_labels(groups, X, inputs.rows)
    if labels is None or not wanted:
        return inputs, labels, None
    codes = np.unique(labels, return_inverse=True)[1]
    check, levels, units = levels_in_units(inputs.X, smooth_features(inputs.Z), codes)
    if not check.prefers:
        return inputs, labels, check
    warnings.warn(
        f"Groups have levels of their own ({check.share:.0%} of a node's variance on average); these were "
        "subtracted, so that graphs are about what varies within a group. Predictions for other groups are "
        f"about the mean of all.{check.words_of_units(inputs.node_names)}"
        f"{check.words_of_fixed(inputs.node_names)}",
        DataWarning,
        stacklevel=3,
    )
    if inputs.types is not None:  # what is taken from a code is none
        levels[:, [kind != "gaussian" for kind in inputs.types.kinds]] = 0.0
    return replace(inputs, X=units.without_levels(inputs.X, levels[codes])), labels, check


def smooth_features(Z: Frame) -> NDArray[np.float64]:
    """Functions of the covariates that a mean may be linear in: a one, levels, numbers and their squares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model's own encoder says it
        encoder = CovariateEncoder(standardize=True, unknown="average").fit(Z, allow_empty=True)
    W = features(encoder, encoder.transform(Z))
    return np.column_stack([W, W[:, 1:] ** 2])
