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
