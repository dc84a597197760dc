"""
What people read: safe, and saying where a task stands.
"""

from dataclasses import replace

import pytest

from vidrelay.cli.figures import bar, segment_lines
from vidrelay.cli.terminal import Exit, exit_of, exit_of_error, fault_lines, shortened, shown, span
from vidrelay.cli.words import ending, left, percent, stage
from vidrelay.client.views import TaskView
from vidrelay.core.errors import (
    ConfigError,
    InvalidRequest,
    RelayUnavailable,
    UnknownAccount,
    UnknownTask,
    VidrelayError,
)
from vidrelay.core.task import Blocked, CancelOutcome, Eta, Problem, RemoteState, State

TASK = TaskView(id="t1", state=State.QUEUED, account="main", provider="openai")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ahead": 0}, "next in line"),
        ({"ahead": 3}, "in line, 3 ahead"),
        ({"blocked": Blocked(reason="window"), "ahead": 1}, "in line, 1 ahead"),
        ({"blocked": Blocked(reason="auth")}, "refuses the key"),
        ({"blocked": Blocked(reason="disk")}, "disk is full"),
        ({"blocked": Blocked(reason="network", detail="404: no \x1b[31mred")}, "tried again (404: no \\x1b[31mred)"),
        ({"blocked": Blocked(reason="auth", detail="no such account")}, "(no such account)"),
        ({"state": State.SUBMITTING}, "handing over"),
        ({"state": State.RUNNING}, "generating"),
        ({"state": State.RUNNING, "remote_state": RemoteState.WORKING}, "generating"),
        ({"state": State.RUNNING, "remote_state": RemoteState.WAITING, "queue_position": 4}, "line, place 4"),
        ({"state": State.DOWNLOADING}, "fetching"),
        ({"state": State.UNCERTAIN, "blocked": Blocked(reason="lookup")}, "unclear"),
        ({"state": State.CANCELLED, "cancel": CancelOutcome.UNSUPPORTED}, "may run on there"),
        ({"state": State.FAILED, "error": Problem(code="x", title="T", detail="no \x1b[31mred")}, "no \\x1b[31mred"),
    ],
)
def test_a_stage_is_said_in_words(change: dict, words: str) -> None:
    """
    State, remote state, place and what blocks a task are told in words, with foreign text made harmless.
    """
    assert words in stage(replace(TASK, **change))


def test_time_left_counts_down() -> None:
    """
    The time left shrinks as time passes since it was told, and ends as `any moment now`.
    """
    task = replace(TASK, eta=Eta(seconds=20, low=15, high=30, basis="history"))
    assert left(task) == "about 20 s left (15 s to 30 s)"
    assert left(task, since=18) == "about 2.0 s left (0.0 s to 12 s)"
    assert left(task, since=31) == "any moment now"
    assert left(TASK) == ""
    assert percent(replace(TASK, progress=0.456)) == "46 %"


def test_an_uncertain_task_says_what_can_be_done() -> None:
    """
    The ending of an uncertain task names the possible charge and the three ways to resolve it.
    """
    said = ending(replace(TASK, state=State.UNCERTAIN))
    for part in ("may be charged", "resolve t1 --adopt", "resolve t1 --retry", "resolve t1 --abandon"):
        assert part in said


def test_foreign_text_cannot_steer_the_terminal() -> None:
    """
    Control and direction characters are shown as escapes, while letters and joined emoji stay as they are.
    """
    assert shown("a\x1b]0;title\x07b\r\nc\u202ed\u200be\x9bf") == "a\\x1b]0;title\\x07b  c\\u202ed\\u200be\\x9bf"
    assert shown("família 👨‍👩‍👧 海") == "família 👨‍👩‍👧 海"
    assert shortened("a  b\nc" + "d" * 50, 10) == "a b cdddd…"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (State.DONE, 0),
        (State.FAILED, 1),
        (State.CANCELLED, 1),
        (State.EXPIRED, 1),
        (State.UNCERTAIN, 4),
        (State.RUNNING, 0),
    ],
)
def test_each_ending_has_its_exit_status(state: State, status: int) -> None:
    """
    A done or live task exits with 0, an uncertain one with 4, and every other ending with 1.
    """
    assert exit_of(state) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError(), Exit.USAGE),
        (InvalidRequest(), Exit.USAGE),
        (UnknownAccount(), Exit.USAGE),
        (RelayUnavailable(), Exit.UNAVAILABLE),
        (UnknownTask(), Exit.FAILED),
        (VidrelayError(), Exit.FAILED),
        (OSError(), Exit.FAILED),
    ],
)
def test_each_error_has_its_exit_status(error: Exception, status: int) -> None:
    """
    Wrong use, a relay that cannot be had, and all other errors each lead to their own exit status.
    """
    assert exit_of_error(error) == status


def test_an_error_is_told_with_what_to_do() -> None:
    """
    An error's line has the message, the field where there is one, and the hint on a line below.
    """
    assert fault_lines(ConfigError("a is wrong", hint="mend it")) == ["vidrelay: a is wrong", "  mend it"]
    assert fault_lines(InvalidRequest("must be a number", field="--duration")) == [
        "vidrelay: --duration: must be a number"
    ]
    assert fault_lines(PermissionError(13, "Permission denied", "/x")) == [
        "vidrelay: [Errno 13] Permission denied: '/x'"
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (9.96, "10.0 s"), (42.4, "42 s"), (150, "2 min 30 s"), (7260, "2 h 01 min")]
)
def test_spans_are_said_as_people_say_them(seconds: float, words: str) -> None:
    """
    Seconds are told as tenths, whole seconds, minutes or hours, whichever suits their length.
    """
    assert span(seconds) == words


def test_bars_are_to_scale_and_nothing_is_nothing() -> None:
    """
    A bar's length is the share of its width, zero draws nothing, and the smallest share a sliver.
    """
    assert bar(1, 10) == "█" * 10
    assert bar(0.5, 10) == "█" * 5
    assert bar(0, 10) == ""
    assert bar(0.0001, 10) == "▏"


def test_segments_are_drawn_a_line_each() -> None:
    """
    Each model's segments become bars on one scale, and figures of an unknown shape are left out.
    """
    lines = segment_lines(
        {"m\x1b": {"wait": {"median": 1, "p90": 2}, "total": {"median": 4, "p90": 5}, "odd": 3}, "empty": {}, "x": 5}
    )
    assert lines[0].startswith("m\\x1b ")
    assert [line.split()[0] for line in lines[1:]] == ["wait", "total"]
    assert lines[2].count("█") == 4 * lines[1].count("█")
