"""
The loop: fill the windows, take what is due, run steps, sleep until the next is due.

Every step runs guarded: an exception in it is logged and the task is looked at again, so that no trouble of one task,
or of ours, stops the others or leaks a place.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

from vidrelay.core.disk import Files
from vidrelay.core.errors import DatabaseUnusable, DiskFull, StoreError
from vidrelay.core.pace import backoff
from vidrelay.core.task import CancelOutcome, State, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import CREATE_SECONDS
from vidrelay.scheduler.line import WindowKey, window_key
from vidrelay.scheduler.step import Stepper
from vidrelay.scheduler.tools import Tools
from vidrelay.scheduler.track import Track
from vidrelay.scheduler.waiting import either

logger = logging.getLogger(__name__)

MAX_STEPS = 128
"""How many steps run at once; more tasks than that wait their turn for a moment."""

LONGEST_SLEEP_SECONDS = 30.0
ALERT_SECONDS = 5.0
"""How soon a sleep of the machine is noticed while tasks are under way."""

CLOCK_JUMP_SECONDS = 20.0
AWAY_SECONDS = CREATE_SECONDS
"""After such a jump forward no call of before is answered any more: the other end has long given it up."""

LAST_WORD_SECONDS = 10.0
"""How long a create call of before is waited for all the same: what has arrived must be read, and if the clock was only
set, it is answered as ever."""

TROUBLE_SECONDS = 1.0
SUPPLIED_AHEAD = 4
"""So many of the first in line of a window have their pictures uploaded at once."""

TURN_SECONDS = 1.0
LEAST_WAIT_SECONDS = 0.001
FOREVER = float("inf")


class Loop:
    """
    Drives every live task.

    `unusable` is what ended it by itself: a database that nothing can be written to any more.
    """

    def __init__(
        self,
        *,
        tools: Tools,
        files: Files,
        new_id: Callable[[], str],
        accounts: dict[str, Account],
    ) -> None:
        self._tools = tools
        self._store = tools.store
        self._clock = tools.clock
        self._chance = tools.chance
        self._roster = tools.roster
        self._stepper = Stepper(tools)
        self._files = files
        self._new_id = new_id
        self._accounts = accounts
        self._wake = asyncio.Event()
        self._stopping = False
        self.unusable: DatabaseUnusable | None = None
        self._seen = self._clock.now(), self._clock.monotonic()
        self._steps: dict[str, asyncio.Task[float | None]] = {}
        self._late: dict[str, tuple[asyncio.Task[float | None], float]] = {}
        self._frees_at: dict[WindowKey, datetime | None] = {}
        self._unsupplied: dict[str, Track] = {}

    def wake(self, task_id: str | None = None) -> None:
        """
        Look again now: at every window, and at this task if one is named.
        """
        track = self._roster.track(task_id) if task_id is not None else None
        if track is not None:
            self._tools.follower.break_off(task_id=task_id)
            track.due = 0.0
            track.again = track.busy
        self._wake.set()

    def note(self, task: Task) -> None:
        """
        Look again now that this was committed, unless the task only joins a line whose first wait already. No call
        lasts for a task that has ended or is not wanted any more, though whoever said so may be gone.
        """
        if task.ended or task.cancel is CancelOutcome.PENDING:
            self._tools.follower.break_off(task_id=task.id)
        first = SUPPLIED_AHEAD if self._uploads(task.account) else 1
        if task.state is not State.QUEUED or self._roster.line.waiting(window_key(task)) <= first:
            self._wake.set()

    async def run(self) -> None:
        """
        Run until `stop`; then every step that is under way has ended.
        """
        self._seen = self._clock.now(), self._clock.monotonic()
        async with asyncio.TaskGroup() as group:
            while not self._stopping:
                self._wake.clear()
                try:
                    await self._turn(group)
                except DatabaseUnusable as problem:
                    self.fail(problem)
                except Exception:
                    # Whatever it was, the tasks are on disk and are looked at again.
                    logger.exception("loop.failed")
                    await self._clock.sleep(TROUBLE_SECONDS)

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        if self._notice_jump() > AWAY_SECONDS:
            await self._come_back()
        self._break_off_late()
        for account in self._accounts.values():
            await self._tools.mend_pauses(account)
        as_of = await self._places_agree()
        if as_of is not None:
            await self._fill_windows(as_of)
        for task_id, track in self._due():
            track.busy = True
            step = self._steps[task_id] = group.create_task(self._guarded(task_id))
            # Not at the end of the step itself: one that is broken off before it began has no such end.
            step.add_done_callback(partial(self._over, task_id))
        await either(self._wake, self._idle_seconds(), self._clock)

    def stop(self) -> None:
        """
        Take nothing new. Polls and downloads under way are broken off; a create call is waited for.
        """
        self._stopping = True
        self._wake.set()
        for task_id, step in self._steps.items():
            task = self._roster.get_live(task_id)
            if task is None or task.state is not State.SUBMITTING:
                step.cancel()

    def fail(self, problem: DatabaseUnusable) -> None:
        """
        Stop, since nothing can be saved any more.
        """
        if self.unusable is None:
            logger.critical("loop.unusable why=%s", problem.message)
            self.unusable = problem
            self.stop()

    def interrupt(self, task_id: str) -> None:
        """
        Break off what is being done for a task that has just ended: a download of what nobody wants any more.
        """
        step = self._steps.get(task_id)
        if step is not None:
            step.cancel()

    def abandon(self) -> None:
        """
        Break off even the create calls: their tasks become uncertain.
        """
        for step in self._steps.values():
            step.cancel()

    # Windows

    async def _places_agree(self) -> datetime | None:
        """
        The instant of the wall clock by which the stored places are those that are held; None where they cannot be
        mended, and then no place is given.
        """
        try:
            return await self._tools.held.mend()
        except DatabaseUnusable:
            raise
        except (DiskFull, StoreError) as problem:
            logger.warning("places.not_mended why=%s", problem.code)
            return None

    async def _fill_windows(self, as_of: datetime) -> None:
        self._unsupplied.clear()
        for key in self._roster.line.windows():
            account = self._accounts.get(key[0])
            if account is not None:
                await self._fill(key, account, as_of)

    async def _fill(self, key: WindowKey, account: Account, as_of: datetime) -> None:
        """
        Give places to the first in line while there is room, the account does not rest, and the disk has space.
        """
        self._frees_at.pop(key, None)
        if self._uploads(account.name):
            await self._look_for_unsupplied(key, account, as_of)
        taken = await self._take_places(key, account, as_of)
        if taken:
            self._roster.moved(key)

    async def _take_places(self, key: WindowKey, account: Account, as_of: datetime) -> int:
        taken = 0
        while self._roster.line.waiting(key) and not self._stopping:
            monotonic = self._clock.monotonic()
            limit = account.limit(key[1], monotonic).places
            if account.rest(creates=True, monotonic=monotonic) > 0 or not self._has_room(key, account, as_of):
                return taken
            if self._turn_in(account, monotonic) > 0:
                return taken
            if not self._tools.policy.cache.may_begin(self._files.free_bytes()):
                self._tools.rest_for_disk(account)
                return taken
            if self._uploads(account.name) and not await self._is_supplied(self._roster.line.first(key, 1), account):
                # Nobody behind it goes first: their pictures are uploaded meanwhile.
                return taken
            try:
                task = await self._store.take_place(
                    account=key[0], window=key[1], limit=limit, submission_key=self._new_id(), now=as_of
                )
            except DiskFull:
                self._tools.rest_for_disk(account)
                return taken
            except DatabaseUnusable:
                raise
            except StoreError as problem:
                logger.warning("window.waits account=%s why=%s", account.name, problem.message)
                return taken
            if task is None:
                _, self._frees_at[key] = await self._store.places(account=key[0], window=key[1], now=as_of)
                return taken
            track = self._roster.track(task.id)
            if track is not None:
                track.fresh_place, track.placed_at, track.due = True, monotonic, 0.0
                track.again = track.busy
            account.probe(monotonic)
            taken += 1
        return taken

    def _uploads(self, name: str) -> bool:
        """
        Whether the account's provider wants pictures before a create call names them.
        """
        account = self._accounts.get(name)
        return account is not None and account.plan.adapter.traits.copies is not None

    async def _look_for_unsupplied(self, key: WindowKey, account: Account, as_of: datetime) -> None:
        """
        Find those of the first in line that may soon have a place, and whose pictures have to be uploaded before that:
        as many as there is room for, and the first also while something runs in the window, which may end any moment.
        """
        monotonic = self._clock.monotonic()
        if self._stopping or account.rest(creates=True, monotonic=monotonic) > 0:
            return
        taken = self._taken(key, account, as_of) + len(self._roster.held(key, as_of))
        room = account.limit(key[1], monotonic).places - taken
        soon = max(room, 1 if self._roster.holding(key) else 0)
        for task_id in self._roster.line.first(key, min(soon, SUPPLIED_AHEAD)):
            track = self._roster.track(task_id)
            if track is not None and track.supply_from <= monotonic and not await self._is_supplied([task_id], account):
                self._unsupplied[task_id] = track

    async def _is_supplied(self, task_ids: list[str], account: Account) -> bool:
        """
        Whether what the create calls of these tasks will name is at the provider.
        """
        for task_id in task_ids:
            task, track = self._roster.get_live(task_id), self._roster.track(task_id)
            if task is None or track is None or track.busy or not await self._tools.copies.at_hand(task, account):
                return False
        return True

    def _has_room(self, key: WindowKey, account: Account, as_of: datetime) -> bool:
        """
        Whether the first in line may be given a place: in the window that it was made for, and in the one that its
        model has now. They differ where the account's windows have changed their shape since, for its provider told
        its limits for the first time, or the settings were edited.
        """
        first = self._roster.get_live(*self._roster.line.first(key, 1))
        keys = {key} if first is None else {key, (account.name, account.window_of(first.model_version))}
        monotonic = self._clock.monotonic()
        return all(self._taken(one, account, as_of) < account.limit(one[1], monotonic).places for one in keys)

    def _taken(self, key: WindowKey, account: Account, as_of: datetime) -> int:
        """
        How many tasks that are at work take the window's places, whichever window they were made for.
        """
        strays = self._roster.elsewhere(key, as_of, lambda task: account.window_of(task.model_version) == key[1])
        return len(self._roster.holding(key)) + strays

    def _turn_in(self, account: Account, monotonic: float) -> float:
        """
        Seconds until the account's next create may go out.

        One goes after another, so that they reach the provider in the order of the line, and a refusal is heard before
        the next runs into it too. A create that is slow to be answered holds the others up only for a moment.
        """
        sent = [
            track.placed_at + TURN_SECONDS - monotonic
            for task_id, track in self._roster.active()
            if (task := self._roster.get_live(task_id)) is not None
            and task.account == account.name
            and task.state is State.SUBMITTING
        ]
        return max(0.0, *sent) if sent else 0.0

    # Steps

    def _due(self) -> list[tuple[str, Track]]:
        now, room = self._clock.monotonic(), MAX_STEPS - len(self._steps)
        due = [(task_id, track) for task_id, track in self._roster.active() if not track.busy and track.due <= now]
        due.sort(key=lambda entry: entry[1].due)
        if not self._stopping:
            due += [
                (task_id, track)
                for task_id, track in self._unsupplied.items()
                if not track.busy and self._roster.line.ahead(task_id) is not None
            ]
        return due[: max(0, room)]

    async def _guarded(self, task_id: str) -> float | None:
        """
        One step; returns the seconds until the next, None for no more.
        """
        try:
            return await self._run_step(task_id)
        except DatabaseUnusable as problem:
            self.fail(problem)
            return None
        except Exception:
            logger.exception("step.failed task=%s", task_id)
            track = self._roster.track(task_id)
            if track is None:
                return None
            track.troubles += 1
            return max(1.0, backoff(tries=track.troubles, chance=self._chance()))

    def _over(self, task_id: str, step: asyncio.Task[float | None]) -> None:
        self._steps.pop(task_id, None)
        self._schedule(task_id, 0.0 if step.cancelled() else step.result())

    async def _run_step(self, task_id: str) -> float | None:
        task, track = self._roster.get_driven(task_id), self._roster.track(task_id)
        account = self._accounts.get(task.account) if task is not None else None
        if task is None or track is None or account is None:
            return None
        return await self._stepper.step(task, track, account)

    def _schedule(self, task_id: str, delay: float | None) -> None:
        track = self._roster.track(task_id)
        if track is not None:
            track.busy = False
            if track.again:
                track.again, delay = False, 0.0
            if delay:
                # What rounding leaves of a wait would not move the clock, and the step would run in circles.
                delay = max(delay, LEAST_WAIT_SECONDS)
            if self._roster.line.ahead(task_id) is not None:
                # Whoever gives it a place may fail before it can say that it is due.
                delay = 0.0
            track.due = FOREVER if delay is None else self._clock.monotonic() + delay
        self._wake.set()

    def _idle_seconds(self) -> float:
        """
        How long nothing is due, as far as can be told now.
        """
        now = self._clock.monotonic()
        waits = [ALERT_SECONDS if self._roster.active() else LONGEST_SLEEP_SECONDS]
        waits += [at - now for _, at in self._late.values()]
        if len(self._steps) < MAX_STEPS:
            waits += [track.due - now for _, track in self._roster.active() if not track.busy]
        for key in self._roster.line.windows():
            account = self._accounts.get(key[0])
            if account is not None:
                rest = max(account.rest(creates=True, monotonic=now), self._turn_in(account, now))
                waits += [rest] if rest > 0 else []
                if self._uploads(account.name):
                    tracks = [self._roster.track(task_id) for task_id in self._roster.line.first(key, SUPPLIED_AHEAD)]
                    waits += [track.supply_from - now for track in tracks if track and track.supply_from > now]
            frees_at = self._frees_at.get(key)
            if frees_at is not None:
                waits.append((frees_at - self._clock.now()).total_seconds() + 0.01)
        return max(0.0, min(waits))

    # Time

    def _notice_jump(self) -> float:
        """
        After a sleep of the machine or an adjusted clock, ask for every running task at once, spread over two seconds.
        Returns the seconds by which the wall clock is ahead of what was expected.
        """
        (wall, before), now, monotonic = self._seen, self._clock.now(), self._clock.monotonic()
        ahead = (now - wall).total_seconds() - (monotonic - before)
        if abs(ahead) > CLOCK_JUMP_SECONDS:
            logger.warning("clock.jumped from=%s to=%s", wall, now)
            self._tools.follower.break_off()
            for _, track in self._roster.active():
                track.due = min(track.due, monotonic + 2.0 * self._chance())
        self._seen = now, monotonic
        return ahead

    async def _come_back(self) -> None:
        """
        After a long sleep of the machine: break off what waits for answers that cannot come, and drop the connections.

        A create is given a moment more, and then it is lost.
        """
        broken = []
        for task_id, step in tuple(self._steps.items()):
            task = self._roster.get_live(task_id)
            if task is not None and task.state is State.SUBMITTING:
                self._late[task_id] = step, self._clock.monotonic() + LAST_WORD_SECONDS
            else:
                step.cancel()
                broken.append(step)
        if broken:
            await asyncio.wait(broken)
        for account in self._accounts.values():
            if account.plan.drop_idle is not None:
                await account.plan.drop_idle()

    def _break_off_late(self) -> None:
        now = self._clock.monotonic()
        for task_id, (step, at) in tuple(self._late.items()):
            if step.done() or at <= now:
                step.cancel()
                del self._late[task_id]


def at_start(task: Task, track: Track, *, monotonic: float, chance: float) -> None:
    """
    When a task of an earlier life of the relay is first looked at: at once, spread a little where many are polled.
    """
    track.due = monotonic + 2.0 * chance if task.state is State.RUNNING else monotonic
