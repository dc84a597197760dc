"""
What the relay's refusals become on this side: the same errors as on that side.
"""

import json
from collections.abc import Iterator
from typing import Any

from vidrelay.client.views import problem
from vidrelay.core.errors import (
    InvalidRequest,
    OutboundRefused,
    RelayUnavailable,
    TransportError,
    VidrelayError,
)


def error_from(status: int, body: bytes) -> VidrelayError:
    """
    The error that an answer of 400 or more tells; one of no known `code` becomes a plain `VidrelayError` that has it.
    """
    told = _object(body)
    found = problem(told)
    if status == 403:
        return RelayUnavailable("The relay refused the token.", hint="Is it another user's, or was it restarted?")
    if found is None or "code" not in told:
        return RelayUnavailable(f"The relay answered {status} in a form that this version does not know.")
    kind = _BY_CODE.get(found.code)
    detail = found.detail or found.title
    if kind is None:
        error = VidrelayError(detail, retry_after=found.retry_after)
        error.code = found.code
    elif issubclass(kind, OutboundRefused):
        error = kind(detail)
    elif issubclass(kind, TransportError):
        error = kind(detail, maybe_sent=True)
    elif issubclass(kind, InvalidRequest):
        field = told.get("field")
        error = kind(detail, field=field if isinstance(field, str) else None)
    else:
        error = kind(detail, retry_after=found.retry_after)
    hint = told.get("hint")
    if isinstance(hint, str):
        error.hint = hint
    error.retryable = found.retryable
    return error


def _object(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _tree(kind: type[VidrelayError]) -> Iterator[type[VidrelayError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)


_BY_CODE = {kind.code: kind for kind in reversed(list(_tree(VidrelayError)))}
