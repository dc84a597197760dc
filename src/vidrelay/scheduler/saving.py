"""
Saving what has happened: an event is a fact, so it is applied to the task as it stands and tried until it is on disk.
"""

import asyncio
import logging
from collections.abc import Callable

from vidrelay.core.clock import Clock
from vidrelay.core.errors import DiskFull, IllegalTransition, StaleTask, StoreError
from vidrelay.core.lifecycle import Event, advance
from vidrelay.core.pace import backoff
from vidrelay.core.ports import Store
from vidrelay.core.task import Task
from vidrelay.scheduler.waiting import either

logger = logging.getLogger(__name__)


class Saver:
    """
    Advances tasks and saves them.
    """

    def __init__(self, store: Store, clock: Clock, chance: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._chance = chance
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """
        Wait for no disk any more: the relay is being ended, and what is not saved is found out again at the next start.
        """
        self._stopping.set()

    async def save(self, task: Task, event: Event, *, patient: bool = True) -> Task:
        """
        Save what `event` makes of the task; if somebody saved it in between, of the task as it is now.

        A full, busy or failing disk is waited out, since what a provider has told must not be forgotten. What a person
        wishes is not `patient`: the person can be told.

        Raises:
            IllegalTransition: The task has moved on, and the event no longer means anything for it.
            DuplicateRemote: The event's remote job belongs to another task.
            DatabaseUnusable: Nothing can be saved in this life of the relay.
            DiskFull: It cannot be saved now, and it is not `patient`, or the relay is being ended.
            StoreError: The same.
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
            except (DiskFull, StoreError) as problem:
                if not (problem.retryable and patient) or self._stopping.is_set():
                    raise
                tries += 1
                logger.warning("save.waits task=%s event=%s why=%s", task.id, type(event).__name__, problem.code)
                await either(self._stopping, backoff(tries=tries, chance=self._chance()), self._clock)

    async def try_save(self, task: Task, event: Event, *, patient: bool = True) -> Task | None:
        """
        As `save`, but None where the task has moved on: cancelled while its poll was on the way, say.
        """
        try:
            return await self.save(task, event, patient=patient)
        except IllegalTransition as moved_on:
            logger.info("save.dropped task=%s event=%s why=%s", task.id, type(event).__name__, moved_on)
            return None
