"""
Toward Volcengine Ark and BytePlus ModelArk (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
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
    Unknown,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import LIST_REPLY_BYTES
from vidrelay.core.task import Asset, CancelOutcome, RemoteFile, RemoteState, RemoteTimes, Request, Task
from vidrelay.providers.ark import parameters, words
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import between, same, settled
from vidrelay.providers.pictures import data_uri, filled
from vidrelay.providers.replies import instant_of, number_of, read_object, text_of, told
from vidrelay.providers.verdicts import Standing, failed, meaning_of, of_call, of_create, of_poll

MAX_PAGES = 5
PAGE = 200


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
        body = filled(task.parameters, data_uri)
        body.setdefault("safety_identifier", task.submission_key)
        reply = yield self.post(words.TASKS, body, creates=True)
        data = read_object(reply)
        if not 200 <= reply.status < 300:
            return of_create(words.error(reply, key=self.key))
        remote_id = None if data is None else text_of(data, "id")
        if data is None or remote_id is None or not self.valid_id(remote_id):
            return Unknown(detail=f"the provider answered {reply.status} without an id that can be used")
        return Accepted(remote_id=remote_id, times=_times(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = task.remote_id or ""
        if not self.valid_id(remote_id):
            return NotThere(detail="its id is none of this provider's")
        reply = yield self.get(f"{words.TASKS}/{remote_id}")
        data = read_object(reply)
        if not 200 <= reply.status < 300:
            return of_poll(words.error(reply, key=self.key))
        return Trouble(detail="the provider's answer cannot be read") if data is None else self._seen(data)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, asked for these tasks alone.
        """
        ids = [task.remote_id for task in tasks if task.remote_id is not None]
        query = urlencode([("page_num", 1), ("page_size", len(ids) or 1), *(("filter.task_ids", one) for one in ids)])
        reply = yield self.call("GET", f"{words.TASKS}?{query}", max_reply_bytes=LIST_REPLY_BYTES)
        rows = _rows(read_object(reply))
        if rows is None or not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        listed = {text_of(row, "id"): row for row in rows}
        return {task.id: self._seen(listed[task.remote_id]) for task in tasks if task.remote_id in listed}

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list, newest first, back to when the create was sent: our tag settles it.

        A row shows no prompt, so one without a tag is never taken for ours by its looks: a person is asked.
        """
        tag = task.parameters.get("safety_identifier") or task.submission_key
        ours: dict[str, Found] = {}
        alike: list[str] = []
        doubtful, when, told_of = tag != task.submission_key, None, 0
        for number in range(1, MAX_PAGES + 1):
            reply = yield self.get(words.TASKS, max_reply_bytes=LIST_REPLY_BYTES, page_num=number, page_size=PAGE)
            data = read_object(reply)
            rows = _rows(data)
            if data is None or rows is None or not 200 <= reply.status < 300:
                return of_call(words.error(reply, key=self.key))
            when = when or between(search, reply)
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
            oldest = instant_of(rows[-1], "created_at") if rows else None
            more = len(rows) >= PAGE if total is None else told_of < total
            if not rows or not more or (oldest is not None and oldest < when.earliest):
                break
        else:
            doubtful = True
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
        if 200 <= reply.status < 300:
            return Cancelled(outcome=CancelOutcome.STOPPED)
        # It may have begun meanwhile, or be gone already: the next try asks again.
        return of_call(words.error(reply, key=self.key))

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the newest job.
        """
        reply = yield self.get(words.TASKS, page_num=1, page_size=1)
        if _rows(read_object(reply)) is None or not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        return Checked()

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATUSES.read(text_of(data, "status")):
            case Standing.DONE:
                content = data.get("content")
                made: Mapping[str, Any] = content if isinstance(content, dict) else {}
                urls = [made.get(name) for name in ("video_url", "file_url", "last_frame_url")]
                outputs = tuple(RemoteFile(url=url) for url in urls if isinstance(url, str) and url)
                if not outputs:
                    return Trouble(detail="the provider says that it is done, and names no file")
                ended_at = instant_of(data, "updated_at")
                return Ready(
                    outputs=outputs, times=RemoteTimes(created_at=_times(data).created_at, completed_at=ended_at)
                )
            case Standing.FAILED | Standing.CANCELLED | Standing.EXPIRED as standing:
                return self._ended(data, standing)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(data))

    def _ended(self, data: Mapping[str, Any], standing: Standing) -> Failed:
        error = data.get("error")
        inner: dict[str, Any] = error if isinstance(error, dict) else {}
        code, message = text_of(inner, "code"), text_of(inner, "message")
        meaning = standing.meaning
        if standing is Standing.FAILED and code is not None:
            meaning = words.of_code(code, message) or meaning_of(code, words.CODES) or meaning
        why = ": ".join(part for part in (code, message) if part) or f"it says {data.get('status')} and no more"
        return failed(meaning, told(why, secret=self.key))


def make(settings: AdapterSettings) -> ArkAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ArkAdapter(settings)


def _rows(data: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    rows = None if data is None else data.get("items")
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else None


def _is_alike(row: Mapping[str, Any], task: Task) -> bool:
    """
    Whether a row says what was sent. An endpoint and a ratio that was left open are told as what they became.
    """
    sent = {name: task.parameters.get(name) for name in ("model", "duration", "resolution", "ratio", "seed")}
    if sent["ratio"] == "adaptive":
        del sent["ratio"]
    if str(sent["model"]).startswith("ep-"):
        del sent["model"]
    return all(row.get(name) is None or same(row.get(name), value) for name, value in sent.items())


def _times(data: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=instant_of(data, "created_at"))
