"""
Doors whose stop is for what waits alone, as their providers' own is.
"""

from dataclasses import replace
from typing import Any

import pytest

from vidrelay.core.door import Cancel, Door, Look, View, Wish
from vidrelay.core.task import CancelOutcome, State
from vidrelay.providers.ark.door import make as make_ark
from vidrelay.providers.minimax.door import make as make_minimax
from vidrelay.providers.vidu.door import make as make_vidu
from vidrelay.testing.doors import call_door, view_of

STOPS = {
    "ark": (make_ark("volcengine"), "DELETE", "/api/v3/contents/generations/tasks/x", None),
    "minimax v2": (make_minimax("v2"), "DELETE", "/v2/video_generation/x", None),
    "vidu": (make_vidu(None), "POST", "/ent/v2/tasks/x/cancel", {"id": "x"}),
}


@pytest.mark.parametrize(("door", "method", "path", "body"), STOPS.values(), ids=STOPS.keys())
def test_a_stop_spares_what_has_begun_unseen(door: Door, method: str, path: str, body: Any) -> None:
    """A poll of before says that it waits; its provider refuses, and it goes on, as it would without the relay."""
    waits = view_of(State.RUNNING)
    spared = replace(waits, task=replace(waits.task, cancel=CancelOutcome.TOO_LATE))

    def grant(wish: Wish) -> View:
        if isinstance(wish, Cancel):
            assert wish.unless_begun
            return replace(waits, cancel=CancelOutcome.PENDING)
        return spared if isinstance(wish, Look) and wish.wait else waits

    assert call_door(door, method, path, body, grant=grant).reply.status == 400
