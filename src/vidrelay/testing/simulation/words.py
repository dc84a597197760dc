"""
What the model providers speak: one small adapter for each kind of protection against a second create.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from vidrelay.core.adapter import (
    CancelResult,
    Conversation,
    Copied,
    Dedupe,
    FindOutcome,
    NotThere,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Refused,
    Scope,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    Unknown,
    UploadOutcome,
)
from vidrelay.core.lifecycle import Absent, Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import Held, HttpReply, HttpRequest
from vidrelay.core.pace import retry_after
from vidrelay.core.task import (
    Asset,
    BlockReason,
    CancelOutcome,
    Problem,
    RemoteFile,
    RemoteState,
    RemoteTimes,
    Request,
    Task,
)
from vidrelay.providers.json_api import BaseAdapter
from vidrelay.testing.clock import START
from vidrelay.testing.simulation.ledger import Key
from vidrelay.testing.simulation.provider import API, TASK, UPLOAD_SECONDS

LONGEST_RUN = timedelta(minutes=10)
SLACK = timedelta(seconds=120)
FOLLOWED_SECONDS = 60.0
SURE_AFTER = 600.0
"""So many seconds after a loss a complete list is believed when it shows nothing."""

STATES = {
    "queued": RemoteState.WAITING,
    "working": RemoteState.WORKING,
}


class PlainWords(BaseAdapter):
    """
    Fills port Adapter; a lost create cannot be settled without a person.
    """

    dedupe = Dedupe.NONE

    def __init__(self, key: Key, *, can_cancel: bool = True) -> None:
        self._key = key
        self.traits = Traits(
            dedupe=self.dedupe,
            can_cancel=can_cancel,
            longest_run=LONGEST_RUN,
            hosts=("api.model.test", "cdn.model.test"),
            lists=key.tells_all,
            follows=key.streams,
            copies=timedelta(seconds=UPLOAD_SECONDS) if key.uploads else None,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        The request nearly as it is.
        """
        parameters: dict[str, Any] = {"prompt": request.prompt, "duration": request.duration or 5, **request.extra}
        if request.seed is not None:
            parameters["seed"] = request.seed
        if self._key.uploads and request.duration == 8:
            parameters["picture"] = {"$asset": f"sha256:{len(request.prompt) % 3}", "mediaType": "image/png"}
        return Prepared(model=request.model_version or "model-a", parameters=parameters, seconds=5.0)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One call.
        """
        body = json.dumps(dict(task.parameters)).encode()
        headers = {**self._headers(), "idempotency-key": task.submission_key or "", TASK: task.id}
        reply = yield HttpRequest(method="POST", url=f"{API}/jobs", headers=headers, body=body, creates=True)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        if reply.status == 422:
            return Failed(
                problem=Problem(code="rejected", title="Rejected", detail="not this prompt, or no such picture")
            )
        told = _object(reply)
        if reply.status == 409 and told.get("error") == "duplicate":
            return (yield from self._duplicate(task))
        remote_id = told.get("id")
        if reply.status != 200 or not isinstance(remote_id, str) or not self.valid_id(remote_id):
            return Unknown(detail=f"the provider answered {reply.status}")
        return Accepted(remote_id=remote_id, remote_state=STATES.get(str(told.get("state"))), times=_times(told))

    def _duplicate(self, task: Task) -> Conversation[SubmitOutcome]:
        return Unknown(detail="the provider speaks of a duplicate")
        yield  # makes this a conversation

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One call.
        """
        headers = {**self._headers(), TASK: task.id}
        reply = yield HttpRequest(method="GET", url=f"{API}/jobs/{task.remote_id}", headers=headers)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        if reply.status == 404:
            return NotThere(detail="404")
        told = _object(reply)
        if reply.status != 200 or "state" not in told:
            return Trouble(detail=f"the provider answered {reply.status}", retry_after=_wait(reply))
        return _seen(told)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        One call for all.
        """
        headers = {**self._headers(), TASK: ",".join(task.id for task in tasks)}
        ids = ",".join(str(task.remote_id) for task in tasks)
        reply = yield HttpRequest(method="GET", url=f"{API}/jobs?ids={ids}", headers=headers)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        jobs = _object(reply).get("jobs")
        if reply.status != 200 or not isinstance(jobs, list):
            return Trouble(detail=f"the provider answered {reply.status}", retry_after=_wait(reply))
        told = {job["id"]: job for job in jobs}
        return {task.id: _seen(told[task.remote_id]) for task in tasks if task.remote_id in told}

    def follow(self, tasks: Sequence[Task], known: Mapping[str, StillRunning]) -> Conversation[PollManyOutcome]:
        """
        One call that lasts, for all.
        """
        headers = {**self._headers(), TASK: ",".join(task.id for task in tasks)}
        by_job = {str(task.remote_id): task.id for task in tasks}

        def enough(body: bytearray) -> bool:
            jobs = _last(body)
            return any(_differs(_seen(job), known.get(by_job[job["id"]])) for job in jobs if job["id"] in by_job)

        held = Held(seconds=FOLLOWED_SECONDS, enough=enough)
        url = f"{API}/jobs?ids={','.join(by_job)}"
        reply = yield HttpRequest(method="GET", url=url, headers=headers, held=held)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        jobs = _last(reply.body) if reply.status == 200 else []
        if not jobs:
            return Trouble(detail=f"the provider answered {reply.status}", retry_after=_wait(reply))
        return {by_job[job["id"]]: _seen(job) for job in jobs if job["id"] in by_job}

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        One call, with the picture's name for its bytes.
        """
        body = picture["$asset"].encode()
        reply = yield HttpRequest(method="POST", url=f"{API}/uploads", headers=self._headers(), body=body)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        reference = _object(reply).get("reference")
        if reply.status != 200 or not isinstance(reference, str):
            return Trouble(detail=f"the provider answered {reply.status}", retry_after=_wait(reply))
        return Copied(reference=reference)

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Nothing to look it up by; never asked.
        """
        return Undecided(detail="there is no list")
        yield  # makes this a conversation

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        One call.
        """
        headers = self._headers()
        reply = yield HttpRequest(method="DELETE", url=f"{API}/jobs/{task.remote_id}", headers=headers)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        if reply.status == 200 and "state" in _object(reply):
            return Cancelled(outcome=CancelOutcome.STOPPED)
        return CancelTooLate() if reply.status in (404, 409) else Trouble(detail=f"status {reply.status}")

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        The address as it is, without the key.
        """
        return HttpRequest(method="GET", url=output.url)

    def valid_id(self, remote_id: str) -> bool:
        """
        `job-` and a number.
        """
        head, _, number = remote_id.partition("-")
        return head == "job" and number.isascii() and number.isdigit()

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        One call where they are told.
        """
        if not self._key.tells_limit:
            return None
        reply = yield self._get("/limits")
        limits = _object(reply).get("limits")
        return limits if isinstance(limits, dict) else None

    def _get(self, path: str) -> HttpRequest:
        return HttpRequest(method="GET", url=API + path, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Key {self._key.secret}"}


class ReplayWords(PlainWords):
    """
    A create that is sent again under its key gets the first answer.
    """

    dedupe = Dedupe.REPLAY


class RejectWords(PlainWords):
    """
    A create that is sent again under its key is refused as a duplicate, which proves the first; then it is looked up.
    """

    dedupe = Dedupe.REJECT

    def _duplicate(self, task: Task) -> Conversation[SubmitOutcome]:
        reply = yield self._get(f"/jobs?mark={task.submission_key}")
        jobs = _object(reply).get("jobs", [])
        if len(jobs) != 1:
            return Unknown(detail="a duplicate, of which the list does not know yet")
        return Accepted(remote_id=jobs[0]["id"], remote_state=STATES.get(jobs[0]["state"]), times=_times(jobs[0]))


class ClientIdWords(PlainWords):
    """
    A create can be looked up by the id that we gave it.
    """

    dedupe = Dedupe.CLIENT_ID

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        One look-up.
        """
        listed = yield from self._listed(f"/jobs?mark={task.submission_key}")
        return self._settled(listed, search) if isinstance(listed, list) else listed

    def _listed(self, path: str) -> Conversation[list[dict[str, Any]] | Refused | Trouble]:
        reply = yield self._get(path)
        refused = _refusal(reply)
        if refused is not None:
            return refused
        jobs = _object(reply).get("jobs")
        if reply.status != 200 or not isinstance(jobs, list):
            return Trouble(detail=f"the provider answered {reply.status}", retry_after=_wait(reply))
        return jobs

    def _settled(self, jobs: list[dict[str, Any]], search: Search, *, others: int = 0) -> FindOutcome:
        """
        One is it; none is none where the list is complete and nothing else could be it, by a clock that may be wrong.
        """
        if len(jobs) == 1:
            return Found(remote_id=jobs[0]["id"], remote_state=STATES.get(jobs[0]["state"]), times=_times(jobs[0]))
        if self._key.complete_list and not jobs and not others and search.elapsed >= SURE_AFTER:
            return Absent()
        return Undecided(detail=f"{len(jobs)} jobs look like it", candidates=tuple(job["id"] for job in jobs))


class ListWords(ClientIdWords):
    """
    Recent jobs can be listed and compared; the list lags at most four minutes.
    """

    dedupe = Dedupe.LIST

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        One list call; a candidate has the same parameters, was made about then, and is no other task's.
        """
        listed = yield from self._listed("/jobs")
        if not isinstance(listed, list):
            return listed
        alike = [job for job in listed if job["id"] not in search.owned and _alike(job, task)]
        then = [job for job in alike if _made_then(job, search)]
        return self._settled(then, search, others=len(alike) - len(then))


WORDS: dict[Dedupe, type[PlainWords]] = {
    words.dedupe: words for words in (PlainWords, ReplayWords, RejectWords, ClientIdWords, ListWords)
}


def _alike(job: Mapping[str, Any], task: Task) -> bool:
    """
    Whether a listed job says what the task does; which of a picture's copies was named makes no difference.
    """
    return all(_uncopied(job.get(name)) == _uncopied(value) for name, value in task.parameters.items())


def _uncopied(value: Any) -> Any:
    return {name: inner for name, inner in value.items() if name != "$copy"} if isinstance(value, Mapping) else value


def _made_then(job: Mapping[str, Any], search: Search) -> bool:
    made = datetime.fromisoformat(job["created_at"])
    return search.sent_at - SLACK <= made <= search.lost_at + SLACK


def _refusal(reply: HttpReply) -> Refused | None:
    if reply.status not in (401, 402, 429):
        return None
    why = str(_object(reply).get("error"))
    scope, reason = {
        401: (Scope.CALLS, BlockReason.AUTH),
        402: (Scope.CREATES, BlockReason.BALANCE),
        429: (Scope.CREATES, BlockReason.WINDOW) if why == "too many running" else (Scope.CALLS, BlockReason.RATE),
    }[reply.status]
    return Refused(scope=scope, reason=reason, detail=why, retry_after=_wait(reply))


def _last(body: bytes | bytearray) -> list[dict[str, Any]]:
    """
    The jobs of a stream's last whole line that can be read.
    """
    for line in reversed(bytes(body).splitlines(keepends=True)):
        told = _object(HttpReply(status=200, body=line)) if line.endswith(b"\n") else {}
        if "jobs" in told:
            jobs: list[dict[str, Any]] = told["jobs"]
            return jobs
    return []


def _differs(seen: PollOutcome, known: StillRunning | None) -> bool:
    if not isinstance(seen, StillRunning) or known is None:
        return True
    return (seen.remote_state, seen.queue_position) != (known.remote_state, known.queue_position)


def _wait(reply: HttpReply) -> float | None:
    return retry_after(reply.headers.get("retry-after"), now=START)


def _object(reply: HttpReply) -> dict[str, Any]:
    try:
        told = json.loads(reply.body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _seen(told: Mapping[str, Any]) -> PollOutcome:
    match told["state"]:
        case "done":
            return Ready(outputs=(RemoteFile(url=told["url"]),), times=_times(told))
        case "failed":
            return Failed(problem=Problem(code="remote_failed", title="Failed", detail="as told"))
        case "cancelled":
            return Failed(problem=Problem(code="remote_cancelled", title="Cancelled", detail="as told"))
        case word:
            return StillRunning(
                remote_state=STATES.get(word),
                progress=told.get("progress"),
                queue_position=told.get("position"),
                times=_times(told),
            )


def _times(told: Mapping[str, Any]) -> RemoteTimes:
    created_at, started_at, completed_at = (
        datetime.fromisoformat(told[name]) if name in told else None
        for name in ("created_at", "started_at", "completed_at")
    )
    return RemoteTimes(created_at=created_at, started_at=started_at, completed_at=completed_at)
