"""
The life of a task: the one table of what may follow what, and the only code that changes a state.

Theory of operation. A task moves by events, each telling what has happened. `TRANSITIONS` maps a state and the kind of
an event to the next state; `advance` looks there, applies what the event carries, and returns the task as it is then.
What is not in the table raises `IllegalTransition` and changes nothing.

Intent is stored before effect. `Started` is saved before the first byte of a create call leaves, so a task found in
`submitting` after a crash may have been paid for: it gets `Lost`, and waits in `uncertain` until a look-up or a person
settles it. Nothing else resends a create, except where the provider answers the same key with its first answer
(`Dedupe.REPLAY`): there `Deferred` puts the task back in line, and sending again is asking what became of it. There is
no separate recovery code: a crash is an event like any other.

A wish to cancel is a flag where the remote side must be asked first (`submitting`, `running`); a task that comes back
to `queued` with that flag is cancelled instead of queued. A remote job that may still run after the task has ended
here, or whose fate is unknown, keeps its place in the window until `place_until`.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from vidrelay.core.errors import IllegalTransition
from vidrelay.core.task import (
    ENDED,
    CancelOutcome,
    FileRef,
    Problem,
    RemoteFile,
    RemoteState,
    RemoteTimes,
    State,
    Task,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """
    A place in the window was taken and the create call is about to be sent, under this key of ours.
    """

    submission_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """
    The provider has the task, under this id.
    """

    remote_id: str
    remote_state: RemoteState | None = None
    times: RemoteTimes = RemoteTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """
    The provider answered the create call with the finished result; `Ready` follows.
    """

    remote_id: str
    outputs: tuple[RemoteFile, ...]
    times: RemoteTimes = RemoteTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """
    It did not work now and is worth another try later. From `submitting` it means: surely not created, or sending it
    again under the same key cannot create it twice.

    `problem` tells a person what to mend where the try waits for that.
    """

    detail: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """
    It is over, for this reason. `remote_id` where a create was answered with a job that had failed already.
    """

    problem: Problem
    remote_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """
    The create call may or may not have been carried out. Its place is kept until `place_until`.
    """

    problem: Problem
    place_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    The lost task was found at the provider (or a person named it).
    """

    remote_id: str
    remote_state: RemoteState | None = None
    times: RemoteTimes = RemoteTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """
    It is proved that the lost create was never carried out.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ResubmitRequested:
    """
    A person says: send the create again, whatever the first one did.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """
    A person says: give the lost task up.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRunning:
    """
    The provider still has it. `progress` is 0 to 1, `eta_seconds` what the provider says; both live in memory only.
    """

    remote_state: RemoteState | None = None
    progress: float | None = None
    queue_position: int | None = None
    eta_seconds: float | None = None
    times: RemoteTimes = RemoteTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """
    The remote work is done; these files can be fetched.
    """

    outputs: tuple[RemoteFile, ...]
    times: RemoteTimes = RemoteTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """
    The provider does not know the task, or no longer gives its result.
    """

    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed:
    """
    Asked again just now, nothing has changed for too long. The job may run on: its place is kept until then.
    """

    problem: Problem
    place_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """
    The user no longer wants the task.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """
    The wish to cancel is settled by ending the task; `place_until` is set where the remote job may run on.
    """

    outcome: CancelOutcome
    place_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTooLate:
    """
    The provider had finished before the wish to cancel reached it; the task goes on to its result. `begun`: it had only
    begun, and was to be stopped unless it had: it is wanted as before.
    """

    begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """
    Every file is on disk, whole and checked.
    """

    files: tuple[FileRef, ...]


Event = (
    Started
    | Accepted
    | Answered
    | Deferred
    | Failed
    | Lost
    | Found
    | Absent
    | ResubmitRequested
    | Abandoned
    | StillRunning
    | Ready
    | Vanished
    | DeadlinePassed
    | CancelRequested
    | Cancelled
    | CancelTooLate
    | Saved
)

TRANSITIONS: dict[State, dict[type[Event], State]] = {
    State.QUEUED: {
        Started: State.SUBMITTING,
        CancelRequested: State.CANCELLED,
        Failed: State.FAILED,
    },
    State.SUBMITTING: {
        Accepted: State.RUNNING,
        Answered: State.RUNNING,
        Deferred: State.QUEUED,
        Failed: State.FAILED,
        Lost: State.UNCERTAIN,
        CancelRequested: State.SUBMITTING,
    },
    State.UNCERTAIN: {
        Found: State.RUNNING,
        Absent: State.QUEUED,
        ResubmitRequested: State.QUEUED,
        Deferred: State.UNCERTAIN,
        Failed: State.FAILED,
        CancelRequested: State.CANCELLED,
        Abandoned: State.CANCELLED,
    },
    State.RUNNING: {
        StillRunning: State.RUNNING,
        Deferred: State.RUNNING,
        Ready: State.DOWNLOADING,
        Failed: State.FAILED,
        Vanished: State.FAILED,
        DeadlinePassed: State.EXPIRED,
        Cancelled: State.CANCELLED,
        CancelTooLate: State.RUNNING,
        CancelRequested: State.RUNNING,
    },
    State.DOWNLOADING: {
        Saved: State.DONE,
        Deferred: State.DOWNLOADING,
        Ready: State.DOWNLOADING,
        Failed: State.FAILED,
        Vanished: State.FAILED,
        CancelRequested: State.CANCELLED,
    },
    State.DONE: {},
    State.FAILED: {},
    State.CANCELLED: {},
    State.EXPIRED: {},
}


def advance(task: Task, event: Event, now: datetime) -> Task:
    """
    Return the task as it is after `event`, at `now`; the version counts up by one.

    Raises:
        IllegalTransition: The table has no such step from the task's state. The task is unchanged.
    """
    following = TRANSITIONS[task.state].get(type(event))
    if following is None:
        raise IllegalTransition(f"a {task.state} task cannot take {type(event).__name__} (task {task.id})")
    moved = _apply(replace(task, version=task.version + 1, updated_at=now), event)
    if following is State.QUEUED and task.cancel_wanted:
        following, moved = State.CANCELLED, replace(moved, cancel=CancelOutcome.LOCAL)
    if moved.cancel is CancelOutcome.PENDING and (following in ENDED or following is State.DOWNLOADING):
        # It ended, or the work was done and paid, while the wish was on its way.
        moved = replace(moved, cancel=CancelOutcome.TOO_LATE)
    moved = replace(moved, state=following)
    return replace(moved, finished_at=now) if moved.ended else moved


def _apply(task: Task, event: Event) -> Task:
    """
    Put what the event carries into the task; its state and instants of change are `advance`'s.
    """
    now = task.updated_at
    match event:
        case Started():
            return replace(
                task, attempts=task.attempts + 1, submission_key=event.submission_key, started_at=now, error=None
            )
        case Accepted():
            task = replace(task, remote_id=event.remote_id, accepted_at=now)
            return _observe(task, event.remote_state, event.times)
        case Found():
            made_at = _made_at(task, event.times)
            task = replace(task, remote_id=event.remote_id, accepted_at=made_at, place_until=None, error=None)
            return _observe(task, event.remote_state, event.times)
        case Answered():
            task = replace(task, remote_id=event.remote_id, accepted_at=now, outputs=event.outputs)
            return _observe(task, RemoteState.WORKING, event.times)
        case StillRunning():
            return _observe(task, event.remote_state, event.times)
        case Ready():
            ready_at = task.ready_at or now
            task = replace(task, outputs=event.outputs, ready_at=ready_at)
            return replace(task, remote_times=_merged(task.remote_times, event.times))
        case Lost():
            return replace(task, error=event.problem, place_until=event.place_until)
        case Failed():
            remote_id = task.remote_id or event.remote_id
            return replace(task, error=event.problem, remote_id=remote_id, place_until=None)
        case Vanished():
            return replace(task, error=event.problem, place_until=None)
        case DeadlinePassed():
            return replace(task, error=event.problem, place_until=event.place_until)
        case Absent() | ResubmitRequested():
            return replace(task, error=None, place_until=None)
        case CancelRequested():
            return replace(task, cancel_wanted=True, cancel=_at_request(task.state))
        case Cancelled():
            return replace(task, cancel=event.outcome, place_until=event.place_until)
        case CancelTooLate():
            return replace(task, cancel=CancelOutcome.TOO_LATE, cancel_wanted=task.cancel_wanted and not event.begun)
        case Abandoned():
            return replace(task, cancel_wanted=True, cancel=CancelOutcome.LOCAL)
        case Saved():
            return replace(task, files=event.files, error=None)
        case Deferred():
            # What may have been paid for a lost create stays said until that is settled.
            said = task.error if task.state is State.UNCERTAIN else None
            return replace(task, error=event.problem or said)
        case _:
            assert_never(event)


def _at_request(state: State) -> CancelOutcome:
    """
    What can be said of a wish to cancel at the moment it is made.
    """
    match state:
        case State.SUBMITTING | State.RUNNING:
            return CancelOutcome.PENDING
        case State.DOWNLOADING:
            return CancelOutcome.TOO_LATE
        case _:
            return CancelOutcome.LOCAL


def _made_at(task: Task, told: RemoteTimes) -> datetime:
    """
    When a found task was accepted: when its provider says it was made, within what can be true by our own clock.
    """
    sent_at = task.started_at or task.created_at
    return max(sent_at, min(told.created_at or task.updated_at, task.updated_at))


def _observe(task: Task, remote_state: RemoteState | None, times: RemoteTimes) -> Task:
    """
    Note the provider's state and clock; a remote state never goes backwards, and the first sight of work is kept.
    """
    working = remote_state is RemoteState.WORKING or task.remote_state is RemoteState.WORKING
    state = RemoteState.WORKING if working else remote_state or task.remote_state
    return replace(
        task,
        remote_state=state,
        working_at=task.working_at or (task.updated_at if working else None),
        remote_times=_merged(task.remote_times, times),
    )


def _merged(old: RemoteTimes, new: RemoteTimes) -> RemoteTimes:
    """
    The newer word where there is one, else what was told before.
    """
    execute = old.execute_seconds if new.execute_seconds is None else new.execute_seconds
    return RemoteTimes(
        created_at=new.created_at or old.created_at,
        started_at=new.started_at or old.started_at,
        completed_at=new.completed_at or old.completed_at,
        execute_seconds=execute,
    )
