"""
What providers tell of their windows is asked behind the scenes, kept, and used at once by the next life.
"""

import pytest

from vidrelay.core.task import State
from vidrelay.scheduler.face import WindowSource

MINUTES = 60.0


@pytest.fixture
def bench(bench):
    """A provider that tells its limits to an account that has none configured."""
    bench.window = None
    bench.adapter.asks_limits = True
    bench.provider.told_limits = {"*": 3}
    bench.provider.run_seconds = 1000.0
    return bench


def window(bench):
    """How many places there are, and who says so."""
    status = bench.relay.accounts()[0].windows[0]
    return status.limit, status.source


def questions(bench):
    """When the limits were asked for."""
    return [at for at, _, path in bench.provider.calls if path == "/limits"]


async def test_limits_are_asked_at_the_start_and_every_quarter_of_an_hour(bench):
    """A newer word takes the older one's place."""
    async with bench.running():
        assert window(bench) == (3, WindowSource.PROVIDER)
        bench.provider.told_limits = {"*": 5}
        await bench.clock.advance(14 * MINUTES)
        assert window(bench) == (3, WindowSource.PROVIDER)
        await bench.clock.advance(2 * MINUTES)
        assert window(bench) == (5, WindowSource.PROVIDER)
        await bench.clock.advance(60 * MINUTES)
    assert len(questions(bench)) == 6


async def test_a_start_uses_what_was_told_before(bench):
    """The provider cannot be reached, and the window is as it was; one that is told anew counts again."""
    async with bench.running():
        pass
    bench.provider.arm("limits", *["unsent"] * 3)
    bench.provider.told_limits = {"*": 4}
    async with bench.running():
        assert window(bench) == (3, WindowSource.PROVIDER)
        for number in range(4):
            await bench.submit(f"clip {number}")
        assert len(bench.provider.creates) == 3
        await bench.clock.advance(15 * MINUTES)
        assert window(bench) == (4, WindowSource.PROVIDER)


async def test_a_submit_does_not_wait_for_the_question(bench):
    """The answer takes long, and the task is made meanwhile."""
    async with bench.running():
        pass
    bench.provider.limits_seconds = 50.0
    async with bench.running():
        await bench.submit()
        assert len(bench.provider.creates) == 1


@pytest.mark.parametrize("limits", [None, {}, {"*": 0}, {"*": -1}, {"*": "many"}], ids=str)
async def test_an_answer_that_tells_nothing_changes_nothing(bench, limits):
    """What was told before still counts, and a window of none would hold its tasks for ever."""
    async with bench.running():
        bench.provider.told_limits = limits
        await bench.clock.advance(16 * MINUTES)
        assert window(bench) == (3, WindowSource.PROVIDER)
    async with bench.running():
        assert window(bench) == (3, WindowSource.PROVIDER)


async def test_nothing_told_is_one_place(bench):
    """As ever."""
    bench.provider.told_limits = None
    async with bench.running():
        assert window(bench) == (1, WindowSource.DEFAULT)


async def test_a_create_that_is_refused_for_the_window_is_reason_to_ask(bench):
    """At once where the last question is some time ago, and not more than once a minute."""
    bench.provider.limit = 2
    async with bench.running():
        await bench.clock.advance(5 * MINUTES)
        bench.provider.told_limits = {"*": 2}
        for number in range(3):
            await bench.submit(f"clip {number}")
        await bench.clock.advance(2)
        assert bench.provider.refused == 1
        assert len(questions(bench)) == 2
        await bench.clock.advance(2 * MINUTES)
        assert window(bench) == (2, WindowSource.PROVIDER)
        assert bench.provider.refused == 1
        for task in bench.relay.live()[:2]:
            await bench.relay.cancel(task.id)
        await bench.clock.advance(30)
        assert len(bench.provider.creates) == 4
    assert len(questions(bench)) == 2


async def test_an_account_with_a_configured_window_is_not_asked(bench):
    """The configuration counts, whatever was told before."""
    async with bench.running():
        pass
    bench.window = 1
    before = len(questions(bench))
    async with bench.running():
        await bench.clock.advance(60 * MINUTES)
        assert window(bench) == (1, WindowSource.CONFIGURED)
    assert len(questions(bench)) == before


async def test_trouble_with_the_question_is_tried_again_at_growing_intervals(bench):
    """A provider that does not answer is not asked every minute for ever."""
    bench.provider.arm("limits", *["lost_before"] * 100)
    async with bench.running():
        await bench.clock.advance(4 * 60 * MINUTES)
        task = await bench.submit()
        assert (await bench.relay.get(task.id)).state is State.RUNNING
    assert 10 < len(questions(bench)) < 40


async def test_what_is_told_is_written_when_it_is_news(bench):
    """An idle relay writes nothing for the same words over and over, but for their age once a day."""
    async with bench.running():
        before = (await bench.store.counters())["stateWrites"]
        await bench.clock.advance(12 * 60 * MINUTES)
        assert (await bench.store.counters())["stateWrites"] == before
        await bench.clock.advance(13 * 60 * MINUTES)
        assert (await bench.store.counters())["stateWrites"] == before + 1


async def test_windows_that_change_their_shape_are_never_exceeded(bench):
    """Tasks from before the provider told its limits by model count in their model's window, and wait for it."""
    bench.provider.run_seconds = 1000.0
    bench.provider.limits_seconds = 50.0
    bench.provider.told_limits = {"model-a": 1, "model-b": 1}
    async with bench.running():
        first = await bench.submit("one", model_version="model-a")
        second = await bench.submit("two", model_version="model-a")
        await bench.clock.advance(60)
        third = await bench.submit("three", model_version="model-a")
        other = await bench.submit("four", model_version="model-b")
        await bench.clock.advance(60)
        states = [(await bench.relay.get(task.id)).state for task in (first, second, third, other)]
        assert states == [State.RUNNING, State.QUEUED, State.QUEUED, State.RUNNING]
        await bench.clock.advance(4000)
        for task in (first, second, third, other):
            assert (await bench.relay.get(task.id)).state is State.DONE
