"""
Google's words, said once.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import number_of, object_of, read_object, rows_of, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Google Gemini API (Veo, Omni)",
    takes="text, first frame, references; Veo a last frame too",
    pictures="base64 in the body, 20 MB at most; Omni https addresses too",
    limits="not told; set the account's window",
    lost="cannot be looked up: operations hold no prompt, interactions no list",
    cancel="Omni: always; Veo: never",
    results="2 days, with the key",
    verified="SDK google-genai 2.34.0 (Veo) and 3.6.1 (Omni) run against the pretend provider, 30 November 2026",
)

HOST = "https://generativelanguage.googleapis.com/v1beta"
HOSTS = ("generativelanguage.googleapis.com", "storage.googleapis.com")
"""The second is where downloads have been seen to be redirected to; it gets no key."""

VEO = "veo-3.1-generate-preview"
OMNI = "gemini-omni"
"""So begin the models of interactions."""
MEDIA_BYTES = 14 * 1024 * 1024
"""A picture, film or sound may be 20 MB in the body, and base64 makes four bytes of three."""

STATES = StatusWords(
    "google",
    {
        "queued": Standing.WAITING,
        "in_progress": Standing.WORKING,
        "completed": Standing.DONE,
        **dict.fromkeys(("failed", "incomplete", "budget_exceeded"), Standing.FAILED),
        "cancelled": Standing.CANCELLED,
        # They ask for an answer, which no video needs.
        **dict.fromkeys(("requires_action", "requires_continuation", "idle"), Standing.UNKNOWN),
    },
)

NUMBERS = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    11: "OUT_OF_RANGE",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    15: "DATA_LOSS",
    16: "UNAUTHENTICATED",
}
"""gRPC's codes, by which an operation's error is told."""

CODES: Codes = {
    **dict.fromkeys(("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED"), Meaning.REJECTED),
    "NOT_FOUND": Meaning.MISSING,
    **dict.fromkeys(("PERMISSION_DENIED", "UNAUTHENTICATED"), Meaning.AUTH),
    "RESOURCE_EXHAUSTED": Meaning.RATE,
    **dict.fromkeys(
        ("CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "ALREADY_EXISTS", "ABORTED", "INTERNAL", "UNAVAILABLE"),
        Meaning.AGAIN,
    ),
    "DATA_LOSS": Meaning.AGAIN,
}

_FILE = re.compile(
    r"https://generativelanguage\.googleapis\.com/(?:download/)?v[0-9]+[a-z0-9]*/files/([A-Za-z0-9_-]+)(?::download)?(?:\?.*)?"
)
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONG_LIMIT = re.compile(r"per.?day|daily|spend", re.IGNORECASE)
_POLICY = re.compile(r"usage guidelines|safety|content polic|responsible ai|sensitive|prohibited", re.IGNORECASE)
_BAD_KEY = re.compile(r"api key (?:not valid|not found|expired)", re.IGNORECASE)
_DELAY = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)s")


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"code", "message", "status", "details"}}`.

    A key that is none is told as an INVALID_ARGUMENT, and limits of a day or of money as any other limit: the details
    say which.
    """
    inner = object_of(read_object(reply) or {}, "error")
    message, code = text_of(inner, "message"), code_of(inner)
    read = said(reply, CODES, code=code, detail=message, secret=key)
    details = rows_of(inner, "details") or []
    delays = [_seconds(text_of(one, "retryDelay")) for one in details]
    asked = [one for one in (read.retry_after, *delays) if one is not None]
    read = replace(read, retry_after=max(asked, default=None))
    # Interactions tell no details.
    if any(text_of(one, "reason") == "API_KEY_INVALID" for one in details) or _BAD_KEY.match(message or ""):
        return replace(read, meaning=Meaning.AUTH)
    if read.meaning is Meaning.RATE and _LONG_LIMIT.search(f"{message} {_quotas(details)}"):
        return replace(read, meaning=Meaning.BALANCE)
    if read.meaning is Meaning.REJECTED and _POLICY.search(message or ""):
        return replace(read, meaning=Meaning.MODERATED)
    return read


def model(name: str) -> str:
    """
    The model's name, with or without `models/` before it, as it stands in an address.

    Raises:
        InvalidRequest: It is none.
    """
    bare = name.removeprefix("models/")
    if _MODEL.fullmatch(bare) is None:
        raise InvalidRequest(
            "A model of Google's is named by letters, digits, dots, dashes and underscores.", field="modelVersion"
        )
    return bare


def code_of(error: Mapping[str, Any]) -> str | None:
    """
    The status word of an error: told as such, as a number of gRPC's, or, by interactions, as a code in small letters
    or an address that ends in one.
    """
    number = number_of(error, "code")
    by_number = NUMBERS.get(int(number)) if number is not None and number < 100 else None
    code = text_of(error, "code") or ""
    return text_of(error, "status") or by_number or code.rpartition("/")[2].upper() or None


def meaning_of_failure(code: str | None, message: str) -> Meaning:
    """
    What the error of a job that had begun is about.
    """
    if code == "CANCELLED":
        return Meaning.CANCELLED
    if _POLICY.search(message):
        return Meaning.MODERATED
    return CODES.get(code or "", Meaning.AGAIN)


def file_id(uri: str) -> str | None:
    """
    The id in the address of one of Google's own files, which alone gets the key; None for any other address.
    """
    found = _FILE.fullmatch(uri)
    return found[1] if found else None


def address(file_id: str) -> str:
    """
    The address of one of Google's own files.
    """
    return f"{HOST}/files/{file_id}:download?alt=media"


def _seconds(delay: str | None) -> float | None:
    found = _DELAY.fullmatch(delay or "")
    return float(found[1]) if found else None


def _quotas(details: list[dict[str, Any]]) -> str:
    """
    The names of the limits that were reached.
    """
    rows = [row for one in details for row in rows_of(one, "violations") or []]
    return " ".join(text_of(row, name) or "" for row in rows for name in ("quotaId", "quotaMetric"))
