"""Text that was meant to hold numbers or dates, or to identify rows, makes no categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.dates import is_slashed, parse_date
from graphfield.data.frames import reads_as_number
from graphfield.exceptions import DataError

# Text with more levels than this that reads as numbers is taken for a mistake.
MANY_LEVELS = 20


def check_levels(name: str, text: NDArray[np.object_], levels: NDArray, rows: NDArray[np.intp]) -> None:
    """Raise where what a covariate holds as ``text`` in these rows of the table is no set of levels."""
    _check_dates(name, text, levels, rows)
    numeric = np.array([reads_as_number(level) for level in levels])
    if len(levels) > MANY_LEVELS and numeric.all():
        raise DataError(
            f"Covariate {name!r} holds numbers stored as text ({len(levels)} different ones). Convert "
            "the column with pandas.to_numeric."
        )
    if numeric.mean() > 0.5 and not numeric.all():
        odd = str(levels[~numeric][0])
        row = int(rows[text == odd][0])
        raise DataError(
            f"Covariate {name!r} holds numbers, but row {row} holds {odd!r}. Correct it, or leave the "
            "cell empty and use missing='drop'."
        )
    if len(levels) == len(text) > MANY_LEVELS:
        raise DataError(
            f"Covariate {name!r} has a different text in every row (for example {text[0]!r}). If it "
            "identifies subjects or rows, pass it as groups instead."
        )


def _check_dates(name: str, text: NDArray[np.object_], levels: NDArray, rows: NDArray[np.intp]) -> None:
    """Dates with something among them that is none, and dates that can be read in two ways."""
    slashed = [str(level) for level in levels if is_slashed(str(level))]
    if len(slashed) > 0.5 * len(levels):
        raise DataError(
            f"Covariate {name!r} holds dates such as {slashed[0]!r}, which can be read in two ways. Read the "
            "table with from_table(..., date_format='dd/mm/yyyy') or 'mm/dd/yyyy', or convert the column "
            "with pandas.to_datetime."
        )
    dates = np.array([parse_date(str(level)) is not None for level in levels])
    if dates.mean() > 0.5:
        odd = str(levels[~dates][0])
        row = int(rows[text == odd][0])
        raise DataError(
            f"Covariate {name!r} holds dates, but row {row} holds {odd!r}. Write all of them as 2020-03-01, "
            "or leave the cell empty and use missing='drop'."
        )
