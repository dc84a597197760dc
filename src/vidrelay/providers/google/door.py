"""
The Gemini API as its SDKs know it (fills port Door): Veo's operations, Omni's interactions, and the files of both.

A clip's address stays one of Google's, with a file id of the relay's own (`file_ids.py`).
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.door import Answering, DoorCall, DoorRoute, FileReply, InlineFile, JsonReply, Phase, View
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import CancelOutcome, Problem
from vidrelay.providers.doorway import (
    MAX_INLINE_BYTES,
    Granting,
    cancel,
    create_in,
    forget,
    iso,
    look,
    seconds_in,
    submit,
    text_in,
    there,
)
from vidrelay.providers.google import interactions, veo, words
from vidrelay.providers.google.file_ids import address_of, as_google_knows_it, task_of
from vidrelay.providers.replies import object_of, rows_of

HELD_SECONDS = 60.0
MAX_HOLDS = 30
"""So often is a create held for so long that wants its clip in its own answer."""

_STATUS = {
    Phase.WAITING: "queued",
    Phase.WORKING: "in_progress",
    Phase.DONE: "completed",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "cancelled",
    Phase.EXPIRED: "failed",
}
_CODES = {
    **dict.fromkeys(("moderated", "rejected", "invalid_request"), 3),
    **dict.fromkeys(("cancelled", "remote_cancelled"), 1),
    **dict.fromkeys(("expired", "remote_expired"), 4),
    "uncertain": 2,
}
"""Numbers of gRPC's; a failure of another kind is INTERNAL."""
_INTERNAL = 13
_STATUSES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    **dict.fromkeys((404, 410), "NOT_FOUND"),
    409: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GoogleDoor:
    """
    `/{version}/models/…:predictLongRunning`, operations, `/{version}/interactions` and `/{version}/files/…:download`.
    """

    def __init__(self) -> None:
        at = "/{version}/interactions"
        self.routes = (
            DoorRoute(method="POST", path="/{version}/models/{model}:predictLongRunning", handler=self.predict),
            DoorRoute(method="GET", path="/{version}/models/{model}/operations/{id}", handler=self.operation),
            DoorRoute(method="POST", path=at, handler=self.interact),
            DoorRoute(method="GET", path=at + "/{id}", handler=self.interaction),
            DoorRoute(method="POST", path=at + "/{id}/cancel", handler=self.stop),
            DoorRoute(method="DELETE", path=at + "/{id}", handler=self.delete),
            DoorRoute(method="GET", path="/{version}/files/{file}:download", handler=self.download),
        )

    def predict(self, call: DoorCall) -> Answering:
        """
        A clip of Veo's.
        """
        body, force = create_in(call)
        body = yield from as_google_knows_it(body)
        model = words.model(call.params["model"])
        instances = rows_of(body, "instances") or [{}]
        prepared = veo.as_sent({**body, "model": model, "parameters": body.get("parameters") or {}})
        view = yield from submit(prepared, prompt=text_in(instances[0], "prompt"), force=force)
        return JsonReply(value={"name": _name(view)})

    def operation(self, call: DoorCall) -> Answering:
        """
        How a clip of Veo's stands.
        """
        view = yield from look(call.params["id"])
        return JsonReply(value=_operation(view))

    def interact(self, call: DoorCall) -> Answering:
        """
        A clip of Omni's.

        At Google it is always made in the background, where no answer is waited for that may be lost; who wants it in
        the answer to this very call waits here.
        """
        body, force = create_in(call)
        interactions.refuse_unheard(body)
        model = words.model(text_in(body, "model"))
        if not model.startswith(words.OMNI):
            raise InvalidRequest(f"vidrelay makes clips: {model} is no model of Omni's.", field="model")
        waits = body.get("background") is not True
        body = yield from as_google_knows_it({**body, "model": model, "background": True})
        format_ = body.get("response_format")
        seconds = seconds_in(format_, "duration") if isinstance(format_, Mapping) else None
        prepared = Prepared(model=model, parameters=body, seconds=seconds)
        view = yield from submit(prepared, prompt=_text(body.get("input")), force=force)
        holds = MAX_HOLDS if waits else 0
        while holds and not view.task.ended:
            view = yield from look(view.task.id, wait=HELD_SECONDS)
            holds -= 1
        return JsonReply(value=_interaction(view))

    def interaction(self, call: DoorCall) -> Answering:
        """
        How a clip of Omni's stands.
        """
        view = yield from _there(call.params["id"])
        return JsonReply(value=_interaction(view))

    def stop(self, call: DoorCall) -> Answering:
        """
        Cancel it.
        """
        view = yield from cancel(call.params["id"], settle=True)
        if view.cancel is CancelOutcome.TOO_LATE:
            return _error(400, "FAILED_PRECONDITION", "The interaction has ended already.", call)
        return JsonReply(value=_interaction(view))

    def delete(self, call: DoorCall) -> Answering:
        """
        Stop it where it has not ended, and delete its file.
        """
        view = yield from _there(call.params["id"])
        yield from forget(view.task.id)
        return JsonReply(value={})

    def download(self, call: DoorCall) -> Answering:
        """
        A clip's bytes.
        """
        task_id, index = task_of(call.params["file"])
        yield from there(task_id)
        return FileReply(task_id=task_id, index=index)

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"code", "message", "status"}}`; interactions tell the status in small letters as their code.
        """
        usual = "INVALID_ARGUMENT" if problem.status < 500 else "INTERNAL"
        return _error(problem.status, _STATUSES.get(problem.status, usual), problem.detail, call)


def make(_dialect: str | None) -> GoogleDoor:
    """
    The door of an account.
    """
    return GoogleDoor()


def _error(status: int, word: str, message: str, call: DoorCall) -> JsonReply:
    error: dict[str, Any] = {"code": status, "message": message, "status": word}
    if "/interactions" in call.path:
        error = {"code": word.lower(), "message": message}
    return JsonReply(status=status, value={"error": error})


def _there(task_id: str) -> Granting:
    return there(task_id, otherwise="The interaction is not there any more.")


def _name(view: View) -> str:
    return f"models/{view.task.model_version}/operations/{view.task.id}"


def _operation(view: View) -> dict[str, Any]:
    told: dict[str, Any] = {"name": _name(view)}
    if not view.task.ended and not view.stale:
        return told
    if view.phase is Phase.DONE:
        samples = [{"video": {"uri": address_of(view, index)}} for index in range(len(view.files))]
        return {**told, "done": True, "response": {"generateVideoResponse": {"generatedSamples": samples}}}
    problem = view.problem
    if problem.code == "moderated":
        filtered = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": [problem.detail]}
        return {**told, "done": True, "response": {"generateVideoResponse": filtered}}
    code = _CODES.get(problem.code, _INTERNAL)
    return {**told, "done": True, "error": {"code": code, "message": problem.detail, "status": words.NUMBERS[code]}}


def _interaction(view: View) -> dict[str, Any]:
    task, sent = view.task, view.task.parameters
    phase = view.phase
    told: dict[str, Any] = {
        "id": task.id,
        "object": "interaction",
        "model": task.model_version,
        "status": _STATUS[phase],
        "created": iso(task.created_at),
        "updated": iso(task.finished_at or task.updated_at),
    }
    told |= {name: sent[name] for name in ("labels", "previous_interaction_id") if sent.get(name) is not None}
    if phase is Phase.DONE:
        content = [_video(view, index) for index in range(len(view.files))]
        told["steps"] = [{"type": "model_output", "content": content}]
    elif told["status"] == "failed":
        code = words.NUMBERS[_CODES.get(view.problem.code, _INTERNAL)].lower()
        told["errors"] = [{"code": code, "message": view.problem.detail}]
    return told


def _video(view: View, index: int) -> dict[str, Any]:
    """
    A clip, in the answer itself too where that was asked for.
    """
    video: dict[str, Any] = {"type": "video", "mime_type": "video/mp4", "uri": address_of(view, index)}
    if object_of(view.task.parameters, "response_format").get("delivery") != "uri":
        video["data"] = InlineFile(
            task_id=view.task.id, index=index, max_bytes=MAX_INLINE_BYTES, instead=None, bare=True
        )
    return video


def _text(given: Any) -> str:
    """
    What an interaction's input says in words.
    """
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        return " ".join(filter(None, map(_text, given)))
    if not isinstance(given, Mapping):
        return ""
    return _text(given["content"]) if "content" in given else text_in(given, "text")
