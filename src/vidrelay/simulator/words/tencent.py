"""
Tencent's words: VCLM, where every call is a signed POST whose action stands in a header.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.providers.tencent.signature import signature
from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import digits
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_ACTION = re.compile(r"(Submit|Describe)(HunyuanToVideo|TextToVideo|ImageToVideo)Job")
_AUTHORIZATION = re.compile(
    r"TC3-HMAC-SHA256 Credential=([^/]+)/(\d{4}-\d{2}-\d{2}/vclm/tc3_request), "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]+)"
)
_VERSION = "2024-05-23"
_SIGNED_FOR_SECONDS = 300.0
"""A signature's time may be as far from the clock here."""
_STATES = {
    JobState.WAITING: "WAIT",
    JobState.WORKING: "RUN",
    JobState.DONE: "DONE",
    JobState.FAILED: "FAIL",
    JobState.STOPPED: "FAIL",
}
_CODES = {"moderation_blocked": "FailedOperation.ModerationFailed", "generation_failed": "FailedOperation.InnerError"}
_REFUSALS = {
    Why.INVALID: "InvalidParameterValue",
    Why.AUTH: "AuthFailure.SignatureFailure",
    Why.RATE: "RequestLimitExceeded",
    Why.BUSY: "RequestLimitExceeded.JobNumExceed",
    Why.BALANCE: "ResourcesSoldOut.ChargeStatusException",
    Why.MODERATED: "FailedOperation.ModerationFailed",
    Why.NOT_FOUND: "FailedOperation.JobNotExist",
    Why.SERVER: "FailedOperation.ServerError",
}


class TencentWords(Words):
    """
    One job at a time, and a second is refused. Errors come with status 200.
    """

    DEFAULTS = MappingProxyType({"window": 1, "url_seconds": 86_400.0})
    STATUS_AT = ("Response", "Status")
    ID_AT = ("Response", "JobId")

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is: a header names it.
        """
        found = _ACTION.fullmatch(asked.headers.get("x-tc-action", ""))
        is_call = (asked.method, asked.path, asked.headers.get("x-tc-version")) == ("POST", "/", _VERSION)
        if not found or not is_call:
            return None
        return Route(place=Place.CREATE if found[1] == "Submit" else Place.POLL, what=found[2])

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
        if not set(headers) >= {"content-type", "host"}:
            return f"{access}, signed in part"
        timestamp = asked.headers.get("x-tc-timestamp", "")
        off = self.engine.wall(self.engine.now()) - int(timestamp if timestamp.isdecimal() else "0")
        if abs(off) > _SIGNED_FOR_SECONDS:
            return f"{access}, signed at another time"
        made = signature(
            secret,
            path=asked.path,
            headers=headers,
            body_sha256=asked.body_sha256,
            timestamp=timestamp,
            scope=scope,
        )
        return wanted if (known, made) == (access, told) else f"{access}, signed by somebody else"

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"Response": {"Error": {"Code", "Message"}, "RequestId"}}`, with status 200.
        """
        code = _REFUSALS[why] if isinstance(why, Why) else why
        return Answer(data={"Response": {"Error": {"Code": code, "Message": message}, "RequestId": "q4"}})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        body = call.data if isinstance(call.data, dict) else {}
        if call.place is Place.CREATE:
            return self._create(call, body)
        job = self._named(call, body)
        if job is None:
            return self.refuse(Why.NOT_FOUND, "the job does not exist")
        return _said(self._status(job, call), job)

    def _create(self, call: Call, body: dict[str, Any]) -> Answer:
        images = [body[name] for name in ("Image", "ImageTail") if body.get(name)]
        external = body.get("ExternalTaskId")
        wrong = _wrong(body, call.what, images)
        if external and call.what != "HunyuanToVideo" and self._named(call, {"ExternalTaskId": external}):
            wrong = "the ExternalTaskId is there already"
        if wrong is not None:
            return self.refuse(Why.INVALID, wrong)
        fields = {
            "prompt": body.get("Prompt") or "",
            "model": body.get("Model") or "hunyuan",
            "seconds": body.get("Duration") or "5",
        }
        kept = {"kind": call.what, "external": external}
        job = self.engine.create(call.key, fields, pictures=len(images), data=kept, shape=digits("1"))
        echoed = {} if call.what == "HunyuanToVideo" else {"ExternalTaskId": external or ""}
        return _said({"JobId": job.id, **echoed}, job)

    def _named(self, call: Call, body: dict[str, Any]) -> Job | None:
        """
        The key's job by its own id or, of Kling's models, by the client's, in the kind of the call.
        """
        self.engine.now()
        wanted = body.get("JobId"), None if call.what == "HunyuanToVideo" else body.get("ExternalTaskId")
        jobs = [job for job in self.engine.jobs.values() if job.key == call.key and job.data["kind"] == call.what]
        return next(
            (job for job in jobs if job.id == wanted[0] or (wanted[1] and job.data["external"] == wanted[1])), None
        )

    def _status(self, job: Job, call: Call) -> dict[str, Any]:
        failed = job.state in (JobState.FAILED, JobState.STOPPED)
        told = {
            "Status": _STATES[job.state],
            "ErrorCode": _CODES.get(job.why or "", job.why or "FailedOperation.InnerError") if failed else "",
            "ErrorMessage": "the job failed" if failed else "",
            "ResultVideoUrl": self.file_url(job, call) if job.state is JobState.DONE else "",
        }
        if job.data["kind"] == "HunyuanToVideo":
            return told
        done = {"VideoId": "v-1", "Duration": job.fields["seconds"], "FinalUnitDeduction": "2"}
        return told | (done if job.state is JobState.DONE else {}) | {"ExternalTaskId": job.data["external"] or ""}


def _said(response: dict[str, Any], job: Job) -> Answer:
    return Answer(data={"Response": {**response, "RequestId": "q1"}}, job=job)


def _wrong(body: dict[str, Any], kind: str, images: list[Any]) -> str | None:
    """
    What is wrong with a create, or None.
    """
    if any(not isinstance(one, dict) or not (one.get("Url") or one.get("Base64")) for one in images):
        return "an image has a Url or a Base64"
    if kind == "HunyuanToVideo":
        prompt, resolution = body.get("Prompt") or "", body.get("Resolution") or "720p"
        if len(prompt.strip()) > 200 or not (prompt or images):
            return "a prompt of 200 characters, or an image"
        return None if resolution == "720p" else "720p is the only resolution"
    model, seconds = body.get("Model") or "v2.5", body.get("Duration") or "5"
    allowed = {str(one) for one in range(3, 16)} if model.lower().startswith("v3") else {"5", "10"}
    if not isinstance(seconds, str) or seconds not in allowed:
        return "the model makes no clip of that Duration"
    if kind == "TextToVideo":
        return None if body.get("Prompt") else "a Prompt is needed"
    return None if images else "Image or ImageTail is needed"
