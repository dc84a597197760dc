"""
What to do where the lock is held: tell where that relay is, or ask it to leave.
"""

from pathlib import Path

from vidrelay.client.beacon import Beacon, read_beacon
from vidrelay.core.clock import Clock
from vidrelay.core.errors import RelayUnavailable, VidrelayError
from vidrelay.daemon.state import StateLock

GIVE_WAY_SECONDS = 10.0
_LOOK_SECONDS = 0.05


async def take_lock(lock: StateLock, state_dir: Path, *, replace: bool, take_over: bool, clock: Clock) -> None:
    """
    Take the lock of the state directory; where a relay holds it, ask that one to leave if it may be asked.

    Args:
        lock: The lock, not taken yet.
        state_dir: Whose `relay.json` is asked.
        replace: Ask any relay to leave.
        take_over: Ask one to leave that would leave by itself when idle.
        clock: For waiting, at most `GIVE_WAY_SECONDS`.

    Raises:
        RelayUnavailable: Another relay keeps the lock; says where it listens.
    """
    deadline = clock.monotonic() + GIVE_WAY_SECONDS
    asked: str | None = None
    while not lock.take():
        beacon = read_beacon(state_dir)
        if beacon is not None and not replace and not (take_over and beacon.idle_exit):
            raise RelayUnavailable(
                f"A relay of this state directory is running already at {beacon.url}.",
                hint="Use that one, or start with --replace.",
            )
        if beacon is not None and beacon.instance != asked and await _ask_to_leave(state_dir):
            asked = beacon.instance
        if clock.monotonic() >= deadline:
            raise RelayUnavailable(_why(beacon))
        await clock.sleep(_LOOK_SECONDS)


async def _ask_to_leave(state_dir: Path) -> bool:
    """
    Ask the relay to shut down, once it has proved to be one; whether it was asked.
    """
    from vidrelay.client.calls import open_client  # noqa: PLC0415 an HTTP client, which a plain start does not need

    try:
        async with open_client(state_dir, start=False) as client:
            await client.shutdown()
    except VidrelayError:
        return False
    return True


def _why(beacon: Beacon | None) -> str:
    if beacon is None:
        return "Another relay of this state directory holds its lock, and does not say where it listens."
    return f"The relay at {beacon.url} did not leave within {GIVE_WAY_SECONDS:g} seconds."
