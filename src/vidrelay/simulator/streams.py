"""
Answers that come message by message: server-sent events, and websockets.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Receive, Send

from vidrelay.core.ports import Clock
from vidrelay.simulator.words.vocabulary import Stream

STEP_SECONDS = 0.05
"""How often it is looked whether there is something to say."""


async def events(stream: Stream, receive: Receive, send: Send, clock: Clock, *, breaks: bool) -> bool:
    """
    Say it as server-sent events; whether it came to its end. One that `breaks` does not, after what it says first.
    """

    async def say(message: Any) -> None:
        body = b"data: %s\n\n" % json.dumps(message).encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})

    return await _said(stream, say, receive, clock, breaks=breaks)


async def messages(stream: Stream, receive: Receive, send: Send, clock: Clock, *, breaks: bool) -> None:
    """
    Say it as the text messages of a websocket that a client asks for, and close it.
    """
    await receive()
    await send({"type": "websocket.accept"})

    async def say(message: Any) -> None:
        await send({"type": "websocket.send", "text": json.dumps(message)})

    if await _said(stream, say, receive, clock, breaks=breaks) or breaks:
        await send({"type": "websocket.close"})


async def _said(
    stream: Stream, say: Callable[[Any], Awaitable[None]], receive: Receive, clock: Clock, *, breaks: bool
) -> bool:
    """
    Say what there is to say while somebody listens; whether that was all.
    """
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(_gone(receive))
        over = False
        while not over and not gone.done():
            fresh, over = stream()
            for message in fresh:
                await say(message)
            if breaks and fresh:
                break
            if not over:
                await clock.sleep(STEP_SECONDS)
        gone.cancel()
    return over


async def _gone(receive: Receive) -> None:
    while not (await receive())["type"].endswith("disconnect"):
        pass
