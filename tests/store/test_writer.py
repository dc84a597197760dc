"""
The thread that commits: groups, savepoints, failures and their names.
"""

import asyncio
import sqlite3

import pytest

from vidrelay.core.errors import DiskFull, IdempotencyConflict, StoreBusy, StoreError
from vidrelay.store import migrate, reads
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.statements import Session
from vidrelay.store.writer import Counters, Writer
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import add, rule


def ignore(task):
    pass


@pytest.fixture
def connection(path):
    """
    A connection to a new database; the writer under test closes it.
    """
    return migrate.open_for_writing(path, migrate.migrations())


def write(name, value=1):
    return lambda transaction: transaction.change("add_to_counter", name=name, value=value)


def stored(path):
    reader = migrate.open_for_reading(path)
    try:
        return reads.counters(Session(reader))
    finally:
        reader.close()


async def test_waiting_changes_share_a_commit(store):
    """
    Sixty-four changes at once cost a few commits, not sixty-four.
    """
    await add(store, *(make_task() for _ in range(64)))
    assert (await store.counters())["stateWrites"] <= 8
    assert len(await store.live()) == 64


async def test_failing_change_takes_back_its_own_work_only(connection, path):
    """
    A change that raises leaves nothing behind, and its neighbours in the commit stand.
    """

    def fail(transaction):
        write("bad")(transaction)
        transaction.count(counted=1)
        raise IdempotencyConflict

    writer = Writer(connection, Counters({}), tell=ignore)
    answers = await asyncio.gather(
        *(writer.run(operation) for operation in (write("a"), fail, write("b"))), return_exceptions=True
    )
    await writer.aclose()
    assert isinstance(answers[1], IdempotencyConflict)
    counters = stored(path)
    assert (counters["a"], counters["b"]) == (1, 1)
    assert not counters.keys() & {"bad", "counted"}


async def test_caller_that_goes_away_does_not_take_its_change_along(connection, path):
    """
    A change whose caller was cancelled is committed all the same.
    """
    writer = Writer(connection, Counters({}), tell=ignore)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(writer.run(write("a")), timeout=0)
    async with asyncio.TaskGroup() as group:
        caller = group.create_task(writer.run(write("b")))
        await asyncio.sleep(0)
        caller.cancel()
    await writer.aclose()
    assert stored(path)["b"] == 1


async def test_failing_listener_keeps_nobody_waiting(store):
    """
    A listener's fault is reported to the loop; the change stands and its caller is answered.
    """
    reported = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def listen(task):
        raise ValueError(task.id)

    store.on_commit = listen
    (task,) = await add(store, make_task())
    assert await store.get(task.id) == task
    assert [str(error) for error in reported] == [task.id]


async def test_change_that_is_not_committed_is_told_to_nobody(connection, path):
    """
    Neither a change that raises nor one whose commit fails reaches the listener, though both had something to tell.
    """
    told = []
    writer = Writer(connection, Counters({}), tell=told.append)

    def raising(transaction):
        transaction.tell(make_task())
        raise IdempotencyConflict

    def failing(transaction):
        transaction.tell(make_task())
        write("a")(transaction)
        # The key of a task that is not there, which SQLite is told to notice at the commit alone.
        connection.execute("PRAGMA defer_foreign_keys = ON")
        transaction.change(
            "keep_client_key", kind="client_key", name="k", task_id="nobody", fingerprint="f", forced=False
        )

    with pytest.raises(IdempotencyConflict):
        await writer.run(raising)
    with pytest.raises(StoreError):
        await writer.run(failing)
    await asyncio.sleep(0)
    await writer.aclose()
    assert told == []
    assert "a" not in stored(path)


async def test_full_disk_is_told_and_keeps_nothing(connection, path):
    """
    Where there is no room the caller gets DiskFull, nothing of the change is kept, and smaller ones still work.
    """
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    writer = Writer(connection, Counters({}), tell=ignore)
    with pytest.raises(DiskFull):
        await writer.run(lambda transaction: [write(f"{n:0500}")(transaction) for n in range(100)])
    await writer.run(write("small"))
    await writer.aclose()
    assert stored(path) == {"small": 1, "stateWrites": 1}


async def test_busy_database_is_told(connection, path):
    """
    Where another process holds the database the caller gets StoreBusy, and the counters wait for a better time.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    counters = Counters({})
    counters.add({"polls": 1})
    writer = Writer(connection, counters, tell=ignore)
    with pytest.raises(StoreBusy):
        await writer.run(write("a"))
    other.execute("ROLLBACK")
    other.close()
    await writer.run(write("a"))
    assert stored(path) == {"a": 1, "polls": 1, "stateWrites": 1}
    await writer.aclose()


async def test_counts_ride_on_the_next_commit(store, path):
    """
    Counting commits nothing, shows at once, and is stored with the next change.
    """
    store.count(polls=3)
    store.count(polls=2, retries=1)
    assert (await store.counters())["polls"] == 5
    assert "polls" not in stored(path)
    await add(store, make_task())
    assert stored(path) == await store.counters()


async def test_counts_are_stored_at_the_end(path):
    """
    What no commit has taken along is stored when the store closes.
    """
    store = await SqliteStore.open(path)
    store.count(polls=3)
    await store.aclose()
    store = await SqliteStore.open(path)
    counters = await store.counters()
    await store.aclose()
    assert counters == {"polls": 3, "stateWrites": 1}


async def test_store_finishes_what_waits_when_it_closes(path):
    """
    Changes that were asked for before the end are committed; later ones are refused.
    """
    store = await SqliteStore.open(path)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(store.add(make_task(), rule()))
        await asyncio.sleep(0)
        await store.aclose()
    await store.aclose()
    assert asked.result().task.seq == 1
    with pytest.raises(StoreError, match="closed"):
        await store.add(make_task(), rule())
    with pytest.raises(StoreError, match="closed"):
        await store.live()


async def test_a_count_can_be_taken_back(store, path):
    """What was counted too soon and taken back is gone from the stored total, not only from memory."""
    store.count(cacheHits=1)
    await add(store, make_task(fingerprint="a"))
    store.count(cacheHits=-1)
    await add(store, make_task(id="other", fingerprint="b"))
    await store.aclose()
    again = await SqliteStore.open(path)
    assert (await again.counters())["cacheHits"] == 0
    await again.aclose()
