"""Several fits of one estimator, averaged."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.cores import in_processes, offered_workers
from graphfield.data.covariates import UNKNOWN_POLICIES
from graphfield.data.marginals import SKEPTIC
from graphfield.data.missing import POLICIES
from graphfield.data.node_types import check_node_types
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved, refuse
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import (
    AveragedGraph,
    check_estimator,
    covariate_table,
    given_estimator,
    node_table,
    own_tables,
)
from graphfield.estimators.inputs import Inputs, child_seeds, root_seed
from graphfield.estimators.parameters import COUNT, Choice, Custom, Flag, Seed, hyper_parameters, parameter
from graphfield.estimators.registry import has_curves, trains_together
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import DataError, DataWarning, GraphfieldError, ParameterError, agreed, named
from graphfield.fields.average import AverageField, member_spread
from graphfield.messages import Message

# How often rows of a member are drawn before a node that never varies among them is an error.
_MOST_DRAWS = 10


@hyper_parameters
class Ensemble(AveragedGraph):
    """The average of several fits of one estimator that differ in their random state.

    A fit depends on chance: on the rows it holds out and, for a neural model, on where it starts and the
    order of its steps. An average of a few fits depends on it less and mostly ranks edges better; and
    :meth:`spread` says how much they disagree. Members that are :class:`DNNCGM` train together as one
    computation (:func:`fit_together`), others, and those whose numbers enter by curves (``features``), one
    after the other.

    Parameters
    ----------
    estimator : estimator of graphfield, optional
        Cloned and fitted ``n_members`` times; by default :class:`DNNCGM`. The parameters of one that is
        given can be set as ``estimator__NAME``; its random state is replaced.
    n_members : int, default 5
        Number of fits, at least 2.
    resample : bool, default False
        Fit each member to rows (whole groups where there are groups) drawn with replacement. By default
        all see all rows and differ in their random state only.
    missing : {"error", "drop", "impute"}, optional
        Rows with missing or infinite values: refused, left out, or filled in with a warning. By default
        as the estimator says.
    unknown : {"error", "average"}, optional
        A category at prediction that training did not have: refused, or the average of the others. By
        default as the estimator says.
    random_state : int, Generator or None
        Decides the random states of the members and the rows they draw. A whole number makes the fit
        reproducible.

    Attributes
    ----------
    members_ : list of estimators
        The fitted members.
    weights_ : ndarray of shape (n_members,)
        Their weights, all equal.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=200, random_state=0)
    >>> model = gf.Ensemble(estimator=gf.RegGMM(), n_members=3, resample=True, random_state=0)
    >>> model.fit(sim.X, sim.Z).edge_weights(sim.Z[:2]).shape
    (2, 50, 50)
    >>> model.spread(sim.Z[:2]).shape
    (2, 50, 50)
    """

    estimator: Any = parameter(None, Custom(check_estimator))
    n_members: int = parameter(5, COUNT)
    resample: bool = parameter(False, Flag())
    missing: str | None = parameter(None, Choice(POLICIES, optional=True))  # type: ignore[assignment]
    unknown: str | None = parameter(None, Choice(UNKNOWN_POLICIES, optional=True))
    random_state: Any = parameter(None, Seed())

    def _fit(self, data: TrainingSet) -> AverageField:
        prototype = self._prototype()
        policy = self.unknown or _setting(prototype, "unknown", "average")
        schema = self._learn_schema(data, standardize=True, unknown=policy)
        # Curves are of nodes as they are; a member says so where it is told otherwise.
        wanted = "raw" if (curves := has_curves(prototype)) else _marginals(prototype)
        schema, seen = self._learn_marginals(data, schema, wanted)
        members = [
            _reseeded(clone(prototype), data.streams[f"member {which}"])
            for which in range(int(self.n_members))
        ]
        for member in members:
            if not curves:  # they get scores, where it is to be scores
                own = _settings(member, "marginals")
                member.set_params(**{key: "raw" for key, value in own.items() if value != SKEPTIC})
            if policy == "average":
                member.set_params(**dict.fromkeys(_settings(member, "unknown"), policy))
        rows = None
        if self.resample:
            rows = _drawn_rows(seen.inputs, data.labels, len(members), data.streams["draw"])
        together = schema.types is None and trains_together(prototype)
        fit_some = partial(_fit_some, members, seen, rows, together=together)
        # As many parts as there are workers of the user; otherwise all here.
        parts = np.array_split(np.arange(len(members)), max(1, min(offered_workers(), len(members))))
        members = [member for fitted in in_processes(fit_some, parts) for member in fitted]
        return self._average(members, np.ones(len(members)), schema, seen.inputs, self._drawn)

    @property
    def _drawn(self) -> Literal["seeds", "resamples"]:
        return "resamples" if self.resample else "seeds"

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        super()._set_learned(state, arrays)
        found = self._members_field.drawn
        if found != self._drawn:
            refuse(state.file, "field.own.drawn", repr(self._drawn), repr(found))

    @property
    def _uses_covariates(self) -> bool:  # type: ignore[override]
        return self._prototype()._uses_covariates

    @property
    def _streams(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("draw", "gap", *(f"member {which}" for which in range(int(self.n_members))))

    def spread(self, Z: Any) -> NDArray[np.float32]:
        """Standard deviation of the partial correlations over the members, at each row of Z.

        It says how much fits of the same data disagree: what chance in the fit does to an edge. With
        ``resample=True`` it is a bootstrap standard error of an edge of one member, so it includes
        which rows happened to be in the table. Neither includes the bias of a penalty, which pulls all
        members towards zero alike; where all of them leave an edge out, the spread is zero.

        Returns
        -------
        ndarray of shape (n, p, p), float32
            Symmetric, with a zero diagonal.
        """
        return member_spread(self._field(), Z)

    def _findings(self) -> list[str]:
        drawn = "rows drawn with replacement" if self.resample else "the same rows"
        return [f"The average of {len(self.members_)} fits of {type(self.members_[0]).__name__} to {drawn}."]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"members": len(self.members_), "resampled": self.resample}

    def missing_policy(self) -> str:
        return self.missing or _setting(self._prototype(), "missing", "error")

    @property
    def node_types(self) -> Any:
        """As the estimator says; None where it takes numbers alone."""
        return getattr(self._prototype(), "node_types", None)

    def _check_together(self) -> None:
        if self.node_types is not None:
            check_node_types(self.node_types)

    def single_fit(self) -> GraphEstimator:
        """An unfitted estimator as the members are, for one fit in place of many."""
        own = clone(self)  # a generator that is the random state stays where it is
        single = _reseeded(clone(own._prototype()), root_seed(own.random_state))
        for name in ("missing", "unknown"):
            if getattr(own, name) is not None:
                single.set_params(**dict.fromkeys(_settings(single, name), getattr(own, name)))
        return single

    def _prototype(self) -> GraphEstimator:
        if self.estimator is None:
            from graphfield.estimators.dnncgm import DNNCGM

            return DNNCGM()
        prototype = given_estimator(self.estimator)
        if not self.resample and not _settings(prototype, "random_state"):
            raise ParameterError(
                f"{type(prototype).__name__} has no random_state, so {self.n_members} fits to the same rows "
                "would all be equal. Use resample=True to draw the rows of each member."
            ).about(argument="resample")
        return prototype


def _fit_some(
    members: list[GraphEstimator],
    data: TrainingSet,
    rows: list[NDArray[np.intp]] | None,
    some: NDArray[np.intp],
    *,
    together: bool,
) -> list[GraphEstimator]:
    """Fit these of the members; ``rows`` are those that each has drawn, if any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # said once already, about all rows
        (_fit_together if together else _fit_in_turn)(members, data, rows, some)
    return [members[which] for which in some]


def _fit_together(
    members: list[GraphEstimator],
    data: TrainingSet,
    rows: list[NDArray[np.intp]] | None,
    some: NDArray[np.intp],
) -> None:
    """Members that are DNNCGM, as one computation."""
    from graphfield.estimators.together import fit_together

    X, Z = node_table(data.inputs, slice(None)), covariate_table(data.Z, slice(None))
    own = None if rows is None else [rows[which] for which in some]
    chosen = [members[which] for which in some]
    fit_together(chosen, X, Z, rows=own, groups=data.labels, **own_tables(data))


def _fit_in_turn(
    members: list[GraphEstimator],
    data: TrainingSet,
    rows: list[NDArray[np.intp]] | None,
    some: NDArray[np.intp],
) -> None:
    """Members of any kind."""
    labels = data.labels
    for which in some:
        member = members[which]
        own: slice | NDArray[np.intp] = slice(None)
        groups: Any = labels
        if rows is not None:
            own = rows[which]
            # Copies of one row must not be on both sides of a split inside the member.
            groups = own if labels is None else labels[own]
            # A level that was not drawn is no mistake; one that no row had is reported before.
            member.set_params(**dict.fromkeys(_settings(member, "unknown"), "average"))
        X, Z = node_table(data.inputs, own), covariate_table(data.Z, own)
        try:
            member.fit(X, Z, groups=groups, **own_tables(data))
        except GraphfieldError as error:
            where = f"In member {which + 1} of {len(members)}"
            raise type(error)(Message("{where}: {error}", where=where, error=error.message)) from error


def _settings(model: GraphEstimator, name: str) -> dict[str, Any]:
    """The parameters called ``name``, of the estimator and of estimators inside it."""
    params = model.get_params(deep=True)
    return {key: value for key, value in params.items() if key.split("__")[-1] == name}


def _setting(model: GraphEstimator, name: str, default: str) -> str:
    """The parameter called ``name`` of the estimator or, where it has none, of one inside it."""
    found = _settings(model, name)
    return str(found[min(found, key=lambda key: key.count("__"))]) if found else default


def _marginals(model: GraphEstimator) -> str:
    """What the estimator, or one inside it, makes of the nodes."""
    params = model.get_params(deep=False)
    if not params.get("standardize", True) or params.get("center") == "none":
        return "raw"
    return _setting(model, "marginals", "raw")


def _reseeded(model: GraphEstimator, seed: int) -> GraphEstimator:
    keys = sorted(_settings(model, "random_state"))
    return model.set_params(**dict(zip(keys, child_seeds(seed, len(keys)), strict=True)))


def _drawn_rows(inputs: Inputs, labels: NDArray | None, n_members: int, seed: int) -> list[NDArray[np.intp]]:
    """Rows drawn with replacement for each member; all rows of a group come together.

    Rows in which a node has one value only can make no graph and are drawn again, a few times.
    """
    rng = np.random.default_rng(seed)
    n_rows = len(inputs.X)
    groups = None
    if labels is not None:
        codes = np.unique(labels, return_inverse=True)[1]
        groups = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    drawn = []
    for member in range(n_members):
        for _ in range(_MOST_DRAWS):
            own = _draw(n_rows, groups, rng)
            constant = np.ptp(inputs.X[own], axis=0) == 0
            if not constant.any():
                break
        else:
            names = [name for name, same in zip(inputs.node_names, constant, strict=True) if same]
            raise DataError(
                f"In member {member + 1} of {n_members}: {named('node', names)} "
                f"{agreed(len(names), 'has', 'have')} the same value in all rows that were drawn, "
                f"{_MOST_DRAWS} times over. Leave {agreed(len(names), 'it', 'them')} out, or use "
                "resample=False."
            ).about(column=names[0])
        drawn.append(own)
    return drawn


def _draw(n_rows: int, groups: list[NDArray[np.intp]] | None, rng: np.random.Generator) -> NDArray[np.intp]:
    if groups is None:
        return np.sort(rng.integers(n_rows, size=n_rows))
    chosen = np.sort(rng.integers(len(groups), size=len(groups)))
    return np.concatenate([groups[which] for which in chosen])
