"""
xAI's words: `/v1/videos`.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import uuid
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_TASK = re.compile(r"/v1/videos/([^/]+)")
_REFUSALS = {
    Why.INVALID: (400, "invalid_request", None),
    Why.AUTH: (401, "unauthenticated", None),
    Why.RATE: (429, "rate_limit_exceeded", None),
    Why.BUSY: (429, "rate_limit_exceeded", None),
    Why.BALANCE: (403, "permission_denied", "Your team has used all its credits or reached its spending limit."),
    Why.MODERATED: (400, "invalid_request", "The prompt was rejected by content moderation."),
    Why.NOT_FOUND: (404, "not_found", None),
    Why.SERVER: (500, "internal_error", None),
}
_RATIOS = {"16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"}


class XaiWords(Words):
    """
    No code of errors is documented, so the code of an armed refusal is its status. Addresses live for a day.
    """

    DEFAULTS = MappingProxyType({"url_seconds": 86_400.0})
    ID_AT = ("request_id",)

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        match asked.method, asked.path:
            case "POST", "/v1/videos/generations":
                return Route(place=Place.CREATE)
            case "GET", "/v1/api-key":
                return Route(place=Place.ACCOUNT)
        task = _TASK.fullmatch(asked.path)
        return Route(place=Place.POLL, job_id=task[1]) if task and asked.method == "GET" else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"message", "type", "code"}}`.
        """
        status, code, told = _REFUSALS[why] if isinstance(why, Why) else (int(why), f"error_{why}", None)
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return Answer(status=status, data={"error": {"message": told or message, "type": kind, "code": code}})

    def word(self, data: Any, word: str) -> Any:
        """
        A waiting job's answer is empty, and says a word only when it is made to.
        """
        return {**(data or {}), "status": word}

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        if call.place is Place.CREATE:
            return self._create(call)
        if call.place is Place.ACCOUNT:
            flags = dict.fromkeys(("api_key_blocked", "api_key_disabled", "team_blocked"), False)
            return Answer(data={"redacted_api_key": "xai-...", "acls": ["api-key:model:*"], **flags})
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "The request was not found.")
        return self._status(job, call)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        duration, images = body.get("duration", 8), [body.get("image"), body.get("last_frame")]
        images += body.get("reference_images") or []
        given = [one for one in images if one]
        if not str(body.get("model", "")).startswith("grok-imagine-video") or not body.get("prompt"):
            return self.refuse(Why.INVALID, "model or prompt is not as it must be")
        if type(duration) is not int or not 1 <= duration <= 15 or body.get("aspect_ratio", "16:9") not in _RATIOS:
            return self.refuse(Why.INVALID, "duration or aspect_ratio is not as it must be")
        if body["model"] == "grok-imagine-video" and body.get("resolution") == "1080p":
            return self.refuse(Why.INVALID, "1080p needs grok-imagine-video-1.5")
        if not all(str(one.get("url", "")).startswith(("https://", "data:")) or "file_id" in one for one in given):
            return self.refuse(Why.INVALID, "an image must be an address or a data URI")
        fields = {"prompt": body["prompt"], "model": body["model"], "seconds": str(duration)}
        job = self.engine.create(call.key, fields, pictures=len(given), data=body, shape=uuid)
        return Answer(data={"request_id": job.id}, job=job)

    def _status(self, job: Job, call: Call) -> Answer:
        model, seconds = job.fields["model"], int(job.fields["seconds"])
        match job.state:
            case JobState.WAITING:
                return Answer(status=202, job=job)
            case JobState.WORKING:
                share = (self.engine.now() - (job.started or 0.0)) / (job.run_seconds or 1.0)
                return Answer(data={"status": "pending", "progress": int(100 * min(0.99, share))}, job=job)
            case JobState.DONE:
                video = {"url": self.file_url(job, call), "duration": seconds, "respect_moderation": True}
            case _ if job.why == "moderation_blocked":
                video = {"url": "", "duration": seconds, "respect_moderation": False}
            case _:
                error = {"code": job.why or "generation_failed", "message": "The video could not be made."}
                return Answer(data={"status": "failed", "model": model, "error": error}, job=job)
        usage = {"cost_in_usd_ticks": 500_000_000 * seconds}
        return Answer(data={"status": "done", "progress": 100, "model": model, "usage": usage, "video": video}, job=job)
