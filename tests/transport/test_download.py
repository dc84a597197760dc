"""
From an address to a whole file, whatever the server does.
"""
# ruff: noqa: SIM117 the server first, then what is done with it

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from vidrelay.core.disk import ResultName
from vidrelay.core.errors import BadMedia, DeadAddress, DiskFull, OutboundRefused, TransportError
from vidrelay.core.messages import CLIP_REPLY_BYTES, HttpRequest
from vidrelay.core.network import Reply
from vidrelay.core.task import FileRef
from vidrelay.files.local import LocalFiles
from vidrelay.testing.clock import FakeClock, settle
from vidrelay.testing.samples import movie
from vidrelay.transport.download import HttpDownloader

from .servers import (
    Answer,
    Authority,
    Names,
    Network,
    Received,
    Server,
    http_server,
    reply,
    tls_transport,
    transport_to,
)

FINGERPRINT = "ab12" * 16
NAME = ResultName(fingerprint=FINGERPRINT, task_id="tsk_1", index=0)
FILE = movie(3_000_000)


class Counted:
    """
    An answer that tells the bench how much of it was taken in.
    """

    def __init__(self, reply: Reply, bench: "Bench") -> None:
        self._reply = reply
        self._bench = bench
        self.status = reply.status
        self.headers = reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._reply.chunks():
            yield chunk
            self._bench.counted += len(chunk)

    async def read(self) -> bytes:
        return await self._reply.read()


def files_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


class Bench:
    """
    A downloader over a real transport, with a cache of its own.
    """

    def __init__(self, transport: object, root: Path, **settings: object) -> None:
        self.root = root / "cache"
        self.files = LocalFiles(self.root)
        self.clock = FakeClock()
        self.counted = 0
        self._transport = transport
        self.downloader = HttpDownloader(
            self,
            self.files,
            self.clock,
            **({"slots": asyncio.Semaphore(2), "has_room": lambda _size: True} | settings),
        )

    @asynccontextmanager
    async def send(self, request: HttpRequest, *, timeout: float) -> AsyncIterator[Reply]:
        """
        The transport's answer, with the bytes counted that are taken from it.
        """
        async with self._transport.send(request, timeout=timeout) as reply:
            yield Counted(reply, self)

    async def fetch(self, url: str, *, name: ResultName = NAME, **headers: str) -> FileRef:
        request = HttpRequest(method="GET", url=url, headers=headers)
        return await self.downloader.fetch(request, name)

    def names(self) -> list[str]:
        return files_below(self.root)


@asynccontextmanager
async def bench(server: Server, tmp_path: Path, **settings: object) -> AsyncIterator[Bench]:
    async with transport_to(server, tmp_path) as transport:
        yield Bench(transport, tmp_path, **settings)


def scripted(*answers: Answer) -> Answer:
    """
    One answer for each request in turn; the last again and again.
    """
    left = list(answers)

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(received, writer)

    return answer


def cut(length: int, *, headers: str = "", told: int | None = len(FILE)) -> Answer:
    """
    So many bytes of the file, then the end of the connection; `told` is the Content-Length, None for none.
    """

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        line = f"Content-Length: {told}\r\n" if told is not None else ""
        writer.write(f"HTTP/1.1 200 OK\r\n{line}{headers}\r\n".encode() + FILE[:length])
        await writer.drain()
        writer.close()

    return answer


def rest(start: int, *, headers: str = "", content_range: str | None = None) -> Answer:
    """
    The file from there on, as a 206.
    """
    told = content_range or f"bytes {start}-{len(FILE) - 1}/{len(FILE)}"
    return reply(FILE[start:], status="206 Partial Content", headers=f"Content-Range: {told}\r\n{headers}")


async def redirect_to(url: str) -> Answer:
    return reply(b"<html>unread</html>", status="302 Found", headers=f"Location: {url}\r\n")


async def test_a_file_arrives_whole_named_and_counted(tmp_path: Path) -> None:
    """
    The file gets its name, length, hash and real kind; its bytes are counted and credentials sent.
    """
    async with http_server(reply(FILE, headers="Content-Type: text/plain\r\n")) as server:
        async with bench(server, tmp_path) as at:
            file = await at.fetch(f"{server.url}/v?sig=1", Authorization="Bearer k")
    assert file == FileRef(
        index=0,
        path=f"{FINGERPRINT}/tsk_1-0.mp4",
        size_bytes=len(FILE),
        sha256=hashlib.sha256(FILE).hexdigest(),
        media_type="video/mp4",
    )
    assert at.files.location(file).read_bytes() == FILE
    assert at.counted == len(FILE)
    assert server.requests[0].headers["authorization"] == "Bearer k"


async def test_a_file_that_is_there_is_not_fetched_again_in_this_process(tmp_path: Path) -> None:
    """
    A second fetch of a name is answered from the disk until the file is deleted.
    """
    async with http_server(reply(FILE)) as server, bench(server, tmp_path) as at:
        assert await at.fetch(server.url) == await at.fetch(server.url)
        assert len(server.requests) == 1
        await at.files.delete([await at.fetch(server.url)])
        await at.fetch(server.url)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "told",
    [
        *(
            'filename="../../x.mp4"',
            r'filename="..\..\x.mp4"',
            'filename="C:x.mp4"',
            "filename=NUL.mp4",
            'filename="a."',
        ),
        *('filename="/etc/passwd"', 'filename=".bashrc"', f'filename="{"x" * 5000}.mp4"', 'filename="x.html"'),
        *("filename*=UTF-8''..%2f..%2fx.mp4", "filename*=UTF-8''%00x", 'filename="\x80\xff"'),
    ],
)
async def test_a_name_that_the_server_gives_names_no_file(tmp_path: Path, told: str) -> None:
    """
    Whatever the header and the address say, the file's name is made here, and its ending of its content.
    """
    async with http_server(reply(FILE, headers=f"Content-Disposition: attachment; {told}\r\n")) as server:
        async with bench(server, tmp_path) as at:
            await at.fetch(f"{server.url}/..%2f..%2fx.exe?filename=../x")
    assert files_below(tmp_path) == ["tsk_1-0.mp4"]


def wrapped(film: bytes) -> bytes:
    """
    An answer that holds the film.
    """
    return json.dumps({"film": base64.b64encode(film).decode()}).encode()


def unwrapped(body: bytes) -> bytes | None:
    """
    The film in such an answer.
    """
    film = json.loads(body).get("film")
    return None if film is None else base64.b64decode(film)


async def test_a_file_inside_an_answer_is_taken_out(tmp_path: Path) -> None:
    """
    It is named, checked and hashed as any other; an answer that holds none any more is a dead address.
    """
    answers = [reply(b"{}", headers='ETag: "e"\r\n'), reply(wrapped(b"no film at all")), reply(wrapped(FILE))]
    async with http_server(scripted(*answers)) as server, bench(server, tmp_path) as at:
        request = HttpRequest(method="GET", url=server.url, headers={"Authorization": "Bearer k"}, unwrap=unwrapped)
        for trouble in (DeadAddress, BadMedia):
            with pytest.raises(trouble):
                await at.downloader.fetch(request, NAME)
            assert at.names() == []
        file = await at.downloader.fetch(request, NAME)
    assert at.files.location(file).read_bytes() == FILE
    assert (file.sha256, file.media_type) == (hashlib.sha256(FILE).hexdigest(), "video/mp4")
    assert server.requests[-1].headers["authorization"] == "Bearer k"


async def test_an_answer_that_holds_a_file_has_a_bound_and_must_fit_the_disk(tmp_path: Path) -> None:
    """
    Of a longer one nothing is kept in memory beyond it; a dead one is told as ever.
    """
    long = b"x" * (CLIP_REPLY_BYTES + 1)
    for answer, trouble in ((reply(long), BadMedia), (reply(b"{}", status="410 X"), DeadAddress)):
        async with http_server(answer) as server, bench(server, tmp_path) as at:
            with pytest.raises(trouble):
                await at.downloader.fetch(HttpRequest(method="GET", url=server.url, unwrap=unwrapped), NAME)
    async with http_server(reply(wrapped(FILE))) as server, bench(server, tmp_path, has_room=lambda _size: False) as at:
        with pytest.raises(DiskFull):
            await at.downloader.fetch(HttpRequest(method="GET", url=server.url, unwrap=unwrapped), NAME)
    assert at.names() == []


@pytest.mark.parametrize("status", ["401 X", "403 X", "404 X", "410 X"])
async def test_a_dead_address_is_told(tmp_path: Path, status: str) -> None:
    """
    A 401, 403, 404 or 410 is a dead address, and nothing is kept.
    """
    async with http_server(reply(b"{}", status=status)) as server, bench(server, tmp_path) as at:
        with pytest.raises(DeadAddress):
            await at.fetch(server.url)
    assert at.names() == []


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [("429 X", "7", 7), ("503 X", "Mon, 30 Nov 2026 12:00:30 GMT", 30), ("500 X", "soon", None), ("202 X", "1", 1)],
)
async def test_a_server_that_asks_for_patience_gets_it(
    tmp_path: Path, status: str, header: str, seconds: float | None
) -> None:
    """
    An answer of later or trouble is a transport error with the time to retry, where it can be read.
    """
    async with http_server(reply(status=status, headers=f"Retry-After: {header}\r\n")) as server:
        async with bench(server, tmp_path) as at:
            with pytest.raises(TransportError) as failed:
                await at.fetch(server.url)
    assert not isinstance(failed.value, DeadAddress | BadMedia)
    assert failed.value.retry_after == seconds


# What is no whole file


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"error": "gone"}', b"<html>sign in</html>", b"<svg onload=1>", b"MZ" + b"x" * 9000]
)
async def test_what_is_no_media_file_is_never_kept(tmp_path: Path, body: bytes) -> None:
    """
    A body that is no media is refused whatever its Content-Type says, and leaves no file.
    """
    async with http_server(reply(body, headers="Content-Type: video/mp4\r\n")) as server:
        async with bench(server, tmp_path) as at:
            with pytest.raises(BadMedia):
                await at.fetch(server.url)
    assert at.names() == []


async def test_a_page_is_refused_before_the_rest_of_it_comes(tmp_path: Path) -> None:
    """
    A page is refused at its first bytes, without waiting for the end.
    """

    async def long_page(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n<html>" + b" " * 1000)
        await writer.drain()
        await asyncio.sleep(30)

    async with http_server(long_page) as server, bench(server, tmp_path) as at:
        with pytest.raises(BadMedia):
            await asyncio.wait_for(at.fetch(server.url), 5)


@pytest.mark.parametrize("length", [100, 600, 1_500_000, len(FILE) - 1])
async def test_a_file_cut_short_of_its_told_length_is_not_kept(tmp_path: Path, length: int) -> None:
    """
    A body that ends before its Content-Length is a transport error and leaves no file.
    """
    async with http_server(cut(length)) as server, bench(server, tmp_path) as at:
        with pytest.raises(TransportError):
            await at.fetch(server.url)
    assert at.names() == []


@pytest.mark.parametrize("length", [1, 600, 1_500_000, len(FILE) - 1])
async def test_a_file_cut_short_without_a_told_length_is_noticed_by_its_structure(tmp_path: Path, length: int) -> None:
    """
    Without a length, a movie that breaks off is bad media and leaves no file.
    """
    async with http_server(cut(length, told=None)) as server, bench(server, tmp_path) as at:
        with pytest.raises(BadMedia):
            await at.fetch(server.url)
    assert at.names() == []


async def test_a_whole_file_without_a_told_length_is_taken(tmp_path: Path) -> None:
    """
    A whole movie whose length was never told is saved.
    """
    async with http_server(cut(len(FILE), told=None)) as server, bench(server, tmp_path) as at:
        assert (await at.fetch(server.url)).size_bytes == len(FILE)


async def test_an_endless_body_is_stopped_at_the_cap_and_nothing_is_kept(tmp_path: Path) -> None:
    """
    A body that does not end is broken off at the cap and leaves no file.
    """

    async def endless(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + FILE)
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    async with http_server(endless) as server, bench(server, tmp_path, max_bytes=5_000_000) as at:
        with pytest.raises(BadMedia):
            await at.fetch(server.url)
    assert at.names() == []
    assert at.counted < 5_200_000


async def test_a_told_length_over_the_cap_is_refused_unread(tmp_path: Path) -> None:
    """
    A Content-Length over the cap is refused before a byte of the body is read.
    """
    async with http_server(reply(FILE)) as server, bench(server, tmp_path, max_bytes=1_000_000) as at:
        with pytest.raises(BadMedia):
            await at.fetch(server.url)
    assert at.counted == 0


async def test_too_little_room_is_told_before_anything_is_taken_in(tmp_path: Path) -> None:
    """
    Without room for the told length the fetch fails as a full disk, with nothing read.
    """
    async with http_server(reply(FILE)) as server:
        async with bench(server, tmp_path, has_room=lambda size: size < 1_000_000) as at:
            with pytest.raises(DiskFull):
                await at.fetch(server.url)
    assert (at.counted, at.names()) == (0, [])


# Going on after a break

STRONG = 'ETag: "v1"\r\n'


async def test_a_broken_fetch_goes_on_where_it_was(tmp_path: Path) -> None:
    """
    After a break the rest is asked for under the strong ETag, also at a fresh address, and joined.
    """
    async with http_server(scripted(cut(1_200_000, headers=STRONG), rest(1_200_000, headers=STRONG))) as server:
        async with bench(server, tmp_path) as at:
            with pytest.raises(TransportError):
                await at.fetch(f"{server.url}/old")
            file = await at.fetch(f"{server.url}/fresh", Authorization="Bearer k")
    assert server.requests[1].headers["range"] == "bytes=1200000-"
    assert server.requests[1].headers["if-range"] == '"v1"'
    assert file.sha256 == hashlib.sha256(FILE).hexdigest()
    assert at.files.location(file).read_bytes() == FILE
    assert at.counted == len(FILE)


@pytest.mark.parametrize("headers", ["", 'ETag: W/"v1"\r\n', "Last-Modified: Mon, 30 Nov 2026 12:00:00 GMT\r\n"])
async def test_without_a_strong_etag_it_begins_anew(tmp_path: Path, headers: str) -> None:
    """
    A weak ETag or a date is not enough to go on: the part is dropped and all is fetched again.
    """
    async with http_server(scripted(cut(1_200_000, headers=headers), reply(FILE))) as server:
        async with bench(server, tmp_path) as at:
            with pytest.raises(TransportError):
                await at.fetch(server.url)
            assert at.names() == []
            file = await at.fetch(server.url)
    assert "range" not in server.requests[1].headers
    assert at.files.location(file).read_bytes() == FILE


async def test_a_file_that_has_changed_begins_anew(tmp_path: Path) -> None:
    """
    A whole answer to a range request replaces the part that had come.
    """
    changed = movie(2_000_000)
    answers = scripted(cut(1_200_000, headers=STRONG), reply(changed, headers='ETag: "v2"\r\n'))
    async with http_server(answers) as server, bench(server, tmp_path) as at:
        with pytest.raises(TransportError):
            await at.fetch(server.url)
        assert at.files.location(await at.fetch(server.url)).read_bytes() == changed


async def test_a_range_that_cannot_be_had_begins_anew_at_once(tmp_path: Path) -> None:
    """
    A 416 leads to a fetch of the whole within the same call.
    """
    answers = scripted(cut(1_200_000, headers=STRONG), reply(status="416 X"), reply(FILE))
    async with http_server(answers) as server, bench(server, tmp_path) as at:
        with pytest.raises(TransportError):
            await at.fetch(server.url)
        assert (await at.fetch(server.url)).size_bytes == len(FILE)
    assert "range" not in server.requests[2].headers


@pytest.mark.parametrize(
    ("content_range", "headers"),
    [
        (f"bytes 0-{len(FILE) - 1}/{len(FILE)}", STRONG),
        (f"bytes 1200001-{len(FILE) - 1}/{len(FILE)}", STRONG),
        (f"bytes 1200000-{len(FILE) - 2}/{len(FILE)}", STRONG),
        (f"bytes 1200000-{len(FILE) - 1}/*", STRONG),
        (f"bytes 1200000-{len(FILE)}/{len(FILE) + 1}", STRONG),
        ("nonsense", STRONG),
        (f"bytes 1200000-{len(FILE) - 1}/{len(FILE)}", 'ETag: "v2"\r\n'),
    ],
)
async def test_another_part_than_asked_is_not_put_together(tmp_path: Path, content_range: str, headers: str) -> None:
    """
    A 206 with another range, total or ETag is an error that drops the part.
    """
    answers = scripted(
        cut(1_200_000, headers=STRONG), rest(1_200_000, headers=headers, content_range=content_range), reply(FILE)
    )
    async with http_server(answers) as server, bench(server, tmp_path) as at:
        for _ in range(2):
            with pytest.raises(TransportError):
                await at.fetch(server.url)
        assert at.names() == []
        assert at.files.location(await at.fetch(server.url)).read_bytes() == FILE


async def test_a_part_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    """
    A 206 to a request without a range is an error and leaves no file.
    """
    async with http_server(rest(0)) as server, bench(server, tmp_path) as at:
        with pytest.raises(TransportError):
            await at.fetch(server.url)
    assert at.names() == []


async def test_a_dead_address_keeps_what_came_for_the_fresh_one(tmp_path: Path) -> None:
    """
    A dead address in between does not lose the part, which the next one completes.
    """
    answers = scripted(cut(1_200_000, headers=STRONG), reply(status="403 X"), rest(1_200_000, headers=STRONG))
    async with http_server(answers) as server, bench(server, tmp_path) as at:
        for expected in (TransportError, DeadAddress):
            with pytest.raises(expected):
                await at.fetch(server.url)
        assert at.files.location(await at.fetch(server.url)).read_bytes() == FILE


async def test_only_so_many_broken_fetches_are_kept(tmp_path: Path) -> None:
    """
    Of twenty broken fetches the parts of sixteen are kept.
    """
    async with http_server(cut(1_200_000, headers=STRONG)) as server, bench(server, tmp_path) as at:
        for index in range(20):
            with pytest.raises(TransportError):
                await at.fetch(server.url, name=ResultName(fingerprint=FINGERPRINT, task_id="tsk_1", index=index))
    assert len(at.names()) == 16


# Other addresses


async def test_a_redirect_to_another_host_carries_no_credentials(authority: Authority, tmp_path: Path) -> None:
    """
    No header of the first request reaches the other host, which is dialled over TLS.
    """

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.headers["host"] == "api.example.com":
            await (await redirect_to("http://x.cdn.example.com/v.mp4?sig=1"))(received, writer)
        else:
            await reply(FILE)(received, writer)

    names = Names(api_example_com=["93.184.215.14"], x_cdn_example_com=["93.184.215.15"])
    async with http_server(answer, authority.server("api.example.com", "x.cdn.example.com")) as server:
        network = Network(server.port)
        async with tls_transport(server.port, authority, names=names, network=network) as transport:
            at = Bench(transport, tmp_path)
            await at.fetch("https://api.example.com/v1/videos/1/content", Authorization="Bearer canary", X="canary")
    assert "canary" in str(server.requests[0])
    assert "canary" not in str(server.requests[1])
    assert server.requests[1].target == "/v.mp4?sig=1"
    assert network.dialled == [("93.184.215.14", 443), ("93.184.215.15", 443)]


@pytest.mark.parametrize(
    ("location", "target"), [("/b/c?d=e", "/b/c?d=e"), ("c.mp4", "/a/c.mp4"), ("?x=1", "/a/v?x=1")]
)
async def test_a_redirect_within_the_host_keeps_what_the_host_needs(tmp_path: Path, location: str, target: str) -> None:
    """
    Relative redirects are resolved as URLs are, and carry the credentials.
    """
    async with http_server(scripted(await redirect_to(location), reply(FILE))) as server:
        async with bench(server, tmp_path) as at:
            await at.fetch(f"{server.url}/a/v?old", Authorization="Bearer k")
    assert server.requests[1].target == target
    assert server.requests[1].headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "//evil.com/x", "https://evil.com/",
     "file:///etc/passwd", "//127.0.0.1\\@x/", "javascript:1", "http://[::1]/", "data:video/mp4,x"],
)  # fmt: skip
async def test_a_redirect_that_leads_elsewhere_is_refused(tmp_path: Path, location: str) -> None:
    """
    A redirect to an unlisted host or another scheme is refused by the gate, unsent.
    """
    async with http_server(await redirect_to(location)) as server, bench(server, tmp_path) as at:
        with pytest.raises(OutboundRefused):
            await at.fetch(server.url)
    assert len(server.requests) == 1


async def test_three_redirects_are_followed_and_a_fourth_is_not(tmp_path: Path) -> None:
    """
    A file behind three redirects is fetched, and one behind more is an error.
    """
    hop = await redirect_to("/next")
    async with http_server(scripted(hop, hop, hop, reply(FILE))) as server, bench(server, tmp_path) as at:
        await at.fetch(server.url)
        assert at.counted == len(FILE), "what stands in a redirect itself is not read"
    async with http_server(hop) as server, bench(server, tmp_path / "other") as at:
        with pytest.raises(TransportError):
            await at.fetch(server.url)
    assert len(server.requests) == 4


async def test_a_redirect_to_nowhere_is_told(tmp_path: Path) -> None:
    """
    A redirect without a Location is a transport error.
    """
    async with http_server(reply(status="302 Found")) as server, bench(server, tmp_path) as at:
        with pytest.raises(TransportError):
            await at.fetch(server.url)


# Slow ones, on a fake clock and a fake transport


class Tap:
    """
    A transport whose one answer gives a chunk whenever the test says so.
    """

    def __init__(self) -> None:
        self.chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.open = 0
        self.most_open = 0

    @asynccontextmanager
    async def send(self, request: HttpRequest, *, timeout: float) -> AsyncIterator[Reply]:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            yield TapReply(self.chunks)
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        return None


class TapReply:
    """
    Its answer.
    """

    status = 200
    headers: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, chunks: asyncio.Queue[bytes | None]) -> None:
        self._chunks = chunks

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    async def read(self) -> bytes:
        return b""


async def taken_in(at: Bench, size_bytes: int) -> None:
    """
    Wait until so much has been taken in, so that the clock moves after it.
    """
    while at.counted < size_bytes:
        await settle()


async def test_a_stalled_fetch_ends_after_thirty_seconds(tmp_path: Path) -> None:
    """
    A fetch of which nothing more comes fails after 30 seconds and leaves no file.
    """
    tap = Tap()
    at = Bench(tap, tmp_path)
    fetching = asyncio.create_task(at.fetch("https://x/"))
    tap.chunks.put_nowait(FILE[:600])
    await taken_in(at, 600)
    await at.clock.advance(29)
    assert not fetching.done()
    await at.clock.advance(6)
    with pytest.raises(TransportError, match="Nothing came"):
        await fetching
    assert (tap.open, at.names()) == (0, [])


async def test_a_creeping_fetch_ends_after_a_minute(tmp_path: Path) -> None:
    """
    A fetch that stays far too slow for a minute fails, and says that it was slow.
    """
    tap = Tap()
    at = Bench(tap, tmp_path)
    fetching = asyncio.create_task(at.fetch("https://x/"))
    for second in range(60):
        tap.chunks.put_nowait(FILE[second * 1000 : second * 1000 + 1000])
        await taken_in(at, second * 1000 + 1000)
        await at.clock.advance(1)
        assert not fetching.done() or second == 59
    with pytest.raises(TransportError, match="slowly"):
        await fetching


async def test_a_fetch_ends_after_half_an_hour(tmp_path: Path) -> None:
    """
    A fetch that is quick enough and yet endless fails after 30 minutes.
    """
    tap = Tap()
    at = Bench(tap, tmp_path)
    fetching = asyncio.create_task(at.fetch("https://x/"))
    tap.chunks.put_nowait(FILE[:1000])
    while not fetching.done():
        tap.chunks.put_nowait(b"x" * 400_000)
        while not (tap.chunks.empty() or fetching.done()):
            await settle()
        await at.clock.advance(10)
    with pytest.raises(TransportError, match="30 minutes"):
        await fetching
    assert at.clock.monotonic() - 1000 == pytest.approx(1800, abs=10)


async def test_a_cancelled_fetch_leaves_nothing(tmp_path: Path) -> None:
    """
    Cancelling a fetch closes its answer and removes its part.
    """
    tap = Tap()
    at = Bench(tap, tmp_path)
    fetching = asyncio.create_task(at.fetch("https://x/"))
    tap.chunks.put_nowait(FILE[:2_000_000])
    while at.names() != ["tsk_1-0.part"]:
        await settle()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert (tap.open, at.names()) == (0, [])


async def test_no_more_than_two_are_fetched_at_once(tmp_path: Path) -> None:
    """
    Of five fetches at once only as many run as there are slots.
    """
    tap = Tap()
    at = Bench(tap, tmp_path)
    fetches = [
        asyncio.create_task(at.fetch("https://x/", name=ResultName(fingerprint=FINGERPRINT, task_id=f"t{n}", index=0)))
        for n in range(5)
    ]
    await settle()
    for _ in fetches:
        tap.chunks.put_nowait(FILE)
    await taken_in(at, len(FILE) * 2)
    for _ in fetches:
        tap.chunks.put_nowait(None)
    while tap.open and not tap.chunks.empty():
        await settle()
    for fetch in fetches:
        fetch.cancel()
    await asyncio.gather(*fetches, return_exceptions=True)
    assert tap.most_open == 2
