"""
The power goes at any moment: what was answered is there afterwards. `proof.py` does the same many more times.
"""

import pytest

from vidrelay.store.sqlite import SqliteStore

from .power import Lost, Recorder, check, cut_log, live, replay


async def test_a_log_that_is_cut_anywhere_holds_every_commit_before_the_cut(tmp_path):
    """A torn write-ahead log opens, is sound, and has all that was answered before the tear."""
    await cut_log(tmp_path, cuts=60, tails=40)


async def test_writes_that_were_never_synced_were_never_answered(tmp_path):
    """A disk that keeps what was synced, and anything or nothing of the rest, has all that was answered."""
    told = await replay(tmp_path, crashes=40)
    assert told["checkpoints"] > 1


async def test_the_proof_would_notice_a_missing_commit(tmp_path):
    """An answer that is not on the disk is found out."""
    path = tmp_path / "relay.db"
    store = await SqliteStore.open(path)
    mark = Recorder()
    await live(store, 1, mark)
    await store.aclose()
    with pytest.raises(Lost):
        check(path, [*mark.promises, (0, "never stored", 0)], 0)


class Deaf(Recorder):
    """
    A disk that says of every sync that it was done, and does none.
    """

    def judge(self, op):
        if op.kind != "sync":
            super().judge(op)


async def test_the_proof_would_notice_a_missing_sync(tmp_path):
    """If commits were not synced, answers would be lost, and that is found out."""
    with pytest.raises(Lost):
        await replay(tmp_path, crashes=20, tasks=20, recorder=Deaf())
