"""What the words on the command line stand for."""

from __future__ import annotations

import argparse
import ast
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphfield.estimators.registry import find_estimator, kind_parameters, short_names, takes_node_types
from graphfield.exceptions import DataError, ParameterError, listing, suggestion

if TYPE_CHECKING:
    from graphfield.data.covariates import Categorical, CovariateEncoder, Numeric
    from graphfield.estimators.base import GraphEstimator


def model_name(text: str) -> str:
    """The short name of a model, for it or for the name of its class.

    >>> model_name("tree"), model_name("RegGMM")
    ('tree', 'linear')
    """
    models = short_names()
    short = {kind.lower(): name for name, kind in models.items()}
    name = short.get(text.lower(), text.lower())
    if name not in models:
        known = ", ".join(f"{name} ({kind})" for name, kind in models.items())
        hint = suggestion(text, [*models, *models.values()])
        raise argparse.ArgumentTypeError(f"there is no model {text!r}.{hint} Models are {known}")
    return name


def estimator_class(name: str) -> type[GraphEstimator]:
    kind: type[GraphEstimator] = find_estimator(short_names()[name])
    return kind


def make_model(arguments: argparse.Namespace) -> GraphEstimator:
    """The model that ``fit`` was asked for, with its hyper-parameters; several of them for intervals."""
    kind = estimator_class(arguments.model)
    common = {"missing": arguments.missing, "random_state": arguments.seed}
    common["center"] = "covariates"  # also of one graph for all: nodes that only move together have no edge
    known = {name: value for name, value in common.items() if name in kind.parameter_names()}
    model = kind(**{**known, **settings(arguments.set, kind)})
    if (types := getattr(arguments, "node_types", None)) is not None:
        set_node_types(model, types)
    if not arguments.intervals:
        return model
    if arguments.model == "ensemble":
        raise ParameterError.of(
            "intervals",
            "makes an ensemble itself: name the model of its members, such as --model dnncgm, "
            "and their number with --members.",
        )
    several = {"n_members": arguments.members, "resample": True}
    own = {name: common[name] for name in ("missing", "random_state")}
    return estimator_class("ensemble")(estimator=model, **several, **own)


def set_node_types(model: GraphEstimator, text: str) -> None:
    """``--node-types x3=binary,x5=count``, for a model that takes them, or one inside it that does."""
    if not (keys := kind_parameters(model)):
        able = [short for short, name in short_names().items() if takes_node_types(name)]
        raise ParameterError(
            f"{type(model).__name__} takes numbers alone as nodes, so it has no --node-types. Use --model "
            f"{' or '.join(able)}."
        ).about(argument="node_types")
    model.set_params(**dict.fromkeys(keys, read_kinds(text)))


def chosen_kinds(arguments: argparse.Namespace) -> str | dict[str, str]:
    """What nodes are, for tests: those of ``--node-types``, and what the table says."""
    text = getattr(arguments, "node_types", None)
    return "auto" if text is None else read_kinds(text)


def read_kinds(text: str) -> dict[str, str]:
    """What ``--node-types`` says of columns."""
    chosen: dict[str, str] = {}
    for pair in names(text):
        name, equals, kind = pair.rpartition("=")
        if not equals or not name:
            raise ParameterError.of("node_types", f"expects column=kind, got {pair!r}.")
        if chosen.setdefault(name.strip(), kind.strip()) != kind.strip():
            raise ParameterError(f"--node-types gives {name.strip()!r} twice.").about(
                argument="node_types", column=name.strip()
            )
    return chosen


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def settings(pairs: Sequence[str], estimator: type[GraphEstimator]) -> dict[str, Any]:
    """``--set name=value`` pairs, checked against the estimator's hyper-parameters."""
    known = estimator.parameter_names()
    defaults = inspect.signature(estimator).parameters
    lists = {n for n in known if "Sequence" in str(defaults[n].annotation)}
    chosen = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError.of("set", f"expects name=value, got {pair!r}.")
        if name not in known:
            raise ParameterError(
                f"Unknown hyper-parameter {name!r}.{suggestion(name, known)} Known: "
                f"{listing(known, most=len(known))}."
            ).about(argument=name)
        several = name in lists and text != defaults[name].default
        chosen[name] = _estimator(text) if name == "estimator" else _value(text, several)
    return chosen


def _estimator(text: str) -> GraphEstimator:
    """A model inside another, by its name and as it is by default."""
    try:
        return estimator_class(model_name(text))()
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"--set estimator: {error}.").about(argument="estimator") from error


def _value(text: str, several: bool) -> Any:
    """A Python literal where it is one (numbers, True, None, tuples), else the text itself.

    Where ``several`` values are wanted, words with commas between them do: ``static,tree``.
    """
    try:
        value = ast.literal_eval({"true": "True", "false": "False"}.get(text.lower(), text))
    except (ValueError, SyntaxError):
        value = tuple(names(text.strip("()[]"))) if several else text
    return (value,) if several and not isinstance(value, (tuple, list)) else value


def threshold(text: str) -> float | str | None:
    if text == "none":
        return None
    if text in ("auto", "gap"):
        return text
    try:
        cut = float(text)
    except ValueError:
        cut = math.nan
    if not 0 <= cut <= 1:
        raise ParameterError.of(
            "threshold",
            f"must be 'auto', 'gap', 'none', or a partial correlation, a number from 0 to 1, got {text!r}.",
        )
    return cut


def covariate_values(
    pairs: Sequence[str],
    encoder: CovariateEncoder,
    dates: Mapping[str, str] | None = None,
    option: str = "--at",
) -> dict[str, Any]:
    """``--at name=value`` pairs; ``dates`` are notations in which the fit read dates.

    A number that rows do not reach is warned of here, and refused where graphs are compared.
    """
    from graphfield.analysis.errors import warn_outside
    from graphfield.inference.asked_values import check_covariates

    values: dict[str, Any] = {}
    numeric = {column.name: column for column in encoder.numeric}
    two = {column.name: column for column in encoder.categorical if column.numbers}
    for pair in _split_pairs(pairs, encoder):
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(f"{option} expects covariate=value, got {pair!r}.").about(
                argument=option.lstrip("-")
            )
        if name in values:
            raise ParameterError(f"{option} gives {name!r} twice.").about(
                argument=option.lstrip("-"), column=name
            )
        check_covariates(encoder, {name} - set(encoder.names))
        notation = (dates or {}).get(name)
        values[name] = text
        if name in numeric:
            values[name] = _number(numeric[name], text, notation, option)
            if option == "--at":
                warn_outside(numeric[name], values[name])
        elif name in two:
            values[name] = _two_numbers(two[name], text, option)
    return values


def _split_pairs(pairs: Sequence[str], encoder: CovariateEncoder) -> list[str]:
    """``sex=F,age=40`` is two; a comma before anything but a covariate and "=" is one of a level."""
    following = "|".join(re.escape(name) for name in encoder.names)
    return [one for pair in pairs for one in re.split(rf"\s*,\s*(?=(?:{following})=)", pair)]


def _two_numbers(column: Categorical, text: str, option: str) -> str:
    """Between two values such as 0 and 1, and beyond them, there is nothing."""
    import pandas as pd

    from graphfield.data.two_numbers import codes_of_two

    found = codes_of_two(column.name, column.numbers, pd.Series([text]))
    if found is None:
        raise DataError(
            f"{column.name!r} has the values {' and '.join(column.levels)} only, but {option} gives {text}."
        ).about(column=column.name)
    return column.levels[int(found[0])]


def _number(column: Numeric, text: str, notation: str | None, option: str) -> float:
    name = column.name
    if column.date:
        from graphfield.data.dates import NOTATIONS, parse_date

        notation = notation if notation in NOTATIONS else None
        days = parse_date(text, notation)
        if days is None:
            also = "" if notation is None else f" (or as {notation})"
            raise DataError(
                f"Covariate {name!r} is a date such as {column.text(column.low)}{also}, got {text!r}."
            ).about(column=name)
        return days
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"Covariate {name!r} is numeric, but {option} gives {text!r}.").about(column=name)
    return value
