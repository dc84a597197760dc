"""
The status requests of one account leave one after another, however many tasks it has and whatever makes them due.
"""

from itertools import pairwise

import pytest

from vidrelay.core.adapter import Dedupe
from vidrelay.core.messages import HttpRequest
from vidrelay.core.task import State
from vidrelay.scheduler.converse import is_status
from vidrelay.testing.toy.adapter import ToyAdapter

A_MOMENT = 1e-6


def asked(bench):
    """When status requests, of any job or for the list, went out."""
    return [at for at, method, path in bench.provider.calls if method == "GET" and path.startswith("/jobs")]


def gaps(bench):
    """The seconds between them."""
    return [later - earlier for earlier, later in pairwise(asked(bench))]


@pytest.mark.parametrize("jump", [8 * 3600, 10 * 365 * 86_400, -86_400], ids=["a night", "ten years", "a day back"])
async def test_a_hundred_tasks_are_asked_for_twice_a_second_at_the_most(bench, jump):
    """All fall due at once, first by their age and then by a jump of the clock: every one is asked for, in turn."""
    bench.window = 100
    bench.provider.run_seconds = 100_000
    async with bench.running():
        for number in range(100):
            await bench.submit(f"clip {number}")
        await bench.clock.advance(60)
        before = {job: len(bench.provider.polls_of(job)) for job in bench.provider.jobs}
        assert len(before) == 100
        bench.clock.jump(jump)
        await bench.clock.advance(60)
        assert all(len(bench.provider.polls_of(job)) > polls for job, polls in before.items())
    assert min(gaps(bench)) >= 0.5 - A_MOMENT
    # No turn is wasted either.
    assert len(asked(bench)) >= 230


async def test_a_restart_with_a_hundred_tasks_is_no_storm(bench):
    """What an earlier life left is asked for in turn, too."""
    bench.window = 100
    bench.provider.run_seconds = 100_000
    async with bench.running(kill=True):
        for number in range(100):
            await bench.submit(f"clip {number}")
    bench.provider.calls.clear()
    async with bench.running():
        await bench.clock.advance(55)
    assert min(gaps(bench)) >= 0.5 - A_MOMENT
    assert {path for _, _, path in bench.provider.calls} == {f"/jobs/job-{number}" for number in range(1, 101)}


async def test_the_end_of_a_rest_is_no_storm(bench):
    """After a 429 one goes first, and the others follow in turn."""
    bench.window = 50
    bench.provider.run_seconds = 100_000
    async with bench.running():
        for number in range(50):
            await bench.submit(f"clip {number}")
        bench.provider.arm("poll", 429)
        bench.provider.retry_after = "30"
        await bench.clock.advance(100)
    assert min(gaps(bench)) >= 0.5 - A_MOMENT
    assert len({path for _, method, path in bench.provider.calls if method == "GET"}) == 50


async def test_look_ups_of_lost_creates_take_turns_with_polls(bench):
    """Twenty lost creates are looked for at the same times, and a running task is polled among them."""
    bench.window = 40
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.provider.run_seconds = 100_000
    async with bench.running():
        for number in range(10):
            await bench.submit(f"clip {number}")
        bench.provider.arm("create", *["lost_before"] * 20)
        for number in range(20):
            await bench.submit(f"lost {number}")
        await bench.clock.advance(700)
        lost = [task for task in bench.relay.live() if task.state is State.UNCERTAIN]
    assert len(lost) == 20
    assert min(gaps(bench)) >= 0.5 - A_MOMENT
    looked = len([call for call in bench.provider.calls if call[2] == "/jobs" and call[1] == "GET"])
    # Who gets a turn so late that the next look-up is due too makes one of both.
    assert 20 * 5 <= looked <= 20 * 6


async def test_a_server_on_ones_own_machine_is_asked_without_turns(bench):
    """Loopback costs nobody anything: twenty tasks that are due at once are asked for at once."""
    bench.window = 20
    bench.adapter = ToyAdapter(poll_floor=0.0, poll_spacing=0.0)
    async with bench.running():
        tasks = [await bench.submit(f"clip {number}") for number in range(20)]
        await bench.clock.advance(2.5)
        assert len(asked(bench)) >= 20
        for task in tasks:
            await bench.until(task.id, State.DONE, within=30)


@pytest.mark.parametrize("jump", [3600, -3600, 10 * 365 * 86_400], ids=["an hour on", "an hour back", "ten years on"])
async def test_a_lost_create_is_looked_for_at_its_times_whatever_the_clock_does(bench, jump):
    """Jumps of the wall clock bring no look-up forward and put none off."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        await bench.submit()
        lost_at = bench.clock.monotonic()
        for number in range(70):
            if number % 4 == 0:
                bench.clock.jump(jump if number % 8 else -jump)
            await bench.clock.advance(10)
    assert [round(at - lost_at) for at in asked(bench)] == [5, 15, 45, 120, 300, 600]


def test_a_post_that_only_asks_is_a_status_request_too():
    """Where every call is a POST the adapter says which ones only ask; what makes or stops something is none."""
    address = "https://x.example/?Action=Get"
    assert is_status(HttpRequest(method="POST", url=address, asks=True))
    assert is_status(HttpRequest(method="GET", url=address))
    assert not is_status(HttpRequest(method="POST", url=address))
