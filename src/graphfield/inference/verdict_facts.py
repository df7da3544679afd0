"""What a verdict rests on: what was fitted, and what was tested."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from graphfield.analysis.rows import FieldLike, covariate_rows, field_of
from graphfield.data.frames import with_columns
from graphfield.estimators.auto_choice import AVERAGE
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields.questions import correlations
from graphfield.numbers import is_significant

# What a permutation test says: correlations follow the covariates, or not; nothing where none was possible or
# none was made.
YES, NO, NOT_KNOWN, NOT_RUN = "yes", "no", "not known", "not run"
# What an Evidence says of a small p-value without a clear gain; a verdict says the same.
WEAK = "weak evidence"
# What held-out rows say of the fitted model; ONE_GRAPH does not move, so there is nothing to say.
BETTER, UNCLEAR, WORSE, ONE_GRAPH, NOT_COMPARED = (
    "better",
    "no clear difference",
    "worse",
    "one graph",
    "not compared",
)
_STILL = 1e-4  # a partial correlation that changes by less does not change
_ROWS, _VALUES = 30, 7  # rows, and values of a covariate, at which a model is asked whether it moves


@dataclass(frozen=True)
class Fitted:
    """What there is to know of a fitted model: whether its graph moves at all, and with what.

    ``kept`` names the kinds of models that :class:`~graphfield.AutoCGM` kept, of ``compared`` ones.
    """

    covariates: tuple[str, ...]
    moves: bool
    unused: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    compared: int = 0

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(name for name in self.covariates if name not in self.unused)

    @classmethod
    def of(cls, model: FieldLike, Z: Any) -> Fitted:
        """Asked at some rows of Z: a covariate that may have any of its values in all of them is not used."""
        field = field_of(model)
        names = tuple(column.name for column in field.schema.encoder.columns)
        everything, rows = covariate_rows(field, Z), covariate_rows(field, Z, _ROWS)
        before = correlations(field, rows)

        def moved(after: NDArray) -> bool:
            return bool(np.abs(after - before).max(initial=0.0) > _STILL)

        def used(name: str) -> bool:
            distinct = everything[name].drop_duplicates()
            by = None if is_numeric_dtype(distinct) else _as_text  # levels may be of several types
            values = distinct.sort_values(key=by).to_list()
            some = np.unique(np.linspace(0, len(values) - 1, _VALUES).round().astype(int))
            others = (with_columns(rows, {name: [values[i]] * len(rows)}) for i in some)
            return any(moved(correlations(field, other)) for other in others)

        with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
            # Rows that nobody has may be outside of what a part of the model has seen: they are only asked.
            unused = tuple(name for name in names if not used(name))
        moves = len(unused) < len(names) or moved(before[:1])
        kept, compared = (), 0
        if hasattr(model, "chosen_") and hasattr(model, "held_out_"):
            kept = tuple(model.chosen_)
            compared = int((model.held_out_["model"] != AVERAGE).sum())
        return cls(names, moves, unused, kept, compared)


def _as_text(values: pd.Series) -> pd.Series:
    return values.astype(str)


class TestedCovariate(Protocol):
    """A line of an :class:`~graphfield.Evidence`."""

    @property
    def name(self) -> str: ...

    @property
    def adjusted_p_value(self) -> float | None: ...

    @property
    def verdict(self) -> str: ...


class TestResult(Protocol):
    """What an :class:`~graphfield.Evidence` has of a test."""

    @property
    def p_value(self) -> float | None: ...

    @property
    def verdict(self) -> str: ...

    @property
    def sentence(self) -> str: ...

    @property
    def caveat(self) -> str: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def per_covariate(self) -> Sequence[TestedCovariate]: ...

    @property
    def together(self) -> Sequence[str]: ...

    @property
    def filled_in(self) -> str: ...

    @property
    def drifting(self) -> Sequence[str]: ...

    @property
    def differences(self) -> str: ...


@dataclass(frozen=True)
class Tested:
    """What is read of an :class:`~graphfield.Evidence`, or of an ``evidence.json``."""

    answer: str = NOT_RUN
    p_value: float | None = None
    n_rows: int = 0
    adjusted: Mapping[str, float | None] | None = None  # p-values of covariates, given the others
    why_not: str = ""  # there was none, in a sentence
    caveat: str = ""
    weak: bool = False  # that they matter together, and covariates that do given the others
    weak_ones: tuple[str, ...] = ()
    together: tuple[str, ...] = ()  # all covariates, of which only some may have been tested one by one
    drifting: tuple[str, ...] = ()  # covariates whose movement may be levels that drift along them
    differences: str = ""  # what differences of neighbouring rows say of that
    filled_in: str = ""  # what filled-in values may have to do with it

    @classmethod
    def of(cls, evidence: TestResult | Mapping[str, Any] | None) -> Tested:
        if evidence is None:
            return cls()
        if isinstance(evidence, Mapping):
            lines = evidence.get("covariates") or []
            p_value, n_rows = evidence.get("p_value"), int(evidence.get("n_rows") or 0)
            adjusted = {str(line.get("name")): line.get("adjusted_p_value") for line in lines}
            words = {str(line.get("name")): line.get("verdict") for line in lines}
            verdict, sentence = str(evidence.get("verdict") or ""), str(evidence.get("sentence") or "")
            caveat, names = str(evidence.get("caveat") or ""), evidence.get("together")
            filled_in, differences = (str(evidence.get(key) or "") for key in ("filled_in", "differences"))
            drifting = tuple(map(str, evidence.get("drifting") or ()))
        else:
            p_value, n_rows, verdict = evidence.p_value, evidence.n_rows, evidence.verdict
            adjusted = {line.name: line.adjusted_p_value for line in evidence.per_covariate}
            words = {line.name: line.verdict for line in evidence.per_covariate}
            sentence, caveat, names = evidence.sentence, evidence.caveat, evidence.together
            filled_in, differences = evidence.filled_in, evidence.differences
            drifting = tuple(evidence.drifting)
        together = tuple(names or adjusted)
        adjusted = dict(sorted(adjusted.items(), key=lambda line: 1.0 if line[1] is None else line[1]))
        if p_value is None or verdict == NOT_KNOWN:
            unknown = cls(NOT_KNOWN, None, n_rows, adjusted, sentence, caveat)
            return replace(
                unknown,
                together=together,
                filled_in=filled_in,
                drifting=drifting,
                differences=differences,
            )
        answer = YES if is_significant(p_value) else NO
        weak_ones = tuple(name for name, word in words.items() if word == WEAK)
        return cls(
            answer,
            p_value,
            n_rows,
            adjusted,
            caveat=caveat,
            weak=verdict == WEAK,
            weak_ones=weak_ones,
            together=together,
            filled_in=filled_in,
            drifting=drifting,
            differences=differences,
        )

    def without(self, known: Sequence[str]) -> Tested:
        """Less the covariates of which it cannot be told, but which are ``known`` to matter otherwise."""
        told = set(known) - set(self.matter)
        left = {name: p for name, p in (self.adjusted or {}).items() if name not in told}
        return replace(self, adjusted=left)

    @property
    def matter(self) -> tuple[str, ...]:
        """Covariates that matter given all others, clearest first; not as if levels did not drift."""
        found = (own for own in (self.adjusted or {}).items() if own[0] not in self.drifting)
        return tuple(name for name, p in found if p is not None and is_significant(p))

    @property
    def undecided(self) -> tuple[str, ...]:
        """Covariates of which it cannot be told."""
        return tuple(name for name in self.adjusted or {} if name not in self.matter)

    @property
    def untested(self) -> tuple[str, ...]:
        """Covariates of which nothing was left to test given the others."""
        return tuple(name for name, p in (self.adjusted or {}).items() if p is None)
