"""
Bugs in how many tasks run at the provider, and when it is asked.
"""

from dataclasses import replace
from typing import Any

from controls.planting import around, bug
from vidrelay.core.adapter import Refused, Trouble
from vidrelay.core.lifecycle import (
    Cancelled,
    Failed,
    Lost,
)
from vidrelay.core.task import Problem, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.relay import Relay
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.saving import Saver
from vidrelay.scheduler.watching import Watcher
from vidrelay.store import reads


@bug("tests/scheduler/test_windows.py", "tests/scheduler/test_restart.py")
def places_in_memory() -> None:
    """The places taken are counted in memory, from nought at each start."""

    @around(reads, "places")
    def _(original: Any, session: Any, **wanted: Any) -> Any:
        return 0, None

    @around(Roster, "holding")
    def _(original: Any, self: Roster, key: Any) -> frozenset[str]:
        seen: set[str] = self.__dict__.setdefault("seen_here", set())
        return frozenset(original(self, key) & seen)

    @around(Roster, "note")
    def _(original: Any, self: Roster, task: Task) -> None:
        self.__dict__.setdefault("seen_here", set()).add(task.id)
        original(self, task)


@bug("tests/scheduler/test_windows.py::test_a_job_that_cannot_be_stopped_keeps_its_place_until_it_ends")
def unstoppable_job_frees_its_place() -> None:
    """A cancelled task gives its place back, though its job runs on."""

    @around(Saver, "try_save")
    async def _(original: Any, self: Saver, task: Task, event: Any, **rest: Any) -> Any:
        if isinstance(event, Cancelled):
            event = replace(event, place_until=None)
        return await original(self, task, event, **rest)


@bug("tests/scheduler/test_windows.py::test_uncertain_tasks_keep_their_place_for_a_bounded_time")
def uncertain_task_frees_its_place() -> None:
    """A lost create holds no place, though its job may run."""

    @around(Saver, "try_save")
    async def _(original: Any, self: Saver, task: Task, event: Any, **rest: Any) -> Any:
        if isinstance(event, Lost):
            event = replace(event, place_until=None)  # type: ignore[arg-type]  # one in the past would be mended
        return await original(self, task, event, **rest)


@bug("tests/scheduler/test_time.py")
def wall_clock_timers() -> None:
    """Rests and pauses are measured on the wall clock."""

    class WallClock:
        """A clock whose monotonic side is the wall's."""

        def __init__(self, clock: Any) -> None:
            self._clock = clock

        def __getattr__(self, name: str) -> Any:
            return getattr(self._clock, name)

        def monotonic(self) -> float:
            """Not monotonic at all."""
            moment: float = self._clock.now().timestamp()
            return moment

    @around(Relay, "__init__")
    def _(original: Any, self: Relay, *, clock: Any, **rest: Any) -> None:
        original(self, clock=WallClock(clock), **rest)


@bug("tests/scheduler/test_faults.py")
def retry_after_ignored() -> None:
    """However long the provider asks to wait, our own back-off is what counts."""

    @around(Account, "refused")
    def _(original: Any, self: Account, refusal: Refused, **rest: Any) -> Any:
        return original(self, replace(refusal, retry_after=None), **rest)


@bug("tests/scheduler/test_faults.py::test_a_polls_trouble_never_fails_a_paid_task")
def poll_trouble_fails_the_task() -> None:
    """A poll that goes wrong ends the task."""

    @around(Watcher, "_polled")
    async def _(original: Any, self: Watcher, *subject: Any) -> Any:
        *whose, outcome = subject
        if isinstance(outcome, Trouble):
            outcome = Failed(problem=Problem(code="poll_failed", title="A poll failed", detail=outcome.detail))
        return await original(self, *whose, outcome)
