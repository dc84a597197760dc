"""
Clients reach the relay at 127.0.0.1 and nobody else, and what they say on the way is of no use to anybody.
"""

import base64
import contextlib
import json
import resource
import signal
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from vidrelay.client.beacon import write_beacon
from vidrelay.client.calls import open_client
from vidrelay.core.errors import RelayUnavailable

from .dialling import Mirror, hint, is_free, probe, recorder, unused_port
from .lives import Life

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="about Linux's ports")]


async def test_a_probe_that_meets_itself_finds_nobody_and_leaves_the_port_free() -> None:
    """
    A share of the 20,000 that `tests/security/proof.py` makes.
    """
    port = unused_port()
    found = await probe(port, 3000)
    assert set(found) <= {"nobody", "itself"}, found
    assert is_free(port)
    assert await probe(port, 300, network=Mirror()) == {"itself": 300}
    assert is_free(port)


async def test_listeners_on_other_addresses_of_this_machine_hear_nothing(tmp_path: Path) -> None:
    """
    Not on the same port of `[::1]`, which `localhost` may mean, nor of 127.0.0.2.
    """
    heard: list[bytes] = []
    with Life(tmp_path) as life, contextlib.ExitStack() as stack:
        stack.enter_context(recorder(socket.AF_INET, "127.0.0.2", life.port, heard))
        if socket.has_ipv6:
            with contextlib.suppress(OSError):
                stack.enter_context(recorder(socket.AF_INET6, "::1", life.port, heard))
        async with open_client(life.state, start=False) as client:
            await client.stats()
        assert life.run("tasks").returncode == 0
        assert life.run("doctor").returncode == 0
    assert heard == []


PLACES = ("HOST", "BIND", "ADDRESS", "LISTEN", "INTERFACE")


def test_the_relay_listens_at_one_address_alone(tmp_path: Path) -> None:
    """
    One TCP listener, 127.0.0.1, whatever a variable says, and no other socket that anybody could send to.
    """
    names = [f"{owner}{place}" for owner in ("", "VIDRELAY_", "UVICORN_", "SERVER_") for place in PLACES]
    with Life(tmp_path, environ=dict.fromkeys(names, "0.0.0.0")) as life:
        own = {path.readlink().name for path in Path(f"/proc/{life.pid}/fd").iterdir() if path.is_symlink()}
        listening = []
        for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if f"socket:[{fields[9]}]" in own and fields[3] in ("0A", "07"):
                    listening.append((table, fields[1]))
    assert listening == [("tcp", f"0100007F:{life.port:04X}")]


async def test_what_a_stranger_on_the_old_port_records_proves_nothing_to_the_next_relay(tmp_path: Path) -> None:
    """
    Even where token and port are kept, an overheard proof says nothing but what its nonce asks.
    """
    config = '[relay]\ntoken = "keep"\n'
    with Life(tmp_path, config) as life:
        port, token, instance = life.port, life.token, life.instance
    heard: list[bytes] = []
    with recorder(socket.AF_INET, "127.0.0.1", port, heard):
        write_beacon(tmp_path / "state", replace(hint(port), token=token, instance=instance))
        with pytest.raises(RelayUnavailable):
            async with open_client(tmp_path / "state", start=False):
                pass
    said = b"".join(heard)
    assert said.startswith(b"POST /proof ")
    assert token.encode() not in said
    proof = json.loads(said.partition(b"\r\n\r\n")[2])
    with Life(tmp_path, config) as life:
        assert (life.port, life.token) == (port, token)
        for headers in ({"Authorization": f"Bearer {proof['mac']}"}, {"X-Local-Token": proof["nonce"]}):
            assert life.http.get("/health", headers={"X-Local-Token": proof["mac"], **headers}).status_code == 403
        changed = {**proof, "nonce": "0" * 64}
        assert life.http.post("/proof", json=changed).status_code == 403
        answer = life.http.post("/proof", json=proof).json()
        assert answer["mac"] != proof["mac"]


def test_the_token_is_new_at_each_start(tmp_path: Path) -> None:
    """
    Unless the user fixes one, so an old one is of no use.
    """
    tokens = []
    for _ in range(2):
        with Life(tmp_path) as life:
            tokens.append(life.token)
            assert all(
                life.http.get("/health", headers={"X-Local-Token": old}).status_code == 403 for old in tokens[:-1]
            )
    assert len(set(tokens)) == 2
    assert [len(base64.urlsafe_b64decode(token.removeprefix("vrl_") + "=")) for token in tokens] == [32, 32]


def test_a_restart_ends_whatever_the_old_token_opened(tmp_path: Path) -> None:
    """
    It is how the token is changed: within a second stream, login, code and token are of no use any more.
    """
    with Life(tmp_path) as life:
        used, unused = (life.http.post("/login/code").json()["code"] for _ in range(2))
        origin = {"Origin": f"http://127.0.0.1:{life.port}"}
        entered = httpx2.post(f"http://127.0.0.1:{life.port}/login", json={"code": used}, headers=origin)
        login = {"Cookie": entered.headers["set-cookie"].partition(";")[0], "X-Vidrelay-Page": entered.json()["key"]}
        assert life.look("/health", **login) == 200
        old = {"X-Local-Token": life.token}
        with life.http.stream("GET", "/events") as stream:
            life.child.send_signal(signal.SIGTERM)
            started = time.monotonic()
            for _ in stream.iter_bytes():
                pass
            assert time.monotonic() - started < 1
    with Life(tmp_path, f"[relay]\nport = {life.port}\n") as life:
        assert [life.look("/health", **headers) for headers in (login, old, {})] == [403] * 3
        assert life.look(f"/login?code={unused}") == 403
        assert life.http.get("/health").status_code == 200


def test_a_login_ends_with_its_process_though_the_token_is_kept(tmp_path: Path) -> None:
    """
    It lives in that process's memory, and the cookie's name has the instance in it.
    """
    with Life(tmp_path, '[relay]\ntoken = "keep"\n') as life:
        used, unused = (life.http.post("/login/code").json()["code"] for _ in range(2))
        entered = httpx2.post(f"http://127.0.0.1:{life.port}/login", json={"code": used})
        cookie, token = entered.headers["set-cookie"].partition(";")[0], life.token
        assert life.look("/health", Cookie=cookie) == 200
    with Life(tmp_path, '[relay]\ntoken = "keep"\n') as life:
        assert life.token == token
        assert life.look("/health", Cookie=cookie) == 403
        assert life.look(f"/login?code={unused}") == 403


def test_the_accept_loop_survives_a_want_of_descriptors(tmp_path: Path) -> None:
    """
    With no descriptor left for one more connection, the relay goes on once there are some again.
    """
    with Life(tmp_path) as life:
        held = len(list(Path(f"/proc/{life.pid}/fd").iterdir()))
        resource.prlimit(life.pid, resource.RLIMIT_NOFILE, (held + 20, held + 20))
        sockets = [socket.create_connection(("127.0.0.1", life.port)) for _ in range(60)]
        time.sleep(0.3)
        for one in sockets:
            one.close()
        answers = 0
        for _ in range(100):
            # Those that came while there was none are closed one after another.
            with contextlib.suppress(httpx2.TransportError):
                answers += life.http.get("/health").status_code == 200
            if answers == 2:
                break
            time.sleep(0.1)
        assert answers == 2
