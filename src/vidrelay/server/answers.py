"""
Answers that are whole when they are made, with the headers that every answer of the relay carries.
"""

import json
from typing import Any

import msgspec
from starlette.responses import Response

RawHeaders = tuple[tuple[bytes, bytes], ...]

SECURITY_HEADERS: RawHeaders = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
DATA_HEADERS: RawHeaders = (
    *SECURITY_HEADERS,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
FILE_HEADERS: RawHeaders = (*SECURITY_HEADERS, (b"content-security-policy", b"default-src 'none'; sandbox"))
JSON_HEADERS: RawHeaders = ((b"content-type", b"application/json"), *DATA_HEADERS)
PROBLEM_HEADERS: RawHeaders = ((b"content-type", b"application/problem+json"), *DATA_HEADERS)
TEXT_HEADERS: RawHeaders = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"), *DATA_HEADERS)
CLOSE: RawHeaders = ((b"connection", b"close"),)

_encoder = msgspec.json.Encoder()


class Answer(Response):
    """
    A whole answer with exactly these headers and its length.
    """

    def __init__(self, body: bytes, *, status: int = 200, headers: RawHeaders) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [*headers, (b"content-length", b"%d" % len(body))]


def encode(value: Any) -> bytes:
    """
    A value of JSON's own types as bytes. Integers are exact however long they are.
    """
    try:
        return _encoder.encode(value)
    except OverflowError:
        # msgspec stops at 64 bits; an app's metadata may hold more.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def json_answer(value: Any, *, status: int = 200, headers: RawHeaders = ()) -> Answer:
    """
    An answer of JSON.
    """
    return Answer(encode(value), status=status, headers=(*JSON_HEADERS, *headers))
