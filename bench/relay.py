"""
Real processes to measure: a relay on a state directory of its own, a pretend provider, the bare routes, a load.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parent.parent
LISTENING = re.compile(r"http://127\.0\.0\.1:(\d+)")

CONFIG = """
[relay]
default_account = "bench"
[accounts.bench]
provider = "openai"
key_file = "{key}"
base_url = "http://127.0.0.1:{port}/v1"
window = {{ slow = 1, "*" = 1 }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """
    A server that listens. `ready_seconds` is from its start to its first answer; `token` is empty where it needs none.
    """

    port: int
    pid: int
    token: str
    ready_seconds: float

    def call(self, method: str, path: str, **told: Any) -> httpx2.Response:
        """
        One request to it.
        """
        return httpx2.request(
            method,
            f"http://127.0.0.1:{self.port}{path}",
            headers={"X-Local-Token": self.token},
            trust_env=False,
            timeout=60,
            **told,
        )

    def resident_mb(self) -> float | None:
        """
        Memory held by it and its children, in MB; None where the system does not tell.
        """
        try:
            return sum(_resident_kb(pid) for pid in [self.pid, *_children(self.pid)]) / 1000
        except OSError:
            return None


def _resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 // 1000
    return 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def process(*command: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], float]]:
    """
    Run a Python module's command; it and the perf counter at its start. It is killed at the end: nothing is measured
    there.
    """
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )
    try:
        yield child, start
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _port_told(child: subprocess.Popen[str]) -> int:
    """
    The port in the line that says it listens.
    """
    assert child.stdout is not None
    for line in child.stdout:
        if found := LISTENING.search(line):
            return int(found[1])
    raise RuntimeError("a server ended before it listened")


@contextmanager
def pretend_provider(*flags: str) -> Iterator[int]:
    """
    A provider whose jobs of the model `slow` never end, so that in a window of one every later task waits; its port.
    """
    usual = ("--queue-seconds", "0", "--models", "fast=0,slow=36000")
    with process("vidrelay", "simulate", *(flags or usual)) as (child, _):
        yield _port_told(child)


def configure(home: Path, provider_port: int) -> None:
    """
    Write a configuration whose only account is that provider.
    """
    (home / "key").write_text("bench-key")
    (home / "key").chmod(0o600)
    (home / "vidrelay.toml").write_text(CONFIG.format(key=home / "key", port=provider_port))
    (home / "vidrelay.toml").chmod(0o600)


@contextmanager
def relay(home: Path) -> Iterator[Running]:
    """
    A relay on `home`'s configuration and state.
    """
    state = home / "state"
    places = {"VIDRELAY_STATE_DIR": str(state), "VIDRELAY_CONFIG": str(home / "vidrelay.toml")}
    with process("vidrelay", "serve", **places) as (child, start):
        port = _port_told(child)
        token = json.loads((state / "relay.json").read_text())["token"]
        running = Running(port=port, pid=child.pid, token=token, ready_seconds=0)
        assert running.call("GET", "/health").status_code == 200
        yield Running(port=port, pid=child.pid, token=token, ready_seconds=time.perf_counter() - start)


@contextmanager
def bare_routes(task: Path) -> Iterator[Running]:
    """
    The bare Starlette routes, answering with that task.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process("bench.bare", str(port), str(task)) as (child, start):
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.01)
        yield Running(port=port, pid=child.pid, token="", ready_seconds=time.perf_counter() - start)


def load(
    server: Running, *paths: str, method: str, body: str, connections: int, seconds: float, every: float = 0.0
) -> dict[str, Any]:
    """
    Ask that server for so long from a process of its own, each path in its turn; percentiles are milliseconds.

    `every`: so many seconds pass between an answer and the connection's next request.
    """
    token = f"\r\nX-Local-Token: {server.token}" if server.token else ""
    order = {
        "port": server.port,
        "connections": connections,
        "seconds": seconds,
        "requests": [f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}{token}" for path in paths],
        "body": body,
        "every": every,
    }
    return ask("bench.load", json.dumps(order))


def ask(*command: str) -> dict[str, Any]:
    """
    Run a module that prints one JSON object.
    """
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told
