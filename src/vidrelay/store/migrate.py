"""
The database file: made new, checked before it is touched, and brought up to this program's schema.

Migrations are numbered and go forward only; `PRAGMA user_version` says how many a file has had, `application_id` that
it is ours. A file that is corrupt, foreign or newer is only ever opened for reading, so it stays as it was found.
"""

import logging
import os
import sqlite3
import stat
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path

from vidrelay.core.errors import DatabaseUnusable, StoreError
from vidrelay.store.failures import failure

APPLICATION_ID = int.from_bytes(b"vrly", "big")
BUSY_SECONDS = 5.0
WAL_BYTES = 16 * 1024 * 1024
"""The write-ahead log is cut back to this size when a burst has made it larger."""

CHECKED_BYTES = 128 * 1024 * 1024
"""A larger file that was closed well is not read through at every start: a cold disk would need seconds for that."""

logger = logging.getLogger(__name__)


def migrations() -> tuple[str, ...]:
    """
    The scripts of `migrations/`, in order; the first makes version 1.
    """
    folder = files(__package__) / "migrations"
    scripts = sorted((entry.name, entry) for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(entry.read_text(encoding="utf-8") for _, entry in scripts)


def open_for_writing(path: Path, scripts: Sequence[str]) -> sqlite3.Connection:
    """
    Open the database, made or migrated where needed, for the one connection that writes.

    Raises:
        DatabaseUnusable: It is corrupt, not ours, or newer than `scripts`; it was left untouched.
        DiskFull: There is no room to make or migrate it.
        StoreError: It cannot be opened.
    """
    try:
        if os.path.lexists(path):
            _check(path, len(scripts))
        else:
            _require_no_log(path)
            _make(path, scripts)
        path.chmod(0o600)
        connection = connect(path)
        try:
            _set_up(connection)
            migrate(connection, scripts)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise failure(error) from error
    except OSError as error:
        raise StoreError(f"the database {path} cannot be opened: {error.strerror}") from error
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """
    Open a connection that can change nothing.
    """
    connection = connect(path, "mode=ro")
    connection.execute("PRAGMA query_only = ON")
    return connection


def connect(path: Path, query: str = "mode=rw") -> sqlite3.Connection:
    """
    Connect to an existing file with the settings that every connection has; transactions are begun by hand.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{query}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        _settle(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _settle(connection: sqlite3.Connection) -> None:
    for pragma in ("trusted_schema = OFF", "foreign_keys = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    # Read back, for everything rests on it and nothing keeps it in the file.
    if _pragma(connection, "synchronous") != 2:
        raise _not_durable()


def migrate(connection: sqlite3.Connection, scripts: Sequence[str]) -> None:
    """
    Run the scripts that the file has not had, each in a transaction of its own.
    """
    for version, script in enumerate(scripts, start=1):
        if version <= _pragma(connection, "user_version"):
            continue
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {script}\n; PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {version}; COMMIT;"
            )
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        logger.info("migration.complete version=%d", version)


def _make(path: Path, scripts: Sequence[str]) -> None:
    """
    Make the database under another name and rename it when it is whole: a crash leaves none, or a good one.
    """
    draft = path.with_name(f"{path.name}.new")
    for ending in ("", "-journal", "-wal", "-shm"):
        draft.with_name(f"{draft.name}{ending}").unlink(missing_ok=True)
    # SQLite gives its side files the mode of the database, whatever the umask.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(connect(draft)) as connection:
        migrate(connection, scripts)
        # Before it has its name: a change of mode that a crash leaves half done can only be undone by writing. And
        # last, so that nothing of the database lies in a log of the draft's name.
        _use_log(connection)
    draft.rename(path)
    sync_folder(path.parent)
    with suppress(OSError):
        # The folder may be as new as the database; its own folder may be one that is not ours to open.
        sync_folder(path.parent.parent)


def sync_folder(folder: Path) -> None:
    """
    Make a rename durable; Windows has no such call and needs none.
    """
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check(path: Path, newest: int) -> None:
    """
    Look at an existing file without changing a byte of it.

    Raises:
        DatabaseUnusable: It must not be written to.
    """
    if path.is_symlink() or not path.is_file():
        raise DatabaseUnusable(f"{path} is no regular file; it was left untouched")
    if path.stat().st_size == 0:
        raise _unusable(path, "is empty")
    if not path.stat().st_mode & stat.S_IWUSR:
        raise DatabaseUnusable(
            f"{path} is read-only; it was left untouched", hint="Make it writable if a relay is to use it."
        )
    # Where nothing lies beside the file it is all there is, and not even empty side files are made for a look at it.
    query = "mode=ro" if _works_beside(path) else "mode=ro&immutable=1"
    try:
        with closing(connect(path, query)) as connection:
            _look(path, connection, newest)
    except sqlite3.OperationalError:
        raise  # it cannot be opened just now, which says nothing of what is in it
    except sqlite3.DatabaseError as error:
        raise _unusable(path, f"is damaged ({error})") from error


def _look(path: Path, connection: sqlite3.Connection, newest: int) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise _unusable(path, "is not a vidrelay database")
    version = _pragma(connection, "user_version")
    if version > newest:
        raise _unusable(path, f"was written by a newer vidrelay (version {version}, this one knows {newest})")
    if path.stat().st_size <= CHECKED_BYTES or _works_beside(path):
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise _unusable(path, f"is damaged ({found})")


def _require_no_log(path: Path) -> None:
    """
    Make no database where the work of another one lies: it would be taken for its own.

    Raises:
        DatabaseUnusable: A log is there without its database.
    """
    for left in _works_beside(path):
        raise DatabaseUnusable(
            f"{left} is there and {path.name} is not; it was left untouched",
            hint="Put the database back beside it, or move it away to start with a new one.",
        )


def _works_beside(path: Path) -> list[Path]:
    """
    The logs with work that is not in the database yet: the last connection was killed. A good end clears them away.
    """
    logs = (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-journal"))
    return [log for log in logs if os.path.lexists(log) and log.lstat().st_size > 0]


def _unusable(path: Path, why: str) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"{path} {why}; it was left untouched",
        hint="Move it away to start with a new one, or use the version of vidrelay that wrote it.",
    )


def _set_up(connection: sqlite3.Connection) -> None:
    """
    Settings of the connection that writes.
    """
    _use_log(connection)
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")


def _use_log(connection: sqlite3.Connection) -> None:
    """
    Write through a write-ahead log, where the disk can have one.
    """
    (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if journal != "wal":
        raise _not_durable()


def _not_durable() -> DatabaseUnusable:
    return DatabaseUnusable(
        "the database cannot be written durably here", hint="Use a state directory on a local disk."
    )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
