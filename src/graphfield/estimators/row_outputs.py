"""What a fitted estimator says at many rows, as a folder of Parquet files with consecutive rows each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.roles import TableData
from graphfield.data.row_source import RowSource
from graphfield.exceptions import check_package
from graphfield.folders import check_folder, write_folder

# Lines of one file.
_PART_LINES = 1_000_000


class RowOutputs:
    """Results that are larger than memory, of tables that may be."""

    @abstractmethod
    def iter_edges(self, Z: Any, threshold: Any = "auto", rule: str = "and") -> Iterator[pd.DataFrame]: ...

    @abstractmethod
    def predict(self, X: Any, Z: Any) -> NDArray[np.float64]: ...

    @property
    @abstractmethod
    def node_names_(self) -> list[str]: ...

    def write_edges(
        self,
        Z: Any,
        out: str | Path,
        threshold: float | str | None = "auto",
        rule: str = "and",
        *,
        overwrite: bool = False,
    ) -> Path:
        """The edges at each row as a folder of Parquet files, in bounded memory.

        Parameters
        ----------
        Z : table of shape (n, q), RowSource or TableData
            Covariates, or a table that has them: in files (:func:`~graphfield.open_table`) or in memory
            (:func:`~graphfield.from_table`).
        out : str or Path
            Folder to write: all of it, or nothing. Its files, in the order of their names, have what
            :meth:`iter_edges` gives, each about a million lines of consecutive rows.
        threshold, rule
            As in :meth:`predict_graph`.
        overwrite : bool
            Whether an earlier folder may be replaced.
        """
        blocks = _blocks(Z) if isinstance(Z, (RowSource, TableData)) else iter([None])

        def lines() -> Iterator[pd.DataFrame]:
            start = 0
            for block in blocks:
                own = Z if block is None else block.Z
                for edges in self.iter_edges(own, threshold, rule):
                    yield edges.assign(sample=edges["sample"] + start)
                start += len(own)

        return _write_parts(lines(), out, overwrite=overwrite)

    def write_predictions(
        self, source: RowSource | TableData, out: str | Path, *, overwrite: bool = False
    ) -> Path:
        """Fitted node values (:meth:`predict`) of a table, as a folder of Parquet files.

        One line per row, in the order of the rows; ``out`` and ``overwrite`` as in :meth:`write_edges`.
        """
        lines = (
            pd.DataFrame(self.predict(block.X, block.Z), columns=self.node_names_)
            for block in _blocks(source)
        )
        return _write_parts(lines, out, overwrite=overwrite)


def _blocks(source: RowSource | TableData) -> Iterator[TableData]:
    return source.blocks() if isinstance(source, RowSource) else iter([source])


def _write_parts(frames: Iterable[pd.DataFrame], out: str | Path, *, overwrite: bool) -> Path:
    check_package("pyarrow", "parquet", "A folder of Parquet files")
    check_folder(out, overwrite=overwrite)

    def files() -> Iterator[tuple[str, bytes]]:
        for i, part in enumerate(_joined(frames)):
            yield f"part-{i:06d}.parquet", part.to_parquet(None, index=False)

    return write_folder(out, files(), overwrite=overwrite)


def _joined(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The same lines in tables of about one size."""
    waiting: list[pd.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        if sum(map(len, waiting)) >= _PART_LINES:
            yield pd.concat(waiting, ignore_index=True)
            waiting = []
    if waiting:
        yield pd.concat(waiting, ignore_index=True)
