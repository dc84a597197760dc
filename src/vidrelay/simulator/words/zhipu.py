"""
Zhipu's words, which Z.ai speaks too: `/api/paas/v4`, one status for waiting and work, a request_id that must be unique.
"""

import re
from typing import Any

from vidrelay.simulator.engine import JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import digits
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_RESULT = re.compile(r"/api/paas/v4/async-result/([^/]+)")
_STATES = {
    JobState.WAITING: "PROCESSING",
    JobState.WORKING: "PROCESSING",
    JobState.DONE: "SUCCESS",
    JobState.FAILED: "FAIL",
    JobState.STOPPED: "FAIL",
}
_REFUSALS = {
    Why.INVALID: (400, "1210"),
    Why.AUTH: (401, "1002"),
    Why.RATE: (429, "1303"),
    Why.BUSY: (429, "1302"),
    Why.BALANCE: (429, "1113"),
    Why.MODERATED: (400, "1301"),
    Why.NOT_FOUND: (400, "1214"),
    Why.SERVER: (500, "1200"),
}
_STATUSES = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004", "1005"), 401),
    **dict.fromkeys(("1113", "1302", "1303", "1304", "1305", "1308", "1310", "1312"), 429),
    **dict.fromkeys(("1200", "1230", "1234"), 500),
}


class ZhipuWords(Words):
    """
    A create above the window is refused with 1302; a repeated request_id with 1231.
    """

    STATUS_AT = ("task_status",)

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        if (asked.method, asked.path) == ("POST", "/api/paas/v4/videos/generations"):
            return Route(place=Place.CREATE)
        result = _RESULT.fullmatch(asked.path)
        if result and asked.method == "GET":
            return Route(place=Place.POLL, job_id=result[1])
        return None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"code", "message"}}`, the code as text.
        """
        status, code = _REFUSALS[why] if isinstance(why, Why) else (_STATUSES.get(why, 400), why)
        return Answer(status=status, data={"error": {"code": code, "message": message}})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        if call.place is Place.CREATE:
            return self._create(call)
        job = self.engine.find(call.key, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "the task does not exist")
        done = job.state is JobState.DONE
        cover = f"http://{call.host}/cover.png"
        told: dict[str, Any] = {
            "model": job.fields["model"],
            "task_status": _STATES[job.state],
            "request_id": job.data["request_id"],
            "video_result": [{"url": self.file_url(job, call), "cover_image_url": cover}] if done else None,
        }
        return Answer(data={name: value for name, value in told.items() if value is not None}, job=job)

    def _create(self, call: Call) -> Answer:
        body = call.data or {}
        # The SDKs send what is not set as null.
        images = body.get("image_url") or []
        shown = images if isinstance(images, list) else [images]
        if not body.get("model") or not (body.get("prompt") or shown):
            return self.refuse("1213", "the model, and a prompt or a picture, are needed")
        wanted = body.get("request_id")
        if wanted and any(
            one.key == call.key and one.data["request_id"] == wanted for one in self.engine.jobs.values()
        ):
            return self.refuse("1231", "a request of this id exists already")
        fields = {"prompt": body.get("prompt") or "", "model": body["model"], "seconds": str(body.get("duration") or 5)}
        data = {"request_id": wanted}
        job = self.engine.create(call.key, fields, pictures=len(shown), data=data, shape=digits("8"))
        data["request_id"] = wanted or job.id[::-1]
        told = {"id": job.id, "model": body["model"], "task_status": "PROCESSING", "request_id": data["request_id"]}
        return Answer(data=told, job=job)
