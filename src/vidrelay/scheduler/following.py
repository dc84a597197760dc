"""
Calls that last until there is news: how many there are, how they are broken off, and which accounts have them.

What works on a provider's own machine may not reach through what lies between (a proxy that keeps streams back until
they end, say), so an account whose calls came to nothing is asked in the ordinary way for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from vidrelay.core.clock import Clock
from vidrelay.core.pace import backoff

T = TypeVar("T")

MAX_FOLLOWED = 64
"""So many last at once: each is a step under way, and half of the steps must be free for what cannot wait."""

LEAST_OFF_SECONDS, LONGEST_OFF_SECONDS = 60.0, 3600.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Call:
    """
    One under way, for these tasks.
    """

    account: str
    task_ids: Collection[str]
    scope: asyncio.Timeout
    broken: bool = False


class Follower:
    """
    Keeps the calls that last.
    """

    def __init__(self, clock: Clock, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._chance = chance
        self._calls: list[_Call] = []
        self._off: dict[str, tuple[int, float]] = {}

    def may_follow(self, account: str) -> bool:
        """
        Whether one more may begin, for that account.
        """
        _, until = self._off.get(account, (0, 0.0))
        return len(self._calls) < MAX_FOLLOWED and until <= self._clock.monotonic()

    async def follow(self, account: str, task_ids: Collection[str], work: Awaitable[T]) -> T | None:
        """
        Do the work, unless it is broken off; None then.
        """
        scope = asyncio.timeout(None)
        call = _Call(account=account, task_ids=task_ids, scope=scope)
        try:
            async with scope:
                self._calls.append(call)
                return await work
        except TimeoutError:
            if not call.broken:
                raise
            return None
        finally:
            self._calls.remove(call)

    def break_off(self, *, account: str | None = None, task_id: str | None = None) -> None:
        """
        End those of that account, or that one task, now; all where none is named.
        """
        for call in self._calls:
            meant = account in (None, call.account) and (task_id is None or task_id in call.task_ids)
            if meant and not call.broken:
                call.broken = True
                call.scope.reschedule(0.0)

    def learn(self, account: str, *, works: bool) -> None:
        """
        Take in whether one of the account's came to anything.
        """
        if works:
            self._off.pop(account, None)
            return
        tries = self._off.get(account, (0, 0.0))[0] + 1
        seconds = backoff(tries=tries, chance=self._chance(), first=LEAST_OFF_SECONDS, cap=LONGEST_OFF_SECONDS)
        self._off[account] = tries, self._clock.monotonic() + seconds
