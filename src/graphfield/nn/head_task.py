"""What a head is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class HeadTask:
    """What is minimised: mean loss over rows and nodes + penalty * mean of ``sum_k |beta_jk|``."""

    loss: str
    penalty: Tensor | None  # (m,), None where every one is zero


# u (m, b, h), weight (m, h + 1, p, p), where its gradient goes, x (m or 1, b, p), task to the losses
# (m,) and the gradient of u.
