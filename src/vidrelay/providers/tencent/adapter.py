"""
Toward Tencent's VCLM (fills port Adapter). Every call is a POST that is signed as it leaves.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from vidrelay.core.adapter import (
    Checked,
    CheckOutcome,
    Conversation,
    Dedupe,
    FindOutcome,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    Search,
    SubmitOutcome,
    Traits,
    Undecided,
)
from vidrelay.core.lifecycle import Accepted, Found, StillRunning
from vidrelay.core.messages import HttpReply, HttpRequest
from vidrelay.core.task import Asset, Request, Task
from vidrelay.providers.credentials import KeyPair
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.pictures import bare, filled
from vidrelay.providers.replies import identity, reason, text_of
from vidrelay.providers.signing import SignedAdapter
from vidrelay.providers.tencent import parameters, words
from vidrelay.providers.tencent.signature import signed_headers
from vidrelay.providers.verdicts import (
    NOT_OURS,
    Meaning,
    Standing,
    failed,
    meaning_of,
    of_call,
    of_create,
    of_poll,
    of_repeated,
    ready,
    without_id,
)

EXTERNAL_ID = "ExternalTaskId"
BY_OURS = "external:"
"""How a remote id begins that is our own: a job found by it does not tell its JobId."""


class TencentAdapter(SignedAdapter):
    """
    One account at Tencent Cloud, in one of the two dialects.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, who="Tencent")
        self._kinds = words.DIALECTS[settings.dialect or "hunyuan"]
        self._names_its_jobs = words.HUNYUAN not in self._kinds
        self.traits = Traits(
            dedupe=Dedupe.CLIENT_ID if self._names_its_jobs else Dedupe.NONE,
            poll_floor=5.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            irrelevant=frozenset({EXTERNAL_ID, "CallbackUrl"}),
            prompts=frozenset({"Prompt", "NegativePrompt"}),
            pictures=self._pictures(),
            can_check=True,
        )

    def _pictures(self) -> PictureRule:
        if self._names_its_jobs:
            return PictureRule(max_bytes=words.PICTURE_BYTES, media_types=frozenset({"image/jpeg", "image/png"}))
        return PictureRule(max_bytes=words.HUNYUAN_PICTURE_BYTES, max_edge=words.HUNYUAN_MAX_EDGE)

    def signature(self, pair: KeyPair, request: HttpRequest, body_sha256: str, now: datetime) -> Mapping[str, str]:
        """
        By Tencent Cloud's rules.
        """
        content_type = request.headers["Content-Type"]
        return signed_headers(pair, url=request.url, content_type=content_type, body_sha256=body_sha256, now=now)

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Tencent's words.

        Raises:
            InvalidRequest: It cannot do it; names the field and what it accepts.
        """
        return (parameters.kling if self._names_its_jobs else parameters.hunyuan)(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One call; one of Kling's models takes our own key as the id that the job can be looked up by.
        """
        body = filled(task.parameters, bare)
        kind = body.pop("kind", self._kinds[0])
        if self._names_its_jobs:
            body[EXTERNAL_ID] = body.get(EXTERNAL_ID) or task.submission_key
        reply = yield self._call(f"Submit{kind}Job", body, creates=True)
        response = words.taken(reply)
        if response is None:
            error = words.error(reply, secret=self.secret)
            if self._names_its_jobs and error.meaning is Meaning.REJECTED and error.readable and task.attempts > 1:
                return of_repeated((yield from self._looked_up(task)), of_create(error))
            return of_create(error)
        remote_id = self.usable(identity(response, "JobId"))
        return without_id(reply) if remote_id is None else Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One call, of the kind that the job was made in.
        """
        remote_id = task.remote_id or ""
        ours = remote_id.startswith(BY_OURS)
        named = {EXTERNAL_ID: remote_id.removeprefix(BY_OURS)} if ours else {"JobId": remote_id}
        outcome: PollOutcome = NOT_OURS
        for kind in self._kinds_of(task) if self.valid_id(remote_id) else ():
            reply = yield self._call(f"Describe{kind}Job", named, asks=True)
            response = words.taken(reply)
            outcome = self._refused(reply) if response is None else self._seen(response)
            if not isinstance(outcome, NotThere):
                break
        return outcome

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Look the job up by our own id, where the dialect has it. An id of the user's own may name an older one.
        """
        if not self._names_its_jobs or task.parameters.get(EXTERNAL_ID):
            return Undecided(detail="the provider has nothing by which a lost create could be told from others")
        seen = yield from self._looked_up(task)
        return Undecided(detail=seen.detail) if isinstance(seen, NotThere) else seen

    def _looked_up(self, task: Task) -> Conversation[FindOutcome | NotThere]:
        given = task.parameters.get(EXTERNAL_ID)
        name = str(given or task.submission_key)
        for kind in self._kinds_of(task):
            reply = yield self._call(f"Describe{kind}Job", {EXTERNAL_ID: name}, asks=True)
            response = words.taken(reply)
            if response is None:
                outcome = of_poll(words.error(reply, secret=self.secret))
                if isinstance(outcome, NotThere):
                    continue
                return outcome
            standing = words.STATES.read(text_of(response, "Status"))
            if given or text_of(response, EXTERNAL_ID) not in (None, "", name) or standing is Standing.UNKNOWN:
                return Undecided(detail="the provider answered with a job that may be another")
            return Found(remote_id=f"{BY_OURS}{name}", remote_state=standing.remote_state)
        return NotThere(detail=f"the provider knows no job of that {EXTERNAL_ID}")

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for a job that cannot be: that it is not there shows that the signature is taken.
        """
        reply = yield self._call(f"Describe{self._kinds[0]}Job", {"JobId": "0"}, asks=True)
        error = words.error(reply, secret=self.secret)
        is_missed = error.readable and error.meaning in (Meaning.MISSING, Meaning.REJECTED)
        return Checked() if is_missed or words.taken(reply) is not None else of_call(error)

    def _kinds_of(self, task: Task) -> tuple[str, ...]:
        """
        The kind that the job was made in, or all where that is not known (one that was taken over by its id alone).
        """
        kind = task.parameters.get("kind")
        return (kind,) if isinstance(kind, str) else self._kinds

    def _call(self, action: str, body: Any, *, creates: bool = False, asks: bool = False) -> HttpRequest:
        headers = {"X-TC-Action": action, "X-TC-Version": words.VERSION, "X-TC-Region": words.REGION}
        return self.signed(self.post("/", body, creates=creates, headers=headers), asks=asks)

    def _refused(self, reply: HttpReply) -> PollOutcome:
        error = words.error(reply, secret=self.secret)
        # Nothing but the job's own content can be meant.
        return failed(error.meaning, error.detail) if error.meaning is Meaning.MODERATED else of_poll(error)

    def _seen(self, response: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(response, "Status")):
            case Standing.DONE:
                return ready(text_of(response, "ResultVideoUrl"))
            case Standing.FAILED:
                code = text_of(response, "ErrorCode")
                why = reason(code, text_of(response, "ErrorMessage"), secret=self.secret)
                return failed(meaning_of(code, words.CODES) or Meaning.AGAIN, why)
            case standing:
                return StillRunning(remote_state=standing.remote_state)


def make(settings: AdapterSettings) -> TencentAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none, or its key is not of two parts.
    """
    return TencentAdapter(settings)
