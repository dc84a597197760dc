"""
Grok Imagine as its HTTP clients know it (fills port Door): `/v1/videos`. xAI's own Python SDK speaks gRPC.
"""

from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Phase, View
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import create_in, look, percent, submit, text_in, with_media
from vidrelay.providers.xai import parameters

USUAL_SECONDS = 8


class XaiDoor:
    """
    `/v1/videos/generations` and `/v1/videos/{id}`.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path="/v1/videos/generations", handler=self.create),
            DoorRoute(method="GET", path="/v1/videos/{id}", handler=self.retrieve),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        A clip from text, frames or references.
        """
        body, force = create_in(call)
        prepared = parameters.as_sent(with_media(body))
        view = yield from submit(prepared, prompt=text_in(body, "prompt"), force=force)
        return JsonReply(value={"request_id": view.task.id})

    def retrieve(self, call: DoorCall) -> Answering:
        """
        How a clip stands; HTTP 202 is one that has not ended.
        """
        view = yield from look(call.params["id"])
        told = _told(view)
        return JsonReply(value=told, status=202 if told["status"] == "pending" else 200)

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"message", "type", "code"}}`.
        """
        kind = "invalid_request_error" if problem.status < 500 else "server_error"
        error = {"message": problem.detail, "type": kind, "code": problem.code}
        return JsonReply(status=problem.status, value={"error": error})


def make(_dialect: str | None) -> XaiDoor:
    """
    The door of an account.
    """
    return XaiDoor()


def _told(view: View) -> dict[str, Any]:
    phase = view.phase
    if phase in (Phase.WAITING, Phase.WORKING):
        return {"status": "pending", "progress": percent(view)}
    told: dict[str, Any] = {"model": view.task.model_version}
    video = {"duration": view.task.parameters.get("duration") or USUAL_SECONDS}
    if phase is Phase.EXPIRED or view.gone:
        return {**told, "status": "expired"}
    if phase is Phase.DONE:
        video |= {"url": view.files[0], "respect_moderation": True}
        return {**told, "status": "done", "progress": 100, "video": video}
    if view.problem.code == "moderated":
        # So xAI tells it.
        video |= {"url": "", "respect_moderation": False}
        return {**told, "status": "done", "progress": 100, "video": video}
    return {**told, "status": "failed", "error": {"code": view.problem.code, "message": view.problem.detail}}
