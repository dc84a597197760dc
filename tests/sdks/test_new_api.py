"""
The official `openai` SDK, both clients, against the pretend new-api gateway.
"""

from typing import Any

REFUSED = {"status": 401, "kind": "new_api_error"}


async def test_the_blocking_client_makes_and_fetches_a_clip(run_sdk: Any) -> None:
    """create with a picture, retrieve, download, too early too; a job that fails, one that is not there, a bad key."""
    ran = await run_sdk("new_api_sync", dialect="new-api", path="/v1", key="right")
    said = ran.printed
    assert said["created"] == {"id": "task_", "status": "queued", "seconds": "4", "size": "1280x720"}
    assert said["early"] == {"status": 400, "kind": "invalid_request_error"}
    assert said["ended"] == {"status": "completed", "progress": 100, "completed": True}
    assert said["address"]
    assert said["clip"]
    assert said["failed"] == {"status": "failed", "code": "moderation_blocked"}
    assert said["gone"] == {"status": 400, "code": "task_not_exist"}
    assert said["deleted"] == 404
    assert said["refused"] == REFUSED
    assert [job.pictures for job in ran.jobs] == [1, 0, 0]
    assert ran.ledger["creates"] == {"received": 4, "accepted": 3, "answered": 3, "refused": 1, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0]


async def test_the_asynchronous_client_makes_clips_at_once(run_sdk: Any) -> None:
    """Three at once, fetched; a job that fails, and a key that is refused."""
    ran = await run_sdk("new_api_async", dialect="new-api", path="/v1", key="right")
    said = ran.printed
    assert said["ended"] == ["completed"] * 3
    assert said["clips"] == [True] * 3
    assert said["failed"] == {"status": "failed", "code": "generation_failed"}
    assert said["same"] == 3
    assert said["refused"] == REFUSED
    assert ran.ledger["creates"] == {"received": 8, "accepted": 7, "answered": 7, "refused": 1, "lost": 0}
    assert sorted(ran.ledger["maxAtOnce"].values()) == [3]
