"""
fal's words, said once.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from vidrelay.core.lifecycle import StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import detail_of, number_of, read_object, rows_of, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, meaning_of, said

FACTS = Facts(
    title="fal.ai",
    takes='text, first frame as `image_url`; any other picture where extra says, as {"$reference": "last_frame"}',
    pictures="uploaded once a day; PNG, JPEG, WebP",
    limits="not told; requests above it are taken and wait there",
    lost="found in the list by its input and time once it has ended, with pictures if it shows them as they were sent; "
    "absence proves nothing",
    cancel="while it waits; a running app may ignore it",
    results="1 hour, 6 minutes if its JSON is 10 KB or more",
    verified="SDK fal-client 1.0.3 run against the pretend provider, 30 November 2026",
)

QUEUE, PLATFORM, REST, CDN = (
    "https://queue.fal.run",
    "https://api.fal.ai",
    "https://rest.fal.ai",
    "https://v3.fal.media",
)
_OWN = ("queue.fal.run", "fal.run", "api.fal.ai", "rest.fal.ai")
MEDIA = "fal.media"
HOSTS = ("queue.fal.run", "api.fal.ai", "rest.fal.ai", MEDIA, f"*.{MEDIA}")
NAMESPACES = ("workflows", "comfy")
"""Where the app's address begins with one of these, it has three parts and not two."""

STATES = StatusWords(
    "fal",
    {
        "IN_QUEUE": Standing.WAITING,
        "IN_PROGRESS": Standing.WORKING,
        "COMPLETED": Standing.DONE,
    },
)

ENDED = "ALREADY_COMPLETED"
"""How a cancel that came too late is answered."""

CANCELLED, TIMED_OUT = "client_cancelled", "request_timeout"
CODES: Codes = {
    "content_policy_violation": Meaning.MODERATED,
    **dict.fromkeys((TIMED_OUT, "startup_timeout"), Meaning.EXPIRED),
    "runner_*": Meaning.AGAIN,
    CANCELLED: Meaning.CANCELLED,
}
RETRYABLE, ERROR_TYPE = "x-fal-retryable", "x-fal-error-type"
ERROR_TYPES = {
    "moderated": "content_policy_violation",
    "remote_cancelled": CANCELLED,
    "remote_expired": TIMED_OUT,
}
"""What our own words for a job's end are called at fal."""
STATUSES = {CANCELLED: 499, TIMED_OUT: 504}
WEBHOOK_QUERY = "fal_webhook"
REQUEST_HEADERS = (
    "x-fal-request-timeout",
    "x-fal-request-start-timeout",
    "x-fal-queue-priority",
    "x-fal-runner-hint",
    "x-fal-no-retry",
    "x-fal-retry-config",
    "x-fal-store-io",
    "x-fal-object-lifecycle-preference",
)
"""What a create may say beside its body."""

_LOCKED = re.compile(r"balance|locked|credit", re.IGNORECASE)
_UNDERWAY = re.compile(r"in progress", re.IGNORECASE)
_VIDEO = "video"


def hosts_of(base: str) -> tuple[str, str, str, str]:
    """
    The addresses of the queue, the platform, the uploads and the media for an account with that base URL: fal's own
    where it names any host of fal's, for the others make no job (the synchronous one gives no id to go on with).
    """
    if urlsplit(base).hostname in _OWN:
        return QUEUE, PLATFORM, REST, CDN
    return base, base, base, base


def standing(data: Mapping[str, Any]) -> StillRunning | None:
    """
    What a status says of a job that has not ended; None of one that has.
    """
    word = STATES.read(text_of(data, "status"))
    if word is Standing.DONE:
        return None
    position = number_of(data, "queue_position")
    return StillRunning(
        remote_state=word.remote_state,
        queue_position=None if position is None or position < 0 else int(position),
    )


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"detail": "…", "error_type"}` or `{"detail": [{"loc", "msg", "type", …}]}`.
    """
    data = read_object(reply) or {}
    faults, detail = rows_of(data, "detail") or [], detail_of(data)
    code = text_of(data, "error_type") or reply.headers.get(ERROR_TYPE)
    if code is None and faults:
        code = text_of(faults[0], "type")
    if reply.status == 403 and _LOCKED.search(detail or ""):
        return said(reply, {"locked": Meaning.BALANCE}, code="locked", detail=detail, secret=key)
    return said(reply, CODES, code=code, detail=detail, secret=key)


def underway(reply: HttpReply, error: Said) -> bool:
    """
    Whether a result call was only too early. A model's own error says whether it may be tried again.
    """
    return RETRYABLE not in reply.headers and _UNDERWAY.search(error.detail) is not None


def of_model(reply: HttpReply, error: Said) -> Meaning | None:
    """
    What a result call's error means where it is the job's own, which the call repeats; None where only the call failed.
    """
    own = RETRYABLE in reply.headers or ERROR_TYPE in reply.headers or "x-fal-request-id" in reply.headers
    if not error.readable or error.meaning in (Meaning.AUTH, Meaning.RATE, Meaning.MISSING, Meaning.BALANCE):
        return None
    if error.meaning is Meaning.AGAIN and not own and reply.status in (502, 503, 504):
        return None
    again = reply.headers.get(RETRYABLE, "").strip().lower() == "true"
    return Meaning.AGAIN if again and error.meaning is Meaning.REJECTED else error.meaning


def job_meaning(code: str | None) -> Meaning:
    """
    What the `error_type` of a completed request means.
    """
    return meaning_of(code, CODES) or Meaning.AGAIN


def addresses(output: Mapping[str, Any]) -> list[str]:
    """
    The files of a model's output: its videos where it names any, else everything that has an address.
    """
    files = list(_files(output, ""))
    videos = [url for url, is_video in files if is_video]
    return [*dict.fromkeys(videos or [url for url, _ in files])]


def _files(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, bool]]:
    if isinstance(value, str):
        if value.startswith(("https://", "http://")):
            yield value, _VIDEO in name
    elif isinstance(value, list) and depth < 4:
        for inner in value:
            yield from _files(inner, name, depth + 1)
    elif isinstance(value, Mapping) and depth < 4:
        url = text_of(value, "url")
        if url is not None:
            kind = text_of(value, "content_type")
            yield url, kind.startswith(_VIDEO) if kind else _VIDEO in name
            return
        for inner_name, inner in value.items():
            yield from _files(inner, str(inner_name).lower(), depth + 1)
