"""Fitted models in words and as entries of ``fit.json``."""

from __future__ import annotations

from typing import Any


def archetypes_found(model: Any, seconds: float) -> str:
    shares = ", ".join(
        f"{name} {share:.0%}" for name, share in zip(model.archetype_names_, model.mean_shares_, strict=True)
    )
    what = (
        "One archetype was kept: one graph for everybody."
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
