"""
Toward DashScope (fills port Adapter).
"""

import json
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
    Refused,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    Undecided,
    UploadOutcome,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, Found, StillRunning
from vidrelay.core.media import ANY_SIZE
from vidrelay.core.messages import LIST_REPLY_BYTES, HttpRequest
from vidrelay.core.task import Asset, CancelOutcome, Request, Task
from vidrelay.providers.dashscope import words
from vidrelay.providers.dashscope.parameters import DEFAULT_MODEL, prepare, service
from vidrelay.providers.dashscope.upload import placed
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import Between, between, settled
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import answered, object_of, reason, text_of
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    meaning_of,
    of_call,
    of_create,
    of_poll,
    of_refused_cancel,
    of_upload,
    ready,
    without_id,
)

SERVICE = "/services/aigc/{}/video-synthesis"
PAGE, LIST_PAGES, FIND_PAGES = 100, 2, 3
MAX_FETCHES = 5
"""So many tasks are asked for one by one to settle a lost create."""
AROUND = timedelta(hours=9)
"""
So far around the lost create's time is listed: whether the list's filter means China's time is not documented, nor
whether more than a day can be asked for.
"""


class DashScopeAdapter(JsonAdapter):
    """
    One account at DashScope, in the region of its address.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=15.0,
            longest_run=timedelta(hours=3),
            hosts=words.HOSTS,
            prompts=frozenset({"input.prompt", "input.negative_prompt"}),
            pictures=PictureRule(max_edge=2000, max_bytes=10 * 1024 * 1024),
            media=ANY_SIZE,
            copies=timedelta(hours=47),
            lists=True,
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in DashScope's words (`parameters.prepare`).

        Raises:
            InvalidRequest: The model cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, at the service that the model belongs to.
        """
        body = filled(task.parameters, data_uri)
        headers = {"X-DashScope-Async": "enable"}
        if '"oss://' in json.dumps(body, default=str):
            headers["X-DashScope-OssResourceResolve"] = "enable"
        path = SERVICE.format(service(text_of(body, "model")))
        reply = yield self.post(path, body, creates=True, headers=headers)
        output = words.output_of(reply)
        if output is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(output, "task_id"))
        if remote_id is None:
            return without_id(reply)
        state = words.STATES.read(text_of(output, "task_status")).remote_state
        return Accepted(remote_id=remote_id, remote_state=state, times=words.times(output))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET; a task of more than a day ago is not known any more.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/tasks/{remote_id}")
        output = words.output_of(reply)
        if output is None:
            return of_poll(words.error(reply, key=self.key))
        word = text_of(output, "task_status")
        if word == words.GONE:
            return NotThere(detail="the provider does not know the task, or not any more")
        match words.STATES.read(word):
            case Standing.DONE:
                # Some addresses begin with http://; the gate dials them over TLS.
                return ready(text_of(output, "video_url"), times=words.times(output))
            case Standing.FAILED | Standing.CANCELLED as standing:
                code = text_of(output, "code")
                meaning = meaning_of(code, words.CODES) if standing is Standing.FAILED else None
                why = reason(code, text_of(output, "message"), word=standing, secret=self.key)
                return failed(meaning or standing.meaning, why)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=words.times(output))

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, at most two pages of it: it tells of those that run; one that has ended is asked for its file.
        """
        left = {task.remote_id: task.id for task in tasks if task.remote_id is not None}
        seen: dict[str, PollOutcome] = {}
        for page in range(1, LIST_PAGES + 1):
            reply = yield self._listing(page)
            rows = words.rows_in(reply)
            if rows is None:
                return seen or of_call(words.error(reply, key=self.key))
            for row in rows:
                standing = words.STATES.read(words.status_of(row))
                task_id = left.pop(text_of(row, "task_id") or "", None)
                if task_id is not None and standing.remote_state is not None:
                    seen[task_id] = StillRunning(remote_state=standing.remote_state, times=words.times(row))
            if len(rows) < PAGE or not left:
                break
        return seen

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list for jobs of that model and time, and ask the likeliest for the prompt that they were made of.

        A task shows its prompt once it has ended, so one that runs is a candidate until then. It never shows its
        pictures nor its seed: by the prompt alone two creates lost together could be taken for one another, so a person
        chooses.
        """
        listed = yield from self._listed(task, search)
        if isinstance(listed, Refused | Trouble):
            return listed
        ids, when, whole = listed
        given: Mapping[str, Any] = task.parameters.get("input") or {}
        asked: Mapping[str, Any] = task.parameters.get("parameters") or {}
        has_more = "seed" in asked or bool(given.keys() - {"prompt", "negative_prompt"})
        wanted = text_of(given, "prompt")
        alike: dict[str, Found] = {}
        unsure = ids[MAX_FETCHES:]
        for remote_id in ids[:MAX_FETCHES]:
            reply = yield self.get(f"/tasks/{remote_id}")
            output = words.output_of(reply)
            if output is None:
                return of_call(words.error(reply, key=self.key))
            times, prompt = words.times(output), text_of(output, "orig_prompt")
            if not _may_be_of(when, output):
                continue
            if prompt is not None and wanted is not None and prompt.strip() != wanted.strip():
                continue
            if prompt is None or wanted is None or has_more or not when.holds(times.created_at):
                unsure.append(remote_id)
            else:
                state = words.STATES.read(text_of(output, "task_status")).remote_state
                alike[remote_id] = Found(remote_id=remote_id, remote_state=state, times=times)
        if not unsure:
            return settled(alike, whole=whole)
        detail = f"{len(unsure) + len(alike)} jobs may be it, and do not show all that would prove it"
        return Undecided(detail=detail, candidates=(*alike, *unsure))

    def _listed(self, task: Task, search: Search) -> Conversation[tuple[list[str], Between, bool] | Refused | Trouble]:
        """
        The ids of the listed jobs of that model that can be of that time, what that time is by the provider's clock,
        and whether the list was read to its end.
        """
        ids: dict[str, None] = {}
        span = (search.sent_at - AROUND, search.lost_at + AROUND)
        page = seen = 0
        while True:
            page += 1
            reply = yield self._listing(page, model=task.model_version, span=span)
            rows = words.rows_in(reply)
            if rows is None:
                return of_call(words.error(reply, key=self.key))
            if page == 1:
                when = between(search, reply)
            for row in rows:
                remote_id = text_of(row, "task_id") or ""
                if self.valid_id(remote_id) and remote_id not in search.owned and _may_be_of(when, row):
                    ids[remote_id] = None
            seen += len(rows)
            # A page may be shorter than was asked for, if there is a limit that is not documented.
            whole = len(rows) < PAGE and (not rows or seen >= words.total_of(reply))
            if whole or page == FIND_PAGES:
                return list(ids), when, whole

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stops what is PENDING; anything else is refused.
        """
        reply = yield self.call("POST", f"/tasks/{task.remote_id}/cancel")
        data = answered(reply)
        if data is not None and not text_of(data, "code"):
            return Cancelled(outcome=CancelOutcome.STOPPED)
        error = words.error(reply, key=self.key)
        if not error.readable or error.meaning not in (Meaning.REJECTED, Meaning.MISSING):
            return of_call(error)
        return of_refused_cancel((yield from self.poll(task)))

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        Ask for a policy, then send the form to the host that it names, without the key.
        """
        reply = yield self.get("/uploads", action="getPolicy", model=picture.get("model", DEFAULT_MODEL))
        policy = object_of(answered(reply) or {}, "data")
        if not policy:
            return of_upload(words.error(reply, key=self.key))
        place = placed(policy, picture)
        if place is None:
            return Trouble(detail="the provider's upload policy names no place")
        headers = {"Accept": "application/json"}
        stored = yield HttpRequest(method="POST", url=place.host, headers=headers, body=place.form)
        if not 200 <= stored.status < 300:
            return Trouble(detail=f"the place for the picture answered {stored.status}")
        return Copied(reference=place.reference)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for one row of the list.
        """
        reply = yield self._listing(1, size=1)
        return of_call(words.error(reply, key=self.key)) if words.rows_in(reply) is None else Checked()

    def _listing(self, page: int, *, model: str | None = None, span: Any = None, size: int = PAGE) -> HttpRequest:
        start, end = (words.compact(one) for one in span) if span else (None, None)
        query = {"page_no": page, "page_size": size, "model_name": model, "start_time": start, "end_time": end}
        return self.call("GET", "/tasks", query=query, max_reply_bytes=LIST_REPLY_BYTES)


def make(settings: AdapterSettings) -> DashScopeAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return DashScopeAdapter(settings)


def _may_be_of(when: Between, data: Mapping[str, Any]) -> bool:
    """
    Whether the task can have been made then, whichever zone its time is of; one that does not say when can.
    """
    made = words.readings(data)
    return not made or any(map(when.holds, made))
