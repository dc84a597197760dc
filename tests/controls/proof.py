"""
Plant every deliberate bug and see it caught: `python tests/controls/proof.py`. Prints one line of JSON.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from controls.bugs import BUGS
from controls.controls import Outcome, with_bug, without_bug


def main() -> int:
    """Run them; the status is 1 if a bug was not caught, or a test fails without any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--verbose", action="store_true", help="show what the tests said")
    parser.add_argument("bugs", nargs="*", help="only these")
    asked = parser.parse_args()
    names = asked.bugs or list(BUGS)
    began = time.monotonic()
    with ThreadPoolExecutor(asked.jobs) as pool:
        clean = pool.submit(without_bug, names)
        outcomes = [*pool.map(with_bug, names), clean.result()]
    for one in outcomes:
        _tell(one, verbose=asked.verbose)
    missed = [one.bug or "none" for one in outcomes if not one.right]
    figures = {
        "proof": "controls",
        "bugs": len(names),
        "caught": sum(one.right for one in outcomes if one.bug is not None),
        "violations": len(missed),
        "seconds": round(time.monotonic() - began, 1),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return 1 if missed else 0


def _tell(one: Outcome, *, verbose: bool) -> None:
    name = one.bug or "(no bug)"
    wrong = "misplanted" if one.misplanted else f"pytest says {one.status}"
    told = ("passed" if one.bug is None else "caught") if one.right else f"NOT RIGHT, {wrong}"
    sys.stderr.write(f"{name}: {told}\n")
    if verbose or not one.right:
        sys.stderr.write(one.said + "\n")


if __name__ == "__main__":
    sys.exit(main())
