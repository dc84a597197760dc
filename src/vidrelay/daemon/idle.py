"""
Notices when nobody needs the relay any more.
"""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.clock import Clock

_LOOK_SECONDS = 1.0


class Activity:
    """
    Wraps the server's application and remembers when it was last in use; a stream is in use as long as it is open.
    """

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._open = 0
        self._used_at = clock.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Pass the call on, counting it.
        """
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            self._used_at = self._clock.monotonic()

    async def idle(self, seconds: float, *, busy: Callable[[], bool]) -> None:
        """
        Wait until for so many seconds no request was open and nothing was `busy`.
        """
        look = min(_LOOK_SECONDS, seconds / 4)
        while True:
            now = self._clock.monotonic()
            if self._open or busy():
                self._used_at = now
            if now - self._used_at >= seconds:
                return
            await self._clock.sleep(look)
