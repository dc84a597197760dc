"""
Calls that come in a provider's own words, from its SDKs: found by the first segment of their path, read, given to the
provider's door, and answered as that says.

A door is pure: it yields what it wants of the relay and is sent what came of it. Whatever goes wrong is told in the
provider's shape, with `x-should-retry` where asking again is of no use, so that its SDK does not.
"""

import asyncio
import base64
import logging
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, assert_never
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.adapter import asset_parameter
from vidrelay.core.clock import Clock
from vidrelay.core.door import (
    Cancel,
    DoorCall,
    DoorRoute,
    FileReply,
    Forget,
    Inlined,
    InlineFile,
    JsonReply,
    Keep,
    Kept,
    Live,
    Look,
    MediaInput,
    NewTask,
    OpenAddress,
    Page,
    Part,
    SocketDoor,
    Submit,
    View,
    Wish,
)
from vidrelay.core.errors import InvalidRequest, ResultGone, UnknownTask, VidrelayError
from vidrelay.core.proof import door_proof, file_proof
from vidrelay.core.task import Asset, CancelOutcome, Request, State, Task
from vidrelay.scheduler.face import DoorWay, RelayFace
from vidrelay.server.answers import DATA_HEADERS, FILE_HEADERS, JSON_HEADERS, Answer, RawHeaders, encode
from vidrelay.server.bodies import stream_body
from vidrelay.server.dispatch import Call
from vidrelay.server.door_body import DoorBody, read_into
from vidrelay.server.door_routes import RoutedDoor, routed
from vidrelay.server.errors import ClientGone, Refusal, problem_answer, problem_of
from vidrelay.server.files import ENDINGS, FileCalls, read_whole
from vidrelay.server.media import from_long, from_text, pieces
from vidrelay.server.retold import Retold
from vidrelay.server.running import hang_up, run_until
from vidrelay.server.sender import MAX_APP_CHARACTERS, sender_of
from vidrelay.server.sockets import Sockets

logger = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 60.0
MAX_PAGE = 500
MAX_NAMES = 10_000
"""So many names of uploads are held; then the oldest is forgotten."""
MAX_PASSED_BYTES = 16 * 1024 * 1024
FORCE = b"x-vidrelay-force"
PASSED_IN = frozenset({"accept", "content-type", "prefer"})
PASSED_OUT = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id"})
"""Of a call's and an answer's headers, those that are passed on; no key, no cookie, nothing of this machine."""

_UNWRITABLE = re.compile(r"[^\x20-\x7e]")
_PRODUCT = re.compile(r"[\x21-\x7e]+")
_PLAIN = str | int | float | None
_OURS = frozenset({"$asset", "$copy"})


class DoorCalls:
    """
    Answers the calls of every door.
    """

    def __init__(
        self, relay: RelayFace, *, token: Callable[[], str], stopping: asyncio.Event, clock: Clock, port: int
    ) -> None:
        """
        Once `stopping` is set, nothing new is taken in and no call waits any longer. `port` is that of plain http.
        """
        self._relay = relay
        self._files = FileCalls(relay)
        self._token = token
        self._stopping = stopping
        self._clock = clock
        self._plain = f"http://127.0.0.1:{port}"
        self._names: dict[tuple[str, str], str] = {}
        self._sockets = Sockets(relay, clock=clock, stopping=stopping, view=self._view)
        self._retold = Retold(relay)
        self._doors = {name.encode(): routed(way) for name, way in relay.doors().items()}

    def names(self) -> frozenset[bytes]:
        """
        The first segments of the addresses that lead here.
        """
        return frozenset(self._doors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer one call.
        """
        if scope["type"] == "websocket":
            await self._listen(scope, receive, send)
            return
        told = await self._retold.find(scope)
        if told is not None:
            await told(scope, receive, send)
            return
        name, _, rest = scope["raw_path"][1:].partition(b"/")
        door, path, headers = self._doors[name], f"/{rest.decode('latin-1')}", _headers(scope)
        route, params = door.find(scope["method"], path)
        call = Call(scope, receive, params)
        asked = call.query_values()
        seen = DoorCall(
            method=scope["method"],
            path=path,
            base=f"{scope['scheme']}://{headers['host']}/{name.decode('latin-1')}",
            params=params,
            query={key: values[0] for key, values in asked.items()},
            queries={key: tuple(values) for key, values in asked.items()},
            headers=headers,
            fresh=f"{int(self._clock.now().timestamp() * 1000):012x}{secrets.token_hex(10)}",
        )
        body = DoorBody()
        try:
            answer = await self._answer(door, route, call, seen, body)
        except ClientGone:
            return
        except VidrelayError as error:
            if error.code == "internal_error":
                logger.exception("door.failed method=%s path=%s", scope["method"], scope["path"])
            answer = _refused(door, seen, error)
        except Exception:
            logger.exception("door.failed method=%s path=%s", scope["method"], scope["path"])
            answer = _refused(door, seen, VidrelayError("Something went wrong inside the relay; its log says what."))
        finally:
            body.close()
        await answer(scope, receive, send)

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Let one client in that listens, where the door has a websocket.
        """
        name, _, path = scope["raw_path"][1:].decode("latin-1").partition("/")
        way = self._doors[name.encode("latin-1")].way
        call, headers = Call(scope, receive, {}), _headers(scope)
        if not isinstance(way.door, SocketDoor) or f"/{path}" not in way.door.socket_paths:
            await problem_answer(Refusal("not_found", "There is no websocket here."))(scope, receive, send)
            return
        seen = DoorCall(
            method="GET",
            path=f"/{path}",
            base=f"{scope['scheme'].replace('ws', 'http')}://{headers['host']}/{name}",
            query={key: values[0] for key, values in call.query_values().items()},
            headers=headers,
            fresh=secrets.token_hex(16),
        )
        await self._sockets.listen(scope, receive, send, account=way.account, hearing=way.door.hearing(seen), seen=seen)

    async def _answer(
        self, door: RoutedDoor, route: DoorRoute | Refusal, call: Call, seen: DoorCall, body: DoorBody
    ) -> ASGIApp:
        if isinstance(route, Refusal):
            if route.code == "not_found" and door.way.pass_through:
                return await self._passed_on(door.way, call, seen)
            raise route
        await read_into(body, call, seen)
        handling = route.handler(seen if body.value is None else replace(seen, body=body.value))
        sent, thrown, wishes = None, None, list[Wish]()
        while True:
            shown: Any = sent
            try:
                wish = handling.send(sent) if thrown is None else handling.throw(thrown)
            except StopIteration as end:
                answer = await self._written(end.value, call, seen)
                if isinstance(answer, Answer) and isinstance(shown, View) and _only_looked(wishes, shown, seen):
                    self._retold.keep(call.scope, shown, answer)
                return answer
            wishes.append(wish)
            sent = thrown = None
            try:
                sent = await self._grant(wish, door.way, call, seen, body)
            except VidrelayError as error:
                # A door may know a better answer than an error.
                thrown = error

    async def _passed_on(self, way: DoorWay, call: Call, seen: DoorCall) -> ASGIApp:
        self._refuse_when_stopping()
        if call.by_login:
            raise InvalidRequest("What a page asks for is not passed on to a provider.")
        if "content-encoding" in seen.headers:
            raise Refusal("unsupported_media_type", "A body must come without Content-Encoding.")
        chunks = stream_body(call.receive, declared=call.content_length, limit=MAX_PASSED_BYTES)
        body = b"" if seen.method in ("GET", "HEAD") else b"".join([chunk async for chunk in chunks])
        query = call.scope["query_string"].decode("latin-1")
        headers = {name: seen.headers[name] for name in PASSED_IN & seen.headers.keys()}
        token = self._token()
        if token.encode() in body or any(token in unquote(text) for text in (seen.path, query, *headers.values())):
            raise InvalidRequest("The relay's own token stands in this call, so it is not passed on.")
        passing = self._relay.pass_on(
            way.account, method=seen.method, path=seen.path, query=query, headers=headers, body=body
        )
        async with passing as reply:
            if 300 <= reply.status < 400:
                raise Refusal("redirected", "The provider leads this call to another place, and vidrelay goes nowhere.")
            told = [
                (name.encode(), reply.headers[name].encode("latin-1")) for name in PASSED_OUT & reply.headers.keys()
            ]
            return Answer(await reply.read(), status=reply.status, headers=(*FILE_HEADERS, *told))

    async def _grant(
        self, wish: Wish, way: DoorWay, call: Call, seen: DoorCall, body: DoorBody
    ) -> View | list[View] | Asset:
        match wish:
            case Submit():
                self._refuse_when_stopping()
                return await self._submit(wish.new, way, call, seen, body)
            case Look():
                return await self._look(wish, way, call, seen)
            case Page():
                return await self._page(wish, way, seen)
            case Live():
                return [self._view(task, seen) for task in self._relay.live() if task.account == way.account]
            case Cancel():
                ours = await self._ours(wish.task_id, way)
                task, outcome = await self._relay.cancel(ours.id, unless_begun=wish.unless_begun)
                return self._view(task, seen, cancel=outcome)
            case Forget():
                ours = await self._ours(wish.task_id, way)
                return self._view(await self._relay.forget(ours.id), seen)
            case Keep():
                self._refuse_when_stopping()
                asset = await self._keep(wish.media, way, body)
                self._remember(asset, wish.name, way)
                return asset
            case _:
                assert_never(wish)

    async def _submit(self, new: NewTask, way: DoorWay, call: Call, seen: DoorCall, body: DoorBody) -> View:
        pictures: dict[str, Asset] = {}
        parameters = await self._with_assets(new.prepared.parameters, way, body, pictures)
        request = Request(
            prompt=new.prompt,
            account=way.account,
            model_version=new.prepared.model,
            force_refresh=new.force or _forced(call),
        )
        sender = sender_of(call)
        admission = await self._relay.submit_prepared(
            request,
            replace(new.prepared, parameters=parameters),
            pictures,
            replace(sender, app=sender.app or _product(call)),
        )
        await self._sockets.asked(way.account, new, admission.task)
        return self._view(admission.task, seen)

    async def _look(self, wish: Look, way: DoorWay, call: Call, seen: DoorCall) -> View:
        task = await self._ours(wish.task_id, way)
        if wish.wait > 0 and not task.ended:
            waiting = self._until_ended(task.id, min(wish.wait, MAX_WAIT_SECONDS))
            await run_until(waiting, self._stopping.wait(), hang_up(call.receive))
            task = await self._relay.get(task.id)
        return self._view(task, seen)

    async def _until_ended(self, task_id: str, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        task = await self._relay.get(task_id)
        while not task.ended and (left := deadline - asyncio.get_running_loop().time()) > 0:
            task = await self._relay.wait(task_id, seconds=left, seen=task.state)

    async def _page(self, wish: Page, way: DoorWay, seen: DoorCall) -> list[View]:
        before = None if wish.after is None else (await self._ours(wish.after, way)).seq
        limit = max(1, min(wish.limit, MAX_PAGE))
        tasks = await self._relay.page(states=None, account=way.account, limit=limit, before=before)
        return [self._view(task, seen) for task in tasks]

    async def _ours(self, task_id: str, way: DoorWay) -> Task:
        """
        A task of the door's own account.
        """
        task = await self._relay.get(self._sockets.meant(way.account, task_id))
        if task.account != way.account:
            raise UnknownTask
        return task

    async def _keep(self, media: MediaInput | None, way: DoorWay, body: DoorBody) -> Asset:
        match media:
            case None if body.chunks is not None:
                return await self._relay.add_asset(body.chunks, account=way.account)
            case None:
                raise InvalidRequest("The file's bytes are missing.")
            case Inlined():
                long = body.find(media.text)
                chunks = from_text(media.text) if long is None else from_long(long)
                return await self._relay.add_asset(chunks, account=way.account)
            case Part():
                return await self._relay.add_asset(pieces(body.files[media.number]), account=way.account)
            case Kept():
                return await self._relay.asset(self._names.get((way.account, media.asset), media.asset))
            case _:
                assert_never(media)

    def _remember(self, asset: Asset, name: str | None, way: DoorWay) -> None:
        if name is None:
            return
        self._names[way.account, name] = asset.id
        if len(self._names) > MAX_NAMES:
            del self._names[next(iter(self._names))]

    async def _with_assets(self, value: Any, way: DoorWay, body: DoorBody, pictures: dict[str, Asset]) -> Any:
        """
        The parameters with each picture as the store keeps it; `pictures` gains them by id.
        """
        match value:
            case Inlined() | Part() | Kept():
                asset = await self._keep(value, way, body)
                if isinstance(value, Kept):
                    # An upload may be larger than what goes along in the create call, as it will here.
                    asset = await self._relay.fitted(asset, account=way.account)
                pictures[asset.id] = asset
                return {**value.beside, **asset_parameter(asset)}
            case Mapping():
                if not _OURS.isdisjoint(value):
                    raise InvalidRequest("A name that begins with $asset or $copy is vidrelay's own.", field="$asset")
                for name in value:
                    body.check_length(name)
                return {name: await self._with_assets(inner, way, body, pictures) for name, inner in value.items()}
            case list() | tuple():
                return [await self._with_assets(inner, way, body, pictures) for inner in value]
            case str():
                body.check_length(value)
        return value

    def _view(self, task: Task, seen: DoorCall, *, cancel: CancelOutcome | None = None) -> View:
        done = task.state is State.DONE
        return View(
            task=task,
            standing=self._relay.place(task),
            files=self._addresses(task, seen) if done else (),
            gone=done and not all(os.path.exists(self._relay.file_path(file)) for file in task.files),  # noqa: PTH110 it is asked at every poll
            stale=task.state is State.UNCERTAIN and self._relay.is_stale(task),
            cancel=cancel,
        )

    def _addresses(self, task: Task, seen: DoorCall) -> tuple[str, ...]:
        # What fetches the file of an SDK that speaks https need not be that SDK, and trust what it trusts.
        origin = self._plain if seen.base.startswith("https:") else seen.base.rpartition("/")[0]
        token = self._token()
        return tuple(
            f"{origin}/file/{task.id}/{file.index}/{file_proof(token, task_id=task.id, index=file.index)}"
            f".{ENDINGS.get(file.media_type, 'bin')}"
            for file in task.files
        )

    async def _written(self, reply: JsonReply | FileReply, call: Call, seen: DoorCall) -> ASGIApp:
        if isinstance(reply, FileReply):
            return await self._files.answer(call, reply.task_id, reply.index)
        return _json(reply, await self._filled(reply.value, seen))

    async def _filled(self, value: Any, seen: DoorCall) -> Any:
        match value:
            case InlineFile():
                return await self._data_uri(value)
            case OpenAddress():
                return self._open_address(value, seen)
            case dict():
                return {
                    name: inner if isinstance(inner, _PLAIN) else await self._filled(inner, seen)
                    for name, inner in value.items()
                }
            case list() | tuple():
                return [await self._filled(inner, seen) for inner in value]
        return value

    def _open_address(self, wanted: OpenAddress, seen: DoorCall) -> str:
        address = seen.base + wanted.path
        path = urlsplit(address).path
        return f"{address}?proof={door_proof(self._token(), method=wanted.method, path=path)}"

    async def _data_uri(self, wanted: InlineFile) -> str | None:
        try:
            path, file = await self._relay.result_file(wanted.task_id, wanted.index)
            if file.size_bytes > wanted.max_bytes:
                return wanted.instead
            data = await asyncio.to_thread(read_whole, path, file)
        except (ResultGone, OSError):
            return wanted.instead
        text = base64.b64encode(data).decode()
        return text if wanted.bare else f"data:{file.media_type};base64,{text}"

    def _refuse_when_stopping(self) -> None:
        if self._stopping.is_set():
            raise Refusal("shutting_down", "The relay is stopping; ask again in a moment.")


def _only_looked(wishes: list[Wish], shown: View, seen: DoorCall) -> bool:
    """
    Whether all that a door wanted was to see one task as it stands at once, by its own id: one that a client chose may
    mean another task soon.
    """
    if seen.method != "GET" or len(wishes) != 1:
        return False
    (wish,) = wishes
    return isinstance(wish, Look) and wish.wait <= 0 and wish.task_id == shown.task.id


def _headers(scope: Scope) -> dict[str, str]:
    # Of a name that was sent twice, the first counts.
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _forced(call: Call) -> bool:
    return (call.header(FORCE) or "").strip().lower() in ("1", "true")


def _product(call: Call) -> str | None:
    """
    The SDK's name, as its User-Agent begins.
    """
    found = _PRODUCT.match((call.header(b"user-agent") or "").strip())
    return found[0][:MAX_APP_CHARACTERS] if found else None


def _refused(door: RoutedDoor, seen: DoorCall, error: VidrelayError) -> Answer:
    problem = problem_of(error)
    reply = door.way.door.write_error(problem, seen)
    headers = dict(reply.headers)
    if not problem.retryable:
        headers.setdefault("x-should-retry", "false")
    if problem.retry_after is not None:
        headers.setdefault("retry-after", str(math.ceil(problem.retry_after)))
    return _json(replace(reply, headers=headers), reply.value)


def _json(reply: JsonReply, value: Any) -> Answer:
    # A door may write there what stood in the call's path, and a line break in it must begin no line of ours.
    told: RawHeaders = tuple(
        (name.encode(), _UNWRITABLE.sub("?", text).encode()) for name, text in reply.headers.items()
    )
    if value is None:
        return Answer(b"", status=reply.status, headers=(*DATA_HEADERS, *told))
    return Answer(encode(value), status=reply.status, headers=(*JSON_HEADERS, *told))
