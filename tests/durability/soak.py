"""
A long life: does anything grow that should not? An hour of tasks in virtual time, and minutes of a real process.
"""

import gc
import time
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidrelay.core.policy import CachePolicy
from vidrelay.core.task import State
from vidrelay.scheduler.roster import KEPT_ENDED
from vidrelay.store import migrate

from .lives import Ground, Life
from .processes import Relay, configure, relay, simulator

CACHE_BYTES = 4_000
"""Room for about twenty of the toy provider's clips, so that evictions go on all the time."""

WARM_TASKS = KEPT_ENDED + 200
FORGOTTEN: dict[str, Any] = {}
TABLES = ("tasks", "events", "client_keys", "results", "counters", "pauses", "assets")


@dataclass(frozen=True, slots=True)
class Measure:
    """
    What is held at one moment: open descriptors, bytes of Python's memory, files beside the database, rows by table.
    """

    descriptors: int
    python_bytes: int
    files: int
    rows: dict[str, int]


async def virtual(folder: Path, *, seconds: float = 3600.0, every: float = 1.0) -> dict[str, Any]:
    """
    Submit a clip every so many virtual seconds, some of them twice, some cancelled, some with troubles on the way.

    The first part warms up; growth is from there to the end. `handles` is the growth of open descriptors,
    `bytesPerTask` of Python's memory for each task that was made meanwhile, `rowsPerTask` the rows that each of them
    added. The relay keeps its newest ended tasks in memory: bytes are flat once there have been more than it keeps.
    """
    ground = Ground(folder, window=8, cache=CachePolicy(min_free_bytes=1, max_bytes=CACHE_BYTES))
    ground.provider.run_seconds = 4.0
    async with ground.life() as life:
        steps = int(seconds / every)
        warm = min(steps * 2 // 3, WARM_TASKS)
        measures: list[Measure] = []
        tracemalloc.start()
        try:
            for step in range(steps):
                if step == warm:
                    measures.append(_measure(life))
                await _one_step(life, step)
                await ground.clock.advance(every)
            await life.until(State.DONE, State.CANCELLED, State.FAILED, prompts=steps, within=3600)
            # The event loop holds the last answer, a page of all tasks, as long as what it woke has not slept again.
            await ground.clock.settle()
            measures.append(_measure(life))
        finally:
            tracemalloc.stop()
    return _told(steps - warm, *measures) | {"virtualSeconds": seconds, "creates": len(ground.provider.creates)}


async def _one_step(life: Life, step: int) -> None:
    provider = life.ground.provider
    match step % 10:
        case 3:
            provider.arm("poll", 500, "lost_before")
        case 5:
            provider.arm("create", 429)
            provider.retry_after = "3"
        case 7:
            provider.arm("download", 503)
    task = await life.submit(f"clip {step}")
    if step % 10 == 1:
        await life.submit(f"clip {step}")
    if step % 10 == 9:
        await life.relay.cancel(task.id)
    _forget(life.ground)


def _forget(ground: Ground) -> None:
    """
    What the pretend provider remembers is not the relay's: only how many creates there were is kept.
    """
    provider = ground.provider
    for job in list(provider.jobs.values())[:-100]:
        if job.state in ("done", "cancelled"):
            del provider.jobs[job.id]
    del provider.calls[:-100]
    for number in range(len(provider.creates) - 100, max(0, len(provider.creates) - 110), -1):
        provider.creates[number] = FORGOTTEN


def _measure(life: Life) -> Measure:
    folder = life.ground.folder
    # First, for SQLite keeps the descriptor of a closed connection while another one is open, to use it again.
    rows = count_rows(folder / "relay.db")
    gc.collect()
    return Measure(
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        python_bytes=tracemalloc.get_traced_memory()[0],
        files=sum(1 for path in folder.rglob("*") if path.is_file()),
        rows=rows,
    )


def count_rows(database: Path) -> dict[str, int]:
    """
    How many rows each table has.
    """
    connection = migrate.open_for_reading(database)
    try:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    finally:
        connection.close()


def _told(tasks: int, first: Measure, last: Measure) -> dict[str, Any]:
    rows = Counter(last.rows)
    rows.subtract(first.rows)
    return {
        "tasks": tasks,
        "handles": last.descriptors - first.descriptors,
        "bytesPerTask": round((last.python_bytes - first.python_bytes) / tasks),
        "files": last.files - first.files,
        "rowsPerTask": {table: round(count / tasks, 2) for table, count in rows.items() if count},
    }


def real(folder: Path, *, seconds: float = 300.0) -> dict[str, Any]:
    """
    Keep a real relay busy that long. The first third warms up; growth is from there to the end.
    """
    with simulator(folder, "--run-seconds", "0.2", "--queue-seconds", "0.1") as provider:
        configure(folder, provider.port, cache="2MB")
        with relay(folder) as running:
            began = time.monotonic()
            marks: list[tuple[int, float, int]] = []
            done = 0
            while (passed := time.monotonic() - began) < seconds:
                if passed >= seconds / 3 and not marks:
                    marks.append(_process(running, done))
                task = running.submit(f"clip {done}").json()
                running.until(task["taskId"], "done")
                running.http.get(f"/task/{task['taskId']}/result")
                done += 1
            marks.append(_process(running, done))
            rows = count_rows(running.state / "relay.db")
            (first_handles, first_mb, first_done), (last_handles, last_mb, last_done) = marks
            return {
                "seconds": seconds,
                "tasks": last_done - first_done,
                "handles": last_handles - first_handles,
                "residentMb": [round(first_mb, 1), round(last_mb, 1)],
                "rowsPerTask": {table: round(count / done, 2) for table, count in rows.items() if count},
            }


def _process(running: Relay, done: int) -> tuple[int, float, int]:
    proc = Path(f"/proc/{running.child.pid}")
    status = (proc / "status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return len(list((proc / "fd").iterdir())), resident / 1024, done
