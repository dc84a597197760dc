"""
The one table from an error's code to its HTTP status, and the problem documents made from it (RFC 9457).
"""

import math
from typing import Any

from vidrelay.core.errors import RequestError, VidrelayError
from vidrelay.core.task import Problem
from vidrelay.core.wire import problem_json
from vidrelay.server.answers import CLOSE, PROBLEM_HEADERS, Answer, RawHeaders, encode

STATUSES: dict[str, tuple[int, str]] = {
    # What the gate and the routes say.
    "malformed_http": (400, "Malformed HTTP"),
    "invalid_json": (400, "Invalid JSON"),
    "invalid_header": (400, "Invalid header"),
    "invalid_form": (400, "Invalid form"),
    "forbidden": (403, "Forbidden"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "Method not allowed"),
    "slow_body": (408, "Body too slow"),
    "address_too_long": (414, "Address too long"),
    "unsupported_media_type": (415, "Unsupported media type"),
    "range_not_satisfiable": (416, "Range not satisfiable"),
    "headers_too_large": (431, "Headers too large"),
    "shutting_down": (503, "Shutting down"),
    "too_many_connections": (503, "Too many connections"),
    # What the relay says; the codes of core/errors.py.
    "bad_request": (400, "Bad request"),
    "unknown_task": (404, "Unknown task"),
    "idempotency_conflict": (409, "Idempotency conflict"),
    "wrong_state": (409, "Wrong state"),
    "duplicate_remote": (409, "Duplicate remote job"),
    "illegal_transition": (409, "Illegal transition"),
    "result_gone": (410, "Result gone"),
    "too_large": (413, "Too large"),
    "unsupported_media": (415, "Unsupported media"),
    "invalid_request": (422, "Invalid request"),
    "unknown_account": (422, "Unknown account"),
    "unknown_asset": (422, "Unknown asset"),
    "config_error": (500, "Configuration error"),
    "internal_error": (500, "Internal error"),
    "bad_media": (502, "Bad media"),
    "dead_address": (502, "Dead address"),
    "redirected": (502, "Redirected"),
    "outbound_refused": (502, "Outbound call refused"),
    "reply_too_large": (502, "Reply too large"),
    "transport_error": (502, "Provider not reached"),
    "database_unusable": (503, "Database unusable"),
    "relay_unavailable": (503, "Relay unavailable"),
    "stale_task": (503, "Task changed meanwhile"),
    "store_busy": (503, "Database busy"),
    "store_error": (503, "Database error"),
    "disk_full": (507, "Disk full"),
}
"""Every code that an answer can carry, with its status and title."""

RETRY_SECONDS = 1.0
"""What a 503 tells a client to wait where nothing better is known."""


class Refusal(VidrelayError):
    """
    The call cannot be served as it came over HTTP.
    """

    def __init__(self, code: str, message: str, *, headers: RawHeaders = ()) -> None:
        """
        `code` is one of `STATUSES`; `headers` go into the answer.
        """
        super().__init__(message)
        self.code = code
        self.headers = headers
        self.retryable = STATUSES[code][0] in (408, 503)


class ClientGone(Exception):
    """
    The client left in the middle of its request; there is nobody to answer.
    """


def problem_of(error: VidrelayError, *, status: int | None = None) -> Problem:
    """
    The error as a problem; `status` overrides the table's where the same error means another thing on a route.
    """
    told, title = STATUSES.get(error.code, STATUSES["internal_error"])
    status = status or told
    retry_after = error.retry_after
    if retry_after is None and status == 503 and error.retryable:
        retry_after = RETRY_SECONDS
    return Problem(
        code=error.code,
        title=title,
        detail=error.message,
        status=status,
        retryable=error.retryable,
        retry_after=retry_after,
    )


def problem_answer(error: VidrelayError, *, status: int | None = None, headers: RawHeaders = ()) -> Answer:
    """
    The error as an answer, with `Retry-After` where the problem has it.
    """
    problem = problem_of(error, status=status)
    body: dict[str, Any] = problem_json(problem)
    if error.hint is not None:
        body["hint"] = error.hint
    # On a route of its own the fault is in the path, which has no fields.
    if isinstance(error, RequestError) and error.field is not None and status is None:
        body["field"] = error.field
    if isinstance(error, Refusal):
        headers = (*headers, *error.headers)
    if problem.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % math.ceil(problem.retry_after)))
    return Answer(encode(body), status=problem.status, headers=(*PROBLEM_HEADERS, *headers))


def forbidden() -> Refusal:
    """
    What a handler raises for a call that the gate would have refused, had it known what the handler knows.
    """
    return Refusal("forbidden", "This call is not allowed.", headers=CLOSE)


FORBIDDEN = problem_answer(forbidden())
"""The one 403: the same bytes whatever was wrong, so that it tells a stranger nothing."""
