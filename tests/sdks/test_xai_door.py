"""
A plain HTTP client of Grok Imagine through a relay's door and directly: one program, which sees the same both ways.
"""

from typing import Any

import pytest

SAME = {
    "ended": ["done", True, 5, True],
    "is_mp4": True,
    "part": 4,
    "failed": "failed",
    "kept_back": ["done", "", False],
    "unknown": 404,
    "at_once": ["done"] * 3,
}


@pytest.mark.parametrize("through", ["door", "nothing"])
async def test_a_client_sees_the_same_through_the_door_as_at_the_provider(
    run_door: Any, run_sdk: Any, through: str
) -> None:
    """Create with a picture, status, fetch, failures, a wrong key; three at once are one job through the door alone."""
    if through == "door":
        ran = await run_door("xai_http", provider="xai", dialect="xai", upstream="/v1", path="/v1", run_seconds=0.2)
    else:
        ran = await run_sdk("xai_http", dialect="xai", path="/v1", key="right", run_seconds=0.2)
    refused = ran.printed.pop("refused")
    assert ran.printed == SAME
    assert ran.jobs[0].pictures == 1
    if through == "door":
        assert refused == 403
        assert ran.ledger["creates"] == {"received": 4, "accepted": 4, "answered": 4, "refused": 0, "lost": 0}
        assert [task["joins"] for task in ran.tasks] == [0, 0, 0, 2]
        assert [one["place"] for one in ran.ledger["requests"]].count("poll") <= 8
    else:
        assert refused == 401
        assert ran.ledger["creates"]["accepted"] == 6
