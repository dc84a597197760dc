"""
Pictures of tasks in line, uploaded before their turn comes: no place is taken for it and nothing that costs is sent, so
a relay that is killed over it does it again, and a task that is cancelled was never made.
"""

import logging
from typing import assert_never

from vidrelay.core.adapter import Refused
from vidrelay.core.lifecycle import Failed
from vidrelay.core.task import Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.copies import CLEARED_SECONDS, Supplied
from vidrelay.scheduler.tools import Delay, Tools
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)

LEAST_BETWEEN_SECONDS = 1.0
"""Between two beginnings of a task's uploads, whatever comes of the first."""


class Supplier:
    """
    Uploads what the create calls of the next in line will name.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def supply(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Upload the task's pictures. It stays in line whatever comes of it, unless the provider will not have them.
        """
        began_at, heard = self._tools.clock.monotonic(), account.heard()
        if account.rest(creates=True, monotonic=began_at) > 0:
            return None
        account.probe(began_at)
        track.supply_from = began_at + LEAST_BETWEEN_SECONDS
        outcome = await self._tools.copies.supply(task, account)
        now = self._tools.clock.monotonic()
        match outcome:
            case Supplied():
                track.new_copies, track.new_until = outcome.new, now + CLEARED_SECONDS
                if outcome.uploaded:
                    await self._tools.resumed(account, account.answered(heard))
            case Failed():
                await self._tools.saver.try_save(task, outcome)
                await self._tools.resumed(account, account.answered(heard))
            case Refused() if account.held(creates=True, monotonic=now) > 0:
                # Why it rests is known already, and one trouble must not count as many.
                logger.debug("supply.held task=%s why=%s", task.id, outcome.detail)
            case Refused():
                await self._tools.refused(task, account, outcome)
            case _:
                assert_never(outcome)
        return None
