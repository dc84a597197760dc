"""
MiniMax's words: `/v1` for the Hailuo models, `/v2` for H3; one pretend provider speaks one of them.
"""

import re
from types import MappingProxyType
from typing import Any

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import digits
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_FINE = {"status_code": 0, "status_msg": "success"}
_STATES_V1 = {
    JobState.WAITING: "Queueing",
    JobState.WORKING: "Processing",
    JobState.DONE: "Success",
    JobState.FAILED: "Fail",
    JobState.STOPPED: "Fail",
}
_STATES_V2 = {
    JobState.WAITING: "queued",
    JobState.WORKING: "running",
    JobState.DONE: "succeeded",
    JobState.FAILED: "failed",
    JobState.STOPPED: "cancelled",
}
_CODES = {"moderation_blocked": "1027", "generation_failed": "1000"}
_REFUSALS_V1 = {
    Why.INVALID: (200, 2013),
    Why.AUTH: (200, 1004),
    Why.RATE: (200, 1002),
    Why.BUSY: (200, 1002),
    Why.BALANCE: (500, 1008),
    Why.MODERATED: (200, 1026),
    Why.NOT_FOUND: (200, 2013),
    Why.SERVER: (200, 1000),
}
_REFUSALS_V2 = {
    Why.INVALID: 400,
    Why.AUTH: 401,
    Why.RATE: 429,
    Why.BUSY: 429,
    Why.BALANCE: 402,
    Why.MODERATED: 422,
    Why.NOT_FOUND: 404,
    Why.SERVER: 500,
}
_KEPT = 7 * 24 * 3600.0


def _number(code: str, otherwise: int = 1000) -> int:
    return int(code) if code.isascii() and code.isdigit() else otherwise


class MiniMaxWords(Words):
    """
    V1: errors come with HTTP 200, the file's address by a second call. More jobs than can be worked on wait.
    """

    DEFAULTS = MappingProxyType({"url_seconds": 9 * 3600.0})
    STATUS_AT = ("status",)
    ID_AT = ("task_id",)

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        match asked.method, asked.path:
            case "POST", "/v1/video_generation":
                return Route(place=Place.CREATE)
            case "GET", "/v1/query/video_generation":
                return Route(place=Place.POLL, job_id=asked.query.get("task_id"))
            case "GET", "/v1/files/retrieve":
                # No poll, so that the ledger tells how often a task's status was asked for.
                return Route(place=Place.CONTENT, job_id=asked.query.get("file_id", "")[1:], what="retrieve")
            case _:
                return None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"base_resp": {"status_code", "status_msg"}}`, mostly with HTTP 200.
        """
        status, code = _REFUSALS_V1[why] if isinstance(why, Why) else (200, _number(why))
        return Answer(status=status, data={"base_resp": {"status_code": code, "status_msg": message}})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        if call.place is Place.CREATE:
            return self._create(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "invalid params, no such id")
        if call.what == "retrieve":
            file = {
                "file_id": int(f"2{job.id}"),
                "bytes": 0,
                "created_at": job.ended_at,
                "filename": "output_aigc.mp4",
                "purpose": "video_generation",
                "download_url": self.file_url(job, call),
            }
            return Answer(data={"file": file, "base_resp": _FINE}, job=job)
        done = job.state is JobState.DONE
        told: dict[str, Any] = {
            "task_id": job.id,
            "status": _STATES_V1[job.state],
            "file_id": f"2{job.id}" if done else "",
        }
        told |= {"video_width": 1366, "video_height": 768} if done else {}
        code = _CODES.get(job.why or "", job.why or "1000") if job.state is JobState.FAILED else None
        why = _FINE if code is None else {"status_code": _number(code), "status_msg": "it failed"}
        return Answer(data={**told, "base_resp": why}, job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        subjects = [one for group in body.get("subject_reference") or [] for one in group.get("image") or []]
        frames = [body[name] for name in ("first_frame_image", "last_frame_image") if body.get(name)]
        too_long = body.get("duration") == 10 and body.get("resolution") == "1080P"
        if not body.get("model") or (body["model"] == "S2V-01") != bool(subjects) or (subjects and frames) or too_long:
            return self.refuse(Why.INVALID, "invalid params")
        fields = {"prompt": body.get("prompt", ""), "model": body["model"], "seconds": str(body.get("duration", 6))}
        job = self.engine.create(
            call.key,
            fields,
            pictures=len(subjects) + len(frames),
            data=body,
            shape=digits("1", count=15),
        )
        return Answer(data={"task_id": job.id, "base_resp": _FINE}, job=job)


class MiniMaxV2Words(Words):
    """
    V2: a list of 7 days whose rows show no prompt, and a DELETE that stops what waits and erases what has ended.
    """

    DEFAULTS = MappingProxyType({"keep_seconds": _KEPT, "url_seconds": 24 * 3600.0})
    STATUS_AT = ("task", "status")
    ID_AT = ("task_id",)

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        task = re.fullmatch(r"/v2/(query/)?video_generation/([^/]+)", asked.path)
        match asked.method, asked.path:
            case "POST", "/v2/video_generation":
                return Route(place=Place.CREATE)
            case "POST", "/v1/files/upload":
                return Route(place=Place.UPLOAD)
            case "GET", "/v2/query/video_generation":
                return Route(place=Place.LIST)
            case "GET", _ if task and task[1]:
                return Route(place=Place.POLL, job_id=task[2])
            case "DELETE", _ if task and not task[1]:
                return Route(place=Place.DELETE, job_id=task[2])
            case _:
                return None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"message", "type", "http_code"}, "request_id"}`; an error code of its own is a status.
        """
        status = _REFUSALS_V2[why] if isinstance(why, Why) else _number(why, 400)
        told = {"message": message, "type": "api_error", "http_code": status}
        return Answer(status=status, data={"error": told, "request_id": "r-1"})

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
                if not call.pictures or call.fields.get("purpose") != "video_generation_input":
                    return self.refuse(Why.INVALID, "a file and its purpose are needed")
                return Answer(data={"file": {"file_id": 205258526306433, "bytes": 5}, "base_resp": _FINE})
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.INVALID, "invalid task_id")
        if call.place is Place.POLL:
            return Answer(data={"task": self._row(job, call)}, job=job)
        if job.state in (JobState.WORKING, JobState.STOPPED):
            return self.refuse(Why.INVALID, f"a task that is {_STATES_V2[job.state]} cannot be cancelled or deleted")
        waits = job.state is JobState.WAITING
        if waits:
            self.engine.cancel(job)
        else:
            self.engine.stop(job)
        return Answer(data={"task_id": job.id, "action": "cancelled" if waits else "deleted"}, job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        items = [one for one in body.get("content") or [] if isinstance(one, dict)]
        texts = [one.get("text") for one in items if one.get("type") == "text"]
        roles = [one.get("role", "") for one in items if one.get("type") != "text"]
        kinds = {role.partition("_")[0] == "reference" for role in roles}
        if not body.get("model") or len(texts) != 1 or not texts[0] or len(kinds) > 1 or len(roles) > 12:
            return self.refuse(Why.INVALID, "one text, and frames or references, are needed")
        ratio = body.get("ratio", "adaptive")
        if not isinstance(ratio, str) or (not roles and ratio == "adaptive"):
            return self.refuse(Why.INVALID, "a clip of text alone needs a ratio")
        fields = {"prompt": texts[0], "model": body["model"], "seconds": str(float(body.get("duration", 5)))}
        job = self.engine.create(
            call.key, fields, pictures=len(roles), data=body, shape=lambda drawn: f"t-{drawn[:20]}"
        )
        return Answer(data={"task_id": job.id}, job=job)

    def _row(self, job: Job, call: Call) -> dict[str, Any]:
        body = job.data
        frames = round((float(body.get("duration", 5)) * 24 - 5) / 17) * 17 + 5
        told = {
            "id": job.id,
            "model": body["model"],
            "status": _STATES_V2[job.state],
            "task_type": "text_to_video",
            "resolution": body.get("resolution", "768P"),
            "duration": round(frames / 24, 3),
            "ratio": body.get("ratio", "16:9").replace("adaptive", "16:9"),
            "created_at": job.created_at,
        }
        if job.state is JobState.DONE:
            told["content"] = {"url": self.file_url(job, call)}
        if job.state is JobState.FAILED:
            told["error"] = {"code": _CODES.get(job.why or "", job.why), "message": "it failed"}
        return told

    def _list(self, call: Call) -> Answer:
        query = call.query
        rows = [self._row(job, call) for job in self.engine.listed(call.key)]
        for name in ("status", "model", "task_type"):
            wanted = query.get(f"filter.{name}")
            rows = [row for row in rows if not wanted or row[name] == wanted]
        size = int(query.get("page_size", "20"))
        start = (int(query.get("page_num", "1")) - 1) * size
        return Answer(data={"tasks": rows[start : start + size], "total": len(rows)})
