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
