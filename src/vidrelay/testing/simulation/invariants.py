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

from vidrelay.core.adapter import Dedupe
from vidrelay.core.errors import DiskFull, StoreError
from vidrelay.core.lifecycle import TRANSITIONS, Event
from vidrelay.core.pace import retry_after
from vidrelay.core.task import CancelOutcome, Priority, State, Task
from vidrelay.testing.clock import START
from vidrelay.testing.simulation.apps import Apps
from vidrelay.testing.simulation.disk import DATABASE
from vidrelay.testing.simulation.life import Ground
from vidrelay.testing.simulation.provider import Create, Job
from vidrelay.testing.simulation.truth import Truth
from vidrelay.testing.simulation.words import LONGEST_RUN

EVENTS: dict[str, type[Event]] = {event.__name__: event for events in TRANSITIONS.values() for event in events}
A_MOMENT = 1e-6
DISK_ERRORS = (StoreError, DiskFull, OSError)

UNSEEN_SECONDS = 30.0
"""A clock set so shortly before a life's end may not have been noticed by it."""

POLL_SPACING = 0.5
"""Seconds between two status requests of a customer, at the least."""

LONGEST_BREAK = 5.0
"""So long a call that lasts may take to be broken off: a slow disk comes first."""

PLACE_SLACK = 20.0
"""So much earlier a place may be given back than a job can run: what the relay lets its two clocks differ by."""


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
        self._seen_polls = 0
        self._lasting: dict[tuple[int, str], tuple[float, float]] = {}
        self._polled: dict[tuple[int, str, str], float] = {}
        self._asked: dict[tuple[int, str], float] = {}
        self._rests: dict[tuple[int, str], float] = {}
        self._looked: dict[str, tuple[int, int]] = {}
        self._held_since: dict[str, float] = {}
        self._freed_unseen: set[str] = set()
        self._found_late: set[str] = set()
        self._awake_at = 0.0
        self._woken = 0
        self._replays = {account.key.name: account.key.protection is Dedupe.REPLAY for account in ground.accounts}
        self._windows = {account.key.name: account.window for account in ground.accounts}

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
        self._truth = Truth(self._ground.disk.state / DATABASE)
        self._catch_up()
        for task_id, until in self._truth.held().items():
            self._hold(task_id, until)

    def awake(self) -> None:
        """
        A life is under way, and can see what becomes of the wall clock. A place that has lapsed by one that was set
        before is as good as given back.
        """
        for task in self.tasks.values():
            if task.place_until is not None and not self._holds(task) and self._is_unseen(task.id):
                self._freed_unseen.add(task.id)
        self._awake_at, self._woken = self._ground.loop.time(), self._life

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
        if until is None and self.tasks[task_id].place_until is not None and self._is_unseen(task_id):
            self._freed_unseen.add(task_id)
        self.tasks[task_id] = replace(self.tasks[task_id], place_until=until)

    def _note_held(self, task: Task) -> None:
        if task.state in (State.SUBMITTING, State.RUNNING):
            self._held_since.pop(task.id, None)
        elif task.place_until is not None:
            self._held_since.setdefault(task.id, self._ground.clock.truth())

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

    def calls(self, life: int, kind: str, key: str) -> None:
        """
        A call begins.
        """
        self._ground.journal.note("calls", kind, key)
        until = self._rests.get((life, key))
        left = 0.0 if until is None else until - self._ground.loop.time()
        if left > A_MOMENT:
            self.complain(15, f"a {kind} call of {key} began {left:.3f} s before the time it was told")
        if kind in ("poll", "find"):
            self._invariant_15_rate(life, key)

    def _invariant_15_rate(self, life: int, key: str) -> None:
        """
        A customer's status requests leave at most twice a second.
        """
        now = self._ground.loop.time()
        before = self._asked.get((life, key))
        self._asked[life, key] = now
        if before is not None and now - before < POLL_SPACING - A_MOMENT:
            self.complain(15, f"{key} was asked again after {now - before:.3f} s")

    def sends(self, create: Create) -> None:
        """
        The first byte of a create call leaves.
        """
        self._invariant_4(create)
        self._invariant_21(create)

    def lasts(self, life: int, key: str, began: float, tasks: list[str]) -> None:
        """
        A call for these tasks is still under way, which is broken off where its customer is told to rest, or one of
        them is no longer wanted.
        """
        now = self._ground.loop.time()
        if self._rests.get((life, key), 0.0) > now:
            self._overdue((life, key), began, f"a call of {key} lasts while that rests")
        for task_id in tasks:
            task = self.tasks.get(task_id)
            if task is not None and (task.ended or task.cancel is CancelOutcome.PENDING):
                self._overdue((life, task_id), began, f"a call for {task_id} lasts, which is not wanted any more")

    def _overdue(self, what: tuple[int, str], began: float, why: str) -> None:
        now = self._ground.loop.time()
        call, since = self._lasting.get(what, (0.0, 0.0))
        if call != began:
            self._lasting[what] = began, now
        elif now - since > LONGEST_BREAK:
            self.complain(15, f"{why}, for {now - since:.1f} s")

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
        self._invariant_6_at_the_provider()
        self._invariant_13()
        self._invariant_15()
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
            if name == "Found" and self._gave_back(before):
                self._found_late.add(task.id)
        if name == "Started":
            self._invariant_8(task)
        if name == "ResubmitRequested":
            self.retries[task.id] += 1
        if name == "Saved":
            self._invariant_12(task)
        self.tasks[task.id] = task
        self._note_held(task)
        self.states[task.state] += 1
        if name == "Started":
            self._invariant_6(task)

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

    def _invariant_6(self, started: Task) -> None:
        """
        The places taken never exceed the window.
        """
        now = started.updated_at
        holding = [task.id for task in self._of_window(started) if task.holds_place(now)]
        if len(holding) > self._windows[started.account]:
            self.complain(6, f"{len(holding)} places are taken of {self._windows[started.account]}: {holding}")

    def _invariant_6_at_the_provider(self) -> None:
        """
        The provider's ledger agrees: a job that runs there has its place here, as long as it can run.
        """
        for account in self._ground.accounts:
            key = account.key.name
            jobs = [job for job in self._provider.unended(key) if not self._excused(job)]
            window = self._windows[key]
            if len(jobs) > window:
                told = [f"{job.id} of {job.task} ({self.tasks[job.task].state})" for job in jobs]
                self.complain(6, f"{len(jobs)} jobs of {key} run with a window of {window}: {told}")

    def _excused(self, job: Job) -> bool:
        """
        Whether a job may run without a place: a person had it made again, its id was never told, or its time is over.
        """
        task_id = job.task
        task = self.tasks.get(task_id)
        if task is None or self.retries[task_id] or task.remote_id not in (None, job.id) or task_id in self._found_late:
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

    def _invariant_8(self, started: Task) -> None:
        """
        First in, first out, in each window and priority.
        """
        place = _place(started)
        for other in self._of_window(started):
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

    def _invariant_15(self) -> None:
        """
        No job is asked for again before the floor.
        """
        polls = self._provider.polls
        for poll in polls[self._seen_polls :]:
            asked = poll.life, poll.job, poll.task
            before = self._polled.get(asked)
            self._polled[asked] = poll.at
            if before is not None and poll.at - before < 1.0 - self._ground.network.latency - A_MOMENT:
                self.complain(15, f"{poll.job} was asked for again after {poll.at - before:.3f} s")
        self._seen_polls = len(polls)

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
        now = self._ground.clock.now()
        held = [task.id for task in self.tasks.values() if task.holds_place(now)]
        if held:
            self.complain(7, f"nothing goes on, and places are held: {held}")

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

    def _of_window(self, like: Task) -> list[Task]:
        return [task for task in self.tasks.values() if (task.account, task.window) == (like.account, like.window)]


def _place(task: Task) -> tuple[bool, int]:
    return task.request.priority is Priority.BATCH, task.seq
