"""
A copy of the database beside it, renewed now and then: for the day on which the database itself is damaged.

The copy is older than the database it would stand in for. A task that waits in line in it may have been made and paid
for since, so in the copy such tasks are `uncertain`: a relay that starts on it sends nothing of them by itself.
"""

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from vidrelay.core.errors import DatabaseUnusable, DiskFull, StoreError
from vidrelay.core.task import Problem
from vidrelay.store import migrate, rows
from vidrelay.store.failures import failure
from vidrelay.store.writer import Transaction

logger = logging.getLogger(__name__)

DOUBT = Problem(
    code="uncertain_submit",
    title="The task comes from a backup",
    detail="It waited in line when the backup was made, and may have been made at the provider since, and charged. "
    "vidrelay does not send it by itself; `vidrelay resolve` does what you decide.",
    status=504,
)


def back_up(path: Path, now: datetime, *, every_seconds: float, has_room: Callable[[int], bool]) -> bool:
    """
    Copy the database at `path` to `….bak` if the copy is that old and the database has changed since; whether it did.

    `has_room` says whether the disk takes so many bytes. May be called while a relay writes; it waits for nobody.

    Raises:
        DatabaseUnusable: What was copied is damaged; the last good copy was left.
        DiskFull: There is no room; the last copy was left.
        StoreError: It did not work; the last copy was left.
    """
    copy = path.with_name(f"{path.name}.bak")
    try:
        changed_at = max(file.stat().st_mtime_ns for file in _files(path) if file.exists())
        if copy.exists() and not _due(copy, changed_at, now, every_seconds):
            return False
        if not has_room(sum(file.stat().st_size for file in _files(path) if file.exists())):
            raise DiskFull("there is too little room on the disk for a copy of the database")
        _copy(path, copy, changed_at, now)
    except sqlite3.Error as error:
        raise failure(error) from error
    except OSError as error:
        raise StoreError(f"the database could not be copied: {error.strerror}") from error
    logger.info("backup.complete bytes=%d", copy.stat().st_size)
    return True


def _files(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(f"{path.name}-wal")


def _due(copy: Path, changed_at: int, now: datetime, every_seconds: float) -> bool:
    """
    Whether the copy is old enough and tells of another state: its time of change is the database's when it was made.
    """
    facts = copy.stat()
    age = now.timestamp() - facts.st_ctime
    return facts.st_mtime_ns != changed_at and not 0 <= age < every_seconds


def _copy(path: Path, copy: Path, changed_at: int, now: datetime) -> None:
    draft = copy.with_name(f"{copy.name}.new")
    _remove(draft)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(migrate.open_for_reading(path)) as source, closing(migrate.connect(draft)) as target:
            source.backup(target)
            # One file, whole in itself.
            target.execute("PRAGMA journal_mode = DELETE")
            _require_sound(target)
            _doubt_queued(target, now)
        os.utime(draft, ns=(changed_at, changed_at))
        draft.replace(copy)
        migrate.sync_folder(copy.parent)
    except BaseException:
        with suppress(OSError):
            _remove(draft)
        raise


def _require_sound(copy: sqlite3.Connection) -> None:
    (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DatabaseUnusable(f"the database is damaged ({found}); the last backup was left")


def _doubt_queued(copy: sqlite3.Connection, now: datetime) -> None:
    copy.execute("BEGIN IMMEDIATE")
    changes = Transaction(copy)
    changes.change("doubt_queued", at=rows.to_number(now), problem=rows.problem_text(DOUBT))
    changes.change("log_doubted", at=rows.to_number(now))
    changes.change("note_doubted")
    copy.execute("COMMIT")


def _remove(draft: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        draft.with_name(f"{draft.name}{ending}").unlink(missing_ok=True)
