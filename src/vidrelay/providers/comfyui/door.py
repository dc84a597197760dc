"""
ComfyUI as its clients know it (fills port Door): `/prompt`, `/queue`, `/history`, `/view`, `/upload/image` and `/ws`,
and the same under `/api`.
"""

import re
from collections.abc import Generator
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.door import (
    Answering,
    DoorCall,
    DoorRoute,
    FileReply,
    FormBody,
    JsonReply,
    Kept,
    Phase,
    View,
    Wish,
)
from vidrelay.core.errors import InvalidRequest, UnknownAsset, UnknownTask
from vidrelay.core.media import EXTENSIONS
from vidrelay.core.task import Asset, JsonObject, Problem, State
from vidrelay.providers.comfyui import graph as graphs
from vidrelay.providers.comfyui import parameters
from vidrelay.providers.comfyui.telling import ENDED, ComfyUiHearing, entry, id_of, item
from vidrelay.providers.doorway import (
    Granting,
    cancel,
    create_in,
    keep,
    live,
    look,
    object_in,
    page,
    submit,
    text_in,
)

REACH = 500
"""So many of the newest tasks are looked through for the history."""
MAX_NAME = 300

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)
_RESULT = re.compile(r"(.{1,200})-(\d{1,3})\.[a-z0-9]{1,5}", re.ASCII)
_MEDIA = re.compile(rf"\.(?:jpeg|{'|'.join(EXTENSIONS.values())})(?: \[input\])?", re.IGNORECASE)
_UPLOADED = re.compile(r"(?:.*/)?[^/]*-([0-9a-f]{64})\.[a-z0-9]{3,4}", re.ASCII)
_TEXTS = ("text", "prompt", "positive_prompt")


class ComfyUiDoor:
    """
    One queue and one history: those of the account's tasks here.
    """

    socket_paths = frozenset({"/ws", "/api/ws"})

    def __init__(self) -> None:
        self.routes = tuple(
            DoorRoute(method=method, path=before + path, handler=handler)
            for before in ("", "/api")
            for method, path, handler in (
                ("POST", "/prompt", self.create),
                ("GET", "/prompt", self.remaining),
                ("GET", "/queue", self.queue),
                ("POST", "/queue", self.unqueue),
                ("POST", "/interrupt", self.interrupt),
                ("GET", "/history/{id}", self.ended),
                ("GET", "/history", self.history),
                ("GET", "/view", self.view),
                ("POST", "/upload/image", self.upload),
            )
        )

    def hearing(self, call: DoorCall) -> ComfyUiHearing:
        """
        A client on the websocket; one that gives itself no name gets one.
        """
        return ComfyUiHearing(call.query.get("clientId") or call.fresh)

    def create(self, call: DoorCall) -> Answering:
        """
        A graph. What its nodes load is a file that was uploaded here, or lies at the server.
        """
        body, force = create_in(call)
        if not body.get("prompt"):
            raise InvalidRequest("No prompt provided: it must be a graph in API format.", field="prompt")
        graph = graphs.checked(body.pop("prompt"), field="prompt")
        listener, known_as = _listener(body), body.pop("prompt_id", None)
        if known_as is not None and not (isinstance(known_as, str) and _ID.fullmatch(known_as)):
            raise InvalidRequest("prompt_id must be a UUID, or some such short text.", field="prompt_id")
        given = parameters.as_sent(graph, body)
        given["graph"] = yield from _with_uploads(graph)
        if known_as is not None:
            given["prompt_id"] = known_as
        view = yield from submit(
            Prepared(model=None, parameters=given),
            prompt=_prompt(graph),
            force=force,
            known_as=known_as,
            listener=listener,
        )
        return JsonReply(value={"prompt_id": known_as or view.task.id, "number": view.task.seq, "node_errors": {}})

    def remaining(self, call: DoorCall) -> Answering:
        """
        How many have not ended.
        """
        views = yield from live()
        return JsonReply(value={"exec_info": {"queue_remaining": len(views)}})

    def queue(self, call: DoorCall) -> Answering:
        """
        Those that are worked on, and those that wait.
        """
        views = yield from live()
        running = [item(view, id_of(view.task)) for view in views if view.phase is Phase.WORKING]
        pending = [item(view, id_of(view.task)) for view in views if view.phase is Phase.WAITING]
        return JsonReply(value={"queue_running": running, "queue_pending": pending})

    def unqueue(self, call: DoorCall) -> Answering:
        """
        Stop those that wait: all of the account's, or the ones that are named. Nobody else's at the server.
        """
        body = object_in(call)
        named = body.get("delete")
        views = yield from live()
        wanted: list[Any] = named if isinstance(named, list) else []
        if body.get("clear"):
            wanted = [*wanted, *(view.task.id for view in views)]
        yield from _stop(wanted, views, Phase.WAITING)
        return JsonReply(value=None)

    def interrupt(self, call: DoorCall) -> Answering:
        """
        Stop the one that is named, if it is worked on. Several programs share this queue, so the one that happens to be
        at work is stopped for nobody who does not name it.
        """
        prompt_id = text_in(call.body, "prompt_id") if isinstance(call.body, dict) else ""
        if not prompt_id:
            told = "vidrelay interrupts no job that is not named: several programs may share this queue."
            raise InvalidRequest(told, field="prompt_id", hint='Send {"prompt_id": "…"}.')
        views = yield from live()
        yield from _stop([prompt_id], views, Phase.WORKING)
        return JsonReply(value=None)

    def ended(self, call: DoorCall) -> Answering:
        """
        One job, once it has ended; nothing before.
        """
        prompt_id = call.params["id"]
        try:
            view = yield from _found(prompt_id)
        except UnknownTask:
            return JsonReply(value={})
        return JsonReply(value={prompt_id: entry(view, prompt_id)} if view.phase in ENDED else {})

    def history(self, call: DoorCall) -> Answering:
        """
        Those that have ended, oldest first: the newest `max_items`, or as many from `offset` on.
        """
        views = yield from page(REACH)
        listed = [view for view in reversed(views) if view.phase in ENDED]
        most, start = _number(call, "max_items", REACH), _number(call, "offset", -1)
        if start < 0:
            start = max(0, len(listed) - most)
        shown = listed[start : start + most]
        return JsonReply(value={id_of(view.task): entry(view, id_of(view.task)) for view in shown})

    def view(self, call: DoorCall) -> Answering:
        """
        A result's file, by the name that the history gives it.
        """
        name = _RESULT.fullmatch(call.query.get("filename", ""))
        if name is None or call.query.get("type", "output") == "input":
            raise UnknownTask("There is no such file: only results of vidrelay's own tasks are to be had here.")
        # It must be this account's.
        found = yield from look(name[1])
        return FileReply(task_id=found.task.id, index=int(name[2]))

    def upload(self, call: DoorCall) -> Answering:
        """
        Take in a picture, film or sound. A graph means it by the name in the answer, which tells its content, or by the
        name that it was sent under.
        """
        files = call.body.files if isinstance(call.body, FormBody) else ()
        part = next((file for file in files if file.name == "image"), None)
        if part is None or not part.filename:
            raise InvalidRequest("A form with the file `image` is needed.", field="image")
        folder = dict(call.body.fields).get("subfolder", "").strip("/")
        asset: Asset = yield from keep(part, name=f"{folder}/{part.filename}" if folder else part.filename)
        stem = re.sub(r"[^A-Za-z0-9_. -]", "_", re.split(r"[/\\]", part.filename)[-1].rpartition(".")[0])[:80]
        ending = EXTENSIONS[asset.media_type]
        name = f"{stem}-{asset.id.rpartition(':')[2]}.{ending}"
        return JsonReply(value={"name": name, "subfolder": "", "type": "input"})

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        `{"error": {"type", "message", "details", "extra_info"}, "node_errors": {}}`.
        """
        told = {"type": problem.code, "message": problem.detail, "details": "", "extra_info": {}}
        return JsonReply(status=problem.status, value={"error": told, "node_errors": {}})


def make(_dialect: str | None) -> ComfyUiDoor:
    """
    The door of an account.
    """
    return ComfyUiDoor()


def _listener(body: dict[str, Any]) -> str | None:
    """
    Take out of a create call's body the name of the client that is told of its job: it makes no other job.
    """
    names = [body.pop("client_id", None)]
    if isinstance(data := body.get("extra_data"), dict):
        body["extra_data"] = {name: value for name, value in data.items() if name != "client_id"}
        names.append(data.get("client_id"))
    return next((name for name in names if isinstance(name, str) and name), None)


def _with_uploads(graph: JsonObject) -> Generator[Wish, Any, dict[str, Any]]:
    """
    The graph, in which each name of a picture that was uploaded here is that picture.
    """
    whole: dict[str, Any] = {}
    for name, node in graph.items():
        inputs = dict(node.get("inputs", {}))
        for at, value in inputs.items():
            if isinstance(value, str) and len(value) <= MAX_NAME and _MEDIA.search(value):
                inputs[at] = yield from _uploaded(value)
        whole[name] = {**node, "inputs": inputs}
    return whole


def _uploaded(value: str) -> Generator[Wish, Any, Kept | str]:
    name = value.removesuffix(" [input]")
    by_content = _UPLOADED.fullmatch(name)
    try:
        asset = yield from keep(Kept(asset=f"sha256:{by_content[1]}" if by_content else name))
    except UnknownAsset:
        # So it lies at the server.
        return value
    return Kept(asset=asset.id)


def _found(prompt_id: str) -> Granting:
    """
    A task by any of its ids. Those that clients chose are known until the relay stops; a task keeps its first one.
    """
    try:
        return (yield from look(prompt_id))
    except UnknownTask:
        views = yield from page(REACH)
        for view in views:
            if id_of(view.task) == prompt_id:
                return view
        raise


def _stop(wanted: list[Any], views: list[View], phase: Phase) -> Generator[Wish, Any, None]:
    """
    Stop those of the account's live tasks that are named and are in that phase. As ComfyUI, this passes over ids that
    are not known. One that clients have chosen more than once means the latest, as everywhere.

    Those in line here go first, newest first: a place that frees at the server must not be taken by one of them.
    """
    ours, chosen = {view.task.id: view for view in views}, {id_of(view.task): view for view in views}
    meant: dict[str, View] = {}
    for prompt_id in wanted:
        if not isinstance(prompt_id, str):
            continue
        view = ours.get(prompt_id)
        if view is None:
            try:
                view = yield from look(prompt_id)
            except UnknownTask:
                view = chosen.get(prompt_id)
        if view is not None and view.phase is phase:
            meant[view.task.id] = view
    for view in sorted(meant.values(), key=lambda view: (view.task.state is not State.QUEUED, -view.task.seq)):
        yield from cancel(view.task.id)


def _prompt(graph: JsonObject) -> str:
    """
    The text that people know the job by: the first that a node is given as one.
    """
    for node in graph.values():
        for name in _TEXTS:
            if text := text_in(node.get("inputs", {}), name):
                return text
    return ""


def _number(call: DoorCall, name: str, default: int) -> int:
    text = call.query.get(name, "")
    return min(REACH, int(text)) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else default
