"""
The official runtime SDKs of Ark (Volcengine's and BytePlus's, both clients) against the pretend provider.
"""

from typing import Any

import pytest

PACKAGES = ("volcenginesdkarkruntime", "byteplussdkarkruntime")
REFUSED = {"status": 401, "code": "AuthenticationError"}


@pytest.mark.parametrize("package", PACKAGES)
async def test_the_blocking_client_makes_fetches_cancels_and_erases(run_sdk: Any, package: str) -> None:
    """create, get, list, delete of a waiting, a running and a finished job; a job that fails, a key that is refused."""
    ran = await run_sdk("ark_sync", package, dialect="ark", path="/api/v3", key="right", workers=1)
    said = ran.printed
    assert said["created"] == {"id": "cgt-", "tag": "tag-1"}
    assert said["ended"] == {
        "status": "succeeded",
        "seed": 7,
        "ratio": "16:9",
        "duration": 5,
        "tag": "tag-1",
        "tokens": 108900,
        "ordered": True,
    }
    assert said["clip"]
    assert said["failed"] == {"status": "failed", "code": "OutputVideoSensitiveContentDetected"}
    assert said["queued"]
    assert said["cancelled"] == "cancelled"
    assert said["running"] == {"status": 400, "state": "running"}
    assert said["listed"] == [2, True]
    assert said["erased"] == 404
    assert said["refused"] == {"kind": "ArkAuthenticationError", **REFUSED}
    assert ran.ledger["creates"] == {"received": 5, "accepted": 4, "answered": 4, "refused": 1, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "stopped", "working"]
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0, 0]


@pytest.mark.parametrize("package", PACKAGES)
async def test_the_asynchronous_client_makes_clips_at_once(run_sdk: Any, package: str) -> None:
    """Three at once and one that fails, listed by their status; a key that is refused."""
    ran = await run_sdk("ark_async", package, dialect="ark", path="/api/v3", key="right")
    said = ran.printed
    assert said["ended"] == ["succeeded"] * 3
    assert said["addresses"] == 3
    assert said["failed"] == {"status": "failed", "code": "InternalServiceError"}
    assert said["listed"] == 3
    assert said["refused"] == REFUSED
    assert said["same"] == 3
    assert ran.ledger["creates"] == {"received": 7, "accepted": 7, "answered": 7, "refused": 0, "lost": 0}
    assert sorted(ran.ledger["maxAtOnce"].values()) == [3]
