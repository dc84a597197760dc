"""
Jimeng's words: Volcengine's visual service, where every call is a signed POST.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.providers.jimeng.signature import signature
from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import digits
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_ACTIONS = {
    ("CVSync2AsyncSubmitTask", "2022-08-31"): Place.CREATE,
    ("CVSync2AsyncGetResult", "2022-08-31"): Place.POLL,
    ("CVCancelTask", "2024-06-06"): Place.DELETE,
}
_AUTHORIZATION = re.compile(
    r"HMAC-SHA256 Credential=([^/]+)/(\d{8}/cn-north-1/cv/request), SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]+)"
)
_MUST_BE_SIGNED = {"host", "x-content-sha256", "x-date"}
_STATES = {JobState.WAITING: "in_queue", JobState.WORKING: "generating"}
_CODES = {"moderation_blocked": "50516", "generation_failed": "50500"}
_REFUSALS = {
    Why.INVALID: "50400",
    Why.RATE: "50429",
    Why.BUSY: "50430",
    Why.MODERATED: "50412",
    Why.NOT_FOUND: "50404",
    Why.SERVER: "50500",
}
_GATEWAY = {Why.AUTH: (401, "SignatureDoesNotMatch"), Why.BALANCE: (402, "AccountOverdue")}
"""What stands before the service answers in another form; for an account without money that is not documented."""
_GATEWAY_STATUSES = {
    **dict.fromkeys(("InvalidTimestamp", "InvalidAuthorization", "InvalidCredential", "MissingRequestInfo"), 400),
    **dict.fromkeys(("ServiceNotFound", "InvalidActionOrVersion"), 404),
    "FlowLimitExceeded": 429,
}
_STATUSES = {**dict.fromkeys(("50429", "50430"), 429), **dict.fromkeys(("50500", "50501"), 500)}


class JimengWords(Words):
    """
    One task at a time, and a second is refused; forgotten after 12 hours, and an address dies after one.
    """

    DEFAULTS = MappingProxyType({"window": 1, "keep_seconds": 12 * 3600.0, "url_seconds": 3600.0})
    STATUS_AT = ("data", "status")
    ID_AT = ("data", "task_id")

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is: the query names it.
        """
        named = (asked.query.get("Action", ""), asked.query.get("Version", ""))
        place = _ACTIONS.get(named) if (asked.method, asked.path) == ("POST", "/") else None
        return Route(place=place) if place else None

    def key(self, asked: Asked) -> str | None:
        """
        Who signed the call, and the whole key where that is known here and did.
        """
        found = _AUTHORIZATION.fullmatch(asked.headers.get("authorization", ""))
        if found is None:
            return None
        access, scope, names, told = found.groups()
        wanted = self.engine.options.key
        known, _, secret = (wanted or "").partition(":")
        if wanted is None:
            return access
        headers = {name: asked.headers.get(name, "") for name in names.split(";")}
        if not set(headers) >= _MUST_BE_SIGNED or headers["x-content-sha256"] != asked.body_sha256:
            return f"{access}, signed in part"
        headers["host"] = re.sub(r":(80|443)$", "", headers["host"])
        made = signature(secret, method=asked.method, path=asked.path, query=asked.query, headers=headers, scope=scope)
        return wanted if (known, made) == (access, told) else f"{access}, signed by somebody else"

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"code", "message", "request_id", "status", "data": null}`, or the gateway's form for a key.
        """
        if why in _GATEWAY or why in _GATEWAY_STATUSES:
            status, name = _GATEWAY[why] if isinstance(why, Why) else (_GATEWAY_STATUSES[why], why)
            error = {"CodeN": 100010, "Code": name, "Message": message}
            return Answer(status=status, data={"ResponseMetadata": {"RequestId": "q1", "Error": error}})
        code = _REFUSALS[why] if isinstance(why, Why) else why
        return _failed(code, message)

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        body = call.data if isinstance(call.data, dict) else {}
        if call.place is Place.CREATE:
            return self._create(call, body)
        job = self.engine.find(call.key, str(body.get("task_id")))
        if job is None or job.data != body.get("req_key") or job.state is JobState.STOPPED:
            if call.place is Place.POLL:
                return _said({"status": "not_found"})
            return self.refuse(Why.NOT_FOUND, "no such task")
        if call.place is Place.POLL:
            return self._status(job, call)
        if not job.unended:
            return self.refuse(Why.INVALID, "the task has ended")
        self.engine.cancel(job)
        return _said(None, job)

    def _create(self, call: Call, body: dict[str, Any]) -> Answer:
        images = [*(body.get("image_urls") or []), *(body.get("binary_data_base64") or [])]
        wrong = not str(body.get("req_key", "")).startswith("jimeng_") or body.get("frames", 121) not in (121, 241)
        if wrong or (body.get("image_urls") and body.get("binary_data_base64")) or not (body.get("prompt") or images):
            return self.refuse(Why.INVALID, "req_key, frames, prompt or images are not as they must be")
        fields = {
            "prompt": body.get("prompt", ""),
            "model": body["req_key"],
            "seconds": "10" if body.get("frames") == 241 else "5",
        }
        job = self.engine.create(call.key, fields, pictures=len(images), data=body["req_key"], shape=digits("7"))
        return _said({"task_id": job.id}, job)

    def _status(self, job: Job, call: Call) -> Answer:
        if job.state is JobState.DONE:
            return _said({"status": "done", "video_url": self.file_url(job, call)}, job)
        if job.state is JobState.FAILED:
            return _failed(
                _CODES.get(job.why or "", job.why or ""), "the task failed", data={"status": "done"}, job=job
            )
        return _said({"status": _STATES[job.state]}, job)


def _said(data: Any, job: Job | None = None) -> Answer:
    told = {"code": 10000, "message": "Success", "request_id": "q1", "status": 10000, "time_elapsed": "24ms"}
    return Answer(data={**told, "data": data}, job=job)


def _failed(code: str, message: str, *, data: Any = None, job: Job | None = None) -> Answer:
    number = int(code) if code.isdigit() else 50500
    told = {"code": number, "message": message, "request_id": "q1", "status": number, "data": data}
    return Answer(status=_STATUSES.get(code, 400), data=told, job=job)
