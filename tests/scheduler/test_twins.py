"""
The same request is paid for once: joined while it lives, served from the cache afterwards.
"""

import asyncio

import pytest

from vidrelay.core.errors import IdempotencyConflict
from vidrelay.core.ports import How
from vidrelay.core.task import Request, State
from vidrelay.scheduler.face import Sender
from vidrelay.testing.toy.adapter import ToyAdapter


async def test_a_triple_click_makes_one_remote_task(bench):
    """Three identical submits at once make one create; two answers are joins of it."""
    async with bench.running():
        answers = await asyncio.gather(*(bench.relay.submit(Request(prompt="a boat")) for _ in range(3)))
        await bench.until(answers[0].task.id, State.DONE)
    assert sorted(answer.how for answer in answers) == [How.CREATED, How.JOINED, How.JOINED]
    assert len({answer.task.id for answer in answers}) == 1
    assert len(bench.provider.creates) == 1


async def test_a_thousand_at_once_with_noise_make_one_remote_task(bench):
    """White space, zero-width and full-width spellings of one prompt are one request."""
    spellings = ["a red boat", " a  red boat ", "a\u200b red\u3000boat", "ａ ｒｅｄ ｂｏａｔ"]
    async with bench.running():
        answers = await asyncio.gather(
            *(bench.relay.submit(Request(prompt=spellings[number % 4])) for number in range(1000))
        )
        await bench.until(answers[0].task.id, State.DONE)
    assert len({answer.task.id for answer in answers}) == 1
    assert len(bench.provider.creates) == 1
    assert (await bench.relay.get(answers[0].task.id)).joins == 999


async def test_what_is_sent_stays_as_typed(bench):
    """Normalising is for the fingerprint only."""
    async with bench.running():
        await bench.submit("  a\u200b boat ")
    assert bench.provider.creates[0]["prompt"] == "  a\u200b boat "


async def test_a_forced_request_makes_a_new_task_beside_the_first(bench):
    """forceRefresh is another version of the same request."""
    async with bench.running():
        first = await bench.submit()
        forced = await bench.submit(force_refresh=True)
        await bench.until(first.id, State.DONE)
        await bench.until(forced.id, State.DONE)
    assert first.id != forced.id
    assert len(bench.provider.creates) == 2


async def test_a_repeat_after_completion_comes_from_the_cache_even_after_a_restart(bench):
    """A finished result answers without a remote call, in this life of the relay and the next."""
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
        await bench.clock.advance(60)
        again = await bench.relay.submit(Request(prompt="a boat"))
        assert (again.how, again.task.id) == (How.CACHED, task.id)
    calls = len(bench.provider.calls)
    async with bench.running():
        again = await bench.relay.submit(Request(prompt="a boat"))
        assert (again.how, again.task.id) == (How.CACHED, task.id)
    assert len(bench.provider.calls) == calls


async def test_a_result_whose_file_is_gone_is_made_anew(bench):
    """A cache row without its file is forgotten, and the clip is bought again."""
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
        await bench.clock.advance(60)
        path, _ = await bench.relay.result_file(task.id, 0)
        path.unlink()
        again = await bench.relay.submit(Request(prompt="a boat"))
        assert again.how is How.CREATED
        counters = await bench.store.counters()
    assert (counters["submits"], counters.get("cacheHits", 0)) == (2, 0)


async def test_an_idempotency_key_returns_its_task_however_late(bench):
    """The same key and request give that task, ended or not; another request under it is refused."""
    async with bench.running():
        first = await bench.relay.submit(Request(prompt="a boat"), Sender(client_key="k"))
        await bench.relay.cancel(first.task.id)
        await bench.clock.advance(3600)
        again = await bench.relay.submit(Request(prompt="a boat"), Sender(client_key="k"))
        assert (again.how, again.task.id) == (How.REPEATED, first.task.id)
        with pytest.raises(IdempotencyConflict):
            await bench.relay.submit(Request(prompt="another"), Sender(client_key="k"))


async def test_a_failed_task_is_no_twin(bench):
    """Asking again after a failure asks the provider again."""
    bench.provider.failing.add("a boat")
    async with bench.running():
        first = await bench.submit()
        await bench.until(first.id, State.FAILED)
        second = await bench.submit()
    assert second.id != first.id


async def test_a_resend_joins_its_first_try_even_when_forced(bench):
    """What shows itself as a resend is no new wish."""
    async with bench.running():
        first = await bench.relay.submit(Request(prompt="a boat", force_refresh=True))
        again = await bench.relay.submit(Request(prompt="a boat", force_refresh=True), Sender(resend=True))
    assert (again.how, again.task.id) == (How.JOINED, first.task.id)


class Formed(ToyAdapter):
    """
    A provider to which a create goes as a form.
    """

    def typed(self, parameters):
        """Every number is a text there."""
        return {name: str(value) if isinstance(value, int) else value for name, value in parameters.items()}


async def test_what_is_sent_as_the_same_is_the_same(bench):
    """However a number was written: its twin is joined, and the task keeps what is sent."""
    bench.adapter = Formed()
    async with bench.running():
        first = await bench.submit(extra={"fps": 24})
        second = await bench.submit(extra={"fps": "24"})
        third = await bench.submit(extra={"fps": 25})
    assert first.parameters["fps"] == "24"
    assert second.id == first.id
    assert third.id != first.id
