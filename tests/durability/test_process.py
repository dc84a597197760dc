"""
Real processes on a disk that takes no more, and on databases that cannot be used.
"""

import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from .processes import configure, relay, simulator, wait_for

pytestmark = pytest.mark.process


def test_a_submit_on_a_full_disk_is_507_and_leaves_nothing(tmp_path):
    """The kernel itself refuses the write: 507, no task; when there is room again the same submit is accepted."""
    with simulator(tmp_path, "--run-seconds", "0.2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path) as running:
            first = running.submit("first").json()
            running.until(first["taskId"], "done")
            running.limit_files(4096)
            refused = running.submit("second")
            assert refused.status_code == 507
            assert refused.json()["code"] == "disk_full"
            assert refused.json()["retryable"] is True
            assert [task["taskId"] for task in running.http.get("/tasks").json()["tasks"]] == [first["taskId"]]
            running.limit_files(None)
            second = running.submit("second").json()
            running.until(second["taskId"], "done")
        assert len(provider.ledger()["jobs"]) == 2


@pytest.mark.parametrize("end", ["killed", "asked"])
def test_an_answer_that_comes_on_a_full_disk_outlives_the_process(tmp_path, end):
    """The create was answered when no write of the database worked: the next life has the id, and makes no second."""
    with simulator(tmp_path, "--run-seconds", "0.2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path, kill=end == "killed") as running:
            provider.control(faults=["create-slow=1"])
            task = running.submit("a boat").json()
            wait_for(lambda: provider.ledger()["creates"]["received"] == 1)
            running.limit_files(4096)
            wait_for((running.state / "emergency.jsonl").exists)
            assert running.task(task["taskId"])["state"] == "submitting"
            began = time.monotonic()
        assert time.monotonic() - began < 15
        with relay(tmp_path) as running:
            assert running.task(task["taskId"])["remoteId"] is not None
            running.until(task["taskId"], "done")
            assert not (running.state / "emergency.jsonl").exists()
        assert provider.ledger()["creates"]["received"] == 1


def test_where_no_file_can_be_written_standard_error_has_the_id(tmp_path):
    """Not a byte can be written anywhere: the id is on standard error, and the relay goes on when there is room."""
    with simulator(tmp_path, "--run-seconds", "0.2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path, piped=True) as running:
            provider.control(faults=["create-slow=1"])
            task = running.submit("a boat").json()
            wait_for(lambda: provider.ledger()["creates"]["received"] == 1)
            running.limit_files(0)
            word = next(line for line in running.child.stderr if "--adopt" in line)
            running.limit_files(None)
            done = running.until(task["taskId"], "done")
            assert f"vidrelay resolve {task['taskId']} --adopt {done['remoteId']}" in word
        assert provider.ledger()["creates"]["received"] == 1


def test_a_database_that_somebody_else_holds_is_503_with_retry_after(tmp_path):
    """Another program has locked it for longer than five seconds: the client is told when to try again."""
    with simulator(tmp_path, "--run-seconds", "0.2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path) as running:
            with closing(sqlite3.connect(running.state / "relay.db", isolation_level=None)) as other:
                # The start's own write would wait for the lock before ours.
                wait_for(lambda: other.execute("SELECT count(*) FROM told_limits").fetchone() != (0,))
                other.execute("BEGIN IMMEDIATE")
                began = time.monotonic()
                busy = running.submit("a boat")
                took = time.monotonic() - began
                assert running.http.get("/tasks").status_code == 200
                other.execute("ROLLBACK")
            assert (busy.status_code, busy.json()["code"]) == (503, "store_busy")
            assert int(busy.headers["retry-after"]) >= 1
            assert 4.5 < took < 10
            running.until(running.submit("a boat").json()["taskId"], "done")


def test_a_disk_that_makes_nothing_durable_ends_the_relay(tmp_path):
    """Exit status 3 with the reason on standard error, no relay.json left, the answer kept for the next life."""
    with simulator(tmp_path, "--run-seconds", "0.2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path, program="tests.durability.failing_relay") as running:
            provider.control(faults=["create-slow=1"])
            task = running.submit("a boat").json()
            wait_for(lambda: provider.ledger()["creates"]["received"] == 1)
            (running.state / "unsynced").touch()
            assert running.child.wait(30) == 3
        assert "made the database durable" in (tmp_path / "relay.log").read_text()
        assert not (running.state / "relay.json").exists()
        assert task["taskId"] in (running.state / "emergency.jsonl").read_text()
        with relay(tmp_path) as running:
            assert running.task(task["taskId"])["remoteId"] is not None
            running.until(task["taskId"], "done")
        assert provider.ledger()["creates"]["received"] == 1


@pytest.mark.parametrize("gone", ["relay.lock", "relay.db", "everything"])
def test_a_relay_whose_directory_is_no_longer_its_own_takes_nothing_and_leaves(tmp_path, gone):
    """What would be answered would be in a file that nobody finds, or two relays would work on one: 503, and exit 3."""
    with simulator(tmp_path, "--run-seconds", "0.2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path) as running:
            if gone == "everything":
                shutil.move(running.state, tmp_path / "moved")
            else:
                (running.state / gone).unlink()
            refused = running.submit("a boat")
            assert refused.status_code == 503
            assert running.child.wait(20) == 3
        assert provider.ledger()["creates"]["received"] == 0


@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_a_relay_whose_log_is_deleted_leaves_and_nothing_is_lost_or_paid_twice(tmp_path, end):
    """What was answered is in the database before the next change is refused: 503, exit 3, and all there afterwards."""
    with simulator(tmp_path, "--run-seconds", "2") as provider:
        configure(tmp_path, provider.port)
        with relay(tmp_path, kill=end == "killed") as running:
            tasks = [running.submit(prompt).json()["taskId"] for prompt in ("a boat", "a kite")]
            wait_for(lambda: provider.ledger()["creates"]["received"] >= 1)
            (running.state / "relay.db-wal").unlink()
            refused = running.submit("a moth")
            assert (refused.status_code, refused.json()["code"]) == (503, "database_unusable")
            if end == "by itself":
                assert running.child.wait(20) == 3
                assert "relay.db-wal was moved or deleted" in (tmp_path / "relay.log").read_text()
        with relay(tmp_path) as running:
            for task in tasks:
                running.until(task, "done")
            assert len(running.http.get("/tasks").json()["tasks"]) == 2
        assert provider.ledger()["creates"]["received"] == 2
