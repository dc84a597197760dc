"""
Dream Machine's words, said once.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import detail_of, read_object
from vidrelay.providers.verdicts import Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Luma Dream Machine",
    takes="text, first frame, last frame",
    pictures="public https address only",
    limits="not told; set the account's window",
    lost="found in the list by its prompt, model and time",
    cancel="never: whether DELETE stops a job is not documented",
    results="not documented; fetched at once",
    verified="SDK lumaai 1.21.0 run against the pretend provider, 30 November 2026",
)

HOST = "https://api.lumalabs.ai/dream-machine/v1"
HOSTS = ("api.lumalabs.ai", "storage.cdn-luma.com")

MODELS = ("ray-2", "ray-flash-2")
DURATIONS = (5, 9)
"""The seconds that a clip of these models may have."""
RATIOS = ("1:1", "16:9", "9:16", "4:3", "3:4", "21:9", "9:21")
RESOLUTIONS = ("540p", "720p", "1080p", "4k")

FILLED_IN: Mapping[str, tuple[Any, ...]] = {
    "aspect_ratio": ("16:9",),
    "duration": ("5s",),
    "resolution": ("540p", "720p"),
    "loop": (False,),
    "concepts": ([],),
    "keyframes": ({},),
}
"""What a listed request may say though it was not sent."""
UNTOLD = frozenset({"generation_type", "callback_url"})
"""What tells no two requests apart."""

STATES = StatusWords(
    "luma",
    {
        "queued": Standing.WAITING,
        "dreaming": Standing.WORKING,
        "completed": Standing.DONE,
        "failed": Standing.FAILED,
    },
)

_NO_CREDITS = re.compile(r"(insufficient|not enough|out of|no|lack of)\b.{0,40}\b(credit|balance|fund)", re.IGNORECASE)
_TOO_MANY = re.compile(r"concurren|in progress|running", re.IGNORECASE)
_POLICY = re.compile(r"moderat|policy|policies", re.IGNORECASE)


def meaning_of_failure(reason: str) -> Meaning:
    """
    What a failed job's `failure_reason` is about; there is no code.
    """
    return Meaning.MODERATED if _POLICY.search(reason) else Meaning.AGAIN


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"detail"}`: there are no codes, so a lack of credits, a refusal by policy and too many jobs are known by
    their text alone.
    """
    detail = detail_of(read_object(reply) or {})
    read = said(reply, {}, code=None, detail=detail, secret=key)
    if detail is None or not 400 <= reply.status < 500:
        return read
    # Also with 429, and before the other: one may be "running out of credits".
    if _NO_CREDITS.search(detail):
        return replace(read, meaning=Meaning.BALANCE)
    if read.meaning is Meaning.RATE:
        return replace(read, meaning=Meaning.WINDOW) if _TOO_MANY.search(detail) else read
    if read.meaning is Meaning.REJECTED and _POLICY.search(detail):
        return replace(read, meaning=Meaning.MODERATED)
    return read
