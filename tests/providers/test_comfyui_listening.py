"""
What is heard on a ComfyUI server's websocket, and when that is enough.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from vidrelay.core.adapter import Trouble
from vidrelay.core.lifecycle import Ready, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import RemoteState, Task
from vidrelay.providers.comfyui.adapter import make
from vidrelay.providers.comfyui.listening import Listener
from vidrelay.testing.conversing import reply
from vidrelay.testing.records import make_task
from vidrelay.testing.rehearsal import Rehearsal, rehearse

ID = "0d7b4c1e-2f4e-4e57-9a0e-6c1f0a4b9d11"
GRAPH: dict[str, Any] = {
    "1": {"class_type": "EmptyImage", "inputs": {"color": "{seed}"}},
    "2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 8}},
    "3": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "relay/job1"}},
    "4": {"class_type": "CLIPTextEncode", "inputs": {"text": "{prompt}"}},
}


def status(left: int) -> dict[str, Any]:
    return {"type": "status", "data": {"status": {"exec_info": {"queue_remaining": left}}, "sid": "x"}}


def said(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"prompt_id": ID, **data}}


def heard(*messages: Any) -> bytearray:
    return bytearray(b"".join(json.dumps(one).encode() + b"\n" for one in messages))


def job() -> Task:
    return replace(make_task(), remote_id=ID, parameters={"graph": GRAPH, "values": {}})


@pytest.mark.parametrize(
    ("messages", "enough"),
    [
        ([status(2)], False),
        ([status(1)], True),
        ([status(3)], True),
        ([status(2), status(2)], True),
        ([status(2), said("execution_start"), said("progress", value=1, max=20)], False),
        ([status(2), said("executing", node="5")], False),
        ([status(2), said("executing", node=None)], True),
        ([status(2), {"type": "executing", "data": {"node": None, "prompt_id": "another"}}], False),
        ([status(2), said("progress_state", nodes={"1": {"value": 1, "max": 1}})], False),
        ([{"type": "crystools.monitor", "data": {"cpu": 3}}, [], 3, {"type": 5}, {"data": None}], False),
        ([{"type": "status", "data": {"status": None}}], True),
    ],
)
def test_it_is_enough_when_the_queue_has_changed(messages: list[Any], enough: bool) -> None:
    """Another length than was read, or any word of the queue after the first; not each step of a job."""
    assert Listener(length=2, task=job()).enough(heard(*messages)) is enough


def test_messages_are_read_once_as_they_come() -> None:
    """Half a message waits for the rest of it."""
    listener, body = Listener(length=2, task=None), heard(status(2))
    assert not listener.enough(body)
    whole = heard(status(2))
    body += whole[:9]
    assert not listener.enough(body)
    body += whole[9:]
    assert listener.enough(body)


def test_progress_is_that_of_all_nodes() -> None:
    """Two nodes of four done and half of a third."""
    listener = Listener(length=1, task=job())
    nodes = {
        "1": {"value": 1, "max": 1, "state": "finished"},
        "2": {"value": 7, "max": 7, "state": "finished"},
        "4": {"value": 10, "max": 20, "state": "running"},
        "3": {"value": "x", "max": None, "state": "pending"},
        "9": None,
    }
    listener.enough(heard(status(1), said("progress_state", nodes=nodes)))
    assert listener.progress == 0.625


def comfy(**options: Any) -> Rehearsal:
    return rehearse(make, "comfyui", **options)


async def test_progress_is_told_of_the_job_at_work() -> None:
    """The websocket is that of the job's own client, which hears how far it is."""
    it = comfy(queue_seconds=0.0, run_seconds=100.0)
    task = await it.submitted(it.task("a boat", extra={"graph": GRAPH}))
    seen = await it.poll(task)
    told = await it.run(it.adapter.follow([task], {task.id: seen}))
    assert told[task.id].remote_state is RemoteState.WORKING
    assert 0.2 <= told[task.id].progress <= 0.31
    listened = [one.url for one in it.requests if one.held is not None]
    assert listened == [f"ws://127.0.0.1:8199/ws?clientId={task.remote_id}"]


async def test_news_that_is_there_already_is_not_waited_for() -> None:
    """What the first look shows is told at once; no websocket is opened."""
    it = comfy(queue_seconds=0.0, run_seconds=10.0)
    task = await it.submitted(it.task("a boat", extra={"graph": GRAPH}))
    await it.clock.advance(20)
    told = await it.run(it.adapter.follow([task], {task.id: StillRunning(remote_state=RemoteState.WORKING)}))
    assert isinstance(told[task.id], Ready)
    assert not [one for one in it.requests if one.held is not None]


async def test_one_call_tells_of_all() -> None:
    """Three jobs, one after another: each end and each start is told by one call for all of them."""
    it = comfy(queue_seconds=0.0, run_seconds=10.0)
    tasks = [await it.submitted(it.task(f"boat {number}", extra={"graph": GRAPH})) for number in range(3)]
    known = await it.run(it.adapter.poll_many(tasks))
    ended: list[float] = []
    began = it.clock.monotonic()
    while len(ended) < 3:
        running = [task for task in tasks if isinstance(known.get(task.id), StillRunning)]
        known = await it.run(it.adapter.follow(running, known))
        ended += [it.clock.monotonic() - began] * sum(isinstance(one, Ready) for one in known.values())
    assert ended == pytest.approx([10, 20, 30], abs=0.5)
    assert sum(one.held is not None for one in it.requests) <= 6


@pytest.mark.parametrize("code", [200, 400, 404, 502])
def test_a_server_without_a_websocket_is_trouble(code: int) -> None:
    """What lies between may not let one through; then it is asked in the ordinary way."""
    it = comfy()
    task = replace(it.task("a boat", extra={"graph": GRAPH}), remote_id=ID)
    known = StillRunning(remote_state=RemoteState.WORKING)
    conversation = it.adapter.follow([task], {task.id: known})
    next(conversation)
    queued = {"queue_running": [[3, ID, {"1": {}}, {}, ["3"]]], "queue_pending": []}
    opening = conversation.send(reply(queued))
    assert opening.held is not None
    with pytest.raises(StopIteration) as ended:
        conversation.send(HttpReply(status=code, body=b"no"))
    assert isinstance(ended.value.value, Trouble)


def test_an_address_with_tls_is_listened_to_with_tls() -> None:
    """https:// becomes wss://, and nothing else of the address changes."""
    listener = Listener(length=1, task=None)
    it = comfy()
    opening = listener.on(replace(it.adapter.get("/ws"), url="https://http.example/http/ws"))
    assert opening.url == "wss://http.example/http/ws"
