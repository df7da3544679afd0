"""Fitted models in words and as entries of ``fit.json``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

# Held-out rows with fewer than this have no variance worth speaking of.
_ROWS_TO_EXPLAIN = 5


def archetypes_found(model: Any, seconds: float) -> str:
    shares = ", ".join(
        f"{name} {share:.0%}" for name, share in zip(model.archetype_names_, model.mean_shares_, strict=True)
    )
    what = (
        "One graph for everybody predicts held-out rows as well as a mixture."
        if model.n_archetypes_ == 1
        else f"The graph mixes {model.n_archetypes_} archetypes (mean shares {shares})"
    )
    penalty = "" if model.n_archetypes_ == 1 else f"; penalty {model.penalty_:.3g}."
    return f"Fitted in {seconds:.1f} s.\n{what}{penalty}"


def archetypes_told(model: Any) -> dict[str, Any]:
    return {
        "archetypes": model.n_archetypes_,
        "mean_shares": [float(share) for share in model.mean_shares_],
        "penalty": float(model.penalty_),
        "marginals": model.marginals_,
    }


def other_found(model: Any, seconds: float) -> list[str]:
    """What there is to say of models that are neither neural nor a choice among models."""
    kind = type(model).__name__
    if hasattr(model, "members_"):
        drawn = "rows drawn with replacement" if model.resample else "the same rows"
        kind = f"{len(model.members_)} of {type(model.members_[0]).__name__} to {drawn}"
    lines = [f"Fitted {kind} in {seconds:.1f} s."]
    if hasattr(model, "rules_"):
        lines.append(f"Graphs of their own: {'; '.join(model.rules_)}.")
    return lines


def other_told(model: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"model": type(model).__name__, "marginals": getattr(model, "marginals_", "raw")}
    if hasattr(model, "members_"):
        told |= {"members": len(model.members_), "resampled": model.resample}
    return told


def variation_kept(model: Any) -> list[str]:
    """A line about graphs that were drawn towards their average, if they were."""
    if model.variation_ == 1:
        return []
    if model.variation_ == 0:
        return [
            "Held-out rows support no movement with the covariates: it is the same graph for all of them."
        ]
    return [
        f"Held-out rows support {model.variation_:.0%} of its movement with the covariates; so much is kept."
    ]


def explained(model: Any, rows: dict[str, Any]) -> list[str]:
    """A line about held-out rows, where there were any.

    What is explained is the R^2 of `score`, of the node's own variance in these rows. A node of which nothing
    is explained counts as 0 and no less: one value far out in training would outweigh all other nodes.
    """
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps were spoken of, and later rows may lie outside the range
        X, Z = _held_out(model, rows)
        if len(X) < _ROWS_TO_EXPLAIN:
            return []
        left = np.square(X - model.predict(X, Z)).mean(axis=0)
    variance = X.var(axis=0)
    share = 1 - np.divide(left, variance, out=np.ones_like(left), where=variance > 0)
    mean = float(np.maximum(share, 0.0).mean())
    return [f"On held-out rows the others explain {mean:.0%} of a node's variance on average."]


def _held_out(model: Any, rows: dict[str, Any]) -> tuple[NDArray[np.floating], pd.DataFrame]:
    """Nodes and covariates of the rows that the fit to ``rows`` held out; none where nobody can tell."""
    import numpy as np

    from graphfield.data.frames import as_frame, node_values
    from graphfield.data.missing import handle_missing
    from graphfield.data.splits import group_labels
    from graphfield.estimators.inputs import root_seed

    own = "X_val" in rows
    X, Z = (as_frame(rows[f"{name}_val" if own else name], name) for name in ("X", "Z"))
    nodes, covariates, kept = handle_missing(X, Z, model.missing)
    if own:
        return node_values(nodes), covariates.values
    if not isinstance(model.random_state, int):  # the rows were drawn by a seed that nobody knows
        return np.empty((0, len(nodes.names))), covariates.values[:0]
    labels = group_labels(rows["groups"], rows["X"])
    labels = None if labels is None else labels[kept]
    held_out = model._hold_out(len(kept), labels, root_seed(model.random_state))[1]
    return node_values(nodes.take(held_out)), covariates.take(held_out).values
