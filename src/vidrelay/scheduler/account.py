"""
One account: how many tasks it may have at its provider, and whether it rests.

Places are never counted here; the store counts them from the tasks. What is kept here is the limit they are held
against, and the pauses, which are the account's and not one task's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from vidrelay.core.adapter import Prepared, Refused, Scope
from vidrelay.core.pace import LONGEST_WAIT, backoff
from vidrelay.core.plan import AccountPlan
from vidrelay.core.ports import Pause
from vidrelay.core.task import SHOWN_REASONS, Blocked, BlockReason, Money
from vidrelay.scheduler.face import WindowSource
from vidrelay.scheduler.held import AGREES_SECONDS

ANY = "*"
LOWERED_FOR_SECONDS = 60.0
UNTOLD_REST_SECONDS = {BlockReason.AUTH: 300.0, BlockReason.BALANCE: 300.0}
"""How long an account rests when its provider says why but not how long: three calls in ten minutes at the most."""

LEAST_REST_SECONDS = 1.0
"""A rest lasts that long at least, also where a provider says 0 or names no poll floor: a refusal is never run into
again at once."""

PROBE_SECONDS = 15.0
FOREVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """
    A window's size and where it comes from.
    """

    places: int
    source: WindowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    """
    A pause as it is kept: till when by the monotonic clock, and the how manyth refusal it came of.
    """

    pause: Pause
    until: float
    number: int


class Account:
    """
    One account's limits and pauses.

    A pause is shown and stored with its end on the wall clock, and kept by the monotonic one, so that an adjusted clock
    neither ends nor stretches it. `monotonic` is seconds of that clock, given by the caller.
    """

    def __init__(self, plan: AccountPlan) -> None:
        self.plan = plan
        self.name = plan.name
        self._told: Mapping[str, int] | None = None
        self._pauses: dict[Scope, _Rest] = {}
        self._heard = 0
        self._refusals = 0
        self._lowered: dict[str, tuple[int, float]] = {}
        self._probing_until: float | None = None
        self._next_turn = self._left_at = float("-inf")

    # Limits

    def told(self, limits: Mapping[str, int] | None) -> None:
        """
        Take in what the provider says of the account's windows.
        """
        self._told = limits

    def window_of(self, model: str | None) -> str:
        """
        The window that tasks of this model share.
        """
        return model if model is not None and model in self._limits()[0] else ANY

    def windows(self) -> list[str]:
        """
        The names of the account's windows.
        """
        return sorted(self._limits()[0]) or [ANY]

    def limit(self, window: str, monotonic: float) -> Limit:
        """
        How many places the window has now.
        """
        limits, source = self._limits()
        places = limits.get(window, limits.get(ANY, 1))
        lowered = self._lowered.get(window)
        if lowered is not None and lowered[1] > monotonic and lowered[0] < places:
            return Limit(places=lowered[0], source=WindowSource.LOWERED)
        return Limit(places=places, source=source)

    def lower(self, window: str, places: int, monotonic: float) -> None:
        """
        The provider refused with so many running: go no higher for a while.
        """
        self._lowered[window] = max(1, places), monotonic + LOWERED_FOR_SECONDS

    def _limits(self) -> tuple[Mapping[str, int], WindowSource]:
        configured = self.plan.window.limits
        if configured is not None:
            return configured, WindowSource.CONFIGURED
        if self._told is not None:
            return self._told, WindowSource.PROVIDER
        return {ANY: 1}, WindowSource.DEFAULT

    # Pauses

    def restore(self, pause: Pause, *, now: datetime, monotonic: float) -> None:
        """
        Take up a pause that an earlier life of the relay kept: for as long as was told at the most, if the clock is set
        otherwise now.
        """
        if pause.until is None:
            self._pauses[pause.scope] = _Rest(pause=pause, until=FOREVER, number=self._heard)
            return
        longest = LONGEST_WAIT if pause.began_at is None else (pause.until - pause.began_at).total_seconds()
        left = min((pause.until - now).total_seconds(), longest, LONGEST_WAIT)
        pause = _ending(pause, now + timedelta(seconds=left))
        self._pauses[pause.scope] = _Rest(pause=pause, until=monotonic + left, number=self._heard)

    def mended(self, *, now: datetime, monotonic: float) -> list[Pause]:
        """
        Let the pauses end when they do by the wall clock too, after that was set; returns those that had to be mended.
        """
        mended = []
        for scope, kept in self._pauses.items():
            pause = _as_of(kept, now, monotonic)
            if pause is not kept.pause:
                self._pauses[scope] = replace(kept, pause=pause)
                mended.append(pause)
        return mended

    def refused(self, refusal: Refused, *, now: datetime, monotonic: float, chance: float) -> Pause:
        """
        Rest because the provider said so, or our own disk; returns the pause to keep.

        A refusal never shortens the rest that another asked for: a call that was under way already may be answered with
        less, or without any time.
        """
        self._heard += 1
        self._refusals += 1
        self._probing_until = None
        seconds = self._told_rest(refusal, chance)
        kept = self._pauses.get(refusal.scope)
        if kept is not None and kept.until > monotonic + seconds:
            self._pauses[refusal.scope] = replace(kept, number=self._heard)
            return kept.pause
        until = now + timedelta(seconds=seconds)
        pause = Pause(scope=refusal.scope, reason=refusal.reason, detail=refusal.detail, began_at=now, until=until)
        self._pauses[refusal.scope] = _Rest(pause=pause, until=monotonic + seconds, number=self._heard)
        return pause

    def _told_rest(self, refusal: Refused, chance: float) -> float:
        """
        The seconds to rest: as the provider told, between its poll floor and the longest wait; else as we think fit.
        """
        seconds = refusal.retry_after
        if seconds is None:
            untold = UNTOLD_REST_SECONDS.get(refusal.reason)
            seconds = untold if untold is not None else backoff(tries=self._refusals, chance=chance)
        return min(LONGEST_WAIT, max(LEAST_REST_SECONDS, self.plan.adapter.traits.poll_floor, seconds))

    def heard(self) -> int:
        """
        How many refusals have been heard. A call takes this along, so that its answer is known to be older than a
        refusal that came meanwhile.
        """
        return self._heard

    def answered(self, heard: int) -> tuple[Scope, ...]:
        """
        A call went through that was begun after so many refusals: the rest on calls that it was sent after is over, not
        one that began meanwhile. Returns the scopes of the pauses that end with it.
        """
        return self._went_through(heard, Scope.CALLS)

    def created(self, heard: int) -> tuple[Scope, ...]:
        """
        A create went through that was begun after so many refusals: no rest of before is left. Returns the scopes of
        the pauses that end with it.
        """
        return self._went_through(heard, Scope.CALLS, Scope.CREATES)

    def _went_through(self, heard: int, *scopes: Scope) -> tuple[Scope, ...]:
        if heard == self._heard:
            self._refusals = 0
            self._probing_until = None
        ended = tuple(scope for scope in scopes if scope in self._pauses and self._pauses[scope].number <= heard)
        for scope in ended:
            del self._pauses[scope]
        return ended

    def lift(self) -> None:
        """
        A person says that the reason is gone.
        """
        self._pauses.clear()
        self._lowered.clear()
        self._refusals = 0
        self._probing_until = None

    def pause(self, *, now: datetime, monotonic: float) -> Pause | None:
        """
        The pause to show: the wider one first.
        """
        kept = self._pauses.get(Scope.CALLS) or self._pauses.get(Scope.CREATES)
        return None if kept is None else _as_of(kept, now, monotonic)

    def held(self, *, creates: bool, monotonic: float) -> float:
        """
        Seconds that a pause still lasts for such a call; 0 if there is none.
        """
        return max([0.0, *(kept.until - monotonic for kept in self._kept(creates=creates))])

    def rest(self, *, creates: bool, monotonic: float) -> float:
        """
        Seconds that a call has to wait; 0 if it may go now.

        When a rest is over, one call goes first and the others wait for what becomes of it, so that many tasks do not
        all run into the same refusal.
        """
        held = self.held(creates=creates, monotonic=monotonic)
        if self._probing_until is None or not self._kept(creates=creates):
            return held
        return max(held, self._probing_until - monotonic)

    def rests(self) -> bool:
        """
        Whether no call has gone through since calls were told to rest.
        """
        return bool(self._kept(creates=False))

    def probe(self, monotonic: float) -> None:
        """
        A call goes out after a rest; others wait for its outcome, though not for ever.
        """
        if self._pauses:
            self._probing_until = monotonic + PROBE_SECONDS

    def turn(self, reserved: float | None, monotonic: float) -> float:
        """
        When a status request may leave: in the turn that was reserved for it, else in the next that is free.

        Those of all the account's tasks leave one after another, spaced as the adapter's traits say, so that many that
        fall due at once, after a sleep of the machine say, are no storm.
        """
        spacing = self.plan.adapter.traits.poll_spacing
        if reserved is None or reserved + spacing < monotonic:
            # None was reserved, or it was missed.
            reserved = max(monotonic, self._next_turn)
            self._next_turn = reserved + spacing
        return max(reserved, self._left_at + spacing)

    def leaves(self, monotonic: float) -> None:
        """
        A status request goes out now.
        """
        self._left_at = monotonic
        self._next_turn = max(self._next_turn, monotonic + self.plan.adapter.traits.poll_spacing)

    def blocked(self, *, creates: bool, now: datetime, monotonic: float) -> Blocked | None:
        """
        What holds the account's tasks, in the contract's words; a reason of our own (no network) is not shown there.
        """
        for kept in self._kept(creates=creates):
            if kept.pause.reason in SHOWN_REASONS and kept.until > monotonic:
                return _blocked(kept, now, monotonic)
        return None

    def troubled(self, *, now: datetime, monotonic: float) -> Blocked | None:
        """
        What keeps creates from being made that is no reason of the contract's: the provider cannot be reached, or does
        not answer as it should. It is told until something has gone through.
        """
        for kept in self._kept(creates=True):
            if kept.pause.reason not in SHOWN_REASONS and (kept.until > monotonic or self._refusals):
                return _blocked(kept, now, monotonic)
        return None

    def _kept(self, *, creates: bool) -> list[_Rest]:
        """
        The pauses that hold a call: every one for a create, those on all calls for another.
        """
        scopes = (Scope.CALLS, Scope.CREATES) if creates else (Scope.CALLS,)
        return [self._pauses[scope] for scope in scopes if scope in self._pauses]

    # Prices

    def cost(self, prepared: Prepared) -> Money | None:
        """
        What the clip costs, where the configuration says so.
        """
        price = self.plan.prices.get(prepared.model or ANY) or self.plan.prices.get(ANY)
        if price is None:
            return None
        amount = Decimal(price.amount)
        if price.per_second:
            if prepared.seconds is None:
                return None
            amount *= Decimal(str(prepared.seconds))
        return Money(amount=amount, currency=price.currency)


def _blocked(kept: _Rest, now: datetime, monotonic: float) -> Blocked:
    until = _as_of(kept, now, monotonic).until if kept.until > monotonic else None
    return Blocked(reason=kept.pause.reason, until=until, detail=kept.pause.detail or None)


def _as_of(kept: _Rest, now: datetime, monotonic: float) -> Pause:
    """
    The pause, with the end that it has by the wall clock as that is now, if it was set since.
    """
    left = kept.until - monotonic
    if kept.pause.until is None or left <= 0:
        return kept.pause
    until = now + timedelta(seconds=left)
    agrees = abs((kept.pause.until - until).total_seconds()) <= AGREES_SECONDS
    return kept.pause if agrees else _ending(kept.pause, until)


def _ending(pause: Pause, until: datetime) -> Pause:
    """
    The same pause, as long as it was, with another end on the wall clock.
    """
    if pause.began_at is None or pause.until is None:
        return replace(pause, until=until)
    return replace(pause, until=until, began_at=until - (pause.until - pause.began_at))
