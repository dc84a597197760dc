"""
The HTTP face of a fake relay on a real loopback port.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from fake_relay import FakeRelay
from starlette.types import ASGIApp

from vidrelay.server.app import make_app
from vidrelay.server.serve import serve
from vidrelay.testing.clock import FakeClock

TOKEN = "vrl_" + "a1" * 32


@dataclass
class Served:
    """
    A relay's HTTP face on a real loopback port.
    """

    relay: FakeRelay
    port: int
    client: httpx2.AsyncClient
    clock: FakeClock
    stop: asyncio.Event
    shutdowns: list[bool] = field(default_factory=list)

    async def raw(self, data: bytes, *, seconds: float = 5.0) -> bytes:
        """
        Send bytes as they are, and read until the server closes (or for so many seconds).
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        answer = b""
        try:
            async with asyncio.timeout(seconds):
                writer.write(data)
                await writer.drain()
                while chunk := await reader.read(65536):
                    answer += chunk
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()
        assert b"\naccess-control-" not in answer.lower()
        return answer

    def head(self, line: str = "GET /health HTTP/1.1", *, token: str | None = TOKEN, host: str | None = None) -> str:
        """
        The head of a call without its last blank line.
        """
        lines = [line, f"Host: {host or f'127.0.0.1:{self.port}'}"]
        if token is not None:
            lines.append(f"X-Local-Token: {token}")
        return "\r\n".join(lines) + "\r\n"


def listen() -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", 0))
    return sock


def app_of(relay: FakeRelay, port: int, clock: FakeClock, stop: asyncio.Event, shutdowns: list[bool]) -> ASGIApp:
    return make_app(
        relay,
        token=lambda: TOKEN,
        port=port,
        instance="i-1",
        version="1.2.3",
        clock=clock,
        shutdown=lambda: shutdowns.append(True),
        stop_streams=stop,
        origins=["tauri://localhost"],
    )


@asynccontextmanager
async def serving(relay: FakeRelay) -> AsyncIterator[Served]:
    sock = listen()
    port = sock.getsockname()[1]
    clock, stop, ready = FakeClock(), asyncio.Event(), asyncio.Event()
    shutdowns: list[bool] = []
    app = app_of(relay, port, clock, stop, shutdowns)
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(app, sock, stop=stop, ready=ready.set, grace=2))
        await ready.wait()
        headers = {"X-Local-Token": TOKEN}
        # Loopback speaks no TLS, and reading the trusted certificates costs more than most of these tests.
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers=headers,
            trust_env=False,
            verify=False,
            timeout=10,
            event_hooks={"response": [_shares_nothing]},
        ) as client:
            try:
                yield Served(relay, port, client, clock, stop, shutdowns)
            finally:
                stop.set()


async def _shares_nothing(answer: httpx2.Response) -> None:
    """
    No answer of all the tests of this room lets another origin read it.
    """
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def call_app(app, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    sent: list[dict] = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [
        (b"host", b"127.0.0.1:50000"),
        (b"x-local-token", TOKEN.encode()),
        (b"content-length", b"%d" % len(body)),
    ]
    scope = {
        "type": "http",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
