"""
A database that cannot be used is refused, and not a byte beside it or in it changes; one that was never made is made.
"""

import pytest

from vidrelay.core.errors import DiskFull
from vidrelay.store.sqlite import SqliteStore

from .faulty_sqlite import FULL, disk


async def test_a_first_start_that_fails_anywhere_is_followed_by_a_good_one(tmp_path):
    """Whatever work of the disk is the last that is done, the next start finds no database, or a whole one."""
    for nth in range(1, 200):
        path = tmp_path / str(nth) / "relay.db"
        path.parent.mkdir()
        works = iter(range(10_000))
        try:
            with disk(lambda _, works=works, nth=nth: FULL if next(works) >= nth else None):
                await (await SqliteStore.open(path)).aclose()
        except DiskFull:
            await (await SqliteStore.open(path)).aclose()
        else:
            break
    else:
        pytest.fail("it always fails")
    assert nth > 20
