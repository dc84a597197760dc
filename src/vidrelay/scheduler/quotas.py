"""
What providers tell of what their accounts may still spend: kept with its age, so that a start knows it at once.

It is for people to see. Nothing waits for it, and no task is held back by it: a provider's own refusal does that.
"""

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta

from vidrelay.core.adapter import Quota
from vidrelay.core.clock import Clock
from vidrelay.core.errors import DiskFull, StoreError
from vidrelay.core.ports import AccountBook, ToldQuota
from vidrelay.scheduler.account import Account

logger = logging.getLogger(__name__)

KEPT_ANEW = timedelta(days=1)
"""So old what is kept may be before the same words are kept again."""


class Quotas:
    """
    Knows what each account has left, where its provider tells that.
    """

    def __init__(self, book: AccountBook, clock: Clock, accounts: Mapping[str, Account]) -> None:
        self._book = book
        self._clock = clock
        self.spent = {
            name: asyncio.Event() for name, account in accounts.items() if account.plan.adapter.traits.tells_quota
        }
        self._told: dict[str, ToldQuota] = {}
        self._kept: dict[str, ToldQuota] = {}

    async def load(self) -> None:
        """
        Take up what providers told an earlier life of the relay.
        """
        for told in await self._book.quotas():
            if told.account in self.spent:
                self._told[told.account] = self._kept[told.account] = told

    def told(self, account: str) -> ToldQuota | None:
        """
        What is left, and when that was told; None where nothing was.
        """
        return self._told.get(account)

    def spend(self, account: str) -> None:
        """
        A create went through: what was told is not right any more.
        """
        if account in self.spent:
            self.spent[account].set()

    async def keep(self, account: str, quota: Quota) -> None:
        """
        Take in what was told just now, and keep it where it is news: a relay that idles should not write for nothing.
        """
        told = ToldQuota(account=account, quota=quota, told_at=self._clock.now())
        self._told[account] = told
        kept = self._kept.get(account)
        if kept is not None and kept.quota == quota and abs(told.told_at - kept.told_at) < KEPT_ANEW:
            return
        try:
            await self._book.keep_quota(told)
            self._kept[account] = told
        except (DiskFull, StoreError) as problem:
            # It is known in memory, and told again soon.
            if not problem.retryable:
                raise
            logger.warning("quota.not_kept account=%s why=%s", account, problem.code)
