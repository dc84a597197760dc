"""
A bug of ours strikes once, at any call of any port: the loop goes on, no place is lost, and nothing is paid twice.
"""

import inspect
import itertools
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from vidrelay.core.task import Asset, Reference, Request, State
from vidrelay.testing.toy.adapter import ToyAdapter

CALLS = 18
"""So many calls of its ports does the loop make for two tasks when nothing strikes it."""
CALLS_WITH_PICTURES = 27
"""The same where each has a picture that is uploaded first."""
PICTURE = Asset(id="sha256:0", pixels="p1:1", width=8, height=8, size_bytes=99, media_type="image/png")
AT_START = {"pauses", "limits", "quotas", "outlived", "live", "durations", "aclose"}
"""Calls before the loop runs, or after it: the start fails then, and is tried again by whoever started it."""


class Bug(RuntimeError):
    """
    What no part expects.
    """


class Striking:
    """
    A port whose calls are counted with those of others; the bug strikes at one of them, before or after its work.
    """

    def __init__(self, port, count, at, after) -> None:
        self.__dict__.update(_port=port, _count=count, _at=at, _after=after)

    def __getattr__(self, name):
        value = getattr(self._port, name)
        if not inspect.iscoroutinefunction(value) or name in AT_START:
            return value

        async def struck(*args, **kwargs):
            strikes = next(self._count) == self._at
            if strikes and not self._after:
                raise Bug(name)
            result = await value(*args, **kwargs)
            if strikes:
                raise Bug(name)
            return result

        return struck

    def __setattr__(self, name, value):
        setattr(self._port, name, value)


class FaultyLimits(ToyAdapter):
    """
    An adapter with a bug in its question for limits.
    """

    def limits(self):
        """No answer."""
        raise Bug("limits")
        yield


async def two_queued(bench, *, pictures=False):
    """Two tasks in line: what a client asks for may fail and say so, here it is what the loop does that is struck."""
    bench.window = 1
    if pictures:
        # Left for the next life, whose loop is watched.
        bench.adapter, bench.provider.upload_seconds = ToyAdapter(copies=timedelta(hours=10)), 100.0
    tasks = []
    async with bench.running():
        for number in range(2):
            references = ()
            if pictures:
                picture = replace(PICTURE, id=f"sha256:{number}")
                await bench.store.add_asset(picture)
                references = (Reference(asset=picture.id),)
            request = Request(prompt=f"clip {number}", references=references)
            tasks.append((await bench.relay.submit(request)).task)
        await bench.clock.settle()
    bench.provider.upload_seconds = 0.0
    return tasks


@pytest.mark.parametrize(("pictures", "calls"), [(False, CALLS), (True, CALLS_WITH_PICTURES)])
async def test_no_call_is_left_out(bench, pictures, calls):
    """The last that is struck below is the last that there is."""
    count = itertools.count()
    tasks = await two_queued(bench, pictures=pictures)
    bench.wrap = lambda port: Striking(port, count, None, after=False)
    async with bench.running():
        for task in tasks:
            await bench.until(task.id, State.DONE)
    assert next(count) == calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("pictures", "at"), [*((False, at) for at in range(CALLS)), *((True, at) for at in range(CALLS_WITH_PICTURES))]
)
async def test_a_bug_at_any_call_loses_no_place_and_pays_nothing_twice(bench, pictures, at, after):
    """Each of two tasks ends, or waits for a person where it cannot be known whether it was made."""
    count = itertools.count()
    tasks = await two_queued(bench, pictures=pictures)
    bench.wrap = lambda port: Striking(port, count, at, after)
    async with bench.running():
        for task in tasks:
            for _ in range(400):
                state = (await bench.store.get(task.id)).state
                if state in (State.DONE, State.UNCERTAIN):
                    break
                await bench.clock.advance(10)
            assert state in (State.DONE, State.UNCERTAIN)
        await bench.clock.advance(2000)
        taken, _ = await bench.store.places(account="toy", window="*", now=bench.clock.now())
        states = Counter([(await bench.store.get(task.id)).state for task in tasks])
        assert next(count) > at
        later = await bench.submit("later")
        await bench.until(later.id, State.DONE)
    assert taken == 0
    assert states[State.UNCERTAIN] <= 1
    assert Counter(body["prompt"] for body in bench.provider.creates).most_common(1)[0][1] == 1


async def test_a_bug_in_the_question_for_limits_is_no_end(bench):
    """The window stays as it is configured, or one."""
    bench.adapter, bench.window = FaultyLimits(), None
    async with bench.running():
        task = await bench.submit()
        await bench.until(task.id, State.DONE)
