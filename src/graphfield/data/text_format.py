"""Which mark separates the cells of a text table, and which line is its header."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from graphfield.data.sources import Source, open_unpacked
from graphfield.data.text_numbers import find_evidence
from graphfield.exceptions import DataError, count, listing
from graphfield.messages import Argument, join_messages

CANDIDATES = (",", ";", "\t", "|")
SPACE = " "
# Lines that are looked at, and letters of them at most.
_LINES, _LETTERS = 300, 32_000_000
# Lines above the header at most.
_ABOVE = 20
# Of the lines, this share must have as many cells as the header.
_FITTING = 0.9
# By so much must the share of cells that are numbers differ for one way of cutting to be the better one.
_CLEARLY = 0.05
# A line that Excel reads and people write for it.
_EXCEL_HINT = re.compile(r'"?sep=([,;|\t])"?\r?$', re.IGNORECASE | re.MULTILINE)
_ABOVE_MARKS = ("#", "sep=")  # how lines begin that are no title
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)*|[.,]\d+)([eE][-+]?\d+)?%?")
_COMMAS_TWICE = (
    " If commas are decimal marks too, nobody can tell them apart: save the table with semicolons or tabs "
    "between the cells."
)


@dataclass(frozen=True)
class Record:
    """The cells of a row of a text file, and the line on which it begins, counted from 1."""

    line: int
    cells: list[str]

    @property
    def filled(self) -> int:
        return sum(bool(cell.strip()) for cell in self.cells)


@dataclass(frozen=True)
class Layout:
    """A separator, the header and the first rows as this separator cuts them.

    ``skipped`` lines stand above the header; ``row_names`` says that rows begin with a cell that has no name.
    """

    sep: str
    header: Record
    rows: list[Record]
    skipped: int
    row_names: bool = False

    @property
    def names(self) -> list[str]:
        names = [name.strip() for name in self.header.cells]
        return ["", *names] if self.row_names else names


def read_records(handle: io.TextIOBase, sep: str, first_line: int = 1) -> Iterator[Record]:
    """Records of a text file that are not blank, from where the handle stands."""
    if sep == SPACE:
        for line, text in enumerate(iter(handle.readline, ""), first_line):
            if text.strip():
                yield Record(line, text.split())
        return
    reader = csv.reader(iter(handle.readline, ""), delimiter=sep, skipinitialspace=True)
    begin = first_line
    for cells in reader:
        if len(cells) > 1 or any(cell.strip() for cell in cells):
            yield Record(begin, cells)
        begin = first_line + reader.line_num


def open_text(source: Source, packed: str, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_unpacked(source, packed), encoding=encoding, newline="")


def find_layout(source: Source, packed: str, encoding: str, given: str | None) -> Layout:
    """The separator that is ``given``, or the one that cuts all lines into as many cells as the header."""
    text, complete = _first_lines(source, packed, encoding)
    hint = _EXCEL_HINT.match(text)
    mark = given or (hint[1] if hint else None)
    layouts = [one for mark in CANDIDATES if (one := _layout(text, mark, complete)) is not None]
    if mark is not None:
        asked = _layout(text, mark, complete)
        _refuse_other(mark, asked, [one for one in layouts if one.sep != mark], source)
        return asked or _one_column(text, source, mark)
    if layouts:
        return _chosen(layouts, source)
    spaced = _layout(text, SPACE, complete)
    if spaced is not None and _share_of_numbers(spaced.rows) > 0.5:
        return spaced
    return _one_column(text, source, None)


def _first_lines(source: Source, packed: str, encoding: str) -> tuple[str, bool]:
    """The first lines of the file, and whether they are all of it."""
    parts, letters = [], 0
    with closing(open_text(source, packed, encoding)) as handle:
        for line in iter(lambda: handle.readline(_LETTERS), ""):
            parts.append(line)
            letters += len(line)
            if len(parts) == _LINES or letters >= _LETTERS:
                break
        complete = not handle.read(1)
    return "".join(parts), complete


def _records(text: str, sep: str, complete: bool) -> list[Record] | None:
    """All records, without the last where it may go on beyond the text; None where quotes do not close."""
    try:
        records = list(read_records(io.StringIO(text, newline=""), sep))
    except csv.Error:
        return None
    return records if complete else records[:-1]


def _layout(text: str, sep: str, complete: bool) -> Layout | None:
    """The header and the rows as this separator cuts them; None where they do not fit each other."""
    records = _records(text, sep, complete)
    if not records:
        return None
    later = records[len(records) // 2 :]  # without what stands above the header
    width = Counter(len(one.cells) for one in later).most_common(1)[0][0]
    above = _lines_above(records, width)
    if width < 2 or above is None:
        return None
    header, rows = records[above], records[above + 1 :]
    fitting = [len(row.cells) == width for row in rows]
    if rows and sum(fitting) < _FITTING * len(rows) and sum(fitting) < len(rows) - 1:
        return None
    narrow = len(header.cells) == width - 1
    trailing = narrow and all(not row.cells[-1].strip() for row in rows if len(row.cells) == width)
    if narrow and not trailing and not _are_row_names(rows, sep, text):
        return None
    return Layout(sep, header, rows, header.line - 1, narrow and not trailing)


def _lines_above(records: Sequence[Record], width: int) -> int | None:
    """How many records stand above the header: comments, and titles of one cell; None where it is nowhere."""
    for position, record in enumerate(records[: _ABOVE + 1]):
        comment = record.cells[0].startswith(_ABOVE_MARKS)
        if len(record.cells) in (width, width - 1) and _has_names(record):
            follows = records[position + 1 : position + 2]
            if not comment or (len(record.cells) == width and any(map(_has_number, follows))):
                titled = any(not one.cells[0].startswith(_ABOVE_MARKS) for one in records[:position])
                return None if titled and _may_be_row(record) else position
        elif not comment and record.filled > 1:
            return None
    return None


def _has_names(record: Record) -> bool:
    """More than one cell says something, as in no title; or the index, which has no name, and one column."""
    return record.filled > 1 or (
        len(record.cells) == 2 and not record.cells[0].strip() and record.filled == 1
    )


def _has_number(record: Record) -> bool:
    return any(_NUMBER.fullmatch(cell.strip()) for cell in record.cells)


def _may_be_row(record: Record) -> bool:
    """Half of the cells are numbers, so that the line above may be the header and this one a row."""
    return 2 * sum(bool(_NUMBER.fullmatch(cell.strip())) for cell in record.cells) >= len(record.cells)


def _are_row_names(rows: Sequence[Record], sep: str, text: str) -> bool:
    """Whether rows begin with a name of their own, as R writes them: text, or 1, 2, 3 and so on.

    Other numbers belong to a column whose name is missing, or to commas that are decimal marks too.
    """
    lines = io.StringIO(text, newline="").readlines()
    first = [row.cells[0].strip() for row in rows]
    if sep != "," and first == [str(number + 1) for number in range(len(rows))]:
        return True
    return all(
        lines[row.line - 1].startswith('"') or not _NUMBER.fullmatch(cell)
        for row, cell in zip(rows, first, strict=True)
    )


def _share_of_numbers(rows: Sequence[Record]) -> float:
    cells = [cell.strip() for row in rows[:100] for cell in row.cells if cell.strip()]
    return sum(bool(_NUMBER.fullmatch(cell)) for cell in cells) / max(len(cells), 1)


def _refuse_other(mark: str, asked: Layout | None, others: list[Layout], source: Source) -> None:
    """Raise where the separator that is given leaves text in which another one finds numbers."""
    found = _share_of_numbers(asked.rows) if asked is not None else 0.0
    better = [one for one in others if _share_of_numbers(one.rows) > found + _CLEARLY]
    if not better:
        return
    best = max(better, key=lambda one: _share_of_numbers(one.rows))
    commas = find_evidence(zip(*(row.cells for row in best.rows), strict=False)).certain == {","}
    options = [Argument("sep", best.sep), *([Argument("decimal", ",")] if commas else [])]
    raise DataError(
        "{file!r} is not separated by {mark!r}: it looks separated by {sep!r}{how} (columns {names}). Give "
        "{options} instead, or leave it out: it is found.",
        file=source.name,
        mark=mark,
        sep=best.sep,
        how=" with decimal commas" if commas else "",
        names=listing(best.names, most=4),
        options=join_messages(" and ", options),
    )


def _chosen(layouts: list[Layout], source: Source) -> Layout:
    """The one of several that skips least and finds most numbers; those that are as good are asked about."""
    ranked = sorted(layouts, key=lambda one: (one.skipped, -_share_of_numbers(one.rows)))
    most = _share_of_numbers(ranked[0].rows) - _CLEARLY
    equal = [one for one in ranked if one.skipped == ranked[0].skipped and _share_of_numbers(one.rows) > most]
    if len(equal) == 1:
        return equal[0]
    tabs = [one for one in equal if one.sep == "\t" and ".tsv" in Path(source.name).suffixes]
    if tabs:
        return tabs[0]
    raise DataError(
        "{file!r} can be cut into cells in several ways, by {marks}. Say which: {options}.",
        file=source.name,
        marks=listing(one.sep for one in equal),
        options=join_messages(" or ", [Argument("sep", one.sep) for one in equal]),
    )


def _one_column(text: str, source: Source, given: str | None) -> Layout:
    """A table of one column; text in which separators are somewhere, but not as in a table, is refused."""
    for sep in [given] if given is not None else CANDIDATES:
        records = _records(text, sep, True)
        if records is None:
            raise DataError(
                f"{source.name!r} cannot be read as csv: a quotation mark is opened and never closed, or a "
                "cell is very long. Correct it, or save the table again."
            )
        if any(len(record.cells) > 1 for record in records):
            raise _no_table(records, sep, source)
    if not records:
        return Layout(sep, Record(1, []), [], 0)
    name = records[0].cells[0].strip()
    others = [mark for mark in CANDIDATES if mark != sep and mark in name]
    if given is not None and others:
        raise DataError(
            "{file!r} has one column called {column!r}: its separator is another one ({option}), or its "
            "lines do not have the same number of cells.",
            file=source.name,
            column=_shortened(name),
            option=Argument("sep", others[0]),
        )
    return Layout(given or ",", records[0], records[1:], records[0].line - 1)


def _no_table(records: list[Record], sep: str, source: Source) -> DataError:
    """Which two lines do not have the same number of cells."""
    header = records[0]
    odd = next((row for row in records[1:] if len(row.cells) != len(header.cells)), records[-1])
    why = _COMMAS_TWICE if sep == "," and len(odd.cells) > len(header.cells) else ""
    return DataError(
        "{file!r} is no table: line {header} has {cells}, line {line} has {found}, if {sep!r} separates "
        "them. Correct the lines, or say what does ({option}).{why}",
        file=source.name,
        header=header.line,
        cells=count(len(header.cells), "cell"),
        line=odd.line,
        found=len(odd.cells),
        sep=sep,
        option=Argument("sep", ";"),
        why=why,
    )


def _shortened(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:37]}..."
