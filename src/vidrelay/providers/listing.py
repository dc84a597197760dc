"""
Looks for a lost create in a provider's list: which jobs can be it by their time and their words, and what that proves.
"""

import binascii
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from vidrelay.core.adapter import FindOutcome, Search, Undecided
from vidrelay.core.fingerprint import normalise_prompt
from vidrelay.core.lifecycle import Absent, Found
from vidrelay.core.messages import HttpReply
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


def settled(
    alike: Mapping[str, Found],
    *,
    whole: bool = True,
    complete_after: float | None = None,
    doubtful: Collection[str] = (),
) -> FindOutcome:
    """
    What the jobs that can be the lost one (by their ids) prove.

    One, and no more, is it. In a list not read to its end (`whole`), another may stand further down. `complete_after`
    is how many seconds ago it was lost, where the list is documented as complete: then none at all proves absence in
    time. `doubtful` are jobs of which `likeness` cannot tell: they are not taken for it, and there is no absence while
    they are there.
    """
    if len(alike) == 1 and whole:
        (found,) = alike.values()
        return replace(found, times=replace(found.times, completed_at=None))
    if not alike and not doubtful and whole and complete_after is not None and complete_after >= SURE_AFTER:
        return Absent()
    candidates = (*alike, *doubtful)
    detail = f"{len(candidates) or 'no'} jobs in the provider's list look like it"
    return Undecided(detail=detail, candidates=candidates)


class Candidates:
    """
    The jobs of a list that can be the lost one, as it is read.
    """

    def __init__(self) -> None:
        self._alike: dict[str, Found] = {}
        self._doubtful: set[str] = set()

    def add(self, found: Found, is_alike: bool | None) -> None:
        """
        Take a listed job for what its `likeness` says that it is.
        """
        if is_alike is None:
            self._doubtful.add(found.remote_id)
        elif is_alike:
            self._alike[found.remote_id] = found

    def settled(self, *, whole: bool = True, complete_after: float | None = None) -> FindOutcome:
        """
        What they prove (`settled`).
        """
        return settled(self._alike, whole=whole, complete_after=complete_after, doubtful=sorted(self._doubtful))


def likeness(listed: Any, sent: Any) -> bool | None:
    """
    Whether what a list shows is what was sent. None: it has all of it, and more beside it, or a picture that cannot be
    compared, or has other bytes: the provider may have added or changed that, or somebody else sent it.
    """
    if isinstance(sent, Mapping) and "$asset" in sent:
        return _shows(listed, sent)
    if isinstance(sent, Mapping):
        if not isinstance(listed, Mapping):
            return False
        more = any(value is not None and sent.get(name) is None for name, value in listed.items())
        return _all_of(likeness(listed.get(name), value) for name, value in sent.items()) and (None if more else True)
    if isinstance(sent, list | tuple) and isinstance(listed, list):
        return len(sent) == len(listed) and _all_of(map(likeness, listed, sent))
    return same(listed, sent) or reads_alike(listed, sent)


def reads_alike(listed: Any, sent: Any) -> bool:
    """
    Whether two texts are one prompt to the fingerprint: a provider may have trimmed what it shows.
    """
    both = isinstance(listed, str) and isinstance(sent, str)
    return both and normalise_prompt(listed) == normalise_prompt(sent)


def _all_of(parts: Iterable[bool | None]) -> bool | None:
    known = set(parts)
    return False if False in known else None if None in known else True


def _shows(listed: Any, picture: Mapping[str, Any]) -> bool | None:
    """
    Whether its very bytes, or the address of its copy, stand in the list.
    """
    if isinstance(listed, str) and listed.startswith("data:"):
        try:
            shown = b64decode(listed.partition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            return None
        return True if f"sha256:{sha256(shown).hexdigest()}" == picture["$asset"] else None
    copy = picture.get("$copy")
    if isinstance(copy, str) and isinstance(listed, str):
        return listed == copy or None
    return None if listed else False


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
