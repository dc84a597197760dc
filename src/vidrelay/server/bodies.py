"""
Request bodies: read to a limit, and JSON read strictly.
"""

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator
from typing import Any, NoReturn

from starlette.types import Receive

from vidrelay.core.media import MAX_BYTES
from vidrelay.core.wire import MAX_DEPTH
from vidrelay.server.answers import CLOSE
from vidrelay.server.errors import ClientGone, Refusal

MAX_JSON_BYTES = 1024 * 1024
MAX_ASSET_BYTES = MAX_BYTES
JSON_SECONDS = 15.0
STALL_SECONDS = 30.0
MAX_DIGITS = 1000

_LONG_NUMBER = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")
# A text that does not end counts as one too: were it none, each quote in it would begin another try to find the end.
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_RISKY_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


async def read_body(receive: Receive, *, declared: int | None, limit: int) -> bytes:
    """
    The whole body; `declared` is its Content-Length, if it has one.

    Raises:
        Refusal: It is over `limit` bytes (then it is left unread), or takes longer than `JSON_SECONDS`.
        ClientGone: The client left before its end.
    """
    chunks = [chunk async for chunk in stream_body(receive, declared=declared, limit=limit, seconds=JSON_SECONDS)]
    return b"".join(chunks)


async def stream_body(
    receive: Receive, *, declared: int | None, limit: int, seconds: float | None = None
) -> AsyncIterator[bytes]:
    """
    The body, piece by piece. `seconds` bounds all of it, else each piece may take `STALL_SECONDS`.

    Raises:
        Refusal: It is over `limit` bytes, or too slow.
        ClientGone: The client left before its end.
    """
    if declared is not None and declared > limit:
        raise _too_large(limit)
    loop = asyncio.get_running_loop()
    deadline = None if seconds is None else loop.time() + seconds
    read = 0
    while True:
        try:
            async with asyncio.timeout_at(deadline or loop.time() + STALL_SECONDS):
                message = await receive()
        except TimeoutError:
            raise Refusal("slow_body", "The body did not arrive in time.", headers=CLOSE) from None
        if message["type"] != "http.request":
            raise ClientGone
        chunk = message.get("body", b"")
        read += len(chunk)
        if read > limit:
            raise _too_large(limit)
        if chunk:
            yield chunk
        if not message.get("more_body", False):
            return


def _too_large(limit: int) -> Refusal:
    return Refusal("too_large", f"The body is over {limit} bytes.")


def parse_json(data: bytes) -> Any:
    """
    Read JSON as RFC 8259 has it, and nothing beyond: what two readers could take for different things is refused.

    Raises:
        Refusal: It is not UTF-8, not JSON, repeats a name, is nested deeper than 64, has a number that is not finite
            or over 1,000 digits, or text that cannot be stored (a NUL, half a surrogate pair).
    """
    try:
        text = data.decode("utf-8")
        _check_depth(text)
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded if _LONG_NUMBER.search(text) else None,
        )
    except (ValueError, RecursionError) as exc:
        raise Refusal("invalid_json", f"The body is not JSON as it should be: {_reason(exc)}.") from exc
    if _RISKY_ESCAPE.search(text):
        check_text(value)
    return value


def _reason(exc: Exception) -> str:
    match exc:
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case json.JSONDecodeError():
            return f"{exc.msg.lower()} at line {exc.lineno}, column {exc.colno}"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(exc)


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _STRUCTURE.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        elif mark in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same name twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _bounded(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has over {MAX_DIGITS} digits")
    return int(digits)


def check_text(value: Any) -> None:
    """
    Refuse text that cannot be stored: in JSON, it was written with escapes. The depth is bounded before.

    Raises:
        Refusal: It has a NUL or half a surrogate pair in it.
    """
    match value:
        case str():
            if _UNSTORABLE.search(value):
                raise Refusal("invalid_json", "The body has a NUL or half a surrogate pair in it.")
        case list():
            for item in value:
                check_text(item)
        case dict():
            for name, item in value.items():
                check_text(name)
                check_text(item)
