"""
Rows of the database to records and back, and the one conversion of instants.

A record is stored as JSON of those fields that differ from their defaults, so a new field with a default needs no
migration. Text is kept as ASCII JSON: a provider's broken character must never keep a paid task from being saved.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar

from vidrelay.core.lifecycle import Accepted, Answered, Failed
from vidrelay.core.ports import CachedResult
from vidrelay.core.task import (
    CancelOutcome,
    FileRef,
    Money,
    Priority,
    Problem,
    Reference,
    RemoteFile,
    RemoteState,
    RemoteTimes,
    Request,
    State,
    Task,
)

R = TypeVar("R")
Row = tuple[Any, ...]
Way = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_STORES_OWN = frozenset({"seq", "event_id", "joins"})
_FIXED = frozenset(
    {
        "id",
        "account",
        "provider",
        "window",
        "model_version",
        "request",
        "parameters",
        "fingerprint",
        "created_at",
        "app",
        "cost",
    }
)
_MOVING = frozenset(f.name for f in fields(Task)) - _FIXED


def to_number(instant: datetime) -> int:
    """
    An aware instant as whole microseconds since 1970 UTC.
    """
    return (instant - _EPOCH) // _MICROSECOND


def to_instant(number: int) -> datetime:
    """
    Microseconds since 1970 as an aware UTC instant.
    """
    return _EPOCH + timedelta(microseconds=number)


def optional_number(instant: datetime | None) -> int | None:
    """
    `to_number` where there is an instant.
    """
    return None if instant is None else to_number(instant)


def _mapping(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


dumps = json.JSONEncoder(separators=(",", ":"), default=_mapping).encode
"""JSON as it is kept: compact, ASCII, any mapping as an object."""


class Codec(Generic[R]):
    """
    A record as a JSON object of its fields; those that stand at their default are left out.
    """

    def __init__(self, record: type[R], **ways: Way) -> None:
        """
        `ways` says how each field that is no plain JSON is written and read.
        """
        self._record = record
        self._fields = [
            (f.name, _default(f), ways.get(f.name, (None, None))[0])
            for f in fields(record)  # type: ignore[arg-type]  # every record is a dataclass
            if record is not Task or f.name not in _STORES_OWN
        ]
        self._read = {name: read for name, (_, read) in ways.items()}

    def encode(self, record: R, without: frozenset[str] = frozenset()) -> dict[str, Any]:
        """
        The record's fields, those named in `without` left out.
        """
        told = {}
        for name, default, write in self._fields:
            if name not in without and (value := getattr(record, name)) != default:
                told[name] = value if write is None else write(value)
        return told

    def decode(self, told: Mapping[str, Any], **more: Any) -> R:
        """
        The record of that object; `more` are fields as they are.
        """
        read = self._read
        return self._record(
            **{name: read[name](value) if name in read else value for name, value in told.items()}, **more
        )

    @property
    def way(self) -> Way:
        """
        Writing and reading this record inside another.
        """
        return self.encode, self.decode

    @property
    def many(self) -> Way:
        """
        Writing and reading a tuple of this record inside another.
        """
        return (
            lambda records: [self.encode(record) for record in records],
            lambda told: tuple(self.decode(one) for one in told),
        )


def _default(field: "Field[Any]") -> Any:
    """
    The field's default value, or MISSING, which equals nothing.
    """
    return field.default_factory() if field.default_factory is not MISSING else field.default


_INSTANT: Way = (to_number, to_instant)
_FILES = Codec(FileRef).many
_OUTPUTS = Codec(RemoteFile).many
_PROBLEM = Codec(Problem)
_TIMES = Codec(RemoteTimes, created_at=_INSTANT, started_at=_INSTANT, completed_at=_INSTANT).way
_ANSWERS: dict[str, Codec[Any]] = {
    "Accepted": Codec(Accepted, remote_state=(str, RemoteState), times=_TIMES),
    "Answered": Codec(Answered, outputs=_OUTPUTS, times=_TIMES),
    "Failed": Codec(Failed, problem=_PROBLEM.way),
}
_REQUEST = Codec(Request, references=Codec(Reference).many, priority=(str, Priority))
_TASK = Codec(
    Task,
    request=_REQUEST.way,
    cost=Codec(Money, amount=(str, Decimal)).way,
    state=(str, State),
    remote_state=(str, RemoteState),
    remote_times=_TIMES,
    outputs=_OUTPUTS,
    files=_FILES,
    cancel=(str, CancelOutcome),
    error=_PROBLEM.way,
    created_at=_INSTANT,
    updated_at=_INSTANT,
    started_at=_INSTANT,
    accepted_at=_INSTANT,
    working_at=_INSTANT,
    ready_at=_INSTANT,
    finished_at=_INSTANT,
    place_until=_INSTANT,
)


def task_of(row: Row) -> Task:
    """
    The task of a row (seq, event_id, joins, fixed, moving).
    """
    seq, event_id, joins, fixed, moving = row
    told = json.loads(fixed)
    told.update(json.loads(moving))
    return _TASK.decode(told, seq=seq, event_id=event_id, joins=joins)


def fixed_values(task: Task) -> dict[str, Any]:
    """
    The columns that are written once.
    """
    return {
        "id": task.id,
        "account": task.account,
        "window": task.window,
        "model_version": task.model_version,
        "fingerprint": task.fingerprint,
        "priority": int(task.request.priority is Priority.BATCH),
        "created_at": to_number(task.created_at),
        "fixed": dumps(_TASK.encode(task, without=_MOVING)),
    }


def moving_values(task: Task) -> dict[str, Any]:
    """
    The columns that change with the task.
    """
    return {
        "id": task.id,
        "state": str(task.state),
        "version": task.version,
        "cancel_wanted": int(task.cancel_wanted),
        "remote_id": task.remote_id,
        "place_until": optional_number(task.place_until),
        "finished_at": optional_number(task.finished_at),
        "moving": dumps(_TASK.encode(task, without=_FIXED)),
    }


def result_values(task: Task) -> dict[str, Any]:
    """
    The row of a done task in the cache's index.
    """
    write, _ = _FILES
    return {
        "task_id": task.id,
        "fingerprint": task.fingerprint,
        "size_bytes": sum(file.size_bytes for file in task.files),
        "at": to_number(task.updated_at),
        "files": dumps(write(task.files)),
    }


def answer_values(event: Accepted | Answered | Failed) -> dict[str, Any]:
    """
    A provider's answer to a create call as a JSON object.
    """
    name = type(event).__name__
    return {"event": name, **_ANSWERS[name].encode(event)}


def answer_of(told: Mapping[str, Any]) -> Accepted | Answered | Failed:
    """
    The answer that `answer_values` wrote.

    Raises:
        KeyError, TypeError, ValueError: It is none.
    """
    fields = dict(told)
    answer: Accepted | Answered | Failed = _ANSWERS[fields.pop("event")].decode(fields)
    return answer


def problem_text(problem: Problem) -> str:
    """
    A task's error as it stands in its record.
    """
    return dumps(_PROBLEM.encode(problem))


def files_of(text: str) -> tuple[FileRef, ...]:
    """
    The files of a result.
    """
    _, read = _FILES
    files: tuple[FileRef, ...] = read(json.loads(text))
    return files


def result_of(row: Row) -> CachedResult:
    """
    The cached result of a row (task_id, fingerprint, size_bytes, saved_at, used_at, files).
    """
    task_id, fingerprint, size_bytes, saved_at, used_at, files = row
    return CachedResult(
        task_id=task_id,
        fingerprint=fingerprint,
        files=files_of(files),
        size_bytes=size_bytes,
        saved_at=to_instant(saved_at),
        used_at=to_instant(used_at),
    )
