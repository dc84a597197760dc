"""
MiniMax's words, said once, for both generations.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import identity, number_of, object_of, read_object, text_of, time_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="MiniMax (海螺)",
    takes="V2 (H3): text, first and last frame, up to 9 references; V1 (Hailuo): text, first and last frame, 1 subject",
    pictures="V2: uploaded once and used again, or https address; V1: https address, or data URI in the body",
    limits="not told; 5 to 20 creates a minute; more tasks than are worked on wait there",
    lost="V2: the list shows no prompt, so a person chooses among jobs of that model and time; V1: not at all",
    cancel="V2: until it is worked on; V1: no",
    results="V2: not documented; V1: 6 to 9 hours, asked anew while the task is known",
    verified="document and third parties, 30 November 2026; no official SDK",
)

HOST = "https://api.minimax.io"
VERSIONS = ("/v1", "/v2")
HOSTS = (
    "api.minimax.io",
    "api.minimaxi.com",
    "public-cdn-video-data-algeng.oss-cn-wulanchabu.aliyuncs.com",
    "*.hailuoai.com",
    "*.hailuoai.video",
)
V2_MODELS = "MiniMax-H3"
"""With this begin the names of the models that V2 serves; V1 serves the others."""

STATES_V1 = StatusWords(
    "minimax",
    {
        "Preparing": Standing.WAITING,
        "Queueing": Standing.WAITING,
        "Processing": Standing.WORKING,
        "Success": Standing.DONE,
        "Fail": Standing.FAILED,
    },
)
STATES_V2 = StatusWords(
    "minimax",
    {
        "queued": Standing.WAITING,
        "running": Standing.WORKING,
        "succeeded": Standing.DONE,
        "failed": Standing.FAILED,
        "cancelled": Standing.CANCELLED,
        "expired": Standing.EXPIRED,
    },
)

INVALID = "2013"
NO_SUCH_TASK = "invalid task_id"
CODES: Codes = {
    **dict.fromkeys(("1000", "1001", "1013", "1024", "1033", "1041"), Meaning.AGAIN),
    **dict.fromkeys(("1002", "1039", "2045"), Meaning.RATE),
    # Without a real-name check nothing of the account works, so it is the account that rests, not a task that fails.
    **dict.fromkeys(("1004", "2049", "2038"), Meaning.AUTH),
    **dict.fromkeys(("1008", "2056", "2062"), Meaning.BALANCE),
    **dict.fromkeys(("1026", "1027"), Meaning.MODERATED),
    INVALID: Meaning.REJECTED,
    NO_SUCH_TASK: Meaning.MISSING,
}


def code_of(data: Mapping[str, Any] | None) -> str | None:
    """
    The error code of V1 in `base_resp`, which may come with HTTP 200; None where there is none, or it is 0.
    """
    code = identity(_base(data or {}), "status_code")
    return None if code in (None, "0") else code


def _base(data: Mapping[str, Any]) -> dict[str, Any]:
    """
    The `base_resp` of an answer; some regions wrap all of it in `data`.
    """
    return object_of(data, "base_resp") or object_of(object_of(data, "data"), "base_resp")


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read an error of V1: `{"base_resp": {"status_code", "status_msg"}}`.
    """
    data = read_object(reply)
    message = text_of(_base(data or {}), "status_msg")
    return said(reply, CODES, code=code_of(data), detail=message, secret=key)


def error_v2(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read an error of V2: `{"error": {"message", "type", "http_code"}}`, where the body's code stands for the status.

    What stands before both generations (the check of the key, of the balance) may answer in V1's form.
    """
    whole = read_object(reply) or {}
    data = object_of(whole, "error")
    if not data and code_of(whole) is not None:
        return error(reply, key=key)
    message = text_of(data, "message")
    http = identity(data, "http_code") or ""
    # Under a 5xx it may have been carried out, whatever the body says.
    in_body = reply.status < 500 and len(http) == 3 and http.isascii() and http.isdigit()
    status = int(http) if in_body else reply.status
    missing = message is not None and NO_SUCH_TASK in message.lower()
    code = NO_SUCH_TASK if missing else None
    return said(replace(reply, status=status), CODES, code=code, detail=message, secret=key)


def is_fine_v2(reply: HttpReply, data: Mapping[str, Any] | None) -> bool:
    """
    Whether a call to V2 went through: its status alone does not say so, its body may hold an error of either form.
    """
    return 200 <= reply.status < 300 and not isinstance((data or {}).get("error"), dict) and not code_of(data)


def when(data: Mapping[str, Any], name: str) -> datetime | None:
    """
    The instant under that name, in Unix seconds, Unix milliseconds, or ISO 8601: which of them is not documented.
    """
    number = number_of(data, name)
    if number is None:
        return time_of(data, name)
    seconds = number / 1000 if number > 1e11 else number
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < 1e11 else None
