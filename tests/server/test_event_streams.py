"""
Event streams: nothing is missed, nothing is held for ever.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from loopback import Served

from vidrelay.core.lifecycle import Accepted, CancelRequested, Started
from vidrelay.server.events import HEARTBEAT_SECONDS


@dataclass
class Told:
    """
    One event or comment of a stream.
    """

    event: str | None = None
    id: int | None = None
    data: dict = field(default_factory=dict)
    comment: str | None = None


class Stream:
    """
    A client of an event stream.
    """

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def next(self) -> Told:
        told = Told()
        async with asyncio.timeout(5):
            async for line in self._lines:
                name, _, value = line.partition(":")
                match name:
                    case "" if line:
                        told.comment = value.strip()
                    case "":
                        return told
                    case "event":
                        told.event = value.strip()
                    case "id":
                        told.id = int(value)
                    case "data":
                        told.data = json.loads(value)
        raise EOFError

    async def ended(self) -> bool:
        try:
            await self.next()
        except EOFError:
            return True
        return False


@asynccontextmanager
async def stream(served: Served, path: str = "/events", last: str | None = None) -> AsyncIterator[Stream]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with served.client.stream("GET", path, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer.aiter_lines())


async def test_a_new_stream_starts_with_every_unended_task(served):
    """
    A stream begins with the tasks that have not ended, each with the id of its last log entry.
    """
    served.relay.make("one")
    served.relay.make("two")
    served.relay.finish("t1")
    served.relay.make("three")
    async with stream(served) as events:
        told = [await events.next() for _ in range(2)]
    assert [(each.event, each.id, each.data["taskId"]) for each in told] == [("task", 2, "t2"), ("task", 7, "t3")]


async def test_the_first_tasks_come_by_ascending_id_so_that_a_cut_loses_nothing(served):
    """
    The first events are sorted by id, whichever task was made first.
    """
    served.relay.make("one")
    served.relay.make("two")
    served.relay.move("t1", Started(submission_key="k"))
    async with stream(served) as events:
        told = [await events.next() for _ in range(2)]
    assert [each.id for each in told] == [2, 3]


async def test_a_change_is_told_with_the_id_of_its_log_entry(served):
    """
    A change while the stream is open comes with its id and the task as it is then.
    """
    async with stream(served) as events:
        await listening(served)
        served.relay.make()
        told = await events.next()
    assert (told.id, told.data["state"], told.data["deduped"]) == (1, "queued", False)


async def test_progress_carries_no_id(served):
    """
    News inside a state is an event without an id, so that no stream resumes after it.
    """
    served.relay.make()
    async with stream(served) as events:
        await events.next()
        await listening(served)
        served.relay.tell("t1")
        told = await events.next()
    assert (told.event, told.id, told.data["taskId"]) == ("task", None, "t1")


async def test_a_stream_goes_on_after_the_last_event_it_had(served):
    """
    After `Last-Event-ID` come the missed events in turn and then new ones, none twice.
    """
    served.relay.make("one")
    served.relay.move("t1", Started(submission_key="k"), Accepted(remote_id="r"))
    async with stream(served, last="1") as events:
        told = [await events.next() for _ in range(2)]
        await listening(served)
        served.relay.make("two")
        told.append(await events.next())
    assert [(each.id, each.data["state"]) for each in told] == [(2, "submitting"), (3, "running"), (4, "queued")]


async def test_a_long_log_is_replayed_whole(served):
    """
    More than a thousand missed events all come, in their order.
    """
    for number in range(1203):
        served.relay.make(f"prompt {number}")
    async with stream(served, last="1") as events:
        told = [(await events.next()).id for _ in range(1202)]
    assert told == list(range(2, 1204))


@pytest.mark.parametrize("last", ["99", "x", "-1", "1.5", "", "9" * 30])
async def test_an_unknown_last_event_gets_a_reset_and_then_the_live_tasks(served, last):
    """
    An id that is none of ours is answered by a reset, and the live tasks follow.
    """
    served.relay.make()
    async with stream(served, last=last) as events:
        told = [await events.next(), await events.next()]
    assert [each.event for each in told] == ["reset", "task"]


async def test_a_last_event_id_in_the_address_is_not_heard(served):
    """
    An id in the query is passed over: no reset and no replay comes of it.
    """
    served.relay.make()
    async with stream(served, "/events?Last-Event-ID=99&lastEventId=99") as events:
        assert (await events.next()).event == "task"


async def test_one_tasks_stream_tells_that_task_alone_and_ends_with_it(served):
    """
    Changes of other tasks are left out, and the stream ends after the final one.
    """
    served.relay.make("one")
    served.relay.make("two")
    async with stream(served, "/task/t1/events") as events:
        await events.next()
        await listening(served)
        served.relay.move("t2", CancelRequested())
        served.relay.move("t1", CancelRequested())
        told = await events.next()
        assert (told.data["taskId"], told.data["state"]) == ("t1", "cancelled")
        assert await events.ended()


async def test_an_ended_tasks_stream_is_its_final_event(served):
    """
    The stream of an ended task tells its final state and ends.
    """
    served.relay.make()
    served.relay.finish("t1")
    async with stream(served, "/task/t1/events") as events:
        assert (await events.next()).data["state"] == "done"
        assert await events.ended()


async def test_who_had_the_final_event_is_told_not_to_come_back(served):
    """
    A 204 answers a client whose last event was the task's final one.
    """
    served.relay.make()
    served.relay.finish("t1")
    answer = await served.client.get("/task/t1/events", headers={"Last-Event-ID": "5"})
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_later_id_that_was_given_out_is_as_good(served):
    """
    Who has had a later event of another task has had this one's last, too.
    """
    served.relay.make()
    served.relay.finish("t1")
    served.relay.make()
    assert (await served.client.get("/task/t1/events", headers={"Last-Event-ID": "6"})).status_code == 204


@pytest.mark.parametrize("last", ["7", "99999999"])
async def test_an_id_that_was_never_given_out_is_unknown_to_an_ended_task_too(served, last):
    """
    Above the newest event of all there is nothing to have had: a reset and the task, not the 204 that means all is had.
    """
    served.relay.make()
    served.relay.finish("t1")
    served.relay.make()
    async with stream(served, "/task/t1/events", last=last) as events:
        assert [(await events.next()).event for _ in range(2)] == ["reset", "task"]
        assert await events.ended()


async def test_one_tasks_stream_is_replayed_to_its_end(served):
    """
    After an earlier id the rest of an ended task's events come, and the stream ends.
    """
    served.relay.make()
    served.relay.finish("t1")
    async with stream(served, "/task/t1/events", last="3") as events:
        assert [(await events.next()).data["state"] for _ in range(2)] == ["downloading", "done"]
        assert await events.ended()


async def test_an_unknown_tasks_stream_is_404(served):
    """
    There is no event stream of a task that does not exist.
    """
    assert (await served.client.get("/task/t9/events")).status_code == 404


async def test_a_quiet_stream_says_now_and_then_that_it_is_alive(served):
    """
    A comment comes after each heartbeat's time without news, and not sooner.
    """
    async with stream(served) as events:
        await listening(served)
        await served.clock.advance(HEARTBEAT_SECONDS)
        assert (await events.next()).comment is not None
        await served.clock.advance(HEARTBEAT_SECONDS - 1)
        served.relay.make()
        assert (await events.next()).event == "task"


@pytest.mark.parametrize("seconds", [-86_400.0, 10 * 365 * 86_400.0])
async def test_setting_the_clock_changes_nothing_for_a_stream(served, seconds):
    """
    Heartbeats come by the monotonic clock: a jump of the wall clock brings none, and keeps none back.
    """
    async with stream(served) as events:
        await listening(served)
        served.clock.jump(seconds)
        served.relay.make()
        assert (await events.next()).event == "task"
        await served.clock.advance(HEARTBEAT_SECONDS)
        assert (await events.next()).comment is not None


async def test_streams_end_when_the_relay_stops(served):
    """
    An open stream is ended properly once the relay is told to stop.
    """
    async with stream(served) as events:
        await listening(served)
        served.stop.set()
        assert await events.ended()


async def test_a_watcher_that_fell_behind_is_cut_off(served):
    """
    A stream whose queue overflowed gives what was in it and ends.
    """
    async with stream(served) as events:
        await listening(served)
        for number in range(served.relay.queue_length + 50):
            served.relay.make(f"prompt {number}")
        for _ in range(served.relay.queue_length):
            await events.next()
        assert await events.ended()


async def test_a_reader_that_stands_still_holds_nothing_but_its_connection(served):
    """
    A client that reads nothing stops being watched for, and others are answered.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
    writer.write((served.head("GET /events HTTP/1.1") + "\r\n").encode())
    await listening(served)
    for number in range(3000):
        served.relay.make("x" * 20_000 + str(number))
        await asyncio.sleep(0)
        if not served.relay.watchers:
            break
    assert not served.relay.watchers
    assert (await served.client.get("/health")).status_code == 200
    writer.transport.abort()
    del reader


async def test_a_client_that_leaves_stops_being_watched_for(served):
    """
    When a client closes its stream, the relay's watch ends.
    """
    async with stream(served):
        await listening(served)
    async with asyncio.timeout(5):
        while served.relay.watchers:  # noqa: ASYNC110 the watcher's end has no signal
            await asyncio.sleep(0.01)


async def test_a_client_that_leaves_with_a_call_waiting_behind_its_stream_is_not_watched_for_either(served):
    """
    A pipelined call behind a stream does not hide that its client left.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write((served.head("GET /events HTTP/1.1") + "\r\n" + served.head() + "\r\n").encode())
    await listening(served)
    await reader.readline()
    writer.transport.abort()
    async with asyncio.timeout(5):
        while served.relay.watchers:
            # Nothing is read meanwhile, so it is a heartbeat that finds nobody there.
            await served.clock.advance(HEARTBEAT_SECONDS)
            await asyncio.sleep(0.01)


async def test_head_of_a_stream_ends_at_once(served):
    """
    HEAD of a stream gets its headers, and no stream is opened.
    """
    answer = await served.client.head("/events")
    assert answer.headers["content-type"].startswith("text/event-stream")


async def listening(served: Served) -> None:
    """
    Wait until the stream watches the relay.
    """
    async with asyncio.timeout(5):
        while not served.relay.watchers:  # noqa: ASYNC110 nor has its beginning
            await asyncio.sleep(0.01)
