"""
The official `openrouter` SDK in its own environment, both ways, against the pretend provider.
"""

from typing import Any


async def test_openrouter_makes_and_fetches(run_sdk: Any) -> None:
    """generate, get, content; a job that fails, one that is unknown, a key that is refused; three clips at once."""
    ran = await run_sdk("openrouter_both", dialect="openrouter", path="/api/v1", key="right", run_seconds=0.2)
    said = ran.printed
    assert said["created"] == ["pending", True]
    assert (said["ended"], said["is_mp4"]) == (["completed", 0.4, 1], True)
    assert said["failed"] == ["failed", "The vendor's content policy refused it."]
    assert (said["gone"], said["refused"]) == (404, 401)
    assert said["at_once"] == ["completed"] * 3
    assert ran.ledger["creates"] == {"received": 6, "accepted": 5, "answered": 5, "refused": 1, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0, 0, 0]
    assert [job.pictures for job in ran.jobs] == [1, 0, 0, 0, 0]
