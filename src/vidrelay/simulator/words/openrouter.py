"""
OpenRouter's words: `/api/v1/videos`.
"""

import re
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_TASK = re.compile(r"/api/v1/videos/([^/]+)(/content)?")
_STATES = {
    JobState.WAITING: "pending",
    JobState.WORKING: "in_progress",
    JobState.DONE: "completed",
    JobState.FAILED: "failed",
    JobState.STOPPED: "cancelled",
}
_REASONS = {
    "moderation_blocked": "The vendor's content policy refused it.",
    "generation_failed": "The vendor could not make it.",
}
_REFUSALS = {
    Why.INVALID: 400,
    Why.AUTH: 401,
    Why.RATE: 429,
    Why.BUSY: 429,
    Why.BALANCE: 402,
    Why.MODERATED: 403,
    Why.NOT_FOUND: 404,
    Why.SERVER: 500,
}


class OpenRouterWords(Words):
    """
    A create is answered with 202, and an error's code is its status.
    """

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        match asked.method, asked.path:
            case "POST", "/api/v1/videos":
                return Route(place=Place.CREATE)
            case "GET", "/api/v1/key" | "/api/v1/credits" | "/api/v1/videos/models":
                return Route(place=Place.ACCOUNT, what=asked.path.removeprefix("/api/v1"))
        task = _TASK.fullmatch(asked.path)
        place = Place.CONTENT if task and task[2] else Place.POLL
        return Route(place=place, job_id=task[1]) if task and asked.method == "GET" else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"code", "message", "metadata"}}`.
        """
        status = _REFUSALS[why] if isinstance(why, Why) else int(why)
        error: dict[str, Any] = {"code": status, "message": message}
        if why is Why.MODERATED:
            error["metadata"] = {"reasons": ["violence"], "flagged_input": "a boat"}
        return Answer(status=status, data={"error": error})

    def error(self, status: int, message: str) -> Answer:
        """
        Say that status, which is the code too.
        """
        return self.refuse(str(status), message)

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        if call.place is Place.CREATE:
            return self._create(call)
        if call.place is Place.ACCOUNT:
            return Answer(data={"data": _ACCOUNT[call.what]})
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "Video generation job not found")
        if call.place is Place.POLL:
            return Answer(data=self._status(job, call), job=job)
        if job.state is not JobState.DONE:
            return Answer(status=409, data=self.refuse("409", "The video is not ready").data, job=job)
        return Answer(clip=job, index=int(call.query.get("index", "0")), job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        frames, references = body.get("frame_images") or [], body.get("input_references") or []
        if "/" not in str(body.get("model", "")) or not body.get("prompt"):
            return self.refuse(Why.INVALID, "model must be vendor/name, and there must be a prompt")
        if not isinstance(body.get("duration", 5), int):
            return self.refuse(Why.INVALID, "duration must be a whole number")
        if not {one.get("frame_type") for one in frames} <= {"first_frame", "last_frame"}:
            return self.refuse(Why.INVALID, "frame_type must be first_frame or last_frame")
        urls = [str((one.get(one.get("type", "")) or {}).get("url", "")) for one in [*frames, *references]]
        if not all(url.startswith(("https://", "data:")) for url in urls):
            return self.refuse(Why.INVALID, "an image must be an address or a data URI")
        fields = {"prompt": body["prompt"], "model": body["model"], "seconds": str(body.get("duration", 5))}
        job = self.engine.create(call.key, fields, pictures=len(urls), data=body, shape=self._id)
        return Answer(status=202, data=self._status(job, call), job=job)

    def _status(self, job: Job, call: Call) -> dict[str, Any]:
        path = f"/api/v1/videos/{job.id}"
        told: dict[str, Any] = {
            "id": job.id,
            "polling_url": f"http://{call.host}{path}",
            "status": _STATES[job.state],
        }
        if job.state is JobState.FAILED:
            told["error"] = _REASONS.get(job.why or "", job.why)
        if job.state is JobState.DONE:
            told["generation_id"] = job.id.replace("gen-vid-", "gen-")
            told["usage"] = {"cost": 0.4, "is_byok": False}
            told["unsigned_urls"] = [f"http://{call.host}{path}/content?index=0"]
            # A copy in its own store, with addresses that need no key and die, is not kept of every clip.
            if self.engine.options.url_seconds is not None:
                told["urls"] = [self.file_url(job, call)]
                told["expires_at"] = int(self.engine.wall(self.engine.now() + self.engine.options.url_seconds))
        return told

    def _id(self, drawn: str) -> str:
        return f"gen-vid-{int(self.engine.wall(self.engine.now()))}-{drawn[:20]}"


_ACCOUNT: dict[str, Any] = {
    "/key": {"label": "sk-or-v1-abc...123", "limit": 20.0, "limit_remaining": 12.5, "usage": 7.5},
    "/credits": {"total_credits": 100.0, "total_usage": 7.5},
    "/videos/models": [
        {
            "id": "google/veo-3.1",
            "canonical_slug": "google/veo-3.1",
            "name": "Veo 3.1",
            "created": 1_790_000_000,
            "supported_durations": [4, 6, 8],
            "supported_aspect_ratios": ["16:9", "9:16"],
            "supported_resolutions": ["720p", "1080p"],
            "supported_sizes": ["1280x720"],
            "supported_frame_images": ["first_frame", "last_frame"],
            "generate_audio": True,
            "seed": True,
            "allowed_passthrough_parameters": [],
            "creativity": None,
            "upscale_factor": None,
        }
    ],
}
