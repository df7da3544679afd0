"""What the words on the command line stand for."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphfield.exceptions import DataError, ParameterError, listing, suggestion

if TYPE_CHECKING:
    from graphfield.estimators.base import GraphEstimator


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def settings(pairs: Sequence[str], estimator: type) -> dict[str, Any]:
    """``--set name=value`` pairs, checked against the estimator's hyper-parameters."""
    known = list(estimator._get_param_names())  # type: ignore[attr-defined]
    chosen = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(f"--set expects name=value, got {pair!r}.")
        if name not in known:
            raise ParameterError(
                f"Unknown hyper-parameter {name!r}.{suggestion(name, known)} Known: "
                f"{listing(known, most=len(known))}."
            )
        chosen[name] = _value(text)
    return chosen


def _value(text: str) -> Any:
    """A Python literal where it is one (numbers, True, None, tuples), else the text itself."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text.lower(), text))
    except (ValueError, SyntaxError):
        return text


def threshold(text: str) -> float | str | None:
    if text == "none":
        return None
    try:
        return text if text == "gap" else float(text)
    except ValueError:
        raise ParameterError(f"--threshold must be a number, 'gap' or 'none', got {text!r}.") from None


def covariate_values(pairs: Sequence[str], model: GraphEstimator) -> dict[str, Any]:
    from graphfield.data.covariates import Numeric

    values: dict[str, Any] = {}
    numeric = {c.name for c in model.encoder_.columns if isinstance(c, Numeric)}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(f"--at expects covariate=value, got {pair!r}.")
        if name in values:
            raise ParameterError(f"--at gives {name!r} twice.")
        values[name] = _number(name, text) if name in numeric else text
    return values


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"Covariate {name!r} is numeric, but --at gives {text!r}.")
    return value
