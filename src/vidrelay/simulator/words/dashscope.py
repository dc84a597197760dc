"""
DashScope's words: `/api/v1`, creates that must ask to be asynchronous, tasks that are forgotten after a day.
"""

import re
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import uuid
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_CHINA = timezone(timedelta(hours=8))
_SERVICE = re.compile(r"/api/v1/services/aigc/(video-generation|image2video)/video-synthesis")
_TASK = re.compile(r"/api/v1/tasks/([^/]+)(/cancel)?")
_BUCKET = "/simulated-bucket"
_STATES = {
    JobState.WAITING: "PENDING",
    JobState.WORKING: "RUNNING",
    JobState.DONE: "SUCCEEDED",
    JobState.FAILED: "FAILED",
    JobState.STOPPED: "CANCELED",
}
_CODES = {"moderation_blocked": "DataInspectionFailed", "generation_failed": "InternalError"}
_REFUSALS = {
    Why.INVALID: (400, "InvalidParameter"),
    Why.AUTH: (401, "InvalidApiKey"),
    Why.RATE: (429, "Throttling.RateQuota"),
    Why.BUSY: (429, "Throttling.AllocationQuota"),
    Why.BALANCE: (400, "Arrearage"),
    Why.MODERATED: (400, "DataInspectionFailed"),
    Why.NOT_FOUND: (404, "NotFound"),
    Why.SERVER: (500, "InternalError"),
}
_STATUSES = {
    "InvalidApiKey": 401,
    **dict.fromkeys(("AccessDenied", "AccessDenied.Unpurchased", "Model.AccessDenied"), 403),
    **dict.fromkeys(("Model.NotExist", "ModelNotFound"), 404),
    **dict.fromkeys(("Throttling", "Throttling.RateQuota", "Throttling.AllocationQuota"), 429),
    "InternalError": 500,
    "ServiceUnavailable": 503,
    "GatewayTimeout": 504,
}
_DAY = 24 * 3600.0
_NAMED = ("img_url", "first_frame_url", "last_frame_url")
_LISTS = ("reference_urls", "reference_video_urls")


class DashScopeWords(Words):
    """
    Tasks and files are kept for a day; a task that is not known has the status UNKNOWN, with HTTP 200.
    """

    DEFAULTS = MappingProxyType({"keep_seconds": _DAY, "url_seconds": _DAY})
    STATUS_AT = ("output", "task_status")
    ID_AT = ("output", "task_id")

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        # The SDK's asynchronous class ends its paths with a slash.
        path = asked.path.rstrip("/")
        service, task = _SERVICE.fullmatch(path), _TASK.fullmatch(path)
        match asked.method, path:
            case "POST", _ if service:
                return Route(place=Place.CREATE, what=service[1])
            case "GET", "/api/v1/tasks":
                return Route(place=Place.LIST)
            case "GET", "/api/v1/uploads":
                return Route(place=Place.UPLOAD, what="policy")
            case "POST", one if one == _BUCKET:
                return Route(place=Place.UPLOAD, what="form", open=True)
            case "GET", _ if task and not task[2]:
                return Route(place=Place.POLL, job_id=task[1])
            case "POST", _ if task and task[2]:
                return Route(place=Place.DELETE, job_id=task[1])
            case _:
                return None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"code", "message", "request_id"}`.
        """
        status, code = _REFUSALS[why] if isinstance(why, Why) else (_STATUSES.get(why, 400), why)
        return Answer(status=status, data={"code": code, "message": message, "request_id": "r-1"})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        match call.place:
            case Place.CREATE:
                return self._create(call)
            case Place.LIST:
                return self._list(call)
            case Place.UPLOAD:
                return self._upload(call)
        job = self.engine.find(call.key, call.job_id or "")
        if call.place is Place.POLL:
            return Answer(data=self._status(job, call), job=job)
        if job is None or job.state is not JobState.WAITING:
            return self.refuse("UnsupportedOperation", "The task is not PENDING and cannot be canceled.")
        self.engine.cancel(job)
        return Answer(data={"request_id": "r-1"}, job=job)

    def _create(self, call: Call) -> Answer:
        if call.headers.get("x-dashscope-async") != "enable":
            return self.refuse("AccessDenied", "current user api does not support synchronous calls.")
        body = call.data or {}
        told: dict[str, Any] = body.get("input") or {}
        model = body.get("model") or ""
        media = [one for one in told.get("media") or [] if isinstance(one, dict)]
        urls = [told[name] for name in _NAMED if told.get(name)]
        urls += [url for name in _LISTS for url in told.get(name) or []]
        urls += [one.get("url") for one in media]
        kinds = {str(one.get("type")).partition("_")[0] for one in media}
        if not model or ("kf2v" in model) != (call.what == "image2video") or kinds >= {"first", "reference"}:
            return self.refuse(Why.INVALID, "the model, its service or its input are not as they must be")
        if not told.get("prompt") and not urls:
            return self.refuse(Why.INVALID, "a prompt or a picture is needed")
        stored = [url for url in urls if str(url).startswith("oss://")]
        if stored and call.headers.get("x-dashscope-ossresourceresolve") != "enable":
            return self.refuse("InvalidParameter.DataInspection", "an oss:// address is not resolved unless asked for")
        asked = body.get("parameters") or {}
        fields = {"prompt": told.get("prompt") or "", "model": model, "seconds": str(float(asked.get("duration", 5)))}
        job = self.engine.create(call.key, fields, pictures=len(urls), data=body, shape=uuid)
        return Answer(data={"request_id": "r-1", "output": {"task_id": job.id, "task_status": "PENDING"}}, job=job)

    def _status(self, job: Job | None, call: Call) -> dict[str, Any]:
        if job is None:
            return {"request_id": "r-1", "output": {"task_id": call.job_id, "task_status": "UNKNOWN"}}
        told: dict[str, Any] = {"task_id": job.id, "task_status": _STATES[job.state], **self._times(job)}
        if not job.unended:
            told["orig_prompt"] = job.fields["prompt"]
        answer: dict[str, Any] = {"request_id": "r-1", "output": told}
        if job.state is JobState.DONE:
            told["video_url"] = self.file_url(job, call)
            answer["usage"] = {"video_count": 1, "video_duration": float(job.fields["seconds"]), "video_ratio": "16:9"}
        if job.state is JobState.FAILED:
            told |= {"code": _CODES.get(job.why or "", job.why), "message": "The task failed."}
        return answer

    def _times(self, job: Job) -> dict[str, str]:
        told = {"submit_time": job.created, "scheduled_time": job.started, "end_time": job.ended}
        return {name: self._china(at) for name, at in told.items() if at is not None}

    def _china(self, at: float) -> str:
        instant = datetime.fromtimestamp(self.engine.wall(at), _CHINA)
        return f"{instant:%Y-%m-%d %H:%M:%S}.{instant.microsecond // 1000:03d}"

    def _list(self, call: Call) -> Answer:
        query, rows = call.query, []
        for job in self.engine.listed(call.key):
            made = re.sub(r"\D", "", self._china(job.created))[:14]
            if not query.get("start_time", "") <= made <= query.get("end_time", "9"):
                continue
            row = {"task_id": job.id, "task_status": _STATES[job.state], "model_name": job.fields["model"]}
            rows.append({**row, "status": row["task_status"], **self._times(job)})
        for name in ("model_name", "status"):
            rows = [row for row in rows if query.get(name, row[name]) == row[name]]
        page, size = int(query.get("page_no", "1")), int(query.get("page_size", "10"))
        shown = rows[(page - 1) * size : page * size]
        # Which of the two names the rows have is not known, so they have both.
        told = {"request_id": "r-1", "page_no": page, "page_size": size, "total": len(rows)}
        return Answer(data={**told, "data": shown, "tasks": shown})

    def _upload(self, call: Call) -> Answer:
        if call.what == "form":
            whole = call.pictures == 1 and call.fields.get("policy") == "simulated" and call.fields.get("key")
            return Answer(status=200 if whole else 403)
        if call.query.get("action") != "getPolicy" or not call.query.get("model"):
            return self.refuse(Why.INVALID, "an action and a model are needed")
        policy = {
            "policy": "simulated",
            "signature": "simulated",
            "upload_dir": "dashscope-instant/simulated",
            "upload_host": f"http://{call.host}{_BUCKET}",
            "expire_in_seconds": 300,
            "max_file_size_mb": 100,
            "oss_access_key_id": "simulated",
            "x_oss_object_acl": "private",
            "x_oss_forbid_overwrite": "true",
        }
        return Answer(data={"request_id": "r-1", "data": policy})
