"""
Adopting a remote job by the id that a person names for a lost create: whether there is such a job, as far as that can
be known.
"""

import asyncio
import logging
from dataclasses import replace

from vidrelay.core.adapter import NotThere, PollOutcome, Refused
from vidrelay.core.errors import DuplicateRemote, InvalidRequest, TransportError, WrongState
from vidrelay.core.task import State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import Sending
from vidrelay.scheduler.tools import Tools
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)


class Adopter:
    """
    Checks the ids that people name.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._asking = {name: asyncio.Lock() for name in tools.accounts}  # each guards its tracks' asked_at

    async def check(self, task: Task, remote_id: str | None) -> str:
        """
        The remote id, if the provider does not deny it: a mistyped one must not end the task.

        Raises:
            InvalidRequest: There is none, it does not look like the provider's ids, or the provider does not know it.
            DuplicateRemote: That remote job belongs to another task.
            WrongState: Somebody else has settled the task meanwhile.
        """
        tools = self._tools
        if not remote_id:
            raise InvalidRequest("adopt needs the id that the provider gave", field="remoteId")
        account = tools.accounts.get(task.account)
        if account is None or not account.plan.adapter.valid_id(remote_id):
            raise InvalidRequest("this is not what the provider's ids look like", field="remoteId")
        neighbours = tools.neighbours(account)
        if any(other.account in neighbours and other.remote_id == remote_id for other in tools.roster.live()):
            raise DuplicateRemote
        if account.rest(creates=False, monotonic=tools.clock.monotonic()) > 0:
            # It cannot be asked now, so the person's word counts.
            logger.info("adopt.unchecked task=%s why=%s", task.id, "the account rests")
            return remote_id
        # A call leaves later than it is due, and only then is it known from when on the next may follow.
        async with self._asking[account.name]:
            if (now := tools.roster.find(task.id)) is not None and now.state is not State.UNCERTAIN:
                raise WrongState("the task is no longer uncertain")
            seen = await self._seen(account, replace(task, remote_id=remote_id))
        if isinstance(seen, Refused):
            await tools.pause(account, seen)
        if isinstance(seen, NotThere):
            raise InvalidRequest("the provider knows no such task", field="remoteId")
        return remote_id

    async def _seen(self, account: Account, task: Task) -> PollOutcome | None:
        """
        What the provider says of the job; None where it cannot be asked.
        """
        tools = self._tools
        track, traits = tools.roster.track(task.id) or Track(), account.plan.adapter.traits
        # A person who asks twice waits for the floor too; the instant is taken before it has come.
        track.asked_at = max(tools.clock.monotonic(), track.asked_at + traits.poll_floor)
        sending = Sending(status_from=track.asked_at)
        tools.store.count(polls=1)
        try:
            return await tools.caller.converse(account, account.plan.adapter.poll(task), sending=sending)
        except TransportError as trouble:
            logger.info("adopt.unchecked task=%s why=%s", task.id, trouble.message)
            return None
        finally:
            track.asked_at = max(track.asked_at, sending.asked_at)
