"""Several kinds of models compared on held-out rows; the best, or an average, is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved, optional
from graphfield.estimators import registry
from graphfield.estimators.auto_candidates import Fits
from graphfield.estimators.auto_choice import (
    AVERAGE,
    TABLE_NUMBERS,
    Choice,
    Judged,
    LeftOut,
    choose,
    no_comparison,
)
from graphfield.estimators.composite import AveragedGraph
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.estimators.one_graph import STATIC
from graphfield.estimators.parameters import (
    MARGINAL,
    MISSING,
    NODE_TYPE,
    SHARE,
    UNKNOWN,
    Custom,
    Flag,
    Seed,
    hyper_parameters,
    parameter,
)
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import ParameterError, check_choice
from graphfield.fields.average import AverageField
from graphfield.fields.average import average as average_of
from graphfield.fields.base import State


def _check_candidates(candidates: Any) -> None:
    if isinstance(candidates, str) and candidates == "auto":
        return
    if not isinstance(candidates, (list, tuple)):
        raise ParameterError.of("candidates", f"must be a list of names or 'auto', got {candidates!r}.")
    known = registry.candidates()
    for name in candidates:
        check_choice("Each of candidates", name, known)
    if len(set(candidates)) < max(1, len(candidates)):
        raise ParameterError.of("candidates", f"must name one or more, each once, got {candidates!r}.")


def _check_device_name(device: Any) -> None:
    if not isinstance(device, str):
        raise ParameterError.of("device", f"must be 'auto', 'cpu' or 'cuda', got {device!r}.")


@hyper_parameters
class AutoCGM(AveragedGraph):
    """Fits several kinds of models, compares them on the same held-out rows, and keeps what is best.

    Each node is predicted from all others; the squared error is divided by that of one graph for
    everybody (the better of a graphical and a nodewise lasso), node by node, and averaged over nodes.
    This judges the edges (and the means that move with z), not the residual variances. The model with
    the smallest error is kept, or a weighted average of models where that is better by more than one
    standard error. Where nothing beats one graph for everybody by more than two standard errors, that
    is what is kept: the covariates do not help.
    What is kept is fitted again to all rows.

    Where some nodes are no plain numbers, errors are deviances of the families of the nodes, "static" is
    :class:`NodewiseLasso`, and candidates that take numbers alone are left out (``held_out_`` says which).

    Parameters
    ----------
    candidates : "auto" or sequence of str
        Some of "static" (:class:`GraphicalLasso` or :class:`NodewiseLasso`, whichever predicts better, means
        linear in z; always compared with), "linear" (:class:`RegGMM` with ``ridge="cv"``), "tree"
        (:class:`TreeCGM`), "dnncgm" (:class:`DNNCGM`), "archetype" (:class:`ArchetypeCGM`), "kernel"
        (:class:`KernelCGM`) and "ensemble" (:class:`Ensemble`: the average of five :class:`DNNCGM`). Their
        order does not matter. "auto" is all of them, "kernel" where there are one or two covariates, no more
        than 60 nodes, all of them plain numbers, and no more than 50,000 rows; "ensemble", in place of
        "dnncgm", where there are no more than 100 nodes, all of them plain numbers, and no more than 20,000
        rows.
    combine : bool, default True
        Whether an average of the candidates may be kept. Its weights minimise the held-out error;
        weights below 0.02 are left out.
    marginals : {"auto", "raw", "normal", "log1p", "clr"}
        What nodes are taken as, for all candidates alike: as they are, normal scores, ``log(1 + x)`` (counts
        with many zeros), or log-ratios (parts of a whole, counts of rows with totals of their own):
        logarithms less the level of the row, the median over nodes of what they are above their means.
        "auto" chooses between the first two as in :class:`DNNCGM`. Edges, coefficients and residuals are
        those of what nodes are taken as; ``predict`` returns to their values.
    validation_fraction : float in (0, 1), default 0.2
        Share of rows (or groups) on which the candidates are compared.
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or the average of the others.
    device : str
        For the neural candidates: "auto" uses CUDA where there is one; "cpu" or "cuda" decide.
    random_state : int, Generator or None
        Decides which rows are held out, and the random states of the candidates.
    node_types : "auto" or mapping, default "auto"
        What nodes are, as in :class:`NodewiseLasso`: "gaussian", "binary", "categorical", "ordinal" or
        "count".

    Attributes
    ----------
    summary_ : str
        What was kept and by how much it is better, in words.
    chosen_ : dict
        Names of the candidates that were kept, with their weights.
    depends_on_covariates_ : bool or None
        Whether what was kept predicts held-out rows better, by two standard errors, than its own graph
        averaged over the training rows; False where one graph for everybody was kept, None where nothing
        could be compared with it.
    marginals_ : str
        "raw", "normal", "log1p" or "clr": what the nodes were taken as.
    held_out_ : DataFrame
        One line per candidate, and one for their best average: ``model``, ``error`` (that of one
        graph for everybody is 1), ``gain`` (1 - ``error``: 0.05 is 5 per cent less),
        ``standard_error`` (of the gain, in the same unit; paired over rows, or groups),
        ``weight`` in what was kept, ``seconds`` to fit and judge it, ``gain_over_own_average`` (what is
        gained because its graph varies, as a share of the error of its average over z), ``note`` (why a
        candidate was left out; the weights of the average).
    members_, weights_ : list of estimators, ndarray
        The models that were kept, fitted to all rows, and their weights.

    Notes
    -----
    A candidate that cannot be fitted, for example because it needs more rows, is left out; ``note`` says
    why. With too few rows or groups to compare anything (less than five held out), one graph for
    everybody is kept and ``summary_`` says so. The weights of the average are chosen on the rows that
    judge it, which flatters it a little; hence the standard error that it must be ahead.

    Examples
    --------
    >>> import graphfield as gf
    >>> rng = np.random.default_rng(0)
    >>> Z, X = rng.uniform(-1, 1, (200, 1)), rng.normal(size=(200, 4))
    >>> X[:, 1] += np.where(Z[:, 0] < 0, -2, 2) * X[:, 0]  # an edge that changes its sign
    >>> model = gf.AutoCGM(candidates=("linear", "tree"), combine=False, random_state=0).fit(X, Z)
    >>> model.chosen_
    {'tree': 1.0}
    >>> model.held_out_.model.tolist()
    ['static', 'linear', 'tree']
    """

    candidates: str | Sequence[str] = parameter("auto", Custom(_check_candidates))
    combine: bool = parameter(True, Flag())
    marginals: str = parameter("auto", MARGINAL)
    validation_fraction: float = parameter(0.2, SHARE)
    missing: str = parameter("error", MISSING)
    unknown: str = parameter("error", UNKNOWN)
    device: str = parameter("auto", Custom(_check_device_name))
    random_state: Any = parameter(None, Seed())
    node_types: str | Mapping[str, str] = parameter("auto", NODE_TYPE)

    def _fit(self, data: TrainingSet) -> AverageField:
        schema = self._learn_schema(data, standardize=True, unknown=self.unknown)
        schema, seen = self._learn_marginals(data, schema, self.marginals)
        seed_of = {name: data.streams[name] for name in registry.candidates()}
        fits = Fits(self, seen, seed_of)
        train, _ = seen.split(self.validation_fraction)
        data.held_out = seen.held_out
        assert seen.new is not None
        rows = HeldOut.of(seen.new)
        if fits.can_compare(train, rows):
            judged, left_out = fits.judge(train, rows)
            choice = self._choose(judged, left_out, rows, fits.named)
        else:
            sizes = fits.n_units(train), rows.n_units
            what = "rows" if data.labels is None else "groups"
            choice = no_comparison(*sizes, float(self.validation_fraction), what)
        self.summary_, self.held_out_ = choice.summary, choice.table
        self.depends_on_covariates_ = choice.varies
        self._names = list(choice.weights)
        return self._average(fits.again(self._names), list(choice.weights.values()), schema, seen.inputs)

    @property
    def chosen_(self) -> dict[str, float]:
        return {name: float(weight) for name, weight in zip(self._names, self.weights_, strict=True)}

    def _check_together(self) -> None:
        self._check_device(fallback=True)

    def _check_machine(self) -> None:
        self._check_device(fallback=False)

    @property
    def _streams(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("split", "gap", *registry.candidates())

    def _check_device(self, *, fallback: bool) -> None:
        """A wrong device is a mistake, no reason to leave candidates out."""
        known = registry.candidates()
        if self.candidates == "auto" or any(known[name].neural for name in self.candidates):
            from graphfield.training.config import resolve_device

            resolve_device(self.device, fallback=fallback)

    def _choose(
        self, judged: list[Judged], left_out: list[LeftOut], rows: HeldOut, names: Sequence[str]
    ) -> Choice:
        """What to keep; an average is judged as the model that it would be."""
        yardstick = Yardstick.of(next(one.residuals for one in judged if one.name == STATIC), rows.units)
        named = [one for one in judged if one.name in names]
        average = None
        if self.combine and len(named) > 1:
            start = time.perf_counter()
            weights = yardstick.weights([one.residuals for one in named])
            fields = [one.field for one in named]
            trial = average_of(fields[0].common, fields, weights)
            if len(trial.members) > 1:
                residuals = rows.residuals(trial)
                of_members = {one.name: float(w) for one, w in zip(named, weights, strict=True) if w > 0}
                of_average = np.tensordot(weights, [one.of_average for one in named], axes=1)
                seconds = time.perf_counter() - start
                average = Judged(AVERAGE, trial, residuals, of_average, seconds), of_members
        of_numbers = judged[0].field.schema.types is None
        return choose(judged, left_out, average, yardstick, "squared error" if of_numbers else "deviance")

    def _findings(self) -> list[str]:
        return [self.summary_]

    def facts(self) -> dict[str, Any]:
        held_out = json.loads(self.held_out_.to_json(orient="records"))
        return super().facts() | {"summary": self.summary_, "chosen": self.chosen_, "held_out": held_out}

    def _get_learned(self) -> State:
        state, arrays = super()._get_learned()
        text = {name: self.held_out_[name].tolist() for name in ("model", "note")}
        arrays["held_out"] = self.held_out_[TABLE_NUMBERS].to_numpy(dtype=np.float64)
        learned = {"names": self._names, "summary": self.summary_, "varies": self.depends_on_covariates_}
        return {**state, **learned, "held_out": text}, arrays

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        super()._set_learned(state, arrays)
        self._names, self.summary_ = state["names"].names(), state["summary"].text()
        if len(self._names) != len(self.members_) or not set(self._names) <= set(registry.candidates()):
            state["names"].refuse(f"the names of the {len(self.members_)} candidates that were kept")
        self.depends_on_covariates_ = optional(state.known("varies"), Saved.flag, None)
        models = state["held_out"]["model"].texts()
        notes = state["held_out"]["note"].texts(len(models), len(models))
        numbers = arrays.read("held_out", (len(models), len(TABLE_NUMBERS)), nan=True)
        self.held_out_ = pd.DataFrame(numbers, columns=TABLE_NUMBERS)
        self.held_out_.insert(0, "model", models)
        self.held_out_["note"] = notes
