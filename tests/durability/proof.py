"""
Everything that is claimed of the disk, tried in earnest: `python -m tests.durability.proof --full` from the checkout.

Prints one line of JSON with the figures, and exits with 1 where anything was lost or made twice. Without `--full` it is
a sample of a minute.
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

STRIDE = 3
"""Each kind of failure takes every third piece of work, each from another start, so that every piece is failed."""


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


def each_write(*, stride: int) -> dict[str, Any]:
    """
    A whole relay for each way to fail and each piece of work that fails.
    """
    told: Counter[str] = Counter()
    combinations = [(kind, way) for kind, ways in WAYS.items() for way in ways]
    works = {kind: awaited(count_work, kind=kind) for kind in WAYS}
    for number, (kind, way) in enumerate(combinations):
        for nth in range(1 + number % stride, works[kind] + 1, stride):
            try:
                told += awaited(survive, kind=kind, way=way, nth=nth)
            except BaseException as wrong:
                raise AssertionError(f"kind={kind} way={way} nth={nth}") from wrong
            told["lives"] += 1
    return {"works": works, **told}


def prove(*, full: bool) -> dict[str, Any]:
    """
    The figures, by what was tried.

    Raises:
        AssertionError: Something was lost or made twice.
    """
    trials: dict[str, Callable[[], Any]] = {
        "logCuts": lambda: awaited(power.cut_log, cuts=1500 if full else 60, tails=500 if full else 40),
        "powerCuts": lambda: awaited(power.replay, crashes=1000 if full else 40, tasks=200 if full else 60),
        "eachWrite": lambda: each_write(stride=STRIDE if full else 40),
        "recovery": lambda: in_folder(lambda folder: recovery.measure(folder, live=SIZE[full], results=SIZE[full])),
        "soakVirtual": lambda: awaited(soak.virtual, seconds=3600.0 if full else 60.0),
        "soakReal": lambda: in_folder(lambda folder: soak.real(folder, seconds=300.0 if full else 10.0)),
    }
    figures: dict[str, Any] = {}
    for name, trial in trials.items():
        began = time.perf_counter()
        figures[name] = trial() | {"tookSeconds": round(time.perf_counter() - began, 1)}
        sys.stderr.write(f"{name}: {json.dumps(figures[name])}\n")
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
