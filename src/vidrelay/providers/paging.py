"""
Lists that doors show: what was asked for, and the account's tasks that fit it, in pieces.
"""

from collections.abc import Callable, Generator
from typing import Any

from vidrelay.core.door import DoorCall, View, Wish
from vidrelay.providers.doorway import page

READ, MAX_READS = 100, 20
"""The newest 2,000 tasks are looked at; a list that asks for older ones ends there."""


def listed(
    fits: Callable[[View], bool], *, size: int, skip: int = 0, after: str | None = None
) -> Generator[Wish, Any, tuple[list[View], bool]]:
    """
    The tasks that fit and whose files are there, newest first, at most `size`: those older than the task `after`,
    without the first `skip`. The second value tells whether more would follow.
    """
    found: list[View] = []
    for _ in range(MAX_READS):
        views = yield from page(READ, after=after)
        found += [view for view in views if not view.gone and fits(view)]
        if len(views) < READ or len(found) > skip + size:
            break
        after = views[-1].task.id
    return found[skip : skip + size], len(found) > skip + size


def values_in(call: DoorCall, name: str) -> frozenset[str]:
    """
    The values that the query wants one of: under that name as often as it likes, each with commas between several.
    """
    return frozenset(one for value in call.queries.get(name, ()) for one in value.split(",") if one)
