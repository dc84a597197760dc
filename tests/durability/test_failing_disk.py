"""
The disk fails under SQLite itself: what was refused leaves nothing, and after a failed sync nothing more is written.
"""

import pytest

from vidrelay.core.errors import DatabaseUnusable, DiskFull
from vidrelay.store.sqlite import SqliteStore
from vidrelay.testing.records import make_task
from vidrelay.testing.stored import add, rule

from .faulty_sqlite import FULL, IOERR_FSYNC, IOERR_WRITE, disk


class Trouble:
    """
    Lets the next disk work of a kind fail, or all of it.
    """

    def __init__(self):
        self.kind = self.verdict = None
        self.once = True
        self.written = 0

    def arm(self, kind, verdict, *, once=True):
        self.kind, self.verdict, self.once, self.written = kind, verdict, once, 0

    def judge(self, op):
        if op.kind != self.kind or not op.path.endswith("-wal"):
            self.written += self.kind is not None and op.kind == "write"
            return None
        if self.once:
            self.kind = None
        return self.verdict


@pytest.fixture
def trouble():
    armed = Trouble()
    with disk(armed.judge):
        yield armed


@pytest.mark.parametrize("verdict", [FULL, IOERR_WRITE, (10, IOERR_WRITE), (4000, FULL)])
async def test_a_write_that_the_disk_refuses_is_told_and_leaves_nothing(tmp_path, trouble, verdict):
    """Full, failing or short: the caller gets DiskFull, no row is there, and the next try works."""
    store = await SqliteStore.open(tmp_path / "relay.db")
    (before,) = await add(store, make_task())
    trouble.arm("write", verdict)
    with pytest.raises(DiskFull):
        await store.add(make_task(), rule())
    assert await store.live() == [before]
    (after,) = await add(store, make_task())
    await store.aclose()
    store = await SqliteStore.open(tmp_path / "relay.db")
    assert await store.live() == [before, after]
    await store.aclose()


async def test_after_a_failed_sync_nothing_more_is_written(tmp_path, trouble):
    """What a disk did not make durable it may show and not hold: the store refuses every change from then on."""
    path = tmp_path / "relay.db"
    store = await SqliteStore.open(path)
    (before,) = await add(store, make_task())
    trouble.arm("sync", IOERR_FSYNC)
    with pytest.raises(DatabaseUnusable, match="durable"):
        await store.add(make_task(), rule())
    trouble.arm("nothing", None)
    with pytest.raises(DatabaseUnusable, match="durable"):
        await store.add(make_task(), rule())
    assert before in await store.live()
    store.count(polls=1)
    await store.aclose()
    assert trouble.written == 0
    assert path.with_name("relay.db-wal").stat().st_size > 0
    store = await SqliteStore.open(path)
    assert before in await store.live()
    await store.aclose()
