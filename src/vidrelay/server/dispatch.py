"""
From a call that the gate let in to the one function that answers it: route, method, content type, size.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.errors import InvalidRequest, VidrelayError
from vidrelay.core.wire import MAX_NAME_CHARACTERS
from vidrelay.server.bodies import MAX_JSON_BYTES, parse_json, read_body
from vidrelay.server.errors import FORBIDDEN, ClientGone, Refusal, problem_answer

logger = logging.getLogger(__name__)

BY_LOGIN = "vidrelay.by_login"
"""Where the gate puts the login, in the scope of a call that one lets in."""

MAX_OPEN_BYTES = 4 * 1024
"""How much of a body is read of one who has shown nothing yet."""

_JSON_TYPE = re.compile(rb'application/json\s*(?:;\s*charset="?utf-8"?\s*)?', re.IGNORECASE)
_BYTES_TYPE = re.compile(rb"(?:image/[a-z0-9.+-]{1,64}|application/octet-stream)\s*(?:;.*)?", re.IGNORECASE)


class Body(Enum):
    """
    What a route takes: no body, a JSON body, a JSON body that may be left out, or bytes that the handler streams.
    """

    NONE = "none"
    JSON = "json"
    OPTIONAL_JSON = "optional json"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Call:
    """
    One call, as a handler sees it. `body` is the JSON that came, None without one.
    """

    scope: Scope
    receive: Receive
    params: Mapping[str, str]
    body: Any = None

    def header(self, name: bytes) -> str | None:
        """
        A header's value; `name` is in lower case.

        Raises:
            Refusal: It was sent twice, or is not UTF-8.
        """
        values: list[bytes] = [value for key, value in self.scope["headers"] if key == name]
        if not values:
            return None
        shown = name.decode()
        if len(values) > 1:
            raise Refusal("invalid_header", f"The header {shown} was sent more than once.")
        try:
            return values[0].decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal("invalid_header", f"The header {shown} is not UTF-8.") from None

    @property
    def content_length(self) -> int | None:
        """
        The body's declared length in bytes.
        """
        return _declared(self.scope)

    @property
    def by_login(self) -> bool:
        """
        Whether it comes from a browser that was let in by a login, and not from one who has the token.
        """
        return BY_LOGIN in self.scope

    @property
    def head(self) -> bool:
        """
        Whether only the headers of the answer are wanted.
        """
        return bool(self.scope["method"] == "HEAD")

    def query_values(self) -> dict[str, list[str]]:
        """
        The values of every query parameter, in order.
        """
        given: dict[str, list[str]] = {}
        for name, value in _query(self.scope):
            given.setdefault(name, []).append(value)
        return given

    def query(self, *names: str) -> dict[str, list[str]]:
        """
        The values of these query parameters, in order.
        """
        given: dict[str, list[str]] = {name: [] for name in names}
        for name, value in _query(self.scope):
            if name in given:
                given[name].append(value)
        return given

    def one(self, name: str) -> str | None:
        """
        The value of a query parameter that may stand once.

        Raises:
            InvalidRequest: It stands there more than once.
        """
        values = self.query(name)[name]
        if len(values) > 1:
            raise InvalidRequest(f"{name} was given more than once", field=name)
        return values[0] if values else None


Handler = Callable[[Call], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """
    One line of the route table: a method on a path is answered by a function.

    A segment of `path` in braces matches any one segment and is given to the handler under that name. A route that
    takes parameters in its `query` refuses others; one that takes none passes over what stands there. `open`: the call
    needs no token, because what it brings is the proof; whatever is wrong with it is the gate's own 403.
    """

    method: str
    path: str
    handler: Handler = field(repr=False)
    body: Body = Body.NONE
    query: frozenset[str] = frozenset()
    open: bool = False


@dataclass(frozen=True, slots=True)
class _Route:
    """
    Every method of one path.
    """

    segments: tuple[str, ...]
    endpoints: dict[str, Endpoint]

    @property
    def allow(self) -> bytes:
        return b", ".join(sorted(method.encode() for method in self.endpoints))


class Dispatcher:
    """
    The routes as an ASGI application. GET answers HEAD too.
    """

    def __init__(self, endpoints: Iterable[Endpoint], doors: Mapping[bytes, ASGIApp] | None = None) -> None:
        """
        `doors` answer every path that begins with that segment and something after it; a route of ours comes first.
        """
        self._doors = doors or {}
        self._literal: dict[bytes, _Route] = {}
        self._patterns: dict[int, list[_Route]] = {}
        for endpoint in endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        segments = tuple(endpoint.path.split("/")[1:])
        if "{" in endpoint.path:
            routes = self._patterns.setdefault(len(segments), [])
            route = next((known for known in routes if known.segments == segments), None)
            if route is None:
                route = _Route(segments, {})
                routes.append(route)
        else:
            route = self._literal.setdefault(endpoint.path.encode(), _Route(segments, {}))
        route.endpoints[endpoint.method] = endpoint
        if endpoint.method == "GET":
            route.endpoints["HEAD"] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer one call. What goes wrong is told as a problem; what nobody foresaw is logged, and told without detail.
        """
        endpoint: Endpoint | None = None
        door = self._doors.get(scope["raw_path"][1:].partition(b"/")[0])
        if door is not None:
            await door(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await problem_answer(Refusal("not_found", "There is no websocket here."))(scope, receive, send)
            return
        try:
            endpoint, params = self._find(scope)
            _check_query(scope, endpoint)
            body = await _take_body(scope, receive, endpoint)
            answer = await endpoint.handler(Call(scope, receive, params, body))
        except ClientGone:
            return
        except VidrelayError as exc:
            if exc.code == "internal_error":
                logger.exception("call.failed method=%s path=%s", scope["method"], scope["path"])
            answer = problem_answer(exc) if endpoint is None or not endpoint.open else FORBIDDEN
        except Exception:
            logger.exception("call.failed method=%s path=%s", scope["method"], scope["path"])
            answer = problem_answer(VidrelayError("Something went wrong inside the relay; its log says what."))
        await answer(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[Endpoint, Mapping[str, str]]:
        path: bytes = scope["raw_path"]
        params: Mapping[str, str] = {}
        route = self._literal.get(path)
        if route is None:
            route, params = self._match(path)
        endpoint = route.endpoints.get(scope["method"])
        if endpoint is None:
            allow = ((b"allow", route.allow),)
            raise Refusal("method_not_allowed", f"This path does not take {scope['method'][:20]}.", headers=allow)
        return endpoint, params

    def _match(self, path: bytes) -> tuple[_Route, dict[str, str]]:
        # Split before decoding, so that an encoded slash stays inside its segment.
        segments = path.decode("latin-1").split("/")[1:]
        for route in self._patterns.get(len(segments), ()):
            params: dict[str, str] = {}
            for pattern, segment in zip(route.segments, segments, strict=True):
                if pattern[:1] == "{" and segment:
                    params[pattern[1:-1]] = unquote(segment, errors="replace") if "%" in segment else segment
                elif pattern != segment:
                    break
            else:
                return route, params
        raise Refusal("not_found", "There is nothing at this path.")


def _query(scope: Scope) -> list[tuple[str, str]]:
    text: bytes = scope["query_string"]
    return parse_qsl(text.decode("latin-1"), keep_blank_values=True) if text else []


def _check_query(scope: Scope, endpoint: Endpoint) -> None:
    """
    Refuse a parameter that nobody will hear: a filter that is passed over in silence gives a wrong answer.
    """
    if endpoint.query:
        for name, _ in _query(scope):
            if name not in endpoint.query:
                shown = repr(name)[1:-1][:MAX_NAME_CHARACTERS]
                known = ", ".join(sorted(endpoint.query))
                raise InvalidRequest(f"unknown parameter: {shown}", field=shown, hint=f"known here: {known}")


async def _take_body(scope: Scope, receive: Receive, endpoint: Endpoint) -> Any:
    """
    Check the content type, and read and parse a JSON body.
    """
    kind = endpoint.body
    if kind is Body.NONE:
        return None
    declared = _declared(scope)
    _check_type(scope, kind)
    if kind is Body.BYTES:
        return None
    if declared is None and not _has_header(scope, b"transfer-encoding"):
        data = b""
    else:
        data = await read_body(receive, declared=declared, limit=MAX_OPEN_BYTES if endpoint.open else MAX_JSON_BYTES)
    if not data and kind is Body.OPTIONAL_JSON:
        return None
    return parse_json(data)


def _declared(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"content-length":
            # The HTTP parser has refused what is not plain digits; other servers might not.
            return int(value) if value.isdigit() and len(value) < 20 else None
    return None


def _has_header(scope: Scope, wanted: bytes) -> bool:
    return any(name == wanted for name, _ in scope["headers"])


def _check_type(scope: Scope, kind: Body) -> None:
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    if _has_header(scope, b"content-encoding"):
        raise Refusal("unsupported_media_type", "A body must come without Content-Encoding.")
    wanted = _BYTES_TYPE if kind is Body.BYTES else _JSON_TYPE
    if len(types) > 1 or (types and not wanted.fullmatch(types[0].strip())):
        told = "image/* or application/octet-stream" if kind is Body.BYTES else "application/json in UTF-8"
        raise Refusal("unsupported_media_type", f"The body must be {told}.")
