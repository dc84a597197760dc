"""
The official `openai` SDK, and a client of the gateway's own path, through a relay's door for new-api.
"""

from typing import Any

DOOR = {"provider": "new-api", "dialect": "new-api", "upstream": "/v1"}


async def test_the_blocking_client_makes_and_fetches_a_clip(run_door: Any) -> None:
    """create with a picture, retrieve, download, too early too; a job that fails, one that is not there, a bad key."""
    ran = await run_door("new_api_sync", **DOOR, path="/v1")
    said = ran.printed
    assert (said["created"]["status"], said["created"]["seconds"]) == ("queued", "4")
    assert said["created"]["size"] == "1280x720"
    assert said["early"] == {"status": 400, "kind": "invalid_request_error"}
    assert said["ended"] == {"status": "completed", "progress": 100, "completed": True}
    assert said["address"]
    assert said["clip"]
    assert said["failed"]["status"] == "failed"
    assert said["gone"] == {"status": 400, "code": "task_not_exist"}
    assert said["deleted"] == 405
    assert said["refused"]["status"] == 403
    assert [job.pictures for job in ran.jobs] == [1, 0, 0]
    assert ran.ledger["creates"] == {"received": 3, "accepted": 3, "answered": 3, "refused": 0, "lost": 0}


async def test_the_asynchronous_client_makes_clips_at_once(run_door: Any) -> None:
    """Three at once, fetched; one that fails; three of the same, which are one job; a key that is refused."""
    ran = await run_door("new_api_async", **DOOR, path="/v1")
    said = ran.printed
    assert said["ended"] == ["completed"] * 3
    assert said["clips"] == [True] * 3
    assert said["failed"]["status"] == "failed"
    assert said["same"] == 1
    assert said["refused"]["status"] == 403
    assert len(ran.tasks) == 5
    assert ran.ledger["creates"]["received"] <= 5


async def test_the_gateways_own_path(run_door: Any) -> None:
    """Its wrapping, a picture in JSON, the clip by address, whole and in part; a failure, no such task, a wrong key."""
    ran = await run_door("new_api_native", **DOOR)
    said = ran.printed
    assert said["created"] == [200, True, "queued"]
    assert said["ended"] == ["success", "SUCCESS", "100%"]
    assert (said["clip"], said["address"]) == (True, True)
    assert said["part"] == [206, "ftyp"]
    assert said["failed"] == ["FAILURE", True]
    assert said["gone"] == [400, "task_not_exist"]
    assert said["refused"] == 403
    assert [job.pictures for job in ran.jobs] == [1, 0]
    assert ran.ledger["creates"] == {"received": 2, "accepted": 2, "answered": 2, "refused": 0, "lost": 0}
