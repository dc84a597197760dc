"""
The official `runwayml` SDK through a relay's door: SDK, relay and pretend provider.
"""

from typing import Any

DOOR = {"provider": "runway", "dialect": "runway"}


async def test_runwayml_makes_uploads_fails_cancels_and_deletes(run_door: Any) -> None:
    """Text, a picture in two ways, another version, failed, cancelled, deleted, bad calls; the SDK's own waiting."""
    ran = await run_door("runway_door", **DOOR, workers=4, queue_seconds=0.1, run_seconds=0.3)
    said = ran.printed
    assert said["first"] == "AwaitablePending"
    assert (said["ended"], said["is_mp4"]) == (["AwaitableSucceeded", 1, True], True)
    assert (said["with_picture"], said["same_picture"], said["forced"]) == ("SUCCEEDED", True, True)
    assert said["scaled"] == "SUCCEEDED"
    assert said["failed"] == ["SAFETY.OUTPUT.VIDEO", True]
    assert (said["running"], said["cancelled"]) == (["AwaitableRunning", True], "CANCELLED")
    assert (said["gone"], said["unknown"]) == ([404, "NotFoundError"], [404, "NotFoundError"])
    assert said["no_upload"] == [422, "UnprocessableEntityError"]
    assert said["balance"] == [404, "NotFoundError"]
    assert said["bad_key"] == [403, "PermissionDeniedError"]
    assert said["waited"] == ["SUCCEEDED"] * 3 + ["INTERNAL.BAD_OUTPUT.CODE01"]
    assert (said["tasks"], said["uploaded"]) == (1, True)
    assert ran.ledger["creates"] == {"received": 8, "accepted": 8, "answered": 8, "refused": 0, "lost": 0}
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 0, 0, 1, 1, 1]
    assert ran.jobs[0].data["seed"] == 7
    (scaled,) = [job.data["promptImage"][0]["uri"] for job in ran.jobs if isinstance(job.data.get("promptImage"), list)]
    assert 1_000_000 < len(scaled) <= 5_000_000
    assert sorted(job["state"] for job in ran.ledger["jobs"]) == ["done"] * 5 + ["failed"] * 2 + ["stopped"]
    assert [task["joins"] for task in ran.tasks] == [0, 1, 0, 0, 0, 0, 2, 0]
    # The SDK's status reads stay on this machine: the provider sees the relay's own few, and nobody else.
    assert said["reads"] > (ran.ledger["polls"] + ran.ledger["lists"])
    (agent,) = ran.ledger["userAgents"]
    assert agent.startswith("vidrelay/")
