"""
Runway's words, said once.
"""

import re

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import read_object, rows_of, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, meaning_of, said

FACTS = Facts(
    title="Runway",
    takes="text, first frame, by model first and last frame, up to 30 references",
    pictures="https address, or data URI in the body; PNG, JPEG, WebP; 5 MB as base64",
    limits="asked, by model: GET /v1/organization; more tasks than that are taken and wait there",
    lost="left to a person: tasks cannot be listed",
    cancel="always; what runs is charged",
    results="24 to 48 hours, a fresh address at each poll",
    verified="SDK runwayml 5.24.0 run against the pretend provider, 30 November 2026",
)

HOST = "https://api.dev.runwayml.com"
HOSTS = ("api.dev.runwayml.com", "*.cloudfront.net")
VERSION = {"X-Runway-Version": "2024-11-06"}
PICTURE_BYTES = 3_700_000
"""A data URI may have 5 MB, and base64 makes four bytes of three."""
MEDIA_BYTES = 11_900_000
"""Of a film or a sound it may have 16 MB."""
MAX_ADDRESS = 2048

STATES = StatusWords(
    "runway",
    {
        "THROTTLED": Standing.WAITING,
        "PENDING": Standing.WAITING,
        "RUNNING": Standing.WORKING,
        "SUCCEEDED": Standing.DONE,
        "FAILED": Standing.FAILED,
        "CANCELLED": Standing.CANCELLED,
    },
)

FAILURES: Codes = {
    "SAFETY*": Meaning.MODERATED,
    "INPUT_PREPROCESSING.SAFETY*": Meaning.MODERATED,
    "ASSET.INVALID*": Meaning.REJECTED,
    "INTERNAL*": Meaning.AGAIN,
    "THIRD_PARTY*": Meaning.AGAIN,
}
"""How a `failureCode` begins, and what it means."""

_CREDITS = re.compile(r"\bcredits?\b", re.IGNORECASE)
_DAILY = re.compile(r"\bdaily\b|\bper day\b", re.IGNORECASE)


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error", "issues", "docUrl"}`. It has no codes: lack of credits and the daily limit are known by their words.
    """
    data = read_object(reply) or {}
    text = text_of(data, "error")
    issues = [text_of(one, "message") for one in rows_of(data, "issues") or []]
    detail = "; ".join(filter(None, (text, *issues))) or None
    quota = (reply.status == 400 and _CREDITS.search(text or "")) or (reply.status == 429 and _DAILY.search(text or ""))
    return said(reply, {"quota": Meaning.BALANCE}, code="quota" if quota else None, detail=detail, secret=key)


def failure(code: str | None) -> Meaning:
    """
    What a `failureCode` means.
    """
    return meaning_of(code, FAILURES) or Meaning.AGAIN
