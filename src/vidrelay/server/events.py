"""
Server-sent events: what happens to tasks, as it happens, resumable after a broken connection.

A stream begins to listen before it reads the log or the live tasks, so nothing falls between the two. An event's id is
that of its entry in the log; progress inside a state has none, because it is not stored.
"""

import asyncio
import logging
import re
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.clock import Clock
from vidrelay.core.errors import VidrelayError
from vidrelay.core.task import Task
from vidrelay.scheduler.face import Announcement, RelayFace
from vidrelay.server.answers import DATA_HEADERS, Answer, RawHeaders, encode
from vidrelay.server.api import TaskCalls, task_id
from vidrelay.server.dispatch import BY_LOGIN, Call
from vidrelay.server.running import hang_up, run_until

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
LOG_PAGE = 500
BREATH_EVENTS = 50

STREAM_HEADERS: RawHeaders = ((b"content-type", b"text/event-stream; charset=utf-8"), *DATA_HEADERS)

_EVENT_ID = re.compile(r"[0-9]{1,18}")


class EventCalls:
    """
    Answers the calls for event streams.
    """

    def __init__(self, relay: RelayFace, tasks: TaskCalls, *, clock: Clock, stopping: asyncio.Event) -> None:
        """
        `tasks` writes a task as its other calls do; streams end when `stopping` is set.
        """
        self._relay = relay
        self._tasks = tasks
        self._clock = clock
        self._stopping = stopping

    async def all_tasks(self, call: Call) -> ASGIApp:
        """
        Every event of every task.
        """
        return self._stream(call.header(b"last-event-id"), only=None)

    async def one_task(self, call: Call) -> ASGIApp:
        """
        One task's events, to its final one; 204 when the client has had that already, which ends its reconnecting.
        """
        name, last = task_id(call), call.header(b"last-event-id")
        task = await self._relay.get(name)
        seen = known_id(last)
        if task.ended and seen is not None and await self._has_all(task, seen):
            return Answer(b"", status=204, headers=DATA_HEADERS)
        return self._stream(last, only=name)

    async def _has_all(self, task: Task, seen: int) -> bool:
        """
        Whether that id is of the ended task's final event, or of a later one; not if it was never given out.
        """
        if seen <= task.event_id:
            return seen == task.event_id
        return await self._relay.log(after=seen, limit=1, task_id=task.id) is not None

    def _stream(self, last_event_id: str | None, *, only: str | None) -> ASGIApp:
        return _Stream(
            self._relay,
            self._tasks,
            clock=self._clock,
            stopping=self._stopping,
            last_event_id=last_event_id,
            only=only,
        )


def known_id(header: str | None) -> int | None:
    """
    A `Last-Event-ID` as a number; None where it is none of ours.
    """
    return int(header) if header is not None and _EVENT_ID.fullmatch(header) else None


class _Stream:
    """
    One client's stream: of every task, or of one.
    """

    def __init__(
        self,
        relay: RelayFace,
        tasks: TaskCalls,
        *,
        clock: Clock,
        stopping: asyncio.Event,
        last_event_id: str | None,
        only: str | None,
    ) -> None:
        self._relay = relay
        self._tasks = tasks
        self._clock = clock
        self._stopping = stopping
        self._last_event_id = last_event_id
        self._only = only
        self._sent_up_to = -1
        self._turn = asyncio.Lock()  # guards the order of whole events and heartbeats on the connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Stream until the task ends, the client leaves, it falls too far behind, its login ends, or the relay stops.
        """
        await send({"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)})
        if scope["method"] != "HEAD":
            try:
                enders = [hang_up(receive), self._stopping.wait(), self._beat(send)]
                if (login := scope.get(BY_LOGIN)) is not None:
                    enders += [login.over.wait(), self._clock.sleep(login.until - self._clock.monotonic())]
                await run_until(self._write(send), *enders)
            except VidrelayError as exc:
                # The client connects again and goes on where it was.
                logger.warning("events.cut code=%s", exc.code)
        await send({"type": "http.response.body", "body": b""})

    async def _write(self, send: Send) -> None:
        with self._relay.watch() as watching:
            if await self._catch_up(send):
                return
            announced_early = watching.qsize()
            while (told := await watching.get()) is not None:
                announced_early -= 1
                if self._only not in (None, told.task.id) or self._is_old(told, early=announced_early >= 0):
                    continue
                await self._put(send, _frame(self._tasks.view(told.task), told.event_id))
                if self._is_final(told.task):
                    return

    def _is_old(self, told: Announcement, *, early: bool) -> bool:
        """
        Whether the log has said this, or something newer: progress has no place in the log, so what was announced while
        the log was being read (`early`) may be older than what it said.
        """
        return early if told.event_id is None else told.event_id <= self._sent_up_to

    async def _catch_up(self, send: Send) -> bool:
        """
        Send what the client has missed, or all that is live; returns whether that was all there will be.
        """
        if self._last_event_id is not None:
            after = known_id(self._last_event_id)
            page = None if after is None else await self._read_log(after)
            if page is not None:
                return await self._replay(send, page)
            await self._put(send, b"event: reset\ndata: {}\n\n")
        # By ascending id, so that a client that loses the connection half-way misses nothing.
        tasks = self._relay.live() if self._only is None else [await self._relay.get(self._only)]
        return await self._send_logged(send, sorted(tasks, key=lambda task: task.event_id))

    async def _replay(self, send: Send, page: list[Task]) -> bool:
        while page:
            if await self._send_logged(send, page):
                return True
            page = await self._read_log(self._sent_up_to) or []
        return self._only is not None and (await self._relay.get(self._only)).ended

    async def _read_log(self, after: int) -> list[Task] | None:
        self._sent_up_to = after
        return await self._relay.log(after=after, limit=LOG_PAGE, task_id=self._only)

    async def _send_logged(self, send: Send, tasks: list[Task]) -> bool:
        """
        Send tasks as they stood at their log entries; returns whether one was the final one.
        """
        for count, task in enumerate(tasks):
            await self._put(send, _frame(self._tasks.view(task), task.event_id))
            self._sent_up_to = task.event_id
            if self._is_final(task):
                return True
            if count % BREATH_EVENTS == BREATH_EVENTS - 1:
                # A send that does not have to wait does not let others run.
                await self._clock.sleep(0)
        return False

    def _is_final(self, task: Task) -> bool:
        return self._only is not None and task.ended

    async def _put(self, send: Send, frame: bytes) -> None:
        async with self._turn:
            await send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _beat(self, send: Send) -> None:
        """
        Say now and then that the connection is alive.
        """
        while True:
            await self._clock.sleep(HEARTBEAT_SECONDS)
            await self._put(send, b": still here\n\n")


def _frame(task: dict[str, Any], event_id: int | None) -> bytes:
    told = b"" if event_id is None else b"id: %d\n" % event_id
    return b"event: task\n%bdata: %b\n\n" % (told, encode(task))
