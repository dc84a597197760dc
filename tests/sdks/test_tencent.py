"""
The official `tencentcloud` SDK for VCLM in its own environment, against the pretend provider.
"""

from typing import Any


async def test_tencentcloud_makes_fetches_and_fails(run_sdk: Any) -> None:
    """Both clients: submit, describe, the clip; one too many, one that fails, an unknown one, a wrong secret."""
    ran = await run_sdk("tencentcloud_vclm", dialect="tencent", key="AKIDright:right-secret", run_seconds=0.3)
    said = ran.printed
    assert said["made"] == ran.jobs[0].id
    assert said["made"].isdigit()
    assert said["full"] == "RequestLimitExceeded.JobNumExceed"
    assert (said["ended"], said["is_mp4"]) == ("DONE", True)
    assert said["failed"] == ["FAIL", "FailedOperation.ModerationFailed", "the job failed"]
    assert said["unknown"] == "FailedOperation.JobNotExist"
    assert said["wrong"] == "AuthFailure.SignatureFailure"
    assert said["named"] == {"made": "mine-1", "ended": "DONE", "echoed": ["mine-1", "5"]}
    assert ran.ledger["creates"] == {"received": 5, "accepted": 3, "answered": 3, "refused": 2, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "done"]
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0]
    assert [job.pictures for job in ran.jobs] == [0, 1, 0]
