"""
A wish to cancel is never lost, and its receipt says what was really stopped.
"""

import asyncio

from vidrelay.core.adapter import Trouble
from vidrelay.core.lifecycle import Cancelled
from vidrelay.core.messages import HttpRequest
from vidrelay.core.task import BlockReason, CancelOutcome, State
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import BASE


class ForgottenAdapter(ToyAdapter):
    """
    An adapter whose provider does not know the job that is to be cancelled.
    """

    def cancel(self, task):
        """Not there, which may have many reasons."""
        yield HttpRequest(method="DELETE", url=f"{BASE}/jobs/{task.remote_id}")
        return Trouble(detail="404")


class BegunAdapter(ToyAdapter):
    """
    An adapter whose provider has begun the job, and stops only what waits.
    """

    def cancel(self, task):
        """Refused; it is made to its end."""
        yield HttpRequest(method="DELETE", url=f"{BASE}/jobs/{task.remote_id}x")
        return Cancelled(outcome=CancelOutcome.UNSUPPORTED)


async def test_a_queued_task_is_cancelled_here(bench):
    """Nothing was sent, so nothing is asked of the provider."""
    bench.window = 1
    async with bench.running():
        await bench.submit("first")
        second = await bench.submit("second")
        task, outcome = await bench.relay.cancel(second.id)
    assert (task.state, outcome) == (State.CANCELLED, CancelOutcome.LOCAL)
    assert len(bench.provider.creates) == 1


async def test_a_lost_create_that_was_given_up_is_seen_in_its_place(bench):
    """Its job may run: who waits for the place is told so, and when it will be free."""
    bench.window = 1
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        lost, waiting = await bench.submit("lost"), await bench.submit("waiting")
        given_up, _ = await bench.relay.cancel(lost.id)
        assert given_up.state is State.CANCELLED
        assert bench.relay.accounts()[0].windows[0].running == 1
        blocked = bench.relay.standing(await bench.relay.get(waiting.id)).blocked
        assert (blocked.reason, blocked.until) == (BlockReason.WINDOW, given_up.place_until)
        await bench.until(waiting.id, State.DONE, within=1900)
        assert bench.relay.accounts()[0].windows[0].running == 0


async def test_a_running_task_is_stopped_at_the_provider(bench):
    """The provider's yes makes it stopped."""
    async with bench.running():
        first = await bench.submit()
        task, outcome = await bench.relay.cancel(first.id)
    assert (task.state, outcome) == (State.CANCELLED, CancelOutcome.STOPPED)
    assert bench.provider.jobs["job-1"].state == "cancelled"


async def test_a_job_that_was_done_first_goes_on_to_its_result(bench):
    """Too late to stop and paid for: the clip is kept."""
    async with bench.running():
        first = await bench.submit()
        bench.provider.jobs["job-1"].state = "done"
        _, outcome = await bench.relay.cancel(first.id)
        assert outcome is CancelOutcome.TOO_LATE
        done = await bench.until(first.id, State.DONE)
    assert done.cancel is CancelOutcome.TOO_LATE


async def test_a_job_that_had_begun_goes_on_where_that_was_said(bench):
    """It is paid in any case, so its clip is fetched; it is wanted again, so an equal request joins it."""
    bench.adapter = BegunAdapter()
    async with bench.running():
        first = await bench.submit()
        task, outcome = await bench.relay.cancel(first.id, unless_begun=True)
        assert (task.state, outcome, task.cancel_wanted) == (State.RUNNING, CancelOutcome.TOO_LATE, False)
        assert (await bench.submit()).id == first.id
        await bench.until(first.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_who_wants_a_job_gone_is_not_outweighed(bench):
    """A wish that spares what has begun changes nothing of one that does not, whichever comes first."""
    bench.adapter = BegunAdapter()
    async with bench.running():
        for order in ((False, True), (True, False)):
            bench.provider.create_seconds = 3
            task = await bench.submit(f"a boat {order}")
            async with asyncio.TaskGroup() as group:
                for unless_begun in order:
                    group.create_task(bench.relay.cancel(task.id, unless_begun=unless_begun))
                    await bench.clock.settle()
                await bench.clock.advance(10)
            told = await bench.relay.get(task.id)
            assert (told.state, told.cancel) == (State.CANCELLED, CancelOutcome.UNSUPPORTED)


async def test_a_clip_that_is_fetched_is_not_thrown_away_where_that_was_said(bench):
    """It was still waiting when its client looked; by now it is paid for and on its way."""
    async with bench.running():
        first = await bench.submit()
        bench.provider.download_seconds = 1000
        await bench.until(first.id, State.DOWNLOADING)
        task, outcome = await bench.relay.cancel(first.id, unless_begun=True)
        assert (task.state, outcome) == (State.DOWNLOADING, CancelOutcome.TOO_LATE)


async def test_an_ended_task_answers_too_late(bench):
    """Cancelling what has ended changes nothing."""
    async with bench.running():
        first = await bench.submit()
        await bench.until(first.id, State.DONE)
        task, outcome = await bench.relay.cancel(first.id)
    assert (task.state, outcome) == (State.DONE, CancelOutcome.TOO_LATE)


async def test_a_wish_made_during_the_create_call_is_kept(bench):
    """The create is not cut short; once the provider has answered, the job is stopped there."""
    bench.provider.create_seconds = 3
    async with bench.running():
        first = await bench.submit()
        assert (await bench.relay.get(first.id)).state is State.SUBMITTING
        async with asyncio.TaskGroup() as group:
            wish = group.create_task(bench.relay.cancel(first.id))
            await bench.clock.settle()
            await bench.clock.advance(10)
        task, outcome = wish.result()
    assert (task.state, outcome) == (State.CANCELLED, CancelOutcome.STOPPED)


async def test_a_wish_during_a_refused_create_cancels_instead_of_queueing(bench):
    """A task that comes back to the line with the wish on it does not stay there."""
    bench.provider.create_seconds = 3
    bench.provider.arm("create", 429)
    async with bench.running():
        first = await bench.submit()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.relay.cancel(first.id))
            await bench.clock.settle()
            await bench.clock.advance(10)
        assert (await bench.relay.get(first.id)).state is State.CANCELLED
    assert len(bench.provider.creates) == 1


async def test_a_wish_that_cannot_be_delivered_is_delivered_later(bench):
    """The provider is not reached at first; the wish stays and is asked again."""
    bench.provider.run_seconds = 300
    bench.provider.arm("cancel", "lost_before", 503)
    async with bench.running():
        first = await bench.submit()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.relay.cancel(first.id))
            await bench.clock.settle()
            await bench.clock.advance(120)
        assert (await bench.relay.get(first.id)).state is State.CANCELLED
    assert bench.provider.jobs["job-1"].state == "cancelled"


async def test_a_wish_whose_answer_was_lost_counts_as_heard(bench):
    """The provider says that the job was cancelled, and we had asked for it: cancelled, not failed."""
    bench.provider.arm("cancel", "lost_after")
    async with bench.running():
        first = await bench.submit()
        task, outcome = await bench.relay.cancel(first.id)
    assert (task.state, outcome) == (State.CANCELLED, CancelOutcome.STOPPED)


async def test_a_stopped_job_that_its_provider_forgot_counts_as_stopped(bench):
    """Stopped, and we died before that was saved: what is not there after a wish to cancel is cancelled, not failed."""
    bench.adapter = ForgottenAdapter()
    async with bench.running():
        bench.provider.run_seconds = 600
        first = await bench.submit()
        await bench.clock.advance(100)
        bench.provider.forget()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.relay.cancel(first.id))
            await bench.clock.settle()
            await bench.clock.advance(120)
        task = await bench.relay.get(first.id)
    assert (task.state, task.cancel, task.place_until) == (State.CANCELLED, CancelOutcome.STOPPED, None)


async def test_a_cancellation_nobody_asked_for_is_a_failure(bench):
    """The provider's own cancelled is failed, with its code."""
    async with bench.running():
        first = await bench.submit()
        bench.provider.jobs["job-1"].state = "cancelled"
        failed = await bench.until(first.id, State.FAILED)
    assert failed.error.code == "remote_cancelled"


async def test_a_cancelled_download_is_broken_off(bench):
    """Nobody wants its bytes any more, and its slot is free for the next one."""
    bench.provider.download_seconds = 1000
    async with bench.running():
        first, second = await bench.submit("first"), await bench.submit("second")
        await bench.until(first.id, State.DOWNLOADING)
        await bench.until(second.id, State.DOWNLOADING)
        bench.provider.download_seconds = 0
        await bench.relay.cancel(first.id)
        await bench.relay.cancel(second.id)
        third = await bench.submit("third")
        await bench.until(third.id, State.DONE, within=60)
    assert [path.name for path in bench.folder.rglob("*.part")] == []


async def test_a_wish_waits_while_the_account_rests_from_all_calls(bench):
    """What the provider asked for by Retry-After holds for the call that cancels, too."""
    bench.provider.run_seconds = 600
    async with bench.running():
        task = await bench.submit()
        bench.provider.retry_after = "60"
        bench.provider.arm("poll", 429)
        await bench.clock.advance(3)
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.relay.cancel(task.id))
            await bench.clock.advance(30)
        assert not [call for call in bench.provider.calls if call[1] == "DELETE"]
        await bench.until(task.id, State.CANCELLED)
