"""
The database file: made, checked, migrated, durable, and nobody else's to read.
"""

import asyncio
import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from vidrelay.core.errors import DatabaseUnusable, StoreError
from vidrelay.core.task import State
from vidrelay.store import migrate
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.statements import STATEMENTS
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import add, bring

OURS = f"PRAGMA application_id = {migrate.APPLICATION_ID}"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def make_closed(path, tasks=50):
    store = await SqliteStore.open(path)
    await add(store, *(make_task() for _ in range(tasks)))
    await store.aclose()


def run_sql(path, script):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


# Durability -----------------------------------------------------------------------------------------------------------


def test_both_connections_are_set_up_for_durability(path):
    """
    The writing connection uses a write-ahead log and waits for the disk; the reading one can change nothing.
    """
    with (
        closing(migrate.open_for_writing(path, migrate.migrations())) as writer,
        closing(migrate.open_for_reading(path)) as reader,
    ):
        for connection in (writer, reader):
            values = {
                name: connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "busy_timeout")
            }
            assert values == {
                "journal_mode": "wal",
                "synchronous": 2,
                "foreign_keys": 1,
                "trusted_schema": 0,
                "busy_timeout": 5000,
            }
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM tasks")


async def test_everything_is_there_after_a_restart(path):
    """
    Tasks, log and counters come back as they were.
    """
    store = await SqliteStore.open(path)
    tasks = [await bring(store, make_task(), state) for state in State]
    log, counters = await store.log(after=0, limit=1000), await store.counters()
    await store.aclose()
    store = await SqliteStore.open(path)
    assert [await store.get(task.id) for task in tasks] == tasks
    assert await store.log(after=0, limit=1000) == log
    assert await store.counters() == counters
    await store.aclose()


ENDLESS_WRITES = """
import asyncio, sys
from pathlib import Path
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.statements import STATEMENTS
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import rule

async def write(store):
    for _ in range(100_000):
        admission = await store.add(make_task(), rule())
        print(admission.task.id, flush=True)

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    await asyncio.gather(*(write(store) for _ in range(8)))

asyncio.run(main())
"""


def write_until_killed(path):
    """
    The ids of the tasks that a process was told are durable, before it was killed.
    """
    command = [sys.executable, "-c", ENDLESS_WRITES, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        acknowledged = {child.stdout.readline().strip() for _ in range(500)}
        child.kill()
        return acknowledged | {line.strip() for line in child.stdout if line.endswith("\n")}


@pytest.mark.process
async def test_acknowledged_tasks_survive_a_kill(path):
    """
    After SIGKILL in the midst of writing, every task that was acknowledged is there, with its entry in the log.
    """
    acknowledged = await asyncio.to_thread(write_until_killed, path)
    store = await SqliteStore.open(path)
    live = await store.live()
    log = await store.log(after=0, limit=1_000_000)
    await store.aclose()
    assert len(acknowledged) >= 500
    assert acknowledged <= {task.id for task in live}
    assert log == live


# Privacy --------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
async def test_files_are_the_users_alone(path):
    """
    Database and side files have mode 0600 whatever the umask, and a wider mode is narrowed at the next start.
    """
    before = os.umask(0)
    try:
        store = await SqliteStore.open(path)
        await add(store, make_task())
        files = sorted(path.parent.iterdir())
        modes = {stat.S_IMODE(file.stat().st_mode) for file in files}
        await store.aclose()
        path.chmod(0o666)
        await (await SqliteStore.open(path)).aclose()
    finally:
        os.umask(before)
    assert [file.name for file in files] == ["relay.db", "relay.db-shm", "relay.db-wal"]
    assert modes == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_good_end_leaves_one_file(path):
    """
    The write-ahead log is cleared away at the end, so the database is a single file to copy.
    """
    await make_closed(path)
    assert [file.name for file in path.parent.iterdir()] == ["relay.db"]


# What is refused ------------------------------------------------------------------------------------------------------


def overwrite_middle(path):
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xa5" * 4096
    path.write_bytes(content)


DAMAGES = {
    "a page is garbage": overwrite_middle,
    "the end is missing": lambda path: path.write_bytes(path.read_bytes()[: 4096 * 10 + 100]),
    "the header is garbage": lambda path: path.write_bytes(b"\0" * 100 + path.read_bytes()[100:]),
    "it is text": lambda path: path.write_text("these are notes, not a database\n" * 200),
    "it is empty": lambda path: path.write_bytes(b""),
    "it is newer": lambda path: run_sql(path, "PRAGMA user_version = 99"),
    "it is another program's": lambda path: run_sql(path, "PRAGMA application_id = 1"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_unusable_database_is_refused_and_left_untouched(path, damage):
    """
    A database that is damaged, foreign or newer is an error, and not a byte of it changes.
    """
    await make_closed(path)
    DAMAGES[damage](path)
    before = digest(path)
    with pytest.raises(DatabaseUnusable, match="left untouched"):
        await SqliteStore.open(path)
    assert digest(path) == before


async def test_foreign_database_is_refused(path):
    """
    A database of another program, never marked as ours, is not taken over.
    """
    run_sql(path, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    before = digest(path)
    with pytest.raises(DatabaseUnusable, match="not a vidrelay database"):
        await SqliteStore.open(path)
    assert digest(path) == before


async def test_link_is_not_followed(path):
    """
    A link in the database's place is refused, and what it points to is left alone.
    """
    target = path.with_name("target")
    await make_closed(target)
    before = digest(target)
    path.symlink_to(target)
    with pytest.raises(DatabaseUnusable, match="no regular file"):
        await SqliteStore.open(path)
    assert digest(target) == before


async def test_a_file_that_was_moved_takes_nothing_more(path):
    """What is told would be in a file that the next start does not find."""
    store = await SqliteStore.open(path)
    (kept,) = await add(store, make_task())
    moved = path.rename(path.with_name("moved.db"))
    with pytest.raises(DatabaseUnusable, match="moved or deleted"):
        await add(store, make_task())
    path.with_name("relay.db-wal").rename(path.with_name("moved.db-wal"))
    await store.aclose()
    store = await SqliteStore.open(moved)
    assert await store.live() == [kept]
    await store.aclose()


async def test_a_lock_that_is_lost_ends_all_writing(path):
    """Another relay may be at work on the same file."""
    held = True
    store = await SqliteStore.open(path, is_locked=lambda: held)
    await add(store, make_task())
    held = False
    with pytest.raises(DatabaseUnusable, match="lock"):
        await add(store, make_task())
    held = True
    with pytest.raises(DatabaseUnusable):
        await add(store, make_task())
    await store.aclose()


async def test_missing_folder_is_a_clear_error(path):
    """
    A folder that is not there is named, and not made.
    """
    with pytest.raises(StoreError, match="cannot be opened: No such file"):
        await SqliteStore.open(path.parent / "missing" / "relay.db")


async def test_draft_of_a_crashed_start_is_no_hindrance(path):
    """
    What a start that was killed left half made is made again.
    """
    path.with_name("relay.db.new").write_bytes(b"half")
    await make_closed(path)
    assert [file.name for file in path.parent.iterdir()] == ["relay.db"]


# Migrations -----------------------------------------------------------------------------------------------------------


async def test_version_1_file_is_brought_up_to_date(path):
    """
    A file as version 1 wrote it opens with all it holds.
    """
    first, *_ = migrate.migrations()
    fixed = (
        '{"id":"t1","account":"main","provider":"openai","window":"main","model_version":null,'
        '"request":{"prompt":"a kite"},'
        '"parameters":{},"fingerprint":"fp","created_at":1796040000000000}'
    )
    moving = '{"updated_at":1796040000000000}'
    run_sql(
        path,
        f"""
        {first};
        {OURS};
        PRAGMA user_version = 1;
        INSERT INTO tasks (
            id, account, "window", fingerprint, priority, created_at, state, version, cancel_wanted, fixed, moving,
            event_id
        ) VALUES ('t1', 'main', 'main', 'fp', 0, 1796040000000000, 'queued', 0, 0, '{fixed}', '{moving}', 1);
        INSERT INTO events (task, version, name, at, moving)
        VALUES (1, 0, 'Created', 1796040000000000, '{moving}');
        INSERT INTO counters VALUES ('submits', 7);
        """,
    )
    store = await SqliteStore.open(path)
    (task,) = await store.live()
    assert (task.request.prompt, task.created_at.isoformat()) == ("a kite", "2026-11-30T12:00:00+00:00")
    assert await store.log(after=0, limit=10) == [task]
    assert await store.counters() == {"submits": 7}
    await store.aclose()


def test_missing_migrations_run_in_order_and_once(path):
    """
    A file gets the scripts that it has not had, and its version counts up with each.
    """
    first = migrate.migrations()
    migrate.open_for_writing(path, first).close()
    later = (*first, "CREATE TABLE extra (n INTEGER)", "INSERT INTO extra VALUES (1)")
    for _ in range(2):
        with closing(migrate.open_for_writing(path, later)) as connection:
            assert connection.execute("SELECT n FROM extra").fetchall() == [(1,)]
            assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)


def test_failing_migration_changes_nothing(path):
    """
    A script that fails half-way is taken back whole.
    """
    first = migrate.migrations()
    migrate.open_for_writing(path, first).close()
    with pytest.raises(StoreError):
        migrate.open_for_writing(path, (*first, "CREATE TABLE extra (n INTEGER); INSERT INTO nowhere VALUES (1)"))
    with closing(migrate.open_for_writing(path, first)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").fetchone() == (0,)


# The log's length -----------------------------------------------------------------------------------------------------


async def test_log_is_trimmed_to_its_newest_entries(path):
    """
    Old entries go, a fiftieth at a time; a position before the oldest one is unknown from then on.
    """
    store = await SqliteStore.open(path, log_entries=100)
    tasks = await add(store, *(make_task() for _ in range(250)))
    newest = tasks[-1].event_id
    kept = await store.log(after=newest - 100, limit=1000)
    assert kept == tasks[-100:]
    assert await store.log(after=0, limit=10) is None
    assert await store.log(after=newest - 103, limit=10) is None
    await store.aclose()


# Statements -----------------------------------------------------------------------------------------------------------


def plan(connection, name, **values):
    rows = connection.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", values).fetchall()
    return " / ".join(row[-1] for row in rows)


@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("live", {}, "tasks_live"),
        ("head", {"account": "a", "window": "w"}, "tasks_live"),
        ("places_by_state", {"account": "a", "window": "w"}, "tasks_live"),
        ("places_by_time", {"account": "a", "window": "w", "now": 0}, "tasks_held"),
        ("twin", {"fingerprint": "f", "since": 0, "join_live": 1}, "tasks_twins"),
        ("cached", {"fingerprint": "f", "since": 0}, "results_newest"),
        ("history", {"account": "a", "model": None, "limit": 1}, "tasks_history"),
        ("page_of_account", {"account": "a", "before": 9, "limit": 1}, "tasks_pages"),
        ("page_of_state", {"account": None, "state": "done", "before": 9, "limit": 1}, "tasks_states"),
        ("remote_ids", {"account": "a", "since": 0}, "tasks_remote_age"),
        ("result_bytes", {}, "results_coldest"),
        ("coldest_results", {"limit": 1}, "results_coldest"),
        ("old_results", {"instant": 0, "limit": 1}, "results_oldest"),
        ("log_of_task", {"id": "t", "after": 0, "limit": 1}, "events_task"),
    ],
)
def test_frequent_reads_use_their_index(path, name, values, index):
    """
    What is asked often never walks through all tasks, and never sorts them.
    """
    with closing(migrate.open_for_writing(path, migrate.migrations())) as connection:
        found = plan(connection, name, **values)
    assert index in found
    assert "TEMP B-TREE" not in found
