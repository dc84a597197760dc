"""
The whole life of a relay's process, from the lock to the exit status.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vidrelay.assemble import assembled, version
from vidrelay.client.beacon import NAME, Beacon, remove_beacon, write_beacon
from vidrelay.clock import SystemClock
from vidrelay.config import Config
from vidrelay.core.errors import DatabaseUnusable, RelayUnavailable
from vidrelay.core.ports import Clock
from vidrelay.core.proof import TOKEN_PREFIX
from vidrelay.core.wire import instant
from vidrelay.daemon.idle import Activity
from vidrelay.daemon.leftover import take_lock
from vidrelay.daemon.logs import log_to
from vidrelay.daemon.ports import candidates, ephemeral_range, open_first, try_port
from vidrelay.daemon.state import Kept, StateLock, clear_drafts, prepare, read_kept, write_kept
from vidrelay.scheduler.relay import Relay
from vidrelay.server.app import make_app
from vidrelay.server.serve import serve as serve_http

logger = logging.getLogger(__name__)

CREATE_SECONDS = 200.0
"""What a create call that is under way may still take at the end: its own limits together."""

CALL_SECONDS = 10.0
"""What a call of an app may still take at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """
    How the relay is to be run. `port` None: as configured, else chosen; `idle_exit` in seconds, None: never.
    """

    config: Config
    state_dir: Path
    port: int | None = None
    replace: bool = False
    idle_exit: float | None = None


def serve(wish: Wish, *, ready: Callable[[str], None]) -> None:
    """
    Run the relay until it is asked to stop; `ready` is told its address once it listens.

    Raises:
        RelayUnavailable: Another relay has the state directory, or no port is free.
        ConfigError: An account's key is missing, or its settings do not suit its provider.
        StoreError: The database cannot be used.
    """
    os.umask(0o077)
    prepare(wish.state_dir)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(wish, ready, SystemClock()))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 not there on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(wish: Wish, ready: Callable[[str], None], clock: Clock) -> None:
    lock = StateLock(wish.state_dir)
    take_over = wish.idle_exit is None
    await take_lock(lock, wish.state_dir, replace=wish.replace, take_over=take_over, clock=clock)
    with lock:
        # Whoever wrote it is dead, for the lock is ours.
        (wish.state_dir / NAME).unlink(missing_ok=True)
        clear_drafts(wish.state_dir)
        log_to(wish.state_dir)
        listener, token = _listen(wish)
        port = listener.getsockname()[1]
        with listener:
            async with assembled(wish.config, wish.state_dir, own_port=lambda: port, is_locked=lock.is_held) as relay:
                await _Life(wish, relay, listener, token, clock).run(ready)
    logger.info("relay.complete")


def _listen(wish: Wish) -> tuple[socket.socket, str]:
    """
    The open port and the token: kept ones where the user wants that, else new ones.
    """
    keep = wish.config.token == "keep"  # noqa: S105 a choice, not a token
    kept = read_kept(wish.state_dir) if keep else None
    named = wish.port or wish.config.port or (kept.port if kept else None)
    if named is not None:
        found = try_port(named)
        if found is None:
            raise RelayUnavailable(
                f"Port {named} is taken by another program.",
                hint="Name another: vidrelay serve --port N."
                if wish.port
                else "Stop that program, or change the port.",
            )
        listener = found
    else:
        listener = open_first(candidates(ephemeral_range(), secrets.randbelow))
    token = kept.token if kept else f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}"
    if keep:
        write_kept(wish.state_dir, Kept(token=token, port=listener.getsockname()[1]))
    return listener, token


class _Life:
    """
    The relay from ready to drained.
    """

    def __init__(self, wish: Wish, relay: Relay, listener: socket.socket, token: str, clock: Clock) -> None:
        self._wish = wish
        self._relay = relay
        self._listener = listener
        self._clock = clock
        self._stopping = asyncio.Event()
        self._closing = asyncio.Event()
        self._hurried = asyncio.Event()
        self._unusable: DatabaseUnusable | None = None
        self._beacon = Beacon(
            port=listener.getsockname()[1],
            token=token,
            pid=os.getpid(),
            version=version(),
            instance=secrets.token_urlsafe(16),
            started_at=instant(clock.now()),
            idle_exit=wish.idle_exit is not None,
        )
        app = make_app(
            relay,
            token=lambda: token,
            port=self._beacon.port,
            instance=self._beacon.instance,
            version=self._beacon.version,
            clock=clock,
            shutdown=self._stopping.set,
            stop_streams=self._closing,
            origins=wish.config.origins,
        )
        self._activity = Activity(app, clock)

    async def run(self, ready: Callable[[str], None]) -> None:
        """
        Serve until asked to stop, then drain.

        Raises:
            DatabaseUnusable: The relay ended by itself, since nothing could be saved any more.
        """
        self._heed_signals()
        async with asyncio.TaskGroup() as group:
            listening = asyncio.Event()
            driving = group.create_task(self._drive())
            serving = group.create_task(
                serve_http(self._activity, self._listener, stop=self._closing, ready=listening.set, grace=CALL_SECONDS)
            )
            await listening.wait()
            self._announce()
            logger.info("relay.started port=%d version=%s", self._beacon.port, self._beacon.version)
            ready(self._beacon.url)
            idling = group.create_task(self._leave_when_idle())
            hurrying = group.create_task(self._hurry(serving))
            await self._stopping.wait()
            logger.info("relay.stopping live=%d", len(self._relay.live()))
            remove_beacon(self._wish.state_dir, self._beacon.instance)
            idling.cancel()
            self._closing.set()
            await self._relay.stop(grace=CREATE_SECONDS)
            await asyncio.wait([driving, serving])
            hurrying.cancel()
        if self._unusable is not None:
            raise self._unusable

    def _announce(self) -> None:
        try:
            write_beacon(self._wish.state_dir, self._beacon)
        except OSError as error:
            raise RelayUnavailable(f"{NAME} cannot be written: {error.strerror}.") from error

    async def _drive(self) -> None:
        try:
            await self._relay.run()
        except DatabaseUnusable as unusable:
            self._unusable = unusable
            self._stopping.set()

    async def _leave_when_idle(self) -> None:
        if self._wish.idle_exit is not None:
            await self._activity.idle(self._wish.idle_exit, busy=lambda: bool(self._relay.live()))
            logger.info("relay.idle seconds=%g", self._wish.idle_exit)
            self._stopping.set()

    async def _hurry(self, serving: "asyncio.Task[None]") -> None:
        """
        A second signal ends at once what the first one lets end by itself.
        """
        await self._hurried.wait()
        logger.warning("relay.hurried")
        serving.cancel()
        self._relay.abandon()

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is None:
                continue
            try:
                loop.add_signal_handler(number, self._asked_to_stop)
            except NotImplementedError:
                # Windows: the handler runs between two steps of the loop, which must be woken.
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._asked_to_stop))

    def _asked_to_stop(self) -> None:
        if self._stopping.is_set():
            self._hurried.set()
        self._stopping.set()
