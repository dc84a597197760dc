"""
What is left of a database after a power cut, however much of its last commit arrived.
"""

import random
import sqlite3

import pytest

from vidrelay.testing.simulation.disk import DATABASE, Disk, longest_file


def write(connection, number):
    connection.execute("INSERT INTO kept VALUES (?, ?)", (number, "x" * 3000))
    connection.commit()


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_commit_takes_nothing_earlier_along(tmp_path, seed):
    """Everything committed before is there, and the database is whole."""
    disk = Disk(tmp_path, random.Random(seed))
    connection = sqlite3.connect(disk.state / DATABASE)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {10 + seed}")
    connection.execute("CREATE TABLE kept (number INTEGER, text TEXT)")
    for number in range(30 + seed):
        write(connection, number)
    before = disk.database()
    write(connection, 1000)
    disk.tear(before)
    connection.close()
    left = sqlite3.connect(disk.state / DATABASE)
    assert left.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    numbers = [number for (number,) in left.execute("SELECT number FROM kept WHERE number < 1000 ORDER BY number")]
    left.close()
    assert numbers == list(range(30 + seed))


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_is_the_same_whatever_sqlite_draws(tmp_path, seed):
    """A log begun anew has the next salt, and how many of its bytes that changes is chance of SQLite's own."""
    assert left_of_a_log(tmp_path / "one", seed, salt=0x1234) == left_of_a_log(tmp_path / "other", seed, salt=0xFFFF)


def left_of_a_log(folder, seed, *, salt):
    folder.mkdir()
    disk = Disk(folder, random.Random(seed))
    log = f"{DATABASE}-wal"
    (disk.state / DATABASE).touch()
    (disk.state / log).write_bytes(bytes(8) + salt.to_bytes(4) + bytes(12))
    before = disk.database()
    (disk.state / log).write_bytes(bytes(8) + (salt + 1).to_bytes(4) + bytes(12))
    disk.tear(before)
    return (disk.state / log).stat().st_size


def test_a_file_beyond_the_limit_is_cut_short(tmp_path):
    """The operating system itself writes less, then refuses."""
    path = tmp_path / "file"
    with longest_file(100), path.open("wb", buffering=0) as file:
        assert file.write(bytes(150)) == 100
        with pytest.raises(OSError, match="large"):
            file.write(b"more")
    assert path.stat().st_size == 100


def test_what_a_kill_leaves_is_taken_whole_though_files_are_limited(tmp_path):
    """A process that dies while its writes are cut short leaves what it had written before."""
    disk = Disk(tmp_path, random.Random(1))
    (disk.state / "ballast").write_bytes(bytes(1000))
    with longest_file(100):
        disk.picture()
    assert (disk.state / "ballast").stat().st_size == 1000
