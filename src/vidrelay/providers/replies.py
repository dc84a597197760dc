"""
Reads what providers send, which may be anything: nothing here raises because of a reply's content.
"""

import json
import math
import re
import unicodedata
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.core.pace import retry_after

MAX_DEPTH = 64
MAX_PIECES = 100_000
"""So many texts, brackets and commas may stand in a reply; the longest list of jobs asked for has some ten thousand."""
MAX_ESCAPES = 200_000
"""So many escapes may stand in one of its texts; the longest prompt has a third of that."""
MAX_TOLD = 500
"""So many characters of a provider's own words are passed on."""

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LATEST = 253402300799
# A text that does not end counts as one: were it none, each quote in it would begin another try to find the end.
_PIECE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)


def read_object(reply: HttpReply) -> dict[str, Any] | None:
    """
    The body as a JSON object; None where it is not one, is nested more than 64 deep, or would grow many times over.
    """
    if _grows(reply.body):
        return None
    try:
        data = json.loads(reply.body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and _is_shallow(data) else None


def answered(reply: HttpReply) -> dict[str, Any] | None:
    """
    What a call that went through (2xx) was answered with; None for an error, and for what cannot be read.
    """
    return read_object(reply) if 200 <= reply.status < 300 else None


def went_through(reply: HttpReply) -> bool:
    """
    Whether a call went through (2xx) of which no answer is needed: there is none, or one that can be read, and not some
    proxy's page.
    """
    return 200 <= reply.status < 300 and (reply.body.strip() in (b"", b"null") or read_object(reply) is not None)


def content_at(body: bytes, place: str) -> bytes | None:
    """
    The bytes that stand in a JSON body as base64, at that place (a JSON pointer); None where there are none.
    """
    value: Any = read_object(HttpReply(status=200, body=body))
    for name in place.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(name)] if name.isdecimal() and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    try:
        # Both of base64's alphabets are taken.
        return b64decode(value, altchars=b"-_", validate=True) if isinstance(value, str) and value else None
    except ValueError:
        return None


def _grows(body: bytes) -> bool:
    """
    Whether far more would be made of it than its bytes: an empty list is two of them on the wire and a hundred here,
    and so is each escape while its text is read.
    """
    for number, piece in enumerate(_PIECE.finditer(body)):
        if number == MAX_PIECES or body.count(b"\\", *piece.span()) > MAX_ESCAPES:
            return True
    return False


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _is_shallow(data: Any) -> bool:
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _members(one)]
        if not level:
            return True
    return False


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def text_of(data: Mapping[str, Any], name: str) -> str | None:
    """
    The text under that name, or None.
    """
    value = data.get(name)
    return value if isinstance(value, str) else None


def identity(data: Mapping[str, Any], name: str) -> str | None:
    """
    The id or the code under that name, which comes as text or as a whole number; None where there is none.
    """
    value = data.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() or None if isinstance(value, str) else None


def texts_of(data: Mapping[str, Any], name: str) -> list[str]:
    """
    The texts of the list under that name that are not empty; none where there is no list.
    """
    listed = data.get(name)
    return [one for one in listed if isinstance(one, str) and one] if isinstance(listed, list) else []


def object_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """
    The object under that name; an empty one where there is none.
    """
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def rows_of(data: Mapping[str, Any], *names: str) -> list[dict[str, Any]] | None:
    """
    The objects of the list under the first of these names that has one; None where none has.
    """
    listed = next((data[name] for name in names if isinstance(data.get(name), list)), None)
    return None if listed is None else [one for one in listed if isinstance(one, dict)]


def detail_of(data: Mapping[str, Any]) -> str | None:
    """
    An error's `detail` as FastAPI servers write it: a text, or a list of what is wrong with each field; else None.
    """
    rows = rows_of(data, "detail")
    if rows is None:
        return text_of(data, "detail")
    return "; ".join(filter(None, (text_of(row, "msg") for row in rows))) or None


def number_of(data: Mapping[str, Any], name: str) -> float | None:
    """
    The finite number under that name, or None; true and false are no numbers.
    """
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def percent_of(data: Mapping[str, Any], name: str) -> float | None:
    """
    The number of percent under that name as a share from 0 to 1, or None.
    """
    percent = number_of(data, name)
    return None if percent is None else min(1.0, max(0.0, percent / 100))


def instant_of(data: Mapping[str, Any], name: str) -> datetime | None:
    """
    The instant that a number of Unix seconds under that name means, or None.
    """
    seconds = number_of(data, name)
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 < seconds <= _LATEST else None


def time_of(data: Mapping[str, Any], name: str, *, zone: tzinfo = UTC) -> datetime | None:
    """
    The instant that a text under that name tells in ISO 8601, or None; `zone` is meant where it names none.
    """
    try:
        instant = datetime.fromisoformat(text_of(data, name) or "")
        return (instant if instant.tzinfo is not None else instant.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def told(text: str, *, secret: str | None) -> str:
    """
    A provider's words, fit to be shown: one line, of bounded length, the account's key blotted out, and every character
    that could steer a terminal written as its escape.
    """
    if secret:
        text = text.replace(secret, "[key]")
    # Cut before escaping, so that no escape is cut in two.
    short = text if len(text) <= MAX_TOLD else text[:MAX_TOLD] + "…"
    return "".join(_shown(letter) for letter in short)


def reason(*parts: str | None, word: str = "failed", secret: str | None) -> str:
    """
    Why a job ended, of what the provider says (code, text), fit to be shown; where that is nothing, its status `word`.
    """
    return told(": ".join(one for one in parts if one) or f"it says {word} and no more", secret=secret)


def _shown(letter: str) -> str:
    if letter in "\r\n\t":
        return " "
    if unicodedata.category(letter) in _UNSEEN:
        return f"\\u{ord(letter):04x}"
    return letter


def wait_of(reply: HttpReply) -> float | None:
    """
    The seconds that the reply asks to wait.

    An adapter has no clock, so a date in `Retry-After` is measured against the reply's own `Date`; without that it says
    nothing, and the scheduler's own pause applies.
    """
    header = reply.headers.get("retry-after")
    sent_at = date_of(reply)
    if sent_at is not None:
        return retry_after(header, now=sent_at)
    is_date = header is not None and not header.strip().isdigit()
    return None if is_date else retry_after(header, now=datetime.fromtimestamp(0, UTC))


def date_of(reply: HttpReply) -> datetime | None:
    """
    When the provider's clock says that it sent the reply (`Date`, whole seconds), or None.
    """
    try:
        sent_at = parsedate_to_datetime(reply.headers.get("date") or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return sent_at if sent_at.tzinfo is not None else sent_at.replace(tzinfo=UTC)
