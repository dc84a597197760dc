"""
What memory holds of a live task beside its record: when it is due, and what its provider last said.

Nothing here survives a restart, and nothing needs to: polling writes nothing.
"""

from dataclasses import dataclass, field

from vidrelay.core.adapter import PollOutcome
from vidrelay.core.lifecycle import StillRunning
from vidrelay.core.task import Blocked, RemoteState

NOT_HELD = float("-inf")
MAX_UNCHANGED_STEP = 120.0
"""The most of a gap between two polls that counts as time without a change: a sleep or a pause counts no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """
    What a list told of a task, and in which monotonic second.
    """

    outcome: PollOutcome
    at: float


@dataclass(slots=True, kw_only=True)
class Track:
    """
    One live task's volatile side; instants are monotonic seconds.

    `supply_from`: before it no upload of its pictures begins again. `new_copies`: the references that were uploaded for
    it, which no refused create is put down to until `new_until`; `renewed`: its create was refused, and the copies that
    it named are made anew. `fresh_place`: its place was taken by this process, at `placed_at`, and nothing has been
    sent. `since`: when the provider accepted it, by the wall clock of `aged_from`, from when on this life has watched
    it. `asked_at`: when it was last polled, `began_at`: when that call began, `turn_at`: the turn it has for that among
    the account's other tasks, `held_until`: till when the provider asked to leave it alone. `alone`: a list has not
    told of it, so it is polled by itself next; `mail`: what another task's list told of it, not looked at yet;
    `listed`: the last that was heard of it came of a list. `ask_first`: the wish to cancel it could not be delivered,
    so it is asked how it is doing before that is tried again; `unless_begun`: it goes on where its provider has begun
    it. `lost_at`: when its create was lost, or this life of the relay first knew of it, `lost_before`: how long it was
    lost then, in seconds of the wall clock; `looked`: how long after `lost_at` it was last looked for. `unchanged`:
    seconds without any sign of life, time not watched left out. `hints`: polls made sooner because of the provider's
    estimate. `troubles`, `missing`, `renewals`, `bad`: tries in a row that did not work; `bad_since`: when the first of
    those came that gave no whole file; `unfetched`: why the result was not to be had when it was last asked for.
    `candidates`: what the last look for a lost create found and could not settle.
    """

    due: float = 0.0
    busy: bool = False
    again: bool = False
    supply_from: float = 0.0
    new_copies: frozenset[str] = frozenset()
    new_until: float = float("-inf")
    renewed: bool = False
    fresh_place: bool = False
    placed_at: float = 0.0
    since: float | None = None
    aged_from: float = 0.0
    polls: int = 0
    asked_at: float = float("-inf")
    began_at: float = float("-inf")
    turn_at: float | None = None
    held_until: float = NOT_HELD
    alone: bool = False
    mail: Mail | None = None
    listed: bool = False
    ask_first: bool = False
    unless_begun: bool = False
    lost_at: float | None = None
    lost_before: float = 0.0
    looked: float = 0.0
    troubles: int = 0
    missing: int = 0
    renewals: int = 0
    bad: int = 0
    bad_since: float = 0.0
    address_dead: bool = False
    unfetched: Blocked | None = None
    says_done: bool = False
    progress: float | None = None
    queue_position: int | None = None
    eta_seconds: float | None = None
    eta_told_at: float = 0.0
    hints: int = 0
    unchanged: float = 0.0
    polled_at: float | None = None
    candidates: tuple[str, ...] = ()
    sign: tuple[RemoteState | None, float | None, int | None] | None = field(default=None)

    def lost_for(self, now: float) -> float:
        """
        Seconds since the create was lost, as far as this life of the relay can tell: the wall clock is not to be
        trusted with what must not be sent twice.
        """
        if self.lost_at is None:
            self.lost_at = now
        return now - self.lost_at

    def known(self) -> StillRunning | None:
        """
        How the task was doing when that was last heard; None if it was not heard yet.
        """
        if self.sign is None:
            return None
        state, progress, position = self.sign
        return StillRunning(remote_state=state, progress=progress, queue_position=position)

    def observe(self, seen: StillRunning, now: float) -> bool:
        """
        Take in a poll's answer; True if anything changed.
        """
        gap = 0.0 if self.polled_at is None else min(now - self.polled_at, MAX_UNCHANGED_STEP)
        sign = (seen.remote_state, seen.progress, seen.queue_position)
        changed = sign != self.sign
        self.unchanged = 0.0 if changed else self.unchanged + gap
        self.sign, self.polled_at = sign, now
        self.progress, self.queue_position = seen.progress, seen.queue_position
        self.eta_seconds, self.eta_told_at = seen.eta_seconds, now
        self.troubles = self.missing = 0
        return changed
