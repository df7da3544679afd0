"""Settings with a known graph at every covariate value."""

from graphfield.simulate.field import Field
from graphfield.simulate.settings import SETTINGS, make_setting
from graphfield.simulate.simulation import Simulation

__all__ = ["SETTINGS", "Field", "Simulation", "make_setting"]
