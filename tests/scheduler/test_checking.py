"""
An account's key is tried without paying when a person asks for it.
"""

import asyncio

import pytest

from vidrelay.core.errors import UnknownAccount
from vidrelay.core.task import State
from vidrelay.scheduler.face import AccountCheck
from vidrelay.testing.toy.adapter import ToyAdapter


@pytest.fixture
def bench(bench):
    """A provider that can be asked for free."""
    bench.adapter = ToyAdapter(can_check=True)
    return bench


async def check(bench, passing=0.0):
    """What came of a check, and what was told."""
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(bench.relay.check("toy"))
        await bench.clock.advance(passing)
    told: AccountCheck = asked.result()
    assert told.account == "toy"
    return told.ok, told.detail


async def test_a_key_that_is_taken(bench):
    """The provider's own words are told; no task is made, and nothing is paid."""
    async with bench.running():
        assert await check(bench) == (True, "7 left")
        assert bench.relay.live() == []
    assert bench.provider.creates == []
    assert [path for _, _, path in bench.provider.calls] == ["/check"]


@pytest.mark.parametrize(
    ("fault", "ok"), [(401, False), (402, True), (500, None), ("html", None), ("unsent", None), ("lost_after", None)]
)
async def test_what_cannot_be_told_is_not_guessed(bench, fault, ok):
    """Only a provider that says so has refused the key; one without money has taken it. The account goes on."""
    async with bench.running():
        bench.provider.arm("check", fault)
        found, detail = await check(bench)
        assert found is ok
        assert detail
        task = await bench.submit()
        await bench.until(task.id, State.DONE)


async def test_a_provider_that_wants_fewer_calls_is_heeded(bench):
    """A 429 is no word about the key, and lets the account rest; a check in that time sends nothing and says so."""
    async with bench.running():
        bench.provider.arm("check", 429)
        assert await check(bench) == (None, "429")
        calls = len(bench.provider.calls)
        ok, detail = await check(bench)
        assert (ok, len(bench.provider.calls)) == (None, calls)
        assert "rests (rate: 429)" in detail
        await bench.relay.resume("toy")
        assert await check(bench, passing=1.0) == (True, "7 left")


async def test_checks_take_their_turn_with_polls(bench):
    """Two in a row keep the distance of status requests."""
    async with bench.running():
        await check(bench)
        await check(bench, passing=1.0)
    first, second = (at for at, _, _ in bench.provider.calls)
    assert second - first == pytest.approx(0.5)


async def test_a_check_that_goes_through_ends_a_rest_that_is_over(bench):
    """As any call does."""
    async with bench.running():
        bench.provider.arm("check", 429)
        await check(bench)
        await bench.clock.advance(600)
        await check(bench)
        assert bench.relay.accounts()[0].pause is None


async def test_a_provider_without_such_a_call_is_not_asked(bench):
    """That is said, and is no fault."""
    bench.adapter = ToyAdapter()
    async with bench.running():
        ok, detail = await check(bench)
    assert (ok, bench.provider.calls) == (None, [])
    assert "no call that tries the key" in detail


class Broken(ToyAdapter):
    """
    Has a bug in its check.
    """

    def check(self):
        """Fall over the answer."""
        yield from super().check()
        raise KeyError("left")


async def test_a_bug_in_a_check_is_told(bench, caplog):
    """Nothing is known then."""
    bench.adapter = Broken(can_check=True)
    async with bench.running():
        ok, _ = await check(bench)
    assert ok is None
    assert "check.failed" in caplog.text


async def test_an_account_that_is_not_there_cannot_be_checked(bench):
    """It is named in the error."""
    async with bench.running():
        with pytest.raises(UnknownAccount, match="nobody"):
            await bench.relay.check("nobody")
