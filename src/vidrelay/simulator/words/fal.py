"""
fal's words: the queue, and what stands on its other hosts.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import uuid
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words, iso, texts_in

_REQUEST = re.compile(r"/((?:workflows/|comfy/)?[^/]+/[^/]+)/requests/([^/]+)(/status/stream|/status|/cancel)?")
_ENDPOINT = re.compile(r"/([A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)+)", re.ASCII)
_ELSEWHERE = {
    ("GET", "/v1/models/requests/by-endpoint"): (Place.LIST, "list"),
    ("GET", "/v1/account/billing"): (Place.ACCOUNT, "billing"),
    ("POST", "/storage/auth/token"): (Place.ACCOUNT, "token"),
    ("POST", "/files/upload"): (Place.UPLOAD, "upload"),
}
_ACTIONS = {
    ("GET", "/status"): Place.POLL,
    ("GET", "/status/stream"): Place.POLL,
    ("GET", None): Place.POLL,
    ("PUT", "/cancel"): Place.DELETE,
}
_REQUEST_ERRORS = {
    "request_timeout": 504,
    "startup_timeout": 504,
    "runner_scheduling_failure": 503,
    "runner_connection_timeout": 503,
    "runner_disconnected": 503,
    "runner_connection_refused": 503,
}
_REFUSALS = {
    Why.INVALID: (422, "value_error"),
    Why.AUTH: (401, None),
    Why.RATE: (429, None),
    Why.BUSY: (429, None),
    Why.BALANCE: (403, None),
    Why.MODERATED: (422, "content_policy_violation"),
    Why.NOT_FOUND: (404, None),
    Why.SERVER: (500, None),
}
_KEPT_SECONDS = 3600.0
_FOR_MEDIA = "cdn-token"


class FalWords(Words):
    """
    Two requests at work at once, as a new account has; the queue refuses none, and keeps a result's JSON for an hour.
    """

    DEFAULTS = MappingProxyType({"workers": 2})
    ID_AT = ("request_id",)
    SCHEME = "Key"

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        elsewhere = _ELSEWHERE.get((asked.method, asked.path))
        if elsewhere:
            return Route(place=elsewhere[0], what=elsewhere[1], open=elsewhere[1] == "upload")
        request = _REQUEST.fullmatch(asked.path)
        if request:
            place = _ACTIONS.get((asked.method, request[3]))
            what = f"{request[1]}:{request[3] or '/result'}"
            return Route(place=place, job_id=request[2], what=what) if place else None
        endpoint = _ENDPOINT.fullmatch(asked.path)
        return Route(place=Place.CREATE, what=endpoint[1]) if endpoint and asked.method == "POST" else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        A model's errors are a list, the gate's a text; digits are a status.
        """
        if isinstance(why, str) and not isinstance(why, Why):
            if why.isdigit():
                return Answer(status=int(why), data={"detail": message})
            if why in _REQUEST_ERRORS:
                told = {"detail": message, "error_type": why}
                return Answer(status=_REQUEST_ERRORS[why], data=told, headers={"x-fal-error-type": why})
            return _model_error(422, why, message)
        status, kind = _REFUSALS[Why(why)]
        if kind:
            return _model_error(status, kind, message)
        text = "User is locked. Reason: Exhausted balance." if why is Why.BALANCE else message
        return Answer(status=status, data={"detail": text})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        match call.what:
            case "list":
                return self._list(call)
            case "billing":
                return Answer(data={"username": "acme", "credits": {"current_balance": 24.5, "currency": "USD"}})
            case "token":
                until = iso(self.engine.wall(self.engine.now()) + 3600)
                told = {
                    "token": _FOR_MEDIA,
                    "token_type": "Bearer",
                    "base_url": f"http://{call.host}",
                    "expires_at": until,
                }
                return Answer(data=told)
            case "upload":
                return self._upload(call)
        if call.place is Place.CREATE:
            return self._create(call)
        job = self.engine.find(call.key, call.job_id or "")
        app, _, action = call.what.partition(":")
        if job is None or _app(job) != app:
            return Answer(status=404, data={"status": "NOT_FOUND", "detail": "Request not found"})
        match action:
            case "/status":
                return self._status(job, call)
            case "/status/stream":
                return self._stream(job, call)
            case "/cancel":
                return self._cancel(job)
            case _:
                return self._result(job, call)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        if not body.get("prompt"):
            return _model_error(422, "missing", "field required")
        fields = {"prompt": str(body["prompt"]), "model": call.what, "seconds": str(body.get("duration", 5))}
        pictures = sum(one.startswith(("data:", "https://", "http://")) for one in texts_in(body))
        keep = {"input": body, "endpoint": call.what}
        job = self.engine.create(call.key, fields, pictures=pictures, data=keep, shape=uuid)
        return Answer(data=self._told(job, call, "IN_QUEUE"), job=job)

    def _told(self, job: Job, call: Call, status: str) -> dict[str, Any]:
        here = f"http://{call.host}/{_app(job)}/requests/{job.id}"
        told: dict[str, Any] = {"status": status, "request_id": job.id, "response_url": here}
        if status == "IN_QUEUE":
            told["queue_position"] = self.engine.position(job) or 0
        else:
            told["logs"] = None
        return {**told, "status_url": f"{here}/status", "cancel_url": f"{here}/cancel"}

    def _status(self, job: Job, call: Call) -> Answer:
        match job.state:
            case JobState.WAITING:
                return Answer(status=202, data=self._told(job, call, "IN_QUEUE"), job=job)
            case JobState.WORKING:
                return Answer(status=202, data=self._told(job, call, "IN_PROGRESS"), job=job)
        told = self._told(job, call, "COMPLETED")
        if job.started is not None and job.ended is not None:
            told["metrics"] = {"inference_time": job.ended - job.started}
        if job.state is JobState.STOPPED:
            told |= {"error": "Request was cancelled by the client", "error_type": "client_cancelled"}
        elif job.why == "generation_failed" or job.why in _REQUEST_ERRORS:
            told |= {"error": "The request could not be carried out", "error_type": _request_error(job)}
        # What the model itself refused shows in the result alone.
        return Answer(data=told, job=job)

    def _stream(self, job: Job, call: Call) -> Answer:
        """
        The status whenever it changes, until the job has ended.
        """
        before: Any = None

        def news() -> tuple[list[Any], bool]:
            nonlocal before
            self.engine.now()
            told = self._status(job, call).data
            fresh, before = [told] * (told != before), told
            return fresh, not job.unended

        return Answer(stream=news, job=job)

    def _result(self, job: Job, call: Call) -> Answer:
        if job.unended:
            return Answer(status=400, data={"detail": "Request is still in progress"}, job=job)
        if job.ended is not None and self.engine.now() - job.ended > _KEPT_SECONDS:
            return Answer(status=404, data={"detail": "Request not found"}, job=job)
        if job.state is JobState.DONE:
            url = self.file_url(job, call)
            video = {"url": url, "content_type": "video/mp4", "file_name": "output.mp4", "file_size": 4183020}
            return Answer(data={"video": video, "seed": job.number}, job=job)
        if job.why == "moderation_blocked":
            told = _model_error(422, "content_policy_violation", "The content could not be processed.")
        elif job.why and job.why not in ("generation_failed", *_REQUEST_ERRORS):
            told = _model_error(500 if job.why.endswith("error") else 422, job.why, "The model failed.")
        else:
            told = self.refuse(_request_error(job), "The request could not be carried out")
        return Answer(status=told.status, data=told.data, headers=told.headers, job=job)

    def _cancel(self, job: Job) -> Answer:
        match job.state:
            case JobState.WAITING:
                self.engine.cancel(job)
                return Answer(data={"status": "OK"}, job=job)
            case JobState.WORKING:
                # The app is told, and this one does not listen.
                return Answer(status=202, data={"status": "CANCELLATION_REQUESTED"}, job=job)
            case _:
                return Answer(status=400, data={"status": "ALREADY_COMPLETED"}, job=job)

    def _list(self, call: Call) -> Answer:
        endpoint = call.query.get("endpoint_id")
        if not endpoint:
            return self.refuse(Why.INVALID, "endpoint_id is required")
        # Sorted by their ends: what has not ended is not there.
        jobs = [
            job for job in self.engine.listed(call.key) if job.ended is not None and job.data["endpoint"] == endpoint
        ]
        jobs.sort(key=lambda job: job.ended or 0.0, reverse=True)
        start, size = int(call.query.get("cursor") or "0"), min(100, int(call.query.get("limit", "50")))
        payloads = call.query.get("expand") == "payloads"
        rows = [self._row(job, payloads=payloads) for job in jobs[start : start + size]]
        more = len(jobs) > start + size
        return Answer(data={"items": rows, "has_more": more, "next_cursor": str(start + size) if more else None})

    def _row(self, job: Job, *, payloads: bool) -> dict[str, Any]:
        row: dict[str, Any] = {
            "request_id": job.id,
            "endpoint_id": job.data["endpoint"],
            "sent_at": iso(self.engine.wall(job.created)),
            "started_at": None if job.started is None else iso(self.engine.wall(job.started)),
            "ended_at": iso(self.engine.wall(job.ended or 0.0)),
            "status_code": 200 if job.state is JobState.DONE else 500,
            "duration": (job.ended or 0.0) - (job.started or job.ended or 0.0),
        }
        return {**row, "json_input": job.data["input"]} if payloads else row

    def _upload(self, call: Call) -> Answer:
        if call.headers.get("authorization") != f"Bearer {_FOR_MEDIA}" or not call.pictures:
            return self.refuse(Why.AUTH, "Invalid token")
        name = call.headers.get("x-fal-file-name", "file")
        return Answer(data={"access_url": f"http://{call.host}/media/{len(self.engine.ledger.requests)}_{name}"})


def _model_error(status: int, kind: str, message: str) -> Answer:
    detail = {"loc": ["body", "prompt"], "msg": message, "type": kind, "url": "https://docs.fal.ai/errors", "input": {}}
    retryable = "true" if status >= 500 else "false"
    return Answer(status=status, data={"detail": [detail]}, headers={"x-fal-retryable": retryable})


def _request_error(job: Job) -> str:
    return job.why if job.why in _REQUEST_ERRORS else "runner_disconnected"


def _app(job: Job) -> str:
    parts = str(job.data["endpoint"]).split("/")
    return "/".join(parts[: 3 if parts[0] in ("workflows", "comfy") else 2])
