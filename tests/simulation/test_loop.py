"""
The loop in virtual time: time that only moves when nothing else can, work without threads, and processes that die.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from vidrelay.testing.simulation.loop import EPOCH, Process, VirtualLoop


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_time_moves_only_to_the_next_timer(loop):
    """An hour of sleep takes no time, and what is due later has not run."""
    woken = []

    async def sleeper(seconds):
        await asyncio.sleep(seconds)
        woken.append(loop.time() - EPOCH)

    process = Process("one")
    for seconds in (3600, 5, 7200):
        loop.start(process, sleeper(seconds))
    loop.run(seconds=3600)
    assert woken == [5, 3600]
    loop.bury(process)


def test_work_of_one_thread_is_done_in_its_order(loop):
    """However long each piece takes, an executor with one thread does one after the other, each in its own handle."""
    seconds = iter((0.5, 0.0, 0.2))
    loop.latency = lambda: next(seconds)
    thread, done = ThreadPoolExecutor(max_workers=1), []

    async def work():
        await asyncio.gather(*(loop.run_in_executor(thread, done.append, n) for n in range(3)))

    process = Process("one")
    task = loop.start(process, work())
    loop.run()
    assert done == []
    loop.run(seconds=1)
    assert done == [0, 1, 2]
    assert task.done()


def test_nothing_of_a_killed_process_runs_any_more(loop):
    """No `finally`, no `except`, no work that was handed to a thread; another process goes on."""
    heard = []

    async def life(name):
        try:
            await asyncio.sleep(1)
            await asyncio.to_thread(heard.append, f"{name} worked")
            await asyncio.sleep(1)
        finally:
            heard.append(f"{name} ended")

    one, other = Process("one"), Process("other")
    loop.start(one, life("one"))
    loop.start(other, life("other"))
    # Both have woken and handed their work over; none is done.
    loop.run(seconds=1, handles=6)
    loop.kill(one)
    loop.bury(one)
    loop.run(seconds=10)
    assert heard == ["other worked", "other ended"]


def test_what_is_buried_is_no_burden_to_other_loops(loop):
    """asyncio looks through every task that it knows when a loop ends: 56,000 of ours made each later test slow."""
    process = Process("one")
    task = loop.start(process, asyncio.sleep(1))
    loop.run()
    assert asyncio.all_tasks(loop) == {task}
    loop.kill(process)
    loop.bury(process)
    assert asyncio.all_tasks(loop) == set()


def test_an_error_that_nobody_waits_for_is_told(loop):
    """A callback that raises is a surprise."""
    loop.call_soon(lambda: 1 / 0)
    loop.run()
    assert "ZeroDivisionError" in loop.surprises[0]
