"""
Kling's words, said once.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.core.task import RemoteTimes
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import instant_of, number_of, read_object, text_of, told
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Kling (可灵)",
    takes="text, first frame, first and last frame",
    pictures="https address, or bare base64 in the body; JPEG or PNG of 10 MB and 300 pixels a side",
    limits="not told; a task too many is refused (429, code 1303)",
    lost="looked up by our own external_task_id",
    cancel="never",
    results="30 days",
    verified="document, 30 November 2026; no official SDK",
)

HOST = "https://api-singapore.klingai.com"
"""Outside China; the keys of one region are not taken in another."""
HOSTS = (
    "api-singapore.klingai.com",
    "api.klingai.com",
    "api-beijing.klingai.com",
    "cdn.klingai.com",
    "h1.inkwai.com",
    "*.klingai.com",
    "*.kechuangai.com",
)
TEXT, IMAGE = "text2video", "image2video"
KINDS = (TEXT, IMAGE)
EXTERNAL_ID = "external_task_id"
USUAL_SECONDS = "5"
"""A clip's length where a create names none."""

DEFAULT_MODEL = "kling-v1"
"""What the provider takes where none is named."""
ONLY_OF_PICTURES = ("kling-v1-5", "kling-v2-1")
FIVE_OR_TEN = ("kling-v1", "kling-v2")
"""The beginnings of the names of models whose clips are 5 or 10 seconds long."""
THREE_TO_FIFTEEN = ("kling-v3",)
MODELS = (*FIVE_OR_TEN, *THREE_TO_FIFTEEN)
"""With these begin the names of the models that are known."""
RATIOS = ("16:9", "9:16", "1:1")
MAX_PROMPT = 2500
PICTURE_BYTES = 7_500_000
"""A picture may be 10 MB; whether that is meant before or after base64 is not said."""
MIN_EDGE = 300
MAX_RATIO = 2.5

STATES = StatusWords(
    "kling",
    {
        "submitted": Standing.WAITING,
        "processing": Standing.WORKING,
        "succeed": Standing.DONE,
        "failed": Standing.FAILED,
    },
)

BAD_TIME = ("1003", "1004")
"""The token is not valid yet, or not any more: one that is made anew may be."""
BAD_PARAMETERS = ("1200", "1201")
"""What a create is refused with whose external_task_id is there already is not documented; one of these is likely."""

CODES: Codes = {
    **dict.fromkeys(("1000", "1001", "1002", *BAD_TIME, "1100", "1304"), Meaning.AUTH),
    **dict.fromkeys(("1101", "1102"), Meaning.BALANCE),
    **dict.fromkeys(("1103", *BAD_PARAMETERS, "1202"), Meaning.REJECTED),
    "1203": Meaning.MISSING,
    **dict.fromkeys(("1300", "1301"), Meaning.MODERATED),
    "1302": Meaning.RATE,
    "1303": Meaning.WINDOW,
    **dict.fromkeys(("5000", "5001", "5002"), Meaning.AGAIN),
}


def taken(reply: HttpReply) -> dict[str, Any] | None:
    """
    The envelope of a call that went through: its status alone does not say so, its code must be 0.
    """
    envelope = read_object(reply)
    if envelope is None or not 200 <= reply.status < 300 or number_of(envelope, "code") != 0:
        return None
    return envelope


def task_of(reply: HttpReply) -> dict[str, Any] | None:
    """
    The task that an answer tells of; None where it tells of none.
    """
    data = (taken(reply) or {}).get("data")
    return data if isinstance(data, dict) else None


def code_of(reply: HttpReply) -> str | None:
    """
    The error's code, or None.
    """
    number = number_of(read_object(reply) or {}, "code")
    return None if number is None or number == 0 else f"{number:.0f}"


def error(reply: HttpReply, *, secrets: Sequence[str]) -> Said:
    """
    Read `{"code", "message", "request_id"}`.
    """
    message = text_of(read_object(reply) or {}, "message")
    return said(reply, CODES, code=code_of(reply), detail=None if message is None else shown(message, secrets=secrets))


def shown(text: str, *, secrets: Sequence[str]) -> str:
    """
    The provider's words, fit to be shown: without key, secret and token.
    """
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return told(text, secret=None)


def times_of(data: Mapping[str, Any], *, ended: bool = False) -> RemoteTimes:
    """
    A task's instants, which are told in milliseconds; of one that has `ended` the last change was its end.
    """
    return RemoteTimes(
        created_at=_instant(data, "created_at"), completed_at=_instant(data, "updated_at") if ended else None
    )


def _instant(data: Mapping[str, Any], name: str) -> datetime | None:
    milliseconds = number_of(data, name)
    return None if milliseconds is None else instant_of({name: milliseconds / 1000}, name)
