"""
Clients of MiniMax's two generations through a relay's door: client, relay and pretend provider; no official SDK.
"""

from typing import Any


async def test_a_client_of_v1_makes_and_fetches_clips(run_door: Any) -> None:
    """From text and picture, the file in two steps, once for three at once; a failure; a wrong key."""
    ran = await run_door("minimax_v1_client", provider="minimax", dialect="minimax", settings='dialect = "v1"')
    looks = ran.printed.pop("looks")
    assert ran.printed == {
        "twins": 1,
        "ended": ["Success", True, True],
        "of_a_picture": "Success",
        "failed": ["Fail", 1027, ""],
        "twin": "Success",
        "again": True,
        "missing": [404, 2013],
        "refused": 403,
    }
    assert ran.ledger["creates"]["received"] == 4
    assert ran.ledger["polls"] + ran.ledger["lists"] < looks / 4
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 1]


async def test_a_client_of_v2_makes_lists_stops_and_deletes_clips(run_door: Any) -> None:
    """From text, an upload and a picture inline; a stop while it waits costs the provider no call."""
    ran = await run_door("minimax_v2_client", provider="minimax", dialect="minimax-v2")
    looks = ran.printed.pop("looks")
    assert ran.printed == {
        "twins": 1,
        "held": "queued",
        "stopped": ["cancelled", "cancelled"],
        "ended": ["succeeded", "768P", True],
        "of_pictures": "succeeded",
        "failed": ["failed", True],
        "twin": "succeeded",
        "listed": True,
        "filtered": True,
        "again": True,
        "deleted": "deleted",
        "missing": [404, 404],
        "refused": 403,
    }
    assert ran.ledger["creates"]["received"] == 4
    assert ran.ledger["polls"] + ran.ledger["lists"] < looks / 4
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 2]
    assert all(seen["place"] != "delete" for seen in ran.ledger["requests"])
