"""
The time left, against what really comes of the same durations.
"""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrelay.core.estimate import in_line, remaining, told
from vidrelay.core.task import Eta

durations = st.lists(st.floats(0, 1e5), min_size=3, max_size=30)


def history(seconds: float) -> Eta:
    return Eta(seconds=seconds, low=seconds, high=seconds, basis="history")


# Running --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("past", [[], [60.0], [60.0, 70.0]])
def test_two_earlier_tasks_tell_nothing(past: list[float]) -> None:
    """
    Fewer than three earlier durations give no estimate of a running task.
    """
    assert remaining(past, 0) is None


def test_a_fresh_task_takes_what_earlier_ones_took() -> None:
    """
    A task that has just begun is given the median of earlier ones, between their tenths.
    """
    past = [float(second) for second in range(10, 111, 10)]
    assert remaining(past, 0) == Eta(seconds=60, low=20, high=100, basis="history")


def test_a_task_that_has_run_for_a_while_is_like_the_longer_ones() -> None:
    """
    Only earlier tasks that took longer than this one has run count for the time left.
    """
    assert remaining([10.0, 20.0, 100.0, 110.0, 120.0], 50) == Eta(seconds=60, low=52, high=68, basis="history")


def test_the_only_one_that_took_longer_is_the_guess() -> None:
    """
    Where a single earlier task took longer, what is left of its time is the estimate.
    """
    assert remaining([10.0, 20.0, 100.0], 50) == history(50)


def test_a_task_that_has_outlived_all_others_has_no_estimate() -> None:
    """
    A task that has run as long as the longest earlier one gets no estimate.
    """
    assert remaining([10.0, 20.0, 30.0], 30) is None


@given(durations, st.floats(0, 1e5))
def test_the_guess_lies_within_its_bounds_and_the_past(past: list[float], elapsed: float) -> None:
    """
    For any past, low ≤ guess ≤ high, none below zero or above the longest duration.
    """
    eta = remaining(past, elapsed)
    if eta is not None:
        assert 0 <= eta.low <= eta.seconds <= eta.high <= max(past)


# In line --------------------------------------------------------------------------------------------------------------

EVEN = [60.0] * 5


@pytest.mark.parametrize(
    ("ahead", "places", "busy", "seconds"),
    [
        (0, 1, [], 60),
        (0, 2, [20.0], 60),
        (0, 1, [20.0], 40 + 60),
        (1, 1, [20.0], 40 + 60 + 60),
        (2, 2, [20.0, 50.0], 10 + 60 + 60),
        (3, 2, [20.0, 50.0], 40 + 60 + 60),
        (9, 3, [], 3 * 60 + 60),
        (0, 1, [90.0], 60),
        (0, 1, [0.0, 20.0, 50.0], 60 + 60),
    ],
    ids=[
        "free",
        "one of two free",
        "next",
        "second",
        "two places",
        "the later place",
        "whole rounds",
        "overdue",
        "lowered",
    ],
)
def test_a_queued_task_waits_for_those_before_it(ahead: int, places: int, busy: list[float], seconds: float) -> None:
    """
    A queued task's time is the wait for its place to come free, and then its own run.
    """
    eta = in_line(EVEN, ahead=ahead, places=places, busy=busy)
    assert eta == history(seconds)


def test_two_earlier_tasks_tell_nothing_of_the_line() -> None:
    """
    Fewer than three earlier durations give no estimate of a queued task.
    """
    assert in_line([60.0, 60.0], ahead=0, places=1, busy=[]) is None


def test_no_place_means_no_estimate() -> None:
    """
    A queued task of an account whose window has no place gets no estimate.
    """
    assert in_line(EVEN, ahead=0, places=0, busy=[]) is None


def test_a_long_line_is_as_quick_to_count_as_a_short_one() -> None:
    """
    A million tasks ahead are counted in whole rounds, and the sum is exact.
    """
    assert in_line(EVEN, ahead=1_000_000, places=4, busy=[]) == history(250_000 * 60 + 60)


def test_one_straggler_does_not_hold_up_the_other_place() -> None:
    """
    While one place is held for long, those in line go through the other.
    """
    past = [10.0, 10.0, 10.0, 10.0, 500.0]
    eta = in_line(past, ahead=3, places=2, busy=[100.0])
    assert eta is not None
    assert eta.seconds == 40


def run_line(past: Sequence[float], ahead: int, places: int, draw: random.Random) -> float:
    """
    When the task after `ahead` others is done if each takes what some earlier one took.
    """
    free_at = [0.0] * places
    for _ in range(ahead + 1):
        free_at.sort()
        free_at[0] += draw.choice(past)
        finished = free_at[0]
    return finished


@pytest.mark.parametrize(("ahead", "places"), [(0, 1), (4, 1), (7, 3), (20, 2)])
def test_the_bounds_hold_about_four_in_five(ahead: int, places: int) -> None:
    """
    In a simulated line about 80 % of the ends lie between the bounds.
    """
    draw = random.Random(7)
    past = [60 * draw.lognormvariate(0, 0.3) for _ in range(200)]
    eta = in_line(past, ahead=ahead, places=places, busy=[])
    assert eta is not None
    ends = [run_line(past, ahead, places, draw) for _ in range(500)]
    assert 0.7 <= sum(eta.low <= end <= eta.high for end in ends) / len(ends) <= 0.95


@given(durations, st.integers(0, 200), st.integers(1, 8), st.lists(st.floats(0, 1e5), max_size=8))
def test_being_further_back_never_takes_less(past: list[float], ahead: int, places: int, busy: list[float]) -> None:
    """
    One more task ahead never makes the estimate smaller, and its bounds stay in order.
    """
    nearer = in_line(past, ahead=ahead, places=places, busy=busy)
    further = in_line(past, ahead=ahead + 1, places=places, busy=busy)
    assert nearer is not None
    assert further is not None
    assert nearer.seconds <= further.seconds + 1e-6
    assert 0 <= nearer.low <= nearer.seconds <= nearer.high


# Told -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "left"), [(30.0, 30), (0.0, 0), (-5.0, 0)])
def test_what_the_provider_says_is_taken_as_it_is(said: float, left: float) -> None:
    """
    The provider's own estimate is passed on as a point, and a negative one as zero.
    """
    assert told(said) == Eta(seconds=left, low=left, high=left, basis="provider")
