"""Some training rows of the covariates beside a saved model, to average graphs over them later."""

from __future__ import annotations

import warnings
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import Frame, with_columns
from graphfield.data.level_text import as_text, is_categorical
from graphfield.data.missing import bad_entries
from graphfield.exceptions import ModelFileError

FILE_NAME = "covariates.csv"
MAX_ROWS = 2_000


def covariate_rows(Z: pd.DataFrame, seed: int = 0) -> str:
    """At most 2,000 complete rows of Z, drawn at random and in their order, as the text of a CSV file."""
    complete = np.flatnonzero(~bad_entries(Frame(Z, True)).to_numpy().any(axis=1))
    if len(complete) > MAX_ROWS:
        chosen = np.random.default_rng(seed).choice(len(complete), MAX_ROWS, replace=False)
        complete = complete[np.sort(chosen)]
    kept = Z.iloc[complete].reset_index(drop=True)
    levels = {name: as_text(kept[name]) for name in kept.columns if is_categorical(kept[name], name)}
    return with_columns(kept, levels).to_csv(index=False)


def parse_covariates(content: bytes, path: Path, encoder: CovariateEncoder) -> pd.DataFrame:
    """The rows that :func:`covariate_rows` wrote, from the content of the file at ``path``.

    Categories come as text, so that levels such as ``01`` are what they were.
    """
    numbers = [column.name for column in encoder.numeric if not column.date]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row that is longer than the first
            text = pd.read_csv(
                StringIO(content.decode("utf-8")), dtype=str, keep_default_na=False, index_col=False
            )
        levels = {column.name: column.as_levels(text[column.name]) for column in encoder.categorical}
        return with_columns(text, levels | {name: _finite(text[name]) for name in numbers})[encoder.names]
    except (ValueError, KeyError, pd.errors.ParserWarning) as error:
        raise ModelFileError(f"{path} cannot be read: {error}. Remove it to go on without it.").about(
            file=path
        ) from error


def _finite(column: pd.Series) -> pd.Series:
    numbers = column.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{column.name!r} is not a number in every row")
    return numbers
