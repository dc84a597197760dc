"""
Vidu's words: `/ent/v2`.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words, iso

_CREATE = re.compile(r"/ent/v2/(text2video|img2video|start-end2video|reference2video)")
_TASK = re.compile(r"/ent/v2/tasks/([^/]+)/(creations|cancel)")
_STATES = {
    JobState.WAITING: "queueing",
    JobState.WORKING: "processing",
    JobState.DONE: "success",
    JobState.FAILED: "failed",
    JobState.STOPPED: "failed",
}
_CODES = {"moderation_blocked": "CreationPolicyViolation", "generation_failed": "InternalServiceFailure"}
_REFUSALS = {
    Why.INVALID: (400, "FieldInvalid"),
    Why.AUTH: (401, "Unauthorized"),
    Why.RATE: (429, "TooManyRequests"),
    Why.BUSY: (429, "QuotaExceeded"),
    Why.BALANCE: (400, "CreditInsufficient"),
    Why.MODERATED: (400, "TaskPromptPolicyViolation"),
    Why.NOT_FOUND: (404, "TaskNotFound"),
    Why.SERVER: (500, "InternalServiceFailure"),
}
_STATUSES = {
    **{code: status for status, code in _REFUSALS.values()},
    **dict.fromkeys(("Forbidden",), 403),
    **dict.fromkeys(("CreationNotFound", "NotFound"), 404),
    "Conflict": 409,
    "Canceled": 499,
    "SystemThrottling": 429,
}


class ViduWords(Words):
    """
    Five tasks at work at once; more are taken, and wait.
    """

    DEFAULTS = MappingProxyType({"workers": 5, "url_seconds": 24 * 3600.0})
    STATUS_AT = ("state",)
    ID_AT = ("task_id",)
    SCHEME = "Token"

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        created = _CREATE.fullmatch(asked.path)
        if created and asked.method == "POST":
            return Route(place=Place.CREATE, what=created[1])
        task = _TASK.fullmatch(asked.path)
        if task and (asked.method, task[2]) == ("GET", "creations"):
            return Route(place=Place.POLL, job_id=task[1])
        if task and (asked.method, task[2]) == ("POST", "cancel"):
            return Route(place=Place.DELETE, job_id=task[1])
        if asked.method == "GET" and asked.path in ("/ent/v2/tasks", "/ent/v2/credits"):
            return Route(place=Place.LIST if asked.path.endswith("tasks") else Place.ACCOUNT)
        return None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"code", "reason", "message", "metadata"}`.
        """
        status, reason = _REFUSALS[why] if isinstance(why, Why) else (_STATUSES.get(why, 400), why)
        told = {"code": status, "reason": reason, "message": message, "metadata": {"trace_id": "t-1"}}
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
                return self._credits(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "no such task")
        if call.place is Place.POLL:
            return Answer(data=self._status(job, call), job=job)
        if job.state is not JobState.WAITING:
            return self.refuse("BadRequest", "the task is scheduled already")
        self.engine.cancel(job)
        return Answer(data={}, job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        images = body.get("images") or []
        wanted = {"text2video": (0, 0), "img2video": (1, 1), "start-end2video": (2, 2), "reference2video": (1, 7)}
        low, high = wanted[call.what]
        if not body.get("model") or not low <= len(images) <= high or (call.what == "text2video" and images):
            return self.refuse("FieldInvalid", "model or images are not as they must be")
        fields = {"prompt": body.get("prompt", ""), "model": body["model"], "seconds": str(body.get("duration", 5))}
        job = self.engine.create(call.key, fields, pictures=len(images), data=body, shape=_digits)
        return Answer(data={"task_id": job.id, **self._row(job), "state": "created", "credits": 20}, job=job)

    def _row(self, job: Job) -> dict[str, Any]:
        body: dict[str, Any] = job.data
        told = {name: body.get(name) for name in ("model", "prompt", "payload", "seed", "aspect_ratio")}
        usual = {"duration": 5, "resolution": "720p", "images": []}
        return {
            **usual,
            **{name: body[name] for name in usual if name in body},
            **told,
            "created_at": iso(job.created_at),
        }

    def _status(self, job: Job, call: Call) -> dict[str, Any]:
        done = job.state is JobState.DONE
        stopped = "UserCancelled" if job.state is JobState.STOPPED else ""
        code = _CODES.get(job.why or "", job.why or "") if job.state is JobState.FAILED else stopped
        url = self.file_url(job, call) if done else None
        return {
            "id": job.id,
            "state": _STATES[job.state],
            "err_code": code,
            "credits": 20,
            "payload": job.data.get("payload"),
            "creations": [{"id": "c1", "url": url, "cover_url": f"http://{call.host}/cover.jpg"}] if done else [],
        }

    def _list(self, call: Call) -> Answer:
        wanted = [one for one in call.query.get("task_ids", "").split(",") if one]
        jobs = [job for job in self.engine.listed(call.key) if not wanted or job.id in wanted]
        size = min(100, int(call.query.get("pager.pagesz", "20")))
        start = int(call.query.get("pager.page_token") or "0")
        page = jobs[start : start + size]
        more = str(start + size) if start + size < len(jobs) else ""
        # Whether a row shows the payload is not documented, so here it does not.
        rows = [{**self._row(job), **self._status(job, call)} for job in page]
        told = [{name: value for name, value in row.items() if name != "payload"} for row in rows]
        return Answer(data={"tasks": told, "next_page_token": more})

    def _credits(self, call: Call) -> Answer:
        at_work = sum(job.key == call.key and job.state is JobState.WORKING for job in self.engine.jobs.values())
        queued = self.engine.unended(call.key) - at_work
        told = {"type": "concurrent", "credit_remain": 1000, "concurrency_limit": self.engine.options.workers or 5}
        return Answer(
            data={"remains": [{**told, "current_concurrency": at_work, "queue_count": queued}], "packages": []}
        )


def _digits(drawn: str) -> str:
    return f"9{int(drawn[:14], 16) % 10**17:017d}"
