"""
A relay as a real process, and what the system tells of it.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

READY = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
PACE = '[poll]\nfirst = "0.2s"\ncap = "0.4s"\nnot_found_grace = "1s"\n[cache]\nmin_free = "1MB"\n'


class Life:
    """
    One relay process from `listening` to its end; a context manager that leaves nothing running.
    """

    def __init__(
        self, folder: Path, config: str = "", *, environ: Mapping[str, str] | None = None, umask: int = -1
    ) -> None:
        """
        Keep everything in `folder`; `config` is added to a quick pace, `environ` to the process's own.
        """
        self.folder, self.state, self.config = folder, folder / "state", folder / "vidrelay.toml"
        self.config.write_text(config + PACE)
        self.config.chmod(0o600)
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("VIDRELAY_")}
        self._environ |= {"VIDRELAY_CONFIG": str(self.config), "VIDRELAY_STATE_DIR": str(self.state), **(environ or {})}
        self._umask = umask

    def __enter__(self) -> Self:
        self.output = self.folder / "output"
        with self.output.open("ab") as output:
            self.child = self.command("serve", stdout=subprocess.PIPE, stderr=output)
        line = self.child.stdout.readline()
        self.said = [line]
        if not READY.search(line):
            self.child.kill()
            self.child.communicate()
            raise AssertionError(f"the relay did not come up: {line!r} {self.output.read_text()}")
        told = json.loads((self.state / "relay.json").read_text())
        self.port, self.token, self.instance = told["port"], told["token"], told["instance"]
        self.http = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"X-Local-Token": self.token},
            trust_env=False,
            verify=False,
            timeout=30,
            event_hooks={"response": [_shares_nothing]},
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.http.close()
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            rest, _ = self.child.communicate(timeout=30)
            self.said.append(rest)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()
            raise

    @property
    def pid(self) -> int:
        return self.child.pid

    def command(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """
        Start a command of vidrelay's on this state directory.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "vidrelay", *arguments],
            env=self._environ,
            cwd=self.folder,
            text=True,
            umask=self._umask,
            stdin=subprocess.DEVNULL,
            **options,
        )

    def run(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """
        Run a command to its end.
        """
        child = self.command(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise
        return subprocess.CompletedProcess(arguments, child.returncode, out, err)

    def look(self, path: str, **headers: str) -> int:
        """
        The status that a call with these headers, and no others of ours, is answered with.
        """
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.get(
            f"http://127.0.0.1:{self.port}{path}", headers=told, trust_env=False, verify=False
        ).status_code

    def rss_bytes(self) -> int:
        """
        The memory that the process holds now.
        """
        return self._status("VmRSS")

    def peak_bytes(self) -> int:
        """
        The most memory that it has held.
        """
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) * 1024

    def connections(self) -> int:
        """
        How many connections to its port it holds.
        """
        inodes = set()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{self.port:04X}") and fields[3] != "0A":
                inodes.add(fields[9])
        held = set()
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                held.add(entry.readlink().name)
        return sum(f"socket:[{inode}]" in held for inode in inodes)

    def until(self, task_id: str, *states: str) -> dict[str, Any]:
        """
        The task once it is in one of these states.
        """
        task = self.http.get(f"/task/{task_id}").json()
        for _ in range(60):
            if task["state"] in states:
                return task
            task = self.http.get(f"/task/{task_id}", params={"wait": 5, "seen": task["state"]}).json()
        raise AssertionError(f"{task_id} is still {task['state']}: {task['error']}")

    def until_told(self, task_id: str) -> dict[str, Any]:
        """
        The task once it tells of trouble, whatever its state: an error, or what it waits for.
        """
        for _ in range(600):
            task = self.http.get(f"/task/{task_id}").json()
            if task["error"] is not None or "waitingFor" in task:
                return task
            time.sleep(0.1)
        raise AssertionError(f"{task_id} is {task['state']} and tells of no trouble")


def _shares_nothing(answer: httpx2.Response) -> None:
    """
    No answer of any life lets another origin read it.
    """
    assert not [name for name in answer.headers if name.startswith("access-control")]


def children(pid: int) -> Iterator[int]:
    """
    Every process below that one.
    """
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == pid:
                    yield int(place.name)
                    yield from children(int(place.name))


@contextlib.contextmanager
def pretend_provider(folder: Path, *flags: str) -> Iterator[int]:
    """
    The pretend provider as a process; yields its port.
    """
    with (folder / "provider.log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "vidrelay.simulator", "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    try:
        yield int(READY.search(child.stdout.readline())[1])
    finally:
        child.kill()
        child.communicate()
