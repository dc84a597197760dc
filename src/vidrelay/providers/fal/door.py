"""
fal's queue as its SDKs know it (fills port Door): a model's own address, and `…/requests/{id}` below its app's.

fal tells its hosts apart by name. Here they are one address: the queue's is the door's own, and that of the synchronous
host ends in `/run`.
"""

from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorReply, DoorRoute, JsonReply, Phase, View, elsewhere
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import CancelOutcome, FileRef, Problem
from vidrelay.providers.doorway import (
    Granting,
    cancel,
    keep,
    look,
    object_in,
    submit,
    taken_force,
    text_in,
    uploaded_at,
    with_media,
)
from vidrelay.providers.fal import words
from vidrelay.providers.fal.parameters import ENDPOINT, HEADERS, ROUTING, WEBHOOK, app_of, as_sent, is_endpoint

HOLD_SECONDS = 60.0
IN_QUEUE = "IN_QUEUE"
NEVER = "9999-12-31T23:59:59+00:00"
"""When the token for uploads ends, which is the relay's own."""

_ENDED = (Phase.DONE, Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED)
_STATUS = {Phase.WAITING: IN_QUEUE, Phase.WORKING: "IN_PROGRESS", **dict.fromkeys(_ENDED, "COMPLETED")}
_ENDS = {Phase.CANCELLED: words.CANCELLED, Phase.EXPIRED: words.TIMED_OUT}
_UNDERWAY = (CancelOutcome.PENDING, CancelOutcome.UNSUPPORTED)


class FalDoor:
    """
    Submit, status, result, cancel; `run`, which waits; and what the SDK uploads.
    """

    def __init__(self) -> None:
        one = "/{app:path}/requests/{id}"
        self.routes = (
            DoorRoute(method="GET", path=f"{one}/status", handler=self.status),
            DoorRoute(method="GET", path=one, handler=self.result),
            DoorRoute(method="PUT", path=f"{one}/cancel", handler=self.cancel),
            DoorRoute(method="POST", path="/storage/auth/token", handler=self.token),
            DoorRoute(method="POST", path="/files/upload", handler=self.upload),
            # fal's other uploads, which are no apps of these names.
            DoorRoute(method="POST", path="/storage/{rest:path}", handler=elsewhere),
            DoorRoute(method="POST", path="/files/{rest:path}", handler=elsewhere),
            DoorRoute(method="POST", path="/run/{endpoint:path}", handler=self.run),
            DoorRoute(method="POST", path="/{endpoint:path}", handler=self.submit),
        )

    def submit(self, call: DoorCall) -> Answering:
        """
        A create: always answered as one that waits.
        """
        view = yield from _create(call)
        return JsonReply(value={**_told(view, call), "status": IN_QUEUE, "queue_position": _position(view)})

    def run(self, call: DoorCall) -> Answering:
        """
        A create whose answer is the result, if it is there within a minute.
        """
        view = yield from _create(call)
        if view.phase not in _ENDED:
            view = yield from look(view.task.id, wait=HOLD_SECONDS)
        if view.phase in _ENDED:
            return _result(view)
        detail = "It is not done yet, and goes on: the same call again waits for it and makes no second one."
        return _failed(words.STATUSES[words.TIMED_OUT], detail, words.TIMED_OUT, view.task.id)

    def status(self, call: DoorCall) -> Answering:
        """
        How a request stands.
        """
        view = yield from look(call.params["id"])
        phase, told = view.phase, _told(view, call)
        told["status"] = status = _STATUS[phase]
        if status == IN_QUEUE:
            told["queue_position"] = _position(view)
            return JsonReply(status=202, value=told)
        # What the model prints stays at fal; a list is what the SDK's user goes through who has asked for it.
        told["logs"] = [] if call.query.get("logs", "").lower() in ("1", "true") else None
        if phase is Phase.WORKING:
            return JsonReply(status=202, value=told)
        seconds = view.task.timings().execute
        told["metrics"] = {} if seconds is None else {"inference_time": seconds}
        if phase is not Phase.DONE:
            told |= {"error": view.problem.detail, "error_type": _error_of(view)[1]}
        return JsonReply(value=told)

    def result(self, call: DoorCall) -> Answering:
        """
        What the model made, or the error that it ended with.
        """
        view = yield from look(call.params["id"])
        if view.phase not in _ENDED:
            return JsonReply(status=400, value={"detail": "Request is still in progress"})
        return _result(view)

    def cancel(self, call: DoorCall) -> Answering:
        """
        Take it out of the queue, or stop it where that goes.
        """
        view = yield from cancel(call.params["id"])
        if view.cancel is CancelOutcome.TOO_LATE:
            return JsonReply(status=400, value={"status": words.ENDED})
        if view.cancel in _UNDERWAY:
            return JsonReply(status=202, value={"status": "CANCELLATION_REQUESTED"})
        return JsonReply(value={"status": "OK"})

    def token(self, call: DoorCall) -> Answering:
        """
        The token with which the SDK uploads: the one that it has shown.
        """
        yield from ()
        _, _, token = call.headers.get("authorization", "").partition(" ")
        told = {"token": token, "token_type": "Bearer", "base_url": call.base, "expires_at": NEVER}
        return JsonReply(value=told)

    def upload(self, call: DoorCall) -> Answering:
        """
        Take in a picture, which a create then names by its address.
        """
        asset = yield from keep()
        return JsonReply(value={"access_url": uploaded_at(call.base, asset.id)})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"detail", "error_type"}`.
        """
        return _failed(problem.status, problem.detail, problem.code, call.params.get("id", "none"))


def make(_dialect: str | None) -> FalDoor:
    """
    The door of an account.
    """
    return FalDoor()


def _create(call: DoorCall) -> Granting:
    endpoint, body = call.params["endpoint"], object_in(call)
    force = taken_force(body)
    if not is_endpoint(endpoint):
        raise InvalidRequest("The address names no model: owner/app, or owner/app/path.")
    if "text/event-stream" in call.headers.get("accept", ""):
        raise InvalidRequest("vidrelay streams no model's output: use submit, subscribe or run.")
    for name in ROUTING:
        if name in body:
            raise InvalidRequest(f"{name} is vidrelay's own word.", field=name)
    sent: dict[str, Any] = {ENDPOINT: endpoint, **with_media(body)}
    if words.WEBHOOK_QUERY in call.query:
        sent[WEBHOOK] = call.query[words.WEBHOOK_QUERY]
    headers = {name: call.headers[name] for name in words.REQUEST_HEADERS if name in call.headers}
    if headers:
        sent[HEADERS] = headers
    return submit(as_sent(sent), prompt=text_in(body, "prompt"), force=force)


def _told(view: View, call: DoorCall) -> dict[str, Any]:
    """
    The request's addresses, which the SDK follows as they are.
    """
    request_id = view.task.id
    here = f"{call.base}/{app_of(str(view.task.parameters.get(ENDPOINT, '')))}/requests/{request_id}"
    return {
        "request_id": request_id,
        "response_url": here,
        "status_url": f"{here}/status",
        "cancel_url": f"{here}/cancel",
    }


def _position(view: View) -> int:
    standing = view.standing
    return (standing.queue_position if standing.ahead is None else standing.ahead) or 0


def _result(view: View) -> DoorReply:
    if view.phase is not Phase.DONE:
        status, kind = _error_of(view)
        return _failed(status, view.problem.detail, kind, view.task.id)
    if view.gone:
        raise UnknownTask("The result is not there any more.")
    files = [_file(file, url) for file, url in zip(view.task.files, view.files, strict=True)]
    videos = [file for file in files if file["content_type"].startswith("video/")]
    made: dict[str, Any] = {"video": videos[0]} if videos else {"images": files}
    if len(videos) > 1:
        made["videos"] = videos
    seed = view.task.parameters.get("seed")
    return JsonReply(value=made if seed is None else {**made, "seed": seed})


def _file(file: FileRef, url: str) -> dict[str, Any]:
    name = f"output.{url.rpartition('.')[2]}"
    return {"url": url, "content_type": file.media_type, "file_name": name, "file_size": file.size_bytes}


def _error_of(view: View) -> tuple[int, str]:
    """
    The status and the word with which fal tells of a request that ended without a result.
    """
    kind = _ENDS.get(view.phase) or words.ERROR_TYPES.get(view.problem.code, view.problem.code)
    return words.STATUSES.get(kind, view.problem.status), kind


def _failed(status: int, detail: str, kind: str, request_id: str) -> JsonReply:
    headers = {
        words.ERROR_TYPE: kind,
        words.RETRYABLE: "false",
        # Without it the SDK takes some errors for those of a proxy, and sends the call again.
        "x-fal-request-id": request_id,
    }
    return JsonReply(status=status, value={"detail": detail, "error_type": kind}, headers=headers)
