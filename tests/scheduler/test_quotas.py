"""
What providers tell of what is left to spend is asked behind the scenes, kept, and known at once to the next life.
"""

import pytest

from vidrelay.core.errors import StoreError
from vidrelay.core.task import State
from vidrelay.testing.toy.adapter import ToyAdapter

MINUTES = 60.0


@pytest.fixture
def bench(bench):
    """A provider that tells what is left."""
    bench.adapter = ToyAdapter(can_check=True, tells_quota=True)
    return bench


def left(bench):
    """What is known to be left, and of what."""
    told = bench.relay.accounts()[0].quota
    return None if told is None else (told.quota.left, told.quota.unit)


def questions(bench):
    """When it was asked."""
    return [at for at, _, path in bench.provider.calls if path == "/check"]


async def test_it_is_asked_at_the_start_and_every_hour(bench):
    """Of an account that nothing is made with; the age of what was told is told as well."""
    async with bench.running():
        assert left(bench) == (7, "toys")
        assert bench.relay.accounts()[0].quota.told_at == bench.clock.now()
        await bench.clock.advance(59 * MINUTES)
        assert len(questions(bench)) == 1
        await bench.clock.advance(2 * MINUTES)
    assert len(questions(bench)) == 2


async def test_it_is_asked_sooner_after_a_create_and_not_for_each(bench):
    """Within a quarter of an hour, however many there are."""
    async with bench.running():
        for number in range(5):
            task = await bench.submit(f"clip {number}")
            await bench.until(task.id, State.DONE)
        assert len(questions(bench)) == 1
        await bench.clock.advance(15 * MINUTES)
        assert len(questions(bench)) == 2
        await bench.clock.advance(50 * MINUTES)
    assert len(questions(bench)) == 2


async def test_a_start_knows_what_was_told_before(bench):
    """The provider cannot be reached, and what it told is known with its age."""
    async with bench.running():
        told_at = bench.clock.now()
    bench.provider.arm("check", "unsent")
    await bench.clock.advance(30 * MINUTES)
    async with bench.running():
        assert left(bench) == (7, "toys")
        assert bench.relay.accounts()[0].quota.told_at == told_at


async def test_an_account_whose_provider_tells_nothing_is_not_asked(bench):
    """Its key can be tried, and that is all."""
    bench.adapter = ToyAdapter(can_check=True)
    async with bench.running():
        await bench.clock.advance(120 * MINUTES)
        assert left(bench) is None
    assert questions(bench) == []


@pytest.mark.parametrize("fault", ["unsent", "html", 500, 401, 402])
async def test_trouble_with_the_question_holds_nothing_up(bench, fault):
    """A key that makes clips need not be one that may ask for a balance; what is not told is null."""
    bench.provider.arm("check", fault)
    async with bench.running():
        assert left(bench) is None
        assert bench.relay.accounts()[0].pause is None
        task = await bench.submit()
        await bench.until(task.id, State.DONE)


async def test_an_account_that_rests_is_not_asked(bench):
    """Too many calls is a word to all of them; when that is over it is asked."""
    bench.provider.retry_after = "1000"
    bench.provider.arm("create", 429)
    async with bench.running():
        await bench.submit()
        await bench.clock.advance(900 + 60)
        assert len(questions(bench)) == 1
        await bench.clock.advance(100)
    assert len(questions(bench)) == 2


async def test_an_idle_relay_writes_it_once(bench):
    """The same words are not kept again, for a day."""
    async with bench.running():
        before = (await bench.store.counters())["stateWrites"]
        await bench.clock.advance(20 * 60 * MINUTES)
        assert (await bench.store.counters())["stateWrites"] == before
    assert len(questions(bench)) > 15


class Forgetful:
    """
    A database that cannot keep what is left just now.
    """

    def __init__(self, port):
        object.__setattr__(self, "_port", port)

    def __getattr__(self, name):
        return getattr(self._port, name)

    def __setattr__(self, name, value):
        setattr(self._port, name, value)

    async def keep_quota(self, told):
        raise self._port_error


def forgetful(error):
    """A database that meets that error when it is to keep what is left."""

    def wrap(port):
        if not hasattr(port, "keep_quota"):
            return port
        wrapped = Forgetful(port)
        object.__setattr__(wrapped, "_port_error", error)
        return wrapped

    return wrap


@pytest.mark.parametrize("error", [StoreError("busy"), RuntimeError("a bug")], ids=["busy", "bug"])
async def test_what_cannot_be_stored_is_known_all_the_same(bench, error):
    """It is asked again soon enough, and holds nothing else up."""
    bench.wrap = forgetful(error)
    async with bench.running():
        assert left(bench) == (7, "toys")
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
    bench.provider.arm("check", "unsent")
    async with bench.running():
        assert left(bench) is None
