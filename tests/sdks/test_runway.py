"""
The official `runwayml` SDK in its own environment, both clients, against the pretend provider.
"""

from typing import Any


async def test_runwayml_makes_fetches_fails_cancels_and_asks_for_limits(run_sdk: Any) -> None:
    """Text and picture, an upload, THROTTLED, failed, cancelled, deleted, bad calls; the SDK's own waiting."""
    ran = await run_sdk("runway_both", dialect="runway", key="right", queue_seconds=0.2, run_seconds=0.3)
    said = ran.printed
    assert (said["first"], said["ended"], said["is_mp4"]) == ("PENDING", ["AwaitableSucceeded", 1, 60], True)
    assert (said["uploaded"], said["with_picture"]) == (True, "SUCCEEDED")
    assert said["failed"] == ["SAFETY.OUTPUT.VIDEO", 0]
    assert (said["running"], said["held"], said["cancelled"]) == ("AwaitableRunning", "THROTTLED", "CANCELLED")
    assert said["limits"] == [1, 5]
    assert said["gone"] == [404, "NotFoundError"]
    assert said["wrong"] == [400, "BadRequestError"]
    assert said["bad_key"] == [401, "AuthenticationError"]
    assert said["waited"] == ["SUCCEEDED", "INTERNAL.BAD_OUTPUT.CODE01"]
    assert ran.ledger["creates"] == {"received": 8, "accepted": 7, "answered": 7, "refused": 1, "lost": 0}
    states = [job["state"] for job in ran.ledger["jobs"]]
    assert states[:5] == ["done", "done", "failed", "stopped", "done"]
    assert sorted(states[5:]) == ["done", "failed"]
    assert [job.pictures for job in ran.jobs] == [0, 1, 0, 0, 0, 0, 0]
