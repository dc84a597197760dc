"""
The official runtime SDKs of Ark (Volcengine's and BytePlus's, both clients) through a relay's door.
"""

from typing import Any

import pytest

PACKAGES = ("volcenginesdkarkruntime", "byteplussdkarkruntime")
DOOR = {"provider": "ark", "dialect": "ark", "upstream": "/api/v3", "path": "/api/v3"}


@pytest.mark.parametrize("package", PACKAGES)
async def test_the_blocking_client_makes_fetches_cancels_and_erases(run_door: Any, package: str) -> None:
    """create with a picture, get, list, delete of a waiting, a running and a finished job; a failure, a wrong key."""
    ran = await run_door("ark_sync", package, **DOOR, workers=1)
    said = ran.printed
    assert said["created"]["tag"] == "tag-1"
    assert said["ended"] == {
        "status": "succeeded",
        "seed": 7,
        "ratio": "16:9",
        "duration": 5,
        "tag": "tag-1",
        "tokens": 0,
        "ordered": True,
    }
    assert said["clip"]
    assert said["failed"] == {"status": "failed", "code": "OutputVideoSensitiveContentDetected"}
    assert (said["queued"], said["cancelled"]) == (True, "cancelled")
    assert said["running"] == {"status": 400, "state": "running"}
    assert said["listed"] == [2, True]
    assert said["erased"] == 404
    assert (said["refused"]["kind"], said["refused"]["status"]) == ("ArkPermissionDeniedError", 403)
    assert ran.ledger["creates"] == {"received": 4, "accepted": 4, "answered": 4, "refused": 0, "lost": 0}
    assert [job.pictures for job in ran.jobs] == [1, 0, 0, 0]
    # What waited was stopped there; the record of what had ended was not erased.
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "stopped", "working"]
    assert [task["state"] for task in ran.tasks] == ["done", "failed", "cancelled", "running"]


@pytest.mark.parametrize("package", PACKAGES)
async def test_the_asynchronous_client_makes_clips_at_once(run_door: Any, package: str) -> None:
    """Three at once and one that fails; the same three times at once is one job; two ways to force; a wrong key."""
    ran = await run_door("ark_async", package, **DOOR)
    said = ran.printed
    assert said["ended"] == ["succeeded"] * 3
    assert said["addresses"] == 3
    assert said["failed"] == {"status": "failed", "code": "InternalServiceError"}
    assert said["listed"] == 3
    assert (said["same"], said["forced"]) == (1, 2)
    assert said["refused"]["status"] == 403
    assert len(ran.tasks) == 7
    assert len(ran.jobs) <= 7
    assert sum(job.fields["prompt"] == "boat 0" for job in ran.jobs) == 1
