"""
When to ask again, against the contract's figures and against simulated pasts.
"""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrelay.core.pace import LONGEST_WAIT, Law, backoff, next_poll, retry_after
from vidrelay.core.policy import PollPolicy

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POLICY = PollPolicy()
chances = st.floats(0, 1, exclude_max=True)


def poll(polls: int, **changes: object) -> float:
    said = {"elapsed": 0.0, "policy": POLICY, "floor": 1.0, "chance": 0.5, "history": None}
    return next_poll(polls=polls, **{**said, **changes})


# The fixed schedule ---------------------------------------------------------------------------------------------------


def test_polls_start_at_two_seconds_and_slow_down_to_fifteen() -> None:
    """
    Without jitter the intervals grow by half, from 2 seconds to a cap of 15.
    """
    assert [poll(polls) for polls in range(8)] == [2, 3, 4.5, 6.75, 10.125, 15, 15, 15]


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 12), (0.5, 15), (0.999999, 18)])
def test_jitter_comes_after_the_cap(chance: float, seconds: float) -> None:
    """
    Jitter moves an interval by up to a fifth either way, also one that has reached its cap.
    """
    assert poll(20, chance=chance) == pytest.approx(seconds, abs=1e-4)


@given(st.integers(0, 10_000), chances)
def test_an_interval_stays_within_the_jitter_of_its_cap(polls: int, chance: float) -> None:
    """
    No poll comes sooner than 1.6 or later than 18 seconds, however many came before.
    """
    assert 1.6 <= poll(polls, chance=chance) <= 18


@given(st.integers(0, 50), chances, st.floats(0, 60))
def test_nothing_goes_under_the_adapters_floor(polls: int, chance: float, floor: float) -> None:
    """
    The adapter's shortest interval holds for every poll, whatever the jitter.
    """
    assert poll(polls, chance=chance, floor=floor) >= floor


@pytest.mark.parametrize("seed", range(20))
def test_five_minutes_of_work_take_at_most_25_polls(seed: int) -> None:
    """
    A task of 300 seconds is known to be done after at most 25 polls of the fixed schedule.
    """
    assert watch([300.0], None, random.Random(seed))[0] <= 25


def test_a_shrinking_factor_is_taken_as_it_is() -> None:
    """
    A factor below 1 makes later polls come sooner, as it was set.
    """
    assert poll(2, policy=PollPolicy(first=8, factor=0.5), floor=0) == 2


# The learned schedule -------------------------------------------------------------------------------------------------


def past(draw: random.Random, count: int, middle: float, spread: float) -> list[float]:
    return [middle * draw.lognormvariate(0, spread) for _ in range(count)]


def watch(durations: Sequence[float], law: Law | None, draw: random.Random) -> tuple[float, float]:
    """
    The mean polls, and the mean seconds from a task's end to our learning of it.
    """
    polls = delay = 0.0
    for duration in durations:
        elapsed, count = 0.0, 0
        while elapsed < duration:
            elapsed += next_poll(
                polls=count, elapsed=elapsed, policy=POLICY, floor=1.0, chance=draw.random(), history=law
            )
            count += 1
        polls += count
        delay += elapsed - duration
    return polls / len(durations), delay / len(durations)


def test_thirty_tasks_are_enough_to_learn_from_and_fewer_are_not() -> None:
    """
    A law is fitted from the thirtieth past task on, and not from the 29th.
    """
    durations = past(random.Random(1), 30, 60, 0.25)
    assert Law.fit(durations) is not None
    assert Law.fit(durations[:29]) is None


@pytest.mark.parametrize("count", [30, 200])
@pytest.mark.parametrize(("middle", "spread"), [(20, 0.25), (60, 0.25), (60, 0.5), (120, 0.5), (300, 0.1), (300, 0.25)])
def test_a_learned_pace_asks_less_and_finds_out_sooner(middle: float, spread: float, count: int) -> None:
    """
    On tasks to come, the learned schedule needs no more polls and has the shorter delay.
    """
    draw = random.Random(7)
    law = Law.fit(past(draw, count, middle, spread))
    to_come = past(draw, 500, middle, spread)
    fixed, learned = watch(to_come, None, draw), watch(to_come, law, draw)
    assert learned[0] <= fixed[0]
    assert learned[1] < fixed[1]


def test_a_wide_law_of_long_tasks_is_asked_more_often_to_be_sooner() -> None:
    """
    For long tasks that vary much, a second of delay counts for more than by default.
    """
    law = Law.fit(past(random.Random(7), 200, 300, 0.5))
    assert law is not None
    assert law.trade < 0.5


@pytest.mark.parametrize(("middle", "spread"), [(5, 0.9), (1200, 0.9)])
def test_where_learning_gains_nothing_the_fixed_schedule_stands(middle: float, spread: float) -> None:
    """
    Very short and very long tasks of wide spread are given no law.
    """
    assert Law.fit(past(random.Random(7), 200, middle, spread)) is None


def test_nothing_is_learned_of_tasks_that_take_hours() -> None:
    """
    Even regular tasks get no law when they take two hours.
    """
    assert Law.fit(past(random.Random(7), 200, 7200, 0.1)) is None


def test_a_patient_fixed_schedule_is_harder_to_beat() -> None:
    """
    A law is kept only where it beats the fixed schedule that was set, not the default one.
    """
    durations = past(random.Random(7), 200, 60, 0.25)
    assert Law.fit(durations) is not None
    assert Law.fit(durations, against=PollPolicy(first=59, factor=1, cap=59)) is None


def test_a_model_that_has_changed_is_watched_more_closely() -> None:
    """
    When the newest tasks take twice as long, the longest interval is halved or the law dropped.
    """
    draw = random.Random(7)
    before, after = past(draw, 190, 60, 0.1), past(draw, 10, 120, 0.1)
    settled, moved = Law.fit(before), Law.fit([*after, *before])
    assert settled is not None
    assert settled.longest == 30
    assert moved is None or moved.longest == 15


def test_an_hour_that_was_never_learned_is_watched_at_the_fixed_cap() -> None:
    """
    Far beyond anything learned, polls come every 15 seconds.
    """
    assert Law(middle=60, spread=0.25).interval(3600) == 15


@given(st.floats(0, 1e7), st.floats(0.1, 1e5), st.floats(0.12, 3))
def test_a_learned_interval_is_between_one_and_thirty_seconds(elapsed: float, middle: float, spread: float) -> None:
    """
    No law and no elapsed time leads to an interval outside 1 to 30 seconds.
    """
    assert 1 <= Law(middle=middle, spread=spread).interval(elapsed) <= 30


def test_a_task_is_asked_for_most_often_when_it_is_due() -> None:
    """
    The learned interval is long at first and below 5 seconds around the usual end.
    """
    law = Law(middle=60, spread=0.25)
    early, due = law.interval(5), law.interval(60)
    assert due < 5 < early


@pytest.mark.parametrize("seconds", [0.0, 1.0, 60.0])
def test_durations_that_are_all_the_same_are_no_trouble(seconds: float) -> None:
    """
    Thirty equal durations, zero included, give no law or one with a spread above zero.
    """
    law = Law.fit([seconds] * 30)
    assert law is None or law.spread > 0


def test_a_learned_pace_can_be_switched_off() -> None:
    """
    With `learned` off the fixed schedule is used though there is a law.
    """
    law = Law(middle=60, spread=0.25)
    assert poll(0, history=law) == 30
    assert poll(0, history=law, policy=PollPolicy(learned=False)) == 2


def test_a_learned_interval_has_jitter_and_a_floor_too() -> None:
    """
    Jitter and the adapter's floor apply to a learned interval as to a fixed one.
    """
    law = Law(middle=60, spread=0.25)
    assert poll(0, history=law, chance=0) == 24
    assert poll(0, history=law, floor=40) == 40


# Retry-After ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        (" 7\t", 7),
        ("007", 7),
        ("604800", LONGEST_WAIT),
        ("604801", LONGEST_WAIT),
        ("9999999999", LONGEST_WAIT),
        ("9" * 5000, LONGEST_WAIT),
        ("0" * 5000, 0),
        ("Mon, 30 Nov 2026 12:00:30 GMT", 30),
        ("Mon, 30 Nov 2026 11:59:30 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Mon, 30 Nov 2026 12:00:60 GMT", 59),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
        ("Monday, 30-Nov-26 12:00:30 GMT", 30),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 0),
        ("Monday, 30-Nov-76 12:00:30 GMT", LONGEST_WAIT),
        ("Monday, 30-Nov-77 12:00:30 GMT", 0),
        ("Mon Nov 30 12:00:30 2026", 30),
        ("Sun Nov  6 08:49:37 1994", 0),
    ],
    ids=lambda value: str(value)[:40],
)
def test_retry_after_is_read_as_seconds_or_a_date(header: str, seconds: float) -> None:
    """
    Whole seconds and all three HTTP dates are read, past ones as 0 and far ones as the longest wait.
    """
    assert retry_after(header, now=NOW) == seconds


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        " ",
        "-1",
        "+9999",
        "1.5",
        "1e3",
        "1_000",
        "²",
        "７",
        "٣",
        "3, 3",
        "3;q=1",
        "3\n",
        "soon",
        "inf",
        "nan",
        "0x10",
        "Mon, 30 Nov 2026 12:00:30",
        "Mon, 30 Nov 2026 12:00:30 -0000",
        "Mon, 30 Nov 2026 12:00:30 +0000",
        "Mon, 30 Nov 2026 12:00:30 PST",
        "Mon, 30 Nov 99999 12:00:30 GMT",
        "Mon, 31 Nov 2026 12:00:30 GMT",
        "Mon, 30 Nov 2026 25:00:30 GMT",
        "Mon, 30 Nov 2026 12:00:61 GMT",
        "Mon, 30 Nov 0000 12:00:30 GMT",
        "Mon, ３０ Nov 2026 12:00:30 GMT",
        "mon, 30 nov 2026 12:00:30 gmt",
        "2026-11-30T12:00:30Z",
    ],
)
def test_what_is_neither_is_not_guessed_at(header: str | None) -> None:
    """
    A Retry-After that is neither whole seconds nor an HTTP date gives no wait at all.
    """
    assert retry_after(header, now=NOW) is None


@given(st.integers(-(10**6), 10**6))
def test_a_date_is_as_far_off_as_it_says(second: int) -> None:
    """
    A date gives the seconds from now until then, between 0 and the longest wait.
    """
    header = format_datetime(NOW + timedelta(seconds=second), usegmt=True)
    assert retry_after(header, now=NOW) == min(LONGEST_WAIT, max(0, second))


@given(st.text())
def test_no_header_breaks_it(header: str) -> None:
    """
    Any text as Retry-After gives None or a wait within the bounds, and raises nothing.
    """
    waited = retry_after(header, now=NOW)
    assert waited is None or 0 <= waited <= LONGEST_WAIT


def test_the_present_may_stand_in_any_zone() -> None:
    """
    A date is measured against the same instant whichever zone `now` is told in.
    """
    now = NOW.astimezone(datetime.strptime("+0800", "%z").tzinfo)
    assert retry_after("Mon, 30 Nov 2026 12:00:30 GMT", now=now) == 30


# Trouble --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tries", "longest"), [(1, 2), (2, 4), (5, 32), (6, 60), (7, 60), (10**6, 60)])
def test_each_try_doubles_the_range_up_to_a_minute(tries: int, longest: float) -> None:
    """
    The longest wait doubles with each try up to 60 seconds, while the shortest stays 1.
    """
    assert backoff(tries=tries, chance=0) == 1
    assert backoff(tries=tries, chance=1) == longest


@given(st.integers(0, 10_000), chances, st.floats(0, 100), st.floats(0, 1000))
def test_trouble_waits_between_the_first_and_the_cap(tries: int, chance: float, first: float, cap: float) -> None:
    """
    For any settings a wait after trouble lies between the first wait and the cap.
    """
    assert first <= backoff(tries=tries, chance=chance, first=first, cap=cap) <= max(first, cap)
