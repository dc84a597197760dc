"""
The wall clock may jump: what is waited for is measured on the other one.
"""

import pytest

from vidrelay.core.task import State

YEARS = 10 * 365 * 86_400


@pytest.mark.parametrize("jump", [YEARS, -86_400, 3600], ids=["ten years on", "a day back", "an hour on"])
async def test_a_rest_is_neither_ended_nor_stretched_by_an_adjusted_clock(bench, jump):
    """Retry-After of a minute is a minute, whatever the clock on the wall says meanwhile."""
    bench.provider.arm("create", 429)
    bench.provider.retry_after = "60"
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(5)
        bench.clock.jump(jump)
        await bench.clock.advance(50)
        assert len(bench.provider.creates) == 1
        await bench.until(task.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 2


@pytest.mark.parametrize("jump", [YEARS, -86_400], ids=["ten years on", "a day back"])
async def test_an_adjusted_clock_ends_no_task_and_storms_nobody(bench, jump):
    """Every running task is asked for once more, soon, and goes on to its end."""
    bench.window = 20
    bench.provider.run_seconds = 300
    async with bench.running():
        tasks = [await bench.submit(f"clip {number}") for number in range(20)]
        await bench.clock.advance(60)
        before = {job: len(bench.provider.polls_of(job)) for job in bench.provider.jobs}
        assert len(before) == 20
        bench.clock.jump(jump)
        await bench.clock.advance(40)
        asked = [len(bench.provider.polls_of(job)) - polls for job, polls in before.items()]
        assert min(asked) >= 1
        assert max(asked) <= 5
        assert {task.state for task in bench.relay.live()} == {State.RUNNING}
        for task in tasks:
            await bench.until(task.id, State.DONE, within=900)


@pytest.mark.parametrize("jump", [YEARS, -86_400], ids=["ten years on", "a day back"])
async def test_a_rest_is_shown_with_its_end_by_the_clock_as_it_is_now(bench, jump):
    """Told a minute, and the clock set meanwhile: it says when that minute ends, also to the next life."""
    bench.provider.arm("create", 429)
    bench.provider.retry_after = "60"
    async with bench.running(kill=True):
        task = await bench.submit()
        await bench.clock.advance(5)
        bench.clock.jump(jump)
        await bench.clock.advance(25)
        until = bench.relay.standing(await bench.relay.get(task.id)).blocked.until
        assert (until - bench.clock.now()).total_seconds() == pytest.approx(30, abs=1)
    async with bench.running():
        await bench.clock.advance(25)
        assert len(bench.provider.creates) == 1
        await bench.until(task.id, State.DONE, within=60)


async def test_a_rest_is_not_stretched_because_the_clock_was_wrong_in_an_earlier_life(bench):
    """Told a minute while the clock was ten years ahead, and set right between two lives: a minute at the most."""
    bench.provider.arm("create", 429)
    bench.provider.retry_after = "60"
    bench.clock.jump(YEARS)
    async with bench.running(kill=True):
        task = await bench.submit()
    bench.clock.jump(-YEARS)
    async with bench.running():
        await bench.clock.advance(55)
        assert len(bench.provider.creates) == 1
        await bench.until(task.id, State.DONE, within=60)


async def test_a_task_that_was_never_sent_is_sent_soon_whatever_the_clock_does(bench):
    """The wait after a create that did not leave is seconds, by the clock that cannot be set, over a restart too."""
    bench.provider.arm("create", *["unsent"] * 3)
    bench.clock.jump(YEARS)
    async with bench.running(kill=True):
        task = await bench.submit()
    bench.clock.jump(-YEARS)
    async with bench.running():
        await bench.clock.advance(3)
        bench.clock.jump(-86_400)
        await bench.until(task.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 1


async def test_a_wall_clock_that_stands_still_holds_nothing_up(bench):
    """A rest, a poll and a look-up end by the other clock."""
    bench.clock.freeze()
    bench.provider.arm("create", 429)
    bench.provider.retry_after = "60"
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(55)
        assert len(bench.provider.creates) == 1
        await bench.until(task.id, State.DONE, within=60)
