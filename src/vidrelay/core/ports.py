"""
What the scheduler needs of the database, as protocols; `assemble.py` says which class fills which.

A port says what the scheduler needs, not what a database can do. Those toward time, the disk, the network and
providers have files of their own: `clock.py`, `disk.py`, `network.py` and `adapter.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from vidrelay.core.adapter import Quota, Scope
from vidrelay.core.lifecycle import Event
from vidrelay.core.task import Asset, BlockReason, FileRef, State, Task


class How(StrEnum):
    """
    How a submit was answered: with a new task, a live twin, an earlier result, or the task of the same client key.
    """

    CREATED = "created"
    JOINED = "joined"
    CACHED = "cached"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """
    A submit's answer.
    """

    task: Task
    how: How


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinRule:
    """
    Which earlier tasks answer a submit (contract section 4).

    `twins_since`: tasks accepted at or after it are twins, ended `done` included; `join_live`: unended ones are,
    however old. `cached_since`: results finished before it are too old. `client_key`: the app's Idempotency-Key;
    `request_id`: its `X-Client-Request-Id`; `resend`: it says itself that this is a resend, so the task of its first
    try is joined even when forced. `cut_off`: the last moments of an earlier life of the relay, which ended before some
    of its answers had left; a forced submit joins the same app's forced task of then, once, since it may be a resend
    that does not say so.
    """

    twins_since: datetime
    cached_since: datetime
    join_live: bool = True
    client_key: str | None = None
    request_id: str | None = None
    resend: bool = False
    cut_off: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """
    Why, since and until when an account rests. `until` None: until a person lifts it. `began_at` None: not known; it is
    kept so that the length of a rest is known whatever became of the wall clock.
    """

    scope: Scope
    reason: BlockReason
    detail: str
    until: datetime | None
    began_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """
    One finished task's files in the cache, for eviction.
    """

    task_id: str
    fingerprint: str
    files: tuple[FileRef, ...]
    size_bytes: int
    saved_at: datetime
    used_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCopy:
    """
    A picture that was uploaded to an account's provider: what stands for it there, and when it was made.
    """

    account: str
    asset: str
    reference: str
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLimits:
    """
    How many tasks a provider says that an account may have, by window (`*` for the rest), and when it said so.
    """

    account: str
    limits: Mapping[str, int]
    told_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldQuota:
    """
    What a provider says that an account may still spend, and when it said so.
    """

    account: str
    quota: Quota
    told_at: datetime


class Store(Protocol):
    """
    Persistence of tasks (port Store). Whatever returns has been committed with full durability.

    Every change of a task also writes its entry in the event log, in the same transaction, and is told to `on_commit`
    in commit order before the call returns.
    """

    on_commit: Callable[[Task], None]

    async def add(self, task: Task, rule: TwinRule) -> Admission:
        """
        Answer a submit in one atomic step: client key, then cache, then twin, else insert this task as queued.

        `task.request.force_refresh` skips cache and twin. A cache hit marks the result as used, a join counts.

        Raises:
            IdempotencyConflict: The client key belongs to another fingerprint or another `force_refresh`.
        """
        ...

    async def get(self, task_id: str) -> Task:
        """
        The task as it is stored.

        Raises:
            UnknownTask: There is none.
        """
        ...

    async def page(
        self, *, states: frozenset[State] | None, account: str | None, before: int | None, limit: int
    ) -> list[Task]:
        """
        Tasks, newest first, with a `seq` under `before`.
        """
        ...

    async def live(self) -> list[Task]:
        """
        Every unended task, oldest first.
        """
        ...

    async def outlived(self) -> list[Task]:
        """
        The ended tasks whose places have not been given back, since their remote jobs may still run.
        """
        ...

    async def take_place(
        self, *, account: str, window: str, limit: int, submission_key: str, now: datetime
    ) -> Task | None:
        """
        Give the next queued task of the window a place, if there is room: it is `submitting` then.

        `submission_key` is for a task that has none yet: one that is sent again keeps its first.
        """
        ...

    async def places(self, *, account: str, window: str, now: datetime) -> tuple[int, datetime | None]:
        """
        How many places are taken, and when the first of those held by time alone is given back.
        """
        ...

    async def save(self, task: Task, event: Event, *, expected_version: int) -> Task:
        """
        Save a task that `advance` has moved, with its event. A `Saved` event also enters the result in the cache index.

        Raises:
            StaleTask: The stored version is not the expected one.
        """
        ...

    async def hold(self, task_id: str, until: datetime | None) -> None:
        """
        Hold the place that time alone holds for this task until then, whatever was stored; None gives it back for good.
        No transition; `on_commit` hears of it. Nothing happens where no time holds a place.
        """
        ...

    async def remote_ids(self, *, account: str, since: datetime) -> frozenset[str]:
        """
        The remote ids of this account's tasks that were made at or after that instant.
        """
        ...

    async def durations(self, *, account: str, model: str | None, limit: int) -> list[float]:
        """
        Seconds from acceptance to remote completion of the newest done tasks of that model, newest first.
        """
        ...

    async def log(self, *, after: int, limit: int, task_id: str | None = None) -> list[Task] | None:
        """
        The tasks as they stood at each log entry above `after`, oldest first; None where `after` is unknown here.
        """
        ...

    def count(self, **counters: int) -> None:
        """
        Add to the lifetime counters; they ride on the next commit.
        """
        ...

    async def counters(self) -> dict[str, int]:
        """
        The lifetime counters, what has not been committed yet included.
        """
        ...

    async def aclose(self) -> None:
        """
        Commit what is waiting and close the database.
        """
        ...


class AssetBook(Protocol):
    """
    Persistence of what is known of reference images (port AssetBook); their bytes are port Assets'.
    """

    async def add_asset(self, asset: Asset) -> None:
        """
        Keep what is known of a reference image; the same id again changes nothing.
        """
        ...

    async def asset(self, asset_id: str) -> Asset:
        """
        What is known of a reference image.

        Raises:
            UnknownAsset: There is none.
        """
        ...


class AccountBook(AssetBook, Protocol):
    """
    Persistence of what is known of accounts: their pauses, what their providers hold of our pictures, and what limits
    and balances they tell; beside that of reference images (port AccountBook).
    """

    async def set_pause(self, account: str, scope: Scope, pause: Pause | None) -> None:
        """
        Keep, or lift, an account's pause of that scope; one of the other scope stays as it is.
        """
        ...

    async def pauses(self) -> list[tuple[str, Pause]]:
        """
        Every pause that is kept, each with its account.
        """
        ...

    async def keep_copy(self, copy: RemoteCopy, *, life: timedelta) -> None:
        """
        Keep what stands for a picture at an account's provider, instead of what stood for it before; and forget what
        was made there so long before it that the provider does not keep it any more.
        """
        ...

    async def drop_copy(self, copy: RemoteCopy) -> None:
        """
        Forget that reference; one that has taken its place stays.
        """
        ...

    async def copy(self, account: str, asset_id: str) -> RemoteCopy | None:
        """
        What stands for that picture at the account's provider, however old; None if nothing does.
        """
        ...

    async def keep_limits(self, told: ToldLimits) -> None:
        """
        Keep what an account's provider tells of its limits, instead of what it told before.
        """
        ...

    async def limits(self) -> list[ToldLimits]:
        """
        The last limits that each account's provider told.
        """
        ...

    async def keep_quota(self, told: ToldQuota) -> None:
        """
        Keep what an account's provider tells of what is left to spend, instead of what it told before.
        """
        ...

    async def quotas(self) -> list[ToldQuota]:
        """
        What each account's provider told last of what is left to spend.
        """
        ...


class ResultIndex(Protocol):
    """
    Persistence of what the result cache holds (port ResultIndex).
    """

    async def results(self, *, coldest: int | None = None) -> tuple[list[CachedResult], int]:
        """
        The results used longest ago, at most `coldest` of them (None: all), and the bytes of all results together.
        """
        ...

    async def older_than(self, instant: datetime, *, limit: int) -> list[CachedResult]:
        """
        Results saved before that instant, oldest first.
        """
        ...

    async def forget(self, task_id: str) -> None:
        """
        Take a task's result out of the index; its task stays done.
        """
        ...

    async def known(self) -> frozenset[str]:
        """
        The relative paths of every file that the index holds.
        """
        ...
