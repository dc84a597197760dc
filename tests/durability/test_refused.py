"""
A database that cannot be used is refused, and not a byte beside it or in it changes; one that was never made is made.
"""

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from vidrelay.core.errors import DatabaseUnusable, DiskFull, StoreError
from vidrelay.store import migrate
from vidrelay.store.sqlite import SqliteStore

from .faulty_sqlite import FULL, disk
from .power import Recorder, check, live
from .processes import configure, refused_start

PAGE = 4096


def contents(folder):
    """
    Every file and its hash; SQLite's index of the log is made anew at each start and holds nothing.
    """
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and not path.name.endswith("-shm")
    }


async def make(folder, *, killed, tasks=20):
    """
    A database as a good end leaves it, or with its log as a kill does; returns its path and what was answered.
    """
    made = folder / "made"
    made.mkdir()
    store = await SqliteStore.open(made / "relay.db")
    mark = Recorder()
    await live(store, tasks // 2, mark)
    if not killed:
        await store.aclose()
    else:
        await store.aclose()
        store = await SqliteStore.open(made / "relay.db")
        await live(store, tasks // 2, mark)
    path = folder / "state" / "relay.db"
    path.parent.mkdir()
    for name in ("relay.db", "relay.db-wal"):
        if (made / name).exists():
            (path.parent / name).write_bytes((made / name).read_bytes())
    path.chmod(0o600)
    await store.aclose()
    return path, mark.promises


async def refused(path):
    """
    Whether it was refused, and left as it was.
    """
    before = contents(path.parent)
    try:
        store = await SqliteStore.open(path)
    except DatabaseUnusable:
        assert contents(path.parent) == before
        return True
    await store.aclose()
    return False


@pytest.mark.parametrize("killed", [False, True])
async def test_a_damaged_page_is_found_wherever_it_is(tmp_path, killed):
    """Each page in turn is rubbish: refused untouched; or whole, where the log that a kill left has the page anew."""
    path, promises = await make(tmp_path, killed=killed)
    good = path.read_bytes()
    log = path.with_name("relay.db-wal").read_bytes() if killed else b""
    outcomes = set()
    for start in range(0, len(good), PAGE):
        path.write_bytes(good[:start] + b"\xa5" * PAGE + good[start + PAGE :])
        outcome = await refused(path)
        outcomes.add(outcome)
        assert killed or outcome, f"the page at {start} was not missed"
        if not outcome:
            check(path, promises, 10**9)
        path.write_bytes(good)
        if killed:
            path.with_name("relay.db-wal").write_bytes(log)
    assert True in outcomes


@pytest.mark.parametrize("length", [1, 15, 16, 99, 100, 512, 4095, 4096, 4097, 8192, 40_000, 0.5, 0.9, 0.99])
async def test_a_database_that_was_cut_off_is_refused(tmp_path, length):
    """However much of it is left, it is not taken for a smaller one, or for none."""
    path, _ = await make(tmp_path, killed=False)
    whole = path.read_bytes()
    path.write_bytes(whole[: length if isinstance(length, int) else int(len(whole) * length)])
    assert await refused(path)


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
async def test_a_log_without_its_database_is_not_given_another(tmp_path, ending):
    """The database was moved away and its log was not: nothing new is made there, and nothing is lost."""
    path, _ = await make(tmp_path, killed=True)
    path.with_name("relay.db-wal").rename(path.with_name(f"relay.db{ending}"))
    path.unlink()
    assert await refused(path)
    assert not path.exists()


async def test_a_read_only_database_is_refused(tmp_path):
    """Somebody has made it read-only, and had a reason; its mode stays as it is, whoever we are."""
    path, _ = await make(tmp_path, killed=False)
    path.chmod(0o400)
    assert await refused(path)
    assert path.stat().st_mode & 0o777 == 0o400


@pytest.mark.parametrize("what", ["directory", "link", "fifo"])
async def test_what_is_no_file_is_refused(tmp_path, what):
    """A thing of another kind in the database's place is neither followed nor waited for."""
    path = tmp_path / "state" / "relay.db"
    path.parent.mkdir()
    match what:
        case "directory":
            path.mkdir()
        case "link":
            path.symlink_to(tmp_path / "nowhere")
        case "fifo":
            os.mkfifo(path)
    assert await refused(path)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
async def test_a_planted_link_beside_the_database_is_not_followed(tmp_path, ending):
    """SQLite's side files are not written through somebody's link."""
    path, _ = await make(tmp_path, killed=False)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 10_000)
    path.with_name(f"relay.db{ending}").symlink_to(victim)
    with pytest.raises(StoreError):
        await SqliteStore.open(path)
    assert victim.read_bytes() == b"precious" * 10_000


async def test_a_first_start_that_fails_anywhere_is_followed_by_a_good_one(tmp_path):
    """Whatever work of the disk is the last that is done, the next start finds no database, or a whole one."""
    for nth in range(1, 200):
        path = tmp_path / str(nth) / "relay.db"
        path.parent.mkdir()
        works = iter(range(10_000))
        try:
            with disk(lambda _, works=works, nth=nth: FULL if next(works) >= nth else None):
                await (await SqliteStore.open(path)).aclose()
        except DiskFull:
            await (await SqliteStore.open(path)).aclose()
        else:
            break
    else:
        pytest.fail("it always fails")
    assert nth > 20


def test_every_connection_waits_for_the_disk(tmp_path):
    """Synchronous is FULL on each of them, for it is not stored in the file."""
    path = tmp_path / "relay.db"
    with (
        closing(migrate.open_for_writing(path, migrate.migrations())) as writer,
        closing(migrate.open_for_reading(path)) as reader,
    ):
        both = [connection.execute("PRAGMA synchronous").fetchone() for connection in (writer, reader)]
    assert both == [(2,), (2,)]


def spoil(path):
    content = bytearray(path.read_bytes())
    content[2 * PAGE : 3 * PAGE] = b"\xa5" * PAGE
    path.write_bytes(content)


def set_pragma(words):
    def change(path):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA {words}")

    return change


SPOILT = {
    "damaged": spoil,
    "newer": set_pragma("user_version = 99"),
    "not a vidrelay database": set_pragma("application_id = 7"),
    "empty": lambda path: path.write_bytes(b""),
    "read-only": lambda path: path.chmod(0o400),
    "Permission denied": lambda path: path.parent.chmod(0o500),
}


@pytest.mark.process
@pytest.mark.parametrize("why", SPOILT)
async def test_a_relay_does_not_start_on_it(tmp_path, why):
    """`vidrelay serve` says what is wrong and exits with 3; database and log are as they were, and nothing is new."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        missing = "to root nothing is read-only, and there is no setpriv to be less than root"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    path, _ = await make(tmp_path, killed=why == "empty")
    configure(tmp_path, 9)
    SPOILT[why](path)
    before = contents(path.parent)
    status, told = refused_start(tmp_path)
    path.parent.chmod(0o700)
    assert status == 3, told
    assert why in told
    after = contents(path.parent)
    assert {name: digest for name, digest in after.items() if name.startswith("relay.db")} == before
