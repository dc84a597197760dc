"""
Saving what has happened: an event is a fact, so it is applied to the task as it stands and tried until it is on disk.
"""

import logging
from collections.abc import Callable

from vidrelay.core.errors import DiskFull, DuplicateRemote, IllegalTransition, StaleTask, StoreError
from vidrelay.core.lifecycle import Event, advance
from vidrelay.core.pace import backoff
from vidrelay.core.ports import Clock, Store
from vidrelay.core.task import Task

logger = logging.getLogger(__name__)


class Saver:
    """
    Advances tasks and saves them.
    """

    def __init__(self, store: Store, clock: Clock, chance: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._chance = chance

    async def save(self, task: Task, event: Event) -> Task:
        """
        Save what `event` makes of the task; if somebody saved it in between, of the task as it is now.

        A full, busy or failing disk is waited out, since what a provider has told must not be forgotten.

        Raises:
            IllegalTransition: The task has moved on, and the event no longer means anything for it.
            DuplicateRemote: The event's remote job belongs to another task.
        """
        tries, stale = 0, False
        while True:
            try:
                if stale:
                    task, stale = await self._store.get(task.id), False
                moved = advance(task, event, self._clock.now())
                return await self._store.save(moved, event, expected_version=task.version)
            except StaleTask:
                stale = True
            except DuplicateRemote:
                raise
            except (DiskFull, StoreError) as problem:
                tries += 1
                logger.warning("save.waits task=%s event=%s why=%s", task.id, type(event).__name__, problem.code)
                await self._clock.sleep(backoff(tries=tries, chance=self._chance()))

    async def try_save(self, task: Task, event: Event) -> Task | None:
        """
        As `save`, but None where the task has moved on: cancelled while its poll was on the way, say.
        """
        try:
            return await self.save(task, event)
        except IllegalTransition as moved_on:
            logger.info("save.dropped task=%s event=%s why=%s", task.id, type(event).__name__, moved_on)
            return None
