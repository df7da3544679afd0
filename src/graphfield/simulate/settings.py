"""The settings by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphfield.exceptions import ParameterError, listing, suggestion
from graphfield.simulate.banded import simulate_banded
from graphfield.simulate.simulation import Simulation

Simulator = Callable[..., Simulation]

MAX_SAMPLES = 10_000_000

SETTINGS: dict[str, Simulator] = {"G1": simulate_banded}


def make_setting(
    name: str, n_samples: int = 12_000, random_state: Any = None, *, clip: bool = True
) -> Simulation:
    """Simulate one of the paper's settings.

    Structure, covariates and noise have independent random streams: the same ``random_state`` with
    a larger ``n_samples`` keeps the graphs and the first samples.

    Parameters
    ----------
    name : str
        "G1": p = 50, q = 2, Gaussian, mixtures of banded precision matrices.
    n_samples : int
    random_state : int, Generator or None
    clip : bool
        True as in the published data, where mixing weights are clipped; False is the formula as
        the paper's text gives it.

    Examples
    --------
    >>> sim = make_setting("G1", n_samples=100, random_state=0)
    >>> sim.X.shape, sim.Z.shape, sim.skeleton.shape
    ((100, 50), (100, 2), (100, 50, 50))
    """
    if name not in SETTINGS:
        raise ParameterError(
            f"Unknown setting {name!r}.{suggestion(str(name), SETTINGS)} Known: {listing(SETTINGS)}."
        )
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ParameterError(f"n_samples must be a whole number >= 1, got {n_samples!r}.")
    if n_samples > MAX_SAMPLES:
        raise ParameterError(f"n_samples is at most {MAX_SAMPLES:,}, got {n_samples:,}.")
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise ParameterError(f"random_state must not be negative, got {random_state}.")
    return SETTINGS[name](name, int(n_samples), np.random.default_rng(random_state), clip=clip)
