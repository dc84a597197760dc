"""
Toward Jimeng (fills port Adapter). Every call is a POST that is signed as it leaves.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from vidrelay.core.adapter import (
    CancelResult,
    Checked,
    CheckOutcome,
    Conversation,
    NotThere,
    PictureRule,
    PollOutcome,
    Prepared,
    SubmitOutcome,
    Traits,
    Trouble,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Ready, StillRunning
from vidrelay.core.messages import HttpRequest, Json
from vidrelay.core.task import Asset, CancelOutcome, Request, Task
from vidrelay.providers.credentials import KeyPair
from vidrelay.providers.jimeng import words
from vidrelay.providers.jimeng.parameters import prepare
from vidrelay.providers.jimeng.signature import signed_headers
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.pictures import bare, filled
from vidrelay.providers.replies import identity, object_of, read_object, text_of
from vidrelay.providers.signing import SignedAdapter
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
    ready,
    without_id,
)


class JimengAdapter(SignedAdapter):
    """
    One account at Volcengine's visual service.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__(settings, base_url=words.HOST, who="Jimeng")
        self.traits = Traits(
            can_cancel=True,
            poll_floor=3.0,
            longest_run=timedelta(hours=1),
            hosts=words.HOSTS,
            pictures=PictureRule(
                max_edge=words.MAX_EDGE,
                max_bytes=words.PICTURE_BYTES,
                media_types=frozenset({"image/jpeg", "image/png"}),
            ),
            can_check=True,
        )

    def signature(self, pair: KeyPair, request: HttpRequest, body_sha256: str, now: datetime) -> Mapping[str, str]:
        """
        By Volcengine's rules.
        """
        return signed_headers(
            pair,
            method=request.method,
            url=request.url,
            content_type=request.headers["Content-Type"],
            body_sha256=body_sha256,
            now=now,
        )

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in Jimeng's words.

        Raises:
            InvalidRequest: Jimeng cannot do it; names the field and what it accepts.
        """
        return prepare(request, assets)

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        One call; the provider has nothing by which a lost one could be found.
        """
        reply = yield self._call(words.SUBMIT, filled(task.parameters, bare), creates=True)
        data = words.taken(reply)
        if data is None:
            return of_create(words.error(reply, secret=self.secret))
        remote_id = self.usable(identity(data, "task_id"))
        return without_id(reply) if remote_id is None else Accepted(remote_id=remote_id)

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        One call, which names the `req_key` too. A job that failed is `done`: the code tells. Where several keys are
        tried, it may be under one that could not be asked for.
        """
        outcome: PollOutcome = NOT_OURS
        for req_key in _req_keys(task) if self.usable(task.remote_id) is not None else ():
            seen = yield from self._asked(req_key, task)
            if not isinstance(seen, NotThere | Trouble):
                return seen
            outcome = outcome if isinstance(outcome, Trouble) else seen
        return outcome

    def _asked(self, req_key: str, task: Task) -> Conversation[PollOutcome]:
        named = {"req_key": req_key, "task_id": task.remote_id}
        reply = yield self._call(words.RESULT, named, asks=True)
        data = words.taken(reply)
        if data is not None:
            return self._seen(data)
        envelope, error = read_object(reply) or {}, words.error(reply, secret=self.secret)
        word = text_of(object_of(envelope, "data"), "status")
        if word in (words.NOT_FOUND, words.EXPIRED):
            return self._seen({"status": word})
        code = words.code_of(envelope)
        if code is not None and (code in words.CONTENT or words.STATES.read(word) is Standing.DONE):
            return failed(meaning_of(code, words.CODES) or Meaning.AGAIN, error.detail)
        return of_poll(error)

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Whether this stops a video is not documented, so the job is looked at afterwards, whatever the answer.
        """
        named = {"req_key": _req_keys(task)[0], "task_id": task.remote_id}
        reply = yield self._call(words.CANCEL, named, version=words.CANCEL_VERSION)
        if words.is_good(reply):
            return _of_taken_cancel((yield from self.poll(task)))
        error = words.error(reply, secret=self.secret)
        if not error.readable or error.meaning not in (Meaning.REJECTED, Meaning.MISSING):
            return of_call(error)
        return of_refused_cancel((yield from self.poll(task)))

    def check(self) -> Conversation[CheckOutcome]:
        """
        Ask for a task that cannot be: an answer of any kind shows that the signature is taken.
        """
        named = {"req_key": words.TEXT[None], "task_id": "0"}
        reply = yield self._call(words.RESULT, named, asks=True)
        error = words.error(reply, secret=self.secret)
        is_missed = words.code_of(read_object(reply) or {}) is not None and error.meaning in (
            Meaning.REJECTED,
            Meaning.MISSING,
        )
        return Checked() if is_missed or words.taken(reply) is not None else of_call(error)

    def _call(
        self, action: str, body: Any, *, version: str = words.VERSION, creates: bool = False, asks: bool = False
    ) -> HttpRequest:
        query = {"Action": action, "Version": version}
        return self.signed(self.call("POST", "/", query=query, body=Json(value=body), creates=creates), asks=asks)

    def _seen(self, data: dict[str, Any]) -> PollOutcome:
        word = text_of(data, "status")
        if word == words.NOT_FOUND:
            return NotThere(detail="the provider knows no such task, or not any more")
        match words.STATES.read(word):
            case Standing.DONE:
                return ready(text_of(data, "video_url"))
            case Standing.EXPIRED:
                return failed(Meaning.EXPIRED, "the provider let the task expire")
            case standing:
                return StillRunning(remote_state=standing.remote_state)


def _req_keys(task: Task) -> tuple[str, ...]:
    """
    The `req_key` that the job was made with, or all where that is not known (one that was taken over by its id alone).
    """
    known = task.parameters.get("req_key") or task.model_version
    return (known,) if isinstance(known, str) else tuple(words.REQ_KEYS)


def _of_taken_cancel(seen: PollOutcome) -> CancelResult:
    """
    What became of a job whose cancel was taken: one that goes on was not stopped.
    """
    match seen:
        case StillRunning():
            return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        case Ready():
            return CancelTooLate()
        case _:
            return Cancelled(outcome=CancelOutcome.STOPPED)


def make(settings: AdapterSettings) -> JimengAdapter:
    """
    The adapter of an account.

    Raises:
        ConfigError: Its base URL is none, or its key is not of two parts.
    """
    return JimengAdapter(settings)
