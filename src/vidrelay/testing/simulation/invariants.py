"""
What must hold after every step, whatever has happened: section 3 of the threat and fault list, each by its number.

What the relay says is compared with three things it cannot touch: the provider's ledger, the answers that apps were
given, and the database read through a connection of our own.
"""

import hashlib
import logging
import os
import traceback
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from vidrelay.core.errors import DiskFull, StoreError
from vidrelay.core.lifecycle import TRANSITIONS, Event
from vidrelay.core.task import Priority, State, Task
from vidrelay.testing.simulation.apps import Apps
from vidrelay.testing.simulation.disk import DATABASE
from vidrelay.testing.simulation.ledger import Create, Job
from vidrelay.testing.simulation.life import Ground
from vidrelay.testing.simulation.pace import Pace
from vidrelay.testing.simulation.places import Places
from vidrelay.testing.simulation.truth import Truth

EVENTS: dict[str, type[Event]] = {event.__name__: event for events in TRANSITIONS.values() for event in events}
DISK_ERRORS = (StoreError, DiskFull, OSError)


class Violation(AssertionError):
    """
    An invariant does not hold.
    """


class Invariants:
    """
    Watches one run; `broken` are the violations, in order.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._provider = ground.network.provider
        self.broken: list[str] = []
        self.tasks: dict[str, Task] = {}
        self.retries: Counter[str] = Counter()
        self.states: Counter[State] = Counter()
        self.points: Counter[str] = Counter()
        self.lost_files: set[str] = set()
        self.apps: Apps | None = None
        self._truth: Truth | None = None
        self._life = 0
        self._event = 0
        self._looked: dict[str, tuple[int, int]] = {}
        self._pace = Pace(ground, self.tasks, self.complain)
        self._places = Places(ground, self.tasks, self.retries, self.complain)

    def complain(self, number: int, text: str) -> None:
        """
        Note a violation.
        """
        self._ground.journal.note("violation", number, text)
        self.broken.append(f"invariant {number}: {text}")

    # Lives

    def opened(self, life: int) -> None:
        """
        A life has its database.
        """
        self._life = life
        self._places.opened(life)
        self._truth = Truth(self._ground.disk.state / DATABASE)
        self._catch_up()
        for task_id, until in self._truth.held().items():
            self._hold(task_id, until)

    def awake(self) -> None:
        """
        A life is under way, and can see what becomes of the wall clock.
        """
        self._places.awake()

    def closes(self) -> None:
        """
        A life lets go of its database, or has ended.
        """
        if self._truth is not None:
            self._truth.close()
            self._truth = None

    # What lives tell

    def passed(self, point: str) -> None:
        """
        A point was passed.
        """
        self.points[point] += 1

    def committed(self, task: Task) -> None:
        """
        The relay is about to hear, and tell, of a commit.
        """
        self._ground.journal.note("committed", task.id, task.state, task.version, task.remote_id)
        self._invariant_2(task)
        known = self.tasks.get(task.id)
        if known is not None and known.version == task.version:
            self._hold(task.id, task.place_until)  # which has no entry in the log
        self._catch_up()

    def _hold(self, task_id: str, until: datetime | None) -> None:
        self._places.held(self.tasks[task_id], until)
        self.tasks[task_id] = replace(self.tasks[task_id], place_until=until)

    def calls(self, life: int, kind: str, key: str) -> None:
        """
        A call begins.
        """
        self._ground.journal.note("calls", kind, key)
        self._pace.calls(life, kind, key)

    def sends(self, create: Create) -> None:
        """
        The first byte of a create call leaves.
        """
        self._invariant_4(create)
        self._invariant_21(create)

    def lasts(self, life: int, key: str, began: float, tasks: list[str]) -> None:
        """
        A call under that key for these tasks, begun in that second, is still under way.
        """
        self._pace.lasts(life, key, began, tasks)

    def rested(self, life: int, key: str, body: bytes, wait: str | None) -> None:
        """
        A customer was told to come back later.
        """
        self._pace.rested(life, key, body, wait)

    def lifted(self, key: str) -> None:
        """
        A person says that a customer has no reason to rest.
        """
        self._pace.lifted(key)

    def surprised(self, record: logging.LogRecord) -> None:
        """
        The relay logged an exception; one that a failing disk explains is none that it did not expect.
        """
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not (self._ground.faults.disk_fails and isinstance(error, DISK_ERRORS)):
            trace = "".join(traceback.format_exception(error)[-3:])
            self.complain(0, f"{record.getMessage()}: {error!r}\n{trace}")

    # After every step

    def check(self) -> None:
        """
        Look at everything that has come since the last time.
        """
        if self._truth is None:
            return
        self._catch_up()
        self._invariant_1(self._truth.ids())
        self._invariant_3()
        self._places.check()
        self._invariant_13()
        self._pace.check()
        for strange in self._provider.strange:
            self.complain(17, strange)
        self._provider.strange.clear()
        for surprise in self._ground.loop.surprises:
            self.complain(0, surprise)
        self._ground.loop.surprises.clear()

    def _catch_up(self) -> None:
        """
        Take in what was committed since the last time.
        """
        if self._truth is None:
            return
        for task, name in self._truth.entries(self._event):
            self._event = task.event_id
            self._take(task, name)

    def _take(self, task: Task, name: str) -> None:
        before = self.tasks.get(task.id)
        self._invariant_9(before, task, name)
        self._invariant_10(before, task)
        if before is not None:
            self._invariant_5(before, task, name)
            if name == "Found":
                self._places.found(before)
        if name == "Started":
            self._invariant_8(task)
        if name == "ResubmitRequested":
            self.retries[task.id] += 1
        if name == "Saved":
            self._invariant_12(task)
        self.tasks[task.id] = task
        self._places.moved(task)
        self.states[task.state] += 1
        if name == "Started":
            self._places.started(task)

    # The invariants

    def _invariant_1(self, stored: Container[str]) -> None:
        """
        Every task answered exists, with the prompt and parameters it was asked with.
        """
        if self.apps is None:
            return
        for task_id, answers in self.apps.answers.items():
            if task_id not in stored:
                self.complain(1, f"{task_id} was answered and is gone")
                continue
            task = self.tasks[task_id]
            first = answers[0]
            created = first.how == "created"
            if created and (task.request != first.request or task.parameters["prompt"] != first.request.prompt):
                self.complain(1, f"{task_id} was asked as {first.request} and is {task.request}")
            for answer in answers:
                if answer.request.account != task.account:
                    self.complain(1, f"{task_id} answers a request of {answer.request.account}")

    def _invariant_2(self, task: Task) -> None:
        """
        Nothing is told before its commit.
        """
        if self._truth is None:
            return  # it is being closed
        stored = self._truth.task(task.id)
        if stored is None or stored.version < task.version:
            self.complain(2, f"{task.id} was told as version {task.version} and is stored as {stored}")

    def _invariant_3(self) -> None:
        """
        Each task is made at most once, and once more for each time a person said so.
        """
        creates = self._provider.creates
        made = Counter(create.task for create in creates if create.job is not None)
        for task_id, count in made.items():
            if count > 1 + self.retries[task_id]:
                self.complain(3, f"{task_id} was made {count} times, with {self.retries[task_id]} retries")

    def _invariant_4(self, create: Create) -> None:
        """
        Each create has an earlier committed `submitting` (and so none is sent for an uncertain task: 16).
        """
        if self._truth is None:
            return
        stored = self._truth.task(create.task)
        if stored is None or stored.state is not State.SUBMITTING:
            number = 16 if stored is not None and stored.state is State.UNCERTAIN else 4
            self.complain(number, f"{create.task} was sent while {stored and stored.state}")
            return
        create.attempt = stored.attempts
        if stored.submission_key != create.mark:
            self.complain(4, f"{create.task} was sent under another key than is stored")

    def _invariant_5(self, before: Task, task: Task, name: str) -> None:
        """
        A create whose complete answer reached us keeps its remote id, whatever the disk does.
        """
        if before.state is not State.SUBMITTING or task.state is State.SUBMITTING:
            return
        answered = [
            create
            for create in self._provider.creates
            if create.delivered and (create.life, create.task, create.attempt) == (self._life, task.id, before.attempts)
        ]
        if not answered or task.remote_id == answered[-1].told or task.state is State.FAILED:
            return
        told = answered[-1].told
        if any(other.remote_id == told and other.id != task.id for other in self.tasks.values()):
            return  # the provider gave one id twice: which task is meant cannot be known
        self.complain(5, f"{task.id} was answered with {told} and took {name} instead")

    def _invariant_8(self, started: Task) -> None:
        """
        First in, first out, in each window and priority.
        """
        place = _place(started)
        for other in self._places.of_window(started):
            if other.id != started.id and other.state is State.QUEUED and _place(other) < place:
                self.complain(8, f"{started.id} was sent before {other.id}, which stood before it")

    def _invariant_9(self, before: Task | None, task: Task, name: str) -> None:
        """
        Ended is final, and every step is in the table.
        """
        if before is None:
            if name != "Created" or task.state is not State.QUEUED:
                self.complain(9, f"{task.id} began with {name} as {task.state}")
            return
        following = TRANSITIONS[before.state].get(EVENTS[name])
        if following is State.QUEUED and task.cancel_wanted:
            following = State.CANCELLED
        if following is not task.state or task.version != before.version + 1:
            self.complain(9, f"{task.id} went from {before.state} by {name} to {task.state}")

    def _invariant_10(self, before: Task | None, task: Task) -> None:
        """
        A remote job is one task's, and a task's remote id never changes.
        """
        if before is not None and before.remote_id not in (None, task.remote_id):
            self.complain(10, f"{task.id} was {before.remote_id} and is {task.remote_id}")
        if task.remote_id is None or (before is not None and before.remote_id is not None):
            return
        without = (State.FAILED, State.CANCELLED, State.EXPIRED)
        for other in self.tasks.values():
            same = other.id != task.id and other.account == task.account and other.remote_id == task.remote_id
            if same and other.state not in without:
                self.complain(10, f"{task.remote_id} is {other.id}'s and {task.id}'s")

    def _invariant_12(self, task: Task) -> None:
        """
        What is published is what was served.
        """
        job = self._job(task)
        for file in task.files:
            content = b"" if job is None else self._provider.content(job)
            if file.size_bytes != len(content) or file.sha256 != hashlib.sha256(content).hexdigest():
                self.complain(12, f"{task.id} published another file than {task.remote_id} served")

    def _invariant_13(self) -> None:
        """
        A result's own name never holds a part of it.
        """
        for name, place in self._ground.disk.results().items():
            status = os.stat(place)  # noqa: PTH116 a Path costs more than the look
            sign = (status.st_ino, status.st_size)
            if self._looked.get(name) == sign:
                continue
            self._looked[name] = sign
            path = Path(place)
            task = self.tasks.get(path.stem.rpartition("-")[0])
            job = None if task is None else self._job(task)
            if job is None or path.read_bytes() != self._provider.content(job):
                self.complain(13, f"{name} is not the whole file of its task")

    def _job(self, task: Task) -> Job | None:
        return self._provider.jobs.get(task.remote_id or "") or self._provider.forgotten.get(task.remote_id or "")

    def invariant_14(self) -> None:
        """
        After a good start: what the index holds is on disk, and nothing else; no more than the cap and one file.
        """
        if self._truth is None:
            return
        indexed, found = self._truth.indexed() - self.lost_files, set(self._ground.disk.results())
        if indexed != found - self.lost_files:
            self.complain(14, f"index only: {sorted(indexed - found)}; disk only: {sorted(found - indexed)}")
        sizes = self._truth.cached_bytes()
        if sum(sizes) - max(sizes, default=0) > self._ground.policy.cache.max_bytes:
            self.complain(14, f"{sum(sizes)} bytes are cached")

    def _invariant_21(self, create: Create) -> None:
        """
        A task is sent under its own account's key.
        """
        task = self.tasks.get(create.task)
        if task is not None and task.account != create.key:
            self.complain(21, f"{create.task} of {task.account} was sent under the key of {create.key}")

    # At the end

    def invariant_7(self) -> None:
        """
        Idle: every place is free.
        """
        self._places.at_rest()

    def invariant_8_all_end(self) -> None:
        """
        With the trouble over, and every lost one settled by its user, all tasks end.
        """
        left = [f"{task.id} {task.state}" for task in self.tasks.values() if not task.ended]
        if left:
            self.complain(8, f"the trouble is over, and these have not ended: {left}")

    def invariant_18(self, secrets: Iterable[str]) -> None:
        """
        No key is in any file.
        """
        sought = [secret.encode() for secret in secrets]
        for path in sorted(self._ground.disk.state.rglob("*")):
            if path.is_file() and any(secret in path.read_bytes() for secret in sought):
                self.complain(18, f"a key is in {path.name}")


def _place(task: Task) -> tuple[bool, int]:
    return task.request.priority is Priority.BATCH, task.seq
