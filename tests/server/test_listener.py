"""
The listener: what is not HTTP is refused and closed, and nobody can hold it.
"""

import asyncio
import socket
import time

import pytest
import uvicorn
from fake_relay import FakeRelay
from loopback import TOKEN, app_of, listen

from vidrelay.server import serve as listener
from vidrelay.server.bodies import JSON_SECONDS
from vidrelay.testing.clock import FakeClock


def heads(port: int) -> dict[str, bytes]:
    host = b"Host: 127.0.0.1:%d\r\nX-Local-Token: %s\r\n" % (port, TOKEN.encode())
    post = b"POST /generate HTTP/1.1\r\n" + host
    chunked = post + b"Transfer-Encoding: chunked\r\n"
    return {
        "no HTTP": b"hello\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "HTTP/0.9": b"GET /\r\n\r\n",
        "HTTP/3.7": b"GET /health HTTP/3.7\r\n" + host + b"\r\n",
        "two lengths": post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        "two equal lengths": post + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "list of lengths": post + b"Content-Length: 2, 2\r\n\r\n{}",
        "length and chunks": post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunks and length": post + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        "signed length": post + b"Content-Length: +2\r\n\r\n{}",
        "negative length": post + b"Content-Length: -2\r\n\r\n{}",
        "hexadecimal length": post + b"Content-Length: 0x2\r\n\r\n{}",
        "length too long": post + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        "unknown coding": post + b"Transfer-Encoding: gzip\r\n\r\n",
        "coding after chunked": post + b"Transfer-Encoding: chunked, gzip\r\n\r\n",
        "misspelt coding": post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "obsolete fold": b"GET /health HTTP/1.1\r\n" + host + b"X: a\r\n b\r\n\r\n",
        "bare LF": b"GET /health HTTP/1.1\n" + host.replace(b"\r\n", b"\n") + b"\n",
        "bare CR": b"GET /health HTTP/1.1\r\n" + host + b"X: a\rb\r\n\r\n",
        "NUL in a value": b"GET /health HTTP/1.1\r\n" + host + b"X: a\x00b\r\n\r\n",
        "NUL in a name": b"GET /health HTTP/1.1\r\n" + host + b"X\x00: a\r\n\r\n",
        "space before the colon": b"GET /health HTTP/1.1\r\n" + host + b"X : a\r\n\r\n",
        "no colon": b"GET /health HTTP/1.1\r\n" + host + b"X\r\n\r\n",
        "space in the target": b"GET /health /x HTTP/1.1\r\n" + host + b"\r\n",
        "bytes beyond ASCII in the target": b"GET /\xff HTTP/1.1\r\n" + host + b"\r\n",
        "absolute target": b"GET http://evil.example/health HTTP/1.1\r\n" + host + b"\r\n",
        "own absolute target": b"GET http://127.0.0.1:%d/health HTTP/1.1\r\n" % port + host + b"\r\n",
        "CONNECT": b"CONNECT evil.example:443 HTTP/1.1\r\n" + host + b"\r\n",
        "OPTIONS of all": b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n",
        "signed chunk size": chunked + b"\r\n+2\r\n{}\r\n0\r\n\r\n",
        "underscored chunk size": chunked + b"\r\n1_0\r\n{}\r\n0\r\n\r\n",
        "hexadecimal prefix of a chunk size": chunked + b"\r\n0x2\r\n{}\r\n0\r\n\r\n",
        "chunk size too long": chunked + b"\r\nfffffffffffffffff\r\n{}\r\n",
        "chunk without its end": chunked + b"\r\n2\r\n{}0\r\n\r\n",
        "chunk ended by LF": chunked + b"\r\n2\n{}\n0\n\n",
        "body of an upgrade": post
        + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 14\r\n\r\n"
        + b'{"prompt":"x"}',
        "65 headers": b"GET /health HTTP/1.1\r\n" + host + b"".join(b"X-%d: a\r\n" % n for n in range(63)) + b"\r\n",
        "17 KB of headers": b"GET /health HTTP/1.1\r\n" + host + b"X: " + b"a" * 17_000 + b"\r\n\r\n",
        "9 KB of target": b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        "10,000 trailers": chunked + b"\r\n2\r\n{}\r\n0\r\n" + b"X: a\r\n" * 10_000 + b"\r\n",
        "100,000 one-byte chunks": chunked + b"\r\n" + b"1\r\n \r\n" * 100_000,
        "endless blank lines": b"\r\n" * 500_000,
        "endless header": b"GET /health HTTP/1.1\r\n" + host + b"X: " + b"a" * 1_000_000,
        "endless header name": b"GET /health HTTP/1.1\r\n" + host + b"a" * 1_000_000,
        "endless target": b"GET /" + b"a" * 1_000_000,
        "endless method": b"G" * 1_000_000,
        "endless trailer": chunked + b"\r\n2\r\n{}\r\n0\r\nX: " + b"a" * 1_000_000,
        "endless chunk extension": chunked + b"\r\n2;" + b"a" * 1_000_000,
    }


@pytest.mark.parametrize("name", heads(1))
async def test_what_is_no_good_http_is_refused_and_closed(served, name):
    """
    Malformed, smuggled and endless messages each get a 4xx and the end, at little cost, with no task made.
    """
    data = heads(served.port)[name]
    started = time.process_time()
    answer = await served.raw(data, seconds=4)
    spent = time.process_time() - started
    assert answer[:13] in (b"HTTP/1.1 400 ", b"HTTP/1.1 405 ", b"HTTP/1.1 413 ", b"HTTP/1.1 414 ", b"HTTP/1.1 431 "), (
        name
    )
    assert b"connection: close" in answer
    assert spent < 0.1, spent  # 0.002 when nothing else runs
    assert (await served.client.get("/health")).status_code == 200
    assert not served.relay.tasks


async def test_trace_is_not_served_and_gives_nothing_back(served):
    """
    TRACE is a 405 whose answer does not echo the token.
    """
    answer = await served.raw((served.head("TRACE /health HTTP/1.1") + "\r\n").encode(), seconds=0.3)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert TOKEN.encode() not in answer


async def test_a_refusal_of_the_parser_is_a_problem_with_the_security_headers(served):
    """
    Even what is no HTTP is answered with a problem, our headers and no server name.
    """
    answer = await served.raw(b"hello\r\n\r\n")
    assert b"content-type: application/problem+json" in answer
    assert b"x-content-type-options: nosniff" in answer
    assert b'"code":"malformed_http"' in answer
    assert b"\r\nserver:" not in answer.lower()


async def test_trailers_are_never_heard_as_headers(served):
    """
    A token in the trailer of a body does not open the gate.
    """
    body = b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Local-Token: %s\r\n\r\n" % TOKEN.encode()
    head = b"POST /shutdown HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % served.port
    answer = await served.raw(head + body)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert not served.shutdowns


async def test_sixty_headers_are_fine(served):
    """
    A call with some fifty headers beside the usual ones is answered.
    """
    headers = {f"X-{number}": "a" for number in range(50)}
    assert (await served.client.get("/health", headers=headers)).status_code == 200


async def test_an_upgrade_without_a_body_is_answered_as_the_plain_call_it_is(served):
    """
    An offered upgrade is passed over, and the call is answered over HTTP/1.1.
    """
    head = served.head() + "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert (await served.raw(head.encode(), seconds=0.3)).startswith(b"HTTP/1.1 200 ")


async def test_pipelined_calls_are_answered_in_order(served):
    """
    Three calls in one packet get their three answers in the order of asking.
    """
    head = served.head()
    last = served.head("GET /nowhere HTTP/1.1") + "Connection: close\r\n\r\n"
    answer = await served.raw((head + "\r\n" + head + "\r\n" + last).encode())
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]


async def test_a_call_after_a_refused_one_is_not_answered(served):
    """
    The gate's refusal closes the connection, whatever was sent behind it.
    """
    bad = served.head(token=None) + "\r\n"
    answer = await served.raw((bad + served.head() + "\r\n").encode())
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_client_that_expects_to_be_asked_for_its_body_is_asked(served):
    """
    `Expect: 100-continue` is answered with a 100, and then the body is taken.
    """
    head = served.head("POST /generate HTTP/1.1") + "Expect: 100-continue\r\nContent-Length: 14\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(head.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 100 ")
    writer.write(b'{"prompt":"x"}')
    await reader.readline()
    assert (await reader.readline()).startswith(b"HTTP/1.1 202 ")
    writer.close()


async def test_a_stranger_is_not_asked_for_a_body(served):
    """
    Without the token `Expect: 100-continue` gets the 403 and no 100.
    """
    head = served.head("POST /generate HTTP/1.1", token=None) + "Expect: 100-continue\r\nContent-Length: 14\r\n\r\n"
    assert (await served.raw(head.encode())).startswith(b"HTTP/1.1 403 ")


async def test_three_hundred_idle_sockets_keep_nobody_out(served):
    """
    With three hundred silent connections open a call is answered within a second.
    """
    sockets = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(300)]
    started = time.perf_counter()
    assert (await served.client.get("/health")).status_code == 200
    assert time.perf_counter() - started < 1
    for each in sockets:
        each.close()


async def test_a_kept_connection_outlives_newer_ones_that_never_said_a_word(served):
    """
    Room is made by closing silent connections, not one that has been used.
    """
    await served.client.get("/health")
    sockets = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(200)]
    # Connections are taken in their order: when this one is answered, every silent one has been.
    assert b" 200 " in await served.raw((served.head() + "Connection: close\r\n\r\n").encode())
    assert (await served.client.get("/health")).status_code == 200
    for each in sockets:
        each.close()


async def test_when_every_connection_is_at_work_one_more_is_told_to_come_back(served):
    """
    Beyond the limit of busy connections a call is a 503 with Retry-After.
    """
    head = (served.head("GET /events HTTP/1.1") + "\r\n").encode()
    streams = []
    for _ in range(listener.MAX_CONNECTIONS):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(head)
        await reader.readline()
        streams.append(writer)
    answer = await served.raw((served.head() + "\r\n").encode())
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in answer
    for writer in streams:
        writer.transport.abort()


class HastyProtocol(listener.BoundedProtocol):
    """
    The same, with less patience, so that a test need not wait.
    """

    def _arm_head_timer(self, seconds: float) -> None:
        super()._arm_head_timer(seconds / 50)


async def hasty(relay: FakeRelay, said: bytes, *, pause_seconds: float = 0.0) -> tuple[bytes, float]:
    """
    What a listener with that little patience answers, and after how long; with a pause, byte by byte.
    """
    sock = listen()
    stop, ready = asyncio.Event(), asyncio.Event()
    app = app_of(relay, sock.getsockname()[1], FakeClock(), stop, [])
    config = uvicorn.Config(app, http=HastyProtocol, ws="none", lifespan="off", log_config=None, server_header=False)
    async with asyncio.TaskGroup() as group:
        group.create_task(listener._Server(config, stop=stop, ready=ready.set).serve(sockets=[sock]))
        await ready.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
        started = time.perf_counter()
        answering = asyncio.ensure_future(reader.read())
        for piece in (said[at : at + 1] for at in range(len(said))) if pause_seconds else [said]:
            writer.write(piece)
            await asyncio.wait([answering], timeout=pause_seconds)
            if answering.done():
                break
        async with asyncio.timeout(3):
            answer = await answering
        writer.transport.abort()
        stop.set()
    return answer, time.perf_counter() - started


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: x", b"\r\n", b"\r\n\r\n\r\n"])
async def test_a_head_that_does_not_come_is_cut(relay: FakeRelay, said: bytes):
    """
    A connection whose request head is not whole in time is closed without a word.
    """
    answer, seconds = await hasty(relay, said)
    assert answer == b""
    assert seconds < 2


@pytest.mark.parametrize("said", [b"GET /health HTTP/1.1\r\nHost: " + b"x" * 400, b"\r\n" * 200])
async def test_a_head_that_drips_is_cut_at_its_time(relay: FakeRelay, said: bytes):
    """
    The time is that of the whole head, so a byte now and then does not lengthen it.
    """
    answer, seconds = await hasty(relay, said, pause_seconds=0.02)
    assert answer == b""
    assert seconds < 2  # all of it would take eight


def test_the_limits_are_those_that_the_reference_tells():
    """
    8 KB of target, 64 headers of 16 KB in 5 seconds, 15 seconds of rest or of JSON, 128 connections.
    """
    assert (listener.MAX_TARGET_BYTES, listener.MAX_HEADERS, listener.MAX_HEADER_BYTES) == (8192, 64, 16384)
    assert (listener.HEADER_SECONDS, listener.IDLE_SECONDS, JSON_SECONDS) == (5, 15, 15)
    assert listener.MAX_CONNECTIONS == 128


async def test_serving_ends_with_an_open_stream_and_frees_the_port(relay: FakeRelay):
    """
    A stop ends an open stream properly, and the port can be bound again.
    """
    sock = listen()
    port = sock.getsockname()[1]
    stop, ready = asyncio.Event(), asyncio.Event()
    app = app_of(relay, port, FakeClock(), stop, [])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(listener.serve(app, sock, stop=stop, ready=ready.set, grace=2))
        await ready.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Local-Token: {TOKEN}\r\n\r\n".encode())
        await reader.readline()
        stop.set()
    assert b"0\r\n\r\n" in await reader.read()
    writer.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
