"""DNN-CGM: coefficients beta_jk(z) as a neural network of the covariates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded
from graphfield.data.frames import Frame
from graphfield.data.marginals import NormalScores
from graphfield.data.nodes import NodeScaler, read_scale, row_blocks
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved, optional
from graphfield.data.splits import cross_parts, hold_out
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.dnncgm_setup import (
    check_parameters,
    choose_marginals,
    chosen_penalty,
    field_config,
    own_held_out,
    plans,
    problem_of,
    ranks_to_try,
    read_field_config,
    read_training_columns,
    scale_features,
)
from graphfield.estimators.group_inputs import without_levels
from graphfield.estimators.inputs import (
    HeldOutTable,
    Inputs,
    child_seeds,
    root_seed,
    taken_out,
    training_inputs,
)
from graphfield.estimators.judged_pairs import NewRows
from graphfield.estimators.neural import (
    evaluate_coef,
    evaluate_mean,
    from_arrays,
    make_samples,
    to_arrays,
)
from graphfield.estimators.neural_fit import Fitted, Job, StartingPoint, fit_fields, joined
from graphfield.exceptions import DataError
from graphfield.nn.fields import CoefField, MeanField, Samples, mean_config
from graphfield.solvers.marginal_choice import MarginalCheck
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import Schedule, resolve_device


class DNNCGM(GraphEstimator):
    """Covariate-dependent graphical model with neural coefficients.

    On standardised nodes, ``x_j - mu_j(z) = sum_{k != j} beta_jk(z) (x_k - mu_k(z)) + eps_j`` with
    beta (and mu) neural networks of z, fitted by minimising the mean squared error over nodes and
    samples plus a penalty on the edges. By default beta mixes a few sparse patterns,
    ``beta(z) = sum_r a_r(z) B_r`` with shares ``a(z) = softmax(network(z))``; shares and patterns are
    improved in turn, and how many patterns there are and how sparse they are is chosen on held-out rows.
    The model of the paper itself is
    ``DNNCGM(rank=None, marginals="raw", center="none", standardize=False, penalty=0)``.

    Parameters
    ----------
    network : {"residual", "residual-plain", "mlp", "linear"}
        Form of beta(z): the paper's residual network with the batch norm that its published code has in
        the first block, the same without it (as the paper's text has it; accuracy drops markedly), two
        plain hidden layers, or linear in z.
    sharing : {"all", "node", "edge"}
        One network for all edges, one per response node, or one per edge. Less sharing means more
        parameters, slower training and, in the paper's experience, worse graphs.
    hidden_size : int
        Units of the widest layer; more follows faster changes with z and needs more samples.
    rank : "auto", int or None
        How many patterns (matrices of coefficients) beta(z) mixes, in shares that are the network's
        output. "auto" tries 8, 16 and 32 (with 50 rows or more for each) and keeps what predicts held-out
        rows best (8 where none are held out). None gives every edge its own weights on all hidden units,
        trained step by step as published; so does "auto" with a linear network, with less sharing, with
        another loss, or (with a warning) where 8 patterns do not fit in memory; 1,000 nodes need 3 GB.
    dropout : float in [0, 1)
        Share of hidden units silenced in a step; more smooths the graphs over z.
    loss : {"squared", "huber"}
        Huber is less drawn to outliers.
    center : {"covariates", "constant", "none"}
        Subtract a mean mu(z) that may move with z (kept only where held-out rows support it), one
        mean per node, or nothing. With "covariates", nodes are also divided by scales that may move with
        z (node by node, where held-out rows support it, and with ``standardize``).
    marginals : {"auto", "raw", "normal"}
        Model the nodes as they are, or their normal scores: the normal quantiles of their ranks, stretched
        to the node's own mean and standard deviation. Scores see through any increasing transform of a node
        (skewed values, heavy tails); coefficients, means and residuals are then those of the scores, and
        ``predict`` returns to the node's values. Values beyond those of training count as the nearest of
        them. "auto" takes scores where they predict held-out rows clearly better in a static regression;
        needs 250 rows. It means "raw" with ``center="none"`` or ``standardize=False``, and
        what ``start`` has where there is one.
    standardize : bool
        Divide nodes and numeric covariates by their standard deviations (undone on output).
    penalty : "auto" or float
        Added to the mean squared error of every node, so that its meaning does not change with n, p or
        the batch size: without patterns ``penalty * sum_k |beta_jk(z)|``, averaged over samples; with
        patterns a quarter of it on every coefficient of every pattern and the rest on each edge as a
        whole, all in standard units, which leaves most edges exactly zero. "auto" takes the best of a
        path from the empty graph down, on held-out rows, and at the end takes most of it off the edges that
        are strong, as far as held-out rows like that (without patterns: 0.04). 0 is the paper's loss.
    learning_rate : float, optional
        Of Adam; the peak of the schedule. By default 0.005 with patterns and 0.002 without.
    batch_size : int, optional
        Rows per gradient step; by default 512 with patterns (a quarter of the rows where these are
        few), otherwise 64, 128 from 4,000 rows on, more for long tables.
    max_steps : int, optional
        Gradient steps; by default 600 in each round with patterns, otherwise about 1,000 for 1,000 rows
        and 5,000 for 10,000.
    schedule : "cosine", "constant", ("step", epochs, factor) or ("multistep", epochs, factor)
        Of the learning rate. "cosine" is one cycle with a short warm-up.
    patience : int, optional
        Evaluations without improvement on held-out rows (40 in a full run) before the best weights
        are taken. None runs to the end and keeps the last weights.
    validation_fraction : float in [0, 1)
        Share of rows (or groups) held out when no X_val, Z_val is given.
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
    rank_ : int or None
        Patterns in use.
    penalty_ : float
        Penalty in use.
    variation_ : float
        With patterns, how much of the variation that was found is kept, 0 to 1: as much as predicts held-out
        rows best, less what chance explains. 0 is one graph for all z. A full head keeps all of it.
    training_ : DataFrame
        Loss curve: step, train_loss, held_out_loss, and learning_rate or, with patterns, rank and
        penalty, one line per round.
    best_step_, n_steps_ : int
        Step whose weights are kept, and steps taken.
    marginals_ : str
        "raw" or "normal": what the model speaks of.
    marginal_check_ : MarginalCheck or None
        The comparison behind the choice (``gain``, ``standard_error``); None where none was made.
    mean_depends_on_covariates_ : bool
        Whether a mean that moves with z was kept.
    lost_ : bool
        Whether :func:`fit_together` dropped it in favour of another model.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=80, random_state=0)
    >>> model = gf.DNNCGM(max_steps=30, random_state=0).fit(sim.X, sim.Z)
    >>> model.edge_weights(sim.Z[:2]).shape
    (2, 50, 50)
    """

    def __init__(
        self,
        *,
        network: str = "residual",
        sharing: str = "all",
        hidden_size: int = 64,
        rank: int | str | None = "auto",
        dropout: float = 0.3,
        loss: str = "squared",
        center: str = "covariates",
        marginals: str = "auto",
        standardize: bool = True,
        penalty: float | str = "auto",
        learning_rate: float | None = None,
        batch_size: int | None = None,
        max_steps: int | None = None,
        schedule: Schedule = "cosine",
        patience: int | None = 20,
        validation_fraction: float = 0.1,
        missing: str = "error",
        unknown: str = "error",
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.sharing = sharing
        self.hidden_size = hidden_size
        self.rank = rank
        self.dropout = dropout
        self.loss = loss
        self.center = center
        self.marginals = marginals
        self.standardize = standardize
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.schedule = schedule
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.missing = missing
        self.unknown = unknown
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        Z: Any,
        *,
        X_val: Any = None,
        Z_val: Any = None,
        groups: Any = None,
        start: DNNCGM | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> DNNCGM:
        """Learn z -> beta(z).

        Parameters
        ----------
        X : table of shape (n, p)
            Node values: array, pandas or polars frame.
        Z : table of shape (n, q)
            Covariates, numeric or categorical (text, pandas categoricals, booleans).
        X_val, Z_val : tables, optional
            Own held-out rows; otherwise ``validation_fraction`` of the rows are held out.
        groups : sequence of length n, optional
            Rows with equal labels (one subject) are never split between training and held-out. Levels that
            groups have of their own are subtracted, but not with ``center="none"`` or own held-out rows.
        start : DNNCGM, optional
            A fitted model with the same nodes, covariates, marginals and network: training begins at its
            weights (yesterday's model, today's rows) and needs fewer ``max_steps``.
        checkpoint : path, optional
            Folder in which the state of training is kept after every evaluation.
        resume : bool
            Continue the fit that ``checkpoint`` holds (start it if there is none). The result has
            the same bits as an uninterrupted run.
        """
        self._check_parameters()
        if (X_val is None) != (Z_val is None):
            raise DataError("X_val and Z_val must be given together, or neither.")
        origin = None if start is None else StartingPoint.of(start)
        inputs = training_inputs(X, Z, self.missing, standardize=self.standardize)
        inputs, labels, self.level_check_ = without_levels(
            inputs, groups, X, wanted=self.center != "none" and X_val is None
        )
        seed = root_seed(self.random_state)
        folder = None
        if checkpoint is not None:
            tables = [inputs.X, inputs.Z.values, labels, X_val, Z_val]
            folder = CheckpointFolder(checkpoint, problem_of(self, tables, origin), seed, resume=resume)
            seed = folder.seed
        self._learn_names(inputs)
        self._learn_scales(inputs, choose_marginals(self, inputs, labels, origin))
        samples = self._samples(inputs.X, inputs.Z)
        n_train = len(samples)
        if X_val is None:
            rows = self._hold_out(n_train, labels, seed)
            new = taken_out(inputs, labels, rows[1])
        else:
            new = own_held_out(self, X_val, Z_val)
            samples = joined(samples, self._samples(*new[:2]))
            rows = np.arange(n_train), np.arange(n_train, len(samples))
        ranks = ranks_to_try(self, len(rows[0]), origin)
        job = self._job(rows, labels, samples, seed, ranks, origin)
        training, mixing = plans(self, len(job.rows), ranks)
        W = scale_features(self, samples)
        (fitted,) = fit_fields([job], samples, training, self.center, folder, features=W, mixing=mixing)
        return self._adopt(fitted, inputs, labels, new, seed)

    @property
    def rank_(self) -> int | None:
        return self._coef_field.config.rank

    @property
    def mean_depends_on_covariates_(self) -> bool:
        return self._mean_field is not None

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _learn_names(self, inputs: Inputs) -> None:
        """Nodes by name, and the covariate encoder."""
        self._remember(inputs)
        self._learn_covariates(inputs, standardize=self.standardize, unknown=self.unknown)

    def _learn_scales(
        self, inputs: Inputs, marginals: tuple[NormalScores | None, MarginalCheck | None]
    ) -> None:
        """The marginals and the scales of the nodes."""
        self._scores, self.marginal_check_ = marginals
        self.marginals_ = "raw" if self._scores is None else "normal"
        # Normal scores have the mean and the standard deviation of their node.
        self.scaler_ = NodeScaler.learn(inputs.X, center=self.center != "none", scale=self.standardize)

    def _samples(self, X: NDArray, Z: Frame) -> Samples:
        """Rows in standard units, on the device."""
        values = np.empty(X.shape, dtype=np.float32)
        for rows in row_blocks(*X.shape):
            nodes = X[rows] if self._scores is None else self._scores.transform(X[rows])
            values[rows] = self.scaler_.transform(nodes, dtype=np.float32)
        return make_samples(values, self.encoder_.transform(Z), resolve_device(self.device))

    def _hold_out(self, n_samples: int, labels: NDArray | None, seed: int) -> tuple[NDArray, NDArray]:
        return hold_out(n_samples, self.validation_fraction, labels, child_seeds(seed, 8)[0])

    def _job(
        self,
        rows: tuple[NDArray, NDArray],
        labels: NDArray | None,
        samples: Samples,
        seed: int,
        ranks: tuple[int, ...],
        start: StartingPoint | None = None,
    ) -> Job:
        device = samples.x.device
        train, held_out = (torch.as_tensor(part, device=device) for part in rows)
        config, seeds = field_config(self, ranks), tuple(child_seeds(seed, 8)[2:])
        if start is not None:
            start.check(self, config)
        parts = tuple(torch.as_tensor(part, device=device) for part in cross_parts(rows[0], labels))
        rescale = bool(self.standardize)
        return Job(config, train, held_out, seeds, start, rescale, parts, chosen_penalty(self), labels)

    def _adopt(
        self, fitted: Fitted, inputs: Inputs, labels: NDArray | None, new: HeldOutTable, seed: int
    ) -> DNNCGM:
        """The results of training as attributes; ``new`` rows had no part in it."""
        self._mean_field, self._coef_field = fitted.mean, fitted.coef
        self._scales, self._residual_scales = fitted.scales, fitted.residual_scales
        self._mean_scaler = self.scaler_
        if fitted.left is not None:
            left = fitted.left.cpu().numpy()
            self.scaler_ = NodeScaler(self.scaler_.center, self.scaler_.scale * left)
        self.training_, self.variation_ = fitted.history, fitted.variation
        self.n_steps_, self.best_step_ = fitted.n_steps, fitted.best_step
        self.penalty_, self.lost_ = fitted.penalty, fitted.lost
        self.residual_scale_ = self.scaler_.scale * fitted.scale
        encoded, (X, Z, units) = self.encoder_.transform(inputs.Z), new
        judged, device = fitted.judged or fitted.coef, resolve_device(self.device)
        rows = NewRows(X, self.encoder_.transform(Z), units, lambda z: evaluate_coef(judged, z, device))
        self._set_threshold(inputs.X, encoded, labels, child_seeds(seed, 8)[1], rows)
        return self

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        device = resolve_device(self.device, fallback=True)
        return evaluate_coef(self._coef_field, encoded, device)

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        empty = np.zeros((len(encoded), self.n_features_in_))
        samples = make_samples(empty, encoded, torch.device("cpu"))
        field = self._mean_field.cpu() if self._mean_field is not None else None
        return self._mean_scaler.restore(evaluate_mean(field, samples).numpy().astype(np.float64))

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        arrays = to_arrays(self._coef_field, "coef")
        if self._mean_field is not None:
            arrays |= to_arrays(self._mean_field, "mean")
        arrays["mean_scale"] = self._mean_scaler.scale
        state = {
            "field": asdict(self._coef_field.config),
            "has_mean": self._mean_field is not None,
            "n_steps": self.n_steps_,
            "best_step": self.best_step_,
            "lost": self.lost_,
            "penalty": self.penalty_,
            "variation": self.variation_,
            "marginal_check": None if self.marginal_check_ is None else asdict(self.marginal_check_),
            "training": self.training_.to_dict("list"),
        }
        return state, arrays

    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        weights = arrays.below("coef/")
        config = read_field_config(state["field"], self, weights.n_entries())
        self._coef_field = from_arrays(CoefField, config, weights)
        self._mean_field = None
        mean_scale = read_scale(arrays, "mean_scale", self.n_features_in_)
        self._mean_scaler = NodeScaler(self.scaler_.center, mean_scale)
        if state["has_mean"].flag():
            self._mean_field = from_arrays(MeanField, mean_config(config), arrays.below("mean/"))
        self.n_steps_, self.best_step_ = state["n_steps"].whole(), state["best_step"].whole()
        # Files of earlier versions do not have all of these.
        self.lost_ = optional(state.get("lost"), Saved.flag, False)
        self.penalty_ = optional(state.get("penalty"), lambda value: value.number(0), config.penalty)
        self.variation_ = optional(state.get("variation"), lambda value: value.number(0, 1), 1.0)
        self.marginals_ = "raw" if self._scores is None else "normal"
        self.marginal_check_ = optional(state.known("marginal_check"), MarginalCheck.from_saved, None)
        self.training_ = pd.DataFrame(read_training_columns(state["training"]))
