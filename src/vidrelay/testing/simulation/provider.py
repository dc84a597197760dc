"""
Providers: what comes of each request, and what becomes of each job.

One provider serves several keys. Each key has a gate (so many unended jobs), all share one queue and its workers, with
strangers' jobs among them. The list of jobs lags, a new job may not be readable yet, and a restart may forget.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from vidrelay.core.adapter import Dedupe
from vidrelay.core.messages import HttpRequest
from vidrelay.testing.clock import START
from vidrelay.testing.simulation.faults import Faults
from vidrelay.testing.simulation.journal import Journal
from vidrelay.testing.simulation.ledger import Create, Job, Key, Poll
from vidrelay.testing.toy.provider import tiny_mp4

API = "https://api.model.test"
CDN = "https://cdn.model.test"
TASK = "x-sim-task"
LONGEST_JOB = 480.0
"""A job that has not ended by then, in seconds, is given up by the provider (one that stalls is not)."""

UPLOAD_SECONDS = 1200.0
"""How long an uploaded picture can be named."""

LONGEST_LAG = 240.0
"""No list lags longer than this, in seconds, which the adapters may build upon."""

ABSURD_WAITS = ("0", "-1", "1.5", "9999999999", "²", "１２", "1_000", "9" * 5000, "soon", "", "7", "30", "90")
HTTP_DATES = ("Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 30 Nov 2026 12:10:00 GMT", "Fri, 31 Dec 9999 23:59:60 GMT")
UNENDED = frozenset({"queued", "working"})


@dataclass(slots=True, kw_only=True)
class Answer:
    """
    A whole answer.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Provider:
    """
    The far end. `handle` answers one request that has arrived.
    """

    def __init__(
        self,
        *,
        keys: list[Key],
        workers: int,
        truth: Callable[[], float],
        faults: Faults,
        chance: random.Random,
        journal: Journal,
    ) -> None:
        self.keys = {key.secret: key for key in keys}
        self.workers = workers
        self.truth = truth
        self.faults = faults
        self.chance = chance
        self.journal = journal
        self.jobs: dict[str, Job] = {}
        self.forgotten: dict[str, Job] = {}
        self.creates: list[Create] = []
        self.polls: list[Poll] = []
        self.strange: list[str] = []
        self.serving: dict[str, bytes] = {}
        self._answers: dict[tuple[str, str], str] = {}
        self._uploads: dict[str, tuple[str, str, float]] = {}
        self._uploaded = 0
        self._misnamed: set[tuple[str, int, int, str]] = set()
        self._count = 0
        self.run_range = chance.choice(((1.0, 8.0), (5.0, 40.0), (20.0, 240.0)))
        self.lag = chance.choice((0.0, 0.0, 5.0, 60.0, LONGEST_LAG))

    # Jobs

    def key_of(self, request: HttpRequest) -> str:
        """
        The name of the key that a request bears, if it is one of ours.
        """
        key = self.keys.get(request.headers.get("authorization", "").removeprefix("Key "))
        return "" if key is None else key.name

    def every_job(self) -> list[Job]:
        """
        All that were ever made, the forgotten ones too.
        """
        return [*self.forgotten.values(), *self.jobs.values()]

    def unended(self, key: str) -> list[Job]:
        """
        The jobs of that key which wait or are worked on.
        """
        self.move()
        return [job for job in self.jobs.values() if job.key == key and job.state in UNENDED]

    def move(self) -> None:
        """
        Let pass what was to happen until now.
        """
        now = self.truth()
        for job in self.jobs.values():
            if job.state in UNENDED and not job.stalls and job.made_at + LONGEST_JOB <= now:
                job.ends_at, job.fails, job.state = job.made_at + LONGEST_JOB, True, "working"
        while True:
            ending = [job for job in self.jobs.values() if job.state == "working" and (job.ends_at or now + 1) <= now]
            ended = min(ending, key=lambda job: (job.ends_at or 0.0, job.id), default=None)
            at = now if ended is None else ended.ends_at or now
            self._begin(at)
            if ended is None:
                return
            ended.state, ended.ended_at = "failed" if ended.fails else "done", at

    def _begin(self, at: float) -> None:
        working = sum(job.state == "working" for job in self.jobs.values())
        for job in self.jobs.values():
            if working >= self.workers:
                return
            if job.state == "queued" and not (job.stalls and not self.faults.calm):
                working += 1
                job.state, job.started_at, job.ends_at = "working", at, at + job.run_seconds

    def forget(self) -> None:
        """
        Restart without memory.
        """
        self.move()
        for job in self.jobs.values():
            if job.state in UNENDED:
                job.state, job.ended_at = "lost", self.truth()
        self.forgotten.update(self.jobs)
        self.jobs.clear()
        self._uploads.clear()
        self.journal.note("provider.forgot")

    def hurry(self) -> None:
        """
        Have many workers, and short jobs from now on: with the trouble over there is little to learn from waiting.
        """
        self.workers, self.run_range = 16, (1.0, 4.0)

    def crowd(self, count: int) -> None:
        """
        Let strangers put so many jobs into the queue.
        """
        for _ in range(count):
            self._make("stranger", "stranger", "", {}, run=self.chance.uniform(*self.run_range))

    def listing_lag(self, key: str) -> float:
        """
        How many seconds after its making a job of that key is in the list; a provider of another kind has its own.
        """
        return self.chance.uniform(0, self.lag) if self.lag else 0.0

    def _make(self, key: str, task: str, mark: str, body: dict[str, Any], *, run: float, stalls: bool = False) -> Job:
        now = self.truth()
        self._count += 1
        lag = self.listing_lag(key)
        job = Job(
            id=f"job-{self._count}",
            key=key,
            task=task,
            mark=mark,
            body=body,
            made_at=now,
            run_seconds=run,
            listed_at=now + lag,
            readable_at=now,
            stalls=stalls,
        )
        self.jobs[job.id] = job
        self.move()
        return job

    # Answers

    def handle(self, request: HttpRequest, create: Create | None) -> Answer:
        """
        Answer a request that has arrived whole.
        """
        self.move()
        if request.url.startswith(CDN):
            return self._file(request)
        key = self.keys.get(request.headers.get("authorization", "").removeprefix("Key "))
        if key is None:
            return _error(401, "no such key")
        parts = urlsplit(request.url)
        if create is not None:
            answer = self._create(request, key, create)
            create.status = answer.status
            return answer
        if parts.path == "/uploads":
            return self._upload(request, key)
        if parts.path == "/limits":
            return _json({"limits": {"*": key.limit}} if key.tells_limit else {})
        if parts.path == "/jobs":
            return self._list(key, parse_qs(parts.query), held=request.held is not None)
        job_id = parts.path.removeprefix("/jobs/")
        if request.method == "DELETE":
            return self._cancel(key, job_id)
        return self._poll(key, job_id)

    def _create(self, request: HttpRequest, key: Key, create: Create) -> Answer:
        create.arrived = self.truth()
        refused = self._refusal(creates=True)
        if refused is not None:
            return refused
        known = self._answers.get((key.name, create.mark))
        if known is not None and key.protection in (Dedupe.REPLAY, Dedupe.REJECT):
            create.repeated = True
            if key.protection is Dedupe.REJECT:
                return _error(409, "duplicate")
            create.told = known
            return _json({"id": known, "state": "queued"})
        if not self._knows_picture(key, create):
            return _error(422, "no such upload")
        if len(self.unended(key.name)) >= key.limit or self.faults.hit("api.full"):
            return _error(429, "too many running")
        run, stalls = self.chance.uniform(*self.run_range), self.faults.hit("api.job_stalls")
        job = self._make(key.name, create.task, create.mark, create.body, run=run, stalls=stalls)
        job.fails = self.faults.hit("api.job_fails")
        if self.faults.hit("api.not_yet"):
            job.readable_at = job.made_at + self.faults.between("api.not_yet", 1.0, 40.0)
        create.job = job.id
        self._answers[key.name, create.mark] = job.id
        return self._made(job, create)

    def _upload(self, request: HttpRequest, key: Key) -> Answer:
        refused = self._refusal(creates=False)
        if refused is not None:
            return refused
        if self.faults.hit("api.html"):
            return Answer(status=200, body=b"<html>welcome</html>")
        self._uploaded += 1
        reference = f"upload-{self._uploaded}"
        asset = request.body.decode() if isinstance(request.body, bytes) else ""
        self._uploads[reference] = key.name, asset, self.truth()
        return _json({"reference": reference})

    def _knows_picture(self, key: Key, create: Create) -> bool:
        """
        Whether a create names no picture, or one that was uploaded for it and is still there.
        """
        picture = create.body.get("picture")
        if picture is None:
            return True
        reference = picture.pop("$copy", "")
        name, asset, made_at = self._uploads.get(reference, ("", "", 0.0))
        if (name, asset) == (key.name, picture["$asset"]) and self.truth() < made_at + UPLOAD_SECONDS:
            return True
        if name and (name, asset) != (key.name, picture["$asset"]):
            self.strange.append(f"{create.task} named {reference}, which is another's")
        named = create.task, create.life, create.attempt, reference
        if not reference or named in self._misnamed:
            self.strange.append(f"{create.task} named {reference!r} again, which is not there")
        self._misnamed.add(named)
        return False

    def _made(self, job: Job, create: Create) -> Answer:
        """
        The answer of a create that was carried out, whatever comes of it.
        """
        faults = self.faults
        if faults.hit("api.error_after"):
            return _error(faults.pick("api.error_after", (500, 502, 504, 408, 409)), "it went wrong")
        if faults.hit("api.html"):
            return Answer(status=200, body=b"<html>welcome</html>")
        if faults.hit("api.no_id"):
            return _json({"state": job.state})
        if faults.hit("api.redirect"):
            return Answer(status=302, headers={"location": f"{API}/jobs/{job.id}"})
        if faults.hit("api.odd_id"):
            return _json({"id": faults.pick("api.odd_id", ("../jobs/1", "job 1", "", "job-\n1")), "state": job.state})
        create.told = job.id
        others = [other.id for other in self.jobs.values() if other.key == job.key and other.id != job.id]
        if others and faults.hit("api.same_id"):
            create.told = faults.pick("api.same_id", others)
        return _json({**self._told(job), "id": create.told})

    def _refusal(self, *, creates: bool) -> Answer | None:
        """
        What surely was not carried out.
        """
        faults = self.faults
        if faults.hit("api.rate"):
            return _error(429, "slow down", self._wait())
        if faults.hit("api.auth", weight=0.3):
            return _error(401, "no such key")
        if creates and faults.hit("api.balance", weight=0.5):
            return _error(402, "no money left", self._wait())
        if creates and faults.hit("api.rejected", weight=0.5):
            return _error(422, "not this prompt")
        if faults.hit("api.error"):
            # For a create this word is not to be trusted: the caller cannot know that nothing was made.
            return _error(faults.pick("api.error", (500, 502, 503)), "it went wrong", self._wait())
        return None

    def _wait(self) -> dict[str, str]:
        if not self.faults.hit("api.retry_after", weight=4.0):
            return {}
        return {"retry-after": self.faults.pick("api.retry_after", (*ABSURD_WAITS, *HTTP_DATES))}

    def _poll(self, key: Key, job_id: str) -> Answer:
        refused = self._refusal(creates=False)
        if refused is not None:
            return refused
        if self.faults.hit("api.html"):
            return Answer(status=200, body=b"<html>welcome</html>")
        job = self.jobs.get(job_id)
        if job is None or job.key != key.name or self.truth() < job.readable_at:
            return _error(404, "no such job")
        if job.state in UNENDED and self.faults.hit("api.job_cancelled", weight=0.3):
            job.state, job.ended_at = "cancelled", self.truth()
        told = self._told(job)
        if job.state in UNENDED and self.faults.hit("api.backwards"):
            told |= {"state": "queued", "progress": 0.0}
        if self.faults.hit("api.odd_word"):
            told["state"] = "pondering"
        return _json(told)

    def _told(self, job: Job) -> dict[str, Any]:
        told: dict[str, Any] = {"id": job.id, "state": job.state, "created_at": self._wall(job.made_at)}
        if job.started_at is not None:
            told["started_at"] = self._wall(job.started_at)
        if job.state == "working":
            elapsed = self.truth() - (job.started_at or 0.0)
            told["progress"] = round(min(0.99, elapsed / job.run_seconds), 2)
        elif job.state == "queued" and not job.stalls:
            told["position"] = sum(other.state == "queued" for other in self.jobs.values())
        elif job.state == "done":
            told["completed_at"] = self._wall(job.ended_at or 0.0)
            job.addresses += 1
            told["url"] = f"{CDN}/files/{job.id}/{job.addresses}"
        return told

    def _wall(self, truth: float) -> str:
        return (START + timedelta(seconds=truth)).isoformat()

    def _list(self, key: Key, query: Mapping[str, list[str]], *, held: bool) -> Answer:
        refused = self._refusal(creates=False)
        if refused is not None:
            return refused
        if held:
            return self._stream(key, query["ids"][0].split(","))
        if "ids" in query:
            return self._poll_many(key, query["ids"][0].split(","))
        mark = query.get("mark", [None])[0]
        now = self.truth()
        jobs = [
            {**job.body, "id": job.id, "state": job.state, "created_at": self._wall(job.made_at)}
            for job in self.jobs.values()
            if job.key == key.name and job.listed_at <= now and mark in (None, job.mark)
        ]
        return _json({"jobs": jobs, "now": self._wall(now)})

    def _stream(self, key: Key, ids: list[str]) -> Answer:
        """
        The first line of a stream.
        """
        if self.faults.hit("stream.refused"):
            return _error(404, "no such thing as a stream")
        if self.faults.hit("api.html"):
            return Answer(status=200, body=b"<html>welcome</html>")
        return Answer(status=200, body=self.line(key.secret, ids))

    def _poll_many(self, key: Key, ids: list[str]) -> Answer:
        """
        How those jobs are doing; the list lags.
        """
        if self.faults.hit("api.html"):
            return Answer(status=200, body=b"<html>welcome</html>")
        known = [self.jobs[job_id] for job_id in ids if job_id in self.jobs]
        told = [self._told(job) for job in known if job.key == key.name and job.listed_at <= self.truth()]
        for one in told:
            if one["state"] in UNENDED and self.faults.hit("api.backwards"):
                one |= {"state": "queued", "progress": 0.0}
            if self.faults.hit("api.odd_word"):
                one["state"] = "pondering"
        return _json({"jobs": told})

    def line(self, secret: str, ids: list[str]) -> bytes:
        """
        What a stream says of those jobs of the key now.
        """
        self.move()
        known = [self.jobs[job_id] for job_id in ids if job_id in self.jobs]
        told = [self._told(job) for job in known if job.key == self.keys[secret].name]
        for one in told:
            if one["state"] in UNENDED and self.faults.hit("stream.restless"):
                one |= {"state": "queued", "position": self.chance.randrange(1000)}
        line = json.dumps({"jobs": told}).encode()
        return (line[: len(line) // 2] if self.faults.hit("stream.garbled") else line) + b"\n"

    def _cancel(self, key: Key, job_id: str) -> Answer:
        refused = self._refusal(creates=False)
        if refused is not None:
            return refused
        job = self.jobs.get(job_id)
        if job is None or job.key != key.name:
            return _error(404, "no such job")
        if job.state not in UNENDED:
            return _error(409, "it has ended")
        job.state, job.ended_at = "cancelled", self.truth()
        return _json({"state": "cancelled"})

    # Files

    def content(self, job: Job) -> bytes:
        """
        The clip of a job.
        """
        made = self.serving.get(job.id)
        if made is None:
            size = self.chance.choice((10, 900, 6_000, 30_000))
            made = self.serving[job.id] = tiny_mp4(json.dumps(job.body) + job.id + "." * size)
        return made

    def _file(self, request: HttpRequest) -> Answer:
        if "authorization" in request.headers:
            self.strange.append("credentials were sent to the server of results")
        _, _, job_id, _ = urlsplit(request.url).path.split("/")
        faults, job = self.faults, self.jobs.get(job_id)
        if job is None or faults.hit("file.dead"):
            return _error(faults.pick("file.dead", (403, 404, 410)) if "file.dead" in faults.rates else 404, "gone")
        if faults.hit("file.error"):
            return _error(503, "later", self._wait())
        if faults.hit("file.html"):
            return Answer(status=200, headers={"content-type": "text/html"}, body=b"<html>sign in</html>")
        if faults.hit("file.empty"):
            return Answer(status=200, headers={"content-length": "0"})
        if faults.hit("file.redirect"):
            return Answer(status=302, headers={"location": request.url})
        return self._whole(request, self.content(job), job)

    def _whole(self, request: HttpRequest, content: bytes, job: Job) -> Answer:
        faults, etag = self.faults, f'"{job.id}"'
        headers = {"content-type": "video/mp4", "content-length": str(len(content)), "etag": etag}
        if faults.hit("file.no_etag"):
            del headers["etag"]
        start = request.headers.get("Range", "").removeprefix("bytes=").rstrip("-")
        if start.isdigit() and request.headers.get("If-Range") == etag and int(start) < len(content):
            rest = content[int(start) :]
            headers |= {"content-range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            return Answer(status=206, headers=headers | {"content-length": str(len(rest))}, body=rest)
        if faults.hit("file.short"):
            # It says that it is whole, and is not.
            cut = content[: len(content) - faults.pick("file.short", (1, 7, len(content) // 2))]
            return Answer(status=200, headers=headers | {"content-length": str(len(cut))}, body=cut)
        if faults.hit("file.no_length"):
            del headers["content-length"]
        return Answer(status=200, headers=headers, body=content)


def _json(value: object) -> Answer:
    return Answer(status=200, headers={"content-type": "application/json"}, body=json.dumps(value).encode())


def _error(status: int, why: str, headers: Mapping[str, str] | None = None) -> Answer:
    body = json.dumps({"error": why}).encode()
    return Answer(status=status, headers={"content-type": "application/json", **(headers or {})}, body=body)
