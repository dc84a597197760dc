"""
While an account rests nothing goes out for it, whatever was under way when the rest began.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from vidrelay.core.adapter import Dedupe, Refused, Scope, Trouble
from vidrelay.core.errors import TransportError
from vidrelay.core.lifecycle import Ready
from vidrelay.core.messages import HttpRequest
from vidrelay.core.pace import LONGEST_WAIT
from vidrelay.core.plan import AccountPlan
from vidrelay.core.task import BlockReason, RemoteFile, State
from vidrelay.scheduler.account import Account
from vidrelay.testing.clock import START
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import BASE, ToyProvider


class SlowProvider(ToyProvider):
    """
    A far end that is slow to some calls, by method and path: so many seconds to open the way, or for the answer.
    """

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.slow = {}
        self.far = {}

    @asynccontextmanager
    async def send(self, request, *, timeout):
        """Open the way, answer at once, and let the answer travel."""
        call = request.method, request.url.removeprefix(BASE)
        await self.clock.sleep(self.far.pop(call, 0))
        if request.may_go is not None and not request.may_go():
            raise TransportError("held back", maybe_sent=False)
        async with super().send(request, timeout=timeout) as reply:
            await self.clock.sleep(self.slow.pop(call, 0))
            yield reply


class AskingAdapter(ToyAdapter):
    """
    An adapter that lists before it creates.
    """

    def submit(self, task):
        """Two calls."""
        yield HttpRequest(method="GET", url=f"{BASE}/jobs")
        return (yield from super().submit(task))


class TellingAdapter(ToyAdapter):
    """
    An adapter that tells of a 503 with the time it asks for, and whose files want the account's key.
    """

    def poll(self, task):
        """One call."""
        return (yield from self.telling(super().poll(task)))

    def find(self, task, search):
        """One call."""
        return (yield from self.telling(super().find(task, search)))

    def cancel(self, task):
        """One call."""
        return (yield from self.telling(super().cancel(task)))

    def telling(self, conversation):
        """Read the reply first."""
        reply = yield next(conversation)
        if reply.status == 503:
            return Trouble(detail="503", retry_after=float(reply.headers["retry-after"]))
        try:
            conversation.send(reply)
        except StopIteration as stop:
            outcome = stop.value
        if isinstance(outcome, Ready):
            return Ready(outputs=tuple(RemoteFile(url=output.url, needs_key=True) for output in outcome.outputs))
        return outcome


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


async def test_a_create_that_waits_for_its_connection_is_held_back_by_a_rest(bench):
    """The account came to rest while the way was opened: nothing is sent till the rest is over, and then once."""
    bench.provider = SlowProvider(bench.clock)
    async with bench.running():
        await bench.submit("one")
        await bench.clock.advance(1)
        bench.provider.far["POST", "/jobs"] = 4
        bench.provider.arm("poll", 429)
        bench.provider.retry_after = "60"
        second = await bench.submit("two")
        await bench.clock.advance(55)
        assert len(bench.provider.creates) == 1
        waiting = await bench.relay.get(second.id)
        assert waiting.state is State.QUEUED
        assert bench.relay.standing(waiting).blocked.reason == "rate"
        await bench.until(second.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 2


async def test_a_create_whose_preparation_took_long_is_held_back_by_a_rest(bench):
    """The account came to rest between two calls of one conversation: the second, which costs money, waits."""
    bench.provider, bench.adapter = SlowProvider(bench.clock), AskingAdapter()
    async with bench.running():
        await bench.submit("one")
        await bench.clock.advance(1)
        bench.provider.slow["GET", "/jobs"] = 4
        bench.provider.arm("poll", 429)
        bench.provider.retry_after = "60"
        second = await bench.submit("two")
        await bench.clock.advance(55)
        assert len(bench.provider.creates) == 1
        assert (await bench.relay.get(second.id)).state is State.QUEUED
        await bench.until(second.id, State.DONE, within=60)
    assert len(bench.provider.creates) == 2


async def test_a_poll_that_waits_for_its_connection_is_held_back_by_a_rest(bench):
    """It is sent when the rest is over."""
    bench.provider = SlowProvider(bench.clock)
    bench.provider.run_seconds = 600
    async with bench.running():
        await bench.submit("one")
        await bench.submit("two")
        bench.provider.far["GET", "/jobs/job-1"] = 2
        bench.provider.arm("poll", 429)
        bench.provider.retry_after = "60"
        await bench.clock.advance(55)
        assert bench.provider.polls_of("job-1") == []
        await bench.clock.advance(30)
        assert len(bench.provider.polls_of("job-1")) >= 1


@pytest.mark.parametrize("jump", [0, 8 * 3600])
async def test_what_a_provider_asks_for_after_trouble_outweighs_all_else(bench, jump):
    """A 503 that names a time is asked again then, whatever makes the task due before: a jump of the clock, say."""
    bench.adapter = TellingAdapter()
    async with bench.running():
        await bench.submit()
        bench.provider.arm("poll", 503)
        bench.provider.retry_after = "90"
        await bench.clock.advance(3)
        polls = len(bench.provider.polls_of("job-1"))
        bench.clock.jump(jump)
        await bench.clock.advance(85)
        assert len(bench.provider.polls_of("job-1")) == polls
        await bench.clock.advance(5)
        assert len(bench.provider.polls_of("job-1")) > polls


async def test_a_person_outweighs_what_a_provider_asked_for_after_trouble(bench):
    """Seven days for one task, which nobody can have meant, end when the user resumes the account."""
    bench.adapter = TellingAdapter()
    async with bench.running():
        task = await bench.submit()
        bench.provider.arm("poll", 503)
        bench.provider.retry_after = "9999999"
        await bench.clock.advance(600)
        assert (await bench.relay.get(task.id)).state is State.RUNNING
        await bench.relay.resume("toy")
        await bench.until(task.id, State.DONE, within=10)


async def test_a_look_up_waits_as_the_provider_asks_and_is_made_all_the_same(bench):
    """A 503 that names a time longer than the look-ups last does not use the last of them up."""
    bench.adapter = TellingAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_after")
    bench.provider.arm("list", 503)
    bench.provider.retry_after = "2000"
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(1990)
        assert len([call for call in bench.provider.calls if call[1:] == ("GET", "/jobs")]) == 1
        await bench.until(task.id, State.DONE, within=60)


async def test_a_wish_to_cancel_waits_as_the_provider_asks(bench):
    """A 503 to the wish that names a time: neither the wish nor a poll goes out before, and then both do."""
    bench.adapter = TellingAdapter()
    bench.provider.run_seconds = 600
    bench.provider.arm("cancel", 503)
    bench.provider.retry_after = "90"
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(3)
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.relay.cancel(task.id))
            await bench.clock.advance(1)
            calls = len(bench.provider.calls)
            await bench.clock.advance(85)
            assert len(bench.provider.calls) == calls
            await bench.clock.advance(10)
        assert [method for _, method, _ in bench.provider.calls[calls:]][:2] == ["GET", "DELETE"]
        assert (await bench.relay.get(task.id)).state is State.CANCELLED


async def test_files_of_the_providers_own_wait_for_the_end_of_a_rest(bench):
    """A download that takes the account's key is a call as any other, and its task says what it waits for."""
    bench.adapter = TellingAdapter()
    bench.provider.arm("download", 500)
    async with bench.running():
        task = await bench.submit("one")
        await bench.until(task.id, State.DOWNLOADING)
        bench.provider.arm("create", 429)
        bench.provider.retry_after = "60"
        await bench.submit("two")
        calls = len(bench.provider.calls)
        await bench.clock.advance(55)
        assert len(bench.provider.calls) == calls
        told = bench.relay.standing(await bench.relay.get(task.id))
        assert (told.blocked.reason, told.waiting_for) == ("rate", told.blocked)
        assert told.blocked.until > bench.clock.now()
        await bench.until(task.id, State.DONE, within=100)
