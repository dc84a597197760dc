"""
The client: whom it speaks to, what it makes of answers, and what it does when a connection breaks.
"""

import asyncio
import hashlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore2
import pytest

import vidrelay
from vidrelay.client.answers import error_from
from vidrelay.client.beacon import Beacon, read_beacon, remove_beacon, write_beacon
from vidrelay.client.blocking import BlockingClient
from vidrelay.client.calls import Client, open_client
from vidrelay.client.dial import ProofFailed, ProvenBackend
from vidrelay.client.views import task_view
from vidrelay.core.errors import (
    BadMedia,
    InvalidRequest,
    RelayUnavailable,
    ResultGone,
    UnknownTask,
    VidrelayError,
    WrongState,
)
from vidrelay.core.proof import client_proof, server_proof
from vidrelay.core.task import Blocked, BlockReason, Request, Resolution, State
from vidrelay.testing.clock import FakeClock

TOKEN = "vrl_" + "b" * 43
INSTANCE = "one"
CLIP = bytes(range(256)) * 64

Answer = tuple[int, dict[str, str], bytes]


def beacon(port: int) -> Beacon:
    return Beacon(port=port, token=TOKEN, pid=1, version="0", instance=INSTANCE, started_at="2026-11-30T12:00:00.000Z")


def told(state: str = "running", **more: Any) -> dict[str, Any]:
    return {"taskId": "t1", "state": state, "account": "main", "provider": "openai", "request": {"prompt": "x"}, **more}


def done_task() -> dict[str, Any]:
    file = {
        "index": 0,
        "path": "/cache/t1-0.mp4",
        "url": "/task/t1/result?index=0",
        "bytes": len(CLIP),
        "sha256": hashlib.sha256(CLIP).hexdigest(),
        "mediaType": "video/mp4",
    }
    return told("done", result={"files": [file]})


def answer(body: Any, status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


class Relay:
    """
    A small relay over a real socket: proves itself, then answers by script. An answer of None drops the connection.
    """

    def __init__(self, reply: Callable[[str, str, dict[str, str], bytes], Answer | None]) -> None:
        self.reply = reply
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []
        self.proofs = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if path == "/proof":
                    self.proofs += 1
                    found: Answer | None = self._prove(json.loads(body))
                elif path == "/health":
                    found = answer({"status": "ok", "version": "0"})
                else:
                    self.calls.append((method, path, headers, body))
                    found = self.reply(method, path, headers, body)
                if found is None:
                    break
                status, more, content = found
                lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in more.items())]
                lines += [] if "Content-Length" in more else [f"Content-Length: {len(content)}"]
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
                await writer.drain()
                if "Content-Length" in more:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _prove(self, asked: dict[str, str]) -> Answer:
        assert asked["mac"] == client_proof(TOKEN, nonce=asked["nonce"], port=self.port)
        return answer({"mac": server_proof(TOKEN, nonce=asked["nonce"], port=self.port, instance=INSTANCE)})


@asynccontextmanager
async def relay_and_client(
    state_dir: Path, reply: Callable[[str, str, dict[str, str], bytes], Answer | None]
) -> AsyncIterator[tuple[Relay, Client]]:
    relay, clock = Relay(reply), FakeClock()
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    write_beacon(state_dir, beacon(relay.port))
    async with server, asyncio.TaskGroup() as group:
        ticking = group.create_task(_tick(clock))
        async with open_client(state_dir, start=False, app="test", clock=clock) as client:
            yield relay, client
        ticking.cancel()


async def _tick(clock: FakeClock) -> None:
    while True:
        await asyncio.sleep(0.001)
        await clock.advance(0.5)


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


# relay.json


def test_a_beacon_is_read_as_it_was_written(tmp_path: Path) -> None:
    """
    A written relay.json reads back equal, is private, and leaves no draft beside it.
    """
    write_beacon(tmp_path, beacon(61000))
    assert read_beacon(tmp_path) == beacon(61000)
    assert (tmp_path / "relay.json").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["relay.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"port": 0},
        {"port": 65536},
        {"port": True},
        {"port": "61000"},
        {"port": None},
        {"token": "sk-foreign"},
        {"token": "vrl_with space in it......"},
        {"token": "vrl_\r\nX-Evil: 1............"},
        {"pid": -1},
        {"instance": ""},
        {"instance": 5},
        {"version": None},
    ],
)
def test_a_beacon_with_a_wrong_field_is_passed_over(tmp_path: Path, change: dict[str, Any]) -> None:
    """
    One field of a wrong type, range or form makes the whole file count as none.
    """
    write_beacon(tmp_path, beacon(61000))
    path = tmp_path / "relay.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert read_beacon(tmp_path) is None


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"[]", b"null", b"{", b'"x"', b"[" * 10000, b"{}" + b" " * 20000])
def test_garbage_is_no_beacon(tmp_path: Path, data: bytes) -> None:
    """
    Empty, foreign, deep and overlong content counts as no relay.json, and raises nothing.
    """
    path = tmp_path / "relay.json"
    path.write_bytes(data)
    path.chmod(0o600)
    assert read_beacon(tmp_path) is None


def test_a_beacon_that_others_can_read_is_passed_over(tmp_path: Path) -> None:
    """
    A relay.json that group or others may read is not trusted.
    """
    write_beacon(tmp_path, beacon(61000))
    (tmp_path / "relay.json").chmod(0o644)
    assert read_beacon(tmp_path) is None


def test_a_link_a_fifo_or_a_directory_is_no_beacon(tmp_path: Path) -> None:
    """
    What is no regular file in relay.json's place counts as none, and is not waited on.
    """
    write_beacon(tmp_path, beacon(61000))
    other = tmp_path / "other"
    other.mkdir()
    (other / "relay.json").symlink_to(tmp_path / "relay.json")
    assert read_beacon(other) is None
    (other / "relay.json").unlink()
    os.mkfifo(other / "relay.json", 0o600)
    assert read_beacon(other) is None
    (other / "relay.json").unlink()
    (other / "relay.json").mkdir()
    assert read_beacon(other) is None


def test_only_its_own_beacon_is_removed(tmp_path: Path) -> None:
    """
    A relay that leaves removes relay.json only while it names its own instance.
    """
    write_beacon(tmp_path, replace(beacon(61000), instance="newer"))
    remove_beacon(tmp_path, INSTANCE)
    assert read_beacon(tmp_path) is not None
    remove_beacon(tmp_path, "newer")
    assert read_beacon(tmp_path) is None


# Whom it speaks to


async def test_without_a_relay_it_says_how_to_start_one(tmp_path: Path) -> None:
    """
    With nothing to connect to, the error's hint is the command that starts a relay.
    """
    with pytest.raises(RelayUnavailable) as caught:
        async with open_client(tmp_path, start=False):
            pass
    assert caught.value.hint == "Start one: vidrelay serve"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"mac": "a0a0"}',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"220 mail.example ESMTP\r\n" * 2000,
    ],
)
async def test_a_stranger_on_the_port_gets_neither_token_nor_prompt(tmp_path: Path, reply: bytes) -> None:
    """
    A listener that does not prove itself hears the proof's question and nothing more.
    """
    heard = bytearray()

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(65536))
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(record, "127.0.0.1", 0)
    async with server:
        write_beacon(tmp_path, beacon(server.sockets[0].getsockname()[1]))
        with pytest.raises(RelayUnavailable):
            async with open_client(tmp_path, start=False) as client:
                await client.generate(Request(prompt="secret prompt"))
    assert bytes(heard).startswith(b"POST /proof HTTP/1.1\r\n")
    assert TOKEN.encode() not in heard
    assert b"secret" not in heard


async def test_an_answer_replayed_from_another_nonce_proves_nothing() -> None:
    """
    A true server's proof for an older nonce is refused.
    """
    port = 0

    async def replay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        mac = server_proof(TOKEN, nonce="0" * 64, port=port, instance=INSTANCE)
        body = json.dumps({"mac": mac})
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()

    server = await asyncio.start_server(replay, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ProofFailed):
            await ProvenBackend(beacon(port)).connect_tcp("127.0.0.1", port)


async def test_a_connection_that_met_itself_is_nobody() -> None:
    """
    A socket that was connected to itself is refused before anything is said.
    """

    class Mirror(httpcore2.AsyncNetworkBackend):
        """
        What a connect to an unused port of the ephemeral range can come to.
        """

        async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
            raw = socket.socket()
            raw.setblocking(False)
            raw.bind(("127.0.0.1", 0))
            await asyncio.get_running_loop().sock_connect(raw, raw.getsockname())
            return Stream(raw)

    class Stream(httpcore2.AsyncNetworkStream):
        def __init__(self, raw: socket.socket) -> None:
            self.raw = raw

        def get_extra_info(self, info: str) -> Any:
            found = {"client_addr": self.raw.getsockname, "server_addr": self.raw.getpeername}
            return found[info]() if info in found else self.raw

        async def aclose(self) -> None:
            self.raw.close()

    for _ in range(50):
        backend = ProvenBackend(beacon(61000), network=Mirror())
        with pytest.raises(ProofFailed, match="Nobody"):
            await backend.connect_tcp("127.0.0.1", 61000)


async def test_every_connection_is_proved_before_the_token_goes_over_it(tmp_path: Path) -> None:
    """
    Calls at once all carry token and app name, over connections proved before.
    """
    async with relay_and_client(tmp_path, lambda *_: answer(told())) as (relay, client):
        await asyncio.gather(*(client.task("t1") for _ in range(8)))
        assert relay.proofs >= 1
        assert all(headers["x-local-token"] == TOKEN.lower() for _, _, headers, _ in relay.calls)
        assert all(headers["x-vidrelay-app"] == "test" for _, _, headers, _ in relay.calls)


# Calls


async def test_a_submit_carries_a_key_and_survives_a_lost_answer(tmp_path: Path) -> None:
    """
    A submit whose answer is lost is sent again under the same Idempotency-Key.
    """
    answers: list[Answer | None] = [None, answer(told("queued", deduped=True), 202)]
    async with relay_and_client(tmp_path, lambda *_: answers.pop(0)) as (relay, client):
        task = await client.generate(Request(prompt="a fox", duration=5))
    keys = {headers["idempotency-key"] for _, _, headers, _ in relay.calls}
    assert len(relay.calls) == 2
    assert len(keys) == 1
    assert json.loads(relay.calls[0][3]) == {"prompt": "a fox", "duration": 5}
    assert task.deduped


async def test_a_relay_that_is_leaving_is_not_the_last_word(tmp_path: Path) -> None:
    """
    A submit that meets a relay shutting down is tried again and taken.
    """
    answers = [answer({"code": "shutting_down", "detail": "later", "status": 503}, 503), answer(told("queued"), 202)]
    async with relay_and_client(tmp_path, lambda *_: answers.pop(0)) as (_, client):
        assert (await client.generate(Request(prompt="a fox"))).state is State.QUEUED


async def test_what_cannot_be_repeated_is_not(tmp_path: Path) -> None:
    """
    A resolve whose connection breaks is an error, and was sent once.
    """
    async with relay_and_client(tmp_path, lambda *_: None) as (relay, client):
        with pytest.raises(RelayUnavailable, match="broke off"):
            await client.resolve("t1", Resolution.RETRY)
    assert len(relay.calls) == 1


async def test_a_relay_that_keeps_breaking_off_is_given_up(tmp_path: Path) -> None:
    """
    A look that breaks off four times ends as a relay that cannot be reached.
    """
    async with relay_and_client(tmp_path, lambda *_: None) as (relay, client):
        with pytest.raises(RelayUnavailable, match="cannot be reached"):
            await client.task("t1")
    assert len(relay.calls) == 4


async def test_ids_cannot_leave_their_place_in_the_path(tmp_path: Path) -> None:
    """
    Slashes, dots and questions in a task's id are escaped in the address.
    """
    async with relay_and_client(tmp_path, lambda *_: answer(told())) as (relay, client):
        await client.task("../../stats?x=1")
    assert relay.calls[0][1] == "/task/..%2F..%2Fstats%3Fx%3D1"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("unknown_task", UnknownTask),
        ("wrong_state", WrongState),
        ("result_gone", ResultGone),
        ("invalid_request", InvalidRequest),
        ("transport_error", vidrelay.TransportError),
        ("outbound_refused", vidrelay.OutboundRefused),
        ("some_new_code", VidrelayError),
    ],
)
def test_a_problem_becomes_the_error_of_its_code(code: str, kind: type[VidrelayError]) -> None:
    """
    A known code is raised as its own class, an unknown one as the base, with all it says.
    """
    body = {"code": code, "title": "T", "detail": "what is wrong", "status": 422, "retryable": True}
    error = error_from(422, json.dumps(body).encode())
    assert type(error) is kind
    assert error.code == code
    assert error.message == "what is wrong"
    assert error.retryable


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b"\xff"])
def test_an_answer_that_is_no_problem_is_told_as_such(body: bytes) -> None:
    """
    A 500 that is no problem means that no proper relay is there.
    """
    assert isinstance(error_from(500, body), RelayUnavailable)


def test_a_refused_token_means_that_no_relay_can_be_reached() -> None:
    """
    A 403 is raised as RelayUnavailable.
    """
    assert isinstance(error_from(403, b'{"code": "forbidden"}'), RelayUnavailable)


def test_a_task_is_read_whole() -> None:
    """
    Each part of a task's JSON stands in the view in its own type.
    """
    view = task_view(
        told(
            remoteState="working",
            progress=0.5,
            eta={"seconds": 9, "low": 5, "high": 12, "basis": "history"},
            blocked={"reason": "rate", "until": "2026-11-30T12:00:00.000Z"},
            cost={"amount": "0.35", "currency": "USD"},
            timings={"wait": 1, "return": 2.5},
            error={"code": "moderation", "detail": "no"},
            cancel={"outcome": "stopped"},
        )
    )
    assert view.state is State.RUNNING
    assert view.progress == 0.5
    assert view.eta is not None
    assert (view.eta.low, view.eta.high) == (5, 12)
    assert view.blocked is not None
    assert view.blocked.until is not None
    assert view.cost == "0.35 USD"
    assert view.timings.return_ == 2.5
    assert view.error is not None
    assert view.error.code == "moderation"


def test_what_a_task_waits_for_is_read_with_its_detail() -> None:
    """
    What `waitingFor` tells goes before `blocked`, which has no word for a provider that does not answer.
    """
    held = {"reason": "network", "detail": "404", "until": None}
    view = task_view(told(blocked={"reason": "window", "until": None}, waitingFor=held))
    assert view.blocked == Blocked(reason=BlockReason.NETWORK, detail="404")


def test_a_newer_relays_words_are_passed_over() -> None:
    """
    Words and fields unknown to this client are left out of the view and kept in its JSON.
    """
    view = task_view(told(remoteState="teleporting", cancel={"outcome": "undone"}, eta="soon", unheard=1))
    assert (view.remote_state, view.cancel, view.eta) == (None, None, None)
    assert view.json["unheard"] == 1


@pytest.mark.parametrize("wrong", [{}, {"taskId": 5, "state": "done"}, {"taskId": "t", "state": "melted"}])
def test_what_is_no_task_is_refused(wrong: dict[str, Any]) -> None:
    """
    JSON without a task's id or a known state is an error that says so.
    """
    with pytest.raises(VidrelayError, match="not a task"):
        task_view(wrong)


def frame(event_id: int | None, state: str) -> bytes:
    head = f"id: {event_id}\n" if event_id else ""
    return f"event: task\n{head}data: {json.dumps(told(state))}\n\n".encode()


def stream(*frames: bytes) -> Answer:
    return 200, {"Content-Type": "text/event-stream"}, b"".join(frames)


async def test_events_go_on_where_a_broken_stream_left_off(tmp_path: Path) -> None:
    """
    A broken stream is asked for again after the last id, and each event is told once.
    """
    streams = [
        frame(7, "submitting") + b": beat\n\n" + frame(8, "running") + frame(None, "running"),
        b"event: reset\ndata: {}\n\n" + frame(9, "done"),
    ]

    def reply(*_: Any) -> Answer:
        body = streams.pop(0)
        return 200, {"Content-Type": "text/event-stream", "Content-Length": str(len(body) + 1)}, body

    seen = []
    async with relay_and_client(tmp_path, reply) as (relay, client):
        async for event in client.events():
            seen.append((event.task.state, event.id))
            if event.task.ended:
                break
    assert seen == [("submitting", "7"), ("running", "8"), ("running", None), ("done", "9")]
    assert "last-event-id" not in relay.calls[0][2]
    assert relay.calls[1][2]["last-event-id"] == "8"


async def test_the_events_of_one_task_end_with_its_last(tmp_path: Path) -> None:
    """
    Nothing is asked for after it: the relay has no more to tell.
    """
    async with relay_and_client(tmp_path, lambda *_: stream(frame(8, "running"), frame(9, "done"))) as (relay, client):
        seen = [event.id async for event in client.events(task_id="t1")]
    assert seen == ["8", "9"]
    assert len(relay.calls) == 1


async def test_events_end_where_the_last_one_is_known_already(tmp_path: Path) -> None:
    """
    A 204 ends the events without a single one.
    """
    async with relay_and_client(tmp_path, lambda *_: (204, {}, b"")) as (_, client):
        assert [event async for event in client.events(task_id="t1", after="9")] == []


async def test_blocking_events_end_too(tmp_path: Path) -> None:
    """
    The blocking client's events of a task end with its last as the async ones do.
    """

    def follow() -> list[str | None]:
        with BlockingClient(tmp_path, start=False) as client:
            return [event.id for event in client.events(task_id="t1")]

    async with relay_and_client(tmp_path, lambda *_: stream(frame(8, "running"), frame(9, "done"))):
        assert await asyncio.to_thread(follow) == ["8", "9"]


# Saving


async def test_a_result_is_saved_whole(tmp_path: Path) -> None:
    """
    A saved result replaces an older file of that name and leaves no draft.
    """

    def reply(method: str, path: str, *_: Any) -> Answer:
        return answer(done_task()) if "result" not in path else (200, {"ETag": '"x"'}, CLIP)

    target = tmp_path / "clip.mp4"
    target.write_bytes(b"an older one")
    async with relay_and_client(tmp_path, reply) as (_, client):
        assert await client.save_result("t1", target) == target
    assert target.read_bytes() == CLIP
    assert names(tmp_path) == ["clip.mp4", "relay.json"]


async def test_a_broken_download_goes_on_where_it_was(tmp_path: Path) -> None:
    """
    The rest of a download is asked for under the file's hash and joined.
    """
    pieces = [CLIP[:5000], CLIP[5000:]]

    def reply(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        if "result" not in path:
            return answer(done_task())
        piece = pieces.pop(0)
        if not pieces:
            assert headers["range"] == "bytes=5000-"
            assert headers["if-range"] == f'"{hashlib.sha256(CLIP).hexdigest()}"'
            return 206, {}, piece
        return 200, {"Content-Length": str(len(CLIP))}, piece

    async with relay_and_client(tmp_path, reply) as (_, client):
        await client.save_result("t1", tmp_path / "clip.mp4")
    assert (tmp_path / "clip.mp4").read_bytes() == CLIP


async def test_wrong_bytes_never_get_the_name(tmp_path: Path) -> None:
    """
    Bytes of another hash are bad media, and no file is left.
    """

    def reply(method: str, path: str, *_: Any) -> Answer:
        return answer(done_task()) if "result" not in path else (200, {}, b"x" * len(CLIP))

    async with relay_and_client(tmp_path, reply) as (_, client):
        with pytest.raises(BadMedia):
            await client.save_result("t1", tmp_path / "clip.mp4")
    assert names(tmp_path) == ["relay.json"]


async def test_only_a_done_task_is_saved(tmp_path: Path) -> None:
    """
    Saving the result of a task that is still running is refused as the wrong state.
    """
    async with relay_and_client(tmp_path, lambda *_: answer(told())) as (_, client):
        with pytest.raises(WrongState):
            await client.save_result("t1", tmp_path / "clip.mp4")


# Faces


def test_the_public_names_are_all_there() -> None:
    """
    Each name in `__all__` can be had from the package, and any other raises AttributeError.
    """
    for name in vidrelay.__all__:
        assert getattr(vidrelay, name) is not None
    with pytest.raises(AttributeError):
        _ = vidrelay.nothing


def test_the_blocking_face_has_every_call_of_the_async_one() -> None:
    """
    Both clients have the same public calls, but for those that open and close.
    """
    calls = {name for name in vars(Client) if not name.startswith("_")}
    apart = {"aclose", "connect", "url", "beacon"}
    assert calls - apart == {name for name in vars(BlockingClient) if not name.startswith("_")}
