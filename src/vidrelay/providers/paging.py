"""
Lists that doors show: what was asked for, and the account's tasks that fit it, in pieces.
"""

from collections.abc import Callable, Generator
from typing import Any

from vidrelay.core.door import DoorCall, View, Wish
from vidrelay.providers.doorway import page

READ, MAX_READS = 100, 20
"""So many tasks are looked at for one page that narrows them down: 2,000."""


def listed(
    fits: Callable[[View], bool], *, size: int, skip: int = 0, after: str | None = None
) -> Generator[Wish, Any, tuple[list[View], str | None]]:
    """
    The tasks that fit and whose files are there, newest first, at most `size`: those older than the task `after`,
    without the first `skip`. The second value is the task after which the list goes on, None where it ends; it may go
    on though nothing more was found among those that were looked at.
    """
    found: list[View] = []
    for _ in range(MAX_READS):
        views = yield from page(READ, after=after)
        found += [view for view in views if not view.gone and fits(view)]
        if len(found) > skip + size:
            return found[skip : skip + size], found[skip + size - 1].task.id
        if len(views) < READ:
            return found[skip:], None
        after = views[-1].task.id
    return found[skip:], after


def newest(wanted: int, *, after: str | None = None) -> Generator[Wish, Any, list[View]]:
    """
    The newest tasks whose files are there, of those older than the task `after`: so many, fewer where there are no
    more, however many lie between them whose files are gone.
    """
    found: list[View] = []
    asked = min(READ, wanted)
    while True:
        views = yield from page(asked, after=after)
        found += [view for view in views if not view.gone]
        if len(found) >= wanted or len(views) < asked:
            return found[:wanted]
        after, asked = views[-1].task.id, READ


def values_in(call: DoorCall, name: str) -> frozenset[str]:
    """
    The values that the query wants one of: under that name as often as it likes, each with commas between several.
    """
    return frozenset(one for value in call.queries.get(name, ()) for one in value.split(",") if one)
