"""
The Agents API's words, said once.
"""

import re
from dataclasses import replace

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import detail_of, object_of, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Luma Agents",
    takes="text, first frame, last frame",
    pictures="public address, or base64 in the body",
    limits="not told; set the account's window",
    lost="cannot be looked up",
    cancel="never",
    results="1 hour, fresh at each poll; on a storage host that is not documented: name it in allow_hosts",
    verified="SDK luma-agents 0.5.0 run against the pretend provider, 30 November 2026",
)

HOST = "https://agents.lumalabs.ai/v1"
HOSTS = ("agents.lumalabs.ai",)

MODEL = "ray-3.2"
DURATIONS = (5, 10)
"""The seconds that a clip of this model may have."""
LAST_FRAME_OF_10_SECONDS = 240
RATIOS = ("3:1", "2:1", "21:9", "16:9", "4:3", "3:2", "1:1", "3:4", "2:3", "9:16", "1:2", "1:3")
RESOLUTIONS = ("360p", "540p", "720p", "1080p")

STATES = StatusWords(
    "luma-agents",
    {
        "queued": Standing.WAITING,
        "processing": Standing.WORKING,
        "completed": Standing.DONE,
        "failed": Standing.FAILED,
    },
)

CODES: Codes = {
    "content_moderated": Meaning.MODERATED,
    "budget_exhausted": Meaning.BALANCE,
    **dict.fromkeys(("image_too_large", "unsupported_format", "corrupt_input", "invalid_request"), Meaning.REJECTED),
    "rate_limited": Meaning.RATE,
    **dict.fromkeys(("generation_failed", "output_not_found"), Meaning.AGAIN),
}
"""What a job's `failure_code` is about."""

_TOO_MANY = re.compile(r"concurren|in progress|running", re.IGNORECASE)
_POLICY = re.compile(r"moderat|policy|policies", re.IGNORECASE)


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"detail"}`, a text or what a validator says of each field. The form is not documented for sure, so the usual
    others are read too.
    """
    data = read_object(reply) or {}
    inner = object_of(data, "error")
    others = (text_of(inner, "message"), text_of(data, "error"), text_of(data, "message"))
    detail = detail_of(data) or next(filter(None, others), None)
    read = said(reply, CODES, code=None, detail=detail, secret=key)
    if detail is None:
        return read
    # Too many calls and too many jobs share a status; only the text may tell them apart.
    if read.meaning is Meaning.RATE and _TOO_MANY.search(detail):
        return replace(read, meaning=Meaning.WINDOW)
    if reply.status in (400, 403, 422) and _POLICY.search(detail):
        return replace(read, meaning=Meaning.MODERATED)
    return read
