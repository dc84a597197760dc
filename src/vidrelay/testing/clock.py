"""
A clock that moves only when told.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

QUIET_TURNS = 4
"""It counts as settled after so many turns with nothing to run; what comes over a socket takes one or two."""
START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class FakeClock:
    """
    Fills port Clock; `advance` moves it and wakes the sleepers that are due, in order.

    `busy`: whether parts in other threads are still at work, which time waits for (`inflight.InFlight.busy`).
    """

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._frozen = False
        self.busy: Callable[[], bool] = lambda: False

    async def settle(self) -> None:
        """
        Let everything that can run without time passing run.
        """
        await settle(self.busy)

    def now(self) -> datetime:
        """
        The fake wall clock.
        """
        return self._now

    def monotonic(self) -> float:
        """
        The fake monotonic clock.
        """
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """
        Wait until `advance` has moved the clock that far.
        """
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._monotonic + seconds, self._count, future))
        await future

    def jump(self, seconds: float) -> None:
        """
        Move the wall clock alone, as an adjusted or suspended machine does.
        """
        self._now += timedelta(seconds=seconds)

    def freeze(self) -> None:
        """
        Let the wall clock stand still from now on, jumps left out.
        """
        self._frozen = True

    async def advance(self, seconds: float) -> None:
        """
        Move both clocks, stopping at each sleeper that falls due so that what it starts can sleep again in time.
        """
        target = self._monotonic + seconds
        await settle(self.busy)
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._move_to(due)
            future.set_result(None)
            await settle(self.busy)
        self._move_to(target)
        await settle(self.busy)

    def _move_to(self, monotonic: float) -> None:
        step = max(0.0, monotonic - self._monotonic)
        self._monotonic += step
        if not self._frozen:
            self._now += timedelta(seconds=step)


async def settle(busy: Callable[[], bool] = lambda: False) -> None:
    """
    Let everything that can run without time passing run.

    Work in other threads needs no fake time to pass: while `busy` says that there is some, real moments are given.

    Raises:
        TimeoutError: It is busy for longer than any work here takes.
    """
    # What asyncio's loop is to run next; typeshed does not tell of it.
    ready: deque[asyncio.Handle] = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    quiet = 0
    async with asyncio.timeout(60):
        while quiet < QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = 0 if ready or busy() else quiet + 1
            if not ready and busy():
                await asyncio.sleep(0.0005)
