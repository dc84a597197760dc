"""
Opens connections, only to addresses that the gate has checked.
"""

import asyncio
from collections.abc import Callable, Iterable

from httpcore2 import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from vidrelay.transport.gate import Gate

ATTEMPT_SECONDS = 3.0
"""How long one of several addresses may take before the next is tried."""


class CountedDialer(AsyncNetworkBackend):
    """
    Opens connections to the user's proxy, which looks names up by itself, and counts them.
    """

    def __init__(self, network: AsyncNetworkBackend, count: Callable[..., None]) -> None:
        self._network = network
        self._count = count

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """
        Connect, as the engine asks.
        """
        stream = await self._network.connect_tcp(host, port, timeout, local_address, socket_options)
        self._count(connectionsOpened=1)
        return stream


class VettedDialer(CountedDialer):
    """
    Looks the name up through the gate and dials the very addresses that it has checked, one after the other.

    The engine goes on to use the name for TLS, so a certificate must still be the name's.
    """

    def __init__(self, gate: Gate, network: AsyncNetworkBackend, count: Callable[..., None]) -> None:
        super().__init__(network, count)
        self._gate = gate

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """
        Connect, as the engine asks; `timeout` is seconds for the look-up and every attempt together.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._dial(await self._gate.addresses(host, port), port, local_address, socket_options)
        except TimeoutError as exc:
            raise ConnectTimeout(exc) from exc

    async def _dial(
        self,
        addresses: list[str],
        port: int,
        local_address: str | None,
        socket_options: Iterable[SOCKET_OPTION] | None,
    ) -> AsyncNetworkStream:
        for tried, address in enumerate(addresses, start=1):
            last = tried == len(addresses)
            seconds = None if last else ATTEMPT_SECONDS
            try:
                stream = await super().connect_tcp(address, port, seconds, local_address, socket_options)
            except (ConnectError, ConnectTimeout):
                if last:
                    raise
            else:
                return await _not_self(stream)
        raise ConnectError("there is no address to try")


async def _not_self(stream: AsyncNetworkStream) -> AsyncNetworkStream:
    # On Linux a connect to an unused port of this machine can meet itself, and then holds that port.
    if stream.get_extra_info("client_addr") != stream.get_extra_info("server_addr"):
        return stream
    if stream.get_extra_info("client_addr") is None:
        return stream
    await stream.aclose()
    raise ConnectError("nobody listens there")
