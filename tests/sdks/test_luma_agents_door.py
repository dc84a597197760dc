"""
The official `luma-agents` SDK through a relay's door: SDK, relay and pretend provider.
"""

from typing import Any

DOOR = {"provider": "luma-agents", "dialect": "luma-agents", "upstream": "/v1", "path": "/v1"}


async def test_luma_agents_makes_fetches_and_uploads(run_door: Any) -> None:
    """create, with a frame inline and uploaded, from an earlier clip, another version; failures; three at once."""
    ran = await run_door("luma_agents_door", **DOOR, queue_seconds=0.1, run_seconds=0.3)
    said = ran.printed
    assert said["created"] == {"state": "queued", "model": "ray-3.2", "output": []}
    assert (said["ended"], said["is_mp4"]) == (["completed", "video"], True)
    assert (said["with_picture"], said["further"], said["forced"]) == ("completed", "completed", True)
    assert (said["put"], said["created_at"], said["same_picture"]) == (200, True, True)
    assert said["uploaded"] == ["pending", "ready", 135, "image/png"]
    assert said["failed"] == ["failed", "content_moderated"]
    assert (said["unknown"], said["no_file"]) == ([404, "NotFoundError"], [404, "NotFoundError"])
    assert said["bad_key"] == [403, "PermissionDeniedError"]
    assert (said["at_once"], said["tasks"]) == (["completed"] * 3, 1)
    assert ran.ledger["creates"] == {"received": 6, "accepted": 6, "answered": 6, "refused": 0, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "done", "done", "done", "failed", "done"]
    assert [job.pictures for job in ran.jobs] == [0, 1, 1, 0, 0, 0]
    assert ran.jobs[2].data["video"]["start_frame"] == {"generation_id": ran.jobs[0].id}
    assert [task["joins"] for task in ran.tasks] == [0, 0, 0, 0, 0, 2]
    # The SDK's many status reads stay on this machine: the provider sees the relay's own few, and nobody else.
    assert said["reads"] > 3 * (ran.ledger["polls"] + ran.ledger["lists"])
    (agent,) = ran.ledger["userAgents"]
    assert agent.startswith("vidrelay/")
