"""
Replicate as its SDKs know it (fills port Door): `/v1/predictions`, by model and by deployment, and `/v1/files`.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from vidrelay.core.door import Answering, DoorCall, DoorRoute, InlineFile, JsonReply, Kept, Part, Phase, View
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Problem
from vidrelay.providers.doorway import (
    MAX_INLINE_BYTES,
    cancel,
    form_in,
    instant_of,
    iso,
    keep,
    look,
    object_in,
    page,
    submit,
    taken_force,
    text_in,
    uploaded_at,
    with_media,
)
from vidrelay.providers.replicate.parameters import as_sent, is_name

PAGE = 100
LONGEST_WAIT = 60.0
SLACK = 0.2
"""The SDK's own time-out is half a second longer than the wait that it asks for."""

_STATUS = {
    Phase.WAITING: "starting",
    Phase.WORKING: "processing",
    Phase.DONE: "succeeded",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "canceled",
    Phase.EXPIRED: "failed",
}
_UNENDED = (Phase.WAITING, Phase.WORKING)
_WAIT = re.compile(r"(?:^|[,;\s])wait(?:\s*=\s*(\d{1,4}))?\s*(?:$|[,;])", re.IGNORECASE | re.ASCII)
_UNKNOWN_INSTANT = datetime.fromtimestamp(0, UTC)
"""The SDK insists on an instant where the relay keeps none."""


class ReplicateDoor:
    """
    `/v1/predictions`: create, get, list, cancel. `/v1/files`: create, get.
    """

    def __init__(self) -> None:
        named = "{owner}/{name}"
        self.routes = (
            DoorRoute(method="GET", path="/v1/predictions/{id}", handler=self.get),
            DoorRoute(method="POST", path="/v1/predictions", handler=self.by_version),
            DoorRoute(method="POST", path=f"/v1/models/{named}/predictions", handler=self.by_model),
            DoorRoute(method="POST", path=f"/v1/deployments/{named}/predictions", handler=self.by_deployment),
            DoorRoute(method="GET", path="/v1/predictions", handler=self.several),
            DoorRoute(method="POST", path="/v1/predictions/{id}/cancel", handler=self.cancel),
            DoorRoute(method="GET", path=f"/v1/models/{named}/versions/{{id}}", handler=self.version),
            DoorRoute(method="POST", path="/v1/files", handler=self.upload),
            DoorRoute(method="GET", path="/v1/files/{id}", handler=self.uploaded),
        )

    def by_version(self, call: DoorCall) -> Answering:
        """
        A create whose body names the version.
        """
        return self._create(call, {})

    def by_model(self, call: DoorCall) -> Answering:
        """
        A create whose address names the model.
        """
        return self._create(call, {"model": "{owner}/{name}".format_map(call.params)})

    def by_deployment(self, call: DoorCall) -> Answering:
        """
        A create whose address names the deployment.
        """
        return self._create(call, {"deployment": "{owner}/{name}".format_map(call.params)})

    def _create(self, call: DoorCall, address: Mapping[str, str]) -> Answering:
        body = object_in(call)
        force, prompt, inputs = taken_force(body), "", body.get("input")
        if isinstance(inputs, Mapping):
            inputs = dict(inputs)
            # The SDK passes on no field of the body that it does not know, but every one of the input.
            force = taken_force(inputs) or force
            prompt, body["input"] = text_in(inputs, "prompt"), with_media(inputs)
        for name in ("model", "deployment"):
            if name in body:
                raise InvalidRequest(f"A {name} stands in the address, not in the body.", field=name)
        if not address and not text_in(body, "version"):
            raise InvalidRequest("version is required.", field="version")
        if not all(map(is_name, address.values())):
            raise InvalidRequest("The address names no model or deployment: owner/name.")
        view = yield from submit(as_sent({**address, **body}), prompt=prompt, force=force)
        wait = _wait(call)
        if wait is not None and view.phase in _UNENDED:
            view = yield from look(view.task.id, wait=wait - SLACK)
        prediction = _prediction(view, call, inline=True)
        if wait is not None and view.phase in _UNENDED:
            # With any other word `replicate.run()` takes it for ended, and returns nothing.
            return JsonReply(status=202, value={**prediction, "status": "starting"})
        return JsonReply(status=201, value=prediction)

    def get(self, call: DoorCall) -> Answering:
        """
        How a prediction stands.
        """
        view = yield from look(call.params["id"])
        return JsonReply(value=_prediction(view, call, inline=True))

    def several(self, call: DoorCall) -> Answering:
        """
        The account's predictions, newest first; their files by address.
        """
        views = yield from page(PAGE, after=call.query.get("cursor"))
        rows = [_prediction(view, call, inline=False) for view in views]
        more = f"{call.base}/v1/predictions?cursor={views[-1].task.id}" if len(views) == PAGE else None
        return JsonReply(value={"previous": None, "next": more, "results": rows})

    def cancel(self, call: DoorCall) -> Answering:
        """
        Stop one; the answer is how it stands then.
        """
        view = yield from cancel(call.params["id"])
        return JsonReply(value=_prediction(view, call, inline=True))

    def version(self, call: DoorCall) -> Answering:
        """
        `replicate.run("owner/name:version")` asks for its schema behind the create, to know whether the output is a
        stream of parts. That of a video is none.
        """
        yield from ()
        schema = {"components": {"schemas": {"Output": {"type": "string", "format": "uri"}}}}
        told = {"id": call.params["id"], "created_at": iso(_UNKNOWN_INSTANT), "cog_version": "unknown"}
        return JsonReply(value={**told, "openapi_schema": schema})

    def upload(self, call: DoorCall) -> Answering:
        """
        Take in a picture, which a create then names by its address.
        """
        form = form_in(call)
        part = next((file for file in form.files if file.name == "content"), None)
        if part is None:
            raise InvalidRequest("content is required.", field="content")
        asset = yield from keep(part)
        return JsonReply(status=201, value=_file(asset, call, part, dict(form.fields).get("metadata")))

    def uploaded(self, call: DoorCall) -> Answering:
        """
        What is known of an upload.
        """
        asset = yield from keep(Kept(asset=f"sha256:{call.params['id']}"))
        return JsonReply(value=_file(asset, call, None, None))

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        A problem as RFC 7807 tells it.
        """
        told = {"type": "about:blank", "title": problem.title, "status": problem.status, "detail": problem.detail}
        return JsonReply(status=problem.status, value={**told, "instance": None})


def make(_dialect: str | None) -> ReplicateDoor:
    """
    The door of an account.
    """
    return ReplicateDoor()


def _wait(call: DoorCall) -> float | None:
    """
    How long `Prefer` asks for the answer to be held, in seconds; None where it does not.
    """
    found = _WAIT.search(call.headers.get("prefer", ""))
    return None if found is None else min(LONGEST_WAIT, max(1.0, float(found[1] or LONGEST_WAIT)))


def _prediction(view: View, call: DoorCall, *, inline: bool) -> dict[str, Any]:
    task, sent, phase = view.task, view.task.parameters, view.phase
    here = f"{call.base}/v1/predictions/{task.id}"
    timings = task.timings()
    metrics = {"predict_time": timings.execute, "total_time": timings.total}
    failed = phase in (Phase.FAILED, Phase.EXPIRED)
    return {
        "id": task.id,
        "model": sent.get("model") or sent.get("deployment") or _model(task.request.model_version),
        "version": sent.get("version") or "hidden",
        "status": _STATUS[phase],
        "input": _shown(sent.get("input") or {}, call),
        "output": _output(view, inline=inline),
        "error": view.problem.detail if failed else None,
        "logs": _logs(1.0 if phase is Phase.DONE else view.standing.progress),
        "metrics": {name: seconds for name, seconds in metrics.items() if seconds is not None and task.ended},
        "created_at": iso(task.created_at),
        "started_at": iso(task.remote_times.started_at or task.working_at),
        "completed_at": iso(task.finished_at),
        "data_removed": view.gone,
        "deployment": sent.get("deployment"),
        "source": "api",
        "urls": {"get": here, "cancel": f"{here}/cancel"},
    }


def _output(view: View, *, inline: bool) -> Any:
    if not view.files or view.gone:
        return None
    addresses: list[Any] = [*view.files]
    if inline:
        # The SDK makes a file of a data URI and of https addresses alone.
        addresses = [
            InlineFile(task_id=view.task.id, index=file.index, max_bytes=MAX_INLINE_BYTES, instead=address)
            for file, address in zip(view.task.files, view.files, strict=True)
        ]
    return addresses[0] if len(addresses) == 1 else addresses


def _shown(value: Any, call: DoorCall) -> Any:
    """
    What was asked for, each picture as the address of its upload.
    """
    match value:
        case {"$asset": str(asset)}:
            return uploaded_at(f"{call.base}/v1", asset)
        case Mapping():
            return {name: _shown(inner, call) for name, inner in value.items()}
        case list() | tuple():
            return [_shown(inner, call) for inner in value]
    return value


def _model(version: str | None) -> str:
    """
    The model's name of `owner/name:version`; what the SDK must have is empty where nobody has told it.
    """
    name = (version or "").partition(":")[0]
    return name if is_name(name) else ""


def _logs(progress: float | None) -> str:
    """
    The line from which the SDK reads a prediction's progress.
    """
    if progress is None:
        return ""
    percent = int(progress * 100)
    return f"{percent:3d}%|{'#' * (percent // 10):10}| {percent}/100"


def _file(asset: Asset, call: DoorCall, part: Part | None, metadata: str | None) -> dict[str, Any]:
    digest = asset.id.removeprefix("sha256:")
    return {
        "id": digest,
        "name": part.filename if part else digest,
        "content_type": asset.media_type,
        "size": asset.size_bytes,
        "etag": digest,
        "checksums": {"sha256": digest},
        "metadata": _metadata(metadata),
        "created_at": iso(instant_of(call.fresh) if part else _UNKNOWN_INSTANT),
        "expires_at": None,
        "urls": {"get": uploaded_at(f"{call.base}/v1", asset.id)},
    }


def _metadata(text: str | None) -> dict[str, Any]:
    try:
        read = json.loads(text or "{}")
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise InvalidRequest("metadata must be a JSON object.", field="metadata")
    return read
