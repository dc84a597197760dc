"""
What the scheduler asks of a provider and what it may hear: port Adapter, and the outcomes of its conversations.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar

from vidrelay.core.lifecycle import (
    Absent,
    Accepted,
    Answered,
    Cancelled,
    CancelTooLate,
    Failed,
    Found,
    Ready,
    StillRunning,
)
from vidrelay.core.messages import HttpReply, HttpRequest
from vidrelay.core.task import Asset, BlockReason, JsonObject, RemoteFile, Request, Task

T = TypeVar("T")

Conversation = Generator[HttpRequest, HttpReply, T]
"""An adapter's exchange with its provider: yields requests, is sent each reply, returns what came of it."""


class Dedupe(StrEnum):
    """
    How a provider tells a repeated create apart (threats-and-faults section 5).

    `replay`: the same key gets the first answer. `reject`: a duplicate is refused. `client_id`: our id can be looked
    up. `list`: recent jobs can be listed and compared. `none`: a lost create cannot be settled without a person.
    """

    REPLAY = "replay"
    REJECT = "reject"
    CLIENT_ID = "client_id"
    LIST = "list"
    NONE = "none"


class Scope(StrEnum):
    """
    What a pause of an account stops: new creates only, or every call.
    """

    CREATES = "creates"
    CALLS = "calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRule:
    """
    What a provider takes as a picture; a larger one, or one of another type, is sent as a scaled copy of a type it
    takes. `max_edge` is pixels; None for what it does not limit.
    """

    max_edge: int | None = None
    max_bytes: int | None = None
    media_types: frozenset[str] = frozenset({"image/jpeg", "image/png", "image/webp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """
    What a provider can do and how it wants to be treated.

    `copies` is how long the provider keeps a picture that was uploaded to it, and None where pictures go along with the
    create call; `lists` says that one call tells how all running tasks are doing (`poll_many`); `follows` that a call
    can last until there is news (`follow`), of all tasks together where it also lists; `can_check` that the key can be
    tried without paying (`check`), and `tells_quota` that this tells what is left to spend as well.

    `poll_floor` is the least time between two polls of a job in seconds, `poll_spacing` that between any two status
    requests (polls, lists) of the account, both 0 for a server on one's own machine; `longest_run` is the longest a job
    can take there, `irrelevant` names parameters that never make two requests different (client ids, callback
    addresses), `prompts` the parameters that hold typed text, which are normalised for the fingerprint.

    `media` is what it takes as bytes beside pictures, `video` and `audio`, each with the most bytes that one may have;
    what is not in it goes by its address.
    """

    dedupe: Dedupe = Dedupe.NONE
    can_cancel: bool = False
    poll_floor: float = 1.0
    poll_spacing: float = 0.5
    longest_run: timedelta = timedelta(minutes=30)
    hosts: tuple[str, ...] = ()
    irrelevant: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset({"prompt", "negative_prompt"})
    pictures: PictureRule | None = None
    media: Mapping[str, int] = field(default_factory=dict)
    copies: timedelta | None = None
    lists: bool = False
    follows: bool = False
    can_check: bool = False
    tells_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """
    A request in a provider's own words: its model (the window's and the history's key) and every parameter as sent.

    `seconds` is the clip's length where the words tell it, for the price.

    A picture, film or sound stands in `parameters` as `{"$asset": "sha256:…", "mediaType": "image/png"}`
    (`asset_parameter`): so a task tells its fingerprint, and the adapter what to send, without looking anything up.
    Where they are uploaded first (`Traits.copies`), the task that `submit` is given has the provider's own reference
    beside it, as `"$copy"`.
    """

    model: str | None
    parameters: JsonObject
    seconds: float | None = None


def asset_parameter(asset: Asset) -> dict[str, str]:
    """
    How a picture stands in a task's parameters.
    """
    return {"$asset": asset.id, "mediaType": asset.media_type}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """
    The provider surely did not carry out the call, and a later one may work: the account pauses.

    `retry_after` is seconds as the provider told, or None.
    """

    scope: Scope
    reason: BlockReason
    detail: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """
    A call that changes nothing did not work this time (a 5xx, an unreadable answer); it is tried again.

    `is_done` tells that the provider did answer, that the job is done, though not where its file is: so it may stay for
    ever, and is given up in time as a job that shows no progress is.
    """

    detail: str
    retry_after: float | None = None
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotThere:
    """
    The provider says that it does not know the task.
    """

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """
    A look-up did not settle a lost create yet; `candidates` are remote ids that may be it.
    """

    detail: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """
    The create call's answer does not say whether it was carried out (5xx, a 2xx without an id, a redirect).
    """

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """
    A picture was uploaded: `reference` is what stands for it in a create call.
    """

    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """
    What an account may still spend at its provider, as that tells it.

    `left` counts `unit`: money by its currency code (`USD`), else the provider's own word (`credits`, `units`).
    `resets_at` is when it is full again; None where the provider does not say, or that never comes by itself.
    """

    left: float
    unit: str
    resets_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """
    The provider took the key; `detail` is what it told of the account, in a few words (a balance, say), and `quota`
    what is left to spend, where it tells that.
    """

    detail: str = ""
    quota: Quota | None = None


SubmitOutcome = Accepted | Answered | Failed | Refused | Unknown
PollOutcome = StillRunning | Ready | Failed | NotThere | Refused | Trouble
FindOutcome = Found | Absent | Undecided | Refused | Trouble
CancelResult = Cancelled | CancelTooLate | Refused | Trouble
UploadOutcome = Copied | Failed | Refused | Trouble
PollManyOutcome = Mapping[str, PollOutcome] | Refused | Trouble
"""By task id; a task that is not in it is asked for by itself."""
CheckOutcome = Checked | Refused | Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """
    What a look-up for a lost create may go by.

    `sent_at` and `lost_at` bound when it was made; `owned` are remote ids that belong to other tasks of ours. How long
    ago it was lost, in seconds: `elapsed` is what this life of the relay has seen pass, never more than it is, and so
    what absence may be judged by; `lost_ago` is what the wall clock tells of the time before as well, right unless that
    was set, and so what the two clocks may be compared by.
    """

    sent_at: datetime
    lost_at: datetime
    elapsed: float
    lost_ago: float
    owned: frozenset[str]


class Adapter(Protocol):
    """
    One account's way to its provider: builds requests and reads replies, sends nothing (port Adapter).

    It holds the account's key and writes it into the headers of the requests it builds.
    """

    traits: Traits
    key_note: str | None
    """What a person should know of the account's key, in words that do not show it; None where there is nothing."""

    def prepare(self, request: Request, assets: Mapping[str, Asset]) -> Prepared:
        """
        Say the request in the provider's words, defaults filled in.

        `assets` gives, by each reference's own asset id, the picture to send for it: itself or a copy that fits
        `traits.pictures` (its `id` is the copy's, its `pixels` the original's).

        Raises:
            InvalidRequest: The provider cannot do it; names the parameter and what it accepts.
        """
        ...

    def typed(self, parameters: JsonObject) -> JsonObject:
        """
        The same parameters, each of the type that it is sent as, so that what is the same create call has the same
        fingerprint: where a form goes out, a number is a text. They come of `prepare`, or of a door.
        """
        ...

    def submit(self, task: Task) -> Conversation[SubmitOutcome]:
        """
        Make the task at the provider. Exactly one of its requests is marked `creates`.
        """
        ...

    def poll(self, task: Task) -> Conversation[PollOutcome]:
        """
        Ask how the task is doing.
        """
        ...

    def find(self, task: Task, search: Search) -> Conversation[FindOutcome]:
        """
        Look for a create whose answer was lost.
        """
        ...

    def cancel(self, task: Task) -> Conversation[CancelResult]:
        """
        Ask the provider to stop the task. Called only where `traits.can_cancel`.
        """
        ...

    def download(self, task: Task, output: RemoteFile) -> HttpRequest:
        """
        The request that fetches one output.
        """
        ...

    def valid_id(self, remote_id: str) -> bool:
        """
        Whether this may be an id of the provider's, and so may stand in an address.
        """
        ...

    def limits(self) -> Conversation[Mapping[str, int] | None]:
        """
        Ask for the account's windows by model (`*` for all); None where the provider does not tell.
        """
        ...

    def poll_many(self, tasks: Sequence[Task]) -> Conversation[PollManyOutcome]:
        """
        Ask how all these tasks are doing, in as few calls as it takes. Called only where `traits.lists`.
        """
        ...

    def follow(self, tasks: Sequence[Task], known: Mapping[str, StillRunning]) -> Conversation[PollManyOutcome]:
        """
        Wait until one of these tasks is doing otherwise than is `known` of it (by task id), though not for long, and
        say how all of them are doing. Called only where `traits.follows`, and with one task unless `traits.lists`. What
        does not work out (a stream that is refused, empty, odd) is Trouble: `poll` is asked then.
        """
        ...

    def upload(self, picture: Mapping[str, str]) -> Conversation[UploadOutcome]:
        """
        Give the provider a picture (`asset_parameter`), so that creates can refer to it. Only where `traits.copies`.
        """
        ...

    def pass_on(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> HttpRequest:
        """
        A call of an SDK's that no door answers, with the account's key. `path` is the SDK's own, `query` as it came.
        """
        ...

    def check(self) -> Conversation[CheckOutcome]:
        """
        Find out whether the key is taken, without paying. Called only where `traits.can_check`.
        """
        ...
