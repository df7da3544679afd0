"""Tables that show all of their columns when they are printed."""

from __future__ import annotations

from typing import Any

import pandas as pd

_DIGITS = 4


class WideTable(pd.DataFrame):
    """A DataFrame that is printed with every column: the last ones say how sure the others are.

    Where it has a sentence about itself, ``attrs["summary"]``, that is printed first.
    pandas leaves columns in the middle out where a line is too long for the terminal. Whatever is computed
    from it is a plain DataFrame.
    """

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __repr__(self) -> str:
        whole = ("display.max_columns", None, "display.width", None, "display.expand_frame_repr", False)
        with pd.option_context(*whole, "display.precision", _DIGITS):
            shown = super().__repr__()
        return f"{self.attrs['summary']}\n{shown}" if "summary" in self.attrs else shown
