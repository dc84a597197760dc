"""
Keys, the token and prompts stay where they belong: a relay's whole life with marked ones, and then a search of
everything that it has written, said or handed on.
"""

import base64
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest
from PIL import Image

from .lives import Life, children, pretend_provider

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("canaries")]

KEYS = {name: f"sk-canary-{name}-{'0f' * 12}" for name in ("main", "echo", "denied")}
PROMPT = "canary prompt of a red fox"


class Parrot(BaseHTTPRequestHandler):
    """
    A provider that repeats the key it is given, wherever an answer has room for words.
    """

    def do_POST(self) -> None:
        key = self.headers["Authorization"].removeprefix("Bearer ")
        prompt = self.rfile.read(int(self.headers["Content-Length"])).decode()
        error = {"error": {"message": f"Incorrect API key provided: {key}.", "code": key, "type": key}}
        if "[denied]" in prompt:
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
        if self.path.endswith("/videos") or "?" in self.path:
            self.answer(200, {"data": [], "key": key})
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
            time.sleep(0.005)


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
            for name in ("doctor", "stats", "tasks", "accounts"):
                done = relay.run(name)
                found[f"command {name}"] = (done.stdout + done.stderr).encode()
        found["what it said"] = "".join(relay.said).encode() + relay.output.read_bytes()
        for path in relay.state.rglob("*"):
            if path.is_file():
                found[f"file {path.relative_to(relay.state)}"] = path.read_bytes()
        found["arguments"], found["environments"] = b"\n".join(watch.arguments), b"\n".join(watch.handed_on)
    return found


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
            for word in ("[refused]", "[list]", "[page]", "[moved]", "[ok]")
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
    endings = ["done", "done", None, "failed", "failed", "uncertain", "uncertain", "failed"]
    for task, ending in zip(tasks, endings, strict=True):
        if ending is not None:
            relay.until(task, ending)
    with contextlib.suppress(AssertionError):
        wait_until(lambda: "auth" in relay.http.get("/accounts").text)
    relay.http.post(f"/task/{tasks[2]}/cancel")
    for path in (
        "/tasks",
        "/accounts",
        "/stats",
        "/health",
        "/metrics",
        "/openapi.json",
        "/cache",
        "/nowhere",
        "/login",
    ):
        found[f"GET {path}"] = relay.http.get(path).content
    for task in tasks:
        found[f"GET /task/{task}"] = relay.http.get(f"/task/{task}").content
    with relay.http.stream("GET", "/events", headers={"Last-Event-ID": "0"}) as events:
        found["GET /events"] = next(events.iter_bytes())
    for path in ("/generate", "/task/x/resolve", "/proof", "/login", "/login/code"):
        found[f"POST {path}"] = relay.http.post(path, json={"nonsense": 1}).content


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
    assert "file relay.db" in life
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
    `relay.json` held it while the relay ran, and is gone.
    """
    assert places({name: data for name, data in life.items() if name != "token"}, life["token"].decode()) == []


def test_a_prompt_is_in_the_tasks_alone(life: dict[str, bytes]) -> None:
    """
    No log, no argument, no environment, no counter, no message about something else.
    """
    allowed = ("file relay.db", "GET /task", "GET /events", "POST /generate ", "command tasks")
    assert [name for name in places(life, PROMPT) if not name.startswith(allowed)] == []
