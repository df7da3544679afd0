"""A table written in every way in which people have tables, for the tests of what reads them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable

import numpy as np
import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": lambda content: zipped({"t.csv": content}),
}


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def example(rng: np.random.Generator, n_rows: int = 30) -> pd.DataFrame:
    """Numbers of all sizes, whole numbers, text with letters beyond ASCII and marks, and gaps."""
    table = pd.DataFrame(
        {
            "größe": rng.normal(size=n_rows) * 10.0 ** rng.integers(-12, 12, n_rows),
            "b": rng.normal(size=n_rows),
            "count": rng.integers(-5, 2000, n_rows),
            "site": rng.choice(["Köln", "São Paulo; Süd", "a, b", 'the "x"'], n_rows),
        }
    )
    table.loc[rng.random(n_rows) < 0.1, "b"] = np.nan
    return table


def as_text(
    table: pd.DataFrame, sep: str = ",", decimal: str = ".", encoding: str = "utf-8", end: str = "\n"
) -> bytes:
    text = table.to_csv(index=False, sep=sep, decimal=decimal, lineterminator=end)
    return text.encode(encoding)
