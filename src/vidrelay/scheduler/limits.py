"""
What providers tell of the windows of their accounts: asked behind the scenes, kept, and used until a newer word comes.

Nothing waits for it. A start uses what an earlier life was told, and asks at once; from then on each account is asked
every quarter of an hour, and sooner when a create was refused since too many ran.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from vidrelay.core.clock import Clock
from vidrelay.core.errors import DiskFull, StoreError, TransportError
from vidrelay.core.pace import backoff
from vidrelay.core.ports import AccountBook, ToldLimits
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import Caller
from vidrelay.scheduler.waiting import either

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 900.0
LEAST_SECONDS = 60.0
"""Between two questions at the least, however often a create is refused; a refusal lowers the window meanwhile."""

KEPT_ANEW = timedelta(days=1)
"""So old what is kept may be before the same words are kept again."""

REST_LOOK_SECONDS = 30.0
"""How often it is looked whether an account still rests, which a person may have ended."""


class Limits:
    """
    Keeps each account's limits up to date, where the configuration does not set them.
    """

    def __init__(
        self,
        book: AccountBook,
        clock: Clock,
        chance: Callable[[], float],
        caller: Caller,
        accounts: Mapping[str, Account],
    ) -> None:
        self._book = book
        self._clock = clock
        self._chance = chance
        self._caller = caller
        self._accounts = {name: account for name, account in accounts.items() if account.plan.window.limits is None}
        self._kept: dict[str, ToldLimits] = {}
        self._doubts = {name: asyncio.Event() for name in self._accounts}

    async def load(self) -> None:
        """
        Take up what providers told an earlier life of the relay.
        """
        for told in await self._book.limits():
            account, limits = self._accounts.get(told.account), _usable(told.limits)
            if account is not None and limits:
                logger.info("limits.known account=%s since=%s", told.account, told.told_at)
                account.told(limits)
                self._kept[told.account] = told

    def doubt(self, account: Account) -> None:
        """
        A create was refused, since too many ran: what was told may be wrong by now.
        """
        doubt = self._doubts.get(account.name)
        if doubt is not None:
            doubt.set()

    async def keep_fresh(self, wake: Callable[[], None]) -> None:
        """
        Ask for the limits of every account, now and again; `wake` is called when a window may have changed.
        """
        async with asyncio.TaskGroup() as group:
            for account in self._accounts.values():
                group.create_task(self._keep_fresh(account, wake))

    async def _keep_fresh(self, account: Account, wake: Callable[[], None]) -> None:
        doubt, tries = self._doubts[account.name], 0
        while True:
            while (rest := account.held(creates=False, monotonic=self._clock.monotonic())) > 0:
                await self._clock.sleep(min(rest, REST_LOOK_SECONDS))
            doubt.clear()
            answered = await self._ask(account)
            wake()
            tries = 0 if answered else tries + 1
            wait = backoff(tries=tries, chance=self._chance(), first=LEAST_SECONDS, cap=REFRESH_SECONDS)
            await self._clock.sleep(LEAST_SECONDS)
            await either(doubt, (REFRESH_SECONDS if answered else wait) - LEAST_SECONDS, self._clock)

    async def _ask(self, account: Account) -> bool:
        """
        Ask once; returns whether it was answered. No answer, and one that tells nothing, leave what is known.
        """
        asked_at = self._clock.now()
        try:
            limits = _usable(await self._caller.converse(account, account.plan.adapter.limits()))
            if limits:
                account.told(limits)
                await self._keep(ToldLimits(account=account.name, limits=limits, told_at=asked_at))
        except TransportError as trouble:
            logger.warning("limits.unknown account=%s why=%s", account.name, trouble.message)
            return False
        except (DiskFull, StoreError) as problem:
            logger.warning("limits.not_kept account=%s why=%s", account.name, problem.code)
            return True
        except Exception:
            # A bug in an adapter, or an answer that breaks it: what was known, or one place at a time, is right.
            logger.exception("limits.failed account=%s", account.name)
            return False
        return True

    async def _keep(self, told: ToldLimits) -> None:
        """
        Keep what was told, where it is news: a relay that idles should not write for nothing.
        """
        kept = self._kept.get(told.account)
        if kept is None or kept.limits != told.limits or abs(told.told_at - kept.told_at) >= KEPT_ANEW:
            await self._book.keep_limits(told)
            self._kept[told.account] = told


def _usable(limits: Mapping[str, int] | None) -> dict[str, int]:
    """
    Those that say how many: a window of none would hold its tasks for ever.
    """
    told = limits or {}
    return {name: places for name, places in told.items() if isinstance(places, int) and places >= 1}
