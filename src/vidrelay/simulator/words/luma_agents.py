"""
The words of Luma's Agents API: `/v1/generations`.
"""

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState, Turned
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words, iso

_TASK = re.compile(r"/v1/generations/([^/]+)")
_STATES = {
    JobState.WAITING: "queued",
    JobState.WORKING: "processing",
    JobState.DONE: "completed",
    JobState.FAILED: "failed",
    JobState.STOPPED: "failed",
}
_REFUSALS = {
    Why.INVALID: (422, None),
    Why.AUTH: (401, "Invalid API key"),
    Why.RATE: (429, "Rate limit exceeded"),
    Why.BUSY: (429, "Too many concurrent generations"),
    Why.BALANCE: (402, "Payment required"),
    Why.MODERATED: (400, "The prompt was refused by content moderation"),
    Why.NOT_FOUND: (404, "Generation not found"),
    Why.SERVER: (500, None),
}
_MEDIA = ("url", "data", "generation_id", "file_id")


class LumaAgentsWords(Words):
    """
    Errors are `{"detail"}` and a status, so the code of an armed refusal is that status. Addresses live for an hour.
    """

    DEFAULTS = MappingProxyType({"url_seconds": 3600.0})
    STATUS_AT = ("state",)

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        match asked.method, asked.path:
            case "POST", "/v1/generations":
                return Route(place=Place.CREATE)
            case "GET", "/v1/files":
                return Route(place=Place.ACCOUNT)
        task = _TASK.fullmatch(asked.path)
        return Route(place=Place.POLL, job_id=task[1]) if task and asked.method == "GET" else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"detail"}`.
        """
        status, told = _REFUSALS[why] if isinstance(why, Why) else (int(why), None)
        return Answer(status=status, data={"detail": told or message})

    def turned(self, turned: Turned) -> Answer:
        """
        Too many calls or jobs: both say when to come back.
        """
        answer = Words.turned(self, turned)
        return replace(answer, headers={"retry-after": "5"}) if turned.why == "busy" else answer

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        headers = {"x-api-version": "2026-04-01"}
        if "x-request-id" in call.headers:
            headers["x-request-id"] = call.headers["x-request-id"]
        match call.place:
            case Place.CREATE:
                answer = self._create(call)
                headers |= {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "59", "x-ratelimit-reset": "60"}
            case Place.ACCOUNT:
                answer = Answer(data={"data": [], "has_more": False, "next_cursor": None})
            case _:
                job = self.engine.find(call.key, call.job_id or "")
                found = None if job is None else Answer(data=self._generation(job, call), job=job)
                answer = found or self.refuse(Why.NOT_FOUND, "")
        return replace(answer, headers={**headers, **answer.headers})

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        video = body.get("video") or {}
        frames = [video.get(name) for name in ("start_frame", "end_frame")] + list(video.get("keyframes") or [])
        media = [one for one in frames if one]
        if not body.get("prompt") or body.get("type") != "video" or video.get("duration", "5s") not in ("5s", "10s"):
            return self.refuse(Why.INVALID, "prompt, type or duration is not as it must be")
        if any(sum(name in one for name in _MEDIA) != 1 or ("data" in one) != ("media_type" in one) for one in media):
            return self.refuse(Why.INVALID, "exactly one of url, data, generation_id, file_id")
        if len(video.get("keyframes") or []) != len(video.get("keyframe_indexes") or []):
            return self.refuse(Why.INVALID, "keyframe_indexes must match keyframes")
        if video.get("duration") == "10s" and (video.get("start_frame") or video.get("end_frame")):
            return self.refuse(Why.INVALID, "start_frame and end_frame are not supported with 10s")
        seconds = str(video.get("duration", "5s")).removesuffix("s")
        fields = {"prompt": body["prompt"], "model": body.get("model", "ray-3.2"), "seconds": seconds}
        job = self.engine.create(call.key, fields, pictures=len(media), data=body, shape=_id)
        return Answer(status=201, data=self._generation(job, call), job=job)

    def _generation(self, job: Job, call: Call) -> dict[str, Any]:
        done, failed = job.state is JobState.DONE, job.state in (JobState.FAILED, JobState.STOPPED)
        codes = {"moderation_blocked": "content_moderated"}
        why = job.why or "generation_failed"
        return {
            "id": job.id,
            "type": "video",
            "state": _STATES[job.state],
            "model": job.fields["model"],
            "created_at": iso(job.created_at),
            "output": [{"type": "video", "url": self.file_url(job, call)}] if done else [],
            "failure_code": codes.get(why, why) if failed else None,
            "failure_reason": "It could not be made." if failed else None,
        }


def _id(drawn: str) -> str:
    return f"gen_{drawn[:24]}"
