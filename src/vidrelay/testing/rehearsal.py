"""
An adapter and the pretend provider in its words, face to face in memory: no socket, and time that moves when told.

`rehearse` is what `testing.adapters`, the contract suite of adapters, is made of; use it for what only your provider
has.
"""

import asyncio
import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from vidrelay.core.adapter import Adapter, Conversation, Search
from vidrelay.core.lifecycle import Accepted
from vidrelay.core.messages import Blob, Form, Held, HttpReply, HttpRequest, Inline, Json
from vidrelay.core.task import Asset, Request, Task
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.simulator.clips import Clips
from vidrelay.simulator.engine import Engine
from vidrelay.simulator.exchange import CLOSE, Exchange
from vidrelay.simulator.options import SimulatorOptions
from vidrelay.simulator.words.catalog import words_of
from vidrelay.simulator.words.vocabulary import Words
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.records import make_task

T = TypeVar("T")

HOST = "127.0.0.1:8199"
PICTURE = Asset(id="sha256:" + "ab" * 32, pixels="px", width=1280, height=720, size_bytes=5, media_type="image/png")
"""A picture for references; its bytes are `PICTURE_BYTES`."""
PICTURE_BYTES = b"\x89PNG!"


class Broken(Exception):
    """
    The connection ended without a whole reply.
    """


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """
    Both sides. `adapter` may be replaced; `requests` is every call that was made, as the adapter wrote it; `made` is
    how many tasks there were, each with a submission key of its own.
    """

    clock: FakeClock
    engine: Engine
    exchange: Exchange
    adapter: Adapter
    requests: list[HttpRequest] = dataclasses.field(default_factory=list)
    made: int = 0

    def task(self, prompt: str = "a paper boat", *, assets: Mapping[str, Asset] | None = None, **fields: Any) -> Task:
        """
        A task of that request (the contract's fields), made now.
        """
        request = Request(prompt=prompt, **fields)
        known = {PICTURE.id: PICTURE, **(assets or {})}
        prepared = self.adapter.prepare(request, known)
        now = self.clock.now()
        self.made += 1
        return make_task(
            request=request,
            parameters=prepared.parameters,
            model_version=prepared.model,
            created_at=now,
            updated_at=now,
            started_at=now,
            submission_key=f"5f0c1c1e-7d3a-4d0e-9b1a-{self.made:012x}",
        )

    async def run(self, conversation: Conversation[T]) -> T:
        """
        Hold the conversation to its end.

        Raises:
            Broken: The provider hung up.
        """
        try:
            request = next(conversation)
            while True:
                request = conversation.send(await self.send(request))
        except StopIteration as ended:
            outcome: T = ended.value
            return outcome

    async def submitted(self, task: Task) -> Task:
        """
        The task with the id that the provider gave it.

        Raises:
            AssertionError: It was not accepted.
        """
        outcome = await self.run(self.adapter.submit(task))
        if not isinstance(outcome, Accepted):
            raise AssertionError(outcome)  # noqa: TRY004 a test fails by it
        return replace(task, remote_id=outcome.remote_id)

    async def poll(self, task: Task) -> Any:
        """
        What the adapter makes of the task's status.
        """
        return await self.run(self.adapter.poll(task))

    async def find(self, task: Task, *, owned: frozenset[str] = frozenset(), elapsed: float = 0.0) -> Any:
        """
        What comes of looking for the task, whose create was lost just now.
        """
        lost_at = self.clock.now() - timedelta(seconds=elapsed)
        search = Search(sent_at=task.created_at, lost_at=lost_at, elapsed=elapsed, lost_ago=elapsed, owned=owned)
        return await self.run(self.adapter.find(task, search))

    def arm(self, *faults: str) -> None:
        """
        Let the next calls go wrong, as in `arm("create-drop-after")`.
        """
        self.engine.faults.arm(faults)

    async def send(self, request: HttpRequest) -> HttpReply:
        """
        One call over no network at all.

        Raises:
            Broken: The provider hung up.
        """
        self.requests.append(request)
        content_type, body = written(request)
        headers = {"host": HOST, **{name.lower(): value for name, value in request.headers.items()}}
        if content_type is not None:
            headers["content-type"] = content_type
        if request.signed is not None:
            signature = request.signed(hashlib.sha256(body).hexdigest())
            headers |= {name.lower(): value for name, value in signature.items()}
        parts = urlsplit(request.url)
        if parts.netloc != HOST:
            raise AssertionError(f"{request.url} is not the pretend provider's")
        if request.held is not None:
            return await _listened(self.exchange, request, request.held, headers, self.clock)
        return await _exchanged(self.exchange, request, headers, body)


def rehearse(
    make: Callable[[AdapterSettings], Adapter],
    dialect: str = "openai",
    *,
    path: str = "",
    key: str = "key-canary",
    account_dialect: str | None = None,
    speaks: type[Words] | None = None,
    **options: Any,
) -> Rehearsal:
    """
    Put an adapter before the pretend provider.

    Args:
        make: The adapter's factory.
        dialect: The pretend provider's words (`SimulatorOptions.dialect`).
        path: What of the base address comes after the host, as `/v1`.
        key: The account's key.
        account_dialect: What the account says under `dialect`, or None.
        speaks: A vocabulary of your own, in place of a dialect's.
        options: The pretend provider's options; jobs wait 5 s and are worked on for 20 s unless told otherwise.
    """
    clock = FakeClock()
    chosen = SimulatorOptions(**{"queue_seconds": 5.0, "run_seconds": 20.0, "dialect": dialect, **options})
    engine = Engine(options=chosen, clock=clock)
    exchange = Exchange(engine=engine, words=words_of(engine, speaks), clips=Clips(seed=0))
    settings = AdapterSettings(now=clock.now, key=key, base_url=f"http://{HOST}{path}", dialect=account_dialect)
    return Rehearsal(clock=clock, engine=engine, exchange=exchange, adapter=make(settings))


def written(request: HttpRequest) -> tuple[str | None, bytes]:
    """
    A request's body in bytes, every picture being `PICTURE_BYTES`, and its type where the body itself says it.
    """
    body = request.body
    match body:
        case None:
            return None, b""
        case bytes():
            return None, body
        case Json():
            return None, json.dumps(_plain(body.value)).encode()
        case Blob():
            return body.media_type, PICTURE_BYTES
        case Form():
            return "multipart/form-data; boundary=B", _form(body)


def _plain(value: Any) -> Any:
    if isinstance(value, Inline):
        return value.prefix + base64.b64encode(PICTURE_BYTES).decode()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _form(form: Form) -> bytes:
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode() for name, value in form.fields]
    parts += [
        f'Content-Disposition: form-data; name="{file.name}"; filename="{file.filename}"\r\n\r\n'.encode()
        + PICTURE_BYTES
        for file in form.files
    ]
    return b"".join(b"--B\r\n" + part + b"\r\n" for part in parts) + b"--B--\r\n"


async def _exchanged(exchange: Exchange, request: HttpRequest, headers: Mapping[str, str], body: bytes) -> HttpReply:
    parts = urlsplit(request.url)
    broken, given = False, False
    sent: list[dict[str, Any]] = []

    def close() -> None:
        nonlocal broken
        broken = True

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": request.method,
        "path": unquote(parts.path),
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "extensions": {CLOSE: {"close": close}},
    }
    await exchange(scope, receive, send)
    if broken:
        raise Broken
    start, *pieces = sent
    told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return HttpReply(status=start["status"], headers=told, body=b"".join(one["body"] for one in pieces))


async def _listened(
    exchange: Exchange, request: HttpRequest, held: Held, headers: Mapping[str, str], clock: FakeClock
) -> HttpReply:
    """
    The answer of a call that is held, while time passes.
    """
    parts = urlsplit(request.url)
    ws = parts.scheme in ("ws", "wss")
    first = {"type": "websocket.connect"} if ws else {"type": "http.request", "body": b"", "more_body": False}
    given, left = False, asyncio.Event()
    status, told, body = 403, dict[str, str](), bytearray()

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            await left.wait()
            return {"type": "websocket.disconnect" if ws else "http.disconnect"}
        given = True
        return first

    async def send(message: Any) -> None:
        nonlocal status
        match message["type"]:
            case "http.response.start":
                status = message["status"]
                told.update((name.decode().lower(), value.decode()) for name, value in message["headers"])
            case "websocket.accept":
                status = 101
            case "websocket.send":
                body.extend(message["text"].encode() + b"\n")
            case "http.response.body":
                body.extend(message["body"])

    scope = {
        "type": "websocket" if ws else "http",
        "method": request.method,
        "path": unquote(parts.path),
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "extensions": {CLOSE: {"close": left.set}},
    }
    until = clock.monotonic() + held.seconds
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(_whole(exchange, scope, receive, send))
        heard = 0
        while not answering.done() and clock.monotonic() < until:
            await clock.advance(0.05)
            if len(body) > heard and status < 300:
                heard = len(body)
                if held.enough(body):
                    break
        left.set()
        while not answering.done():
            await clock.advance(0.05)
    if status == 403 and not ws and not told:
        raise Broken
    return HttpReply(status=status, headers=told, body=bytes(body))


async def _whole(exchange: Exchange, scope: Any, receive: Any, send: Any) -> None:
    await exchange(scope, receive, send)
