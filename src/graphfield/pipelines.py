"""The earlier name of :mod:`graphfield.studies`, for those who import from it."""

import sys

from graphfield.studies import finance, fmri

__all__ = ["finance", "fmri"]

__path__: list[str] = []
sys.modules |= {f"{__name__}.{name}": sys.modules[f"graphfield.studies.{name}"] for name in __all__}
