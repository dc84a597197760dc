"""
Result files, whole or in part (RFC 9110 sections 13 and 14), read from one open descriptor.

An evicted file stays readable to those who have it open, so an answer that has begun is never cut by the cache.
"""

import asyncio
import logging
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.errors import ResultGone, UnknownTask
from vidrelay.core.task import FileRef
from vidrelay.scheduler.face import RelayFace
from vidrelay.server.answers import FILE_HEADERS, Answer, RawHeaders
from vidrelay.server.api import task_id, whole_number
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import Refusal
from vidrelay.server.running import hang_up, run_until

logger = logging.getLogger(__name__)

CHUNK_BYTES = 256 * 1024
MAX_INDEX = 999

ENDINGS = {
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
}
"""The only types that a browser may show in place, with their endings."""

_WHOLE = re.compile(r"[0-9]{1,3}")
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_TAG = re.compile(r'(?:W/)?"[^"]*"')


class FileCalls:
    """
    Answers the call for a result's bytes.
    """

    def __init__(self, relay: RelayFace) -> None:
        self._relay = relay

    async def result(self, call: Call) -> ASGIApp:
        """
        The file of this index, or the part that was asked for.
        """
        return await self.answer(call, task_id(call), whole_number(call, "index", default=0, least=0, most=MAX_INDEX))

    async def addressed(self, call: Call) -> ASGIApp:
        """
        The same by an address that a door gave out, whose proof the gate has looked at.
        """
        index = call.params["index"]
        if not _WHOLE.fullmatch(index):
            raise UnknownTask
        return await self.answer(call, task_id(call), int(index))

    async def answer(self, call: Call, name: str, index: int) -> ASGIApp:
        """
        One file of a task, as the call asks for it.
        """
        path, file = await self._relay.result_file(name, index)
        tag = f'"{file.sha256}"'
        headers = _headers(file, tag, filename=f"{name}-{index}")
        if _matches(call.header(b"if-none-match"), tag):
            return Answer(b"", status=304, headers=headers)
        span = _span(call, file.size_bytes, tag)
        if span is None:
            told = (b"content-range", b"bytes */%d" % file.size_bytes)
            raise Refusal("range_not_satisfiable", f"The file has {file.size_bytes} bytes.", headers=(told,))
        return _FileAnswer(_open(os.fspath(path), file), span, file.size_bytes, headers)


@dataclass(frozen=True, slots=True)
class _Span:
    """
    Which bytes to send: from `start` on, `length` of them; `partial` when a range was asked for.
    """

    start: int
    length: int
    partial: bool


def _headers(file: FileRef, tag: str, *, filename: str) -> RawHeaders:
    ending = ENDINGS.get(file.media_type)
    # Whatever else came from a provider (HTML, SVG) is saved, never shown.
    media_type = file.media_type if ending else "application/octet-stream"
    where = "inline" if ending else "attachment"
    return (
        (b"content-type", media_type.encode()),
        (b"etag", tag.encode()),
        (b"accept-ranges", b"bytes"),
        (b"content-disposition", f'{where}; filename="{filename}.{ending or "bin"}"'.encode()),
        *FILE_HEADERS,
    )


def _matches(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or any(known.removeprefix("W/") == tag for known in _TAG.findall(header))


def _span(call: Call, size_bytes: int, tag: str) -> _Span | None:
    """
    The part asked for, else the whole; None where the part lies outside. Several ranges at once count as none.
    """
    whole = _Span(0, size_bytes, partial=False)
    asked, condition = call.header(b"range"), call.header(b"if-range")
    found = _RANGE.fullmatch(asked.strip()) if asked is not None else None
    if found is None or (condition is not None and condition.strip() != tag):
        return whole
    first, last = found[1], found[2]
    if not first and not last:
        return whole
    if not first:
        length = min(int(last), size_bytes)
        return _Span(size_bytes - length, length, partial=True) if length else None
    start = int(first)
    end = min(int(last), size_bytes - 1) if last else size_bytes - 1
    if last and int(last) < start:
        return whole
    return _Span(start, end - start + 1, partial=True) if start < size_bytes else None


def _open(path: str, file: FileRef) -> int:
    """
    Open the file without following a link; what is not the whole file we saved counts as gone.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as exc:
        raise ResultGone from exc
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size != file.size_bytes:
        os.close(descriptor)
        raise ResultGone
    return descriptor


def read_whole(path: Path, file: FileRef) -> bytes:
    """
    All bytes of a result, as `_open` finds it.

    Raises:
        ResultGone: It is not there as it was saved.
    """
    with os.fdopen(_open(os.fspath(path), file), "rb") as opened:
        return opened.read()


class _FileAnswer:
    """
    Sends a span of an open file, and closes it.
    """

    def __init__(self, descriptor: int, span: _Span, size_bytes: int, headers: RawHeaders) -> None:
        self._descriptor = descriptor
        self._span = span
        self._headers = [*headers, (b"content-length", b"%d" % span.length)]
        if span.partial:
            told = b"bytes %d-%d/%d" % (span.start, span.start + span.length - 1, size_bytes)
            self._headers.append((b"content-range", told))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Send it, unless the client leaves first.
        """
        try:
            status = 206 if self._span.partial else 200
            await send({"type": "http.response.start", "status": status, "headers": self._headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
            else:
                await run_until(self._send_span(send), hang_up(receive))
        finally:
            os.close(self._descriptor)

    async def _send_span(self, send: Send) -> None:
        at, left = self._span.start, self._span.length
        while left:
            chunk = await asyncio.to_thread(_read_at, self._descriptor, at, min(CHUNK_BYTES, left))
            if not chunk:
                # The answer stays short of its length, so the client sees that it is broken.
                logger.error("result.short at=%d missing=%d", at, left)
                return
            at, left = at + len(chunk), left - len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": left > 0})
        if not self._span.length:
            await send({"type": "http.response.body", "body": b""})


def _read_at(descriptor: int, at: int, size: int) -> bytes:
    # One reader a descriptor, so moving its position is as good as pread, which Windows lacks.
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)
