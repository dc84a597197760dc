"""
Many seeds: each in a directory of its own, several processes at once, and what came of all.
"""

import gc
import multiprocessing
import os
import resource
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vidrelay.core.task import State
from vidrelay.testing.simulation.faults import KINDS
from vidrelay.testing.simulation.points import POINTS
from vidrelay.testing.simulation.world import Outcome, World

BATCH = 10
BATCHES_A_PROCESS = 5
"""A killed life is kept in memory for ever, so a process runs so many seeds and is followed by another."""

ENOUGH_TO_JUDGE = 200
LEAST_SHARE = 0.01
MOST_MISSED = 0.05
"""A seed with trouble of every kind may never come to a point; so many may not."""

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 a folder of our own is made in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    One run: `point` (`k12`) makes the relay die there.
    """

    seed: int
    steps: int = 200
    point: str | None = None

    def command(self) -> str:
        """
        What replays it.
        """
        point = "" if self.point is None else f" --point {self.point}"
        return f"python -m vidrelay.testing.simulation --seed {self.seed} --steps {self.steps}{point}"


@dataclass(slots=True, kw_only=True)
class Tally:
    """
    What many runs came to; the counters count the runs in which something came up. `runs_at` were to die at a kill
    point, and `missed` are those of them that never came to it.
    """

    runs: int = 0
    steps: int = 0
    tasks: int = 0
    cpu_seconds: float = 0.0
    virtual_seconds: float = 0.0
    deaths: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    died_at: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[Run, Outcome]] = field(default_factory=list)
    missed: list[Run] = field(default_factory=list)
    runs_at: list[Run] = field(default_factory=list)

    def add(self, run: Run, outcome: Outcome, cpu_seconds: float) -> None:
        """
        Count a run.
        """
        self.runs += 1
        self.steps += outcome.steps
        self.tasks += outcome.tasks
        self.cpu_seconds += cpu_seconds
        self.virtual_seconds += outcome.virtual_seconds
        self.deaths += sum(outcome.died_at.values())
        self.died_at.update(outcome.died_at)
        for sums, seen in (
            (self.faults, outcome.faults),
            (self.states, outcome.states),
            (self.points, outcome.points),
        ):
            sums.update(name for name, count in seen.items() if count)
        if run.point is not None:
            self.runs_at.append(run)
        if outcome.broken:
            self.broken.append((run, outcome))
        elif run.point is not None and not outcome.died_at[POINTS[run.point]]:
            self.missed.append(run)

    def spared(self) -> list[str]:
        """
        The kill points at which no run died that was to die there, and "too many" where one run of twenty did not.
        """
        aimed = Counter(run.point for run in self.runs_at)
        missed = Counter(run.point for run in self.missed)
        never = [point for point, count in aimed.items() if point is not None and missed[point] == count]
        return never + (["too many"] if len(self.missed) > MOST_MISSED * len(self.runs_at) else [])

    def rare(self) -> list[str]:
        """
        The kinds of trouble and the states that came up in too few of enough runs.
        """
        if self.runs < ENOUGH_TO_JUDGE:
            return []
        seen = self.faults + self.states
        return [name for name in (*KINDS, *map(str, State)) if seen[name] < LEAST_SHARE * self.runs]


def run_once(run: Run) -> Outcome:
    """
    Run one seed from its beginning to its end.

    Raises:
        Exception: The simulation itself fails; its notes tell how to replay it.
    """
    place = MEMORY_DISK if MEMORY_DISK.is_dir() and os.access(MEMORY_DISK, os.W_OK) else None
    point = None if run.point is None else POINTS[run.point]
    with tempfile.TemporaryDirectory(prefix="vidrelay-sim-", dir=place) as folder:
        outcome = World(run.seed, Path(folder), steps=run.steps, point=point).run()
    return outcome if outcome.broken else replace(outcome, tail=())


def run_many(runs: Sequence[Run], *, jobs: int) -> Iterator[tuple[Run, Outcome, float]]:
    """
    Run them in so many processes; yields each with what came of it and the seconds of processor that it took.
    """
    if jobs <= 1:
        yield from map(_measured, runs)
        return
    batches = [runs[start : start + BATCH] for start in range(0, len(runs), BATCH)]
    # Not concurrent.futures: in Python 3.11 its executor hangs when the last of its processes has run its share.
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=BATCHES_A_PROCESS) as pool:
        for done in pool.imap(_batch, batches):
            yield from done


def kill_runs(seeds: Iterable[int], *, steps: int) -> list[Run]:
    """
    Every kill point with every one of these seeds.
    """
    return [Run(seed=seed, steps=steps, point=point) for seed in seeds for point in POINTS]


def _batch(runs: Sequence[Run]) -> list[tuple[Run, Outcome, float]]:
    return [_measured(run) for run in runs]


def _measured(run: Run) -> tuple[Run, Outcome, float]:
    before = _processor_seconds()
    try:
        outcome = run_once(run)
    except Exception as error:
        outcome = Outcome(
            seed=run.seed, steps=0, digest="", broken=(f"the simulation itself failed: {error!r}",), tail=()
        )
    # What is kept for ever need not be looked through for garbage again.
    gc.collect()
    gc.freeze()
    return run, outcome, _processor_seconds() - before


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
