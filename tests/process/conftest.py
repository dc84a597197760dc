"""
A relay and a pretend provider as real processes, spoken to over loopback as any app would.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

READY = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
PACE = 'first = "0.2s"\ncap = "0.5s"\nnot_found_grace = "1s"\n'


class Process:
    """
    A program of ours that prints where it listens.
    """

    def __init__(self, *arguments: str, env: dict[str, str] | None = None, log: Path) -> None:
        self._log = log.open("ab")
        self.child = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            text=True,
        )
        line = self.child.stdout.readline()
        found = READY.search(line)
        if found is None:
            self.kill()
            raise AssertionError(f"{arguments} did not come up: {line!r}, {log.read_text()}")
        self.port = int(found.group(1))

    def kill(self) -> None:
        """
        SIGKILL, and wait until it is gone.
        """
        self.child.kill()
        self.close()

    def terminate(self) -> int:
        """
        SIGTERM; returns its exit status.
        """
        self.child.send_signal(signal.SIGTERM)
        return self.close()

    def close(self) -> int:
        """
        Wait for its end.
        """
        status = self.child.wait(30)
        self.child.stdout.close()
        self._log.close()
        return status


class Simulator(Process):
    """
    The pretend provider.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__("vidrelay.simulator", "--port", "0", *flags, log=folder / "simulator.log")
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, verify=False)

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

    def restart(self, **wish: Any) -> None:
        """
        Let it forget.
        """
        self.http.post("/_restart", json=wish).raise_for_status()

    def close(self) -> int:
        """
        Wait for its end.
        """
        self.http.close()
        return super().close()


@dataclass
class World:
    """
    A state directory, its configuration, and the lives of the relay in it.
    """

    folder: Path
    stack: ExitStack
    config: Path = field(init=False)
    relay: Process | None = None
    http: httpx2.Client | None = None

    def __post_init__(self) -> None:
        self.state = self.folder / "state"
        self.config = self.folder / "vidrelay.toml"

    def simulate(self, *flags: str) -> Simulator:
        """
        Start a pretend provider.
        """
        simulator = Simulator(self.folder, *flags)
        self.stack.callback(simulator.kill)
        return simulator

    def simulate_at(self, port: int) -> Simulator:
        """
        Start a pretend provider on that port.
        """
        return self.simulate("--port", str(port), "--run-seconds", "0.2")

    def configure(
        self,
        simulator: Simulator,
        *,
        window: int = 2,
        relay: str = "",
        account: str = "",
        provider: str = "openai",
        api: str = "/v1",
    ) -> None:
        """
        Write the configuration: one account, `sim`, at that provider, polled quickly.
        """
        self.config.write_text(
            f'[relay]\ndefault_account = "sim"\n{relay}\n[poll]\n{PACE}\n[cache]\nmin_free = "1MB"\n'
            f'[accounts.sim]\nprovider = "{provider}"\nbase_url = "http://127.0.0.1:{simulator.port}{api}"\n'
            f"window = {window}\n{account}\n"
        )
        self.config.chmod(0o600)

    def start(self, *flags: str) -> None:
        """
        Begin a life of the relay.
        """
        self.relay = Process(
            "vidrelay",
            "--config",
            str(self.config),
            "--state-dir",
            str(self.state),
            "serve",
            *flags,
            log=self.folder / "relay.log",
        )
        told = json.loads((self.state / "relay.json").read_text())
        self.http = httpx2.Client(
            base_url=f"http://127.0.0.1:{told['port']}",
            headers={"X-Local-Token": told["token"]},
            trust_env=False,
            verify=False,
            timeout=70,
        )

    def kill(self) -> None:
        """
        SIGKILL the relay.
        """
        self.http.close()
        self.relay.kill()
        self.relay = None

    def stop(self) -> int:
        """
        SIGTERM the relay; returns its exit status.
        """
        self.http.close()
        status, self.relay = self.relay.terminate(), None
        return status

    def end(self) -> None:
        """
        Leave nothing running.
        """
        if self.relay is not None:
            self.kill()

    def generate(self, prompt: str = "a boat", **fields: Any) -> dict[str, Any]:
        """
        Submit; returns the task.
        """
        answer = self.http.post("/generate", json={"prompt": prompt, **fields})
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def task(self, task_id: str) -> dict[str, Any]:
        """
        The task as the relay tells it.
        """
        return self.http.get(f"/task/{task_id}").json()

    def until(self, task_id: str, *states: str, seconds: float = 40) -> dict[str, Any]:
        """
        Hold on by long poll until the task is in one of these states.
        """
        deadline = time.monotonic() + seconds
        task = self.task(task_id)
        while task["state"] not in states:
            assert time.monotonic() < deadline, f"still {task['state']}: {task['error']}"
            assert task["state"] not in ("done", "failed", "cancelled", "expired"), task["error"]
            task = self.http.get(f"/task/{task_id}", params={"wait": 5, "seen": task["state"]}).json()
        return task

    def until_true(self, told: Callable[[], Any], *, seconds: float = 40) -> None:
        """
        Look until it is so.
        """
        deadline = time.monotonic() + seconds
        while not told():
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.02)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """
    A world without any process yet; whatever it starts is ended.
    """
    with ExitStack() as stack:
        world = World(folder=tmp_path, stack=stack)
        stack.callback(world.end)
        yield world
