"""
Work that ends early when something else happens first: the client leaves, the relay stops.
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Generic, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class _Outcome(Generic[T]):
    """
    What the work came to; unset when it was cut short.
    """

    value: T | None = None
    error: Exception | None = None


async def run_until(work: Coroutine[Any, Any, T], *enders: Coroutine[Any, Any, Any]) -> T | None:
    """
    Run `work`; the first of `enders` to return cuts it short. Returns what the work returned, None when cut.

    Raises:
        Exception: Whatever the work raised.
    """
    outcome: _Outcome[T] = _Outcome()
    async with asyncio.TaskGroup() as group:
        job = group.create_task(_keep(work, outcome))
        others = [group.create_task(_then_cancel(ender, job)) for ender in enders]
        job.add_done_callback(lambda _: [other.cancel() for other in others])
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


async def _keep(work: Awaitable[T], outcome: _Outcome[T]) -> None:
    try:
        outcome.value = await work
    except Exception as exc:
        outcome.error = exc


async def _then_cancel(ender: Awaitable[Any], job: asyncio.Task[None]) -> None:
    await ender
    job.cancel()


async def hang_up(receive: Receive) -> None:
    """
    Return when the client has left. Only for calls whose body has been read or does not matter.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
