"""
How a browser comes in without ever seeing the token: a one-time code, a cookie, and a key that only its own tab has.

Whoever has the token asks for a code and leads the browser to `GET /login?code=…`, which checks it and changes nothing.
The page there posts the code; that spends it, sets the cookie and hands the page its key, to be kept in the tab's own
storage. The cookie alone lets look: browsers send it to every port of this machine and from every page on it, so it
proves too little. Whatever has an effect needs the key as well, which no other page can read.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from vidrelay.core.clock import Clock
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.wire import no_fields
from vidrelay.server.answers import SECURITY_HEADERS, Answer, RawHeaders, json_answer
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import forbidden

CODE_SECONDS = 60
LOGIN_SECONDS = 43_200
MAX_CODES = 16
MAX_LOGINS = 32

_SECRET_BYTES = 32
_SECRET_CHARACTERS = 43
_CODE = re.compile(rb"code=([A-Za-z0-9_-]{43})")


def code_of(query: bytes) -> str | None:
    """
    The login code that is all of a query, None where anything else stands there.
    """
    found = _CODE.fullmatch(query)
    return found[1].decode() if found else None


@dataclass(slots=True, eq=False)
class Login:
    """
    One browser that came in: the digests of its secrets, and until when they are good, on the monotonic clock.

    `over` is set where it ends before that, so that what it still reads ends with it.
    """

    code: bytes
    cookie: bytes
    key: bytes
    until: float
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Logins:
    """
    The codes that wait to be used and the logins made from them, in memory alone: they die with the process.

    Secrets are kept as digests under the token, so a new token makes an end of all of them. Spans are measured on the
    monotonic clock: setting the wall clock neither ends a login nor lengthens one.
    """

    token: Callable[[], str]
    clock: Clock
    cookie_name: str
    _codes: dict[bytes, float] = field(default_factory=dict)
    _logins: list[Login] = field(default_factory=list)

    def issue(self) -> str:
        """
        A new code, good once and for `CODE_SECONDS`; of too many, the oldest is forgotten.
        """
        self._forget_old()
        while len(self._codes) >= MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(_SECRET_BYTES)
        self._codes[self._digest(code)] = self.clock.monotonic() + CODE_SECONDS
        return code

    def is_live(self, code: str) -> bool:
        """
        Whether the code could be used now. Asking does not use it.
        """
        self._forget_old()
        return self._digest(code) in self._codes

    def enter(self, code: str) -> tuple[str, str] | None:
        """
        Use a code up: the new login's cookie value and page key; None where the code is not good.

        A code that comes a second time was seen by two, and nobody can tell which of them was meant: the login that it
        made ends.
        """
        self._forget_old()
        digest = self._digest(code)
        self._end(login for login in self._logins if hmac.compare_digest(login.code, digest))
        if self._codes.pop(digest, None) is None:
            return None
        cookie, key = secrets.token_urlsafe(_SECRET_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        until = self.clock.monotonic() + LOGIN_SECONDS
        self._end(self._logins[: 1 - MAX_LOGINS])
        self._logins.append(Login(digest, self._digest(cookie), self._digest(key), until))
        return cookie, key

    def admitted(self, cookies: bytes, *, key: bytes | None, effect: bool) -> Login | None:
        """
        The login by which a call with these cookies (the header) may pass, None where it may not; one with an effect
        needs its login's page key too.
        """
        self._forget_old()
        for cookie in cookies.split(b";"):
            name, _, value = cookie.strip(b" ").partition(b"=")
            if name == self.cookie_name.encode() and len(value) == _SECRET_CHARACTERS:
                digest = self._digest(value)
                for login in self._logins:
                    if hmac.compare_digest(login.cookie, digest):
                        may = not effect or (key is not None and hmac.compare_digest(login.key, self._digest(key)))
                        return login if may else None
        return None

    def _digest(self, secret: str | bytes) -> bytes:
        given = secret if isinstance(secret, bytes) else secret.encode()
        return hmac.digest(self.token().encode(), given, "sha256")

    def _forget_old(self) -> None:
        now = self.clock.monotonic()
        self._codes = {code: until for code, until in self._codes.items() if until > now}
        self._end(login for login in self._logins if login.until <= now)

    def _end(self, logins: Iterable[Login]) -> None:
        for login in list(logins):
            self._logins.remove(login)
            login.over.set()


SCRIPT = """
const code = new URLSearchParams(location.search).get("code");
history.replaceState(null, "", "/login");
const told = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) };
fetch("/login", told).then((answer) => answer.ok ? answer.json() : Promise.reject(answer.status)).then(({ key }) => {
  sessionStorage.setItem("vidrelay-key", key);
  location.replace("/");
}).catch(() => { document.body.textContent = "This link has been used. Run “vidrelay open” for a new one."; });
"""
"""What the page behind a live code does: spends the code, keeps the key in this tab, goes to the dashboard."""

_PAGE = f'<!doctype html><meta charset="utf-8"><title>vidrelay</title><body>…<script>{SCRIPT}</script></body>'.encode()
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
_PAGE_HEADERS: RawHeaders = (
    (b"content-type", b"text/html; charset=utf-8"),
    *SECURITY_HEADERS,
    (
        b"content-security-policy",
        # Nothing else can be loaded before the login, so the script stands in the page; its hash lets in no other one.
        f"default-src 'none'; script-src 'sha256-{_SCRIPT_HASH}'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'".encode(),
    ),
)


class LoginCalls:
    """
    Answers the calls that let a browser in.
    """

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._page = Answer(_PAGE, headers=_PAGE_HEADERS)

    async def page(self, call: Call) -> ASGIApp:
        """
        The page that spends a live code.

        Raises:
            Refusal: There is no live code.
        """
        # The gate lets in who has a code, and who has the token; a link that has been used leads neither anywhere.
        if not self._logins.is_live(code_of(call.scope["query_string"]) or ""):
            raise forbidden()
        return self._page

    async def enter(self, call: Call) -> ASGIApp:
        """
        Spend the code: the cookie as a header, the page key in the body.

        Raises:
            Refusal: The code is not live; it is shown as the gate's own 403.
        """
        try:
            code = no_fields(call.body, frozenset({"code"})).get("code")
        except InvalidRequest:
            raise forbidden() from None
        found = self._logins.enter(code) if isinstance(code, str) else None
        if found is None:
            raise forbidden()
        cookie, key = found
        told = f"{self._logins.cookie_name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={LOGIN_SECONDS}"
        return json_answer({"key": key}, headers=((b"set-cookie", told.encode()),))

    async def issue(self, call: Call) -> ASGIApp:
        """
        A new code, for whoever has the token itself.

        Raises:
            Refusal: It is a browser that asks, whose login must not make others.
        """
        if call.by_login:
            raise forbidden()
        no_fields(call.body)
        return json_answer({"code": self._logins.issue(), "seconds": CODE_SECONDS})
