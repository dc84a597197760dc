"""
SQLite's errors as ours.
"""

import sqlite3

from vidrelay.core.errors import DatabaseUnusable, DiskFull, DuplicateRemote, StoreBusy, StoreError, VidrelayError

_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNUSABLE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY})


def failure(error: sqlite3.Error) -> VidrelayError:
    """
    The error of ours that says what SQLite's one means for the caller.
    """
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # The low byte is the kind; the rest tells where it came up.
    kind = extended & 0xFF
    if extended in _FULL:
        return DiskFull("there is no room on the disk for the database")
    if kind in _BUSY:
        return StoreBusy()
    if kind in _UNUSABLE:
        return DatabaseUnusable(f"the database cannot be used: {error}")
    if kind == sqlite3.SQLITE_CONSTRAINT and "tasks.remote_id" in str(error):
        return DuplicateRemote()
    return StoreError(f"the database could not do its part: {error}")
