"""
Troubles that last, that come in crowds, or that are one account's alone.
"""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from vidrelay.core.lifecycle import Ready
from vidrelay.core.task import Request, State
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import ToyProvider


class Endless:
    """
    A trouble that every call meets.
    """

    def __init__(self, fault) -> None:
        self.fault = fault

    def popleft(self):
        """The next is the same."""
        return self.fault


class ForgetfulAdapter(ToyAdapter):
    """
    An adapter whose provider tells an id that it has told before.
    """

    told = None

    def submit(self, task):
        """One call."""
        outcome = yield from super().submit(task)
        return replace(outcome, remote_id=self.told or outcome.remote_id)


@pytest.mark.parametrize("fault", [500, 503, 429, 408, "lost_before", "html", "unsent"])
async def test_a_downloads_trouble_never_fails_a_paid_task(bench, fault):
    """Whatever goes wrong while fetching is fetched again, for many minutes; nothing is published that is not whole."""
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(5)
        bench.provider.faults["download"] = Endless(fault)
        await bench.until(task.id, State.DOWNLOADING)
        await bench.clock.advance(900)
        assert (await bench.relay.get(task.id)).state is State.DOWNLOADING
        assert list(bench.folder.rglob("*.mp4")) == []
        del bench.provider.faults["download"]
        await bench.until(task.id, State.DONE, within=90)
    assert len(bench.provider.creates) == 1


async def test_a_result_that_never_becomes_a_file_says_what_was_paid(bench):
    """Half an hour of pages instead of a clip, at several addresses: failed, with the remote job's name."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.faults["download"] = Endless("html")
        failed = await bench.until(task.id, State.FAILED, within=2000)
    assert failed.error.code == "result_lost"
    assert "job-1" in failed.error.detail
    addresses = {path for _, _, path in bench.provider.calls if path.startswith("/files/")}
    assert len(addresses) > 3


@pytest.mark.parametrize("fault", [503, "html"])
async def test_a_task_tells_why_its_result_is_not_here_yet(bench, fault):
    """What keeps it away and when it is asked for again; whoever watches is told once, not at each try."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.faults["download"] = Endless(fault)
        await bench.until(task.id, State.DOWNLOADING)
        with bench.relay.watch() as heard:
            await bench.clock.advance(60)
            told = bench.relay.standing(await bench.relay.get(task.id)).waiting_for
            asked_again = told.until > bench.clock.now()
            del bench.provider.faults["download"]
            await bench.until(task.id, State.DONE, within=90)
    assert (told.reason, asked_again) == ("network", True)
    assert told.detail
    assert heard.qsize() < 6


async def test_a_task_tells_that_its_result_waits_for_room_on_the_disk(bench):
    """As `blocked` too, with the next try's time as that moves on; whoever watches is told once, not at each try."""
    bench.room = False
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DOWNLOADING)
        with bench.relay.watch() as heard:
            for _ in range(4):
                await bench.clock.advance(25)
                told = bench.relay.standing(await bench.relay.get(task.id))
                assert told.blocked == told.waiting_for
                assert told.blocked.reason == "disk"
                assert "room on the disk" in told.blocked.detail
                assert bench.clock.now() < told.blocked.until <= bench.clock.now() + timedelta(seconds=30)
            assert heard.qsize() == 0
            bench.room = True
            await bench.until(task.id, State.DONE, within=40)
    assert bench.relay.standing(await bench.relay.get(task.id)).blocked is None
    assert len(bench.provider.creates) == 1


async def test_who_watches_is_told_when_the_disk_becomes_too_full_for_a_result(bench):
    """One announcement beside those of the states, and it says why and until when."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.faults["download"] = Endless(503)
        await bench.until(task.id, State.DOWNLOADING)
        await bench.clock.advance(5)
        del bench.provider.faults["download"]
        bench.room = False
        with bench.relay.watch() as heard:
            await bench.clock.advance(100)
            (announced,) = [heard.get_nowait() for _ in range(heard.qsize())]
        assert announced.task.id == task.id
        assert bench.relay.standing(announced.task).blocked.reason == "disk"


async def test_a_dead_addresss_renewals_are_spaced(bench):
    """Between the askings for a fresh address there is a second at least, and there are three at the most."""
    bench.provider.dead_addresses.update(f"/files/job-1/{number}" for number in range(20))
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.FAILED)
    fetched = [at for at, _, path in bench.provider.calls if path.startswith("/files/")]
    assert len(fetched) == 4
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(fetched))


async def test_a_file_that_shows_late_is_not_lost(bench):
    """For two minutes every address is dead, however fresh; then the paid clip is there."""
    bench.provider.dead_addresses.update(f"/files/job-1/{number}" for number in range(20))
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DOWNLOADING)
        await bench.clock.advance(120)
        bench.provider.dead_addresses.clear()
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


class TwoPlaces(ToyAdapter):
    """
    A provider that names a second address of each file.
    """

    def poll(self, task):
        """As the toy's."""
        seen = yield from super().poll(task)
        if isinstance(seen, Ready):
            return replace(seen, outputs=tuple(replace(one, otherwise=f"{one.url}/copy") for one in seen.outputs))
        return seen


@pytest.mark.parametrize("fault", ["dead", 502])
async def test_a_file_is_fetched_from_its_other_address(bench, fault):
    """At once, where the first is dead or its server fails; no fresh address is asked for."""
    bench.adapter = TwoPlaces()
    if fault == "dead":
        bench.provider.dead_addresses.add("/files/job-1/1")
    else:
        bench.provider.arm("download", fault)
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
    fetched = [path for _, _, path in bench.provider.calls if path.startswith("/files/")]
    assert fetched == ["/files/job-1/1", "/files/job-1/1/copy"]


async def test_a_file_that_neither_address_gives_is_lost_as_any(bench):
    """After as many fresh addresses, and it is told what both answered."""
    bench.adapter = TwoPlaces()
    for number in range(20):
        bench.provider.dead_addresses |= {f"/files/job-1/{number}", f"/files/job-1/{number}/copy"}
    async with bench.running():
        task = await bench.submit()
        failed = await bench.until(task.id, State.FAILED)
    assert failed.error.code == "result_lost"
    assert "Its other address does not give it either" in failed.error.detail
    assert len([path for _, _, path in bench.provider.calls if path.endswith("/copy")]) == 4


async def test_a_remote_id_that_is_another_tasks_leaves_the_second_uncertain(bench):
    """One provider, one id given twice: the first task keeps it, the second is not paid for again by itself."""
    bench.adapter = ForgetfulAdapter()
    async with bench.running():
        first = await bench.submit("one")
        bench.adapter.told = "job-1"
        second = await bench.submit("two")
        lost = await bench.relay.get(second.id)
        assert (lost.state, lost.remote_id) == (State.UNCERTAIN, None)
        await bench.until(first.id, State.DONE)
        await bench.clock.advance(900)
        assert (await bench.relay.get(second.id)).state is State.UNCERTAIN
    assert len(bench.provider.creates) == 2


@pytest.mark.parametrize("fault", [401, 402])
async def test_a_thousand_tasks_without_a_good_key_cost_three_calls_in_ten_minutes(bench, fault):
    """However many queue, and however many places there are."""
    bench.window = 1000
    bench.provider.arm("create", *[fault] * 50)
    async with bench.running():
        for number in range(1000):
            await bench.relay.submit(Request(prompt=f"clip {number}"))
        await bench.clock.advance(600)
        assert len(bench.relay.live()) == 1000
    assert 1 <= len(bench.provider.calls) <= 3


@pytest.mark.parametrize("fault", [401, 402, 429])
async def test_a_rest_is_one_accounts_alone(bench, fault):
    """Another account's tasks go on meanwhile."""
    bench.others["other"] = other = ToyProvider(bench.clock)
    bench.provider.retry_after = "600"
    bench.provider.arm("create", fault)
    async with bench.running():
        resting = await bench.submit("one")
        going = await bench.submit("two", account="other")
        await bench.until(going.id, State.DONE, within=60)
        assert (await bench.relay.get(resting.id)).state is State.QUEUED
    assert (len(bench.provider.creates), len(other.creates)) == (1, 1)
