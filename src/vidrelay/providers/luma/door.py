"""
Dream Machine as its SDK knows it (fills port Door): `/dream-machine/v1/generations`.
"""

import re
from collections.abc import Generator, Mapping
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Phase, View, Wish
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import count_in, create_in, forget, iso, submit, text_in, theirs, there
from vidrelay.providers.luma.parameters import CLIP, as_sent
from vidrelay.providers.paging import newest

ROOT = "/dream-machine/v1"
MAX_PAGE = 100

_STATES = {
    Phase.WAITING: "queued",
    Phase.WORKING: "dreaming",
    Phase.DONE: "completed",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "failed",
    Phase.EXPIRED: "failed",
}


class LumaDoor:
    """
    Creates, gets, lists and deletes generations.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path=f"{ROOT}/generations/video", handler=self.create),
            DoorRoute(method="POST", path=f"{ROOT}/generations", handler=self.create),
            DoorRoute(method="GET", path=f"{ROOT}/generations", handler=self.several),
            DoorRoute(method="GET", path=f"{ROOT}/generations/{{id}}", handler=self.retrieve),
            DoorRoute(method="DELETE", path=f"{ROOT}/generations/{{id}}", handler=self.delete),
            DoorRoute(method="GET", path=f"{ROOT}/ping", handler=self.ping),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        A clip; its pictures are addresses, for Luma takes no others.
        """
        body, force = create_in(call)
        if isinstance(body.get("keyframes"), Mapping):
            body["keyframes"] = yield from _keyframes(body["keyframes"])
        view = yield from submit(as_sent(body), prompt=text_in(body, "prompt"), force=force)
        return JsonReply(status=201, value=_generation(view))

    def retrieve(self, call: DoorCall) -> Answering:
        """
        How a generation stands.
        """
        view = yield from there(call.params["id"])
        return JsonReply(value=_generation(view))

    def several(self, call: DoorCall) -> Answering:
        """
        The account's generations, newest first.
        """
        limit = count_in(call, default=MAX_PAGE, most=MAX_PAGE)
        given = call.query.get("offset", "")
        offset = int(given) if re.fullmatch(r"\d{1,5}", given, re.ASCII) else 0
        views = yield from newest(offset + limit + 1)
        shown = [_generation(view) for view in views[offset : offset + limit]]
        more = len(views) > offset + limit
        told = {"generations": shown, "count": len(shown), "has_more": more, "limit": limit, "offset": offset}
        return JsonReply(value=told)

    def delete(self, call: DoorCall) -> Answering:
        """
        Stop it where it has not ended, and delete its file.
        """
        view = yield from there(call.params["id"])
        yield from forget(view.task.id)
        return JsonReply(value=None, status=204)

    def ping(self, call: DoorCall) -> Answering:
        """
        Say that somebody is there.
        """
        yield from ()
        return JsonReply(value={"message": "pong"})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"detail"}`.
        """
        return JsonReply(status=problem.status, value={"detail": problem.detail})


def make(_dialect: str | None) -> LumaDoor:
    """
    The door of an account; there are no dialects.
    """
    return LumaDoor()


def _keyframes(frames: Mapping[str, Any]) -> Generator[Wish, Any, dict[str, Any]]:
    """
    The frames, of which one may be an earlier generation: Luma knows it by an id of its own.
    """
    read: dict[str, Any] = {}
    for name, frame in frames.items():
        read[name] = frame
        if isinstance(frame, Mapping) and frame.get("type") == "generation":
            read[name] = {**frame, "id": (yield from theirs(frame.get("id")))}
    return read


def _generation(view: View) -> dict[str, Any]:
    phase, sent = view.phase, view.task.parameters
    state = _STATES[phase]
    return {
        "id": view.task.id,
        "generation_type": CLIP["generation_type"],
        "state": state,
        "failure_reason": view.problem.detail if state == "failed" else None,
        "created_at": iso(view.task.created_at),
        "assets": {"video": view.files[0]} if phase is Phase.DONE and view.files else None,
        "model": sent.get("model"),
        "request": dict(sent),
    }
