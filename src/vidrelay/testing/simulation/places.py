"""
Invariants 6 and 7, the places: never more are taken than the window has, the provider's ledger agrees, and at rest all
are free.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime

from vidrelay.core.adapter import Dedupe
from vidrelay.core.task import State, Task
from vidrelay.testing.simulation.ledger import Job
from vidrelay.testing.simulation.life import Ground
from vidrelay.testing.simulation.words import LONGEST_RUN

UNSEEN_SECONDS = 30.0
"""A clock set so shortly before a life's end may not have been noticed by it."""

PLACE_SLACK = 20.0
"""So much earlier a place may be given back than a job can run: what the relay lets its two clocks differ by."""


class Places:
    """
    Watches a run's places, for the tasks as they are known and how often a person had each made again; `complain` is
    told what is amiss.
    """

    def __init__(
        self,
        ground: Ground,
        tasks: Mapping[str, Task],
        retries: Counter[str],
        complain: Callable[[int, str], None],
    ) -> None:
        self._ground = ground
        self._provider = ground.network.provider
        self._tasks = tasks
        self._retries = retries
        self._complain = complain
        self._life = 0
        self._held_since: dict[str, float] = {}
        self._freed_unseen: set[str] = set()
        self._found_late: set[str] = set()
        self._awake_at = 0.0
        self._woken = 0
        self._replays = {account.key.name: account.key.protection is Dedupe.REPLAY for account in ground.accounts}
        self._windows = {account.key.name: account.window for account in ground.accounts}

    def opened(self, life: int) -> None:
        """
        A life has its database.
        """
        self._life = life

    def awake(self) -> None:
        """
        A life is under way, and can see what becomes of the wall clock. A place that has lapsed by one that was set
        before is as good as given back.
        """
        for task in self._tasks.values():
            if task.place_until is not None and not self._holds(task) and self._is_unseen(task.id):
                self._freed_unseen.add(task.id)
        self._awake_at, self._woken = self._ground.loop.time(), self._life

    def held(self, task: Task, until: datetime | None) -> None:
        """
        Time holds the task's place until then from now on; None gives it back.
        """
        if until is None and task.place_until is not None and self._is_unseen(task.id):
            self._freed_unseen.add(task.id)

    def found(self, before: Task) -> None:
        """
        A lost task, known as it was before, was found.
        """
        if self._gave_back(before):
            self._found_late.add(before.id)

    def moved(self, task: Task) -> None:
        """
        The task was committed like this.
        """
        if task.state in (State.SUBMITTING, State.RUNNING):
            self._held_since.pop(task.id, None)
        elif task.place_until is not None:
            self._held_since.setdefault(task.id, self._ground.clock.truth())

    def started(self, started: Task) -> None:
        """
        The places taken never exceed the window.
        """
        now = started.updated_at
        holding = [task.id for task in self.of_window(started) if task.holds_place(now)]
        if len(holding) > self._windows[started.account]:
            self._complain(6, f"{len(holding)} places are taken of {self._windows[started.account]}: {holding}")

    def check(self) -> None:
        """
        The provider's ledger agrees: a job that runs there has its place here, as long as it can run.
        """
        for account in self._ground.accounts:
            key = account.key.name
            jobs = [job for job in self._provider.unended(key) if not self._excused(job)]
            window = self._windows[key]
            if len(jobs) > window:
                told = [f"{job.id} of {job.task} ({self._tasks[job.task].state})" for job in jobs]
                self._complain(6, f"{len(jobs)} jobs of {key} run with a window of {window}: {told}")

    def at_rest(self) -> None:
        """
        Idle: every place is free.
        """
        now = self._ground.clock.now()
        held = [task.id for task in self._tasks.values() if task.holds_place(now)]
        if held:
            self._complain(7, f"nothing goes on, and places are held: {held}")

    def of_window(self, like: Task) -> list[Task]:
        """
        The tasks that share a window with that one, and it.
        """
        return [task for task in self._tasks.values() if (task.account, task.window) == (like.account, like.window)]

    def _excused(self, job: Job) -> bool:
        """
        Whether a job may run without a place: a person had it made again, its id was never told, or its time is over.
        """
        task_id = job.task
        task = self._tasks.get(task_id)
        if (
            task is None
            or self._retries[task_id]
            or task.remote_id not in (None, job.id)
            or task_id in self._found_late
        ):
            return True
        if self._replays[task.account] and task.state in (State.QUEUED, State.CANCELLED):
            # It waits in line to be sent again under its key, and the first may still be carried out: not promised.
            return True
        if self._holds(task):
            return False
        return task.state is State.FAILED or self._gave_back(task)

    def _gave_back(self, task: Task) -> bool:
        """
        Whether a task whose job may run has rightly given its place back.
        """
        if task.state not in (State.UNCERTAIN, State.CANCELLED, State.EXPIRED) or self._holds(task):
            return False
        return self._lasted(task.id) or task.id in self._freed_unseen

    def _holds(self, task: Task) -> bool:
        return task.holds_place(self._ground.clock.now())

    def _is_unseen(self, task_id: str) -> bool:
        """
        Whether a place that is given back so early was stored by a clock that was set while no relay lived to see it:
        that it is kept then is not promised.
        """
        asleep = self._woken != self._life
        set_unseen = self._ground.clock.was_set_since(self._awake_at - UNSEEN_SECONDS)
        return asleep and set_unseen and not self._lasted(task_id)

    def _lasted(self, task_id: str) -> bool:
        """
        Whether a place was held as long as a job can run.
        """
        return self._held_for(task_id) >= LONGEST_RUN.total_seconds() - PLACE_SLACK

    def _held_for(self, task_id: str) -> float:
        """
        For how many true seconds time alone has held that task's place; none if it never did.
        """
        since = self._held_since.get(task_id)
        return 0.0 if since is None else self._ground.clock.truth() - since
