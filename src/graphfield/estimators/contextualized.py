"""Markov networks of the package contextualized-ml, where it is installed, as an estimator of this one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import with_row_scale
from graphfield.estimators.neural import DEVICE
from graphfield.estimators.parameters import (
    COUNT,
    MISSING,
    SHARE,
    UNKNOWN,
    Number,
    Seed,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import MissingDependencyError, TrainingError, check_package
from graphfield.fields.base import Common, State
from graphfield.fields.encoded import EncodedField, Layer
from graphfield.training.config import resolve_device

# Epochs without progress on held-out rows after which training ends.
_PATIENCE = 5
_BATCH_ROWS = 64


@hyper_parameters
class ContextualizedCGM(GraphEstimator):
    """Contextualized Markov networks, fitted by the package contextualized-ml.

    ``x_j - c_j(z) = sum_{k != j} B_jk(z) x_k + noise`` with ``B(z) = sum_r u_r(z) (A_r + A_r')``: symmetric
    patterns in amounts u(z) that a network gives (Ellington et al. 2023), as are the intercepts c(z). Its
    own code trains it by squared error, with early stopping on held-out rows; what it found is kept here as
    arrays. So graphs, files, pages, comparisons and tests are those of all estimators, and a saved model
    needs the package no more.

    The package is no dependency: ``pip install contextualized-ml``. It has the licence GPL-3, which a work
    that is given away together with it must follow.

    Parameters
    ----------
    n_archetypes : int
        Patterns that are mixed, as the package has it.
    n_layers : int
        Hidden layers of the network; 0 is linear in the covariates.
    hidden_size : int
        Units of each of them.
    penalty : float
        Weight of the absolute coefficients (its ``alpha``, with ``l1_ratio`` 1 and ``mu_ratio`` 0).
    learning_rate : float
        Of its optimiser.
    max_epochs : int
        Epochs at most; fewer where held-out rows see no progress in five of them. In the package it is 1.
    validation_fraction : float in (0, 1)
        Share of rows (or groups) held out; they end the training and choose its best epoch.
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or the average of the others.
    device : str
        "auto" uses CUDA where there is one; "cpu" or "cuda" decide.
    random_state : int, Generator or None
        A whole number gives the same fit again on the same machine.

    Attributes
    ----------
    n_epochs_ : int
        Epochs that were run.
    validation_loss_ : float
        Squared error of the nodes of held-out rows, in standard units, at the best of them.

    Notes
    -----
    Nodes and numeric covariates are in standard units, categories are one column per level but the first.
    Differs from ``ContextualizedMarkovNetworks`` in batches (64 rows there are 1), the number of epochs, and
    rows held out together by group; ``Ensemble(estimator=gf.ContextualizedCGM(), resample=True)`` is what
    its bootstraps are.

    Examples
    --------
    >>> import graphfield as gf
    >>> model = gf.ContextualizedCGM(n_archetypes=4, random_state=0)
    >>> model.get_params()["n_archetypes"]
    4
    """

    _streams = ("split", "gap", "weights")

    n_archetypes: int = parameter(10, COUNT)
    n_layers: int = parameter(3, Number(0, 30, integer=True))
    hidden_size: int = parameter(25, Number(1, 10_000, integer=True))
    penalty: float = parameter(0.0, Number(0))
    learning_rate: float = parameter(1e-3, Number(0, 1, open_low=True))
    max_epochs: int = parameter(200, COUNT)
    validation_fraction: float = parameter(0.1, SHARE)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    device: str = parameter("auto", DEVICE)
    random_state: Any = parameter(None, Seed())

    def _check_machine(self) -> None:
        check_package("contextualized", None, "ContextualizedCGM", "contextualized-ml")
        try:
            import_module("contextualized.regression")
        except Exception as error:  # what it needs does not fit together, which shows in many ways
            raise MissingDependencyError(
                "ContextualizedCGM needs contextualized-ml, which is installed but cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _fit(self, data: TrainingSet) -> EncodedField:
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        field = EncodedField(Common(schema, scaler, scaler.scale.copy()), [], np.empty(0), np.empty(0))
        rows = field.encode(data.Z)
        known, new = data.split(self.validation_fraction)
        inputs = schema.features(rows)[:, 1:]
        if data.own is not None:
            inputs = np.vstack([inputs, schema.features(field.encode(data.own[1]))[:, 1:]])
        values = scaler.transform(data.all_nodes)
        found = self._train(inputs, values, known, new, data.streams["weights"])
        field = with_row_scale(EncodedField(field.common, *_read_network(found)), data.X, rows)
        data.judged = field
        return field

    def _train(self, inputs: NDArray, values: NDArray, known: NDArray, new: NDArray, seed: int) -> Any:
        """The package's own module, trained by its own trainer."""
        modules: Any = import_module("contextualized.regression.lightning_modules")
        with _quietly(seed), TemporaryDirectory() as folder:
            network = modules.ContextualizedMarkovGraph(
                inputs.shape[1],
                values.shape[1],
                num_archetypes=self.n_archetypes,
                encoder_type="mlp",
                encoder_kwargs={
                    "width": self.hidden_size,
                    "layers": self.n_layers,
                    "link_fn": import_module("contextualized.functions").LINK_FUNCTIONS["identity"],
                },
                learning_rate=self.learning_rate,
                **self._regularizer(),
            )
            trained, judged = (
                network.dataloader(inputs[part], values[part], batch_size=_BATCH_ROWS)
                for part in (known, new)
            )
            best = _trainer(self.max_epochs, resolve_device(self.device), Path(folder))
            best.fit(network, trained, judged)
            self.n_epochs_ = int(best.current_epoch)
            checkpoint = best.checkpoint_callback
            self.validation_loss_ = float(checkpoint.best_model_score)
            if not np.isfinite(self.validation_loss_):
                raise TrainingError(
                    "The training of contextualized-ml came to no finite loss: use a smaller learning_rate."
                )
            network.load_state_dict(torch.load(checkpoint.best_model_path)["state_dict"])
        return network

    def _regularizer(self) -> dict[str, Any]:
        if self.penalty == 0:
            return {}
        made = import_module("contextualized.regression").REGULARIZERS["l1_l2"]
        return {"model_regularizer": made(self.penalty, 1.0, 0.0)}

    def _findings(self) -> list[str]:
        return [f"Trained by contextualized-ml for {self.n_epochs_} epochs."]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"epochs": self.n_epochs_, "validation_loss": self.validation_loss_}

    def _get_learned(self) -> State:
        return {"epochs": self.n_epochs_, "validation_loss": self.validation_loss_}, {}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:  # noqa: ARG002
        self.n_epochs_ = state["epochs"].whole(0)
        self.validation_loss_ = state["validation_loss"].number(0)


def _trainer(max_epochs: int, device: torch.device, folder: Path) -> Any:
    callbacks: Any = import_module("pytorch_lightning.callbacks")
    made: Any = import_module("contextualized.regression.trainers").MarkovTrainer
    return made(
        max_epochs=max_epochs,
        accelerator="gpu" if device.type == "cuda" else "cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            callbacks.EarlyStopping(monitor="val_loss", patience=_PATIENCE, check_finite=True),
            callbacks.ModelCheckpoint(monitor="val_loss", dirpath=folder, save_weights_only=True),
        ],
    )


@contextmanager
def _quietly(seed: int) -> Iterator[None]:
    """Without what Lightning says of itself, and with the random state of others as it was."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning.pytorch")]
    levels = [one.level for one in loggers]
    try:
        for one in loggers:
            one.setLevel(logging.ERROR)
        with torch.random.fork_rng(), warnings.catch_warnings(action="ignore"):
            torch.manual_seed(seed)
            yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


def _read_network(network: Any) -> tuple[list[Layer], NDArray[np.float64], NDArray[np.float64]]:
    """Layers of the encoder, patterns (R, p, p) and intercepts (R, p)."""

    def array(values: Any) -> NDArray[np.float64]:
        return values.detach().cpu().numpy().astype(np.float64)

    linear = [one for one in network.metamodel.context_encoder.mlp if isinstance(one, torch.nn.Linear)]
    layers = [(np.ascontiguousarray(array(one.weight).T), array(one.bias)) for one in linear]
    both = np.moveaxis(array(network.metamodel.explainer.archetypes), -1, 0).copy()  # (R, p, p + 1)
    patterns = both[:, :, :-1] + both[:, :, :-1].swapaxes(1, 2)
    patterns[:, np.arange(patterns.shape[1]), np.arange(patterns.shape[1])] = 0
    return layers, patterns, both[:, :, -1].copy()
