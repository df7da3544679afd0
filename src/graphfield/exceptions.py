"""Errors and warnings. A message says what was expected, what came, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Self

from graphfield.messages import Argument, Message, join_messages, message_of


class GraphfieldError(Exception):
    """Base of every error that graphfield raises on purpose.

    ``parts`` go into the text as into the template of a :class:`~graphfield.messages.Message`. Programs may
    ask for ``argument``, ``column`` (the first one at fault), ``row``, ``file`` and ``advice``.
    """

    def __init__(self, *text: object, code: str = "", **parts: Any) -> None:
        super().__init__(*((Message(str(text[0]), code=code, **parts),) if code or parts else text))

    @classmethod
    def of(cls, argument: str, said: str) -> Self:
        """What is ``said`` of an argument, after its name.

        >>> str(ParameterError.of("most", "must be 1 or more, got 0."))
        'most must be 1 or more, got 0.'
        """
        return cls("{argument} {said}", argument=Argument(argument), said=said)

    @property
    def message(self) -> str:
        """What is said; a ``Message`` where it has parts."""
        return message_of(self)

    @property
    def parts(self) -> dict[str, Any]:
        """What the message is about, by name."""
        return getattr(self.message, "parts", {})

    def about(self, *, argument: str = "", **parts: Any) -> Self:
        """The same error with parts that its text, which is no template, does not name as such.

        >>> DataError("Node 'a' is constant.").about(column="a").parts["column"]
        'a'
        """
        if argument:
            parts["argument"] = Argument(argument)
        known = self.message
        if not isinstance(known, Message):
            known = Message("{said}", said=known)
        self.args = (Message(known.template, code=known.code, **known.parts | parts),)
        return self


class DataError(GraphfieldError, ValueError):
    """The table, X or Z cannot be used as it is."""


class ParameterError(GraphfieldError, ValueError):
    """A hyper-parameter or option has a value that makes no sense."""


class ModelFileError(GraphfieldError, ValueError):
    """A folder is not a graphfield model, is damaged, or was written by a newer version."""


class OutputError(GraphfieldError, OSError):
    """A result cannot be written where it was asked for."""


class MissingDependencyError(GraphfieldError, ImportError):
    """An optional package is needed for what was asked."""


class TrainingError(GraphfieldError, RuntimeError):
    """Training broke down."""


class DataWarning(UserWarning):
    """The data was changed on the way in; the message says how."""


class ExtrapolationWarning(UserWarning):
    """A graph was asked for far outside the covariates that training has seen."""


class ThresholdWarning(UserWarning):
    """``threshold="auto"`` keeps nearly no edge, or nearly all."""


class NoGapWarning(ThresholdWarning):
    """The edge magnitudes have no gap, so ``threshold="gap"`` fell back to another rule."""


class FewRowsWarning(UserWarning):
    """An interval was asked for where hardly any training row is: it is narrower than what is known there."""


class TrainingWarning(UserWarning):
    """Training ended, but its result deserves a look."""


def listing(names: Iterable[object], most: int = 8) -> str:
    """``'a', 'b', 'c' and 4 more``: a readable list of names for a message."""
    return first_few([repr(str(name)) for name in names], most)


def first_few(texts: Sequence[str], most: int, separator: str = ", ", noun: str = "") -> str:
    """``a, b, c and 4 more``: the first of several texts, which may have parts; nobody counts a single one.

    >>> first_few(list("abcd"), 3), first_few(list("abcde"), 3), first_few(list("abcde"), 3, "; ", "scale")
    ('a, b, c, d', 'a, b, c and 2 more', 'a; b; c and 2 more scales')
    """
    left = len(texts) - most
    if left < 2:
        return join_messages(separator, texts)
    more = f"{left:,} more{f' {noun}s' if noun else ''}"
    return join_messages(" and ", [join_messages(separator, texts[:most]), more])


def count(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def named(noun: str, names: Iterable[object]) -> str:
    """``Node 'a'``, ``Nodes 'a', 'b'``: the noun agrees with how many names there are.

    >>> named("Node", ["a"]), named("Node", ["a", "b"])
    ("Node 'a'", "Nodes 'a', 'b'")
    """
    quoted = list(names)
    return f"{noun}{'' if len(quoted) == 1 else 's'} {listing(quoted)}"


def agreed(number: int, one: str, many: str) -> str:
    """The form of a verb or a pronoun that goes with so many things: ``has`` or ``have``."""
    return one if number == 1 else many


def suggestion(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` where a known name is close, else an empty string."""
    options = list(known)
    close = [option for option in options if option.lower() == name.lower()]
    close = close or get_close_matches(name, options, n=1, cutoff=0.7)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_choice(parameter: str, value: object, allowed: Iterable[str]) -> None:
    """Raise unless ``value`` is one of ``allowed``."""
    options = list(allowed)
    if value not in options:
        hint = suggestion(value, options) if isinstance(value, str) else ""
        raise ParameterError.of(parameter, f"must be one of {listing(options)}, got {value!r}.{hint}")


def check_package(package: str, extra: str | None, purpose: str, called: str | None = None) -> None:
    """Raise unless an optional package is installed, which is not imported; to be called before any work.

    ``extra`` is the one of ours that has it, if one has; ``called`` what it is called where it is not.
    """
    if find_spec(package) is None:
        install, known_as = called if extra is None else f"'graphfield[{extra}]'", called or package
        raise MissingDependencyError(f"{purpose} needs the package {known_as}: pip install {install}.")
