"""
Writes a multipart form as a stream of pieces, its length known before the first, files read as they are sent.
"""

import asyncio
import contextlib
import hashlib
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vidrelay.core.errors import TransportError
from vidrelay.core.messages import Form, FormFile

PIECE_BYTES = 256 * 1024

_ESCAPES = {ord('"'): "%22", ord("\r"): "%0D", ord("\n"): "%0A", 0: "%00"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormBody:
    """
    A form ready to be sent once.
    """

    content_type: str
    length: int
    pieces: AsyncIterator[bytes]


@asynccontextmanager
async def open_form(form: Form, asset_path: Callable[[str], Path]) -> AsyncGenerator[FormBody]:
    """
    Open the form's files and say how long the whole body is; the files are closed when the context ends.

    Raises:
        TransportError: A file is missing or cannot be read; nothing has been sent.
    """
    boundary = _boundary(form)
    with contextlib.ExitStack() as opened:
        parts: list[bytes | _Upload] = []
        for name, value in form.fields:
            parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{_escape(name)}"\r\n\r\n'.encode())
            parts.append(value.encode() + b"\r\n")
        for file in form.files:
            parts.append(_file_head(file, boundary))
            upload = await asyncio.to_thread(_open, file, asset_path)
            opened.callback(upload.file.close)
            parts.extend((upload, b"\r\n"))
        parts.append(f"--{boundary}--\r\n".encode())
        pieces = _pieces(parts)
        try:
            yield FormBody(
                content_type=f"multipart/form-data; boundary={boundary}", length=sum(map(_length, parts)), pieces=pieces
            )
        finally:
            await pieces.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upload:
    file: BinaryIO
    size_bytes: int


def _length(part: bytes | _Upload) -> int:
    return part.size_bytes if isinstance(part, _Upload) else len(part)


async def _pieces(parts: list[bytes | _Upload]) -> AsyncGenerator[bytes]:
    for part in parts:
        if not isinstance(part, _Upload):
            yield part
            continue
        left = part.size_bytes
        while left:
            piece = await asyncio.to_thread(part.file.read, min(PIECE_BYTES, left))
            if not piece:
                raise OSError("a file of the form was cut short while it was sent")
            left -= len(piece)
            yield piece


def _open(file: FormFile, asset_path: Callable[[str], Path]) -> _Upload:
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        opened = os.fdopen(os.open(asset_path(file.asset), flags), "rb")
    except OSError as exc:
        raise TransportError(
            f"The reference image {file.asset} is not there to be sent.",
            maybe_sent=False,
            hint="Upload it again, or name it by its path.",
        ) from exc
    status = os.fstat(opened.fileno())
    if not stat.S_ISREG(status.st_mode):
        opened.close()
        raise TransportError(f"The reference image {file.asset} is no regular file.", maybe_sent=False)
    return _Upload(file=opened, size_bytes=status.st_size)


def _file_head(file: FormFile, boundary: str) -> bytes:
    return (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{_escape(file.name)}"; '
        f'filename="{_escape(file.filename)}"\r\nContent-Type: {_escape(file.media_type)}\r\n\r\n'
    ).encode()


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _boundary(form: Form) -> str:
    # A hash of the content: no part can hold it, and the same form is the same bytes when it is sent again.
    return "vidrelay-" + hashlib.sha256(repr(form).encode()).hexdigest()[:40]
