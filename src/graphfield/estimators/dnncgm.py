"""DNN-CGM: coefficients beta_jk(z) as a neural network of the covariates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from graphfield.data.covariates import UNKNOWN_POLICIES, Encoded
from graphfield.data.frames import Frame, check_same_length, node_values
from graphfield.data.missing import POLICIES, handle_missing
from graphfield.data.nodes import NodeScaler
from graphfield.data.splits import group_labels, hold_out
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import (
    CENTERS,
    Inputs,
    check_flag,
    check_number,
    child_seeds,
    root_seed,
    training_inputs,
)
from graphfield.estimators.neural import (
    covariate_shape,
    evaluate_coef,
    evaluate_mean,
    fingerprint,
    from_arrays,
    make_samples,
    residual_scale,
    to_arrays,
)
from graphfield.estimators.neural_fit import Fitted, Job, StartingPoint, fit_fields, joined
from graphfield.exceptions import DataError, ParameterError, check_choice
from graphfield.nn.backbone import NETWORKS, CovariateShape
from graphfield.nn.fields import SHARING, CoefField, FieldConfig, MeanField, Samples, mean_config
from graphfield.nn.losses import LOSSES
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import (
    Schedule,
    TrainingConfig,
    check_schedule,
    default_batch_size,
    default_max_steps,
    resolve_device,
)

EVALUATIONS = 40  # of the held-out loss in a full run
MAX_WEIGHTS = 2_000_000_000  # of one network: with gradients and Adam's state four times 8 GB


class DNNCGM(GraphEstimator):
    """Covariate-dependent graphical model with neural coefficients.

    On standardised nodes, ``x_j - mu_j(z) = sum_{k != j} beta_jk(z) (x_k - mu_k(z)) + eps_j`` with
    beta (and mu) neural networks of z, fitted by minimising the mean squared error over nodes and
    samples plus a light penalty on the edges. The model of the paper itself is
    ``DNNCGM(center="none", standardize=False, penalty=0)``.

    Parameters
    ----------
    network : {"residual", "mlp", "linear"}
        Form of beta(z): the paper's residual network, two plain hidden layers, or linear in z.
    sharing : {"all", "node", "edge"}
        One network for all edges, one per response node, or one per edge. Less sharing means more
        parameters, slower training and, in the paper's experience, worse graphs.
    hidden_size : int
        Units of the widest layer; more follows faster changes with z and needs more samples.
    rank : int, optional
        One more layer, after which beta(z) mixes this many matrices (and a constant one); by default
        one per hidden unit. Time and memory at large p fall with it.
    dropout : float in [0, 1)
        Share of hidden units silenced in a step; more smooths the graphs over z.
    batch_norm : bool
        In the first block; without it accuracy drops markedly.
    loss : {"squared", "huber"}
        Huber is less drawn to outliers.
    center : {"covariates", "constant", "none"}
        Subtract a mean mu(z) that may move with z (kept only where held-out rows support it), one
        mean per node, or nothing.
    standardize : bool
        Divide nodes and numeric covariates by their standard deviations (undone on output).
    penalty : float
        Added to the loss: ``penalty * sum_k |beta_jk(z)|``, averaged over nodes and samples, so
        that its meaning does not change with n, p or the batch size. More makes sparser graphs;
        0 is the paper's loss.
    learning_rate : float
        Of Adam; the peak of the schedule.
    batch_size : int, optional
        Rows per gradient step; by default 64, 128 from 4,000 rows on, more for long tables.
    max_steps : int, optional
        Gradient steps; by default about 1,000 for 1,000 rows and 5,000 for 10,000.
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
    training_ : DataFrame
        Loss curve: step, train_loss, held_out_loss, learning_rate.
    best_step_, n_steps_ : int
        Step whose weights are kept, and steps taken.
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
        rank: int | None = None,
        dropout: float = 0.3,
        batch_norm: bool = True,
        loss: str = "squared",
        center: str = "covariates",
        standardize: bool = True,
        penalty: float = 0.04,
        learning_rate: float = 2e-3,
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
        self.batch_norm = batch_norm
        self.loss = loss
        self.center = center
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
            Rows with equal labels (one subject) are never split between training and held-out.
        start : DNNCGM, optional
            A fitted model with the same nodes, covariates and network: training begins at its
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
        inputs = training_inputs(X, Z, self.missing)
        labels = group_labels(groups, X)
        seed = root_seed(self.random_state)
        folder = None
        if checkpoint is not None:
            tables = [inputs.X, inputs.Z.values, labels, X_val, Z_val]
            if origin is not None:
                tables += [array.reshape(-1) for array in to_arrays(origin.coef, "start").values()]
            problem = fingerprint(self._problem(), tables)
            folder = CheckpointFolder(checkpoint, problem, seed, resume=resume)
            seed = folder.seed
        self._learn_scales(inputs)
        samples = self._samples(inputs.X, inputs.Z)
        n_train = len(samples)
        if X_val is None:
            rows = self._hold_out(n_train, None if labels is None else labels[inputs.rows], seed)
        else:
            samples = joined(samples, self._own_held_out(X_val, Z_val))
            rows = np.arange(n_train), np.arange(n_train, len(samples))
        job = self._job(rows, samples, seed, origin)
        (fitted,) = fit_fields([job], samples, self._training_config(len(job.rows)), self.center, folder)
        return self._adopt(fitted, job, inputs, seed)

    @property
    def mean_depends_on_covariates_(self) -> bool:
        return self._mean_field is not None

    def _check_parameters(self) -> None:
        check_choice("network", self.network, NETWORKS)
        check_choice("sharing", self.sharing, SHARING)
        check_choice("loss", self.loss, LOSSES)
        check_choice("center", self.center, CENTERS)
        check_choice("missing", self.missing, POLICIES)
        check_choice("unknown", self.unknown, UNKNOWN_POLICIES)
        check_flag("batch_norm", self.batch_norm)
        check_flag("standardize", self.standardize)
        check_number("hidden_size", self.hidden_size, 1, integer=True)
        check_number("dropout", self.dropout, 0, 1, open_high=True)
        check_number("learning_rate", self.learning_rate, 0, open_low=True)
        check_number("rank", self.rank, 1, integer=True, optional=True)
        check_number("penalty", self.penalty, 0)
        check_number("batch_size", self.batch_size, 2, integer=True, optional=True)
        check_number("max_steps", self.max_steps, 1, integer=True, optional=True)
        check_number("patience", self.patience, 1, integer=True, optional=True)
        check_number("validation_fraction", self.validation_fraction, 0, 1, open_high=True)
        check_schedule(self.schedule)
        if self.rank is not None and self.sharing != "all":
            raise ParameterError("rank only applies to sharing='all', where edges share a network.")
        if self.network == "linear" and self.sharing != "all":
            raise ParameterError(
                "sharing only applies to networks with hidden layers; a linear beta(z) has separate "
                "weights for every edge already. Use sharing='all'."
            )

    def _problem(self) -> dict[str, Any]:
        """What decides the result of a fit besides its data; a seed only where the user chose one."""
        params = self.get_params()
        if not isinstance(self.random_state, (int, np.integer)):
            params["random_state"] = None
        return params

    def _learn_scales(self, inputs: Inputs) -> None:
        """Names, the covariate encoder and the scales of the nodes."""
        self._remember(inputs)
        self._learn_covariates(inputs, standardize=self.standardize, unknown=self.unknown)
        self.scaler_ = NodeScaler.learn(inputs.X, center=self.center != "none", scale=self.standardize)

    def _samples(self, X: NDArray, Z: Frame) -> Samples:
        """Rows in standard units, on the device."""
        device = resolve_device(self.device)
        return make_samples(self.scaler_.transform(X, dtype=np.float32), self.encoder_.transform(Z), device)

    def _hold_out(self, n_samples: int, labels: NDArray | None, seed: int) -> tuple[NDArray, NDArray]:
        return hold_out(n_samples, self.validation_fraction, labels, child_seeds(seed, 8)[0])

    def _own_held_out(self, X_val: Any, Z_val: Any) -> Samples:
        x_frame, z_frame = self._match_nodes(X_val), self._match_covariates(Z_val)
        check_same_length(x_frame, z_frame)
        x_frame, z_frame, _ = handle_missing(x_frame, z_frame, self.missing)
        if len(x_frame.values) == 0:
            raise DataError("X_val and Z_val have no rows.")
        return self._samples(node_values(x_frame), z_frame)

    def _job(
        self, rows: tuple[NDArray, NDArray], samples: Samples, seed: int, start: StartingPoint | None = None
    ) -> Job:
        train, held_out = (torch.as_tensor(part, device=samples.x.device) for part in rows)
        config, seeds = self._field_config(), tuple(child_seeds(seed, 8)[2:])
        if start is not None:
            start.check(self, config)
        return Job(config, train, held_out, seeds, start, rescale=bool(self.standardize))

    def _adopt(self, fitted: Fitted, job: Job, inputs: Inputs, seed: int) -> DNNCGM:
        """The results of training as attributes."""
        self._mean_field, self._coef_field = fitted.mean, fitted.coef
        self._mean_scaler = self.scaler_
        if fitted.left is not None:
            left = fitted.left.cpu().numpy()
            self.scaler_ = NodeScaler(self.scaler_.center, self.scaler_.scale * left)
        self.training_ = pd.DataFrame(vars(fitted.training.curve))
        self.n_steps_, self.best_step_ = fitted.training.n_steps, fitted.training.best_step
        self.lost_ = fitted.training.lost
        scale = residual_scale(fitted.coef, fitted.data, job.rows, job.held_out)
        self.residual_scale_ = self.scaler_.scale * scale
        self._set_threshold(self.encoder_.transform(inputs.Z), child_seeds(seed, 8)[1])
        return self

    def _field_config(self) -> FieldConfig:
        config = FieldConfig(
            n_nodes=self.n_features_in_,
            covariates=covariate_shape(self.encoder_),
            network=self.network,
            sharing=self.sharing,
            hidden_size=int(self.hidden_size),
            dropout=float(self.dropout),
            batch_norm=bool(self.batch_norm),
            loss=self.loss,
            penalty=float(self.penalty),
            rank=None if self.rank is None else int(self.rank),
        )
        if config.n_weights > MAX_WEIGHTS:
            raise ParameterError(
                f"{config.n_nodes} nodes with hidden_size={config.hidden_size} and sharing="
                f"{config.sharing!r} make a network of {config.n_weights:.2g} weights, which no memory "
                "holds. Use a smaller hidden_size or rank, and sharing='all'."
            )
        return config

    def _training_config(self, n_train: int) -> TrainingConfig:
        max_steps = int(self.max_steps or default_max_steps(n_train))
        return TrainingConfig(
            batch_size=int(self.batch_size or default_batch_size(n_train)),
            max_steps=max_steps,
            min_steps=max_steps // 3,
            evaluate_every=max(1, max_steps // EVALUATIONS),
            learning_rate=float(self.learning_rate),
            schedule=self.schedule,
            patience=self.patience,
        )

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        device = resolve_device(self.device, fallback=True)
        return self.scaler_.restore_coef(evaluate_coef(self._coef_field, encoded, device))

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
            "training": self.training_.to_dict("list"),
        }
        return state, arrays

    def _set_state(self, state: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        shape = dict(state["field"].pop("covariates"))
        shares = tuple(tuple(column) for column in shape["level_shares"])
        covariates = CovariateShape(shape["n_numeric"], shares)
        config = FieldConfig(covariates=covariates, **state["field"])
        self._coef_field = CoefField(config, torch.Generator())
        from_arrays(self._coef_field, arrays, "coef")
        self._mean_field = None
        self._mean_scaler = NodeScaler(self.scaler_.center, arrays["mean_scale"])
        if state["has_mean"]:
            self._mean_field = MeanField(mean_config(config), torch.Generator())
            from_arrays(self._mean_field, arrays, "mean")
        self.n_steps_, self.best_step_ = state["n_steps"], state["best_step"]
        self.lost_ = state.get("lost", False)
        self.training_ = pd.DataFrame(state["training"])
