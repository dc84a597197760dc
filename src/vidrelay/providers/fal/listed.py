"""
Reads fal's list of a model's requests.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import Conversation, FindOutcome, Search
from vidrelay.core.lifecycle import Found
from vidrelay.core.messages import HttpRequest
from vidrelay.core.task import RemoteState, RemoteTimes, Task
from vidrelay.providers.fal import words
from vidrelay.providers.fal.parameters import input_of
from vidrelay.providers.listing import Between, Candidates, between, likeness
from vidrelay.providers.replies import answered, rows_of, text_of, time_of
from vidrelay.providers.verdicts import of_call

MAX_PAGES = 5
PAGE = 100
EARLIER = timedelta(hours=1)
"""So far before its sending the list is asked for a lost create: its clock is known by its first answer only."""


def found_in(
    page: Callable[[Mapping[str, Any]], HttpRequest],
    task: Task,
    search: Search,
    *,
    is_id: Callable[[str], bool],
    key: str | None,
) -> Conversation[FindOutcome]:
    """
    Look for a lost create in the list of its model's requests, of which `page` asks for a part.
    """
    owned = {remote_id.rpartition("/")[2] for remote_id in search.owned}
    candidates = Candidates()
    when, cursor = None, None
    for _ in range(MAX_PAGES):
        start = (search.sent_at - EARLIER).isoformat()
        reply = yield page({"start": start, "expand": "payloads", "limit": PAGE, "cursor": cursor})
        data = answered(reply) or {}
        # The name of the list itself is not documented.
        rows = rows_of(data, "items", "requests", "data")
        if rows is None:
            return of_call(words.error(reply, key=key))
        when = when or between(search, reply)
        for row in rows:
            remote_id = text_of(row, "request_id") or ""
            if remote_id not in owned and is_id(remote_id):
                candidates.add(found_of(row), is_alike(row, task, when))
        cursor = text_of(data, "next_cursor")
        if not cursor or not rows:
            # The cursor's name is not documented: a full page without one is no end.
            return candidates.settled(whole=len(rows) < PAGE)
    return candidates.settled(whole=False)


def is_alike(row: Mapping[str, Any], task: Task, when: Between) -> bool | None:
    """
    Whether a request was sent in that time and has all that we sent and no more; None: that cannot be told
    (`likeness`).
    """
    listed = row.get("json_input")
    if not isinstance(listed, Mapping) or not when.holds(time_of(row, "sent_at")):
        return False
    return likeness(listed, input_of(task.parameters))


def found_of(row: Mapping[str, Any]) -> Found:
    """
    A listed request as a lost create that was found.
    """
    started = time_of(row, "started_at")
    return Found(
        remote_id=text_of(row, "request_id") or "",
        remote_state=None if started is None else RemoteState.WORKING,
        times=RemoteTimes(created_at=time_of(row, "sent_at"), started_at=started),
    )
