"""
The store on SQLite: fills the ports Store, AccountBook and ResultIndex.

One connection in one thread writes (`writer.py`), one in another reads (`reader.py`). A caller must hold the state
directory's lock: two processes that write one WAL database can damage it (SQLite before 3.51.3).
"""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from vidrelay.core.adapter import Scope
from vidrelay.core.lifecycle import Event
from vidrelay.core.ports import Admission, CachedResult, Pause, RemoteCopy, ToldLimits, ToldQuota, TwinRule
from vidrelay.core.task import Asset, State, Task
from vidrelay.store import changes, migrate, reads
from vidrelay.store.ours import Ours
from vidrelay.store.reader import Reader
from vidrelay.store.statements import Session
from vidrelay.store.writer import Counters, Transaction, Writer

T = TypeVar("T")

LOG_ENTRIES = 50_000
"""So many entries of the event log are kept, and up to a fiftieth more until the next trimming."""


def _nobody(task: Task) -> None:
    """
    Listen to nothing.
    """


class SqliteStore:
    """
    Tasks, accounts' pauses, reference images and the cache's index in one SQLite file.

    Belongs to the event loop that it was opened in. `on_commit` is called on that loop for every task that a commit
    has changed, before the callers of that commit get their answers. A join changes `joins` alone and writes no entry
    in the log: its task comes with the `version` and `event_id` that it had.
    """

    def __init__(
        self,
        writer: sqlite3.Connection,
        reader: sqlite3.Connection,
        *,
        log_entries: int,
        ours: Ours,
    ) -> None:
        """
        Take over both connections; use `open`.
        """
        self.on_commit: Callable[[Task], None] = _nobody
        self._log_entries = log_entries
        self._counters = Counters(reads.counters(Session(reader)))
        self._reader = Reader(reader)
        self._ours = ours
        self._writer = Writer(writer, self._counters, tell=self._tell, require_ours=ours.require)

    @classmethod
    async def open(
        cls, path: Path, *, log_entries: int = LOG_ENTRIES, is_locked: Callable[[], bool] = lambda: True
    ) -> "SqliteStore":
        """
        Open the database at `path`, made or migrated where needed; its folder must exist.

        `log_entries`: how many entries of the event log are kept. `is_locked`: whether the caller still holds the lock.
        Where it does not, or the file at `path` or its log is another, nothing is written any more: what was answered
        would be in a file that nobody finds, or two relays would work on one.

        Raises:
            DatabaseUnusable: It is corrupt, not vidrelay's, or newer; it was left untouched.
            DiskFull: There is no room to make it.
            StoreError: It cannot be opened.
        """
        writer, reader, ours = await asyncio.to_thread(_connect, path, is_locked)
        return cls(writer, reader, log_entries=log_entries, ours=ours)

    async def require_ours(self) -> None:
        """
        Find out now, and not at the next change, whether what is written will be found again.

        Raises:
            DatabaseUnusable: It will not; nothing is written any more.
            StoreError: It could not be found out.
        """
        await self._writer.run(lambda _: None)

    async def aclose(self) -> None:
        """
        Commit what is waiting, the counters too, and close the database.
        """
        # Whichever connection goes last folds the write-ahead log into the database, and only the writer can. After a
        # failed sync nobody may: the next start reads the log from the disk. A log that is not there it cannot read.
        folds = self._writer.usable or self._ours.log_is_lost
        both = (self._reader, self._writer) if folds else (self._writer, self._reader)
        for connection in both:
            await connection.aclose()

    # Tasks ------------------------------------------------------------------------------------------------------------

    async def add(self, task: Task, rule: TwinRule) -> Admission:
        """
        Answer a submit in one atomic step: client key, then cache, then twin, else insert this task as queued.

        `task.created_at` is the moment of the submit. A request id's task is joined while its outcome can be had.

        Raises:
            IdempotencyConflict: The client key belongs to another fingerprint or another `force_refresh`.
        """
        return await self._change(partial(changes.add, task=task, rule=rule))

    async def get(self, task_id: str) -> Task:
        """
        The task as it is stored.

        Raises:
            UnknownTask: There is none.
        """
        return await self._reader.run(partial(reads.get, task_id=task_id))

    async def page(
        self, *, states: frozenset[State] | None, account: str | None, before: int | None, limit: int
    ) -> list[Task]:
        """
        Tasks, newest first, with a `seq` under `before`; None stands for all.
        """
        return await self._reader.run(partial(reads.page, states=states, account=account, before=before, limit=limit))

    async def live(self) -> list[Task]:
        """
        Every unended task, oldest first.
        """
        return await self._reader.run(reads.live)

    async def outlived(self) -> list[Task]:
        """
        The ended tasks whose places have not been given back, since their remote jobs may still run.
        """
        return await self._reader.run(reads.outlived)

    async def take_place(
        self, *, account: str, window: str, limit: int, submission_key: str, now: datetime
    ) -> Task | None:
        """
        Give the next queued task of the window a place, if there is room: it is `submitting` then.

        Interactive tasks go first, then by `seq`. Commits nothing where there is no task or no room.
        """
        return await self._change(
            partial(
                changes.take_place,
                account=account,
                window=window,
                limit=limit,
                submission_key=submission_key,
                now=now,
            )
        )

    async def places(self, *, account: str, window: str, now: datetime) -> tuple[int, datetime | None]:
        """
        How many places are taken, and when the first of those held by time alone is given back.
        """
        return await self._reader.run(partial(reads.places, account=account, window=window, now=now))

    async def save(self, task: Task, event: Event, *, expected_version: int) -> Task:
        """
        Save a task that `advance` has moved, with its event; returns it with its `event_id` and today's `joins`.

        Raises:
            StaleTask: The stored version is not the expected one.
            DuplicateRemote: Its remote id belongs to another task that is unended or done.
            UnknownTask: There is none.
        """
        return await self._change(partial(changes.save, task=task, event=event, expected_version=expected_version))

    async def hold(self, task_id: str, until: datetime | None) -> None:
        """
        Hold the place that time alone holds for this task until then, whatever was stored; None gives it back for good.

        Raises:
            UnknownTask: There is none.
        """
        await self._change(partial(changes.hold, task_id=task_id, until=until))

    async def remote_ids(self, *, account: str, since: datetime) -> frozenset[str]:
        """
        The remote ids of this account's tasks that were made at or after that instant.
        """
        return await self._reader.run(partial(reads.remote_ids, account=account, since=since))

    async def durations(self, *, account: str, model: str | None, limit: int) -> list[float]:
        """
        Seconds from acceptance to remote completion of the newest done tasks of that model, newest first.
        """
        return await self._reader.run(partial(reads.durations, account=account, model=model, limit=limit))

    async def log(self, *, after: int, limit: int, task_id: str | None = None) -> list[Task] | None:
        """
        The tasks as they stood at each log entry above `after`, oldest first.

        None where `after` is above the newest entry, or so old that entries after it have been trimmed.
        """
        return await self._reader.run(partial(reads.log, after=after, limit=limit, task_id=task_id))

    # Counters ---------------------------------------------------------------------------------------------------------

    def count(self, **counters: int) -> None:
        """
        Add to the lifetime counters; they ride on the next commit. May be called from any thread.
        """
        self._counters.add(counters)

    async def counters(self) -> dict[str, int]:
        """
        The lifetime counters by name, what has not been committed yet included.
        """
        return self._counters.totals()

    # Accounts and pictures --------------------------------------------------------------------------------------------

    async def set_pause(self, account: str, scope: Scope, pause: Pause | None) -> None:
        """
        Keep, or lift, an account's pause of that scope.
        """
        await self._change(partial(changes.set_pause, account=account, scope=scope, pause=pause))

    async def pauses(self) -> list[tuple[str, Pause]]:
        """
        Every pause that is kept, each with its account.
        """
        return await self._reader.run(reads.pauses)

    async def keep_copy(self, copy: RemoteCopy, *, life: timedelta) -> None:
        """
        Keep what stands for a picture at an account's provider, instead of what stood for it before; and forget what
        was made there so long before it that the provider does not keep it any more.
        """
        await self._change(partial(changes.keep_copy, copy=copy, life=life))

    async def drop_copy(self, copy: RemoteCopy) -> None:
        """
        Forget that reference; one that has taken its place stays.
        """
        await self._change(partial(changes.drop_copy, copy=copy))

    async def copy(self, account: str, asset_id: str) -> RemoteCopy | None:
        """
        What stands for that picture at the account's provider, however old; None if nothing does.
        """
        return await self._reader.run(partial(reads.copy, account=account, asset_id=asset_id))

    async def keep_limits(self, told: ToldLimits) -> None:
        """
        Keep what an account's provider tells of its limits, instead of what it told before.
        """
        await self._change(partial(changes.keep_limits, told=told))

    async def limits(self) -> list[ToldLimits]:
        """
        The last limits that each account's provider told.
        """
        return await self._reader.run(reads.limits)

    async def keep_quota(self, told: ToldQuota) -> None:
        """
        Keep what an account's provider tells of what is left to spend, instead of what it told before.
        """
        await self._change(partial(changes.keep_quota, told=told))

    async def quotas(self) -> list[ToldQuota]:
        """
        What each account's provider told last of what is left to spend.
        """
        return await self._reader.run(reads.quotas)

    async def add_asset(self, asset: Asset) -> None:
        """
        Keep what is known of a reference image; the same id again changes nothing.
        """
        await self._change(partial(changes.add_asset, asset=asset))

    async def asset(self, asset_id: str) -> Asset:
        """
        What is known of a reference image.

        Raises:
            UnknownAsset: There is none.
        """
        return await self._reader.run(partial(reads.asset, asset_id=asset_id))

    # The cache's index ------------------------------------------------------------------------------------------------

    async def results(self, *, coldest: int | None = None) -> tuple[list[CachedResult], int]:
        """
        The results used longest ago, at most `coldest` of them (None: all), and the bytes of all results together.
        """
        return await self._reader.run(partial(reads.results, coldest=coldest))

    async def older_than(self, instant: datetime, *, limit: int) -> list[CachedResult]:
        """
        Results saved before that instant, oldest first.
        """
        return await self._reader.run(partial(reads.older_than, instant=instant, limit=limit))

    async def forget(self, task_id: str) -> None:
        """
        Take a task's result out of the index; its task stays done.
        """
        await self._change(partial(changes.forget, task_id=task_id))

    async def known(self) -> frozenset[str]:
        """
        The relative paths of every file that the index holds.
        """
        return await self._reader.run(reads.known)

    def _tell(self, task: Task) -> None:
        self.on_commit(task)

    async def _change(self, operation: Callable[[Transaction], T]) -> T:
        def change_and_trim(transaction: Transaction) -> T:
            result = operation(transaction)
            changes.trim_log(transaction, keep=self._log_entries)
            return result

        return await self._writer.run(change_and_trim)


def _connect(path: Path, is_locked: Callable[[], bool]) -> tuple[sqlite3.Connection, sqlite3.Connection, Ours]:
    """
    The connection that writes, the one that reads, and who watches over their files.
    """
    writer = migrate.open_for_writing(path, migrate.migrations())
    try:
        ours = Ours(path, writer, is_locked)
        return writer, migrate.open_for_reading(path), ours
    except BaseException:
        writer.close()
        raise
