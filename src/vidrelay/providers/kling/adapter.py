"""
Toward Kling (fills port Adapter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import (
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
from vidrelay.core.lifecycle import Accepted, Failed, Found, StillRunning
from vidrelay.core.messages import API_REPLY_BYTES, LIST_REPLY_BYTES, HttpReply
from vidrelay.core.task import Asset, Request, Task
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.kling import words
from vidrelay.providers.kling.parameters import prepare
from vidrelay.providers.kling.token import Token
from vidrelay.providers.listing import between
from vidrelay.providers.pictures import bare, filled
from vidrelay.providers.replies import date_of, identity, number_of, object_of, rows_of, text_of
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Meaning,
    Said,
    Standing,
    failed,
    left_of,
    of_call,
    of_create,
    of_poll,
    of_repeated,
    ready,
    without_id,
)

PAGE = 100
OF_COSTS = timedelta(days=30)


class KlingAdapter(JsonAdapter):
    """
    One account at Kling.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, versions=("/v1",))
        self._token = Token(settings.key, settings.now)
        self.key_note = self._token.note
        self._now = settings.now
        self.traits = Traits(
            dedupe=Dedupe.CLIENT_ID,
            poll_floor=5.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({words.EXTERNAL_ID, "callback_url"}),
            pictures=PictureRule(max_bytes=words.PICTURE_BYTES, media_types=frozenset({"image/jpeg", "image/png"})),
            lists=True,
            can_check=True,
            tells_quota=True,
        )

    def authorization(self) -> dict[str, str]:
        """
        The token of now.
        """
        bearer = self._token.bearer()
        return {} if bearer is None else {"Authorization": f"Bearer {bearer}"}

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Kling's words.

        Raises:
            InvalidRequest: Kling cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One POST, with our own key as the id that the task can be looked up by.
        """
        body = filled(task.parameters, bare)
        kind = body.pop("kind", words.TEXT)
        body[words.EXTERNAL_ID] = body.get(words.EXTERNAL_ID) or task.submission_key
        reply = yield self.post(f"/v1/videos/{kind}", body, creates=True)
        data = words.task_of(reply)
        if data is None:
            outcome = self._refused(reply)
            repeated = (
                isinstance(outcome, Failed) and words.code_of(reply) in words.BAD_PARAMETERS and task.attempts > 1
            )
            return of_repeated((yield from self._looked_up(task)), outcome) if repeated else outcome
        remote_id = self.usable(identity(data, "task_id"))
        if remote_id is None:
            return without_id(reply)
        standing = words.STATES.read(text_of(data, "task_status"))
        if standing is Standing.FAILED:
            return self._ended(data, remote_id)
        return Accepted(remote_id=remote_id, remote_state=standing.remote_state, times=words.times_of(data))

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One GET, in the kind that it was made in.
        """
        remote_id = self.usable(task.remote_id)
        outcome: PollOutcome = NOT_OURS
        for kind in _kinds(task) if remote_id is not None else ():
            reply = yield from self._asked(f"/v1/videos/{kind}/{remote_id}")
            data = words.task_of(reply)
            outcome = of_poll(self._error(reply)) if data is None else self._seen(data)
            if not isinstance(outcome, NotThere):
                break
        return outcome

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        The newest of each kind's list; a row that does not show its clip leaves the task to a call of its own.
        """
        wanted = {task.remote_id: task.id for task in tasks}
        seen: dict[str, PollOutcome] = {}
        for kind in dict.fromkeys(kind for task in tasks for kind in _kinds(task)):
            reply = yield from self._asked(
                f"/v1/videos/{kind}", pageNum=1, pageSize=PAGE, max_reply_bytes=LIST_REPLY_BYTES
            )
            rows = rows_of(words.taken(reply) or {}, "data")
            if rows is None:
                return of_call(self._error(reply))
            for row in rows:
                remote_id = identity(row, "task_id")
                outcome = self._seen(row)
                if remote_id in wanted and not isinstance(outcome, Trouble):
                    seen[wanted[remote_id]] = outcome
        return seen

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Look the task up by our own id. One that the user gave may name an older task: that must be of the right time.
        """
        seen = yield from self._looked_up(task, search)
        if isinstance(seen, NotThere):
            return Undecided(detail=seen.detail)
        if isinstance(seen, Found) and seen.remote_id in search.owned:
            return Undecided(detail="the task of that id is another one of ours")
        return seen

    def _looked_up(self, task: Task, search: Search | None = None) -> Conversation[FindOutcome | NotThere]:
        given = task.parameters.get(words.EXTERNAL_ID) or None
        ours = given is None
        name = str(task.submission_key if ours else given)
        if not self.valid_id(name):
            return Undecided(detail=f"its {words.EXTERNAL_ID} cannot be looked up")
        for kind in _kinds(task):
            reply = yield from self._asked(f"/v1/videos/{kind}/{name}")
            data = words.task_of(reply)
            if data is None:
                outcome = of_poll(self._error(reply))
                if isinstance(outcome, NotThere):
                    continue
                return outcome
            remote_id = identity(data, "task_id") or ""
            shown = text_of(object_of(data, "task_info"), words.EXTERNAL_ID)
            in_time = ours or (search is not None and between(search, reply).holds(words.times_of(data).created_at))
            if not self.valid_id(remote_id) or shown not in (None, name) or not in_time:
                return Undecided(detail="the provider answered with a task that may be another")
            standing = words.STATES.read(text_of(data, "task_status"))
            return Found(remote_id=remote_id, remote_state=standing.remote_state, times=words.times_of(data))
        return NotThere(detail=f"the provider knows no task of that {words.EXTERNAL_ID}")

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for the packs that were bought.
        """
        now = self._now()
        begin, end = (int(at.timestamp() * 1000) for at in (now - OF_COSTS, now))
        reply = yield from self._asked("/account/costs", start_time=begin, end_time=end)
        data = words.task_of(reply)
        if data is None:
            return of_call(self._error(reply))
        packs = rows_of(data, "resource_pack_subscribe_infos") or []
        told = [number_of(pack, "remaining_quantity") for pack in packs if pack.get("status") == "online"]
        left = [one for one in told if one is not None]
        return left_of(sum(left) if left else None, "units", note=", as of 12 hours ago")

    def _asked(self, path: str, *, max_reply_bytes: int = API_REPLY_BYTES, **query: Any) -> Conversation[HttpReply]:
        """
        A GET; once more with a new token where the provider took ours for early or late.
        """
        reply = yield self.get(path, max_reply_bytes=max_reply_bytes, **query)
        if words.code_of(reply) in words.BAD_TIME and self._token.renew(date_of(reply)):
            reply = yield self.get(path, max_reply_bytes=max_reply_bytes, **query)
        return reply

    def _refused(self, reply: HttpReply) -> Failed | Refused | Unknown:
        """
        A create that came with an early or late token was not carried out; it goes again soon, with a new one.
        """
        outcome = of_create(self._error(reply))
        bad_time = words.code_of(reply) in words.BAD_TIME
        if isinstance(outcome, Refused) and bad_time and self._token.renew(date_of(reply)):
            return replace(outcome, retry_after=1.0)
        return outcome

    def _error(self, reply: HttpReply) -> Said:
        return words.error(reply, secrets=self._token.secrets)

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(data, "task_status")):
            case Standing.DONE:
                clips = rows_of(object_of(data, "task_result"), "videos") or []
                return ready(*(text_of(clip, "url") for clip in clips), times=words.times_of(data, ended=True))
            case Standing.FAILED:
                return self._ended(data)
            case standing:
                return StillRunning(remote_state=standing.remote_state, times=words.times_of(data))

    def _ended(self, data: Mapping[str, Any], remote_id: str | None = None) -> Failed:
        why = text_of(data, "task_status_msg") or "it says failed and no more"
        return failed(Meaning.AGAIN, words.shown(why, secrets=self._token.secrets), remote_id=remote_id)


def make(settings: AdapterSettings) -> KlingAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none, or its key is half a pair.
    """
    return KlingAdapter(settings)


def _kinds(task: Task) -> tuple[str, ...]:
    """
    The kind that the task was made in, or all where that is not known (one that was taken over by its id alone).
    """
    kind = task.parameters.get("kind")
    return (kind,) if isinstance(kind, str) else words.KINDS
