"""
OpenRouter's words, said once.
"""

import re
from dataclasses import replace

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import identity, object_of, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="OpenRouter",
    takes="text, first frame, last frame, references, as the model allows",
    pictures="https address, or data URI in the body",
    limits="not told; set the account's window",
    lost="cannot be looked up",
    cancel="never",
    results="from OpenRouter itself, with the key, as long as the vendor keeps them",
    verified="SDK openrouter 1.3.84 run against the pretend provider, 30 November 2026",
)

HOST = "https://openrouter.ai/api/v1"
HOSTS = ("openrouter.ai",)

RATIOS = ("16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3", "21:9", "9:21")
RESOLUTIONS = ("360p", "480p", "720p", "768p", "1080p", "1K", "2K", "4K")
MAX_SECONDS = 600
"""More than any model makes; what each takes is its own matter."""
MAX_REFERENCES = 16

STATES = StatusWords(
    "openrouter",
    {
        "pending": Standing.WAITING,
        "in_progress": Standing.WORKING,
        "completed": Standing.DONE,
        "failed": Standing.FAILED,
        "cancelled": Standing.CANCELLED,
        "expired": Standing.EXPIRED,
    },
)

CODES: Codes = {
    **dict.fromkeys(("400", "413"), Meaning.REJECTED),
    "404": Meaning.MISSING,
    **dict.fromkeys(("401", "403"), Meaning.AUTH),
    "402": Meaning.BALANCE,
    "429": Meaning.RATE,
    **dict.fromkeys(("499", "500", "502", "503"), Meaning.AGAIN),
}
"""What an error is about; its code is a status, and may stand in an answer of another."""

_POLICY = re.compile(r"moderat|flagged|content polic|safety", re.IGNORECASE)


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"code", "message", "metadata"}, "user_id"}`.
    """
    data = read_object(reply) or {}
    inner = object_of(data, "error")
    code, message = identity(inner, "code"), text_of(inner, "message")
    read = said(reply, CODES, code=code, detail=message, secret=key)
    reasons = object_of(inner, "metadata")
    flagged = bool(reasons.get("reasons") or reasons.get("flagged_input"))
    if (code or str(reply.status)) in ("400", "403") and (flagged or _POLICY.search(message or "")):
        return replace(read, meaning=Meaning.MODERATED)
    return read


def meaning_of_failure(text: str) -> Meaning:
    """
    What a failed job's `error` is about; it is a text.
    """
    return Meaning.MODERATED if _POLICY.search(text) else Meaning.AGAIN
