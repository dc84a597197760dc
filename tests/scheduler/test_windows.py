"""
As many tasks at the provider as the account allows, first in, first out.
"""

from dataclasses import replace

from vidrelay.core.adapter import Dedupe
from vidrelay.core.lifecycle import Ready
from vidrelay.core.task import CancelOutcome, Priority, Request, State
from vidrelay.providers.verdicts import NO_FILE
from vidrelay.testing.toy.adapter import ToyAdapter


async def test_five_tasks_and_a_window_of_two_never_meet_a_refusal(bench):
    """Never more than two run at the provider, none is refused, and they go in order."""
    bench.provider.limit = 2
    async with bench.running():
        tasks = [await bench.submit(f"clip {number}") for number in range(5)]
        assert [bench.relay.standing(await bench.relay.get(task.id)).ahead for task in tasks] == [None, None, 0, 1, 2]
        for task in tasks:
            await bench.until(task.id, State.DONE)
    assert bench.provider.peak == 2
    assert bench.provider.refused == 0
    assert [body["prompt"] for body in bench.provider.creates] == [f"clip {number}" for number in range(5)]


async def test_a_place_is_the_part_of_a_standing_that_nothing_is_reckoned_for(bench):
    """Asked many times a second, it tells the same line and the same progress."""
    bench.window = 1
    async with bench.running():
        tasks = [await bench.submit(f"clip {number}") for number in range(3)]
        seen = [await bench.relay.get(task.id) for task in tasks]
        whole, place = [bench.relay.standing(task) for task in seen], [bench.relay.place(task) for task in seen]
        assert [one.ahead for one in place] == [None, 0, 1]
        assert place == [replace(one, eta=None, blocked=None, waiting_for=None) for one in whole]
        ended = await bench.until(tasks[0].id, State.DONE)
        assert bench.relay.place(ended) == bench.relay.standing(ended)


async def test_a_batch_task_lets_interactive_ones_go_first(bench):
    """Each kind is first in, first out."""
    bench.window = 1
    async with bench.running():
        first = await bench.submit("first")
        batch = await bench.submit("batch", priority=Priority.BATCH)
        clicked = await bench.submit("clicked")
        assert bench.relay.standing(await bench.relay.get(batch.id)).ahead == 1
        for task in (first, clicked, batch):
            await bench.until(task.id, State.DONE)
    assert [body["prompt"] for body in bench.provider.creates] == ["first", "clicked", "batch"]


async def test_a_job_that_cannot_be_stopped_keeps_its_place_until_it_ends(bench):
    """A cancelled task whose remote job runs on is asked for, and gives its place back when that has ended."""
    bench.window = 1
    bench.provider.run_seconds = 60
    bench.adapter = type(bench.adapter)(can_cancel=False)
    async with bench.running():
        first = await bench.submit("first")
        second = await bench.submit("second")
        _, outcome = await bench.relay.cancel(first.id)
        assert outcome is CancelOutcome.UNSUPPORTED
        await bench.clock.advance(50)
        waiting = await bench.relay.get(second.id)
        assert waiting.state is State.QUEUED
        assert bench.relay.standing(waiting).blocked.until is not None
        assert bench.relay.accounts()[0].windows[0].running == 1
        await bench.until(second.id, State.RUNNING, within=40)
        assert (await bench.relay.get(first.id)).state is State.CANCELLED
    assert bench.provider.peak == 1


async def test_a_job_that_outlives_its_task_is_asked_for_after_a_restart_too(bench):
    """The next life of the relay frees the place when the remote job has ended."""
    bench.window = 1
    bench.provider.run_seconds = 60
    bench.adapter = type(bench.adapter)(can_cancel=False)
    async with bench.running(kill=True):
        first = await bench.submit("first")
        await bench.relay.cancel(first.id)
    async with bench.running():
        second = await bench.submit("second")
        assert (await bench.relay.get(second.id)).state is State.QUEUED
        await bench.until(second.id, State.RUNNING, within=90)
    assert bench.provider.peak == 1


async def test_a_job_that_outlives_its_task_is_not_gone_just_after_its_create(bench):
    """A provider that does not know the job yet has not ended it: its place stays taken."""
    bench.window = 1
    bench.provider.run_seconds = 60
    bench.adapter = type(bench.adapter)(can_cancel=False)
    async with bench.running():
        first, second = await bench.submit("first"), await bench.submit("second")
        bench.provider.arm("poll", 404, 404, 404, 404)
        await bench.relay.cancel(first.id)
        await bench.clock.advance(50)
        assert (await bench.relay.get(second.id)).state is State.QUEUED
        await bench.until(second.id, State.RUNNING, within=40)
    assert bench.provider.peak == 1


async def test_a_job_that_outlives_its_task_is_gone_after_three_denials_in_a_row(bench):
    """One that is there again in between is not gone; three in a row are believed, and the place is free."""
    bench.window = 1
    bench.provider.run_seconds = 600
    bench.adapter = type(bench.adapter)(can_cancel=False)
    async with bench.running():
        first, second = await bench.submit("first"), await bench.submit("second")
        await bench.relay.cancel(first.id)
        await bench.clock.advance(100)
        bench.provider.arm("poll", 404, 404, None, 404, 404, None)
        await bench.clock.advance(120)
        assert not bench.provider.faults["poll"]
        assert (await bench.relay.get(second.id)).state is State.QUEUED
        bench.provider.jobs.pop("job-1")
        await bench.until(second.id, State.RUNNING, within=60)


async def test_a_job_that_never_ends_gives_its_place_back_after_the_longest_run(bench):
    """What the provider never says is bounded by the longest run it can have."""
    bench.window = 1
    bench.provider.workers = 0
    bench.adapter = type(bench.adapter)(can_cancel=False)
    async with bench.running():
        first = await bench.submit("first")
        second = await bench.submit("second")
        await bench.relay.cancel(first.id)
        await bench.clock.advance(1700)
        assert (await bench.relay.get(second.id)).state is State.QUEUED
        await bench.until(second.id, State.RUNNING, within=200)


class FilelessAdapter(ToyAdapter):
    """
    An adapter whose provider says of each job that it is done, and never where its file is.
    """

    def poll(self, task):
        """One call."""
        seen = yield from super().poll(task)
        return NO_FILE if isinstance(seen, Ready) else seen


async def test_a_job_that_is_done_and_never_names_a_file_is_given_up_in_time(bench):
    """For as long as any job may show no progress it is asked again; then it ends, and others get its place."""
    bench.window = 1
    bench.adapter = FilelessAdapter()
    async with bench.running():
        first, second = await bench.submit("first"), await bench.submit("second")
        await bench.clock.advance(7000)
        assert (await bench.relay.get(first.id)).state is State.RUNNING
        given_up = await bench.until(first.id, State.EXPIRED, within=400)
        assert given_up.remote_id in given_up.error.detail
        assert "done" in given_up.error.detail
        await bench.until(second.id, State.RUNNING, within=2000)
    assert len(bench.provider.creates) == 2


async def test_a_job_that_names_its_file_late_is_fetched(bench):
    """What is not there yet may come."""
    bench.adapter = FilelessAdapter()
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(3600)
        bench.adapter.poll = ToyAdapter().poll
        await bench.until(task.id, State.DONE, within=90)


async def test_a_task_whose_turn_is_now_waits_for_nothing(bench):
    """The answer to a submit that can go at once names nothing that blocks it."""
    async with bench.running():
        admission = await bench.relay.submit(Request(prompt="first"))
        assert bench.relay.standing(admission.task).blocked is None


async def test_a_task_that_has_got_its_place_meanwhile_is_not_said_to_wait_for_one(bench):
    """The answer to a submit is made of the task as it was accepted, and the loop may have been quicker."""
    bench.window = 1
    async with bench.running():
        task = await bench.submit("first")
        assert (await bench.relay.get(task.id)).state is State.RUNNING
        assert bench.relay.standing(task).blocked is None


async def test_a_refusal_for_too_many_lowers_the_window_and_keeps_the_task(bench):
    """Somebody else uses the account: the task waits, and goes when there is room."""
    bench.provider.limit = 1
    async with bench.running():
        first, second = await bench.submit("first"), await bench.submit("second")
        assert (await bench.relay.get(second.id)).state is State.QUEUED
        assert bench.relay.accounts()[0].windows[0].limit == 1
        await bench.until(first.id, State.DONE)
        await bench.until(second.id, State.DONE)
    assert bench.provider.refused <= 3


async def test_uncertain_tasks_keep_their_place_for_a_bounded_time(bench):
    """A lost create may be running: its place is held, though not for ever."""
    bench.window = 1
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        lost, waiting = await bench.submit("lost"), await bench.submit("waiting")
        assert (await bench.relay.get(lost.id)).state is State.UNCERTAIN
        await bench.clock.advance(60)
        assert (await bench.relay.get(waiting.id)).state is State.QUEUED
        await bench.until(waiting.id, State.DONE, within=1900)
        assert (await bench.relay.get(lost.id)).state is State.UNCERTAIN


async def test_ending_every_task_frees_every_place(bench):
    """Done, failed, cancelled: no place is left taken."""
    bench.provider.failing.add("bad")
    async with bench.running():
        good, bad, away = await bench.submit("good"), await bench.submit("bad"), await bench.submit("away")
        await bench.relay.cancel(away.id)
        await bench.until(good.id, State.DONE)
        await bench.until(bad.id, State.FAILED)
        taken, frees_at = await bench.store.places(account="toy", window="*", now=bench.clock.now())
    assert (taken, frees_at) == (0, None)
    assert bench.adapter.traits.dedupe is Dedupe.NONE


async def test_creates_go_out_one_after_another(bench):
    """They reach the provider in the order of the line, and a slow answer holds the next up for a second only."""
    bench.window = 3
    bench.provider.create_seconds = 5
    async with bench.running():
        for number in range(3):
            await bench.submit(f"clip {number}")
        assert len(bench.provider.creates) == 1
        await bench.clock.advance(1.1)
        assert len(bench.provider.creates) == 2
        await bench.clock.advance(1.1)
        assert [body["prompt"] for body in bench.provider.creates] == ["clip 0", "clip 1", "clip 2"]


async def test_a_refusal_is_heard_before_the_next_create_runs_into_it(bench):
    """Fifty places and a wrong key: one call, not fifty."""
    bench.window = 50
    bench.provider.arm("create", *[401] * 50)
    async with bench.running():
        for number in range(50):
            await bench.submit(f"clip {number}")
        await bench.clock.advance(200)
    assert len(bench.provider.creates) == 1
