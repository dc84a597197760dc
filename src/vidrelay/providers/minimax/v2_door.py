"""
MiniMax's V2 as its clients know it (fills port Door): create, status, list, stop or delete, and uploads.
"""

import re
from collections.abc import Mapping
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Kept, Phase, View
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import (
    Granting,
    count_in,
    create_in,
    forget,
    form_in,
    instant_of,
    keep,
    stop_waiting,
    submit,
    there,
    unix,
    with_media,
)
from vidrelay.providers.minimax import content
from vidrelay.providers.minimax.sent import as_sent
from vidrelay.providers.minimax.v1_door import FINE, base_error
from vidrelay.providers.paging import listed, values_in

QUERY, CREATE, UPLOAD = "/v2/query/video_generation", "/v2/video_generation", "/v1/files/upload"
PURPOSE = "video_generation_input"

_STATUS = {
    Phase.WAITING: "queued",
    Phase.WORKING: "running",
    Phase.DONE: "succeeded",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "cancelled",
    Phase.EXPIRED: "expired",
}
_MEDIA = ("image_url", "video_url", "audio_url")
_OURS = re.compile(r"mm_file://(sha256:[0-9a-f]{64})")
"""A file that was uploaded here; any other `mm_file://` is one of MiniMax's own and goes there as it is."""


class V2Door:
    """
    `/v2/video_generation` and `/v2/query/video_generation`; uploads go to V1's `/v1/files/upload`.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path=CREATE, handler=self.create),
            DoorRoute(method="DELETE", path=f"{CREATE}/{{id}}", handler=self.delete),
            DoorRoute(method="GET", path=QUERY, handler=self.several),
            DoorRoute(method="GET", path=f"{QUERY}/{{id}}", handler=self.query),
            DoorRoute(method="POST", path=UPLOAD, handler=self.upload),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        Pictures, films and sounds are data URIs, addresses, or what was uploaded before.
        """
        body, force = create_in(call)
        prompt = content.text_in(body) or ""
        if isinstance(body.get("content"), list):
            body["content"] = [_item(one) for one in body["content"]]
        view = yield from submit(as_sent(body), prompt=prompt, force=force)
        return JsonReply(value={"task_id": view.task.id, "task": _task(view)})

    def query(self, call: DoorCall) -> Answering:
        """
        How a clip stands.
        """
        view = yield from _there(call.params["id"])
        return JsonReply(value={"task": _task(view)})

    def several(self, call: DoorCall) -> Answering:
        """
        The account's clips, newest first.
        """
        number = count_in(call, "page_num", default=1, most=1000)
        size = count_in(call, "page_size", default=20, most=100)
        status, model, ids = (values_in(call, f"filter.{name}") for name in ("status", "model", "task_ids"))

        def fits(view: View) -> bool:
            shown = ((_STATUS[view.phase], status), (view.task.model_version, model), (view.task.id, ids))
            return all(not wanted or value in wanted for value, wanted in shown)

        views, _ = yield from listed(fits, size=size, skip=(number - 1) * size)
        return JsonReply(value={"tasks": [_task(view) for view in views]})

    def delete(self, call: DoorCall) -> Answering:
        """
        Stops what waits, deletes what has ended; what is worked on is left alone, as MiniMax leaves it.
        """
        view = yield from _there(call.params["id"])
        phase = view.phase
        too_late = phase in (Phase.WORKING, Phase.CANCELLED)
        if phase is Phase.WAITING:
            view, too_late = yield from stop_waiting(view.task.id)
        elif not too_late:
            yield from forget(view.task.id)
        if too_late:
            status = _STATUS[Phase.WORKING if view.phase is Phase.WAITING else view.phase]
            told = f"A task that is {status} cannot be cancelled or deleted."
            return _error(Problem(code="wrong_state", title="Wrong state", detail=told, status=400))
        action = "cancelled" if phase is Phase.WAITING else "deleted"
        return JsonReply(value={"task_id": view.task.id, "action": action})

    def upload(self, call: DoorCall) -> Answering:
        """
        A picture, film or sound for a clip, as a form.
        """
        form = form_in(call)
        purpose = dict(form.fields).get("purpose")
        if not form.files or purpose != PURPOSE:
            raise InvalidRequest(f"vidrelay takes a form with one file and the purpose {PURPOSE} here.")
        asset = yield from keep(form.files[0])
        file = {
            "file_id": asset.id,
            "bytes": asset.size_bytes,
            "created_at": unix(instant_of(call.fresh)),
            "filename": form.files[0].filename,
            "purpose": purpose,
        }
        return JsonReply(value={"file": file, "base_resp": FINE})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"message", "type", "http_code"}, "request_id"}`; of an upload, V1's shape.
        """
        return base_error(problem) if call.path == UPLOAD else _error(problem)


def _error(problem: Problem) -> JsonReply:
    error = {"message": problem.detail, "type": problem.code, "http_code": problem.status}
    return JsonReply(status=problem.status, value={"error": error, "request_id": ""})


def _item(item: Any) -> Any:
    item = with_media(item)
    for name in _MEDIA if isinstance(item, Mapping) else ():
        media = item.get(name)
        url = media.get("url") if isinstance(media, Mapping) else None
        found = _OURS.fullmatch(url) if isinstance(url, str) else None
        if found and media is not None:
            item = {**item, name: {**media, "url": Kept(asset=found[1])}}
    return item


def _there(task_id: str) -> Granting:
    return there(task_id, otherwise="invalid task_id: the clip is not there any more")


def _task(view: View) -> dict[str, Any]:
    task, phase = view.task, view.phase
    sent = {name: task.parameters.get(name) for name in ("model", "resolution", "duration", "ratio")}
    told: dict[str, Any] = {"id": task.id, "status": _STATUS[phase], **sent, "created_at": unix(task.created_at)}
    if phase is Phase.DONE:
        told["content"] = {"url": view.files[0]}
    elif phase in (Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED):
        told["error"] = {"code": view.problem.code, "message": view.problem.detail}
    return told
