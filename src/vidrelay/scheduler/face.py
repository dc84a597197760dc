"""
What the scheduler shows to those above it: the records it answers with, and its face as a protocol.

`relay.py: Relay` fills `RelayFace`; the server is written against the protocol, so it can be tried against a fake.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from vidrelay.core.adapter import Prepared
from vidrelay.core.door import Door
from vidrelay.core.network import Reply
from vidrelay.core.ports import Admission, CachedResult, Pause, ToldQuota
from vidrelay.core.task import Asset, CancelOutcome, FileRef, Money, Request, Resolution, Standing, State, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """
    Something that watchers are told: a committed change, or progress inside a state (`event_id` None).
    """

    task: Task
    event_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorWay:
    """
    A door, and the account whose tasks are made through it; `pass_through`: other calls are passed on;
    `door_key`: a key in the path stands for the token.
    """

    account: str
    door: Door
    pass_through: bool = False
    door_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """
    How an app sends a request: its name, its Idempotency-Key, its request id, and whether it says that it resends.
    """

    app: str | None = None
    client_key: str | None = None
    request_id: str | None = None
    resend: bool = False


ANYONE = Sender()
"""Who says nothing of itself."""


class WindowSource(StrEnum):
    """
    Who says how many places a window has: the provider, the configuration, nobody, or a refusal, for a while.
    """

    PROVIDER = "provider"
    CONFIGURED = "configured"
    DEFAULT = "default"
    LOWERED = "lowered"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStatus:
    """
    One window of an account: how many places it has, who says so, and how many tasks take one or wait for one.

    """

    name: str
    limit: int
    source: WindowSource
    running: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatus:
    """
    How an account stands; `pause` None: it is at work. `is_default`: requests that name no account go there. `key_from`
    says where its key was found. `quota`: what its provider told last of what is left to spend; None where it tells
    nothing.
    """

    name: str
    provider: str
    windows: tuple[WindowStatus, ...]
    pause: Pause | None = None
    is_default: bool = False
    key_from: str | None = None
    quota: ToldQuota | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountCheck:
    """
    Whether an account's provider takes its key; `ok` None: that could not be found out, and `detail` says why.
    """

    account: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """
    How long a segment takes, in seconds: the middle, and what nine in ten do not exceed.
    """

    median: float
    p90: float


COUNTERS = (
    "submits",
    "deduped",
    "cacheHits",
    "remoteCreates",
    "createAttempts",
    "polls",
    "rateLimited",
    "retries",
    "uncertain",
    "done",
    "failed",
    "cancelled",
    "expired",
    "bytesDownloaded",
    "stateWrites",
    "connectionsOpened",
)
"""The lifetime counters, in the contract's order (section 8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """
    The lifetime counters, what was saved, and the segments' lengths by model and segment name.
    """

    counters: Mapping[str, int]
    saved_clips: int = 0
    saved_money: tuple[Money, ...] = ()
    segments: Mapping[str, Mapping[str, Spread]] = field(default_factory=dict)

    def every_counter(self) -> dict[str, int]:
        """
        Each counter of `COUNTERS`, those that never moved as 0, and any other.
        """
        return {**dict.fromkeys(COUNTERS, 0), **self.counters}


class RelayFace(Protocol):
    """
    Everything the server may ask of the relay.
    """

    async def submit(self, request: Request, sender: Sender = ANYONE) -> Admission:
        """
        Answer a request with a new task, or an earlier one; it is durable when this returns.

        Raises:
            RequestError: It cannot be done as asked.
            StoreError: It could not be made durable.
            DiskFull: There is no room.
        """
        ...

    async def submit_prepared(
        self,
        request: Request,
        prepared: Prepared,
        pictures: Mapping[str, Asset],
        sender: Sender = ANYONE,
    ) -> Admission:
        """
        As `submit`, for what came in the provider's own words; `pictures` are those in its parameters, by id.

        Raises:
            RequestError: It cannot be done as asked.
            StoreError: It could not be made durable.
            DiskFull: There is no room.
        """
        ...

    def doors(self) -> Mapping[str, DoorWay]:
        """
        The doors that there are, by the first segment of their addresses.
        """
        ...

    def pass_on(
        self, name: str, *, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[Reply]:
        """
        Send a call that no door answers to the account's provider, once, with the account's key.

        Raises:
            InvalidRequest: Its path cannot be passed on.
            TransportError: It failed, or nothing was sent since the account rests.
        """
        ...

    def is_stale(self, task: Task) -> bool:
        """
        Whether it has been uncertain for so long that doors show it as failed.
        """
        ...

    async def forget(self, task_id: str) -> Task:
        """
        Cancel what has not ended, and delete the files of what is done.

        Raises:
            UnknownTask: There is none.
        """
        ...

    async def asset(self, asset_id: str) -> Asset:
        """
        What is known of a reference image that the relay has.

        Raises:
            UnknownAsset: There is none.
        """
        ...

    async def fitted(self, asset: Asset, *, account: str) -> Asset:
        """
        What was kept before as that account's provider takes it: itself, or a picture's copy of the same `pixels`.

        Raises:
            UnknownAsset: Its file is gone.
            InvalidRequest: It is a film or a sound, and the provider takes none.
            UnsupportedMedia: It cannot be written as a type that is taken.
            TooLarge: It cannot be made small enough.
        """
        ...

    async def get(self, task_id: str) -> Task:
        """
        The task as it is now.

        Raises:
            UnknownTask: There is none.
        """
        ...

    def place(self, task: Task) -> Standing:
        """
        As `standing`, without the time that is left and why it waits: for those who ask many times a second.
        """
        ...

    def standing(self, task: Task) -> Standing:
        """
        What is known of the task beside its record.
        """
        ...

    async def wait(self, task_id: str, *, seconds: float, seen: State | None = None) -> Task:
        """
        The task once its state changes (or already differs from `seen`), or as it is after so many seconds.

        Raises:
            UnknownTask: There is none.
        """
        ...

    async def cancel(self, task_id: str, *, unless_begun: bool = False) -> tuple[Task, CancelOutcome]:
        """
        Note that the task is no longer wanted; returns it and the outcome to show in this answer. `unless_begun`: it is
        wanted all the same where its provider cannot stop it any more.

        Raises:
            UnknownTask: There is none.
        """
        ...

    async def resolve(self, task_id: str, action: Resolution, *, remote_id: str | None = None) -> Task:
        """
        Settle an uncertain task as a person says.

        Raises:
            UnknownTask: There is none.
            WrongState: It is not uncertain.
            InvalidRequest: The remote id is missing or cannot be one.
        """
        ...

    async def page(
        self, *, states: frozenset[State] | None, account: str | None, limit: int, before: int | None
    ) -> list[Task]:
        """
        Tasks, newest first, with a `seq` under `before`.
        """
        ...

    def watch(self) -> AbstractContextManager[asyncio.Queue[Announcement | None]]:
        """
        Everything announced from now on; None says that the watcher fell too far behind and hears no more.
        """
        ...

    async def log(self, *, after: int, limit: int, task_id: str | None = None) -> list[Task] | None:
        """
        The tasks as they stood at each log entry above `after`, oldest first; None where `after` is unknown here.
        """
        ...

    def live(self) -> list[Task]:
        """
        Every unended task, oldest first.
        """
        ...

    def accounts(self) -> list[AccountStatus]:
        """
        How each account stands.
        """
        ...

    async def resume(self, name: str) -> AccountStatus:
        """
        Lift an account's pause.

        Raises:
            UnknownAccount: There is none of that name.
        """
        ...

    async def check(self, name: str) -> AccountCheck:
        """
        Find out whether an account's key is taken, without paying; it makes no task.

        Raises:
            UnknownAccount: There is none of that name.
        """
        ...

    async def stats(self) -> Stats:
        """
        The lifetime counters and what comes of them.
        """
        ...

    async def add_asset(self, chunks: AsyncIterator[bytes], *, account: str | None = None) -> Asset:
        """
        Take in a reference image; for an account that is named, a film or a sound too, where its provider takes that.

        Raises:
            UnsupportedMedia: It is no picture we read, nor such a film or sound.
            InvalidRequest: The account's provider takes no film or no sound.
            TooLarge: It is over a limit.
            DiskFull: There is no room.
        """
        ...

    async def result_file(self, task_id: str, index: int) -> tuple[Path, FileRef]:
        """
        Where a result's file is.

        Raises:
            UnknownTask: There is none, or it has no such file.
            WrongState: The task is not done.
            ResultGone: The file was evicted.
        """
        ...

    def file_path(self, file: FileRef) -> Path:
        """
        Where a result's file is, or was.
        """
        ...

    async def cached(self, *, limit: int) -> tuple[list[CachedResult], int]:
        """
        The cached results used longest ago, and the bytes of all.
        """
        ...

    async def verify_cache(self) -> list[str]:
        """
        Forget every cached result that is not whole; returns their tasks' ids.
        """
        ...

    async def clear_cache(self) -> int:
        """
        Delete every cached result; returns how many there were.
        """
        ...
