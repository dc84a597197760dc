"""
Time, as everybody else knows it (port Clock): by itself, for a client or a pretend provider needs no other port.
"""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """
    Time (port Clock).
    """

    def now(self) -> datetime:
        """
        The wall clock, aware, UTC: for what is stored and shown.
        """
        ...

    def monotonic(self) -> float:
        """
        Seconds from an unknown start that never go back: for durations.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """
        Wait that long.
        """
        ...
