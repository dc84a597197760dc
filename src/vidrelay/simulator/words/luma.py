"""
Dream Machine's words: `/dream-machine/v1`.
"""

import re
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import uuid
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words, iso

_BASE = "/dream-machine/v1"
_TASK = re.compile(rf"{_BASE}/generations/([^/]+)")
_STATES = {
    JobState.WAITING: "queued",
    JobState.WORKING: "dreaming",
    JobState.DONE: "completed",
    JobState.FAILED: "failed",
    JobState.STOPPED: "failed",
}
_REASONS = {
    "moderation_blocked": "The prompt was refused by moderation.",
    "generation_failed": "The generation could not be made.",
}
_REFUSALS = {
    Why.INVALID: (400, None),
    Why.AUTH: (403, "Not authenticated"),
    Why.RATE: (429, "Rate limit exceeded."),
    Why.BUSY: (429, "Too many concurrent generations."),
    Why.BALANCE: (400, "Insufficient credits"),
    Why.MODERATED: (400, "The prompt was refused by moderation."),
    Why.NOT_FOUND: (404, "Generation not found"),
    Why.SERVER: (500, None),
}
_RATIOS = {"1:1", "16:9", "9:16", "4:3", "3:4", "21:9", "9:21"}


class LumaWords(Words):
    """
    Errors are `{"detail"}` and a status, so the code of an armed refusal is that status.
    """

    STATUS_AT = ("state",)

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        call = (asked.method, asked.path.removeprefix(_BASE) if asked.path.startswith(_BASE + "/") else "")
        match call:
            case ("POST", "/generations/video" | "/generations"):
                return Route(place=Place.CREATE)
            case ("GET", "/generations"):
                return Route(place=Place.LIST)
            case ("GET", "/credits" | "/ping"):
                return Route(place=Place.ACCOUNT, what=call[1])
        task = _TASK.fullmatch(asked.path)
        place = {"GET": Place.POLL, "DELETE": Place.DELETE}.get(asked.method)
        return Route(place=place, job_id=task[1]) if task and place else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"detail"}`.
        """
        status, told = _REFUSALS[why] if isinstance(why, Why) else (int(why), None)
        return Answer(status=status, data={"detail": told or message})

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
                told = {"message": "pong"} if call.what == "/ping" else {"credit_balance": 1234.0}
                return Answer(data=told)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "")
        if call.place is Place.POLL:
            return Answer(data=self._generation(job, call), job=job)
        # Whether this stops the work is not documented, so here it goes on and is paid for.
        job.hidden = True
        return Answer(status=204, job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        frames = body.get("keyframes") or {}
        urls = [one.get("url", "https://") for one in frames.values() if isinstance(one, dict)]
        if body.get("model") not in ("ray-2", "ray-flash-2"):
            return self.refuse(Why.INVALID, "model must be ray-2 or ray-flash-2")
        if body.get("aspect_ratio", "16:9") not in _RATIOS or body.get("duration", "5s") not in ("5s", "9s"):
            return self.refuse(Why.INVALID, "aspect_ratio or duration is not as it must be")
        if not set(frames) <= {"frame0", "frame1"} or not all(str(url).startswith("https://") for url in urls):
            return self.refuse(Why.INVALID, "keyframes must be public addresses")
        seconds = str(body.get("duration", "5s")).removesuffix("s")
        fields = {"prompt": body.get("prompt", ""), "model": body["model"], "seconds": seconds}
        job = self.engine.create(call.key, fields, pictures=len(urls), data=body, shape=uuid)
        return Answer(status=201, data=self._generation(job, call), job=job)

    def _generation(self, job: Job, call: Call) -> dict[str, Any]:
        done, failed = job.state is JobState.DONE, job.state in (JobState.FAILED, JobState.STOPPED)
        why = job.why or "generation_failed"
        reason = _REASONS.get(why, why) if failed else None
        image = f"http://{call.host}/cover.jpg"
        return {
            "id": job.id,
            "generation_type": "video",
            "state": _STATES[job.state],
            "failure_reason": reason,
            "created_at": iso(job.created_at),
            "assets": {"video": self.file_url(job, call), "image": image} if done else None,
            "model": job.fields["model"],
            "request": {"generation_type": "video", **job.data},
        }

    def _list(self, call: Call) -> Answer:
        limit, offset = (int(call.query.get(name, usual)) for name, usual in (("limit", "10"), ("offset", "0")))
        if not 1 <= limit <= 100 or offset < 0:
            return self.refuse(Why.INVALID, "limit must be from 1 to 100")
        jobs = self.engine.listed(call.key)
        page = [self._generation(job, call) for job in jobs[offset : offset + limit]]
        more = offset + limit < len(jobs)
        told = {"count": len(page), "has_more": more, "limit": limit, "offset": offset}
        return Answer(data={"generations": page, **told})
