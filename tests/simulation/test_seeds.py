"""
A few seeds of the whole relay; `make sim` runs as many as one likes.
"""

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import pytest

from vidrelay.clock import SystemClock
from vidrelay.testing.simulation.__main__ import seed_runs
from vidrelay.testing.simulation.faults import Dice, Faults
from vidrelay.testing.simulation.found import FOUND
from vidrelay.testing.simulation.points import POINTS, PROCESS_ONLY
from vidrelay.testing.simulation.run import Run, Tally, kill_runs, run_many, run_once
from vidrelay.testing.simulation.world import Outcome


@pytest.mark.parametrize("first", range(1, 13, 4))
def test_whatever_happens_the_invariants_hold(first):
    """Kills, power cuts, lost answers, full disks and jumping clocks, and in the end everything has ended once."""
    tally = Tally()
    for run, outcome, seconds in run_many([Run(seed=first + n, steps=120) for n in range(4)], jobs=1):
        tally.add(run, outcome, seconds)
    assert [(run.command(), outcome.broken) for run, outcome in tally.broken] == []


@pytest.mark.parametrize("point", ["k2", "k12", "k16", "k24", "k27", "k40"])
def test_a_relay_dies_at_the_point_it_is_told_to(point):
    """And whatever it was in the middle of is neither lost nor done twice."""
    (run,) = (run for run in kill_runs([1], steps=40) if run.point == point)
    outcome = run_once(run)
    assert outcome.broken == ()
    assert outcome.died_at[POINTS[point]] >= 1


def test_the_same_seed_is_the_same_run():
    """Every line of the log is equal, in another process and whatever its hashes are salted with."""
    run = Run(seed=4, steps=60)
    told = [
        subprocess.run(
            [sys.executable, *run.command().split()[1:]],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for salt in ("1", "2")
    ]
    assert run_once(run).digest in told[0]
    assert told[0] == told[1]


def test_the_same_seed_is_the_same_run_however_slow_the_machine(monkeypatch):
    """Where no real time passes between two steps, and where years do."""
    digests = []
    for year in (1970, 2200):
        monkeypatch.setattr(SystemClock, "now", lambda _, year=year: datetime(year, 1, 1, tzinfo=UTC))
        digests.append(run_once(Run(seed=9004, steps=60)).digest)
    assert digests[0] == digests[1]


def test_every_kill_point_is_tried_here_or_with_real_processes():
    """The list of 42 has no gap."""
    assert {*POINTS, *PROCESS_ONLY} == {f"k{number}" for number in range(1, 43)}
    assert not {*POINTS} & {*PROCESS_ONLY}


def test_seeds_differ_in_what_goes_wrong():
    """Some have no trouble at all, others nearly every kind."""
    counts = [len(Faults(Dice(seed)).rates) for seed in range(40)]
    assert min(counts) == 0
    assert max(counts) > 30


def test_a_kind_of_trouble_that_never_comes_is_noticed():
    """Runs that never met what they are for do not count as passed."""
    tally = Tally()
    for seed in range(200):
        tally.add(Run(seed=seed), Outcome(seed=seed, steps=1, digest="", broken=(), tail=()), 0.0)
    assert "net.lost_after" in tally.rare()
    assert "uncertain" in tally.rare()


def test_a_kill_point_that_no_run_comes_to_is_noticed():
    """And so is it where many runs miss theirs, though each point has one that dies there."""
    tally = Tally()
    died = Outcome(seed=1, steps=1, digest="", broken=(), tail=(), died_at=Counter({POINTS["k1"]: 1}))
    tally.add(Run(seed=1, point="k1"), died, 0.0)
    assert tally.spared() == []
    tally.add(Run(seed=1, point="k2"), died, 0.0)
    assert tally.spared() == ["k2", "too many"]


def test_a_job_that_shows_no_sign_of_life_is_given_up():
    """A provider takes a job up and never begins it; while everybody is away the relay notices."""
    outcome = run_once(Run(seed=30045))
    assert outcome.broken == ()
    assert outcome.states["expired"] > 0


def test_a_seed_that_once_found_something_is_always_run():
    """First, once, and as long as all the others."""
    runs = seed_runs(range(1, 6), steps=200)
    assert [run.seed for run in runs] == [*FOUND, 1, 4, 5]
    assert {run.steps for run in runs} == {200}
