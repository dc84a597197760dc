"""
The official `lumaai` SDK through a relay's door: SDK, relay and pretend provider.
"""

from typing import Any

DOOR = {"provider": "luma", "dialect": "luma", "upstream": "/dream-machine/v1", "path": "/dream-machine/v1"}


async def test_lumaai_makes_fetches_lists_and_deletes(run_door: Any) -> None:
    """create, with a frame, from an earlier clip, another version; get, list, ping, delete; failures; three at once."""
    ran = await run_door("lumaai_door", **DOOR, queue_seconds=0.1, run_seconds=0.3)
    said = ran.printed
    assert said["created"] == {"state": "queued", "model": "ray-2", "prompt": "a paper boat"}
    assert (said["ended"], said["is_mp4"]) == (["completed", True], True)
    assert (said["with_picture"], said["further"], said["forced"]) == ("completed", "completed", True)
    assert (said["listed"], said["ping"]) == ([4, False, True], "pong")
    assert said["failed"] == ["failed", "The prompt was refused by moderation."]
    assert (said["gone"], said["unknown"]) == ([404, "NotFoundError"], [404, "NotFoundError"])
    assert said["balance"] == [404, "NotFoundError"]
    assert said["bad_key"] == [403, "PermissionDeniedError"]
    assert said["left"] == 4
    assert (said["at_once"], said["tasks"]) == (["completed"] * 3, 1)
    assert ran.ledger["creates"] == {"received": 6, "accepted": 6, "answered": 6, "refused": 0, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "done", "done", "done", "failed", "done"]
    assert ran.jobs[2].data["keyframes"] == {"frame0": {"type": "generation", "id": ran.jobs[0].id}}
    assert [task["joins"] for task in ran.tasks] == [0, 0, 0, 0, 0, 2]
    # The SDK's many status reads stay on this machine: the provider sees the relay's own few, and nobody else.
    assert said["reads"] > 3 * (ran.ledger["polls"] + ran.ledger["lists"])
    (agent,) = ran.ledger["userAgents"]
    assert agent.startswith("vidrelay/")
