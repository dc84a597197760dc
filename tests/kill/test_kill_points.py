"""
A real relay is killed at points of its life and started again: nothing is lost, nothing is paid twice.

A few points here; `python tests/kill/proof.py --rounds 3` is the whole of it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kill.fuses import FUSES
from kill.points import POINTS
from kill.trial import run

TESTS = Path(__file__).resolve().parent.parent

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such kill on this system"),
]


def test_there_is_a_way_to_die_at_each_of_the_42_points() -> None:
    """Each has three rounds, and a fuse for each of them; no fuse is left unused."""
    assert list(POINTS) == [f"k{number}" for number in range(1, 43)]
    assert {len(point.rounds) for point in POINTS.values()} == {3}
    assert set().union(*(point.fuses for point in POINTS.values())) == set(FUSES)


LAY_EACH = """
import os
from kill.fuses import FUSES, Fuse
for name, lay in FUSES.items():
    child = os.fork()
    if child == 0:
        try:
            lay(Fuse(name, 1))
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(name, flush=True)
"""


def test_each_fuse_can_be_laid() -> None:
    """Who renames what a fuse sits at finds here that it does. Each is laid in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", LAY_EACH], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("point", "number"),
    [("k2", 1), ("k4", 2), ("k9", 1), ("k14", 0), ("k19", 1), ("k25", 1), ("k31", 1), ("k38", 1)],
)
def test_killed_there(point, number, tmp_path) -> None:
    """After the restart everything stands as the provider's ledger and the app's memory say."""
    outcome = run(point, number, tmp_path)
    assert outcome.wrong is None
    assert outcome.kills == POINTS[point].rounds[number].deaths
