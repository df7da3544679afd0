"""Blanks before some cells of a column of text, which belong to the cells; before all, to the notation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pandas as pd

from graphfield.data.sources import Source
from graphfield.data.text_format import SPACE, open_text

_CHUNK = 2**20


def with_own_blanks(
    frame: pd.DataFrame,
    source: Source,
    packed: str,
    encoding: str,
    sep: str,
    read: Callable[[list[str]], pd.DataFrame],
) -> pd.DataFrame:
    """The frame with ' F' as it stands beside 'F' in the file, as other kinds of files have it.

    Blanks after separators are not read, as they mean nothing where a file is written so throughout. ``read``
    gives the cells of such columns with them, as text, and is asked only where there are any.
    """
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if sep == SPACE or not texts or not _has_blanks(source, packed, encoding, sep):
        return frame
    raw = read(texts)
    if len(raw) != len(frame):  # quotation marks behind blanks are marks of their own then
        return frame
    return frame.assign(**{name: _with_blanks(frame[name], raw[name]) for name in texts})


def _has_blanks(source: Source, packed: str, encoding: str, sep: str) -> bool:
    with closing(open_text(source, packed, encoding)) as handle:
        end = "\n"
        for chunk in iter(lambda: handle.read(_CHUNK), ""):
            chunk = end + chunk
            if f"{sep} " in chunk or "\n " in chunk:
                return True
            end = chunk[-1]
    return False


def _with_blanks(column: pd.Series, raw: pd.Series) -> pd.Series:
    known = column.notna()
    begun = raw.str.startswith(" ") & known
    own = begun & (raw.str.strip() == column.astype(object).map(str).str.strip())
    return column if begun[known].all() or not own.any() else column.astype(object).where(~own, raw)
