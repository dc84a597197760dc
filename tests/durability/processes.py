"""
A real relay process on a real directory, with a pretend provider beside it, and a disk that can be made small.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).parents[2]
READY = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
CONFIG = """
[relay]
default_account = "sim"
[poll]
first = "0.2s"
cap = "0.5s"
[cache]
min_free = "1MB"
max_bytes = "{cache}"
[accounts.sim]
provider = "openai"
base_url = "http://127.0.0.1:{port}/v1"
window = 2
"""


def begin(
    *arguments: str, log: Path | None, before: Sequence[str] = (), cwd: Path | None = None
) -> tuple[subprocess.Popen[str], int | None]:
    """
    Start one of our programs; returns it with its port, or without where it has ended instead.

    Its standard error goes into `log`, or for None into a pipe. `before` stands before it on the command line.
    """
    with nullcontext(subprocess.PIPE) if log is None else log.open("ab") as errors:
        child = subprocess.Popen(
            [*before, sys.executable, "-m", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=cwd,
        )
    found = READY.search(child.stdout.readline())
    return child, int(found[1]) if found else None


def end(child: subprocess.Popen[str], *, kill: bool = False) -> int:
    """
    Ask it to leave, or kill it; returns its exit status.
    """
    if child.poll() is None:
        child.kill() if kill else child.terminate()
    status = child.wait(30)
    child.stdout.close()
    if child.stderr is not None:
        child.stderr.close()
    return status


@dataclass
class Simulator:
    """
    The pretend provider.
    """

    http: httpx2.Client
    port: int

    def ledger(self) -> dict[str, Any]:
        """
        Everything it saw.
        """
        return self.http.get("/_ledger").json()

    def control(self, **changes: Any) -> None:
        """
        Set options and arm faults.
        """
        self.http.post("/_control", json=changes).raise_for_status()


@contextmanager
def simulator(folder: Path, *flags: str) -> Iterator[Simulator]:
    """
    A pretend provider until the block ends.
    """
    child, port = begin("vidrelay.simulator", "--port", "0", *flags, log=folder / "simulator.log")
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, verify=False) as http:
            yield Simulator(http, port)
    finally:
        end(child, kill=True)


def configure(folder: Path, port: int, *, cache: str = "10GB") -> None:
    """
    Write the configuration beside the state directory.
    """
    path = folder / "vidrelay.toml"
    path.write_text(CONFIG.format(port=port, cache=cache))
    path.chmod(0o600)


@dataclass
class Relay:
    """
    A relay process that listens.
    """

    child: subprocess.Popen[str]
    http: httpx2.Client
    state: Path

    def limit_files(self, size_bytes: int | None) -> None:
        """
        Let it write no file beyond so many bytes; None: any length.
        """
        limit = resource.RLIM_INFINITY if size_bytes is None else size_bytes
        resource.prlimit(self.child.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def submit(self, prompt: str) -> httpx2.Response:
        """
        Submit under the prompt as its own key.
        """
        return self.http.post("/generate", json={"prompt": prompt}, headers={"Idempotency-Key": prompt})

    def task(self, task_id: str) -> dict[str, Any]:
        """
        The task as it is told.
        """
        return self.http.get(f"/task/{task_id}").json()

    def until(self, task_id: str, state: str, *, seconds: float = 40.0) -> dict[str, Any]:
        """
        The task once it is in that state.
        """
        wait_for(lambda: self.task(task_id)["state"] == state, seconds=seconds, told=lambda: str(self.task(task_id)))
        return self.task(task_id)


def wait_for(so: Callable[[], bool], *, seconds: float = 20.0, told: Callable[[], str] = lambda: "") -> None:
    """
    Look until it is so.
    """
    deadline = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < deadline, f"it never came to be: {told()}"
        time.sleep(0.05)


@contextmanager
def relay(folder: Path, *, kill: bool = False, piped: bool = False, program: str = "vidrelay") -> Iterator[Relay]:
    """
    A relay until the block ends, then asked to leave or killed; `piped`: its standard error is a pipe, and no file.
    """
    state = folder / "state"
    _, *flags = arguments(folder)
    child, port = begin(program, *flags, log=None if piped else folder / "relay.log", cwd=ROOT)
    assert port is not None
    told = json.loads((state / "relay.json").read_text())
    headers = {"X-Local-Token": told["token"]}
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False, verify=False, timeout=70
    ) as http:
        running = Relay(child, http, state)
        try:
            yield running
        finally:
            end(child, kill=kill)


def arguments(folder: Path) -> tuple[str, ...]:
    """
    The relay's command line.
    """
    return ("vidrelay", "--config", str(folder / "vidrelay.toml"), "--state-dir", str(folder / "state"), "serve")


NOT_ALMIGHTY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
"""To root, nothing is read-only; to this one it is."""


def refused_start(folder: Path) -> tuple[int, str]:
    """
    The exit status and last words of a relay that does not start.
    """
    log = folder / "refused.log"
    child, port = begin(*arguments(folder), log=log, before=NOT_ALMIGHTY if os.geteuid() == 0 else ())
    status = end(child)
    assert port is None
    return status, log.read_text()
