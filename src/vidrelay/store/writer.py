"""
The one thread that writes: it takes all waiting changes into one transaction and answers them when that is durable.

Theory of operation. Each change runs in a savepoint, so that one that fails takes back its own work only. The commit
costs one wait for the disk, however many changes share it; those that come meanwhile wait for the next. After a
commit the event loop tells the listener each changed task and then answers the callers, all in the order of the
commit. Changes that came to nothing are answered without a commit. What waits is kept on the loop and the thread is
reached through the loop's `run_in_executor` alone, so a loop that runs such work itself has a store without threads.

A commit that the disk refuses leaves nothing behind and the next one may work. One that the disk took and did not make
durable is different: the system may show what the disk does not hold. Then nothing more is written by this connection.
"""

import asyncio
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from vidrelay.core.errors import DatabaseUnusable, StoreError
from vidrelay.core.task import Task
from vidrelay.store.failures import failure
from vidrelay.store.statements import STATEMENTS, Session

T = TypeVar("T")

MAX_GROUP = 256
"""So many changes share a commit at most, which bounds how long the first of them waits."""

logger = logging.getLogger(__name__)


class Transaction(Session):
    """
    What one change may do; it is void if the change raises.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.told: list[Task] = []
        self.counts: Counter[str] = Counter()

    def change(self, name: str, /, **values: Any) -> int:
        """
        Run a named statement that changes rows; returns how many.
        """
        return self._connection.execute(STATEMENTS[name], values).rowcount

    def insert(self, name: str, /, **values: Any) -> int | None:
        """
        Run a named statement that inserts a row; returns its number, or None where nothing was inserted.
        """
        cursor = self._connection.execute(STATEMENTS[name], values)
        return cursor.lastrowid if cursor.rowcount else None

    def tell(self, task: Task) -> None:
        """
        Have the listener told of a task as it is now.
        """
        self.told.append(task)

    def count(self, **counters: int) -> None:
        """
        Add to the lifetime counters, in this transaction.
        """
        self.counts.update({name: value for name, value in counters.items() if value})


class Counters:
    """
    The lifetime counters, as stored and with what rides on the next commit.
    """

    def __init__(self, stored: dict[str, int]) -> None:
        self._lock = threading.Lock()  # guards both counters below, which the loop and the writer change
        self._totals = Counter(stored)
        self._waiting: Counter[str] = Counter()

    def add(self, counts: dict[str, int]) -> None:
        """
        Count at once, to be stored with the next commit.
        """
        with self._lock:
            self._totals.update(counts)
            self._waiting.update(counts)

    def take(self) -> Counter[str]:
        """
        What waits to be stored; give it back with `add_stored` or `restore`.
        """
        with self._lock:
            taken, self._waiting = self._waiting, Counter()
            return taken

    def restore(self, taken: Counter[str]) -> None:
        """
        The commit failed: what was taken waits again.
        """
        with self._lock:
            self._waiting.update(taken)

    def add_stored(self, counts: Counter[str]) -> None:
        """
        Count what was committed without having waited here.
        """
        with self._lock:
            self._totals.update(counts)

    def totals(self) -> dict[str, int]:
        """
        Everything counted so far.
        """
        with self._lock:
            return dict(self._totals)


@dataclass(slots=True, kw_only=True)
class _Job(Generic[T]):
    operation: Callable[[Transaction], T]
    answer: asyncio.Future[T]
    result: T | None = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.answer.done():  # its caller has gone; the change stands all the same
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)  # type: ignore[arg-type]  # a T once the operation has run


@dataclass(slots=True, kw_only=True)
class _Group:
    done: list[_Job[Any]] = field(default_factory=list)
    told: list[Task] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    changed: bool = False


def _take_for_ours() -> None:
    """
    Take the database for this process's own without a look.
    """


class Writer:
    """
    Runs changes on its connection, which it closes at the end.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        counters: Counters,
        *,
        tell: Callable[[Task], None],
        require_ours: Callable[[], None] = _take_for_ours,
    ) -> None:
        """
        Write for the running event loop, on which `tell` is called for each task that a commit has changed. Before each
        transaction `require_ours` raises DatabaseUnusable where the database is not this process's any more.
        """
        self._require_ours = require_ours
        self._connection = connection
        self._counters = counters
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vidrelay-store-writer")
        self._waiting: list[_Job[Any]] = []
        self._committing = False
        self._closing = False
        self._unusable: DatabaseUnusable | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()

    async def run(self, operation: Callable[[Transaction], T]) -> T:
        """
        Run a change in the next transaction; returns its result when that is durable.

        Raises:
            DiskFull: There was no room; nothing of it was kept.
            StoreBusy: Another process holds the database; nothing of it was kept.
            DatabaseUnusable: It is damaged, or the disk did not make a commit durable; nothing is written any more.
            StoreError: The database failed, or is closed.
        """
        if self._closing:
            raise StoreError("the store is closed")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(_Job(operation=operation, answer=answer))
        self._begin()
        return await answer

    @property
    def usable(self) -> bool:
        """
        Whether changes can still be made.
        """
        return self._unusable is None

    async def aclose(self) -> None:
        """
        Finish what waits, store the counters, and close the connection.
        """
        if not self._closing:
            self._closing = True
            self._begin()
        await asyncio.shield(self._closed)

    def _begin(self) -> None:
        """
        Commit what waits, unless a commit is under way: then that goes on with it. After the last one, close.
        """
        if self._committing:
            return
        if self._waiting:
            jobs, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
            self._committing = True
            work = self._loop.run_in_executor(self._thread, self._commit, jobs)
            work.add_done_callback(lambda done: self._deliver(jobs, done.result()))
        elif self._closing and not self._closed.done():
            self._committing = True
            ending = self._loop.run_in_executor(self._thread, self._finish)
            ending.add_done_callback(lambda done: self._close(done.exception()))

    def _finish(self) -> None:
        self._flush()
        self._connection.close()

    def _close(self, error: BaseException | None) -> None:
        self._thread.shutdown()
        if error is None:
            self._closed.set_result(None)
        else:
            self._closed.set_exception(error)

    def _commit(self, jobs: list[_Job[Any]]) -> list[Task]:
        """
        Run the jobs in one transaction; returns the changed tasks. Where it fails, every job gets the error.
        """
        group = _Group()
        waiting: Counter[str] = Counter()
        try:
            self._require_usable()
            self._connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._run_one(job, group)
            if group.changed:
                waiting = self._counters.take()
                group.counts["stateWrites"] += 1
                self._store_counts(group.counts, waiting)
            self._connection.execute("COMMIT")
        except Exception as error:  # whatever it was, nobody may be left waiting
            logger.warning("commit.failed changes=%d error=%s", len(jobs), error)
            self._roll_back()
            self._counters.restore(waiting)
            ours = _ours(error)
            if isinstance(ours, DatabaseUnusable):
                self._unusable = ours
            for job in jobs:
                job.error = job.error or ours
            return []
        if group.changed:
            self._counters.add_stored(group.counts)
        return group.told

    def _require_usable(self) -> None:
        if self._unusable is not None:
            raise self._unusable
        self._require_ours()

    def _run_one(self, job: _Job[Any], group: _Group) -> None:
        """
        Run one job in its savepoint. Its own failure is its answer; one that ended the transaction is everybody's.
        """
        transaction = Transaction(self._connection)
        before = self._connection.total_changes
        self._connection.execute("SAVEPOINT job")
        try:
            job.result = job.operation(transaction)
        except Exception as error:
            # A full disk or a failing one makes SQLite roll back everything by itself.
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO job")
            job.error = _ours(error)
        else:
            group.changed |= self._connection.total_changes > before
            group.told += transaction.told
            group.counts.update(transaction.counts)
        self._connection.execute("RELEASE job")

    def _store_counts(self, *counted: Counter[str]) -> None:
        # Not their sum by `+`, which drops what was taken back.
        counts: Counter[str] = Counter()
        for some in counted:
            counts.update(some)
        self._connection.executemany(
            STATEMENTS["add_to_counter"], [{"name": name, "value": value} for name, value in counts.items()]
        )

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _flush(self) -> None:
        """
        Store the counters that no commit has taken along.
        """
        waiting = self._counters.take()
        if not waiting or self._unusable is not None:
            return
        waiting["stateWrites"] += 1
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._store_counts(waiting)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            logger.warning("counters.lost error=%s", error)
            self._roll_back()

    def _deliver(self, jobs: list[_Job[Any]], told: list[Task]) -> None:
        """
        Go on with what has come meanwhile, tell what was committed, then answer, on the event loop.
        """
        self._committing = False
        self._begin()
        for task in told:
            try:
                self._tell(task)
            except Exception as error:
                # The change is durable: a listener's fault is reported, and the callers get their answers.
                self._loop.call_exception_handler({"message": "a listener of the store failed", "exception": error})
        for job in jobs:
            job.settle()


def _ours(error: Exception) -> Exception:
    return failure(error) if isinstance(error, sqlite3.Error) else error
