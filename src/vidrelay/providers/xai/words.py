"""
Grok Imagine's words, said once.
"""

import re
from dataclasses import replace
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import identity, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="xAI Grok Imagine",
    takes="text, first frame, last frame, references",
    pictures="https address, or data URI in the body",
    limits="not told; set the account's window",
    lost="cannot be looked up",
    cancel="never",
    results="24 hours",
    verified="document, 30 November 2026; the official SDK speaks gRPC",
)

HOST = "https://api.x.ai/v1"
HOSTS = ("api.x.ai", "vidgen.x.ai")

BASIC = "grok-imagine-video"
"""The model that is taken where none is named, and the one that cannot do 1080p."""
MODELS = (BASIC, f"{BASIC}-1.5", f"{BASIC}-1.5-lite")
MAX_SECONDS = 15
RATIOS = ("16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3")
RESOLUTIONS = ("480p", "720p", "1080p")
MAX_REFERENCES = 16

STATES = StatusWords(
    "xai",
    {
        # Waiting and at work are one word.
        "pending": Standing.UNKNOWN,
        "done": Standing.DONE,
        "failed": Standing.FAILED,
        "expired": Standing.EXPIRED,
    },
)

CODES: Codes = {}
"""No code is documented: the status says what an error is, and its text whether it is about money or policy."""

_NO_CREDITS = re.compile(r"\bcredits?\b|spending limit|balance|insufficient funds", re.IGNORECASE)
_BAD_KEY = re.compile(r"(?:incorrect|invalid)(?: |%20)api(?: |%20)key", re.IGNORECASE)
"""A wrong key has been seen to be told with 400, and the text as in an address."""
_POLICY = re.compile(r"moderat|content polic|safety|usage guideline", re.IGNORECASE)


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"message", "type", "code"}}` or `{"code", "error"}`.
    """
    data = read_object(reply) or {}
    inner = data.get("error")
    code, message = spoken(inner) if isinstance(inner, dict) else (text_of(data, "code"), text_of(data, "error"))
    read = said(reply, CODES, code=code, detail=message, secret=key)
    text = f"{code or ''} {message or ''}"
    if reply.status == 400 and _BAD_KEY.search(text):
        return replace(read, meaning=Meaning.AUTH)
    if reply.status in (402, 403, 429) and _NO_CREDITS.search(text):
        return replace(read, meaning=Meaning.BALANCE)
    if reply.status in (400, 403, 422) and _POLICY.search(text):
        return replace(read, meaning=Meaning.MODERATED)
    return read


def spoken(error: Any) -> tuple[str | None, str | None]:
    """
    The code and the message of an error object.
    """
    data = error if isinstance(error, dict) else {}
    return identity(data, "code") or text_of(data, "type"), text_of(data, "message")


def meaning_of_failure(code: str, message: str) -> Meaning:
    """
    What a failed job's error is about.
    """
    return Meaning.MODERATED if _POLICY.search(f"{code} {message}") else Meaning.AGAIN
