"""
Writes a call's body as a stream of pieces, its length known before the first, files read as they are sent: a multipart
form, JSON with pictures in it, or a file as it is.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vidrelay.core.errors import TransportError
from vidrelay.core.messages import Blob, Form, FormFile, Inline, Json

PIECE_BYTES = 255 * 1024
"""A multiple of three, so that the base64 of each piece is that of the whole."""

_ESCAPES = {ord('"'): "%22", ord("\r"): "%0D", ord("\n"): "%0A", 0: "%00"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """
    A body ready to be sent once; `content_type` None: the call's own headers say it.
    """

    content_type: str | None
    length: int
    pieces: AsyncIterator[bytes]


@asynccontextmanager
async def open_body(body: bytes | Form | Json | Blob, asset_path: Callable[[str], Path]) -> AsyncGenerator[Body]:
    """
    Open the body's files and say how long the whole is; the files are closed when the context ends.

    Raises:
        TransportError: A file is missing or cannot be read; nothing has been sent.
    """
    parts: list[bytes | _File]
    content_type: str | None
    match body:
        case Form():
            boundary = _boundary(body)
            parts, content_type = _form_parts(body, boundary), f"multipart/form-data; boundary={boundary}"
        case Json():
            parts, content_type = _json_parts(body), None
        case Blob():
            parts, content_type = [_File(asset=body.asset)], body.media_type
        case _:
            parts, content_type = [body], None
    with contextlib.ExitStack() as opened:
        ready: list[bytes | _Upload] = []
        for part in parts:
            if isinstance(part, _File):
                upload = await asyncio.to_thread(_open, part, asset_path)
                opened.callback(upload.file.close)
                ready.append(upload)
            else:
                ready.append(part)
        pieces = _pieces(ready)
        try:
            yield Body(content_type=content_type, length=sum(map(_length, ready)), pieces=pieces)
        finally:
            await pieces.aclose()


async def body_hash(body: bytes | Form | Json | Blob | None, asset_path: Callable[[str], Path]) -> str:
    """
    The SHA-256 of the whole body, in hex, for a signature that covers it.

    Raises:
        TransportError: A file is missing or cannot be read; nothing has been sent.
    """
    made = hashlib.sha256()
    if body is not None:
        async with open_body(body, asset_path) as opened:
            async for piece in opened.pieces:
                made.update(piece)
    return made.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """
    An asset's bytes, in base64 where `encoded`.
    """

    asset: str
    encoded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upload:
    file: BinaryIO
    size_bytes: int
    encoded: bool


def _length(part: bytes | _Upload) -> int:
    if isinstance(part, _Upload):
        return (part.size_bytes + 2) // 3 * 4 if part.encoded else part.size_bytes
    return len(part)


async def _pieces(parts: list[bytes | _Upload]) -> AsyncGenerator[bytes]:
    for part in parts:
        if not isinstance(part, _Upload):
            yield part
            continue
        left = part.size_bytes
        while left:
            piece = await asyncio.to_thread(part.file.read, min(PIECE_BYTES, left))
            if not piece:
                raise OSError("a file of the body was cut short while it was sent")
            left -= len(piece)
            yield base64.b64encode(piece) if part.encoded else piece


def _open(wanted: _File, asset_path: Callable[[str], Path]) -> _Upload:
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        opened = os.fdopen(os.open(asset_path(wanted.asset), flags), "rb")
    except OSError as exc:
        raise TransportError(
            f"The reference image {wanted.asset} is not there to be sent.",
            maybe_sent=False,
            hint="Upload it again, or name it by its path.",
        ) from exc
    status = os.fstat(opened.fileno())
    if not stat.S_ISREG(status.st_mode):
        opened.close()
        raise TransportError(f"The reference image {wanted.asset} is no regular file.", maybe_sent=False)
    return _Upload(file=opened, size_bytes=status.st_size, encoded=wanted.encoded)


def _form_parts(form: Form, boundary: str) -> list[bytes | _File]:
    parts: list[bytes | _File] = []
    for name, value in form.fields:
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{_escape(name)}"\r\n\r\n'.encode())
        parts.append(value.encode() + b"\r\n")
    for file in form.files:
        parts += [_file_head(file, boundary), _File(asset=file.asset), b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return parts


def _json_parts(body: Json) -> list[bytes | _File]:
    """
    The JSON text, cut open where a picture stands. A picture is marked by a text that nothing else in it is.
    """
    pictures: dict[str, Inline] = {}
    mark = hashlib.sha256(repr(body).encode()).hexdigest()

    def marked(value: Any) -> Any:
        if isinstance(value, Inline):
            pictures[f"{mark}-{len(pictures)}-"] = value
            return f"{value.prefix}{mark}-{len(pictures) - 1}-"
        if isinstance(value, Mapping):
            return {name: marked(inner) for name, inner in value.items()}
        return [marked(inner) for inner in value] if isinstance(value, list | tuple) else value

    rest = json.dumps(marked(body.value), ensure_ascii=False, separators=(",", ":"))
    parts: list[bytes | _File] = []
    for name, picture in pictures.items():
        before, _, rest = rest.partition(name)
        parts += [before.encode(), _File(asset=picture.asset, encoded=True)]
    return [*parts, rest.encode()]


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
