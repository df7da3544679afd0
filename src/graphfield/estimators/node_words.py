"""What the nodes of a model are, in words."""

from __future__ import annotations

import math

from graphfield.solvers.marginal_choice import FEWEST_GROUPS, FEWEST_ROWS, MarginalCheck

_USED = {"raw": "Nodes: as they are", "normal": "Nodes: normal scores"}


def describe_nodes(marginals: str, check: MarginalCheck | None) -> str:
    """Whether the model is one of the nodes or of their normal scores, and why."""
    used = _USED[marginals]
    if check is None:
        return f"{used}."
    if math.isnan(check.gain):
        return f"{used} ({_too_few(check.lacks)} to tell whether normal scores predict better)."
    if check.one_value_decides:
        return f"{used} (as it is, a single value makes up most of some node's variance)."
    if check.hides:
        return f"{used} (normal scores explain less of each other's variance in held-out rows)."
    if not check.prefers:
        return f"{used} (normal scores do not predict held-out rows clearly better)."
    gain = f"{check.gain:.3f} ± {check.standard_error:.3f}"
    return f"{used} (they predict held-out rows better than raw values, by {gain} in rank correlation)."


def _too_few(lacks: str) -> str:
    if lacks == "groups":
        return f"fewer than {FEWEST_GROUPS} groups or stretches of time are too few"
    return f"fewer than {FEWEST_ROWS} rows are too few"
