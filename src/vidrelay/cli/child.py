"""
Runs one command as a child: signals passed on, its output untouched, its exit status told as shells tell it.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol, Self

from vidrelay.cli.terminal import say, shown
from vidrelay.client.beacon import Beacon
from vidrelay.clock import SystemClock
from vidrelay.core.clock import Clock
from vidrelay.core.errors import VidrelayError

NOT_FOUND = 127
NOT_RUN = 126
AWAKE_SECONDS = 20.0
"""A relay that leaves when idle is asked so often, for a program may be busy with other things for longer."""

_PASSED_ON = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")


class Reached(Protocol):
    """
    What is needed of a client.
    """

    @property
    def beacon(self) -> Beacon | None:
        """
        The relay that it speaks to.
        """
        ...

    async def health(self) -> object:
        """
        Ask that relay, or the one that is found or started in its place.
        """
        ...


async def run_child(command: list[str], environ: Mapping[str, str], client: Reached) -> int:
    """
    Run the command in that environment to its end; its exit status, 128 more than the signal that ended it, 127 where
    there is no such command, 126 where it cannot be run.
    """
    with _PassingOn() as passing:
        try:
            child = subprocess.Popen(_found(command, environ), env=environ)  # noqa: ASYNC220, S603 the user's own command
        except OSError as error:
            say(f"vidrelay: {shown(command[0])}: {error.strerror or error}")
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
        passing.to(child)
        async with asyncio.TaskGroup() as group:
            awake = group.create_task(keep_awake(client, SystemClock()))
            status = await asyncio.to_thread(child.wait)
            awake.cancel()
    return status if status >= 0 else 128 - status


def _found(command: list[str], environ: Mapping[str, str]) -> list[str]:
    if sys.platform != "win32":
        return command
    # There the system itself finds programs only, and no scripts.
    return [shutil.which(command[0], path=environ.get("PATH")) or command[0], *command[1:]]


async def keep_awake(client: Reached, clock: Clock) -> None:
    """
    Keep a relay that leaves when idle from doing so, or start it again.
    """
    before = client.beacon
    while client.beacon is not None and client.beacon.idle_exit:
        await clock.sleep(AWAKE_SECONDS)
        with suppress(VidrelayError):
            await client.health()
        now = client.beacon
        if before is not None and now is not None and (now.port, now.token) != (before.port, before.token):
            say('vidrelay: the relay has another address now, and the command the old one; token = "keep" keeps it.')
            before = now


class _PassingOn:
    """
    Passes on to a child what is sent to this process.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in _PASSED_ON:
            number = getattr(signal, name, None)
            # One that is ignored stays so, here and for the child: nohup means that.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def to(self, child: "subprocess.Popen[bytes]") -> None:
        """
        Pass on to that child from now on, and what has come meanwhile.
        """
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if signal.Signals(number).name in _FROM_TERMINAL and _is_foreground():
            # The terminal sends it to the child as well.
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


def _is_foreground() -> bool:
    """
    Whether this process, and so its child, is among those that the terminal sends its signals to.
    """
    if sys.platform == "win32":
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
