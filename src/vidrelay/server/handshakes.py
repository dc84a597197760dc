"""
Accepts connections at the https listener, with a bound on those that have not shaken hands yet.

The server knows nothing of such a connection, so its own bound does not hold it, and whoever opens many and says
nothing would take every descriptor that the relay may have.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from socket import socket

logger = logging.getLogger(__name__)

MAX_HANDSHAKES = 64
"""On this machine one takes milliseconds; of more than so many, the one that has lasted longest is cut."""
WANT_SECONDS = 0.2
"""How long nothing is accepted where the system gives out no descriptor."""


class Handshakes:
    """
    The connections that are accepted and have not shaken hands.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        connection: Callable[[], asyncio.Protocol],
        *,
        handshake_seconds: float,
        shutdown_seconds: float,
    ) -> None:
        """
        `connection` makes the protocol of one that has shaken hands; both times are the longest that are waited.
        """
        self._context = context
        self._connection = connection
        self._handshake_seconds = handshake_seconds
        self._shutdown_seconds = shutdown_seconds
        self._shaking: dict[asyncio.Task[None], None] = {}

    async def accept(self, listener: socket) -> None:
        """
        Accept at a socket that listens; never returns.
        """
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    sock, _ = await loop.sock_accept(listener)
                except OSError as error:
                    logger.warning("tls.not_accepted why=%s", error.strerror)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(loop.create_future(), WANT_SECONDS)
                    continue
                if len(self._shaking) >= MAX_HANDSHAKES:
                    self._cut_the_longest()
                task = group.create_task(self._shake(sock))
                self._shaking[task] = None
                task.add_done_callback(lambda done: self._shaking.pop(done, None))

    def _cut_the_longest(self) -> None:
        task = next(iter(self._shaking))
        del self._shaking[task]
        task.cancel()

    async def _shake(self, sock: socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection,
                sock,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_seconds,
                ssl_shutdown_timeout=self._shutdown_seconds,
            )
        except OSError as error:
            logger.debug("tls.no_handshake why=%s", error)
        except Exception:
            logger.exception("tls.failed")
