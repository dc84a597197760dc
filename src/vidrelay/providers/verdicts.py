"""
What a provider's words mean to the relay: its error codes, its status words, and what becomes of a call that was
answered so.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vidrelay.core.adapter import (
    CancelResult,
    Checked,
    FindOutcome,
    NotThere,
    PollOutcome,
    Quota,
    Refused,
    Scope,
    SubmitOutcome,
    Trouble,
    Unknown,
)
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import BlockReason, CancelOutcome, Problem, RemoteFile, RemoteState, RemoteTimes
from vidrelay.providers.replies import told, wait_of

logger = logging.getLogger(__name__)

CURRENCY = re.compile("[A-Z]{3}")
NO_SUCH_CALL = "the provider has nothing at this address; the account's base_url may be wrong"
"""What is said of `missing` where no task was asked for."""


class Meaning(StrEnum):
    """
    What an error is about.

    `rejected`: wrong, and wrong every time. `moderated`: refused by policy. `auth`: the key. `balance`: money, or a
    quota that comes back later. `rate`: too many calls. `window`: too many running. `missing`: no such task.
    `cancelled`, `expired`: how a job ended. `again`: trouble of the provider's own, which for a create says nothing of
    whether it was carried out.
    """

    REJECTED = "rejected"
    MODERATED = "moderated"
    AUTH = "auth"
    BALANCE = "balance"
    RATE = "rate"
    WINDOW = "window"
    MISSING = "missing"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    AGAIN = "again"


Codes = Mapping[str, Meaning]
"""A provider's error codes; one that ends in `*` stands for every code that begins so."""

BY_STATUS: Mapping[int, Meaning] = {
    **dict.fromkeys((400, 405, 406, 411, 413, 414, 415, 422, 431, 451), Meaning.REJECTED),
    **dict.fromkeys((401, 403), Meaning.AUTH),
    402: Meaning.BALANCE,
    **dict.fromkeys((404, 410), Meaning.MISSING),
    429: Meaning.RATE,
}
"""What a status means where the body's code is not known; any other is `again`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """
    An error as a provider told it; `retry_after` is seconds, or None. `readable` is false where the body was none of
    the provider's own (a proxy's page): then a create may have been carried out whatever the status.
    """

    meaning: Meaning
    detail: str
    retry_after: float | None = None
    readable: bool = True


def said(reply: HttpReply, codes: Codes, *, code: str | None, detail: str | None, secret: str | None = None) -> Said:
    """
    Read an error: by its code first, by the status where that is not known.

    Args:
        reply: The answer.
        codes: The provider's codes.
        code: Its code, or None.
        detail: Its text, or None where nothing could be read.
        secret: What must not be shown of them: the account's key, or None.
    """
    known = meaning_of(code, codes)
    meaning = known or BY_STATUS.get(reply.status, Meaning.AGAIN)
    text = f"{code}: {detail}" if code and detail and code not in detail else detail or code
    return Said(
        meaning=meaning,
        detail=told(text or _unread(reply), secret=secret),
        retry_after=wait_of(reply),
        readable=known is not None or detail is not None,
    )


def _unread(reply: HttpReply) -> str:
    if reply.status < 400 and "html" in reply.headers.get("content-type", ""):
        return f"a web page answered {reply.status}, not the provider's API; the account's base_url may be wrong"
    return f"the provider answered {reply.status}, and nothing that can be read"


def meaning_of(code: str | None, codes: Codes) -> Meaning | None:
    """
    What that code means: itself, else the longest beginning of it that is known.
    """
    if code is None:
        return None
    if code in codes:
        return codes[code]
    beginnings = [name for name in codes if name.endswith("*") and code.startswith(name[:-1])]
    return codes[max(beginnings, key=len)] if beginnings else None


def of_create(error: Said, *, trusted: bool = True) -> Failed | Refused | Unknown:
    """
    What becomes of a create call that was answered with this error; not `trusted`, it proves nothing, whatever it says.
    """
    if not trusted or (not error.readable and error.meaning is not Meaning.RATE):
        return Unknown(detail=f"{NO_SUCH_CALL}: {error.detail}" if error.meaning is Meaning.MISSING else error.detail)
    match error.meaning:
        case Meaning.AUTH | Meaning.RATE:
            return _refused(error)
        case Meaning.BALANCE:
            return _refused(error, Scope.CREATES)
        case Meaning.WINDOW:
            return _refused(error, Scope.CREATES)
        case Meaning.AGAIN:
            return Unknown(detail=error.detail)
        case Meaning.MISSING:
            return failed(Meaning.REJECTED, f"{error.detail} (there is no such model, or base_url is wrong)")
        case _:
            return failed(error.meaning, error.detail)


def without_id(reply: HttpReply) -> Unknown:
    """
    What becomes of a create call that seems to have gone through, whose answer has no id or one that is none.
    """
    return Unknown(detail=f"the provider answered {reply.status} without an id that can be used")


def of_repeated(seen: FindOutcome | NotThere, refusal: SubmitOutcome) -> SubmitOutcome:
    """
    What becomes of a create that was sent before under the same id and now is refused as wrong, by a look-up of that id
    (`seen`): perhaps it was carried out then.
    """
    match seen:
        case Found():
            return Accepted(remote_id=seen.remote_id, remote_state=seen.remote_state, times=seen.times)
        case NotThere():
            return refusal
        case _:
            return Unknown(detail="the provider refused it as wrong, and did not say whether it has it already")


NOT_OURS = NotThere(detail="its id is none of this provider's")
"""What becomes of a task whose id is none that could be asked for."""

NO_FILE = Trouble(detail="the provider says that it is done, and names no file", is_done=True)
"""What becomes of a job that is done and has no address: the next look at it may show one."""


def of_poll(error: Said) -> NotThere | Refused | Trouble:
    """
    What becomes of a call that only asks, or that cancels.
    """
    match error.meaning:
        case Meaning.MISSING if error.readable:
            return NotThere(detail=error.detail)
        case Meaning.AUTH | Meaning.RATE if error.readable:
            return _refused(error)
        case _:
            return Trouble(detail=error.detail, retry_after=error.retry_after)


def of_call(error: Said) -> Refused | Trouble:
    """
    The same where no task is asked for: a list, an upload, a check.
    """
    if error.meaning is Meaning.MISSING:
        return Trouble(detail=f"{NO_SUCH_CALL}: {error.detail}", retry_after=error.retry_after)
    outcome = of_poll(error)
    return Trouble(detail=outcome.detail) if isinstance(outcome, NotThere) else outcome


def of_upload(error: Said) -> Failed | Refused | Trouble:
    """
    The same for a picture, which may be refused for good: as a create is where there is no such call. A lack of money
    holds up what it is for.
    """
    match error.meaning:
        case Meaning.MISSING if error.readable:
            return failed(Meaning.REJECTED, f"{NO_SUCH_CALL}: {error.detail}")
        case Meaning.REJECTED | Meaning.MODERATED if error.readable:
            return failed(error.meaning, error.detail)
        case Meaning.BALANCE if error.readable:
            return _refused(error, Scope.CREATES)
        case _:
            return of_call(error)


def of_refused_cancel(seen: PollOutcome) -> CancelResult:
    """
    What becomes of a cancel that was refused, by the job as it was seen right after: it runs on, or has ended.
    """
    if isinstance(seen, Refused | Trouble):
        return seen
    return Cancelled(outcome=CancelOutcome.UNSUPPORTED) if isinstance(seen, StillRunning) else CancelTooLate()


def left_of(left: float | None, unit: str, *, note: str = "") -> Checked:
    """
    The key is taken, and so much is left to spend, where the provider said how much. `unit` is a currency's code, or
    the provider's own word; `note` goes on after it.
    """
    if left is None:
        return Checked()
    amount = f"{left:.2f}" if CURRENCY.fullmatch(unit) else f"{left:g}"
    return Checked(detail=f"{amount} {unit} left{note}", quota=Quota(left=left, unit=unit))


def ready(*urls: str | None, times: RemoteTimes | None = None) -> Ready | Trouble:
    """
    What becomes of a job that is done, by the addresses of its files; None and empty ones are left out.
    """
    outputs = tuple(RemoteFile(url=url) for url in urls if url)
    return Ready(outputs=outputs, times=times or RemoteTimes()) if outputs else NO_FILE


def _refused(error: Said, scope: Scope = Scope.CALLS) -> Refused:
    return Refused(
        scope=scope, reason=BlockReason(error.meaning.value), detail=error.detail, retry_after=error.retry_after
    )


def failed(meaning: Meaning, detail: str, *, remote_id: str | None = None) -> Failed:
    """
    A job that ended without a result, or a create that was refused for good.
    """
    match meaning:
        case Meaning.MODERATED:
            problem = Problem(code="moderated", title="The provider's policy refused it", detail=detail, status=422)
        case Meaning.REJECTED | Meaning.AUTH | Meaning.BALANCE:
            problem = Problem(code="rejected", title="The provider rejected the request", detail=detail, status=422)
        case Meaning.CANCELLED:
            problem = Problem(code="remote_cancelled", title="The provider cancelled the task", detail=detail)
        case Meaning.EXPIRED:
            problem = Problem(code="remote_expired", title="The provider let the task expire", detail=detail)
        case _:
            problem = Problem(code="remote_failed", title="The provider failed", detail=detail, retryable=True)
    return Failed(problem=problem, remote_id=remote_id)


class Standing(StrEnum):
    """
    Where a status word says that a job stands; `unknown` for a word that nobody has told us: it still runs.
    """

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    UNKNOWN = "unknown"

    @property
    def remote_state(self) -> RemoteState | None:
        """
        The same for a job that has not ended; None where it is not known, or has.
        """
        return {Standing.WAITING: RemoteState.WAITING, Standing.WORKING: RemoteState.WORKING}.get(self)

    @property
    def meaning(self) -> Meaning:
        """
        What a job that ended without a result so is told to be.
        """
        return {Standing.CANCELLED: Meaning.CANCELLED, Standing.EXPIRED: Meaning.EXPIRED}.get(self, Meaning.AGAIN)


class StatusWords:
    """
    A provider's status words.
    """

    def __init__(self, provider: str, words: Mapping[str, Standing]) -> None:
        self._provider = provider
        self._words = words
        self._told: set[str] = set()

    def read(self, word: str | None) -> Standing:
        """
        What the word says; one that is not known is logged the first time.
        """
        standing = self._words.get(word or "")
        if standing is not None:
            return standing
        if word is not None and word not in self._told and len(self._told) < 100:
            self._told.add(word)
            logger.warning("status.unknown provider=%s word=%r", self._provider, word[:100])
        return Standing.UNKNOWN
