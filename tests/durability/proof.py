"""
Everything that is claimed of the disk, tried in earnest: `python -m tests.durability.proof --full` from the checkout.

Prints one line of JSON with the figures, and exits with 1 where anything was lost or made twice, grew, or took too
long. Without `--full` it is a sample of a minute.
"""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from . import power, recovery, soak
from .each_write import WAYS, count_work, survive

SAMPLE = 12
"""Without `--full` one piece of work in so many is failed."""

MAX_READY_SECONDS = 2.0
MAX_BYTES_PER_TASK = 1_000
MAX_GROWN_MB = 16.0
MAX_HANDLES = 2
MAX_FILES = 2
MAX_ROWS_PER_TASK = {"tasks": 1.0, "events": 9.0, "counters": float("inf")}
"""Of any other table at most one row a task; counters have a row a name, however few tasks there were."""


def in_folder(work: Callable[[Path], Any]) -> Any:
    """
    Do the work in a directory of its own, which is gone afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="vidrelay-proof-") as place:
        return work(Path(place))


def awaited(work: Callable[..., Awaitable[Any]], **more: Any) -> Any:
    """
    Run the coroutine in a directory of its own.
    """
    return in_folder(lambda folder: asyncio.run(work(folder, **more)))


def each_write(*, thin: int) -> dict[str, Any]:
    """
    A whole relay for each piece of work that fails: every one in each kind, its ways in turn; or one in `thin` of them.
    """
    told: Counter[str] = Counter()
    works = {kind: awaited(count_work, kind=kind) for kind in WAYS}
    for kind, ways in WAYS.items():
        for first, way in enumerate(ways, start=1):
            for nth in range(first, works[kind] + 1, len(ways) * thin):
                try:
                    told += awaited(survive, kind=kind, way=way, nth=nth)
                except BaseException as wrong:
                    raise AssertionError(f"kind={kind} way={way} nth={nth}") from wrong
                told["lives"] += 1
    return {"works": works, **told}


def hold(figures: dict[str, Any], *, full: bool) -> None:
    """
    Hold the figures to what is promised of time and growth, of which no trial fails by itself.

    Raises:
        AssertionError: A start took too long, or something grew that should not.
    """
    virtual, real = figures["soakVirtual"], figures["soakReal"]
    ready = figures["recovery"]["readySeconds"]
    assert ready < MAX_READY_SECONDS, f"ready after {ready} s"
    for soak_of, told in (("virtual", virtual), ("real", real)):
        assert told["handles"] <= MAX_HANDLES, f"{soak_of}: {told['handles']} handles more"
        for table, share in told["rowsPerTask"].items():
            assert share <= MAX_ROWS_PER_TASK.get(table, 1.0), f"{soak_of}: {share} rows of {table} a task"
    assert abs(virtual["files"]) <= MAX_FILES, f"{virtual['files']} files more"
    # A short life has not yet forgotten the first of its ended tasks.
    assert not full or virtual["bytesPerTask"] < MAX_BYTES_PER_TASK, f"{virtual['bytesPerTask']} bytes a task"
    first, last = real["residentMb"]
    assert last - first < MAX_GROWN_MB, f"from {first} to {last} MB"


def prove(*, full: bool) -> dict[str, Any]:
    """
    The figures, by what was tried.

    Raises:
        AssertionError: Something was lost or made twice, grew, or took too long.
    """
    trials: dict[str, Callable[[], Any]] = {
        "logCuts": lambda: awaited(power.cut_log, cuts=1500 if full else 60, tails=500 if full else 40),
        "powerCuts": lambda: awaited(power.replay, crashes=1000 if full else 40, tasks=200 if full else 60),
        "eachWrite": lambda: each_write(thin=1 if full else SAMPLE),
        "recovery": lambda: in_folder(lambda folder: recovery.measure(folder, live=SIZE[full], results=SIZE[full])),
        "soakVirtual": lambda: awaited(soak.virtual, seconds=3600.0 if full else 60.0),
        "soakReal": lambda: in_folder(lambda folder: soak.real(folder, seconds=300.0 if full else 10.0)),
    }
    figures: dict[str, Any] = {}
    for name, trial in trials.items():
        began = time.perf_counter()
        figures[name] = trial() | {"tookSeconds": round(time.perf_counter() - began, 1)}
        sys.stderr.write(f"{name}: {json.dumps(figures[name])}\n")
    hold(figures, full=full)
    return figures


SIZE = {False: 500, True: 10_000}


def main() -> int:
    """
    Prove, and tell.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="every number as the documentation tells it: half an hour")
    logging.disable(logging.CRITICAL)
    try:
        figures = prove(full=parser.parse_args().full)
    except AssertionError:
        traceback.print_exc()
        sys.stdout.write(json.dumps({"violations": 1}) + "\n")
        return 1
    sys.stdout.write(json.dumps({"violations": 0, **figures}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
