"""Precision matrices that mix a few archetypes: a valid likelihood at every z."""

from __future__ import annotations

import copy
import string
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from graphfield.data.covariates import UNKNOWN_POLICIES, Encoded
from graphfield.data.frames import check_same_length
from graphfield.data.marginals import MARGINALS
from graphfield.data.missing import POLICIES, check_complete
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.data.splits import hold_out
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import node_table
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.dnncgm_setup import MAX_PATTERN_COLUMNS, gate_training
from graphfield.estimators.group_inputs import without_levels
from graphfield.estimators.inputs import (
    CENTERS,
    Inputs,
    check_number,
    child_seeds,
    root_seed,
    training_inputs,
)
from graphfield.estimators.neural import (
    evaluate_mixed,
    evaluate_shares,
    from_arrays,
    make_samples,
    to_arrays,
)
from graphfield.exceptions import ParameterError, check_choice
from graphfield.nn.gates import GateField
from graphfield.training.archetypes import NUMBERS, ArchetypeTask, fit_archetypes
from graphfield.training.config import resolve_device
from graphfield.training.joint_precision import row_losses
from graphfield.training.mixture import shares_of


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

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.ArchetypeCGM(n_archetypes=2, max_steps=30, random_state=0).fit(sim.X[:, :8], sim.Z)
    >>> model.shares(sim.Z[:3]).shape
    (3, 2)
    >>> model.sample(sim.Z, random_state=0).shape
    (300, 8)
    """

    _definite = True

    def __init__(
        self,
        *,
        n_archetypes: int | str = "auto",
        hidden_size: int = 64,
        dropout: float = 0.3,
        center: str = "covariates",
        marginals: str = "auto",
        penalty: float | str = "auto",
        max_steps: int | None = None,
        validation_fraction: float = 0.1,
        missing: str = "error",
        unknown: str = "error",
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_archetypes = n_archetypes
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.center = center
        self.marginals = marginals
        self.penalty = penalty
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.missing = missing
        self.unknown = unknown
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, Z: Any, *, groups: Any = None, start: DNNCGM | None = None) -> ArchetypeCGM:
        """Learn shares and archetypes.

        Parameters
        ----------
        X, Z : tables of shape (n, p) and (n, q)
        groups : sequence of length n, optional
            Rows with equal labels (one subject) are never split between training and held-out.
        start : DNNCGM, optional
            A model that mixes patterns, fitted to the same rows, to begin with in place of one that is
            fitted here. Use the same ``random_state`` and ``validation_fraction`` in both, so that they
            hold out the same rows.
        """
        self._check_parameters()
        inputs = training_inputs(X, Z, self.missing)
        inputs, labels, self.level_check_ = without_levels(inputs, groups, X)
        seed = root_seed(self.random_state)
        self._remember(inputs)
        if start is None:
            # Rows were dropped or filled in, and that was said, once: the network gets what is left.
            # Its groups are the user's own labels, as codes of codes would hold out other rows than we do.
            own = inputs.Z.values if inputs.Z.named else inputs.Z.values.to_numpy()
            kept = None if groups is None else np.asarray(groups, dtype=object)[inputs.rows]
            self.network_ = self._network(seed).fit(node_table(inputs, slice(None)), own, groups=kept)
        else:
            self.network_ = _checked_start(start, X, Z)
        self.encoder_, self.covariate_names_ = self.network_.encoder_, list(self.network_.covariate_names_)
        self.scaler_, self._scores = self.network_.scaler_, self.network_._scores
        self._scales = self.network_._scales
        encoded = self.encoder_.transform(inputs.Z)
        split = hold_out(len(encoded), self.validation_fraction, labels, child_seeds(seed, 8)[0])
        shares = self._find(inputs, encoded, split, seed)
        precision = np.einsum("nr,rj->nj", shares, self._matrices.diagonal(dim1=1, dim2=2).numpy())
        self.residual_scale_ = self.scaler_.scale * np.sqrt((1 / precision).mean(axis=0))
        self._set_threshold(inputs.X, encoded, labels, child_seeds(seed, 8)[1])
        return self

    def shares(self, Z: Any) -> pd.DataFrame:
        """How much of each archetype the network at each row of Z has; rows sum to one."""
        encoded = self._encode(Z)
        parts = [shares for shares, _ in self._mixed(encoded)]
        return pd.DataFrame(np.concatenate(parts), columns=self.archetype_names_)

    def log_likelihood(self, X: Any, Z: Any) -> NDArray[np.float64]:
        """Log-density of each row of node values given its covariates, (n,).

        With ``marginals_`` "normal" it is the density of the transformed nodes.
        """
        check_is_fitted(self)
        x_frame, z_frame = self._match_nodes(X), self._match_covariates(Z)
        check_same_length(x_frame, z_frame)
        check_complete(x_frame, z_frame)
        encoded = self._encode_frame(z_frame)
        values = torch.as_tensor(self._standard(self._values_in_reach(x_frame), encoded))
        constant = self.n_features_in_ * np.log(2 * np.pi) + 2 * np.log(self._unit_at(encoded)).sum(axis=1)
        shares = torch.as_tensor(np.concatenate([part for part, _ in self._mixed(encoded)]))
        return -(row_losses(self._matrices, shares, values).numpy() + constant) / 2

    def sample(self, Z: Any, random_state: Any = None) -> NDArray[np.float64]:
        """Draw node values for each row of Z from the fitted model, (n, p), in the user's units."""
        encoded = self._encode(Z)
        noise = np.random.default_rng(root_seed(random_state)).standard_normal(
            (len(encoded), self.n_features_in_)
        )
        drawn, start = np.empty_like(noise), 0
        for _, precision in self._mixed(encoded):
            rows = slice(start, start + len(precision))
            root = np.linalg.cholesky(precision)
            drawn[rows] = np.linalg.solve(root.swapaxes(1, 2), noise[rows, :, None])[..., 0]
            start = rows.stop
        values = drawn * self._unit_at(encoded) + self._mean_at(encoded)
        return values if self._scores is None else self._scores.restore(values)

    @property
    def marginals_(self) -> str:
        return self.network_.marginals_

    @property
    def n_archetypes_(self) -> int:
        return len(self._matrices)

    @property
    def archetypes_(self) -> NDArray[np.float64]:
        scale = self.scaler_.scale
        return self._matrices.numpy() / scale[:, None] / scale

    @property
    def archetype_names_(self) -> list[str]:
        letters = string.ascii_uppercase
        names = [*letters, *(a + b for a in letters for b in letters)]
        return names[: self.n_archetypes_]

    def _check_parameters(self) -> None:
        check_number("n_archetypes", self.n_archetypes, 1, NUMBERS[-1], integer=True, auto=True)
        check_number("hidden_size", self.hidden_size, 1, integer=True)
        check_number("dropout", self.dropout, 0, 1, open_high=True)
        check_choice("center", self.center, CENTERS)
        check_choice("marginals", self.marginals, MARGINALS)
        check_number("penalty", self.penalty, 0, auto=True)
        check_number("max_steps", self.max_steps, 1, integer=True, optional=True)
        check_number("validation_fraction", self.validation_fraction, 0, 1, open_low=True, open_high=True)
        check_choice("missing", self.missing, POLICIES)
        check_choice("unknown", self.unknown, UNKNOWN_POLICIES)
        resolve_device(self.device, fallback=True)

    def _network(self, seed: int) -> DNNCGM:
        """The model that says which rows have a network in common."""
        shared = ("hidden_size", "dropout", "center", "marginals", "max_steps", "validation_fraction")
        params = {name: getattr(self, name) for name in (*shared, "missing", "unknown", "device")}
        rank: int | str = "auto"
        if not isinstance(self.n_archetypes, str):
            asked = int(self.n_archetypes)
            rank = max(asked, min(2 * asked, MAX_PATTERN_COLUMNS // self.n_features_in_))
        return DNNCGM(rank=rank, random_state=seed, **params)

    def _find(
        self,
        inputs: Inputs,
        encoded: Encoded,
        split: tuple[NDArray[np.intp], NDArray[np.intp]],
        seed: int,
    ) -> NDArray[np.float64]:
        """Set gate and archetypes, most common first; returns the shares of the rows."""
        device, field = resolve_device(self.device), self.network_._coef_field
        x = self._standard(inputs.X, encoded)
        train, held_out = (torch.as_tensor(rows, device=device) for rows in split)
        task = ArchetypeTask(
            make_samples(x, encoded, device),
            train,
            held_out,
            child_seeds(seed, 8)[5],
            None if isinstance(self.n_archetypes, str) else int(self.n_archetypes),
            None if isinstance(self.penalty, str) else float(self.penalty),
        )
        patterns = evaluate_shares(field, encoded, device)
        found = fit_archetypes(task, patterns, field.config, gate_training(self.network_, len(train)))
        shares = shares_of(found.gate, task.data).double().cpu().numpy()
        order = np.argsort(-shares.mean(axis=0), kind="stable")
        self.mean_shares_ = shares.mean(axis=0)[order]
        self._gate = found.gate.cpu()
        self._order = torch.as_tensor(order)
        self._matrices = found.matrices.cpu()[order]
        self.penalty_ = found.penalty
        self.held_out_ = pd.DataFrame(found.table)
        return shares[:, order]

    def _mixed(self, encoded: Encoded) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Shares and precision matrices in standard units, in blocks of rows."""
        return evaluate_mixed(self._gate, self._order, self._matrices, encoded)

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        p = self.n_features_in_
        coef, start = np.empty((len(encoded), p, p), dtype=np.float32), 0
        for _, precision in self._mixed(encoded):
            part = -precision / precision.diagonal(axis1=1, axis2=2)[:, :, None]
            part[:, np.arange(p), np.arange(p)] = 0
            coef[start : start + len(part)] = part
            start += len(part)
        return coef

    def _residual_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        diagonals = [precision.diagonal(axis1=1, axis2=2) for _, precision in self._mixed(encoded)]
        empty = np.empty((0, self.n_features_in_))
        return 1 / np.sqrt(np.concatenate([empty, *diagonals]))

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        return self.network_._mean_at(encoded)

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        from graphfield.estimators.persistence import pack

        header, own = pack(self.network_)
        arrays = {f"network/{name}": array for name, array in own.items()}
        arrays["archetypes"] = self._matrices.numpy()
        arrays["order"] = self._order.numpy()
        arrays |= to_arrays(self._gate, "gate")
        arrays["mean_shares"] = self.mean_shares_
        return {
            "network": header,
            "penalty": self.penalty_,
            "held_out": self.held_out_.to_dict("list"),
        }, arrays

    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        from graphfield.estimators.persistence import unpack

        network = unpack(state["network"], arrays.below("network/"))
        if not isinstance(network, DNNCGM) or network.node_names_ != self.node_names_:
            state["network"].refuse("a DNNCGM of the same nodes", type(network).__name__)
        if network.encoder_.to_state() != self.encoder_.to_state():
            state["network"]["encoder"].refuse("that of the whole model")
        if (network._scores is None) != (self._scores is None):
            state["network"].refuse("one of normal scores if the whole model is, and only then", "another")
        self.network_ = network
        self._set_archetypes(arrays)
        config = replace(network._coef_field.config, rank=len(self._matrices))
        self._gate = from_arrays(GateField, config, arrays.below("gate/"))
        self.penalty_ = state["penalty"].number(0)
        self.held_out_ = pd.DataFrame(state["held_out"].columns())

    def _set_archetypes(self, arrays: SavedArrays) -> None:
        p = self.n_features_in_
        matrices = arrays.read("archetypes", (AtMost(NUMBERS[-1], 1), p, p))
        order = arrays.read("order", (len(matrices),), np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(matrices))):
            arrays.refuse("order", f"the numbers below {len(matrices)} in some order", str(order))
        if not _are_positive_definite(matrices):
            arrays.refuse("archetypes", "positive definite, each of them", "one that is not")
        self._matrices, self._order = torch.from_numpy(matrices), torch.from_numpy(order)
        self.mean_shares_ = arrays.read("mean_shares", (len(matrices),), low=0, high=1)


def _are_positive_definite(matrices: NDArray[np.float64]) -> bool:
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return bool(np.allclose(matrices, matrices.swapaxes(1, 2)))  # which the decomposition does not look at


def _checked_start(start: Any, X: Any, Z: Any) -> DNNCGM:
    """A copy, so that the user's model stays as it is."""
    if not isinstance(start, DNNCGM) or not hasattr(start, "_coef_field"):
        raise ParameterError(f"start must be a fitted DNNCGM, got {type(start).__name__} (not fitted?).")
    if start.rank_ is None:
        raise ParameterError(
            "start must be a DNNCGM that mixes patterns, but this one has rank=None or was fitted where "
            "patterns are not possible. Fit without start."
        )
    start._match_nodes(X)
    start._match_covariates(Z)
    return copy.deepcopy(start)
