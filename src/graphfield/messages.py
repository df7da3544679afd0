"""Messages with parts: a template and what goes into it, so that others can say it in their own words.

Most messages are plain text. One that names an argument or a row, or whose advice is for Python only, is a
:class:`Message`: text as Python says it, from which the command line makes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import PurePath
from typing import Any

_NOT_GIVEN: Any = ...


class Part:
    """Something that others may call by another name; as text, it is what Python calls it."""


@dataclass(frozen=True)
class Argument(Part):
    """An argument, with a value or without one, ``of`` a function where it is not clear which.

    >>> str(Argument("missing", "drop")), str(Argument("nodes")), str(Argument("rare", 20, "from_table"))
    ("missing='drop'", 'nodes', 'from_table(..., rare=20)')
    """

    name: str
    value: Any = _NOT_GIVEN
    of: str = ""

    @property
    def has_value(self) -> bool:
        return self.value is not _NOT_GIVEN

    def __str__(self) -> str:
        text = f"{self.name}={self.value!r}" if self.has_value else self.name
        return f"{self.of}(..., {text})" if self.of else text


@dataclass(frozen=True)
class Row(Part):
    """A row of the user's table, counted from 0."""

    index: int

    def __str__(self) -> str:
        return f"row {self.index}"


@dataclass(frozen=True)
class Place(Part):
    """A value of a covariate, as Python asks for it.

    >>> str(Place("sex", "F"))
    "{'sex': 'F'}"
    """

    covariate: str
    value: Any

    def __str__(self) -> str:
        return str({self.covariate: self.value})


class Message(str):
    """Text as Python says it, which remembers the template and the parts that it was made of.

    Parts are named in the template as in ``str.format``, and never read as templates themselves. They may be
    values, of which nobody changes a letter, an :class:`Argument`, a :class:`Row` or other messages. For a
    message with a ``code``, others may have a template of their own.

    >>> said = Message("Node {name!r} has a gap in {row}. Use {drop}.", name="{row}", row=Row(5),
    ...                drop=Argument("missing", "drop"))
    >>> said
    "Node '{row}' has a gap in row 5. Use missing='drop'."
    """

    template: str
    code: str
    parts: dict[str, Any]

    def __new__(cls, template: str, /, *, code: str = "", **parts: Any) -> Message:
        message = super().__new__(cls, template.format(**parts))
        message.template, message.code = template, code
        message.parts = {name: _detach(part) for name, part in parts.items()}
        return message

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (self.template, self.code, self.parts)


@dataclass(frozen=True)
class _ObjectText:
    """An object as text: a message keeps no table alive, and goes wherever text can go."""

    plain: str
    quoted: str

    def __str__(self) -> str:
        return self.plain

    def __repr__(self) -> str:
        return self.quoted


def _detach(part: Any) -> Any:
    if isinstance(part, PurePath):
        return str(part)
    harmless = part is None or isinstance(part, (str, Number, Part, _ObjectText))
    return part if harmless else _ObjectText(str(part), repr(part))


def _remake(template: str, code: str, parts: dict[str, Any]) -> Message:
    return Message(template, code=code, **parts)


def join_messages(separator: str, messages: Iterable[str | Part]) -> Message:
    """Messages one after the other, each with its parts."""
    parts: dict[str, Any] = {f"part{number}": message for number, message in enumerate(messages)}
    return Message(separator.join(f"{{{name}}}" for name in parts), **parts)


def move_rows(message: str, rows: Sequence[int]) -> str:
    """The message about a table of which some rows were taken, with each row as the whole table has it.

    >>> move_rows(Message("See {row}.", row=Row(1)), [2, 5])
    'See row 5.'
    """
    if not isinstance(message, Message):
        return message

    def moved(part: Any) -> Any:
        if isinstance(part, Row):
            return Row(int(rows[part.index]))
        return move_rows(part, rows) if isinstance(part, Message) else part

    parts = {name: moved(part) for name, part in message.parts.items()}
    return Message(message.template, code=message.code, **parts)


def message_of(error: BaseException) -> str:
    """What an error or a warning says, with the parts where it has any."""
    return error.args[0] if error.args and isinstance(error.args[0], Message) else str(error)


def render(message: str, words: Callable[[Part], str], templates: Mapping[str, str]) -> str:
    """The text of a message with other ``words`` for its parts, and other ``templates`` by code.

    >>> render(Message("See {row}.", row=Row(5)), lambda part: f"line {part.index + 2}", {})
    'See line 7.'
    """
    if not isinstance(message, Message):
        return message

    def of_part(part: Any) -> Any:
        if isinstance(part, Part):
            return words(part)
        return render(part, words, templates) if isinstance(part, Message) else part

    template = templates.get(message.code, message.template)
    return template.format(**{name: of_part(part) for name, part in message.parts.items()})
