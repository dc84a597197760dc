"""
A client of Vidu's API through a relay's door: client, relay and pretend provider. There is no official SDK.
"""

from typing import Any

import pytest


@pytest.mark.parametrize("armed", [(), ("create-drop-after",)])
async def test_a_client_makes_fetches_lists_and_stops_clips(run_door: Any, armed: tuple[str, ...]) -> None:
    """From text, an upload and a picture inline; three at once; a stop; a failure; a wrong key; a lost answer."""
    ran = await run_door("vidu_client", provider="vidu", dialect="vidu", upstream="/ent/v2", armed=armed)
    looks = ran.printed.pop("looks")
    assert ran.printed == {
        "twins": 1,
        "created": ["created", "viduq3-turbo", 5, "mine"],
        "stopped": {},
        "held": ["failed", "UserCancelled"],
        "ended": ["success", "mine", True],
        "of_pictures": "success",
        "failed": ["failed", "CreationPolicyViolation"],
        "twin": "success",
        "late": [400, "BadRequest"],
        "listed": [True, ""],
        "again": True,
        "missing": [404, "TaskNotFound"],
        "refused": 403,
    }
    assert ran.ledger["creates"]["received"] == len(ran.jobs) == 4
    assert ran.ledger["creates"]["lost"] == len(armed)
    assert ran.ledger["polls"] + ran.ledger["lists"] < looks / 4
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 2]
    assert all(seen["place"] != "delete" for seen in ran.ledger["requests"])
