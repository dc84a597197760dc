"""
A status read that was answered before is answered again without asking the door, for as long as nothing has changed.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_relay import LOST, FakeRelay
from loopback import Served, serving

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, View
from vidrelay.core.lifecycle import Accepted, CancelRequested, Started
from vidrelay.core.task import Problem, Standing
from vidrelay.providers.doorway import cancel, look
from vidrelay.scheduler.face import DoorWay
from vidrelay.server.answers import Answer
from vidrelay.server.retold import MAX_ANSWER_BYTES, MAX_ANSWERS, Retold

RUNNING = (Started(submission_key="k"), Accepted(remote_id="r1"))


class CountingDoor:
    """Numbers its answers, so that one which is given again shows."""

    def __init__(self) -> None:
        self.count = 0
        self.routes = (
            DoorRoute(method="GET", path="/held/{id}", handler=self.held),
            DoorRoute(method="GET", path="/pair/{id}", handler=self.pair),
            DoorRoute(method="GET", path="/stop/{id}", handler=self.stop),
            DoorRoute(method="GET", path="/{id}", handler=self.show),
            DoorRoute(method="POST", path="/{id}", handler=self.show),
        )

    def show(self, call: DoorCall) -> Answering:
        """One look."""
        view = yield from look(call.params["id"])
        self.count += 1
        return JsonReply(value={"number": self.count, "state": view.task.state, "progress": view.standing.progress})

    def held(self, call: DoorCall) -> Answering:
        """A look that waits."""
        view = yield from look(call.params["id"], wait=0.01)
        self.count += 1
        return JsonReply(value={"number": self.count, "state": view.task.state})

    def pair(self, call: DoorCall) -> Answering:
        """Two tasks in one answer."""
        first = yield from look(call.query["other"])
        view = yield from look(call.params["id"])
        self.count += 1
        return JsonReply(value={"number": self.count, "states": [first.task.state, view.task.state]})

    def stop(self, call: DoorCall) -> Answering:
        """A GET that does something."""
        yield from cancel(call.params["id"])
        self.count += 1
        return JsonReply(value={"number": self.count})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """Say the code."""
        return JsonReply(status=problem.status, value={"code": problem.code, "path": call.path})


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """A relay with that door for two accounts, and a task of the first that runs."""
    relay = FakeRelay(tmp_path)
    relay.ways = {"up": DoorWay(account="main", door=CountingDoor()), "two": DoorWay(account="2", door=CountingDoor())}
    relay.move(relay.make().id, *RUNNING)
    async with serving(relay) as served:
        yield served


async def number(door: Served, path: str = "/up/t1", **more: object) -> int:
    """Which of the door's answers that is."""
    answer = await door.client.get(path, **more)
    told: int = answer.json()["number"]
    return told


async def test_the_same_call_is_answered_by_the_same_answer_while_nothing_changes(door):
    """Status, headers and bytes."""
    first, again = [await door.client.get("/up/t1") for _ in range(2)]
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.raw == first.headers.raw
    assert again.json()["number"] == 1


async def test_what_changes_is_seen_by_the_next_call(door):
    """A new record, a new progress: neither is ever hidden by an earlier answer."""
    assert await number(door) == 1
    door.relay.standings["t1"] = Standing(progress=0.5)
    assert (await door.client.get("/up/t1")).json() == {"number": 2, "state": "running", "progress": 0.5}
    door.relay.move("t1", CancelRequested())
    assert await number(door) == 3
    door.relay.standings["t1"] = Standing(progress=0.6)
    assert await number(door) == 4
    assert await number(door) == 4


async def test_another_path_query_or_header_is_another_call(door):
    """A door may answer by any of them."""
    calls = [("/up/t1", {}), ("/up/t1?logs=1", {}), ("/up/t1?logs=0", {}), ("/up/t1", {"accept": "text/plain"})]
    assert [await number(door, path, headers=headers) for path, headers in calls] == [1, 2, 3, 4]
    assert (await door.client.post("/up/t1", json={})).json()["number"] == 5
    assert [await number(door, path, headers=headers) for path, headers in calls] == [1, 2, 3, 4]
    assert (await door.client.get("/two/t1")).status_code == 404


@pytest.mark.parametrize("state", ["done", "uncertain"])
async def test_what_can_change_without_a_new_record_is_told_anew(door, state):
    """The files of a task that is done may go, and an uncertain one grows stale."""
    task = door.relay.make("other")
    if state == "done":
        door.relay.finish(task.id)
    else:
        door.relay.move(task.id, Started(submission_key="k"), LOST)
    assert [await number(door, f"/up/{task.id}") for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("path", ["/up/held/t1", "/up/pair/t1?other=t2", "/up/stop/t1"])
async def test_a_call_that_wants_more_than_one_look_is_asked_of_the_door(door, path):
    """One that waits, one that shows two tasks, one that does something."""
    door.relay.move(door.relay.make("other").id, *RUNNING)
    assert [await number(door, path) for _ in range(2)] == [1, 2]


async def test_a_call_for_a_task_that_is_there_no_more_is_an_error(door):
    """As it would be without an earlier answer."""
    assert await number(door) == 1
    del door.relay.tasks["t1"]
    assert (await door.client.get("/up/t1")).status_code == 404


async def test_no_more_answers_are_held_than_there_is_room_for(tmp_path):
    """The oldest goes first."""
    relay = FakeRelay(tmp_path)
    view = View(task=relay.make(), standing=Standing())
    retold, answer = Retold(relay), Answer(b"{}", headers=())

    def scope(number: int) -> dict[str, object]:
        path = f"/up/{number}".encode()
        return {"scheme": "http", "method": "GET", "raw_path": path, "query_string": b"", "headers": []}

    for number in range(MAX_ANSWERS + 1):
        retold.keep(scope(number), view, answer)
    assert [await retold.find(scope(number)) for number in (0, 1, MAX_ANSWERS)] == [None, answer, answer]
    retold.keep(scope(-1), view, Answer(bytes(MAX_ANSWER_BYTES + 1), headers=()))
    assert await retold.find(scope(-1)) is None


async def test_without_the_token_there_is_no_answer(door):
    """The gate stands before it."""
    assert await number(door) == 1
    answer = await door.client.get("/up/t1", headers={"X-Local-Token": "vrl_wrong"})
    assert answer.status_code == 403
