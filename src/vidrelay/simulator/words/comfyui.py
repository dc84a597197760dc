"""
ComfyUI's words: a graph goes to `/prompt`, waits in `/queue`, and ends in `/history`. Every path is there under `/api`
too.

It says what newer servers say where they and 0.3.64 differ, but for `/api/jobs`, which it does not have.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from vidrelay.simulator.engine import Job, JobState
from vidrelay.simulator.faults import Place
from vidrelay.simulator.words.vocabulary import Answer, Asked, Call, Route, Why, Words

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HISTORY = re.compile(r"/history/([^/]+)")
_CALLS = {
    ("POST", "/prompt"): Place.CREATE,
    ("GET", "/prompt"): Place.ACCOUNT,
    ("GET", "/system_stats"): Place.ACCOUNT,
    ("GET", "/queue"): Place.POLL,
    ("GET", "/ws"): Place.POLL,
    ("POST", "/queue"): Place.DELETE,
    ("POST", "/interrupt"): Place.DELETE,
    ("GET", "/history"): Place.LIST,
    ("GET", "/view"): Place.CONTENT,
    ("POST", "/upload/image"): Place.UPLOAD,
}
_REFUSALS = {
    Why.INVALID: (400, "prompt_outputs_failed_validation"),
    # It has no keys, rates and prices of its own: these are what a proxy before it says.
    Why.AUTH: (401, "unauthorized"),
    Why.RATE: (429, "rate_limited"),
    Why.BUSY: (429, "queue_full"),
    Why.BALANCE: (402, "payment_required"),
    Why.MODERATED: (400, "prompt_outputs_failed_validation"),
    Why.NOT_FOUND: (404, "not_found"),
    Why.SERVER: (500, "server_error"),
}
_SAVES = ("Save", "VHS_", "Preview")
_PREFIX = "filename_prefix"


@dataclass(frozen=True, slots=True)
class ComfyUiWords(Words):
    """
    One job at a time; the rest wait, however many. `uploads` are the names of what its input folder holds.
    """

    uploads: list[str] = field(default_factory=list)
    DEFAULTS = MappingProxyType({"workers": 1})
    ID_AT = ("prompt_id",)
    WEBSOCKETS = True

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is.
        """
        path = asked.path.removeprefix("/api")
        entry = _HISTORY.fullmatch(path)
        if entry and asked.method == "GET":
            return Route(place=Place.POLL, job_id=entry[1], what="/history")
        place = _CALLS.get((asked.method, path))
        return Route(place=place, what=path) if place else None

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        `{"error": {"type", "message", "details", "extra_info"}, "node_errors"}`.
        """
        status, kind = _REFUSALS[why] if isinstance(why, Why) else (400, why)
        told = {"type": kind, "message": message, "details": "", "extra_info": {}}
        return Answer(status=status, data={"error": told, "node_errors": {}})

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        origin = call.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != call.host:
            return Answer(status=403)
        match call.place, call.what:
            case Place.CREATE, _:
                return self._create(call)
            case Place.UPLOAD, _:
                return self._upload(call)
            case Place.CONTENT, _:
                return self._view(call)
            case Place.ACCOUNT, "/prompt":
                return Answer(data={"exec_info": {"queue_remaining": self.remaining()}})
            case Place.ACCOUNT, _:
                return Answer(data={"system": {"comfyui_version": "0.3.64"}, "devices": []})
            case Place.POLL, "/queue":
                return Answer(data=self._queue())
            case Place.POLL, "/ws":
                return Answer(stream=Events(self, call.query.get("clientId", "")))
            case Place.POLL, _:
                return self._entry(call.job_id or "")
            case Place.LIST, _:
                return self._history(call)
            case _, "/queue":
                return self._delete((call.data or {}).get("delete") or [])
            case _:
                return self._interrupt((call.data or {}).get("prompt_id"))

    def _create(self, call: Call) -> Answer:
        body: dict[str, Any] = call.data or {}
        graph = body.get("prompt")
        if not isinstance(graph, dict) or not graph:
            return self.refuse("no_prompt", "No prompt provided")
        prompt_id = body.get("prompt_id") or f"00000000-0000-4000-8000-{len(self.engine.ledger.jobs):012d}"
        if not isinstance(prompt_id, str) or not _UUID.fullmatch(prompt_id):
            return self.refuse("invalid_prompt_id", "prompt_id must be a canonical UUID")
        for name, node in graph.items():
            if not isinstance(node, dict) or not isinstance(node.get("class_type"), str):
                return self.refuse("missing_node_type", f"Node {name} has no class_type")
        saving = [name for name, node in graph.items() if node["class_type"].startswith(_SAVES)]
        if not saving:
            return self.refuse("prompt_no_outputs", "Prompt has no outputs")
        wrong = {name: told for name, node in graph.items() if (told := self._fault(graph, node))}
        if wrong:
            refusal = self.refuse(Why.INVALID, "Prompt outputs failed validation")
            return Answer(status=400, data={**refusal.data, "node_errors": wrong})
        texts = [text for node in graph.values() for text in _texts(node.get("inputs"))]
        extra = {**(body.get("extra_data") or {}), "client_id": body.get("client_id")}
        extra["create_time"] = int(self.engine.wall(self.engine.now()) * 1000)
        data = {"prompt_id": prompt_id, "graph": graph, "extra": extra, "saving": saving}
        data["files"] = self._files(graph, saving)
        job = self.engine.create(
            call.key,
            {"prompt": " ".join(texts), "model": "", "seconds": "1"},
            pictures=sum(text in self.uploads for text in texts),
            data=data,
            # A repeated prompt_id is not refused: it runs again.
            shape=lambda drawn: f"{prompt_id}#{drawn[:8]}" if prompt_id in self.engine.ledger.jobs else prompt_id,
        )
        return Answer(data={"prompt_id": prompt_id, "number": job.number, "node_errors": {}}, job=job)

    def _fault(self, graph: dict[str, Any], node: dict[str, Any]) -> dict[str, Any] | None:
        inputs = node.get("inputs") or {}
        lost = [one for one in inputs.values() if isinstance(one, list) and len(one) == 2 and str(one[0]) not in graph]
        picture = inputs.get("image") if node["class_type"] == "LoadImage" else None
        if not lost and (picture is None or picture in self.uploads):
            return None
        what = "Invalid image file" if picture is not None else "Bad linked input"
        errors = [{"type": "custom_validation_failed", "message": what, "details": str(picture or lost[0])}]
        return {"errors": errors, "class_type": node["class_type"], "dependent_outputs": []}

    def _files(self, graph: dict[str, Any], saving: list[str]) -> list[str]:
        """
        The files that it will make; the same graph once more makes none, and points at those of the first.
        """
        jobs = self.jobs()
        if jobs and jobs[-1].data["graph"] == graph:
            return list(jobs[-1].data["files"])
        made = [name for job in jobs for name in job.data["files"]]
        names: list[str] = []
        for one in saving:
            prefix = str((graph[one].get("inputs") or {}).get(_PREFIX, "ComfyUI"))
            count = len({name for name in [*made, *names] if name.rpartition("_0")[0] == prefix})
            names.append(f"{prefix}_{count + 1:05d}_.mp4")
        return names

    def _upload(self, call: Call) -> Answer:
        name = next(iter(call.filenames), "")
        if not name:
            return Answer(status=400)
        self.uploads.append(name)
        return Answer(data={"name": name, "subfolder": "", "type": call.fields.get("type", "input")})

    def _view(self, call: Call) -> Answer:
        name, folder = call.query.get("filename", ""), call.query.get("subfolder", "")
        if not name or ".." in name + folder or name.startswith("/"):
            return Answer(status=400)
        path = f"{folder}/{name}" if folder else name
        for job in self.jobs():
            if (
                job.state is JobState.DONE
                and path in job.data["files"]
                and call.query.get("type", "output") == "output"
            ):
                return Answer(clip=job, index=job.data["files"].index(path), job=job)
        return Answer(status=404)

    def _queue(self) -> dict[str, Any]:
        running = [self._item(job) for job in self.jobs() if job.state is JobState.WORKING]
        waiting = [self._item(job) for job in self.jobs() if job.state is JobState.WAITING]
        # A heap: the first is next, and the order of the rest means nothing.
        return {"queue_running": running, "queue_pending": [*waiting[:1], *reversed(waiting[1:])]}

    def _entry(self, prompt_id: str) -> Answer:
        job = self._find(prompt_id)
        if job is None or job.unended:
            return Answer(data={}, job=job)
        return Answer(data={prompt_id: self._told(job)}, job=job)

    def _history(self, call: Call) -> Answer:
        ended = sorted((job for job in self.jobs() if not job.unended), key=lambda job: job.ended or 0.0)
        entries = {job.data["prompt_id"]: self._told(job) for job in ended}
        most, start = (int(call.query.get(name, "-1")) for name in ("max_items", "offset"))
        names = list(entries)
        if most >= 0:
            start = max(0, start if start >= 0 else len(names) - most)
            names = names[start : start + most]
        return Answer(data={name: entries[name] for name in names})

    def _delete(self, ids: list[Any]) -> Answer:
        # What waits alone can be deleted, and leaves no trace.
        for job in [self._find(one) for one in ids]:
            if job is not None and job.state is JobState.WAITING:
                self.engine.stop(job)
        return Answer()

    def _interrupt(self, prompt_id: str | None) -> Answer:
        for job in self.jobs():
            if job.state is JobState.WORKING and prompt_id in (None, job.data["prompt_id"]):
                self.engine.cancel(job)
        return Answer()

    def _item(self, job: Job) -> list[Any]:
        return [job.number, job.data["prompt_id"], job.data["graph"], job.data["extra"], job.data["saving"]]

    def _told(self, job: Job) -> dict[str, Any]:
        done = job.state is JobState.DONE
        names = [name.rpartition("/") for name in job.data["files"]] if done else []
        outputs = {
            one: {"images": [{"filename": name, "subfolder": folder, "type": "output"}], "animated": [True]}
            for one, (folder, _, name) in zip(job.data["saving"], names, strict=False)
        }
        said = {"prompt_id": job.data["prompt_id"]}
        events = [("execution_start", job.started, said)]
        if done:
            events.append(("execution_success", job.ended, said))
        elif job.state is JobState.STOPPED:
            events.append(("execution_interrupted", job.ended, {**said, "node_id": "1", "node_type": "KSampler"}))
        else:
            why = {"exception_type": "RuntimeError", "exception_message": f"{job.why}: it could not be made"}
            events.append(("execution_error", job.ended, {**said, "node_id": "1", "node_type": "KSampler", **why}))
        messages = [
            [name, {**data, "timestamp": int(self.engine.wall(at) * 1000)}]
            for name, at, data in events
            if at is not None
        ]
        status = {"status_str": "success" if done else "error", "completed": done, "messages": messages}
        return {"prompt": self._item(job), "outputs": outputs, "status": status, "meta": {}}

    def remaining(self) -> int:
        """
        How many jobs wait or are worked on.
        """
        return sum(job.unended for job in self.jobs())

    def jobs(self) -> list[Job]:
        """
        Every job, oldest first.
        """
        self.engine.now()
        return [job for job in self.engine.jobs.values() if not job.hidden]

    def _find(self, prompt_id: str) -> Job | None:
        """
        The latest job of that id.
        """
        return next((job for job in reversed(self.jobs()) if job.data["prompt_id"] == prompt_id), None)


class Events:
    """
    What a websocket tells: everybody how many jobs there are, whenever the queue changes; and a job's own client how
    far it is, ten times on its way. Nothing is told again to who comes late.
    """

    def __init__(self, words: ComfyUiWords, client: str) -> None:
        self._words = words
        self._client = client
        self._queue: dict[str, JobState] | None = None
        self._tenths: dict[str, int] = {}

    def __call__(self) -> tuple[list[Any], bool]:
        """
        What is new; it never ends by itself.
        """
        jobs, told = self._words.jobs(), []
        queue = {job.id: job.state for job in jobs if job.unended}
        before, self._queue = self._queue, queue
        own = [job for job in jobs if self._client and job.data["extra"].get("client_id") == self._client]
        for job in own if before is not None else ():
            told += self._of(job, (before or {}).get(job.id))
        if before != queue:
            told.append(_event("status", {"status": {"exec_info": {"queue_remaining": len(queue)}}}))
        if before is None:
            told[0]["data"]["sid"] = self._client or "0" * 32
        for job in own if before is not None else ():
            if job.id in (before or {}) and not job.unended:
                told.append(_event("executing", {"node": None, "prompt_id": job.data["prompt_id"]}))
        return told, False

    def _of(self, job: Job, before: JobState | None) -> list[Any]:
        said = {"prompt_id": job.data["prompt_id"]}
        if job.state is JobState.WORKING:
            begun = [] if before is JobState.WORKING else [_event("execution_start", said)]
            return begun + self._progress(job, said)
        if before is None or job.unended:
            return []
        words = {JobState.DONE: "execution_success", JobState.STOPPED: "execution_interrupted"}
        return [_event(words.get(job.state, "execution_error"), said)]

    def _progress(self, job: Job, said: dict[str, Any]) -> list[Any]:
        share = (self._words.engine.now() - (job.started or 0.0)) / job.run_seconds
        tenths = int(10 * min(1.0, share))
        if tenths == self._tenths.get(job.id):
            return []
        self._tenths[job.id] = tenths
        nodes = list(job.data["graph"])
        done = share * len(nodes)
        states = {
            name: {
                "value": min(1.0, done - number),
                "max": 1.0,
                "state": "finished" if done > number + 1 else "running",
            }
            for number, name in enumerate(nodes)
            if done > number
        }
        return [_event("progress_state", {**said, "nodes": states})]


def _event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "data": data}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else ():
        yield from _texts(inner)
