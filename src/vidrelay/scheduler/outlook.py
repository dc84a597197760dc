"""
What can be said of a live task beside its record: its place in line, the time left, and what holds it up.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import isinf

from vidrelay.core.clock import Clock
from vidrelay.core.estimate import in_line, remaining, told
from vidrelay.core.task import SHOWN_REASONS, Blocked, BlockReason, Eta, Standing, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.history import History
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.track import Track


class Outlook:
    """
    Says how live tasks stand.
    """

    def __init__(self, roster: Roster, accounts: Mapping[str, Account], history: History, clock: Clock) -> None:
        self._roster = roster
        self._accounts = accounts
        self._history = history
        self._clock = clock

    def place(self, task: Task) -> Standing:
        """
        As `standing`, without what has to be reckoned for it: the time that is left, and why it waits.
        """
        track = self._roster.track(task.id)
        if track is None or task.state not in (State.QUEUED, State.RUNNING):
            return Standing()
        if task.state is State.QUEUED:
            return Standing(ahead=self._roster.line.ahead(task.id))
        return Standing(progress=track.progress, queue_position=track.queue_position)

    def standing(self, task: Task) -> Standing:
        """
        What is known of the task beside its record.
        """
        track = self._roster.track(task.id)
        if task.ended or track is None:
            return Standing()
        match task.state:
            case State.QUEUED:
                blocked = self._blocked(task)
                return Standing(
                    ahead=self._roster.line.ahead(task.id),
                    eta=self._eta_in_line(task),
                    blocked=blocked,
                    waiting_for=self._waiting_for(task, blocked),
                )
            case State.RUNNING:
                blocked = self._blocked(task)
                return Standing(
                    progress=track.progress,
                    queue_position=track.queue_position,
                    eta=self._eta_running(task),
                    blocked=blocked,
                    waiting_for=blocked,
                )
            case State.UNCERTAIN:
                blocked = Blocked(reason=BlockReason.LOOKUP, until=self._next_due(track))
                return Standing(blocked=blocked, waiting_for=blocked, candidates=track.candidates)
            case State.DOWNLOADING:
                kept = self._kept_away(task, track)
                shown = kept is not None and kept.reason in SHOWN_REASONS
                return Standing(blocked=kept if shown else None, waiting_for=kept)
            case _:
                return Standing()

    def _next_due(self, track: Track) -> datetime | None:
        """
        When the task is next looked at; None when only a person can settle it.
        """
        left = track.due - self._clock.monotonic()
        return None if isinf(left) else self._clock.now() + timedelta(seconds=max(0.0, left))

    def _blocked(self, task: Task) -> Blocked | None:
        account = self._accounts.get(task.account)
        if account is None:
            return Blocked(reason=BlockReason.AUTH, detail=f"no account is named {task.account}")
        queued = task.state is State.QUEUED
        paused = account.blocked(creates=queued, now=self._clock.now(), monotonic=self._clock.monotonic())
        if paused is not None or not queued:
            return paused
        return self._full_window(task, account)

    def _kept_away(self, task: Task, track: Track) -> Blocked | None:
        """
        What keeps a result away: its account's rest where the provider itself has the file, else what was met when that
        was last asked for. A wait that is over is none: it is asked for again.
        """
        paused = self._blocked(task) if any(output.needs_key for output in task.outputs) else None
        if paused is not None or track.unfetched is None:
            return paused
        met = track.unfetched
        if met.until is None:
            return replace(met, until=self._next_due(track))
        return met if met.until > self._clock.now() else None

    def _waiting_for(self, task: Task, blocked: Blocked | None) -> Blocked | None:
        """
        Why a queued task stands still: by what is told of the provider rather than by the line, which that holds up.
        """
        account = self._accounts.get(task.account)
        if account is None or (blocked is not None and blocked.reason != BlockReason.WINDOW):
            return blocked
        return account.troubled(now=self._clock.now(), monotonic=self._clock.monotonic()) or blocked

    def _full_window(self, task: Task, account: Account) -> Blocked | None:
        """
        What a queued task waits for when its account is well: the window, till a place that time holds is given back
        if nothing runs in it; None when its turn is now.
        """
        key, now = (task.account, task.window), self._clock.now()
        running, held = self._roster.holding(key), self._roster.held(key, now)
        places = account.limit(task.window, self._clock.monotonic()).places
        ahead = self._roster.line.ahead(task.id)
        if ahead is None or (ahead == 0 and len(running) + len(held) < places):
            # It may have left the line since it was read.
            return None
        until = min((other.place_until for other in held if other.place_until is not None), default=None)
        return Blocked(reason=BlockReason.WINDOW, until=None if running else until)

    def _eta_running(self, task: Task) -> Eta | None:
        track = self._roster.track(task.id)
        if track is not None and track.eta_seconds is not None:
            return told(max(0.0, track.eta_seconds - (self._clock.monotonic() - track.eta_told_at)))
        return remaining(self._history.durations(task), self._elapsed(task))

    def _eta_in_line(self, task: Task) -> Eta | None:
        account, ahead = self._accounts.get(task.account), self._roster.line.ahead(task.id)
        if account is None or ahead is None:
            return None
        holding = [self._roster.get_live(other) for other in self._roster.holding((task.account, task.window))]
        return in_line(
            self._history.durations(task),
            ahead=ahead,
            places=account.limit(task.window, self._clock.monotonic()).places,
            busy=[self._elapsed(other) for other in holding if other is not None],
        )

    def _elapsed(self, task: Task) -> float:
        since = task.accepted_at or task.started_at
        return 0.0 if since is None else max(0.0, (self._clock.now() - since).total_seconds())
