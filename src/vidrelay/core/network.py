"""
What the scheduler needs of the network, as protocols: requests sent (port Transport), and results fetched (port
Downloader). It is the room `transport` that fills them.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from vidrelay.core.disk import ResultName
from vidrelay.core.messages import HttpRequest
from vidrelay.core.task import FileRef


class Reply(Protocol):
    """
    An answer whose body has not been read yet; header names are in lower case.
    """

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """
        The body, piece by piece as it comes.

        Raises:
            TransportError: The body broke off.
        """
        ...

    async def read(self) -> bytes:
        """
        The whole body; of a request that is `held`, what came until there was enough.

        Raises:
            ReplyTooLarge: It is longer than the request's `max_reply_bytes`.
            TransportError: The body broke off.
        """
        ...


class Transport(Protocol):
    """
    Sends one request and gives its answer (port Transport). Never follows a redirect, never repeats a create.
    """

    def send(self, request: HttpRequest, *, timeout: float) -> AbstractAsyncContextManager[Reply]:
        """
        Open the exchange; the connection is given back when the context ends. `timeout` is seconds for all of it.

        Raises:
            TransportError: It failed; `maybe_sent` says whether the request may have arrived.
        """
        ...

    async def aclose(self) -> None:
        """
        Close every connection.
        """
        ...


class Downloader(Protocol):
    """
    Fetches one result into the cache: streamed, resumed, checked, complete before its name exists (port Downloader).
    """

    async def fetch(self, request: HttpRequest, name: ResultName) -> FileRef:
        """
        Fetch the file. A broken fetch can be called again and goes on where it was.

        Raises:
            DeadAddress: The address answers 401, 403, 404 or 410.
            BadMedia: What came is not a whole file of a known kind; nothing is kept.
            DiskFull: There is no room.
            TransportError: It broke off; what came is kept for the next call.
        """
        ...
