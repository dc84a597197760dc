"""
`make bench`: every figure with its goal, in about two minutes. Exits with 0 whatever the figures are.
"""

import json
import platform
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from bench.relay import ROOT, Running, ask, bare_routes, configure, load, pretend_provider, relay
from vidrelay.core.pace import next_poll
from vidrelay.core.policy import PollPolicy

ROUNDS = 3
ROUND_SECONDS = 1.5
COMMIT_SECONDS = 0.5
STARTS = 5
LIVE, ENDED = 10_000, 100_000
BODY = json.dumps(
    {
        "prompt": "Shot @@: " + "a paper boat leaves the harbour at dawn, the camera rising slowly; " * 6,
        "modelVersion": "slow",
        "aspectRatio": "16:9",
        "duration": 4,
        "resolution": "720p",
        "metadata": {"scene": 12},
    }
)

Figures = dict[str, float]


def row(what: str, measured: str, goal: str = "", verdict: str = "") -> None:
    """
    Print one line of the table.
    """
    print(f"{what:<44} {measured:>22}   {goal:<34} {verdict}".rstrip(), flush=True)


def within(value: float, goal: float) -> str:
    """
    How far a value uses its goal up.
    """
    return f"{value / goal:.2f} of goal{'' if value <= goal else ', missed'}"


def milliseconds(figures: Figures) -> str:
    """
    Both percentiles.
    """
    return f"{figures['p50']:.2f} / {figures['p99']:.2f} ms"


def measure(server: Running, method: str, path: str, connections: int) -> dict[str, Any]:
    """
    One round against one server.
    """
    body = BODY if method == "POST" else ""
    told = load(server, path, method=method, body=body, connections=connections, seconds=ROUND_SECONDS)
    if set(told["statuses"]) - {"200", "202"}:
        raise RuntimeError(f"{method} {path} answered {told['statuses']}")
    return told


def typical(rounds: list[dict[str, Any]]) -> Figures:
    """
    The median of several rounds, figure by figure.
    """
    return {name: median(told[name] for told in rounds) for name in ("p50", "p99", "perSecond") if name in rounds[0]}


def requests(ours: Running, bare: Running, home: Path, task_id: str) -> None:
    """
    GET and POST beside the bare routes, and a POST's commits beside it, in alternating rounds.
    """
    for method, connections in product(("GET", "POST"), (1, 32)):
        path = f"/task/{task_id}" if method == "GET" else "/generate"
        bares, mines, commits = [], [], []
        for _ in range(ROUNDS):
            bares.append(measure(bare, method, path, connections))
            mines.append(measure(ours, method, path, connections))
            if method == "POST":
                with tempfile.TemporaryDirectory(dir=home) as place:
                    commits.append(ask("bench.commits", place, str(COMMIT_SECONDS)))
        base, figures = typical(bares), typical(mines)
        name = f"{method} {'/task/{id}' if method == 'GET' else '/generate'}, {connections} connection"
        name += "s" if connections > 1 else ""
        row(f"{name}, bare route", milliseconds(base))
        if method == "GET":
            goals = {key: 2 * base[key] for key in ("p50", "p99")}
            row(name, milliseconds(figures), f"2 x bare: {milliseconds(goals)}", verdict(figures, goals))
            continue
        commit = typical(commits)
        goals = {key: base[key] + 2 * commit[key] for key in ("p50", "p99")}
        row("one durable commit", milliseconds(commit))
        row(name, milliseconds(figures), f"bare + 2 commits: {milliseconds(goals)}", verdict(figures, goals))
        if connections > 1:
            row("queued tasks accepted per second", f"{figures['perSecond']:.0f}")


def verdict(figures: Figures, goals: Figures) -> str:
    """
    Both percentiles against theirs.
    """
    return f"p50 {within(figures['p50'], goals['p50'])}; p99 {within(figures['p99'], goals['p99'])}"


def starts(home: Path) -> None:
    """
    Start to ready and idle memory, of a relay whose state directory is there already.
    """
    seconds, resident = [], []
    for _ in range(STARTS):
        with relay(home) as running:
            seconds.append(running.ready_seconds)
            time.sleep(0.5)
            resident.append(running.resident_mb())
    middle = median(seconds)
    row(f"start to ready (median of {STARTS})", f"{middle:.2f} s", "0.5 s", within(middle, 0.5))
    if all(resident):
        most = max(mb for mb in resident if mb is not None)
        row("memory when idle, with its children", f"{most:.0f} MB", "60 MB", within(most, 60))
    else:
        row("memory when idle", "not told by this system")


def crowded_start(home: Path) -> None:
    """
    Start to ready with a full database.
    """
    ask("bench.crowd", str(home / "state" / "relay.db"), str(LIVE), str(ENDED))
    with relay(home) as running:
        took = running.ready_seconds
    row(f"start with {LIVE:,} live and {ENDED:,} ended", f"{took:.2f} s", "2 s", within(took, 2))


def polls() -> None:
    """
    Polls for five minutes of remote work at the default pace: with the jitter's middle, and always its shortest.
    """
    counts = []
    for chance in (0.5, 0.0):
        elapsed, asked = 0.0, 0
        while True:
            elapsed += next_poll(polls=asked, elapsed=elapsed, policy=PollPolicy(), floor=1.0, chance=chance)
            if elapsed > 300:
                break
            asked += 1
        counts.append(asked)
    row("polls for five minutes of work", f"{counts[0]} ({counts[1]} at worst)", "25", within(counts[0], 25))


def submit(running: Running, prompt: str, model: str) -> str:
    """
    Make one task; its id.
    """
    answer = running.call("POST", "/generate", json={"prompt": prompt, "modelVersion": model})
    if answer.status_code != 202:
        raise RuntimeError(f"POST /generate answered {answer.status_code}: {answer.text}")
    return str(answer.json()["taskId"])


def main() -> int:
    """
    Measure everything.
    """
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}; median of {ROUNDS} alternating rounds; p50 / p99\n"
    )
    begun = time.perf_counter()
    # In the checkout and not in the system's temporary directory, which may be memory: commits must be durable.
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as place, ExitStack() as stack:
        home = Path(place)
        configure(home, stack.enter_context(pretend_provider()))
        with relay(home) as ours:
            ended = submit(ours, "a short one", "fast")
            submit(ours, "one that runs on", "slow")
            waiting = submit(ours, "one that waits", "slow")
            ours.call("GET", f"/task/{ended}?wait=30&seen=queued")
            answer = home / "task.json"
            answer.write_text(ours.call("GET", f"/task/{waiting}").text)
            with bare_routes(answer) as bare:
                requests(ours, bare, home, waiting)
            while (state := ours.call("GET", f"/task/{ended}?wait=30").json()["state"]) != "done":
                if state in ("failed", "cancelled", "expired"):
                    raise RuntimeError(f"the short task ended {state}")
        empty = home / "empty"
        empty.mkdir()
        configure(empty, 9)
        with relay(empty):
            pass
        starts(empty)
        crowded_start(home)
    polls()
    print(f"\nmeasured in {time.perf_counter() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
