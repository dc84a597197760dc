"""
`python -m vidrelay.testing.simulation`: run seeds and say what came of them; status 1 if anything is broken.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable

from vidrelay.testing.simulation.found import FOUND
from vidrelay.testing.simulation.points import POINTS
from vidrelay.testing.simulation.run import ENOUGH_TO_JUDGE, Run, Tally, kill_runs, run_many, run_once

SHOWN = 60
TOLD_EVERY = 50


def main() -> int:
    """
    Run what the arguments ask for.
    """
    asked = _arguments()
    if asked.seed is not None:
        return _replay(Run(seed=asked.seed, steps=asked.steps, point=asked.point), lines=asked.lines)
    seeds = range(asked.first, asked.first + asked.seeds)
    runs = kill_runs(seeds, steps=asked.steps) if asked.points else seed_runs(seeds, steps=asked.steps)
    tally = Tally()
    for run, outcome, seconds in run_many(runs, jobs=asked.jobs):
        tally.add(run, outcome, seconds)
        if outcome.broken:
            sys.stderr.write(f"seed {run.seed}: {outcome.broken[0]}\n  replay it: {run.command()}\n")
        if tally.runs % TOLD_EVERY == 0:
            sys.stderr.write(f"{tally.runs} of {len(runs)} runs, {len(tally.broken)} broken\n")
    if asked.json:
        _say(json.dumps(_figures(tally)))
    else:
        _tell(tally)
    return 1 if tally.broken or tally.spared() or (tally.rare() and not asked.points) else 0


def seed_runs(seeds: Iterable[int], *, steps: int) -> list[Run]:
    """
    One run for each seed, after those that once found something.
    """
    return [Run(seed=seed, steps=steps) for seed in dict.fromkeys([*FOUND, *seeds])]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vidrelay.testing.simulation", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=50, help="how many seeds (50), beside those that once found something"
    )
    parser.add_argument("--first", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--steps", type=int, default=200, help="steps of each (200)")
    parser.add_argument("--points", action="store_true", help="kill at every kill point, each with every seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once (one for each core)")
    parser.add_argument("--json", action="store_true", help="say the figures as one line of JSON")
    parser.add_argument("--seed", type=int, help="replay this one, and show how it ended")
    parser.add_argument("--point", choices=POINTS, help="with --seed: kill it at this point")
    parser.add_argument("--lines", type=int, default=SHOWN, help=f"with --seed: so many lines of its log ({SHOWN})")
    return parser.parse_args()


def _replay(run: Run, *, lines: int) -> int:
    outcome = run_once(run)
    for line in outcome.tail[-lines:]:
        _say(line)
    _say(f"{outcome.steps} steps, {outcome.tasks} tasks, {outcome.virtual_seconds:.0f} virtual seconds")
    _say(f"log {outcome.digest}")
    for broken in outcome.broken:
        _say(broken)
    return 1 if outcome.broken else 0


def _tell(tally: Tally) -> None:
    runs = max(1, tally.runs)
    _say(
        f"{tally.runs} runs, {tally.steps} steps, {tally.tasks} tasks, {tally.deaths} deaths,"
        f" {tally.virtual_seconds / 3600:.0f} virtual hours; {tally.cpu_seconds / runs:.2f} s of processor a run"
    )
    _say("trouble, in so many runs: " + _counted(tally.faults))
    _say("states: " + _counted(tally.states))
    _say("died at: " + _counted(tally.died_at))
    for run in tally.missed:
        _say(f"never came to its kill point: {run.command()}")
    if tally.rare():
        _say(f"too rare to say anything of: {', '.join(tally.rare())}")
    elif tally.runs < ENOUGH_TO_JUDGE:
        _say(f"(below {ENOUGH_TO_JUDGE} runs it is not judged whether every kind of trouble came)")
    _say(f"{len(tally.broken)} broken")


def _figures(tally: Tally) -> dict[str, object]:
    return {
        "runs": tally.runs,
        "steps": tally.steps,
        "tasks": tally.tasks,
        "deaths": tally.deaths,
        "virtualHours": round(tally.virtual_seconds / 3600),
        "processorSecondsPerRun": round(tally.cpu_seconds / max(1, tally.runs), 2),
        "faults": dict(sorted(tally.faults.items())),
        "states": dict(sorted(tally.states.items())),
        "pointsNeverPassed": [name for name, event in POINTS.items() if not tally.points[event]],
        "diedAt": dict(sorted(tally.died_at.items())),
        "rare": tally.rare(),
        "diedAtTheirPoint": len(tally.runs_at) - len(tally.missed),
        "spared": tally.spared(),
        "broken": [run.command() for run, _ in tally.broken],
    }


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
