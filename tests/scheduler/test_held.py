"""
How long a place is held by time alone, which no setting of the wall clock changes.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from vidrelay.core.task import State
from vidrelay.scheduler.held import HeldPlaces
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.clock import START, FakeClock
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import bring

LONGEST = timedelta(minutes=10)


@pytest.fixture
async def store(tmp_path):
    """A real database."""
    store = await SqliteStore.open(tmp_path / "relay.db")
    yield store
    await store.aclose()


@pytest.mark.parametrize("set_by", [timedelta(days=1), timedelta(days=-1)])
async def test_a_clock_that_is_set_while_a_loss_is_committed_changes_nothing(store, set_by):
    """What was to be stored is by the clock as it was before; the place is held for the longest run all the same."""
    clock = FakeClock()
    held = HeldPlaces(store, clock, {"main": LONGEST})
    lost = await bring(store, make_task(), State.UNCERTAIN)
    await store.hold(lost.id, START + LONGEST)
    lost = replace(lost, place_until=START + LONGEST)
    clock.jump(set_by.total_seconds())
    held.note(lost)
    await clock.advance(LONGEST.total_seconds() - 1)
    await held.mend()
    assert (await store.get(lost.id)).holds_place(clock.now())
    await clock.advance(2)
    await held.mend()
    assert (await store.get(lost.id)).place_until is None
