"""
A pretend provider, the lives of a relay in one state directory, and an app that remembers what it was told.
"""

import asyncio
import hashlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2

from vidrelay.testing.simulator import running_simulator

LAUNCHER = Path(__file__).with_name("launcher.py")
READY = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
PACE = 'first = "0.2s"\ncap = "0.4s"\nnot_found_grace = "1s"\n'
DIE_SECONDS = 45.0
ENDED = ("done", "failed", "cancelled", "expired")
BROKEN = (httpx2.TransportError, ConnectionError)


class Wrong(AssertionError):
    """
    Something that must never be so.
    """


def must(so: object, told: str) -> None:
    """Complain unless it is so."""
    if not so:
        raise Wrong(told)


class Provider:
    """
    The pretend provider, on a real socket, in a thread of its own.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._clips: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(20)
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, verify=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with running_simulator(**self._options) as simulator:
            self.port = simulator.port
            self._ready.set()
            await self._over.wait()

    def ledger(self) -> dict[str, Any]:
        """Everything it saw."""
        return self.http.get("/_ledger").json()

    def jobs(self) -> Counter[str]:
        """How many jobs were made of each prompt."""
        return Counter(job["prompt"] for job in self.ledger()["jobs"])

    def control(self, **changes: Any) -> None:
        """Set options, arm faults."""
        self.http.post("/_control", json=changes).raise_for_status()

    def clip(self, job_id: str) -> str:
        """The SHA-256 of what it serves for a job that is done."""
        if job_id not in self._clips:
            answer = self.http.get(f"/v1/videos/{job_id}/content")
            must(answer.status_code == 200, f"the provider has no clip of {job_id}")
            self._clips[job_id] = hashlib.sha256(answer.content).hexdigest()
        return self._clips[job_id]


@dataclass(slots=True)
class Wanted:
    """
    One clip that the app wants: what it asks for, under which key, and the task it was told of, if any.
    """

    prompt: str
    key: str
    task: dict[str, Any] | None = None
    told: str | None = None
    retries: int = 0


@dataclass
class World:
    """
    Everything of one trial.
    """

    folder: Path
    provider: Provider
    window: int = 2
    dialect: str = ""
    relay: str = ""
    cache: str = ""
    wanted: list[Wanted] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    kills: int = 0
    child: "subprocess.Popen[str] | None" = None
    http: httpx2.Client | None = None

    def __post_init__(self) -> None:
        self.state = self.folder / "state"
        self.log = self.folder / "relay.log"
        self._config = self.folder / "vidrelay.toml"
        self._listener: threading.Thread | None = None

    def configure(self) -> None:
        """Write the configuration, private as it must be."""
        dialect = f'dialect = "{self.dialect}"\n' if self.dialect else ""
        self._config.write_text(
            f'[relay]\ndefault_account = "sim"\n{self.relay}\n[poll]\n{PACE}\n'
            f'[cache]\nmin_free = "1MB"\n{self.cache}\n'
            f'[accounts.sim]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{self.provider.port}/v1"\n'
            f"window = {self.window}\n{dialect}"
        )
        self._config.chmod(0o600)

    # Lives

    def begin(self, fuse: tuple[str, int] | None = None) -> bool:
        """
        Begin a life of the relay, with a fuse or without; whether it came so far that it listens.
        """
        program = [str(LAUNCHER), fuse[0], str(fuse[1]), "--"] if fuse else ["-m", "vidrelay"]
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                [sys.executable, *program, "--config", self._config, "--state-dir", self.state, "serve"],
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
            )
        ready = READY.search(self.child.stdout.readline()) is not None
        if ready:
            self._greet()
        return ready

    def live(self, fuse: tuple[str, int] | None = None) -> None:
        """Begin a life that must come so far that it listens."""
        must(self.begin(fuse), f"the relay does not come up: {self._tail()}")

    def _greet(self) -> None:
        told = json.loads((self.state / "relay.json").read_text())
        self.tokens.append(told["token"])
        self.http = httpx2.Client(
            base_url=f"http://127.0.0.1:{told['port']}",
            headers={"X-Local-Token": told["token"], "X-Vidrelay-App": "killer"},
            trust_env=False,
            verify=False,
            timeout=60,
        )

    def died(self, point: str) -> None:
        """
        Wait until the fuse has blown; the process must have died of it, and by nothing else.
        """
        try:
            status = self.child.wait(DIE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the relay never came to {point}: {self._tail()}") from None
        self._gone()
        must(status == -signal.SIGKILL, f"the relay ended with {status} before {point}: {self._tail()}")
        blown = self.log.read_text(errors="replace").count(f"fuse {point} blown")
        must(blown, f"the relay was killed, but not at {point}")
        self.kills += 1

    def kill(self) -> None:
        """`kill -9`, at whatever moment."""
        self.child.kill()
        self.child.wait(30)
        self._gone()

    def stop(self) -> None:
        """SIGTERM; the end must be a good one."""
        self.child.send_signal(signal.SIGTERM)
        status = self.child.wait(60)
        self._gone()
        must(status == 0, f"a stop ended with {status}: {self._tail()}")
        must(not (self.state / "relay.json").exists(), "relay.json is still there after a stop")

    def end(self) -> None:
        """Leave nothing running."""
        if self.child is not None:
            self.kill()

    def _gone(self) -> None:
        self.child.stdout.close()
        self.child = None
        if self.http is not None:
            self.http.close()
            self.http = None
        if self._listener is not None:
            self._listener.join(20)
            self._listener = None

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    # The app

    def want(self, prompt: str) -> Wanted:
        """Note a new wish, and ask for it."""
        wish = Wanted(prompt=prompt, key=f"key of {prompt}")
        self.wanted.append(wish)
        self.ask(wish)
        return wish

    def ask(self, wish: Wanted) -> None:
        """Ask for a clip, as often as it takes; a broken answer tells nothing."""
        try:
            answer = self.http.post(
                "/generate", json=self.body(wish), headers={"Idempotency-Key": wish.key, "Connection": "close"}
            )
        except BROKEN:
            return
        must(answer.status_code in (200, 202), f"a submit was answered {answer.status_code}: {answer.text}")
        task = answer.json()
        must(
            wish.told in (None, task["taskId"]), f"{wish.prompt} was told to be {wish.told}, now it is {task['taskId']}"
        )
        wish.task, wish.told = task, task["taskId"]

    @staticmethod
    def body(wish: Wanted) -> dict[str, Any]:
        """What the app sends."""
        return {"prompt": wish.prompt, "duration": 4, "metadata": {"of": wish.prompt}}

    def task(self, task_id: str) -> dict[str, Any]:
        """The task as the relay tells it."""
        answer = self.http.get(f"/task/{task_id}")
        must(answer.status_code == 200, f"the task {task_id} is gone: {answer.status_code}")
        return answer.json()

    def tasks(self) -> list[dict[str, Any]]:
        """Every task, oldest first."""
        return self.http.get("/tasks", params={"limit": 100}).json()["tasks"][::-1]

    def until(self, wish: Wanted, *states: str, seconds: float = 20) -> None:
        """Wait for a state, or for the relay's death."""
        deadline = time.monotonic() + seconds
        while wish.told is not None and self.alive():
            try:
                if self.task(wish.told)["state"] in states:
                    return
            except BROKEN:
                return
            must(time.monotonic() < deadline, f"{wish.prompt} never came to {states}")
            time.sleep(0.02)

    def alive(self) -> bool:
        """Whether the relay still lives."""
        return self.child is not None and self.child.poll() is None

    def listen(self) -> None:
        """Hear every event from now on, until the relay dies; returns once the stream is open."""
        heard = threading.Event()
        client = httpx2.Client(
            base_url=self.http.base_url,
            headers=self.http.headers,
            trust_env=False,
            verify=False,
            timeout=httpx2.Timeout(60),
        )
        self._listener = threading.Thread(target=self._hear, args=(client, heard), daemon=True)
        self._listener.start()
        must(heard.wait(20), "the event stream never opened")

    def _hear(self, client: httpx2.Client, heard: threading.Event) -> None:
        number: int | None = None
        with client:
            try:
                with client.stream("GET", "/events") as answer:
                    heard.set()
                    for line in answer.iter_lines():
                        if line.startswith("id:"):
                            number = int(line[3:])
                        elif line.startswith("data:") and number is not None:
                            task = json.loads(line[5:])
                            self.events.append((number, task["taskId"], task["state"]))
                            number = None
            except BROKEN:
                return


@contextmanager
def world(folder: Path, *, provider: dict[str, Any] | None = None, **settings: Any) -> Iterator[World]:
    """
    A world with its provider running and its configuration written; nothing of it is left running.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = {"run_seconds": 0.4, "window": settings.get("window", 2)} | (provider or {})
    with Provider(**options) as running:
        made = World(folder=folder, provider=running, **settings)
        made.configure()
        try:
            yield made
        finally:
            made.end()
