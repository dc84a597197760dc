"""
The official `luma-agents` SDK in its own environment, both clients, against the pretend provider.
"""

from typing import Any


async def test_luma_agents_makes_and_fetches(run_sdk: Any) -> None:
    """create, get, files; a job that fails, one that is unknown, a key that is refused; three clips at once."""
    ran = await run_sdk("luma_agents_both", dialect="luma-agents", path="/v1", key="right", run_seconds=0.2)
    said = ran.printed
    assert said["created"] == {"state": "queued", "model": "ray-3.2", "output": []}
    assert (said["ended"], said["is_mp4"]) == (["completed", "video"], True)
    assert said["failed"] == ["failed", "content_moderated"]
    assert said["files"] == []
    assert (said["gone"], said["refused"]) == (404, 401)
    assert said["at_once"] == ["completed"] * 3
    assert ran.ledger["creates"] == {"received": 6, "accepted": 5, "answered": 5, "refused": 1, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0, 0, 0]
    assert [job.pictures for job in ran.jobs] == [1, 0, 0, 0, 0]
