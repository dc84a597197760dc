"""
The adapter of the toy provider (fills port Adapter).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import (
    CancelResult,
    Checked,
    CheckOutcome,
    Conversation,
    Copied,
    Dedupe,
    FindOutcome,
    NotThere,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Quota,
    Refused,
    Scope,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    Unknown,
    UploadOutcome,
    asset_parameter,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import Held, HttpReply, HttpRequest
from vidrelay.core.task import Asset, BlockReason, CancelOutcome, Problem, RemoteFile, RemoteState, Request, Task
from vidrelay.providers.json_api import BaseAdapter
from vidrelay.providers.verdicts import Meaning, failed
from vidrelay.testing.toy.provider import BASE

TOY_TRAITS = Traits(dedupe=Dedupe.NONE, can_cancel=True, poll_floor=1.0, longest_run=timedelta(minutes=30))


class ToyAdapter(BaseAdapter):
    """
    Fills port Adapter for `ToyProvider`.
    """

    def __init__(self, traits: Traits = TOY_TRAITS, **changes: Any) -> None:
        self.traits = replace(traits, **changes)
        self.asks_limits = False
        self.follows_for = 60.0

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        The request nearly as it is.
        """
        parameters: dict[str, Any] = {"prompt": request.prompt, "duration": request.duration or 5, **request.extra}
        if request.seed is not None:
            parameters["seed"] = request.seed
        if assets:
            parameters["pictures"] = [asset_parameter(asset) for asset in assets.values()]
        seconds = float(request.duration or 5)
        return Prepared(model=request.model_version or "toy-1", parameters=parameters, seconds=seconds)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One call.
        """
        body = json.dumps({**task.parameters, "key": task.submission_key}).encode()
        reply = yield HttpRequest(method="POST", url=f"{BASE}/jobs", body=body, creates=True)
        if reply.status == 429:
            reason = BlockReason.WINDOW if b"too many" in reply.body else BlockReason.RATE
            scope = Scope.CREATES if reason is BlockReason.WINDOW else Scope.CALLS
            return Refused(scope=scope, reason=reason, detail="429", retry_after=_wait(reply))
        if reply.status == 401:
            return Refused(scope=Scope.CALLS, reason=BlockReason.AUTH, detail="401")
        if reply.status == 402:
            return Refused(scope=Scope.CREATES, reason=BlockReason.BALANCE, detail="402")
        if reply.status == 422:
            return failed(Meaning.REJECTED, str(_read(reply).get("error")))
        if 400 <= reply.status < 500:
            return Failed(problem=Problem(code="refused", title="Refused", detail=f"status {reply.status}"))
        told = _read(reply)
        if reply.status != 200 or "id" not in told:
            return Unknown(detail=f"status {reply.status}")
        return Accepted(remote_id=told["id"], remote_state=RemoteState.WAITING)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One call.
        """
        reply = yield HttpRequest(method="GET", url=f"{BASE}/jobs/{task.remote_id}")
        if reply.status == 404:
            return NotThere(detail="404")
        if reply.status == 429:
            return _slow_down(reply)
        return _seen(reply.status, _read(reply))

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        One list call, which names them.
        """
        ids = ",".join(str(task.remote_id) for task in tasks)
        reply = yield HttpRequest(method="GET", url=f"{BASE}/jobs?ids={ids}")
        if reply.status == 429:
            return _slow_down(reply)
        told = _read(reply)
        if reply.status != 200 or "jobs" not in told:
            return Trouble(detail=f"status {reply.status}", retry_after=_wait(reply))
        jobs = {job["id"]: job for job in told["jobs"]}
        return {task.id: _seen(200, jobs[task.remote_id]) for task in tasks if task.remote_id in jobs}

    def follow(self, tasks: Sequence[Task], known: Mapping[str, StillRunning]) -> Conversation[PollManyOutcome]:
        """
        A stream of all of them until one is in another state than is known, and what a list says then of those that
        have ended.
        """
        states = {str(task.remote_id): known[task.id].remote_state for task in tasks}

        def enough(body: bytearray) -> bool:
            return any(_STATES.get(job["state"]) is not states[job["id"]] for job in _last_line(body))

        url = f"{BASE}/stream?ids={','.join(states)}"
        reply = yield HttpRequest(method="GET", url=url, held=Held(seconds=self.follows_for, enough=enough))
        if reply.status == 429:
            return _slow_down(reply)
        lines = _last_line(reply.body) if reply.status == 200 else []
        if not lines:
            return Trouble(detail=f"status {reply.status}")
        jobs = {job["id"]: job for job in lines}
        if all(job["state"] in ("queued", "working") for job in jobs.values()):
            return {task.id: _seen(200, jobs[task.remote_id]) for task in tasks if task.remote_id in jobs}
        return (yield from self.poll_many(tasks))

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        One call.
        """
        reply = yield HttpRequest(method="POST", url=f"{BASE}/upload", body=picture["$asset"].encode())
        if reply.status == 429:
            return _slow_down(reply)
        if reply.status == 415:
            return failed(Meaning.REJECTED, "no such pictures")
        told = _read(reply)
        return Copied(reference=told["reference"]) if "reference" in told else Trouble(detail=f"status {reply.status}")

    def check(self) -> Conversation[CheckOutcome]:
        """
        One call.
        """
        reply = yield HttpRequest(method="GET", url=f"{BASE}/check")
        if reply.status in (401, 402, 429):
            reason = {401: BlockReason.AUTH, 402: BlockReason.BALANCE, 429: BlockReason.RATE}[reply.status]
            return Refused(scope=Scope.CALLS, reason=reason, detail=str(reply.status))
        told = _read(reply)
        if "left" not in told:
            return Trouble(detail=f"status {reply.status}")
        return Checked(detail=f"{told['left']} left", quota=Quota(left=told["left"], unit="toys"))

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        One list call.
        """
        reply = yield HttpRequest(method="GET", url=f"{BASE}/jobs")
        jobs = _read(reply).get("jobs", [])
        same = [
            job["id"] for job in jobs if job["prompt"] == task.parameters["prompt"] and job["id"] not in search.owned
        ]
        if len(same) == 1:
            return Found(remote_id=same[0])
        return Undecided(detail=f"{len(same)} jobs look like it", candidates=tuple(same))

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        One call.
        """
        reply = yield HttpRequest(method="DELETE", url=f"{BASE}/jobs/{task.remote_id}")
        if reply.status == 200:
            return Cancelled(outcome=CancelOutcome.STOPPED)
        return CancelTooLate() if reply.status in (404, 409) else Trouble(detail=f"status {reply.status}")

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        The address as it is.
        """
        return HttpRequest(method="GET", url=output.url)

    def valid_id(self, remote_id: str) -> bool:
        """
        `job-` and a number.
        """
        return remote_id.startswith("job-")

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        One call, where an account is to ask for them.
        """
        if not self.asks_limits:
            return None
        told = _read((yield HttpRequest(method="GET", url=f"{BASE}/limits"))).get("limits")
        return told if isinstance(told, dict) else None


def _read(reply: HttpReply) -> dict[str, Any]:
    try:
        told = json.loads(reply.body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


_STATES = {"queued": RemoteState.WAITING, "working": RemoteState.WORKING}


def _last_line(body: bytes | bytearray) -> list[dict[str, Any]]:
    """
    The jobs of a stream's last whole line.
    """
    lines = body.splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n")]
    try:
        told = json.loads(whole[-1]) if whole else []
    except ValueError:
        told = []
    return told if isinstance(told, list) else []


def _slow_down(reply: HttpReply) -> Refused:
    return Refused(scope=Scope.CALLS, reason=BlockReason.RATE, detail="429", retry_after=_wait(reply))


def _wait(reply: HttpReply) -> float | None:
    after = reply.headers.get("retry-after")
    return float(after) if after else None


def _seen(status: int, told: Mapping[str, Any]) -> PollOutcome:
    match told.get("state"):
        case "done":
            return Ready(outputs=(RemoteFile(url=told["url"]),))
        case "failed":
            return Failed(problem=Problem(code="remote_failed", title="Failed", detail="as told"))
        case "cancelled":
            return Failed(problem=Problem(code="remote_cancelled", title="Cancelled", detail="as told"))
        case "queued":
            return StillRunning(remote_state=RemoteState.WAITING)
        case "working":
            return StillRunning(remote_state=RemoteState.WORKING, eta_seconds=told.get("eta"))
        case _:
            return Trouble(detail=f"status {status}")
