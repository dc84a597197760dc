"""
Toward Tencent's VCLM (fills port Adapter). Every call is a POST that is signed as it leaves.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from vidrelay.core.lifecycle import Accepted, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import HttpRequest, Json
from vidrelay.core.ports import (
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
    Trouble,
    Undecided,
    Unknown,
)
from vidrelay.core.task import Asset, RemoteFile, Request, Task
from vidrelay.providers.credentials import key_pair
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.replies import text_of, told
from vidrelay.providers.tencent import parameters, words
from vidrelay.providers.tencent.signature import signed_headers
from vidrelay.providers.uniform import bare, filled
from vidrelay.providers.verdicts import Meaning, Said, Standing, failed, meaning_of, of_call, of_create, of_poll

EXTERNAL_ID = "ExternalTaskId"
BY_OURS = "external:"
"""How a remote id begins that is our own: a job found by it does not tell its JobId."""


class TencentAdapter(JsonAdapter):
    """
    One account at Tencent Cloud, in one of the two dialects.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST)
        self._pair = key_pair(settings.key, who="Tencent")
        self._now = settings.now
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

    def authorization(self) -> dict[str, str]:
        """
        None: a call is signed when its body is known.
        """
        return {}

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
            error = words.error(reply, secret=self._secret)
            if self._names_its_jobs and error.meaning is Meaning.REJECTED and error.readable and task.attempts > 1:
                return (yield from self._made_before(task, error))
            return of_create(error)
        remote_id = text_of(response, "JobId")
        if remote_id is None or not self.valid_id(remote_id):
            return Unknown(detail=f"the provider answered {reply.status} without an id that can be used")
        return Accepted(remote_id=remote_id)

    def _made_before(self, task: Task, refusal: Said) -> Conversation[SubmitOutcome]:
        """
        What the refusal of a create that was sent before under the same id means: perhaps that it was carried out then.
        """
        seen = yield from self._looked_up(task)
        match seen:
            case Found() if not task.parameters.get(EXTERNAL_ID):
                return Accepted(remote_id=seen.remote_id, remote_state=seen.remote_state)
            case NotThere():
                return of_create(refusal)
            case _:
                return Unknown(detail="the provider refused it as wrong, and did not say whether it has it already")

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One call, of the kind that the job was made in.
        """
        remote_id = task.remote_id or ""
        ours = remote_id.startswith(BY_OURS)
        named = {EXTERNAL_ID: remote_id.removeprefix(BY_OURS)} if ours else {"JobId": remote_id}
        outcome: PollOutcome = NotThere(detail="its id is none of this provider's")
        for kind in self._kinds_of(task) if self.valid_id(remote_id) else ():
            reply = yield self._call(f"Describe{kind}Job", named, asks=True)
            response = words.taken(reply)
            outcome = of_poll(words.error(reply, secret=self._secret)) if response is None else self._seen(response)
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
        name = str(task.parameters.get(EXTERNAL_ID) or task.submission_key)
        for kind in self._kinds_of(task):
            reply = yield self._call(f"Describe{kind}Job", {EXTERNAL_ID: name}, asks=True)
            response = words.taken(reply)
            if response is None:
                outcome = of_poll(words.error(reply, secret=self._secret))
                if isinstance(outcome, NotThere):
                    continue
                return outcome
            standing = words.STATES.read(text_of(response, "Status"))
            if text_of(response, EXTERNAL_ID) not in (None, "", name) or standing is Standing.UNKNOWN:
                return Undecided(detail="the provider answered with a job that may be another")
            return Found(remote_id=f"{BY_OURS}{name}", remote_state=standing.remote_state)
        return NotThere(detail=f"the provider knows no job of that {EXTERNAL_ID}")

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for a job that cannot be: that it is not there shows that the signature is taken.
        """
        reply = yield self._call(f"Describe{self._kinds[0]}Job", {"JobId": "0"}, asks=True)
        error = words.error(reply, secret=self._secret)
        is_missed = error.readable and error.meaning in (Meaning.MISSING, Meaning.REJECTED)
        return Checked() if is_missed or words.taken(reply) is not None else of_call(error)

    @property
    def _secret(self) -> str | None:
        return None if self._pair is None else self._pair.secret

    def _kinds_of(self, task: Task) -> tuple[str, ...]:
        """
        The kind that the job was made in, or all where that is not known (one that was taken over by its id alone).
        """
        kind = task.parameters.get("kind")
        return (kind,) if isinstance(kind, str) else self._kinds

    def _call(self, action: str, body: Any, *, creates: bool = False, asks: bool = False) -> HttpRequest:
        headers = {"X-TC-Action": action, "X-TC-Version": words.VERSION, "X-TC-Region": words.REGION}
        request = self.call("POST", "/", body=Json(value=body), creates=creates, headers=headers)
        pair = self._pair
        if pair is None:
            return replace(request, asks=asks)

        def signed(body_sha256: str) -> Mapping[str, str]:
            return signed_headers(
                pair,
                url=request.url,
                content_type=request.headers["Content-Type"],
                body_sha256=body_sha256,
                now=self._now(),
            )

        return replace(request, asks=asks, signed=signed)

    def _seen(self, response: dict[str, Any]) -> PollOutcome:
        match words.STATES.read(text_of(response, "Status")):
            case Standing.DONE:
                url = text_of(response, "ResultVideoUrl")
                if not url:
                    return Trouble(detail="the provider says that it is done, and names no file")
                return Ready(outputs=(RemoteFile(url=url),))
            case Standing.FAILED:
                return self._ended(response)
            case standing:
                return StillRunning(remote_state=standing.remote_state)

    def _ended(self, response: dict[str, Any]) -> Failed:
        code, message = text_of(response, "ErrorCode"), text_of(response, "ErrorMessage")
        detail = ": ".join(one for one in (code, message) if one) or "it says failed and no more"
        return failed(meaning_of(code, words.CODES) or Meaning.AGAIN, told(detail, secret=self._secret))


def make(settings: AdapterSettings) -> TencentAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none, or its key is not of two parts.
    """
    return TencentAdapter(settings)
