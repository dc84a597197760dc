"""
The create call: sent once, and what becomes of it when its answer does not come.
"""

import asyncio
import logging
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, assert_never

from vidrelay.core.adapter import Dedupe, Refused, Scope, Search, SubmitOutcome, Trouble, Undecided, Unknown
from vidrelay.core.decide import next_lookup
from vidrelay.core.errors import DuplicateRemote, TransportError
from vidrelay.core.lifecycle import Absent, Accepted, Answered, Deferred, Failed, Found, Lost
from vidrelay.core.task import BlockReason, Problem, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import CREATE_SECONDS, Sending
from vidrelay.scheduler.tools import Delay, Tools
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)

LONGEST_CREATE = timedelta(seconds=CREATE_SECONDS)
LONGEST_LINE = timedelta(days=7)
"""A task that waited longer than that before it was sent, and has ended, may be taken for none of ours; nothing but its
job being adopted twice comes of it."""

REJECTED = "rejected"


class Submitter:
    """
    Makes tasks at their provider, and looks for those whose making is uncertain.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def submit(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Send the create call, once; returns when to look at the task again.

        Whatever goes wrong after its first byte may have left makes the task uncertain, unless the provider can tell a
        repeated create apart by its key.
        """
        track.fresh_place, track.lost_at, track.lost_before, track.looked = False, None, 0.0, 0.0
        if self._held(account, creates=True) > 0:
            return await self._hold_back(task)
        outcome: SubmitOutcome | Deferred
        sending, heard = Sending(), account.heard()
        account.probe(self._tools.clock.monotonic())
        try:
            outcome = await self._create(task, track, account, sending)
        except TransportError as trouble:
            if not (sending.create_begun and trouble.maybe_sent) and self._held(account, creates=True) > 0:
                return await _unbroken(self._hold_back(task))
            outcome = self._without_answer(trouble, sending)
        except asyncio.CancelledError:
            # The relay is being ended, or its machine slept, in the middle of it: what is known is saved before that.
            if sending.create_begun:
                await _unbroken(self._lose(task, track, account, "the create call was broken off on this side"))
            else:
                await _unbroken(self._hold_back(task, "the create call was broken off before it was sent"))
            raise
        except Exception:
            logger.exception("submit.failed task=%s", task.id)
            outcome = Unknown(detail="the relay could not make out the provider's answer")
            if not sending.create_begun:
                outcome = self._not_sent("the create call could not be built")
        return await _unbroken(self._submitted(task, track, account, outcome, heard))

    async def _create(self, task: Task, track: Track, account: Account, sending: Sending) -> SubmitOutcome | Deferred:
        """
        Send the create call, naming what was uploaded for it.

        One that is refused for good may name a copy that the provider has lost. A refused create costs nothing, so the
        task goes back in line, once, for new copies.
        """
        now = self._tools.clock.monotonic()
        new = track.new_copies if now < track.new_until else frozenset()
        renewed, track.renewed = track.renewed, False
        ready = await self._tools.copies.ready(task, account, new=new)
        if ready is None:
            return Deferred(detail="a picture of it is not at the provider any more")
        live = self._tools.roster.get_live(task.id)
        if live is not None and live.cancel_wanted:
            return Deferred(detail="it was cancelled before the create call was sent")
        outcome = await self._tools.caller.converse(
            account, account.plan.adapter.submit(ready.task), creates=True, sending=sending
        )
        if not _is_refused(outcome):
            return outcome
        if not ready.reused:
            self._tools.copies.clear(ready.copies)
        elif not renewed:
            logger.info("submit.copies_refused task=%s copies=%d", task.id, len(ready.reused))
            track.renewed = True
            await self._tools.copies.drop(ready.reused)
            return Deferred(detail="the provider may have lost a picture of it")
        return outcome

    def _held(self, account: Account, *, creates: bool) -> float:
        return account.held(creates=creates, monotonic=self._tools.clock.monotonic())

    async def _hold_back(self, task: Task, detail: str = "the account rests") -> Delay:
        """
        Nothing was sent for the task after it had got its place, since the account came to rest, say: it waits in line.
        """
        await self._tools.saver.try_save(task, Deferred(detail=detail))
        return None

    def _without_answer(self, trouble: TransportError, sending: Sending) -> SubmitOutcome:
        if sending.create_begun and trouble.maybe_sent:
            return Unknown(detail=trouble.message)
        return self._not_sent(trouble.message)

    def _not_sent(self, detail: str) -> Refused:
        return Refused(scope=Scope.CREATES, reason=BlockReason.NETWORK, detail=detail)

    async def _submitted(
        self, task: Task, track: Track, account: Account, outcome: SubmitOutcome | Deferred, heard: int
    ) -> Delay:
        match outcome:
            case Deferred():
                await self._tools.saver.try_save(task, outcome)
                return None
            case Accepted() | Answered() | Failed():
                return await self._answered(task, track, account, outcome, heard)
            case Refused():
                return await self._back_in_line(task, account, outcome)
            case Unknown() if account.plan.adapter.traits.dedupe is Dedupe.REPLAY:
                # The same key gets the first answer, so sending it again is asking what became of it.
                return await self._back_in_line(task, account, self._not_sent(outcome.detail))
            case Unknown():
                return await self._lose(task, track, account, outcome.detail)
            case _:
                assert_never(outcome)

    async def _back_in_line(self, task: Task, account: Account, refusal: Refused) -> Delay:
        # The pause stands before the task is back in line, or it would be taken again at once.
        await self._tools.refused(task, account, refusal)
        await self._tools.saver.try_save(task, Deferred(detail=refusal.detail))
        return None

    async def settle(self, task: Task, track: Track, account: Account) -> Delay:
        """
        A create call of an earlier life of the relay: its answer, if there was one, is gone.
        """
        detail = "the relay stopped while the create call was on its way"
        if account.plan.adapter.traits.dedupe is Dedupe.REPLAY:
            await self._tools.saver.try_save(task, Deferred(detail=detail))
            return None
        return await self._lose(task, track, account, detail)

    async def _answered(
        self, task: Task, track: Track, account: Account, event: Accepted | Answered | Failed, heard: int
    ) -> Delay:
        try:
            saved = await self._tools.saver.try_save(task, event)
        except DuplicateRemote as refused:
            # The provider gave an id that is another task's: which of the two is meant cannot be known here.
            return await self._lose(task, track, account, refused.message)
        await self._tools.resumed(account, account.created(heard))
        if not isinstance(event, Failed):
            self._tools.quotas.spend(account.name)
        if isinstance(event, Accepted):
            return 0.0 if saved is not None and saved.cancel_wanted else self._tools.next_poll(task, track, account)
        return 0.0

    async def _lose(self, task: Task, track: Track, account: Account, detail: str) -> Delay:
        traits = account.plan.adapter.traits
        why = detail.rstrip(".")
        problem = Problem(
            code="uncertain_submit",
            title="The create call's answer was lost",
            detail=f"It is not known whether the provider made this task: {why}. It may already be charged. "
            "vidrelay does not send it again by itself; `vidrelay resolve` does what you decide.",
            status=504,
        )
        lost = Lost(problem=problem, place_until=self._tools.clock.now() + traits.longest_run)
        await self._tools.saver.try_save(task, lost)
        track.lost_at = self._tools.clock.monotonic()
        return next_lookup(0.0) if traits.dedupe in (Dedupe.LIST, Dedupe.CLIENT_ID) else None

    async def find(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Look for the lost create at its provider; returns when to look again, None after the last time.
        """
        now = self._tools.clock.monotonic()
        # Whatever made it due (a jump of the clock, a lifted pause) does not outweigh the times of the look-ups. An
        # earlier life of the relay may have missed them, so this one begins with one.
        known = track.lost_at is not None
        if not known:
            track.lost_before = max(0.0, (self._tools.clock.now() - task.updated_at).total_seconds())
        elapsed = track.lost_for(now)
        due_at = track.looked + (next_lookup(track.looked) or 0.0) if known else 0.0
        sent_at = task.started_at or task.created_at
        early = max(account.rest(creates=False, monotonic=now), track.held_until - now, due_at - elapsed)
        if early > 0:
            track.turn_at = None
            return early
        track.turn_at = account.turn(track.turn_at, now)
        if track.turn_at > now:
            return track.turn_at - now
        track.turn_at = None
        # The loss is known by when it was stored, which after a kill is the next start; the call had ended long before.
        late = max(timedelta(0), task.updated_at - (sent_at + LONGEST_CREATE))
        search = Search(
            sent_at=sent_at,
            lost_at=task.updated_at - late,
            elapsed=elapsed,
            lost_ago=elapsed + track.lost_before + late.total_seconds(),
            owned=await self._owned(account, sent_at),
        )
        sent = await self._tools.copies.recalled(task, account)
        self._tools.store.count(polls=1)
        try:
            outcome = await self._tools.caller.converse(account, account.plan.adapter.find(sent, search))
        except TransportError as trouble:
            if self._held(account, creates=False) > 0 and not trouble.maybe_sent:
                return 0.0
            outcome = Trouble(detail=trouble.message, retry_after=trouble.retry_after)
        if isinstance(outcome, Found) and self._has_rival(task):
            # Two equal creates were lost: which of them this one job is cannot be told.
            outcome = Undecided(detail="two equal creates were lost", candidates=(outcome.remote_id,))
        match outcome:
            case Found() | Absent():
                try:
                    saved = await self._tools.saver.try_save(task, outcome)
                except DuplicateRemote as refused:
                    logger.warning("find.refused task=%s why=%s", task.id, refused.message)
                    return next_lookup(elapsed)
                return 0.0 if saved is not None else None
            case Refused():
                await self._tools.pause(account, outcome)
                return 0.0
            case Undecided():
                self._note_candidates(task, track, account, outcome)
            case Trouble():
                logger.info("find.trouble task=%s why=%s", task.id, outcome.detail)
                if outcome.retry_after:
                    return self._tools.leave_alone(track, outcome.retry_after)
            case _:
                assert_never(outcome)
        track.looked = elapsed
        return next_lookup(elapsed)

    async def _owned(self, account: Account, sent_at: datetime) -> frozenset[str]:
        """
        The remote jobs that other tasks have, of every account at the same far end.
        """
        neighbours = self._tools.neighbours(account)
        live = [task.remote_id for task in self._tools.roster.live() if task.account in neighbours]
        owned = {remote_id for remote_id in live if remote_id is not None}
        for name in neighbours:
            # One may have waited in line for long before it was sent.
            owned |= await self._tools.store.remote_ids(account=name, since=sent_at - LONGEST_LINE)
        return frozenset(owned)

    def _note_candidates(self, task: Task, track: Track, account: Account, seen: Undecided) -> None:
        """
        Tell the person who has to settle the task which jobs may be it.
        """
        candidates = tuple(name for name in seen.candidates if account.plan.adapter.valid_id(name))
        logger.info("find.undecided task=%s why=%s candidates=%s", task.id, seen.detail, ",".join(candidates))
        if candidates != track.candidates:
            track.candidates = candidates
            self._tools.roster.progress(task)

    def _has_rival(self, task: Task) -> bool:
        """
        Whether another create of the account was lost, or is on its way, that the one job found may be as well. A list
        shows less than what was sent, so there the prompt alone tells them apart.
        """
        by_list = self._tools.accounts[task.account].plan.adapter.traits.dedupe is Dedupe.LIST
        return any(
            other.id != task.id
            and other.account == task.account
            and (other.fingerprint == task.fingerprint or (by_list and other.request.prompt == task.request.prompt))
            and other.state in (State.UNCERTAIN, State.SUBMITTING)
            for other in self._tools.roster.live()
        )


def _is_refused(outcome: SubmitOutcome) -> bool:
    """
    Whether the provider refused the request itself, and made no job of it.
    """
    return isinstance(outcome, Failed) and outcome.remote_id is None and outcome.problem.code == REJECTED


async def _unbroken(work: Coroutine[Any, Any, Delay]) -> Delay:
    """
    Finish the work even if the step is cancelled meanwhile, and again: what a provider has answered to a create must be
    saved, however long the disk takes.
    """
    inner, broken = asyncio.get_running_loop().create_task(work), False
    while not inner.done():
        try:
            await asyncio.wait([inner])
        except asyncio.CancelledError:
            broken = True
    delay = inner.result()
    if broken:
        raise asyncio.CancelledError
    return delay
