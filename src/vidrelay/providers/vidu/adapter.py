"""
Toward Vidu (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import LIST_REPLY_BYTES
from vidrelay.core.ports import (
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
    Unknown,
)
from vidrelay.core.task import Asset, CancelOutcome, RemoteFile, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import between, same, settled
from vidrelay.providers.replies import number_of, read_object, text_of, time_of, told
from vidrelay.providers.uniform import (
    FIRST,
    LAST,
    REFERENCE,
    at_most,
    data_uri,
    filled,
    one_of,
    only,
    pictures,
    with_extra,
)
from vidrelay.providers.uniform import whole as whole_number
from vidrelay.providers.verdicts import Standing, failed, of_call, of_create, of_poll
from vidrelay.providers.vidu import words

MAX_PAGES = 5
PAGE = 100


class ViduAdapter(JsonAdapter):
    """
    One account at Vidu.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=2.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({"payload", "callback_url", "meta_data"}),
            pictures=PictureRule(max_bytes=words.PICTURE_BYTES),
            lists=True,
            can_check=True,
        )

    def authorization(self) -> dict[str, str]:
        """
        The word is Token, not Bearer.
        """
        return {} if self.key is None else {"Authorization": f"Token {self.key}"}

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Vidu's words.

        Raises:
            InvalidRequest: Vidu cannot do it; names the field and what it accepts.
        """
        only(request, "aspectRatio", "duration", "resolution", "seed", "stylePreset", "references", who="Vidu")
        model = request.model_version or words.DEFAULT_MODEL
        body: dict[str, Any] = {"model": model, "prompt": at_most(request.prompt, words.MAX_PROMPT)}
        if request.duration is not None:
            low, high = next((span for name, span in words.DURATIONS.items() if model.startswith(name)), (1, 16))
            body["duration"] = whole_number(request.duration, low, high, field="duration")
        if request.aspect_ratio is not None:
            body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio")
        if request.resolution is not None:
            body["resolution"] = one_of(request.resolution, words.RESOLUTIONS, field="resolution")
        if request.seed is not None:
            body["seed"] = whole_number(request.seed, 0, 2**31 - 1, field="seed")
        if request.style_preset is not None:
            body["style"] = one_of(request.style_preset, ("general", "anime"), field="stylePreset")
        given = pictures(request, assets, who="Vidu", roles=(FIRST, LAST, REFERENCE), max_others=words.MAX_REFERENCES)
        if given.others and (given.first or given.last):
            raise InvalidRequest("Vidu takes frames or references, not both.", field="references")
        if given.last is not None and given.first is None:
            raise InvalidRequest("Vidu takes a last frame only with a first one.", field="references")
        frames = [one for one in (given.first, given.last) if one is not None]
        if frames or given.others:
            body["images"] = [*frames, *given.others]
        body["kind"] = _kind(len(frames), len(given.others))
        return Prepared(model=model, parameters=with_extra(body, request.extra), seconds=body.get("duration"))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, with our own key as the payload that comes back in the list.
        """
        body = filled(task.parameters, data_uri)
        kind = body.pop("kind", words.TEXT)
        body.setdefault("payload", task.submission_key)
        reply = yield self.post(f"/{kind}", body, creates=True)
        data = read_object(reply)
        if not 200 <= reply.status < 300:
            return of_create(words.error(reply, key=self.key))
        remote_id = None if data is None else text_of(data, "task_id")
        if data is None or remote_id is None or not self.valid_id(remote_id):
            return Unknown(detail=f"the provider answered {reply.status} without an id that can be used")
        standing = words.STATES.read(text_of(data, "state"))
        if standing is Standing.FAILED:
            return self._ended(data, remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=_times(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = task.remote_id or ""
        if not self.valid_id(remote_id):
            return NotThere(detail="its id is none of this provider's")
        reply = yield self.get(f"/tasks/{remote_id}/creations")
        data = read_object(reply)
        if not 200 <= reply.status < 300:
            return of_poll(words.error(reply, key=self.key))
        return Trouble(detail="the provider's answer cannot be read") if data is None else self._seen(data)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, asked for these tasks alone.
        """
        ids = [task.remote_id for task in tasks if task.remote_id is not None]
        reply = yield self.call(
            "GET",
            "/tasks",
            query={"task_ids": ",".join(ids), "pager.pagesz": PAGE},
            max_reply_bytes=LIST_REPLY_BYTES,
        )
        rows = _rows(read_object(reply))
        if rows is None or not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        listed = {text_of(row, "id"): row for row in rows}
        return {task.id: self._seen(listed[task.remote_id]) for task in tasks if task.remote_id in listed}

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list, newest first: our payload settles it where rows show it, else prompt, model and time.
        """
        alike: dict[str, Found] = {}
        when, token = None, None
        for _ in range(MAX_PAGES):
            query = {"pager.pagesz": PAGE, "pager.page_token": token}
            reply = yield self.call("GET", "/tasks", query=query, max_reply_bytes=LIST_REPLY_BYTES)
            data = read_object(reply)
            rows = _rows(data)
            if data is None or rows is None or not 200 <= reply.status < 300:
                return of_call(words.error(reply, key=self.key))
            when = when or between(search, reply)
            for row in rows:
                remote_id, payload = text_of(row, "id") or "", text_of(row, "payload")
                if remote_id in search.owned or not self.valid_id(remote_id):
                    continue
                found = Found(
                    remote_id=remote_id,
                    remote_state=words.STATES.read(text_of(row, "state")).remote_state,
                    times=_times(row),
                )
                if payload and payload == task.submission_key:
                    return found
                if not payload and when.holds(time_of(row, "created_at")) and _is_alike(row, task):
                    alike[remote_id] = found
            token = text_of(data, "next_page_token")
            if not token or not rows:
                return settled(alike)
        return settled(alike, whole=False)

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Stops what is not scheduled yet; a scheduled task is refused with 400.
        """
        reply = yield self.post(f"/tasks/{task.remote_id}/cancel", {"id": task.remote_id})
        if 200 <= reply.status < 300:
            return Cancelled(outcome=CancelOutcome.STOPPED)
        error = words.error(reply, key=self.key)
        if reply.status != 400 or not error.readable:
            return of_call(error)
        seen = yield from self.poll(task)
        if isinstance(seen, Refused | Trouble):
            return seen
        return Cancelled(outcome=CancelOutcome.UNSUPPORTED) if isinstance(seen, StillRunning) else CancelTooLate()

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        The account's concurrency, which all models share.
        """
        reply = yield self.get("/credits")
        remains = (read_object(reply) or {}).get("remains")
        rows = [row for row in remains if isinstance(row, dict)] if isinstance(remains, list) else []
        told = [number_of(row, "concurrency_limit") for row in rows if row.get("type") == "concurrent"]
        limits = [int(limit) for limit in told if limit is not None and limit >= 1]
        return {"*": max(limits)} if limits else None

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the credits.
        """
        reply = yield self.get("/credits")
        data = read_object(reply)
        if data is None or not 200 <= reply.status < 300:
            return of_call(words.error(reply, key=self.key))
        rows = data.get("remains")
        left = (
            [number_of(row, "credit_remain") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        )
        return Checked(detail=f"{sum(one for one in left if one is not None):g} credits left")

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(data, "state")):
            case Standing.DONE:
                made = data.get("creations")
                urls = [one.get("url") for one in made if isinstance(one, dict)] if isinstance(made, list) else []
                outputs = tuple(RemoteFile(url=url) for url in urls if isinstance(url, str) and url)
                if not outputs:
                    return Trouble(detail="the provider says that it is done, and names no file")
                return Ready(outputs=outputs, times=_times(data))
            case Standing.FAILED:
                return self._ended(data)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(data))

    def _ended(self, data: Mapping[str, Any], remote_id: str | None = None) -> Failed:
        code = text_of(dict(data), "err_code") or ""
        meaning = words.CODES.get(code, Standing.FAILED.meaning)
        return failed(meaning, told(code or "it says failed and no more", secret=self.key), remote_id=remote_id)


def make(settings: AdapterSettings) -> ViduAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ViduAdapter(settings)


def _kind(frames: int, others: int) -> str:
    if others:
        return words.REFERENCES
    return (words.TEXT, words.IMAGE, words.FRAMES)[frames]


def _rows(data: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    rows = None if data is None else data.get("tasks")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None


def _is_alike(row: Mapping[str, Any], task: Task) -> bool:
    names = ("prompt", "model", "duration", "resolution", "aspect_ratio", "seed")
    return all(same(row.get(name), task.parameters.get(name)) for name in names)


def _times(data: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=time_of(data, "created_at"))
