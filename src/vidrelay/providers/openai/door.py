"""
The Videos API as its SDK and any client of that shape know it (fills port Door): `/v1/videos`.
"""

from collections.abc import Generator, Mapping
from itertools import takewhile
from typing import Any

from vidrelay.core.door import (
    Answering,
    DoorCall,
    DoorRoute,
    FileReply,
    FormBody,
    JsonReply,
    Phase,
    View,
    Wish,
)
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import (
    count_in,
    forget,
    look,
    media_in,
    object_in,
    page,
    percent,
    submit,
    taken_force,
    there,
    unix,
)
from vidrelay.providers.openai import parameters
from vidrelay.providers.openai.words import FILE_ID, IMAGE_URL, REFERENCE, REFERENCES
from vidrelay.providers.paging import newest

_PACE = {"openai-poll-after-ms": "500"}
"""A status read costs nothing here, and an SDK that is not told otherwise takes a second."""

MAX_PAGE = 100
"""So many clips stand in one page of the list."""

_STATUS = {
    Phase.WAITING: "queued",
    Phase.WORKING: "in_progress",
    Phase.DONE: "completed",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "failed",
    Phase.EXPIRED: "failed",
}
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


class OpenAiDoor:
    """
    `/v1/videos`: create, retrieve, content, list, delete.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path="/v1/videos", handler=self.create),
            DoorRoute(method="GET", path="/v1/videos", handler=self.several),
            DoorRoute(method="GET", path="/v1/videos/{id}", handler=self.retrieve),
            DoorRoute(method="DELETE", path="/v1/videos/{id}", handler=self.delete),
            DoorRoute(method="GET", path="/v1/videos/{id}/content", handler=self.content),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        A form, as the SDK always sends it, or JSON.
        """
        body = _fields(call.body) if isinstance(call.body, FormBody) else object_in(call)
        force = taken_force(body)
        reference = body.get(REFERENCE)
        if isinstance(reference, Mapping) and set(reference) == {IMAGE_URL}:
            found = media_in(reference[IMAGE_URL])
            body[REFERENCE] = reference if isinstance(found, str) else found
        prepared = parameters.as_sent(body)
        view = yield from submit(prepared, prompt=str(body.get("prompt") or ""), force=force)
        return JsonReply(value=_object(view), headers=_PACE)

    def retrieve(self, call: DoorCall) -> Answering:
        """
        How a clip stands.
        """
        view = yield from there(call.params["id"])
        return JsonReply(value=_object(view), headers=_PACE)

    def several(self, call: DoorCall) -> Answering:
        """
        The account's clips, newest first unless the oldest is asked for first.
        """
        limit, after = count_in(call, default=20, most=MAX_PAGE), call.query.get("after")
        views = yield from (_oldest(after) if call.query.get("order") == "asc" else newest(limit + 1, after=after))
        videos, more = [_object(view) for view in views[:limit]], len(views) > limit
        ids = [video["id"] for video in videos] or [None]
        return JsonReply(
            value={"object": "list", "data": videos, "first_id": ids[0], "last_id": ids[-1], "has_more": more}
        )

    def content(self, call: DoorCall) -> Answering:
        """
        The clip's bytes.
        """
        variant = call.query.get("variant", "video")
        if variant != "video" and variant not in map(str, range(16)):
            raise InvalidRequest(f"vidrelay keeps the clip alone, not its {variant[:40]}.", field="variant")
        yield from there(call.params["id"])
        return FileReply(task_id=call.params["id"], index=0 if variant == "video" else int(variant))

    def delete(self, call: DoorCall) -> Answering:
        """
        Stop it where it has not ended, and delete its file.
        """
        view = yield from there(call.params["id"])
        yield from forget(view.task.id)
        return JsonReply(value={"id": view.task.id, "object": "video.deleted", "deleted": True})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"message", "type", "param", "code"}}`.
        """
        kind = _TYPES.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
        error = {"message": problem.detail, "type": kind, "param": None, "code": problem.code}
        return JsonReply(status=problem.status, value={"error": error})


def make(_dialect: str | None) -> OpenAiDoor:
    """
    The door of an account; its dialect is the matter of what stands behind.
    """
    return OpenAiDoor()


def _fields(form: FormBody) -> dict[str, Any]:
    """
    A form as the parameters that the same wish in JSON would be.
    """
    body: dict[str, Any] = {}
    for name, value in form.fields:
        outer, bracket, inner = name.partition("[")
        if bracket and inner in (f"{IMAGE_URL}]", f"{FILE_ID}]"):
            body[outer] = {inner[:-1]: value}
        else:
            body[name] = value
    for part in form.files:
        if part.name.startswith(REFERENCES):
            body[REFERENCES] = [*body.get(REFERENCES, []), part]
        else:
            body[part.name] = part
    return body


def _oldest(after: str | None) -> Generator[Wish, Any, list[View]]:
    """
    The account's clips, oldest first, from the one that came after `after`.
    """
    if after is not None:
        yield from look(after)
    views: list[View] = []
    while True:
        more = yield from page(MAX_PAGE, after=views[-1].task.id if views else None)
        newer = list(takewhile(lambda view: view.task.id != after, more))
        views += newer
        if len(newer) < MAX_PAGE:
            return [view for view in reversed(views) if not view.gone]


def _object(view: View) -> dict[str, Any]:
    task, sent = view.task, view.task.parameters
    phase = view.phase
    video: dict[str, Any] = {
        "id": task.id,
        "object": "video",
        "model": sent.get("model") or "",
        "status": _STATUS[phase],
        "progress": percent(view),
        "created_at": unix(task.created_at),
        "completed_at": unix(task.finished_at) if phase is Phase.DONE else None,
        "expires_at": None,
        "prompt": task.request.prompt,
        "seconds": str(sent.get("seconds") or ""),
        "size": sent.get("size") or "",
        "remixed_from_video_id": None,
        "error": None,
    }
    if video["status"] == "failed":
        video["error"] = {"code": view.problem.code, "message": view.problem.detail}
    return video
