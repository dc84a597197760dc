"""
The words of the OpenAI Videos shape and of its dialects, said once.
"""

import re
from enum import StrEnum

from vidrelay.providers.facts import Facts
from vidrelay.providers.verdicts import Standing, StatusWords

FACTS = Facts(
    title="OpenAI Videos shape (vLLM-Omni, SGLang, gateways)",
    takes="text, first frame; vLLM-Omni: several references",
    pictures="sent along in the form, or https address",
    limits="not told; set the account's window",
    lost="found in the list by its prompt, model, length, size and time; a restarted local server has forgotten it",
    cancel="vLLM-Omni: always; elsewhere never",
    results="while the server keeps them",
    verified="SDK openai 3.57.0 run against the pretend provider; the servers from their source, 30 November 2026",
)


class Dialect(StrEnum):
    """
    Whose server answers. `auto` says only what all of them understand, and tells them apart by the ids they give.
    """

    AUTO = "auto"
    OPENAI = "openai"
    VLLM_OMNI = "vllm-omni"
    SGLANG = "sglang"


SORA = "sora-2"
"""So begin the models whose lengths and sizes are known."""
SORA_SECONDS = (4, 8, 12, 16, 20)
SORA_SIZES = ("1280x720", "720x1280", "1792x1024", "1024x1792")
SORA_PRO_SIZES = (*SORA_SIZES, "1920x1080", "1080x1920")

_VLLM_ID = re.compile(r"video_gen_[0-9a-f]+")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

STATES = StatusWords(
    "openai",
    {
        **dict.fromkeys(("queued", "pending", "submitted", "created"), Standing.WAITING),
        **dict.fromkeys(("in_progress", "processing", "running"), Standing.WORKING),
        **dict.fromkeys(("completed", "succeeded"), Standing.DONE),
        **dict.fromkeys(("failed", "error"), Standing.FAILED),
        **dict.fromkeys(("cancelled", "canceled", "deleted"), Standing.CANCELLED),
        "expired": Standing.EXPIRED,
    },
)

REFERENCE = "input_reference"
REFERENCES = "input_references"
"""vLLM-Omni's field for several pictures."""
IMAGE_URL = "image_url"
FILE_ID = "file_id"
URL_FIELDS = {Dialect.SGLANG: "reference_url", Dialect.VLLM_OMNI: "image_reference"}
"""Where a picture's address goes; elsewhere it is `input_reference`'s `image_url`."""

IRRELEVANT = frozenset({"user", "safety_identifier", "client_id", "callback_url", "webhook_url"})

REJECTED = frozenset({400, 403, 404, 405, 406, 411, 413, 414, 415, 422, 431, 451})
"""A create answered so, with an error that can be read, was surely not carried out and never will be."""
NO_BALANCE = re.compile(
    r"insufficient_quota|insufficient.{0,20}(balance|credit|fund)|billing_hard_limit", re.IGNORECASE
)
TOO_MANY_RUNNING = re.compile(
    r"concurren|too many (\w+ ){0,3}(running|in progress|active|pending|jobs|videos|tasks)",
    re.IGNORECASE,
)
NO_WAY = re.compile(rb"^\s*<|invalid url|page not found", re.IGNORECASE)
"""What a proxy's page, or a gateway that has no such path, says: nothing of the job."""
POLICY = re.compile(r"moderation|content_policy|content.filter|safety", re.IGNORECASE)


def spoken(dialect: Dialect, remote_id: str | None) -> Dialect:
    """
    The dialect of the server that gave this id, where the account does not say it.
    """
    if dialect is not Dialect.AUTO or remote_id is None:
        return dialect
    if _VLLM_ID.fullmatch(remote_id):
        return Dialect.VLLM_OMNI
    return Dialect.SGLANG if _UUID.fullmatch(remote_id) else Dialect.OPENAI
