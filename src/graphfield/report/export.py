"""Fitted models as programs, see :mod:`graphfield.report.program`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import rescale_coef
from graphfield.estimators.base import GraphEstimator
from graphfield.report.program import Average, Choice, Features, Inputs, Linear, Part, Precision, Scaled

# torch's default, which the batch norm of our networks has.
_BATCH_NORM_EPS = 1e-5


class NotExported(Exception):
    """This model has no program; the message says why, as the end of a sentence."""


def export_program(model: GraphEstimator, reference: NDArray | None = None) -> Part:
    """The model as a program, in units of its residual scales (or of ``reference``)."""
    scale = model.residual_scale_ if reference is None else reference
    scale = np.where(scale > 0, scale, 1.0)
    for kind in type(model).__mro__:
        if kind.__name__ in _EXPORTS:
            # Units of a model on its own change no edge.
            unit = None if reference is None else _log_scales(model._scales, model.encoder_)
            residual = _log_scales(model._residual_scales, model.encoder_)
            part = _EXPORTS[kind.__name__](model, scale)
            return part if unit is residual is None else Scaled(part, unit, residual)
    raise NotExported(f"{type(model).__name__} has no form that a page can run")


def _log_scales(scales: MovingScales | None, encoder: CovariateEncoder) -> Features | None:
    if scales is None:
        return None
    steps: list[tuple[Any, ...]] = [("affine", scales.weights, scales.bias), ("relu",)]
    return Features(_feature_inputs(encoder), [*steps, ("affine", scales.slopes, scales.constant)])


def _feature_inputs(encoder: CovariateEncoder) -> Inputs:
    """The features of the covariates as linear models have them, without their one."""
    return Inputs.of(encoder, [table[:, 1:] for table in _indicators(encoder)])


def _network(model: Any, reference: NDArray) -> Part:
    field = model._coef_field
    if field.config.sharing != "all":
        raise NotExported(f"it has one network per {field.config.sharing}")
    features = _field_features(field, model.encoder_)
    if field.config.rank is not None:
        features.steps.append(("softmax",))
    patterns = field.head.weight.detach().cpu().numpy()[0]  # (h + 1, p, p), the last one constant
    if patterns[-1].any():
        features.steps.append(("one",))
    else:
        patterns = patterns[:-1]
    return _linear(model, features, patterns.astype(np.float64), reference)


def _archetypes(model: Any, reference: NDArray) -> Part:
    features = _field_features(model._gate, model.encoder_)
    name, weight, bias = features.steps[-1]
    order = model._order.numpy()
    features.steps[-1] = (name, weight[:, order], bias[order])
    features.steps.append(("softmax",))
    unit = reference / model.scaler_.scale
    return Precision(features, model._matrices.numpy() * unit[:, None] * unit)


def _reggmm(model: Any, reference: NDArray) -> Part:
    constant, *others = model.interactions_
    patterns = np.stack([*others, constant])
    return _linear(model, Features(_feature_inputs(model.encoder_), [("one",)]), patterns, reference)


def _static(model: Any, reference: NDArray) -> Part:
    return _linear(
        model, Features(Inputs([], []), [("one",)]), model._coef[None].astype(np.float64), reference
    )


def _averaged(model: Any, reference: NDArray) -> Part:
    parts = [export_program(part, reference) for part in model.members_]
    return Average([float(weight) for weight in model.weights_], parts)


def _tree(model: Any, reference: NDArray) -> Part:
    tree = model.tree_
    part = np.full(len(tree.left), -1)
    part[tree.leaves] = model._leaf_part
    features = Features(Inputs.of(model.encoder_, _indicators(model.encoder_)), [])
    arrays = {name: getattr(tree, name).tolist() for name in ("left", "right", "feature", "threshold")}
    parts = [export_program(leaf, reference) for leaf in model._parts]
    return Choice(features, {**arrays, "part": part.tolist()}, parts)


def _by_cluster(model: Any, reference: NDArray) -> Part:
    encoder = model.encoder_
    inputs = Inputs.of(encoder, _indicators(encoder))
    inputs = replace(inputs, numeric=[], categorical=[inputs.categorical[model._column]])
    parts = [export_program(part, reference) for part in model._parts]
    return Choice(Features(inputs, []), _chain(len(parts)), parts)


def _chain(n: int) -> dict[str, list[Any]]:
    """A tree that goes through indicators 0 to n - 2 and stops at the first that is one."""
    tree: dict[str, list[Any]] = {"left": [], "right": [], "feature": [], "threshold": [], "part": []}
    for which in range(n):
        last = which == n - 1
        here = len(tree["left"])
        node = {"left": -1 if last else here + 2, "right": -1 if last else here + 1, "feature": which}
        for name, value in {**node, "threshold": 0.5, "part": which if last else -1}.items():
            tree[name].append(value)
        if not last:  # the leaf of this level
            for name, value in {"left": -1, "right": -1, "feature": 0, "threshold": 0, "part": which}.items():
                tree[name].append(value)
    return tree


_EXPORTS: dict[str, Callable[[Any, NDArray], Part]] = {
    "DNNCGM": _network,
    "ArchetypeCGM": _archetypes,
    "RegGMM": _reggmm,
    "StaticGraph": _static,
    "AveragedGraph": _averaged,
    "TreeCGM": _tree,
    "ByCluster": _by_cluster,
}


def _linear(model: GraphEstimator, features: Features, coef: NDArray, reference: NDArray) -> Linear:
    """Coefficients of standardised nodes, (R, p, p), as patterns."""
    patterns = rescale_coef(coef, model.scaler_.scale / reference)
    return Linear.of(features, patterns, (model.residual_scale_ / reference) ** 2)


def _indicators(encoder: CovariateEncoder) -> list[NDArray]:
    """One column per level; a level unseen in training has the shares of the known ones."""
    return [column.indicators for column in encoder.categorical]


def _field_features(field: Any, encoder: CovariateEncoder) -> Features:
    """The network of a field up to its last hidden layer or, where it mixes, to the logits of the shares."""
    from graphfield.estimators.neural import to_arrays

    arrays = {name.removeprefix("field/"): value for name, value in to_arrays(field, "field").items()}
    tables = []
    for i, _ in enumerate(encoder.categorical):
        table = arrays[f"embedding.tables.{i}"]
        tables.append(np.vstack([table, arrays[f"embedding.shares_{i}"][None] @ table]))

    def affine(name: str) -> tuple[str, NDArray, NDArray]:
        return ("affine", arrays[f"{name}.weight"][0], arrays[f"{name}.bias"][0, 0])

    steps: list[tuple[Any, ...]] = []
    if field.config.network != "linear":
        steps += [_first(arrays, *affine("backbone.first.dense")), ("relu",)]
        if field.config.network == "residual":
            steps += [affine("backbone.narrow"), ("join",)]
        steps += [affine("backbone.second"), ("relu",)]
    if "bottleneck.weight" in arrays:
        steps.append(affine("bottleneck"))
    return Features(Inputs.of(encoder, tables), steps)


def _first(
    arrays: dict[str, NDArray], name: str, weight: NDArray, bias: NDArray
) -> tuple[str, NDArray, NDArray]:
    """The first layer with its batch norm, which is affine once training is over."""
    norm = {key: arrays.get(f"backbone.first.norm.{key}") for key in ("weight", "bias")}
    if norm["weight"] is None or norm["bias"] is None:
        return name, weight, bias
    mean = arrays["backbone.first.norm.running_mean"].astype(np.float64)
    spread = np.sqrt(arrays["backbone.first.norm.running_var"].astype(np.float64) + _BATCH_NORM_EPS)
    factor = norm["weight"] / spread
    return name, weight * factor, (bias - mean) * factor + norm["bias"]
