"""
A reference's path that leads elsewhere by the time it is read does not lead to the relay's own files.
"""

import contextlib
import itertools
import os
import threading
from pathlib import Path

import pytest
from PIL import Image

from vidrelay.core.errors import InvalidRequest, UnknownAsset
from vidrelay.core.task import Asset
from vidrelay.files.assets import LocalAssets

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links are POSIX")


class Book:
    """
    What is known of pictures, in memory.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Asset] = {}

    async def asset(self, asset_id: str) -> Asset:
        if asset_id not in self.rows:
            raise UnknownAsset
        return self.rows[asset_id]

    async def add_asset(self, asset: Asset) -> None:
        self.rows[asset.id] = asset


async def test_a_path_that_is_swapped_all_the_while_never_leads_to_a_forbidden_file(tmp_path: Path) -> None:
    """
    Its folder is now the user's own, now a link to the state directory, which holds a picture of that name too.
    """
    state, mine, way = tmp_path / "state", tmp_path / "mine", tmp_path / "way"
    for place, colour in ((state, "red"), (mine, "blue")):
        place.mkdir()
        Image.new("RGB", (8, 8), colour).save(place / "a.png")
    book, over = Book(), threading.Event()
    assets = LocalAssets(tmp_path / "assets", book, forbidden=[state])

    def swap() -> None:
        for target in itertools.cycle((state, mine)):
            if over.is_set():
                return
            (tmp_path / "next").symlink_to(target)
            (tmp_path / "next").replace(way)

    way.symlink_to(mine)
    thread = threading.Thread(target=swap)
    thread.start()
    taken = refused = 0
    try:
        for _ in range(400):
            with contextlib.suppress(InvalidRequest):
                await assets.put_path(str(way / "a.png"))
                taken += 1
                continue
            refused += 1
    finally:
        over.set()
        thread.join()
    assert taken
    assert refused
    assert [assets.location(asset_id).read_bytes() for asset_id in book.rows] == [(mine / "a.png").read_bytes()]
