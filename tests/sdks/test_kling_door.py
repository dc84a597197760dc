"""
A client of Kling's API through a relay's door: client, relay and pretend provider. There is no official SDK.
"""

from typing import Any

import pytest


@pytest.mark.parametrize("armed", [(), ("create-drop-after",)])
async def test_a_client_makes_fetches_and_lists_clips(run_door: Any, armed: tuple[str, ...]) -> None:
    """From text and picture, by both ids, once for three at once; a failure; a wrong key; an answer that was lost."""
    ran = await run_door("kling_client", provider="kling", dialect="kling", armed=armed)
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
    assert ran.ledger["creates"]["received"] == len(ran.jobs) == 4
    assert ran.ledger["creates"]["lost"] == len(armed)
    assert ran.ledger["polls"] + ran.ledger["lists"] < looks / 4
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 1]
