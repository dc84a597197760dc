"""
Kling's words: `/v1/videos/{kind}`.
"""

import re
from types import MappingProxyType
from typing import Any

import jwt

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.ids import digits
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_VIDEOS = re.compile(r"/v1/videos/(text2video|image2video)(?:/([^/]+))?")
_COSTS = "/account/costs"
_STATES = {
    JobState.WAITING: "submitted",
    JobState.WORKING: "processing",
    JobState.DONE: "succeed",
    JobState.FAILED: "failed",
    JobState.STOPPED: "failed",
}
_REFUSALS = {
    Why.INVALID: "1201",
    Why.AUTH: "1000",
    Why.RATE: "1302",
    Why.BUSY: "1303",
    Why.BALANCE: "1102",
    Why.MODERATED: "1301",
    Why.NOT_FOUND: "1203",
    Why.SERVER: "5000",
}
_STATUSES = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), 401),
    **dict.fromkeys(("1100", "1101", "1102", "1302", "1303", "1304"), 429),
    "1103": 403,
    **dict.fromkeys(("1202", "1203"), 404),
    "5000": 500,
    "5001": 503,
    "5002": 504,
}


class KlingWords(Words):
    """
    A task too many is refused. Its id and our own both name a task, in the kind alone that it was made in.
    """

    DEFAULTS = MappingProxyType({"keep_seconds": 30 * 86_400.0})
    STATUS_AT = ("data", "task_status")
    ID_AT = ("data", "task_id")

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        found = _VIDEOS.fullmatch(asked.path)
        if found and asked.method == "POST" and not found[2]:
            return Route(place=Place.CREATE, what=found[1])
        if found and asked.method == "GET":
            return Route(place=Place.POLL if found[2] else Place.LIST, job_id=found[2], what=found[1])
        return Route(place=Place.ACCOUNT) if (asked.method, asked.path) == ("GET", _COSTS) else None

    def key(self, asked: Asked) -> str | None:
        """
        Who signed the token, and the whole key where that is known here and signed it; a token that is none is the key.
        """
        token = super().key(asked)
        if token is None or token.count(".") != 2:
            return token
        wanted = self.engine.options.key
        access, _, secret = (wanted or "").partition(":")
        try:
            signer = jwt.decode(token, options={"verify_signature": False}).get("iss")
            if wanted is None:
                return str(signer)
            jwt.decode(token, secret, algorithms=["HS256"], options={"verify_exp": False, "verify_nbf": False})
        except jwt.InvalidTokenError:
            return f"{token[:16]} is signed by somebody else"
        return wanted if signer == access else str(signer)

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"code", "message", "request_id"}`.
        """
        code = _REFUSALS[why] if isinstance(why, Why) else why
        told = {"code": int(code) if code.isdigit() else 5000, "message": message, "request_id": "q1"}
        return Answer(status=_STATUSES.get(code, 400), data=told)

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        expired = self._expired(call)
        if expired is not None:
            return expired
        match call.place:
            case Place.CREATE:
                return self._create(call)
            case Place.LIST:
                return self._list(call)
            case Place.ACCOUNT:
                return self._costs(call)
        job = self._named(call, call.job_id or "")
        if job is None:
            return self.refuse(Why.NOT_FOUND, "task not found")
        return self._said(self._task(job, call), job)

    def _expired(self, call: Call) -> Answer | None:
        _, _, token = call.headers.get("authorization", "").partition(" ")
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            return None
        now = self.engine.clock.now().timestamp()
        if now < claims.get("nbf", 0):
            return self.refuse("1003", "Authorization is not yet valid")
        return self.refuse("1004", "Authorization has expired") if now >= claims.get("exp", 0) else None

    def _create(self, call: Call) -> Answer:
        body = call.data if isinstance(call.data, dict) else {}
        wrong = _wrong(body, call.what)
        if wrong is None and body.get("external_task_id") and self._named(call, body["external_task_id"]):
            wrong = "external_task_id is there already"
        if wrong is not None:
            return self.refuse(Why.INVALID, wrong)
        model = body.get("model_name", "kling-v1")
        fields = {"prompt": body.get("prompt", ""), "model": model, "seconds": body.get("duration", "5")}
        pictures = sum(bool(body.get(name)) for name in ("image", "image_tail"))
        kept = {"kind": call.what, "external": body.get("external_task_id")}
        job = self.engine.create(call.key, fields, pictures=pictures, data=kept, shape=digits("8", count=18))
        return self._said(self._task(job, call), job)

    def _named(self, call: Call, name: str) -> Job | None:
        """
        The key's task of that id, its own or ours, in the kind of the call.
        """
        self.engine.now()
        jobs = [job for job in self.engine.jobs.values() if job.key == call.key and job.data["kind"] == call.what]
        return next((job for job in jobs if name in (job.id, job.data["external"])), None)

    def _task(self, job: Job, call: Call) -> dict[str, Any]:
        updated = job.ended if job.ended is not None else job.started if job.started is not None else job.created
        told: dict[str, Any] = {
            "task_id": job.id,
            "task_status": _STATES[job.state],
            "task_status_msg": "",
            "task_info": {"external_task_id": job.data["external"]},
            "created_at": int(self.engine.wall(job.created) * 1000),
            "updated_at": int(self.engine.wall(updated) * 1000),
        }
        if job.state is JobState.DONE:
            video = {"id": "v-1", "url": self.file_url(job, call), "duration": job.fields["seconds"]}
            told |= {"task_result": {"videos": [video]}, "final_unit_deduction": "2"}
        elif not job.unended:
            told["task_status_msg"] = job.why or "stopped"
        return told

    def _list(self, call: Call) -> Answer:
        page, size = int(call.query.get("pageNum", "1")), int(call.query.get("pageSize", "30"))
        if not (1 <= page <= 1000 and 1 <= size <= 500):
            return self.refuse(Why.INVALID, "pageNum is 1 to 1000, pageSize 1 to 500")
        jobs = [job for job in self.engine.listed(call.key) if job.data["kind"] == call.what]
        # Whether a row shows the clip is not documented, so here it does not.
        rows = [self._task(job, call) for job in jobs[(page - 1) * size : page * size]]
        return self._said([{name: one for name, one in row.items() if name != "task_result"} for row in rows])

    def _costs(self, call: Call) -> Answer:
        if not {"start_time", "end_time"} <= set(call.query):
            return self.refuse(Why.INVALID, "start_time and end_time are needed")
        pack = {
            "resource_pack_name": "Video",
            "resource_pack_id": "p-1",
            "resource_pack_type": "decreasing_total",
            "total_quantity": 1000,
            "remaining_quantity": 900,
            "status": "online",
        }
        return self._said({"code": 0, "msg": "SUCCEED", "resource_pack_subscribe_infos": [pack]})

    def _said(self, data: Any, job: Job | None = None) -> Answer:
        return Answer(data={"code": 0, "message": "SUCCEED", "request_id": "q1", "data": data}, job=job)


def _wrong(body: dict[str, Any], kind: str) -> str | None:
    """
    What is wrong with a create, or None.
    """
    model, seconds = body.get("model_name", "kling-v1"), body.get("duration", "5")
    three_to_fifteen = isinstance(model, str) and model.startswith("kling-v3")
    allowed = {str(one) for one in range(3, 16)} if three_to_fifteen else {"5", "10"}
    pictures = [body.get(name) for name in ("image", "image_tail") if body.get(name)]
    if kind == "text2video" and not body.get("prompt"):
        return "prompt must not be empty"
    if kind == "image2video" and not body.get("image"):
        return "image must not be empty"
    if not isinstance(seconds, str) or seconds not in allowed:
        return "duration is not supported"
    if body.get("mode", "std") not in ("std", "pro"):
        return "mode is not supported"
    if any(not isinstance(one, str) or one.startswith("data:") for one in pictures):
        return "an image is an address, or base64 alone"
    return None
