"""
The websockets of doors: what happens to an account's tasks, told in the provider's words as it happens.

A door turns each change into messages; here it is settled who hears of which task, and how many may listen. What a
client says is read and passed over.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.types import Receive, Scope, Send

from vidrelay.core.clock import Clock
from vidrelay.core.door import DoorCall, Hearing, NewTask, View
from vidrelay.core.task import JsonObject, Task
from vidrelay.scheduler.face import Announcement, RelayFace
from vidrelay.server.answers import encode
from vidrelay.server.errors import Refusal, problem_answer
from vidrelay.server.running import run_until

MAX_SOCKETS = 32
MAX_KNOWN = 10_000
"""So many ids that clients chose, and tasks with their listeners, are held; then the oldest is forgotten."""
MAX_NAMES = 100
"""So many listeners of one task."""
MAX_WAITING = 1000
"""So many changes may wait for one client; then it is cut off, as one that fell behind."""
IDLE_SECONDS = 600.0
"""So long after the last change a client is cut off if no task of the account is live. It may come in again at once."""

GOING_AWAY = 1001
"""What a client is told where the relay ends it (RFC 6455, section 7.4.1)."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _News:
    """
    A task as it stands. `anew`: it was just asked for; `moved`: it has come to another state.
    """

    task: Task
    anew: bool = False
    moved: bool = False


@dataclass(slots=True, eq=False)
class _Ear:
    """
    One client that listens: to which account, and what waits to be told to it; None ends it.
    """

    account: str
    hearing: Hearing
    used_at: float
    waiting: asyncio.Queue[_News | None] = field(default_factory=asyncio.Queue)

    def put(self, news: _News) -> None:
        if self.waiting.qsize() <= MAX_WAITING:
            self.waiting.put_nowait(news if self.waiting.qsize() < MAX_WAITING else None)


class Sockets:
    """
    Everyone who listens, and who asked for which task under which id.
    """

    def __init__(
        self, relay: RelayFace, *, clock: Clock, stopping: asyncio.Event, view: Callable[[Task, DoorCall], View]
    ) -> None:
        """
        `view` shows a task to a door; everyone is let go when `stopping` is set.
        """
        self._relay = relay
        self._clock = clock
        self._stopping = stopping
        self._view = view
        self._ears: set[_Ear] = set()
        self._chosen: dict[tuple[str, str], str] = {}
        self._listeners: dict[str, dict[str | None, str | None]] = {}

    def meant(self, account: str, task_id: str) -> str:
        """
        The id of the task that a client means.
        """
        return self._chosen.get((account, task_id), task_id)

    async def asked(self, account: str, new: NewTask, task: Task) -> None:
        """
        Remember who asked for the task, and tell them at once how it stands: it may have ended long ago.
        """
        if new.known_as is not None:
            _remember(self._chosen, (account, new.known_as), task.id, most=MAX_KNOWN)
        if new.known_as is not None or new.listener is not None:
            names = self._listeners.get(task.id, {})
            _remember(names, new.listener, new.known_as, most=MAX_NAMES)
            _remember(self._listeners, task.id, names, most=MAX_KNOWN)
        ears = [ear for ear in self._ears if ear.account == account and new.listener in (None, ear.hearing.name)]
        if ears:
            # It may have moved on, which was announced before it was known who listens.
            now = await self._relay.get(task.id)
            for ear in ears:
                ear.put(_News(now, anew=True))

    async def listen(
        self, scope: Scope, receive: Receive, send: Send, *, account: str, hearing: Hearing, seen: DoorCall
    ) -> None:
        """
        Serve one client until it leaves, falls behind, or there has been nothing to hear for long.
        """
        refusal = None
        if self._stopping.is_set():
            refusal = Refusal("shutting_down", "The relay is stopping; come again in a moment.")
        elif len(self._ears) >= MAX_SOCKETS:
            refusal = Refusal("too_many_connections", f"At most {MAX_SOCKETS} clients may listen at once.")
        if refusal is not None:
            await problem_answer(refusal)(scope, receive, send)
            return
        ear = _Ear(account, hearing, self._clock.monotonic())
        self._ears.add(ear)
        try:
            with self._relay.watch() as watching:
                await receive()
                await send({"type": "websocket.accept"})
                enders = (_pass_on(watching, ear), _leave(receive), self._stopping.wait(), self._fall_idle(ear))
                await run_until(self._tell(ear, seen, send), *enders)
            await send({"type": "websocket.close", "code": GOING_AWAY})
        except OSError:
            # So the server says that the client has left.
            return
        finally:
            self._ears.discard(ear)

    async def _tell(self, ear: _Ear, seen: DoorCall, send: Send) -> None:
        live, name = self._live(ear.account), ear.hearing.name
        await _say(send, ear.hearing.greet([self._view(task, seen) for task in live]))
        for task in live:
            if name in self._listeners.get(task.id, {}):
                ear.put(_News(task))
        while (news := await ear.waiting.get()) is not None:
            # One that nobody asked for through this door, or before a restart, is everybody's.
            names = self._listeners.get(news.task.id, {None: None})
            messages: list[JsonObject] = []
            if name in names or None in names:
                known_as = names.get(name, names.get(None))
                messages += ear.hearing.tell(self._view(news.task, seen), known_as=known_as, anew=news.anew)
            if news.moved:
                messages += ear.hearing.count(len(self._live(ear.account)))
            await _say(send, messages)
            ear.used_at = self._clock.monotonic()

    def _live(self, account: str) -> list[Task]:
        return [task for task in self._relay.live() if task.account == account]

    async def _fall_idle(self, ear: _Ear) -> None:
        while (left := ear.used_at + IDLE_SECONDS - self._clock.monotonic()) > 0 or self._live(ear.account):
            await self._clock.sleep(max(left, 1.0))


async def _pass_on(watching: asyncio.Queue[Announcement | None], ear: _Ear) -> None:
    """
    Put what is announced of the account's tasks before the client; return where it fell behind.
    """
    while (told := await watching.get()) is not None:
        if told.task.account == ear.account:
            ear.put(_News(told.task, moved=told.event_id is not None))


async def _leave(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def _say(send: Send, messages: Sequence[JsonObject]) -> None:
    for message in messages:
        await send({"type": "websocket.send", "text": encode(message).decode()})


def _remember(known: dict[K, V], key: K, value: V, *, most: int) -> None:
    """
    As the newest; the oldest is forgotten where there are too many.
    """
    known.pop(key, None)
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]
