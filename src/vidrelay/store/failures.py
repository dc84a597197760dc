"""
SQLite's errors as ours.
"""

import sqlite3

from vidrelay.core.errors import DatabaseUnusable, DiskFull, DuplicateRemote, StoreBusy, StoreError, VidrelayError

_UNSYNCED = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_UNWRITTEN = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
        sqlite3.SQLITE_IOERR_DELETE,
    }
)
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def failure(error: sqlite3.Error) -> VidrelayError:
    """
    The error of ours that says what SQLite's one means for the caller.

    What the disk did not take is DiskFull, whatever its reason: it may be taken later, and nothing of it was kept. What
    it took and then did not make durable is the end: what lies there now, only a new start can tell.
    """
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # The low byte is the kind; the rest tells where it came up.
    kind = extended & 0xFF
    if extended in _UNSYNCED:
        return DatabaseUnusable(
            "the disk failed while it made the database durable; nothing has been written since",
            hint="Look after the disk, then start vidrelay again: it checks the database first.",
        )
    if kind == sqlite3.SQLITE_FULL:
        return DiskFull("there is no room on the disk for the database")
    if kind == sqlite3.SQLITE_READONLY:
        return DiskFull("the database cannot be written: the disk is read-only")
    if extended in _UNWRITTEN:
        return DiskFull(f"the disk did not take what the database had to write: {error}")
    if kind in _BUSY:
        return StoreBusy()
    if kind in _DAMAGED:
        return DatabaseUnusable(f"the database cannot be used: {error}")
    if kind == sqlite3.SQLITE_CONSTRAINT and "tasks.remote_id" in str(error):
        return DuplicateRemote()
    return StoreError(f"the database could not do its part: {error}")
