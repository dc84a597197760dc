"""
Toward the built-in renderer (fills port Adapter).

It is spoken to as any other provider is, so nothing else in vidrelay knows that it is not one. A job is put under the
task's own id, so putting it again asks for the same one; and since it costs nothing, a renderer that has forgotten a
job (the relay was started anew) is simply asked again.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from vidrelay.core.adapter import (
    CancelResult,
    Conversation,
    Dedupe,
    FindOutcome,
    PollOutcome,
    Prepared,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    Unknown,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import HttpReply, HttpRequest
from vidrelay.core.task import Asset, CancelOutcome, Problem, RemoteFile, RemoteState, RemoteTimes, Request, Task
from vidrelay.providers.json_api import BaseAdapter
from vidrelay.providers.preview import parameters, words
from vidrelay.providers.preview.words import Status
from vidrelay.providers.replies import number_of, read_object, text_of


class PreviewAdapter(BaseAdapter):
    """
    The one account that needs no key.
    """

    def __init__(self) -> None:
        self.traits = Traits(
            dedupe=Dedupe.REPLAY,
            can_cancel=True,
            poll_floor=0.3,
            poll_spacing=0.0,
            longest_run=timedelta(minutes=20),
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the renderer's words.

        Raises:
            InvalidRequest: It cannot do that; names the field and what it accepts.
        """
        return parameters.prepare(request, assets)

    def valid_id(self, remote_id: str) -> bool:
        """
        Whether this can be a job's id.
        """
        return words.is_job_id(remote_id)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        Put the job under the task's id.
        """
        reply = yield _put(task, creates=True)
        job = read_object(reply)
        if reply.status in (200, 201) and job is not None:
            return Accepted(remote_id=task.id, remote_state=_remote_state(job), times=_times(job))
        if 400 <= reply.status < 500:
            return Failed(problem=_refused(reply, job))
        return Unknown(detail=f"the renderer answered {reply.status}")

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        Ask for the job, and put it again where the renderer has forgotten it.
        """
        reply = yield HttpRequest(method="GET", url=_address(task))
        if reply.status == 404:
            reply = yield _put(task, creates=False)
        job = read_object(reply)
        if job is not None and 400 <= reply.status < 500:
            return Failed(problem=_refused(reply, job))
        if job is None or reply.status not in (200, 201):
            return Trouble(detail=f"the renderer answered {reply.status}")
        match text_of(job, "status"):
            case Status.DONE:
                return Ready(outputs=(RemoteFile(url=f"{_address(task)}/content"),), times=_times(job))
            case Status.FAILED:
                return Failed(problem=_failed(job))
            case _:
                return _running(job)

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Take the task's job as it is now: put again, it is the same one.
        """
        reply = yield _put(task, creates=False)
        job = read_object(reply)
        if reply.status in (200, 201) and job is not None:
            return Found(remote_id=task.id, remote_state=_remote_state(job), times=_times(job))
        return Undecided(detail=f"the renderer answered {reply.status}")

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stop the job. One that the renderer does not know does not run.
        """
        reply = yield HttpRequest(method="DELETE", url=_address(task))
        if reply.status in (200, 404):
            return Cancelled(outcome=CancelOutcome.STOPPED)
        if reply.status == 409:
            return CancelTooLate()
        return Trouble(detail=f"the renderer answered {reply.status}")

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        Fetch the clip.
        """
        return HttpRequest(method="GET", url=output.url)

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        As many jobs at once as the renderer has slots for.
        """
        reply = yield HttpRequest(method="GET", url=words.LIMITS)
        slots = number_of(read_object(reply) or {}, "slots")
        return {"*": int(slots)} if slots is not None and slots >= 1 else None


def _address(task: Task) -> str:
    return words.JOBS + (task.remote_id or task.id)


def _put(task: Task, *, creates: bool) -> HttpRequest:
    return HttpRequest(
        method="PUT",
        url=_address(task),
        headers={"content-type": "application/json"},
        body=json.dumps(task.parameters, sort_keys=True).encode(),
        creates=creates,
    )


def _running(job: Mapping[str, Any]) -> StillRunning:
    position = number_of(job, "position")
    return StillRunning(
        remote_state=_remote_state(job),
        progress=number_of(job, "progress"),
        queue_position=None if position is None else int(position),
        eta_seconds=number_of(job, "eta_seconds"),
        times=_times(job),
    )


def _remote_state(job: Mapping[str, Any]) -> RemoteState:
    return RemoteState.WAITING if text_of(job, "status") == Status.QUEUED else RemoteState.WORKING


def _times(job: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(
        created_at=_instant(job, "created_at"),
        started_at=_instant(job, "started_at"),
        completed_at=_instant(job, "completed_at"),
        execute_seconds=number_of(job, "execute_seconds"),
    )


def _instant(job: Mapping[str, Any], name: str) -> datetime | None:
    text = text_of(job, name)
    return None if text is None else datetime.fromisoformat(text)


def _refused(reply: HttpReply, job: Mapping[str, Any] | None) -> Problem:
    detail = text_of(job or {}, "error") or f"the renderer answered {reply.status}"
    return Problem(code="remote_rejected", title="The renderer refused the job", detail=detail)


def _failed(job: Mapping[str, Any]) -> Problem:
    detail = text_of(job, "error") or "it did not say why"
    return Problem(code="remote_failed", title="The clip could not be rendered", detail=detail)
