"""
Looks for a lost create in a provider's list: which jobs can be it by their time and their words, and what that proves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from vidrelay.core.lifecycle import Absent, Found
from vidrelay.core.messages import HttpReply
from vidrelay.core.ports import FindOutcome, Search, Undecided
from vidrelay.providers.replies import date_of

SLACK = timedelta(seconds=120)
"""So far may the provider's clock be from ours when a lost create is looked for, where nothing shows by how much."""

EARLY = timedelta(seconds=3)
"""
So far before its sending may a job seem made where the difference of the clocks is measured: whole seconds, twice, and
the way of the reply that it is measured by.
"""

SURE_AFTER = 600.0
"""So many seconds after a loss a list that is documented as complete is believed when it shows nothing."""


@dataclass(frozen=True, slots=True)
class Between:
    """
    The two instants of the provider's clock between which the lost create can have been carried out.
    """

    earliest: datetime
    latest: datetime

    def holds(self, instant: datetime | None) -> bool:
        """
        Whether a job made then can be it; one that does not say when cannot.
        """
        return instant is not None and self.earliest <= instant <= self.latest


def between(search: Search, reply: HttpReply) -> Between:
    """
    When the lost create can have been carried out, by the provider's clock as the list's `Date` shows it.

    A job from before the create was sent is somebody else's, however alike: it must not be taken for the lost one.
    """
    shown = date_of(reply)
    try:
        if shown is not None:
            ahead = shown - (search.lost_at + timedelta(seconds=search.lost_ago))
            return Between(search.sent_at + ahead - EARLY, search.lost_at + ahead + SLACK)
    except OverflowError:
        pass  # a date at the end of time shows nothing
    return Between(search.sent_at - SLACK, search.lost_at + SLACK)


def settled(alike: Mapping[str, Found], *, whole: bool = True, complete_after: float | None = None) -> FindOutcome:
    """
    What the jobs that can be the lost one (by their ids) prove.

    One, and no more, is it. In a list not read to its end (`whole`), another may stand further down. `complete_after`
    is how many seconds ago it was lost, where the list is documented as complete: then none at all proves absence in
    time.
    """
    if len(alike) == 1 and whole:
        (found,) = alike.values()
        return replace(found, times=replace(found.times, completed_at=None))
    if not alike and whole and complete_after is not None and complete_after >= SURE_AFTER:
        return Absent()
    detail = f"{len(alike) or 'no'} jobs in the provider's list look like it"
    return Undecided(detail=detail, candidates=tuple(alike))


def same(listed: Any, sent: Any) -> bool:
    """
    Whether two spellings mean the same: 4, "4" and "4.0"; what was not sent (None) is left to the provider.
    """
    if sent is None or listed == sent or str(listed) == str(sent):
        return True
    if isinstance(listed, Mapping) and isinstance(sent, Mapping):
        return all(same(listed.get(name), value) for name, value in sent.items())
    try:
        return float(listed) == float(sent)
    except (TypeError, ValueError, OverflowError):
        return False
