"""
The copy of the database: whole, private, cheap, and safe to start on.
"""

import asyncio
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from vidrelay.assemble import _keep_backed_up
from vidrelay.core.errors import DatabaseUnusable, DiskFull
from vidrelay.core.task import Resolution, State
from vidrelay.store.backup import back_up
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import add, bring, rule

from .faulty_sqlite import FULL, disk
from .lives import Ground


def copied(path, *, later=timedelta(), has_room=lambda _: True):
    return back_up(path, datetime.now(UTC) + later, every_seconds=3600.0, has_room=has_room)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "relay.db"


async def test_a_copy_holds_what_the_database_holds(path, tmp_path):
    """Every task with its state, its log and the counters are in it; only what waited in line is in doubt there."""
    store = await SqliteStore.open(path)
    tasks = [await bring(store, make_task(), state) for state in State]
    assert copied(path)
    counters = await store.counters()
    await store.aclose()
    restored = tmp_path / "restored" / "relay.db"
    restored.parent.mkdir()
    path.with_name("relay.db.bak").rename(restored)
    store = await SqliteStore.open(restored)
    for task in tasks:
        copy = await store.get(task.id)
        if task.state is State.QUEUED:
            assert copy.state is State.UNCERTAIN
            assert "may have been made" in copy.error.detail
            assert (await store.log(after=0, limit=1000, task_id=task.id))[-1] == copy
        else:
            assert copy == task
    assert await store.counters() == counters
    await store.aclose()


async def test_a_relay_that_starts_on_a_copy_sends_nothing_by_itself(tmp_path):
    """What waited in line when the copy was made has been made since: it is not paid for a second time."""
    (tmp_path / "state").mkdir()
    ground = Ground(tmp_path / "state", window=1)
    async with ground.life() as life:
        for prompt in ("a boat", "a kite"):
            await life.submit(prompt)
        assert copied(ground.folder / "relay.db")
        await life.until(State.DONE, prompts=2)
    ground.folder.joinpath("relay.db.bak").replace(ground.folder / "relay.db")
    async with ground.life() as life:
        await ground.clock.advance(600)
        assert [task.state for task in await life.tasks()] == [State.UNCERTAIN, State.DONE]
        assert len(ground.provider.creates) == 2
        await life.relay.resolve((await life.tasks())[0].id, Resolution.ADOPT, remote_id="job-2")
        await life.until(State.DONE, prompts=2)
    assert len(ground.provider.creates) == 2


async def test_a_copy_is_made_when_it_is_due_and_something_has_changed(path):
    """Not within the hour, not of a database that is as it was, and again when both are so."""
    store = await SqliteStore.open(path)
    await add(store, make_task())
    assert copied(path)
    assert not copied(path)
    assert not copied(path, later=timedelta(hours=2))
    await add(store, make_task())
    assert not copied(path, later=timedelta(minutes=59))
    assert copied(path, later=timedelta(minutes=61))
    await store.aclose()


async def test_a_copy_is_the_users_alone_and_one_file(path):
    """Mode 0600, no side files, nothing of the draft left, and a link in its place is replaced and not followed."""
    victim = path.with_name("victim")
    victim.write_bytes(b"precious")
    path.with_name("relay.db.bak").symlink_to(victim)
    store = await SqliteStore.open(path)
    await add(store, make_task())
    assert copied(path, later=timedelta(hours=2))
    await store.aclose()
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["relay.db", "relay.db.bak", "victim"]
    assert stat.S_IMODE(path.with_name("relay.db.bak").lstat().st_mode) == 0o600
    assert victim.read_bytes() == b"precious"


async def test_writers_do_not_wait_for_a_copy_and_it_is_of_one_moment(path):
    """While tasks come in, each copy is whole and has whole tasks, and every one of those that were there before."""
    store = await SqliteStore.open(path)
    before = await add(store, *(make_task() for _ in range(200)))

    async def write():
        for _ in range(200):
            await store.add(make_task(), rule())

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        for hours in range(1, 6):
            await asyncio.to_thread(copied, path, later=timedelta(hours=2 * hours))
            with closing(sqlite3.connect(path.with_name("relay.db.bak"))) as copy:
                tasks = dict(copy.execute("SELECT id, event_id FROM tasks"))
                assert {task.id for task in before} <= tasks.keys()
                entries = copy.execute("SELECT tasks.id, max(events.id) FROM events, tasks WHERE seq = task GROUP BY 1")
                assert dict(entries) == tasks
    await store.aclose()


async def test_a_copy_that_fails_leaves_the_last_one(path):
    """Too little room, a full disk in the middle of it, or a damaged database: the last good copy is still there."""
    store = await SqliteStore.open(path)
    await add(store, *(make_task() for _ in range(50)))
    assert copied(path)
    good = path.with_name("relay.db.bak").read_bytes()
    await add(store, make_task())
    with pytest.raises(DiskFull):
        copied(path, later=timedelta(hours=2), has_room=lambda _: False)
    with pytest.raises(DiskFull), disk(lambda op: FULL if op.kind == "write" and op.offset > 50_000 else None):
        copied(path, later=timedelta(hours=2))
    await store.aclose()
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xa5" * 4096 + content[12288:])
    with pytest.raises(DatabaseUnusable):
        copied(path, later=timedelta(hours=2))
    assert path.with_name("relay.db.bak").read_bytes() == good
    assert {file.name for file in path.parent.iterdir()} <= {"relay.db", "relay.db.bak", "relay.db-wal", "relay.db-shm"}


async def test_a_relay_looks_after_its_copy_whatever_becomes_of_one(path):
    """A copy that finds no room is tried again a minute later, and made then."""
    store = await SqliteStore.open(path)
    await add(store, make_task())
    clock, room = FakeClock(), iter((False, True))
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        work = group.create_task(_keep_backed_up(path, clock, has_room=lambda _: next(room)))
        while not path.with_name("relay.db.bak").exists():
            await clock.advance(60)
            await asyncio.sleep(0.01)
        work.cancel()
    assert next(room, None) is None
    await store.aclose()
