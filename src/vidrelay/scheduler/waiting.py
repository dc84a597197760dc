"""
Waiting for whichever comes first, under the injected clock.
"""

import asyncio
from collections.abc import Awaitable

from vidrelay.core.clock import Clock


async def either(event: asyncio.Event, seconds: float | None, clock: Clock) -> bool:
    """
    Wait until the event is set or so many seconds have passed (None: as long as it takes); True if it is set.
    """
    if event.is_set() or (seconds is not None and seconds <= 0):
        return event.is_set()
    if seconds is None:
        return await event.wait()
    async with asyncio.TaskGroup() as group:
        waits = {group.create_task(_whole(event.wait())), group.create_task(_whole(clock.sleep(seconds)))}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    return event.is_set()


async def _whole(awaitable: Awaitable[object]) -> None:
    """
    Make any awaitable a coroutine, as a TaskGroup wants it.
    """
    await awaitable
