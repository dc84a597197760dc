"""
A provider of a few lines and its adapter, so that the scheduler can be tried without any real provider's words.

`ToyProvider` fills port Transport: it is the far end itself, with a gate, a queue, set durations, faults, and a ledger
of all it saw. It moves by the same clock as the relay under test.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
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
from vidrelay.core.errors import ReplyTooLarge, TransportError
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import Held, HttpReply, HttpRequest
from vidrelay.core.ports import Clock
from vidrelay.core.task import Asset, BlockReason, CancelOutcome, Problem, RemoteFile, RemoteState, Request, Task
from vidrelay.providers.json_api import BaseAdapter
from vidrelay.providers.verdicts import Meaning, failed

BASE = "https://toy.test"
TOY_TRAITS = Traits(dedupe=Dedupe.NONE, can_cancel=True, poll_floor=1.0, longest_run=timedelta(minutes=30))


def tiny_mp4(text: str) -> bytes:
    """
    Bytes with the boxes of an MP4 file and nothing to see.
    """

    def box(kind: bytes, body: bytes) -> bytes:
        return (8 + len(body)).to_bytes(4, "big") + kind + body

    return (
        box(b"ftyp", b"isom\0\0\2\0isomiso2mp41") + box(b"moov", box(b"mvhd", bytes(100))) + box(b"mdat", text.encode())
    )


@dataclass(slots=True, kw_only=True)
class ToyJob:
    """
    One job at the toy provider; instants are monotonic seconds.
    """

    id: str
    body: dict[str, Any]
    made_at: float
    started_at: float | None = None
    ends_at: float | None = None
    state: str = "queued"
    polls: list[float] = field(default_factory=list)


class ToyReply:
    """
    Fills port Reply.
    """

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str], limit: int) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        self._limit = limit

    async def chunks(self) -> AsyncIterator[bytes]:
        """
        The body in two pieces.
        """
        half = len(self._body) // 2
        for piece in (self._body[:half], self._body[half:]):
            if piece:
                yield piece

    async def read(self) -> bytes:
        """
        The whole body.
        """
        if len(self._body) > self._limit:
            raise ReplyTooLarge(maybe_sent=True)
        return self._body


class ToyStream:
    """
    Fills port Reply for a call that is held: a line of how the jobs are doing whenever that changes.
    """

    status = 200

    def __init__(self, provider: "ToyProvider", held: Held, path: str, *, breaks: bool) -> None:
        self.headers: Mapping[str, str] = {}
        self._provider = provider
        self._held = held
        self._ids = path.partition("=")[2].split(",")
        self._breaks = breaks

    async def chunks(self) -> AsyncGenerator[bytes]:
        """
        The lines as they come, a quarter of a second apart at the least; one that breaks has a single one.
        """
        clock, before = self._provider.clock, b""
        until = clock.monotonic() + self._held.seconds
        while clock.monotonic() < until:
            now = self._provider.line(self._ids)
            if now != before:
                yield now
            if self._breaks:
                return
            before = now
            await clock.sleep(0.25)

    async def read(self) -> bytes:
        """
        What came until there was enough.
        """
        body = bytearray()
        try:
            async with aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if self._held.enough(body):
                        break
        finally:
            self._provider.streams_over.append(self._provider.clock.monotonic())
        return bytes(body)


class ToyProvider:
    """
    The far end: at most `limit` jobs unended (429 above it), `workers` working at once, each for `run_seconds`.

    `faults` are taken one by one, by kind of call (`create`, `poll`, `follow`, `cancel`, `list`, `download`, `upload`,
    `limits`, `check`): a status to answer with, or one of `unsent`, `lost_before`, `lost_after`, `html`, `no_id`, and
    for a `follow` `breaks`, after its first line; None answers as usual. `copies` are the pictures that were uploaded,
    by what stands for each; a create that names another is refused. `unlisted` jobs are left out of lists;
    `told_limits` None tells none.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        limit: int = 100,
        workers: int = 100,
        run_seconds: float = 10.0,
        create_seconds: float = 0.0,
    ) -> None:
        self.clock = clock
        self.limit = limit
        self.workers = workers
        self.run_seconds = run_seconds
        self.create_seconds = create_seconds
        self.jobs: dict[str, ToyJob] = {}
        self.creates: list[dict[str, Any]] = []
        self.calls: list[tuple[float, str, str]] = []
        self.faults: dict[str, deque[int | str | None]] = {}
        self.retry_after: str | None = None
        self.refused = 0
        self.peak = 0
        self.addresses = 0
        self.dead_addresses: set[str] = set()
        self.failing: set[str] = set()
        self.tells_eta = False
        self.download_seconds = 0.0
        self.upload_seconds = 0.0
        self.limits_seconds = 0.0
        self.poll_seconds = 0.0
        self.copies: dict[str, str] = {}
        self.uploads: list[str] = []
        self.unlisted: set[str] = set()
        self.told_limits: dict[str, int] | None = None
        self.streams_over: list[float] = []
        self.closed = False
        self.dropped = 0

    def arm(self, kind: str, *faults: int | str | None) -> None:
        """
        Let the next calls of that kind meet these faults, in order.
        """
        self.faults.setdefault(kind, deque()).extend(faults)

    def forget(self) -> None:
        """
        Restart without memory.
        """
        self.jobs.clear()

    def running(self) -> int:
        """
        How many jobs have not ended.
        """
        self._move()
        return sum(job.state in ("queued", "working") for job in self.jobs.values())

    def polls_of(self, job_id: str) -> list[float]:
        """
        When that job was asked for.
        """
        return [at for at, method, path in self.calls if method == "GET" and path == f"/jobs/{job_id}"]

    @asynccontextmanager
    async def send(self, request: HttpRequest, *, timeout: float) -> AsyncIterator[ToyReply | ToyStream]:
        """
        Answer a call.
        """
        path = request.url.removeprefix(BASE)
        kind = _kind(request.method, path)
        queue = self.faults.get(kind)
        fault = queue.popleft() if queue else None
        if fault == "unsent":
            raise TransportError("no connection", maybe_sent=False)
        self.calls.append((self.clock.monotonic(), request.method, path))
        if kind == "create":
            body = json.loads(_whole_body(request))
            self.creates.append(body)
            if self.create_seconds:
                await self.clock.sleep(self.create_seconds)
        if kind == "download" and self.download_seconds:
            await self.clock.sleep(self.download_seconds)
        if kind == "poll" and self.poll_seconds:
            await self.clock.sleep(self.poll_seconds)
        if kind == "limits" and self.limits_seconds:
            await self.clock.sleep(self.limits_seconds)
        if kind == "upload":
            self.uploads.append(_whole_body(request).decode())
            if self.upload_seconds:
                await self.clock.sleep(self.upload_seconds)
        if fault == "lost_before":
            raise TransportError("the connection was closed without an answer", maybe_sent=True)
        if isinstance(fault, int):
            headers = {"retry-after": self.retry_after} if self.retry_after is not None else {}
            self.refused += fault == 429
            yield self._reply(request, fault, b'{"error": "as told"}', headers)
            return
        if request.held is not None:
            yield ToyStream(self, request.held, path, breaks=fault == "breaks")
            return
        reply = self._answer(request, kind, path)
        if fault == "lost_after":
            raise TransportError("the connection was closed without an answer", maybe_sent=True)
        if fault == "html":
            reply = self._reply(request, 200, b"<html>", {"content-length": "6"})
        if fault == "no_id":
            reply = self._reply(request, 200, b"{}", {})
        yield reply

    async def drop_idle(self) -> None:
        """
        Nothing is kept, so it is only counted.
        """
        self.dropped += 1

    async def aclose(self) -> None:
        """
        Nothing is open.
        """
        self.closed = True

    def line(self, ids: Sequence[str]) -> bytes:
        """
        How those jobs are doing now.
        """
        self._move()
        jobs = [{"id": job_id, "state": self.jobs[job_id].state} for job_id in ids if job_id in self.jobs]
        return json.dumps(jobs).encode() + b"\n"

    def _answer(self, request: HttpRequest, kind: str, path: str) -> ToyReply:
        self._move()
        match kind:
            case "create":
                return self._create(request)
            case "list":
                jobs = [job for job in self.jobs.values() if job.id not in self.unlisted]
                return self._json(
                    request, 200, {"jobs": [{**self._told(job), "prompt": job.body["prompt"]} for job in jobs]}
                )
            case "upload":
                reference = f"copy-{len(self.uploads)}"
                self.copies[reference] = self.uploads[-1]
                return self._json(request, 200, {"reference": reference})
            case "limits":
                return self._json(request, 200, {"limits": self.told_limits})
            case "check":
                return self._json(request, 200, {"left": 7})
            case "download":
                if path in self.dead_addresses:
                    return self._json(request, 404, {})
                job = self.jobs[path.split("/")[2]]
                body = tiny_mp4(json.dumps(job.body) + job.id)
                return self._reply(request, 200, body, {"content-length": str(len(body)), "content-type": "video/mp4"})
            case _:
                job_id = path.split("/")[2]
                if job_id not in self.jobs:
                    return self._json(request, 404, {})
                return self._cancel(request, job_id) if kind == "cancel" else self._poll(request, job_id)

    def _create(self, request: HttpRequest) -> ToyReply:
        named = [picture.get("$copy") for picture in self.creates[-1].get("pictures", ())]
        if any(reference is not None and reference not in self.copies for reference in named):
            return self._json(request, 422, {"error": "no such upload"})
        if self.running() >= self.limit:
            self.refused += 1
            return self._json(request, 429, {"error": "too many running"})
        job = ToyJob(id=f"job-{len(self.creates)}", body=self.creates[-1], made_at=self.clock.monotonic())
        self.jobs[job.id] = job
        self._move()
        self.peak = max(self.peak, self.running())
        return self._json(request, 200, {"id": job.id, "state": job.state})

    def _poll(self, request: HttpRequest, job_id: str) -> ToyReply:
        return self._json(request, 200, self._told(self.jobs[job_id]))

    def _told(self, job: ToyJob) -> dict[str, Any]:
        told: dict[str, Any] = {"id": job.id, "state": job.state}
        if self.tells_eta and job.ends_at is not None:
            told["eta"] = max(0.0, job.ends_at - self.clock.monotonic())
        if job.state == "done":
            self.addresses += 1
            told["url"] = f"{BASE}/files/{job.id}/{self.addresses}"
        return told

    def _cancel(self, request: HttpRequest, job_id: str) -> ToyReply:
        job = self.jobs[job_id]
        if job.state in ("done", "failed"):
            return self._json(request, 409, {})
        job.state = "cancelled"
        return self._json(request, 200, {})

    def _move(self) -> None:
        now = self.clock.monotonic()
        for job in self.jobs.values():
            if job.state == "working" and job.ends_at is not None and job.ends_at <= now:
                job.state = "failed" if job.body["prompt"] in self.failing else "done"
        working = sum(job.state == "working" for job in self.jobs.values())
        for job in self.jobs.values():
            if job.state == "queued" and working < self.workers:
                job.state, job.started_at, job.ends_at = "working", now, now + self.run_seconds
                working += 1

    def _json(self, request: HttpRequest, status: int, value: object) -> ToyReply:
        return self._reply(request, status, json.dumps(value).encode(), {})

    def _reply(self, request: HttpRequest, status: int, body: bytes, headers: Mapping[str, str]) -> ToyReply:
        return ToyReply(status, body, headers, request.max_reply_bytes)


def _kind(method: str, path: str) -> str:
    if path.startswith("/files/"):
        return "download"
    if path.startswith("/stream"):
        return "follow"
    if path.partition("?")[0] == "/jobs":
        return "create" if method == "POST" else "list"
    if path in ("/upload", "/limits", "/check"):
        return path[1:]
    return "cancel" if method == "DELETE" else "poll"


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


def _whole_body(request: HttpRequest) -> bytes:
    return request.body if isinstance(request.body, bytes) else b"{}"
