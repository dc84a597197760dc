"""
A client of Kling's API through a relay's door: client, relay and pretend provider. There is no official SDK.
"""

from typing import Any


async def test_a_client_makes_fetches_and_lists_clips(run_door: Any) -> None:
    """From text and picture, by both ids, once for three at once and for a repetition; a failure; a wrong key."""
    ran = await run_door("kling_client", provider="kling", dialect="kling")
    looks = ran.printed.pop("looks")
    assert ran.printed == {
        "twins": 1,
        "first": [0, "SUCCEED", "submitted"],
        "ended": ["succeed", "5", True],
        "by_external_id": True,
        "of_a_picture": "succeed",
        "failed": ["failed", True],
        "twin": "succeed",
        "listed": True,
        "again": True,
        "missing": [404, 1203],
        "refused": 403,
    }
    assert ran.ledger["creates"]["received"] == 4
    assert ran.ledger["polls"] + ran.ledger["lists"] < looks / 4
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 1]
