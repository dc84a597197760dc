"""
`python -m vidrelay.simulator` as a process of its own.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

pytestmark = pytest.mark.process


@contextmanager
def simulator(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "vidrelay.simulator", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = process.stdout.readline()
            assert told.startswith("listening on http://127.0.0.1:")
            yield process, told.split()[-1]
        finally:
            process.terminate()
            process.wait(10)


def test_it_says_where_it_listens_and_stops_when_told() -> None:
    """It prints its address once it listens, serves, and leaves with status 0 on SIGTERM."""
    with simulator("--window", "1", "--run-seconds", "60") as (process, url):
        assert httpx2.post(f"{url}/v1/videos", json={"prompt": "a"}).status_code == 200
        assert httpx2.post(f"{url}/v1/videos", json={"prompt": "a"}).status_code == 429
        assert httpx2.get(f"{url}/_ledger").json()["creates"]["accepted"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_a_taken_port_ends_with_status_2() -> None:
    """A port that somebody has is told on stderr."""
    with simulator() as (_, url):
        port = url.rsplit(":", 1)[1]
        ended = subprocess.run(
            [sys.executable, "-m", "vidrelay.simulator", "--port", port], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 2
        assert f"Port {port}" in ended.stderr
