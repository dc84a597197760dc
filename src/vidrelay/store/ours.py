"""
Whether the database that is open is still the one that the next start will find.
"""

import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from vidrelay.core.errors import DatabaseUnusable, StoreError

logger = logging.getLogger(__name__)


class Ours:
    """
    Watches over the database file, its write-ahead log and the lock, in the thread of the connection that writes.

    As long as a connection is open SQLite neither deletes the log nor makes it anew: a checkpoint starts it again from
    its beginning, or cuts it off. So its identity stays, and a log that has another, or none, is somebody else's doing.
    """

    def __init__(self, path: Path, writer: sqlite3.Connection, is_locked: Callable[[], bool]) -> None:
        """
        Take the files that are there now for the ones that `writer` has open; it must have read from them.

        Raises:
            StoreError: They cannot be looked at.
        """
        self._path, self._log = path, path.with_name(f"{path.name}-wal")
        self._writer = writer
        self._is_locked = is_locked
        self.log_is_lost = False
        try:
            self._opened, self._opened_log = path.stat(), self._log.stat()
        except OSError as error:
            raise StoreError(f"the database {path} cannot be opened: {error.strerror}") from error

    def require(self) -> None:
        """
        Go on only with what is still in its place. Where the log is gone, what it holds is brought into the database.

        Raises:
            DatabaseUnusable: What is stored now would not be found again.
        """
        if not (_is_at(self._path, self._opened) and self._is_locked()):
            raise DatabaseUnusable(
                f"{self._path} was moved or deleted, or its directory's lock was, while the relay ran. Nothing more is "
                "stored or sent; put it back, and start the relay again."
            )
        if not _is_at(self._log, self._opened_log):
            self.log_is_lost = True
            raise DatabaseUnusable(
                f"{self._log} was moved or deleted while the relay ran. Nothing more is stored or sent. {self._fold()}"
            )

    def _fold(self) -> str:
        """
        Bring into the database what SQLite still has of the log, through the file that it holds open; says how it went.
        """
        # Cut off, too: a log that was only moved must not be played back over what the database holds by then.
        try:
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            why = "another program reads it" if busy else None
        except sqlite3.Error as error:
            why = str(error)
        if why is None:
            logger.warning("log.folded")
            return f"All that was stored is in {self._path.name}: start the relay again."
        logger.error("log.not_folded why=%s", why)
        return f"What it held could not be brought into {self._path.name} yet ({why}); the end tries it again."


def _is_at(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), opened)
    except OSError:
        return False
