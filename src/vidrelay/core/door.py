"""
A provider's own interface, spoken by the relay to that provider's SDKs: port Door, and the shapes of its calls.

The mirror image of an adapter. An adapter yields calls and is sent answers; a door is given a call, yields what it
wants of the relay (`Wish`), is sent what came of it, and returns the answer. So it waits for nothing and opens nothing,
and is tested with recorded bytes.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import CancelOutcome, JsonObject, Problem, RemoteState, Standing, State, Task

# What comes in -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Inlined:
    """
    A picture, film or sound that stands in a body as base64, bare or as a data URI: in a task's parameters, where it
    goes.

    `beside` is what the adapter keeps with its pictures, such as the model that an upload is for.
    """

    text: str = field(repr=False)
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    A file of a multipart form, which lies on the disk: `number` counts the form's files from 0.
    """

    number: int
    name: str
    filename: str
    media_type: str
    size_bytes: int
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """
    A picture, film or sound that the relay has, by its asset id or by the name that `Keep` gave it: one that was
    uploaded through the door before.
    """

    asset: str
    beside: Mapping[str, str] = field(default_factory=dict)


MediaInput = Inlined | Part | Kept
"""A picture, film or sound as a call brings it: which of them it is, its bytes say, once they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormBody:
    """
    A multipart form: its text fields in order, and its files.
    """

    fields: tuple[tuple[str, str], ...] = ()
    files: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorCall:
    """
    A call as a door sees it.

    `params` are the parts of the path that its route names, `query` and `headers` the first value of each name (header
    names in lower case), `queries` every value of each; `body` is the JSON value, a `FormBody`, or None. `base` is the
    door's own address, with no slash at its end, such as `http://127.0.0.1:61000/runway`. A body of another type stays
    unread until `Keep` takes it in.
    `fresh` is this call's own, for an id that is given out: 32 hexadecimal digits, of which the first 12 are the call's
    time in milliseconds since 1970 and the rest is random. A GET that only looks at one task may be given the answer
    again that the same call had before.
    """

    method: str
    path: str
    base: str
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    fresh: str = field(default="", repr=False)


# What a door wants of the relay --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """
    A create call, read.

    `prepared` is what the adapter's own `prepare` would have made of the same wish: the provider's parameters, in which
    a `MediaInput` stands wherever a file does. `prompt` is for people; `force` asks for another version.

    `known_as` is an id that the client chose itself: until the relay stops, the account's later wishes name the task by
    it too, the latest that was called so. `listener` names the client on the door's websocket that is told of it; None:
    all of them are.
    """

    prepared: Prepared
    prompt: str = ""
    force: bool = False
    known_as: str | None = None
    listener: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """
    Make a task, or be given the earlier one that answers. Sent back: its `View`.
    """

    new: NewTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """
    How a task of this account stands, once it has ended or `wait` seconds have passed. Sent back: its `View`.
    """

    task_id: str
    wait: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """
    The account's tasks, newest first, at most `limit`, those older than the task `after`. Sent back: their `View`s.
    """

    limit: int
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """
    The account's tasks that have not ended, oldest first. Sent back: their `View`s.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """
    Stop a task. Sent back: its `View`, with the outcome of this wish in `cancel`.

    `unless_begun`: not where its provider has begun it, and would make it to its end and bill it all the same.
    """

    task_id: str
    unless_begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """
    Let a result go: its files are deleted, its task stays. One that has not ended is stopped. Sent back: its `View`.
    """

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """
    Take in a picture, film or sound for later creates; None: the call's whole body. Sent back: the `Asset`.

    `name` is for SDKs that are told an upload's id before they send its bytes: until the relay stops, `Kept` finds the
    account's file by it too. Where it holds a `DoorCall.fresh`, no other file is called so; else the latest is.
    """

    media: MediaInput | None = None
    name: str | None = None


Wish = Submit | Look | Page | Live | Cancel | Forget | Keep


class Phase(StrEnum):
    """
    Where a task stands, in as few words as every SDK has some for. `uncertain` counts as waiting, until it is stale.
    """

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    A task as a door shows it.

    `standing` tells its place and its progress, not the time that is left or why it waits. `files` are addresses of its
    results at this relay, in order, which need no key; `gone` tells that the task is done and its files are not there
    any more; `stale` that it has been uncertain for so long that it is shown as failed. `cancel` is the outcome of the
    wish that this view answers.
    """

    task: Task
    standing: Standing
    files: tuple[str, ...] = ()
    gone: bool = False
    stale: bool = False
    cancel: CancelOutcome | None = None

    @property
    def phase(self) -> Phase:
        """
        Where it stands.
        """
        match self.task.state:
            case State.DONE:
                return Phase.DONE
            case State.FAILED:
                return Phase.FAILED
            case State.CANCELLED:
                return Phase.CANCELLED
            case State.EXPIRED:
                return Phase.EXPIRED
            case State.UNCERTAIN if self.stale:
                return Phase.FAILED
            case State.RUNNING if self.task.remote_state is RemoteState.WORKING:
                return Phase.WORKING
            case State.DOWNLOADING:
                return Phase.WORKING
        return Phase.WAITING

    @property
    def problem(self) -> Problem:
        """
        Why it failed, in words for people; for a task that failed, was cancelled or expired.
        """
        if self.task.error is not None:
            return self.task.error
        told = {
            Phase.CANCELLED: ("cancelled", "Cancelled", "The task was cancelled."),
            Phase.EXPIRED: ("expired", "Expired", "The provider showed no sign of life for too long."),
        }
        code, title, detail = told.get(self.phase, ("uncertain", "Uncertain", UNSETTLED))
        return Problem(code=code, title=title, detail=detail)


UNSETTLED = (
    "It is not known whether the provider carried out the create call, so it is not sent again by itself: "
    "settle it with `vidrelay resolve`."
)


# What goes out -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineFile:
    """
    In a `JsonReply`: stands for a result's file as a data URI, or as base64 alone where it is `bare`; where the file
    has more than `max_bytes`, for `instead`.
    """

    task_id: str
    index: int
    max_bytes: int
    instead: str | None
    bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAddress:
    """
    In a `JsonReply`: stands for an address at this door that needs no key, for SDKs that send an upload without one.
    It opens that path to that method alone, and ends with the token.
    """

    path: str
    method: str = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReply:
    """
    An answer of JSON; no body where `value` is None.
    """

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReply:
    """
    An answer that is a result's file, whole or in the part that was asked for.
    """

    task_id: str
    index: int = 0


DoorReply = JsonReply | FileReply
Answering = Generator[Wish, Any, DoorReply]
"""A door's part of one call: yields wishes, is sent what came of each (or thrown its error), returns the answer."""


class Handler(Protocol):
    """
    One route of a door.
    """

    def __call__(self, call: DoorCall) -> Answering:
        """
        Answer the call.

        Raises:
            VidrelayError: It cannot be answered as it came; `Door.write_error` says so in the provider's shape.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorRoute:
    """
    A method and path that a door answers. `{name}` in a path stands for one segment of it or a part of one,
    `{name:path}` for any number of them. The first route that fits counts.
    """

    method: str
    path: str
    handler: Handler = field(repr=False)


def elsewhere(call: DoorCall) -> Answering:
    """
    The handler of a path that the door does not answer, though a later route of its fits: as if none did. The server
    knows it by being this one, and never calls it.

    Raises:
        UnknownTask: Always.
    """
    yield from ()
    raise UnknownTask(f"There is nothing at {call.path}.")


class Door(Protocol):
    """
    One provider's interface as its SDKs know it (port Door). Pure.
    """

    routes: tuple[DoorRoute, ...]

    def write_error(self, problem: Problem, call: DoorCall) -> JsonReply:
        """
        An error in the provider's own shape.
        """
        ...


# A websocket, where the provider's interface has one ------------------------------------------------------------------


class Hearing(Protocol):
    """
    What one client on a door's websocket is told. Pure, but it remembers what it has told.
    """

    name: str
    """By which `NewTask.listener` means this client."""

    def greet(self, live: Sequence[View]) -> list[JsonObject]:
        """
        The first messages; `live` are the account's tasks that have not ended.
        """
        ...

    def count(self, live: int) -> list[JsonObject]:
        """
        The messages for how many of the account's tasks have not ended, if that is not what was told last.
        """
        ...

    def tell(self, view: View, *, known_as: str | None, anew: bool) -> list[JsonObject]:
        """
        The messages for how a task stands now, of those that were not told before.

        Args:
            view: The task.
            known_as: The id that this client gave it, None: none that is known.
            anew: It has just been asked for, so what was told of it before was for another call.
        """
        ...


@runtime_checkable
class SocketDoor(Door, Protocol):
    """
    A door with a websocket, at paths that end in `/ws`.
    """

    socket_paths: frozenset[str]

    def hearing(self, call: DoorCall) -> Hearing:
        """
        A client that has come in at one of those paths.
        """
        ...
