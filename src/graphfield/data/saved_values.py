"""Values of a saved file: whoever reads one says what must be there, and anything else is an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from graphfield.exceptions import ModelFileError, listing

T = TypeVar("T")
_LARGEST = sys.float_info.max
_MOST_WHOLE = 2**63 - 1
# Of a value in a message.
_SHOWN = 60


def refuse(file: str, field: str, expected: str, got: str) -> NoReturn:
    """The one sentence for whatever is not as we write it."""
    raise ModelFileError(
        f"{file} is damaged or was edited: {field or 'its content'} must be {expected}, got {got}. Copy it "
        "again from where it was written, or write it again."
    ).about(file=file)


@dataclass(frozen=True)
class Saved:
    """One JSON value and where it stands.

    >>> state = Saved({"rank": 2, "names": ["a", "b"]}, "model.json")
    >>> state["rank"].whole(1), state["names"].texts(), state.get("penalty") is None
    (2, ['a', 'b'], True)
    """

    value: Any
    file: str
    field: str = ""

    def refuse(self, expected: str, got: str | None = None) -> NoReturn:
        if got is None:
            text = ascii(self.value)
            got = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        refuse(self.file, self.field, expected, got)

    def __getitem__(self, name: str) -> Saved:
        found = self.get(name)
        if found is None:
            refuse(self.file, self._inside(name), "there", "nothing")
        return found

    def get(self, name: str) -> Saved | None:
        """The value of this name, or None where there is none."""
        values = self._checked(dict, "an object")
        return Saved(values[name], self.file, self._inside(name)) if name in values else None

    def known(self, name: str) -> Saved | None:
        """As :meth:`get`; null counts as nothing."""
        found = self.get(name)
        return None if found is None or found.value is None else found

    def items(self) -> dict[str, Saved]:
        return {name: self[name] for name in self._checked(dict, "an object")}

    def listed(self, least: int = 0, most: int | None = None) -> list[Saved]:
        values = self._checked(list, "a list")
        if len(values) < least or (most is not None and len(values) > most):
            size = f"{least} or more" if most is None else f"{least} to {most}"
            self.refuse(f"a list of {size}", f"{len(values)}")
        return [Saved(value, self.file, f"{self.field}[{i}]") for i, value in enumerate(values)]

    def text(self) -> str:
        return str(self._checked(str, "text"))

    def texts(self, least: int = 0, most: int | None = None) -> list[str]:
        return [value.text() for value in self.listed(least, most)]

    def names(self, least: int = 0) -> list[str]:
        """Texts that differ."""
        names = self.texts(least)
        if len(set(names)) < len(names):
            self.refuse("names that are there once each", listing(names, most=4))
        return names

    def flag(self) -> bool:
        return bool(self._checked(bool, "true or false"))

    def choice(self, allowed: Iterable[str]) -> str:
        options = list(allowed)
        if not isinstance(self.value, str) or self.value not in options:
            self.refuse(f"one of {listing(options)}")
        return self.value

    def whole(self, low: int = 0, high: int = _MOST_WHOLE) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            self.refuse(f"a whole number from {low} to {high}")
        return self.value

    def number(self, low: float = -_LARGEST, high: float = _LARGEST) -> float:
        """From ``low`` to ``high``; a whole number stays one."""
        is_number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not (is_number and low <= self.value <= high):
            self.refuse("a finite number" if low == -_LARGEST else f"a number from {low:g} to {high:g}")
        return self.value

    def numbers(self, low: float = -_LARGEST, high: float = _LARGEST) -> list[float]:
        return [value.number(low, high) for value in self.listed()]

    def number_or_nan(self) -> float:
        """What is not a number is written as null."""
        return float("nan") if self.value is None else float(self.number())

    def columns(self, required: Iterable[str] = ()) -> dict[str, list[Any]]:
        """Of a table: lists of one length with numbers, truth values, text or null; some must be numbers."""
        for name in required:
            self[name].numbers()
        columns = {name: column.listed() for name, column in self.items().items()}
        if len({len(column) for column in columns.values()}) > 1:
            self.refuse("lists of one length", listing(str(len(column)) for column in columns.values()))
        return {name: [value._cell() for value in column] for name, column in columns.items()}

    def _cell(self) -> Any:
        if self.value is None or isinstance(self.value, (str, bool)):
            return self.value
        return self.whole(-_MOST_WHOLE) if isinstance(self.value, int) else self.number()

    def _checked(self, kind: type[T], expected: str) -> T:
        if not isinstance(self.value, kind):
            self.refuse(expected)
        return self.value

    def _inside(self, name: str) -> str:
        return f"{self.field}.{name}" if self.field else name


def optional(value: Saved | None, read: Callable[[Saved], T], default: T) -> T:
    """What ``read`` makes of the value; ``default`` where there is none."""
    return default if value is None else read(value)
