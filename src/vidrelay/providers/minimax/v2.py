"""
Toward MiniMax's V2 (fills port Adapter): the H3 family.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

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
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    UploadOutcome,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.media import AUDIO, VIDEO
from vidrelay.core.messages import LIST_REPLY_BYTES, Form, HttpRequest
from vidrelay.core.task import Asset, CancelOutcome, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import between, settled
from vidrelay.providers.minimax import words
from vidrelay.providers.minimax.content import prepare, text_in
from vidrelay.providers.minimax.listed import can_be, id_of, rows_in
from vidrelay.providers.pictures import data_uri, filled, form_file
from vidrelay.providers.replies import identity, object_of, read_object, reason, text_of, went_through
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    of_call,
    of_create,
    of_poll,
    of_upload,
    ready,
    without_id,
)

MAX_PAGES, PAGE = 5, 100
QUERY = "/v2/query/video_generation"
COPIES = timedelta(hours=24)
"""How long an upload is kept is not documented."""


class V2Adapter(JsonAdapter):
    """
    One account at MiniMax's V2.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, versions=words.VERSIONS)
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=10.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({"callback_url"}),
            prompts=frozenset({"content.text"}),
            pictures=PictureRule(max_bytes=30 * 1024 * 1024),
            media={VIDEO: 50_000_000, AUDIO: 15_000_000},
            copies=COPIES,
            lists=True,
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in V2's words (`content.prepare`).

        Raises:
            InvalidRequest: V2 cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST.
        """
        reply = yield self.post("/v2/video_generation", filled(task.parameters, data_uri), creates=True)
        data = read_object(reply)
        if not words.is_fine_v2(reply, data):
            return of_create(words.error_v2(reply, key=self.key))
        seen = _task(data)
        remote_id = self.usable(identity(data or {}, "task_id") or identity(seen, "id"))
        if remote_id is None:
            return without_id(reply)
        return Accepted(remote_id=remote_id, times=_times(seen))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET; tasks of more than 7 days ago are not known any more.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"{QUERY}/{remote_id}")
        data = read_object(reply)
        if data is None or not words.is_fine_v2(reply, data):
            return of_poll(words.error_v2(reply, key=self.key))
        return self._seen(_task(data))

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, at most two pages of it; its order is not documented, and what is not in it is asked for by itself.
        """
        left = {task.remote_id: task.id for task in tasks if task.remote_id is not None}
        told: dict[str, PollOutcome] = {}
        for page in (1, 2):
            reply = yield self._listing(page)
            rows = rows_in(reply)
            if rows is None:
                return told or of_call(words.error_v2(reply, key=self.key))
            for row in rows:
                remote_id = id_of(row)
                seen = self._seen(row)
                # A row that does not show its clip leaves the task to a call of its own.
                if remote_id in left and not isinstance(seen, Trouble):
                    told[left.pop(remote_id)] = seen
            if len(rows) < PAGE or not left:
                break
        return told

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list for jobs of that model and time. Rows are not documented to show the prompt: one that does
        settles it; without it, two creates lost together could be taken for one another, so a person chooses, and so
        where there are pictures, which cannot be compared.
        """
        alike: dict[str, Found] = {}
        unsure: list[str] = []
        has_pictures = len(task.parameters.get("content") or ()) > 1
        when, whole = None, False
        for page in range(1, MAX_PAGES + 1):
            reply = yield self._listing(page, model=task.model_version)
            rows = rows_in(reply)
            if rows is None:
                return of_call(words.error_v2(reply, key=self.key))
            when = when or between(search, reply)
            for row in rows:
                remote_id = id_of(row) or ""
                made, text = words.when(row, "created_at"), text_in(row)
                if remote_id in search.owned or not self.valid_id(remote_id) or not can_be(row, task):
                    continue
                if made is not None and not when.holds(made):
                    continue
                if made is None or text is None or has_pictures:
                    unsure.append(remote_id)
                else:
                    state = words.STATES_V2.read(text_of(row, "status")).remote_state
                    alike[remote_id] = Found(remote_id=remote_id, remote_state=state, times=_times(row))
            whole = len(rows) < PAGE
            if whole:
                break
        if not unsure:
            return settled(alike, whole=whole)
        detail = (
            f"{len(unsure) + len(alike)} jobs in the provider's list may be it, and do not show all that would prove it"
        )
        return Undecided(detail=detail, candidates=(*alike, *unsure))

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stop it while it waits. The same call erases a finished record, so the task is asked for first.
        """
        seen = yield from self.poll(task)
        match seen:
            case StillRunning(remote_state=state) if state == Standing.WAITING.remote_state:
                pass
            case StillRunning():
                return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
            case Ready() | Failed():
                return CancelTooLate()
            case NotThere():
                # Right after its create that means not yet: it runs, and the wish must not be lost.
                return Trouble(detail=seen.detail)
            case _:
                return seen
        reply = yield self.call("DELETE", f"/v2/video_generation/{task.remote_id}")
        data = read_object(reply)
        if words.is_fine_v2(reply, data) and went_through(reply):
            action = text_of(data or {}, "action") or text_of(_task(data), "action") or "cancel"
            return CancelTooLate() if action.startswith("delete") else Cancelled(outcome=CancelOutcome.STOPPED)
        error = words.error_v2(reply, key=self.key)
        began = error.readable and error.meaning in (Meaning.REJECTED, Meaning.MISSING)
        # It was taken from the line between the two calls; the next look at it tells.
        return Trouble(detail=error.detail) if began else of_call(error)

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        One form; the file's id, written as an address of MiniMax's own, stands for it.
        """
        form = Form(fields=(("purpose", "video_generation_input"),), files=(form_file(picture, name="file"),))
        reply = yield self.call("POST", "/v1/files/upload", body=form)
        data = read_object(reply)
        if not words.is_fine_v2(reply, data):
            return of_upload(words.error_v2(reply, key=self.key))
        file_id = self.usable(identity(object_of(data or {}, "file"), "file_id"))
        if file_id is None:
            return Trouble(detail="the provider took the picture and names no file")
        return Copied(reference=f"mm_file://{file_id}")

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for one row of the list.
        """
        reply = yield self._listing(1, size=1)
        return of_call(words.error_v2(reply, key=self.key)) if rows_in(reply) is None else Checked()

    def _listing(self, page: int, *, model: str | None = None, size: int = PAGE) -> HttpRequest:
        query = {"page_num": page, "page_size": size, "filter.model": model}
        return self.call("GET", QUERY, query=query, max_reply_bytes=LIST_REPLY_BYTES)

    def _seen(self, seen: Mapping[str, Any]) -> PollOutcome:
        match words.STATES_V2.read(text_of(seen, "status")):
            case Standing.DONE:
                return ready(text_of(object_of(seen, "content"), "url"), times=_times(seen))
            case Standing.FAILED | Standing.CANCELLED | Standing.EXPIRED as standing:
                error = object_of(seen, "error")
                code, meaning = identity(error, "code"), standing.meaning
                if standing is Standing.FAILED:
                    meaning = words.CODES.get(code or "", meaning)
                return failed(meaning, reason(code, text_of(error, "message"), word=standing, secret=self.key))
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(seen))


def _task(data: Mapping[str, Any] | None) -> dict[str, Any]:
    return object_of(data or {}, "task") or dict(data or {})


def _times(seen: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=words.when(seen, "created_at"))
