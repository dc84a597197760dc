"""
A gateway's videos as its clients know them (fills port Door): `/v1/videos`, as OpenAI's SDK asks for them, and the
gateway's own `/v1/video/generations`.
"""

from collections.abc import Container, Generator
from typing import Any

from vidrelay.core.door import (
    Answering,
    DoorCall,
    DoorReply,
    DoorRoute,
    FileReply,
    FormBody,
    JsonReply,
    Phase,
    View,
    Wish,
)
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import create_in, look, media_in, percent, submit, taken_force, text_in, unix
from vidrelay.providers.new_api import parameters

VIDEOS, GENERATIONS = "/v1/videos", "/v1/video/generations"
POLL_MS = "500"
"""A status read costs nothing here, and OpenAI's SDK takes a second if it is not told otherwise."""

_STATUS = {
    Phase.WAITING: ("queued", "QUEUED"),
    Phase.WORKING: ("in_progress", "IN_PROGRESS"),
    Phase.DONE: ("completed", "SUCCESS"),
    **dict.fromkeys((Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED), ("failed", "FAILURE")),
}
_MISSING = JsonReply(status=400, value={"code": "task_not_exist", "message": "task_not_exist", "data": None})
_CODES = {404: "task_not_exist", 403: "access_denied", 429: "rate_limit_exceeded"}


class NewApiDoor:
    """
    Create, fetch and content: there is no list, and nothing can be stopped or deleted.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path=VIDEOS, handler=self.create),
            DoorRoute(method="POST", path=GENERATIONS, handler=self.create),
            DoorRoute(method="GET", path=f"{VIDEOS}/{{id}}", handler=self.video),
            DoorRoute(method="GET", path=f"{GENERATIONS}/{{id}}", handler=self.generation),
            DoorRoute(method="GET", path=f"{VIDEOS}/{{id}}/content", handler=self.content),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        JSON, or a form as OpenAI's SDK sends it.
        """
        if isinstance(call.body, FormBody):
            wanted = dict(call.body.fields)
            force = taken_force(wanted)
            body = _of_form(call.body, wanted)
        else:
            body, force = create_in(call)
        for name in (parameters.FILE, "image"):
            if isinstance(body.get(name), str):
                body[name] = media_in(body[name])
        if isinstance(body.get("images"), list):
            body["images"] = [media_in(one) for one in body["images"]]
        prepared = parameters.as_sent(parameters.with_picture_in_place(body))
        view = yield from submit(prepared, prompt=text_in(body, "prompt"), force=force)
        return _video(view)

    def video(self, call: DoorCall) -> Answering:
        """
        How a clip stands, as OpenAI tells it.
        """
        view = yield from _found(call)
        return _MISSING if view is None else _video(view)

    def generation(self, call: DoorCall) -> Answering:
        """
        How a clip stands, as the gateway tells it.
        """
        view = yield from _found(call)
        if view is None:
            return _MISSING
        return JsonReply(value={"code": "success", "message": "", "data": _generation(view)})

    def content(self, call: DoorCall) -> Answering:
        """
        The clip's bytes, once they are there.
        """
        view = yield from _found(call)
        if view is None:
            return _no_content(404, "Task not found")
        if view.phase is Phase.DONE:
            return FileReply(task_id=view.task.id)
        return _no_content(400, f"Task is not completed yet, current status: {_STATUS[view.phase][0]}")

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"code", "message", "data"}`.
        """
        code = _CODES.get(problem.status, "invalid_request" if problem.status < 500 else "do_request_failed")
        return JsonReply(status=problem.status, value={"code": code, "message": problem.detail, "data": None})


def make(_dialect: str | None) -> NewApiDoor:
    """
    The door of an account.
    """
    return NewApiDoor()


def _of_form(form: FormBody, wanted: Container[str]) -> dict[str, Any]:
    fields = [(name, value) for name, value in form.fields if name in wanted]
    return parameters.of_form([*fields, *((part.name.removesuffix("[]"), part) for part in form.files)])


def _found(call: DoorCall) -> Generator[Wish, Any, View | None]:
    """
    The task; None where it or its clip is not there, of which the gateway tells with a status of its own.
    """
    try:
        view = yield from look(call.params["id"])
    except UnknownTask:
        return None
    return None if view.gone else view


def _no_content(status: int, message: str) -> JsonReply:
    return JsonReply(status=status, value={"error": {"message": message, "type": "invalid_request_error"}})


def _video(view: View) -> DoorReply:
    task, sent, phase = view.task, view.task.parameters, view.phase
    seconds = sent.get("seconds") or sent.get("duration") or ""
    told: dict[str, Any] = {
        "id": task.id,
        "task_id": task.id,
        "object": "video",
        "model": sent.get("model") or "",
        "status": _STATUS[phase][0],
        "progress": percent(view),
        "created_at": unix(task.created_at),
        "seconds": str(seconds),
        "size": sent.get("size") or "",
    }
    if phase is Phase.DONE:
        told |= {"completed_at": unix(task.finished_at), "metadata": {"url": view.files[0]}}
    if told["status"] == "failed":
        told["error"] = {"code": view.problem.code, "message": view.problem.detail}
    return JsonReply(value=told, headers={"openai-poll-after-ms": POLL_MS})


def _generation(view: View) -> dict[str, Any]:
    task, status = view.task, _STATUS[view.phase][1]
    return {
        "task_id": task.id,
        "status": status,
        "progress": f"{percent(view)}%",
        "fail_reason": view.problem.detail if status == "FAILURE" else "",
        "result_url": view.files[0] if view.phase is Phase.DONE else "",
        "submit_time": unix(task.created_at),
        "start_time": unix(task.working_at) or 0,
        "finish_time": unix(task.finished_at) or 0,
        "data": None,
    }
