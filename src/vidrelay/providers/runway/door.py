"""
Runway's tasks as its SDK knows them (fills port Door): `/v1/…_to_video`, `/v1/tasks`, `/v1/uploads`.
"""

import re
from functools import partial
from typing import Any

from vidrelay.core.door import (
    Answering,
    DoorCall,
    DoorRoute,
    JsonReply,
    Kept,
    OpenAddress,
    Phase,
    View,
)
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import (
    create_in,
    file_in,
    forget,
    iso,
    keep,
    submit,
    text_in,
    theirs,
    there,
    with_media,
)
from vidrelay.providers.runway.parameters import IMAGE, TEXT, as_sent

CALLS = (TEXT, IMAGE, "video_to_video", "video_upscale", "character_performance")
"""The calls that make a task whose output is a clip."""
DRAFT = "draftTaskId"
"""The earlier task that a clip goes on from, which Runway knows by an id of its own."""
UNKNOWN_CREDITS = {"credits": 0}
"""The SDK wants a number, and vidrelay is not told what a task costs."""
DOCS = "https://docs.dev.runwayml.com/errors/errors/"

_STATUS = {
    Phase.WAITING: "PENDING",
    Phase.WORKING: "RUNNING",
    Phase.DONE: "SUCCEEDED",
    Phase.FAILED: "FAILED",
    Phase.CANCELLED: "CANCELLED",
    Phase.EXPIRED: "FAILED",
}
_UPLOADED = re.compile(r"runway://vidrelay/([0-9a-f]{32})", re.ASCII)
_FAILURE_CODE = re.compile(r"([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)(?::|$)", re.ASCII)
_FAILURE_CODES = {"moderated": "SAFETY", "rejected": "ASSET.INVALID"}


class RunwayDoor:
    """
    Creates, retrieves and deletes tasks, and takes uploads.
    """

    def __init__(self) -> None:
        self.routes = (
            *(DoorRoute(method="POST", path=f"/v1/{call}", handler=partial(self.create, call)) for call in CALLS),
            DoorRoute(method="GET", path="/v1/tasks/{id}", handler=self.retrieve),
            DoorRoute(method="DELETE", path="/v1/tasks/{id}", handler=self.delete),
            DoorRoute(method="POST", path="/v1/uploads", handler=self.start_upload),
            DoorRoute(method="POST", path="/v1/uploads/{name}", handler=self.upload),
        )

    def create(self, name: str, call: DoorCall) -> Answering:
        """
        The create call of that name, of which the answer is an id and no status.
        """
        body, force = create_in(call)
        if DRAFT in body:
            body[DRAFT] = yield from theirs(body[DRAFT])
        prepared = as_sent(name, with_media(body, uploaded=_uploaded))
        view = yield from submit(prepared, prompt=text_in(body, "promptText"), force=force)
        return JsonReply(value={"id": view.task.id, "estimatedCost": UNKNOWN_CREDITS})

    def retrieve(self, call: DoorCall) -> Answering:
        """
        How a task stands.
        """
        view = yield from there(call.params["id"])
        return JsonReply(value=_task(view))

    def delete(self, call: DoorCall) -> Answering:
        """
        Stop it where it has not ended, and delete its file.
        """
        view = yield from there(call.params["id"])
        yield from forget(view.task.id)
        return JsonReply(value=None, status=204)

    def start_upload(self, call: DoorCall) -> Answering:
        """
        Give out the address that takes the file, which the SDK sends without its key, and what a create names it by.
        """
        yield from ()
        told = {
            "uploadUrl": OpenAddress(path=f"/v1/uploads/{call.fresh}"),
            "fields": {"key": call.fresh},
            "runwayUri": f"runway://vidrelay/{call.fresh}",
        }
        return JsonReply(value=told)

    def upload(self, call: DoorCall) -> Answering:
        """
        Take the file in.
        """
        yield from keep(file_in(call), name=call.params["name"])
        return JsonReply(value=None, status=204)

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error", "issues", "docUrl"}`.
        """
        return JsonReply(status=problem.status, value={"error": problem.detail, "issues": [], "docUrl": DOCS})


def make(_dialect: str | None) -> RunwayDoor:
    """
    The door of an account; there are no dialects.
    """
    return RunwayDoor()


def _uploaded(address: str) -> Kept | None:
    """
    The picture that was uploaded here under that address; None for one of Runway's own.
    """
    found = _UPLOADED.fullmatch(address)
    return Kept(asset=found[1]) if found else None


def _task(view: View) -> dict[str, Any]:
    phase = view.phase
    told: dict[str, Any] = {
        "id": view.task.id,
        "createdAt": iso(view.task.created_at),
        "status": _STATUS[phase],
    }
    match phase:
        case Phase.WAITING:
            return {**told, "estimatedCost": UNKNOWN_CREDITS}
        case Phase.WORKING:
            return {**told, "progress": view.standing.progress or 0.0, "estimatedCost": UNKNOWN_CREDITS}
        case Phase.DONE:
            told["output"] = list(view.files)
        case Phase.FAILED | Phase.EXPIRED:
            told |= {"failure": view.problem.detail, "failureCode": _failure_code(view.problem)}
    return {**told, "cost": UNKNOWN_CREDITS}


def _failure_code(problem: Problem) -> str:
    """
    Runway's own code, where its answer was the reason; else the nearest that it has.
    """
    found = _FAILURE_CODE.match(problem.detail)
    return found[1] if found else _FAILURE_CODES.get(problem.code, "INTERNAL")
