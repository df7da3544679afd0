"""What a data check says: columns, findings, and the whole of it in words and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from graphfield.data.text_tables import UNNAMED
from graphfield.exceptions import DataError, count, first_few, listing
from graphfield.messages import Argument

FORMAT, FORMAT_VERSION = "graphfield-data-check", 2
# Codes of the findings that rows look like a series, and that they do so only because somebody sorted them.
SERIES, SORTED = "ordered-rows", "sorted-rows"
# A covariate that is nearly a node, or determines one.
LEAK = "leak"
# Gaps of nodes that go with a covariate.
GAPS_FOLLOW = "gaps-follow-covariate"
# Rows with gaps, which are left out, that do so.
LOST_FOLLOW = "lost-rows-follow-covariate"
# Levels of groups that drift along a covariate.
DRIFTING = "drifting-levels"
# Two covariates with combinations that no rows have.
EMPTY_CORNER = "empty-corner"
# Codes of findings about shapes and orders that data may well have.
NOTES = frozenset(
    {
        "skewed-nodes",
        "skewed-covariate",
        "heavy-tails",
        "zero-counts",
        "often-one-value",
        "node-of-groups",
        "level-of-few-groups",
        "repeated-nodes",
        EMPTY_CORNER,
        SORTED,
    }
)
# Codes of findings that a fit says once more at its end: a node that is missing, or there twice.
REMINDED = frozenset({"text-among-numbers", "numbers-with-units", "duplicate-nodes"})
# A line for every covariate up to so many; beyond, one line per kind.
_MOST_LINES = 12
_MOST_UNUSED = 8  # columns that are named though they are not used
# Columns that an argument to copy names one by one.
_NAMED_TO_DROP = 20
_TABLE = ["name", "role", "kind", "distinct", "missing", "values", "noticed"]
_WIDEST = 40  # values in a line of text
_PLURALS = {
    "number": "numbers",
    "category": "categories",
    "date": "dates",
    "text": "text columns",
    "count": "counts",
}


@dataclass(frozen=True)
class Column:
    """What a column was taken for.

    ``role`` is "node", "covariate", "group", "time" or "unused"; ``kind`` "number", "category", "yes/no",
    "date", "text" or "empty", and of a node of which somebody says what it is the name of its type.
    """

    name: str
    role: str
    kind: str
    missing: int
    distinct: int
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """Something to look at: a code that stays the same, the columns, what it is, what to do."""

    code: str
    columns: tuple[str, ...]
    message: str
    advice: str

    @property
    def looks_wrong(self) -> bool:
        """Whether somebody should look; shapes of columns and sorted rows are only good to know."""
        return self.code not in NOTES

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


def drop_argument(names: Iterable[object]) -> Argument:
    """What leaves out these nodes (:func:`from_table`); many are not named one by one.

    >>> str(drop_argument(["c", "left foot"]))
    "drop=['c', 'left foot']"
    """
    columns = [str(name) for name in names]
    return Argument("drop", columns) if len(columns) <= _NAMED_TO_DROP else Argument("drop")


@dataclass(frozen=True)
class DataCheck:
    """The outcome of :func:`check_data`; ``print`` it to read it.

    Attributes
    ----------
    n_rows : int
    columns : tuple of Column
        ``name``, ``role``, ``kind``, ``missing``, ``distinct`` and ``note`` of every column.
    changes : tuple of str
        What `fit` changes on the way in, in words.
    warnings : tuple of Finding
        ``code``, ``columns``, ``message`` and ``advice`` of everything that looks wrong, and of shapes that
        are good to know.
    rows_left_out : int
        Rows with missing or infinite values that `fit` leaves out.
    table : DataFrame
        A line per column, with what was noticed about it.
    """

    n_rows: int
    columns: tuple[Column, ...]
    changes: tuple[str, ...]
    warnings: tuple[Finding, ...]
    rows_left_out: int = 0

    def codes(self) -> list[str]:
        """The codes of the warnings, each once."""
        return list(dict.fromkeys(finding.code for finding in self.warnings))

    @property
    def is_series(self) -> bool:
        """Whether rows look like a series although nobody says when they were measured."""
        return SERIES in self.codes()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as in ``data_check.json`` of a model folder.

        In Python, rows in messages are counted from 0. The command line says the line of the file instead,
        on the screen and in the messages of ``data_check.json``.
        """
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "n_rows": self.n_rows,
            "rows_left_out": self.rows_left_out,
            "columns": [asdict(column) for column in self.columns],
            "changes": list(self.changes),
            "warnings": [{**asdict(one), "columns": list(one.columns)} for one in self.warnings],
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> DataCheck:
        """Inverse of :meth:`to_json`."""
        if values.get("format") != FORMAT or values.get("format_version") != FORMAT_VERSION:
            raise DataError("This is no data check that this version of graphfield can read.").about(
                argument="text"
            )
        findings = [Finding(**{**one, "columns": tuple(one["columns"])}) for one in values["warnings"]]
        columns = [Column(**column) for column in values["columns"]]
        texts = tuple(values["changes"]), tuple(findings)
        return cls(values["n_rows"], tuple(columns), *texts, values["rows_left_out"])

    @property
    def table(self) -> pd.DataFrame:
        """A line per column: ``name``, ``role``, ``kind``, how many ``distinct`` and ``missing`` values.

        ``values`` is their range or some of them, ``noticed`` the codes of the warnings that name the column.
        """
        lines = [
            (c.name, c.role, c.kind, c.distinct, c.missing, c.note, ", ".join(self._noticed(c.name)))
            for c in self.columns
        ]
        return pd.DataFrame(lines, columns=_TABLE)

    def _noticed(self, name: str) -> list[str]:
        return list(dict.fromkeys(one.code for one in self.warnings if name in one.columns))

    def of_role(self, role: str) -> list[Column]:
        return [column for column in self.columns if column.role == role]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(
        self, changed: str = "In a fit", said: Collection[str] = (), *, notes: bool = True
    ) -> list[str]:
        """The check in words: columns, changes, and a line per warning, "Look:" or "Note:".

        Columns that are not used are named, but for those of which that has been ``said``. Without
        ``notes`` what is only good to know is left out.
        """
        nodes, covariates = self.of_role("node"), self.of_role("covariate")
        groups = "".join(f", groups by {c.name!r}" for c in self.of_role("group"))
        sizes = f"{count(self.n_rows, 'row')}, {count(len(nodes), 'node')}, "
        lines = [f"{sizes}{count(len(covariates), 'covariate')}{groups}."]
        lines += _by_kind(nodes, "nodes")
        lines += _by_kind(covariates, "covariates") if len(covariates) > _MOST_LINES else _each(covariates)
        lines += _each([*self.of_role("group"), *self.of_role("time")])
        unused = [_name_words(column.name) for column in self.of_role("unused") if column.name not in said]
        lines += [f"  not used: {first_few(unused, _MOST_UNUSED)}"] if unused else []
        lines += [f"{changed}: {change}" for change in self.changes]
        said_of = [one for one in self.warnings if notes or one.looks_wrong]
        return lines + [f"{'Look' if one.looks_wrong else 'Note'}: {one}" for one in said_of]

    def reminders(self, meant: Collection[str] = ()) -> list[str]:
        """Lines to be read once more after a fit: nodes there twice, or left out but not ``meant``."""
        found = (one for one in self.warnings if one.code in REMINDED)
        return [f"Look again: {one}" for one in found if not set(one.columns) <= set(meant)]

    def column_lines(self) -> list[str]:
        """:attr:`table` as lines of text, for a person."""
        short = self.table.assign(values=[_shortened(column.note) for column in self.columns])
        cells = [_TABLE, *short.astype(str).to_numpy().tolist()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [zip(row, widths, strict=True) for row in cells]
        return ["  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines]


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _name_words(name: str) -> str:
    return f"{name!r} (the first column, which has no name)" if name == f"{UNNAMED}0" else repr(name)


def _each(columns: Sequence[Column]) -> list[str]:
    return [f"  {c.role} {c.name!r}: {c.kind}{_note(c)}{_missing([c])}" for c in columns]


def _note(column: Column) -> str:
    return f", {column.note}" if column.note else ""


def _by_kind(columns: Sequence[Column], what: str) -> list[str]:
    lines = []
    for kind in dict.fromkeys(column.kind for column in columns):
        own = [column for column in columns if column.kind == kind]
        noun = kind if len(own) == 1 else _PLURALS.get(kind, kind)
        names = listing(column.name for column in own)
        lines.append(f"  {what}: {len(own):,} {noun}, {names}{_missing(own)}")
    return lines


def _missing(columns: Sequence[Column]) -> str:
    gaps = [column for column in columns if column.missing]
    if not gaps:
        return ""
    total = sum(column.missing for column in gaps)
    where = "" if len(columns) == 1 else f" in {count(len(gaps), 'column')}"
    return f"; {total:,} missing{where}"
