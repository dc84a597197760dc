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
    **dict.fromkeys(("AccessDenied", "OperationDenied.ServiceNotOpen", "OperationDenied.ServiceOverdue"), 403),
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
_RATIOS = ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive")
_RESOLUTIONS = ("480p", "720p", "1080p", "4k")
_OLD_ALONE = ("seed", "camera_fixed", "service_tier", "frames")
"""Fields that the models from 2.0 on do not take."""
_TOLD = ("generate_audio", "draft", "priority", "output_format", "frames")
"""Fields that come back with the task as they were given."""
_CANCELLED_SECONDS = 86400.0
"""So long is the record of a cancelled task kept."""
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
        if job is None or self._is_gone(job):
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
        wrong = _wrong(body) or _wrong_content(parts)
        if wrong is not None:
            return self.refuse("InvalidParameter", f"The parameter `{wrong}` specified in the request is not valid.")
        pictures = [part for part in parts if part.get("type") == "image_url"]
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
        asked = [call.query.get(name, usual) for name, usual in (("page_num", "1"), ("page_size", "10"))]
        if not all(one.isdecimal() and 1 <= int(one) <= 500 for one in asked):
            return self.refuse("InvalidParameter", "page_num and page_size must be from 1 to 500.")
        number, size = map(int, asked)
        ids = {value for name, value in call.pairs if name == "filter.task_ids"}
        status, model, tier = (call.query.get(f"filter.{name}") for name in ("status", "model", "service_tier"))
        jobs = [
            job
            for job in self.engine.listed(call.key)
            if (not ids or job.id in ids)
            and (status is None or _STATES[job.state] == status)
            and (model is None or job.fields["model"] == model)
            and (tier is None or job.data.get("service_tier", "default") == tier)
            and not self._is_gone(job)
        ]
        page = jobs[(number - 1) * size : number * size]
        return Answer(data={"items": [self._task(job, call) for job in page], "total": len(jobs)})

    def _is_gone(self, job: Job) -> bool:
        """
        Whether its record is removed: a cancelled task's is after a day, any other's with the engine's own term.
        """
        ended = self.engine.now() if job.ended is None else job.ended
        return job.state is JobState.STOPPED and self.engine.now() - ended >= _CANCELLED_SECONDS

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
        told |= {name: body[name] for name in ("safety_identifier", *_TOLD) if name in body}
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


def _wrong(body: dict[str, Any]) -> str | None:
    """
    The first parameter with a value that the service does not have, or that the model does not take; else None.
    """
    model, duration, frames = str(body["model"]), body.get("duration", 5), body.get("frames", 29)
    if "seedance-2-" in model and (given := next((name for name in _OLD_ALONE if name in body), None)):
        return given
    if body.get("ratio", "adaptive") not in _RATIOS:
        return "ratio"
    if body.get("resolution", "720p") not in _RESOLUTIONS:
        return "resolution"
    if not isinstance(duration, int) or (duration != -1 and duration < 1):
        return "duration"
    return None if isinstance(frames, int) and 29 <= frames <= 289 and frames % 4 == 1 else "frames"


def _wrong_content(parts: list[dict[str, Any]]) -> str | None:
    """
    The first kind of content that is not given as it must be, or None: a video goes by its address alone.
    """
    for kind in ("image_url", "video_url", "audio_url"):
        for part in (one for one in parts if one.get("type") == kind):
            inner = part.get(kind)
            url = inner.get("url") if isinstance(inner, dict) else None
            inline = () if kind == "video_url" else (f"data:{kind.removesuffix('_url')}/",)
            if not isinstance(url, str) or not url.startswith(("https://", "http://", "asset://", *inline)):
                return f"content.{kind}"
    return None
