"""
Replicate's words, said once.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from vidrelay.core.messages import HttpReply
from vidrelay.core.task import RemoteTimes
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import number_of, read_object, text_of, time_of
from vidrelay.providers.verdicts import Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Replicate",
    takes='text, first frame as `image`; any other picture where extra says, as {"$reference": "last_frame"}',
    pictures="uploaded once an hour; PNG, JPEG, WebP",
    limits="not told; more tasks than the hardware serves are taken and wait there",
    lost="found in the list by its input, model and time; with pictures that it shows otherwise than they were sent a "
    "person chooses, and so after an hour",
    cancel="always",
    results="1 hour",
    verified="SDK replicate 1.0.7 run against the pretend provider, 30 November 2026",
)

HOST = "https://api.replicate.com"
HOSTS = ("api.replicate.com", "replicate.delivery", "*.replicate.delivery")
DELIVERY = "replicate.delivery"

STATES = StatusWords(
    "replicate",
    {
        "starting": Standing.WAITING,
        "processing": Standing.WORKING,
        "succeeded": Standing.DONE,
        "failed": Standing.FAILED,
        "canceled": Standing.CANCELLED,
        "aborted": Standing.EXPIRED,
    },
)

_MODERATED = re.compile(r"nsfw|sensitive|moderat|content polic|safety", re.IGNORECASE)
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*s(?:ec|\b)", re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,3})%\s*\|")
_VIDEO = "video"


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"type", "title", "status", "detail", "instance"}`: no codes, and a 429 names the seconds to wait in its text.
    """
    data = read_object(reply) or {}
    detail = text_of(data, "detail") or text_of(data, "title")
    read = said(reply, {}, code=None, detail=detail, secret=key)
    seconds = _SECONDS.search(detail or "") if read.meaning is Meaning.RATE and read.retry_after is None else None
    return replace(read, retry_after=float(seconds[1])) if seconds else read


def meaning(text: str) -> Meaning:
    """
    What a failed prediction's text tells: it has no code, so a refusal by policy is known by its words.
    """
    return Meaning.MODERATED if _MODERATED.search(text) else Meaning.AGAIN


def progress(data: Mapping[str, Any]) -> float | None:
    """
    The last `NN%|` line that the model printed, 0 to 1.
    """
    shown = _PERCENT.findall(text_of(data, "logs") or "")
    return int(shown[-1]) / 100 if shown and int(shown[-1]) <= 100 else None


def times(data: Mapping[str, Any]) -> RemoteTimes:
    """
    Replicate tells every instant.
    """
    metrics = data.get("metrics")
    return RemoteTimes(
        created_at=time_of(data, "created_at"),
        started_at=time_of(data, "started_at"),
        completed_at=time_of(data, "completed_at"),
        execute_seconds=number_of(metrics, "predict_time") if isinstance(metrics, Mapping) else None,
    )


def is_delivered(url: str) -> bool:
    """
    Whether it is an address of Replicate's own delivery, over TLS.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return parts.scheme == "https" and (host == DELIVERY or host.endswith(f".{DELIVERY}"))


def just_before(instant: datetime) -> str | None:
    """
    A second before that, as the list is asked; None where there is none.
    """
    try:
        return (instant - timedelta(seconds=1)).isoformat()
    except OverflowError:
        return None


def addresses(output: Any) -> list[str]:
    """
    The files of an output: one address, a list, or an object whose videos count where it names any.
    """
    if isinstance(output, Mapping):
        named = {name: value for name, value in output.items() if _VIDEO in name.lower() and any(_texts(value))}
        output = list((named or output).values())
    return [*dict.fromkeys(_texts(output))]


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith(("https://", "http://")):
            yield value
    elif depth < 4 and isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner, depth + 1)
