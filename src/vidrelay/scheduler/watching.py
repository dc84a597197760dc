"""
A running task: asked for at its pace, believed when it ends, stopped when it is no longer wanted.
"""

import logging
from dataclasses import replace
from typing import assert_never

from vidrelay.core.adapter import CancelResult, NotThere, PollOutcome, Refused, Traits, Trouble
from vidrelay.core.errors import TransportError
from vidrelay.core.lifecycle import Cancelled, CancelTooLate, DeadlinePassed, Failed, Ready, StillRunning, Vanished
from vidrelay.core.task import CancelOutcome, Problem, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.asking import Asker
from vidrelay.scheduler.converse import Sending
from vidrelay.scheduler.tools import Delay, Tools
from vidrelay.scheduler.track import Track

logger = logging.getLogger(__name__)

MAX_MISSING = 3
REMOTE_CANCELLED = "remote_cancelled"


class Watcher:
    """
    Asks for running tasks and stops them.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._asker = Asker(tools)

    async def poll(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Ask how the task is doing, and save what has changed; returns when to ask again.
        """
        asked = await self._asker.ask(task, track, account, follow=True)
        return asked if isinstance(asked, float) else await self._polled(task, track, account, asked)

    async def outlive(self, task: Task, track: Track, account: Account) -> Delay:
        """
        The task has ended here while its remote job may run on: ask, so that its place is free when that ends.
        """
        asked = await self._asker.ask(task, track, account)
        match asked:
            case float():
                return asked
            case StillRunning():
                track.troubles = track.missing = 0
                return self._tools.next_poll(task, track, account)
            case Refused():
                await self._tools.pause(account, asked)
                return 0.0
            case Trouble():
                return self._again(task, track, account, asked)
            case NotThere() if not self._is_gone(task, track):
                return self._tools.next_poll(task, track, account)
            case Ready() | Failed() | NotThere():
                await self._tools.store.hold(task.id, None)
                return None
            case _:
                assert_never(asked)

    async def _polled(self, task: Task, track: Track, account: Account, outcome: PollOutcome) -> Delay:
        match outcome:
            case StillRunning():
                return await self._still_running(task, track, account, outcome)
            case Ready():
                track.address_dead, track.troubles, track.missing = False, 0, 0
                await self._tools.saver.try_save(task, outcome)
                return 0.0
            case Failed() if task.cancel_wanted and outcome.problem.code == REMOTE_CANCELLED:
                # The answer to our own wish was lost, but the wish was heard.
                await self._tools.saver.try_save(task, Cancelled(outcome=CancelOutcome.STOPPED))
                return None
            case Failed():
                await self._tools.saver.try_save(task, outcome)
                return None
            case NotThere():
                return await self._missing(task, track, account, outcome)
            case Refused():
                await self._tools.pause(account, outcome)
                return 0.0
            case Trouble(is_done=True):
                track.says_done = True
                return await self._still_running(task, track, account, StillRunning())
            case Trouble():
                return self._again(task, track, account, outcome)
            case _:
                assert_never(outcome)

    def _again(self, task: Task, track: Track, account: Account, trouble: Trouble) -> float:
        self._tools.store.count(retries=1)
        track.troubles += 1
        logger.info("poll.trouble task=%s why=%s", task.id, trouble.detail)
        wait = self._tools.backoff(track.troubles)
        told = self._tools.leave_alone(track, trouble.retry_after)
        return max(account.plan.adapter.traits.poll_floor, wait, told)

    async def _still_running(self, task: Task, track: Track, account: Account, seen: StillRunning) -> Delay:
        if task.state is not State.RUNNING:
            # A finished job whose address is asked for again: the provider has not caught up with itself.
            return self._tools.next_poll(task, track, account)
        was, first = task.remote_state, track.sign is None
        changed = track.observe(seen, self._tools.clock.monotonic())
        if seen.remote_state is not None and seen.remote_state is not task.remote_state:
            # A remote state never goes backwards; advance() keeps the highest, and then there is nothing to save.
            task = await self._save_if_new(task, seen)
        elif changed:
            self._tools.roster.progress(task)
        traits = account.plan.adapter.traits
        if track.unchanged >= max(self._tools.policy.stale_after, traits.longest_run).total_seconds():
            if track.listed:
                # A list may tell less than a poll does, so it is asked by itself before it is given up.
                track.alone = True
                return traits.poll_floor
            await self._expire(task, track, traits)
        return self._tools.next_ask(task, track, account, news=first or task.remote_state is not was)

    async def _save_if_new(self, task: Task, seen: StillRunning) -> Task:
        if task.working_at is not None:
            return task
        return await self._tools.saver.try_save(task, seen) or task

    async def _expire(self, task: Task, track: Track, traits: Traits) -> None:
        if track.says_done:
            told = "The provider says that it is done, and has named no file for too long. It was probably charged"
        else:
            told = (
                "Asked again just now, the task's status, progress and position have not changed for too long. It may "
                "still be charged"
            )
        problem = Problem(
            code="no_sign_of_life",
            title="The provider shows no progress",
            detail=f"{told}; at the provider it is {task.remote_id}.",
            status=504,
        )
        expired = DeadlinePassed(problem=problem, place_until=self._tools.clock.now() + traits.longest_run)
        await self._tools.saver.try_save(task, expired)

    async def _missing(self, task: Task, track: Track, account: Account, seen: NotThere) -> Delay:
        if not self._is_gone(task, track):
            return self._tools.next_poll(task, track, account)
        if task.cancel is CancelOutcome.PENDING:
            # Our own wish was heard, and its answer lost: what is not there any more does not run.
            await self._tools.saver.try_save(task, Cancelled(outcome=CancelOutcome.STOPPED))
            return None
        problem = Problem(
            code="remote_unknown",
            title="The provider does not know the task",
            detail=f"It is {task.remote_id} at the provider, which now says that it has no such task ({seen.detail}). "
            "It may have been charged.",
        )
        await self._tools.saver.try_save(task, Vanished(problem=problem))
        return None

    def _is_gone(self, task: Task, track: Track) -> bool:
        """
        Take in one more "no such task": not yet for a while after the create; later, three in a row are believed.

        That while is counted from when this life of the relay took the task up: how old it was by then, only the wall
        clock knows, and that may have been set.
        """
        self._tools.age(task, track)
        if self._tools.clock.monotonic() - track.aged_from >= self._tools.policy.poll.not_found_grace:
            track.missing += 1
        return track.missing >= MAX_MISSING

    async def cancel(self, task: Task, track: Track, account: Account) -> Delay:
        """
        Ask the provider to stop the task, where it can; returns when to look at the task again.
        """
        adapter = account.plan.adapter
        held_until = self._tools.clock.now() + adapter.traits.longest_run
        if not adapter.traits.can_cancel:
            await self._tools.saver.try_save(task, Cancelled(outcome=CancelOutcome.UNSUPPORTED, place_until=held_until))
            return self._tools.next_poll(task, track, account)
        early = self._asker.early(track, account)
        if early > 0:
            return early
        if track.ask_first:
            asked = await self._asker.ask(task, track, account)
            if isinstance(asked, float):
                return asked
            track.ask_first = False
            await self._polled(task, track, account, asked)
            return 0.0
        sending = Sending(status_from=track.asked_at + adapter.traits.poll_floor)
        try:
            outcome: CancelResult = await self._tools.caller.converse(account, adapter.cancel(task), sending=sending)
        except TransportError as trouble:
            outcome = Trouble(detail=trouble.message, retry_after=trouble.retry_after)
        # Some are asked how they are doing before they are stopped, which counts as a poll.
        track.asked_at = max(track.asked_at, sending.asked_at)
        match outcome:
            case Cancelled() if track.unless_begun and outcome.outcome is CancelOutcome.UNSUPPORTED:
                await self._tools.saver.try_save(task, CancelTooLate(begun=True))
                return 0.0
            case Cancelled():
                stopped = outcome.outcome is CancelOutcome.STOPPED
                await self._tools.saver.try_save(task, replace(outcome, place_until=None if stopped else held_until))
                return None if stopped else self._tools.next_poll(task, track, account)
            case CancelTooLate():
                await self._tools.saver.try_save(task, outcome)
                return 0.0
            case Refused():
                await self._tools.pause(account, outcome)
                return 0.0
            case Trouble():
                # It may end meanwhile: a wish that cannot be delivered must not keep us from learning that.
                track.troubles += 1
                told = self._tools.leave_alone(track, outcome.retry_after)
                asked = await self._asker.ask(task, track, account)
                if isinstance(asked, float):
                    track.ask_first = True
                else:
                    await self._polled(task, track, account, asked)
                return max(told, self._tools.backoff(track.troubles, least=1.0))
            case _:
                assert_never(outcome)
