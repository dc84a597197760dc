"""
Runs the tests that should notice a bug, with it and without it.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from controls.bugs import BUGS

TESTS = Path(__file__).resolve().parent.parent
PASSED, FAILED = 0, 1
"""What pytest exits with. Anything else means that the tests were not run, which proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What became of the tests, with the bug of that name (None: without any).

    `misplanted`: what the bug replaces is called otherwise than it expects, so a test fails of that and not of the bug.
    """

    bug: str | None
    status: int
    said: str
    misplanted: bool = False

    @property
    def right(self) -> bool:
        """
        Whether the bug was caught; without one, whether every test passed.
        """
        return self.status == (PASSED if self.bug is None else FAILED) and not self.misplanted


def with_bug(name: str) -> Outcome:
    """Run the tests that should catch the bug, until one has."""
    return _pytest(name, BUGS[name].caught_by, "-x", "-p", "controls.plugin")


def without_bug(names: Iterable[str]) -> Outcome:
    """Run everything that should catch one of these bugs, as it is."""
    tests = {test for name in names for test in BUGS[name].caught_by}
    # A whole file has its parts in it.
    return _pytest(None, sorted(test for test in tests if test.partition("::")[0] not in tests - {test}))


def unplantable() -> list[str]:
    """
    The bugs that cannot be planted, because what they replace is not there any more.

    Each is tried in a process of its own, all of them children of one that has imported everything.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PLANT_EACH], env=_environment(), capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.split()


_PLANT_EACH = """
import os
from controls.bugs import BUGS, plant
for name in BUGS:
    child = os.fork()
    if child == 0:
        try:
            plant(name)
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(name, flush=True)
"""


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(TESTS / "controls" / "child"), str(TESTS), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path.strip(os.pathsep)}
    env.pop("VIDRELAY_CONTROL", None)
    env.pop("PYTEST_XDIST_WORKER", None)
    return env


def _pytest(name: str | None, tests: Iterable[str], *flags: str) -> Outcome:
    env = _environment()
    if name is not None:
        env["VIDRELAY_CONTROL"] = name
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *flags, *tests],
        cwd=TESTS.parent,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return Outcome(
        bug=name,
        status=done.returncode,
        said=done.stdout[-3000:] + done.stderr[-2000:],
        misplanted=f"TypeError: {name}.<locals>." in done.stdout,
    )
