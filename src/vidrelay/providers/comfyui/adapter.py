"""
Toward a ComfyUI server (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

from vidrelay.core.adapter import (
    CancelResult,
    Checked,
    CheckOutcome,
    Conversation,
    Copied,
    Dedupe,
    FindOutcome,
    NotThere,
    PictureRule,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Refused,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    UploadOutcome,
)
from vidrelay.core.hosts import is_loopback_host
from vidrelay.core.lifecycle import Absent, Accepted, Cancelled, Found, StillRunning
from vidrelay.core.media import ANY_SIZE
from vidrelay.core.messages import LIST_REPLY_BYTES, Form, HttpRequest
from vidrelay.core.task import Asset, CancelOutcome, RemoteState, Request, Task
from vidrelay.providers.comfyui import parameters, reading
from vidrelay.providers.comfyui.jobs import UNREAD, Jobs
from vidrelay.providers.comfyui.listening import Listener, is_news, works
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import between
from vidrelay.providers.pictures import form_file
from vidrelay.providers.replies import answered, number_of, object_of, text_of
from vidrelay.providers.verdicts import NOT_OURS, Meaning, failed, of_call, of_create, without_id

HERE = "http://127.0.0.1:8188"
SURE_AFTER = 20.0
"""So many seconds after its loss a create has come to its end: a server that answers is not held up by a graph."""


class ComfyUiAdapter(JsonAdapter):
    """
    One ComfyUI server.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=HERE)
        self._jobs = Jobs(self)
        near = is_loopback_host(urlsplit(self.base).hostname or "")
        self.traits = Traits(
            dedupe=Dedupe.CLIENT_ID,
            can_cancel=True,
            poll_floor=0.0 if near else 1.0,
            poll_spacing=0.0 if near else 0.5,
            longest_run=timedelta(hours=6),
            irrelevant=frozenset({"client_id", "prompt_id", "number", "front"}),
            prompts=frozenset({"values.prompt", "values.negative"}),
            pictures=PictureRule(max_bytes=100 * 1024 * 1024),
            media=ANY_SIZE,
            copies=timedelta(days=1),
            lists=True,
            follows=True,
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        The graph of `extra.graph`, and the values for the marks in it.

        Raises:
            InvalidRequest: There is no graph, or a field has no place in it; names the field.
        """
        return parameters.prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, under an id of our own. The same id would not be refused a second time: it would run again.
        """
        body = parameters.body(task.parameters, task.submission_key or task.id)
        reply = yield self.post("/prompt", body, creates=True)
        data = answered(reply)
        if data is None:
            return of_create(self._jobs.error(reply))
        remote_id = self.usable(text_of(data, "prompt_id"))
        return (
            without_id(reply) if remote_id is None else Accepted(remote_id=remote_id, remote_state=RemoteState.WAITING)
        )

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        The queue, and where it is not seen in there, its entry in the history.
        """
        remote_id = self.usable(task.remote_id)
        return NOT_OURS if remote_id is None else (yield from self._jobs.one(remote_id))

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The queue once, and once the newest of the history for those that are not in there.
        """
        queued = yield from self._jobs.queue()
        if isinstance(queued, Refused | Trouble):
            return queued
        return (yield from self._jobs.several(tasks, queued or ()))

    def follow(self, tasks: Sequence[Task], known: Mapping[str, StillRunning]) -> Conversation[PollManyOutcome]:
        """
        Look, listen on the websocket till the queue changes, and look again.
        """
        queued = yield from self._jobs.queue()
        if isinstance(queued, Refused | Trouble):
            return queued
        seen = yield from self._jobs.several(tasks, queued or ())
        if queued is None or not isinstance(seen, Mapping):
            return seen
        if any(is_news(seen.get(task.id), known.get(task.id)) for task in tasks):
            return seen
        task = next((task for task in tasks if works(seen[task.id])), None)
        listener = Listener(length=len(queued), task=task)
        # The events of a job go to the client that sent it, and under its name one listens at a time.
        own = None if task is None else task.remote_id
        reply = yield listener.on(self.get("/ws", max_reply_bytes=LIST_REPLY_BYTES, clientId=own))
        if reply.status != 101:
            refused = of_call(self._jobs.error(reply))
            return refused if isinstance(refused, Refused) else Trouble(detail="the server opens no websocket")
        seen = yield from self.poll_many(tasks)
        if task is not None and isinstance(seen, Mapping) and works(told := seen.get(task.id)):
            return {**seen, task.id: replace(told, progress=listener.progress)}
        return seen

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Look for our id. Absent is what is in neither place a while later, if an older job shows that no restart has
        emptied both since.
        """
        ours = parameters.id_of(task.submission_key or task.id)
        queued = yield from self._jobs.queue()
        if isinstance(queued, Refused | Trouble):
            return queued
        for one in queued or ():
            # Servers of before 0.3 give ids of their own; they too keep what was sent along.
            if ours in (one.id, one.data.get(parameters.TAG)) and self.valid_id(one.id):
                seen = reading.waiting(one)
                return Found(remote_id=one.id, remote_state=seen.remote_state, times=seen.times)
        reply = yield self._jobs.entry(ours)
        data = answered(reply)
        if data is None:
            return of_call(self._jobs.error(reply))
        if ours in data:
            return Found(remote_id=ours)
        reply = yield self._jobs.history()
        data = answered(reply)
        if data is None:
            return of_call(self._jobs.error(reply))
        entries = {name: entry for name, entry in data.items() if isinstance(entry, dict)}
        for name, entry in entries.items():
            if reading.extra_data(entry).get(parameters.TAG) == ours and self.valid_id(name):
                return Found(remote_id=name)
        if queued is None:
            return UNREAD
        if search.elapsed < SURE_AFTER:
            return Undecided(detail="the server does not have it yet")
        if not reading.any_before(entries.values(), between(search, reply).earliest):
            return Undecided(detail="the server does not have it, and may have been started again since")
        return Absent()

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Take it out of the queue, or interrupt it, which stops nobody else's: it is said which one is meant.
        """
        for _ in range(2):
            seen = yield from self.poll(task)
            if not isinstance(seen, StillRunning):
                return reading.stopped(seen)
            if seen.remote_state is RemoteState.WORKING:
                reply = yield self.post("/interrupt", {"prompt_id": task.remote_id})
                if not 200 <= reply.status < 300:
                    return of_call(self._jobs.error(reply))
                seen = yield from self.poll(task)
                if isinstance(seen, StillRunning):
                    return Trouble(detail="the server was told to interrupt it, and does so between two nodes")
                return reading.stopped(seen)
            reply = yield self.post("/queue", {"delete": [task.remote_id]})
            if not 200 <= reply.status < 300:
                return of_call(self._jobs.error(reply))
            seen = yield from self.poll(task)
            if isinstance(seen, NotThere):
                # What is deleted while it waits leaves no trace.
                return Cancelled(outcome=CancelOutcome.STOPPED)
            if not isinstance(seen, StillRunning):
                return reading.stopped(seen)
        return Trouble(detail="the server was told to delete it, and still has it")

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        Into its input folder. The name that it answers with is the one that counts.
        """
        name = parameters.filename_of(picture)
        file = form_file(picture, name="image", filename=name)
        reply = yield HttpRequest(
            method="POST",
            url=f"{self.base}/upload/image",
            headers={"Accept": "application/json", **self.authorization()},
            body=Form(fields=(("type", "input"),), files=(file,)),
        )
        data = answered(reply)
        if reply.status in (400, 413, 415):
            return failed(Meaning.REJECTED, f"the server takes no such picture (it answered {reply.status})")
        if data is None:
            return of_call(self._jobs.error(reply))
        kept, folder = text_of(data, "name"), text_of(data, "subfolder")
        if not kept:
            return Trouble(detail="the server took the picture and gave it no name")
        return Copied(reference=f"{folder}/{kept}" if folder else kept)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask how much is in the queue.
        """
        reply = yield self.get("/prompt")
        info = object_of(answered(reply) or {}, "exec_info")
        if not info:
            return of_call(self._jobs.error(reply))
        return Checked(detail=f"{number_of(info, 'queue_remaining') or 0:g} in its queue")


def make(settings: AdapterSettings) -> ComfyUiAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ComfyUiAdapter(settings)
