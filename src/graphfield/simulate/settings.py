"""The settings by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphfield.exceptions import ParameterError, listing, suggestion
from graphfield.simulate.banded import Banded, make_n1
from graphfield.simulate.blocks import Blocks, make_n2
from graphfield.simulate.dags import HermiteDag, LinearDag
from graphfield.simulate.field import Field
from graphfield.simulate.moving_pairs import make_i1, make_m1
from graphfield.simulate.simulation import Simulation
from graphfield.simulate.sites import Sites
from graphfield.simulate.smooth import Smooth
from graphfield.simulate.squares import Squares

MAX_SAMPLES = 10_000_000

SETTINGS: dict[str, Callable[..., Field]] = {
    "G1": Banded,
    "G2": Blocks,
    "N1": make_n1,
    "N2": make_n2,
    "D1": LinearDag,
    "D2": HermiteDag,
    "S1": Smooth,
    "S2": Sites,
    "S3": Squares,
    "I1": make_i1,
    "M1": make_m1,
}


def make_setting(
    name: str, n_samples: int = 12_000, random_state: Any = None, *, clip: bool = True
) -> Simulation:
    """Simulate a setting whose graph is known at every covariate value.

    Structure, covariates and noise have independent random streams: the same ``random_state`` with
    a larger ``n_samples`` keeps the graphs and the first samples.

    Parameters
    ----------
    name : str
        Of the paper: "G1" (p = 50, q = 2, Gaussian, mixtures of banded matrices), "G2" (p = 90,
        q = 10, three blocks), "N1", "N2" (the same through a monotone transform), "D1", "D2" (p = 50,
        q = 2, mixtures of two trees as linear and non-linear structural equations).
        Our own: "S1" (p = 50, q = 5, edges that move smoothly and obliquely), "S2" (p = 50, a
        categorical covariate times a numeric one), "S3" (p = 48, q = 2, edges x_j = x_k^2 - 1 that no
        linear method can see), "I1" (p = 20, q = 2, Ising: binary nodes, interactions that move smoothly),
        "M1" (the same with gaussian, binary, categorical and count nodes).
    n_samples : int
    random_state : int, Generator or None
    clip : bool
        True as in the published data, where mixing weights are clipped; False is the formula as
        the paper's text gives it (G1, N1, D1, D2; in G2 and N2 that is not a valid model).

    Examples
    --------
    >>> sim = make_setting("G1", n_samples=100, random_state=0)
    >>> sim.X.shape, sim.Z.shape, sim.skeleton.shape
    ((100, 50), (100, 2), (100, 50, 50))
    """
    if name not in SETTINGS:
        raise ParameterError(
            f"Unknown setting {name!r}.{suggestion(str(name), SETTINGS)} Known: {listing(SETTINGS)}."
        ).about(argument="name")
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ParameterError.of("n_samples", f"must be a whole number >= 1, got {n_samples!r}.")
    if n_samples > MAX_SAMPLES:
        raise ParameterError.of("n_samples", f"is at most {MAX_SAMPLES:,}, got {n_samples:,}.")
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise ParameterError.of("random_state", f"must not be negative, got {random_state}.")
    structure_rng, covariate_rng, noise_rng = np.random.default_rng(random_state).spawn(3)
    field = SETTINGS[name](structure_rng, clip=clip)
    Z = field.covariates(int(n_samples), covariate_rng)
    return Simulation(name, field.sample(Z, noise_rng), Z, field)
