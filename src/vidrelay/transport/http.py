"""
Sends one call at a time and always says, when it fails, whether the call may have arrived (fills port Transport).

Creates, and everything else that is no plain reading, go over HTTP/1.1: after a server's orderly HTTP/2 goodbye the
engine loses answers to calls that were carried out. Polls go over HTTP/2, so that many share one connection. Large
replies go over HTTP/1.1, which is twice as fast there, and so does a call that is held: one that is given up over
HTTP/2 is not told to the server, and would go on.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpcore2

from vidrelay.core.errors import ConfigError, ReplyTooLarge, TransportError, VidrelayError
from vidrelay.core.messages import LIST_REPLY_BYTES, Held, HttpRequest
from vidrelay.core.network import Reply
from vidrelay.transport.bodies import body_hash, open_body
from vidrelay.transport.dial import CountedDialer, VettedDialer
from vidrelay.transport.gate import Gate, Target

if TYPE_CHECKING:
    from vidrelay.transport.streams import Opening

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 30.0
FIRST_BYTE_SECONDS = 180.0
KEEP_SECONDS = 90.0
KEEP_FOR_CREATES_SECONDS = 5.0
"""A create goes out on a connection used this lately, or on a new one: an older one may be dying unseen."""

_OURS = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "transfer-encoding", "connection", "te", "upgrade"}
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
_METHOD = re.compile(r"[A-Z]+", re.ASCII)
_WEBSOCKET = re.compile(r"\Aws(s?)(?=://)", re.IGNORECASE)


class _Kind(Enum):
    """
    Which connections a call shares: HTTP version, and how long an idle one is kept.
    """

    CREATE = "create"
    CALL = "call"
    POLL = "poll"


class HttpTransport:
    """
    One account's calls over real sockets.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        asset_path: Callable[[str], Path],
        user_agent: str,
        ca_file: Path | None = None,
        proxy: str | None = None,
        count: Callable[..., None] = lambda **_: None,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        """
        Send through `gate`; `asset_path` says where a form's file lies, `user_agent` is on every call.

        `ca_file`: certificates (PEM) to trust beside the system's. `proxy`: an http or https address that public
        hosts are reached through; it looks names up itself. `count` is told `connectionsOpened=1` for each.
        `network` opens the connections, by default the operating system's.

        Raises:
            ConfigError: The proxy is no http or https address.
        """
        network = network or httpcore2.AnyIOBackend()
        self._gate = gate
        self._asset_path = asset_path
        self._user_agent = user_agent
        self._ca_file = ca_file
        self._proxy = None if proxy is None else _read_proxy(proxy)
        self._vetted = VettedDialer(gate, network, count)
        self._to_proxy = CountedDialer(network, count)
        self._pools: dict[tuple[_Kind, bool, bool], httpcore2.AsyncConnectionPool] = {}
        self._opening = asyncio.Lock()  # guards _pools

    def send(self, request: HttpRequest, *, timeout: float) -> AbstractAsyncContextManager[Reply]:
        """
        Open the exchange; the connection is given back when the context ends. `timeout` is seconds for all of it.

        A call that only reads is repeated once where its connection broke before an answer; no other ever is.

        Raises:
            OutboundRefused: The gate does not let it out.
            TransportError: It failed; `maybe_sent` says whether the request may have arrived.
        """
        return self._exchange(request, timeout)

    async def drop_idle(self) -> None:
        """
        Close the connections that no call uses: after a sleep of the machine their other ends are gone unseen.
        """
        for pool in tuple(self._pools.values()):
            for connection in pool.connections:
                if connection.is_idle():
                    # One whose other end is gone may fail in any way to say goodbye, and the next must go as well.
                    with suppress(Exception):
                        await connection.aclose()

    async def aclose(self) -> None:
        """
        Close every connection.
        """
        async with self._opening:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    @asynccontextmanager
    async def _exchange(self, request: HttpRequest, seconds: float) -> AsyncGenerator[Reply]:
        # Only a call that is held knows what to do with a websocket; for any other the gate refuses the address.
        target = self._gate.admit(request.url if request.held is None else _WEBSOCKET.sub(r"http\1", request.url))
        progress = _Progress(request.may_go)
        try:
            async with asyncio.timeout(seconds) as limit, AsyncExitStack() as stack:
                response = await self._answer(request, target, progress, seconds, stack)
                stack.push_async_callback(_close, response)
                reply = _LiveReply(response, request, target)
                stack.push_async_callback(reply.aclose)
                yield reply
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise TransportError(
                f"{target.host} gave no whole answer within {seconds:g} s.", maybe_sent=progress.sent
            ) from exc

    async def _answer(
        self, request: HttpRequest, target: Target, progress: "_Progress", seconds: float, stack: AsyncExitStack
    ) -> httpcore2.Response:
        headers = await self._headers(request, target)
        opening = _opening() if _WEBSOCKET.match(request.url) else None
        headers += [] if opening is None else opening.headers()
        content: bytes | AsyncIterator[bytes] = b""
        if isinstance(request.body, bytes):
            content = request.body
            headers.append((b"Content-Length", b"%d" % len(content)))
        elif request.body is not None:
            body = await stack.enter_async_context(open_body(request.body, self._asset_path))
            content = body.pieces
            headers += [] if body.content_type is None else [(b"Content-Type", body.content_type.encode())]
            headers.append((b"Content-Length", b"%d" % body.length))
        pool = await self._pool(
            _kind(request, target), tls=target.scheme == "https", direct=self._proxy is None or target.direct
        )
        for may_repeat in (_only_reads(request), False):
            progress.sent = False
            call = httpcore2.Request(
                request.method,
                httpcore2.URL(
                    scheme=target.scheme,
                    host=f"[{target.host}]" if ":" in target.host else target.host,
                    port=target.port,
                    target=target.target,
                ),
                headers=headers,
                content=content,
                extensions={"timeout": _timeouts(seconds), "trace": progress.trace},
            )
            try:
                response = await pool.handle_async_request(call)
            except VidrelayError:
                raise
            except Exception as exc:
                # Whatever the engine raises, the scheduler must learn whether the call may have arrived.
                if may_repeat and progress.sent and _broke(exc):
                    continue
                raise _as_ours(exc, target, maybe_sent=progress.sent) from exc
            break
        if response.status == 101:
            try:
                _expected(opening, target).check(response)
            except TransportError:
                await _close(response)
                raise
        await _refuse_encoded(response, target)
        return response

    async def _headers(self, request: HttpRequest, target: Target) -> list[tuple[bytes, bytes]]:
        if _METHOD.fullmatch(request.method) is None:
            raise TransportError("The call's method is no plain word.", maybe_sent=False)
        headers = [
            (b"Host", target.authority.encode()),
            (b"User-Agent", self._user_agent.encode()),
            (b"Accept-Encoding", b"identity"),
        ]
        signature: Mapping[str, str] = {}
        if request.signed is not None:
            signature = request.signed(await body_hash(request.body, self._asset_path))
        for name, value in {**request.headers, **signature}.items():
            if name.lower() in _OURS:
                continue
            if _HEADER_NAME.fullmatch(name) is None or _HEADER_VALUE.fullmatch(value) is None or value != value.strip():
                raise TransportError(
                    "A header of the call holds characters that a header cannot.",
                    maybe_sent=False,
                    hint="A key with a line break, quotes or invisible characters in it does this.",
                )
            headers.append((name.encode(), value.encode()))
        return headers

    async def _pool(self, kind: _Kind, *, tls: bool, direct: bool) -> httpcore2.AsyncConnectionPool:
        async with self._opening:
            pool = self._pools.get((kind, tls, direct))
            if pool is None:
                # Each pool has a context of its own: the engine writes the protocols it offers into it.
                context = await asyncio.to_thread(tls_context, self._ca_file) if tls else None
                pool = httpcore2.AsyncConnectionPool(
                    ssl_context=context,
                    proxy=None if direct else self._proxy,
                    max_connections=None,
                    max_keepalive_connections=20,
                    keepalive_expiry=KEEP_FOR_CREATES_SECONDS if kind is _Kind.CREATE else KEEP_SECONDS,
                    http2=kind is _Kind.POLL,
                    network_backend=self._vetted if direct else self._to_proxy,
                )
                self._pools[kind, tls, direct] = pool
            return pool


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """
    What TLS trusts: the system's certificates, and those of `ca_file` (PEM) where one is given. Always verifies.
    """
    context = httpcore2.default_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


class _Progress:
    """
    Knows from the engine's own trace whether the first byte of a call may have left, and holds a call back that may not
    go any more when its way is open.
    """

    def __init__(self, may_go: Callable[[], bool] | None) -> None:
        self._may_go = may_go
        self.sent = False

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        # What is said to a proxy to open the way is not the call.
        if event.endswith(".send_request_headers.started") and info["request"].method != b"CONNECT":
            if self._may_go is not None and not self._may_go():
                raise TransportError("The call was held back: it may not go any more.", maybe_sent=self.sent)
            self.sent = True


class _LiveReply:
    """
    An answer over a real connection (fills port Reply).
    """

    def __init__(self, response: httpcore2.Response, request: HttpRequest, target: Target) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = _lower(response.headers)
        self._target = target
        self._max_bytes = request.max_reply_bytes
        self._held = request.held if response.status < 300 else None
        stream: Any = response.stream
        self._body: AsyncGenerator[bytes] = _messages(response) if response.status == 101 else stream.__aiter__()

    async def chunks(self) -> AsyncGenerator[bytes]:
        while True:
            try:
                chunk = await anext(self._body)
            except StopAsyncIteration:
                return
            except Exception as exc:
                raise _as_ours(exc, self._target, maybe_sent=True) from exc
            yield chunk

    async def read(self) -> bytes:
        told = self.headers.get("content-length", "")
        too_large = f"The answer of {self._target.host} is over the {self._max_bytes} bytes that such an answer may be."
        if told.isascii() and told.isdigit() and len(told) < 20 and int(told) > self._max_bytes:
            raise ReplyTooLarge(too_large, maybe_sent=True)
        body = bytearray()
        async with _listening(self._held), aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > self._max_bytes:
                    raise ReplyTooLarge(too_large, maybe_sent=True)
                if self._held is not None and self._held.enough(body):
                    break
        return bytes(body)

    async def aclose(self) -> None:
        with suppress(Exception):
            await self._body.aclose()


@asynccontextmanager
async def _listening(held: Held | None) -> AsyncGenerator[None]:
    """
    End the reading of a body that is held when its time is over, and let it have ended where it breaks off.
    """
    if held is None:
        yield
        return
    try:
        async with asyncio.timeout(held.seconds) as limit:
            yield
    except ReplyTooLarge:
        raise
    except TransportError:
        return
    except TimeoutError:
        if not limit.expired():
            raise


async def _close(response: httpcore2.Response) -> None:
    # A connection that breaks while it is given back has nothing more to tell.
    with suppress(Exception):
        await response.aclose()


async def _refuse_encoded(response: httpcore2.Response, target: Target) -> None:
    encoding = _lower(response.headers).get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        await _close(response)
        raise TransportError(f"{target.host} sent an encoded answer, which was not asked for.", maybe_sent=True)


def _lower(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def _opening() -> "Opening":
    # Slow to load, and few relays need it; those that may have loaded it by now (`assemble`).
    from vidrelay.transport.streams import Opening  # noqa: PLC0415

    return Opening()


def _messages(response: httpcore2.Response) -> AsyncGenerator[bytes]:
    from vidrelay.transport.streams import text_messages  # noqa: PLC0415 loaded with the opening

    return text_messages(response)


def _expected(opening: "Opening | None", target: Target) -> "Opening":
    if opening is None:
        raise TransportError(f"{target.host} changed to another protocol, which was not asked for.", maybe_sent=True)
    return opening


def _kind(request: HttpRequest, target: Target) -> _Kind:
    if request.creates:
        return _Kind.CREATE
    small = request.max_reply_bytes <= LIST_REPLY_BYTES and request.held is None
    return _Kind.POLL if request.method == "GET" and target.scheme == "https" and small else _Kind.CALL


def _only_reads(request: HttpRequest) -> bool:
    return request.method in ("GET", "HEAD") and not request.creates and request.body is None


def _broke(exc: Exception) -> bool:
    return isinstance(exc, httpcore2.ProtocolError | httpcore2.ReadError | httpcore2.WriteError)


def _as_ours(exc: Exception, target: Target, *, maybe_sent: bool) -> TransportError:
    if isinstance(exc, httpcore2.TimeoutException):
        return TransportError(f"{target.host} did not answer in time ({type(exc).__name__}).", maybe_sent=maybe_sent)
    if isinstance(exc, httpcore2.ProxyError):
        return TransportError(f"The proxy did not open the way to {target.host}: {exc}", maybe_sent=maybe_sent)
    return TransportError(f"The call to {target.host} failed ({type(exc).__name__}): {exc}", maybe_sent=maybe_sent)


def _timeouts(seconds: float) -> dict[str, float | None]:
    return {
        "connect": min(CONNECT_SECONDS, seconds),
        "write": min(WRITE_SECONDS, seconds),
        "read": min(FIRST_BYTE_SECONDS, seconds),
        "pool": seconds,
    }


def _read_proxy(proxy: str) -> httpcore2.Proxy:
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("The proxy is not an http:// or https:// address.")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    address = httpcore2.URL(scheme=parts.scheme, host=parts.hostname, port=parts.port, target="/")
    return httpcore2.Proxy(address, auth=auth)
