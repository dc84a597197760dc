"""
Which port the relay takes, and how it is opened: on 127.0.0.1, and so that nobody can take it away or share it.
"""

import errno
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from vidrelay.core.errors import RelayUnavailable

FIRST_PORT = 49152
LAST_PORT = 65535
TRIES = 10
ENOUGH_PORTS = 1000
BACKLOG = 128

EphemeralRange = tuple[int, int]

# What IANA reserves, which macOS and Windows go by.
_USUAL_RANGE: EphemeralRange = (FIRST_PORT, LAST_PORT)
_LINUX_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def ephemeral_range(source: Path = _LINUX_RANGE) -> EphemeralRange:
    """
    The ports, first and last, that the system gives to outgoing connections.
    """
    try:
        low, high = source.read_text().split()
        return int(low), int(high)
    except (OSError, ValueError):
        return _USUAL_RANGE


def candidates(ephemeral: EphemeralRange, draw: Callable[[int], int]) -> list[int]:
    """
    The ten ports to try, in order (contract section 3).

    They stay out of the ephemeral range where that leaves enough of them: a connection to an unused port in that range
    can meet itself, and an outgoing one can sit on the port that a relay had before.

    Args:
        ephemeral: First and last port of that range.
        draw: Given n, a number from 0 to n - 1 by chance.
    """
    every = range(FIRST_PORT, LAST_PORT + 1)
    outside = [port for port in every if not ephemeral[0] <= port <= ephemeral[1]]
    pool = outside if len(outside) >= ENOUGH_PORTS else list(every)
    start = draw(len(pool) - TRIES + 1)
    return pool[start : start + TRIES]


def beside(port: int, *, first: int | None = None) -> list[int]:
    """
    The ports to try for a second listener: `first`, if there is one, and the ten next to the first listener's.
    """
    step = 1 if port + TRIES <= LAST_PORT else -1
    near = [port + step * distance for distance in range(1, TRIES + 1)]
    return near if first is None else [first, *near]


def open_first(ports: list[int]) -> socket.socket:
    """
    Listen on the first of these ports that is free.

    Raises:
        RelayUnavailable: None is.
    """
    for port in ports:
        found = try_port(port)
        if found is not None:
            return found
    raise RelayUnavailable(
        f"None of the ports {ports[0]} to {ports[-1]} is free.", hint="Try again, or name one: vidrelay serve --port N"
    )


def try_port(port: int) -> socket.socket | None:
    """
    Listen on 127.0.0.1 and that port; None where it is taken.

    Raises:
        RelayUnavailable: The system does not allow it.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            # There SO_REUSEADDR would let two programs share the port, and this forbids it.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            # Here it only lets a restart have the port again at once; two listeners are never allowed.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        # Two can bind at one moment; only one of them can listen.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
            return None
        raise RelayUnavailable(f"Port {port} cannot be opened: {error.strerror}.") from error
    listener.setblocking(False)
    return listener
