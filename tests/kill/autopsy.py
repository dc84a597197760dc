"""
What a dead relay has left on its disk, read from a copy, so that nothing of it is touched.
"""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from vidrelay.core.task import State, Task
from vidrelay.store import reads
from vidrelay.store.statements import Session

SIDES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    The database: every task, every entry of the log, the places taken, and the files that the index knows.
    """

    tasks: tuple[Task, ...] = ()
    log: tuple[Task, ...] = ()
    places: int = 0
    known: frozenset[str] = field(default_factory=frozenset)
    check: str = "ok"
    there: bool = False

    def of(self, prompt: str) -> Task | None:
        """The task that has this prompt."""
        return next((task for task in self.tasks if task.request.prompt == prompt), None)

    def states(self) -> set[State]:
        """Every state that a task is in."""
        return {task.state for task in self.tasks}


def database(state: Path) -> Found:
    """
    Read a copy of the database; one that was never made is empty.
    """
    if not (state / "relay.db").exists():
        return Found()
    with tempfile.TemporaryDirectory() as folder:
        for side in SIDES:
            if (state / f"relay.db{side}").exists():
                shutil.copy(state / f"relay.db{side}", folder)
        with closing(sqlite3.connect(Path(folder, "relay.db"))) as connection:
            (check,) = connection.execute("PRAGMA integrity_check").fetchone()
            session = Session(connection)
            tasks = reads.page(session, states=None, account=None, before=None, limit=1000)
            taken, _ = reads.places(session, account="sim", window="*", now=datetime.now(UTC))
            return Found(
                tasks=tuple(reversed(tasks)),
                log=tuple(reads.log(session, after=0, limit=100_000, task_id=None) or ()),
                places=taken,
                known=reads.known(session),
                check=check,
                there=True,
            )


def results(state: Path) -> dict[str, Path]:
    """
    Every file in the cache by its relative path, unfinished ones too.
    """
    cache = state / "cache"
    return {str(path.relative_to(cache)): path for path in cache.rglob("*") if not path.is_dir()}
