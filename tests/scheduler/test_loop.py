"""
The loop goes on whatever happens to one task, and tells those who watch.
"""

from vidrelay.core.task import Request, State
from vidrelay.testing.toy.adapter import ToyAdapter


class FaultyAdapter(ToyAdapter):
    """
    An adapter with a bug in one of its conversations.
    """

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def submit(self, task):
        """Break where told."""
        if self.where == "submit":
            raise RuntimeError("a bug before the create")
        if self.where == "answer":
            outcome = yield from super().submit(task)
            raise RuntimeError(f"a bug after the create: {outcome}")
        return (yield from super().submit(task))

    def poll(self, task):
        """Break where told."""
        if self.where == "poll":
            raise RuntimeError("a bug in the poll")
        return (yield from super().poll(task))


async def test_a_bug_before_the_create_sends_nothing_and_leaks_no_place(bench):
    """The task goes back to its line; once the bug is gone it is sent, once."""
    bench.adapter = FaultyAdapter("submit")
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(20)
        assert (await bench.relay.get(task.id)).state in (State.QUEUED, State.SUBMITTING)
        bench.adapter.where = ""
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_a_bug_after_the_create_leaves_it_uncertain(bench):
    """The provider may have it, so it is not sent again."""
    bench.adapter = FaultyAdapter("answer")
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(300)
        assert (await bench.relay.get(task.id)).state is State.UNCERTAIN
    assert len(bench.provider.creates) == 1


async def test_a_bug_in_a_poll_does_not_stop_the_others_or_fail_the_task(bench):
    """The task is looked at again, and is done when the bug is gone."""
    bench.adapter = FaultyAdapter("poll")
    async with bench.running():
        task = await bench.submit()
        await bench.clock.advance(60)
        assert (await bench.relay.get(task.id)).state is State.RUNNING
        bench.adapter.where = ""
        await bench.until(task.id, State.DONE)


async def test_watchers_hear_every_committed_change_in_order(bench):
    """Each state of a life is announced once, with a growing id, after it was committed."""
    async with bench.running():
        with bench.relay.watch() as heard:
            task = await bench.submit()
            await bench.until(task.id, State.DONE)
            announcements = [heard.get_nowait() for _ in range(heard.qsize())]
    told = [entry for entry in announcements if entry.event_id is not None]
    states = [entry.task.state for entry in told]
    assert list(dict.fromkeys(states)) == [
        State.QUEUED,
        State.SUBMITTING,
        State.RUNNING,
        State.DOWNLOADING,
        State.DONE,
    ]
    ids = [entry.event_id for entry in told]
    assert ids == sorted(set(ids))


async def test_those_in_line_are_told_when_they_move_up(bench):
    """A place that is taken moves everybody behind it up, without a commit."""
    bench.window = 1
    async with bench.running():
        first, _, third = await bench.submit("1"), await bench.submit("2"), await bench.submit("3")
        with bench.relay.watch() as heard:
            await bench.until(first.id, State.DONE)
            await bench.clock.settle()
            moved = [
                entry.task.id for entry in (heard.get_nowait() for _ in range(heard.qsize())) if entry.event_id is None
            ]
    assert third.id in moved


async def test_a_listener_that_falls_behind_is_cut_off(bench):
    """Its queue stays bounded, and ends with None."""
    bench.window = 1
    async with bench.running():
        with bench.relay.watch() as heard:
            for number in range(1100):
                await bench.relay.submit(Request(prompt=f"clip {number}"))
            entries = [heard.get_nowait() for _ in range(heard.qsize())]
    assert len(entries) <= 1000
    assert entries[-1] is None


async def test_waiting_answers_when_the_state_changes(bench):
    """A held answer comes with the change, at once where the state already differs, or when its time is over."""
    async with bench.running():
        task = await bench.submit()
        same = bench.relay.wait(task.id, seconds=0)
        assert (await same).state is State.RUNNING
        assert (await bench.relay.wait(task.id, seconds=60, seen=State.QUEUED)).state is State.RUNNING
