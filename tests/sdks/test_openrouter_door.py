"""
The official `openrouter` SDK through a relay's door: SDK, relay and pretend provider.
"""

from typing import Any

MODEL = "google/veo-3.1"
DOOR = {"provider": "openrouter", "dialect": "openrouter", "upstream": "/api/v1", "path": "/api/v1"}


async def test_openrouter_makes_and_fetches(run_door: Any) -> None:
    """generate, with a frame, from an earlier job, another version; content and addresses; failures; three at once."""
    ran = await run_door("openrouter_door", **DOOR, queue_seconds=0.1, run_seconds=0.3, settings="pass_through = true")
    said = ran.printed
    assert said["created"] == ["pending", True]
    assert said["ended"] == ["completed", 1, None]
    assert (said["is_mp4"], said["by_address"]) == (True, True)
    assert (said["more"], said["again"], said["forced"]) == (["completed"] * 3, True, True)
    assert said["failed"] == ["failed", "The vendor's content policy refused it."]
    assert (said["not_done"], said["unknown"], said["bad_key"]) == (409, 404, 403)
    assert said["models"] == [MODEL], "it is no task of that name, and is passed on"
    assert (said["at_once"], said["tasks"]) == (["completed"] * 3, 1)
    assert ran.ledger["creates"] == {"received": 7, "accepted": 7, "answered": 7, "refused": 0, "lost": 0}
    framed = [job for job in ran.jobs if job.pictures]
    assert len(framed) == 1
    further = [job.data["previous_job_id"] for job in ran.jobs if "previous_job_id" in job.data]
    assert further == [ran.jobs[0].id]
    assert [task["joins"] for task in ran.tasks] == [0, 0, 0, 0, 0, 0, 2]
    # The SDK's many status reads stay on this machine: the provider sees the relay's own few, and nobody else.
    assert said["reads"] > 3 * (ran.ledger["polls"] + ran.ledger["lists"])
    (agent,) = ran.ledger["userAgents"]
    assert agent.startswith("vidrelay/")
