"""
Holds an adapter's conversations: with replies that the test wrote, or with a server that runs.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from vidrelay.core.adapter import Conversation
from vidrelay.core.messages import Form, HttpReply, HttpRequest

T = TypeVar("T")


def reply(data: Any = None, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpReply:
    """
    A reply with that JSON, or with those bytes.
    """
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return HttpReply(status=status, headers=headers or {}, body=body)


def converse(conversation: Conversation[T], *replies: HttpReply, repeat: bool = False) -> tuple[list[HttpRequest], T]:
    """
    Give the replies in turn; returns the requests and what came of it.

    `repeat` gives the last reply again, and leaves over what is not asked for; at most 20 requests are answered.
    """
    requests: list[HttpRequest] = []
    try:
        request = next(conversation)
        while len(requests) < 20:
            requests.append(request)
            index = min(len(requests), len(replies)) if repeat else len(requests)
            request = conversation.send(replies[index - 1])
    except StopIteration as ended:
        if not repeat and len(requests) != len(replies):
            raise AssertionError(f"{len(requests)} of {len(replies)} replies were asked for") from None
        outcome: T = ended.value
        return requests, outcome
    raise AssertionError("the conversation goes on and on")


async def converse_with(
    client: httpx2.AsyncClient, conversation: Conversation[T], *, pictures: Mapping[str, Path] | None = None
) -> T:
    """
    Send each request for real; returns what came of it.
    """
    try:
        request = next(conversation)
        while True:
            request = conversation.send(await send(client, request, pictures=pictures))
    except StopIteration as ended:
        outcome: T = ended.value
        return outcome


async def send(
    client: httpx2.AsyncClient, request: HttpRequest, *, pictures: Mapping[str, Path] | None = None
) -> HttpReply:
    """
    Send one request for real.
    """
    body: dict[str, Any] = {"content": request.body}
    if isinstance(request.body, Form):
        parts: list[Any] = [(name, (None, value)) for name, value in request.body.fields]
        parts += [
            (file.name, (file.filename, (pictures or {})[file.asset].read_bytes(), file.media_type))
            for file in request.body.files
        ]
        body = {"files": parts}
    answer = await client.request(request.method, request.url, headers=dict(request.headers), **body)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return HttpReply(status=answer.status_code, headers=headers, body=answer.content)
