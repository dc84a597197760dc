"""
Who may speak to the relay at all: pure ASGI middleware that stands before routing, unknown paths included.

In this order, the first that fails decides, and every failure is the same 403: Host, Origin, Sec-Fetch-Site,
credential. A page in the user's browser can reach a loopback port: Host stops one that rebinds its name to 127.0.0.1,
Origin and Sec-Fetch-Site stop one that calls across origins, and the token stops everything else. A browser's login
stands in for the token; it is asked for more, because a cookie comes along with calls that nobody meant. In a door's
path a key of its own may stand in for the token too, where its account wants that; nobody behind the gate sees it.

A websocket is held to the same, and has neither logins nor addresses that open it: browsers let any page open one.
"""

import asyncio
import contextlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.proof import door_key, door_proof, file_proof, proves
from vidrelay.server.dispatch import BY_LOGIN
from vidrelay.server.errors import FORBIDDEN
from vidrelay.server.login import Logins, code_of

PROOF_PATH = b"/proof"
FILE_PATH = re.compile(rb"/file/([A-Za-z0-9._:-]{1,200})/([0-9]{1,3})/([0-9a-f]{64})\.[a-z0-9]{1,5}")
"""An address of one result that a door gave out: good without a key, for the proof in it was made with the token."""
DOOR_PROOF = b"proof="
"""How the query of an address begins that a door gave out for a call without a key; the proof is the rest of it."""
KEY_PATH = re.compile(rb"/([^/]+)/(?:~|%7[Ee])([^/]*)(/.*|)", re.DOTALL)
"""A path with a key in it: the door, the key, and the path that is meant."""
LOGIN_PATH = b"/login"
PAGE_KEY = b"x-vidrelay-page"
"""The header in which a page sends the key that its login gave it."""

LET_PASS_SECONDS = 1.0
LET_PASS_BYTES = 96 * 1024 * 1024

_SCHEMES = frozenset({b"bearer", b"key", b"token"})
_OWN_SITES = frozenset({None, b"same-origin", b"none"})
_LOOKING = frozenset({"GET", "HEAD"})
_CREDENTIALS = frozenset({b"x-local-token", b"authorization", b"x-goog-api-key"})
_WATCHED = frozenset({b"host", b"origin", b"sec-fetch-site", b"cookie", PAGE_KEY}) | _CREDENTIALS


class Gate:
    """
    Lets a call through to `app` that names this relay as its host, comes from no foreign page, and has the token or a
    login.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: Callable[[], str],
        logins: Logins,
        port: int,
        tls_port: int | None = None,
        origins: Iterable[str] = (),
        keyed: Mapping[bytes, str] | None = None,
    ) -> None:
        """
        `token` gives the token of the moment; `tls_port` is the port of https, None: there is none; `origins` are
        further origins that are let in, exactly as written; `keyed` are the doors that a key in the path opens, each
        with its account.
        """
        self._app = app
        self._token = token
        self._logins = logins
        self._hosts = _own_hosts(port)
        self._tls_hosts = frozenset[bytes]() if tls_port is None else _own_hosts(tls_port)
        self._own_origins = frozenset(b"http://" + host for host in self._hosts)
        self._extra_origins = frozenset(origin.encode() for origin in origins)
        self._keyed = keyed or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Serve one call, or refuse it.
        """
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._open(scope, receive, send)
        elif self._admits(scope):
            await self._app(_without_key(scope), receive, send)
        else:
            await _let_pass(scope, receive)
            await FORBIDDEN(scope, receive, send)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Let a websocket in, or answer its call as a plain one is refused.
        """
        seen = _watched(scope)
        is_tls = scope["scheme"] == "wss"
        if (
            seen is None
            or seen.get(b"host") not in (self._tls_hosts if is_tls else self._hosts)
            or not (self._is_at_home_tls(seen) if is_tls else self._is_at_home(seen, from_anywhere=False))
            or not self._brings_right_key(scope, seen)
        ):
            await FORBIDDEN(scope, receive, send)
        else:
            await self._app(_without_key(scope), receive, send)

    def _admits(self, scope: Scope) -> bool:
        seen = _watched(scope)
        if seen is None:
            return False
        if scope["scheme"] == "https":
            return self._admits_tls(scope, seen)
        if seen.get(b"host") not in self._hosts:
            return False
        with_code = self._brings_code(scope)
        if not self._is_at_home(seen, from_anywhere=with_code):
            return False
        if _key_path(scope) is not None:
            return self._brings_right_key(scope, seen)
        if scope["method"] == "POST" and scope["raw_path"] == PROOF_PATH:
            return True
        if self._brings_proof(scope):
            return True
        if with_code or (scope["method"] == "POST" and scope["raw_path"] == LOGIN_PATH):
            return _is_same_origin(seen)
        if _CREDENTIALS.isdisjoint(seen):
            return self._is_logged_in(scope, seen)
        return self._knows_token(seen)

    def _admits_tls(self, scope: Scope, seen: Mapping[bytes, bytes]) -> bool:
        """
        Over https only SDKs call, so there are no pages of our own, no login, and nothing without a key.
        """
        if seen.get(b"host") not in self._tls_hosts:
            return False
        return self._is_at_home_tls(seen) and (self._brings_proof(scope) or self._brings_right_key(scope, seen))

    def _brings_right_key(self, scope: Scope, seen: Mapping[bytes, bytes]) -> bool:
        """
        Whether it brings the token, or a key of the door in its path; a path with a wrong one is opened by nothing.
        """
        found = _key_path(scope)
        if found is None:
            return not _CREDENTIALS.isdisjoint(seen) and self._knows_token(seen)
        account = self._keyed.get(found[1])
        if account is None or not self._token():
            return False
        return proves(found[2].decode("latin-1"), door_key(self._token(), account=account))

    def _brings_proof(self, scope: Scope) -> bool:
        """
        Whether the address itself is one that a door gave out.
        """
        if scope["raw_path"].startswith(b"/file/") and self._brings_file_proof(scope):
            return True
        return scope["query_string"].startswith(DOOR_PROOF) and self._brings_door_proof(scope)

    def _brings_code(self, scope: Scope) -> bool:
        """
        Whether it is a browser that follows a live login link: the one call that may come from another site.
        """
        if scope["raw_path"] != LOGIN_PATH or scope["method"] not in _LOOKING:
            return False
        code = code_of(scope["query_string"])
        return code is not None and self._logins.is_live(code)

    def _brings_file_proof(self, scope: Scope) -> bool:
        found = FILE_PATH.fullmatch(scope["raw_path"])
        if found is None or scope["method"] not in _LOOKING:
            return False
        expected = file_proof(self._token(), task_id=found[1].decode(), index=int(found[2]))
        return bool(self._token()) and proves(found[3].decode(), expected)

    def _brings_door_proof(self, scope: Scope) -> bool:
        given = scope["query_string"].removeprefix(DOOR_PROOF).decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        return bool(self._token()) and proves(given, door_proof(self._token(), method=scope["method"], path=path))

    def _is_at_home(self, seen: Mapping[bytes, bytes], *, from_anywhere: bool) -> bool:
        origin, site = seen.get(b"origin"), seen.get(b"sec-fetch-site")
        # A web view that the user has named is another site by its nature; its exact origin is what lets it in.
        if origin is not None and origin not in self._own_origins:
            return origin in self._extra_origins
        return site in _OWN_SITES or (from_anywhere and site == b"cross-site")

    def _is_at_home_tls(self, seen: Mapping[bytes, bytes]) -> bool:
        origin = seen.get(b"origin")
        return origin in self._extra_origins if origin is not None else seen.get(b"sec-fetch-site") in _OWN_SITES

    def _is_logged_in(self, scope: Scope, seen: Mapping[bytes, bytes]) -> bool:
        cookies = seen.get(b"cookie")
        if cookies is None or not _is_same_origin(seen):
            return False
        login = self._logins.admitted(cookies, key=seen.get(PAGE_KEY), effect=scope["method"] not in _LOOKING)
        scope[BY_LOGIN] = login
        return login is not None

    def _knows_token(self, seen: Mapping[bytes, bytes]) -> bool:
        """
        Whether each credential that is there is the token (two that differ are somebody's mistake or trick).
        """
        token = self._token().encode()
        right = bool(token)
        for name in _CREDENTIALS & seen.keys():
            given = seen[name]
            if name == b"authorization":
                scheme, _, given = given.partition(b" ")
                right = right and scheme.lower() in _SCHEMES
            right = hmac.compare_digest(given.strip(b" "), token) and right
        return right


def _own_hosts(port: int) -> frozenset[bytes]:
    return frozenset(b"%s:%d" % (name, port) for name in (b"127.0.0.1", b"localhost", b"[::1]"))


def _key_path(scope: Scope) -> re.Match[bytes] | None:
    path: bytes = scope["raw_path"]
    return KEY_PATH.fullmatch(path) if b"/~" in path or b"/%7" in path else None


def _without_key(scope: Scope) -> Scope:
    """
    The call as it is meant: nobody behind the gate learns a key that stood in its path, so none comes into a log.
    """
    found = _key_path(scope)
    if found is None:
        return scope
    path = b"/" + found[1] + found[3]
    return {**scope, "raw_path": path, "path": unquote(path.decode("latin-1"))}


def _watched(scope: Scope) -> dict[bytes, bytes] | None:
    """
    The headers that decide, None where one of them stands there twice.
    """
    seen: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _WATCHED:
            if name in seen:
                return None
            seen[name] = value
    return seen


def _is_same_origin(seen: Mapping[bytes, bytes]) -> bool:
    """
    Whether a browser's call comes from the very host it goes to: of the three own names, another one is another site.
    """
    return seen.get(b"origin") in (None, b"http://" + seen[b"host"])


async def _let_pass(scope: Scope, receive: Receive) -> None:
    """
    Drop the body of a call that is refused, as far as it comes soon: the refusal closes the connection, and with a body
    under way that would reset it, so that the client saw no refusal and tried again.
    """
    names = {name for name, _ in scope["headers"]}
    if names.isdisjoint((b"content-length", b"transfer-encoding")) or b"expect" in names:
        return
    left = LET_PASS_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LET_PASS_SECONDS):
            while left > 0 and (message := await receive()).get("more_body"):
                left -= len(message.get("body", b""))


async def _lifespan(receive: Receive, send: Send) -> None:
    """
    Answer a server that announces its start and stop; the relay's own life is the daemon's matter.
    """
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
