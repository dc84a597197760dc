"""
The toy provider (fills port Transport): a gate, a queue, set durations, faults, and a ledger of all it saw.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from vidrelay.core.clock import Clock
from vidrelay.core.errors import ReplyTooLarge, TransportError
from vidrelay.core.messages import Held, HttpRequest
from vidrelay.testing.samples import box

BASE = "https://toy.test"


def tiny_mp4(text: str) -> bytes:
    """
    Bytes with the boxes of an MP4 file and nothing to see.
    """
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


def _whole_body(request: HttpRequest) -> bytes:
    return request.body if isinstance(request.body, bytes) else b"{}"
