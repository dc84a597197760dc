"""
The OpenAI Videos words, in the dialects of OpenAI, vLLM-Omni and SGLang-diffusion.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vidrelay.simulator.engine import Engine, Job, JobState, Turned
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Call

_PATH = re.compile(r"/v1/videos(?:/([^/]+)(/content)?)?/?")
_SIGNED = re.compile(r"/files/([^/]+)/([0-9]{1,2})\.mp4")
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


@dataclass(frozen=True, slots=True)
class OpenAiWords:
    """
    `/v1/videos`, in the dialect that the engine's options name.
    """

    engine: Engine

    @property
    def dialect(self) -> str:
        """
        Whose dialect it speaks.
        """
        return self.engine.options.dialect

    def route(self, method: str, path: str) -> tuple[Place, str | None, bool] | None:
        """
        Which call that is; a signed address needs no key.
        """
        signed = _SIGNED.fullmatch(path)
        if signed and method == "GET":
            return Place.CONTENT, f"{signed[1]}/{signed[2]}", True
        found = _PATH.fullmatch(path)
        if not found:
            return None
        job_id, content = found[1], found[2]
        if job_id is None:
            place = {"POST": Place.CREATE, "GET": Place.LIST}.get(method)
        elif content:
            place = {"GET": Place.CONTENT}.get(method)
        else:
            place = {"GET": Place.POLL, "DELETE": Place.DELETE}.get(method)
        return (place, job_id, False) if place else None

    def key(self, headers: Mapping[str, str]) -> str | None:
        """
        The bearer token.
        """
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return key.strip() or None if scheme.lower() == "bearer" else None

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        match call.place:
            case Place.CREATE:
                return self._create(call)
            case Place.LIST:
                return self._list(call)
            case Place.CONTENT if call.open:
                return self._signed(call)
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

    def turned(self, turned: Turned) -> Answer:
        """
        Say 429 for the rate or the window.
        """
        if turned.why == "busy":
            return self.error(429, "Too many videos are running for this key.", code="concurrency_limit_exceeded")
        return self.error(429, "Rate limit reached for requests.", code="rate_limit_exceeded")

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

    def word(self, data: Any, word: str) -> Any:
        """
        Another status word.
        """
        return {**data, "status": word} if isinstance(data, dict) else data

    def identity(self, data: Any, job_id: str | None) -> Any:
        """
        Another id, or none.
        """
        if not isinstance(data, dict):
            return data
        rest = {name: value for name, value in data.items() if name != "id"}
        return rest if job_id is None else {**rest, "id": job_id}

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
                return self.error(400, f"The video is in cloud storage: {self._address(job, 0, call.host)}")
            index = variant or "0"
            if not (index.isascii() and index.isdigit() and int(index) < _outputs(job)):
                return self.error(404, f"There is no variant {variant!r}.")
            return Answer(clip=job, index=int(index), job=job)
        if variant not in (None, "video"):
            return self.error(400, f"The simulator has no variant {variant!r}.")
        return Answer(clip=job, job=job)

    def _signed(self, call: Call) -> Answer:
        job_id, _, index = (call.job_id or "").partition("/")
        job = self.engine.jobs.get(job_id)
        until = call.query.get("expires", "")
        if job is None or job.state is not JobState.DONE or call.query.get("sig") != self._signature(job, index, until):
            return Answer(status=403, data={"message": "The signature does not match."})
        if self.engine.now() > float(until):
            return Answer(status=403, data={"message": "Request has expired."}, job=job)
        return Answer(clip=job, index=int(index), job=job)

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
                data |= self._places(job, call.host) if done else {"url": None, "file_path": None}
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

    def _places(self, job: Job, host: str) -> dict[str, Any]:
        count = _outputs(job)
        if self.engine.options.url_seconds is None:
            paths = [f"outputs/{job.id}_{index}.mp4" for index in range(count)]
            return {"url": None, "file_path": paths[0], "file_paths": paths}
        urls = [self._address(job, index, host) for index in range(count)]
        return {"url": urls[0], "urls": urls, "file_path": None}

    def _address(self, job: Job, index: int, host: str) -> str:
        until = f"{self.engine.now() + (self.engine.options.url_seconds or 0.0):.3f}"
        return f"http://{host}/files/{job.id}/{index}.mp4?expires={until}&sig={self._signature(job, str(index), until)}"

    def _signature(self, job: Job, index: str, until: str) -> str:
        return hashlib.sha256(f"{self.engine.options.seed}:{job.id}:{index}:{until}".encode()).hexdigest()[:32]


def _outputs(job: Job) -> int:
    """
    How many clips a job gives: SGLang's `n` or `num_outputs_per_prompt`, else one.
    """
    asked = job.fields.get("num_outputs_per_prompt") or job.fields.get("n") or "1"
    return min(10, int(asked)) if asked.isascii() and asked.isdigit() and int(asked) > 0 else 1
