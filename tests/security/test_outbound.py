"""
A relay calls the servers its configuration names, and nobody else, whatever a request, a reply or the environment says.
"""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

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
    return httpx2.get(f"http://127.0.0.1:{port}/_ledger", trust_env=False).json()


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
            time.sleep(0.5)
            opened = life.http.get("/stats").json()["connectionsOpened"] - before
        assert opened <= len({request["path"] for request in ledger(port)["requests"]}) + len(URLS)
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
