"""
The server's one list: every route, the gate before them, and what they are made of.
"""

import asyncio
from collections.abc import Callable, Iterable

from starlette.types import ASGIApp

from vidrelay.core.clock import Clock
from vidrelay.scheduler.face import RelayFace
from vidrelay.server.api import TaskCalls
from vidrelay.server.cache import CacheCalls
from vidrelay.server.dispatch import Body, Dispatcher, Endpoint
from vidrelay.server.doors import DoorCalls
from vidrelay.server.events import EventCalls
from vidrelay.server.files import FileCalls
from vidrelay.server.gate import Gate
from vidrelay.server.login import LoginCalls, Logins
from vidrelay.server.openapi import describe
from vidrelay.server.status import StatusCalls


def make_app(
    relay: RelayFace,
    *,
    token: Callable[[], str],
    port: int,
    instance: str,
    version: str,
    clock: Clock,
    shutdown: Callable[[], None],
    stop_streams: asyncio.Event,
    origins: Iterable[str] = (),
    tls_port: int | None = None,
) -> ASGIApp:
    """
    The whole HTTP interface of a relay.

    Args:
        relay: What it speaks for.
        token: Gives the token of the moment.
        port: The port it is served at, which is part of every allowed Host.
        instance: The relay's own id, as in `relay.json`.
        version: vidrelay's version.
        clock: For heartbeats and the life of logins.
        shutdown: Called once `POST /shutdown` has been answered; returns at once.
        stop_streams: When set, event streams end, long polls are answered, and nothing new is taken in.
        origins: Further origins that may call, exactly as browsers send them.
        tls_port: The port of https, for SDKs that speak nothing else; None: there is none.
    """
    logins = Logins(token, clock, cookie_name=f"vidrelay_{port}_{instance}")
    endpoints = routes(
        relay,
        token=token,
        logins=logins,
        port=port,
        instance=instance,
        version=version,
        clock=clock,
        shutdown=shutdown,
        stop_streams=stop_streams,
    )
    doors = DoorCalls(relay, token=token, stopping=stop_streams, clock=clock, port=port)
    own = {endpoint.path.split("/")[1].encode() for endpoint in endpoints}
    ways = dict.fromkeys(doors.names() - own, doors)
    keyed = {
        name.encode(): way.account for name, way in relay.doors().items() if way.door_key and name.encode() in ways
    }
    return Gate(
        Dispatcher(endpoints, ways),
        token=token,
        logins=logins,
        port=port,
        tls_port=tls_port,
        origins=origins,
        keyed=keyed,
    )


def routes(
    relay: RelayFace,
    *,
    token: Callable[[], str],
    logins: Logins,
    port: int,
    instance: str,
    version: str,
    clock: Clock,
    shutdown: Callable[[], None],
    stop_streams: asyncio.Event,
) -> tuple[Endpoint, ...]:
    """
    The route table; the arguments are those of `make_app`, and the logins that its gate knows.
    """
    tasks = TaskCalls(relay, stopping=stop_streams)
    events = EventCalls(relay, tasks, clock=clock, stopping=stop_streams)
    files = FileCalls(relay)
    cache = CacheCalls(relay)
    login = LoginCalls(logins)
    status = StatusCalls(
        relay,
        token=token,
        port=port,
        instance=instance,
        shutdown=shutdown,
        version=version,
        description=describe(version),
    )
    return (
        Endpoint(method="POST", path="/generate", handler=tasks.generate, body=Body.JSON),
        Endpoint(method="GET", path="/task/{id}", handler=tasks.show, query=frozenset({"wait", "seen"})),
        Endpoint(method="GET", path="/task/{id}/result", handler=files.result, query=frozenset({"index"})),
        Endpoint(method="GET", path="/task/{id}/events", handler=events.one_task),
        Endpoint(method="POST", path="/task/{id}/cancel", handler=tasks.cancel, body=Body.OPTIONAL_JSON),
        Endpoint(method="POST", path="/task/{id}/resolve", handler=tasks.resolve, body=Body.JSON),
        Endpoint(
            method="GET",
            path="/tasks",
            handler=tasks.page,
            query=frozenset({"state", "account", "limit", "cursor"}),
        ),
        Endpoint(method="GET", path="/events", handler=events.all_tasks),
        Endpoint(method="GET", path="/file/{id}/{index}/{name}", handler=files.addressed),
        Endpoint(method="POST", path="/assets", handler=tasks.add_asset, body=Body.BYTES),
        Endpoint(method="GET", path="/accounts", handler=status.accounts),
        Endpoint(method="POST", path="/accounts/{name}/resume", handler=status.resume, body=Body.OPTIONAL_JSON),
        Endpoint(method="POST", path="/accounts/{name}/check", handler=status.check, body=Body.OPTIONAL_JSON),
        Endpoint(method="GET", path="/cache", handler=cache.show),
        Endpoint(method="POST", path="/cache/verify", handler=cache.verify, body=Body.OPTIONAL_JSON),
        Endpoint(method="POST", path="/cache/clear", handler=cache.clear, body=Body.OPTIONAL_JSON),
        Endpoint(method="GET", path="/stats", handler=status.stats),
        Endpoint(method="GET", path="/health", handler=status.health),
        Endpoint(method="GET", path="/metrics", handler=status.metrics),
        Endpoint(method="GET", path="/openapi.json", handler=status.describe),
        Endpoint(method="POST", path="/proof", handler=status.proof, body=Body.JSON, open=True),
        Endpoint(method="GET", path="/login", handler=login.page, open=True),
        Endpoint(method="POST", path="/login", handler=login.enter, body=Body.JSON, open=True),
        Endpoint(method="POST", path="/login/code", handler=login.issue, body=Body.OPTIONAL_JSON),
        Endpoint(method="POST", path="/shutdown", handler=status.shutdown, body=Body.OPTIONAL_JSON),
    )
