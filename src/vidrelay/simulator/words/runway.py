"""
Runway's words: `/v1/text_to_video` and the other creates, `/v1/tasks`, `/v1/organization`, `/v1/uploads`.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import uuid
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words, iso

_CREATE = re.compile(r"/v1/(text_to_video|image_to_video|video_to_video|video_upscale|character_performance)")
_TASK = re.compile(r"/v1/tasks/([^/]+)")
_STORAGE = "/upload-storage"
_VERSION = "2024-11-06"
_FAILURES = {"moderation_blocked": "SAFETY.OUTPUT.VIDEO", "generation_failed": "INTERNAL"}
_REFUSALS = {
    Why.INVALID: 400,
    Why.AUTH: 401,
    Why.RATE: 429,
    Why.BUSY: 429,
    Why.BALANCE: 400,
    Why.MODERATED: 400,
    Why.NOT_FOUND: 404,
    Why.SERVER: 502,
}
_TEXTS = {
    Why.RATE: "Too many requests.",
    Why.BALANCE: "You do not have enough credits to run this task.",
    Why.MODERATED: "Validation of body failed",
}
_USUAL = {"model", "promptText", "ratio", "duration"}
_REFERENCES = {"references", "referenceVideos", "referenceAudio"}
_SEEDANCE = {*_USUAL, *_REFERENCES, "audio", "seed"}
_CLOSED = {
    "hailuo3": {*_USUAL, *_REFERENCES, "resolution"},
    "happyhorse_1_0": {*_USUAL, "resolution"},
    **dict.fromkeys(("seedance2", "seedance2_fast", "seedance2_mini"), _SEEDANCE),
    "seedance2_5": {*_SEEDANCE, "draft", "draftTaskId", "outputFormat"},
}
"""What the models whose schema is closed take, but for the first frame."""
_DAILY = ((1, 50), (3, 500), (5, 1000), (10, 5000))
_CANCELLED_SHOWN_SECONDS = 60.0


class RunwayWords(Words):
    """
    One task of a model at work, as in the first tier, and 50 a day; more are taken, and are `THROTTLED`.
    """

    DEFAULTS = MappingProxyType({"workers": 1})

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        created = _CREATE.fullmatch(asked.path)
        if created and asked.method == "POST":
            return Route(place=Place.CREATE, what=created[1])
        task = _TASK.fullmatch(asked.path)
        if task and asked.method in ("GET", "DELETE"):
            return Route(place=Place.POLL if asked.method == "GET" else Place.DELETE, job_id=task[1])
        if asked.method == "POST" and asked.path in ("/v1/uploads", _STORAGE):
            stored = asked.path == _STORAGE
            return Route(place=Place.UPLOAD, what="storage" if stored else "upload", open=stored)
        return Route(place=Place.ACCOUNT) if (asked.method, asked.path) == ("GET", "/v1/organization") else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error", "docUrl"}`; there are no codes, so a text of digits is a status.
        """
        status = _REFUSALS[why] if isinstance(why, Why) else int(why)
        text = _TEXTS.get(why, message) if isinstance(why, Why) else message
        return Answer(status=status, data={"error": text, "docUrl": "https://docs.dev.runwayml.com"})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        if call.what == "storage":
            return Answer(status=204) if call.pictures else self.refuse(Why.INVALID, "file is missing")
        if call.headers.get("x-runway-version") != _VERSION:
            return self.refuse(Why.INVALID, "The X-Runway-Version header is missing or not valid.")
        match call.place:
            case Place.CREATE:
                return self._create(call)
            case Place.ACCOUNT:
                return self._organization(call)
            case Place.UPLOAD:
                return self._upload(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None or (job.state is JobState.STOPPED and self._since(job) > _CANCELLED_SHOWN_SECONDS):
            return self.refuse(Why.NOT_FOUND, "Task not found.")
        return Answer(data=self._task(job, call), job=job) if call.place is Place.POLL else self._delete(job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        fault = _fault(body, call.what)
        if fault:
            issue = {"code": "invalid", "path": [fault], "message": f"{fault} is not as it must be"}
            told = self.refuse(Why.INVALID, "Validation of body failed")
            return Answer(status=told.status, data={**told.data, "issues": [issue]})
        model = str(body["model"])
        if self._made_today(call, model) >= self._daily():
            return self.refuse("429", "You have reached the daily limit of generations for this model.")
        size = str(body.get("ratio", "1280:720")).replace(":", "x")
        fields = {"model": model, "prompt": str(body.get("promptText", "")), "size": size}
        fields["seconds"] = str(body.get("duration", 5))
        frames = body.get("promptImage")
        pictures = (len(frames) if isinstance(frames, list) else 1 if frames else 0) + len(body.get("references") or [])
        pictures += len(_films(call.what, model))
        job = self.engine.create(call.key, fields, pictures=pictures, data=body, shape=uuid)
        return Answer(data={"id": job.id, "estimatedCost": {"credits": 60}}, job=job)

    def _task(self, job: Job, call: Call) -> dict[str, Any]:
        told = {"id": job.id, "createdAt": iso(self.engine.wall(job.created))}
        match job.state:
            case JobState.WAITING:
                status = "THROTTLED" if self._is_throttled(job) else "PENDING"
                return {**told, "status": status, "estimatedCost": {"credits": 60}}
            case JobState.WORKING:
                ran = self.engine.now() - (job.started or 0.0)
                progress = round(min(1.0, ran / job.run_seconds), 2) if job.run_seconds else 1.0
                return {**told, "status": "RUNNING", "progress": progress, "estimatedCost": {"credits": 60}}
            case JobState.DONE:
                return {**told, "status": "SUCCEEDED", "output": [self.file_url(job, call)], "cost": {"credits": 60}}
            case JobState.FAILED:
                code = _FAILURES.get(job.why or "", job.why)
                return {
                    **told,
                    "status": "FAILED",
                    "failure": "The task could not be completed.",
                    "failureCode": code,
                    "cost": {"credits": 0},
                }
            case _:
                # What had begun is charged.
                return {**told, "status": "CANCELLED", "cost": {"credits": 60 if job.started is not None else 0}}

    def _delete(self, job: Job) -> Answer:
        if job.unended:
            self.engine.cancel(job)
        elif job.hidden or job.state is JobState.STOPPED:
            return self.refuse(Why.NOT_FOUND, "Task not found.")
        else:
            job.hidden = True
        return Answer(status=204, job=job)

    def _is_throttled(self, job: Job) -> bool:
        """
        Whether as many of its model are before it as may be at work.
        """
        limit = self.engine.options.workers
        before = sum(
            one.unended
            and one.key == job.key
            and one.number < job.number
            and one.fields["model"] == job.fields["model"]
            for one in self.engine.jobs.values()
        )
        return limit is not None and before >= limit

    def _organization(self, call: Call) -> Answer:
        models = ("gen4.5", "gen4_turbo", "veo3.1", "veo3.1_fast", "seedance2", "hailuo3")
        limits = {"maxConcurrentGenerations": self.engine.options.workers, "maxDailyGenerations": self._daily()}
        told = {
            "creditBalance": 1000,
            "tier": {"maxMonthlyCreditSpend": 10_000, "models": dict.fromkeys(models, limits)},
            "usage": {"models": {name: {"dailyGenerations": self._made_today(call, name)} for name in models}},
        }
        return Answer(data=told)

    def _upload(self, call: Call) -> Answer:
        if not (call.data or {}).get("filename") or (call.data or {}).get("type") != "ephemeral":
            return self.refuse(Why.INVALID, "filename or type is missing")
        uri = f"runway://{len(self.engine.ledger.requests)}"
        return Answer(data={"uploadUrl": f"http://{call.host}{_STORAGE}", "fields": {"key": uri}, "runwayUri": uri})

    def _daily(self) -> int:
        at_once = self.engine.options.workers or 20
        return next((daily for most, daily in _DAILY if at_once <= most), 25_000)

    def _made_today(self, call: Call, model: str) -> int:
        since = self.engine.now() - 86_400
        return sum(
            job.key == call.key and job.fields["model"] == model and job.created >= since
            for job in self.engine.jobs.values()
        )

    def _since(self, job: Job) -> float:
        return self.engine.now() - (job.ended or 0.0)


def _films(call: str, model: str) -> tuple[str, ...]:
    """
    The fields of what a create is made from, where that is a film.
    """
    match call:
        case "video_to_video":
            return ("videoUri",) if "aleph" in model else ("promptVideo",)
        case "video_upscale":
            return ("videoUri",)
        case "character_performance":
            return ("character", "reference")
    return ()


def _is_film(value: Any) -> bool:
    """
    Whether that is an address, or an object that says what is at one.
    """
    uri = value.get("uri") if isinstance(value, dict) and value.get("type") in ("video", "image") else value
    return isinstance(uri, str) and uri.startswith(("https://", "data:", "runway://"))


def _fault(body: dict[str, Any], call: str) -> str | None:
    """
    The field that is wrong, None where none is.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        return "model"
    if call not in ("text_to_video", "image_to_video"):
        return next((name for name in _films(call, model) if not _is_film(body.get(name))), None)
    if (call == "image_to_video") != bool(body.get("promptImage")):
        return "promptImage"
    prompt = body.get("promptText")
    if not prompt and call == "text_to_video":
        return "promptText"
    if model.startswith(("gen4", "veo")) and len(str(prompt or "").encode("utf-16-le")) > 2000:
        return "promptText"
    if model.startswith(("gen4", "veo", "kling3", "klingO3")) and call == "text_to_video" and not body.get("ratio"):
        return "ratio"
    if model == "gen4.5" and body.get("duration") not in range(2, 11):
        return "duration"
    known = _CLOSED.get(model)
    unknown = set() if known is None else set(body) - known - {"promptImage"}
    return min(unknown, default=None)
