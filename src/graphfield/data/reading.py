"""How a file is to be read, as far as the user says, and how it was read, to be told and to be repeated."""

from __future__ import annotations

import codecs
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from graphfield.exceptions import ParameterError, check_choice, count

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
DECIMALS = (".", ",")
# Marks between groups of three digits; a space stands for those that do not break lines as well.
THOUSANDS = (".", ",", " ", "'")
_SAID = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces", ".": "points", "'": "'"}
_ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "cp1252": "Windows-1252 (latin-1)",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}


@dataclass(frozen=True)
class ReadOptions:
    """What the user says of a file; None is found out.

    Columns that ``no_numbers`` names, or has patterns of, are text whatever it looks like, but for those that
    ``maybe_numbers`` names.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    no_numbers: tuple[str, ...] = ()
    maybe_numbers: tuple[str, ...] = ()

    def is_text(self, name: str) -> bool:
        """Whether a column of this name is not to be looked at for numbers."""
        return name not in self.maybe_numbers and any(fnmatchcase(name, one) for one in self.no_numbers)

    def checked(self) -> ReadOptions:
        """The options with a separator as its mark; what makes no sense is refused."""
        sep = None if self.sep is None else SEPARATORS.get(self.sep, {"\\t": "\t"}.get(self.sep, self.sep))
        if sep is not None:
            check_choice("sep", sep, [*SEPARATORS.values(), *SEPARATORS])
        if self.decimal is not None:
            check_choice("decimal", self.decimal, DECIMALS)
        if self.thousands is not None:
            check_choice("thousands", self.thousands, THOUSANDS)
        if self.thousands is not None and self.thousands == self.decimal:
            raise ParameterError(f"decimal and thousands must differ, got {self.decimal!r} for both.").about(
                argument="thousands"
            )
        if self.encoding is not None:
            _check_encoding(self.encoding)
        return replace(self, sep=sep)

    def refuse(self, kind: str, names: tuple[str, ...]) -> None:
        """Options that are not for files of this kind."""
        for name in names:
            if getattr(self, name) is not None:
                what = "text tables" if name != "sheet" else "Excel files"
                raise ParameterError.of(name, f"is for {what}, but this is {kind}. Leave it out.")


def _check_encoding(encoding: str) -> None:
    try:
        "a".encode(encoding)
        codecs.getincrementaldecoder(encoding)
    except (LookupError, ValueError, TypeError) as error:
        raise ParameterError.of(
            "encoding", f"must be one that Python knows, such as 'cp1252' or 'utf-16', got {encoding!r}."
        ) from error


@dataclass(frozen=True)
class Reading:
    """How a file was read.

    ``skipped`` lines stood above the header and ``empty_rows`` at the end; the rest is in the words of
    :class:`ReadOptions`.
    """

    kind: str
    encoding: str | None = None
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    sheet: str | None = None
    skipped: int = 0
    empty_rows: int = 0

    def words(self) -> str:
        """What was assumed in one line; empty where there is nothing to say (commas, points, UTF-8).

        >>> Reading("csv", "cp1252", ";", ",").words()
        'semicolons, decimal commas, Windows-1252 (latin-1)'
        """
        parts = []
        if self.sep not in (None, ","):
            parts.append(_SAID[str(self.sep)])
        if self.decimal == ",":
            parts.append("decimal commas")
        if self.thousands is not None:
            parts.append(f"{_SAID[self.thousands]} between thousands")
        if self.encoding is not None and _ENCODINGS.get(self.encoding) != "UTF-8":
            parts.append(_ENCODINGS.get(self.encoding, self.encoding))
        if self.sheet is not None:
            parts.append(f"sheet {self.sheet!r}")
        if self.skipped:
            parts.append(f"{count(self.skipped, 'line')} above the header left out")
        if self.empty_rows:
            parts.append(f"{count(self.empty_rows, 'empty row')} at the end left out")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without what does not apply."""
        return {name: value for name, value in asdict(self).items() if value not in (None, 0)}
