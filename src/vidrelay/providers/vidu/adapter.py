"""
Toward Vidu (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from vidrelay.core.adapter import (
    CancelResult,
    CheckOutcome,
    Conversation,
    Dedupe,
    FindOutcome,
    PictureRule,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Refused,
    Scope,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, Failed, Found, StillRunning
from vidrelay.core.messages import LIST_REPLY_BYTES, HttpRequest
from vidrelay.core.task import Asset, BlockReason, CancelOutcome, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import between, same, settled
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import answered, identity, number_of, reason, rows_of, text_of, time_of, went_through
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    left_of,
    of_call,
    of_create,
    of_poll,
    of_refused_cancel,
    ready,
    without_id,
)
from vidrelay.providers.vidu import words
from vidrelay.providers.vidu.parameters import prepare

MAX_PAGES = 5
PAGE = 100
TRIES = 3
"""So often is a create sent whose picture Vidu could not fetch from its address."""
MAX_FETCHES = 5
"""So many tasks are asked for one by one to settle a lost create."""


class ViduAdapter(JsonAdapter):
    """
    One account at Vidu.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self._is_chinas = (urlsplit(self.base).hostname or "").endswith(".vidu.cn")
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=2.0,
            longest_run=timedelta(hours=48),  # an off_peak task's
            hosts=words.HOSTS,
            irrelevant=frozenset({"payload", "callback_url"}),
            pictures=PictureRule(max_bytes=words.PICTURE_BYTES),
            lists=True,
            can_check=True,
            tells_quota=True,
        )

    def authorization(self) -> dict[str, str]:
        """
        The word is Token, not Bearer.
        """
        return {} if self.key is None else {"Authorization": f"Token {self.key}"}

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Vidu's words (`parameters.prepare`).

        Raises:
            InvalidRequest: Vidu cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets, max_prompt=words.MAX_PROMPT_CHINA if self._is_chinas else words.MAX_PROMPT)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, with our own key as the payload that comes back in the list.
        """
        body = filled(task.parameters, data_uri)
        kind = body.pop("kind", words.TEXT)
        body["payload"] = _payload(task)
        reply = yield self.post(f"/{kind}", body, creates=True)
        data = answered(reply)
        if data is None:
            error = words.error(reply, key=self.key)
            if words.is_unfetched(reply) and task.attempts < TRIES:
                return Refused(scope=Scope.CREATES, reason=BlockReason.RATE, detail=error.detail, retry_after=5.0)
            return of_create(error)
        remote_id = self.usable(identity(data, "task_id"))
        if remote_id is None:
            return without_id(reply)
        standing = words.STATES.read(text_of(data, "state"))
        if standing is Standing.FAILED:
            return self._ended(data, remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=_times(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/tasks/{remote_id}/creations")
        data = answered(reply)
        return of_poll(words.error(reply, key=self.key)) if data is None else self._seen(data)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, asked for these tasks alone.
        """
        ids = [task.remote_id for task in tasks if task.remote_id is not None][:PAGE]
        reply = yield self._listing({"task_ids": ",".join(ids), "pager.pagesz": PAGE})
        rows = rows_of(answered(reply) or {}, "tasks")
        if rows is None:
            return of_call(words.error(reply, key=self.key))
        listed = {identity(row, "id"): self._seen(row) for row in rows}
        seen = {task.id: listed[task.remote_id] for task in tasks if task.remote_id in listed}
        # A row that does not show its clip leaves the task to a call of its own.
        return {task_id: outcome for task_id, outcome in seen.items() if not isinstance(outcome, Trouble)}

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list for tasks of that time and those words, and ask each for the payload that it was made with.

        Rows are not documented to show it, nor seed and pictures: by them two creates lost together could be taken for
        one another.
        """
        listed = yield from self._listed(task, search)
        if isinstance(listed, Refused | Trouble):
            return listed
        rows, whole = listed
        sent = _payload(task)
        alike: dict[str, Found] = {}
        doubtful = list(rows)[MAX_FETCHES:]
        for remote_id, row in list(rows.items())[:MAX_FETCHES]:
            payload = text_of(row, "payload")
            if payload != sent:
                reply = yield self.get(f"/tasks/{remote_id}/creations")
                told = answered(reply)
                if told is None:
                    return of_call(words.error(reply, key=self.key))
                payload = text_of(told, "payload")
            if payload == sent:
                state = words.STATES.read(text_of(row, "state")).remote_state
                alike[remote_id] = Found(remote_id=remote_id, remote_state=state, times=_times(row))
            elif not payload:
                doubtful.append(remote_id)
        return settled(alike, whole=whole or sent == task.submission_key, doubtful=doubtful)

    def _listed(
        self, task: Task, search: Search
    ) -> Conversation[tuple[dict[str, dict[str, Any]], bool] | Refused | Trouble]:
        """
        The listed rows that can be the lost create, by their ids, and whether the list was read to its end.
        """
        can_be: dict[str, dict[str, Any]] = {}
        when, token, whole = None, None, False
        for _ in range(MAX_PAGES):
            reply = yield self._listing({"pager.pagesz": PAGE, "pager.page_token": token})
            data = answered(reply) or {}
            rows = rows_of(data, "tasks")
            if rows is None:
                return of_call(words.error(reply, key=self.key))
            when = when or between(search, reply)
            for row in rows:
                remote_id, payload = identity(row, "id") or "", text_of(row, "payload")
                if (
                    remote_id in search.owned
                    or not self.valid_id(remote_id)
                    or payload not in (None, "", _payload(task))
                ):
                    continue
                if payload == task.submission_key or (when.holds(time_of(row, "created_at")) and _can_be(row, task)):
                    can_be[remote_id] = row
            token = text_of(data, "next_page_token")
            whole = not token or not rows
            if whole:
                break
        return can_be, whole

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stops what is not scheduled yet; a scheduled task is refused with 400.
        """
        reply = yield self.post(f"/tasks/{task.remote_id}/cancel", {"id": task.remote_id})
        if went_through(reply):
            return Cancelled(outcome=CancelOutcome.STOPPED)
        error = words.error(reply, key=self.key)
        # OperationInProcess is a 400 too, and may work another time.
        if reply.status != 400 or not error.readable or error.meaning is Meaning.RATE:
            return of_call(error)
        return of_refused_cancel((yield from self.poll(task)))

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        The account's concurrency, which all models share.
        """
        reply = yield self.get("/credits")
        rows = rows_of(answered(reply) or {}, "remains") or []
        told = [number_of(row, "concurrency_limit") for row in rows if row.get("type") == "concurrent"]
        limits = [int(limit) for limit in told if limit is not None and limit >= 1]
        return {"*": max(limits)} if limits else None

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the credits.
        """
        reply = yield self.get("/credits")
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        told = [number_of(row, "credit_remain") for row in rows_of(data, "remains") or []]
        left = [one for one in told if one is not None]
        return left_of(sum(left) if left else None, "credits")

    def _listing(self, query: Mapping[str, Any]) -> HttpRequest:
        return self.call("GET", "/tasks", query=query, max_reply_bytes=LIST_REPLY_BYTES)

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(data, "state")):
            case Standing.DONE:
                clips = rows_of(data, "creations") or []
                return ready(*(text_of(clip, "url") for clip in clips), times=_times(data))
            case Standing.FAILED:
                return self._ended(data)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(data))

    def _ended(self, data: Mapping[str, Any], remote_id: str | None = None) -> Failed:
        code = text_of(data, "err_code")
        meaning = words.CODES.get(code or "", Standing.FAILED.meaning)
        return failed(meaning, reason(code, secret=self.key), remote_id=remote_id)


def make(settings: AdapterSettings) -> ViduAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ViduAdapter(settings)


def _payload(task: Task) -> Any:
    """
    What comes back with the task: the user's own, or our key.
    """
    return task.parameters.get("payload") or task.submission_key


def _can_be(row: Mapping[str, Any], task: Task) -> bool:
    """
    Whether nothing that the row shows speaks against it.
    """
    shown = [name for name in ("prompt", "model", "duration", "resolution", "aspect_ratio", "seed") if row.get(name)]
    return all(same(row[name], task.parameters.get(name)) for name in shown)


def _times(data: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=time_of(data, "created_at"))
