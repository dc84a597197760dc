"""
A small share of the long life that `proof.py` lives.
"""

from .soak import virtual


async def test_a_busy_life_leaves_no_handle_no_file_and_no_stray_row(tmp_path):
    """Two minutes of tasks, some repeated, cancelled or in trouble: what grows is the tasks' own rows, and no more."""
    told = await virtual(tmp_path, seconds=120.0, every=3.0)
    assert told["handles"] == 0
    assert abs(told["files"]) <= 2
    assert told["rowsPerTask"].pop("events") < 9
    assert told["rowsPerTask"].pop("tasks") == 1
    assert all(abs(share) <= 1 for share in told["rowsPerTask"].values())
    assert told["bytesPerTask"] < 30_000
