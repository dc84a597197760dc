"""
Toward Replicate (fills port Adapter).
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
    PollManyOutcome,
    PollOutcome,
    Prepared,
    Search,
    SubmitOutcome,
    Traits,
    Trouble,
    UploadOutcome,
)
from vidrelay.core.lifecycle import Accepted, Answered, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.media import ANY_SIZE
from vidrelay.core.messages import LIST_REPLY_BYTES, Form, HttpRequest
from vidrelay.core.task import Asset, CancelOutcome, RemoteFile, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.listing import Candidates, between
from vidrelay.providers.pictures import data_uri, filled, form_file
from vidrelay.providers.replicate import words
from vidrelay.providers.replicate.listed import cursor_of, is_alike
from vidrelay.providers.replicate.parameters import prepare
from vidrelay.providers.replies import answered, object_of, reason, rows_of, text_of, time_of, told
from vidrelay.providers.verdicts import (
    NO_FILE,
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    of_call,
    of_create,
    of_poll,
    of_upload,
    without_id,
)

MAX_PAGES = 5
INPUT_KEPT = 3000.0
"""A prediction's input is erased after an hour: so many seconds after a loss the list can no longer prove anything."""


class ReplicateAdapter(JsonAdapter):
    """
    One account at Replicate.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, versions=("/v1",))
        self.traits = Traits(
            dedupe=Dedupe.LIST,
            can_cancel=True,
            poll_floor=1.0,
            longest_run=timedelta(minutes=30),
            hosts=words.HOSTS,
            irrelevant=frozenset({"webhook", "webhook_events_filter", "stream"}),
            prompts=frozenset({"input.prompt", "input.negative_prompt"}),
            media=ANY_SIZE,
            copies=timedelta(hours=1),
            lists=True,
            can_check=True,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the words that most video models share.

        Raises:
            InvalidRequest: No model is named, or a picture's field cannot be known.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, to the model's, the deployment's or the version's own address; no `Prefer`, so it answers at once.
        """
        body = filled(task.parameters, data_uri)
        where = "".join(f"/{kind}s/{body.pop(kind)}" for kind in ("model", "deployment") if kind in body)
        reply = yield self.post(f"/v1{where}/predictions", body, creates=True)
        data = answered(reply)
        if data is None:
            return of_create(words.error(reply, key=self.key))
        remote_id = self.usable(text_of(data, "id"))
        if remote_id is None:
            return without_id(reply)
        match self._seen(data, remote_id):
            case StillRunning(remote_state=remote_state, times=times):
                return Accepted(remote_id=remote_id, remote_state=remote_state, times=times)
            case Ready(outputs=outputs, times=times):
                return Answered(remote_id=remote_id, outputs=outputs, times=times)
            case Failed() as ended:
                return ended
            case _:
                return Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return NOT_OURS
        reply = yield self.get(f"/v1/predictions/{remote_id}")
        data = answered(reply)
        return of_poll(words.error(reply, key=self.key)) if data is None else self._seen(data)

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The list, newest first, back to the oldest of them.
        """
        wanted = {task.remote_id: task.id for task in tasks}
        made = [task.remote_times.created_at for task in tasks]
        since = None if None in made else min(one for one in made if one is not None)
        query = {"created_after": None if since is None else words.just_before(since)}
        seen: dict[str, PollOutcome] = {}
        for _ in range(MAX_PAGES):
            reply = yield self.get("/v1/predictions", max_reply_bytes=LIST_REPLY_BYTES, **query)
            data = answered(reply) or {}
            rows = rows_of(data, "results")
            if rows is None:
                return seen or of_call(words.error(reply, key=self.key))
            told_of = {wanted[text_of(row, "id")]: self._seen(row) for row in rows if text_of(row, "id") in wanted}
            seen |= {task_id: outcome for task_id, outcome in told_of.items() if not isinstance(outcome, Trouble)}
            query = {"cursor": cursor_of(data)}
            if query["cursor"] is None or len(seen) == len(wanted):
                break
        return seen

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Read the list: its first page shows the provider's clock, the next ones only what was made in between.
        """
        candidates = Candidates()
        unclear = False
        when, query = None, dict[str, Any]()
        for _ in range(MAX_PAGES):
            reply = yield self.get("/v1/predictions", max_reply_bytes=LIST_REPLY_BYTES, **query)
            data = answered(reply) or {}
            rows = rows_of(data, "results")
            if rows is None:
                return of_call(words.error(reply, key=self.key))
            unclear = unclear or len(rows) < len(data["results"])
            begins = when is None
            when = when or between(search, reply)
            for row in rows:
                remote_id = text_of(row, "id") or ""
                if remote_id in search.owned:
                    continue
                made = time_of(row, "created_at")
                if made is None or not self.valid_id(remote_id):
                    unclear = True
                    continue
                if not when.holds(made):
                    continue
                unclear = unclear or row.get("data_removed") is True or not object_of(row, "input")
                state = words.STATES.read(text_of(row, "status")).remote_state
                found = Found(remote_id=remote_id, remote_state=state, times=words.times(row))
                candidates.add(found, is_alike(row, task))
            cursor = cursor_of(data)
            oldest = min((made for made in (time_of(row, "created_at") for row in rows) if made), default=None)
            is_past = oldest is not None and oldest < when.earliest
            if cursor is None or is_past:
                # What cannot be read, or has been erased, may be it.
                unclear = unclear or search.lost_ago > INPUT_KEPT
                whole = is_past or not data.get("next")
                return candidates.settled(whole=whole, complete_after=None if unclear else search.elapsed)
            query = {"cursor": cursor}
            if begins:
                query = {"created_after": when.earliest.isoformat(), "created_before": when.latest.isoformat()}
        return candidates.settled(whole=False)

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        One POST, whose answer is the prediction as it is then.
        """
        remote_id = self.usable(task.remote_id)
        if remote_id is None:
            return CancelTooLate()
        reply = yield self.post(f"/v1/predictions/{remote_id}/cancel", {})
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        match words.STATES.read(text_of(data, "status")):
            case Standing.CANCELLED | Standing.EXPIRED:
                return Cancelled(outcome=CancelOutcome.STOPPED)
            case Standing.DONE | Standing.FAILED:
                return CancelTooLate()
            case _:
                # It was told to stop and has not yet: the next poll shows it, and to ask once more does no harm.
                return Trouble(detail="the provider has not stopped it yet")

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        One POST; the file's own address then stands for it.
        """
        reply = yield self.call("POST", "/v1/files", body=Form(files=(form_file(picture, name="content"),)))
        data = answered(reply)
        if data is None:
            return of_upload(words.error(reply, key=self.key))
        url = text_of(object_of(data, "urls"), "get")
        return Copied(reference=url) if url else Trouble(detail="the provider took the picture and names no address")

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask who the key belongs to.
        """
        reply = yield self.get("/v1/account")
        data = answered(reply)
        if data is None:
            return of_call(words.error(reply, key=self.key))
        return Checked(detail=told(text_of(data, "username") or "", secret=self.key))

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        The key goes to the API and to Replicate's own delivery hosts alone.
        """
        if words.is_delivered(output.url):
            return HttpRequest(method="GET", url=output.url, headers=self.authorization())
        return super().download(task, output)

    def _seen(self, data: Mapping[str, Any], remote_id: str | None = None) -> StillRunning | Ready | Failed | Trouble:
        standing = words.STATES.read(text_of(data, "status"))
        match standing:
            case Standing.DONE:
                outputs = tuple(RemoteFile(url=url, needs_key=True) for url in words.addresses(data.get("output")))
                if outputs:
                    return Ready(outputs=outputs, times=words.times(data))
                if data.get("data_removed") is True:
                    gone = "it was done, and the provider has erased its files since"
                    return failed(Meaning.EXPIRED, gone, remote_id=remote_id)
                return NO_FILE
            case Standing.FAILED | Standing.CANCELLED | Standing.EXPIRED:
                text = text_of(data, "error") or ""
                meaning = words.meaning(text) if standing is Standing.FAILED else standing.meaning
                why = reason(text, word=text_of(data, "status") or standing, secret=self.key)
                return failed(meaning, why, remote_id=remote_id)
            case _:
                progress = words.progress(data) if standing is Standing.WORKING else None
                return StillRunning(remote_state=standing.remote_state, progress=progress, times=words.times(data))


def make(settings: AdapterSettings) -> ReplicateAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none.
    """
    return ReplicateAdapter(settings)
