"""Tables that are larger than memory: which columns have which role, and rows that come block by block."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import AS_TEXT
from graphfield.data.frames import Frame, as_frame, node_values
from graphfield.data.gaps import Gaps
from graphfield.data.roles import TableData, from_table
from graphfield.data.room import size_text
from graphfield.data.row_files import RowFiles, open_files
from graphfield.data.row_store import SHARE, allocate_rows, bounded_memory, memory_bound
from graphfield.exceptions import DataError, DataWarning, count, listing
from graphfield.messages import Argument, Message


@dataclass(frozen=True)
class SourceRows:
    """Rows of a source, as a fit takes them; long node values lie in a scratch file.

    ``rows`` are their positions in the source.
    """

    X: pd.DataFrame
    Z: pd.DataFrame
    groups: pd.Series | None
    rows: NDArray[np.intp]

    @property
    def covariates(self) -> Frame:
        """With which messages name rows of the source."""
        return replace(as_frame(self.Z, "Z"), rows=self.rows)


@dataclass(frozen=True, repr=False)
class RowSource:
    """A table in files, split by role; see :func:`open_table`. Every estimator's ``fit`` takes it as X.

    Attributes
    ----------
    nodes, covariates : tuple of str
    group : str or None
    memory : int
        Bytes that a fit may take.
    """

    path: Path
    nodes: tuple[str, ...]
    covariates: tuple[str, ...]
    group: str | None
    memory: int
    files: RowFiles
    options: dict[str, Any] = field(default_factory=dict)  # of from_table

    def __len__(self) -> int:
        return self.files.n_rows

    def __repr__(self) -> str:
        lines = [f"{count(len(self), 'row')} of {self.path} ({size_text(self.size)} in memory)"]
        for role, names in (("node", self.nodes), ("covariate", self.covariates)):
            lines.append(f"  {count(len(names), role)}: {listing(names)}")
        lines += [] if self.group is None else [f"  group: {self.group}"]
        return "\n".join([*lines, f"  memory of a fit: {size_text(self.memory)}"])

    @property
    def columns(self) -> list[str]:
        return [*self.nodes, *self.covariates, *([] if self.group is None else [self.group])]

    @property
    def size(self) -> int:
        """Bytes of its numbers in double precision."""
        return 8 * len(self) * len(self.columns)

    @property
    def fits(self) -> bool:
        """Whether a fit to all rows stays in memory, whatever the estimator."""
        return self.size <= SHARE * self.memory

    def bounded(self) -> AbstractContextManager[None]:
        """Here, long arrays go to scratch files."""
        return bounded_memory(self.memory)

    def blocks(self, rows: NDArray[np.intp] | None = None) -> Iterator[TableData]:
        """Consecutive rows, all or those at the given positions (rising), split by role."""
        start = 0
        for frame in self.files.blocks(self.columns):
            stop = start + len(frame)
            if rows is not None:
                frame = frame.iloc[_within(rows, start, stop)].reset_index(drop=True)
            start = stop
            if len(frame):
                with warnings.catch_warnings():  # said when the table was opened
                    warnings.simplefilter("ignore", DataWarning)
                    yield from_table(frame, self.covariates, self.nodes, self.group, **self.options)

    def take(self, rows: NDArray[np.intp]) -> TableData:
        """Some rows, by their positions (rising), in memory."""
        parts = list(self.blocks(np.asarray(rows, dtype=np.intp)))
        groups = None if self.group is None else _joined([_series(part) for part in parts])
        X = pd.concat([part.X for part in parts], ignore_index=True)
        return TableData(X, _joined_frames([part.Z for part in parts]), groups, [])

    def sample(self, seed: int) -> NDArray[np.intp]:
        """Positions of rows drawn at random, as many as :attr:`fits`; rows of a group stay together."""
        most = max(1, int(SHARE * self.memory / self.size * len(self)))
        generator = np.random.default_rng(seed)
        if most >= len(self):
            return np.arange(len(self))
        if self.group is None:
            return np.sort(generator.choice(len(self), most, replace=False))
        labels = [frame[self.group].astype("category") for frame in self.files.blocks([self.group])]
        codes = _joined(labels).cat.codes.to_numpy()
        order = generator.permutation(int(codes.max()) + 1)
        sizes = np.bincount(codes[codes >= 0], minlength=len(order))[order]
        return np.flatnonzero(np.isin(codes, order[: max(2, int((sizes.cumsum() <= most).sum()))]))

    def read(self, missing: str, rows: NDArray[np.intp] | None = None) -> SourceRows:
        """All rows, or those at these positions, after what ``missing`` says about gaps in them."""
        n, gaps = len(self) if rows is None else len(rows), Gaps(missing)
        values: NDArray[np.floating] | None = None
        covariates, labels, kept, start, stop, text = [], [], [], 0, 0, set[str]()
        for block in self.blocks(rows):
            self._check_numbers(block.X)
            nodes = node_values(Frame(block.X, True))
            if values is None:
                values = allocate_rows((n, nodes.shape[1]), nodes.dtype)
            keep = gaps.look_at(Frame(block.X, True), Frame(block.Z, True))
            kept.append(start + np.flatnonzero(keep))
            start, first, stop = start + len(nodes), stop, stop + int(keep.sum())
            values[first:stop] = nodes if keep.all() else nodes[keep]
            text.update(_text_columns(block.Z))
            covariates.append(_small(block.Z[keep]))
            if block.groups is not None:
                labels.append(_series(block)[keep])
        assert values is not None
        Z = gaps.settle(values[:stop], list(self.nodes), Frame(_joined_frames(covariates), True))
        Z.values.attrs[AS_TEXT] = sorted(text)  # a list, as attributes may be written as JSON
        at = np.concatenate(kept)
        return SourceRows(
            pd.DataFrame(values[:stop], columns=list(self.nodes), copy=False),
            Z.values,
            _joined(labels) if labels else None,
            at if rows is None else rows[at],
        )

    def _check_numbers(self, X: pd.DataFrame) -> None:
        odd = [name for name in X.columns if not _is_plain(X[name])]
        if odd:
            raise DataError(
                "Node column {column!r} of {file!r} holds {kind}, and nodes that are read by rows must be "
                "numbers. Leave it out ({drop}), or read the table into memory.",
                column=odd[0],
                file=str(self.path),
                kind=str(X[odd[0]].dtype),
                drop=Argument("drop"),
            )


def open_table(
    path: str | Path,
    covariates: Sequence[str],
    nodes: Sequence[str] | None = None,
    group: str | None = None,
    *,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    date_format: str | None = None,
    memory: int | str | None = None,
) -> RowSource:
    """Open a table that may be larger than memory; ``fit`` reads it block by block.

    Parameters
    ----------
    path : str or Path
        A ``.parquet`` file or a folder of them with the same columns, a ``.npy`` file or a ``.zarr`` array of
        numbers (columns are called ``x1, x2, ...``), or an ``.h5ad`` file with a dense X (columns are those
        of ``obs`` and the names of ``var``).
    covariates, nodes, group, drop, categories, date_format
        As in :func:`~graphfield.from_table`. Nodes must be numbers.
    memory : int or str, optional
        Bytes that a fit may take, such as ``"4GB"``; by default half of what is free. Arrays that are long
        beside it go to scratch files in the folder for temporary files.

    Notes
    -----
    ``DNNCGM`` takes all rows, as do ``RegGMM``, ``BayesianCGM``, ``GraphicalLasso`` and ``NodewiseLasso``,
    which need second moments. Other estimators take all where ten times the table fits into ``memory``, else
    a random sample of rows, or of whole groups, with a warning.

    Examples
    --------
    >>> import graphfield as gf, tempfile
    >>> sim = gf.make_setting("G1", n_samples=200, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.hstack([sim.X[:, :8], sim.Z]))
    ...     source = gf.open_table(f"{folder}/rows.npy", covariates=["x9", "x10"], memory="1GB")
    ...     model = gf.RegGMM().fit(source)
    >>> len(source), model.node_names_[:2]
    (200, ['x1', 'x2'])
    """
    path, bound = Path(path), memory_bound(memory)
    files = open_files(path)
    with closing(files.blocks(files.names)) as blocks:
        head = next(blocks)
    found = from_table(
        head, covariates, nodes, group, categories=categories, drop=drop, date_format=date_format
    )
    names = tuple(map(str, found.X.columns)), tuple(map(str, found.Z.columns))
    known = {"date_format": date_format} | ({"categories": list(categories)} if categories else {})
    source = RowSource(path, *names, None if found.groups is None else str(group), bound, files, known)
    files.check_columns(source.columns)
    return source


def warn_of_sample(source: RowSource, n_rows: int, who: str) -> None:
    warnings.warn(
        Message(
            "{who} is fitted to {n_rows:,} of {total:,} rows, drawn at random: it holds its rows in memory "
            "several times, and a fit may take {memory}. Give more ({argument}), or use DNNCGM, which takes "
            "all rows.",
            code="sampled-rows",
            who=who,
            n_rows=n_rows,
            total=len(source),
            memory=size_text(source.memory),
            argument=Argument("memory"),
        ),
        DataWarning,
        stacklevel=6,
    )


def _within(rows: NDArray[np.intp], start: int, stop: int) -> NDArray[np.intp]:
    first, last = np.searchsorted(rows, [start, stop])
    return rows[first:last] - start


def _is_plain(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _series(block: TableData) -> pd.Series:
    assert block.groups is not None
    return block.groups.copy().astype("category")


def _small(Z: pd.DataFrame) -> pd.DataFrame:
    """A copy, which does not hold the whole block, with text as categories: a code for each row."""
    return Z.copy().astype(dict.fromkeys(_text_columns(Z), "category"))


def _text_columns(Z: pd.DataFrame) -> list[str]:
    kinds = pd.api.types
    return [str(name) for name in Z if kinds.is_object_dtype(Z[name]) or kinds.is_string_dtype(Z[name])]


def _joined_frames(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.DataFrame({name: _joined([part[name] for part in parts]) for name in parts[0].columns})


def _joined(parts: Sequence[pd.Series]) -> pd.Series:
    """One column after the other; categories that differ are put together, as text has no order."""
    kinds = {part.dtype for part in parts}
    if len(kinds) > 1 and any(isinstance(kind, pd.CategoricalDtype) for kind in kinds):
        plain = [pd.Categorical(part).as_unordered() for part in parts]
        whole = pd.api.types.union_categoricals(plain, sort_categories=True, ignore_order=True)
        return pd.Series(whole, name=parts[0].name)
    return pd.concat(parts, ignore_index=True)
