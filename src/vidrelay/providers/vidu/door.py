"""
Vidu's interface as its clients know it (fills port Door): `/ent/v2`, and the uploads of `/tools/v2`.
"""

import re
from functools import partial
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, JsonReply, Kept, OpenAddress, Phase, View
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import (
    count_in,
    create_in,
    iso,
    keep,
    look,
    object_in,
    stop_waiting,
    submit,
    text_in,
    there,
    with_media,
)
from vidrelay.providers.paging import listed, values_in
from vidrelay.providers.replies import time_of
from vidrelay.providers.vidu import words
from vidrelay.providers.vidu.parameters import as_sent

UPLOADS = "/tools/v2/files/uploads"
_STATUS = {
    Phase.WAITING: "queueing",
    Phase.WORKING: "processing",
    Phase.DONE: "success",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "failed",
    Phase.EXPIRED: "failed",
}
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "NotFound",
    422: "FieldInvalid",
    429: "TooManyRequests",
}
_WHYS = {
    "moderated": "CreationPolicyViolation",
    "rejected": "BadRequest",
    "cancelled": "UserCancelled",
    "remote_cancelled": "UserCancelled",
}
_SHOWN = (
    "model",
    "prompt",
    "duration",
    "seed",
    "resolution",
    "aspect_ratio",
    "movement_amplitude",
    "style",
    "off_peak",
)
_OURS = re.compile(r"ssupload:\?id=([0-9a-f]{64}|[0-9a-f]{32})")
"""A picture that was uploaded here, by its hash or by the id of its upload; Vidu's own ids are decimal."""


class ViduDoor:
    """
    Create by kind, read, list and stop; upload a picture.
    """

    def __init__(self) -> None:
        self.routes = (
            *(
                DoorRoute(method="POST", path=f"/ent/v2/{kind}", handler=partial(self.create, kind))
                for kind in words.KINDS
            ),
            DoorRoute(method="GET", path="/ent/v2/tasks", handler=self.several),
            DoorRoute(method="GET", path="/ent/v2/tasks/{id}/creations", handler=self.creations),
            DoorRoute(method="POST", path="/ent/v2/tasks/{id}/cancel", handler=self.stop),
            DoorRoute(method="POST", path=UPLOADS, handler=self.begin_upload),
            DoorRoute(method="PUT", path=f"{UPLOADS}/{{id}}", handler=self.take_upload),
            DoorRoute(method="PUT", path=f"{UPLOADS}/{{id}}/finish", handler=self.finish_upload),
        )

    def create(self, kind: str, call: DoorCall) -> Answering:
        """
        Pictures are data URIs, addresses, or what was uploaded before.
        """
        body, force = create_in(call)
        # The payload is the client's own, whatever it looks like.
        sent = {
            name: value if name == "payload" else with_media(value, uploaded=_uploaded) for name, value in body.items()
        }
        view = yield from submit(as_sent({**sent, "kind": kind}), prompt=text_in(body, "prompt"), force=force)
        state = "created" if view.phase is Phase.WAITING else _STATUS[view.phase]
        # The payload of this very call: a task that it joined may have come with another.
        told = {**_asked(view), "payload": text_in(body, "payload")}
        return JsonReply(value={"task_id": view.task.id, "state": state, **told})

    def creations(self, call: DoorCall) -> Answering:
        """
        How a clip stands, and where it is.
        """
        view = yield from there(call.params["id"])
        return JsonReply(value=_task(view))

    def several(self, call: DoorCall) -> Answering:
        """
        The account's clips, newest first.
        """
        size = count_in(call, "pager.pagesz", default=20, most=100)
        number = call.query.get("pager.page", "")
        skip = size * int(number) if re.fullmatch(r"\d{1,4}", number, re.ASCII) else 0
        wanted = {name: values_in(call, name) for name in ("task_ids", "states", "model_versions", "resolutions")}
        since, until = (time_of(call.query, f"created_at.{end}") for end in ("from", "to"))

        def fits(view: View) -> bool:
            task = view.task
            shown = (task.id, _STATUS[view.phase], task.model_version, task.parameters.get("resolution"))
            in_time = (since is None or task.created_at >= since) and (until is None or task.created_at <= until)
            return in_time and all(not of or one in of for one, of in zip(shown, wanted.values(), strict=True))

        views, token = yield from listed(fits, size=size, skip=skip, after=call.query.get("pager.page_token") or None)
        rows = [{**_asked(view), **_task(view)} for view in views]
        return JsonReply(value={"tasks": rows, "next_page_token": token or ""})

    def stop(self, call: DoorCall) -> Answering:
        """
        Stops what waits; what is worked on is left alone, as Vidu leaves it.
        """
        view = yield from look(call.params["id"])
        if view.phase is Phase.WAITING:
            view, too_late = yield from stop_waiting(view.task.id)
            if not too_late:
                return JsonReply(value={})
        phase = Phase.WORKING if view.phase is Phase.WAITING else view.phase
        return _error(400, "BadRequest", f"A task that is {_STATUS[phase]} cannot be cancelled.")

    def begin_upload(self, call: DoorCall) -> Answering:
        """
        Gives an address for a picture's bytes, which clients send without a key.
        """
        yield from ()
        address = OpenAddress(path=f"{UPLOADS}/{call.fresh}", method="PUT")
        return JsonReply(value={"id": call.fresh, "put_url": address})

    def take_upload(self, call: DoorCall) -> Answering:
        """
        Takes the bytes in; `finish` is told the `ETag`, which names them for as long as the picture is kept.
        """
        asset = yield from keep(name=_upload_id(call))
        return JsonReply(value=None, headers={"etag": f'"{asset.id.removeprefix("sha256:")}"'})

    def finish_upload(self, call: DoorCall) -> Answering:
        """
        Gives what stands for the picture in a create.
        """
        yield from ()
        etag = text_in(object_in(call), "etag").strip('"')
        return JsonReply(value={"uri": f"ssupload:?id={etag if _is_hash(etag) else _upload_id(call)}"})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"code", "reason", "message", "metadata"}`.
        """
        usual = "BadRequest" if problem.status < 500 else "InternalServiceFailure"
        reason = "TaskNotFound" if problem.code == "unknown_task" else _REASONS.get(problem.status, usual)
        return _error(problem.status, reason, problem.detail)


def make(_dialect: str | None) -> ViduDoor:
    """
    The door of an account.
    """
    return ViduDoor()


def _error(status: int, reason: str, message: str) -> JsonReply:
    told = {"code": status, "reason": reason, "message": message, "metadata": {"trace_id": ""}}
    return JsonReply(status=status, value=told)


def _is_hash(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}", text) is not None


def _upload_id(call: DoorCall) -> str:
    if re.fullmatch(r"[0-9a-f]{32}", call.params["id"]) is None:
        raise InvalidRequest("No upload has this id.")
    return call.params["id"]


def _uploaded(uri: str) -> Kept | None:
    found = _OURS.fullmatch(uri)
    return Kept(asset=f"sha256:{found[1]}" if _is_hash(found[1]) else found[1]) if found else None


def _asked(view: View) -> dict[str, Any]:
    """
    What a task was asked for, as answers repeat it; pictures that were sent as bytes are left out.
    """
    sent = view.task.parameters
    images = sent.get("images")
    return {
        **{name: sent[name] for name in _SHOWN if name in sent},
        "images": [one for one in images if isinstance(one, str)] if isinstance(images, list | tuple) else [],
        "payload": text_in(sent, "payload"),
        "created_at": iso(view.task.created_at),
    }


def _task(view: View) -> dict[str, Any]:
    task, state = view.task, _STATUS[view.phase]
    failed = state == "failed"
    return {
        "id": task.id,
        "state": state,
        "err_code": _WHYS.get(view.problem.code, "InternalServiceFailure") if failed else "",
        "err_msg": view.problem.detail if failed else "",
        "payload": text_in(task.parameters, "payload"),
        # Typed clients want a text for the cover; there is none of the clip here.
        "creations": [
            {"id": f"{task.id}-{number}", "url": url, "cover_url": ""} for number, url in enumerate(view.files)
        ],
    }
