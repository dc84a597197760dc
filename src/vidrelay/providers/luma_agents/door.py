"""
The Agents API as its SDK knows it (fills port Door): `/v1/generations`, `/v1/files`.
"""

import re
from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from vidrelay.core.door import (
    Answering,
    DoorCall,
    DoorRoute,
    FormBody,
    Inlined,
    JsonReply,
    Kept,
    OpenAddress,
    Phase,
    View,
    Wish,
)
from vidrelay.core.errors import UnknownAsset, UnknownTask
from vidrelay.core.task import Problem
from vidrelay.providers.doorway import (
    create_in,
    file_in,
    instant_of,
    iso,
    keep,
    object_in,
    submit,
    text_in,
    theirs,
    there,
)
from vidrelay.providers.luma_agents import words
from vidrelay.providers.luma_agents.parameters import as_sent
from vidrelay.providers.replies import number_of

UPLOAD_TIME = timedelta(hours=1)

_STATES = {
    Phase.WAITING: "queued",
    Phase.WORKING: "processing",
    Phase.DONE: "completed",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "failed",
    Phase.EXPIRED: "failed",
}
_FAMILIES = ("image/", "video/")
_FILE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_CODE = re.compile(r"([a-z_]+)(?::|$)", re.ASCII)
_CODES = {"moderated": "content_moderated", "rejected": "invalid_request"}


class LumaAgentsDoor:
    """
    Creates and gets generations, and takes files in, as a form or in the three steps of a presigned upload.
    """

    def __init__(self) -> None:
        self.routes = (
            DoorRoute(method="POST", path="/v1/generations", handler=self.create),
            DoorRoute(method="GET", path="/v1/generations/{id}", handler=self.retrieve),
            DoorRoute(method="POST", path="/v1/files", handler=self.take_file),
            DoorRoute(method="PUT", path="/v1/files/{id}/bytes", handler=self.take_bytes),
            DoorRoute(method="POST", path="/v1/files/{id}/complete", handler=self.retrieve_file),
            DoorRoute(method="GET", path="/v1/files/{id}", handler=self.retrieve_file),
        )

    def create(self, call: DoorCall) -> Answering:
        """
        A generation of any type.
        """
        body, force = create_in(call)
        parameters = yield from _with_media(body)
        view = yield from submit(as_sent(parameters), prompt=text_in(body, "prompt"), force=force)
        return JsonReply(status=201, value=_generation(view))

    def retrieve(self, call: DoorCall) -> Answering:
        """
        How a generation stands.
        """
        view = yield from there(call.params["id"])
        return JsonReply(value=_generation(view))

    def take_file(self, call: DoorCall) -> Answering:
        """
        Take a form's file in; or say where the bytes go, which come without a key.
        """
        file_id = str(UUID(call.fresh))
        if isinstance(call.body, FormBody):
            part = file_in(call)
            asset = yield from keep(part, name=file_id)
            told = {"filename": part.filename, **dict(call.body.fields)}
            file = _file(file_id, told, mime_type=asset.media_type, size_bytes=asset.size_bytes, state="ready")
            return JsonReply(status=201, value={"id": file_id, "file": file, "state": "ready", "upload": None})
        body = object_in(call)
        size = int(number_of(body, "size_bytes") or 0)
        file = _file(file_id, body, mime_type=text_in(body, "mime_type"), size_bytes=size, state="pending")
        upload = {
            "method": "PUT",
            "url": OpenAddress(path=f"/v1/files/{file_id}/bytes", method="PUT"),
            "headers": {"Content-Type": "application/octet-stream"},
            "expires_at": iso(_made_at(file_id) + UPLOAD_TIME),
        }
        return JsonReply(status=201, value={"id": file_id, "file": file, "state": "pending", "upload": upload})

    def take_bytes(self, call: DoorCall) -> Answering:
        """
        Take in the bytes of a presigned upload.
        """
        yield from keep(name=call.params["id"])
        return JsonReply(value=None)

    def retrieve_file(self, call: DoorCall) -> Answering:
        """
        A file that was taken in. What the SDK told of it beside its bytes is not kept.
        """
        file_id = call.params["id"]
        try:
            asset = yield from keep(Kept(asset=file_id))
        except UnknownAsset as error:
            raise UnknownTask("There is no file of that id, or its bytes have not come.") from error
        file = _file(file_id, {}, mime_type=asset.media_type, size_bytes=asset.size_bytes, state="ready")
        return JsonReply(value=file)

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"detail"}`.
        """
        return JsonReply(status=problem.status, value={"detail": problem.detail})


def make(_dialect: str | None) -> LumaAgentsDoor:
    """
    The door of an account; there are no dialects.
    """
    return LumaAgentsDoor()


def _with_media(value: Any) -> Generator[Wish, Any, Any]:
    """
    The value with each of its media as the adapter has it: the bytes of a picture or a film and an uploaded file as
    one, an earlier generation by Luma's own id of it, everything else as it is.
    """
    if isinstance(value, Mapping):
        if set(value) == {"data", "media_type"} and str(value["media_type"]).startswith(_FAMILIES):
            return Inlined(text=value["data"]) if isinstance(value["data"], str) else value
        if isinstance(value.get("file_id"), str) and _FILE_ID.fullmatch(value["file_id"]):
            return (yield from _uploaded(value))
        read = {}
        for name, inner in value.items():
            read[name] = yield from theirs(inner) if name == "generation_id" else _with_media(inner)
        return read
    if isinstance(value, list):
        items = list(value)
        for number, inner in enumerate(value):
            items[number] = yield from _with_media(inner)
        return items
    return value


def _uploaded(media: Mapping[str, Any]) -> Generator[Wish, Any, Any]:
    """
    The file that was uploaded here under that id; a file of another id is at Luma.
    """
    kept = Kept(asset=media["file_id"])
    try:
        yield from keep(kept)
    except UnknownAsset:
        return dict(media)
    return kept


def _made_at(file_id: str) -> datetime:
    """
    When the call was made that gave the id out, which begins with it.
    """
    return instant_of(file_id.replace("-", ""))


def _file(file_id: str, told: Mapping[str, Any], **known: Any) -> dict[str, Any]:
    said = {name: told.get(name) or None for name in ("filename", "user_id", "expires_at")}
    return {
        "id": file_id,
        "created_at": iso(_made_at(file_id)),
        "purpose": told.get("purpose") or "input",
        "deleted_at": None,
        "failure_reason": None,
        **said,
        **known,
    }


def _generation(view: View) -> dict[str, Any]:
    sent, state = view.task.parameters, _STATES[view.phase]
    failed = state == "failed"
    kinds = [file.media_type.partition("/")[0] for file in view.task.files]
    return {
        "id": view.task.id,
        "type": sent.get("type") or "video",
        "state": state,
        "model": sent.get("model") or words.MODEL,
        "created_at": iso(view.task.created_at),
        "output": [{"type": kind, "url": url} for kind, url in zip(kinds, view.files, strict=False)],
        "failure_code": _failure_code(view.problem) if failed else None,
        "failure_reason": view.problem.detail if failed else None,
    }


def _failure_code(problem: Problem) -> str:
    """
    Luma's own code, where its answer was the reason; else the nearest that it has.
    """
    found = _CODE.match(problem.detail)
    return found[1] if found and found[1] in words.CODES else _CODES.get(problem.code, "generation_failed")
