"""
The database as it is on disk, read through a connection of our own: what the relay says is held against it.
"""

import sqlite3
from datetime import datetime
from pathlib import Path

from vidrelay.core.task import Task
from vidrelay.store import reads, rows
from vidrelay.store.statements import Session

ENTRIES = """
    SELECT tasks.seq, events.id, tasks.joins, tasks.fixed, events.moving, events.name
    FROM events JOIN tasks ON tasks.seq = events.task WHERE events.id > ? ORDER BY events.id
"""


class Truth:
    """
    The database as it is on disk, through a connection of our own.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        self._session = Session(self._connection)

    def entries(self, after: int) -> list[tuple[Task, str]]:
        """
        The entries of the log beyond that one: the task as it stood, and the event's name.
        """
        found = self._connection.execute(ENTRIES, (after,)).fetchall()
        return [(rows.task_of(row[:5]), row[5]) for row in found]

    def task(self, task_id: str) -> Task | None:
        """
        A task as it is stored.
        """
        found = self._session.row("task", id=task_id)
        return None if found is None else rows.task_of(found)

    def held(self) -> dict[str, datetime | None]:
        """
        Every task's id, and until when it holds a place by time.
        """
        found = self._connection.execute("SELECT id, place_until FROM tasks")
        return {task_id: None if until is None else rows.to_instant(until) for task_id, until in found}

    def ids(self) -> frozenset[str]:
        """
        The id of every task.
        """
        return frozenset(task_id for (task_id,) in self._connection.execute("SELECT id FROM tasks"))

    def indexed(self) -> frozenset[str]:
        """
        Every path in the cache's index.
        """
        return reads.known(self._session)

    def cached_bytes(self) -> list[int]:
        """
        The bytes of each result.
        """
        return [size for (size,) in self._connection.execute("SELECT size_bytes FROM results")]

    def close(self) -> None:
        """
        Let go of the file.
        """
        self._connection.close()
