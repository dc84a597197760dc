"""
What a task needs next, from where it stands: the one place that says so.

A dialogue in one direction: `decide` names a command, the scheduler's step carries it out, the outcome is an event, and
the task is looked at again.
"""

from dataclasses import dataclass
from datetime import datetime

from vidrelay.core.adapter import Dedupe, Traits
from vidrelay.core.task import CancelOutcome, State, Task

LOOKUP_SECONDS = (5.0, 15.0, 45.0, 120.0, 300.0, 600.0)
"""When a lost create is looked for, in seconds after it was lost (threats-and-faults section 5)."""


@dataclass(frozen=True, slots=True)
class Supply:
    """
    Upload the pictures that its create call will name: it is soon to have a place.
    """


@dataclass(frozen=True, slots=True)
class Submit:
    """
    Send the create call: the place was taken by this process and nothing has been sent for it.
    """


@dataclass(frozen=True, slots=True)
class Settle:
    """
    A create call of an earlier life of the relay has no answer here: take it for lost.
    """


@dataclass(frozen=True, slots=True)
class Find:
    """
    Look for the lost create at the provider.
    """


@dataclass(frozen=True, slots=True)
class Poll:
    """
    Ask how the running task is doing.
    """


@dataclass(frozen=True, slots=True)
class Fetch:
    """
    The create call was answered with the result itself: go on to download it.
    """


@dataclass(frozen=True, slots=True)
class Download:
    """
    Fetch the files.
    """


@dataclass(frozen=True, slots=True)
class Renew:
    """
    A file's address is dead: ask the provider for a fresh one.
    """


@dataclass(frozen=True, slots=True)
class CancelRemote:
    """
    Ask the provider to stop the task.
    """


@dataclass(frozen=True, slots=True)
class Outlive:
    """
    The task has ended here, and its remote job may run on in its place: ask whether that has ended too.
    """


@dataclass(frozen=True, slots=True)
class Rest:
    """
    Nothing that the scheduler can do: it waits in line, for a person, or has ended.
    """


Command = Supply | Submit | Settle | Find | Poll | Fetch | Download | Renew | CancelRemote | Outlive | Rest


def decide(
    task: Task, traits: Traits, now: datetime, *, fresh_place: bool, address_dead: bool, looked: float
) -> Command:
    """
    Say what the task needs now.

    `fresh_place`: this process took its place and has sent nothing for it. `address_dead`: its result's address did not
    answer any more. `looked`: how many seconds after its create was lost it was last looked for, as far as this process
    can tell.
    """
    match task.state:
        case State.QUEUED if traits.copies is not None:
            return Supply()
        case State.SUBMITTING:
            return Submit() if fresh_place else Settle()
        case State.UNCERTAIN:
            return _lookup(traits, looked)
        case State.RUNNING if task.outputs:
            return Fetch()
        case State.RUNNING if task.cancel is CancelOutcome.PENDING:
            return CancelRemote()
        case State.RUNNING:
            return Poll()
        case State.DOWNLOADING:
            return Renew() if address_dead else Download()
        case State.CANCELLED | State.EXPIRED if task.remote_id is not None and task.holds_place(now):
            return Outlive()
        case _:
            return Rest()


def _lookup(traits: Traits, looked: float) -> Command:
    """
    The next look-up of a lost create; after the last one only a person can settle it.
    """
    if traits.dedupe not in (Dedupe.LIST, Dedupe.CLIENT_ID):
        return Rest()
    if looked >= LOOKUP_SECONDS[-1]:
        return Rest()
    return Find()


def next_lookup(elapsed: float) -> float | None:
    """
    Seconds from now to the next look-up, `elapsed` seconds after the loss; None when there is none left.
    """
    return next((at - elapsed for at in LOOKUP_SECONDS if at > elapsed), None)
