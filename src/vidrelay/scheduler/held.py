"""
The places that time alone holds, kept right whatever becomes of the wall clock.

They are stored as instants of the wall clock, since a restart knows no other. A clock that is set in between would
free them too early, or block the window for years. So how long each is held is known here by the monotonic clock, and
what is stored is mended where the wall clock no longer agrees.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from vidrelay.core.clock import Clock
from vidrelay.core.ports import Store
from vidrelay.core.task import State, Task

AGREES_SECONDS = 20.0
"""So far the two clocks may part before what is stored is mended."""


class HeldPlaces:
    """
    Lost creates, and jobs that may outlive their tasks, by when each gives its place back.
    """

    def __init__(self, store: Store, clock: Clock, longest: Mapping[str, timedelta]) -> None:
        """
        `longest` is the longest run of a job of each account, which is how long a place is held.
        """
        self._store = store
        self._clock = clock
        self._longest = longest
        self._held: dict[str, tuple[Task, float]] = {}

    def load(self, task: Task) -> None:
        """
        Take in a task that an earlier life left: how long it is still held only the wall clock can tell.
        """
        if task.place_until is not None:
            left = task.place_until - self._clock.now()
            self._keep(task, min(left, self._longest.get(task.account, left)))

    def note(self, task: Task) -> None:
        """
        Take in a task as it was just committed. That its place is held is never told by the wall clock, which may have
        been set while the commit was under way.
        """
        if task.place_until is None or task.state in (State.SUBMITTING, State.RUNNING):
            self._held.pop(task.id, None)
        elif task.id in self._held:
            self._held[task.id] = task, self._held[task.id][1]
        elif task.account in self._longest:
            self._keep(task, self._longest[task.account])

    def _keep(self, task: Task, left: timedelta) -> None:
        self._held[task.id] = task, self._clock.monotonic() + left.total_seconds()

    async def mend(self) -> datetime:
        """
        Let what is stored agree with how long each place is still held; returns the instant of the wall clock by which
        it does. A clock that is set the moment after says nothing of it.

        Raises:
            DiskFull: It could not be stored; it is tried again the next time.
            StoreError: The same.
        """
        now = self._clock.now()
        for task, lapses_at in list(self._held.values()):
            left = lapses_at - self._clock.monotonic()
            if left <= 0:
                # For good: a clock that is set back must not take it once more.
                await self._store.hold(task.id, None)
                self._held.pop(task.id, None)
                continue
            due = now + timedelta(seconds=left)
            if task.place_until is not None and abs((task.place_until - due).total_seconds()) > AGREES_SECONDS:
                await self._store.hold(task.id, due)
        return now
