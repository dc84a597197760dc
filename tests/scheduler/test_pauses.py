"""
While an account rests nothing goes out for it, whatever was under way when the rest began.
"""

from contextlib import asynccontextmanager

import pytest

from vidrelay.core.pace import LONGEST_WAIT
from vidrelay.core.ports import AccountPlan, Refused, Scope
from vidrelay.core.task import BlockReason, State
from vidrelay.scheduler.account import Account
from vidrelay.testing.clock import START
from vidrelay.testing.toy import BASE, ToyAdapter, ToyProvider


class SlowProvider(ToyProvider):
    """
    A far end whose answers to some calls, by method and path, are so many seconds on their way.
    """

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.slow = {}

    @asynccontextmanager
    async def send(self, request, *, timeout):
        """Answer at once, and let the answer travel."""
        async with super().send(request, timeout=timeout) as reply:
            call = request.method, request.url.removeprefix(BASE)
            await self.clock.sleep(self.slow.pop(call, 0))
            yield reply


@pytest.fixture
def account():
    """An account of the toy provider, which rests when told."""
    return Account(AccountPlan(name="toy", provider="toy", adapter=ToyAdapter(), transport=None, downloader=None))


def refuse(account, retry_after, *, monotonic=0.0, reason=BlockReason.RATE, scope=Scope.CALLS):
    """Let the provider refuse a call."""
    refusal = Refused(scope=scope, reason=reason, detail="429", retry_after=retry_after)
    return account.refused(refusal, now=START, monotonic=monotonic, chance=0.0)


async def test_an_older_polls_answer_does_not_end_a_rest_that_began_meanwhile(bench):
    """The answer to a poll that was sent before the 429 says nothing of it: Retry-After wins."""
    bench.provider = SlowProvider(bench.clock)
    bench.provider.run_seconds = 600
    async with bench.running():
        await bench.submit("one")
        await bench.submit("two")
        bench.provider.slow["GET", "/jobs/job-1"] = 8
        bench.provider.arm("poll", None, 429)
        bench.provider.retry_after = "60"
        await bench.clock.advance(5)
        calls = len(bench.provider.calls)
        assert not bench.provider.faults["poll"]
        await bench.clock.advance(50)
        assert len(bench.provider.calls) == calls
        assert bench.relay.accounts()[0].pause is not None
        await bench.clock.advance(30)
        assert len(bench.provider.calls) > calls
        assert bench.relay.accounts()[0].pause is None


async def test_an_older_creates_answer_does_not_end_a_rest_that_began_meanwhile(bench):
    """A create that was sent before the 429 is kept, and what asks for it waits as told."""
    bench.provider = SlowProvider(bench.clock)
    async with bench.running():
        await bench.submit("one")
        await bench.clock.advance(1)
        bench.provider.slow["POST", "/jobs"] = 4
        bench.provider.arm("poll", 429)
        bench.provider.retry_after = "60"
        second = await bench.submit("two")
        await bench.clock.advance(10)
        assert (await bench.relay.get(second.id)).state is State.RUNNING
        calls = len(bench.provider.calls)
        await bench.clock.advance(45)
        assert len(bench.provider.calls) == calls
        await bench.until(second.id, State.DONE, within=60)


def test_a_later_refusal_does_not_shorten_a_rest(account):
    """Of two calls that were under way the one that is told less, or nothing, does not end the other's rest."""
    told = refuse(account, 600.0)
    assert refuse(account, 5.0, monotonic=1.0) == told
    assert refuse(account, None, monotonic=2.0) == told
    assert account.rest(creates=False, monotonic=3.0) == 597.0


def test_a_refusal_is_heard_by_those_who_were_sent_before_it(account):
    """Whoever was sent before the second refusal does not end the rest, though that is still the first one's."""
    refuse(account, 600.0)
    heard = account.heard()
    refuse(account, 5.0)
    assert account.answered(heard) == ()
    assert account.answered(account.heard()) == (Scope.CALLS,)


@pytest.mark.parametrize("told", [0.0, 0.3, -5.0, float("nan")])
def test_a_rest_is_never_shorter_than_the_poll_floor(told):
    """What is told below it is raised to it, and to a second where the adapter has none."""
    for floor, least in ((4.0, 4.0), (0.0, 1.0)):
        adapter = ToyAdapter(poll_floor=floor)
        account = Account(AccountPlan(name="toy", provider="toy", adapter=adapter, transport=None, downloader=None))
        refuse(account, told)
        assert account.rest(creates=True, monotonic=0.0) == least


@pytest.mark.parametrize("told", [LONGEST_WAIT + 1, 1e10, 1e300, float("inf")])
def test_a_rest_is_never_longer_than_a_week(account, told):
    """Whatever an adapter makes of its provider's word, and nothing overflows."""
    refuse(account, told)
    assert account.rest(creates=True, monotonic=0.0) == LONGEST_WAIT


async def test_a_refusal_for_no_time_at_all_is_no_storm(bench):
    """Retry-After: 0, again and again, is a create a second at the most."""
    bench.adapter = ToyAdapter(poll_floor=0.0)
    bench.provider.arm("create", *[429] * 1000)
    bench.provider.retry_after = "0"
    async with bench.running():
        await bench.submit()
        await bench.clock.advance(10)
        assert 5 <= len(bench.provider.creates) <= 11
