"""
Where each fuse sits: a class method, or a function of the system, that stands at the kill point is wrapped.

Every fuse counts how often its point is passed, and blows at the time it was told.
"""

import asyncio
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any

import vidrelay.cli.running
import vidrelay.daemon.life
from vidrelay.core.lifecycle import (
    Accepted,
    Answered,
    Cancelled,
    CancelRequested,
    Event,
    Lost,
    Ready,
    Saved,
    Started,
    StillRunning,
)
from vidrelay.core.messages import HttpRequest
from vidrelay.core.ports import How
from vidrelay.daemon.state import StateLock
from vidrelay.files.local import LocalFiles
from vidrelay.scheduler.relay import Relay
from vidrelay.scheduler.roster import Roster
from vidrelay.server.serve import BoundedProtocol
from vidrelay.store import changes, migrate
from vidrelay.store.sqlite import SqliteStore
from vidrelay.transport.dial import VettedDialer
from vidrelay.transport.http import HttpTransport

FLUSH_SECONDS = 0.03
"""Long enough for the event loop to hand to the system what was written."""

LATER_SCRIPT = "CREATE TABLE later_one (a INTEGER) STRICT; CREATE TABLE later_two (b INTEGER) STRICT"
"""A migration of a database in use, as a later version would bring it."""


class Fuse:
    """
    Ends this process at the n-th passing.
    """

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._left = nth
        self._lock = threading.Lock()  # guards _left, which threads count down

    def __call__(self, last: Callable[[], object] = lambda: None) -> None:
        """
        Pass the point; `last` is done just before the end.
        """
        if self.due():
            last()
            self.blow()

    def due(self) -> bool:
        """
        Count one passing; whether it is the last.
        """
        with self._lock:
            self._left -= 1
            return self._left == 0

    def blow(self) -> None:
        """
        Die as by `kill -9`.
        """
        os.write(2, f"fuse {self._point} blown\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)


# Wrapping -------------------------------------------------------------------------------------------------------------


def before(owner: Any, name: str, fuse: Fuse) -> None:
    """Pass the point as the function is entered."""
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fuse()
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, fuse: Fuse, *, when: Callable[..., bool] = lambda *_: True) -> None:
    """Pass the point when the function has returned something that `when` is about."""
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if when(result):
            fuse()
        return result

    setattr(owner, name, wrapped)


def after_await(owner: Any, name: str, fuse: Fuse, *, when: Callable[..., bool] = lambda *_: True) -> None:
    """The same for a coroutine; `when` is told its arguments."""
    original = getattr(owner, name)

    @wraps(original)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = await original(*args, **kwargs)
        if when(*args):
            fuse()
        return result

    setattr(owner, name, wrapped)


# The database ---------------------------------------------------------------------------------------------------------


def committing(fuse: Fuse, *, done: bool, add: bool = False, forget: bool = False, events: Any = None) -> None:
    """
    Pass the point just before, or just after, the COMMIT of a transaction with such a change in it.
    """
    ran: list[bool] = []  # only the writing thread touches it

    def noting(owner: Any, name: str, wanted: Callable[..., bool]) -> None:
        original = getattr(owner, name)

        @wraps(original)
        def change(transaction: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(transaction, *args, **kwargs)
            if wanted(result, *args, **kwargs):
                ran.append(True)
            return result

        setattr(owner, name, change)

    if add:
        noting(changes, "add", lambda admission, *_, **__: admission.how is How.CREATED)
    if forget:
        noting(changes, "forget", lambda *_, **__: True)
    if events is not None:
        noting(changes, "save", lambda *said, **more: isinstance(more.get("event", said[-1]), events))

    class Fused(sqlite3.Connection):
        """A connection that knows of the fuse."""

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                ran.clear()
            if sql == "COMMIT" and ran and not done:
                fuse()
            cursor = super().execute(sql, *args)
            if sql == "COMMIT" and ran and done:
                fuse()
            return cursor

    connect = sqlite3.connect
    sqlite3.connect = partial(connect, factory=Fused)


def entered(fuse: Fuse, events: Any) -> None:
    """Pass the point when an event is about to be handed to the store."""
    original = SqliteStore.save

    @wraps(original)
    def save(self: SqliteStore, task: Any, event: Event, **kwargs: Any) -> Any:
        if isinstance(event, events):
            fuse()
        return original(self, task, event, **kwargs)

    SqliteStore.save = save


# The answer to the app ------------------------------------------------------------------------------------------------


class _Answering:
    """
    The connection to an app: answers to a submit go out whole, or, where the fuse blows, only a share of their bytes.
    """

    def __init__(self, transport: Any, protocol: BoundedProtocol, fuse: Fuse, share: float) -> None:
        self._transport = transport
        self._protocol = protocol
        self._fuse = fuse
        self._share = share
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._protocol.url != b"/generate":
            self._transport.write(data)
            return
        self._held += data
        head, _, body = self._held.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
        if length is None or len(body) < int(length[1]):
            return
        whole, self._held = self._held, b""
        out = self._transport.get_extra_info("socket").fileno()
        self._fuse(partial(os.write, out, whole[: int(len(whole) * self._share)]))
        self._transport.write(whole)


def answering(fuse: Fuse, share: float) -> None:
    """Pass the point when an answer to a submit goes out; that share of it is still sent."""
    original = BoundedProtocol.connection_made

    @wraps(original)
    def connection_made(self: BoundedProtocol, transport: Any) -> None:
        original(self, _Answering(transport, self, fuse, share))

    BoundedProtocol.connection_made = connection_made


# Calls to the provider ------------------------------------------------------------------------------------------------

CALL: ContextVar[HttpRequest | None] = ContextVar("CALL", default=None)


def creates(request: HttpRequest | None) -> bool:
    return request is not None and request.creates


def polls(request: HttpRequest | None) -> bool:
    return request is not None and request.method == "GET" and re.search(r"/videos/[^/?]+$", request.url) is not None


def cancels(request: HttpRequest | None) -> bool:
    return request is not None and request.method == "DELETE"


class _Reply:
    """
    An answer that can be watched being read.
    """

    def __init__(self, reply: Any, seen: Callable[[], None]) -> None:
        self._reply = reply
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reply, name)

    async def read(self) -> bytes:
        body = await self._reply.read()
        self._seen()
        return body


def calling(
    which: Callable[[HttpRequest | None], bool],
    *,
    begun: Callable[[], None] = lambda: None,
    answered: Callable[[], None] = lambda: None,
    read: Callable[[], None] = lambda: None,
) -> None:
    """Pass the point when such a call begins, when the head of its answer is there, or when all of it is read."""
    original = HttpTransport.send

    @asynccontextmanager
    async def send(self: HttpTransport, request: HttpRequest, *, timeout: float) -> AsyncIterator[Any]:
        wanted = which(request)
        if wanted:
            begun()
        token = CALL.set(request)
        async with original(self, request, timeout=timeout) as reply:
            CALL.reset(token)
            if wanted:
                answered()
            yield _Reply(reply, read) if wanted else reply

    HttpTransport.send = send


def connected(fuse: Fuse) -> None:
    """Pass the point when the connection for a create is up."""
    calling(creates)
    after_await(VettedDialer, "connect_tcp", fuse, when=lambda *_: creates(CALL.get()))


class _Writing:
    """
    The connection to the provider: the fuse blows when so much of a create has left.
    """

    def __init__(self, stream: Any, fuse: Fuse, until: str) -> None:
        self._stream = stream
        self._fuse = fuse
        self._until = until
        self._length = self._sent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not creates(CALL.get()) or not buffer:
            await self._stream.write(buffer, timeout)
        elif buffer.startswith(b"POST "):
            self._length = int(re.search(rb"\r\ncontent-length: (\d+)", buffer, re.IGNORECASE)[1])
            self._sent = 0
            await self._stream.write(buffer, timeout)
            await self._passed("header")
        else:
            half = self._length // 2 - self._sent
            if self._until == "half" and 0 < half <= len(buffer):
                await self._stream.write(buffer[:half], timeout)
                await self._passed("half")
                buffer = buffer[half:]
                self._sent += half
            await self._stream.write(buffer, timeout)
            self._sent += len(buffer)
            if self._sent == self._length:
                await self._passed("body")

    async def _passed(self, what: str) -> None:
        if what == self._until and self._fuse.due():
            await asyncio.sleep(FLUSH_SECONDS)
            self._fuse.blow()


def writing(fuse: Fuse, until: str) -> None:
    """Pass the point when the `header`, `half` of the body, or all of the `body` of a create has left."""
    calling(creates)
    original = VettedDialer.connect_tcp

    @wraps(original)
    async def connect_tcp(self: VettedDialer, *args: Any, **kwargs: Any) -> Any:
        return _Writing(await original(self, *args, **kwargs), fuse, until)

    VettedDialer.connect_tcp = connect_tcp


# Files ----------------------------------------------------------------------------------------------------------------


class _Part:
    """
    A result being written that can be watched.
    """

    def __init__(self, part: Any, written: Callable[[], None], published: Callable[[], None]) -> None:
        self._part = part
        self._written = written
        self._published = published

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    async def write(self, chunk: bytes) -> None:
        await self._part.write(chunk)
        self._written()

    async def commit(self, **kind: str) -> Any:
        file = await self._part.commit(**kind)
        self._published()
        return file


def writing_file(
    *,
    made: Callable[[], None] = lambda: None,
    written: Callable[[], None] = lambda: None,
    published: Callable[[], None] = lambda: None,
) -> None:
    """Pass the point when a result's file is made, has been written to, or has its name for good."""
    original = LocalFiles.part

    @wraps(original)
    async def part(self: LocalFiles, name: Any) -> Any:
        begun = await original(self, name)
        made()
        return _Part(begun, written, published)

    LocalFiles.part = part


def syncing(fuse: Fuse, *, done: bool) -> None:
    """Pass the point before, or after, a result's bytes are made durable."""
    original = os.fsync

    def fsync(descriptor: int) -> None:
        wanted = Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".part"
        if wanted and not done:
            fuse()
        original(descriptor)
        if wanted and done:
            fuse()

    os.fsync = fsync


def replacing(fuse: Fuse, name: str, *, done: bool) -> None:
    """Pass the point before, or after, a file that was written under another name takes one that ends so."""
    original = os.replace

    def replace(source: Any, target: Any, **kwargs: Any) -> None:
        wanted = os.fspath(target).endswith(name)
        if wanted and not done:
            fuse()
        original(source, target, **kwargs)
        if wanted and done:
            fuse()

    os.replace = replace


# Starting -------------------------------------------------------------------------------------------------------------


def migrating(fuse: Fuse, *, later: bool = False) -> None:
    """Pass the point at each statement of a migration that makes something."""
    original = migrate.migrate

    @wraps(original)
    def traced(connection: Any, scripts: Any) -> None:
        connection.set_trace_callback(lambda sql: fuse() if sql.lstrip().startswith("CREATE") else None)
        original(connection, (*scripts, LATER_SCRIPT) if later else scripts)
        connection.set_trace_callback(None)

    migrate.migrate = traced


ANSWER = Accepted | Answered

FUSES: dict[str, Callable[[Fuse], None]] = {
    "k1": lambda fuse: before(SqliteStore, "add", fuse),
    "k2": lambda fuse: committing(fuse, done=False, add=True),
    "k3": lambda fuse: committing(fuse, done=True, add=True),
    "k4": lambda fuse: answering(fuse, 0.5),
    "k5": lambda fuse: answering(fuse, 1.0),
    "k6": lambda fuse: before(SqliteStore, "take_place", fuse),
    "k7": connected,
    "k8": lambda fuse: committing(fuse, done=False, events=Started),
    "k9": lambda fuse: committing(fuse, done=True, events=Started),
    "k10": lambda fuse: writing(fuse, "header"),
    "k11": lambda fuse: writing(fuse, "half"),
    "k12": lambda fuse: writing(fuse, "body"),
    "k13": lambda fuse: calling(creates, answered=fuse),
    "k14": lambda fuse: calling(creates, read=fuse),
    "k15": lambda fuse: entered(fuse, ANSWER),
    "k16": lambda fuse: committing(fuse, done=False, events=ANSWER),
    "k17": lambda fuse: committing(fuse, done=True, events=ANSWER),
    "k18": lambda fuse: calling(polls, begun=fuse),
    "k19": lambda fuse: calling(polls, read=fuse),
    "k20": lambda fuse: committing(fuse, done=True, events=StillRunning | Ready),
    "k21": lambda fuse: writing_file(made=fuse),
    "k22": lambda fuse: writing_file(written=fuse),
    "k23": lambda fuse: syncing(fuse, done=False),
    "k24": lambda fuse: syncing(fuse, done=True),
    "k25": lambda fuse: replacing(fuse, ".mp4", done=True),
    "k26": lambda fuse: writing_file(published=fuse),
    "k27": lambda fuse: committing(fuse, done=False, events=Saved),
    "k28": lambda fuse: committing(fuse, done=True, events=Saved),
    "k29": lambda fuse: committing(fuse, done=True, events=CancelRequested),
    "k30": lambda fuse: calling(cancels, read=fuse),
    "k31": lambda fuse: committing(fuse, done=True, events=Cancelled),
    "k32": lambda fuse: before(SqliteStore, "forget", fuse),
    "k33": lambda fuse: after_await(LocalFiles, "delete", fuse),
    "k34": lambda fuse: committing(fuse, done=True, forget=True),
    "k35": lambda fuse: after(StateLock, "take", fuse, when=bool),
    "k36": lambda fuse: after(vidrelay.daemon.life, "open_first", fuse),
    "k37": lambda fuse: replacing(fuse, "/relay.json", done=False),
    "k38": lambda fuse: replacing(fuse, "/relay.json", done=True),
    "k39": migrating,
    "k39-later": lambda fuse: migrating(fuse, later=True),
    "k40": lambda fuse: committing(fuse, done=True, events=Lost),
    "k40-load": lambda fuse: before(Roster, "load", fuse),
    "k40-sweep": lambda fuse: before(LocalFiles, "sweep", fuse),
    "k41": lambda fuse: before(Relay, "stop", fuse),
    "k41-beacon": lambda fuse: after(vidrelay.daemon.life, "remove_beacon", fuse),
    "k41-close": lambda fuse: before(SqliteStore, "aclose", fuse),
    "k42": lambda fuse: replacing(fuse, "/keep.json", done=True),
    "k42-draft": lambda fuse: replacing(fuse, "/keep.json", done=False),
    "k42-ready": lambda fuse: after(vidrelay.cli.running, "out", fuse),
}
"""By point, and for some points by a variant of it, what lays the fuse."""
