"""
What stands in a call and is told back in a header of the answer.
"""

from pathlib import Path

import pytest
from fake_relay import FakeRelay
from loopback import serving

from vidrelay.providers.fal.door import make
from vidrelay.scheduler.face import DoorWay


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("x%0d%0aSet-Cookie:%20a=b", "x??Set-Cookie: a=b"),
        ("%E4%BD%A0", "?"),
        ("%ff", "?"),
        ("x%00y", "x?y"),
        ("%1b[2J", "?[2J"),
    ],
)
async def test_what_a_path_names_begins_no_header_and_breaks_no_answer(tmp_path: Path, name: str, told: str) -> None:
    """
    The answer is the door's own, with the security headers, whatever characters an id has.
    """
    relay = FakeRelay(tmp_path)
    relay.ways = {"fal": DoorWay(account="main", door=make(None))}
    async with serving(relay) as served:
        answer = await served.client.get(f"/fal/owner/app/requests/{name}/status")
    assert answer.status_code == 404
    assert answer.json()["error_type"] == "unknown_task"
    assert answer.headers["x-fal-request-id"] == told
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
