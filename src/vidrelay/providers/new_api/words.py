"""
new-api's words, said once.
"""

import re
from dataclasses import replace
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="new-api gateways",
    takes="text, first frame or several references: whatever the model behind takes",
    pictures="https address, or data URI in the body; to Sora models a file in a form",
    limits="not told",
    lost="not settled: it has no list and no ids of one's own, and tries several channels by itself",
    cancel="never",
    results="through the gateway, as long as the provider behind keeps them",
    verified="its source, and SDK openai 3.57.0 run against the pretend provider, 30 November 2026",
)

HERE = "http://127.0.0.1:3000/v1"
FORMED = ("sora",)
"""To models of these names a picture goes as a file, and the length as `seconds`; all others read JSON alone."""

STATUSES = StatusWords(
    "new-api",
    {
        "queued": Standing.WAITING,
        "in_progress": Standing.WORKING,
        "completed": Standing.DONE,
        "failed": Standing.FAILED,
        # It is what the gateway says where it does not know itself, which is no end.
        "unknown": Standing.UNKNOWN,
        "NOT_START": Standing.WAITING,
        "SUBMITTED": Standing.WAITING,
        "QUEUED": Standing.WAITING,
        "IN_PROGRESS": Standing.WORKING,
        "SUCCESS": Standing.DONE,
        "FAILURE": Standing.FAILED,
        "UNKNOWN": Standing.UNKNOWN,
    },
)
UPSTREAM = "fail_to_fetch_task"
"""The provider behind has refused: the status and the message are its own."""
CODES: Codes = {
    "task_not_exist": Meaning.MISSING,
    **dict.fromkeys(("invalid_request", "model_not_found"), Meaning.REJECTED),
    **dict.fromkeys(("insufficient_user_quota", "pre_consume_token_quota_failed"), Meaning.BALANCE),
}
_NO_TASK = re.compile(r"(task|video).{0,80}not.{0,3}(exist|found)|(任务|视频).{0,20}不存在", re.IGNORECASE)
_QUOTA = re.compile(
    r"insufficient.{0,20}(quota|balance|credit)|quota.{0,20}(not enough|exceeded)|(额度|余额)不足", re.IGNORECASE
)
_POLICY = re.compile(r"moderation|content.?policy|content.filter|sensitive|safety|敏感|违规", re.IGNORECASE)


def policy(why: str) -> bool:
    """
    Whether that reason is one of policy. The providers behind have words of their own, so it is guessed.
    """
    return _POLICY.search(why) is not None


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"message", "type", "code"}}` or `{"code", "message", "data"}`: the gateway has both.
    """
    whole: dict[str, Any] = read_object(reply) or {}
    inner = whole.get("error")
    data = inner if isinstance(inner, dict) else whole
    code, message = text_of(data, "code") or None, text_of(data, "message")
    return _judged(said(reply, CODES, code=code, detail=message, secret=key), reply.status, code)


def _judged(error: Said, status: int, code: str | None) -> Said:
    """
    The error by what it tells where its code does not say it. An answer that is an error was not charged, whatever the
    providers behind have done: the gateway takes the charge back.
    """
    if not error.readable or code in CODES or status not in (400, 401, 402, 403, 404, 410, 422, 429):
        return error
    if error.meaning is Meaning.MISSING and not _NO_TASK.search(error.detail):
        # A way that leads nowhere is answered so too, and says nothing of the task.
        return replace(error, meaning=Meaning.REJECTED)
    if policy(error.detail) and status != 429:
        return replace(error, meaning=Meaning.MODERATED)
    if code == UPSTREAM:
        # It is the gateway's key that was refused, not ours, and its credit there that is used up.
        return error if status == 429 else replace(error, meaning=Meaning.REJECTED)
    return replace(error, meaning=Meaning.BALANCE) if _QUOTA.search(error.detail) else error
