"""
The unended tasks in memory, kept in step with the store by its commits, and everybody who listens to them.

The store tells each commit in its order (`note`), so what is announced here is on disk already.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from vidrelay.core.task import State, Task
from vidrelay.scheduler.face import Announcement
from vidrelay.scheduler.line import Line, WindowKey, window_key
from vidrelay.scheduler.track import Track

KEPT_ENDED = 2_000
"""How many ended tasks stay in memory, so that asking for a fresh result costs no query."""

TOLD_IN_LINE = 50

QUEUE_LENGTH = 1_000
"""How far a listener may fall behind before its stream is closed."""


class Roster:
    """
    Live tasks by id, oldest first, with their tracks, their line, and the listeners to their changes.
    """

    def __init__(self) -> None:
        self.line = Line()
        self._tasks: dict[str, Task] = {}
        self._tracks: dict[str, Track] = {}
        self._active: dict[str, Track] = {}
        self._outlived: dict[str, Task] = {}
        self._lost: dict[str, Task] = {}
        self._ended: OrderedDict[str, Task] = OrderedDict()
        self._holding: defaultdict[WindowKey, set[str]] = defaultdict(set)
        # Told in the order of their coming, which a set would not keep.
        self._waiters: defaultdict[str, dict[asyncio.Event, None]] = defaultdict(dict)
        self._listeners: dict[asyncio.Queue[Announcement | None], None] = {}

    def note(self, task: Task) -> None:
        """
        Take in a task as it was just committed, and tell whoever listens.
        """
        self.load(task)
        for waiter in self._waiters.get(task.id, ()):
            waiter.set()
        self._tell(Announcement(task=task, event_id=task.event_id))

    def load(self, task: Task) -> None:
        """
        Take in a task without telling anybody.
        """
        self.line.note(task)
        holding = self._holding[window_key(task)]
        if task.state in (State.SUBMITTING, State.RUNNING):
            holding.add(task.id)
        else:
            holding.discard(task.id)
        # One that was given up is counted until its place is given back: its create may have been carried out.
        given_up = task.ended and task.remote_id is None and task.place_until is not None
        if task.state is State.UNCERTAIN or given_up:
            self._lost[task.id] = task
        else:
            self._lost.pop(task.id, None)
        if task.ended:
            self._tasks.pop(task.id, None)
            self._end(task)
            self._ended[task.id] = task
            self._ended.move_to_end(task.id)
            if len(self._ended) > KEPT_ENDED:
                self._ended.popitem(last=False)
        else:
            self._tasks[task.id] = task
            track = self._tracks.setdefault(task.id, Track())
            if task.state is State.QUEUED:
                self._active.pop(task.id, None)
            else:
                self._active[task.id] = track

    def _end(self, task: Task) -> None:
        """
        An ended task is looked at no more, unless its remote job may run on in its place.
        """
        if task.place_until is None or task.remote_id is None:
            self._tracks.pop(task.id, None)
            self._active.pop(task.id, None)
            self._outlived.pop(task.id, None)
        else:
            self._active[task.id] = self._tracks.setdefault(task.id, Track())
            self._outlived[task.id] = task

    def progress(self, task: Task) -> None:
        """
        Tell that something moved inside a state, which is not stored.
        """
        self._tell(Announcement(task=task, event_id=None))

    def moved(self, key: WindowKey) -> None:
        """
        Tell that a window's line has moved up, or stands still for another reason; those far back are not told of each.
        """
        if self._listeners:
            for task_id in self.line.first(key, TOLD_IN_LINE):
                self.progress(self._tasks[task_id])

    def find(self, task_id: str) -> Task | None:
        """
        A live or lately ended task.
        """
        return self._tasks.get(task_id) or self._ended.get(task_id)

    def live(self) -> list[Task]:
        """
        Every unended task, oldest first.
        """
        return sorted(self._tasks.values(), key=lambda task: task.seq)

    def get_driven(self, task_id: str) -> Task | None:
        """
        The task if it is unended, or its remote job may run on.
        """
        return self._tasks.get(task_id) or self._outlived.get(task_id)

    def get_live(self, task_id: str) -> Task | None:
        """
        The task if it is unended.
        """
        return self._tasks.get(task_id)

    def track(self, task_id: str) -> Track | None:
        """
        The volatile side of a live task.
        """
        return self._tracks.get(task_id)

    def held(self, key: WindowKey, now: datetime) -> list[Task]:
        """
        The tasks that hold a place in that window by time alone: lost creates, and jobs that outlive their tasks.
        """
        held = (*self._lost.values(), *self._outlived.values())
        return [task for task in held if window_key(task) == key and task.holds_place(now)]

    def elsewhere(self, key: WindowKey, now: datetime, belongs: Callable[[Task], bool]) -> int:
        """
        How many places of the account's other windows are taken by tasks for which `belongs` holds.
        """
        account, window = key
        placed = [ids for (name, other), ids in self._holding.items() if name == account and other != window]
        live = [self._tasks[task_id] for ids in placed for task_id in ids]
        held = [
            task
            for task in (*self._lost.values(), *self._outlived.values())
            if task.account == account and task.window != window and task.holds_place(now)
        ]
        return sum(map(belongs, (*live, *held)))

    def active(self) -> list[tuple[str, Track]]:
        """
        The tasks that do not just wait in line, nor have ended here and there, with their volatile sides.
        """
        return list(self._active.items())

    def holding(self, key: WindowKey) -> frozenset[str]:
        """
        The live tasks that are submitting or running in that window: never more than the store counts.
        """
        return frozenset(self._holding.get(key, ()))

    @contextmanager
    def waiting(self, task_id: str) -> Iterator[asyncio.Event]:
        """
        An event that is set when the task is next committed.
        """
        event = asyncio.Event()
        self._waiters[task_id][event] = None
        try:
            yield event
        finally:
            self._waiters[task_id].pop(event, None)
            if not self._waiters[task_id]:
                del self._waiters[task_id]

    @contextmanager
    def watch(self) -> Iterator[asyncio.Queue[Announcement | None]]:
        """
        A queue of everything that is told from now on; None in it means that the listener fell behind and is cut off.
        """
        queue: asyncio.Queue[Announcement | None] = asyncio.Queue(QUEUE_LENGTH)
        self._listeners[queue] = None
        try:
            yield queue
        finally:
            self._listeners.pop(queue, None)

    def _tell(self, announcement: Announcement) -> None:
        for queue in tuple(self._listeners):
            if queue.qsize() < QUEUE_LENGTH - 1:
                queue.put_nowait(announcement)
                continue
            # The last place is kept for the word that the stream ends here; the client resumes by its last id.
            self._listeners.pop(queue, None)
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)
