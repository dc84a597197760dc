"""
The write-ahead log is somebody else's to delete at any moment: nothing that was answered goes with it.
"""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from vidrelay.assemble import _keep_watch
from vidrelay.core.errors import DatabaseUnusable
from vidrelay.store.backup import back_up
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import add


def log_of(path):
    return path.with_name("relay.db-wal")


def delete(log):
    log.unlink()


def move(log):
    log.rename(log.with_name("moved"))


def put_a_copy_in_its_place(log):
    shutil.copy(log, log.with_name("copy"))
    log.with_name("copy").replace(log)


LOSSES = [delete, move, put_a_copy_in_its_place]


def as_a_kill_leaves_it(path, folder):
    """
    A copy of the files that a kill would leave at this moment.
    """
    folder.mkdir()
    for ending in ("", "-wal"):
        if path.with_name(f"relay.db{ending}").exists():
            shutil.copy(path.with_name(f"relay.db{ending}"), folder)
    return folder / "relay.db"


async def live(path):
    store = await SqliteStore.open(path)
    tasks = await store.live()
    await store.aclose()
    return tasks


@pytest.mark.parametrize("lose", LOSSES)
async def test_a_lost_log_ends_all_writing_and_what_it_held_is_in_the_database(path, lose):
    """From the moment it is noticed a kill loses nothing, nor does the end; what was refused is not there."""
    store = await SqliteStore.open(path)
    kept = await add(store, *(make_task() for _ in range(50)))
    lose(log_of(path))
    with pytest.raises(DatabaseUnusable, match=r"-wal was moved or deleted.*All that was stored is in"):
        await add(store, make_task())
    if log_of(path).exists():
        log_of(path).unlink()
    assert await live(as_a_kill_leaves_it(path, path.parent / "killed")) == kept
    with pytest.raises(DatabaseUnusable):
        await add(store, make_task())
    await store.aclose()
    assert await live(path) == kept


@pytest.mark.parametrize("lose", LOSSES)
async def test_an_end_before_a_lost_log_is_noticed_keeps_everything(path, lose):
    """A relay that is asked to stop brings the log into the database, wherever that lies, and no other is left."""
    store = await SqliteStore.open(path)
    kept = await add(store, make_task(), make_task())
    lose(log_of(path))
    await store.aclose()
    assert not log_of(path).exists()
    assert await live(path) == kept


async def test_an_old_copy_of_the_log_is_not_played_back(path):
    """Somebody puts back what the log was: at the end it goes, for the database holds more by then."""
    store = await SqliteStore.open(path)
    first = await add(store, make_task())
    old = log_of(path).read_bytes()
    second = await add(store, *(make_task() for _ in range(50)))
    log_of(path).unlink()
    log_of(path).write_bytes(old)
    with pytest.raises(DatabaseUnusable):
        await store.require_ours()
    await store.aclose()
    assert await live(path) == [*first, *second]


async def test_a_moved_log_that_is_put_back_changes_nothing(path):
    """What was moved away is empty once it is in the database, so that it cannot undo anything."""
    store = await SqliteStore.open(path)
    kept = await add(store, make_task())
    moved = log_of(path).rename(path.with_name("moved"))
    with pytest.raises(DatabaseUnusable):
        await store.require_ours()
    moved.rename(log_of(path))
    await store.aclose()
    assert await live(path) == kept


async def test_what_another_reader_holds_up_is_brought_in_at_the_end(path):
    """A reader of an older moment keeps the log from being folded; it is said so, and made good when the store ends."""
    store = await SqliteStore.open(path)
    kept = await add(store, make_task())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM tasks").fetchone()
        kept += await add(store, make_task())
        log_of(path).unlink()
        with pytest.raises(DatabaseUnusable, match="the end tries it again"):
            await store.require_ours()
    await store.aclose()
    assert await live(path) == kept


def checkpoint(mode):
    def run(path):
        with closing(sqlite3.connect(path)) as other:
            assert other.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0] == 0

    return run


def read(path):
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM tasks").fetchone()[0] > 0


def vacuum(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("VACUUM")


def hourly(path):
    assert back_up(path, datetime(2100, 1, 1, tzinfo=UTC), every_seconds=0, has_room=lambda _: True)


@pytest.mark.parametrize(
    "happens",
    [*(checkpoint(mode) for mode in ("PASSIVE", "FULL", "RESTART", "TRUNCATE")), read, vacuum, hourly],
    ids=["passive", "full", "restart", "truncate", "read", "vacuum", "backup"],
)
async def test_nothing_of_normal_life_is_taken_for_a_lost_log(path, happens):
    """Checkpoints that start the log again or cut it off, other readers, and the backup leave it what it is."""
    store = await SqliteStore.open(path)
    kept = []
    for _ in range(3):
        kept += await add(store, *(make_task() for _ in range(20)))
        happens(path)
        await store.require_ours()
    kept += await add(store, make_task())
    await store.aclose()
    assert await live(path) == kept


async def test_a_burst_that_makes_the_log_large_is_no_lost_log(path):
    """SQLite folds it by itself and cuts it back meanwhile."""
    store = await SqliteStore.open(path)
    for _ in range(8):
        await add(store, *(make_task() for _ in range(400)))
    await store.require_ours()
    await store.aclose()
    assert len(await live(path)) == 3200


async def test_a_start_after_a_kill_takes_the_log_that_it_finds(path):
    """A log that is left of an earlier life is gone on with."""
    store = await SqliteStore.open(path)
    kept = await add(store, make_task())
    killed = as_a_kill_leaves_it(path, path.parent / "killed")
    await store.aclose()
    assert log_of(killed).stat().st_size > 0
    store = await SqliteStore.open(killed)
    kept += await add(store, make_task())
    await store.require_ours()
    assert await store.live() == kept
    await store.aclose()


async def test_a_lost_log_is_noticed_within_a_minute_though_nothing_is_to_be_stored(path):
    """An idle relay looks every minute, so that a kill later on loses nothing."""
    store = await SqliteStore.open(path)
    kept = await add(store, make_task())
    log_of(path).unlink()
    before, clock = path.stat().st_mtime_ns, FakeClock()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        work = group.create_task(_keep_watch(store, clock))
        while path.stat().st_mtime_ns == before:
            await clock.advance(60)
            await asyncio.sleep(0.01)
        with pytest.raises(DatabaseUnusable):
            await store.require_ours()
        work.cancel()
    assert await live(as_a_kill_leaves_it(path, path.parent / "killed")) == kept
    await store.aclose()
