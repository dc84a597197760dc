"""
Three clocks: the wall, which may jump and stand still; the monotonic one, which stops while the machine sleeps; and the
truth, by which the providers live.
"""

import asyncio
from datetime import datetime, timedelta

from vidrelay.testing.clock import START
from vidrelay.testing.simulation.loop import EPOCH, VirtualLoop


class WorldClock:
    """
    Fills port Clock on a virtual loop.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._slept = 0.0
        self._shift = 0.0
        self._frozen: datetime | None = None
        self._set_at = 0.0

    def now(self) -> datetime:
        """
        The wall clock.
        """
        return self._frozen or START + timedelta(seconds=self.truth() + self._shift)

    def monotonic(self) -> float:
        """
        The loop's own time.
        """
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """
        Wait so long in virtual time.
        """
        await asyncio.sleep(seconds)

    def truth(self) -> float:
        """
        True seconds since the beginning, sleep of the machine included.
        """
        return self._loop.time() - EPOCH + self._slept

    def was_set_since(self, monotonic: float) -> bool:
        """
        Whether the wall clock was set, or stood still, at or after that monotonic second.
        """
        return self._frozen is not None or self._set_at >= monotonic

    def jump(self, seconds: float) -> None:
        """
        Set the wall clock so much ahead, or back.
        """
        self._frozen = None
        self._shift += seconds
        self._set_at = self._loop.time()

    def right(self) -> None:
        """
        Set the wall clock right.
        """
        if self._frozen is not None or self._shift:
            self._set_at = self._loop.time()
        self._frozen, self._shift = None, 0.0

    def freeze(self) -> None:
        """
        Let the wall clock stand still until it is set again.
        """
        self._frozen = self.now()

    def suspend(self, seconds: float) -> None:
        """
        Let the machine sleep: the world and the wall go on, the monotonic clock does not.
        """
        self._slept += seconds
