"""
Replicate's words: `/v1/predictions` and what belongs to it.
"""

import re
from datetime import datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words, iso, texts_in

_CREATE = re.compile(r"/v1/(?:(models|deployments)/([^/]+/[^/]+)/)?predictions")
_JOB = re.compile(r"/v1/predictions/([^/]+)(/cancel)?")
_STATES = {
    JobState.WAITING: "starting",
    JobState.WORKING: "processing",
    JobState.DONE: "succeeded",
    JobState.FAILED: "failed",
    JobState.STOPPED: "canceled",
}
_REASONS = {
    "moderation_blocked": "The input or output was flagged as sensitive. Please try again with different inputs.",
    "generation_failed": "The model stopped without an output.",
}
_REFUSALS = {
    Why.INVALID: (422, "Input validation failed"),
    Why.AUTH: (401, "Unauthenticated"),
    Why.RATE: (429, "Too many requests"),
    Why.BUSY: (429, "Too many requests"),
    Why.BALANCE: (402, "Insufficient credit"),
    Why.MODERATED: (422, "Input validation failed"),
    Why.NOT_FOUND: (404, "Not found"),
    Why.SERVER: (500, "Internal server error"),
}
_PAGE = 100
_KEPT_SECONDS = 3600.0
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


class ReplicateWords(Words):
    """
    Never too many: predictions wait in `starting`. 3000 calls a minute, and an hour later all but the record is erased.
    """

    DEFAULTS = MappingProxyType({"rate": 3000})

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        created = _CREATE.fullmatch(asked.path)
        if created and asked.method == "POST":
            return Route(place=Place.CREATE, what=f"{created[1] or ''}:{created[2] or ''}")
        job = _JOB.fullmatch(asked.path)
        if job and (asked.method, job[2]) in (("GET", None), ("POST", "/cancel")):
            return Route(place=Place.DELETE if job[2] else Place.POLL, job_id=job[1])
        places = {
            ("GET", "/v1/predictions"): Place.LIST,
            ("GET", "/v1/account"): Place.ACCOUNT,
            ("POST", "/v1/files"): Place.UPLOAD,
        }
        place = places.get((asked.method, asked.path))
        return Route(place=place) if place else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        A problem as RFC 7807 tells it; there are no codes, so a text of digits is a status.
        """
        status, title = _REFUSALS[why] if isinstance(why, Why) else (int(why), "Armed")
        if status == 429:
            message = "Request was throttled. Your rate limit resets in ~7s."
        told = {"type": "about:blank", "title": title, "status": status, "detail": message, "instance": None}
        return Answer(status=status, data=told)

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        match call.place:
            case Place.CREATE:
                return self._create(call)
            case Place.LIST:
                return self._list(call)
            case Place.ACCOUNT:
                return Answer(
                    data={"type": "organization", "username": "acme", "name": "Acme, Inc.", "github_url": None}
                )
            case Place.UPLOAD:
                return self._upload(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "The requested resource could not be found.")
        if call.place is Place.DELETE and job.unended:
            self.engine.cancel(job)
        return Answer(data=self._prediction(job, call), job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        given = body.get("input")
        kind, _, name = call.what.partition(":")
        if not isinstance(given, dict) or not given.get("prompt") or (not kind and not body.get("version")):
            return self.refuse(Why.INVALID, "- input: prompt is required\n")
        # `version` may be a version's id, `owner/name:id` or `owner/name`; an answer shows the two apart.
        named, _, version = str(body.get("version") or "").rpartition(":")
        if not named and "/" in version:
            named, version = version, ""
        model = name or named or str(body["version"])
        fields = {"prompt": str(given["prompt"]), "model": model, "seconds": str(given.get("duration", 5))}
        count = sum(one.startswith(("data:", "https://", "http://")) for one in texts_in(given))
        keep = {"input": given, "version": version, "model": model, "kind": kind or (named and "models")}
        job = self.engine.create(call.key, fields, pictures=count, data=keep, shape=_id)
        return Answer(status=201, data=self._prediction(job, call), job=job)

    def _prediction(self, job: Job, call: Call) -> dict[str, Any]:
        made: dict[str, Any] = job.data
        done = job.state is JobState.DONE
        ran = None if job.ended is None or job.started is None else job.ended - job.started
        erased = job.ended is not None and self.engine.now() - job.ended > _KEPT_SECONDS
        here = f"http://{call.host}/v1/predictions/{job.id}"
        told: dict[str, Any] = {
            "id": job.id,
            "model": made["model"] if made["kind"] == "models" else "somebody/something",
            "version": made["version"] or "hidden",
            "status": _STATES[job.state],
            "input": {} if erased else made["input"],
            "output": self.file_url(job, call) if done and not erased else None,
            "error": _REASONS.get(job.why or "", job.why) if job.state is JobState.FAILED else None,
            "logs": "" if erased else self._logs(job),
            "metrics": {"predict_time": ran, "total_time": (job.ended or 0.0) - job.created} if ran is not None else {},
            "created_at": iso(self.engine.wall(job.created)),
            "started_at": None if job.started is None else iso(self.engine.wall(job.started)),
            "completed_at": None if job.ended is None else iso(self.engine.wall(job.ended)),
            "data_removed": erased,
            "deployment": made["model"] if made["kind"] == "deployments" else None,
            "source": "api",
            "urls": {"get": here, "cancel": f"{here}/cancel", "web": f"http://{call.host}/p/{job.id}"},
        }
        return told

    def _logs(self, job: Job) -> str:
        if job.started is None:
            return ""
        ran = (self.engine.now() if job.ended is None else job.ended) - job.started
        percent = min(100, round(100 * ran / job.run_seconds)) if job.run_seconds else 100
        return f"Using seed: {job.number}\n  0%|          | 0/50\n{percent:3d}%|####      | {percent // 2}/50"

    def _list(self, call: Call) -> Answer:
        first, _, told = call.query.get("cursor", "").partition("/")
        span = told.split("/") if told else [call.query.get(name, "") for name in ("created_after", "created_before")]
        after, before = (_instant(one) for one in span)
        jobs = [
            job
            for job in self.engine.listed(call.key)
            if (after is None or self.engine.wall(job.created) >= after)
            and (before is None or self.engine.wall(job.created) <= before)
        ]
        start = int(first or "0")
        page = [self._prediction(job, call) for job in jobs[start : start + _PAGE]]
        before_it, after_it = (self._page(call, at, span) for at in (max(0, start - _PAGE), start + _PAGE))
        more = len(jobs) > start + _PAGE
        return Answer(
            data={"previous": before_it if start else None, "next": after_it if more else None, "results": page}
        )

    def _page(self, call: Call, start: int, span: list[str]) -> str:
        cursor = quote("/".join((str(start), *span)), safe="")
        return f"http://{call.host}/v1/predictions?cursor={cursor}"

    def _upload(self, call: Call) -> Answer:
        if not call.pictures:
            return self.refuse(Why.INVALID, "content is required")
        name = f"file-{len(self.engine.ledger.requests)}"
        now = self.engine.wall(self.engine.now())
        told = {
            "id": name,
            "name": "picture.png",
            "content_type": "image/png",
            "size": 5,
            "etag": name,
            "checksums": {"sha256": "0" * 64},
            "metadata": {},
            "created_at": iso(now),
            "expires_at": iso(now + 86400),
            "urls": {"get": f"http://{call.host}/v1/files/{name}"},
        }
        return Answer(status=201, data=told)


def _id(drawn: str) -> str:
    return "".join(_LETTERS[int(drawn[at : at + 2], 16) % 32] for at in range(0, 52, 2))


def _instant(text: str) -> float | None:
    return None if not text else datetime.fromisoformat(text).timestamp()
