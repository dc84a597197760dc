"""
A call that lasts until there is news: sooner told, seldom asked, broken off by whatever cannot wait.
"""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from vidrelay.core.task import CancelOutcome, State
from vidrelay.scheduler import following
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import ToyProvider

FLOOR = 1.0
A_MOMENT = 1e-6


@pytest.fixture
def bench(bench):
    """A provider whose calls can last, with room for many."""
    bench.adapter = ToyAdapter(follows=True)
    bench.window = 100
    bench.provider.run_seconds = 100.0
    return bench


def followed(bench):
    """When calls that last went out."""
    return [at for at, _, path in bench.provider.calls if path.startswith("/stream")]


def asked(bench):
    """When status requests of any kind went out."""
    return [
        at for at, method, path in bench.provider.calls if method == "GET" and path.startswith(("/jobs", "/stream"))
    ]


async def finished(bench, count=1):
    """Let so many clips be made; returns the polls that the relay counted and how late it learned of each."""
    tasks = [await bench.submit(f"clip {number}") for number in range(count)]
    for task in tasks:
        await bench.until(task.id, State.DONE)
    ends = {job.id: job.ends_at for job in bench.provider.jobs.values()}
    fetched = {path.split("/")[2]: at for at, _, path in reversed(bench.provider.calls) if path.startswith("/files")}
    late = [fetched[job] - ends[job] for job in ends]
    return (await bench.store.counters())["polls"], late


@pytest.mark.parametrize("seconds", [7.0, 33.0, 100.0, 500.0])
async def test_it_asks_less_and_is_told_sooner(bench, seconds):
    """However long a job takes, it is asked for less often than at a pace, and its end is known in a moment."""
    bench.provider.run_seconds = seconds
    async with bench.running():
        polls, late = await finished(bench)
        bench.adapter.traits = ToyAdapter().traits
        both = await finished_again(bench)
    assert late[0] <= 0.5
    assert polls <= both - polls


async def finished_again(bench):
    """Another clip, of another prompt; returns the polls that the relay has counted by then."""
    task = await bench.submit("another")
    await bench.until(task.id, State.DONE)
    return (await bench.store.counters())["polls"]


async def test_forty_are_followed_at_once(bench):
    """Each has a call of its own, all of them last side by side, and what ends is known in a moment."""
    bench.provider.run_seconds, bench.provider.workers = 30.0, 4
    async with bench.running():
        polls, late = await finished(bench, 40)
    assert polls <= 40 * 5
    # The first turns of forty, one every half a second, are over when the second half of the jobs end; then four end
    # at once, and four begin, each of which is asked about.
    assert max(late[len(late) // 2 :]) <= 8 * 0.5


async def test_with_all_lasting_others_are_still_served(bench):
    """More tasks than calls may last: those beyond are asked at their pace, and a new one is created at once."""
    bench.adapter.traits = replace(bench.adapter.traits, poll_spacing=0.0)
    bench.provider.run_seconds = 300.0
    most = following.MAX_FOLLOWED
    async with bench.running():
        for number in range(most + 6):
            await bench.submit(f"clip {number}")
        await bench.clock.advance(12)
        open_now = len(followed(bench)) - len(bench.provider.streams_over)
        before = len(asked(bench))
        await bench.clock.advance(15)
        polled = [path for _, _, path in bench.provider.calls if path.startswith("/jobs/")]
        late = await bench.submit("one more")
        await bench.clock.settle()
        assert (await bench.relay.get(late.id)).state is State.RUNNING
    assert open_now == most
    assert len(asked(bench)) > before
    assert len(set(polled)) == most + 6


async def test_a_wish_to_cancel_breaks_it_off(bench):
    """The provider is told at the very moment, not when the call is over."""
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(20)
        at = bench.clock.monotonic()
        _, outcome = await bench.relay.cancel(task.id)
        assert outcome is CancelOutcome.STOPPED
    assert [when for when, method, _ in bench.provider.calls if method == "DELETE"] == [at]


async def test_a_wish_whose_app_has_gone_breaks_it_off(bench):
    """The app hung up in the moment its wish was stored: the call ends all the same, and the job is stopped."""
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(10)
        began = len(followed(bench))
        with bench.relay.watch() as heard:
            wish = asyncio.create_task(bench.relay.cancel(task.id))
            while (told := await heard.get()) is not None and told.task.cancel is not CancelOutcome.PENDING:
                pass
            wish.cancel()
        await bench.until(task.id, State.CANCELLED, within=5)
    assert began == len(followed(bench)) == 1


async def test_stopping_the_relay_breaks_it_off(bench):
    """No time has to pass for the relay to end."""
    async with bench.running():
        await bench.submit()
        await bench.clock.advance(20)
        at = bench.clock.monotonic()
    assert bench.clock.monotonic() == at
    assert followed(bench)


async def test_a_jump_of_the_clock_breaks_it_off(bench):
    """What is under way may be dead: all is asked for anew within seconds."""
    async with bench.running():
        await bench.submit()
        await bench.clock.advance(20)
        before = len(asked(bench))
        bench.clock.jump(60)
        await bench.clock.advance(8)
    assert len(asked(bench)) == before + 1


async def test_a_sleep_of_the_machine_breaks_it_off(bench):
    """After a night the answer cannot come any more."""
    async with bench.running():
        await bench.submit()
        await bench.clock.advance(20)
        before = len(asked(bench))
        bench.clock.jump(8 * 3600)
        await bench.clock.advance(8)
    assert len(asked(bench)) == before + 1
    assert bench.provider.dropped == 1


async def test_a_pause_breaks_it_off(bench):
    """An account that is told to rest keeps no call open, and asks in the ordinary way first when the rest is over."""
    async with bench.running():
        await bench.submit("one")
        await bench.clock.advance(20)
        begun, over = len(followed(bench)), len(bench.provider.streams_over)
        bench.provider.retry_after = "30"
        bench.provider.arm("create", 429)
        refused = bench.clock.monotonic()
        await bench.submit("two")
        calls = len(bench.provider.calls)
        await bench.clock.advance(29)
        assert len(bench.provider.calls) == calls
        await bench.clock.advance(10)
        first = bench.provider.calls[calls]
    assert begun == over + 1
    assert bench.provider.streams_over[over] == refused
    assert first[2].startswith("/jobs"), "not a call that lasts"


async def test_a_stream_that_ends_at_once_is_asked_at_the_pace(bench):
    """One that never lasts is no more often asked for than a status would be: no hot loop."""
    bench.provider.arm("follow", *["breaks"] * 100)
    async with bench.running():
        polls, _ = await finished(bench)
    async with bench.running():
        bench.adapter.traits = ToyAdapter().traits
        both = await finished_again(bench)
    assert polls <= both - polls + 2
    gaps = [later - sooner for sooner, later in pairwise(followed(bench))]
    assert min(gaps) >= FLOOR - A_MOMENT


async def test_news_all_the_time_is_asked_at_the_pace(bench):
    """A job that goes to and fro between two states is no more often asked for than at the pace."""

    class Restless(ToyProvider):
        turns = 0

        def line(self, ids):
            self.turns += 1
            return super().line(ids).replace(b"working", b"queued" if self.turns % 2 else b"working")

    bench.provider = Restless(bench.clock)
    bench.provider.run_seconds = 100.0
    async with bench.running():
        polls, _ = await finished(bench)
    assert polls <= 16


@pytest.mark.parametrize("fault", ["html", 404, 503, "lost_after", "lost_before"])
async def test_a_stream_that_does_not_work_is_asked_for_as_ever(bench, fault):
    """A refused, empty or odd one is followed by a poll, and none is tried for a minute."""
    bench.provider.run_seconds = 20.0
    bench.provider.arm("follow", *[fault] * 100)
    async with bench.running():
        polls, late = await finished(bench)
    assert len(followed(bench)) == 1
    assert late[0] <= 15
    assert polls <= 8


async def test_a_stream_that_does_not_work_is_tried_again_later(bench):
    """Trouble with one is not for ever."""
    bench.provider.run_seconds = 300.0
    bench.provider.arm("follow", 503)
    async with bench.running():
        _, late = await finished(bench)
    assert len(followed(bench)) > 2
    assert late[0] <= 0.5


# Where one call is for all


@pytest.fixture
def together(bench):
    """A provider that lists as well."""
    bench.adapter = ToyAdapter(follows=True, lists=True)
    return bench


async def test_one_call_lasts_for_all(together):
    """Tasks that were accepted one after another soon are in one call."""
    bench = together
    async with bench.running():
        for number in range(5):
            await bench.submit(f"clip {number}")
            await bench.clock.advance(7)
        await bench.clock.advance(30)
        last = [path for _, _, path in bench.provider.calls if path.startswith("/stream")][-1]
    assert len(last.split(",")) == 5


async def test_a_new_task_joins_the_call(together):
    """It breaks the others' call off, is asked for with them, and is in the next one."""
    bench = together
    async with bench.running():
        await bench.submit("one")
        await bench.clock.advance(20)
        await bench.submit("two")
        await bench.clock.advance(8)
        streams = [path for _, _, path in bench.provider.calls if path.startswith("/stream")]
    assert streams[-1].endswith("=job-1,job-2") or streams[-1].endswith("=job-2,job-1")


async def test_the_wish_to_cancel_one_breaks_the_call_of_all(together):
    """It is told to the provider at once, and the others are followed on."""
    bench = together
    async with bench.running():
        tasks = [await bench.submit(f"clip {number}") for number in range(3)]
        await bench.clock.advance(20)
        at = bench.clock.monotonic()
        _, outcome = await bench.relay.cancel(tasks[1].id)
        assert outcome is CancelOutcome.STOPPED
        assert bench.provider.calls[-1][0] == at
        await bench.clock.advance(10)
        streams = [path for _, _, path in bench.provider.calls if path.startswith("/stream")]
        assert sorted(streams[-1].partition("=")[2].split(",")) == ["job-1", "job-3"]
        for task in (tasks[0], tasks[2]):
            await bench.until(task.id, State.DONE)


async def test_what_is_not_followed_breaks_no_call_off(together):
    """A job that cannot be stopped is asked for beside the call, which lasts."""
    bench = together
    bench.adapter.traits = replace(bench.adapter.traits, can_cancel=False)
    bench.provider.run_seconds = 400.0
    async with bench.running():
        first = await bench.submit("one")
        await bench.submit("two")
        await bench.clock.advance(20)
        await bench.relay.cancel(first.id)
        await bench.clock.advance(10)
        before = len(followed(bench))
        await bench.clock.advance(120)
        by_itself = [path for _, _, path in bench.provider.calls if path == "/jobs/job-1"]
    assert len(followed(bench)) - before <= 3
    assert len(by_itself) > 5


async def test_all_ends_are_known_at_once(together):
    """Many tasks that end one after another: each end is told by one call more or less, in a moment."""
    bench = together
    bench.provider.workers = 1
    bench.provider.run_seconds = 20.0
    async with bench.running():
        polls, late = await finished(bench, 5)
    assert max(late) <= 1.5
    assert polls <= 30
