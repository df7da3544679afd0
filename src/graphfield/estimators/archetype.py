"""Precision matrices that mix a few archetypes: a valid likelihood at every z."""

from __future__ import annotations

import copy
import string
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from graphfield.data.missing import check_complete
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import node_table, own_tables
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.dnncgm_setup import MAX_PATTERN_COLUMNS, STREAMS, gate_training
from graphfield.estimators.inputs import Inputs, root_seed
from graphfield.estimators.neural import DEVICE, evaluate_shares, make_samples
from graphfield.estimators.neural_field import ArchetypeField, NeuralField
from graphfield.estimators.parameters import (
    CENTER,
    MARGINAL,
    MISSING,
    PENALTY,
    SHARE,
    UNKNOWN,
    Number,
    Seed,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.persistence import pack_model, unpack_model
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import ParameterError
from graphfield.fields.base import Common, State
from graphfield.fields.questions import match_rows, read_values
from graphfield.nn.fields import Samples
from graphfield.solvers.marginal_choice import MarginalCheck
from graphfield.training.archetypes import NUMBERS, ArchetypeFit, ArchetypeTask, fit_archetypes
from graphfield.training.config import resolve_device
from graphfield.training.joint_precision import row_losses
from graphfield.training.mixture import shares_of


@hyper_parameters
class ArchetypeCGM(GraphEstimator):
    """Networks as mixtures of a few archetypes, "70 % A and 30 % B".

    ``Theta(z) = sum_r a_r(z) Theta_r``: a precision matrix that mixes sparse archetypes ``Theta_r`` in shares
    a(z) that a neural network gives. Every archetype is positive definite, so every mixture is: the model
    has a likelihood at every z and can be sampled from. A :class:`DNNCGM` finds out which rows have a network
    in common; archetypes are put at the extremes of what it finds, and shares and archetypes are then
    improved in turn by the joint Gaussian likelihood, with a penalty on edges. Given the shares, archetypes
    are a convex problem. Penalty and number of archetypes are those that held-out rows find most likely; one
    archetype, the same graph for everybody, is among the choices.

    Parameters
    ----------
    n_archetypes : "auto" or int up to 32
        "auto" tries more and more, at most 32, and takes the fewest within one standard error of the best.
        Where the networks of all rows are mixtures of fewer than asked for, there will be fewer.
    hidden_size : int
        Units of the network that gives the shares.
    dropout : float in [0, 1)
        Share of hidden units silenced in a step.
    center : {"covariates", "constant", "none"}
        Subtract a mean mu(z) that may move with z, and divide by scales that may (each kept only where
        held-out rows support it), one mean per node, or nothing.
    marginals : {"auto", "raw", "normal"}
        Nodes as they are or their normal scores, as in :class:`DNNCGM`; archetypes, likelihood and
        coefficients are then those of the scores, in the nodes' own means and standard deviations.
    penalty : "auto" or float
        On the edges, in standard units; "auto" is the best on a path from the empty graph down.
    max_steps : int, optional
        Gradient steps of the network in each round; by default 600.
    validation_fraction : float in (0, 1)
        Share of rows (or groups) held out; the archetypes are found again from all rows at the end.
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or the average of the others.
    device : str
        "auto" uses CUDA where there is one; "cpu" or "cuda" decide.
    random_state : int, Generator or None
        A whole number gives the same bits again on the same device.

    Attributes
    ----------
    archetypes_ : ndarray of shape (R, p, p)
        Precision matrices in the user's units; the first has the largest share of the rows. Where scales of
        nodes move with z, of nodes with scales as in the average row.
    archetype_names_ : list of str
        "A", "B", and so on.
    mean_shares_ : ndarray of shape (R,)
        Average shares over the training rows.
    penalty_ : float
        Penalty in use: that of the last round, so a little off the one in ``held_out_``.
    marginals_ : str
        "raw" or "normal": what the nodes were taken as.
    held_out_ : DataFrame
        For each number that was tried: ``archetypes``, ``log_likelihood`` (mean over held-out rows, nodes in
        standard units, without its constant), ``behind`` and its ``standard_error`` (distance to the best),
        ``penalty``.
    network_ : DNNCGM
        The model that found out which rows have a network in common; it also gives the means.

    Notes
    -----
    ``fit`` takes one more option, ``start``: a :class:`DNNCGM` that mixes patterns, fitted to the same rows,
    to begin with in place of one that is fitted here. Use the same ``random_state`` and
    ``validation_fraction`` in both, so that they hold out the same rows.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=100, random_state=0)
    >>> model = gf.ArchetypeCGM(n_archetypes=2, max_steps=5, random_state=0).fit(sim.X[:, :4], sim.Z)
    >>> model.shares(sim.Z[:3]).shape
    (3, 2)
    >>> model.sample(sim.Z, random_state=0).shape
    (100, 4)
    """

    _streams = STREAMS

    n_archetypes: int | str = parameter("auto", Number(1, NUMBERS[-1], integer=True, auto=True))
    hidden_size: int = parameter(64, Number(1, integer=True))
    dropout: float = parameter(0.3, Number(0, 1, open_high=True))
    center: str = parameter("covariates", CENTER)
    marginals: str = parameter("auto", MARGINAL)
    penalty: float | str = parameter("auto", PENALTY)
    max_steps: int | None = parameter(None, Number(1, integer=True, optional=True))
    validation_fraction: float = parameter(0.1, SHARE)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    device: str = parameter("auto", DEVICE)
    random_state: Any = parameter(None, Seed())

    def _fit(self, data: TrainingSet, *, start: DNNCGM | None = None) -> ArchetypeField:
        seed, inputs = data.streams.root, data.inputs
        if start is None:
            # Rows were dropped or filled in, and that was said, once: the network gets what is left.
            # Its groups are the user's own labels, as codes of codes would hold out other rows than we do.
            network = self._make_network(seed, len(inputs.node_names))
            X = node_table(inputs, slice(None))
            self.network_ = network.fit(X, inputs.Z, groups=data.groups, additive=False, **own_tables(data))
        else:
            self.network_ = _checked_start(start, inputs)
        field = self.network_.field_
        assert isinstance(field, NeuralField)
        found, samples = self._find(field, data)
        shares = shares_of(found.gate, samples)[: len(data.X)].double().cpu().numpy()
        order = np.argsort(-shares.mean(axis=0), kind="stable")
        self.mean_shares_, self.penalty_ = shares.mean(axis=0)[order], found.penalty
        self.held_out_ = pd.DataFrame(found.table)
        matrices = found.matrices.cpu()[order]
        precision = np.einsum("nr,rj->nj", shares[:, order], matrices.diagonal(dim1=1, dim2=2).numpy())
        residual_scale = field.common.scaler.scale * np.sqrt((1 / precision).mean(axis=0))
        known = field.common
        common = Common(known.schema, known.scaler, residual_scale, known.scales)
        return ArchetypeField(common, found.gate.cpu(), torch.as_tensor(order), matrices, field.mean)

    def shares(self, Z: Any) -> pd.DataFrame:
        """How much of each archetype the network at each row of Z has; rows sum to one."""
        field = self._mixture
        return pd.DataFrame(field.shares_at(field.rows(Z)), columns=self.archetype_names_)

    def log_likelihood(self, X: Any, Z: Any) -> NDArray[np.float64]:
        """Log-density of each row of node values given its covariates, (n,).

        With ``marginals_`` "normal" it is the density of the transformed nodes.
        """
        field = self._mixture
        x_frame, z_frame = match_rows(field, X, Z)
        check_complete(x_frame, z_frame)
        rows = field.encode(z_frame)
        values = torch.as_tensor(field.standardize(read_values(field, x_frame), rows))
        constant = field.n_nodes * np.log(2 * np.pi) + 2 * np.log(field.units_at(rows)).sum(axis=1)
        shares = torch.as_tensor(field.shares_at(rows))
        return -(row_losses(field.matrices, shares, values).numpy() + constant) / 2

    def sample(self, Z: Any, random_state: Any = None) -> NDArray[np.float64]:
        """Draw node values for each row of Z from the fitted model, (n, p), in the user's units."""
        field = self._mixture
        here = field.at(field.rows(Z))
        noise = np.random.default_rng(root_seed(random_state)).standard_normal((len(here), field.n_nodes))
        drawn, start = np.empty_like(noise), 0
        for _, precision in field.mixed(here.at):
            rows = slice(start, start + len(precision))
            root = np.linalg.cholesky(precision)
            drawn[rows] = np.linalg.solve(root.swapaxes(1, 2), noise[rows, :, None])[..., 0]
            start = rows.stop
        values, scores = drawn * here.units + here.offsets, field.schema.scores
        return values if scores is None else scores.restore(values)

    @property
    def _mixture(self) -> ArchetypeField:
        check_is_fitted(self)
        return self._known().of_kind(ArchetypeField)

    @property
    def marginals_(self) -> str:
        return self.network_.marginals_

    @property
    def marginal_check_(self) -> MarginalCheck | None:
        return self.network_.marginal_check_

    @property
    def n_archetypes_(self) -> int:
        return len(self._mixture.matrices)

    @property
    def archetypes_(self) -> NDArray[np.float64]:
        scale = self.field_.common.scaler.scale
        return self._mixture.matrices.numpy() / scale[:, None] / scale

    @property
    def archetype_names_(self) -> list[str]:
        letters = string.ascii_uppercase
        names = [*letters, *(a + b for a in letters for b in letters)]
        return names[: self.n_archetypes_]

    def _make_network(self, seed: int, n_nodes: int) -> DNNCGM:
        """The model that says which rows have a network in common."""
        shared = ("hidden_size", "dropout", "center", "marginals", "max_steps", "validation_fraction")
        params = {name: getattr(self, name) for name in (*shared, "missing", "unknown", "device")}
        rank: int | str = "auto"
        if not isinstance(self.n_archetypes, str):
            asked = int(self.n_archetypes)
            rank = max(asked, min(2 * asked, MAX_PATTERN_COLUMNS // n_nodes))
        return DNNCGM(rank=rank, random_state=seed, **params)

    def _find(self, field: NeuralField, data: TrainingSet) -> tuple[ArchetypeFit, Samples]:
        """Gate and archetypes, from the shares in which ``field`` mixes its patterns at these rows."""
        device = resolve_device(self.device)
        own = [] if data.own is None else [data.own[:2]]
        values = [field.standardize(X, field.encode(Z)) for X, Z in [(data.X, data.Z), *own]]
        encoded = data.encode(field.schema.encoder)
        samples = make_samples(np.concatenate(values), encoded, device)
        split = data.split(self.validation_fraction)
        train, held_out = (torch.as_tensor(part, device=device) for part in split)
        task = ArchetypeTask(
            samples,
            train,
            held_out,
            data.streams["edge weights"],
            None if isinstance(self.n_archetypes, str) else int(self.n_archetypes),
            None if isinstance(self.penalty, str) else float(self.penalty),
            train if data.own is not None else torch.cat([train, held_out]),
        )
        patterns = evaluate_shares(field.network, encoded, device)
        training = gate_training(self.network_, len(train))
        return fit_archetypes(task, patterns, field.network.config, training), samples

    def _findings(self) -> list[str]:
        if self.n_archetypes_ == 1:
            return ["One archetype was kept: one graph for everybody."]
        named = zip(self.archetype_names_, self.mean_shares_, strict=True)
        shares = ", ".join(f"{name} {share:.0%}" for name, share in named)
        mixed = f"The graph mixes {self.n_archetypes_} archetypes (mean shares {shares})"
        return [f"{mixed}; penalty {self.penalty_:.3g}."]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "archetypes": self.n_archetypes_,
            "mean_shares": [float(share) for share in self.mean_shares_],
            "penalty": float(self.penalty_),
        }

    def _get_learned(self) -> State:
        header, own = pack_model(self.network_)
        arrays = {f"network/{name}": array for name, array in own.items()}
        learned = {"penalty": self.penalty_, "held_out": self.held_out_.to_dict("list")}
        return {"network": header, **learned}, {**arrays, "mean_shares": self.mean_shares_}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        network = unpack_model(state["network"], arrays.below("network/"))
        if not isinstance(network, DNNCGM) or network.node_names_ != self.node_names_:
            state["network"].refuse("a DNNCGM of the same nodes", type(network).__name__)
        if network.encoder_.to_state() != self.encoder_.to_state():
            state["network"]["field"]["schema"]["encoder"].refuse("that of the whole model")
        scores = network.field_.schema.scores
        if (scores is None) != (self.field_.schema.scores is None):
            state["network"].refuse("one of normal scores if the whole model is, and only then", "another")
        self.network_ = network
        self.penalty_ = state["penalty"].number(0)
        self.held_out_ = pd.DataFrame(state["held_out"].columns())
        self.mean_shares_ = arrays.read("mean_shares", (self.n_archetypes_,), low=0, high=1)


def _checked_start(start: Any, inputs: Inputs) -> DNNCGM:
    """A copy, so that the user's model stays as it is."""
    if not isinstance(start, DNNCGM) or not hasattr(start, "field_"):
        raise ParameterError.of(
            "start", f"must be a fitted DNNCGM, got {type(start).__name__} (not fitted?)."
        )
    if start.rank_ is None:
        raise ParameterError.of(
            "start",
            "must be a DNNCGM that mixes patterns, but this one has rank=None, was fitted where "
            "patterns are not possible, or to few rows, which preferred edges that follow single "
            "covariates (fit it with additive=False). Fit without start.",
        )
    start.field_.schema.match_nodes(node_table(inputs, slice(None)))
    start.field_.schema.match_covariates(inputs.Z)
    return copy.deepcopy(start)
