"""
A door's websocket: who is let in, who hears of which task, and when it ends.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_relay import FakeRelay
from httpx2.websockets import AsyncWebSocketSession, WebSocketDisconnect
from loopback import TOKEN, Served, serving

from vidrelay.core.lifecycle import Accepted, Started
from vidrelay.core.task import RemoteState
from vidrelay.providers.comfyui.door import make
from vidrelay.providers.openai.door import make as make_other
from vidrelay.scheduler.face import DoorWay
from vidrelay.server import serve, sockets

GRAPH = {"9": {"class_type": "SaveVideo", "inputs": {"filename_prefix": "clip", "text": "a boat"}}}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """A relay with ComfyUI's door, and one without a websocket."""
    relay = FakeRelay(tmp_path)
    relay.ways = {
        "comfyui": DoorWay(account="main", door=make(None)),
        "other": DoorWay(account="other", door=make(None)),
        "openai": DoorWay(account="main", door=make_other(None)),
    }
    async with serving(relay) as served:
        yield served


def listening(
    door: Served, name: str | None = "c1", *, path: str = "/comfyui/ws", headers: dict[str, str] | None = None
) -> AbstractAsyncContextManager[AsyncWebSocketSession]:
    """A client on the door's websocket."""
    query = "" if name is None else f"?clientId={name}"
    return door.client.websocket(f"ws://127.0.0.1:{door.port}{path}{query}", headers=headers)


async def make_job(door: Served, listener: str | None = "c1", text: str = "a boat", **body: Any) -> Any:
    """Ask for a job as a client of that name does."""
    graph = {"9": {"class_type": "SaveVideo", "inputs": {"filename_prefix": "clip", "text": text}}}
    named = {} if listener is None else {"client_id": listener}
    return (await door.client.post("/comfyui/prompt", json={"prompt": graph, **named, **body})).json()


async def heard(client: AsyncWebSocketSession, until: str = "executing") -> list[Any]:
    """What the client is told, to the first message of that type without a node."""
    told = []
    while True:
        told.append(await client.receive_json(timeout=5))
        if told[-1]["type"] == until and told[-1]["data"].get("node") is None:
            return told


def kinds(told: list[Any]) -> list[str]:
    """The types of the messages that are about a job, but for which node it is at."""
    return [one["type"] for one in told if one["type"] != "status" and one["data"].get("node") is None]


BEGUN = ["execution_start", "execution_cached"]
ENDED = ["execution_success", "executing"]


async def test_a_client_hears_of_its_own_job_alone(door):
    """From its start to its end; another client hears how long the queue is, and no more."""
    async with listening(door) as mine, listening(door, "c2", path="/comfyui/api/ws") as other:
        for client, name in ((mine, "c1"), (other, "c2")):
            (first,) = await heard(client, "status")
            assert first["data"] == {"status": {"exec_info": {"queue_remaining": 0}}, "sid": name}
        job = await make_job(door)
        task = door.relay.move(job["prompt_id"], Started(submission_key="k"), Accepted(remote_id="r"))
        door.relay.tasks[task.id] = replace(task, remote_state=RemoteState.WORKING)
        door.relay.tell(task.id)
        told = []
        while not kinds(told):
            told += await heard(mine, "execution_cached")
        assert kinds(told) == BEGUN
        job = await make_job(door, "c2", "another")
        door.relay.finish(job["prompt_id"])
        theirs = await heard(other)
        assert {one["data"].get("prompt_id") for one in theirs} == {None, job["prompt_id"]}
        assert kinds(theirs) == [*BEGUN, *ENDED]


async def test_what_is_there_already_is_told_to_who_asks_for_it(door):
    """A client that waits for the end of a job which another made long ago must not wait for ever."""
    first = await make_job(door, "c1")
    door.relay.finish(first["prompt_id"])
    async with listening(door, "c2") as client:
        for _ in range(2):
            made = await make_job(door, "c2", prompt_id="0d7b4c1e-2f4e-4e57-9a0e-6c1f0a4b9d11")
            told = [one for one in await heard(client) if one["type"] != "status"]
            assert {one["data"]["prompt_id"] for one in told} == {made["prompt_id"]}
            assert kinds(told) == [*BEGUN, *ENDED]
    entry = (await door.client.get(f"/comfyui/history/{made['prompt_id']}")).json()
    assert list(entry) == [made["prompt_id"]]


async def test_one_task_has_the_id_that_each_client_gave_it(door):
    """Two that ask for the same are told of the one job, each by its own id; the later call of an id counts."""
    async with listening(door, "c1") as one, listening(door, "c2") as two:
        await make_job(door, "c1", prompt_id="first")
        await make_job(door, "c2", prompt_id="second")
        assert len(door.relay.tasks) == 1
        (task_id,) = door.relay.tasks
        assert (await door.client.get("/comfyui/history/second")).json() == {}
        door.relay.finish(task_id)
        for client, name in ((one, "first"), (two, "second")):
            told = await heard(client)
            assert {each["data"].get("prompt_id", name) for each in told} == {name}
    await make_job(door, "c1", "another", prompt_id="first")
    assert (await door.client.get("/comfyui/history/first")).json() == {}
    assert (await door.client.get("/other/history/second")).json() == {}


async def test_what_nobody_is_named_for_is_told_to_all_of_the_account(door):
    """As at ComfyUI; those of another account hear nothing of it."""
    async with listening(door, "c1") as one, listening(door, None) as two, listening(door, path="/other/ws") as other:
        job = await make_job(door, None)
        door.relay.finish(job["prompt_id"])
        for client in (one, two):
            assert kinds(await heard(client)) == [*BEGUN, *ENDED]
        await other.receive_json(timeout=5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.receive_json(), 0.2)


async def test_one_who_comes_back_is_told_of_its_job(door):
    """A connection that was lost in the midst of it."""
    job = await make_job(door)
    task = door.relay.move(job["prompt_id"], Started(submission_key="k"), Accepted(remote_id="r"))
    door.relay.tasks[task.id] = replace(task, remote_state=RemoteState.WORKING)
    async with listening(door) as client:
        assert kinds(await heard(client, "execution_cached")) == BEGUN


async def refused(door: Served, *, path: str = "/comfyui/ws", headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """The status and the problem that one is answered who is not let in, read as the bytes that they are."""
    usual = {
        "Host": f"127.0.0.1:{door.port}",
        "X-Local-Token": TOKEN,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**usual, **(headers or {})}.items() if value)
    answer = await door.raw(f"GET {path}?clientId=c1 HTTP/1.1\r\n{lines}\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-security-policy: default-src 'none'" in head.lower()
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"X-Local-Token": "vrl_wrong"},
        {"Authorization": "Bearer vrl_wrong"},
        {"X-Local-Token": "", "Cookie": "vidrelay=1"},
    ],
)
async def test_no_page_and_no_stranger_opens_a_websocket(door, headers):
    """Browsers let any page open one to any place, so it is held to what every call is; the answer is the one 403."""
    plain = (await door.client.get("/health", headers={"X-Local-Token": "vrl_wrong"})).json()
    for path in ("/comfyui/ws", "/openai/ws", "/nowhere/ws", "/ws"):
        assert await refused(door, path=path, headers=headers) == (403, plain)
    assert not door.relay.watchers


@pytest.mark.parametrize("path", ["/openai/v1/ws", "/task/ws", "/ws", "/comfyui/x/ws"])
async def test_there_is_a_websocket_only_where_a_door_has_one(door, path):
    """With the token too."""
    assert (await refused(door, path=path))[0] == 404


@pytest.mark.parametrize("path", ["/comfyui/queue", "/health", "/events"])
async def test_a_call_elsewhere_that_offers_a_websocket_is_a_plain_one(door, path):
    """It is answered as such, as if it had offered nothing."""
    lines = ["Upgrade: websocket", "Connection: Upgrade, close", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA"]
    head = door.head(f"GET {path} HTTP/1.1") + "\r\n".join(lines) + "\r\n\r\n"
    assert (await door.raw(head.encode(), seconds=0.5)).startswith(b"HTTP/1.1 200 ")


async def test_a_websocket_must_have_its_connection_for_itself(door):
    """An earlier call that is still being answered would mix with it."""
    lines = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA"]
    job = await make_job(door)
    first = door.head(f"GET /task/{job['prompt_id']}?wait=5 HTTP/1.1") + "\r\n"
    second = door.head("GET /comfyui/ws HTTP/1.1") + "\r\n".join(lines) + "\r\n\r\n"
    answer = await door.raw((first + second).encode(), seconds=2)
    assert b" 101 " not in answer


@pytest.mark.parametrize("what", ["text", "bytes"])
async def test_a_message_over_the_bound_ends_it(door, what):
    """What a client says is passed over, up to a bound."""
    async with listening(door) as client:
        await heard(client, "status")
        say = client.send_text if what == "text" else client.send_bytes
        await say("x" * 1000 if what == "text" else b"x" * 1000)
        await say("x" * (serve.MAX_MESSAGE_BYTES + 1) if what == "text" else b"x" * (serve.MAX_MESSAGE_BYTES + 1))
        with pytest.raises(WebSocketDisconnect) as end:
            await client.receive_json(timeout=5)
    assert end.value.code == 1009
    await watched_by(door, 0)


async def watched_by(door: Served, count: int) -> None:
    """Wait until so many clients are left."""
    async with asyncio.timeout(5):
        while len(door.relay.watchers) > count:  # noqa: ASYNC110 what ends is the server's own
            await asyncio.sleep(0.01)


async def test_only_so_many_may_listen(door, monkeypatch):
    """One more is told so; the place of one that leaves is free again."""
    monkeypatch.setattr(sockets, "MAX_SOCKETS", 2)
    async with listening(door):
        async with listening(door) as second:
            await heard(second, "status")
            status, problem = await refused(door)
            assert (status, problem["code"]) == (503, "too_many_connections")
        await watched_by(door, 1)
        async with listening(door) as third:
            await heard(third, "status")


async def test_one_that_falls_behind_is_cut_off(door, monkeypatch):
    """Rather than held in memory without end."""
    monkeypatch.setattr(sockets, "MAX_WAITING", 3)
    door.relay.queue_length = 1000
    async with listening(door) as client:
        await heard(client, "status")
        job = await make_job(door)
        for _ in range(50):
            door.relay.tell(job["prompt_id"])
        with pytest.raises(WebSocketDisconnect) as end:
            await heard(client, "never")
    assert end.value.code == sockets.GOING_AWAY


async def test_one_with_nothing_to_hear_is_let_go(door):
    """After a while without any task; as long as one is live it stays."""
    async with listening(door) as client:
        await heard(client, "status")
        job = await make_job(door)
        await client.receive_json(timeout=5)
        await door.clock.advance(sockets.IDLE_SECONDS * 3)
        door.relay.finish(job["prompt_id"])
        await heard(client)
        await door.clock.advance(sockets.IDLE_SECONDS / 2)
        assert door.relay.watchers
        await door.clock.advance(sockets.IDLE_SECONDS)
        with pytest.raises(WebSocketDisconnect):
            await heard(client, "never")
    await watched_by(door, 0)


async def test_a_stop_ends_it(door):
    """At once, whether the client reads or not."""
    async with listening(door) as client:
        await heard(client, "status")
        door.stop.set()
        with pytest.raises(WebSocketDisconnect) as end:
            await client.receive_json(timeout=5)
    assert end.value.code in (1001, 1012)
    assert TOKEN not in str(end.value)
