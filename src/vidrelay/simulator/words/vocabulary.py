"""
What a vocabulary must be able to say, and the shapes it says it in.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from vidrelay.simulator.engine import Engine, Job, JobState, Turned
from vidrelay.simulator.faults import Place


class Why(StrEnum):
    """
    Why a call is refused, before any provider's words for it. A value that is none of these is a provider's own error
    code.
    """

    INVALID = "invalid"
    AUTH = "auth"
    RATE = "rate"
    BUSY = "busy"
    BALANCE = "balance"
    MODERATED = "moderated"
    NOT_FOUND = "not_found"
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    A call as it came, before it is known what it is; header names are in lower case. `body_sha256` (hex) is what a
    signature may cover.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call as the engine needs it. `query` and `fields` hold the last value of each name, `pairs` all that the query
    says; `pictures` counts files, `filenames` is what a form calls them.

    `data` is the JSON body, None where there is none; `key` is what the client sent, `host` the address it used, for
    addresses in replies; `what` is what the vocabulary's own `route` called it, where a place is several calls.
    """

    place: Place
    job_id: str | None = None
    what: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    pictures: int = 0
    filenames: tuple[str, ...] = ()
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    host: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """
    Which call it is, of which job; `open` needs no key.
    """

    place: Place
    job_id: str | None = None
    what: str = ""
    open: bool = False


Stream = Callable[[], tuple[list[Any], bool]]
"""What there is to say since it was asked last, message by message, and whether that was the end of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    What to reply: JSON (None: an empty body), or the clip of `clip` (its `index`-th output); with both, the clip stands
    in the JSON as base64, in the place of `CLIP`. A `stream` says it message by message instead. `job` is the one it is
    about, for the ledger.
    """

    status: int = 200
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    clip: Job | None = None
    index: int = 0
    job: Job | None = None
    stream: Stream | None = None


FILES = "/files/"
CLIP = "$clip"


@dataclass(frozen=True, slots=True)
class Words:
    """
    One provider's paths, fields and errors; what most have in common stands here.

    `DEFAULTS` are the provider's own limits as options (`window=5`); `STATUS_AT` and `ID_AT` say where in a reply the
    status word and the job's id stand; `SCHEME` is the word before the key in `Authorization`; `WEBSOCKETS` says that
    some of it is told on one.
    """

    engine: Engine
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    STATUS_AT: ClassVar[tuple[str, ...]] = ("status",)
    ID_AT: ClassVar[tuple[str, ...]] = ("id",)
    SCHEME: ClassVar[str] = "Bearer"
    WEBSOCKETS: ClassVar[bool] = False

    def route(self, asked: Asked) -> Route | None:
        """
        Which call that is; None where there is no such path. A result's own address is told apart before.
        """
        raise NotImplementedError

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        raise NotImplementedError

    def refuse(self, why: Why | str, message: str) -> Answer:
        """
        Say an error in the provider's form: a reason of ours, or the provider's own code.
        """
        raise NotImplementedError

    def error(self, status: int, message: str) -> Answer:
        """
        Say that status in the provider's form.
        """
        return Answer(status=status, data=self.refuse(Why.SERVER, message).data)

    def key(self, asked: Asked) -> str | None:
        """
        The key a client sent.
        """
        scheme, _, key = asked.headers.get("authorization", "").partition(" ")
        return key.strip() or None if scheme.lower() == self.SCHEME.lower() else None

    def turned(self, turned: Turned) -> Answer:
        """
        Say that a request was turned away by the rate or the window.
        """
        if turned.why == "busy":
            return self.refuse(Why.BUSY, "Too many videos are running for this key.")
        return self.refuse(Why.RATE, "Rate limit reached for requests.")

    def word(self, data: Any, word: str) -> Any:
        """
        The same reply with another status word in it.
        """
        return _with(data, self.STATUS_AT, word)

    def inline(self, answer: Answer) -> Answer:
        """
        The same answer with a finished job's clip in it, where the provider may send it so.
        """
        return answer

    def identity(self, data: Any, job_id: str | None) -> Any:
        """
        The same reply with another id in it, or with none.
        """
        return _with(data, self.ID_AT, job_id)

    # Results

    def file_url(self, job: Job, call: Call, index: int = 0) -> str:
        """
        A result's signed address; it dies after the option `url_seconds`, and needs no key.
        """
        kept = self.engine.options.url_seconds
        until = "never" if kept is None else f"{self.engine.now() + kept:.3f}"
        signature = self._signature(job, str(index), until)
        return f"http://{call.host}{FILES}{job.id}/{index}.mp4?expires={until}&sig={signature}"

    def file(self, call: Call) -> Answer:
        """
        Answer a result's signed address.
        """
        job_id, _, index = (call.job_id or "").partition("/")
        job = self.engine.jobs.get(job_id)
        until = call.query.get("expires", "")
        if job is None or job.state is not JobState.DONE or call.query.get("sig") != self._signature(job, index, until):
            return Answer(status=403, data={"message": "The signature does not match."})
        if until != "never" and self.engine.now() > float(until):
            return Answer(status=403, data={"message": "Request has expired."}, job=job)
        return Answer(clip=job, index=int(index), job=job)

    def _signature(self, job: Job, index: str, until: str) -> str:
        return hashlib.sha256(f"{self.engine.options.seed}:{job.id}:{index}:{until}".encode()).hexdigest()[:32]


def file_route(asked: Asked) -> Route | None:
    """
    The route of a result's signed address, which is the same for every provider.
    """
    if asked.method != "GET" or not asked.path.startswith(FILES) or not asked.path.endswith(".mp4"):
        return None
    named = asked.path.removeprefix(FILES).removesuffix(".mp4")
    job_id, _, index = named.partition("/")
    return Route(place=Place.CONTENT, job_id=named, what="file", open=True) if job_id and index.isdigit() else None


def _with(data: Any, where: tuple[str, ...], value: Any) -> Any:
    if not isinstance(data, dict):
        return data
    name, *rest = where
    if rest:
        return {**data, name: _with(data.get(name), tuple(rest), value)}
    left = {one: inner for one, inner in data.items() if one != name}
    return left if value is None else {**left, name: value}


def iso(seconds: float) -> str:
    """
    Unix seconds as `2026-11-01T10:00:00.000Z`.
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def texts_in(value: Any) -> list[str]:
    """
    Every text in that JSON value, however deep.
    """
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts_in(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts_in(inner)]
    return [value] if isinstance(value, str) else []
