"""
Answers that come message by message: server-sent events, and websockets.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Receive, Send

from vidrelay.simulator.engine import Engine
from vidrelay.simulator.words.vocabulary import Stream

STEP_SECONDS = 0.05
"""How often it is looked whether there is something to say."""


async def events(stream: Stream, receive: Receive, send: Send, engine: Engine, *, breaks: bool) -> bool:
    """
    Say it as server-sent events; whether it came to its end. One that `breaks` does not, after what it says first.
    """

    async def say(message: Any) -> None:
        body = b"data: %s\n\n" % json.dumps(message).encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})

    return await _said(stream, say, receive, engine, breaks=breaks)


async def messages(stream: Stream, receive: Receive, send: Send, engine: Engine, *, breaks: bool) -> None:
    """
    Say it as the text messages of a websocket that a client asks for, and close it.
    """
    await receive()
    await send({"type": "websocket.accept"})

    async def say(message: Any) -> None:
        await send({"type": "websocket.send", "text": json.dumps(message)})

    if await _said(stream, say, receive, engine, breaks=breaks) or breaks:
        await send({"type": "websocket.close"})


async def _said(
    stream: Stream, say: Callable[[Any], Awaitable[None]], receive: Receive, engine: Engine, *, breaks: bool
) -> bool:
    """
    Say what there is to say while somebody listens and nothing is started again; whether that was all.
    """
    life = engine.restarts
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(_gone(receive))
        over = False
        while not over and not gone.done() and engine.restarts == life:
            fresh, over = stream()
            for message in fresh:
                await say(message)
            if breaks and fresh:
                break
            if not over:
                await engine.clock.sleep(STEP_SECONDS)
        gone.cancel()
    return over


async def _gone(receive: Receive) -> None:
    while not (await receive())["type"].endswith("disconnect"):
        pass
