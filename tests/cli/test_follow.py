"""
Following tasks: every end is seen, whichever way the news comes, and an uncertain one is not waited for without end.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from vidrelay.cli.live import UNCERTAIN_SECONDS, Lines, follow
from vidrelay.client.views import TaskEvent, TaskView
from vidrelay.core.task import RemoteState, State
from vidrelay.testing.clock import FakeClock

TASK = TaskView(id="t1", state=State.QUEUED, account="main", provider="openai")


class Client:
    """
    A relay that says what the test lets it say.
    """

    def __init__(self) -> None:
        self.told: asyncio.Queue[TaskEvent] = asyncio.Queue()
        self.now: dict[str, TaskView] = {}
        self.changed = asyncio.Event()

    async def events(self, *, task_id: str | None = None, after: str | None = None) -> AsyncIterator[TaskEvent]:
        while True:
            yield await self.told.get()

    async def task(self, task_id: str) -> TaskView:
        return self.now[task_id]

    async def wait(self, task_id: str, *, seconds: int, seen: State | None = None) -> TaskView:
        await self.changed.wait()
        return self.now[task_id]


def tell(client: Client, **change) -> TaskView:
    task = replace(TASK, **change)
    client.told.put_nowait(TaskEvent(task=task, id="1"))
    return task


async def test_the_end_comes_with_an_event() -> None:
    """
    Each state that an event tells is shown in turn, and the final one ends the following.
    """
    client, seen = Client(), []
    tell(client, state=State.RUNNING)
    tell(client, state=State.DONE)
    found = await follow(client, [TASK], lambda task: seen.append(task.state), clock=FakeClock())
    assert found["t1"].state is State.DONE
    assert seen == [State.QUEUED, State.RUNNING, State.DONE]


async def test_an_end_between_two_streams_is_seen_all_the_same() -> None:
    """
    A task that ended while no event came is found by the call that waits for it.
    """
    client = Client()
    client.now["t1"] = replace(TASK, state=State.FAILED)
    client.changed.set()
    found = await follow(client, [TASK], lambda _: None, clock=FakeClock())
    assert found["t1"].state is State.FAILED


async def test_of_many_an_unseen_end_is_looked_for() -> None:
    """
    With several tasks, those of which no event tells are asked for after some seconds.
    """
    client, clock = Client(), FakeClock()
    other = replace(TASK, id="t2")
    client.now = {"t1": replace(TASK, state=State.DONE), "t2": replace(other, state=State.DONE)}
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow(client, [TASK, other], lambda _: None, clock=clock))
        await clock.advance(6)
    assert {task.state for task in following.result().values()} == {State.DONE}


async def test_a_task_that_has_ended_is_not_waited_for() -> None:
    """
    Following a task that is done already returns at once, with no news from the relay.
    """
    found = await follow(Client(), [replace(TASK, state=State.DONE)], lambda _: None, clock=FakeClock())
    assert found["t1"].ended


async def test_an_uncertain_task_is_given_up_after_its_first_look_ups() -> None:
    """
    An uncertain task is waited for as long as its first look-ups take, and then returned as it is.
    """
    client, clock = Client(), FakeClock()
    tell(client, state=State.UNCERTAIN)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow(client, [TASK], lambda _: None, clock=clock))
        await clock.advance(UNCERTAIN_SECONDS - 1)
        assert not following.done()
        await clock.advance(2)
    assert following.result()["t1"].state is State.UNCERTAIN


def test_plain_lines_tell_each_stage_once(capsys) -> None:
    """
    Off a terminal a line is written for each new stage and each further quarter of the work, no more.
    """
    lines = Lines(named=False)
    running = replace(TASK, state=State.RUNNING, remote_state=RemoteState.WORKING)
    for progress in (None, 0.1, 0.2, 0.3, 0.31, 0.6):
        lines.show(replace(running, progress=progress))
    lines.show(replace(running, state=State.DONE))
    assert capsys.readouterr().err.splitlines() == ["generating", "generating, 30 %", "generating, 60 %"]
