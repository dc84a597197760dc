"""
The official `fal-client` SDK through a relay's door: SDK, relay and pretend provider.
"""

from typing import Any

DOOR = {"provider": "fal", "dialect": "fal", "queue_seconds": 0.3, "run_seconds": 0.3}


async def test_the_sdk_submits_waits_runs_uploads_fetches_fails_and_cancels(run_door: Any) -> None:
    """Both clients: place in the queue, result, `run`, a picture in two ways, forced, failed, cancelled, a bad key."""
    ran = await run_door("fal_door", **DOOR)
    said = ran.printed
    assert said["at_home"] == [True, True]
    assert said["queued"] == ["Queued", 0]
    assert said["words"] == ["Completed", "InProgress", "Queued"]
    assert (said["made"], said["again"], said["by_id"], said["ran"]) == (True, [None, [], True], True, True)
    assert said["with_picture"] == [True, True, True]
    assert said["forced"] == 3
    assert said["moderated"] == [422, "content_policy_violation", "content_policy_violation"]
    assert said["failed"] == [504, "request_timeout", "request_timeout"]
    assert said["cancelled"] == "client_cancelled"
    assert (said["too_late"], said["gone"], said["bad_key"]) == (400, 404, 403)
    # A stream of the model's own would be a task that nobody can read.
    assert said["streamed"] == "SSEError"
    # Three identical creates at once are one task and one job.
    assert said["at_once"] == [1, 1]
    assert ran.ledger["creates"] == {"received": 10, "accepted": 10, "answered": 10, "refused": 0, "lost": 0}
    assert len(ran.tasks) == len(ran.jobs) == 10
    assert [job.pictures for job in ran.jobs].count(1) == 1
