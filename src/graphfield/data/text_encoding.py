"""The encoding of a text table, found from all of its bytes."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import closing
from typing import BinaryIO

from graphfield.data.sources import Source, open_unpacked
from graphfield.exceptions import DataError
from graphfield.messages import Argument

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHUNK = 1 << 20
_HEAD = 4096
# Bytes that text has none of: control characters besides tabs, ends of lines and pages.
_CONTROL = bytes([*range(0x09), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


def find_encoding(source: Source, packed: str, given: str | None) -> str:
    """The encoding that is ``given`` or found, with which all bytes of the table can be read.

    By its mark at the beginning, else UTF-16 by the zeros of its letters, else UTF-8 if all is, else
    Windows-1252, which includes what people call latin-1.
    """
    with closing(open_unpacked(source, packed)) as stream:
        head = stream.read(_HEAD)
    marked = next((name for mark, name in _BOMS if head.startswith(mark)), None) or _utf16_by_zeros(head)
    if given is not None:
        return _checked(source, packed, _with_mark(given, marked, source))
    if marked is not None:
        return _checked(source, packed, marked)
    if _is_utf8(source, packed):
        return "utf-8"
    return _checked(source, packed, "cp1252")


def _utf16_by_zeros(head: bytes) -> str | None:
    """UTF-16 without a mark: in a table most letters are of the first 256, so every other byte is zero."""
    if len(head) < 4 or b"\0" not in head:
        return None
    even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / len(head[1::2])
    if odd > 0.6 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.6 and odd < 0.1 else None


def _with_mark(given: str, marked: str | None, source: Source) -> str:
    """The given encoding, with the mark that the file has; one that contradicts the mark is refused."""
    if marked is None:
        return given
    plain = codecs.lookup(given).name.replace("_", "-")
    if plain.startswith(marked[:6] if marked.startswith("utf-16") else marked.removesuffix("-sig")):
        return marked
    raise DataError(
        "{file!r} is {marked} by its first bytes, not {given}. Leave that out.",
        file=source.name,
        marked=marked.upper(),
        given=Argument("encoding", given),
    )


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _is_utf8(source: Source, packed: str) -> bool:
    """Whether all is UTF-8; bytes that no text has, and UTF-8 with other bytes among it, are refused."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    beyond_ascii = False
    with closing(open_unpacked(source, packed)) as stream:
        for chunk in _chunks(stream):
            _check_is_text(chunk, source)
            try:
                text = decoder.decode(chunk)
            except UnicodeDecodeError as error:
                if beyond_ascii or not error.object[: error.start].isascii():
                    raise DataError(
                        "{file!r} is UTF-8 only in part: after other letters comes byte 0x{byte:02x}, "
                        "which is none. Say what it is ({option}), or save it as UTF-8.",
                        file=source.name,
                        byte=error.object[error.start],
                        option=Argument("encoding", "cp1252"),
                    ) from error
                return False
            beyond_ascii = beyond_ascii or not text.isascii()
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        if beyond_ascii:
            raise DataError(
                "{file!r} ends within a letter: it was cut off, or it is not UTF-8. Get it again, or say "
                "what it is ({option}).",
                file=source.name,
                option=Argument("encoding", "cp1252"),
            ) from error
        return False
    return True


def _check_is_text(chunk: bytes, source: Source) -> None:
    if len(chunk.translate(None, _CONTROL)) < len(chunk):  # ten times as fast as looking for them
        odd = next(byte for byte in chunk if byte in _CONTROL)
        raise DataError(
            "{file!r} cannot be read as csv: it is no text (it has a byte 0x{odd:02x}). Give it the name "
            "of what it is, or say its encoding ({option}).",
            file=source.name,
            odd=odd,
            option=Argument("encoding", "utf-16"),
        )


def _checked(source: Source, packed: str, encoding: str) -> str:
    """The encoding, if all bytes of the table can be read with it."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    with closing(open_unpacked(source, packed)) as stream:
        try:
            for chunk in _chunks(stream):
                lines += decoder.decode(chunk).count("\n")
            decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise DataError(
                "{file!r} cannot be read as text in {encoding}: {reason}, after line {line}. Say what it "
                "is (such as {option}), or save it as UTF-8.",
                file=source.name,
                encoding=encoding,
                reason=_reason(error),
                line=lines,
                option=Argument("encoding", "gbk"),
            ) from error
    return encoding


def _reason(error: UnicodeError) -> str:
    return str(getattr(error, "reason", None) or error or type(error).__name__)
