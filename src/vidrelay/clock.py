"""
The real clock (fills port Clock).
"""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """
    The machine's own time.
    """

    def now(self) -> datetime:
        """
        The wall clock, aware, UTC.
        """
        return datetime.now(UTC)  # noqa: TID251 the one place that may

    def monotonic(self) -> float:
        """
        Seconds that never go back.
        """
        return time.monotonic()  # noqa: TID251 the one place that may

    async def sleep(self, seconds: float) -> None:
        """
        Wait that long.
        """
        await asyncio.sleep(seconds)  # noqa: TID251 the one place that may
