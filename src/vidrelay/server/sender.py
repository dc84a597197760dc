"""
Who sends a submit, as its headers tell: the app's name, its keys, and whether it is a resend.
"""

import re

from vidrelay.scheduler.face import Sender
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import Refusal

MAX_KEY_CHARACTERS = 255
MAX_APP_CHARACTERS = 100

_PRINTABLE_ASCII = re.compile(r"[\x20-\x7e]+")
_COUNT = re.compile(r"[0-9]{1,6}")


def sender_of(call: Call) -> Sender:
    """
    Read the headers.

    Raises:
        Refusal: One of them is not as it should be.
    """
    return Sender(
        app=_app(call),
        client_key=_key(call, b"idempotency-key"),
        request_id=_key(call, b"x-client-request-id"),
        resend=_is_resend(call),
    )


def _key(call: Call, name: bytes) -> str | None:
    """
    A header that an app tells its requests apart by.
    """
    value = call.header(name)
    if value is None:
        return None
    if len(value) > MAX_KEY_CHARACTERS or not _PRINTABLE_ASCII.fullmatch(value):
        told = f"The header {name.decode()} must have 1 to {MAX_KEY_CHARACTERS} printable ASCII characters."
        raise Refusal("invalid_header", told)
    return value


def _app(call: Call) -> str | None:
    value = call.header(b"x-vidrelay-app")
    if value is None or not value:
        return None
    if len(value) > MAX_APP_CHARACTERS or not value.isprintable():
        told = f"The header x-vidrelay-app must have at most {MAX_APP_CHARACTERS} printable characters."
        raise Refusal("invalid_header", told)
    return value


def _is_resend(call: Call) -> bool:
    """
    Whether an SDK says that this is not its first try.
    """
    count = call.header(b"x-stainless-retry-count") or "0"
    return bool(_COUNT.fullmatch(count)) and int(count) > 0
