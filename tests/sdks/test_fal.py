"""
The official `fal-client` SDK in its own environment, both clients, against the pretend provider.
"""

from typing import Any


async def test_fal_client_submits_waits_fetches_fails_and_cancels(run_sdk: Any) -> None:
    """Place in the queue, result, upload, a refused and a failed request, cancel, a bad key; three at once."""
    ran = await run_sdk("fal_both", dialect="fal", key="right", queue_seconds=0.3, run_seconds=0.3)
    said = ran.printed
    assert said["queued"] == ["Queued", 0]
    assert said["words"] == ["Completed", "InProgress", "Queued"]
    assert (said["is_mp4"], said["again"], said["by_id"]) == (True, [None, True], "video/mp4")
    assert said["with_picture"] == [True, "video/mp4"]
    assert said["moderated"] == [422, None, None]
    assert said["failed"] == [504, "startup_timeout", "startup_timeout"]
    assert said["cancelled"] == "client_cancelled"
    assert (said["too_late"], said["gone"], said["wrong"], said["bad_key"]) == (400, 404, 422, 401)
    assert said["at_once"] == ["output.mp4"] * 3
    assert ran.ledger["creates"] == {"received": 10, "accepted": 8, "answered": 8, "refused": 2, "lost": 0}
    states = [job["state"] for job in ran.ledger["jobs"]]
    assert states == ["done", "done", "failed", "failed", "stopped", "done", "done", "done"]
    assert [job.pictures for job in ran.jobs] == [0, 1, 0, 0, 0, 0, 0, 0]
