"""
The official `dashscope` SDK through a relay's door, both surfaces.
"""

from typing import Any

DOOR = {"provider": "dashscope", "dialect": "dashscope", "upstream": "/api/v1", "path": "/api/v1"}


async def test_the_old_surface(run_door: Any) -> None:
    """async_call with a local picture, call, wait, fetch, cancel, list; asynchronous; a wrong key; three at once."""
    ran = await run_door("dashscope_legacy", "same", **DOOR)
    said = ran.printed
    assert said["created"] == [200, "PENDING"]
    assert said["ended"] == ["SUCCEEDED", "a boat", 1]
    assert said["clip"]
    assert said["failed"] == ["FAILED", "DataInspectionFailed"]
    assert (said["cancelled"], said["then"]) == (200, "CANCELED")
    assert said["late"] == [400, "UnsupportedOperation"]
    assert said["unknown"] == "UNKNOWN"
    assert said["listed"] == 4
    assert said["aio"] == ["SUCCEEDED"] * 4
    assert said["again"] == [1, False]
    assert said["refused"][0] == 403
    _made_once(ran)


async def test_the_new_surface(run_door: Any) -> None:
    """The same by `Client().videos.jobs` and `AsyncClient`."""
    ran = await run_door("dashscope_client", "same", **DOOR)
    said = ran.printed
    assert said["created"] == "PENDING"
    assert said["ended"] == [True, True]
    assert said["clip"]
    assert said["failed"] == "DataInspectionFailed"
    assert (said["cancelled"], said["unknown"]) == ("CANCELED", "UNKNOWN")
    assert said["listed"] == [4, ["CANCELED", "FAILED", "SUCCEEDED", "SUCCEEDED"]]
    assert said["async"] == [True] * 4
    assert said["again"] == [1, False]
    assert said["refused"][0] == 403
    _made_once(ran)


def _made_once(ran: Any) -> None:
    """
    Each clip was asked for once, the picture went along, three of a kind were one, and looks cost the provider nothing.
    """
    assert ran.ledger["creates"]["received"] == len(ran.jobs) <= len(ran.tasks) == 6
    states = [job["state"] for job in ran.ledger["jobs"]][:5]
    assert sorted(states) == ["done"] * 3 + ["failed", "stopped"]
    places = [one["place"] for one in ran.ledger["requests"]]
    assert places.count("poll") + places.count("list") <= 2 * len(ran.jobs)
    pictures = {job.fields["prompt"]: job.pictures for job in ran.jobs}
    assert pictures["a boat"] == 1
    assert sum(task["joins"] for task in ran.tasks) == 2
