"""
One step of one task: decide what it needs, do it, save what came of it, say when to look again.

A step never fails a paid task by its own trouble: whatever goes wrong on the way to a running task or its file is tried
again; and it never sends a create twice: whatever goes wrong after the first byte of one may have left is `Lost`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, assert_never

from vidrelay.core.decide import (
    CancelRemote,
    Command,
    Download,
    Fetch,
    Find,
    Poll,
    Renew,
    Rest,
    Settle,
    Submit,
    Wait,
    decide,
    next_lookup,
)
from vidrelay.core.errors import BadMedia, DeadAddress, DiskFull, DuplicateRemote, OutboundRefused, TransportError
from vidrelay.core.lifecycle import (
    Absent,
    Accepted,
    Answered,
    Cancelled,
    CancelTooLate,
    DeadlinePassed,
    Deferred,
    Failed,
    Found,
    Lost,
    Ready,
    Saved,
    StillRunning,
    Vanished,
)
from vidrelay.core.pace import backoff, next_poll
from vidrelay.core.policy import Policy
from vidrelay.core.ports import (
    AccountBook,
    CancelResult,
    Clock,
    Dedupe,
    NotThere,
    PollOutcome,
    Refused,
    ResultName,
    Scope,
    Search,
    Store,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    Unknown,
)
from vidrelay.core.task import CancelOutcome, FileRef, Problem, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.cache import Cache
from vidrelay.scheduler.converse import Sending, converse
from vidrelay.scheduler.history import History
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.saving import Saver
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)

MAX_MISSING = 3
MAX_RENEWALS = 3
FULL_DISK_SECONDS = 30.0
BLOCKED_HOST_SECONDS = 60.0

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


class Stepper:
    """
    Takes one task one step on.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._store = tools.store
        self._clock = tools.clock
        self._saver = tools.saver

    async def step(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Do what the task needs now; returns when to look at it again.
        """
        command = decide(
            task,
            account.plan.adapter.traits,
            self._clock.now(),
            fresh_place=track.fresh_place,
            address_dead=track.address_dead,
        )
        logger.debug("step.started task=%s state=%s command=%s", task.id, task.state, type(command).__name__)
        return await self._carry_out(command, task, track, account)

    async def _carry_out(self, command: Command, task: Task, track: Track, account: Account) -> Delay:
        match command:
            case Submit():
                return await self._submit(task, track, account)
            case Settle():
                return await self._settle(task, account)
            case Find():
                return await self._find(task, account)
            case Poll():
                return await self._poll(task, track, account)
            case Fetch():
                await self._saver.try_save(task, Ready(outputs=task.outputs, times=task.remote_times))
                return 0.0
            case Download():
                return await self._download(task, track, account)
            case Renew():
                return await self._poll(task, track, account)
            case CancelRemote():
                return await self._cancel(task, track, account)
            case Wait():
                return command.seconds
            case Rest():
                return None
            case _:
                assert_never(command)

    # The create call

    async def _submit(self, task: Task, track: Track, account: Account) -> Delay:
        track.fresh_place = False
        sending = Sending()
        account.probe(self._clock.monotonic())
        try:
            outcome = await converse(account.plan.adapter.submit(task), account.plan.transport, sending)
        except TransportError as trouble:
            outcome = self._without_answer(trouble, sending)
        except asyncio.CancelledError:
            # The relay is being ended in the middle of a create: what is known is saved before that.
            if sending.create_begun:
                await _unbroken(self._lose(task, account, "the relay was ended during the create call"))
            raise
        except Exception:
            logger.exception("submit.failed task=%s", task.id)
            outcome = Unknown(detail="the relay could not make out the provider's answer")
            if not sending.create_begun:
                outcome = self._not_sent("the create call could not be built")
        return await _unbroken(self._submitted(task, track, account, outcome))

    def _without_answer(self, trouble: TransportError, sending: Sending) -> SubmitOutcome:
        if sending.create_begun and trouble.maybe_sent:
            return Unknown(detail=trouble.message)
        return self._not_sent(trouble.message)

    def _not_sent(self, detail: str) -> Refused:
        self._store.count(retries=1)
        return Refused(scope=Scope.CREATES, reason="network", detail=detail)

    async def _submitted(self, task: Task, track: Track, account: Account, outcome: SubmitOutcome) -> Delay:
        match outcome:
            case Accepted() | Answered() | Failed():
                return await self._answered(task, track, account, outcome)
            case Refused():
                return await self._back_in_line(task, account, outcome)
            case Unknown() if account.plan.adapter.traits.dedupe is Dedupe.REPLAY:
                # The same key gets the first answer, so sending it again is asking what became of it.
                return await self._back_in_line(task, account, self._not_sent(outcome.detail))
            case Unknown():
                return await self._lose(task, account, outcome.detail)
            case _:
                assert_never(outcome)

    async def _back_in_line(self, task: Task, account: Account, refusal: Refused) -> Delay:
        if refusal.reason == "window":
            self._lower(task, account)
        # The pause stands before the task is back in line, or it would be taken again at once.
        await self._pause(account, refusal)
        await self._saver.try_save(task, Deferred(detail=refusal.detail))
        return None

    async def _settle(self, task: Task, account: Account) -> Delay:
        """
        A create call of an earlier life of the relay: its answer, if there was one, is gone.
        """
        detail = "the relay stopped while the create call was on its way"
        if account.plan.adapter.traits.dedupe is Dedupe.REPLAY:
            await self._saver.try_save(task, Deferred(detail=detail))
            return None
        return await self._lose(task, account, detail)

    async def _answered(self, task: Task, track: Track, account: Account, event: Accepted | Answered | Failed) -> Delay:
        try:
            saved = await self._saver.try_save(task, event)
        except DuplicateRemote as refused:
            # The provider gave an id that is another task's: which of the two is meant cannot be known here.
            return await self._lose(task, account, refused.message)
        if account.created():
            await self._tools.book.set_pause(account.name, None)
        if isinstance(event, Accepted):
            return 0.0 if saved is not None and saved.cancel_wanted else self._next_poll(task, track, account)
        return 0.0

    def _lower(self, task: Task, account: Account) -> None:
        """
        The provider has room for what else runs of ours, not for this one.
        """
        others = len(self._tools.roster.holding((task.account, task.window)) - {task.id})
        account.lower(task.window, others, self._clock.monotonic())

    async def _lose(self, task: Task, account: Account, detail: str) -> Delay:
        traits = account.plan.adapter.traits
        problem = Problem(
            code="uncertain_submit",
            title="The create call's answer was lost",
            detail=f"It is not known whether the provider made this task: {detail}. It may already be charged. "
            "vidrelay does not send it again by itself; `vidrelay resolve` does what you decide.",
            status=504,
        )
        lost = Lost(problem=problem, place_until=self._clock.now() + traits.longest_run)
        await self._saver.try_save(task, lost)
        return next_lookup(0.0)

    async def _find(self, task: Task, account: Account) -> Delay:
        now, elapsed = self._clock.now(), max(0.0, (self._clock.now() - task.updated_at).total_seconds())
        sent_at = task.started_at or task.created_at
        rest = account.rest(creates=False, monotonic=self._clock.monotonic())
        if rest > 0:
            return rest
        owned = await self._store.remote_ids(account=task.account, since=sent_at - timedelta(hours=1))
        search = Search(sent_at=sent_at, lost_at=task.updated_at, elapsed=elapsed, owned=owned)
        self._store.count(polls=1)
        try:
            outcome = await converse(account.plan.adapter.find(task, search), account.plan.transport)
        except TransportError as trouble:
            outcome = Trouble(detail=trouble.message)
        if isinstance(outcome, Found) and self._has_rival(task):
            # Two equal creates were lost: which of them this one job is cannot be told.
            outcome = Undecided(detail="two equal creates were lost", candidates=(outcome.remote_id,))
        match outcome:
            case Found() | Absent():
                try:
                    saved = await self._saver.try_save(task, outcome)
                except DuplicateRemote as refused:
                    logger.warning("find.refused task=%s why=%s", task.id, refused.message)
                    return next_lookup(elapsed)
                return 0.0 if saved is not None else None
            case Refused():
                await self._pause(account, outcome)
            case Undecided() | Trouble():
                logger.info("find.undecided task=%s why=%s", task.id, outcome.detail)
            case _:
                assert_never(outcome)
        return next_lookup(max(elapsed, (now - task.updated_at).total_seconds()))

    def _has_rival(self, task: Task) -> bool:
        return any(
            other.id != task.id
            and other.fingerprint == task.fingerprint
            and other.state in (State.UNCERTAIN, State.SUBMITTING)
            for other in self._tools.roster.live()
        )

    # Running

    async def _poll(self, task: Task, track: Track, account: Account) -> Delay:
        now = self._clock.monotonic()
        rest = account.rest(creates=False, monotonic=now)
        if rest > 0:
            return rest + self._tools.chance()
        account.probe(now)
        track.polls += 1
        self._store.count(polls=1)
        try:
            outcome: PollOutcome = await converse(account.plan.adapter.poll(task), account.plan.transport)
        except TransportError as trouble:
            outcome = Trouble(detail=trouble.message, retry_after=trouble.retry_after)
        if not isinstance(outcome, Refused | Trouble) and account.answered():
            await self._tools.book.set_pause(account.name, None)
        return await self._polled(task, track, account, outcome)

    async def _polled(self, task: Task, track: Track, account: Account, outcome: PollOutcome) -> Delay:
        match outcome:
            case StillRunning():
                return await self._still_running(task, track, account, outcome)
            case Ready():
                track.address_dead, track.troubles, track.missing = False, 0, 0
                await self._saver.try_save(task, outcome)
                return 0.0
            case Failed():
                await self._saver.try_save(task, outcome)
                return None
            case NotThere():
                return await self._missing(task, track, account, outcome)
            case Refused():
                await self._pause(account, outcome)
                return 0.0
            case Trouble():
                self._store.count(retries=1)
                track.troubles += 1
                logger.info("poll.trouble task=%s why=%s", task.id, outcome.detail)
                floor = account.plan.adapter.traits.poll_floor
                wait = backoff(tries=track.troubles, chance=self._tools.chance())
                return max(floor, wait, outcome.retry_after or 0.0)
            case _:
                assert_never(outcome)

    async def _still_running(self, task: Task, track: Track, account: Account, seen: StillRunning) -> Delay:
        if task.state is not State.RUNNING:
            # A finished job whose address is asked for again: the provider has not caught up with itself.
            return self._next_poll(task, track, account)
        changed = track.observe(seen, self._clock.monotonic())
        if seen.remote_state is not None and seen.remote_state is not task.remote_state:
            # A remote state never goes backwards; advance() keeps the highest, and then there is nothing to save.
            task = await self._save_if_new(task, seen)
        elif changed:
            self._tools.roster.progress(task)
        traits = account.plan.adapter.traits
        if track.unchanged >= max(self._tools.policy.stale_after, traits.longest_run).total_seconds():
            await self._expire(task, traits)
            return None
        return self._next_poll(task, track, account)

    async def _save_if_new(self, task: Task, seen: StillRunning) -> Task:
        if task.working_at is not None:
            return task
        return await self._saver.try_save(task, seen) or task

    async def _expire(self, task: Task, traits: Traits) -> None:
        problem = Problem(
            code="no_sign_of_life",
            title="The provider shows no progress",
            detail="Asked again just now, the task's status, progress and position have not changed for too long. It "
            f"may still be charged; at the provider it is {task.remote_id}.",
            status=504,
        )
        expired = DeadlinePassed(problem=problem, place_until=self._clock.now() + traits.longest_run)
        await self._saver.try_save(task, expired)

    async def _missing(self, task: Task, track: Track, account: Account, seen: NotThere) -> Delay:
        """
        "No such task" means not yet for a while after the create; later, three in a row end it.
        """
        if self._age(task, track) >= self._tools.policy.poll.not_found_grace:
            track.missing += 1
        if track.missing < MAX_MISSING:
            return self._next_poll(task, track, account)
        problem = Problem(
            code="remote_unknown",
            title="The provider does not know the task",
            detail=f"The provider accepted it as {task.remote_id} and says now that there is no such task "
            f"({seen.detail}). It may have been charged.",
        )
        await self._saver.try_save(task, Vanished(problem=problem))
        return None

    def _next_poll(self, task: Task, track: Track, account: Account) -> float:
        return next_poll(
            polls=track.polls,
            elapsed=self._age(task, track),
            policy=self._tools.policy.poll,
            floor=account.plan.adapter.traits.poll_floor,
            chance=self._tools.chance(),
            history=self._tools.history.law(task),
        )

    def _age(self, task: Task, track: Track) -> float:
        """
        Seconds since the provider accepted the task; the wall clock is asked once, then only the monotonic one.
        """
        now = self._clock.monotonic()
        if track.since is None:
            age = (self._clock.now() - (task.accepted_at or task.created_at)).total_seconds()
            track.since = now - max(0.0, age)
        return now - track.since

    async def _cancel(self, task: Task, track: Track, account: Account) -> Delay:
        adapter = account.plan.adapter
        held_until = self._clock.now() + adapter.traits.longest_run
        if not adapter.traits.can_cancel:
            await self._saver.try_save(task, Cancelled(outcome=CancelOutcome.UNSUPPORTED, place_until=held_until))
            return None
        try:
            outcome: CancelResult = await converse(adapter.cancel(task), account.plan.transport)
        except TransportError as trouble:
            outcome = Trouble(detail=trouble.message)
        match outcome:
            case Cancelled():
                stopped = outcome.outcome is CancelOutcome.STOPPED
                await self._saver.try_save(task, replace(outcome, place_until=None if stopped else held_until))
                return None
            case CancelTooLate():
                await self._saver.try_save(task, outcome)
                return 0.0
            case Refused():
                await self._pause(account, outcome)
                return 0.0
            case Trouble():
                # It may end meanwhile: a wish that cannot be delivered must not keep us from learning that.
                track.troubles += 1
                await self._poll(task, track, account)
                return max(1.0, backoff(tries=track.troubles, chance=self._tools.chance()))
            case _:
                assert_never(outcome)

    # The files

    async def _download(self, task: Task, track: Track, account: Account) -> Delay:
        try:
            files = await self._fetch(task, track, account)
        except DeadAddress as dead:
            return await self._renew(task, track, dead.message)
        except BadMedia as bad:
            track.troubles += 1
            self._store.count(retries=1)
            if track.troubles >= MAX_RENEWALS:
                return await self._renew(task, track, bad.message)
            return max(1.0, backoff(tries=track.troubles, chance=self._tools.chance()))
        except OutboundRefused as refused:
            await self._hold(task, refused)
            return BLOCKED_HOST_SECONDS
        except DiskFull:
            await self._pause(
                account, Refused(scope=Scope.CREATES, reason="disk", detail="the disk is full", retry_after=30.0)
            )
            return FULL_DISK_SECONDS
        except TransportError as trouble:
            track.troubles += 1
            self._store.count(retries=1)
            logger.info("download.trouble task=%s why=%s", task.id, trouble.message)
            return max(backoff(tries=track.troubles, chance=self._tools.chance()), trouble.retry_after or 0.0, 0.5)
        saved = await self._saver.try_save(task, Saved(files=files))
        if saved is None:
            await self._tools.cache.discard(files)
            return None
        self._tools.history.note(saved)
        await self._tools.cache.trim()
        return None

    async def _fetch(self, task: Task, track: Track, account: Account) -> tuple[FileRef, ...]:
        track.fetched_bytes = 0

        def count(size: int) -> None:
            track.fetched_bytes += size

        files = []
        for index, output in enumerate(task.outputs):
            name = ResultName(fingerprint=task.fingerprint, task_id=task.id, index=index)
            request = account.plan.adapter.download(task, output)
            files.append(await account.plan.downloader.fetch(request, name, progress=count))
        return tuple(files)

    async def _renew(self, task: Task, track: Track, detail: str) -> Delay:
        """
        Ask for a fresh address; after a few of them the paid result cannot be had.
        """
        track.renewals += 1
        track.address_dead = True
        if track.renewals <= MAX_RENEWALS:
            return max(1.0, backoff(tries=track.renewals, chance=self._tools.chance()))
        problem = Problem(
            code="result_lost",
            title="The result could not be fetched",
            detail=f"The provider finished the task ({task.remote_id}), so it was probably charged, but its file could "
            f"not be fetched from {MAX_RENEWALS} fresh addresses: {detail}",
        )
        await self._saver.try_save(task, Vanished(problem=problem))
        return None

    async def _hold(self, task: Task, refused: OutboundRefused) -> None:
        """
        The result lies on a host that is not allowed: it is paid for, so the task waits for a person and says why.
        """
        if task.error is not None:
            return
        problem = Problem(
            code=refused.code,
            title="The result's host is not allowed",
            detail=f"{refused.message} Add the host to allow_hosts of the account and start the relay again.",
            retryable=True,
        )
        await self._saver.try_save(task, Deferred(detail=refused.message, problem=problem))

    # The account

    async def _pause(self, account: Account, refusal: Refused) -> None:
        if refusal.reason in ("rate", "window"):
            self._store.count(rateLimited=1)
        pause = account.refused(
            refusal, now=self._clock.now(), monotonic=self._clock.monotonic(), chance=self._tools.chance()
        )
        logger.warning(
            "account.paused account=%s scope=%s reason=%s until=%s",
            account.name,
            pause.scope,
            pause.reason,
            pause.until,
        )
        await self._tools.book.set_pause(account.name, pause)


async def _unbroken(work: Coroutine[Any, Any, Delay]) -> Delay:
    """
    Finish the work even if the step is cancelled meanwhile: what a provider has answered to a create must be saved.
    """
    inner = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(inner)
    except asyncio.CancelledError:
        await inner
        raise
