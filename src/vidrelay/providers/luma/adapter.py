"""
Toward Luma's Dream Machine (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from vidrelay.core.adapter import (
    CheckOutcome,
    Conversation,
    Dedupe,
    FindOutcome,
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Search,
    SubmitOutcome,
    Traits,
)
from vidrelay.core.lifecycle import Accepted, Failed, Found, StillRunning
from vidrelay.core.messages import LIST_REPLY_BYTES, HttpRequest
from vidrelay.core.task import Asset, RemoteTimes, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import Candidates, between, likeness, reads_alike
from vidrelay.providers.luma import words
from vidrelay.providers.luma.parameters import as_sent
from vidrelay.providers.pictures import FIRST, LAST, pictures
from vidrelay.providers.replies import answered, number_of, object_of, reason, rows_of, text_of, time_of
from vidrelay.providers.uniform import length, one_of, only, with_extra
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Standing,
    failed,
    left_of,
    of_call,
    of_create,
    of_poll,
    ready,
    without_id,
)

MAX_PAGES = 5
PAGE = 100


class LumaAdapter(JsonAdapter):
    """
    One account at Dream Machine.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            poll_floor=3.0,
            hosts=words.HOSTS,
            irrelevant=frozenset({"callback_url"}),
            lists=True,
            can_check=True,
            tells_quota=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Luma's words.

        Raises:
            InvalidRequest: Luma cannot do it; names the field and what it accepts.
        """
        only(request, "aspectRatio", "duration", "resolution", "references", who="Dream Machine")
        model = request.model_version or words.MODELS[0]
        known = model in words.MODELS
        body: dict[str, Any] = {"model": model, "prompt": request.prompt}
        if request.duration is not None:
            body["duration"] = f"{length(request.duration, words.DURATIONS, known=known)}s"
        if request.aspect_ratio is not None:
            body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
        if request.resolution is not None:
            body["resolution"] = one_of(request.resolution, words.RESOLUTIONS, field="resolution", known=known)
        given = pictures(request, assets, who="Dream Machine", roles=(FIRST, LAST), files=False)
        frames = {"frame0": given.first, "frame1": given.last}
        keyframes = {name: {"type": "image", "url": url} for name, url in frames.items() if url is not None}
        if keyframes:
            body["keyframes"] = keyframes
        return as_sent(with_extra(body, request.extra))

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST.
        """
        reply = yield self.post("/generations/video", dict(task.parameters), creates=True)
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(data, "id"))
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
        reply = yield self.get(f"/generations/{remote_id}")
        data = answered(reply)
        return of_poll(words.error(reply, key=self.key)) if data is None else self._seen(data)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, in no more pages than there are tasks; what is not on them is asked for by itself.
        """
        ids = {task.remote_id for task in tasks if task.remote_id is not None}
        seen: dict[str, dict[str, Any]] = {}
        for page in range(max(1, min(MAX_PAGES, len(tasks) - 1))):
            reply = yield self._page(page)
            data = answered(reply) or {}
            rows = rows_of(data, "generations")
            if rows is None:
                return of_call(words.error(reply, key=self.key))
            seen |= {row["id"]: row for row in rows if text_of(row, "id") in ids}
            if ids <= seen.keys() or not rows or data.get("has_more") is not True:
                break
        return {task.id: self._seen(seen[task.remote_id]) for task in tasks if task.remote_id in seen}

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list: the whole request stands in each row.

        Its order is not documented. Where it is seen to go back in time, it is read no further than to the loss.
        """
        candidates = Candidates()
        when = None
        made: list[datetime | None] = []
        for page in range(MAX_PAGES):
            reply = yield self._page(page)
            data = answered(reply) or {}
            rows = rows_of(data, "generations")
            if rows is None:
                return of_call(words.error(reply, key=self.key))
            when = when or between(search, reply)
            for row in rows:
                remote_id, made_at = text_of(row, "id") or "", time_of(row, "created_at")
                made.append(made_at)
                if remote_id not in search.owned and self.valid_id(remote_id) and when.holds(made_at):
                    state = words.STATES.read(text_of(row, "state")).remote_state
                    found = Found(remote_id=remote_id, remote_state=state, times=_times(row))
                    candidates.add(found, _is_alike(row, task))
            if not rows or data.get("has_more") is not True or _is_past(made, when.earliest):
                return candidates.settled()
        return candidates.settled(whole=False)

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the credits, which are US cents.
        """
        reply = yield self.get("/credits")
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        cents = number_of(data, "credit_balance")
        return left_of(None if cents is None else cents / 100, "USD")

    def _page(self, page: int) -> HttpRequest:
        return self.get("/generations", max_reply_bytes=LIST_REPLY_BYTES, limit=PAGE, offset=page * PAGE)

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(data, "state")):
            case Standing.DONE:
                return ready(text_of(object_of(data, "assets"), "video"), times=_times(data))
            case Standing.FAILED:
                return self._ended(data)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=_times(data))

    def _ended(self, data: dict[str, Any], remote_id: str | None = None) -> Failed:
        why = text_of(data, "failure_reason")
        return failed(words.meaning_of_failure(why or ""), reason(why, secret=self.key), remote_id=remote_id)


def make(settings: AdapterSettings) -> LumaAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return LumaAdapter(settings)


def _is_past(made: Sequence[datetime | None], earliest: datetime) -> bool:
    """
    Whether the rows so far go back in time, and to before that instant.
    """
    known = [one for one in made if one is not None]
    goes_back = len(known) == len(made) and all(one >= after for one, after in pairwise(known))
    return goes_back and bool(known) and known[-1] < earliest


def _is_alike(row: Mapping[str, Any], task: Task) -> bool | None:
    """
    Whether a row's request is ours. The prompt must be there; what else a row leaves out, it does not contradict. None:
    it says what we did not, and what Luma is not known to fill in.
    """
    asked, sent = row.get("request"), task.parameters
    request: Mapping[str, Any] = asked if isinstance(asked, dict) else {}
    shown = {name: value for name, value in request.items() if value is not None and name not in words.UNTOLD}
    if not reads_alike(request.get("prompt"), sent.get("prompt")):
        return False
    parts = [likeness(value, sent[name]) for name, value in shown.items() if sent.get(name) is not None]
    if False in parts:
        return False
    more = {name: value for name, value in shown.items() if sent.get(name) is None}
    # Nobody adds frames.
    if more.get("keyframes"):
        return False
    added = any(value not in words.FILLED_IN.get(name, ()) for name, value in more.items())
    return None if added or None in parts else True


def _times(data: Mapping[str, Any]) -> RemoteTimes:
    return RemoteTimes(created_at=time_of(data, "created_at"))
