"""
The official `google-genai` SDK through a relay's door: 2.x for Veo, 3.x, in an environment of its own, for
interactions.
"""

from typing import Any

DOOR = {"provider": "google", "dialect": "google", "upstream": "/v1beta"}


async def test_genai_2_makes_and_fetches_with_veo(run_door: Any) -> None:
    """generate_videos with pictures, operations.get, files.download; filtered, failed, a wrong key; asynchronous."""
    ran = await run_door("genai_veo", "same", **DOOR, run_seconds=0.2)
    said = ran.printed
    assert said["created"] == [True, None]
    assert (said["ended"], said["is_mp4"]) == ([True, None, True], True)
    assert said["filtered"] == [None, 1, 1]
    assert said["failed"] == 13
    assert said["refused"][0] == 403
    assert said["at_once"] == [True] * 6
    assert said["again"] == [True, False]
    assert [job["downloads"] for job in ran.ledger["jobs"]][:7] == [1, 0, 0, 1, 1, 1, 1]
    assert ran.jobs[0].pictures == 2
    assert [task["joins"] for task in ran.tasks if task["request"]["prompt"] == "the same boat"] == [2]
    _made_once(ran, tasks=8)


async def test_genai_3_makes_fetches_and_cancels_interactions(run_door: Any) -> None:
    """create, get, download, cancel, delete; one that fails, a wrong key; asynchronous; one held until it is made."""
    ran = await run_door("genai_interactions", "same", **DOOR, environment="genai3", queue_seconds=0.2, run_seconds=0.2)
    said = ran.printed
    assert said["created"] == ["queued", False, {"a": "b"}]
    assert (said["ended"], said["is_mp4"]) == (["completed", "model_output", "video", "video/mp4"], True)
    assert said["failed"] == ["failed", "internal"]
    assert said["cancelled"] == "cancelled"
    assert (said["gone"], said["refused"]) == (404, 403)
    assert said["at_once"] == ["completed"] * 6
    assert said["in_the_answer"] == ["completed", True]
    assert said["again"] == [True, False]
    assert [job["state"] for job in ran.ledger["jobs"]][:8] == ["done", "failed", "stopped", *["done"] * 5]
    assert ran.jobs[0].pictures == 1
    _made_once(ran, tasks=9)


def _made_once(ran: Any, *, tasks: int) -> None:
    """
    Each clip was asked for once, and looks cost the provider nothing.
    """
    assert ran.ledger["creates"]["received"] == len(ran.jobs) <= len(ran.tasks) == tasks
    places = [one["place"] for one in ran.ledger["requests"]]
    assert places.count("poll") <= 2 * len(ran.jobs)
