"""
The official `lumaai` SDK in its own environment, both clients, against the pretend provider.
"""

from typing import Any


async def test_lumaai_makes_fetches_lists_and_deletes(run_sdk: Any) -> None:
    """create, get, list, credits, ping, delete; a job that fails, a key that is refused; three clips at once."""
    ran = await run_sdk("lumaai_both", dialect="luma", path="/dream-machine/v1", key="right", run_seconds=0.2)
    said = ran.printed
    assert said["created"] == {"state": "queued", "model": "ray-2", "prompt": "a paper boat"}
    assert (said["ended"], said["is_mp4"]) == ("completed", True)
    assert said["listed"] == [1, False, True]
    assert (said["credits"], said["ping"]) == (1234.0, "pong")
    assert said["failed"] == ["failed", "The prompt was refused by moderation."]
    assert (said["gone"], said["refused"]) == (404, 403)
    assert said["at_once"] == ["completed"] * 3
    assert ran.ledger["creates"] == {"received": 6, "accepted": 5, "answered": 5, "refused": 1, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0, 0, 0]
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "done", "done", "done"]
