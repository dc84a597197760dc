"""
The official `dashscope` SDK in its own environment, both surfaces, against the pretend provider.
"""

from typing import Any


async def test_the_old_surface(run_sdk: Any) -> None:
    """async_call with a local picture, wait, fetch, cancel, list; a job that fails, and a key that is refused."""
    ran = await run_sdk("dashscope_legacy", dialect="dashscope", path="/api/v1", key="right")
    said = ran.printed
    assert said["created"] == [200, "PENDING"]
    assert said["ended"] == ["SUCCEEDED", "a boat", 1]
    assert said["clip"]
    assert said["failed"] == ["FAILED", "DataInspectionFailed"]
    assert (said["cancelled"], said["then"]) == (200, "CANCELED")
    assert said["late"] == [400, "UnsupportedOperation"]
    assert said["unknown"] == "UNKNOWN"
    assert said["listed"] == 2
    assert said["aio"] == ["SUCCEEDED"] * 2
    assert said["refused"] == [401, "InvalidApiKey"]
    assert ran.ledger["creates"] == {"received": 6, "accepted": 5, "answered": 5, "refused": 1, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "stopped", "done", "done"]
    assert ran.jobs[0].pictures == 1


async def test_the_new_surface(run_sdk: Any) -> None:
    """The same by `Client().videos.jobs`, and two at once by `AsyncClient`."""
    ran = await run_sdk("dashscope_client", dialect="dashscope", path="/api/v1", key="right")
    said = ran.printed
    assert said["created"] == "PENDING"
    assert said["ended"] == [True, True]
    assert said["clip"]
    assert said["failed"] == "DataInspectionFailed"
    assert (said["cancelled"], said["unknown"]) == ("CANCELED", "UNKNOWN")
    assert said["listed"] == [2, ["CANCELED", "FAILED"]]
    assert said["async"] == [True, True]
    assert said["refused"] == [401, "InvalidApiKey"]
    assert ran.ledger["creates"] == {"received": 6, "accepted": 5, "answered": 5, "refused": 1, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "stopped", "done", "done"]
    assert ran.jobs[0].pictures == 1
