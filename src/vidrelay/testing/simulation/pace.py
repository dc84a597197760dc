"""
Invariant 15, when calls may leave: not before the time that a 429 told, no account too often, no job too early, and no
call lasts on while its account rests.
"""

from collections.abc import Callable, Mapping

from vidrelay.core.pace import retry_after
from vidrelay.core.task import CancelOutcome, Task
from vidrelay.testing.clock import START
from vidrelay.testing.simulation.life import Ground

A_MOMENT = 1e-6

POLL_SPACING = 0.5
"""Seconds between two status requests of a customer, at the least."""

LONGEST_BREAK = 5.0
"""So long a call that lasts may take to be broken off: a slow disk comes first."""


class Pace:
    """
    Watches when a run's calls leave, for the tasks as they are known; `complain` is told what is amiss.
    """

    def __init__(self, ground: Ground, tasks: Mapping[str, Task], complain: Callable[[int, str], None]) -> None:
        self._ground = ground
        self._provider = ground.network.provider
        self._tasks = tasks
        self._complain = complain
        self._seen_polls = 0
        self._lasting: dict[tuple[int, str], tuple[float, float]] = {}
        self._polled: dict[tuple[int, str, str], float] = {}
        self._asked: dict[tuple[int, str], float] = {}
        self._rests: dict[tuple[int, str], float] = {}

    def calls(self, life: int, kind: str, key: str) -> None:
        """
        A call begins.
        """
        until = self._rests.get((life, key))
        left = 0.0 if until is None else until - self._ground.loop.time()
        if left > A_MOMENT:
            self._complain(15, f"a {kind} call of {key} began {left:.3f} s before the time it was told")
        if kind in ("poll", "find"):
            self._asks(life, key)

    def _asks(self, life: int, key: str) -> None:
        """
        A customer's status requests leave at most twice a second.
        """
        now = self._ground.loop.time()
        before = self._asked.get((life, key))
        self._asked[life, key] = now
        if before is not None and now - before < POLL_SPACING - A_MOMENT:
            self._complain(15, f"{key} was asked again after {now - before:.3f} s")

    def lasts(self, life: int, key: str, began: float, tasks: list[str]) -> None:
        """
        A call for these tasks is still under way, which is broken off where its customer is told to rest, or one of
        them is no longer wanted.
        """
        now = self._ground.loop.time()
        if self._rests.get((life, key), 0.0) > now:
            self._overdue((life, key), began, f"a call of {key} lasts while that rests")
        for task_id in tasks:
            task = self._tasks.get(task_id)
            if task is not None and (task.ended or task.cancel is CancelOutcome.PENDING):
                self._overdue((life, task_id), began, f"a call for {task_id} lasts, which is not wanted any more")

    def _overdue(self, what: tuple[int, str], began: float, why: str) -> None:
        now = self._ground.loop.time()
        call, since = self._lasting.get(what, (0.0, 0.0))
        if call != began:
            self._lasting[what] = began, now
        elif now - since > LONGEST_BREAK:
            self._complain(15, f"{why}, for {now - since:.1f} s")

    def rested(self, life: int, key: str, body: bytes, wait: str | None) -> None:
        """
        A customer was told to come back later.
        """
        if b"slow down" in body:
            seconds = retry_after(wait, now=START) or 0.0
            until = self._ground.loop.time() + seconds
            self._rests[life, key] = max(until, self._rests.get((life, key), 0.0))

    def lifted(self, key: str) -> None:
        """
        A person says that a customer has no reason to rest.
        """
        for life, name in list(self._rests):
            if name == key:
                del self._rests[life, name]

    def check(self) -> None:
        """
        No job is asked for again before the floor.
        """
        polls = self._provider.polls
        for poll in polls[self._seen_polls :]:
            asked = poll.life, poll.job, poll.task
            before = self._polled.get(asked)
            self._polled[asked] = poll.at
            if before is not None and poll.at - before < 1.0 - self._ground.network.latency - A_MOMENT:
                self._complain(15, f"{poll.job} was asked for again after {poll.at - before:.3f} s")
        self._seen_polls = len(polls)
