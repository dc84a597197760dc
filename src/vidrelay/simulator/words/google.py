"""
Google's words: `/v1beta/models/{model}:predictLongRunning` (Veo) and `/v1beta/interactions` (Omni).
"""

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import CLIP, Answer, Asked, Call, Route, Why, Words, iso

_V = r"/v1(?:beta)?"
_ROUTES = (
    (Place.CREATE, "POST", "veo", re.compile(rf"{_V}/models/([^/:]+):predictLongRunning")),
    (Place.POLL, "GET", "veo", re.compile(rf"{_V}/(models/[^/]+/operations/[^/]+)")),
    (Place.CREATE, "POST", "omni", re.compile(rf"{_V}/(interactions)")),
    (Place.POLL, "GET", "omni", re.compile(rf"{_V}/interactions/([^/]+)")),
    (Place.DELETE, "POST", "cancel", re.compile(rf"{_V}/interactions/([^/]+)/cancel")),
    (Place.DELETE, "DELETE", "forget", re.compile(rf"{_V}/interactions/([^/]+)")),
    (Place.CONTENT, "GET", "download", re.compile(rf"{_V}/files/([^/:]+):download")),
    (Place.ACCOUNT, "GET", "models", re.compile(rf"{_V}/(models)")),
)
_FILES = "https://generativelanguage.googleapis.com/v1beta/files/"
_STATES = {
    JobState.WAITING: "queued",
    JobState.WORKING: "in_progress",
    JobState.DONE: "completed",
    JobState.FAILED: "failed",
    JobState.STOPPED: "cancelled",
}
_STATUSES = {
    "INVALID_ARGUMENT": (400, 3),
    "FAILED_PRECONDITION": (400, 9),
    "UNAUTHENTICATED": (401, 16),
    "PERMISSION_DENIED": (403, 7),
    "NOT_FOUND": (404, 5),
    "RESOURCE_EXHAUSTED": (429, 8),
    "CANCELLED": (499, 1),
    "INTERNAL": (500, 13),
    "UNAVAILABLE": (503, 14),
    "DEADLINE_EXCEEDED": (504, 4),
}
_REFUSALS = {
    Why.INVALID: "INVALID_ARGUMENT",
    Why.AUTH: "INVALID_ARGUMENT",
    Why.RATE: "RESOURCE_EXHAUSTED",
    Why.BUSY: "RESOURCE_EXHAUSTED",
    Why.BALANCE: "RESOURCE_EXHAUSTED",
    Why.MODERATED: "INVALID_ARGUMENT",
    Why.NOT_FOUND: "NOT_FOUND",
    Why.SERVER: "INTERNAL",
}
_RPC = "type.googleapis.com/google.rpc"
_DETAILS: dict[Why, list[dict[str, Any]]] = {
    Why.AUTH: [{"@type": f"{_RPC}.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
    Why.RATE: [{"@type": f"{_RPC}.RetryInfo", "retryDelay": "7.5s"}],
    Why.BALANCE: [
        {"@type": f"{_RPC}.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}
    ],
}
_MESSAGES = {
    Why.AUTH: "API key not valid. Please pass a valid API key.",
    Why.BALANCE: "You exceeded your current quota, please check your plan and billing details.",
    Why.MODERATED: "The prompt could not be submitted: it contains words that violate Google's usage guidelines.",
}
_REASON = "The video was not made because its prompt goes against the usage guidelines."


class GoogleWords(Words):
    """
    Operations and interactions of one key side by side. Files are kept for two days.
    """

    DEFAULTS = MappingProxyType({"keep_seconds": 172_800.0})

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        for place, method, what, pattern in _ROUTES:
            found = pattern.fullmatch(asked.path)
            if found and asked.method == method:
                return Route(place=place, job_id=found[1], what=what)
        return None

    def key(self, asked: Asked) -> str | None:
        """
        `x-goog-api-key`, or `?key=`.
        """
        return asked.headers.get("x-goog-api-key") or asked.query.get("key")

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"code", "message", "status", "details"}}`.
        """
        status = _REFUSALS[why] if isinstance(why, Why) else why
        number = _STATUSES.get(status, (400, 3))[0]
        error: dict[str, Any] = {"code": number, "message": message, "status": status}
        if isinstance(why, Why):
            error |= {"message": _MESSAGES.get(why, message), "details": _DETAILS.get(why, [])}
        return Answer(status=number, data={"error": error})

    def identity(self, data: Any, job_id: str | None) -> Any:
        """
        An operation has a name, an interaction an id.
        """
        if not isinstance(data, dict):
            return data
        name = "id" if "id" in data else "name"
        left = {one: inner for one, inner in data.items() if one != name}
        return left if job_id is None else {**left, name: job_id}

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        answer = self._answer(call)
        error = answer.data.get("error") if isinstance(answer.data, dict) else None
        if call.what in ("omni", "cancel", "forget") and answer.status >= 400 and error:
            # What stands before the interactions tells numbers, as for Veo; they themselves tell words.
            told = {"code": error["status"].lower(), "message": error["message"]}
            return replace(answer, data={"error": told})
        return answer

    def _answer(self, call: Call) -> Answer:
        if call.place is Place.CREATE:
            return self._veo(call) if call.what == "veo" else self._omni(call)
        if call.place is Place.ACCOUNT:
            return Answer(data={"models": [{"name": "models/veo-3.1-generate-preview"}]})
        if call.place is Place.CONTENT:
            return self._download(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "Requested entity was not found.")
        if call.what == "veo":
            return Answer(data=_operation(job), job=job)
        if call.what == "cancel" and not job.unended:
            return self.refuse("FAILED_PRECONDITION", "The interaction has ended already.")
        if call.what == "cancel":
            self.engine.cancel(job)
        if call.what == "forget":
            job.hidden = True
            return Answer(data={}, job=job)
        return self._interaction(job)

    def inline(self, answer: Answer) -> Answer:
        """
        What is done, with its clip in it.
        """
        job = answer.job
        if job is not None and job.state is JobState.DONE and isinstance(answer.data, dict) and "name" in answer.data:
            return Answer(data=_operation(job, inline=True), job=job, clip=job)
        shows = job is not None and isinstance(answer.data, dict) and "steps" in answer.data
        return self._interaction(job, inline=True) if job is not None and shows else answer

    def _veo(self, call: Call) -> Answer:
        body, model = call.data or {}, call.job_id or ""
        instances, asked = body.get("instances") or [{}], body.get("parameters") or {}
        instance = instances[0]
        shown = [instance.get("image"), instance.get("lastFrame")]
        shown += [one.get("image") for one in instance.get("referenceImages") or ()]
        images = [one for one in shown if one]
        if not model.startswith("veo-") or not instance.get("prompt") or len(instances) != 1:
            return self.refuse(Why.INVALID, "model, instances or prompt is not as it must be")
        if asked.get("durationSeconds", 8) not in (4, 6, 8) or asked.get("aspectRatio", "16:9") not in ("16:9", "9:16"):
            return self.refuse(Why.INVALID, "durationSeconds or aspectRatio is not as it must be")
        if not all(one.get("bytesBase64Encoded") and one.get("mimeType") for one in images):
            return self.refuse(Why.INVALID, "an image must have bytesBase64Encoded and mimeType")
        fields = {"prompt": instance["prompt"], "model": model, "seconds": str(asked.get("durationSeconds", 8))}
        job = self.engine.create(
            call.key,
            fields,
            pictures=len(images),
            data=body,
            shape=lambda drawn: f"models/{model}/operations/{drawn[:12]}",
        )
        return Answer(data={"name": job.id}, job=job)

    def _omni(self, call: Call) -> Answer:
        body = call.data or {}
        given, wanted = body.get("input"), body.get("response_format") or {}
        contents = [{"type": "text", "text": given}] if isinstance(given, str) else _contents(given or [])
        prompt = " ".join(one.get("text", "") for one in contents if one.get("type") == "text")
        images = [one for one in contents if one.get("type") == "image"]
        if not str(body.get("model", "")).startswith("gemini-omni") or not prompt:
            return self.refuse(Why.INVALID, "model or input is not as it must be")
        if wanted.get("type") != "video" or not re.fullmatch(r"[0-9]{1,2}s", wanted.get("duration", "4s")):
            return self.refuse(Why.INVALID, "response_format is not as it must be")
        if not all(one.get("uri") or (one.get("data") and one.get("mime_type")) for one in images):
            return self.refuse(Why.INVALID, "an image must have a uri, or data and mime_type")
        fields = {
            "prompt": prompt,
            "model": body["model"],
            "seconds": wanted.get("duration", "4s").removesuffix("s"),
        }
        job = self.engine.create(
            call.key, fields, pictures=len(images), data=body, shape=lambda drawn: f"v1_{drawn[:40]}"
        )
        return self._interaction(job)

    def _interaction(self, job: Job, *, inline: bool = False) -> Answer:
        at = job.ended_at if job.ended_at is not None else self.engine.wall(self.engine.now())
        told: dict[str, Any] = {
            "id": job.id,
            "object": "interaction",
            "model": job.fields["model"],
            "status": _STATES[job.state],
            "created": iso(job.created_at),
            "updated": iso(at),
        }
        if "labels" in job.data:
            told["labels"] = job.data["labels"]
        if job.state is JobState.FAILED:
            moderated = job.why == "moderation_blocked"
            code, message = ("INVALID_ARGUMENT", _REASON) if moderated else (_status_of(job), "It could not be made.")
            told["errors"] = [{"code": code.lower(), "message": message}]
        if job.state is not JobState.DONE:
            return Answer(data=told, job=job)
        video: dict[str, Any] = {"type": "video", "mime_type": "video/mp4"}
        inline = inline or job.data["response_format"].get("delivery") != "uri"
        video |= {"data": CLIP} if inline else {"uri": f"{_FILES}{_file_id(job)}:download?alt=media"}
        told["steps"] = [{"type": "model_output", "content": [video]}]
        return Answer(data=told, job=job, clip=job if inline else None)

    def _download(self, call: Call) -> Answer:
        job = next((one for one in self.engine.jobs.values() if _file_id(one) == call.job_id), None)
        if job is None or job.key != call.key or job.state is not JobState.DONE:
            return self.refuse("PERMISSION_DENIED", "You do not have permission to access the File.")
        return Answer(clip=job, job=job)


def _contents(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """
    The contents themselves, given so or as a user's step.
    """
    return [one for step in given for one in (step["content"] if step.get("type") == "user_input" else [step])]


def _operation(job: Job, *, inline: bool = False) -> dict[str, Any]:
    told: dict[str, Any] = {"name": job.id, "metadata": {"@type": "type.googleapis.com/x"}}
    if job.unended:
        return told
    if job.state is not JobState.DONE and job.why != "moderation_blocked":
        status = _status_of(job)
        error = {"code": _STATUSES[status][1], "message": "The video could not be made."}
        return {**told, "done": True, "error": error}
    made: dict[str, Any] = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": [_REASON]}
    if job.state is JobState.DONE:
        address = {"uri": f"{_FILES}{_file_id(job)}:download?alt=media"}
        shown = {"encodedVideo": CLIP, "encoding": "video/mp4"} if inline else address
        made = {"generatedSamples": [{"video": shown}]}
    return {**told, "done": True, "response": {"@type": "type.googleapis.com/x", "generateVideoResponse": made}}


def _status_of(job: Job) -> str:
    return job.why if job.why in _STATUSES else "INTERNAL"


def _file_id(job: Job) -> str:
    return job.id.rpartition("/")[2].removeprefix("v1_")[:12]
