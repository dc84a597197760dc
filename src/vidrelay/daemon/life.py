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
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from vidrelay.assemble import assembled, version
from vidrelay.client.beacon import NAME, Beacon, remove_beacon, write_beacon
from vidrelay.clock import SystemClock
from vidrelay.config import Config
from vidrelay.core.clock import Clock
from vidrelay.core.door import SocketDoor
from vidrelay.core.errors import DatabaseUnusable, RelayUnavailable
from vidrelay.core.proof import TOKEN_PREFIX
from vidrelay.core.wire import instant
from vidrelay.daemon.idle import Activity
from vidrelay.daemon.leftover import take_lock
from vidrelay.daemon.logs import log_to
from vidrelay.daemon.ports import beside, candidates, ephemeral_range, open_first, try_port
from vidrelay.daemon.state import Kept, StateLock, clear_drafts, prepare, read_kept, write_kept
from vidrelay.daemon.tls import Certificate
from vidrelay.providers.sdks import needs_tls
from vidrelay.scheduler.relay import Relay
from vidrelay.server.app import make_app
from vidrelay.server.serve import TlsListener
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
        with ExitStack() as stack:
            listening = _listen(wish, stack, clock)
            own = listening.ports
            async with assembled(wish.config, wish.state_dir, own_ports=lambda: own, is_locked=lock.is_held) as relay:
                await _Life(wish, relay, listening, clock).run(ready)
    logger.info("relay.complete")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listening:
    """
    Where the relay listens, and what lets callers in. `tls` None: no account's SDK needs it.
    """

    plain: socket.socket
    token: str = field(repr=False)
    tls: socket.socket | None = None
    certificate: Certificate | None = None

    @property
    def port(self) -> int:
        return _port_of(self.plain)

    @property
    def tls_port(self) -> int | None:
        return None if self.tls is None else _port_of(self.tls)

    @property
    def ports(self) -> frozenset[int]:
        return frozenset({self.port} if self.tls_port is None else {self.port, self.tls_port})


def _port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _listen(wish: Wish, stack: ExitStack, clock: Clock) -> _Listening:
    """
    The open ports and the token: kept ones where the user wants that, else new ones. `stack` closes what is open.
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
    stack.enter_context(listener)
    port, tls, certificate = _port_of(listener), None, None
    if any(needs_tls(account.provider) for account in wish.config.accounts):
        certificate = Certificate(wish.state_dir, clock)
        tls = stack.enter_context(open_first(beside(port, first=kept.tls_port if kept else None)))
    token = kept.token if kept else f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}"
    if keep:
        # A port for https that is not wanted now may be again.
        tls_port = _port_of(tls) if tls is not None else kept.tls_port if kept else None
        write_kept(wish.state_dir, Kept(token=token, port=port, tls_port=tls_port))
    return _Listening(plain=listener, token=token, tls=tls, certificate=certificate)


class _Life:
    """
    The relay from ready to drained.
    """

    def __init__(self, wish: Wish, relay: Relay, listening: _Listening, clock: Clock) -> None:
        self._wish = wish
        self._relay = relay
        self._listening = listening
        self._clock = clock
        self._stopping = asyncio.Event()
        self._closing = asyncio.Event()
        self._hurried = asyncio.Event()
        self._unusable: DatabaseUnusable | None = None
        self._beacon = Beacon(
            port=listening.port,
            token=listening.token,
            pid=os.getpid(),
            version=version(),
            instance=secrets.token_urlsafe(16),
            started_at=instant(clock.now()),
            idle_exit=wish.idle_exit is not None,
            tls_port=listening.tls_port,
        )
        app = make_app(
            relay,
            token=lambda: listening.token,
            port=self._beacon.port,
            instance=self._beacon.instance,
            version=self._beacon.version,
            clock=clock,
            shutdown=self._stopping.set,
            stop_streams=self._closing,
            origins=wish.config.origins,
            tls_port=listening.tls_port,
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
                serve_http(
                    self._activity,
                    self._listening.plain,
                    stop=self._closing,
                    ready=listening.set,
                    grace=CALL_SECONDS,
                    tls=self._tls(),
                    websockets=any(isinstance(way.door, SocketDoor) for way in self._relay.doors().values()),
                )
            )
            await listening.wait()
            self._announce()
            logger.info("relay.started port=%d version=%s", self._beacon.port, self._beacon.version)
            ready(self._beacon.url)
            idling = group.create_task(self._leave_when_idle())
            renewing = group.create_task(self._keep_certificate())
            hurrying = group.create_task(self._hurry(serving))
            await self._stopping.wait()
            logger.info("relay.stopping live=%d", len(self._relay.live()))
            remove_beacon(self._wish.state_dir, self._beacon.instance)
            idling.cancel()
            renewing.cancel()
            self._closing.set()
            await self._relay.stop(grace=CREATE_SECONDS)
            await asyncio.wait([driving, serving])
            hurrying.cancel()
        if self._unusable is not None:
            raise self._unusable

    def _tls(self) -> TlsListener | None:
        tls, certificate = self._listening.tls, self._listening.certificate
        return (
            TlsListener(sock=tls, context=certificate.context) if tls is not None and certificate is not None else None
        )

    async def _keep_certificate(self) -> None:
        if self._listening.certificate is not None:
            await self._listening.certificate.keep_good()

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
