"""
Killed in each state and started again: every task ends right, with no second create.
"""

import pytest

from vidrelay.core.adapter import Dedupe, Prepared
from vidrelay.core.ports import How
from vidrelay.core.task import Request, State
from vidrelay.scheduler.face import Sender
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import bring
from vidrelay.testing.toy.adapter import ToyAdapter


async def test_queued_tasks_keep_their_place_over_a_kill(bench):
    """The line after a restart is the line before it."""
    bench.window = 1
    bench.provider.run_seconds = 30
    async with bench.running(kill=True):
        tasks = [await bench.submit(f"clip {number}") for number in range(4)]
    async with bench.running():
        assert [bench.relay.standing(await bench.relay.get(task.id)).ahead for task in tasks] == [None, 0, 1, 2]
        for task in tasks:
            await bench.until(task.id, State.DONE)
    assert [body["prompt"] for body in bench.provider.creates] == [f"clip {number}" for number in range(4)]


@pytest.mark.parametrize("dedupe", [Dedupe.NONE, Dedupe.LIST])
async def test_a_kill_during_the_create_call_makes_no_second_one(bench, dedupe):
    """The answer was on its way: where the provider lists its jobs it is found again, else the user decides."""
    bench.adapter = ToyAdapter(dedupe=dedupe)
    bench.provider.create_seconds = 5
    async with bench.running(kill=True):
        task = await bench.submit()
        assert (await bench.relay.get(task.id)).state is State.SUBMITTING
    bench.provider.create_seconds = 0
    async with bench.running():
        await bench.clock.advance(1)
        assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
    assert len(bench.provider.creates) == 1


async def test_a_create_that_an_earlier_life_was_at_is_not_sent_by_this_one(bench):
    """A task that is found submitting may have been sent: whether its process got to that cannot be known any more."""
    store = await SqliteStore.open(bench.folder / "relay.db")
    task = make_task(account="toy", provider="toy", window="*", parameters={"prompt": "a boat", "duration": 5})
    await bring(store, task, State.SUBMITTING)
    await store.aclose()
    async with bench.running():
        await bench.clock.advance(300)
        assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
    assert bench.provider.creates == []


async def test_a_running_task_is_polled_again_and_not_created_again(bench):
    """What the provider has is asked for by its id."""
    async with bench.running(kill=True):
        task = await bench.submit()
        await bench.clock.advance(1)
    async with bench.running():
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_a_job_that_ended_while_the_relay_was_down_is_fetched(bench):
    """Done there: the file is fetched at once."""
    async with bench.running(kill=True):
        task = await bench.submit()
    await bench.clock.advance(3600)
    async with bench.running():
        await bench.until(task.id, State.DONE, within=10)


async def test_a_job_the_provider_has_forgotten_fails(bench):
    """Unknown there: failed, and it says that it may have been charged."""
    async with bench.running(kill=True):
        task = await bench.submit()
    bench.provider.forget()
    await bench.clock.advance(3600)
    async with bench.running():
        failed = await bench.until(task.id, State.FAILED)
    assert failed.error.code == "remote_unknown"


async def test_not_there_means_not_yet_for_a_while_after_a_start_too(bench):
    """A wall clock that ran ahead while the relay was down does not make a job gone that its provider shows late."""
    async with bench.running(kill=True):
        task = await bench.submit()
    bench.clock.jump(3600)
    bench.provider.arm("poll", 404, 404, 404, 404)
    async with bench.running():
        await bench.until(task.id, State.DONE)


async def test_a_download_that_was_cut_is_done_after_the_restart(bench):
    """A task killed while downloading fetches its file in the next life."""
    bench.provider.arm("download", 503, 503, 503)
    async with bench.running(kill=True):
        task = await bench.submit()
        await bench.until(task.id, State.DOWNLOADING)
    bench.provider.faults.clear()
    async with bench.running():
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_an_uncertain_task_stays_so_over_a_restart(bench):
    """No life of the relay repeats the create by itself."""
    bench.provider.arm("create", "lost_after")
    async with bench.running(kill=True):
        task = await bench.submit()
    for _ in range(3):
        async with bench.running(kill=True):
            await bench.clock.advance(700)
            assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
    assert len(bench.provider.creates) == 1


async def test_a_pause_is_kept_over_a_restart(bench):
    """Retry-After binds the next life too."""
    bench.provider.arm("create", 429)
    bench.provider.retry_after = "500"
    async with bench.running(kill=True):
        await bench.submit()
    async with bench.running():
        await bench.clock.advance(400)
        assert len(bench.provider.creates) == 1
        await bench.clock.advance(120)
        assert len(bench.provider.creates) == 2


async def test_a_rest_of_the_creates_outlives_one_of_all_calls_over_a_restart(bench):
    """What a good poll lifts is the rest on calls, in the database too: an empty balance is still empty then."""
    bench.provider.run_seconds = 600
    async with bench.running(kill=True):
        await bench.submit()
        bench.provider.arm("create", 402)
        await bench.submit("two")
        bench.provider.arm("poll", 429)
        await bench.clock.advance(60)
        assert bench.relay.accounts()[0].pause.reason == "balance"
    async with bench.running():
        await bench.clock.advance(200)
        assert len(bench.provider.creates) == 2
        await bench.clock.advance(60)
        assert len(bench.provider.creates) == 3


async def test_a_drain_waits_for_the_create_call(bench):
    """Stopping in the middle of a create waits for its answer when there is grace."""
    bench.provider.create_seconds = 2
    async with bench.running():
        task = await bench.submit()
        await bench.drain(grace=30, passing=5)
    async with bench.running():
        assert (await bench.relay.get(task.id)).remote_id == "job-1"


@pytest.mark.parametrize(("lived", "how"), [(0.0, How.JOINED), (10.0, How.CREATED)])
async def test_a_forced_create_of_a_door_whose_answer_a_kill_cut_off_is_made_once(bench, lived, how):
    """Its SDK sends it again and does not say so; a relay that lived on after it has answered it."""

    async def forced():
        request = Request(prompt="a boat", force_refresh=True)
        prepared = Prepared(model=None, parameters={"prompt": "a boat"})
        return await bench.relay.submit_prepared(request, prepared, {}, Sender(app="sdk"))

    async with bench.running(kill=True):
        first = await forced()
        await bench.clock.advance(lived)
        if lived:
            await bench.submit("another")
    await bench.clock.advance(1)
    async with bench.running():
        again = await forced()
    assert again.how is how
    assert (again.task.id == first.task.id) is (how is How.JOINED)
