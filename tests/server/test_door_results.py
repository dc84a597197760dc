"""
Results that stand in a door's answer: the very file that was saved, or none.
"""

from pathlib import Path

import pytest
from fake_relay import FakeRelay
from loopback import serving

from vidrelay.providers.replicate.door import make
from vidrelay.scheduler.face import DoorWay


@pytest.mark.parametrize("instead", ["link", "other", "folder"])
async def test_another_file_in_a_results_place_stands_in_no_answer(tmp_path: Path, instead: str) -> None:
    """
    A link is not followed, whatever it leads to, and a file of another length is not the one that was saved.
    """
    relay = FakeRelay(tmp_path)
    relay.ways = {"replicate": DoorWay(account="main", door=make(None))}
    relay.make()
    place = relay.file_path(relay.finish("t1", b"0123456789").files[0])
    place.unlink()
    (tmp_path / "secret").write_bytes(b"abcdefghij")
    match instead:
        case "link":
            place.symlink_to(tmp_path / "secret")
        case "other":
            place.write_bytes(b"longer than it was")
        case _:
            place.mkdir()
    async with serving(relay) as served:
        told = (await served.client.get("/replicate/v1/predictions/t1")).json()
    assert told["output"].startswith("http://127.0.0.1:")
