"""
DashScope as both surfaces of its SDK know it (fills port Door): `/api/v1`.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vidrelay.core.door import (
    Answering,
    DoorCall,
    DoorRoute,
    Handler,
    Inlined,
    JsonReply,
    Kept,
    MediaInput,
    OpenAddress,
    Phase,
    View,
)
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import Problem
from vidrelay.providers.dashscope import words
from vidrelay.providers.dashscope.parameters import as_sent, beside, service
from vidrelay.providers.doorway import (
    DATA_URI,
    cancel,
    count_in,
    each_text,
    form_in,
    keep,
    look,
    object_in,
    submit,
    taken_force,
    text_in,
)
from vidrelay.providers.paging import listed
from vidrelay.providers.replies import object_of, text_of

USUAL_SECONDS = 5
LISTED = 500
"""So many of the newest clips that fit are listed; the provider itself knows those of a day."""
MAX_PAGE_SIZE = 100
MAX_FILE_MB = 64

_STATUS = {
    Phase.WAITING: "PENDING",
    Phase.WORKING: "RUNNING",
    Phase.DONE: "SUCCEEDED",
    Phase.FAILED: "FAILED",
    Phase.CANCELLED: "CANCELED",
    # UNKNOWN, which stands for what is too old, would not tell why.
    Phase.EXPIRED: "FAILED",
}
_CODES = {
    "moderated": "DataInspectionFailed",
    **dict.fromkeys(("rejected", "invalid_request"), "InvalidParameter"),
}
_REFUSALS = {
    401: "InvalidApiKey",
    403: "AccessDenied",
    404: "NotFound",
    409: "UnsupportedOperation",
    410: "NotFound",
    429: "Throttling.RateQuota",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
}
_UPLOADED = re.compile(r"oss://(vidrelay/[0-9a-f]{32}/.{1,255})")


class DashScopeDoor:
    """
    Creates of both services, tasks, their list, and the upload that both surfaces make of a local picture.
    """

    def __init__(self) -> None:
        calls: tuple[tuple[str, str, Handler], ...] = (
            ("POST", "/services/aigc/{service}/video-synthesis", self.create),
            ("GET", "/tasks", self.several),
            ("GET", "/tasks/{id}", self.fetch),
            ("POST", "/tasks/{id}/cancel", self.stop),
            ("GET", "/uploads", self.policy),
            ("POST", "/uploads", self.upload),
        )
        # The SDK's asynchronous class ends its paths with a slash.
        self.routes = tuple(
            DoorRoute(method=method, path=f"/api/v1{path}{slash}", handler=handler)
            for method, path, handler in calls
            for slash in ("", "/")
        )

    def create(self, call: DoorCall) -> Answering:
        """
        A clip, asynchronously as every clip of DashScope's.
        """
        if call.headers.get("x-dashscope-async", "").lower() != "enable":
            told = "current user api does not support synchronous calls: X-DashScope-Async: enable is missing."
            return _refusal(403, "AccessDenied", told, call)
        body = object_in(call)
        given, asked = dict(object_of(body, "input")), dict(object_of(body, "parameters"))
        body |= {"input": given, "parameters": asked}
        # What a program passes on beside the SDK's own arguments stands in one of the inner two.
        forces = [taken_force(one) for one in (body, given, asked)]
        model = text_of(body, "model")
        if call.params["service"] not in ("video-generation", service(model)):
            raise InvalidRequest(f"{model} is made by {service(model)}, not {call.params['service']}.", field="model")
        prepared = as_sent(_read(body, beside(model)))
        view = yield from submit(prepared, prompt=text_in(given, "prompt"), force=any(forces))
        output = {"task_id": view.task.id, "task_status": _STATUS[Phase.WAITING]}
        return JsonReply(value={"request_id": call.fresh, "output": output})

    def fetch(self, call: DoorCall) -> Answering:
        """
        How a clip stands; one that is not known has a status too.
        """
        task_id = call.params["id"]
        try:
            view = yield from look(task_id)
        except UnknownTask:
            return _unknown(task_id, call)
        if view.gone:
            return _unknown(task_id, call)
        return JsonReply(value={"request_id": call.fresh, **_told(view)})

    def stop(self, call: DoorCall) -> Answering:
        """
        Cancel a clip that waits: another, the provider makes to its end and bills.
        """
        task_id = call.params["id"]
        view = yield from look(task_id)
        if view.phase is Phase.WAITING:
            view = yield from cancel(task_id, settle=True, unless_begun=True)
            if view.phase is Phase.CANCELLED:
                return JsonReply(value={"request_id": call.fresh})
        told = "The task is not PENDING and cannot be canceled."
        return _refusal(400, "UnsupportedOperation", told, call)

    def several(self, call: DoorCall) -> Answering:
        """
        A page of the newest clips, as the query narrows them down.
        """
        begin, end = call.query.get("start_time", ""), call.query.get("end_time", "")
        asked = {name: wanted for name in ("model_name", "status") if (wanted := call.query.get(name))}

        def fits(view: View) -> bool:
            row = _row(view)
            in_time = begin <= re.sub(r"\D", "", row["submit_time"])[:14] <= (end or "9")
            return in_time and all(row[name] == wanted for name, wanted in asked.items())

        views, _ = yield from listed(fits, size=LISTED)
        rows = [_row(view) for view in views]
        number = count_in(call, "page_no", default=1, most=LISTED)
        size = count_in(call, "page_size", default=10, most=MAX_PAGE_SIZE)
        shown = rows[(number - 1) * size : number * size]
        told = {"request_id": call.fresh, "page_no": number, "page_size": size, "total": len(rows)}
        # Each of the SDK's surfaces reads another of the two.
        return JsonReply(value={**told, "data": shown, "tasks": shown})

    def policy(self, call: DoorCall) -> Answering:
        """
        Where a local picture goes before a create names it: to the door itself, at an address that needs no key.
        """
        yield from ()
        data = {
            "policy": "vidrelay",
            "signature": "vidrelay",
            "upload_dir": f"vidrelay/{call.fresh}",
            "upload_host": OpenAddress(path="/api/v1/uploads"),
            "expire_in_seconds": 300,
            "max_file_size_mb": MAX_FILE_MB,
            "oss_access_key_id": "vidrelay",
            "x_oss_object_acl": "private",
            "x_oss_forbid_overwrite": "true",
        }
        return JsonReply(value={"request_id": call.fresh, "data": data})

    def upload(self, call: DoorCall) -> Answering:
        """
        The picture itself, under the name that the SDK made of the policy.
        """
        form = form_in(call)
        name = f"oss://{dict(form.fields).get('key', '')}"
        if _UPLOADED.fullmatch(name) is None or len(form.files) != 1:
            raise InvalidRequest("An upload is a form with one file and the key that its policy names.", field="key")
        yield from keep(form.files[0], name=name)
        return JsonReply(value=None)

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"code", "message", "request_id"}`.
        """
        usual = "InvalidParameter" if problem.status < 500 else "InternalError"
        return _refusal(problem.status, _REFUSALS.get(problem.status, usual), problem.detail, call)


def make(_dialect: str | None) -> DashScopeDoor:
    """
    The door of an account.
    """
    return DashScopeDoor()


def _refusal(status: int, code: str, message: str, call: DoorCall) -> JsonReply:
    return JsonReply(status=status, value={"code": code, "message": message, "request_id": call.fresh})


def _unknown(task_id: str, call: DoorCall) -> JsonReply:
    output = {"task_id": task_id, "task_status": words.GONE}
    return JsonReply(value={"request_id": call.fresh, "output": output})


def _read(value: Any, model: Mapping[str, str]) -> Any:
    """
    The value with each picture in it as one: a data URI, and what stands for one that was uploaded here.
    """

    def read(text: str) -> MediaInput | str:
        if _UPLOADED.fullmatch(text):
            return Kept(asset=text, beside=model)
        return Inlined(text=text, beside=model) if DATA_URI.match(text) else text

    return each_text(value, read)


def _row(view: View) -> dict[str, Any]:
    """
    A task as the list has it, which documents and answers name differently.
    """
    task, status = view.task, _STATUS[view.phase]
    told = {"task_id": task.id, "task_status": status, "status": status, "model_name": task.model_version or ""}
    return {**told, **_times(view)}


def _times(view: View) -> dict[str, str]:
    task = view.task
    ended = task.finished_at if task.ended else None
    told = {"submit_time": task.created_at, "scheduled_time": task.working_at or task.accepted_at, "end_time": ended}
    return {name: _china(instant) for name, instant in told.items() if instant is not None}


def _china(instant: datetime) -> str:
    return instant.astimezone(words.CHINA).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _told(view: View) -> dict[str, Any]:
    task, phase = view.task, view.phase
    output: dict[str, Any] = {"task_id": task.id, "task_status": _STATUS[phase], **_times(view)}
    if task.ended:
        output["orig_prompt"] = task.request.prompt
    if phase is Phase.DONE:
        asked = object_of(task.parameters, "parameters")
        seconds, ratio = asked.get("duration") or USUAL_SECONDS, asked.get("ratio") or ""
        output["video_url"] = view.files[0]
        return {"output": output, "usage": {"video_count": 1, "video_duration": seconds, "video_ratio": ratio}}
    if output["task_status"] == "FAILED":
        output |= {"code": _CODES.get(view.problem.code, "InternalError"), "message": view.problem.detail}
    return {"output": output}
