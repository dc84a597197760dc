"""
Ark's content generation as its runtime SDKs know it, Volcengine's and BytePlus's (fills port Door).
"""

from collections.abc import Generator
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Phase, View, Wish
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Problem
from vidrelay.providers.ark import parameters, words
from vidrelay.providers.doorway import (
    Granting,
    count_in,
    create_in,
    forget,
    look,
    stop_waiting,
    submit,
    text_in,
    there,
    unix,
    with_media,
)
from vidrelay.providers.paging import MAX_READS, READ, listed

PATH = f"/api/v3{words.TASKS}"
MAX_ASKED = 100
"""So many ids of one list call are looked up."""

_STATUS = {
    Phase.WAITING: "queued",
    Phase.WORKING: "running",
    Phase.DONE: "succeeded",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "cancelled",
    Phase.EXPIRED: "expired",
}
_USUAL = {"service_tier": "default", "execution_expires_after": 172800}
_ECHOED = (
    *("safety_identifier", "service_tier", "execution_expires_after", "priority", "generate_audio", "draft", "tools"),
    *("seed", "resolution", "ratio", "duration", "frames", "output_format"),
)
"""What a task tells as it was sent; null where it was left to the model."""
_UNTOLD = ("subdivisionlevel", "fileformat", "framespersecond", "revised_prompt", "draft_task_id")
"""What the SDKs' task has, and the relay does not know."""
_UNCOUNTED = {"completion_tokens": 0, "total_tokens": 0}
_KINDS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 429: "TooManyRequests"}
_CODES = {
    401: "AuthenticationError",
    403: "AccessDenied",
    404: "ResourceNotFound",
    410: "ResourceNotFound",
    429: "AccountRateLimitExceeded",
}
_FAILURES = {"moderated": "OutputVideoSensitiveContentDetected", "rejected": "InvalidParameter"}
_BEGUN = Problem(
    code="InvalidParameter", title="Begun", detail="The task is running and cannot be cancelled.", status=400
)


class ArkDoor:
    """
    `/api/v3/contents/generations/tasks`: create, get, list, delete.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path=PATH, handler=self.create),
            DoorRoute(method="GET", path=PATH, handler=self.several),
            DoorRoute(method="GET", path=f"{PATH}/{{id}}", handler=self.get),
            DoorRoute(method="DELETE", path=f"{PATH}/{{id}}", handler=self.delete),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        The SDK sends what was not given as null, and so is it sent on.
        """
        body, force = create_in(call)
        content = with_media(body.get("content"))
        if content is not None:
            body["content"] = content
        view = yield from submit(parameters.as_sent(body), prompt=_prompt(content), force=force)
        told = {"id": view.task.id}
        tag = text_in(body, "safety_identifier")
        return JsonReply(value={**told, "safety_identifier": tag} if tag else told)

    def get(self, call: DoorCall) -> Answering:
        """
        How a task stands.
        """
        view = yield from _there(call.params["id"])
        return JsonReply(value=_task(view))

    def several(self, call: DoorCall) -> Answering:
        """
        The account's tasks, newest first, page by page.
        """
        number = count_in(call, "page_num", default=1, most=500)
        size = count_in(call, "page_size", default=10, most=500)
        ids = call.queries.get("filter.task_ids", ())
        asked = {name: call.query.get(f"filter.{name}") for name in ("status", "model", "service_tier")}

        def fits(view: View) -> bool:
            told = _task(view)
            return all(value in (None, told[name]) for name, value in asked.items())

        if ids:
            views = [view for view in (yield from _named(ids)) if not view.gone and fits(view)]
        else:
            views, _ = yield from listed(fits, size=READ * MAX_READS)
        items = [_task(view) for view in views[(number - 1) * size : number * size]]
        return JsonReply(value={"total": len(views), "items": items})

    def delete(self, call: DoorCall) -> Answering:
        """
        Stop what waits, delete the files of what has ended, and refuse what runs: as Ark does with its records, of
        which none is deleted there.
        """
        view = yield from _there(call.params["id"])
        if view.phase is Phase.WAITING:
            _, too_late = yield from stop_waiting(view.task.id)
            return self.write_error(_BEGUN, call) if too_late else JsonReply(value={})
        if view.phase is Phase.WORKING:
            return self.write_error(_BEGUN, call)
        yield from forget(view.task.id)
        return JsonReply(value={})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"code", "message", "param", "type"}}`.
        """
        usual = "InvalidParameter" if problem.status < 500 else "InternalServiceError"
        kind = _KINDS.get(problem.status, "BadRequest" if problem.status < 500 else "InternalServerError")
        code = _CODES.get(problem.status, usual)
        error = {"code": code, "message": problem.detail, "param": "", "type": kind}
        return JsonReply(status=problem.status, value={"error": error})


def make(_dialect: str | None) -> ArkDoor:
    """
    The door of an account: both houses have the same words.
    """
    return ArkDoor()


def _named(ids: tuple[str, ...]) -> Generator[Wish, Any, list[View]]:
    """
    Those tasks that there are, newest first.
    """
    views: list[View] = []
    for one in dict.fromkeys(ids[:MAX_ASKED]):
        try:
            views.append((yield from look(one)))
        except UnknownTask:
            # A list tells of an id that it does not have by leaving it out.
            continue
    return sorted(views, key=lambda view: view.task.seq, reverse=True)


def _there(task_id: str) -> Granting:
    return there(task_id, otherwise="The specified task is not found: its files were deleted.")


def _prompt(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _task(view: View) -> dict[str, Any]:
    task, sent, phase = view.task, view.task.parameters, view.phase
    given = {name: sent.get(name) for name in _ECHOED}
    told: dict[str, Any] = {
        "id": task.id,
        "model": sent.get("model") or "",
        "status": _STATUS[phase],
        "error": None,
        "content": None,
        "usage": None,
        "created_at": unix(task.created_at),
        "updated_at": unix(task.updated_at),
        **dict.fromkeys(_UNTOLD),
        **{name: _USUAL.get(name) if value is None else value for name, value in given.items()},
    }
    if phase is Phase.DONE:
        told |= {"content": _content(view), "usage": _UNCOUNTED}
    elif phase in (Phase.FAILED, Phase.EXPIRED):
        code = _FAILURES.get(view.problem.code, "InternalServiceError")
        told["error"] = {"code": code, "message": view.problem.detail}
    return told


def _content(view: View) -> dict[str, Any]:
    """
    The clip comes first and the last frame, where it was asked for, last: `words.FILES`.
    """
    asked = view.task.parameters.get("return_last_frame") and len(view.files) > 1
    return {"video_url": view.files[0], "last_frame_url": view.files[-1] if asked else None, "file_url": None}
