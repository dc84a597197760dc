"""
Connections that break after a given byte: the way of create calls, under the real HttpTransport.

A request that was cut never comes to the provider. One that came whole is carried out, whatever becomes of its answer.
Everything that is no create goes the simulation's way and arrives.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import httpcore2

from vidrelay.core.messages import HttpRequest
from vidrelay.core.network import Reply
from vidrelay.testing.simulation.ledger import Create
from vidrelay.testing.simulation.network import Far, Network, Wire
from vidrelay.testing.simulation.provider import API, TASK, Answer
from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

BASE = "http://127.0.0.1:9"
"""Where the real transport believes to go: without TLS, so that a byte on the line is a byte of the message."""


class Side(Enum):
    """
    Which of a call's bytes are cut: none at all leave, those of the request, or those of the answer.
    """

    CONNECT = "connect"
    REQUEST = "request"
    REPLY = "reply"


class How(Enum):
    """
    What the relay sees of a break: an error, an orderly end, or nothing more until its patience is over.
    """

    RESET = "reset"
    END = "end"
    SILENCE = "silence"


class Framing(Enum):
    """
    How an answer says where it ends.
    """

    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """
    A connection that breaks after byte `at` of that side.
    """

    side: Side
    at: int = 0
    how: How = How.RESET


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """
    The bytes of a call and its answer, and of their heads.
    """

    request_head: int
    request: int
    reply_head: int
    reply: int


class Lines(Network):
    """
    The simulation's network, with its create calls on lines that break.

    `breaks` has a break, or None, for each task of a customer, in the order in which they are sent; the first create of
    the task meets it. `shapes` are those of the first creates that were carried out.
    """

    def __init__(self, *, framing: Framing, breaks: dict[str, tuple[Break | None, ...]], **world: Any) -> None:
        super().__init__(**world)
        self.latency = 0.0
        self.framing = framing
        self.shapes: set[Shape] = set()
        self.met: dict[str, Break | None] = {}
        self._breaks = breaks
        self._seen: defaultdict[str, int] = defaultdict(int)

    def wire(self, life: Far) -> Wire:
        """
        A transport for one life of the relay.
        """
        return BreakingWire(self, life)

    def meet(self, key: str, task: str) -> tuple[Break | None, bool]:
        """
        What a create of that task meets, and whether it is its first.
        """
        if task in self.met:
            return None, False
        number = self._seen[key]
        self._seen[key] += 1
        self.met[task] = self._breaks[key][number]
        return self.met[task], True


class BreakingWire(Wire):
    """
    Fills port Transport.
    """

    def __init__(self, lines: Lines, life: Far) -> None:
        super().__init__(lines, life)
        self._lines = lines

    def send(self, request: HttpRequest, *, timeout: float) -> AbstractAsyncContextManager[Reply]:  # type: ignore[override]
        """
        Open an exchange.
        """
        return self._send(request, timeout) if request.creates else super().send(request, timeout=timeout)

    @asynccontextmanager
    async def _send(self, request: HttpRequest, seconds: float) -> AsyncIterator[Reply]:
        self._life.calls("create", self._lines.provider.key_of(request))
        transport = HttpTransport(
            Gate(base_url=BASE),
            asset_path=Path,
            user_agent="vidrelay/sweep",
            network=Dialer(self._lines, self._life, request),
        )
        try:
            asked = replace(request, url=request.url.replace(API, BASE))
            async with transport.send(asked, timeout=seconds) as reply:
                yield reply
        finally:
            await transport.aclose()


class Dialer(httpcore2.AsyncNetworkBackend):
    """
    Opens the one connection of a create.
    """

    def __init__(self, lines: Lines, life: Far, request: HttpRequest) -> None:
        self._lines = lines
        self._life = life
        self._request = request

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """
        Connect, unless it breaks even there.
        """
        lines, task = self._lines, self._request.headers[TASK]
        broken, first = lines.meet(lines.provider.key_of(self._request), task)
        if broken is not None and broken.side is Side.CONNECT:
            raise httpcore2.ConnectError("nobody answers")
        return Line(lines, self._life, self._request, broken, first=first)


class Line(httpcore2.AsyncNetworkStream):
    """
    One connection, and the provider at its other end.
    """

    def __init__(self, lines: Lines, life: Far, request: HttpRequest, broken: Break | None, *, first: bool) -> None:
        self._lines = lines
        self._life = life
        self._first = first
        self._how = How.END if broken is None else broken.how
        self._most = {side: broken.at for side in Side if broken is not None and broken.side is side}
        self._create = self._written_down(request)
        self._leaving = False
        self._came = b""
        self._answer: bytes | None = None
        self._given = 0

    def _written_down(self, request: HttpRequest) -> Create:
        return Create(
            task=request.headers[TASK],
            key=self._lines.provider.key_of(request),
            mark=request.headers["idempotency-key"],
            body=json.loads(request.body if isinstance(request.body, bytes) else b"{}"),
            sent=self._lines.clock.truth(),
            life=self._life.number,
        )

    # The way out

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """
        Take the bytes, as far as they come.
        """
        if not self._leaving:
            self._leaving = True
            self._lines.provider.creates.append(self._create)
            self._life.sends(self._create)
        most = self._most.get(Side.REQUEST)
        self._came += buffer
        if most is not None and len(self._came) > most:
            self._came = self._came[:most]
            if self._how is How.END:
                raise httpcore2.WriteError("broken pipe")
            if self._how is How.SILENCE:
                await asyncio.sleep(timeout or 0.0)
                raise httpcore2.WriteTimeout
            return  # what is written to a line that was reset may still seem to go
        if self._answer is None and _whole(self._came):
            self._arrive()

    def _arrive(self) -> None:
        lines = self._lines
        try:
            answer = lines.provider.handle(_read(self._came), self._create)
        except Exception as fault:
            # To the transport it is one more line that broke.
            lines.loop.surprises.append(f"the far end itself failed: {fault!r}")
            raise
        self._answer = _written(answer, lines.framing)
        if self._first and self._create.job is not None:
            lines.shapes.add(
                Shape(
                    request_head=_head_size(self._came),
                    request=len(self._came),
                    reply_head=_head_size(self._answer),
                    reply=len(self._answer),
                )
            )

    # The way back

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """
        Give the next bytes of the answer, as far as they go.
        """
        answer, most = self._answer or b"", self._most.get(Side.REPLY)
        end = len(answer) if most is None else min(most, len(answer))
        piece = answer[self._given : min(end, self._given + max_bytes)]
        self._given += len(piece)
        self._note_delivered(at_end=not piece)
        if piece:
            return piece
        if self._how is How.RESET:
            raise httpcore2.ReadError("connection reset by peer")
        if self._how is How.SILENCE:
            await asyncio.sleep(timeout or 0.0)
            raise httpcore2.ReadTimeout
        return b""

    def _note_delivered(self, *, at_end: bool) -> None:
        """
        An answer that its end alone ends is whole when that has come, in order.
        """
        create = self._create
        if self._answer is None or self._given < len(self._answer) or create.told is None:
            return
        if self._lines.framing is not Framing.CLOSE or (at_end and self._how is How.END):
            create.delivered = True

    async def aclose(self) -> None:
        """
        Nothing is held.
        """

    def get_extra_info(self, info: str) -> Any:
        """
        It is not encrypted, and nothing waits in it.
        """
        return False if info == "is_readable" else None


def _head_size(message: bytes) -> int:
    return message.index(b"\r\n\r\n") + 4


def _whole(came: bytes) -> bool:
    head, parted, body = came.partition(b"\r\n\r\n")
    return bool(parted) and len(body) >= int(_headers(head).get("content-length", "0"))


def _read(came: bytes) -> HttpRequest:
    head, _, body = came.partition(b"\r\n\r\n")
    method, target, _ = head.decode().splitlines()[0].split(" ")
    return HttpRequest(method=method, url=API + target, headers=_headers(head), body=body, creates=True)


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.split(": ", 1) for line in head.decode().splitlines()[1:])
    return {name.lower(): value for name, value in pairs}


def _written(answer: Answer, framing: Framing) -> bytes:
    headers, body = dict(answer.headers), answer.body
    if framing is Framing.LENGTH:
        headers["content-length"] = str(len(body))
    elif framing is Framing.CHUNKED:
        headers["transfer-encoding"] = "chunked"
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    else:
        headers["connection"] = "close"
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} Told\r\n{head}\r\n".encode() + body
