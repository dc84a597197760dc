"""
What every step works with: the ports, the memory of live tasks, and how an account comes to rest.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vidrelay.core.adapter import Refused, Scope
from vidrelay.core.clock import Clock
from vidrelay.core.errors import DiskFull, StoreError
from vidrelay.core.pace import LONGEST_WAIT, backoff, next_poll
from vidrelay.core.policy import Policy
from vidrelay.core.ports import AccountBook, Pause, Store
from vidrelay.core.task import BlockReason, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.cache import Cache
from vidrelay.scheduler.converse import Caller
from vidrelay.scheduler.copies import Copies
from vidrelay.scheduler.following import Follower
from vidrelay.scheduler.held import HeldPlaces
from vidrelay.scheduler.history import History
from vidrelay.scheduler.limits import Limits
from vidrelay.scheduler.quotas import Quotas
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.saving import Saver
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)

MAX_HINTS = 2
HINT_MARGIN_SECONDS = 0.3
GATHER_SECONDS = 0.05
"""So long tasks that were told of by one call are given to take that in, before the next is made for all of them."""
FULL_DISK_SECONDS = 30.0
NO_ROOM = "there is too little room on the disk for a result"

Delay = float | None
"""Seconds until the task is looked at again; 0 at once, None when something else will wake it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """
    What a step works with.
    """

    store: Store
    book: AccountBook
    clock: Clock
    chance: Callable[[], float]
    policy: Policy
    roster: Roster
    history: History
    cache: Cache
    saver: Saver
    held: HeldPlaces
    caller: Caller
    copies: Copies
    limits: Limits
    quotas: Quotas
    follower: Follower
    accounts: Mapping[str, Account]

    def neighbours(self, account: Account) -> list[str]:
        """
        The accounts at the same far end, this one too: a job of one may show in the list of another.
        """
        far_end = account.plan.provider, account.plan.server
        return [name for name, one in self.accounts.items() if (one.plan.provider, one.plan.server) == far_end]

    async def pause(self, account: Account, refusal: Refused) -> None:
        """
        Let the account rest as its provider said, and keep that over a restart if the disk takes it.
        """
        if refusal.reason in (BlockReason.RATE, BlockReason.WINDOW):
            self.store.count(rateLimited=1)
        pause = account.refused(refusal, now=self.clock.now(), monotonic=self.clock.monotonic(), chance=self.chance())
        logger.warning(
            "account.paused account=%s scope=%s reason=%s until=%s",
            account.name,
            pause.scope,
            pause.reason,
            pause.until,
        )
        if pause.scope is Scope.CALLS:
            self.follower.break_off(account=account.name)
        for key in self.roster.line.windows():
            if key[0] == account.name:
                self.roster.moved(key)
        await self._keep(account, pause.scope, pause)

    async def refused(self, task: Task, account: Account, refusal: Refused) -> None:
        """
        Let the account rest since the provider would not have the task now; and go no higher for a while where that was
        since it has room for what else runs of ours, not for this one.
        """
        if refusal.reason == BlockReason.WINDOW:
            others = len(self.roster.holding((task.account, task.window)) - {task.id})
            account.lower(task.window, others, self.clock.monotonic())
            self.limits.doubt(account)
        await self.pause(account, refusal)

    async def mend_pauses(self, account: Account) -> None:
        """
        Show and keep the account's rests with the ends that they have by the clock that cannot be set.
        """
        for pause in account.mended(now=self.clock.now(), monotonic=self.clock.monotonic()):
            if pause.reason != BlockReason.DISK:
                await self._keep(account, pause.scope, pause)

    def rest_for_disk(self, account: Account) -> None:
        """
        Let the account make nothing new for a while: the disk is too full to bring it in. The disk is looked at again
        after a restart, so this is not kept.
        """
        logger.warning("account.rests_for_disk account=%s seconds=%d", account.name, FULL_DISK_SECONDS)
        refusal = Refused(
            scope=Scope.CREATES,
            reason=BlockReason.DISK,
            detail=NO_ROOM,
            retry_after=FULL_DISK_SECONDS,
        )
        account.refused(refusal, now=self.clock.now(), monotonic=self.clock.monotonic(), chance=self.chance())

    async def resumed(self, account: Account, lifted: Iterable[Scope]) -> None:
        """
        A call went through; forget the pauses of those scopes, which it has ended.
        """
        for scope in lifted:
            await self._keep(account, scope, None)

    async def _keep(self, account: Account, scope: Scope, pause: Pause | None) -> None:
        try:
            await self.book.set_pause(account.name, scope, pause)
        except (DiskFull, StoreError) as problem:
            # What the task at hand needs is more than this: it must not fail for a pause that is kept in memory.
            if not problem.retryable:
                raise
            logger.warning("account.pause_not_kept account=%s why=%s", account.name, problem.code)

    def leave_alone(self, track: Track, seconds: float | None) -> float:
        """
        Take in that the provider asked, after trouble, to leave the task alone for so long; returns the seconds.
        Whatever makes the task due before that (a wish, a jump of the clock) does not outweigh it.
        """
        wait = min(LONGEST_WAIT, max(0.0, seconds or 0.0))
        track.held_until = max(track.held_until, self.clock.monotonic() + wait)
        return wait

    def backoff(self, tries: int, *, least: float = 0.0) -> float:
        """
        Seconds to wait after so many tries in a row that did not work.
        """
        return max(least, backoff(tries=tries, chance=self.chance()))

    def next_poll(self, task: Task, track: Track, account: Account) -> float:
        """
        Seconds until the running task is asked for again: at its pace, or sooner when the provider says that it is done
        by then. That word is taken a few times only, since one that is always wrong must not make us poll densely.
        """
        floor = account.plan.adapter.traits.poll_floor
        usual = next_poll(
            polls=track.polls,
            elapsed=self.age(task, track),
            policy=self.policy.poll,
            floor=floor,
            chance=self.chance(),
            history=self.history.law(task),
        )
        if track.eta_seconds is None or track.hints >= MAX_HINTS:
            return usual
        told = max(floor, track.eta_seconds + HINT_MARGIN_SECONDS)
        if told >= usual:
            return usual
        track.hints += 1
        return told

    def next_ask(self, task: Task, track: Track, account: Account, *, news: bool) -> float:
        """
        Seconds until the task that was just heard of is asked for again. Where a call lasts until there is news that is
        at once; but calls that ended sooner than the pace would have had them begin are made at that pace, so that a
        stream which never lasts, or has something to say all the time, is no more often asked for than a status. Only
        after `news` of the kind that comes once or twice to a task, none is waited for.
        """
        usual = self.next_poll(task, track, account)
        if not account.plan.adapter.traits.follows or not self.follower.may_follow(account.name):
            return usual
        spent = usual if news else self.clock.monotonic() - track.began_at
        return max(GATHER_SECONDS, usual - spent)

    def age(self, task: Task, track: Track) -> float:
        """
        Seconds since the provider accepted the task; the wall clock is asked once, then only the monotonic one.
        """
        now = self.clock.monotonic()
        if track.since is None:
            age = (self.clock.now() - (task.accepted_at or task.created_at)).total_seconds()
            track.since, track.aged_from = now - max(0.0, age), now
        return now - track.since
