"""
Reads fal's list of a model's requests.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.lifecycle import Found
from vidrelay.core.task import RemoteState, RemoteTimes, Task
from vidrelay.providers.fal.parameters import input_of
from vidrelay.providers.listing import Between, likeness
from vidrelay.providers.replies import text_of, time_of


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
