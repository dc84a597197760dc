"""
What the relay's answers are read into: frozen records that keep the answer itself as `json`.

A field that a newer relay leaves out or adds is no error: what is missing reads as None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from vidrelay.core.errors import VidrelayError
from vidrelay.core.task import (
    ENDED,
    Blocked,
    BlockReason,
    CancelOutcome,
    Eta,
    JsonObject,
    Problem,
    RemoteState,
    State,
    Timings,
)
from vidrelay.core.wire import SEGMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """
    One file of a result: where it is on this machine, and at the relay (`url` is a path there).
    """

    index: int
    path: str
    url: str
    size_bytes: int
    sha256: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """
    A task as the relay told it (contract section 3); durations in seconds, `progress` 0 to 1.

    `deduped` and `from_cache` speak of the answer to one submit. `json` is the answer as it came.
    """

    id: str
    state: State
    account: str
    provider: str
    model_version: str | None = None
    request: JsonObject = field(default_factory=dict)
    fingerprint: str = ""
    ahead: int | None = None
    remote_id: str | None = None
    remote_state: RemoteState | None = None
    queue_position: int | None = None
    progress: float | None = None
    eta: Eta | None = None
    blocked: Blocked | None = None
    deduped: bool = False
    from_cache: bool = False
    attempts: int = 0
    joins: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    cost: str | None = None
    cancel: CancelOutcome | None = None
    timings: Timings = Timings()
    files: tuple[ResultFile, ...] = ()
    error: Problem | None = None
    json: JsonObject = field(default_factory=dict, repr=False)

    @property
    def ended(self) -> bool:
        """
        Whether the task has reached a state that never changes again.
        """
        return self.state in ENDED

    @property
    def prompt(self) -> str:
        """
        What was asked for.
        """
        prompt = self.request.get("prompt")
        return prompt if isinstance(prompt, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """
    One announcement: the task as it was then. `id` is None for progress inside a state, which cannot be resumed from.
    """

    task: TaskView
    id: str | None


def task_view(told: Mapping[str, Any]) -> TaskView:
    """
    Read a task.

    Raises:
        VidrelayError: It is no task that this version understands.
    """
    task_id, state = told.get("taskId"), told.get("state")
    if not isinstance(task_id, str) or not isinstance(state, str) or state not in set(State):
        raise VidrelayError("The relay's answer is not a task in a form that this version knows.")
    request = told.get("request")
    return TaskView(
        id=task_id,
        state=State(state),
        account=_text(told, "account") or "",
        provider=_text(told, "provider") or "",
        model_version=_text(told, "modelVersion"),
        request=request if isinstance(request, dict) else {},
        fingerprint=_text(told, "fingerprint") or "",
        ahead=_count(told, "ahead"),
        remote_id=_text(told, "remoteId"),
        remote_state=RemoteState(told["remoteState"]) if told.get("remoteState") in set(RemoteState) else None,
        queue_position=_count(told, "queuePosition"),
        progress=_number(told, "progress"),
        eta=_eta(told.get("eta")),
        blocked=_blocked(told.get("waitingFor")) or _blocked(told.get("blocked")),
        deduped=told.get("deduped") is True,
        from_cache=told.get("fromCache") is True,
        attempts=_count(told, "attempts") or 0,
        joins=_count(told, "joins") or 0,
        created_at=_instant(told.get("createdAt")),
        updated_at=_instant(told.get("updatedAt")),
        cost=_cost(told.get("cost")),
        cancel=_cancel(told.get("cancel")),
        timings=_timings(told.get("timings")),
        files=_files(told.get("result")),
        error=problem(told.get("error")),
        json=dict(told),
    )


def problem(told: Any) -> Problem | None:
    """
    Read an RFC 9457 problem; None where it is none.
    """
    if not isinstance(told, Mapping):
        return None
    return Problem(
        code=_text(told, "code") or "unknown",
        title=_text(told, "title") or "",
        detail=_text(told, "detail") or "",
        status=_count(told, "status") or 0,
        retryable=told.get("retryable") is True,
        retry_after=_number(told, "retryAfter"),
    )


def _text(told: Mapping[str, Any], name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) else None


def _number(told: Mapping[str, Any], name: str) -> float | None:
    value = told.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _instant(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def _eta(told: Any) -> Eta | None:
    if not isinstance(told, Mapping):
        return None
    seconds, low, high = (_number(told, name) for name in ("seconds", "low", "high"))
    if seconds is None:
        return None
    return Eta(
        seconds=seconds,
        low=seconds if low is None else low,
        high=seconds if high is None else high,
        basis=_text(told, "basis") or "",
    )


def _blocked(told: Any) -> Blocked | None:
    if not isinstance(told, Mapping):
        return None
    reason = told.get("reason")
    if reason not in set(BlockReason):
        return None
    return Blocked(reason=BlockReason(reason), until=_instant(told.get("until")), detail=_text(told, "detail"))


def _cancel(told: Any) -> CancelOutcome | None:
    outcome = told.get("outcome") if isinstance(told, Mapping) else None
    return CancelOutcome(outcome) if outcome in set(CancelOutcome) else None


def _cost(told: Any) -> str | None:
    if not isinstance(told, Mapping):
        return None
    return f"{told.get('amount')} {told.get('currency')}"


def _timings(told: Any) -> Timings:
    if not isinstance(told, Mapping):
        return Timings()
    return Timings(**{"return_" if name == "return" else name: _number(told, name) for name in SEGMENTS})


def _files(told: Any) -> tuple[ResultFile, ...]:
    files = told.get("files") if isinstance(told, Mapping) else None
    if not isinstance(files, list):
        return ()
    return tuple(
        ResultFile(
            index=_count(file, "index") or 0,
            path=_text(file, "path") or "",
            url=_text(file, "url") or "",
            size_bytes=_count(file, "bytes") or 0,
            sha256=_text(file, "sha256") or "",
            media_type=_text(file, "mediaType") or "",
        )
        for file in files
        if isinstance(file, Mapping)
    )
