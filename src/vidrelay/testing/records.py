"""
Builders of records: whole ones from the few fields that a test is about.
"""

from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

from vidrelay.core.lifecycle import (
    Accepted,
    CancelRequested,
    DeadlinePassed,
    Event,
    Failed,
    Lost,
    Ready,
    Saved,
    Started,
    advance,
)
from vidrelay.core.task import FileRef, Problem, RemoteFile, Request, State, Task
from vidrelay.testing.clock import START

_numbers = count(1)

PROBLEM = Problem(code="remote_error", title="It did not work", detail="the provider said so")


def make_request(prompt: str = "a lighthouse at dawn", **overrides: Any) -> Request:
    """
    A request for one clip.
    """
    return Request(prompt=prompt, **overrides)


def make_file(index: int = 0, *, task_id: str = "task", size_bytes: int = 1000, **overrides: Any) -> FileRef:
    """
    A result file, named as the cache names it.
    """
    fields: dict[str, Any] = {
        "index": index,
        "path": f"fp/{task_id}-{index}.mp4",
        "size_bytes": size_bytes,
        "sha256": "0" * 64,
        "media_type": "video/mp4",
    }
    return FileRef(**(fields | overrides))


def make_task(**overrides: Any) -> Task:
    """
    A queued task of account and window `main`, with an id and a fingerprint of its own.

    `forced` sets its request's `force_refresh`, `priority` its request's priority.
    """
    number = next(_numbers)
    created_at: datetime = overrides.get("created_at", START)
    wishes = {
        field: overrides.pop(word)
        for word, field in (("forced", "force_refresh"), ("priority", "priority"))
        if word in overrides
    }
    request = replace(overrides.pop("request", make_request()), **wishes)
    fields: dict[str, Any] = {
        "id": f"task-{number}",
        "account": "main",
        "provider": "openai",
        "window": "main",
        "model_version": "model-a",
        "request": request,
        "parameters": {"model": "model-a", "prompt": request.prompt},
        "fingerprint": f"{number:064x}",
        "created_at": created_at,
        "updated_at": created_at,
    }
    return Task(**(fields | overrides))


def events_to(state: State, task: Task, *, remote_id: str | None = None, files: int = 1) -> list[Event]:
    """
    The events that bring a queued task to that state in the shortest way.

    `remote_id` None: one made from the task's own id.
    """
    started = Started(submission_key=f"key-{task.id}")
    running: list[Event] = [started, Accepted(remote_id=remote_id or f"remote-{task.id}")]
    ready = Ready(outputs=(RemoteFile(url="https://files.test/clip.mp4"),))
    saved = Saved(files=tuple(make_file(index, task_id=task.id) for index in range(files)))
    lost = Lost(problem=PROBLEM, place_until=task.updated_at)
    ways: dict[State, list[Event]] = {
        State.QUEUED: [],
        State.SUBMITTING: [started],
        State.UNCERTAIN: [started, lost],
        State.RUNNING: running,
        State.DOWNLOADING: [*running, ready],
        State.DONE: [*running, ready, saved],
        State.FAILED: [*running, Failed(problem=PROBLEM)],
        State.CANCELLED: [CancelRequested()],
        State.EXPIRED: [*running, DeadlinePassed(problem=PROBLEM, place_until=task.updated_at)],
    }
    return ways[state]


def moved(task: Task, *events: Event, at: datetime | None = None) -> Task:
    """
    The task after these events, all at one instant (the task's own last one if None).
    """
    for event in events:
        task = advance(task, event, at or task.updated_at)
    return task
