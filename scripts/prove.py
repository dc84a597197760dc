"""
`make prove`: the long proof, whole. Nothing lost, nothing paid twice, nobody let in.

Each proof runs in processes of its own and prints one line of JSON. What it says besides is shown if it fails. At the
end stands a table of all figures, as docs/explanation/promises.md has it; the status is 1 if anything was wrong.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHOWN_LINES = 60
PATIENCE = 3600.0
SIMULATION = ("-m", "vidrelay.testing.simulation", "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """
    What `arguments` of this Python prove; they print one line of JSON and exit with 1 if something is wrong.
    """

    name: str
    arguments: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What a proof came to; `figures` is empty where it did not get that far.
    """

    name: str
    right: bool
    seconds: float
    figures: dict[str, Any]


GROUPS: Sequence[Sequence[Proof]] = (
    (Proof(name="simulation", arguments=(*SIMULATION, "--seeds", "2000", "--steps", "200")),),
    (Proof(name="simulated kills", arguments=(*SIMULATION, "--points", "--seeds", "24", "--steps", "60")),),
    (Proof(name="ambiguous creates", arguments=("tests/ambiguous/proof.py",)),),
    (Proof(name="security", arguments=("tests/security/proof.py",)),),
    # The first two of these wait more than they work.
    (
        Proof(name="real kills", arguments=("tests/kill/proof.py", "--rounds", "3")),
        Proof(name="durability", arguments=("-m", "tests.durability.proof", "--full")),
        Proof(name="controls", arguments=("tests/controls/proof.py", "--jobs", "1")),
    ),
)
"""One group after another; the proofs of a group side by side."""


def main(arguments: Sequence[str], groups: Sequence[Sequence[Proof]] = GROUPS) -> int:
    """
    Run the proofs that are asked for, and tell.
    """
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    known = ", ".join(proof.name for proof in chain.from_iterable(groups))
    parser.add_argument("names", nargs="*", help=f"only these: {known}")
    names = parser.parse_args(arguments).names
    verdicts: list[Verdict] = []
    for group in groups:
        chosen = [proof for proof in group if not names or proof.name in names]
        if chosen:
            with ThreadPoolExecutor(len(chosen)) as pool:
                verdicts += pool.map(run, chosen)
    _say(table(verdicts))
    wrong = [verdict.name for verdict in verdicts if not verdict.right]
    _say(f"\nnot proved: {', '.join(wrong)}" if wrong else f"\nall {len(verdicts)} proved")
    return 1 if wrong or not verdicts else 0


def run(proof: Proof) -> Verdict:
    """
    Run one proof to its end, and tell at once what came of it.
    """
    began = time.monotonic()
    with (
        tempfile.TemporaryFile("w+", errors="replace") as printed,
        tempfile.TemporaryFile("w+", errors="replace") as said,
    ):
        try:
            status = subprocess.run(
                [sys.executable, *proof.arguments], cwd=ROOT, stdout=printed, stderr=said, timeout=PATIENCE, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        for file in (printed, said):
            file.seek(0)
        figures, lines = _figures(printed.read()), said.read().splitlines()
    right, seconds = status == 0 and bool(figures), time.monotonic() - began
    _say(f"{proof.name}: {'proved' if right else 'NOT PROVED'} in {seconds:.0f} s")
    if not right:
        _say("\n".join([*lines[-SHOWN_LINES:], f"status {status}" if status is not None else "it did not end"]))
    return Verdict(name=proof.name, right=right, seconds=seconds, figures=figures)


def table(verdicts: Sequence[Verdict]) -> str:
    """
    Every figure, as a table in Markdown.
    """
    lines = ["", "| proof | seconds | figures |", "| --- | ---: | --- |"]
    for verdict in verdicts:
        told = "; ".join(f"{name} {_told(value)}" for name, value in verdict.figures.items())
        lines.append(f"| {verdict.name} | {verdict.seconds:.0f} | {told or 'none'} |")
    return "\n".join(lines)


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name} {_told(one)}" for name, one in value.items()) + ")"
    return "none" if value == [] else str(value)


def _figures(printed: str) -> dict[str, Any]:
    lines = printed.strip().splitlines()
    try:
        figures = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return figures if isinstance(figures, dict) else {}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
