"""
Toward Volcengine Ark and BytePlus ModelArk (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from vidrelay.core.adapter import (
    CancelResult,
    Checked,
    CheckOutcome,
    Conversation,
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
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, StillRunning
from vidrelay.core.media import AUDIO
from vidrelay.core.messages import LIST_REPLY_BYTES
from vidrelay.core.task import Asset, CancelOutcome, RemoteState, RemoteTimes, Request, Task
from vidrelay.providers.ark import parameters, words
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import between, same, settled
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import (
    answered,
    instant_of,
    number_of,
    object_of,
    reason,
    rows_of,
    text_of,
    went_through,
)
from vidrelay.providers.verdicts import NOT_OURS, Standing, failed, of_call, of_create, of_poll, ready, without_id

MAX_PAGES = 5
PAGE = 200
MAX_ASKED = 100
"""So many ids are put into one address."""
LEFT_OPEN = ("adaptive", -1)
"""Values that leave it to the provider."""


class ArkAdapter(JsonAdapter):
    """
    One account at Ark.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        self.dialect = settings.dialect or words.VOLCENGINE
        super().__init__(settings, base_url=words.BASES[self.dialect])
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=5.0,
            longest_run=timedelta(hours=48),  # the flex tier's, and what a job is given by default
            hosts=words.HOSTS[self.dialect],
            irrelevant=frozenset({"safety_identifier", "callback_url"}),
            prompts=frozenset({"content.text"}),
            pictures=PictureRule(max_bytes=words.PICTURE_BYTES),
            media={AUDIO: words.SOUND_BYTES},
            lists=True,
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Ark's words.

        Raises:
            InvalidRequest: Ark cannot do it; names the field and what it accepts.
        """
        return parameters.prepare(request, assets, self.dialect)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, with our own key as the tag that comes back in the list.
        """
        body = filled(task.parameters, data_uri) | {"safety_identifier": _tag(task)}
        reply = yield self.post(words.TASKS, body, creates=True)
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(data, "id"))
        return without_id(reply) if remote_id is None else Accepted(remote_id=remote_id, times=_times(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"{words.TASKS}/{remote_id}")
        data = answered(reply)
        return of_poll(words.error(reply, key=self.key)) if data is None else self._seen(data)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, asked for these tasks alone; those that would make its address too long are asked for by themselves.
        """
        ids = [task.remote_id for task in tasks if task.remote_id is not None][:MAX_ASKED]
        query = urlencode([("page_num", 1), ("page_size", len(ids) or 1), *(("filter.task_ids", one) for one in ids)])
        reply = yield self.call("GET", f"{words.TASKS}?{query}", max_reply_bytes=LIST_REPLY_BYTES)
        rows = rows_of(answered(reply) or {}, "items")
        if rows is None:
            return of_call(words.error(reply, key=self.key))
        listed = {text_of(row, "id"): self._seen(row) for row in rows}
        seen = {task.id: listed[task.remote_id] for task in tasks if task.remote_id in listed}
        # A row that does not show its clip leaves the task to a call of its own.
        return {task_id: outcome for task_id, outcome in seen.items() if not isinstance(outcome, Trouble)}

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list, newest first, back to when the create was sent: our tag settles it.

        A row shows no prompt, so one without a tag is never taken for ours by its looks: a person is asked.
        """
        tag = _tag(task)
        ours: dict[str, Found] = {}
        alike: list[str] = []
        doubtful = tag != task.submission_key or search.lost_ago > words.KEPT.total_seconds()
        when, told_of = None, 0
        for number in range(1, MAX_PAGES + 1):
            reply = yield self.get(words.TASKS, max_reply_bytes=LIST_REPLY_BYTES, page_num=number, page_size=PAGE)
            data = answered(reply) or {}
            rows = rows_of(data, "items")
            if rows is None:
                return of_call(words.error(reply, key=self.key))
            when = when or between(search, reply)
            doubtful = doubtful or len(rows) < len(data["items"])
            for row in rows:
                remote_id, shown = text_of(row, "id") or "", text_of(row, "safety_identifier")
                made_at = instant_of(row, "created_at")
                doubtful = doubtful or made_at is None or not self.valid_id(remote_id)
                if remote_id in search.owned or not self.valid_id(remote_id):
                    continue
                if shown == task.submission_key:
                    state = words.STATUSES.read(text_of(row, "status")).remote_state
                    ours[remote_id] = Found(remote_id=remote_id, remote_state=state, times=_times(row))
                elif when.holds(made_at) and _is_alike(row, task):
                    doubtful = True
                    if not shown or shown == tag:
                        alike.append(remote_id)
            told_of += len(rows)
            total = number_of(data, "total")
            if _is_past(rows, when.earliest) or (len(rows) < PAGE if total is None else told_of >= total):
                break
            # A record that is erased meanwhile moves another one over the edge of two pages, where nobody sees it.
            doubtful = True
            if not rows:
                break
        if ours or not doubtful:
            return settled(ours, complete_after=search.elapsed)
        return Undecided(detail="no job in the list has our tag, and some may be it", candidates=tuple(alike))

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        DELETE stops what still waits. It erases the record of what has ended, so it is sent to nothing else.
        """
        seen = yield from self.poll(task)
        if isinstance(seen, NotThere):
            return Trouble(detail=seen.detail)
        if not isinstance(seen, StillRunning):
            return seen if isinstance(seen, Refused | Trouble) else CancelTooLate()
        if seen.remote_state is not RemoteState.WAITING:
            return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        reply = yield self.call("DELETE", f"{words.TASKS}/{task.remote_id}")
        if went_through(reply):
            return Cancelled(outcome=CancelOutcome.STOPPED)
        # It may have begun meanwhile, or be gone already: the next try asks again.
        return of_call(words.error(reply, key=self.key))

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the newest job.
        """
        reply = yield self.get(words.TASKS, page_num=1, page_size=1)
        is_list = rows_of(answered(reply) or {}, "items") is not None
        return Checked() if is_list else of_call(words.error(reply, key=self.key))

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATUSES.read(text_of(data, "status")):
            case Standing.DONE:
                urls = (text_of(object_of(data, "content"), name) for name in words.FILES)
                return ready(*urls, times=replace(_times(data), completed_at=instant_of(data, "updated_at")))
            case Standing.FAILED | Standing.CANCELLED | Standing.EXPIRED as standing:
                return self._ended(data, standing)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(data))

    def _ended(self, data: Mapping[str, Any], standing: Standing) -> Failed:
        error = object_of(data, "error")
        code, message = text_of(error, "code"), text_of(error, "message")
        meaning = words.of_code(code, message) if standing is Standing.FAILED else None
        return failed(meaning or standing.meaning, reason(code, message, word=standing, secret=self.key))


def make(settings: AdapterSettings) -> ArkAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ArkAdapter(settings)


def _tag(task: Task) -> Any:
    """
    What comes back with the task: the user's own, or our key.
    """
    return task.parameters.get("safety_identifier") or task.submission_key


def _is_past(rows: Sequence[Mapping[str, Any]], earliest: datetime) -> bool:
    """
    Whether what comes after these is older: they are in their order, which is not documented, and the last one is.
    """
    made = [at for at in (instant_of(row, "created_at") for row in rows) if at is not None]
    return bool(made) and made[-1] < earliest and made == sorted(made, reverse=True)


def _is_alike(row: Mapping[str, Any], task: Task) -> bool:
    """
    Whether a row says what was sent. An endpoint, and what was left open, are told as what they became.
    """
    sent = {name: task.parameters.get(name) for name in ("model", "duration", "resolution", "ratio", "seed")}
    fixed = {name: value for name, value in sent.items() if value not in LEFT_OPEN and not str(value).startswith("ep-")}
    return all(row.get(name) is None or same(row[name], value) for name, value in fixed.items())


def _times(data: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=instant_of(data, "created_at"))
