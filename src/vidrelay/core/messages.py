"""
The shapes of calls that adapters write, the transport sends, and doors will answer with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

API_REPLY_BYTES = 4 * 1024 * 1024
LIST_REPLY_BYTES = 32 * 1024 * 1024
CLIP_REPLY_BYTES = 64 * 1024 * 1024
"""An answer that may hold a whole clip: base64 makes four bytes of three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFile:
    """
    A file part of a multipart form, named by the asset (`sha256:…`) whose bytes the transport puts there.
    """

    name: str
    asset: str
    filename: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """
    A multipart/form-data body: text fields in order, then files.
    """

    fields: tuple[tuple[str, str], ...] = ()
    files: tuple[FormFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """
    In the value of a `Json` body: stands for the text of an asset's bytes in base64, with `prefix` before it
    (`data:image/png;base64,` makes a data URI, nothing the bare base64 that some want).
    """

    asset: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """
    A JSON body: any JSON value, in which each `Inline` is written by the transport as it sends, so that no picture is
    held in memory.
    """

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """
    An asset's bytes as they are, for a signed PUT.
    """

    asset: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """
    How an answer that comes bit by bit is listened to: until its body ends or breaks off, `enough` says yes to what has
    come so far, or so many seconds have passed since it began. What has come by then is the answer's body.
    """

    seconds: float
    enough: Callable[[bytearray], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """
    One call to make. Headers and body stay out of its repr: they hold keys and prompts.

    `creates` marks the one call that costs money: it is sent once, over HTTP/1.1, and never repeated by the transport.
    `max_reply_bytes` bounds the answer that `Reply.read` takes in. `may_go`, where it is set, is asked when the way is
    open and nothing has been sent: unless it says yes, the call fails then. `signed` makes headers of the whole body's
    SHA-256 (in hex), for providers whose signature covers it; it is asked when the call leaves. `asks` marks one that
    only asks though its method does not say so, as where every call is a POST: it takes its turn with the account's
    other status requests. `held` listens to the body as it comes; such a call may go to a `ws://` or `wss://`
    address, whose text messages are the body, one a line, under status 101. `unwrap`, of a result's download, takes the
    file out of an answer that holds it; it returns None where that does not.
    """

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | Form | Json | Blob | None = field(default=None, repr=False)
    creates: bool = False
    asks: bool = False
    max_reply_bytes: int = API_REPLY_BYTES
    held: Held | None = field(default=None, compare=False)
    may_go: Callable[[], bool] | None = field(default=None, repr=False, compare=False)
    signed: Callable[[str], Mapping[str, str]] | None = field(default=None, repr=False, compare=False)
    unwrap: Callable[[bytes], bytes | None] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """
    A whole answer as an adapter reads it; header names are in lower case.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
