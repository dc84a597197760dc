"""
A call that is held gives what came until there was enough, whatever ended it, and keeps every rule of other calls.
"""
# ruff: noqa: SIM117 the server first, then what is done with it
# ruff: noqa: ASYNC110 what a server has seen has no event

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from vidrelay.core.errors import OutboundRefused, ReplyTooLarge, TransportError
from vidrelay.core.messages import Held, HttpReply, HttpRequest
from vidrelay.transport.http import HttpTransport

from .servers import (
    Authority,
    Names,
    Received,
    Server,
    http_server,
    reply,
    tls_transport,
    transport_to,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def call(transport: HttpTransport, request: HttpRequest, *, timeout: float = 5) -> HttpReply:
    async with transport.send(request, timeout=timeout) as answer:
        return HttpReply(status=answer.status, headers=answer.headers, body=await answer.read())


def held(
    server: Server, until: bytes = b"never", *, seconds: float = 5.0, ws: bool = False, **rest: object
) -> HttpRequest:
    """
    A call that listens until those bytes have come.
    """
    url = server.url.replace("http://", "ws://") if ws else server.url
    return HttpRequest(
        method="GET", url=f"{url}/stream", held=Held(seconds=seconds, enough=lambda body: until in body), **rest
    )


def stream(*pieces: bytes, ends: bool = False, breaks: bool = False) -> Callable[..., Awaitable[None]]:
    """
    An answer of chunks that goes on without a word, ends, or breaks off.
    """

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.01)
        if ends:
            writer.write(b"0\r\n\r\n")
        elif breaks:
            writer.transport.abort()
        else:
            await asyncio.sleep(30)

    return answer


def accept(received: Received) -> bytes:
    key = received.headers["sec-websocket-key"].encode()
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def frame(opcode: int, data: bytes, *, last: bool = True) -> bytes:
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return bytes([opcode | 0x80 * last]) + size + data


def websocket(*frames: bytes, breaks: bool = False, seen: list[bytes] | None = None) -> Callable[..., Awaitable[None]]:
    """
    A websocket that says these frames and then nothing more.
    """

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept(received) + b"\r\n\r\n"
        )
        for one in frames:
            writer.write(one)
            await writer.drain()
        if breaks:
            await asyncio.sleep(0.05)
            writer.transport.abort()
            return
        reader = writer.transport.get_protocol()._stream_reader
        while data := await reader.read(1000):
            (seen if seen is not None else []).append(data)

    return answer


# How it ends


async def test_it_ends_when_there_is_enough(tmp_path: Path) -> None:
    """
    What has come is given as soon as it is enough, though the stream goes on.
    """
    async with http_server(stream(b"one ", b"two ", b"three")) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, held(server, b"two"))
    assert (answer.status, answer.body) == (200, b"one two ")


async def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """
    A stream without news is given up after its seconds, and what had come is the answer.
    """
    async with http_server(stream(b"one ")) as server, transport_to(server, tmp_path) as transport:
        began = asyncio.get_running_loop().time()
        answer = await call(transport, held(server, seconds=0.2))
        took = asyncio.get_running_loop().time() - began
    assert answer.body == b"one "
    assert 0.15 <= took < 3


async def test_it_ends_with_its_body(tmp_path: Path) -> None:
    """
    A stream that ends is an answer, and its connection is used again.
    """
    async with http_server(stream(b"one ", ends=True)) as server, transport_to(server, tmp_path) as transport:
        bodies = [(await call(transport, held(server))).body for _ in range(2)]
    assert bodies == [b"one ", b"one "]
    assert server.connections == 1


async def test_a_broken_one_gives_what_came(tmp_path: Path) -> None:
    """
    A stream that breaks off is as good as one that ended there.
    """
    async with http_server(stream(b"one ", breaks=True)) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, held(server))
    assert answer.body == b"one "


async def test_a_refused_one_is_read_as_any_answer(tmp_path: Path) -> None:
    """
    An answer that is no stream is whole, whatever would have been enough.
    """
    refusal = reply(b"not that, and for a reason", status=404)
    async with http_server(refusal) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, held(server, b"not"))
    assert (answer.status, answer.body) == (404, b"not that, and for a reason")


async def test_one_that_never_begins_fails(tmp_path: Path) -> None:
    """
    The time for listening does not begin before the answer does: that is what the whole call's time is for.
    """

    async def silent(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async with http_server(silent) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, held(server, seconds=0.05), timeout=0.3)
    assert failed.value.maybe_sent


async def test_it_takes_in_no_more_than_it_may(tmp_path: Path) -> None:
    """
    A stream that says more than the call takes in is an error, not an answer.
    """
    async with http_server(stream(b"x" * 60, b"x" * 60)) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(ReplyTooLarge):
            await call(transport, held(server, max_reply_bytes=100))


async def test_cancelling_ends_it_at_once(tmp_path: Path) -> None:
    """
    Whoever waits for it can be broken off, and the connection is closed.
    """
    async with http_server(stream(b"one ")) as server, transport_to(server, tmp_path) as transport:
        async with asyncio.timeout(5):
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(call(transport, held(server)))
                while not server.requests:
                    await asyncio.sleep(0.01)
                listening.cancel()
    assert listening.cancelled()


async def test_many_at_once_leave_room_for_others(tmp_path: Path) -> None:
    """
    Forty that are held take no other call's connection.
    """

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.target == "/stream":
            await stream(b"one ")(received, writer)
        else:
            await reply(b"here")(received, writer)

    async with http_server(answer) as server, transport_to(server, tmp_path) as transport:
        async with asyncio.TaskGroup() as group:
            many = [group.create_task(call(transport, held(server))) for _ in range(40)]
            while len(server.requests) < 40:
                await asyncio.sleep(0.01)
            other = await call(transport, HttpRequest(method="GET", url=f"{server.url}/other"))
            for one in many:
                one.cancel()
    assert other.body == b"here"
    assert server.connections == 41


# Websockets


async def test_a_websocket_gives_its_text_messages_one_a_line(tmp_path: Path) -> None:
    """
    Messages in several frames are one line, pictures are left out, and a ping is answered.
    """
    seen: list[bytes] = []
    frames = [
        frame(1, b'{"a": 1}'),
        frame(2, b"\x89PNG"),
        frame(9, b"hm"),
        frame(1, b'{"b":', last=False),
        frame(0, b"\n2}"),
        frame(1, b"end"),
    ]
    async with http_server(websocket(*frames, seen=seen)) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, held(server, b"end\n", ws=True))
        while sum(map(len, seen)) < 16:
            await asyncio.sleep(0.01)
    assert answer.status == 101
    assert [json.loads(line) for line in answer.body.splitlines()[:2]] == [{"a": 1}, {"b": 2}]
    opcodes = b"".join(seen)[0], b"".join(seen)[8]
    assert opcodes == (0x8A, 0x88), "a pong, and a farewell"


async def test_a_websocket_that_breaks_off_gives_what_came(tmp_path: Path) -> None:
    """
    Its end is the end of the answer, however it comes.
    """
    answering = websocket(frame(1, b"one"), breaks=True)
    async with http_server(answering) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, held(server, ws=True))
    assert answer.body == b"one\n"


async def test_a_websocket_says_the_headers_of_the_call(tmp_path: Path) -> None:
    """
    It is opened by a call as any other, with the key and our own name.
    """
    async with http_server(websocket(frame(1, b"end"))) as server, transport_to(server, tmp_path) as transport:
        await call(transport, held(server, b"end", ws=True, headers={"Authorization": "Bearer k", "Upgrade": "h2c"}))
    told = server.requests[0].headers
    assert (told["authorization"], told["user-agent"], told["upgrade"]) == ("Bearer k", "vidrelay/test", "websocket")


@pytest.mark.parametrize("odd", ["accept", "extension"])
async def test_a_websocket_that_is_none_is_an_error(tmp_path: Path, odd: str) -> None:
    """
    A server that has not understood the opening, or wants what was not offered, is not listened to.
    """

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        told = b"x" if odd == "accept" else accept(received) + b"\r\nSec-WebSocket-Extensions: permessage-deflate"
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + told + b"\r\n\r\n" + frame(1, b"end")
        )
        await asyncio.sleep(30)

    async with http_server(answer) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError):
            await call(transport, held(server, ws=True))


async def test_another_protocol_that_was_not_asked_for_is_an_error(tmp_path: Path) -> None:
    """
    A plain call is never turned into something else.
    """

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n")
        await asyncio.sleep(30)

    async with http_server(answer) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError):
            await call(transport, HttpRequest(method="GET", url=f"{server.url}/"))


# Where it may go


@pytest.mark.parametrize("url", ["ws://127.0.0.1:{other}/ws", "ws://10.0.0.1/ws", "wss://evil.example/ws"])
async def test_a_websocket_goes_through_the_gate(tmp_path: Path, url: str) -> None:
    """
    Another host, another port, a private address: refused as for any call, and nothing is sent.
    """
    async with http_server(websocket()) as server, http_server(websocket()) as other:
        async with transport_to(server, tmp_path) as transport:
            to = url.format(other=other.port)
            request = HttpRequest(method="GET", url=to, held=Held(seconds=1, enough=bool))
            with pytest.raises(OutboundRefused):
                await call(transport, request)
    assert (server.connections, other.connections) == (0, 0)


async def test_a_call_that_is_not_held_opens_no_websocket(tmp_path: Path) -> None:
    """
    A result's address that is one of a websocket is refused.
    """
    async with http_server(websocket()) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(OutboundRefused):
            await call(transport, HttpRequest(method="GET", url=server.url.replace("http", "ws") + "/a.mp4"))
    assert server.connections == 0


async def test_a_websocket_of_a_listed_host_is_opened_over_tls(authority: Authority) -> None:
    """
    wss:// is the host's https, with its certificate checked; a name that leads to a private address is refused.
    """
    async with http_server(websocket(frame(1, b"end")), authority.server("api.example.com")) as server:
        request = HttpRequest(
            method="GET",
            url="wss://api.example.com/ws",
            held=Held(seconds=1, enough=lambda body: b"end" in body),
        )
        async with tls_transport(server.port, authority) as transport:
            answer = await call(transport, request)
        inside = Names(api_example_com=["10.0.0.1"])
        async with tls_transport(server.port, authority, names=inside) as transport:
            with pytest.raises(OutboundRefused):
                await call(transport, request)
    assert answer.body == b"end\n"
    assert server.connections == 1
