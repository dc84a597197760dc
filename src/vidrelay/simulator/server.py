"""
The pretend provider on a socket: Starlette on uvicorn, on 127.0.0.1 alone.

Beside the provider's own paths it has `GET /_ledger`, `POST /_control` (options by name, `faults` to arm,
`clearFaults`, `finish`) and `POST /_restart` (`forget`, `down` in seconds), which need no key and are not counted.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vidrelay.clock import SystemClock
from vidrelay.core.clock import Clock
from vidrelay.core.errors import ConfigError
from vidrelay.simulator.clips import Clips
from vidrelay.simulator.engine import Engine
from vidrelay.simulator.exchange import CLOSE, Exchange
from vidrelay.simulator.options import SimulatorOptions
from vidrelay.simulator.words.catalog import words_of
from vidrelay.simulator.words.vocabulary import Words

_LOOPBACK = "127.0.0.1"


class _Protocol(HttpToolsProtocol):
    """
    uvicorn's protocol, which also hands the application a way to end the connection without a reply.
    """

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CLOSE: {"close": self.transport.close}}


class _Server(uvicorn.Server):
    """
    uvicorn's server, which says when it listens and leaves the program's signals alone where it is told to.
    """

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None], signals: bool) -> None:
        super().__init__(config)
        self._ready = ready
        self._signals = signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if not self._signals:
            yield
            return
        kept = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in kept.items():
                signal.signal(one, handler)


def application(engine: Engine, words: Words) -> Starlette:
    """
    The pretend provider as an ASGI application that speaks those words.
    """
    exchange = Exchange(engine=engine, words=words, clips=Clips(seed=engine.options.seed))

    async def ledger(_request: Request) -> Response:
        engine.now()
        return JSONResponse({**engine.ledger.told(), "armed": engine.faults.told(), "now": engine.now()})

    async def control(request: Request) -> Response:
        try:
            changes = dict(await request.json())
            arm = changes.pop("faults", [])
            clear, finish = changes.pop("clearFaults", False), changes.pop("finish", False)
            engine.change(changes)
            if clear:
                engine.faults.clear()
            engine.faults.arm(arm)
        except (ConfigError, ValueError, TypeError) as error:
            return JSONResponse({"detail": str(error)}, status_code=422)
        if finish:
            engine.finish()
        return JSONResponse({"armed": engine.faults.told()})

    async def restart(request: Request) -> Response:
        try:
            wish = dict(await request.json()) if await request.body() else {}
            engine.restart(forget=bool(wish.get("forget", True)), down=float(wish.get("down", 0)))
        except (ValueError, TypeError) as error:
            return JSONResponse({"detail": str(error)}, status_code=422)
        return JSONResponse({"forgot": wish.get("forget", True)})

    return Starlette(
        routes=[
            Route("/_ledger", ledger),
            Route("/_control", control, methods=["POST"]),
            Route("/_restart", restart, methods=["POST"]),
            Route("/{path:path}", exchange),
            WebSocketRoute("/{path:path}", exchange),
        ]
    )


def listen(port: int) -> socket.socket:
    """
    A listening socket on loopback; 0 takes a free port.

    Raises:
        ConfigError: The port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"Port {port} of {_LOOPBACK} cannot be used: {error.strerror}.") from error
    return listener


def _server(engine: Engine, *, ready: Callable[[], None], signals: bool, speaks: type[Words] | None = None) -> _Server:
    words = words_of(engine, speaks)
    config = uvicorn.Config(
        application(engine, words),
        http=_Protocol,
        # What speaks on one is slow to load.
        ws="wsproto" if words.WEBSOCKETS else "none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
    )
    return _Server(config, ready=ready, signals=signals)


async def serve(options: SimulatorOptions, ready: Callable[[int], None], *, clock: Clock | None = None) -> None:
    """
    Run until SIGINT or SIGTERM; `ready` is told the port once it listens.

    Raises:
        ConfigError: The port is taken.
    """
    listener = listen(options.port)
    port = listener.getsockname()[1]
    engine = Engine(options=options, clock=clock or SystemClock())
    await _server(engine, ready=lambda: ready(port), signals=True).serve(sockets=[listener])


def run(options: SimulatorOptions, ready: Callable[[int], None]) -> None:
    """
    `serve`, for a program without an event loop of its own.

    Raises:
        ConfigError: The port is taken.
    """
    asyncio.run(serve(options, ready))


@contextlib.asynccontextmanager
async def running(
    options: SimulatorOptions, *, clock: Clock | None = None, speaks: type[Words] | None = None
) -> AsyncIterator[tuple[Engine, int]]:
    """
    The simulator beside the caller in the same event loop: its engine and its port, until the context ends. It `speaks`
    the words of its dialect, unless others are given.
    """
    listener = listen(options.port)
    engine = Engine(options=options, clock=clock or SystemClock())
    listening = asyncio.Event()
    server = _server(engine, ready=listening.set, signals=False, speaks=speaks)
    port = listener.getsockname()[1]
    failure: BaseException | None = None
    with contextlib.closing(listener):
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            await listening.wait()
            # The caller's own failure is kept out of the group, which would cut the server off and wrap the failure up.
            try:
                yield engine, port
            except BaseException as error:
                failure = error
            server.should_exit = True
    if failure is not None:
        raise failure
