"""
A relay calls the servers its configuration names, and nobody else, whatever a request, a reply or the environment says.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image

from vidrelay.assemble import user_agent

from .bombs import bombs
from .dialling import recorder
from .lives import Life, pretend_provider

pytestmark = pytest.mark.process


@pytest.fixture
def heard() -> list[bytes]:
    """
    What a listener that nobody should call has heard.
    """
    return []


@pytest.fixture
def elsewhere(heard: list[bytes]) -> Iterator[int]:
    """
    That listener's port.
    """
    with recorder(socket.AF_INET, "127.0.0.1", 0, heard) as port:
        yield port


def account(name: str, port: int, more: str = "") -> str:
    """
    An account at that port of this machine.
    """
    return f'[accounts.{name}]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n{more}\n'


def ledger(port: int) -> dict[str, Any]:
    """
    What the pretend provider saw.
    """
    return httpx2.get(f"http://127.0.0.1:{port}/_ledger", trust_env=False, verify=False).json()


def test_no_variable_and_no_file_that_lies_about_leads_a_call_elsewhere(
    tmp_path: Path, heard: list[bytes], elsewhere: int
) -> None:
    """
    Proxies, base addresses, a .netrc and a .env in the working directory are not heeded.
    """
    there = f"http://127.0.0.1:{elsewhere}"
    environ = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), there)
    environ |= dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE", "VIDRELAY_BASE_URL", "BASE_URL"), f"{there}/v1")
    environ |= {"HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc"), "NO_PROXY": "", "VIDRELAY_HOST": "0.0.0.0"}
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login evil password canary-netrc\n")
    (tmp_path / ".netrc").chmod(0o600)
    work = tmp_path / "work"
    work.mkdir()
    (work / ".env").write_text(f"OPENAI_BASE_URL={there}/v1\n")
    with pretend_provider(tmp_path, "--run-seconds", "0.1", "--key", "sk-right") as port:
        config = account("main", port, 'key_env = "MY_KEY"')
        with Life(work, config, environ={**environ, "MY_KEY": "sk-right"}) as life:
            task = life.http.post("/generate", json={"prompt": "a fox", "account": "main"}).json()
            life.until(task["taskId"], "done")
        assert {request["status"] for request in ledger(port)["requests"]} == {200}
    assert heard == []


URLS = [
    "http://127.0.0.1:ELSEWHERE/a.png",
    "http://localhost:ELSEWHERE/a.png",
    "http://[::ffff:127.0.0.1]:ELSEWHERE/a.png",
    "http://0.0.0.0:ELSEWHERE/a.png",
    "http://2130706433:ELSEWHERE/a.png",
    "http://127.0.0.1:OWN/stats",
    "http://169.254.169.254/latest/meta-data/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "file:///etc/passwd",
    "data:image/png;base64,AAAA",
    "gopher://127.0.0.1:ELSEWHERE/_x",
    "//127.0.0.1:ELSEWHERE/a.png",
]


def test_a_references_address_is_never_fetched(tmp_path: Path, heard: list[bytes], elsewhere: int) -> None:
    """
    It is passed on as text, or refused; loopback, metadata services and files are not touched.
    """
    with pretend_provider(tmp_path, "--run-seconds", "0.1") as port:
        with Life(tmp_path, account("main", port, 'dialect = "sglang"')) as life:
            before = life.http.get("/stats").json()["connectionsOpened"]
            answers = []
            for place in URLS:
                url = place.replace("ELSEWHERE", str(elsewhere)).replace("OWN", str(life.port))
                for name in ("main", "preview"):
                    body = {"prompt": url, "account": name, "references": [{"url": url}]}
                    answers.append(life.http.post("/generate", json=body))
            assert {answer.status_code for answer in answers} <= {202, 422}
            for _ in range(200):
                if ledger(port)["requests"]:
                    break
                time.sleep(0.1)
            time.sleep(0.5)
            opened = life.http.get("/stats").json()["connectionsOpened"] - before
        assert 0 < opened <= len(ledger(port)["requests"])
    assert heard == []


@pytest.mark.parametrize("place", ["create", "poll", "content"])
def test_a_reply_that_points_elsewhere_is_not_followed(
    tmp_path: Path, heard: list[bytes], elsewhere: int, place: str
) -> None:
    """
    A redirect of any call, to another port of this machine, brings nobody there.
    """
    fault = f"{place}-redirect=http://127.0.0.1:{elsewhere}/v1/videos"
    environ = {"MY_KEY": "sk-canary"}
    with pretend_provider(tmp_path, "--run-seconds", "0.1", "--fault", fault) as port:
        with Life(tmp_path, account("main", port, 'key_env = "MY_KEY"'), environ=environ) as life:
            life.http.post("/generate", json={"prompt": "a fox", "account": "main"})
            for _ in range(200):
                if not ledger(port)["armed"]:
                    break
                time.sleep(0.1)
            time.sleep(0.5)
        assert [request["fault"] for request in ledger(port)["requests"]].count(fault) == 1
    assert heard == []


class Misleading(BaseHTTPRequestHandler):
    """
    A provider whose replies name other places to ask, to stop and to fetch.
    """

    elsewhere, number = "", 0
    asked: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"id": f"0f0f0f0f-0000-4000-8000-{self.number:012}", "status": "queued"})

    def do_GET(self) -> None:
        state = "queued" if self.asked.count("GET") < 2 else "completed"
        self.answer({"id": self.path.split("/")[-1], "status": state, "url": f"{self.elsewhere}/clip.mp4"})

    def answer(self, job: dict[str, str]) -> None:
        self.asked.append(self.command)
        places = ("status_url", "response_url", "cancel_url", "poll_url", "urls.get", "next", "location")
        data = json.dumps({**dict.fromkeys(places, f"{self.elsewhere}/x"), **job}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Location", f"{self.elsewhere}/x")
        self.send_header("Link", f'<{self.elsewhere}/x>; rel="next"')
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


ELSEWHERE = [
    *("http://127.0.0.1:ELSEWHERE", "http://localhost:ELSEWHERE", "http://[::ffff:127.0.0.1]:ELSEWHERE"),
    *("http://127.0.0.1:OWN", "http://evil.example", "https://169.254.169.254"),
]


def test_the_places_that_a_reply_names_are_not_gone_to(tmp_path: Path, heard: list[bytes], elsewhere: int) -> None:
    """
    Where to ask is built here; where to fetch is held back unless the account's list has it, and the task says so.
    """
    kind = type("Provider", (Misleading,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            with Life(tmp_path, account("main", server.server_address[1], "window = 9")) as life:
                for place in ELSEWHERE:
                    kind.asked.clear()
                    kind.number += 1
                    kind.elsewhere = place.replace("ELSEWHERE", str(elsewhere)).replace("OWN", str(life.port))
                    task = life.http.post("/generate", json={"prompt": place, "account": "main"}).json()
                    told = life.until_told(task["taskId"])
                    assert (told["state"], told["error"]["code"]) == ("downloading", "outbound_refused"), place
                    assert kind.asked[0] == "POST"
        finally:
            server.shutdown()
            thread.join()
    assert heard == []


def test_a_path_that_must_not_be_read_is_422_and_nothing_is_sent(tmp_path: Path) -> None:
    """
    Links, directories, pipes, devices, text, bombs and the relay's own files; a picture of the user's is taken.
    """
    places = {name: tmp_path / f"{name}.png" for name in ("true", "link", "folder", "pipe", "text", "bomb", "hard")}
    Image.new("RGB", (64, 64), "red").save(places["true"])
    places["link"].symlink_to(places["true"])
    places["folder"].mkdir()
    os.mkfifo(places["pipe"])
    places["text"].write_text("no picture at all")
    places["bomb"].write_bytes(bombs()["claims 900 megapixels"])
    with pretend_provider(tmp_path, "--run-seconds", "0.1") as port, Life(tmp_path, account("main", port)) as life:
        os.link(life.state / "relay.json", places["hard"])
        own = [str(life.state / name) for name in ("relay.json", "relay.db", "logs/relay.log")]
        devices = [
            "/dev/null",
            "/dev/zero",
            "/dev/stdin",
            "/dev/fd/0",
            "/dev/ptmx",
            "/proc/self/environ",
            "/proc/1/mem",
        ]
        wrong = [str(place) for name, place in places.items() if name != "true"]
        for path in (*wrong, *own, *devices, "a.png", "~/a.png", "file:///etc/passwd", f"{tmp_path}/none.png"):
            body = {"prompt": path, "account": "main", "references": [{"path": path}]}
            answer = life.http.post("/generate", json=body)
            assert (answer.status_code, "references" in answer.json()["field"]) == (422, True), path
        assert ledger(port)["requests"] == []
        assert not list((life.state / "assets").glob("*.png"))
        body = {"prompt": "a fox", "account": "main", "references": [{"path": str(places["true"])}]}
        life.until(life.http.post("/generate", json=body).json()["taskId"], "done")


def test_every_kind_of_call_says_truthfully_who_makes_it(tmp_path: Path) -> None:
    """
    Create, poll, list, delete and download carry one name and version, the one that is installed.
    """
    with pretend_provider(tmp_path, "--run-seconds", "0.5", "--dialect", "vllm-omni") as port:

        def control(changes: dict[str, object]) -> None:
            httpx2.post(
                f"http://127.0.0.1:{port}/_control", json=changes, trust_env=False, verify=False
            ).raise_for_status()

        with Life(tmp_path, account("main", port)) as life:
            control({"faults": ["create-drop-after"]})
            lost = life.http.post("/generate", json={"prompt": "a fox", "account": "main"}).json()
            life.until(lost["taskId"], "done")
            control({"run_seconds": 600})
            stopped = life.http.post("/generate", json={"prompt": "a boat", "account": "main"}).json()
            life.until(stopped["taskId"], "running")
            life.http.post(f"/task/{stopped['taskId']}/cancel")
            life.until(stopped["taskId"], "cancelled")
        seen = ledger(port)
    assert {request["place"] for request in seen["requests"]} == {"create", "poll", "list", "content", "delete"}
    assert list(seen["userAgents"]) == [user_agent()]


def test_a_429_on_one_key_brings_no_call_with_another(tmp_path: Path) -> None:
    """
    The account waits as long as it was told, with its task; the other account of that provider is not touched.
    """
    with pretend_provider(tmp_path, "--run-seconds", "0.1", "--fault", "create-rate=2:1") as port:
        config = account("one", port, 'key_env = "ONE_KEY"') + account("two", port, 'key_env = "TWO_KEY"')
        with Life(tmp_path, config, environ={"ONE_KEY": "sk-one", "TWO_KEY": "sk-two"}) as life:
            task = life.http.post("/generate", json={"prompt": "a fox", "account": "one"}).json()
            life.until(task["taskId"], "done")
        seen = ledger(port)
    creates = [request for request in seen["requests"] if request["place"] == "create"]
    assert [request["status"] for request in creates] == [429, 200]
    assert creates[1]["at"] - creates[0]["at"] >= 2
    assert len({request["key"] for request in seen["requests"]}) == 1
    assert len(seen["userAgents"]) == 1
