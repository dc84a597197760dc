"""
A connection that has become a websocket, with bounds on what comes over it and on a client that is gone or reads
nothing. How many there may be, and when one ends for want of news, is the matter of those that speak on it.
"""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol


class BoundedSocket(WSProtocol):
    """
    One websocket.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # uvicorn tells each call with its path, and there may be a key in that.
        self.logger = _quiet
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        """
        End.
        """
        super().connection_lost(exc)
        self.lost.set()

    def keepalive_timeout(self) -> None:
        """
        The client does not say that it is there, so it will not take in what is still to be sent either.
        """
        super().keepalive_timeout()
        self.transport.abort()

    def shutdown(self) -> None:
        """
        The server stops: a client that does not read must not keep it from doing so.
        """
        super().shutdown()
        if not self.writable.is_set():
            self.transport.abort()


_quiet = logging.getLogger(__name__)
_quiet.setLevel(logging.WARNING)
