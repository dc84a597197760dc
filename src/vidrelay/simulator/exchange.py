"""
One exchange with a client: key, rate, window, fault, answer, and its line in the ledger.
"""

import asyncio
import base64
import hashlib
import json
import math
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.types import Receive, Scope, Send

from vidrelay.simulator.clips import Clips
from vidrelay.simulator.engine import Engine, Turned
from vidrelay.simulator.faults import Fault, Place
from vidrelay.simulator.form import read_body
from vidrelay.simulator.ledger import Seen, mark
from vidrelay.simulator.streams import events, messages
from vidrelay.simulator.words.vocabulary import CLIP, Answer, Asked, Call, Stream, Why, Words, file_route

CLOSE = "vidrelay.close"
"""The scope's extension that ends the connection."""

_MAX_BODY = 128 * 1024 * 1024
_CHUNK = 64 * 1024
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")
_PAGE = b"<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """
    What goes out: `breaks_at` bytes of the body are sent and the connection ended, None sends all of it. A `stream`
    that breaks does so after what it says first.
    """

    status: int
    headers: dict[str, str]
    body: bytes = b""
    breaks_at: int | None = None
    chunked: bool = False
    stream: Stream | None = None


@dataclass(slots=True, kw_only=True)
class Exchange:
    """
    The provider's paths as an ASGI application.
    """

    engine: Engine
    words: Words
    clips: Clips

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Serve one request.
        """
        if scope["type"] == "websocket":
            await self._converse(HTTPConnection(scope), receive, send)
            return
        request = Request(scope, receive)
        body, size = await _taken(request)
        seen = self._seen(request, request.method, body or b"", size)
        if self.engine.down_until > self.engine.now():
            await _hang_up(scope, receive)
            return
        self.engine.ledger.requests.append(seen)
        wire = await self._reply(request, body, seen)
        if wire is None:
            await _hang_up(scope, receive)
            return
        seen.status, seen.retry_after = wire.status, wire.headers.get("retry-after")
        await self._write(scope, receive, send, wire)

    async def _converse(self, connection: HTTPConnection, receive: Receive, send: Send) -> None:
        """
        Serve one websocket.
        """
        seen = self._seen(connection, "GET", b"", 0)
        wire = None
        if self.engine.down_until <= self.engine.now():
            self.engine.ledger.requests.append(seen)
            wire = await self._reply(connection, b"", seen)
        if wire is None or wire.stream is None:
            await send({"type": "websocket.close"})
            return
        seen.status = 101
        await messages(wire.stream, receive, send, self.engine, breaks=wire.breaks_at is not None)

    async def _reply(self, request: HTTPConnection, body: bytes | None, seen: Seen) -> Wire | None:
        """
        What to send; None ends the connection without a reply. No `body` is one that was too large.
        """
        asked = Asked(
            method=seen.method,
            path=request.url.path,
            query=dict(request.query_params),
            headers={name.lower(): value for name, value in request.headers.items()},
            body_sha256=seen.body,
        )
        route = file_route(asked) or self.words.route(asked)
        if route is None:
            return _json(self.words.error(404, "Not Found"))
        place, key = route.place, self.words.key(asked)
        seen.place, seen.key = place, mark(key)
        if body is None:
            return _json(self.words.error(413, "The request is too large."))
        fault = self.engine.faults.take(place)
        if fault:
            seen.fault = fault.told
            if fault.before:
                return self._instead(fault)
        wanted = self.engine.options.key
        if wanted is not None and key != wanted and not route.open:
            return _json(self.words.refuse(Why.AUTH, "Incorrect API key provided."))
        turned = self.engine.admit(key, create=place is Place.CREATE)
        if turned:
            return self._turned(turned)
        try:
            sent = read_body(request.headers.get("content-type", ""), body)
        except ValueError as error:
            return _json(self.words.refuse(Why.INVALID, f"The body cannot be read: {error}."))
        call = Call(
            place=place,
            job_id=route.job_id,
            what=route.what,
            query=asked.query,
            pairs=tuple(request.query_params.multi_items()),
            fields=sent.fields,
            pictures=sent.files,
            filenames=sent.filenames,
            data=sent.data,
            headers=asked.headers,
            key=key,
            host=request.headers.get("host", ""),
            open=route.open,
        )
        answer = self.words.file(call) if route.what == "file" else self._answer(call)
        self._note(answer, place, seen)
        if fault is None:
            return await self._told(answer, place, request)
        return await self._spoiled(fault, answer, place, request)

    def _answer(self, call: Call) -> Answer:
        """
        What the words say. They read a create as it should be, and stumble over a value of another type before a job is
        made: such a body is refused as any that is not valid.
        """
        made = len(self.engine.jobs)
        try:
            return self.words.answer(call)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            if call.place is not Place.CREATE or len(self.engine.jobs) > made:
                raise
            return self.words.refuse(Why.INVALID, "A value is not of the type that it must be.")

    async def _told(self, answer: Answer, place: Place, request: HTTPConnection, fault: Fault | None = None) -> Wire:
        """
        The answer as it is sent, unspoiled but for a fault of the file.
        """
        if answer.stream is not None:
            return Wire(status=200, headers={"content-type": "text/event-stream"}, stream=answer.stream)
        if answer.clip is None:
            self._answered(answer, place)
            return _json(answer)
        changed = fault is not None and fault.effect == "changed"
        size = self.engine.options.clip_bytes
        clip = await self.clips.clip(answer.clip, answer.index, at_least_bytes=size, changed=changed)
        if answer.data is not None:
            shown = base64.b64encode(clip.body).decode()
            wire = _json(Answer(status=answer.status, data=answer.data, headers=answer.headers))
            return replace(wire, body=wire.body.replace(json.dumps(CLIP).encode(), json.dumps(shown).encode()))
        headers = {"content-type": "video/mp4", "etag": clip.etag, "accept-ranges": "bytes"}
        whole = len(clip.body)
        asked = _RANGE.fullmatch(request.headers.get("range", ""))
        ignored = fault is not None and fault.effect == "no-range"
        if asked and not ignored and request.headers.get("if-range", clip.etag) == clip.etag:
            start, end = int(asked[1]), min(int(asked[2] or whole), whole - 1)
            if start > end:
                return Wire(status=416, headers={"content-range": f"bytes */{whole}"})
            headers["content-range"] = f"bytes {start}-{end}/{whole}"
            return Wire(status=206, headers=headers, body=clip.body[start : end + 1])
        return Wire(status=200, headers=headers, body=clip.body)

    async def _spoiled(self, fault: Fault, answer: Answer, place: Place, request: HTTPConnection) -> Wire | None:
        """
        The answer after a fault has had its way with it.
        """
        match fault.effect:
            case "drop-after":
                return None
            case "error-after":
                return _json(self.words.error(int(fault.argument or 500), "The server had an error."))
            case "html":
                return Wire(status=200, headers={"content-type": "text/html"}, body=_PAGE)
            case "gone":
                return _json(self.words.error(410, "Gone"))
            case "slow":
                await self.engine.clock.sleep(float(fault.argument or 1))
            case "types":
                answer = _with(answer, _other_types(answer.data))
            case "word":
                answer = _with(answer, self.words.word(answer.data, fault.argument or "dreaming"))
            case "no-id":
                answer = _with(answer, self.words.identity(answer.data, None))
            case "bad-id":
                answer = _with(answer, self.words.identity(answer.data, fault.argument or "../../etc/passwd"))
            case "inline":
                answer = self.words.inline(answer)
            case "same-id":
                answer = _with(answer, self.words.identity(answer.data, next(iter(self.engine.ledger.jobs))))
        wire = await self._told(answer, place, request, fault)
        if wire.stream is not None:
            return wire if fault.effect == "slow" else replace(wire, breaks_at=0)
        half = len(wire.body) // 2
        match fault.effect:
            case "truncated" | "short":
                return Wire(status=wire.status, headers=wire.headers, body=wire.body[:half])
            case "empty":
                return Wire(status=wire.status, headers=wire.headers)
            case "cut":
                return Wire(status=wire.status, headers=wire.headers, body=wire.body, breaks_at=half)
            case "cut-chunked":
                return Wire(status=wire.status, headers=wire.headers, body=wire.body, breaks_at=half, chunked=True)
            case _:
                return wire

    def _instead(self, fault: Fault) -> Wire | None:
        """
        What is sent in place of doing anything.
        """
        match fault.effect:
            case "drop":
                return None
            case "rate":
                wire = self._turned(Turned(why="rate"))
                wire.headers["retry-after"] = fault.argument or "1"
                return wire
            case "busy":
                return self._turned(Turned(why="busy"))
            case "auth":
                return _json(self.words.refuse(Why.AUTH, "Incorrect API key provided."))
            case "balance":
                return _json(self.words.refuse(Why.BALANCE, "You exceeded your current quota."))
            case "moderation":
                return _json(self.words.refuse(Why.MODERATED, "Blocked by our moderation."))
            case "code":
                return _json(self.words.refuse(fault.argument or "", "Armed by the one who tests."))
            case "redirect":
                target = fault.argument or "https://elsewhere.invalid/v1/videos"
                return Wire(status=307, headers={"location": target})
            case _:
                return _json(self.words.error(int(fault.argument or 500), "The server had an error."))

    def _turned(self, turned: Turned) -> Wire:
        wire = _json(self.words.turned(turned))
        if turned.retry_after is None:
            return wire
        match self.engine.options.retry_after:
            case "seconds":
                wire.headers["retry-after"] = str(math.ceil(turned.retry_after))
            case "date":
                at = self.engine.clock.now().astimezone(UTC) + timedelta(seconds=math.ceil(turned.retry_after))
                wire.headers["retry-after"] = format_datetime(_whole_second(at), usegmt=True)
        return wire

    def _seen(self, request: HTTPConnection, method: str, body: bytes, size: int) -> Seen:
        return Seen(
            at=round(self.engine.now(), 3),
            method=method,
            path=request.url.path,
            query=request.url.query,
            key=None,
            user_agent=request.headers.get("user-agent"),
            place=None,
            body=hashlib.sha256(body).hexdigest(),
            size_bytes=size,
        )

    def _note(self, answer: Answer, place: Place, seen: Seen) -> None:
        if answer.job is None:
            return
        seen.job = answer.job.id
        line = self.engine.ledger.jobs[answer.job.id]
        if place is Place.POLL:
            line.polled.append(seen.at)
        elif answer.clip is not None:
            line.downloads += 1

    def _answered(self, answer: Answer, place: Place) -> None:
        if place is Place.CREATE and answer.job is not None and answer.status < 300:
            self.engine.ledger.jobs[answer.job.id].answered = True

    async def _write(self, scope: Scope, receive: Receive, send: Send, wire: Wire) -> None:
        headers = dict(wire.headers)
        if not wire.chunked and wire.stream is None:
            headers["content-length"] = str(len(wire.body))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": wire.status, "headers": raw})
        if wire.stream is not None and not await events(
            wire.stream, receive, send, self.engine, breaks=wire.breaks_at is not None
        ):
            await _hang_up(scope, receive)
            return
        body = wire.body if wire.breaks_at is None else wire.body[: wire.breaks_at]
        async for chunk in self._paced(body):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if wire.breaks_at is not None:
            await _hang_up(scope, receive)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _paced(self, body: bytes) -> AsyncIterator[bytes]:
        speed = self.engine.options.bytes_per_second
        step = _CHUNK if speed is None else max(1, speed // 20)
        for start in range(0, len(body), step):
            yield body[start : start + step]
            if speed is not None:
                await self.engine.clock.sleep(step / speed)


async def _taken(request: Request) -> tuple[bytes | None, int]:
    """
    A body and its size. One over the limit is read to its end all the same, so that who sends it hears the answer, but
    not kept: None.
    """
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= _MAX_BODY:
            body += chunk
        else:
            body.clear()
    return (bytes(body) if size <= _MAX_BODY else None), size


async def _hang_up(scope: Scope, receive: Receive) -> None:
    """
    End the connection, and wait until it has ended so that the server sends nothing of its own.
    """
    scope["extensions"][CLOSE]["close"]()
    async with asyncio.timeout(5):
        while (await receive())["type"] != "http.disconnect":
            pass


def _json(answer: Answer) -> Wire:
    if answer.data is None:
        return Wire(status=answer.status, headers=dict(answer.headers))
    headers = {"content-type": "application/json", **answer.headers}
    return Wire(status=answer.status, headers=headers, body=json.dumps(answer.data).encode())


def _with(answer: Answer, data: Any) -> Answer:
    return Answer(status=answer.status, data=data, headers=answer.headers, clip=answer.clip, job=answer.job)


def _other_types(data: Any) -> Any:
    """
    The same shape with every value of another type.
    """
    match data:
        case dict():
            return {name: _other_types(value) for name, value in data.items()}
        case list():
            return [_other_types(value) for value in data]
        case str():
            return [data]
        case None:
            return {}
        case _:
            return {"value": str(data)}


def _whole_second(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)
