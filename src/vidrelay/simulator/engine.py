"""
Gate, line and jobs of the pretend provider, with no words of any provider and no sockets.

Nothing runs in the background: each call first lets time catch up (`settle`), so the same calls at the same times
always give the same jobs, whatever the machine does in between.
"""

import hashlib
import math
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from vidrelay.core.clock import Clock
from vidrelay.core.errors import ConfigError
from vidrelay.simulator.faults import ArmedFaults
from vidrelay.simulator.ids import uuid
from vidrelay.simulator.ledger import JobLine, Ledger, mark
from vidrelay.simulator.options import SimulatorOptions

_DIRECTIVE = re.compile(r"\[(fail|moderated|forever|queue|run)(?:=([A-Za-z0-9._:-]{1,80}))?\]")
_FIXED = {"port", "dialect"}


class JobState(StrEnum):
    """
    Where a job of the pretend provider stands.
    """

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(slots=True, kw_only=True)
class Job:
    """
    One job. Times are seconds since the simulator began, `created_at` and `ended_at` whole seconds of the wall clock.

    `why` is the error code of a job that is to fail: `moderation_blocked`, `generation_failed`, or the provider's own
    (`[fail=CODE]` in the prompt). `data` is what the vocabulary keeps of the create call. `hidden`: the client has had
    it forgotten, the work goes on.
    """

    number: int
    id: str
    key: str | None
    fields: dict[str, str]
    pictures: int
    created: float
    eligible: float
    run_seconds: float
    why: str | None
    created_at: int
    state: JobState = JobState.WAITING
    started: float | None = None
    ended: float | None = None
    ended_at: int | None = None
    hidden: bool = False
    data: Any = None

    @property
    def unended(self) -> bool:
        """
        Whether it waits or is worked on.
        """
        return self.state in (JobState.WAITING, JobState.WORKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """
    A request that was turned away: `why` is `rate` or `busy`; `retry_after` is seconds, or None.
    """

    why: str
    retry_after: float | None = None


@dataclass(slots=True, kw_only=True)
class Engine:
    """
    The pretend provider itself. `options` may be replaced at any time by `change`.
    """

    options: SimulatorOptions
    clock: Clock
    ledger: Ledger = field(default_factory=Ledger)
    faults: ArmedFaults = field(default_factory=ArmedFaults)
    jobs: dict[str, Job] = field(default_factory=dict)
    down_until: float = 0.0
    restarts: int = 0
    _made: int = 0
    _event: float = 0.0
    _line: deque[Job] = field(default_factory=deque)
    _working: list[Job] = field(default_factory=list)
    _recent: dict[str | None, deque[float]] = field(default_factory=dict)
    _began: float = 0.0
    _began_at: float = 0.0

    def __post_init__(self) -> None:
        """
        Begin at the clock's present moment.
        """
        self._began = self.clock.monotonic()
        self._began_at = self.clock.now().timestamp()
        self.faults.arm(self.options.faults)

    def now(self) -> float:
        """
        Seconds since the simulator began, with every job moved to where it is by then.
        """
        now = self.clock.monotonic() - self._began
        self.settle(now)
        return now

    def settle(self, now: float) -> None:
        """
        Start and end jobs in the order of time, up to `now`.
        """
        while True:
            ending = min(self._working, key=_end_of, default=None)
            ends = math.inf if ending is None else _end_of(ending)
            starts = self._next_start()
            if min(ends, starts) > now:
                break
            if ending is not None and ends <= starts:
                self._event = max(ends, self._event)
                self._working.remove(ending)
                self._end(ending, JobState.FAILED if ending.why else JobState.DONE, self._event)
            else:
                self._event = starts
                self._start(self._line.popleft(), starts)
        if self.options.keep_seconds is not None:
            oldest = now - self.options.keep_seconds
            for job in [one for one in self.jobs.values() if one.ended is not None and one.ended < oldest]:
                del self.jobs[job.id]

    def admit(self, key: str | None, *, create: bool) -> Turned | None:
        """
        Let a request in, or turn it away: over the rate, or, for a create, over the window.
        """
        now = self.now()
        limit = self.options.rate
        recent = self._recent.setdefault(key, deque())
        while recent and recent[0] <= now - self.options.rate_per:
            recent.popleft()
        if limit is not None and len(recent) >= limit:
            return Turned(why="rate", retry_after=(recent[0] + self.options.rate_per - now) if recent else None)
        recent.append(now)
        if create and self.options.window is not None and self.unended(key) >= self.options.window:
            return Turned(why="busy")
        return None

    def unended(self, key: str | None) -> int:
        """
        How many jobs of the key wait or are worked on.
        """
        return sum(job.key == key for job in [*self._line, *self._working])

    def create(
        self,
        key: str | None,
        fields_: dict[str, str],
        *,
        pictures: int = 0,
        data: Any = None,
        shape: Callable[[str], str] | None = None,
    ) -> Job:
        """
        Make a job and put it in line. `shape` makes its id of 64 hex digits, where the provider's look as no other's.

        Raises:
            TypeError: A field is no text.
        """
        if not all(isinstance(value, str) for value in fields_.values()):
            raise TypeError("a job's fields must be texts")
        now = self.now()
        self._made += 1
        prompt = fields_.get("prompt", "")
        wish = dict(_DIRECTIVE.findall(prompt))
        model = fields_.get("model", "")
        run = float(wish.get("run") or self.options.run_by_model().get(model, self.options.run_seconds))
        job = Job(
            number=self._made,
            id=self._new_id(self._made, shape),
            key=key,
            fields=dict(fields_),
            pictures=pictures,
            created=now,
            eligible=now + float(wish.get("queue") or self.options.queue_seconds),
            run_seconds=math.inf if "forever" in wish else run,
            why=self._fate(self._made, wish),
            created_at=self._wall(now),
            data=data,
        )
        self.jobs[job.id] = job
        self._line.append(job)
        self.ledger.jobs[job.id] = JobLine(
            id=job.id, key=mark(key), prompt=prompt, model=model, state=job.state, created=round(now, 3)
        )
        self.ledger.crowd(mark(key), self.unended(key))
        return job

    def position(self, job: Job) -> int | None:
        """
        How many jobs stand before it in line; None once it is worked on.
        """
        return self._line.index(job) if job in self._line else None

    def listed(self, key: str | None) -> list[Job]:
        """
        The key's jobs, newest first, without those too new for the list.
        """
        newest = self.now() - self.options.list_lag
        return [
            job for job in reversed(self.jobs.values()) if job.key == key and not job.hidden and job.created <= newest
        ]

    def find(self, key: str | None, job_id: str) -> Job | None:
        """
        The key's job of that id, where the provider still has it.
        """
        self.now()
        job = self.jobs.get(job_id)
        return job if job is not None and job.key == key and not job.hidden else None

    def stop(self, job: Job) -> None:
        """
        End the job where it is and forget it.
        """
        self.cancel(job)
        self.jobs.pop(job.id, None)

    def cancel(self, job: Job) -> None:
        """
        End the job where it is; its record stays.
        """
        now = self.now()
        if job in self._line:
            self._line.remove(job)
        if job in self._working:
            self._working.remove(job)
        if job.unended:
            self._end(job, JobState.STOPPED, now)

    def finish(self) -> None:
        """
        End every job's work now, waiting ones included.
        """
        now = self.now()
        for job in self._line:
            job.eligible, job.run_seconds = now, 0.0
        for job in self._working:
            job.run_seconds = now - (job.started or now)
        self.settle(now)

    def restart(self, *, forget: bool, down: float = 0.0) -> None:
        """
        Start again: unended jobs are lost, and all are where `forget`; every connection is refused for `down` seconds.
        """
        now = self.now()
        self.restarts += 1
        if forget:
            for job in [*self._line, *self._working]:
                self._end(job, JobState.STOPPED, now)
            self.jobs.clear()
            self._line.clear()
            self._working.clear()
        self.down_until = now + down

    def change(self, changes: dict[str, Any]) -> None:
        """
        Set options by name.

        Raises:
            ConfigError: There is no such option, it is fixed, or the value is wrong; nothing was changed.
        """
        known = {one.name for one in fields(SimulatorOptions)} - _FIXED - {"faults"}
        for name in changes:
            if name not in known:
                raise ConfigError(f"{name} cannot be set; known are {', '.join(sorted(known))}.")
        # What room the change makes is there from now on, not from an earlier moment.
        self._event = self.now()
        self.options = replace(self.options, **changes)

    def chance(self, number: int, what: str) -> float:
        """
        A number from 0 to 1 that depends on the seed, the job and the purpose alone.
        """
        drawn = hashlib.sha256(f"{self.options.seed}:{number}:{what}".encode()).digest()
        return int.from_bytes(drawn[:7], "big") / float(1 << 56)

    def _next_start(self) -> float:
        busy = self.options.workers is not None and len(self._working) >= self.options.workers
        return math.inf if busy or not self._line else max(self._line[0].eligible, self._event)

    def _start(self, job: Job, at: float) -> None:
        job.state, job.started = JobState.WORKING, at
        self._working.append(job)
        line = self.ledger.jobs[job.id]
        line.state, line.started = job.state, round(at, 3)

    def _end(self, job: Job, state: JobState, at: float) -> None:
        job.state, job.ended, job.ended_at = state, at, self._wall(at)
        line = self.ledger.jobs[job.id]
        line.state, line.ended = state, round(at, 3)

    def _fate(self, number: int, wish: dict[str, str]) -> str | None:
        if "moderated" in wish or self.chance(number, "moderation") < self.options.moderation_share:
            return "moderation_blocked"
        if wish.get("fail"):
            return wish["fail"]
        if "fail" in wish or self.chance(number, "failure") < self.options.fail_share:
            return "generation_failed"
        return None

    def wall(self, at: float) -> float:
        """
        That second as Unix seconds of the wall clock.
        """
        return self._began_at + at

    def _wall(self, at: float) -> int:
        return int(self.wall(at))

    def _new_id(self, number: int, shape: Callable[[str], str] | None) -> str:
        # The moment of the start is part of it: after a restart, the same number is another job.
        drawn = hashlib.sha256(f"{self.options.seed}:{self._began_at}:{number}:id".encode()).hexdigest()
        if shape is not None:
            return shape(drawn)
        match self.options.dialect:
            case "vllm-omni":
                return f"video_gen_{drawn[:32]}"
            case "sglang":
                return uuid(drawn)
            case _:
                return f"video_{drawn[:48]}"


def _end_of(job: Job) -> float:
    return (job.started or 0.0) + job.run_seconds
