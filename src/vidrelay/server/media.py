"""
Pictures, films and sounds out of a door's call: base64 in a JSON body or a part of a form, as bytes, without holding
one whole.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Mapping
from typing import BinaryIO

from vidrelay.core.errors import UnsupportedMedia
from vidrelay.server.lifting import LongText

READ_BYTES = 256 * 1024

_PREFIX = re.compile(rb"data:[^,]{0,200};base64,", re.IGNORECASE)
_SPACE = re.compile(rb"[ \t\r\n]+")
_ESCAPED_SPACE = re.compile(rb"\\[nrt]")
_ESCAPED = {
    rb"\u002b": b"+",
    rb"\u002B": b"+",
    rb"\u002f": b"/",
    rb"\u002F": b"/",
    rb"\u003d": b"=",
    rb"\u003D": b"=",
}
"""What some JSON writers make of base64's other signs."""
_PERCENT = {
    b"%2b": b"+",
    b"%2B": b"+",
    b"%2f": b"/",
    b"%2F": b"/",
    b"%3d": b"=",
    b"%3D": b"=",
    b"%0a": b"",
    b"%0A": b"",
    b"%0d": b"",
    b"%0D": b"",
    b"%20": b"",
}
"""What browsers make of them and of line breaks in an address. Any other escape is none of base64."""
_UNFINISHED = re.compile(rb"(?:\\(?:u[0-9A-Fa-f]{0,3})?|%[0-9A-Fa-f]?)\Z")
"""An escape that may go on in the next piece."""


async def pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    """
    A file from its start, piece by piece.
    """
    await asyncio.to_thread(file.seek, 0)
    while data := await asyncio.to_thread(file.read, READ_BYTES):
        yield data


async def from_text(text: str) -> AsyncIterator[bytes]:
    """
    The bytes of base64, bare or as a data URI.

    Raises:
        UnsupportedMedia: It is no base64.
    """
    reader = _Reader()
    yield reader.take(text.encode()) + reader.end()


async def from_long(text: LongText) -> AsyncIterator[bytes]:
    """
    The same of a text that was lifted out of a JSON body, with JSON's escapes still in it.

    Raises:
        UnsupportedMedia: It is no base64.
    """
    reader, kept = _Reader(), b""
    text.rewind()
    while piece := await asyncio.to_thread(text.read, READ_BYTES):
        data, kept = _finished(kept + piece)
        if b"\\" in data:
            data = _ESCAPED_SPACE.sub(b"", _replaced(data, _ESCAPED).replace(b"\\/", b"/"))
        yield reader.take(data)
    yield reader.take(kept) + reader.end()


def _finished(data: bytes) -> tuple[bytes, bytes]:
    """
    The data up to an escape that is not whole yet, and that.
    """
    found = _UNFINISHED.search(data, max(0, len(data) - 5))
    return (data[: found.start()], found[0]) if found else (data, b"")


def _replaced(data: bytes, signs: Mapping[bytes, bytes]) -> bytes:
    # Sign by sign, not escape by escape: there may be one in every three bytes.
    for escape, sign in signs.items():
        data = data.replace(escape, sign)
    return data


class _Reader:
    """
    Base64 that comes in pieces.
    """

    def __init__(self) -> None:
        self._kept = b""
        self._begun = False

    def take(self, data: bytes) -> bytes:
        """
        The bytes of this piece, which ends within no escape, but for those of a group of four that is not whole yet.
        """
        if not self._begun:
            self._begun = True
            prefix = _PREFIX.match(data)
            data = data[prefix.end() :] if prefix else data
        if b"%" in data:
            data = _replaced(data, _PERCENT)
        data = self._kept + _SPACE.sub(b"", data).translate(bytes.maketrans(b"-_", b"+/"))
        whole = len(data) // 4 * 4
        self._kept = data[whole:]
        return self._decoded(data[:whole])

    def end(self) -> bytes:
        """
        The rest; some leave out the padding.
        """
        return self._decoded(self._kept + b"=" * (-len(self._kept) % 4))

    def _decoded(self, data: bytes) -> bytes:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise UnsupportedMedia("What stands where a picture, film or sound goes is no base64.") from error
