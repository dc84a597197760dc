"""
The official `volcengine` SDK in its own environment, against the pretend provider.
"""

from typing import Any


async def test_volcengine_makes_fetches_fails_and_cancels(run_sdk: Any) -> None:
    """VisualService: submit, get result, the clip; one too many, one that fails, one stopped, a wrong secret."""
    ran = await run_sdk("volcengine_visual", dialect="jimeng", key="AKLTright:right-secret", run_seconds=0.3)
    said = ran.printed
    assert said["made"] == [10000, "Success", ran.jobs[0].id]
    assert said["made"][2].isdigit()
    assert "50430" in said["full"]
    assert (said["ended"], said["is_mp4"]) == ("done", True)
    assert "50516" in said["failed"]
    assert (said["cancelled"], said["after"]) == (10000, "not_found")
    assert "SignatureDoesNotMatch" in said["wrong"]
    assert ran.ledger["creates"] == {"received": 5, "accepted": 3, "answered": 3, "refused": 2, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "stopped"]
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0]
    assert ran.jobs[1].pictures == 1
