"""
How running tasks are asked for: each by itself, by one list call for all of an account's that are due, or by a call
that lasts until there is news.

Theory of operation. A task's step asks for that task alone; it knows nothing of others. Where the provider lists, the
step that comes first asks for every task of the account that is due, or nearly, and none of them asks by itself
meanwhile: a step that comes later waits for the list. What the list tells of other tasks is put beside them as mail,
and they are made due, so that each takes its own answer through its own step as if it had polled. A task that the list
leaves out is polled by itself next, and so are all after trouble with a list: a list may lag, be cut off, or be broken
where polls are not. So no list ever says that a job is not there.

A call that lasts (`following.py`) is a list too, of one task where the provider cannot do better: what it does not
tell, and what goes wrong with it, is asked for by a poll next. It is for every running task of the account that has
been heard of; where it is for several, a task that comes later breaks it off, asks in the ordinary way, and is in the
next.
"""

import asyncio
from dataclasses import dataclass, field, replace

from vidrelay.core.adapter import NotThere, PollManyOutcome, PollOutcome, Refused, Trouble
from vidrelay.core.errors import TransportError
from vidrelay.core.lifecycle import StillRunning
from vidrelay.core.task import CancelOutcome, RemoteState, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import Sending
from vidrelay.scheduler.tools import Tools
from vidrelay.scheduler.track import Mail, Track

FOREVER = float("inf")
MAIL_SECONDS = 5.0
"""Mail that has not been looked at by then says nothing any more."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Round:
    """
    A list call under way, and the tasks that it is for. `lasts`: until there is news.
    """

    account: str
    lasts: bool
    tracks: dict[str, Track]
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Asker:
    """
    Polls for running tasks, as seldom as it can.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._rounds: dict[str, _Round] = {}
        self._polled: set[str] = set()
        self._turns: dict[str, float | None] = {}

    async def ask(self, task: Task, track: Track, account: Account, *, follow: bool = False) -> PollOutcome | float:
        """
        How the task is doing; or the seconds that it has to wait before it can be asked for. With `follow` the call may
        last until there is news.
        """
        while (under_way := self._rounds.get(task.id)) is not None:
            await under_way.over.wait()
            if under_way.lasts and track.mail is None:
                return 0.0  # what broke it off may have changed what the task needs
        now = self._tools.clock.monotonic()
        told = _opened(track, now)
        if told is not None:
            return told
        # Whatever made it due (a wish, a jump of the clock, a lifted pause) does not outweigh the provider's floor.
        early = max(self.early(track, account), track.asked_at + account.plan.adapter.traits.poll_floor - now)
        if early > 0:
            return early
        wait = self._turn_in(track, account, now)
        if wait > 0:
            return wait
        while follow and not track.alone and (lasting := self._lasting_without(task, account)) is not None:
            self._tools.follower.break_off(account=account.name)
            await lasting.over.wait()
        if follow and not track.again and self._may_follow(task, track, account):
            return await self._ask_together(task, track, account, self._mates(task, account, now), lasts=True)
        others = self._others(task, track, account, now)
        if others:
            return await self._ask_together(task, track, account, others, lasts=False)
        return await self._poll(task, track, account)

    def _lasting_without(self, task: Task, account: Account) -> _Round | None:
        """
        The account's call that lasts, where the task could be in it and is not.
        """
        if task.id in self._rounds or not account.plan.adapter.traits.lists:
            return None
        return next((one for one in self._rounds.values() if one.lasts and one.account == account.name), None)

    def _may_follow(self, task: Task, track: Track, account: Account) -> bool:
        """
        Whether a call for the task may last.
        """
        heard_of = track.sign is not None and not track.alone
        works = account.plan.adapter.traits.follows and self._tools.follower.may_follow(account.name)
        return works and heard_of and not account.rests() and not task.ended and self._runs(task)

    def _mates(self, task: Task, account: Account, now: float) -> dict[str, tuple[Task, Track]]:
        """
        The account's other tasks that a call which lasts is for as well.
        """
        traits, found = account.plan.adapter.traits, {}
        for task_id, track in self._tools.roster.active() if traits.lists else ():
            other = self._tools.roster.get_driven(task_id)
            busy = task_id in self._rounds or task_id in self._polled
            if other is None or other.account != account.name or task_id == task.id or busy:
                continue
            left_alone = track.held_until > now or now - track.asked_at < traits.poll_floor or track.mail is not None
            if not left_alone and self._may_follow(other, track, account):
                found[task_id] = other, track
        return found

    def early(self, track: Track, account: Account) -> float:
        """
        Seconds till the account's rest is over, and what the provider asked for after trouble with this task.
        """
        now = self._tools.clock.monotonic()
        rest = account.rest(creates=False, monotonic=now)
        if rest > 0:
            track.turn_at = self._turns[account.name] = None
            return rest + self._tools.chance()
        return max(0.0, track.held_until - now)

    def _turn_in(self, track: Track, account: Account, now: float) -> float:
        """
        Seconds until the task's turn among the account's status requests.

        Where one call can be for all, they have one turn together: a turn that each took would be wasted.
        """
        together = account.plan.adapter.traits.lists
        reserved = account.turn(self._turns.get(account.name) if together else track.turn_at, now)
        kept = reserved if reserved > now else None
        if together:
            self._turns[account.name] = kept
        else:
            track.turn_at = kept
        return reserved - now

    def _others(self, task: Task, track: Track, account: Account, now: float) -> dict[str, tuple[Task, Track]]:
        """
        The account's other tasks to be asked for by the same call; none where the task is to be polled by itself.

        One is nearly due when more than half of its wait is over. One whose floor has not passed yet is put off till it
        will have, counted from now: so those of one account keep step from the next call on, however high the floor is,
        and none waits longer than two floors.
        """
        traits = account.plan.adapter.traits
        if not traits.lists or track.alone or task.state is State.DOWNLOADING:
            return {}
        found = {}
        for task_id, other_track in self._tools.roster.active():
            other = self._tools.roster.get_driven(task_id)
            if other is None or task_id == task.id or other.account != account.name or not self._runs(other):
                continue
            busy = task_id in self._rounds or task_id in self._polled
            if busy or other_track.alone or other_track.held_until > now:
                continue
            waited = now - max(other_track.asked_at, other_track.placed_at)
            if waited >= max(traits.poll_floor, other_track.due - now):
                found[task_id] = other, other_track
            elif waited < traits.poll_floor and other_track.mail is None:
                other_track.due = max(other_track.due, now + traits.poll_floor)
        return found

    def _runs(self, task: Task) -> bool:
        if task.ended:
            return task.remote_id is not None and task.holds_place(self._tools.clock.now())
        return task.state is State.RUNNING and not task.outputs and task.cancel is not CancelOutcome.PENDING

    async def _poll(self, task: Task, track: Track, account: Account) -> PollOutcome | float:
        """
        One poll.
        """
        track.alone = track.listed = False
        heard, sending = self._begin(account, [track]), Sending()
        self._polled.add(task.id)
        try:
            outcome: PollOutcome = await self._tools.caller.converse(
                account, account.plan.adapter.poll(task), sending=sending
            )
        except TransportError as trouble:
            held = self._held_by_rest(account, trouble)
            if held > 0:
                return held
            outcome = Trouble(detail=trouble.message, retry_after=trouble.retry_after)
        finally:
            self._polled.discard(task.id)
            # The floor counts from when it left, which may be later than it was due.
            track.asked_at = max(track.asked_at, sending.asked_at)
        if not isinstance(outcome, Refused | Trouble):
            await self._tools.resumed(account, account.answered(heard))
        return outcome

    async def _ask_together(
        self, task: Task, track: Track, account: Account, others: dict[str, tuple[Task, Track]], *, lasts: bool
    ) -> PollOutcome | float:
        """
        One call for this task and the others; returns what it told of this one.
        """
        tracks = {task.id: track, **{task_id: other for task_id, (_, other) in others.items()}}
        round_ = _Round(account=account.name, lasts=lasts, tracks=tracks)
        self._rounds.update(dict.fromkeys(round_.tracks, round_))
        heard, sending = self._begin(account, list(round_.tracks.values()), probes=not lasts), Sending()
        tasks = [task, *(other for other, _ in others.values())]
        try:
            told = await (self._follow if lasts else self._list)(account, tasks, round_, sending)
            if told is None:
                return 0.0
            outcome = told
            self._deliver(round_, outcome)
        except TransportError as trouble:
            held = self._held_by_rest(account, trouble)
            if held > 0:
                return held
            outcome = Trouble(detail=trouble.message, retry_after=trouble.retry_after)
            if lasts:
                self._tools.follower.learn(account.name, works=False)
            self._deliver(round_, outcome)
        except Exception:
            # A bug in an adapter, or a list that breaks it: each is asked for by itself, which may work.
            for one in round_.tracks.values():
                one.alone = True
            raise
        finally:
            for task_id, one in round_.tracks.items():
                one.asked_at = max(one.asked_at, sending.asked_at)
                del self._rounds[task_id]
                if (lasts or one.mail is not None) and not one.busy:
                    # The loop looks again when the step that asked is over; one that is under way finds it by itself.
                    one.due = 0.0
            round_.over.set()
        if isinstance(outcome, Refused):
            return outcome
        if not isinstance(outcome, Trouble):
            await self._tools.resumed(account, account.answered(heard))
        seen = _opened(track, self._tools.clock.monotonic())
        return account.plan.adapter.traits.poll_floor if seen is None else seen

    async def _list(self, account: Account, tasks: list[Task], round_: _Round, sending: Sending) -> PollManyOutcome:
        return await self._tools.caller.converse(account, account.plan.adapter.poll_many(tasks), sending=sending)

    async def _follow(
        self, account: Account, tasks: list[Task], round_: _Round, sending: Sending
    ) -> PollManyOutcome | None:
        """
        A call that lasts until there is news; None if it was broken off.
        """
        known = {task_id: seen for task_id, track in round_.tracks.items() if (seen := track.known()) is not None}
        for track in round_.tracks.values():
            if not track.busy:
                # It is looked at again when the call is over.
                track.due = FOREVER
        talk = self._tools.caller.converse(account, account.plan.adapter.follow(tasks, known), sending=sending)
        outcome = await self._tools.follower.follow(account.name, list(round_.tracks), talk)
        if outcome is not None and not isinstance(outcome, Refused):
            # Of those that it tells nothing of, each may have ended in its own way; of all together, it does not work.
            works = not isinstance(outcome, Trouble) and not all(
                isinstance(outcome.get(task.id, Trouble(detail="")), NotThere | Trouble) for task in tasks
            )
            self._tools.follower.learn(account.name, works=works)
        return outcome

    def _begin(self, account: Account, tracks: list[Track], *, probes: bool = True) -> int:
        """
        Count a call for these tasks; returns how many refusals have been heard before it. One that `probes` is waited
        for by others after a rest.
        """
        now = self._tools.clock.monotonic()
        if probes:
            account.probe(now)
        for track in tracks:
            track.polls += 1
            track.began_at = now
        self._tools.store.count(polls=1)
        return account.heard()

    def _held_by_rest(self, account: Account, trouble: TransportError) -> float:
        """
        Seconds to wait where nothing was sent, since the account came to rest; else 0.
        """
        held = account.held(creates=False, monotonic=self._tools.clock.monotonic())
        return held + self._tools.chance() if held > 0 and not trouble.maybe_sent else 0.0

    def _deliver(self, round_: _Round, outcome: PollManyOutcome) -> None:
        """
        Put what a list told beside each of its tasks.
        """
        if isinstance(outcome, Refused):
            return  # it is the account's, and whose step asked says so
        now = self._tools.clock.monotonic()
        for task_id, track in round_.tracks.items():
            seen = outcome if isinstance(outcome, Trouble) else outcome.get(task_id)
            if seen is None or isinstance(seen, NotThere | Trouble):
                track.alone = True
            if seen is None or isinstance(seen, NotThere):
                continue
            track.listed = True
            track.mail = Mail(outcome=_as_known(seen, track), at=now)


def _opened(track: Track, now: float) -> PollOutcome | None:
    """
    The mail that a task has, looked at once.
    """
    mail, track.mail = track.mail, None
    return mail.outcome if mail is not None and now - mail.at <= MAIL_SECONDS else None


def _as_known(seen: PollOutcome, track: Track) -> PollOutcome:
    """
    What a list told, with what was known before where it tells less than a poll: or each would seem to be a change.
    """
    if not isinstance(seen, StillRunning) or track.sign is None:
        return seen
    state, progress, position = track.sign
    works = seen.remote_state is RemoteState.WORKING
    return replace(
        seen,
        remote_state=seen.remote_state or state,
        progress=progress if seen.progress is None else seen.progress,
        queue_position=position if seen.queue_position is None and not works else seen.queue_position,
    )
