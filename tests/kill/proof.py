"""
Kill a real relay at every point: `python tests/kill/proof.py --rounds 3`. Prints one line of JSON: what was done.
"""

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kill.points import POINTS
from kill.trial import Outcome, run


def main() -> int:
    """Run the rounds; the status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="how many trials at once")
    parser.add_argument("points", nargs="*", help="only these")
    asked = parser.parse_args()
    began = time.monotonic()
    trials = [(name, number) for number in range(asked.rounds) for name in asked.points or POINTS]
    with tempfile.TemporaryDirectory(prefix="vidrelay-kill-") as folder, ThreadPoolExecutor(asked.jobs) as pool:
        outcomes = list(pool.map(lambda trial: _trial(*trial, Path(folder)), trials))
    wrong = [f"{one.point} round {one.round}: {one.wrong}" for one in outcomes if one.wrong]
    for line in wrong:
        sys.stderr.write(line + "\n")
    figures = {
        "proof": "kill",
        "points": len({one.point for one in outcomes}),
        "trials": len(outcomes),
        "kills": sum(one.kills for one in outcomes),
        "violations": len(wrong),
        "seconds": round(time.monotonic() - began, 1),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return 1 if wrong else 0


def _trial(name: str, number: int, folder: Path) -> Outcome:
    began = time.monotonic()
    try:
        outcome = run(name, number, folder / f"{name}-{number}")
    except Exception as error:
        outcome = Outcome(point=name, round=number, kills=0, wrong=f"the trial broke: {error!r}")
    told = "ok" if outcome.wrong is None else f"WRONG {outcome.wrong}"
    sys.stderr.write(f"{name} round {number} kills {outcome.kills} {time.monotonic() - began:.1f} s {told}\n")
    return outcome


if __name__ == "__main__":
    sys.exit(main())
