"""
Long texts lifted out of a JSON body while it arrives, so that the media in it lie on the disk and not in memory.

A text of more than `LONG` bytes is written to a file, and its first few characters with a mark that nobody can guess
stand in its place; what is left is small, and read as any JSON is. All of a body's texts lie in one file, one behind
another, so that very many of them take no more memory and no more descriptors than one.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO

from vidrelay.server.errors import Refusal

LONG = 64 * 1024
SPOOL_BYTES = 1024 * 1024
HEAD_BYTES = 128
"""Enough of a text to be known by: `data:video/mp4;base64,`, and what follows."""

# Escapes are passed over here and not one by one, for there may be one in every two bytes.
_PLAIN = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


class LongText:
    """
    One lifted text: a JSON string's inside, with its escapes.
    """

    def __init__(self, file: BinaryIO) -> None:
        """
        It begins where the file ends when the first of it is written.
        """
        self._file = file
        self._start = self._size = self._read = 0

    def write(self, data: bytes) -> None:
        """
        Add to its end, which is the file's: each text is written whole before the next, and all before any is read.
        """
        if not self._size:
            self._start = self._file.tell()
        self._file.write(data)
        self._size += len(data)

    def rewind(self) -> None:
        """
        Read from its start next.
        """
        self._file.seek(self._start)
        self._read = 0

    def read(self, size: int) -> bytes:
        """
        At most so many bytes more; none at its end.
        """
        data = self._file.read(min(size, self._size - self._read))
        self._read += len(data)
        return data


class Lifted:
    """
    The long texts of one body, by their marks.
    """

    def __init__(self, secret: str) -> None:
        """
        `secret` is drawn anew for each body and makes its marks unguessable.
        """
        self._mark = f"vidrelay-lifted-{secret}-"
        self._file: BinaryIO | None = None
        self._texts: list[LongText] = []

    def find(self, text: str) -> LongText | None:
        """
        What stood where this text stands now. None where the text is what was sent.
        """
        _, found, number = text.rpartition(self._mark)
        return self._texts[int(number)] if found else None

    def close(self) -> None:
        """
        Delete the file.
        """
        if self._file is not None:
            self._file.close()

    def begin(self) -> LongText:
        """
        A place for a text that has turned out to be long.
        """
        if self._file is None:
            file: BinaryIO = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # type: ignore[assignment]  # noqa: SIM115 `close` does
            self._file = file
        text = LongText(self._file)
        self._texts.append(text)
        return text

    def last_mark(self) -> bytes:
        """
        What stands for the text that was begun last.
        """
        return f"{self._mark}{len(self._texts) - 1}".encode()


async def lift(chunks: AsyncIterator[bytes], lifted: Lifted, *, limit: int) -> bytes:
    """
    The body without its long texts, which are in `lifted` then.

    Raises:
        Refusal: What is left is over `limit` bytes.
    """
    body = _Body(lifted, limit)
    async for chunk in chunks:
        writes = body.take(chunk)
        if writes:
            await asyncio.to_thread(_write, writes)
    return body.rest()


def _write(writes: list[tuple[LongText, bytes]]) -> None:
    for text, data in writes:
        text.write(data)


class _Body:
    """
    Reads JSON no further than to know where its texts begin and end.
    """

    def __init__(self, lifted: Lifted, limit: int) -> None:
        self._lifted = lifted
        self._limit = limit
        self._kept = bytearray()
        self._text: bytearray | None = None  # the text that is being read, while it is not known to be long
        self._long: LongText | None = None  # where it goes once it is
        self._head = b""
        self._escaped = False

    def take(self, chunk: bytes) -> list[tuple[LongText, bytes]]:
        """
        Read on; returns what is to be written, and where.
        """
        writes: list[tuple[LongText, bytes]] = []
        at = 0
        while at < len(chunk):
            at = self._inside(chunk, at, writes) if self._text is not None else self._outside(chunk, at)
        if len(self._kept) > self._limit:
            raise Refusal("too_large", f"The body is over {self._limit} bytes, its media not counted.")
        return writes

    def rest(self) -> bytes:
        """
        The body without its long texts; an unfinished text is left as it is, for the parser to refuse.
        """
        return bytes(self._kept + (self._text or b""))

    def _outside(self, chunk: bytes, at: int) -> int:
        quote = chunk.find(b'"', at)
        if quote < 0:
            self._kept += chunk[at:]
            return len(chunk)
        self._kept += chunk[at : quote + 1]
        self._text = bytearray()
        return quote + 1

    def _inside(self, chunk: bytes, at: int, writes: list[tuple[LongText, bytes]]) -> int:
        if self._escaped:
            self._put(chunk[at : at + 1], writes)
            self._escaped = False
            return at + 1
        plain = _PLAIN.match(chunk, at)
        end = plain.end() if plain else at
        self._put(chunk[at:end], writes)
        if end == len(chunk):
            return end
        if chunk[end] == ord("\\"):
            self._escaped = True
            self._put(b"\\", writes)
        else:
            self._kept += (self._text or b"") if self._long is None else self._head + self._lifted.last_mark()
            self._kept += b'"'
            self._text = self._long = None
        return end + 1

    def _put(self, data: bytes, writes: list[tuple[LongText, bytes]]) -> None:
        if self._text is None or not data:
            return
        if self._long is None:
            self._text += data
            if len(self._text) <= LONG:
                return
            self._long, data = self._lifted.begin(), bytes(self._text)
            self._head = data[:HEAD_BYTES].replace(b"\\/", b"/").partition(b"\\")[0].decode(errors="ignore").encode()
            self._text.clear()
        writes.append((self._long, data))
