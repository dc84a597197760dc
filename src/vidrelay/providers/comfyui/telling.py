"""
How a task reads in ComfyUI's words: in its queue, in its history, and as the messages of its websocket.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from vidrelay.core.door import Phase, View
from vidrelay.core.task import FileRef, JsonObject, Task
from vidrelay.providers.comfyui import parameters

FOLDER = "vidrelay"
"""The folder that results are said to lie in; the files in it are named by their task."""
ENDED = (Phase.DONE, Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED)
MAX_TOLD = 1000

_ALL = 101
"""What is remembered of a job whose end was told; less than that are percents."""
_INTERRUPTED = (Phase.CANCELLED, Phase.EXPIRED)
_PREFIX = "filename_prefix"


def id_of(task: Task) -> str:
    """
    The id that a task goes by where no client's own is asked for: the one that its first client chose, or ours.
    """
    chosen = task.parameters.get("prompt_id")
    return chosen if isinstance(chosen, str) else task.id


def item(view: View, prompt_id: str) -> list[Any]:
    """
    A job as the queue shows it: `[number, id, graph, extra_data, outputs]`.
    """
    body = _body(view.task)
    data = {"create_time": _milliseconds(view.task.created_at), **body["extra_data"]}
    return [view.task.seq, prompt_id, body["prompt"], data, _savers(body["prompt"])]


def entry(view: View, prompt_id: str) -> dict[str, Any]:
    """
    A job as the history shows it, once it has ended.
    """
    status = {
        "status_str": "success" if view.phase is Phase.DONE else "error",
        "completed": view.phase is Phase.DONE,
        "messages": [[one["type"], one["data"]] for one in (*_begun(view, prompt_id), _end(view, prompt_id))],
    }
    return {"prompt": item(view, prompt_id), "outputs": outputs(view), "status": status, "meta": {}}


def outputs(view: View) -> dict[str, Any]:
    """
    The result's files by the node that saved each: told by its name at the server, which begins as the node says, else
    the first that saves any.
    """
    if view.phase is not Phase.DONE:
        return {}
    graph = _body(view.task)["prompt"]
    found: dict[str, Any] = {}
    for file in view.task.files:
        node = _saver_of(view.task, file, graph)
        ending = file.path.rpartition(".")[2]
        told = {"filename": f"{view.task.id}-{file.index}.{ending}", "subfolder": FOLDER, "type": "output"}
        listed = "gifs" if graph.get(node, {}).get("class_type", "").startswith("VHS_") else "images"
        made = found.setdefault(node, {})
        made.setdefault(listed, []).append(told)
        made.setdefault("animated", []).append(file.media_type.startswith("video/"))
    return found


class ComfyUiHearing:
    """
    What one client is told on the websocket (fills `Hearing`). Each job's end is told once, with all that goes before.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._told: dict[str, int] = {}
        self._live = -1

    def greet(self, live: Sequence[View]) -> list[JsonObject]:
        """
        How long the queue is, and the client's own name.
        """
        self._live = len(live)
        return [_status(self._live, sid=self.name)]

    def count(self, live: int) -> list[JsonObject]:
        """
        How long the queue is now.
        """
        if live == self._live:
            return []
        self._live = live
        return [_status(live)]

    def tell(self, view: View, *, known_as: str | None, anew: bool) -> list[JsonObject]:
        """
        From `execution_start` to `executing` without a node, which ends a job; `progress` in whole percents.
        """
        prompt_id = id_of(view.task) if known_as is None else known_as
        before = self._told.pop(prompt_id, None)
        if anew:
            before = None
        if before is None and view.phase is Phase.WAITING:
            return []
        has_ended = view.phase in ENDED
        now = _ALL if has_ended else max(before or 0, int((view.standing.progress or 0) * 100))
        _remember(self._told, prompt_id, now)
        if before == _ALL:
            return []
        news = _begun(view, prompt_id) if before is None else []
        if has_ended:
            return [*news, *_ended(view, prompt_id)]
        node = _savers(_body(view.task)["prompt"])[0]
        if before is None:
            news.append(_message("executing", prompt_id, node=node, display_node=node))
        if now > (before or 0):
            news.append(_message("progress", prompt_id, node=node, value=now, max=100))
        return news


def _body(task: Task) -> dict[str, Any]:
    return parameters.body(task.parameters, task.submission_key or task.id)


def _savers(graph: JsonObject) -> list[str]:
    """
    The nodes that save something, or else those whose outputs go nowhere.
    """
    saving = [name for name, node in graph.items() if _PREFIX in node["inputs"]]
    linked = {
        value[0]
        for node in graph.values()
        for value in node["inputs"].values()
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    }
    return saving or [name for name in graph if name not in linked] or list(graph)


def _saver_of(task: Task, file: FileRef, graph: JsonObject) -> str:
    saving = _savers(graph)
    url = task.outputs[file.index].url if file.index < len(task.outputs) else ""
    name = parse_qs(urlsplit(url).query).get("filename", [""])[0]
    for node in saving:
        prefix = graph[node]["inputs"].get(_PREFIX)
        if isinstance(prefix, str) and name.startswith(prefix.rpartition("/")[2]):
            return node
    return saving[0]


def _begun(view: View, prompt_id: str) -> list[JsonObject]:
    task = view.task
    at = _milliseconds(task.working_at or task.accepted_at or task.created_at)
    return [
        _message("execution_start", prompt_id, timestamp=at),
        _message("execution_cached", prompt_id, nodes=[], timestamp=at),
    ]


def _end(view: View, prompt_id: str) -> JsonObject:
    at = _milliseconds(view.task.finished_at or view.task.updated_at)
    if view.phase is Phase.DONE:
        return _message("execution_success", prompt_id, timestamp=at)
    graph = _body(view.task)["prompt"]
    node = _savers(graph)[0]
    where = {"node_id": node, "node_type": graph[node]["class_type"], "executed": [], "timestamp": at}
    if view.phase in _INTERRUPTED:
        return _message("execution_interrupted", prompt_id, **where)
    problem = view.problem
    why = {"exception_type": problem.code, "exception_message": problem.detail, "traceback": []}
    return _message("execution_error", prompt_id, **where, **why, current_inputs={}, current_outputs=[])


def _ended(view: View, prompt_id: str) -> list[JsonObject]:
    made = [
        _message("executed", prompt_id, node=node, display_node=node, output=told)
        for node, told in outputs(view).items()
    ]
    return [*made, _end(view, prompt_id), _message("executing", prompt_id, node=None, display_node=None)]


def _remember(told: dict[str, int], prompt_id: str, percent: int) -> None:
    told[prompt_id] = percent
    if len(told) > MAX_TOLD:
        del told[next(iter(told))]


def _status(live: int, **more: str) -> JsonObject:
    return {"type": "status", "data": {"status": {"exec_info": {"queue_remaining": live}}, **more}}


def _message(kind: str, prompt_id: str, **data: Any) -> JsonObject:
    return {"type": kind, "data": {**data, "prompt_id": prompt_id}}


def _milliseconds(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)
