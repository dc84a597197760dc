"""
Break the create call at every byte: `python tests/ambiguous/proof.py`. Prints one line of JSON: what was done.

With `--bug NAME` one of the deliberate bugs of tests/controls is planted first, and violations must be found.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ambiguous.cases import Round, rounds, sample
from ambiguous.line import Framing, Shape
from ambiguous.sweep import Outcome, play
from ambiguous.verdict import must_occur

BUGS = ("blind_retry", "nothing_was_sent", "adopts_for_either_of_two_tasks")
WITH_BUG = 2
"""So many rounds of the sample show a bug."""

SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """
    What the sweep made of a planted bug.
    """

    status: int
    violations: int
    said: str

    @property
    def caught(self) -> bool:
        """
        Whether it noticed.
        """
        return self.status == 1 and self.violations > 0


def main() -> int:
    """Run all rounds, or the sample; the status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="how many rounds at once")
    parser.add_argument("--sample", action="store_true", help="a few rounds, and no bugs")
    parser.add_argument("--bug", help="plant this one first; a few rounds are enough to notice")
    asked = parser.parse_args()
    began = time.monotonic()
    with ProcessPoolExecutor(asked.jobs, initializer=_prepare, initargs=(asked.bug,)) as pool:
        framings = [Framing.LENGTH] if asked.sample else list(Framing)
        first = list(pool.map(played, [Round(broken=None, framing=framing, lags=(0.0,)) for framing in framings]))
        shapes = shapes_of(first)
        chosen = sample(shapes) if asked.sample else rounds(shapes)
        if asked.bug is not None:
            chosen = chosen[:WITH_BUG]
        outcomes = [*first, *pool.map(played, chosen)]
    wrong = list(chain.from_iterable(told(outcome) for outcome in outcomes))
    # That a bug keeps something from happening is not how it has to be noticed.
    needed = must_occur() if asked.bug is None else set()
    wrong += [f"never seen: {', '.join(way)}" for way in sorted(needed - set(ends(outcomes)))]
    controls = {} if asked.sample else {name: with_bug(name) for name in BUGS}
    wrong += [f"the bug {name} is not noticed: {one.said[-2000:]}" for name, one in controls.items() if not one.caught]
    for line in wrong[:SHOWN]:
        sys.stderr.write(line + "\n")
    figures = {
        "proof": "ambiguous",
        "rounds": len(outcomes),
        "combinations": sum(outcome.cases for outcome in outcomes),
        "ends": dict(sorted(_by_ending(outcomes).items())),
        "bugs_caught": {name: one.violations for name, one in controls.items() if one.caught},
        "violations": len(wrong),
        "seconds": round(time.monotonic() - began, 1),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return 1 if wrong else 0


def played(one: Round) -> Outcome:
    """
    The round, in a directory of its own.
    """
    with tempfile.TemporaryDirectory(prefix="vidrelay-ambiguous-") as folder:
        return play(one, Path(folder))


def shapes_of(outcomes: Iterable[Outcome]) -> dict[Framing, Shape]:
    """
    How many bytes a create and its answer have; they are the same for every account.
    """
    return {outcome.round.framing: _only_shape(outcome) for outcome in outcomes}


def _only_shape(outcome: Outcome) -> Shape:
    if len(outcome.shapes) != 1:
        why = "\n".join([f"creates of {len(outcome.shapes)} shapes where all are alike", *told(outcome)][:SHOWN])
        raise AssertionError(why)
    (shape,) = outcome.shapes
    return shape


def told(outcome: Outcome) -> Iterator[str]:
    """
    What was wrong, with the round's words.
    """
    return (f"{outcome.round.told()}: {line}" for line in outcome.wrong)


def ends(outcomes: Iterable[Outcome]) -> Counter[tuple[str, str, str]]:
    """
    How tasks ended, over all rounds.
    """
    return sum((outcome.ends for outcome in outcomes), Counter())


def _by_ending(outcomes: Sequence[Outcome]) -> Counter[str]:
    counts = Counter[str]()
    for (_, _, ending), count in ends(outcomes).items():
        counts[ending] += count
    return counts


def with_bug(name: str) -> Control:
    """
    The sample with a bug, in processes of its own.
    """
    done = subprocess.run(
        [sys.executable, __file__, "--sample", "--jobs", "1", "--bug", name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = done.stdout.splitlines()
    figures = json.loads(lines[-1]) if lines else {}
    return Control(status=done.returncode, violations=figures.get("violations", 0), said=done.stderr)


def _prepare(bug: str | None) -> None:
    if bug is not None:
        from controls.bugs import plant

        plant(bug)


if __name__ == "__main__":
    sys.exit(main())
