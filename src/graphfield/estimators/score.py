"""ScoreCGM: edges of any shape, by conditional score matching."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.covariates import features
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.data.splits import cross_parts
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import with_row_scale
from graphfield.estimators.dnncgm_setup import STREAMS, read_training_columns, trained_seeds
from graphfield.estimators.neural import DEVICE, covariate_shape, make_samples
from graphfield.estimators.neural_field import NeuralMean
from graphfield.estimators.neural_fit import take_out_levels
from graphfield.estimators.parameters import (
    CENTER,
    MISSING,
    SHARE,
    UNKNOWN,
    Choice,
    Number,
    Seed,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.score_edges import score_threshold
from graphfield.estimators.score_field import DEGREES, ScoreField
from graphfield.estimators.training_jobs import Job
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, check_choice
from graphfield.fields import GraphField, Schema
from graphfield.fields.base import Common, State
from graphfield.graphs.threshold import Threshold
from graphfield.nn.energies import EnergyConfig
from graphfield.nn.fields import Samples
from graphfield.training.config import TrainingConfig, default_batch_size, default_max_steps, resolve_device
from graphfield.training.energy_fit import EnergyFit, EnergyTask, fit_energies

# Of a fit with that many nodes, the products of all terms of pairs take 2 GB.
MAX_NODES = 150
_MEAN_RATE, _MEAN_EVALUATIONS = 2e-3, 40


@hyper_parameters
class ScoreCGM(GraphEstimator):
    """Edges of any shape: second derivatives of a log-density of the nodes that moves with z.

    ``Omega_jk(z) = E[(d_j d_k log p(x | z))^2]`` is zero exactly where j and k are independent given z and
    all other nodes, whatever the shape of their dependence (Baptista et al. 2024; Zheng et al. 2023). The
    log-density has terms of single nodes and of pairs,
    ``sum_jm c_jm(z) h_m(x_j) + sum_jk sum_ml theta_jkml(z) h_m(x_j) h_l(x_k)`` with Hermite polynomials h of
    normal scores, and its coefficients are the outputs of a network of z. They are found by score matching
    (Hyvarinen 2005): the slopes of the log-density are fitted to the rows, and no density has to be
    integrated. First a convex problem with a penalty on pairs finds which pairs have terms at all; pairs that
    clearly move with z join them; then the network learns how those that stand clear of their noise move, as
    far as held-out rows like it.

    Use it where edges may be no lines, as in ``x_j = x_k^2 + noise``. Where they are, the coefficients of
    :class:`DNNCGM` say more.

    Parameters
    ----------
    degree : "auto" or int from 2 to 4
        Of the terms of pairs, ``m + l``: 2 is a product of both nodes (a Gaussian graph of the scores), 3 has
        squares times the other node, 4 also cubes and squares times squares. "auto" takes the smallest
        within one standard error of the best on held-out rows.
    hidden_size : int
        Units of the network that moves the coefficients with z.
    dropout : float in [0, 1)
        Share of hidden units silenced in a step.
    center : {"covariates", "constant", "none"}
        Subtract a mean mu(z) that may move with z, and divide by scales that may (each kept only where
        held-out rows support it), one mean per node, or nothing.
    marginals : {"normal", "raw"}
        Normal scores of the nodes, or the nodes as they are, whose polynomials follow outliers.
    max_steps : int, optional
        Gradient steps of the network; by default 400.
    validation_fraction : float in (0, 1)
        Share of rows (or groups) held out.
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
    degree_ : int
        Degree in use.
    penalty_ : float
        Of the convex problem, chosen on held-out rows.
    pairs_ : list of tuple of str
        Pairs that have terms.
    moves_ : bool
        Whether the network was kept; otherwise coefficients are the same at all z.
    degrees_ : DataFrame
        Degrees that were tried: ``degree``, ``held_out_loss``, ``still_loss`` (of coefficients that stay
        the same over z), ``pairs``, ``penalty``.
    training_ : DataFrame
        Loss curve of the network: step, train_loss, held_out_loss, learning_rate.

    Notes
    -----
    Edge weights are ``sqrt(Omega_jk) / (Omega_jj Omega_kk)^(1/4)``, at most 1: of a Gaussian density, the
    size of the partial correlation. The mean in Omega is over independent standard normal nodes. Signs are
    those of the term ``x_j x_k`` and mean little where other terms are larger. ``predict_coef`` gives
    coefficients that lines of the same strength would have. ``predict`` does not use them: it is the mean of
    each node given the others under the fitted density. Memory grows with the cube of the number of nodes,
    of which there may be 150.

    Examples
    --------
    >>> import graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> X[:, 1] += X[:, 0] ** 2
    >>> model = gf.ScoreCGM(center="constant", max_steps=20, random_state=0)
    >>> model = model.fit(X, rng.normal(size=(300, 1)))
    >>> model.pairs_[0]
    ('x1', 'x2')
    """

    _streams = STREAMS

    degree: int | str = parameter("auto", Number(DEGREES[0], DEGREES[-1], integer=True, auto=True))
    hidden_size: int = parameter(64, Number(1, integer=True))
    dropout: float = parameter(0.3, Number(0, 1, open_high=True))
    center: str = parameter("covariates", CENTER)
    marginals: str = parameter("normal", Choice(("normal", "raw")))
    max_steps: int | None = parameter(None, Number(1, integer=True, optional=True))
    validation_fraction: float = parameter(0.1, SHARE)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    device: str = parameter("auto", DEVICE)
    random_state: Any = parameter(None, Seed())

    def _fit(self, data: TrainingSet) -> ScoreField:
        _check_nodes(data)
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        scores, _ = data.choose_scores(schema.encoder, self.marginals)
        schema = schema.with_scores(scores)
        units = NodeScaler.learn(data.X, center=self.center != "none", scale=True)
        encoded, device = data.encode(schema.encoder), resolve_device(self.device)
        change = None if scores is None else scores.transform
        samples = make_samples(units.transform(data.all_nodes, np.float32, change), encoded, device)
        job, W = self._job(schema, data, device), features(schema.encoder, encoded)
        moving = W if self.center == "covariates" else None
        (mean,), (left,), (scales,), samples = take_out_levels(
            [job], samples, _mean_training(len(job.rows)), self.center, None, moving
        )
        scaler = units
        if left is not None:
            scaler = NodeScaler(units.center, units.scale * left.cpu().numpy())
        found = self._match_scores(job, samples, W)
        common = Common(schema, scaler, scaler.scale.copy(), scales)
        field = ScoreField(common, found.network.cpu(), NeuralMean.of(mean, units))
        return with_row_scale(field, data.X, field.encode(data.Z))

    def _job(self, schema: Schema, data: TrainingSet, device: torch.device) -> Job:
        split = data.split(self.validation_fraction)
        train, held_out = (torch.as_tensor(part, device=device) for part in split)
        parts = tuple(torch.as_tensor(part, device=device) for part in cross_parts(split[0], data.labels))
        config = EnergyConfig(
            n_nodes=schema.n_nodes,
            covariates=covariate_shape(schema.encoder),
            network="residual",
            sharing="all",
            hidden_size=int(self.hidden_size),
            dropout=float(self.dropout),
            batch_norm=True,
            loss="squared",
            penalty=0.0,
        )
        own, seeds = data.own is not None, trained_seeds(data.streams)
        return Job(config, train, held_out, *seeds, None, True, parts, None, own, data.labels)

    def _match_scores(self, job: Job, samples: Samples, W: NDArray) -> EnergyFit:
        assert isinstance(job.config, EnergyConfig)
        task = EnergyTask(
            job.config,
            samples,
            _moving_features(W, samples.x.device),
            job.rows,
            job.held_out,
            job.edge_seeds,
            DEGREES if isinstance(self.degree, str) else (int(self.degree),),
            self.max_steps,
        )
        found = fit_energies(task)
        self.penalty_, self.moves_ = found.penalty, found.moves
        self.degrees_, self.training_ = pd.DataFrame(found.tried), pd.DataFrame(found.curve)
        return found

    def predict_effect(self, Z: Any, source: str, target: str) -> pd.DataFrame:
        """The curve of an edge: the mean of node ``target`` over values of node ``source``, at each row of Z.

        All other nodes are at their means there.

        Returns
        -------
        DataFrame
            ``sample`` (position of the row in Z), ``source_value`` and ``effect``, both in the user's units;
            21 values within two standard deviations for each row.
        """
        field = self._field().of_kind(ScoreField)
        places = [
            _find_node(name, role, self.node_names_)
            for name, role in ((source, "source"), (target, "target"))
        ]
        return field.effects(field.rows(Z), *places)

    def _find_threshold(self, field: GraphField, data: TrainingSet) -> Threshold:
        return score_threshold(field.of_kind(ScoreField), data)

    @property
    def _energies(self) -> EnergyConfig:
        return self._known().of_kind(ScoreField).network.config

    @property
    def degree_(self) -> int:
        return self._energies.degree

    @property
    def marginals_(self) -> str:
        return "raw" if self._known().schema.scores is None else "normal"

    @property
    def pairs_(self) -> list[tuple[str, str]]:
        names = self.node_names_
        return [(names[j], names[k]) for j, k in self._energies.pairs]

    def _findings(self) -> list[str]:
        course = "move with the covariates" if self.moves_ else "are the same for all covariates"
        pairs = (
            f"{len(self.pairs_):,} pairs of nodes have terms of degree up to {self.degree_}, which {course}"
        )
        return [f"{pairs}; penalty {self.penalty_:.3g}."]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "degree": self.degree_,
            "pairs": len(self.pairs_),
            "moves": self.moves_,
            "penalty": self.penalty_,
        }

    def _get_learned(self) -> State:
        tables = {"degrees": self.degrees_.to_dict("list"), "training": self.training_.to_dict("list")}
        return {"penalty": self.penalty_, "moves": self.moves_, **tables}, {}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:  # noqa: ARG002
        self.penalty_, self.moves_ = state["penalty"].number(0), state["moves"].flag()
        self.degrees_ = pd.DataFrame(state["degrees"].columns())
        self.training_ = pd.DataFrame(read_training_columns(state["training"]))


def _check_nodes(data: TrainingSet) -> None:
    p = data.X.shape[1]
    if p > MAX_NODES:
        raise DataError(
            f"ScoreCGM looks at all pairs of nodes beside each node, for which {MAX_NODES} nodes have room, "
            f"but X has {p}. Use DNNCGM, or fewer nodes."
        ).about(argument="X")


def _find_node(name: str, role: str, names: list[str]) -> int:
    check_choice(role, name, names)
    return names.index(name)


def _mean_training(n_train: int) -> TrainingConfig:
    steps = default_max_steps(n_train)
    return TrainingConfig(
        default_batch_size(n_train),
        steps,
        steps // 3,
        max(1, steps // _MEAN_EVALUATIONS),
        _MEAN_RATE,
        "cosine",
        20,
    )


def _moving_features(W: NDArray[np.float64], device: torch.device) -> Tensor:
    """Features of z and their squares, without the constant, each with mean 0 and variance 1."""
    both = np.concatenate([W[:, 1:], np.square(W[:, 1:])], axis=1)
    both = both - both.mean(axis=0)
    spread = both.std(axis=0)
    both = both[:, spread > 1e-6] / spread[spread > 1e-6]
    return torch.as_tensor(both, dtype=torch.float32, device=device)
