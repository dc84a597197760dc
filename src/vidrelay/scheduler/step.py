"""
One step of one task: decide what it needs, do it, save what came of it, say when to look again.

A step never fails a paid task by its own trouble: whatever goes wrong on the way to a running task or its file is tried
again; and it never sends a create twice: whatever goes wrong after the first byte of one may have left is `Lost`.
"""

import logging
from typing import assert_never

from vidrelay.core.decide import (
    CancelRemote,
    Download,
    Fetch,
    Find,
    Outlive,
    Poll,
    Renew,
    Rest,
    Settle,
    Submit,
    Supply,
    decide,
)
from vidrelay.core.lifecycle import Ready
from vidrelay.core.task import Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.fetching import Fetcher
from vidrelay.scheduler.submitting import Submitter
from vidrelay.scheduler.supplying import Supplier
from vidrelay.scheduler.tools import Delay, Tools
from vidrelay.scheduler.track import Track
from vidrelay.scheduler.watching import Watcher

logger = logging.getLogger(__name__)


class Stepper:
    """
    Takes one task one step on.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._supplier = Supplier(tools)
        self._submitter = Submitter(tools)
        self._watcher = Watcher(tools)
        self._fetcher = Fetcher(tools)

    async def step(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Do what the task needs now; returns when to look at it again.
        """
        command = decide(
            task,
            account.plan.adapter.traits,
            self._tools.clock.now(),
            fresh_place=track.fresh_place,
            address_dead=track.address_dead,
            looked=track.looked,
        )
        logger.debug("step.started task=%s state=%s command=%s", task.id, task.state, type(command).__name__)
        match command:
            case Supply():
                return await self._supplier.supply(task, track, account)
            case Submit():
                return await self._submitter.submit(task, track, account)
            case Settle():
                return await self._submitter.settle(task, track, account)
            case Find():
                return await self._submitter.find(task, track, account)
            case Poll() | Renew():
                return await self._watcher.poll(task, track, account)
            case CancelRemote():
                return await self._watcher.cancel(task, track, account)
            case Outlive():
                return await self._watcher.outlive(task, track, account)
            case Fetch():
                await self._tools.saver.try_save(task, Ready(outputs=task.outputs, times=task.remote_times))
                return 0.0
            case Download():
                return await self._fetcher.download(task, track, account)
            case Rest():
                return None
            case _:
                assert_never(command)
