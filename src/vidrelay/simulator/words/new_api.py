"""
new-api's words: `/v1/videos` as OpenAI has it, and `/v1/video/generations` with its own wrapping.
"""

import re
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_PATH = re.compile(r"/v1/(videos|video/generations)(?:/([^/]+?)(/content)?)?")
_STATES = {
    JobState.WAITING: ("queued", "QUEUED", 10),
    JobState.WORKING: ("in_progress", "IN_PROGRESS", 50),
    JobState.DONE: ("completed", "SUCCESS", 100),
    JobState.FAILED: ("failed", "FAILURE", 100),
    JobState.STOPPED: ("failed", "FAILURE", 100),
}
_REASONS = {
    "moderation_blocked": "the provider's moderation has blocked it",
    "generation_failed": "the provider could not make it",
}
_REFUSALS = {
    Why.INVALID: (400, "invalid_request"),
    Why.AUTH: (401, ""),
    Why.RATE: (429, ""),
    Why.BUSY: (429, ""),
    Why.BALANCE: (403, "insufficient_user_quota"),
    Why.MODERATED: (400, "fail_to_fetch_task"),
    Why.NOT_FOUND: (400, "task_not_exist"),
    Why.SERVER: (500, "do_request_failed"),
}
_STATUSES = {
    "insufficient_user_quota": 403,
    "pre_consume_token_quota_failed": 403,
    "do_request_failed": 500,
    "model_not_found": 503,
}
_GENERAL = ("", "model_not_found")
_KNOWN = ("model", "prompt", "mode", "image", "images", "size", "duration", "seconds", "metadata")


class NewApiWords(Words):
    """
    No limits of its own; what a key can ask for is one task at a time.
    """

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        found = _PATH.fullmatch(asked.path)
        if not found:
            return None
        if found[3]:
            place = {"GET": Place.CONTENT}.get(asked.method) if found[1] == "videos" else None
        else:
            place = {("POST", False): Place.CREATE, ("GET", True): Place.POLL}.get((asked.method, found[2] is not None))
        return Route(place=place, job_id=found[2], what=found[1]) if place else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        What stands before the tasks says it as OpenAI does, the tasks say `{"code", "message", "data"}`.
        """
        status, code = _REFUSALS[why] if isinstance(why, Why) else (_STATUSES.get(why, 400), why)
        if code in _GENERAL:
            told = {"message": f"{message} (request id: r-1)", "type": "new_api_error", "code": code}
            return Answer(status=status, data={"error": told})
        return Answer(status=status, data={"code": code, "message": message, "data": None})

    def identity(self, data: Any, job_id: str | None) -> Any:
        """
        Both spellings of the id.
        """
        left = {name: value for name, value in data.items() if name not in ("id", "task_id")}
        return left if job_id is None else {**left, "id": job_id, "task_id": job_id}

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        if call.place is Place.CREATE:
            return self._create(call)
        job = self.engine.find(call.key, call.job_id or "")
        if call.place is Place.CONTENT:
            return self._content(job)
        if job is None:
            return self.refuse(Why.NOT_FOUND, "task_not_exist")
        return Answer(data=self._told(job, call), job=job)

    def _create(self, call: Call) -> Answer:
        prompt, model = call.fields.get("prompt", "").strip(), call.fields.get("model", "")
        if not model:
            return self.refuse("missing_model", "model field is required")
        if not prompt:
            return self.refuse(Why.INVALID, "prompt is required")
        body: dict[str, Any] = call.data or {}
        seconds = call.fields.get("seconds") or call.fields.get("duration") or "5"
        # Of a form, what is not known by name becomes metadata.
        metadata = body.get("metadata") or {
            name: value for name, value in call.fields.items() if name not in _KNOWN and call.data is None
        }
        several = body.get("images")
        pictures = call.pictures + (len(several) if isinstance(several, list) else int(bool(body.get("image"))))
        fields = {"prompt": prompt, "model": model, "seconds": seconds, "size": call.fields.get("size", "1280x720")}
        data = {"metadata": metadata}
        job = self.engine.create(
            call.key, fields, pictures=pictures, data=data, shape=lambda drawn: f"task_{drawn[:32]}"
        )
        return Answer(data=self._told(job, call), job=job)

    def _content(self, job: Job | None) -> Answer:
        if job is None or job.state is not JobState.DONE:
            status, message = (404, "Task not found") if job is None else (400, "Task is not completed yet")
            told = {"message": message, "type": "invalid_request_error"}
            return Answer(status=status, data={"error": told}, job=job)
        return Answer(clip=job, job=job)

    def _told(self, job: Job, call: Call) -> dict[str, Any]:
        word, general, progress = _STATES[job.state]
        why = _REASONS.get(job.why or "", f"{job.why}: the provider could not make it")
        if call.what != "videos":
            told = {
                "task_id": job.id,
                "status": general,
                "progress": f"{progress}%",
                "fail_reason": why if job.state is JobState.FAILED else "",
                "submit_time": job.created_at,
                "start_time": 0 if job.started is None else int(self.engine.wall(job.started)),
                "finish_time": job.ended_at or 0,
            }
            if call.place is Place.CREATE:
                return {"id": job.id, "task_id": job.id, "status": "queued"}
            return {"code": "success", "message": "", "data": told}
        data: dict[str, Any] = {
            "id": job.id,
            "task_id": job.id,
            "object": "video",
            "model": job.fields["model"],
            "status": word,
            "progress": progress if call.place is Place.POLL else 0,
            "created_at": job.created_at,
            "seconds": job.fields["seconds"],
            "size": job.fields["size"],
        }
        if job.ended_at is not None:
            data["completed_at"] = job.ended_at
        if job.state is JobState.FAILED:
            data["error"] = {"message": why, "code": job.why}
        if job.state is JobState.DONE:
            data["metadata"] = {"url": self.file_url(job, call)}
        return data
