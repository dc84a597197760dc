"""
Where the provider lists, one call asks for all of an account's running tasks that are due.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from vidrelay.core.adapter import NotThere
from vidrelay.core.lifecycle import StillRunning
from vidrelay.core.task import State
from vidrelay.testing.toy.adapter import ToyAdapter

A_MOMENT = 1e-6


@pytest.fixture
def bench(bench):
    """A provider that lists, with room for many."""
    bench.adapter = ToyAdapter(lists=True)
    bench.window = 100
    bench.provider.run_seconds = 100.0
    return bench


def asked(bench):
    """When status requests went out, of either kind."""
    return [at for at, method, path in bench.provider.calls if method == "GET" and path.startswith("/jobs")]


def listed(bench):
    """When lists were asked for."""
    return [at for at, _, path in bench.provider.calls if path.startswith("/jobs?")]


def asked_for(bench, job):
    """When that job was asked for, by itself or among others."""
    calls = [(at, path.removeprefix("/jobs").replace("?ids=", "/").lstrip("/")) for at, _, path in bench.provider.calls]
    return [at for at, jobs in calls if job in jobs.split(",")]


async def submit(bench, count):
    """Submit so many different requests."""
    return [await bench.submit(f"clip {number}") for number in range(count)]


async def all_done(bench, tasks):
    """Wait for all of them."""
    for task in tasks:
        await bench.until(task.id, State.DONE)


@pytest.mark.parametrize("count", [2, 5, 40])
async def test_many_tasks_are_asked_for_by_one_call(bench, count):
    """However many run, it takes about as many calls as one alone; the relay's own counter says so."""
    async with bench.running():
        tasks = await submit(bench, count)
        await all_done(bench, tasks)
        counters = await bench.store.counters()
    assert len(asked(bench)) < 24
    assert counters["polls"] == len(asked(bench))
    assert len(listed(bench)) > 0.7 * len(asked(bench))


async def test_it_takes_a_fraction_of_the_polls(bench):
    """Five tasks that were accepted one after another soon keep step."""

    async def calls(*, lists):
        bench.provider.calls.clear()
        bench.adapter = ToyAdapter(lists=lists)
        async with bench.running():
            tasks = []
            for number in range(5):
                tasks.append(await bench.submit(f"{lists} {number}"))
                await bench.clock.advance(7)
            await all_done(bench, tasks)
        return len(asked(bench))

    assert await calls(lists=True) < 0.5 * await calls(lists=False)


@pytest.mark.parametrize("floor", [5.0, 10.0, 15.0])
async def test_tasks_keep_step_however_high_the_floor_is(bench, floor):
    """Six tasks that were accepted one after another, at a pace that is the floor itself: one call a round."""
    bench.adapter = ToyAdapter(lists=True)
    bench.adapter.traits = replace(bench.adapter.traits, poll_floor=floor)
    bench.provider.run_seconds = 1000.0
    async with bench.running():
        for number in range(6):
            await bench.submit(f"clip {number}")
            await bench.clock.advance(2.2)
        await bench.clock.advance(2 * floor)
        before = len(asked(bench))
        await bench.clock.advance(150)
        rounds = asked(bench)[before:]
        gaps = [later - earlier for job in range(1, 7) for earlier, later in pairwise(asked_for(bench, f"job-{job}"))]
    assert len(rounds) <= 150 / floor + 3
    assert len([at for at in listed(bench) if at in rounds]) >= len(rounds) - 1
    assert min(gaps) >= floor - A_MOMENT


async def test_one_task_alone_is_polled(bench):
    """A poll tells more than a list."""
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
    assert listed(bench) == []
    assert len(asked(bench)) > 3


async def test_an_account_asks_for_its_own_tasks(bench):
    """Two accounts with one task each have no use for a list."""
    bench.others["other"] = type(bench.provider)(bench.clock, run_seconds=100.0)
    async with bench.running():
        tasks = [await bench.submit(), await bench.submit(account="other")]
        await all_done(bench, tasks)
    assert listed(bench) == []


async def test_a_task_that_the_list_leaves_out_is_polled_by_itself(bench):
    """A list that lags, or is cut off, never makes a task vanish, and does not hold it up."""
    bench.provider.unlisted = {"job-2"}
    async with bench.running():
        tasks = await submit(bench, 3)
        await all_done(bench, tasks)
        second = await bench.relay.get(tasks[1].id)
    assert len(bench.provider.polls_of("job-2")) > 3
    assert len(bench.provider.polls_of("job-1")) <= 1
    assert (second.finished_at - second.created_at).total_seconds() < 125


class Denying(ToyAdapter):
    """
    Takes what is not in the list for what is not there.
    """

    def poll_many(self, tasks):
        """One list call."""
        told = yield from super().poll_many(tasks)
        return {task.id: told.get(task.id, NotThere(detail="?")) for task in tasks}


async def test_a_list_never_says_that_a_job_is_not_there(bench):
    """Only a poll is believed about that."""
    bench.adapter = Denying(lists=True)
    bench.provider.unlisted = {"job-1", "job-2", "job-3"}
    async with bench.running():
        await all_done(bench, await submit(bench, 3))


@pytest.mark.parametrize("jump", [8 * 3600, -86_400], ids=["a night", "a day back"])
@pytest.mark.parametrize("floor", [1.0, 10.0])
async def test_lists_keep_the_floor_and_the_spacing_of_polls(bench, floor, jump):
    """No job is asked for before the floor, by itself or in a list, and calls keep their distance."""
    bench.adapter = ToyAdapter(lists=True, poll_floor=floor)
    bench.provider.unlisted = {"job-2"}
    async with bench.running():
        await submit(bench, 4)
        await bench.clock.advance(40)
        bench.clock.jump(jump)
        await bench.clock.advance(40)
    assert min(later - earlier for earlier, later in pairwise(asked(bench))) >= 0.5 - A_MOMENT
    for number in (1, 2, 3, 4):
        times = asked_for(bench, f"job-{number}")
        assert min(later - earlier for earlier, later in pairwise(times)) >= floor - A_MOMENT


async def test_a_jump_of_the_clock_with_a_hundred_tasks_is_one_list(bench):
    """All are due at once, within two seconds."""
    bench.provider.run_seconds = 100_000
    async with bench.running():
        await submit(bench, 100)
        await bench.clock.advance(60)
        before = len(asked(bench))
        bench.clock.jump(8 * 3600)
        await bench.clock.advance(4)
    assert len(asked(bench)) - before <= 3


async def test_a_list_that_is_answered_with_429_lets_the_account_rest(bench):
    """For as long as it was told, nothing is asked; then one goes first. A person ends it at once."""
    bench.provider.retry_after = "30"
    async with bench.running():
        tasks = await submit(bench, 5)
        await bench.clock.advance(20)
        bench.provider.arm("list", 429)
        while bench.provider.refused == 0:
            await bench.clock.advance(0.5)
        before, refused_at = len(asked(bench)), asked(bench)[-1]
        await bench.clock.advance(28)
        assert len(asked(bench)) == before
        await bench.clock.advance(5)
        assert asked(bench)[before] - refused_at >= 30
        assert len(asked(bench)) <= before + 3
        bench.provider.arm("list", 429)
        while bench.provider.refused == 1:
            await bench.clock.advance(0.5)
        before = len(asked(bench))
        await bench.relay.resume("toy")
        await bench.clock.advance(4)
        assert len(asked(bench)) > before
        await all_done(bench, tasks)
        counters = await bench.store.counters()
    assert counters["rateLimited"] == 2


async def test_trouble_with_a_list_leaves_each_of_its_tasks_alone_as_long_as_told(bench):
    """A 503 with Retry-After holds every task that was asked for; then each is polled by itself."""
    bench.provider.retry_after = "30"
    async with bench.running():
        tasks = await submit(bench, 3)
        await bench.clock.advance(20)
        bench.provider.arm("list", 503)
        lists = len(listed(bench))
        while len(listed(bench)) == lists:
            await bench.clock.advance(0.5)
        before, told_at = len(asked(bench)), asked(bench)[-1]
        await bench.clock.advance(29)
        assert len(asked(bench)) == before
        await bench.clock.advance(4)
        assert min(asked(bench)[before:]) - told_at >= 30 - A_MOMENT
        assert all(len(bench.provider.polls_of(job)) >= 1 for job in bench.provider.jobs)
        await all_done(bench, tasks)


@pytest.mark.parametrize("fault", ["html", "unsent", "lost_after", 500])
async def test_a_list_that_never_works_costs_no_task(bench, fault):
    """Each is polled by itself in between."""
    bench.provider.arm("list", *[fault] * 100)
    async with bench.running():
        await all_done(bench, await submit(bench, 3))


class Broken(ToyAdapter):
    """
    Has a bug in its list.
    """

    def poll_many(self, tasks):
        """Fall over the answer."""
        yield from super().poll_many(tasks)
        raise KeyError("jobs")


async def test_a_bug_in_a_list_costs_no_task(bench, caplog):
    """The same."""
    bench.adapter = Broken(lists=True)
    async with bench.running():
        await all_done(bench, await submit(bench, 3))
    assert "step.failed" in caplog.text


async def test_steps_that_are_broken_off_lose_nothing(bench):
    """A long sleep of the machine in the middle of a list: the tasks are asked for again."""
    async with bench.running():
        tasks = await submit(bench, 3)
        for _ in range(4):
            await bench.clock.advance(9)
            bench.clock.jump(3600)
        await all_done(bench, tasks)


async def test_jobs_that_outlive_their_tasks_are_asked_for_with_the_others(bench):
    """Their places are given back when the list says that they have ended."""
    bench.adapter = ToyAdapter(lists=True, can_cancel=False)
    bench.window = 3
    async with bench.running():
        kept, *others = await submit(bench, 3)
        for task in others:
            await bench.relay.cancel(task.id)
        waiting = await bench.submit("later")
        await bench.clock.advance(60)
        before = len(asked(bench))
        assert (await bench.relay.get(waiting.id)).state is State.QUEUED
        await bench.clock.advance(60)
        assert (await bench.relay.get(waiting.id)).state is State.RUNNING
        await bench.until(kept.id, State.DONE)
    assert before < 16
    assert len(listed(bench)) > 3


async def test_a_list_that_tells_little_gives_no_task_up(bench):
    """Before a task is given up for showing no life it is asked for by itself, and that shows some."""
    bench.provider.run_seconds = 4 * 3600.0
    bench.adapter = Terse(lists=True)
    async with bench.running():
        tasks = await submit(bench, 2)
        await bench.clock.advance(3.9 * 3600)
        states = [(await bench.relay.get(task.id)).state for task in tasks]
    assert states == [State.RUNNING, State.RUNNING]


class Terse(ToyAdapter):
    """
    Polls tell how far a job is, lists do not.
    """

    def poll(self, task):
        """One call."""
        self.count = getattr(self, "count", 0) + 1
        seen = yield from super().poll(task)
        return replace(seen, progress=self.count / 1e6) if isinstance(seen, StillRunning) else seen


async def test_a_task_that_stands_still_is_given_up_all_the_same(bench):
    """A poll of its own says so, after two hours of lists that did."""
    bench.provider.run_seconds = 10 * 3600.0
    async with bench.running():
        tasks = await submit(bench, 2)
        await bench.clock.advance(2.2 * 3600)
        states = [(await bench.relay.get(task.id)).state for task in tasks]
    assert states == [State.EXPIRED, State.EXPIRED]
    assert all(bench.provider.polls_of(job) for job in bench.provider.jobs)
