"""
How long a task still takes, from what earlier tasks of its model took (seconds from acceptance to completion).
"""

import heapq
import math
from collections.abc import Sequence
from statistics import median

from vidrelay.core.task import Eta

ENOUGH = 3
"""Fewer earlier tasks than this tell nothing."""


def remaining(durations: Sequence[float], elapsed: float) -> Eta | None:
    """
    Return how long a running task still takes, seen that it has run for `elapsed` seconds already.

    Only earlier tasks that took longer than that are its likes. None where there were fewer than three tasks, or where
    it has outlived them all.
    """
    alike = sorted(duration - elapsed for duration in durations if duration > elapsed)
    if len(durations) < ENOUGH or not alike:
        return None
    return Eta(seconds=_share(alike, 0.5), low=_share(alike, 0.1), high=_share(alike, 0.9), basis="history")


def in_line(durations: Sequence[float], *, ahead: int, places: int, busy: Sequence[float]) -> Eta | None:
    """
    Return how long a queued task takes until it is done: its wait for a place, and its own run.

    Args:
        durations: What earlier tasks took; fewer than three give None.
        ahead: How many queued tasks go before it.
        places: How many tasks the window takes; none gives None.
        busy: For how many seconds each running task has run.
    """
    if len(durations) < ENOUGH or places < 1:
        return None
    past = sorted(durations)
    usual = _share(past, 0.5)
    start, in_series = _start(usual, ahead, _free_at(past, places, busy))
    # Each of the runs that follow one another may be shorter or longer; such differences add up by their squares.
    widen = math.sqrt(in_series + 1)
    return Eta(
        seconds=start + usual,
        low=max(0.0, start + usual - widen * (usual - _share(past, 0.1))),
        high=start + usual + widen * (_share(past, 0.9) - usual),
        basis="history",
    )


def told(seconds: float) -> Eta:
    """
    Return what the provider itself says is left; it gives no bounds, so they are the guess.
    """
    left = max(0.0, seconds)
    return Eta(seconds=left, low=left, high=left, basis="provider")


def _free_at(past: Sequence[float], places: int, busy: Sequence[float]) -> list[float]:
    """
    When each place of the window is free, in seconds from now. A window that was lowered first loses its surplus.
    """
    left = []
    for elapsed in busy:
        alike = [duration - elapsed for duration in past if duration > elapsed]
        left.append(median(alike) if alike else 0.0)
    idle = [0.0] * max(0, places - len(left))
    return idle + sorted(left)[max(0, len(left) - places) :]


def _start(usual: float, ahead: int, free_at: list[float]) -> tuple[float, int]:
    """
    When the task after `ahead` others gets a place if each takes the usual time, and how many runs go before it there.
    """
    heapq.heapify(free_at)
    while ahead and max(free_at) - free_at[0] > usual:
        heapq.heapreplace(free_at, free_at[0] + usual)
        ahead -= 1
    # Now the places are taken in turn, so whole rounds need no counting out.
    rounds, rest = divmod(ahead, len(free_at))
    first = sorted(free_at)[rest]
    return first + rounds * usual, rounds + (first > 0)


def _share(ordered: Sequence[float], share: float) -> float:
    """
    The value that this share of the sorted ones does not exceed, between two of them in proportion.
    """
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
