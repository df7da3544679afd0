"""Numbers that one can compute with: how large they may be, and how close together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.data.frames import MIN_NODES, MIN_SAMPLES
from graphfield.exceptions import DataError, agreed, named
from graphfield.messages import Argument, Message, Row

# Node values, and the inverse of how far they lie apart, whose squares are still numbers.
MAX_MAGNITUDE = 1e100
# Numeric covariates, which are divided by their spread before anything else is done to them.
MAX_COVARIATE = 1e300
# Either where it is used as it is, in single precision too.
MAX_UNSCALED = 1e15


def check_nodes(X: NDArray, names: Sequence[str], rows: NDArray[np.intp], most: float) -> None:
    """Enough rows and nodes for a graph, and each node varies, by numbers from 1 / ``most`` to ``most``.

    ``rows`` are the positions of the rows of X in what the user passed. Nothing is copied.
    """
    n_samples, n_nodes = X.shape
    if n_nodes == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of {MIN_NODES} is required."
        ).about(argument="X")
    if n_nodes < MIN_NODES:
        raise DataError(
            "A graph needs at least {least} nodes, but {found}. Add node columns.",
            least=MIN_NODES,
            found=Message("X has one column (n_features = 1)", code="one-column"),
        )
    if n_samples < MIN_SAMPLES:
        raise DataError(
            "At least {least} samples are needed, got n_samples = {n}. With so few rows every graph fits.",
            code="too-few-rows",
            least=MIN_SAMPLES,
            n=n_samples,
        )
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    width = high / 2 - low / 2  # of the largest numbers there is no double
    extreme = np.maximum(np.abs(low), np.abs(high)) > most
    bad = np.flatnonzero(extreme | ((width > 0) & (width < 1 / most)))
    if len(bad):
        column = int(bad[0])
        row = int(np.argmax(np.abs(X[:, column])))
        advice = "" if most == MAX_MAGNITUDE else ", or standardize=True"
        raise DataError(
            "Node {column!r} cannot be computed with: {row} holds {value:g}. Correct the value, or use other "
            "units for this column{advice}.",
            column=names[column],
            row=Row(int(rows[row])),
            value=X[row, column],
            advice=advice,
        )
    constant = [name for name, same in zip(names, low == high, strict=True) if same]
    if constant:
        raise DataError(
            "{nodes} {have} the same value in every training row, so {they} can have no edge. {drop}.",
            code="constant-node",
            nodes=named("Node", constant),
            have=agreed(len(constant), "has", "have"),
            they=agreed(len(constant), "it", "they"),
            drop=Message("Drop {them} from X", code="drop-nodes", them=agreed(len(constant), "it", "them")),
        )


def check_reach(
    X: NDArray,
    names: Sequence[str],
    center: NDArray,
    scale: NDArray,
    argument: str,
    rows: NDArray[np.intp] | None = None,
) -> None:
    """New node values must be numbers that one can compute with in units of the training rows.

    ``rows`` are their positions in what the user passed, where some were left out.
    """
    if not len(X):
        return
    with np.errstate(over="ignore"):
        low, high = ((ends.astype(np.float64) - center) / scale for ends in (X.min(axis=0), X.max(axis=0)))
    far = np.flatnonzero(~(np.maximum(np.abs(low), np.abs(high)) <= MAX_UNSCALED))
    if len(far):
        column = int(far[0])
        row = int(np.argmax(np.abs(X[:, column] - center[column])))
        raise DataError(
            "Node {column!r} of {argument} cannot be computed with: {row} holds {value:g}, while training "
            "rows lie about {center:g}, {scale:g} apart. Correct the value, or use the units of the "
            "training rows.",
            column=names[column],
            argument=Argument(argument),
            row=Row(row if rows is None else int(rows[row])),
            value=X[row, column],
            center=center[column],
            scale=scale[column],
        )


def check_covariate_range(name: str, low: float, high: float, most: float) -> None:
    """A covariate must vary by numbers from 1 / ``most`` to ``most``."""
    if max(abs(low), abs(high)) > most or high - low < 1 / most:
        advice = "" if most == MAX_COVARIATE else ", or standardize=True"
        raise DataError(
            f"Covariate {name!r} cannot be computed with: its values lie between {low:g} and {high:g}. "
            f"Correct them, or use other units for this column{advice}."
        ).about(column=name)
