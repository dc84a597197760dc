"""
The official `google-genai` SDK against the pretend provider: 2.x for Veo, 3.x, in an environment of its own, for
interactions.
"""

from typing import Any


async def test_genai_2_makes_and_fetches_with_veo(run_sdk: Any) -> None:
    """generate_videos, operations.get, files.download; one filtered, one failed, a refused key; three at once."""
    ran = await run_sdk("genai_veo", dialect="google", key="right", run_seconds=0.2)
    said = ran.printed
    assert said["created"] == [True, None]
    assert (said["ended"], said["is_mp4"]) == ([True, None, True], True)
    assert said["filtered"] == [None, 1, 1]
    assert said["failed"] == 13
    assert said["refused"] == [400, "INVALID_ARGUMENT"]
    assert said["at_once"] == [True] * 3
    assert ran.ledger["creates"] == {"received": 7, "accepted": 6, "answered": 6, "refused": 1, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0, 0, 0, 0, 0]
    assert [job.pictures for job in ran.jobs] == [2, 0, 0, 0, 0, 0]


async def test_genai_3_makes_fetches_and_cancels_interactions(run_sdk: Any) -> None:
    """create, get, download, cancel, delete; one that fails, a refused key; three at once."""
    ran = await run_sdk(
        "genai_interactions", environment="genai3", dialect="google", key="right", queue_seconds=0.2, run_seconds=0.2
    )
    said = ran.printed
    assert said["created"] == ["queued", True, {"a": "b"}]
    assert (said["ended"], said["is_mp4"]) == (["completed", "model_output", "video", "video/mp4"], True)
    assert said["failed"] == ["failed", "internal"]
    assert said["cancelled"] == "cancelled"
    assert (said["gone"], said["refused"]) == (404, 400)
    assert said["at_once"] == ["completed"] * 3
    assert ran.ledger["creates"] == {"received": 7, "accepted": 6, "answered": 6, "refused": 1, "lost": 0}
    assert [job["state"] for job in ran.ledger["jobs"]] == ["done", "failed", "stopped", "done", "done", "done"]
    assert [job.pictures for job in ran.jobs] == [1, 0, 0, 0, 0, 0]
