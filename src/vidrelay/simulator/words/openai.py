"""
The OpenAI Videos words, in the dialects of OpenAI, vLLM-Omni and SGLang-diffusion.
"""

import math
import re
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_PATH = re.compile(r"/v1/videos(?:/([^/]+)(/content)?)?/?")
_STATUS = {
    JobState.WAITING: "queued",
    JobState.WORKING: "in_progress",
    JobState.DONE: "completed",
    JobState.FAILED: "failed",
    JobState.STOPPED: "failed",
}
_REASONS = {
    "moderation_blocked": "Your request was blocked by our moderation system.",
    "generation_failed": "The video could not be generated.",
}
_MAX_PROMPT = 32_000
_REFUSALS = {
    Why.INVALID: (400, None),
    Why.AUTH: (401, "invalid_api_key"),
    Why.RATE: (429, "rate_limit_exceeded"),
    Why.BUSY: (429, "concurrency_limit_exceeded"),
    Why.BALANCE: (429, "insufficient_quota"),
    Why.MODERATED: (400, "moderation_blocked"),
    Why.NOT_FOUND: (404, None),
    Why.SERVER: (500, None),
}


class OpenAiWords(Words):
    """
    `/v1/videos`, in the dialect that the engine's options name.
    """

    @property
    def dialect(self) -> str:
        """
        Whose dialect it speaks.
        """
        return self.engine.options.dialect

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        found = _PATH.fullmatch(asked.path)
        if not found:
            return None
        job_id, content = found[1], found[2]
        if job_id is None:
            place = {"POST": Place.CREATE, "GET": Place.LIST}.get(asked.method)
        elif content:
            place = {"GET": Place.CONTENT}.get(asked.method)
        else:
            place = {"GET": Place.POLL, "DELETE": Place.DELETE}.get(asked.method)
        return Route(place=place, job_id=job_id) if place else None

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
            return self.error(404, f"Video with id '{call.job_id}' not found.", code="not_found")
        match call.place:
            case Place.POLL:
                return self._poll(job, call)
            case Place.DELETE:
                return self._delete(job, call)
            case _:
                return self._content(job, call)

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        The reason as OpenAI's gateways tell it.
        """
        status, code = _REFUSALS[why] if isinstance(why, Why) else (400, why)
        return self.error(status, message, code=code)

    def error(self, status: int, message: str, *, code: str | None = None) -> Answer:
        """
        `{"error": …}` as OpenAI says it, `{"detail": …}` as the local servers do.
        """
        if self.dialect == "openai":
            kind = "server_error" if status >= 500 else "invalid_request_error"
            return Answer(
                status=status, data={"error": {"message": message, "type": kind, "param": None, "code": code}}
            )
        return Answer(status=status, data={"detail": message if code is None else f"{code}: {message}"})

    def _create(self, call: Call) -> Answer:
        prompt = call.fields.get("prompt", "")
        if not prompt or len(prompt) > _MAX_PROMPT:
            return self.error(400 if self.dialect == "openai" else 422, "prompt is missing or too long.")
        size = call.fields.get("size", "720x1280")
        if not re.fullmatch(r"[1-9][0-9]{1,4}x[1-9][0-9]{1,4}", size):
            return self.error(400 if self.dialect == "openai" else 422, f"size {size!r} is not valid.")
        fields = {"model": "sora-2", "seconds": "4", **call.fields, "size": size}
        job = self.engine.create(call.key, fields, pictures=call.pictures)
        return Answer(data=self._job(job, call), job=job)

    def _poll(self, job: Job, call: Call) -> Answer:
        data = self._job(job, call)
        failed = job.state is JobState.FAILED
        if failed and self.dialect == "vllm-omni":
            # It answers a failed job's status with an error code and the whole job as the body.
            return Answer(status=data["error"]["code"], data=data, job=job)
        return Answer(data=data, job=job)

    def _list(self, call: Call) -> Answer:
        default, lowest = (20, 1) if self.dialect == "sglang" else (20, 0)
        asked = call.query.get("limit", str(default))
        if not (asked.isascii() and asked.isdigit() and lowest <= int(asked) <= 100):
            return self.error(400 if self.dialect == "openai" else 422, f"limit must be from {lowest} to 100.")
        jobs = self.engine.listed(call.key)
        if call.query.get("order", "desc") == "asc":
            jobs.reverse()
        after = call.query.get("after")
        ids = [job.id for job in jobs]
        if after in ids:
            jobs = jobs[ids.index(after) + 1 :]
        page = jobs[: int(asked)]
        data: dict[str, Any] = {"object": "list", "data": [self._job(job, call) for job in page]}
        if self.dialect != "sglang":
            data["first_id"] = page[0].id if page else None
            data["last_id"] = page[-1].id if page else None
            data["has_more"] = len(jobs) > len(page)
        return Answer(data=data)

    def _content(self, job: Job, call: Call) -> Answer:
        variant = call.query.get("variant")
        if job.state is JobState.FAILED and self.dialect == "vllm-omni":
            return self.error(422, "Video generation failed.")
        if job.state is not JobState.DONE:
            return self.error(404, "Video is not ready.", code="not_ready")
        if self.dialect == "sglang":
            if self.engine.options.url_seconds is not None:
                return self.error(400, f"The video is in cloud storage: {self.file_url(job, call)}")
            index = variant or "0"
            if not (index.isascii() and index.isdigit() and int(index) < _outputs(job)):
                return self.error(404, f"There is no variant {variant!r}.")
            return Answer(clip=job, index=int(index), job=job)
        if variant not in (None, "video"):
            return self.error(400, f"The simulator has no variant {variant!r}.")
        return Answer(clip=job, job=job)

    def _delete(self, job: Job, call: Call) -> Answer:
        told = {"id": job.id, "object": "video.deleted", "deleted": True}
        match self.dialect:
            case "vllm-omni":
                self.engine.stop(job)
                return Answer(data=told, job=job)
            case "sglang":
                data = {**self._job(job, call), "status": "deleted"}
                job.hidden = True
                return Answer(data=data, job=job)
            case _ if job.unended:
                return self.error(400, "The video is still being made; only finished ones can be deleted.")
            case _:
                self.engine.stop(job)
                return Answer(data=told, job=job)

    def _job(self, job: Job, call: Call) -> dict[str, Any]:
        done = job.state is JobState.DONE
        kept = self.engine.options.keep_seconds
        data: dict[str, Any] = {
            "id": job.id,
            "object": "video",
            "model": job.fields["model"],
            "status": _STATUS[job.state],
            "progress": self._progress(job),
            "created_at": job.created_at,
            "completed_at": job.ended_at if done else None,
            "expires_at": math.ceil((job.ended_at or 0) + (kept or 3600)) if done else None,
            "prompt": job.fields["prompt"],
            "seconds": job.fields["seconds"],
            "size": job.fields["size"],
            "error": self._error_of(job),
        }
        worked = round((job.ended or 0.0) - (job.started or 0.0), 3) if done else None
        match self.dialect:
            case "vllm-omni":
                data |= {"media_type": "video/mp4", "file_name": f"{job.id}.mp4" if done else None}
                data |= {"inference_time_s": worked, "peak_memory_mb": 0.0}
            case "sglang":
                data |= self._places(job, call) if done else {"url": None, "file_path": None}
                data |= {"num_outputs": _outputs(job), "inference_time_s": worked}
            case _:
                data["remixed_from_video_id"] = None
        return data

    def _error_of(self, job: Job) -> dict[str, Any] | None:
        if job.state is not JobState.FAILED:
            return None
        message = _REASONS[job.why or "generation_failed"]
        match self.dialect:
            case "vllm-omni":
                return {"code": 400 if job.why == "moderation_blocked" else 500, "message": message}
            case "sglang":
                return {"message": message}
            case _:
                return {"code": job.why, "message": message}

    def _progress(self, job: Job) -> int:
        if job.state is JobState.DONE:
            return 100
        if job.started is None or self.dialect == "vllm-omni" or not job.run_seconds:
            return 0
        until = self.engine.now() if job.ended is None else job.ended
        return max(0, min(99, int((until - job.started) / job.run_seconds * 100)))

    def _places(self, job: Job, call: Call) -> dict[str, Any]:
        count = _outputs(job)
        if self.engine.options.url_seconds is None:
            paths = [f"outputs/{job.id}_{index}.mp4" for index in range(count)]
            return {"url": None, "file_path": paths[0], "file_paths": paths}
        urls = [self.file_url(job, call, index) for index in range(count)]
        return {"url": urls[0], "urls": urls, "file_path": None}


def _outputs(job: Job) -> int:
    """
    How many clips a job gives: SGLang's `n` or `num_outputs_per_prompt`, else one.
    """
    asked = job.fields.get("num_outputs_per_prompt") or job.fields.get("n") or "1"
    return min(10, int(asked)) if asked.isascii() and asked.isdigit() and int(asked) > 0 else 1
