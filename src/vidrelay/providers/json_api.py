"""
What adapters of JSON over HTTP share: how a call is written, what few providers have, and how a paid call's outcome is
read. A provider's adapter inherits it and says its own words.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from vidrelay.core.adapter import (
    CancelResult,
    CheckOutcome,
    Conversation,
    FindOutcome,
    PollManyOutcome,
    Search,
    Traits,
    Undecided,
    UploadOutcome,
)
from vidrelay.core.errors import ConfigError
from vidrelay.core.lifecycle import Cancelled, StillRunning
from vidrelay.core.messages import API_REPLY_BYTES, LIST_REPLY_BYTES, Form, HttpRequest, Inline, Json
from vidrelay.core.task import CancelOutcome, JsonObject, RemoteFile, Task
from vidrelay.providers.replies import content_at

ID = re.compile(r"[A-Za-z0-9._:=+~-]{1,512}")
"""What may stand in an address as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """
    What an account gives its adapter: the key itself, the address, the dialect; None for what the configuration does
    not say. `now` is the wall clock, for credentials that are made of the time.
    """

    now: Callable[[], datetime]
    key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    dialect: str | None = None


class BaseAdapter:
    """
    Fills port Adapter for what few providers have: nothing is told of limits, nothing is uploaded, no list, no stream,
    no look-up, no cancel, no check.
    """

    traits: Traits
    key_note: str | None = None

    def typed(self, parameters: JsonObject) -> JsonObject:
        """
        As they are: JSON keeps the types.
        """
        return parameters

    def valid_id(self, remote_id: str) -> bool:
        """
        Whether this may be an id, and so may stand in an address.
        """
        return ID.fullmatch(remote_id) is not None and remote_id not in (".", "..")

    def usable(self, remote_id: str | None) -> str | None:
        """
        The id, if it may be one; else None.
        """
        return remote_id if remote_id is not None and self.valid_id(remote_id) else None

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        Not told; nothing is sent.
        """
        return None
        yield  # makes this a conversation

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        There is no list; nothing is sent.
        """
        return {}
        yield  # makes this a conversation

    def follow(self, tasks: Sequence[Task], known: Mapping[str, StillRunning]) -> Conversation[PollManyOutcome]:
        """
        There is no call that lasts until there is news; nothing is sent.
        """
        return {}
        yield  # makes this a conversation

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        There is nothing to look in; nothing is sent.
        """
        return Undecided(detail="the provider has no list in which a lost create could be looked for")
        yield  # makes this a conversation

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        There is no call that stops a job; nothing is sent.
        """
        return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        yield  # makes this a conversation

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        Pictures go along with the create call.

        Raises:
            NotImplementedError: Always: `traits.copies` is None.
        """
        raise NotImplementedError
        yield  # makes this a conversation

    def pass_on(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> HttpRequest:
        """
        There is no door, so nothing is passed on.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError

    def check(self) -> Conversation[CheckOutcome]:
        """
        Nothing free can be asked.

        Raises:
            NotImplementedError: Always: `traits.can_check` is false.
        """
        raise NotImplementedError
        yield  # makes this a conversation


class JsonAdapter(BaseAdapter):
    """
    One account at an API of JSON over HTTP, with a key in a header.
    """

    def __init__(self, settings: AdapterSettings, *, base_url: str, versions: tuple[str, ...] = ()) -> None:
        """
        Speak to the account's own address, else to `base_url`.

        The account's may be written with or without what the API's addresses all begin with: the path of `base_url`
        is added where it names a host alone, and one of `versions` (such as `/v1`), which stand in the paths of the
        calls, is left out at its end.

        Raises:
            ConfigError: The address has no host.
        """
        self.key = settings.key
        self.base = (settings.base_url or base_url).rstrip("/")
        parts = urlsplit(self.base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"base_url must be an address such as {base_url}, not {self.base!r}.")
        if not parts.path:
            self.base += urlsplit(base_url).path
        version = next((one for one in versions if parts.path.endswith(one)), "")
        self.base = self.base.removesuffix(version).rstrip("/")

    def authorization(self) -> dict[str, str]:
        """
        The headers that hold the key.
        """
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def get(self, path: str, *, max_reply_bytes: int = API_REPLY_BYTES, **query: Any) -> HttpRequest:
        """
        A call that only asks. `path` begins with `/` and is quoted already; a `query` value of None is left out.
        """
        return self.call("GET", path, query=query, max_reply_bytes=max_reply_bytes)

    def post(
        self, path: str, body: Any, *, creates: bool = False, headers: Mapping[str, str] | None = None
    ) -> HttpRequest:
        """
        A call with a JSON body, in which pictures are `Inline`.
        """
        return self.call("POST", path, body=Json(value=body), creates=creates, headers=headers)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Json | Form | None = None,
        creates: bool = False,
        headers: Mapping[str, str] | None = None,
        max_reply_bytes: int = API_REPLY_BYTES,
    ) -> HttpRequest:
        """
        Any call to the API, with the key.
        """
        asked = urlencode({name: value for name, value in (query or {}).items() if value is not None}, quote_via=quote)
        told = {"Accept": "application/json", **self.authorization(), **(headers or {})}
        # A form says itself what it is.
        if isinstance(body, Json):
            told["Content-Type"] = "application/json"
        return HttpRequest(
            method=method,
            url=f"{self.base}{path}{'?' if asked else ''}{asked}",
            headers=told,
            body=body if not isinstance(body, Json) or _has_pictures(body.value) else _written(body.value),
            creates=creates,
            max_reply_bytes=max_reply_bytes,
        )

    def pass_on(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> HttpRequest:
        """
        The same call at the API, with the account's key. What the base address and the SDK's path both have (`/v1`)
        stands there once. It is sent once, as a paid one is: nobody here knows what it costs.
        """
        parts = urlsplit(self.base)
        ours, theirs = parts.path.strip("/").split("/") if parts.path.strip("/") else [], path.strip("/").split("/")
        shared = next(
            (count for count in range(min(len(ours), len(theirs)), 0, -1) if ours[-count:] == theirs[:count]), 0
        )
        rest = "/".join(theirs[shared:])
        return HttpRequest(
            method=method,
            url=f"{self.base}/{rest}{'?' if query else ''}{query}",
            headers={**headers, **self.authorization()},
            body=body or None,
            creates=method not in ("GET", "HEAD"),
            max_reply_bytes=LIST_REPLY_BYTES,
        )

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        The address as it is; the key goes to the API's own host alone, and only where the file wants it.
        """
        own = output.needs_key and output.url.startswith(self.base + "/")
        unwrap = None if output.inside is None else partial(content_at, place=output.inside)
        return HttpRequest(method="GET", url=output.url, headers=self.authorization() if own else {}, unwrap=unwrap)


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _has_pictures(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_pictures, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_pictures, value))
    return isinstance(value, Inline)
