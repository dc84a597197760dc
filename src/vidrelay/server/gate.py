"""
Who may speak to the relay at all: pure ASGI middleware that stands before routing, unknown paths included.

In this order, the first that fails decides, and every failure is the same 403: Host, Origin, Sec-Fetch-Site,
credential. A page in the user's browser can reach a loopback port: Host stops one that rebinds its name to 127.0.0.1,
Origin and Sec-Fetch-Site stop one that calls across origins, and the token stops everything else.
"""

import hmac
from collections.abc import Callable, Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.server.errors import FORBIDDEN

PROOF_PATH = b"/proof"

_SCHEMES = frozenset({b"bearer", b"key", b"token"})
_OWN_SITES = frozenset({b"same-origin", b"none"})
_CREDENTIALS = frozenset({b"x-local-token", b"authorization", b"x-goog-api-key"})
_WATCHED = frozenset({b"host", b"origin", b"sec-fetch-site"}) | _CREDENTIALS


class Gate:
    """
    Lets a call through to `app` that names this relay as its host, comes from no foreign page, and has the token.
    """

    def __init__(self, app: ASGIApp, *, token: Callable[[], str], port: int, origins: Iterable[str] = ()) -> None:
        """
        `token` gives the token of the moment; `origins` are further origins that are let in, exactly as written.
        """
        self._app = app
        self._token = token
        self._hosts = frozenset(b"%s:%d" % (name, port) for name in (b"127.0.0.1", b"localhost", b"[::1]"))
        self._own_origins = frozenset(b"http://" + host for host in self._hosts)
        self._extra_origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Serve one call, or refuse it.
        """
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif self._admits(scope):
            await self._app(scope, receive, send)
        else:
            await FORBIDDEN(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        seen: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _WATCHED:
                if name in seen:
                    return False
                seen[name] = value
        if seen.pop(b"host", None) not in self._hosts:
            return False
        origin = seen.pop(b"origin", None)
        site = seen.pop(b"sec-fetch-site", None)
        # A web view that the user has named is another site by its nature; its exact origin is what lets it in.
        if origin is None or origin in self._own_origins:
            if site is not None and site not in _OWN_SITES:
                return False
        elif origin not in self._extra_origins:
            return False
        if scope["method"] == "POST" and scope["raw_path"] == PROOF_PATH:
            return True
        return self._knows_token(seen)

    def _knows_token(self, credentials: dict[bytes, bytes]) -> bool:
        """
        Whether there is a credential, and each one is the token (two that differ are somebody's mistake or trick).
        """
        token = self._token().encode()
        right = bool(credentials) and bool(token)
        for name, value in credentials.items():
            given = value
            if name == b"authorization":
                scheme, _, given = value.partition(b" ")
                right = right and scheme.lower() in _SCHEMES
            right = hmac.compare_digest(given.strip(b" "), token) and right
        return right


async def _lifespan(receive: Receive, send: Send) -> None:
    """
    Answer a server that announces its start and stop; the relay's own life is the daemon's matter.
    """
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
