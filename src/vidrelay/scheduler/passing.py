"""
Calls of an SDK's that no door answers, passed on to the provider with the account's key: not kept, not repeated.

The key goes to the provider alone: should the answer repeat it, it is blotted out of that.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from vidrelay.core.clock import Clock
from vidrelay.core.door import elsewhere
from vidrelay.core.errors import InvalidRequest, TransportError
from vidrelay.core.network import Reply
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import CREATE_SECONDS

_PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,2000}")
_ASTRAY = re.compile(
    r"(?:^|/)(?:\.|%2e){1,2}(?:;|%3b|/|$)|//|%(?:2f|5c|23|3f|20|7f|[01][0-9a-f]|[89a-f][0-9a-f])|%25[0-9a-f]{2}",
    re.IGNORECASE,
)
"""What another server might read as the way to another place: steps up, what ends a path or a segment once it is
unescaped, and blanks, control and wide characters, which some leave out, or let stand at the end of a path (Starlette a
line's end)."""
_PLACE = re.compile(r"(\{[^}]+\})")
_EXTRA = re.compile(r";[^/]*|/+$")
"""What servers leave out of account in a path: a segment's parameters, and a slash at its end."""
_LOOKS = frozenset({"GET", "HEAD"})
METHODS = _LOOKS | {"POST", "PUT", "PATCH", "DELETE"}
"""Others make a server repeat what it was sent, or do what no API is asked for."""
CREDENTIALS = frozenset({"authorization", "x-goog-api-key"})
"""The headers in which adapters send a key."""
LEAST_SECRET_CHARACTERS = 8
"""A shorter key is no secret, and may stand in any answer."""


class _Told:
    """
    A reply without the secrets that the call went with (fills port Reply).
    """

    def __init__(self, reply: Reply, secrets: tuple[str, ...]) -> None:
        self._reply = reply
        self._secrets = secrets
        self.status = reply.status
        self.headers: Mapping[str, str] = {
            name: self._without(value.encode()).decode() for name, value in reply.headers.items()
        }

    def _without(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret.encode(), b"[key]")
        return data

    async def chunks(self) -> AsyncIterator[bytes]:
        # A secret may lie across two pieces.
        yield await self.read()

    async def read(self) -> bytes:
        return self._without(await self._reply.read())


@asynccontextmanager
async def pass_on(
    account: Account, clock: Clock, *, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> AsyncIterator[Reply]:
    """
    Send the call, once; the reply is read while the context lasts.

    Raises:
        InvalidRequest: Its method or path cannot be passed on, or the call is one that the door answers.
        TransportError: It failed, or nothing was sent since the account rests.
    """
    if method not in METHODS or not _PATH.fullmatch(path) or _ASTRAY.search(path):
        raise InvalidRequest("This method or path cannot be passed on.")
    rest = account.rest(creates=False, monotonic=clock.monotonic())
    if rest > 0:
        raise TransportError("The account rests, so nothing is passed on.", maybe_sent=False, retry_after=rest)

    def may_go() -> bool:
        return account.held(creates=False, monotonic=clock.monotonic()) <= 0

    request = account.plan.adapter.pass_on(method, path, query, headers, body)
    if method not in _LOOKS and (own := _own_path(account, method, path, request.url)) is not None:
        raise InvalidRequest(f"The provider may take this for {own}, which is never passed on: ask for that path.")
    async with account.plan.transport.send(replace(request, may_go=may_go), timeout=CREATE_SECONDS) as reply:
        yield _Told(reply, _secrets(request.headers))


def _secrets(headers: Mapping[str, str]) -> tuple[str, ...]:
    """
    The key that stands in those headers, without the word before it.
    """
    given = [value.rpartition(" ")[2] for name, value in headers.items() if name.lower() in CREDENTIALS]
    return tuple(secret for secret in given if len(secret) >= LEAST_SECRET_CHARACTERS)


def _own_path(account: Account, method: str, path: str, url: str) -> str | None:
    """
    The path of the door's own call that the provider may read in that address, though it is spelt in another way or
    lacks what the base address begins with: passed on, it would be paid for outside of the tasks.
    """
    door, adapter = account.plan.door, account.plan.adapter
    read = urlsplit(url).path
    asked = _EXTRA.sub("", unquote(read))
    # A path that begins as the base address ends is shortened, and may then be that of another call.
    is_whole = read == urlsplit(adapter.pass_on(method, "/", "", {}, b"").url).path.rstrip("/") + path
    for route in () if door is None else door.routes:
        # What only deletes is not paid for, and may have the form of another path: `/videos/{id}`, `/videos/edits`.
        if route.method in _LOOKS or (route.method == "DELETE" and method != "DELETE"):
            continue
        if route.handler is elsewhere:
            # Spelt as the door has it, it is none of the later routes'.
            if is_whole and re.fullmatch(_pattern(route.path), path):
                return None
            continue
        # The base address names the version where the door takes any.
        for way in {route.path, route.path.removeprefix("/{version}")}:
            own = adapter.pass_on(route.method, way, "", {}, b"").url
            if re.fullmatch(_pattern(urlsplit(own).path), asked, re.IGNORECASE):
                return route.path
    return None


def _pattern(path: str) -> str:
    """
    What a route's path stands for. Servers differ in whether small and capital letters are one.
    """
    return "".join(
        re.escape(part) if not part.startswith("{") else ".+" if part.endswith(":path}") else "[^/]+"
        for part in _PLACE.split(path)
    )
