"""
How clients reach a relay, and whom they must not reach: themselves, or others on other addresses of this machine.
"""

import asyncio
import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpcore2

from vidrelay.client.beacon import Beacon
from vidrelay.client.dial import ProofFailed, ProvenBackend


def hint(port: int) -> Beacon:
    """
    What a relay that ended there may have left.
    """
    return Beacon(
        port=port, token="vrl_" + "c" * 43, pid=1, version="0", instance="old", started_at="2026-11-30T12:00:00.000Z"
    )


class Mirror(httpcore2.AsyncNetworkBackend):
    """
    A network on which every connection meets itself, which the real one does once in some ten thousand times.
    """

    async def connect_tcp(self, host: str, port: int, *_: object, **__: object) -> httpcore2.AsyncNetworkStream:
        raw = socket.socket()
        raw.setblocking(False)
        raw.bind((host, port))
        await asyncio.get_running_loop().sock_connect(raw, (host, port))
        return _Reflection(raw)


class _Reflection(httpcore2.AsyncNetworkStream):
    def __init__(self, raw: socket.socket) -> None:
        self._raw = raw

    def get_extra_info(self, info: str) -> object:
        found = {"client_addr": self._raw.getsockname, "server_addr": self._raw.getpeername}
        return found[info]() if info in found else self._raw

    async def aclose(self) -> None:
        self._raw.close()


async def probe(port: int, times: int, *, network: httpcore2.AsyncNetworkBackend | None = None) -> Counter[str]:
    """
    Look so often whether a relay is at that port: what came of it, by kind. `network`: by default the system's.
    """
    found: Counter[str] = Counter()
    backend = ProvenBackend(hint(port), network=network)
    for _ in range(times):
        try:
            stream = await backend.connect_tcp("127.0.0.1", port)
        except ProofFailed as error:
            found["itself" if "Nobody" in str(error) else "stranger"] += 1
        except OSError:
            found["nobody"] += 1
        except Exception as error:
            found["nobody" if isinstance(error.__cause__, OSError) else f"error {error!r}"] += 1
        else:
            found["alive"] += 1
            await stream.aclose()
    return found


@contextlib.contextmanager
def recorder(family: socket.AddressFamily, address: str, port: int, heard: list[bytes]) -> Iterator[int]:
    """
    Listens and notes each connection, and what it says first; yields its port.
    """
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        listener.settimeout(0.05)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, _ = listener.accept()
                    connection.settimeout(1)
                    with connection, contextlib.suppress(OSError):
                        heard.append(b"")
                        heard.append(connection.recv(65536))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def is_free(port: int) -> bool:
    """
    Whether somebody can listen there at once, without the option that overlooks what is left of a connection.
    """
    with contextlib.closing(socket.socket()) as listener:
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError:
            return False
        return True


def unused_port() -> int:
    """
    A port of the ephemeral range that nobody has; even, for those are given to connections first.
    """
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    for port in range((low + high) // 4 * 2, high, 2):
        if is_free(port):
            return port
    raise AssertionError("there is no unused port")
