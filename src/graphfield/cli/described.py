"""Fitted models in words and as entries of ``fit.json``."""

from __future__ import annotations

import warnings
from typing import Any


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


def last_rows_explained(model: Any, rows: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # missing values were spoken of, and later rows may lie outside the range
        share = max(0.0, model.score(rows["X_val"], rows["Z_val"]))
    return f"On the held-out rows the others explain {share:.0%} of a node's variance on average."
