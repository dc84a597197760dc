"""
Connections to the relay, and to nobody else.

Each TCP connection is checked before a request with the token goes over it: it must not have met itself (a connect to
an unused local port can), and its other end must prove that it knows the token (contract section 3). So whoever took
the port of a relay that has ended gets neither token nor prompt.
"""

import contextlib
import json
import secrets
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore2
import httpx2

from vidrelay.client.beacon import Beacon
from vidrelay.core.proof import NONCE_BYTES, client_proof, proves, server_proof

PROOF_SECONDS = 5.0
_MAX_ANSWER_BYTES = 16 * 1024


class ProofFailed(httpcore2.ConnectError):
    """
    Who listens there is not the relay.
    """


class ProvenBackend(httpcore2.AsyncNetworkBackend):
    """
    Opens connections whose other end has proved that it is this relay.
    """

    def __init__(self, beacon: Beacon, *, network: httpcore2.AsyncNetworkBackend | None = None) -> None:
        """
        Reach the relay of that `relay.json`; `network` opens the connections, by default the system's.
        """
        self._beacon = beacon
        self._backend = network or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """
        Dial 127.0.0.1 and let the other end prove itself.
        """
        stream = await self._backend.connect_tcp("127.0.0.1", self._beacon.port, timeout=PROOF_SECONDS)
        try:
            if stream.get_extra_info("client_addr") == stream.get_extra_info("server_addr"):
                _reset(stream)
                raise ProofFailed("Nobody listens there.")  # noqa: TRY301 the stream is closed below
            await _prove(stream, self._beacon)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def sleep(self, seconds: float) -> None:
        """
        Wait that long.
        """
        await self._backend.sleep(seconds)


def _reset(stream: httpcore2.AsyncNetworkStream) -> None:
    """
    Make the close a reset: an orderly one would keep the port busy for a minute.
    """
    raw = stream.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _prove(stream: httpcore2.AsyncNetworkStream, beacon: Beacon) -> None:
    nonce = secrets.token_hex(NONCE_BYTES)
    body = json.dumps({"nonce": nonce, "mac": client_proof(beacon.token, nonce=nonce, port=beacon.port)})
    head = (
        f"POST /proof HTTP/1.1\r\nHost: 127.0.0.1:{beacon.port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nAccept: application/json\r\n\r\n"
    )
    try:
        await stream.write((head + body).encode(), timeout=PROOF_SECONDS)
        answer = await _read_answer(stream)
    except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
        raise ProofFailed("Who listens there did not prove to be the relay.") from error
    expected = server_proof(beacon.token, nonce=nonce, port=beacon.port, instance=beacon.instance)
    if not proves(answer.get("mac"), expected):
        raise ProofFailed("Who listens there did not prove to be the relay.")


async def _read_answer(stream: httpcore2.AsyncNetworkStream) -> dict[str, Any]:
    """
    The JSON object of one small HTTP answer; an empty one where it is anything else.
    """
    data = b""
    length: int | None = None
    while len(data) <= _MAX_ANSWER_BYTES:
        head, found, body = data.partition(b"\r\n\r\n")
        if found and length is None:
            length = _content_length(head)
            if length is None or not head.startswith(b"HTTP/1.1 200"):
                return {}
        if length is not None and len(body) >= length:
            return _json_object(body) if len(body) == length else {}
        chunk = await stream.read(4096, timeout=PROOF_SECONDS)
        if not chunk:
            return {}
        data += chunk
    return {}


def _content_length(head: bytes) -> int | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 10:
            return int(value)
    return None


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


class ProvenTransport(httpx2.AsyncBaseTransport):
    """
    An httpx2 transport over proven connections only. Raises httpcore2's errors.
    """

    def __init__(self, beacon: Beacon) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            network_backend=ProvenBackend(beacon), max_connections=64, keepalive_expiry=10
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """
        Send one request.
        """
        assert isinstance(request.stream, httpx2.AsyncByteStream)  # noqa: S101 narrows the type
        response = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """
        Close every connection.
        """
        await self._pool.aclose()
