"""
Seeds that once found something, by what they found. Each also has a small test of its own where the fault was.
"""

import pytest

from vidrelay.testing.simulation.run import Run, run_once

FOUND = {
    "a create sent again under a new key was made twice (tests/scheduler/test_faults.py)": Run(seed=3),
    "a failing disk made a paid task lose its id (tests/scheduler/test_saving.py)": Run(seed=14),
    "a jump of the clock had a job asked for before the provider's floor": Run(seed=2),
    "a place was held for a day, the clock set while the loss was committed (tests/scheduler/test_held.py)": Run(
        seed=201
    ),
    "a place that seemed over at the start came back (tests/scheduler/test_clock.py)": Run(seed=557),
    "what rounding left of a wait ran in circles": Run(seed=13),
    "a step that was broken off before it began was the task's last": Run(seed=14),
    "two look-ups left at once": Run(seed=32),
    "two people adopted one job at once (tests/scheduler/test_faults.py)": Run(seed=1033),
    "a job that its provider showed late was gone by a clock that was set (tests/scheduler/test_restart.py)": Run(
        seed=78
    ),
    "a place was said to be given back too early, by a clock that was set while no relay lived": Run(seed=52094),
    "a call lasted for a task whose wish to cancel came of an app that had gone (test_following.py)": Run(seed=1572),
    "a job was asked for by a person who came after another had given it up (test_faults.py)": Run(seed=1799),
}


@pytest.mark.parametrize("run", FOUND.values(), ids=FOUND.keys())
def test_what_was_found_once_stays_found(run):
    """The seed passes now."""
    assert run_once(run).broken == ()
