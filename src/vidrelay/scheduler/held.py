"""
The places that time alone holds, kept right whatever becomes of the wall clock.

They are stored as instants of the wall clock, since a restart knows no other. A clock that is set in between would
free them too early, or block the window for years. So how long each is held is known here by the monotonic clock, and
what is stored is mended where the wall clock no longer agrees.
"""

from datetime import timedelta

from vidrelay.core.ports import Clock, Store
from vidrelay.core.task import State, Task

AGREES_SECONDS = 20.0
"""So far the two clocks may part before what is stored is mended."""


class HeldPlaces:
    """
    Lost creates, and jobs that may outlive their tasks, by when each gives its place back.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._held: dict[str, tuple[Task, float]] = {}

    def note(self, task: Task, *, longest: timedelta | None = None) -> None:
        """
        Take in a task as it was just committed, or loaded: then it is held for `longest` at the most.
        """
        if task.place_until is None or task.state in (State.SUBMITTING, State.RUNNING):
            self._held.pop(task.id, None)
            return
        known = self._held.get(task.id)
        if known is not None:
            lapses_at = known[1]
        else:
            left = task.place_until - self._clock.now()
            lapses_at = self._clock.monotonic() + (left if longest is None else min(left, longest)).total_seconds()
        self._held[task.id] = task, lapses_at

    async def mend(self) -> None:
        """
        Let what is stored agree with how long each place is still held.

        Raises:
            DiskFull: It could not be stored; it is tried again the next time.
            StoreError: The same.
        """
        for task, lapses_at in list(self._held.values()):
            left = lapses_at - self._clock.monotonic()
            if left <= 0:
                # For good: a clock that is set back must not take it once more.
                await self._store.hold(task.id, None)
                self._held.pop(task.id, None)
                continue
            due = self._clock.now() + timedelta(seconds=left)
            if task.place_until is not None and abs((task.place_until - due).total_seconds()) > AGREES_SECONDS:
                await self._store.hold(task.id, due)
