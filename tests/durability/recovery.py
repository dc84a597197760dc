"""
How long a relay takes to take up a full state directory: many live tasks in every state, many results in the cache.
"""

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

from vidrelay.core.lifecycle import Saved
from vidrelay.core.task import FileRef, State, Task
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.records import events_to, make_task, moved
from vidrelay.testing.stored import rule

from .processes import arguments, begin, configure, end, wait_for

BATCH = 500
SHARES = (
    (State.QUEUED, 0.9),
    (State.RUNNING, 0.04),
    (State.DOWNLOADING, 0.02),
    (State.UNCERTAIN, 0.02),
    (State.SUBMITTING, 0.02),
)


async def fill(state: Path, *, live: int, results: int) -> None:
    """
    Make a state directory as a busy life leaves it when it is killed.
    """
    state.mkdir(mode=0o700)  # noqa: ASYNC240 before anything else runs
    store = await SqliteStore.open(state / "relay.db")
    states = [one for one, share in SHARES for _ in range(int(live * share))]
    states += [State.QUEUED] * (live - len(states)) + [State.DONE] * results
    for start in range(0, len(states), BATCH):
        await asyncio.gather(*(_bring(store, one, state / "cache") for one in states[start : start + BATCH]))
    await store.aclose()


async def _bring(store: SqliteStore, state: State, cache: Path) -> Task:
    task = make_task(account="sim", window="*", model_version=None)
    task = (await store.add(task, rule())).task
    for event in events_to(state, task, remote_id=f"video_{task.seq}"):
        if isinstance(event, Saved):
            event = Saved(files=(_result(cache, task),))  # noqa: PLW2901 with a file that is really there
        task = await store.save(moved(task, event), event, expected_version=task.version)
    return task


def _result(cache: Path, task: Task) -> FileRef:
    content = f"the clip of {task.id}".encode()
    folder = cache / task.fingerprint
    folder.mkdir(mode=0o700, parents=True)
    (folder / f"{task.id}-0.mp4").write_bytes(content)
    return FileRef(
        index=0,
        path=f"{task.fingerprint}/{task.id}-0.mp4",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        media_type="video/mp4",
    )


def measure(folder: Path, *, live: int = 10_000, results: int = 10_000, rounds: int = 3) -> dict[str, Any]:
    """
    Start a real relay on such a directory a few times.

    `readySeconds` is from the start of the process to the answer that it listens, with every task taken up;
    `sweptSeconds` until the cache has been compared with its index as well. The best of the rounds counts, since the
    machine may have other work; all are told.
    """
    asyncio.run(fill(folder / "state", live=live, results=results))
    configure(folder, 9)
    log = folder / "state" / "logs" / "relay.log"
    ready, swept = [], []
    for number in range(rounds):
        orphan = folder / "state" / "cache" / f"{number:064x}"
        orphan.mkdir(mode=0o700)
        (orphan / f"orphan{number}-0.mp4").write_bytes(b"nobody's")
        began = time.perf_counter()
        child, port = begin(*arguments(folder), log=folder / "relay.log")
        ready.append(round(time.perf_counter() - began, 2))
        try:
            assert port is not None, (folder / "relay.log").read_text()
            wait_for(lambda number=number: log.read_text().count("cache.swept") > number)
            swept.append(round(time.perf_counter() - began, 2))
        finally:
            end(child, kill=True)
    return {
        "live": live,
        "results": results,
        "readySeconds": min(ready),
        "sweptSeconds": min(swept),
        "all": [ready, swept],
    }
