"""What a hyper-parameter may be: declared once for each estimator, checked before every fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeVar, dataclass_transform

import numpy as np

from graphfield.data.covariates import UNKNOWN_POLICIES
from graphfield.data.marginals import MARGINALS
from graphfield.data.missing import POLICIES
from graphfield.data.node_types import check_node_types
from graphfield.estimators.inputs import CENTERS, check_flag, check_number, root_seed
from graphfield.exceptions import ParameterError, check_choice, listing, suggestion

T = TypeVar("T")


class Rule(Protocol):
    """Says whether a value makes sense."""

    def check(self, name: str, value: Any) -> None:
        """Raise a ``ParameterError`` that names the parameter and says what it may be."""


@dataclass(frozen=True)
class Number:
    """A number in an interval; None too where it is ``optional``, and "auto" where there is an ``auto``."""

    low: float
    high: float = np.inf
    integer: bool = False
    optional: bool = False
    auto: bool = False
    open_low: bool = False
    open_high: bool = False

    def check(self, name: str, value: Any) -> None:
        check_number(name, value, **vars(self))


@dataclass(frozen=True)
class Choice:
    """One of some words, or None where it is ``optional``."""

    words: Iterable[str]
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        if value is not None or not self.optional:
            check_choice(name, value, list(self.words))


@dataclass(frozen=True)
class WordOrNumber:
    """One of some words, or a number above zero."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        if isinstance(value, str) and value in self.words:
            return
        numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not (numeric and 0 < value < np.inf):
            hint = suggestion(value, self.words) if isinstance(value, str) else ""
            words = f"one of {listing(self.words)}" if len(self.words) > 1 else listing(self.words)
            raise ParameterError.of(name, f"must be {words} or a number above 0, got {value!r}.{hint}")


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, name: str, value: Any) -> None:
        check_flag(name, value)


@dataclass(frozen=True)
class Seed:
    """A whole number that is not negative, a NumPy generator, or None."""

    def check(self, name: str, value: Any) -> None:  # noqa: ARG002
        if not isinstance(value, (np.random.Generator, np.random.RandomState)):
            root_seed(value)  # which draws from a generator


@dataclass(frozen=True)
class Custom:
    """Whatever a function accepts that raises otherwise."""

    function: Callable[[Any], object]

    def check(self, name: str, value: Any) -> None:  # noqa: ARG002
        self.function(value)


# Those that several estimators have.
MISSING, UNKNOWN = Choice(POLICIES), Choice(UNKNOWN_POLICIES)
CENTER, MARGINAL = Choice(CENTERS), Choice(MARGINALS)
SHARE = Number(0, 1, open_low=True, open_high=True)
NODE_TYPE = Custom(check_node_types)
PENALTY = Number(0, auto=True)
COUNT = Number(2, integer=True)


def parameter(default: T, rule: Rule) -> T:
    """A hyper-parameter: a field of a class with :func:`hyper_parameters`."""
    return field(default=default, metadata={"rule": rule})


@dataclass_transform(kw_only_default=True, eq_default=False)
def hyper_parameters(kind: type[T]) -> type[T]:
    """The estimator with a constructor that takes its parameters by name and assigns them, nothing else."""
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(kind)
    made._parameters = {own.name: own.metadata["rule"] for own in fields(made)}
    return made


def check_all(rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise for the first value that its rule does not accept."""
    for name, rule in rules.items():
        rule.check(name, values[name])
