"""
The machine sleeps for a night: the wall clock has gone on, the other one stood still, and every connection is dead.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from vidrelay.core.adapter import Dedupe
from vidrelay.core.errors import DiskFull
from vidrelay.core.lifecycle import Accepted
from vidrelay.core.task import State
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import BASE, ToyProvider

NIGHT = 8 * 3600


class DeadProvider(ToyProvider):
    """
    A far end whose answers to some calls, by method and path, never come.
    """

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.dead = []

    @asynccontextmanager
    async def send(self, request, *, timeout):
        """Take the call, and leave it unanswered where told until its time is over."""
        async with super().send(request, timeout=timeout) as reply:
            call = request.method, request.url.removeprefix(BASE)
            if call in self.dead:
                self.dead.remove(call)
                await self.clock.sleep(timeout)
                raise TimeoutError
            yield reply


@pytest.fixture
def bench(bench):
    """The bench, with a far end that can fall silent."""
    bench.provider = DeadProvider(bench.clock)
    return bench


async def test_a_create_under_way_is_uncertain_soon_after_a_sleep(bench):
    """Its connection is dead, so its answer is not waited for to the end of its time; it is not sent again."""
    bench.provider.dead.append(("POST", "/jobs"))
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(3)
        bench.clock.jump(NIGHT)
        await bench.clock.advance(20)
        assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
        await bench.clock.advance(1000)
    assert len(bench.provider.creates) == 1


async def test_a_create_lost_in_a_sleep_is_looked_for(bench):
    """Where the provider lists its jobs it is found, and paid for once."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.provider.dead.append(("POST", "/jobs"))
    async with bench.running():
        task = await bench.submit()
        bench.clock.jump(NIGHT)
        await bench.until(task.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 1


@pytest.mark.parametrize("jump", [NIGHT, -86_400, 10 * 365 * 86_400])
async def test_a_create_whose_answer_comes_all_the_same_is_kept(bench, jump):
    """The clock was only set: the answer that comes seconds later is believed."""
    bench.provider.create_seconds = 9
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(1)
        bench.clock.jump(jump)
        await bench.until(task.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 1


async def test_a_short_jump_of_the_clock_breaks_nothing_off(bench):
    """A create may take as long as it is given while the clock is put a minute on."""
    bench.provider.create_seconds = 100
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(1)
        bench.clock.jump(60)
        await bench.until(task.id, State.DONE, within=150)
    assert (len(bench.provider.creates), bench.provider.dropped) == (1, 0)


async def test_a_poll_under_way_is_asked_anew_over_a_new_connection(bench):
    """Its answer is not waited for, the idle connections are dropped, and the job's end is known at once."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.dead.append(("GET", "/jobs/job-1"))
        await bench.clock.advance(3)
        assert bench.provider.dead == []
        bench.provider.jobs["job-1"].state = "done"
        bench.clock.jump(NIGHT)
        await bench.until(task.id, State.DONE, within=10)
    assert bench.provider.dropped == 1
    assert len(bench.provider.polls_of("job-1")) == 2


async def test_a_download_under_way_is_begun_anew(bench):
    """It goes on where it was over a new connection."""
    bench.provider.dead.append(("GET", "/files/job-1/1"))
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DOWNLOADING)
        await bench.clock.advance(1)
        bench.clock.jump(NIGHT)
        await bench.until(task.id, State.DONE, within=10)


async def test_a_wish_to_cancel_under_way_is_said_again(bench):
    """It is not lost with its connection."""
    bench.provider.run_seconds = 600
    async with bench.running():
        task = await bench.submit()
        bench.provider.jobs["job-1"].state = "working"
        bench.provider.dead.append(("DELETE", "/jobs/job-1"))
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.relay.cancel(task.id))
            await bench.clock.advance(1)
            bench.clock.jump(NIGHT)
            await bench.clock.advance(10)
        assert (await bench.relay.get(task.id)).state is State.CANCELLED


class FullUntil:
    """
    A store whose saves of an accepted task find the disk full until a moment of the clock.
    """

    def __init__(self, store, clock, until) -> None:
        self.__dict__.update(_store=store, _clock=clock, _until=until)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def __setattr__(self, name, value):
        setattr(self._store, name, value)

    async def save(self, task, event, **words):
        """Refuse while the disk is full."""
        if isinstance(event, Accepted) and self._clock.monotonic() < self._until:
            raise DiskFull
        return await self._store.save(task, event, **words)


async def test_an_answer_that_waits_for_the_disk_outlives_two_sleeps(bench):
    """Each sleep breaks calls off, and none of them what a provider has already told."""
    until = bench.clock.monotonic() + 120
    bench.wrap = lambda port: FullUntil(port, bench.clock, until)
    async with bench.running():
        task = await bench.submit()
        for _ in range(2):
            await bench.clock.advance(15)
            bench.clock.jump(NIGHT)
            await bench.clock.advance(15)
        assert (await bench.relay.get(task.id)).state is State.SUBMITTING
        await bench.until(task.id, State.DONE, within=200)
    assert len(bench.provider.creates) == 1
