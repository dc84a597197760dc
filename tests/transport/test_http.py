"""
A call is sent as it was asked for, once, and a failed one says whether it may have arrived.
"""
# ruff: noqa: SIM117 the server first, then what is done with it

import asyncio
import email
import email.policy
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trustme

from vidrelay.core.errors import ConfigError, OutboundRefused, ReplyTooLarge, TransportError
from vidrelay.core.messages import API_REPLY_BYTES, LIST_REPLY_BYTES, Form, FormFile, HttpReply, HttpRequest
from vidrelay.transport import download, http
from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

from .servers import (
    PUBLIC,
    Authority,
    Names,
    Network,
    Received,
    Server,
    h2_server,
    http_server,
    raw_server,
    read_request,
    reply,
    tls_transport,
    transport_to,
)

API = "https://api.example.com/v1/videos"


async def call(transport: HttpTransport, request: HttpRequest, *, timeout: float = 5) -> HttpReply:
    async with transport.send(request, timeout=timeout) as answer:
        return HttpReply(status=answer.status, headers=answer.headers, body=await answer.read())


def create(server: Server, **settings: object) -> HttpRequest:
    return HttpRequest(method="POST", url=f"{server.url}/v1/videos", body=b"{}", creates=True, **settings)


def poll(server: Server, path: str = "/v1/videos/1") -> HttpRequest:
    return HttpRequest(method="GET", url=f"{server.url}{path}")


# What goes out


async def test_a_call_carries_our_name_and_asks_for_no_encoding(tmp_path: Path) -> None:
    """
    Host, user agent and encoding are ours whatever the request says; its other headers go out.
    """
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        headers = {"Authorization": "Bearer k", "User-Agent": "x", "accept-encoding": "gzip", "Host": "evil.com"}
        await call(transport, HttpRequest(method="GET", url=f"{server.url}/a?b=c", headers=headers))
    received = server.requests[0]
    assert (received.method, received.target) == ("GET", "/a?b=c")
    assert received.headers == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": "vidrelay/test",
        "accept-encoding": "identity",
        "authorization": "Bearer k",
    }


async def test_a_body_arrives_with_its_length(tmp_path: Path) -> None:
    """
    A body of bytes arrives whole under its Content-Length, and the answer comes back.
    """
    async with http_server(reply(b'{"id": 1}')) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, create(server, headers={"Content-Type": "application/json"}))
    assert (answer.status, answer.body) == (200, b'{"id": 1}')
    assert server.requests[0].body == b"{}"
    assert server.requests[0].headers["content-length"] == "2"


@pytest.mark.parametrize("known", [False, True], ids=["a new connection", "a kept one"])
async def test_a_call_that_may_not_go_any_more_when_its_way_is_open_is_not_sent(tmp_path: Path, known: bool) -> None:
    """
    It is asked when the connection stands and before the first byte, and the failure says that nothing was sent.
    """
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        if known:
            await call(transport, create(server))
        seen: list[int] = []

        def may_go() -> bool:
            seen.append(server.connections)
            return False

        with pytest.raises(TransportError) as failed:
            await call(transport, create(server, may_go=may_go))
        assert failed.value.maybe_sent is False
        assert len(seen) == 1
        await call(transport, create(server, may_go=lambda: True))
    assert len(server.requests) == 1 + known


async def test_a_poll_over_http2_that_may_not_go_is_not_sent(authority: Authority) -> None:
    """
    It leaves its connection, which others share, as it was.
    """
    async with h2_server(authority.server("api.example.com")) as server:
        async with tls_transport(server.port, authority) as transport:
            held = HttpRequest(method="GET", url=f"{API}/1", may_go=lambda: False)
            await call(transport, HttpRequest(method="GET", url=f"{API}/2"))
            with pytest.raises(TransportError) as failed:
                await call(transport, held)
            assert failed.value.maybe_sent is False
            await call(transport, HttpRequest(method="GET", url=f"{API}/3"))
    assert [received.target for received in server.requests] == ["/v1/videos/2", "/v1/videos/3"]
    assert server.connections == 1


async def test_dropped_connections_are_not_used_again_and_those_in_use_stay(tmp_path: Path) -> None:
    """
    The next call opens a new connection; an answer that is being read is read to its end.
    """
    async with http_server(reply(b"x" * 1000)) as server, transport_to(server, tmp_path) as transport:
        await call(transport, create(server))
        async with transport.send(poll(server), timeout=5) as answer:
            await transport.drop_idle()
            assert await answer.read() == b"x" * 1000
        assert server.connections == 2
        await call(transport, create(server))
        await call(transport, poll(server))
    assert (len(server.requests), server.connections) == (4, 3)


async def test_a_dropped_http2_connection_is_opened_anew(authority: Authority) -> None:
    """
    Polls after the drop go over a second connection, which they share.
    """
    async with h2_server(authority.server("api.example.com")) as server:
        async with tls_transport(server.port, authority) as transport:
            await call(transport, HttpRequest(method="GET", url=API))
            await transport.drop_idle()
            for _ in range(2):
                await call(transport, HttpRequest(method="GET", url=API))
    assert (len(server.requests), server.connections) == (3, 2)


async def test_a_form_streams_its_files_with_a_length_told_before(tmp_path: Path) -> None:
    """
    A form arrives as valid multipart, its names escaped, its file intact and its length told.
    """
    picture = bytes(range(256)) * 4000
    (tmp_path / "aa").write_bytes(picture)
    form = Form(
        fields=(("prompt", 'ein "Löwe"\r\n--x'), ("seconds", "4")),
        files=(FormFile(name="input_reference", asset="sha256:aa", filename='a"b.png', media_type="image/png"),),
    )
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        await call(transport, HttpRequest(method="POST", url=f"{server.url}/v1/videos", body=form, creates=True))
    received = server.requests[0]
    assert int(received.headers["content-length"]) == len(received.body)
    head = f"Content-Type: {received.headers['content-type']}\r\n\r\n".encode()
    parts = list(email.message_from_bytes(head + received.body, policy=email.policy.HTTP).iter_parts())
    assert [part.get_param("name", header="content-disposition") for part in parts] == [
        "prompt",
        "seconds",
        "input_reference",
    ]
    assert parts[0].get_payload(decode=True).decode() == 'ein "Löwe"\r\n--x'
    assert parts[2].get_payload(decode=True) == picture
    assert parts[2].get_content_type() == "image/png"


async def test_the_same_form_is_the_same_bytes(tmp_path: Path) -> None:
    """
    Two sendings of a form have equal bodies, its boundary included.
    """
    request = {"method": "POST", "body": Form(fields=(("prompt", "x"),)), "creates": True}
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        for _ in range(2):
            await call(transport, HttpRequest(url=f"{server.url}/v1/videos", **request))
    assert server.requests[0].body == server.requests[1].body


async def test_a_missing_picture_was_surely_not_sent(tmp_path: Path) -> None:
    """
    A form whose file is not there fails before anything is dialled, and says that nothing was sent.
    """
    form = Form(files=(FormFile(name="i", asset="sha256:bb", filename="b", media_type="image/png"),))
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, HttpRequest(method="POST", url=f"{server.url}/", body=form, creates=True))
    assert failed.value.maybe_sent is False
    assert server.connections == 0


async def test_a_picture_behind_a_link_is_not_sent(tmp_path: Path) -> None:
    """
    A symbolic link in the place of a picture is not followed, and nothing is sent.
    """
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "cc").symlink_to(tmp_path / "secret")
    form = Form(files=(FormFile(name="i", asset="sha256:cc", filename="b", media_type="image/png"),))
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, HttpRequest(method="POST", url=f"{server.url}/", body=form, creates=True))
    assert (failed.value.maybe_sent, server.connections) == (False, 0)


@pytest.mark.parametrize("value", ["kk\nb", "kk\r\nX: y", "kk\0", "kküssel", "kk\u200bb", " kk", "kk\n"])
async def test_a_header_that_cannot_be_sent_is_refused_before_any_byte_leaves(tmp_path: Path, value: str) -> None:
    """
    A key with a line break or odd character is refused unsent, and not told.
    """
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, create(server, headers={"Authorization": value}))
    assert failed.value.maybe_sent is False
    assert "kk" not in failed.value.message
    assert server.connections == 0


# What comes back


async def test_a_redirect_is_given_back_and_not_followed(tmp_path: Path) -> None:
    """
    A redirect is the answer: the address that it names is never dialled.
    """
    async with http_server(reply()) as recorder:
        redirect = reply(status="307 Temporary Redirect", headers=f"Location: {recorder.url}/x\r\n")
        async with http_server(redirect) as server, transport_to(server, tmp_path) as transport:
            answer = await call(transport, create(server))
        assert (answer.status, len(server.requests), recorder.connections) == (307, 1, 0)


async def test_a_cookie_is_not_kept(tmp_path: Path) -> None:
    """
    A cookie that a server sets is not sent back to it.
    """
    async with http_server(reply(headers="Set-Cookie: a=b\r\n")) as server:
        async with transport_to(server, tmp_path) as transport:
            await call(transport, poll(server))
            await call(transport, poll(server))
    assert all("cookie" not in received.headers for received in server.requests)


@pytest.mark.parametrize("scheme", ['Basic realm="x"', 'Digest realm="x", nonce="y", qop="auth"', "Negotiate", "NTLM"])
async def test_a_challenge_is_given_back_and_not_answered(tmp_path: Path, scheme: str) -> None:
    """
    Nobody is asked for a name and a password, and no file is looked into for them.
    """
    challenge = reply(status="401 Unauthorized", headers=f"WWW-Authenticate: {scheme}\r\n")
    async with http_server(challenge) as server, transport_to(server, tmp_path) as transport:
        answer = await call(transport, poll(server))
    assert answer.status == 401
    assert [received.headers.get("authorization") for received in server.requests] == [None]


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "GZIP", "identity, gzip", "x-gzip", "\x01"])
async def test_an_encoded_answer_is_refused(tmp_path: Path, encoding: str) -> None:
    """
    An answer in an encoding that was not asked for is refused, though the call has arrived.
    """
    async with http_server(reply(headers=f"Content-Encoding: {encoding}\r\n")) as server:
        async with transport_to(server, tmp_path) as transport:
            with pytest.raises(TransportError) as failed:
                await call(transport, create(server))
    assert failed.value.maybe_sent is True


@pytest.mark.parametrize("told", [True, False])
async def test_an_answer_over_its_limit_is_not_taken_in(tmp_path: Path, told: bool) -> None:
    """
    A body over the request's limit is broken off, whether its length was told or not.
    """

    async def endless(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 99999999999\r\n" if told else b"") + b"\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    async with http_server(endless) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(ReplyTooLarge):
            await call(transport, HttpRequest(method="GET", url=server.url, max_reply_bytes=100_000))


async def test_repeated_headers_are_joined_and_lowered(tmp_path: Path) -> None:
    """
    A header that comes twice is one, under its lower-case name, with both values.
    """
    async with http_server(reply(headers="X-A: 1\r\nx-a: 2\r\n")) as server:
        async with transport_to(server, tmp_path) as transport:
            answer = await call(transport, poll(server))
    assert answer.headers["x-a"] == "1, 2"


# What fails: (what the server does, whether the call may have arrived)


async def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await reader.read(1)


async def read_then_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await read_request(reader, server)


async def half_a_header(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await read_request(reader, server)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await writer.drain()


async def half_a_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await read_request(reader, server)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def half_a_chunk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await read_request(reader, server)
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal")
    await writer.drain()


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await read_request(reader, server)
    writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
    await writer.drain()


async def huge_header(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    await read_request(reader, server)
    writer.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000)
    await writer.drain()


FAULTS = [close_at_once, read_then_close, half_a_header, half_a_body, half_a_chunk, nonsense, huge_header]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_create_that_breaks_after_its_first_byte_may_have_arrived_and_is_sent_once(
    tmp_path: Path, fault: Callable[..., Awaitable[None]]
) -> None:
    """
    Whatever breaks once bytes have left, a create may have been sent and is not repeated.
    """
    async with raw_server(fault) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, create(server))
    assert failed.value.maybe_sent is True
    assert server.connections == 1


async def test_a_silent_server_ends_at_the_total_time_and_may_have_got_it(tmp_path: Path) -> None:
    """
    A server that never answers is given up at the timeout, and may have the call.
    """

    async def silent(received: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async with http_server(silent) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, create(server), timeout=0.5)
    assert (failed.value.maybe_sent, len(server.requests)) == (True, 1)


async def test_a_body_that_drips_ends_at_the_total_time(tmp_path: Path) -> None:
    """
    A body that comes byte by byte does not prolong the call beyond its timeout.
    """

    async def drip(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with http_server(drip) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError):
            await call(transport, create(server), timeout=0.2)


async def test_the_callers_own_timeout_error_is_not_taken_for_ours(tmp_path: Path) -> None:
    """
    A TimeoutError raised by the caller inside the call comes out as it is.
    """
    async with http_server(reply()) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TimeoutError):
            async with transport.send(poll(server), timeout=5):
                raise TimeoutError


async def test_nobody_listening_means_surely_not_sent(tmp_path: Path) -> None:
    """
    A refused connection is an error that says that nothing was sent.
    """
    async with http_server(reply()) as server:
        pass
    async with transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, create(server))
    assert failed.value.maybe_sent is False


async def test_a_name_that_is_not_found_means_surely_not_sent(authority: Authority) -> None:
    """
    A host without an address is an error that says that nothing was sent.
    """
    async with tls_transport(0, authority, names=Names()) as transport:
        with pytest.raises(TransportError) as failed:
            await call(transport, HttpRequest(method="POST", url=API, creates=True))
    assert failed.value.maybe_sent is False


async def test_a_kept_connection_that_died_is_found_dead_before_the_create_is_written(tmp_path: Path) -> None:
    """
    A create after the server closed goes over a new connection, once.
    """
    closing = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
        received = await read_request(reader, server)
        await reply()(received, writer)
        await writer.drain()
        writer.close()
        closing.set()

    async with raw_server(once) as server, transport_to(server, tmp_path) as transport:
        for _ in range(2):
            closing.clear()
            assert (await call(transport, create(server))).status == 200
            await closing.wait()
    assert (server.connections, len(server.requests)) == (2, 2)


async def test_a_poll_whose_connection_breaks_is_asked_once_more(tmp_path: Path) -> None:
    """
    A GET whose connection breaks is repeated once, and that answer counts.
    """

    async def second_time(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
        received = await read_request(reader, server)
        if server.connections > 1:
            await reply(b"ok")(received, writer)
            await writer.drain()

    async with raw_server(second_time) as server, transport_to(server, tmp_path) as transport:
        assert (await call(transport, poll(server))).body == b"ok"
    assert len(server.requests) == 2


async def test_a_poll_is_not_asked_a_third_time(tmp_path: Path) -> None:
    """
    A GET that breaks twice fails after its second try.
    """
    async with raw_server(read_then_close) as server, transport_to(server, tmp_path) as transport:
        with pytest.raises(TransportError):
            await call(transport, poll(server))
    assert len(server.requests) == 2


# Connections


async def test_polls_share_a_kept_connection_and_it_is_counted_once(tmp_path: Path) -> None:
    """
    Polls one after another use one connection, and the counter tells one opened.
    """
    opened: list[dict[str, int]] = []
    async with http_server(reply()) as server:
        async with transport_to(server, tmp_path, count=lambda **counters: opened.append(counters)) as transport:
            for _ in range(5):
                await call(transport, poll(server))
    assert (server.connections, opened) == (1, [{"connectionsOpened": 1}])


@pytest.mark.parametrize("after", range(1, 60, 2))
async def test_a_cancelled_call_leaves_nothing_open_wherever_it_was(tmp_path: Path, after: int) -> None:
    """
    Cancelled after so many turns of the loop; the next call must work, and no socket may be left to warn of.
    """
    async with http_server(reply(b"x" * 200_000)) as server, transport_to(server, tmp_path) as transport:
        running = asyncio.create_task(call(transport, create(server)))
        for _ in range(after):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (await call(transport, create(server))).status == 200


async def test_an_answer_left_unread_does_not_spoil_the_next_call(tmp_path: Path) -> None:
    """
    Leaving an answer half read lets the next call get its own answer whole.
    """
    async with http_server(reply(b"x" * 500_000)) as server, transport_to(server, tmp_path) as transport:
        async with transport.send(poll(server), timeout=5) as answer:
            async for _ in answer.chunks():
                break
        assert len((await call(transport, poll(server))).body) == 500_000


# TLS, HTTP/2 and the address that is dialled


async def test_a_create_never_goes_over_http2(authority: Authority) -> None:
    """
    Creates, deletes and calls with large answers use HTTP/1.1 though the server speaks HTTP/2.
    """
    async with http_server(reply(), authority.server("api.example.com")) as server:
        async with tls_transport(server.port, authority) as transport:
            await call(transport, HttpRequest(method="POST", url=API, body=b"{}", creates=True))
            await call(transport, HttpRequest(method="DELETE", url=API))
            await call(transport, HttpRequest(method="GET", url=API, max_reply_bytes=2**31))
    assert [received.protocol for received in server.requests] == ["http/1.1"] * 3


async def test_polls_share_one_http2_connection(authority: Authority) -> None:
    """
    Twenty polls at once all go over one HTTP/2 connection.
    """
    async with h2_server(authority.server("api.example.com")) as server:
        async with tls_transport(server.port, authority) as transport:
            answers = await asyncio.gather(*(call(transport, HttpRequest(method="GET", url=API)) for _ in range(20)))
    assert {answer.body for answer in answers} == {b"ok"}
    assert {received.protocol for received in server.requests} == {"h2"}
    assert server.connections == 1


async def test_a_poll_met_by_an_http2_goodbye_is_asked_once_more(authority: Authority) -> None:
    """
    A GET that meets a GOAWAY is repeated over a new connection and answered.
    """
    async with h2_server(authority.server("api.example.com"), goodbye_on=[2]) as server:
        async with tls_transport(server.port, authority) as transport:
            for _ in range(3):
                assert (await call(transport, HttpRequest(method="GET", url=API))).body == b"ok"
    assert (len(server.requests), server.connections) == (4, 2)


async def test_a_poll_falls_back_to_http1_where_the_server_speaks_only_that(authority: Authority) -> None:
    """
    Polls at once are answered by a server that offers no HTTP/2.
    """
    async with http_server(reply(b"ok"), authority.server("api.example.com", protocols=("http/1.1",))) as server:
        async with tls_transport(server.port, authority) as transport:
            answers = await asyncio.gather(*(call(transport, HttpRequest(method="GET", url=API)) for _ in range(3)))
    assert [answer.body for answer in answers] == [b"ok"] * 3


async def test_the_checked_address_is_dialled_and_the_name_is_what_tls_and_host_say(authority: Authority) -> None:
    """
    The addresses that one look-up gave are dialled in turn; TLS and Host use the name.
    """
    names = Names(api_example_com=["203.0.114.9", PUBLIC])
    async with http_server(reply(), authority.server("api.example.com")) as server:
        network = Network(server.port, dead=frozenset({"203.0.114.9"}))
        async with tls_transport(server.port, authority, names=names, network=network) as transport:
            await call(transport, HttpRequest(method="POST", url=API, creates=True))
    assert names.asked == ["api.example.com"]
    assert network.dialled == [("203.0.114.9", 443), (PUBLIC, 443)]
    assert server.requests[0].headers["host"] == "api.example.com"


async def test_a_name_that_turns_bad_later_is_not_dialled_again(authority: Authority) -> None:
    """
    A name is checked at each connection: one that leads to loopback by then is refused.
    """
    names = Names(api_example_com=[PUBLIC])
    async with http_server(reply(headers="Connection: close\r\n"), authority.server("api.example.com")) as server:
        network = Network(server.port)
        async with tls_transport(server.port, authority, names=names, network=network) as transport:
            await call(transport, HttpRequest(method="POST", url=API, creates=True))
            names.answers["api.example.com"] = ["127.0.0.1"]
            with pytest.raises(OutboundRefused):
                await call(transport, HttpRequest(method="POST", url=API, creates=True))
    assert network.dialled == [(PUBLIC, 443)]


async def test_a_certificate_of_another_name_ends_it_before_anything_is_sent(authority: Authority) -> None:
    """
    A certificate for another host ends the call unsent.
    """
    async with http_server(reply(), authority.server("other.example.com")) as server:
        async with tls_transport(server.port, authority) as transport:
            with pytest.raises(TransportError) as failed:
                await call(transport, HttpRequest(method="POST", url=API, creates=True))
    assert (failed.value.maybe_sent, server.requests) == (False, [])


async def test_a_certificate_of_an_unknown_authority_ends_it_before_anything_is_sent(authority: Authority) -> None:
    """
    A certificate of an authority that is not trusted ends the call unsent.
    """
    stranger = Authority(ca=trustme.CA(), ca_file=authority.ca_file)
    async with http_server(reply(), stranger.server("api.example.com")) as server:
        async with tls_transport(server.port, authority) as transport:
            with pytest.raises(TransportError) as failed:
                await call(transport, HttpRequest(method="POST", url=API, creates=True))
    assert (failed.value.maybe_sent, server.requests) == (False, [])


# The user's proxy


async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server, *, to: int) -> None:
    await read_request(reader, server)
    upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", to)
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
        sink.close()

    try:
        await asyncio.gather(pump(reader, upstream_writer), pump(upstream_reader, writer))
    finally:
        upstream_writer.transport.abort()


async def test_a_proxy_is_asked_for_the_name_and_sees_no_key(authority: Authority) -> None:
    """
    Through a proxy the name is tunnelled unresolved, and the key goes inside TLS only.
    """
    async with http_server(reply(b"ok"), authority.server("api.example.com")) as server:
        async with raw_server(lambda r, w, s: proxy(r, w, s, to=server.port)) as middle:
            names, network = Names(), Network(middle.port)
            settings = {"names": names, "network": network, "proxy": f"http://me:pw@localhost:{middle.port}"}
            async with tls_transport(0, authority, **settings) as transport:
                headers = {"Authorization": "Bearer canary"}
                answer = await call(transport, HttpRequest(method="POST", url=API, headers=headers, creates=True))
    assert answer.body == b"ok"
    asked = middle.requests[0]
    assert (asked.method, asked.target) == ("CONNECT", "api.example.com:443")
    assert "canary" not in str(asked)
    assert asked.headers["proxy-authorization"].startswith("Basic ")
    assert (names.asked, network.dialled) == ([], [("localhost", middle.port)])


async def test_a_proxy_that_refuses_means_surely_not_sent(authority: Authority) -> None:
    """
    A proxy that refuses the tunnel is an error that says that nothing was sent.
    """
    async with http_server(reply(status="403 Forbidden")) as middle:
        async with tls_transport(middle.port, authority, proxy="http://localhost:1") as transport:
            with pytest.raises(TransportError) as failed:
                await call(transport, HttpRequest(method="POST", url=API, creates=True))
    assert failed.value.maybe_sent is False


async def test_a_server_on_this_machine_is_reached_past_the_proxy(tmp_path: Path) -> None:
    """
    A loopback base URL is dialled directly though a proxy is set.
    """
    async with http_server(reply(b"ok")) as server:
        async with transport_to(server, tmp_path, proxy="http://localhost:1") as transport:
            assert (await call(transport, poll(server))).body == b"ok"


@pytest.mark.parametrize("proxy_url", ["socks5://localhost:1", "localhost:1", "ftp://x", "http://"])
def test_a_proxy_of_another_kind_is_a_configuration_error(proxy_url: str) -> None:
    """
    A proxy address that is no whole HTTP one is refused at the start.
    """
    with pytest.raises(ConfigError):
        HttpTransport(Gate(), asset_path=Path, user_agent="x", proxy=proxy_url)


def test_no_part_of_a_call_waits_longer_than_the_reference_tells() -> None:
    """
    10 s to connect, 30 s to write, 180 s for the first byte; a connection kept for a create is at most 5 s old.
    """
    assert (http.CONNECT_SECONDS, http.WRITE_SECONDS, http.FIRST_BYTE_SECONDS) == (10, 30, 180)
    assert http.KEEP_FOR_CREATES_SECONDS == 5
    assert (API_REPLY_BYTES, LIST_REPLY_BYTES) == (4 * 1024**2, 32 * 1024**2)
    assert (download.TOTAL_SECONDS, download.IDLE_SECONDS, download.MAX_BYTES) == (30 * 60, 30, 2 * 1024**3)


def test_the_engine_still_tells_when_it_begins_to_send() -> None:
    """
    `maybe_sent` rests on the names of the engine's trace events, so a rename must be noticed.
    """
    engine = Path(__import__("httpcore2").__file__).parent / "_async"
    for module in ("http11.py", "http2.py"):
        assert re.search(r'Trace\("send_request_headers", logger, request, kwargs\)', (engine / module).read_text())
