"""
A wall clock that is set, jumps or stands still: what was paid for keeps its place, and nothing is believed too early.
"""

import pytest

from vidrelay.core.adapter import Dedupe, Undecided
from vidrelay.core.lifecycle import Absent
from vidrelay.core.messages import HttpRequest
from vidrelay.core.task import Resolution, State
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import BASE

YEARS = 3652 * 86_400


class TrustingAdapter(ToyAdapter):
    """
    An adapter that takes a lost create for absent after ten minutes, whatever the list shows.
    """

    def find(self, task, search):
        """One call."""
        yield HttpRequest(method="GET", url=f"{BASE}/jobs")
        return Absent() if search.elapsed >= 600 else (yield from super().find(task, search))


@pytest.mark.parametrize("seconds", [YEARS, -86_400, 8 * 3600])
async def test_a_lost_create_keeps_its_place_when_the_clock_is_set(bench, seconds):
    """It holds its place for the longest run of a job, by the clock that cannot be set."""
    bench.window = 1
    bench.provider.arm("create", "lost_after")
    async with bench.running():
        await bench.submit("lost")
        waiting = await bench.submit("waiting")
        bench.clock.jump(seconds)
        await bench.clock.advance(1700)
        assert (await bench.relay.get(waiting.id)).state is State.QUEUED
        await bench.until(waiting.id, State.DONE, within=300)


async def test_a_place_is_not_held_for_years_because_the_clock_was_wrong_once(bench):
    """Lost while the clock was ten years ahead, and the clock set right: by the next life of the relay too."""
    bench.window = 1
    bench.provider.arm("create", "lost_after")
    bench.clock.jump(YEARS)
    async with bench.running(kill=True):
        await bench.submit("lost")
    bench.clock.jump(-YEARS)
    async with bench.running():
        waiting = await bench.submit("waiting")
        await bench.clock.advance(1700)
        assert (await bench.relay.get(waiting.id)).state is State.QUEUED
        await bench.until(waiting.id, State.DONE, within=300)


async def test_a_jump_of_the_clock_makes_no_lost_create_absent(bench):
    """Ten minutes by the wall clock are not ten minutes in which the job could have shown up."""
    bench.adapter = TrustingAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        task = await bench.submit()
        bench.clock.jump(590)
        await bench.clock.advance(400)
        assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
        await bench.until(task.id, State.DONE, within=400)
    assert len(bench.provider.creates) == 2


async def test_a_lost_create_is_looked_for_after_a_restart_however_late(bench):
    """The look-ups begin anew: nobody looked while the relay was away."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_after")
    async with bench.running(kill=True):
        task = await bench.submit()
    bench.clock.jump(7200)
    async with bench.running():
        await bench.until(task.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 1


async def test_a_place_that_was_given_back_is_not_taken_again_by_a_clock_set_back(bench):
    """The longest run of a job is over; what the wall clock says of it afterwards changes nothing."""
    bench.window = 1
    bench.provider.arm("create", "lost_after")
    async with bench.running():
        await bench.submit("lost")
        await bench.clock.advance(1900)
        bench.clock.jump(-86_400)
        waiting = await bench.submit("waiting")
        await bench.until(waiting.id, State.DONE, within=300)


async def kept(bench):
    """The tasks whose results are in the cache."""
    results, _ = await bench.relay.cached(limit=100)
    return {result.task_id for result in results}


@pytest.mark.parametrize("seconds", [YEARS, 8 * 86_400])
async def test_a_jump_of_the_clock_empties_no_cache(bench, seconds):
    """What has become too old at a stroke stays for an hour, in which a wrong clock is set right."""
    async with bench.running():
        first = [await bench.submit(f"first {number}") for number in range(3)]
        for task in first:
            await bench.until(task.id, State.DONE)
        bench.clock.jump(seconds)
        for number in range(2):
            await bench.until((await bench.submit(f"second {number}")).id, State.DONE)
        assert {task.id for task in first} < await kept(bench)
        assert (await bench.submit("first 0")).id == first[0].id
        bench.clock.jump(-seconds)
        await bench.clock.advance(3700)
        await bench.until((await bench.submit("third")).id, State.DONE)
        assert {task.id for task in first} < await kept(bench)


async def test_what_is_too_old_after_a_sleep_is_evicted_an_hour_later(bench):
    """A night of eight days was a real one: once the clock has gone well for an hour, age counts again."""
    async with bench.running():
        first = await bench.submit("first")
        await bench.until(first.id, State.DONE)
        bench.clock.jump(8 * 86_400)
        second = await bench.submit("second")
        await bench.until(second.id, State.DONE)
        assert first.id in await kept(bench)
        await bench.clock.advance(3600)
        third = await bench.submit("third")
        await bench.until(third.id, State.DONE)
        assert await kept(bench) == {second.id, third.id}


async def test_a_place_that_seemed_over_at_the_start_does_not_come_back(bench):
    """An abandoned create of a clock ten years ahead, a start one day later, and the clock is set right."""
    bench.window = 1
    bench.provider.arm("create", "lost_after")
    bench.clock.jump(YEARS)
    async with bench.running(kill=True):
        lost = await bench.submit("lost")
        await bench.until(lost.id, State.UNCERTAIN)
        await bench.relay.resolve(lost.id, Resolution.ABANDON)
    bench.clock.jump(86_400)
    async with bench.running():
        await bench.clock.advance(60)
        bench.clock.jump(-YEARS - 86_400)
        waiting = await bench.submit("waiting")
        await bench.until(waiting.id, State.DONE, within=2000)


class NotingAdapter(ToyAdapter):
    """
    An adapter that keeps what it is told of each look-up.
    """

    def __init__(self, **words):
        super().__init__(**words)
        self.searches = []

    def find(self, task, search):
        """One call, which settles nothing."""
        self.searches.append(search)
        yield HttpRequest(method="GET", url=f"{BASE}/jobs")
        return Undecided(detail="noted")


async def test_a_look_up_knows_how_long_ago_the_create_was_lost_whoever_saw_it(bench):
    """What passed while no relay ran counts where the clocks are compared, not where absence is judged."""
    bench.adapter = NotingAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_after")
    async with bench.running(kill=True):
        await bench.submit()
        await bench.clock.advance(10)
    await bench.clock.advance(600)
    async with bench.running():
        await bench.clock.advance(10)
    told = [(round(search.elapsed), round(search.lost_ago)) for search in bench.adapter.searches]
    assert told == [(5, 5), (0, 610), (5, 615)]


async def test_a_create_that_was_broken_off_by_a_kill_was_not_sent_later_than_it_can_have_been(bench):
    """However late the next start, a job that was made days after the create is none of ours."""
    bench.adapter = NotingAdapter(dedupe=Dedupe.LIST)
    bench.provider.create_seconds = 1000.0
    async with bench.running(kill=True):
        await bench.submit()
    await bench.clock.advance(2 * 86_400)
    async with bench.running():
        await bench.clock.advance(10)
        (first, *_) = bench.adapter.searches
    assert (first.lost_at - first.sent_at).total_seconds() <= 300
    assert round((first.lost_at - first.sent_at).total_seconds() + first.lost_ago) == 2 * 86_400
