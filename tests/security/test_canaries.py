"""
Keys, the token and prompts stay where they belong: a relay's whole life with marked ones, and then a search of
everything that it has written, said or handed on.
"""

import base64
import contextlib
import json
import resource
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest
from PIL import Image

from vidrelay.store.backup import back_up

from .lives import Life, children, pretend_provider

pytestmark = pytest.mark.process

KEYS = {name: f"sk-canary-{name}-{'0f' * 12}" for name in ("main", "echo", "denied")}
PROMPT = "canary prompt of a red fox"
SIGNATURE = "canary-signature-of-an-address"
UUID = "0f0f0f0f-0000-4000-8000-0f0f0f0f0f0f"
LATE = threading.Event()
"""When the slow create call is answered."""


class Parrot(BaseHTTPRequestHandler):
    """
    A provider that repeats the key it is given, wherever an answer has room for words.
    """

    def do_POST(self) -> None:
        key = self.headers["Authorization"].removeprefix("Bearer ")
        prompt = self.rfile.read(int(self.headers["Content-Length"])).decode()
        error = {"error": {"message": f"Incorrect API key provided: {key}.", "code": key, "type": key}}
        if "[late]" in prompt:
            LATE.wait(30)
            self.answer(200, {"id": "video_late", "status": "failed", **error})
        elif "[signed]" in prompt:
            self.answer(200, {"id": UUID, "status": "queued"})
        elif "[denied]" in prompt:
            self.answer(401, error)
        elif "[page]" in prompt:
            self.answer(500, f"<html>{key}</html>", {"X-Key": key, "Retry-After": key})
        elif "[moved]" in prompt:
            self.answer(307, "", {"Location": f"https://api.example.com/?key={key}"})
        elif "[refused]" in prompt:
            self.answer(400, error)
        elif "[list]" in prompt:
            self.answer(422, {"detail": [{"loc": ["body", key], "msg": key, "input": key}]})
        else:
            self.answer(200, {"id": f"video_{len(prompt)}", "status": "queued", "note": key})

    def do_GET(self) -> None:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if "clip.mp4" in self.path:
            self.answer(403, {"error": {"message": self.path}})
        elif self.path.endswith("/videos") or "?" in self.path:
            self.answer(200, {"data": [], "key": key})
        elif self.path.endswith(UUID):
            there = f"http://127.0.0.1:{self.server.server_address[1]}/v1/clip.mp4"
            self.answer(200, {"id": UUID, "status": "completed", "url": f"{there}?sig={SIGNATURE}"})
        else:
            failed = {"status": "failed", "error": {"message": f"no access for {key}", "code": key}}
            self.answer(200, {"id": self.path.split("/")[-1], **failed})

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(data)),
            "Content-Type": "application/json",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def parrot() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Watch:
    """
    What the system tells of a relay and of every process that it starts, gathered as long as it is watched.
    """

    def __init__(self, pid: int) -> None:
        self.arguments: set[bytes] = set()
        self.handed_on: set[bytes] = set()
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        own = Path(f"/proc/{self._pid}/cmdline").read_bytes()
        self.arguments.add(own)
        while not self._over.is_set():
            for pid in children(self._pid):
                with contextlib.suppress(OSError):
                    arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
                    # Between its fork and its exec a child is still the relay, memory, environment and all.
                    if arguments not in (own, b""):
                        self.arguments.add(arguments)
                        self.handed_on.add(arguments + Path(f"/proc/{pid}/environ").read_bytes())
            time.sleep(0.02)


def account(name: str, port: int, more: str) -> str:
    """
    An account at that port of this machine.
    """
    return f'[accounts.{name}]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n{more}\n'


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, bytes]]:
    """
    Everything that came out of a relay's life, by where it was found.
    """
    folder = tmp_path_factory.mktemp("canaries")
    (folder / "echo.key").write_text(KEYS["echo"] + "\n")
    (folder / "echo.key").chmod(0o600)
    found: dict[str, bytes] = {}
    with pretend_provider(folder, "--run-seconds", "0.3", "--key", KEYS["main"]) as good, parrot() as odd:
        accounts = (
            account("main", good, 'key_env = "CANARY_KEY"')
            + account("echo", odd, f'key_file = "{folder}/echo.key"\nwindow = 9')
            + account("denied", odd, 'key_env = "DENIED_KEY"')
        )
        environ = {"CANARY_KEY": KEYS["main"], "DENIED_KEY": KEYS["denied"]}
        with Life(folder, accounts, environ=environ) as relay, Watch(relay.pid) as watch:
            found["token"] = relay.token.encode()
            live(relay, found)
            for command in ("doctor", "stats", "tasks", "accounts", "cache ls", f"show {found['a task'].decode()}"):
                done = relay.run(*command.split())
                found[f"command {command}"] = (done.stdout + done.stderr).encode()
            found |= {f"live {name}": data for name, data in files(relay).items()}
            with full_disk(relay):
                found |= {f"full {name}": data for name, data in files(relay).items()}
        found["what it said"] = "".join(relay.said).encode() + relay.output.read_bytes()
        assert back_up(
            relay.state / "relay.db", datetime.now(UTC) + timedelta(days=1), every_seconds=0, has_room=lambda _: True
        )
        found |= files(relay)
        found["arguments"], found["environments"] = b"\n".join(watch.arguments), b"\n".join(watch.handed_on)
    return found


def files(relay: Life) -> dict[str, bytes]:
    """
    Everything that lies in its state directory now.
    """
    found = {}
    for path in relay.state.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                found[f"file {path.relative_to(relay.state)}"] = path.read_bytes()
    return found


@contextlib.contextmanager
def full_disk(relay: Life) -> Iterator[None]:
    """
    Let the answer to a create call come when no file can grow, so that it is written down in the emergency journal.
    """
    task = relay.http.post("/generate", json={"prompt": f"{PROMPT} [late]", "account": "echo"}).json()
    relay.until(task["taskId"], "submitting")
    resource.prlimit(relay.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    LATE.set()
    try:
        wait_until((relay.state / "emergency.jsonl").exists)
        yield
    finally:
        resource.prlimit(relay.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    relay.until(task["taskId"], "failed")


def live(relay: Life, found: dict[str, bytes]) -> None:
    """
    Every kind of ending, every kind of call.
    """
    Image.new("RGB", (1200, 900), "red").save(relay.folder / "a.png")
    asset = relay.http.post("/assets", content=(relay.folder / "a.png").read_bytes()).json()["asset"]
    drawn = {"account": "preview", "duration": 2, "references": [{"asset": asset}]}
    wanted = [
        {"account": "main"},
        drawn,
        {"account": "denied", "extra": {"note": "[denied]"}},
        *(
            {"account": "echo", "extra": {"note": word}}
            for word in ("[refused]", "[list]", "[page]", "[moved]", "[ok]", "[signed]")
        ),
    ]
    tasks = []
    for number, fields in enumerate(wanted):
        note = fields.get("extra", {}).get("note", "")
        body = {key: value for key, value in fields.items() if key != "extra"}
        answer = relay.http.post("/generate", json={"prompt": f"{PROMPT} {number} {note}", **body})
        assert answer.status_code == 202, answer.text
        tasks.append(answer.json()["taskId"])
        found[f"POST /generate {number}"] = answer.content
    endings = ["done", "done", None, "failed", "failed", "uncertain", "uncertain", "failed", None]
    for task, ending in zip(tasks, endings, strict=True):
        if ending is not None:
            relay.until(task, ending)
    # Its result is asked for again for minutes before it counts as lost.
    relay.until_told(tasks[-1])
    with contextlib.suppress(AssertionError):
        wait_until(lambda: "auth" in relay.http.get("/accounts").text)
    relay.http.post(f"/task/{tasks[2]}/cancel")
    for path in ("/events", f"/task/{tasks[-1]}/events"):
        with relay.http.stream("GET", path, headers={"Last-Event-ID": "0"}) as events:
            found[f"GET {path}"] = next(events.iter_bytes())
    found["a task"] = tasks[3].encode()
    ask_everything(relay, tasks, found)


def ask_everything(relay: Life, tasks: list[str], found: dict[str, bytes]) -> None:
    """
    Every call that the relay describes, of every task and account, with a body that it refuses where it takes one.
    """
    paths = relay.http.get("/openapi.json").json()["paths"]
    calls = [(method.upper(), path) for path, methods in paths.items() for method in methods if "events" not in path]
    for method, pattern in [*calls, ("GET", "/nowhere"), ("GET", "/login?code=" + "A" * 43)]:
        named = tasks if "{id}" in pattern else ("main", "echo", "denied") if "{name}" in pattern else ("",)
        for name in named:
            path = pattern.replace("{id}", name).replace("{name}", name)
            body = {"json": {"nonsense": 1}} if method == "POST" else {}
            answer = relay.http.request(method, path, **body)
            found[f"{method} {path}"] = repr(answer.headers.raw).encode() + answer.content


def wait_until(so) -> None:
    for _ in range(200):
        if so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def places(life: dict[str, bytes], secret: str) -> list[str]:
    """
    Where the secret was found, plain or in base64.
    """
    encoded = {base64.b64encode((" " * shift + secret).encode())[4:-4] for shift in range(3)}
    return [name for name, data in life.items() if secret.encode() in data or any(text in data for text in encoded)]


def test_the_life_was_a_whole_one(life: dict[str, bytes]) -> None:
    """
    What is searched is there: every place, each child, and the words in which the keys were repeated.
    """
    assert b"vidrelay.files.images" in life["arguments"]
    assert b"vidrelay.providers.preview.render" in life["arguments"]
    assert life["environments"].count(b"\0PATH=") >= 2
    assert {"file relay.db", "file relay.db.bak", "live file relay.db-wal", "live file relay.json"} <= set(life)
    assert b"[key]" in life["full file emergency.jsonl"]
    assert len([name for name in life if name.startswith(("GET ", "POST "))]) > 50
    assert b"step" in life["file logs/relay.log"] or b"relay.started" in life["file logs/relay.log"]
    told = b"".join(data for name, data in life.items() if name.startswith("GET /task/"))
    assert b"Incorrect API key provided: [key]" in told
    assert b"no access for [key]" in told
    assert b"auth" in life["GET /accounts"]


@pytest.mark.parametrize("name", KEYS)
def test_a_providers_key_is_nowhere(life: dict[str, bytes], name: str) -> None:
    """
    Neither on the disk, nor in an answer, nor on a command line, nor in what a child was given.
    """
    assert places(life, KEYS[name]) == []


def test_the_token_is_in_no_file_answer_or_argument(life: dict[str, bytes]) -> None:
    """
    But `relay.json`, which held it while the relay ran, and is gone.
    """
    assert sorted(places(life, life["token"].decode())) == ["full file relay.json", "live file relay.json", "token"]


def test_a_prompt_is_in_the_tasks_alone(life: dict[str, bytes]) -> None:
    """
    No log, no argument, no environment, no counter, no message about something else.
    """
    allowed = ("file relay.db", "GET /task", "GET /events", "POST /generate ", "command tasks", "command show")
    found = {name.removeprefix("live ").removeprefix("full ") for name in places(life, PROMPT)}
    assert [name for name in found if not name.startswith((*allowed, "POST /task/"))] == []


def test_the_query_of_a_results_address_is_in_the_database_alone(life: dict[str, bytes]) -> None:
    """
    Whoever has the address has the file, so it stands in no log, answer or message.
    """
    found = {name.removeprefix("live ").removeprefix("full ") for name in places(life, SIGNATURE)}
    assert {name for name in found if not name.startswith("file relay.db")} == set()
