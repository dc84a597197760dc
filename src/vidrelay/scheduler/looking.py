"""
Looking at a task: as it is, or once something has come of it.
"""

from collections.abc import Callable

from vidrelay.core.clock import Clock
from vidrelay.core.ports import Store
from vidrelay.core.task import Task
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.waiting import either


class Looker:
    """
    Finds tasks by their ids, in memory or in the store.
    """

    def __init__(self, store: Store, roster: Roster, clock: Clock) -> None:
        self._store = store
        self._roster = roster
        self._clock = clock

    async def get(self, task_id: str) -> Task:
        """
        The task as it is on disk.

        Raises:
            UnknownTask: There is none.
        """
        return self._roster.find(task_id) or await self._store.get(task_id)

    async def once(self, task: Task, reached: Callable[[Task], bool], *, seconds: float) -> Task:
        """
        The task once it has reached that, or as it is after so many seconds.
        """
        deadline = self._clock.monotonic() + seconds
        with self._roster.waiting(task.id) as committed:
            while not reached(task):
                left = deadline - self._clock.monotonic()
                if left <= 0 or not await either(committed, left, self._clock):
                    break
                committed.clear()
                task = await self.get(task.id)
        return task
