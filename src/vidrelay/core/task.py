"""
The records every room speaks of: a request, a task, its files, and the words for where it stands.

All are frozen; a change makes a new record (`dataclasses.replace`), and only `lifecycle.advance` changes a state.
Instants are aware UTC datetimes, sizes are bytes, durations are seconds unless they are a `timedelta`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

JsonObject = Mapping[str, Any]


class State(StrEnum):
    """
    Where a task stands in its life (contract section 2).
    """

    QUEUED = "queued"
    SUBMITTING = "submitting"
    UNCERTAIN = "uncertain"
    RUNNING = "running"
    DOWNLOADING = "downloading"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


ENDED = frozenset({State.DONE, State.FAILED, State.CANCELLED, State.EXPIRED})
LIVE = frozenset(State) - ENDED


class RemoteState(StrEnum):
    """
    What the provider does with an accepted task: it waits in the provider's queue, or is worked on.
    """

    WAITING = "waiting"
    WORKING = "working"


class CancelOutcome(StrEnum):
    """
    What a wish to cancel came to.

    `stopped`: the provider stopped it. `too_late`: it had ended, or the work was done and paid. `unsupported`: the
    provider cannot stop it, so it may run on there. `local`: stopped here, the provider was not asked. `pending`: not
    settled yet.
    """

    STOPPED = "stopped"
    TOO_LATE = "too_late"
    UNSUPPORTED = "unsupported"
    LOCAL = "local"
    PENDING = "pending"


class Resolution(StrEnum):
    """
    What a person decides about an uncertain task: send it again, take over a remote job, or give it up.
    """

    RETRY = "retry"
    ADOPT = "adopt"
    ABANDON = "abandon"


class Priority(StrEnum):
    """
    Which of two queued tasks of one window goes first: interactive ones, then batch; first in, first out in each.
    """

    INTERACTIVE = "interactive"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """
    A reference image of a request: held here (`asset`), read from this machine (`path`), or an address as text.

    Exactly one of the three is given by the app; a path gains its `asset` when the picture has been read.
    """

    asset: str | None = None
    path: str | None = None
    url: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """
    A reference image kept here, or a film or a sound that came through a door.

    `id` is `sha256:` and the hash of its bytes; `pixels` identifies the upright, scaled picture, so copies that differ
    in metadata only share it. `width` and `height` are upright pixels. A film or a sound is not looked into: its
    `pixels` is its `id`, its width and height are 1.
    """

    id: str
    pixels: str
    width: int
    height: int
    size_bytes: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    What an app asked for, in the contract's own uniform words (section 3), before any provider is thought of.
    """

    prompt: str
    account: str | None = None
    provider: str | None = None
    model_version: str | None = None
    aspect_ratio: str | None = None
    duration: int | float | None = None
    resolution: str | None = None
    seed: int | None = None
    style_preset: str | None = None
    negative_prompt: str | None = None
    references: tuple[Reference, ...] = ()
    extra: JsonObject = field(default_factory=dict)
    force_refresh: bool = False
    priority: Priority = Priority.INTERACTIVE
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """
    Why something did not work, as RFC 9457 tells it.

    `code` is stable and in snake_case; `status` the HTTP status it is shown with; `retry_after` seconds, or None.
    """

    code: str
    title: str
    detail: str
    status: int = 502
    retryable: bool = False
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """
    A result where the provider keeps it. `needs_key`: the address wants the account's credentials. `inside`: the
    address answers JSON, in which the file stands as base64 at that place (a JSON pointer); None where it is the file.
    `otherwise`: where the same file lies too, for when this address does not give it; it wants no key.
    """

    url: str
    needs_key: bool = False
    inside: str | None = None
    otherwise: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """
    A whole, checked file of ours: `path` is relative to the cache directory.
    """

    index: int
    path: str
    size_bytes: int
    sha256: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTimes:
    """
    What the provider tells of its own clock; None for what it does not tell. `execute_seconds` where it measures that.
    """

    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    execute_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """
    An exact amount in one currency (its ISO 4217 code).
    """

    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """
    Where a task's time went, in seconds; None for what has not happened or is not told (contract section 3).
    """

    wait: float | None = None
    submit: float | None = None
    queue: float | None = None
    execute: float | None = None
    return_: float | None = None
    download: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """
    One wanted clip, from its acceptance to its end.

    The first group is fixed when the task is made; the second moves with `lifecycle.advance` alone; the third is
    written by the store: `seq` is the place in line (ascending), `event_id` the newest entry of the task in the event
    log, `joins` how often a later submit joined it.
    """

    id: str
    account: str
    provider: str
    window: str
    model_version: str | None
    request: Request
    parameters: JsonObject
    fingerprint: str
    created_at: datetime
    app: str | None = None
    cost: Money | None = None

    state: State = State.QUEUED
    version: int = 0
    updated_at: datetime
    attempts: int = 0
    submission_key: str | None = None
    started_at: datetime | None = None
    accepted_at: datetime | None = None
    working_at: datetime | None = None
    ready_at: datetime | None = None
    finished_at: datetime | None = None
    remote_id: str | None = None
    remote_state: RemoteState | None = None
    remote_times: RemoteTimes = RemoteTimes()
    outputs: tuple[RemoteFile, ...] = ()
    files: tuple[FileRef, ...] = ()
    cancel_wanted: bool = False
    cancel: CancelOutcome | None = None
    error: Problem | None = None
    place_until: datetime | None = None

    seq: int = 0
    event_id: int = 0
    joins: int = 0

    @property
    def ended(self) -> bool:
        """
        Whether the task has reached a state that never changes again.
        """
        return self.state in ENDED

    def holds_place(self, now: datetime) -> bool:
        """
        Whether the task takes a place in its window at `now` (contract section 2).
        """
        if self.state in (State.SUBMITTING, State.RUNNING):
            return True
        return self.place_until is not None and self.place_until > now

    def timings(self) -> Timings:
        """
        The segments of this task's life so far.

        The provider's clock is moved onto ours by its own moment of creation; what it does not tell of the queue is
        taken from the moment we saw it work. Without a told completion, `execute` ends where we learned of it.
        """
        told = self.remote_times
        completed = started = None
        if self.accepted_at is not None:
            if told.created_at is not None:
                shift = self.accepted_at - told.created_at
                completed = told.completed_at + shift if told.completed_at else None
                started = told.started_at + shift if told.started_at else None
            # A provider that tells whole seconds may seem to end after we learned of it.
            if completed is not None and self.ready_at is not None:
                completed = min(completed, self.ready_at)
        started = started or self.working_at
        worked_until = completed or self.ready_at
        execute = told.execute_seconds
        if execute is None:
            execute = _seconds(started, worked_until)
        queue = _seconds(self.accepted_at, started)
        if told.execute_seconds is not None and told.started_at is None:
            whole = _seconds(self.accepted_at, worked_until)
            queue = max(0.0, whole - execute) if whole is not None and execute is not None else None
        return Timings(
            wait=_seconds(self.created_at, self.started_at),
            submit=_seconds(self.started_at, self.accepted_at),
            queue=queue,
            execute=execute,
            return_=_seconds(completed, self.ready_at),
            download=_seconds(self.ready_at, self.finished_at) if self.state is State.DONE else None,
            total=_seconds(self.created_at, self.finished_at),
        )

    def remote_seconds(self) -> float | None:
        """
        Seconds from acceptance to remote completion: by the provider's own clock where it tells, else until we learned
        of it; None where it was never seen to run.
        """
        timings = self.timings()
        if timings.queue is not None and timings.execute is not None:
            return timings.queue + timings.execute
        return _seconds(self.accepted_at, self.ready_at)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    """
    Seconds from `start` to `end`, never negative (a wall clock may jump), or None where either is missing.
    """
    if start is None or end is None:
        return None
    return max(0.0, (end - start).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """
    How long a task still takes, in seconds: the middle guess, and the bounds of four in five earlier ones.
    """

    seconds: float
    low: float
    high: float
    basis: str


class BlockReason(StrEnum):
    """
    What a task or an account waits for: a place, the provider's pace, money, a key, the day's end, room on the disk, a
    lost create; or the network, which no task shows as its `blocked`.
    """

    WINDOW = "window"
    RATE = "rate"
    BALANCE = "balance"
    AUTH = "auth"
    DAILY_LIMIT = "daily_limit"
    DISK = "disk"
    LOOKUP = "lookup"
    NETWORK = "network"


SHOWN_REASONS = tuple(reason for reason in BlockReason if reason is not BlockReason.NETWORK)
"""The reasons that a task may show as `blocked` (contract section 3); `waitingFor` has every one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """
    What a task waits for, and until when if known; `detail` is what was said of it, by the provider perhaps.
    """

    reason: BlockReason
    until: datetime | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    What is known of a live task beside its record, kept in memory only.

    `ahead` counts the queued tasks before it; `progress` is 0 to 1; `queue_position` is the provider's own;
    `waiting_for` is `blocked`, or what the contract has no word for there; `candidates` are the provider's jobs that an
    uncertain task may be.
    """

    ahead: int | None = None
    queue_position: int | None = None
    progress: float | None = None
    eta: Eta | None = None
    blocked: Blocked | None = None
    waiting_for: Blocked | None = None
    candidates: tuple[str, ...] = ()
