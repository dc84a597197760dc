"""
Small servers that do exactly what a test says, and a network that leads every public address to one of them.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import httpcore2
import trustme
from httpcore2 import SOCKET_OPTION

from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

PUBLIC = "93.184.215.14"


@dataclass
class Received:
    """
    One request as a server saw it.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    protocol: str


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """
    What a running server has seen.
    """

    port: int = 0
    connections: int = 0
    bytes_read: int = 0
    requests: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def read_request(reader: asyncio.StreamReader, server: Server, protocol: str = "http/1.1") -> Received | None:
    """
    The next whole request of a connection; None at its end.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as exc:
        server.bytes_read += len(exc.partial)
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    server.bytes_read += len(head) + len(body)
    received = Received(method=method, target=target, headers=headers, body=body, protocol=protocol)
    server.requests.append(received)
    return received


@asynccontextmanager
async def raw_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter, Server], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """
    A server whose every connection is handled by `handle`.
    """
    state = Server()
    handlers: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        state.connections += 1
        try:
            await handle(reader, writer, state)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            handlers.discard(asyncio.current_task())

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for handler in list(handlers):
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def http_server(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """
    A keep-alive HTTP/1.1 server; `answer` writes each reply.
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: Server) -> None:
        tls_object = writer.get_extra_info("ssl_object")
        protocol = tls_object.selected_alpn_protocol() if tls_object else "http/1.1"
        while not writer.is_closing() and (received := await read_request(reader, state, protocol)):
            await answer(received, writer)
            await writer.drain()

    async with raw_server(handle, tls) as state:
        yield state


@asynccontextmanager
async def h2_server(tls: ssl.SSLContext, *, goodbye_on: Iterable[int] = ()) -> AsyncIterator[Server]:
    """
    An HTTP/2 server that answers `ok`; the n-th request of all is met with an orderly goodbye where n is listed.
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: Server) -> None:
        protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        connection = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if not isinstance(event, h2.events.RequestReceived):
                    continue
                headers = {name.decode(): value.decode() for name, value in event.headers}
                state.requests.append(Received(headers[":method"], headers[":path"], headers, b"", protocol))
                if len(state.requests) in goodbye_on:
                    connection.close_connection(last_stream_id=0)
                else:
                    connection.send_headers(event.stream_id, [(":status", "200")])
                    connection.send_data(event.stream_id, b"ok", end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()

    async with raw_server(handle, tls) as state:
        yield state


def reply(body: bytes = b"{}", *, status: str = "200 OK", headers: str = "") -> Answer:
    """
    An answer with a length.
    """

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)

    return answer


class Names:
    """
    A resolver that knows what it is told, and counts.
    """

    def __init__(self, **answers: list[str]) -> None:
        self.answers = {name.replace("_", "."): found for name, found in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("no such name")
        return self.answers[host]


class Network(httpcore2.AsyncNetworkBackend):
    """
    Leads every address to one local port, and notes which address was meant.
    """

    def __init__(self, port: int = 0, *, dead: frozenset[str] = frozenset()) -> None:
        self.port = port
        self.dead = dead
        self.dialled: list[tuple[str, int]] = []
        self._real = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.dialled.append((host, port))
        if host in self.dead or not self.port:
            raise httpcore2.ConnectError("unreachable")
        return await self._real.connect_tcp("127.0.0.1", self.port, timeout, local_address, socket_options)


@dataclass
class Authority:
    """
    A certificate authority of the test's own.
    """

    ca: trustme.CA
    ca_file: Path

    def server(self, *names: str, protocols: tuple[str, ...] = ("h2", "http/1.1")) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(list(protocols))
        self.ca.issue_cert(*names).configure_cert(context)
        return context


@asynccontextmanager
async def transport_to(server: Server, tmp_path: Path, **settings: object) -> AsyncIterator[HttpTransport]:
    """
    A transport whose `base_url` is that local server.
    """
    transport = HttpTransport(
        Gate(base_url=server.url),
        asset_path=lambda asset: tmp_path / asset.removeprefix("sha256:"),
        user_agent="vidrelay/test",
        **settings,
    )
    try:
        yield transport
    finally:
        await transport.aclose()


@asynccontextmanager
async def tls_transport(
    port: int, authority: Authority, *, names: Names | None = None, network: Network | None = None, **settings: object
) -> AsyncIterator[HttpTransport]:
    """
    A transport for api.example.com, which a public address stands for.
    """
    gate = Gate(["api.example.com", "*.cdn.example.com"], resolve=names or Names(api_example_com=[PUBLIC]))
    transport = HttpTransport(
        gate,
        asset_path=Path,
        user_agent="vidrelay/test",
        ca_file=authority.ca_file,
        network=network or Network(port),
        **settings,
    )
    try:
        yield transport
    finally:
        await transport.aclose()
