"""
Ark's words: `/api/v3/contents/generations/tasks`.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_PATH = re.compile(r"/api/v3/contents/generations/tasks(?:/([^/]+))?")
_STATES = {
    JobState.WAITING: "queued",
    JobState.WORKING: "running",
    JobState.DONE: "succeeded",
    JobState.FAILED: "failed",
    JobState.STOPPED: "cancelled",
}
_CODES = {"moderation_blocked": "OutputVideoSensitiveContentDetected", "generation_failed": "InternalServiceError"}
_REFUSALS = {
    Why.INVALID: (400, "InvalidParameter"),
    Why.AUTH: (401, "AuthenticationError"),
    Why.RATE: (429, "AccountRateLimitExceeded"),
    Why.BUSY: (429, "QuotaExceeded"),
    Why.BALANCE: (403, "AccountOverdueError"),
    Why.MODERATED: (400, "InputTextSensitiveContentDetected"),
    Why.NOT_FOUND: (404, "ResourceNotFound"),
    Why.SERVER: (500, "InternalServiceError"),
}
_STATUSES = {
    **{code: status for status, code in _REFUSALS.values()},
    "AccessDenied": 403,
    **dict.fromkeys(
        (
            *("ModelNotOpen", "InvalidEndpointOrModel.NotFound"),
            "InvalidEndpointOrModel.ModelIDAccessDisabled",
        ),
        404,
    ),
    **dict.fromkeys(
        (
            *("RateLimitExceeded.EndpointRPMExceeded", "RateLimitExceeded.EndpointTPMExceeded", "RequestBurstTooFast"),
            *("ModelAccountRpmRateLimitExceeded", "ModelAccountTpmRateLimitExceeded", "APIAccountRpmRateLimitExceeded"),
            *("ServerOverloaded", "InflightBatchsizeExceeded", "SetLimitExceeded"),
        ),
        429,
    ),
}
_KINDS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 429: "TooManyRequests"}


class ArkWords(Words):
    """
    Ten jobs at work at once, up to 120 that have not ended; a record is kept for 7 days, an address for one.
    """

    DEFAULTS = MappingProxyType({"workers": 10, "window": 120, "url_seconds": 86400.0, "keep_seconds": 604800.0})

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        found = _PATH.fullmatch(asked.path)
        if not found:
            return None
        places = (
            {"POST": Place.CREATE, "GET": Place.LIST}
            if found[1] is None
            else {"GET": Place.POLL, "DELETE": Place.DELETE}
        )
        place = places.get(asked.method)
        return Route(place=place, job_id=found[1]) if place else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"code", "message", "param", "type"}}`.
        """
        status, code = _REFUSALS[why] if isinstance(why, Why) else (_STATUSES.get(why, 400), why)
        told = {"code": code, "message": message, "param": "", "type": _KINDS.get(status, "InternalServerError")}
        return Answer(status=status, data={"error": told}, headers={"x-request-id": "r-1"})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        match call.place:
            case Place.CREATE:
                return self._create(call)
            case Place.LIST:
                return self._list(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "The specified task is not found.")
        if call.place is Place.POLL:
            return Answer(data=self._task(job, call), job=job)
        return self._delete(job)

    def _create(self, call: Call) -> Answer:
        # The SDK sends what was not given as null.
        body = {name: value for name, value in (call.data or {}).items() if value is not None}
        parts = body.get("content")
        if not body.get("model"):
            return self.refuse("MissingParameter", "The request misses the parameter `model`.")
        if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
            return self.refuse("MissingParameter", "The request misses the parameter `content`.")
        pictures = [part for part in parts if part.get("type") == "image_url"]
        if not all(_is_address((part.get("image_url") or {}).get("url")) for part in pictures):
            return self.refuse("InvalidParameter", "`image_url.url` is neither an address nor a data URI.")
        prompt = " ".join(str(part.get("text")) for part in parts if part.get("type") == "text")
        fields = {"prompt": prompt, "model": str(body["model"]), "seconds": str(body.get("duration", 5))}
        job = self.engine.create(call.key, fields, pictures=len(pictures), data=body, shape=_id)
        told = {"id": job.id, "safety_identifier": body.get("safety_identifier")}
        return Answer(data={name: value for name, value in told.items() if value is not None}, job=job)

    def _delete(self, job: Job) -> Answer:
        match job.state:
            case JobState.WAITING:
                self.engine.cancel(job)
            case JobState.WORKING:
                return self.refuse(Why.INVALID, "The task is running and cannot be cancelled.")
            case _:
                # What has ended is erased by the very same call.
                self.engine.stop(job)
        return Answer(data={}, job=job)

    def _list(self, call: Call) -> Answer:
        number, size = (int(call.query.get(name, usual)) for name, usual in (("page_num", "1"), ("page_size", "10")))
        if not (1 <= number <= 500 and 1 <= size <= 500):
            return self.refuse("InvalidParameter", "page_num and page_size must be from 1 to 500.")
        ids = {value for name, value in call.pairs if name == "filter.task_ids"}
        status, model = call.query.get("filter.status"), call.query.get("filter.model")
        jobs = [
            job
            for job in self.engine.listed(call.key)
            if (not ids or job.id in ids)
            and (status is None or _STATES[job.state] == status)
            and (model is None or job.fields["model"] == model)
        ]
        page = jobs[(number - 1) * size : number * size]
        return Answer(data={"items": [self._task(job, call) for job in page], "total": len(jobs)})

    def _task(self, job: Job, call: Call) -> dict[str, Any]:
        body: dict[str, Any] = job.data
        changed = job.ended if job.ended is not None else job.started if job.started is not None else job.created
        told: dict[str, Any] = {
            "id": job.id,
            "model": job.fields["model"],
            "status": _STATES[job.state],
            "error": None,
            "created_at": job.created_at,
            "updated_at": int(self.engine.wall(changed)),
            "service_tier": body.get("service_tier", "default"),
            "execution_expires_after": body.get("execution_expires_after", 172800),
        }
        if "safety_identifier" in body:
            told["safety_identifier"] = body["safety_identifier"]
        if job.state is JobState.FAILED:
            code = _CODES.get(job.why or "", job.why or "")
            told["error"] = {"code": code, "message": "The request failed."}
        if job.state is JobState.DONE:
            content = {"video_url": self.file_url(job, call)}
            if body.get("return_last_frame"):
                content["last_frame_url"] = self.file_url(job, call, 1)
            told |= {
                "content": content,
                "usage": {"completion_tokens": 108900, "total_tokens": 108900},
                "seed": body.get("seed", 42),
                "resolution": body.get("resolution", "720p"),
                "ratio": body.get("ratio", "16:9"),
                "duration": body.get("duration", 5),
                "framespersecond": 24,
            }
        return told


def _id(drawn: str) -> str:
    return f"cgt-20261101{drawn[:6]}-{drawn[6:14]}"


def _is_address(url: Any) -> bool:
    return isinstance(url, str) and url.startswith(("https://", "data:image/", "asset://"))
