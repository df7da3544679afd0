"""DNN-CGM: coefficients beta_jk(z) as a neural network of the covariates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphfield.data.edge_features import FEATURES
from graphfield.data.nodes import NodeScaler
from graphfield.data.splits import cross_parts
from graphfield.estimators.dnncgm_setup import (
    STREAMS,
    check_together,
    choose_way,
    chosen_penalty,
    field_config,
    problem_of,
    scale_features,
    trained_seeds,
    training_config,
    wanted_marginals,
)
from graphfield.estimators.inputs import root_seed
from graphfield.estimators.neural import DEVICE, NETWORKS, make_samples
from graphfield.estimators.neural_estimator import NeuralEstimator
from graphfield.estimators.neural_families import ColumnRows, check_options, check_way, fit_columns
from graphfield.estimators.neural_field import NeuralField, NeuralMean
from graphfield.estimators.neural_fit import Fitted, fit_fields
from graphfield.estimators.parameters import (
    CENTER,
    MARGINAL,
    MISSING,
    NODE_TYPE,
    PENALTY,
    UNKNOWN,
    Choice,
    Custom,
    Flag,
    Number,
    Seed,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_jobs import Job, StartingPoint
from graphfield.estimators.training_set import Streams, TrainingSet
from graphfield.estimators.ways import Way
from graphfield.fields import Schema
from graphfield.fields.base import Common, GraphField
from graphfield.nn.fields import SHARING
from graphfield.nn.losses import LOSSES
from graphfield.nn.processes import current, shared_work
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import Schedule, check_schedule, resolve_device


@hyper_parameters
class DNNCGM(NeuralEstimator):
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
        Subtract a mean mu(z) that may move with z (kept only where rows that it was found without support
        it), one mean per node, or nothing. With "covariates", nodes are also divided by scales that may
        move with z (node by node, where held-out rows support it, and with ``standardize``).
    marginals : {"auto", "raw", "normal"}
        Model the nodes as they are, or their normal scores: the normal quantiles of their ranks, stretched
        to the node's own mean and standard deviation. Scores see through any increasing transform of a node
        (skewed values, heavy tails); coefficients, means and residuals are then those of the scores, and
        ``predict`` returns to the node's values. Values beyond those of training count as the nearest of
        them. "auto" takes scores where they predict held-out rows clearly better in a static regression;
        needs 250 rows, and 50 groups where rows belong to groups. It means "raw" with ``center="none"`` or
        ``standardize=False``, and what ``start`` has where there is one.
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
    node_types : "auto" or mapping, default "auto"
        What each node is: "gaussian" (a number), "binary", "categorical", "ordinal" or "count". "auto" reads
        it from the table: booleans, text and pandas categories (ordered ones are ordinal) are levels, numbers
        are numbers; a mapping such as ``{"x3": "count"}`` decides for the columns it names. Where some are no
        numbers, coefficients lead to the log-odds of binary and categorical nodes and the logarithm of
        counts: shares and penalty are chosen by squared errors of standardised design columns (of levels, the
        Brier score), patterns are then those of each node's likelihood. It needs patterns (``rank``), scales
        do not move with z there, and there is no ``start``.
    features : {"linear", "spline", "hermite"}
        How numbers enter the regressions of the others: as they are, or by functions, each with a coefficient
        that moves with z: a natural cubic spline with four degrees of freedom, or polynomials up to the third
        (Hermite's, of the standardised number, flat beyond 3). An edge is as strong as the norm of its
        functions, and has no sign; ``predict_effect`` has its curve. Finds edges such as
        x_j = x_k^2, which lines cannot; costs power where lines would do, and time and memory of three to
        four times as many nodes. As with ``node_types``, it needs patterns.

    Attributes
    ----------
    way_ : str
        Which of the two ways of fitting it was, "patterns" or "full head", and why.
    rank_ : int or None
        Patterns in use.
    additive_ : bool
        Whether edges follow single covariates (a bent line of a number, a value for each level) in place of
        a mixture of patterns: by default where fewer than 200 rows are held out and the others, part by part,
        are predicted better that way.
    penalty_ : float
        Penalty in use.
    variation_ : float
        With patterns, how much of the variation that was found is kept, 0 to 1: as much as predicts held-out
        rows best, less what chance explains. 0 is one graph for all z, found as such: sparse, with its edges
        found again without penalty as far as that predicts better. A full head keeps all of it.
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

    Notes
    -----
    ``fit`` takes four more options: ``start``, a fitted model with the same nodes, covariates, marginals and
    network, at whose weights training begins (yesterday's model, today's rows; it needs fewer ``max_steps``);
    ``additive=False``, to mix patterns even where few rows prefer edges that follow single covariates;
    ``checkpoint``, a folder in which the state of training is kept after every evaluation; and ``resume``, to
    continue the fit that ``checkpoint`` holds (or start it if there is none). The result of a continued fit
    has the same bits as one that was not interrupted. Where fewer than 200 rows (or groups) are held out,
    whether the mean and the graph move is decided by training rows, part by part, by fits without that part
    (a quarter to two thirds more time). Levels of groups are not subtracted with
    ``center="none"`` or own held-out rows.

    Inside a group of ``torch.distributed``, whose processes all call ``fit`` with the same rows, they share
    the work.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=80, random_state=0)
    >>> model = gf.DNNCGM(max_steps=10, random_state=0).fit(sim.X[:, :8], sim.Z)
    >>> model.edge_weights(sim.Z[:2]).shape
    (2, 8, 8)
    """

    _streams = STREAMS
    takes_all_rows = True

    network: str = parameter("residual", Choice(NETWORKS))
    sharing: str = parameter("all", Choice(SHARING))
    hidden_size: int = parameter(64, Number(1, integer=True))
    rank: int | str | None = parameter("auto", Number(1, integer=True, optional=True, auto=True))
    dropout: float = parameter(0.3, Number(0, 1, open_high=True))
    loss: str = parameter("squared", Choice(LOSSES))
    center: str = parameter("covariates", CENTER)
    marginals: str = parameter("auto", MARGINAL)
    standardize: bool = parameter(True, Flag())
    penalty: float | str = parameter("auto", PENALTY)
    learning_rate: float | None = parameter(None, Number(0, open_low=True, optional=True))
    batch_size: int | None = parameter(None, Number(2, integer=True, optional=True))
    max_steps: int | None = parameter(None, Number(1, integer=True, optional=True))
    schedule: Schedule = parameter("cosine", Custom(check_schedule))
    patience: int | None = parameter(20, Number(1, integer=True, optional=True))
    validation_fraction: float = parameter(0.1, Number(0, 1, open_high=True))
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    device: str = parameter("auto", DEVICE)
    random_state: Any = parameter(None, Seed())
    node_types: str | Mapping[str, str] = parameter("auto", NODE_TYPE)
    features: str = parameter("linear", Choice(FEATURES))

    def _learn(self, *arguments: Any) -> tuple[GraphField, TrainingSet]:
        with shared_work():
            return super()._learn(*arguments)

    def _root_seed(self) -> int:
        return current().from_first(lambda: root_seed(self.random_state))

    def _fit(
        self,
        data: TrainingSet,
        *,
        start: DNNCGM | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        additive: bool = True,
    ) -> GraphField:
        by_columns = data.inputs.types is not None or self.features != "linear"
        if by_columns:
            check_options(self, data, start)
        origin = None if start is None else StartingPoint.of(start)
        check_alike(self, data, origin)
        folder = None
        if checkpoint is not None:
            problem = problem_of(self, data.tables, origin)
            folder = CheckpointFolder(checkpoint, problem, data.streams.root, resume=resume)
            data.streams = Streams(folder.seed, self._streams)
        split = data.split(self.validation_fraction)
        if by_columns:
            return self._fit_columns(data, split, folder, additive=additive)
        (field,) = fit_models([self], [data], [split], origin, folder, additive=additive)
        return field

    def _fit_columns(
        self,
        data: TrainingSet,
        split: tuple[NDArray, NDArray],
        folder: CheckpointFolder | None,
        *,
        additive: bool,
    ) -> GraphField:
        schema, device = self._learn_schema(data, standardize=True, unknown=self.unknown), self.device
        rows = ColumnRows.of(data, schema, self.features, resolve_device(device))
        of_columns, n_train = rows.column_schema, len(split[0])
        way = check_way(choose_way(self, of_columns, n_train, additive=additive), self)
        job = self._job(of_columns, split, data, rows.samples.x.device, way, None)
        field, edges = fit_columns(job, rows, way, training_config(self, n_train), self.center, folder)
        self._note(edges, way, None)
        return self._placed(field)

    def _check_together(self) -> None:
        check_together(self)

    def _job(
        self,
        schema: Schema,
        rows: tuple[NDArray, NDArray],
        data: TrainingSet,
        device: torch.device,
        way: Way,
        start: StartingPoint | None,
    ) -> Job:
        train, held_out = (torch.as_tensor(part, device=device) for part in rows)
        config = field_config(self, schema, way.rank)
        seeds = trained_seeds(data.streams)
        if start is not None:
            start.check(schema, config)
        parts = tuple(torch.as_tensor(part, device=device) for part in cross_parts(rows[0], data.labels))
        rescale, penalty = bool(self.standardize), chosen_penalty(self)
        own = data.own is not None
        return Job(config, train, held_out, *seeds, start, rescale, parts, penalty, own, data.labels)

    def _take(self, fitted: Fitted, schema: Schema, units: NodeScaler) -> NeuralField:
        """What training found as a field, and the rest as attributes."""
        scaler, edges = units, fitted.edges
        if fitted.left is not None:
            scaler = NodeScaler(units.center, units.scale * fitted.left.cpu().numpy())
        common = Common(
            schema,
            scaler,
            scaler.scale * fitted.scale,
            fitted.scales,
            fitted.residual_scales,
            bool(self.standardize),
        )
        return NeuralField(common, edges.coef, NeuralMean.of(fitted.mean, units), self.device)


def check_alike(model: DNNCGM, data: TrainingSet, start: StartingPoint | None = None) -> None:
    """Raise unless processes that share a fit have the same task, on devices that can exchange tensors."""
    current().check_device(resolve_device(model.device).type)
    current().check_same(lambda: problem_of(model, data.tables, start))


def fit_models(
    models: Sequence[DNNCGM],
    tables: Sequence[TrainingSet],
    splits: Sequence[tuple[NDArray, NDArray]],
    start: StartingPoint | None = None,
    folder: CheckpointFolder | None = None,
    *,
    compete: bool = False,
    additive: bool = True,
) -> list[NeuralField]:
    """The fields of one model or several that train together, which differ in little but their rows."""
    first, data, n_train = models[0], tables[0], max(len(train) for train, _ in splits)
    schema = first._learn_schema(data, standardize=first.standardize, unknown=first.unknown)
    scores, check = data.choose_scores(schema.encoder, wanted_marginals(first, start))
    schema = schema.with_scores(scores)
    # Normal scores have the mean and the standard deviation of their node.
    units = NodeScaler.learn(data.X, center=first.center != "none", scale=first.standardize)
    encoded, device = data.encode(schema.encoder), resolve_device(first.device)
    change = None if scores is None else scores.transform
    samples = make_samples(units.transform(data.all_nodes, np.float32, change), encoded, device)
    way = choose_way(first, schema, n_train, start, additive=additive)
    jobs = [
        model._job(schema, rows, own, device, way, start)
        for model, rows, own in zip(models, splits, tables, strict=True)
    ]
    training, W = training_config(first, n_train), scale_features(first, schema, encoded)
    found = fit_fields(jobs, samples, way, training, first.center, folder, features=W, compete=compete)
    fields = []
    for model, one, own in zip(models, found, tables, strict=True):
        model._note(one.edges, way, check)
        fields.append(model._take(one, schema, units))
        own.judged = fields[-1].with_network(one.edges.judged)
    return fields
