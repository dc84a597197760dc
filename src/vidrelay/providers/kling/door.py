"""
Kling's interface as its clients know it (fills port Door): `/v1/videos/text2video` and `/v1/videos/image2video`.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Phase, View, Wish
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import count_in, create_in, look, media_in, submit, text_in
from vidrelay.providers.kling import words
from vidrelay.providers.kling.parameters import as_sent
from vidrelay.providers.paging import listed

_STATUS = {
    Phase.WAITING: "submitted",
    Phase.WORKING: "processing",
    Phase.DONE: "succeed",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "failed",
    Phase.EXPIRED: "failed",
}
_CODES = {401: 1000, 403: 1103, 404: 1203, 405: 1202, 410: 1203, 429: 1302, 503: 5001, 504: 5002}
_PICTURES = ("image", "image_tail", "static_mask")
MAX_NAME = 512
"""An `external_task_id` of more characters is not remembered."""


class KlingDoor:
    """
    Create, read and list, each in the kind that stands in the address.
    """

    def __init__(self) -> None:
        self.routes = tuple(
            route
            for kind in words.KINDS
            for route in (
                DoorRoute(method="POST", path=f"/v1/videos/{kind}", handler=partial(self.create, kind)),
                DoorRoute(method="GET", path=f"/v1/videos/{kind}", handler=partial(self.several, kind)),
                DoorRoute(method="GET", path=f"/v1/videos/{kind}/{{id}}", handler=partial(self.retrieve, kind)),
            )
        )

    def create(self, kind: str, call: DoorCall) -> Answering:
        """
        Pictures are bare base64, or addresses.
        """
        body, force = create_in(call)
        for name in _PICTURES:
            if name in body:
                body[name] = media_in(body[name])
        if isinstance(body.get("dynamic_masks"), list):
            body["dynamic_masks"] = [_masked(one) for one in body["dynamic_masks"]]
        prepared, name = as_sent({**body, "kind": kind}), text_in(body, words.EXTERNAL_ID)
        known_as = name if 0 < len(name) <= MAX_NAME else None
        view = yield from submit(prepared, prompt=text_in(body, "prompt"), force=force, known_as=known_as)
        # The id of this very call: a task that it joined may have come with another.
        return _said(_task(view, name), view.task.id)

    def retrieve(self, kind: str, call: DoorCall) -> Answering:
        """
        By Kling's id, which is ours here, or by the client's own `external_task_id`.
        """
        name = call.params["id"]
        try:
            view = yield from look(name)
        except UnknownTask:
            view = yield from _by_external_id(name, kind)
        if view.gone or not _is_of(kind)(view):
            raise UnknownTask("There is no such task of this kind.")
        return _said(_task(view, "" if name == view.task.id else name), view.task.id)

    def several(self, kind: str, call: DoorCall) -> Answering:
        """
        The account's clips of that kind, newest first.
        """
        number = count_in(call, "pageNum", default=1, most=1000)
        size = count_in(call, "pageSize", default=30, most=500)
        views, _ = yield from listed(_is_of(kind), size=size, skip=(number - 1) * size)
        return _said([_task(view) for view in views])

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"code", "message", "request_id"}`.
        """
        code = _CODES.get(problem.status, 1201 if problem.status < 500 else 5000)
        return JsonReply(status=problem.status, value={"code": code, "message": problem.detail, "request_id": ""})


def make(_dialect: str | None) -> KlingDoor:
    """
    The door of an account.
    """
    return KlingDoor()


def _masked(mask: Any) -> Any:
    return {**mask, "mask": media_in(mask["mask"])} if isinstance(mask, Mapping) and "mask" in mask else mask


def _is_of(kind: str) -> Callable[[View], bool]:
    # One that was taken over by its id alone has no kind, and is shown in each.
    return lambda view: view.task.parameters.get("kind", kind) == kind


def _by_external_id(name: str, kind: str) -> Generator[Wish, Any, View]:
    def fits(view: View) -> bool:
        return _is_of(kind)(view) and view.task.parameters.get(words.EXTERNAL_ID) == name

    views, _ = yield from listed(fits, size=1)
    if not views:
        raise UnknownTask
    return views[0]


def _said(data: Any, request_id: str = "") -> JsonReply:
    return JsonReply(value={"code": 0, "message": "SUCCEED", "request_id": request_id, "data": data})


def _task(view: View, name: str = "") -> dict[str, Any]:
    """
    A task, under the `name` that the client has for it; empty: under the one that it came with.
    """
    task, phase = view.task, view.phase
    told: dict[str, Any] = {
        "task_id": task.id,
        "task_status": _STATUS[phase],
        "task_status_msg": view.problem.detail if _STATUS[phase] == "failed" else "",
        "task_info": {words.EXTERNAL_ID: name or task.parameters.get(words.EXTERNAL_ID) or ""},
        "created_at": int(task.created_at.timestamp() * 1000),
        "updated_at": int(task.updated_at.timestamp() * 1000),
    }
    if phase is Phase.DONE:
        seconds = str(task.parameters.get("duration") or words.USUAL_SECONDS)
        told["task_result"] = {
            "videos": [
                {"id": f"{task.id}-{number}", "url": url, "duration": seconds} for number, url in enumerate(view.files)
            ]
        }
    return told
