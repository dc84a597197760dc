"""
Calls of an SDK's that no door answers, passed on to the provider with the account's key: not kept, not repeated.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from vidrelay.core.errors import InvalidRequest, TransportError
from vidrelay.core.network import Reply
from vidrelay.core.ports import Clock
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import CREATE_SECONDS

_PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,2000}")
_ASTRAY = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)|%2f|%5c|//", re.IGNORECASE)
"""What another server might read as the way to another place."""


@asynccontextmanager
async def pass_on(
    account: Account, clock: Clock, *, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> AsyncIterator[Reply]:
    """
    Send the call, once; the reply is read while the context lasts.

    Raises:
        InvalidRequest: Its path cannot be passed on.
        TransportError: It failed, or nothing was sent since the account rests.
    """
    if not _PATH.fullmatch(path) or _ASTRAY.search(path):
        raise InvalidRequest("This path cannot be passed on.")
    rest = account.rest(creates=False, monotonic=clock.monotonic())
    if rest > 0:
        raise TransportError("The account rests, so nothing is passed on.", maybe_sent=False, retry_after=rest)

    def may_go() -> bool:
        return account.held(creates=False, monotonic=clock.monotonic()) <= 0

    request = account.plan.adapter.pass_on(method, path, query, headers, body)
    async with account.plan.transport.send(replace(request, may_go=may_go), timeout=CREATE_SECONDS) as reply:
        yield reply
