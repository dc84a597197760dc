"""
The listener under the application: uvicorn on a socket that is bound already, with bounds on what a stranger can hold.

Before the gate can judge a call, its head must have been read: so the head's size and time, the number of connections,
and the shape of a body's chunks are bounded here, and what is not HTTP is answered 400 and closed.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from vidrelay.server.answers import CLOSE
from vidrelay.server.errors import Refusal, problem_answer
from vidrelay.server.handshakes import Handshakes

logger = logging.getLogger(__name__)

MAX_TARGET_BYTES = 8 * 1024
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16 * 1024
MAX_CONNECTIONS = 128
HEADER_SECONDS = 5.0
IDLE_SECONDS = 15
WRITE_STALL_SECONDS = 600.0
STALL_AT_STOP_SECONDS = 1.0
FREE_CHUNKS = 1024
LEAST_CHUNK_BYTES = 64
MAX_SILENT_BYTES = 32 * 1024
MAX_DISCARDED_BYTES = 96 * 1024 * 1024
MAX_MESSAGE_BYTES = 64 * 1024
PING_SECONDS = 20.0
"""So often a websocket's client is asked whether it is there, and so long it has to say so."""
BACKLOG = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsListener:
    """
    A second bound socket, at which the same application is served over TLS; `context` holds the certificate.
    """

    sock: socket.socket
    context: ssl.SSLContext


async def serve(
    app: ASGIApp,
    sock: socket.socket,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None],
    grace: float = 10.0,
    tls: TlsListener | None = None,
    websockets: bool = True,
) -> None:
    """
    Serve `app` on a bound socket until `stop` is set; the socket is closed then.

    Args:
        app: The application; its streams must end when `stop` is set.
        sock: A bound TCP socket.
        stop: Ends the service.
        ready: Called once connections are accepted.
        grace: Seconds that calls under way may still take after `stop`.
        tls: A second listener, for TLS, with the same bounds; None: there is none.
        websockets: Whether a call may become one; else each is answered as the plain call it is.
    """
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws=_bounded_socket() if websockets else "none",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        # What unpacks itself might be very much more than it weighs.
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    await _Server(config, stop=stop, ready=ready, tls=tls).serve(sockets=[sock])


def _bounded_socket() -> type[asyncio.Protocol]:
    # Slow to load, and most relays have no door with a websocket. Loaded at the start, not when a client comes.
    from vidrelay.server.upgrade import BoundedSocket  # noqa: PLC0415

    return BoundedSocket


@runtime_checkable
class _Connection(Protocol):
    """
    A connection of either kind.
    """

    lost: asyncio.Event

    def shutdown(self) -> None: ...


class _Server(uvicorn.Server):
    """
    A server that leaves signals alone, and is told to stop by an event instead of looking ten times a second.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        stop: asyncio.Event,
        ready: Callable[[], None],
        tls: TlsListener | None = None,
    ) -> None:
        super().__init__(config)
        self._stop = stop
        self._ready = ready
        self._tls = tls

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """
        Signals are the daemon's.
        """
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """
        Accept connections, and say so.
        """
        await super().startup(sockets)
        if self._tls is not None:
            self._tls.sock.listen(BACKLOG)
        self._ready()

    async def _accept_tls(self, tls: TlsListener) -> None:
        # Beside the first listener and not in a server of its own, so that both share one bound on connections.
        def connection() -> BoundedProtocol:
            return BoundedProtocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=None
            )

        handshakes = Handshakes(
            tls.context,
            connection,
            handshake_seconds=HEADER_SECONDS,
            shutdown_seconds=STALL_AT_STOP_SECONDS,
        )
        await handshakes.accept(tls.sock)

    async def main_loop(self) -> None:
        """
        Keep the Date header right, and take in what comes over TLS, until it is time to stop.
        """
        async with asyncio.TaskGroup() as group:
            accepting = None if self._tls is None else group.create_task(self._accept_tls(self._tls))
            while not self._stop.is_set():
                await self.on_tick(0)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), 1.0)
            if accepting is not None:
                accepting.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """
        Accept nothing more and let the calls under way end, without looking ten times a second whether they have.
        """
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        if self._tls is not None:
            self._tls.sock.close()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                await self._drained()
        except TimeoutError:
            logger.warning("serve.cut calls=%d", len(self.server_state.tasks))
            for call in self.server_state.tasks:
                call.cancel()

    async def _drained(self) -> None:
        # One that was accepted just before the end may come to be only while others are waited for.
        while connections := [each for each in self.server_state.connections if isinstance(each, _Connection)]:
            for connection in connections:
                connection.shutdown()
            for connection in connections:
                await connection.lost.wait()
        while calls := list(self.server_state.tasks):
            await asyncio.wait(calls)
        for server in self.servers:
            await server.wait_closed()


class _Unacceptable(Exception):
    """
    What came over the wire is refused; raised inside the parser's callbacks, told to the client after them.
    """


class BoundedProtocol(HttpToolsProtocol):
    """
    One connection, with bounds on its head, its time, its chunks, and on how many connections there are.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # It would be written wherever some library has set up a handler, with paths in which a key may stand.
        self.access_log = False
        self._refusal = Refusal("malformed_http", "This is not HTTP/1.1 as it should be.", headers=CLOSE)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_done = False
        self._header_count = 0
        self._header_bytes = 0
        self._chunks = 0
        self._body_bytes = 0
        self._silent_bytes = 0
        self._discarded_bytes = 0
        self._answering: RequestResponseCycle | None = None
        self._served = False
        self.lost = asyncio.Event()
        self._idle_since = self._stalled_since = self.loop.time()

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """
        Begin, if there is room, or room can be made by closing a connection that does nothing.
        """
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS and not self._make_room():
            self._refuse("too_many_connections", "The relay has too many connections; ask again in a moment.")
            return
        self._arm_head_timer(IDLE_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """
        End.
        """
        self._cancel_timers()
        # The base class tells the call that was read last; the one being answered may be an earlier one.
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)
        self.lost.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]
        self._answering = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def _make_room(self) -> bool:
        """
        Close the connection that is idle longest, one that never had an answer first.
        """
        idle = [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol)
            and other is not self
            and other.idle
            and not other.transport.is_closing()
        ]
        if not idle:
            return sum(not other.transport.is_closing() for other in self.connections) <= MAX_CONNECTIONS
        min(idle, key=lambda other: (other._served, other._idle_since)).transport.abort()
        return True

    @property
    def idle(self) -> bool:
        """
        Whether no call is being answered on it.
        """
        return not self.pipeline and (self.cycle is None or self.cycle.response_complete)

    def data_received(self, data: bytes) -> None:
        """
        Read what came; between two calls the next head must come in time.
        """
        self._silent_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._silent_bytes > MAX_SILENT_BYTES:
            # The parser keeps half a header, and skips a chunk's extensions and blank lines, without a word.
            self._refuse("headers_too_large", f"A header, or what stands between, is over {MAX_SILENT_BYTES} bytes.")
        elif self._head_timer is None and self.timeout_keep_alive_task is None and (self._in_head or self.idle):
            # Blank lines before a call must not hold the connection open.
            self._arm_head_timer(HEADER_SECONDS)

    def on_response_complete(self) -> None:
        """
        One call is answered.
        """
        self._served = True
        self._idle_since = self.loop.time()
        if self.expect_100_continue and self.cycle.more_body:
            # Nobody asked for the body, so it is not known whether it will come or the next call.
            self.transport.close()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """
        The client does not read; it may rest for a while, but not hold its place for ever.
        """
        super().pause_writing()
        self._stalled_since = self.loop.time()
        self._stall_timer = self.loop.call_later(WRITE_STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """
        The client reads again.
        """
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def shutdown(self) -> None:
        """
        The server stops: a client that has stood still for a while must not keep it from doing so.
        """
        if self.flow.write_paused and self.loop.time() - self._stalled_since > STALL_AT_STOP_SECONDS:
            self.transport.abort()
        else:
            super().shutdown()

    # The head

    def on_message_begin(self) -> None:
        """
        The first byte of a call.
        """
        super().on_message_begin()
        self._in_head, self._head_done = True, False
        self._header_count = self._header_bytes = 0
        self._chunks = self._body_bytes = self._silent_bytes = self._discarded_bytes = 0
        # Armed anew when all that came has been read, if the head is not whole by then.
        self._cancel_head_timer()

    def on_url(self, url: bytes) -> None:
        """
        A part of the target.
        """
        self._silent_bytes = 0
        super().on_url(url)
        if len(self.url) > MAX_TARGET_BYTES:
            raise self._unacceptable("address_too_long", f"The address is over {MAX_TARGET_BYTES} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """
        One header, or one trailer: those are counted but never heard, the gate has judged by then.
        """
        self._silent_bytes = 0
        self._header_count += 1
        self._header_bytes += len(name) + len(value) + 4
        if self._header_count > MAX_HEADERS or self._header_bytes > MAX_HEADER_BYTES:
            told = f"A call may have {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes in all."
            raise self._unacceptable("headers_too_large", told)
        if not self._head_done:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """
        The head is whole: hand the call to the application, if it is one that an origin server answers.
        """
        self._in_head, self._head_done = False, True
        self._cancel_head_timer()
        if not self.url.startswith(b"/"):
            raise self._unacceptable("malformed_http", "The target must be a path of this server.")
        if self.parser.get_http_version() not in ("1.1", "1.0"):
            raise self._unacceptable("malformed_http", "Only HTTP/1.1 is spoken here.")
        if self.parser.should_upgrade() and self._has_body():
            # The parser takes such a body for the new protocol's first bytes, so it would be lost in silence.
            raise self._unacceptable("malformed_http", "A call with a body cannot ask for another protocol.")
        if self.parser.should_upgrade() and self._should_upgrade() and not self.idle:
            # What is still being answered on it would come as if it were a part of the websocket.
            raise self._unacceptable("malformed_http", "A websocket must have its connection for itself.")
        super().on_headers_complete()

    def _has_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in self.headers
        )

    def _should_upgrade_to_ws(self) -> bool:
        """
        Whether the call may become a websocket: where there are any, one at an address of the form that doors have
        for them. All others that offer it are answered as the plain calls they are.
        """
        return super()._should_upgrade_to_ws() and self.url.partition(b"?")[0].endswith(b"/ws")

    def _unsupported_upgrade_warning(self) -> None:
        """
        A call that offers another protocol is answered as the plain call it is; no need to warn.
        """

    # The body

    def on_chunk_header(self) -> None:
        """
        One chunk begins: very many very small ones are an attack, not an upload.
        """
        self._silent_bytes = 0
        self._chunks += 1
        if self._chunks > FREE_CHUNKS and self._chunks * LEAST_CHUNK_BYTES > self._body_bytes:
            raise self._unacceptable("malformed_http", "The body comes in too many too small chunks.")

    def on_body(self, body: bytes) -> None:
        """
        A part of the body. What comes after the answer is let pass, so that a client that sends all before it reads
        gets to see the refusal; closing at once would reset the connection under it.
        """
        self._silent_bytes = 0
        self._body_bytes += len(body)
        if self.idle:
            self._discarded_bytes += len(body)
            if self._discarded_bytes > MAX_DISCARDED_BYTES:
                raise self._unacceptable("too_large", "The body goes on and on.")
        super().on_body(body)

    # Refusing

    def _unacceptable(self, code: str, message: str) -> _Unacceptable:
        self._refusal = Refusal(code, message, headers=CLOSE)
        return _Unacceptable(message)

    def _refuse(self, code: str, message: str) -> None:
        self._refusal = Refusal(code, message, headers=CLOSE)
        self.send_400_response(message)

    def send_400_response(self, msg: str) -> None:
        """
        Answer with the refusal and close. An answer that has begun can only be broken off.
        """
        self._cancel_timers()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        answered = cycle is not None and cycle.response_started
        if not self.pipeline and (not answered or (cycle.response_complete and not cycle.more_body)):
            self.transport.write(_raw(self._refusal, self.server_state.default_headers))
        self.transport.close()

    def _arm_head_timer(self, seconds: float) -> None:
        self._head_timer = self.loop.call_later(seconds, self._head_too_slow)

    def _head_too_slow(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cancel_timers(self) -> None:
        self._cancel_head_timer()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _raw(refusal: Refusal, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    """
    A refusal as bytes for the wire.
    """
    answer = problem_answer(refusal)
    headers = b"".join(name + b": " + value + b"\r\n" for name, value in [*default_headers, *answer.raw_headers])
    return STATUS_LINE[answer.status_code] + headers + b"\r\n" + bytes(answer.body)
