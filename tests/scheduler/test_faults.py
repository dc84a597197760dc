"""
Trouble on the way: what may be repeated is, what may have been paid for is not.
"""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from vidrelay.core.adapter import Dedupe
from vidrelay.core.errors import DuplicateRemote, InvalidRequest, WrongState
from vidrelay.core.task import Blocked, Resolution, State
from vidrelay.testing.toy.adapter import ToyAdapter


async def test_a_create_that_was_never_sent_is_sent_again(bench):
    """No byte left: the task goes back to its place in line and is sent later, once."""
    bench.provider.arm("create", "unsent", "unsent")
    async with bench.running():
        task = await bench.submit()
        assert (await bench.relay.get(task.id)).state is State.QUEUED
        done = await bench.until(task.id, State.DONE)
        counters = await bench.store.counters()
    assert len(bench.provider.creates) == 1
    assert done.attempts == 3
    assert (counters["createAttempts"], counters["retries"]) == (3, 2)


async def test_a_create_that_is_sent_again_bears_its_first_key(bench):
    """By that key a provider that replays its first answer knows the second try, and makes nothing twice."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.REPLAY)
    bench.provider.arm("create", "lost_after", "unsent")
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 2
    assert len({create["key"] for create in bench.provider.creates}) == 1


@pytest.mark.parametrize("fault", ["lost_before", "lost_after", 500, 502, "no_id"])
async def test_a_lost_answer_is_never_followed_by_a_second_create(bench, fault):
    """Where it cannot be settled the task stays uncertain, with an explanation."""
    bench.provider.arm("create", fault)
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(3600)
        lost = await bench.relay.get(task.id)
        assert lost.state is State.UNCERTAIN
        assert "may already be charged" in lost.error.detail
        assert bench.relay.standing(lost).blocked == Blocked(reason="lookup", until=None)
    assert len(bench.provider.creates) == 1


async def test_no_look_up_is_announced_where_nothing_can_be_looked_up(bench):
    """From the first moment only a person can settle it, and nothing is asked."""
    bench.provider.arm("create", "lost_after")
    async with bench.running():
        task = await bench.submit()
        lost = await bench.until(task.id, State.UNCERTAIN)
        assert bench.relay.standing(lost).blocked == Blocked(reason="lookup", until=None)
        await bench.clock.advance(60)
        assert not (await bench.relay.stats()).counters.get("polls")


async def test_a_lost_create_is_found_in_the_providers_list(bench):
    """A job that arrived is adopted, and the task ends done with one create."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_after")
    async with bench.running():
        task = await bench.submit()
        lost = await bench.relay.get(task.id)
        assert lost.state is State.UNCERTAIN
        assert bench.relay.standing(lost).blocked.until == lost.updated_at + timedelta(seconds=5)
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_two_equal_lost_creates_are_left_to_a_person(bench):
    """One job and two tasks that may own it: neither takes it by itself."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_after", "lost_before")
    async with bench.running():
        first = await bench.submit()
        second = await bench.submit(force_refresh=True)
        await bench.clock.advance(700)
        states = {(await bench.relay.get(task.id)).state for task in (first, second)}
        assert states == {State.UNCERTAIN}
        assert bench.relay.standing(await bench.relay.get(first.id)).candidates == ("job-1",)
        adopted = await bench.relay.resolve(first.id, Resolution.ADOPT, remote_id="job-1")
        assert adopted.remote_id == "job-1"
        with pytest.raises(DuplicateRemote):
            await bench.relay.resolve(second.id, Resolution.ADOPT, remote_id="job-1")
        with pytest.raises(InvalidRequest):
            await bench.relay.resolve(second.id, Resolution.ADOPT, remote_id="../job")
        await bench.relay.resolve(second.id, Resolution.ABANDON)
        assert (await bench.relay.get(second.id)).state is State.CANCELLED


async def test_an_adopted_job_is_not_asked_for_twice_at_once(bench):
    """The look at a job before it is adopted counts as a poll of it."""
    bench.provider.arm("create", "lost_after")
    async with bench.running():
        task = await bench.submit()
        await bench.relay.resolve(task.id, Resolution.ADOPT, remote_id="job-1")
        await bench.clock.advance(0.9)
        assert len(bench.provider.polls_of("job-1")) == 1
        await bench.until(task.id, State.DONE)


async def test_two_people_who_adopt_one_job_ask_for_it_one_after_the_other(bench):
    """The second asks when the first has really left, which is later than it was due, and the floor has passed."""
    bench.provider.arm("create", "lost_after", "lost_after")
    async with bench.running():
        other, task = await bench.submit("another"), await bench.submit()
        asked = [
            asyncio.ensure_future(bench.relay.resolve(other.id, Resolution.ADOPT, remote_id="job-1")),
            asyncio.ensure_future(bench.relay.resolve(task.id, Resolution.ADOPT, remote_id="job-2")),
            asyncio.ensure_future(bench.relay.resolve(task.id, Resolution.ADOPT, remote_id="job-2")),
        ]
        await bench.clock.advance(10)
        await asyncio.gather(*asked, return_exceptions=True)
    first, second, *_ = bench.provider.polls_of("job-2")
    assert second - first >= 1.0


async def test_an_adoption_that_comes_too_late_asks_nothing(bench):
    """Two people adopt and a third gives the task up: who comes after that is told so, and the job is left alone."""
    bench.provider.arm("create", "lost_after")
    bench.provider.poll_seconds = 0.5
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.UNCERTAIN)
        adopting = [
            asyncio.create_task(bench.relay.resolve(task.id, Resolution.ADOPT, remote_id="job-1")) for _ in range(2)
        ]
        await bench.clock.advance(0.1)
        await bench.relay.resolve(task.id, Resolution.ABANDON)
        await bench.clock.advance(0.4)
        came = await asyncio.gather(*adopting, return_exceptions=True)
    assert [type(one) for one in came] == [WrongState, WrongState]
    assert len(bench.provider.polls_of("job-1")) == 1


async def test_a_mistyped_adoption_is_refused_and_changes_nothing(bench):
    """A job that the provider does not know cannot be adopted; the person can try again."""
    bench.provider.arm("create", "lost_after")
    async with bench.running():
        task = await bench.submit()
        with pytest.raises(InvalidRequest):
            await bench.relay.resolve(task.id, Resolution.ADOPT, remote_id="job-77")
        assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
        await bench.clock.advance(1)
        await bench.relay.resolve(task.id, Resolution.ADOPT, remote_id="job-1")
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_a_retry_is_sent_only_because_a_person_says_so(bench):
    """`resolve retry` sends the create a second time, and only an uncertain task takes it."""
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        task = await bench.submit()
        await bench.relay.resolve(task.id, Resolution.RETRY)
        await bench.until(task.id, State.DONE)
        with pytest.raises(WrongState):
            await bench.relay.resolve(task.id, Resolution.RETRY)
    assert len(bench.provider.creates) == 2


async def test_retry_after_is_obeyed_on_creates(bench):
    """After a 429 nothing is sent until the told time has passed, and then once."""
    bench.provider.arm("create", 429)
    bench.provider.retry_after = "40"
    async with bench.running():
        task = await bench.submit()
        await bench.submit("another")
        await bench.clock.advance(39)
        assert len(bench.provider.creates) == 1
        blocked = bench.relay.standing(await bench.relay.get(task.id)).blocked
        assert blocked.reason == "rate"
        await bench.clock.advance(2)
        assert len(bench.provider.creates) >= 2
        await bench.until(task.id, State.DONE)


async def test_retry_after_is_obeyed_on_polls(bench):
    """A rate-limited poll rests the account's calls that long; the task done meanwhile is fetched then."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.arm("poll", 429)
        bench.provider.retry_after = "60"
        await bench.clock.advance(3)
        polls = len(bench.provider.polls_of("job-1"))
        await bench.clock.advance(55)
        assert len(bench.provider.polls_of("job-1")) == polls
        await bench.until(task.id, State.DONE, within=30)


async def test_a_wrong_key_costs_at_most_three_calls_in_ten_minutes(bench):
    """401 pauses the account, not the task: few calls are made until it is mended."""
    bench.provider.arm("create", *[401] * 20)
    async with bench.running():
        task = await bench.submit()
        await bench.submit("two")
        await bench.clock.advance(600)
        assert len(bench.provider.creates) <= 3
        assert bench.relay.standing(await bench.relay.get(task.id)).blocked.reason == "auth"
        bench.provider.faults.clear()
        await bench.relay.resume("toy")
        await bench.until(task.id, State.DONE)


@pytest.mark.parametrize("fault", [500, 503, "lost_before", "html", "unsent"])
async def test_a_polls_trouble_never_fails_a_paid_task(bench, fault):
    """Whatever goes wrong while asking is asked again."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.arm("poll", *[fault] * 8)
        await bench.until(task.id, State.DONE, within=900)
    assert len(bench.provider.creates) == 1


async def test_not_there_means_not_yet_at_first(bench):
    """A 404 within the grace after a create is no end."""
    async with bench.running():
        task = await bench.submit()
        bench.provider.arm("poll", 404, 404, 404, 404)
        await bench.until(task.id, State.DONE)


async def test_not_there_three_times_later_ends_the_task(bench):
    """A provider that has forgotten the job is believed the third time."""
    bench.provider.run_seconds = 600
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(100)
        bench.provider.forget()
        asked = len(bench.provider.polls_of("job-1"))
        failed = await bench.until(task.id, State.FAILED)
    assert failed.error.code == "remote_unknown"
    assert len(bench.provider.polls_of("job-1")) == asked + 3


async def test_a_dead_address_is_renewed_by_asking_again(bench):
    """The second address works, and the clip is done."""
    bench.provider.dead_addresses.add("/files/job-1/1")
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)


async def test_a_result_that_cannot_be_fetched_says_what_was_paid(bench):
    """After three fresh addresses the task fails, naming the remote job."""
    bench.provider.dead_addresses.update(f"/files/job-1/{number}" for number in range(20))
    async with bench.running():
        task = await bench.submit()
        failed = await bench.until(task.id, State.FAILED)
    assert failed.error.code == "result_lost"
    assert "job-1" in failed.error.detail


async def test_a_task_without_a_sign_of_life_expires(bench):
    """Two hours without a change, asked again just now: expired, its place held for the longest run."""
    bench.provider.workers = 0
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(7100)
        assert (await bench.relay.get(task.id)).state is State.RUNNING
        expired = await bench.until(task.id, State.EXPIRED, within=200)
    assert expired.place_until > bench.clock.now()


async def test_an_overnight_sleep_loses_nothing(bench):
    """The wall clock moved by eight hours while nothing ran: the task is asked for at once and not expired."""
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(3)
        bench.clock.jump(8 * 3600)
        await bench.until(task.id, State.DONE, within=60)


async def test_nothing_makes_a_job_be_asked_for_before_the_floor(bench):
    """Jumps of the clock make a running job due at once, and the provider's floor still holds."""
    bench.chance = lambda: 0.0
    async with bench.running():
        await bench.submit()
        await bench.clock.advance(1.7)
        for number in range(6):
            bench.clock.jump(3600)
            await bench.submit("another", seed=number)
            await bench.clock.advance(0.3)
    polls = bench.provider.polls_of("job-1")
    assert len(polls) >= 2
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(polls))


async def test_a_job_of_another_account_at_the_same_far_end_is_not_the_lost_one(bench):
    """Two accounts share a server: what one of them lost is not found in the job of the other, nor adopted by hand."""
    bench.adapter = ToyAdapter(dedupe=Dedupe.LIST)
    bench.others = {"second": bench.provider}
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        lost = await bench.submit(account="toy")
        assert lost.account == "toy"
        other = await bench.submit(account="second")
        await bench.clock.advance(6)
        theirs = (await bench.relay.get(other.id)).remote_id
        assert theirs is not None
        assert (await bench.relay.get(lost.id)).state is State.UNCERTAIN
        with pytest.raises(DuplicateRemote):
            await bench.relay.resolve(lost.id, Resolution.ADOPT, remote_id=theirs)


async def test_a_task_that_waited_long_in_line_still_owns_its_job(bench):
    """The job of a task that was made hours before it was sent is not taken for a lost one."""
    bench.adapter, bench.window = ToyAdapter(dedupe=Dedupe.LIST), 1
    bench.provider.run_seconds = 2 * 3600.0
    async with bench.running():
        await bench.submit("another")
        waiting = await bench.submit()
        await bench.clock.advance(2 * 3600 + 60)
        bench.provider.run_seconds = 10.0
        assert (await bench.relay.get(waiting.id)).state is State.RUNNING
        await bench.clock.advance(2 * 3600 + 60)
        assert (await bench.relay.get(waiting.id)).state is State.DONE
        bench.provider.arm("create", "lost_after")
        lost = await bench.submit(force_refresh=True)
        await bench.until(lost.id, State.DONE, within=60.0)
