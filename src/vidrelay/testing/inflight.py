"""
Counts the calls of real parts that are under way in other threads, so that a fake clock stands still until they end.
"""

import functools
import inspect
from typing import Any


class InFlight:
    """
    Wraps ports; `busy()` is true while any of their coroutines runs.
    """

    def __init__(self) -> None:
        self._count = 0

    def busy(self) -> bool:
        """
        Whether a call is under way.
        """
        return self._count > 0

    def watch(self, port: Any) -> Any:
        """
        The same port, counted; what one of its calls gives back is counted too if it has coroutines of its own.
        """
        return _Watched(port, self)

    async def run(self, call: Any) -> Any:
        """
        Count one call.
        """
        self._count += 1
        try:
            return await call
        finally:
            self._count -= 1


class _Watched:
    def __init__(self, port: Any, in_flight: InFlight) -> None:
        object.__setattr__(self, "_port", port)
        object.__setattr__(self, "_in_flight", in_flight)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        if not inspect.iscoroutinefunction(value):
            return value

        @functools.wraps(value)
        async def counted(*args: Any, **kwargs: Any) -> Any:
            result = await self._in_flight.run(value(*args, **kwargs))
            return _Watched(result, self._in_flight) if hasattr(result, "commit") else result

        return counted

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._port, name, value)
