"""
The https listener of a real relay: whom it proves itself to, whom it lets in, and what it is like beside the plain one.
"""

import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vidrelay.client.beacon import read_beacon
from vidrelay.client.trust import trusting

from .lives import Life

pytestmark = pytest.mark.process

CONFIG = '[accounts.clips]\nprovider = "fal"\nbase_url = "http://127.0.0.1:9"\n[relay]\ntoken = "keep"\n'


def tls_port(life: Life) -> int:
    beacon = read_beacon(life.state)
    assert beacon is not None
    assert beacon.tls_port is not None
    return beacon.tls_port


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with Life(tmp_path_factory.mktemp("tls"), CONFIG) as life:
        yield life


@pytest.fixture
def trust(life: Life) -> ssl.SSLContext:
    """
    A client that trusts what a child of `vidrelay run` does, as strictly as the newest Python.
    """
    context = ssl.create_default_context(cafile=trusting(life.state, {}))
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def ask(life: Life, trust: ssl.SSLContext, path: str = "/health", method: str = "GET", **headers: str):
    """
    One call over https; by default with the token and the right host.
    """
    connection = http.client.HTTPSConnection("127.0.0.1", tls_port(life), context=trust, timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{tls_port(life)}", "X_Local_Token": life.token, **headers}.items():
            if value:
                connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_it_is_trusted_by_the_file_that_children_are_given(life: Life, trust: ssl.SSLContext) -> None:
    """
    And serves the same application.
    """
    assert ask(life, trust)[0] == 200
    assert json.loads(ask(life, trust, "/accounts")[1])["accounts"][0]["name"] == "clips"


def test_it_listens_at_127_0_0_1_alone(life: Life) -> None:
    """
    At that port nobody listens on this machine's other addresses.
    """
    for family, address in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as plain, pytest.raises(OSError):
            plain.connect((address, tls_port(life)))


def test_nothing_else_trusts_it(life: Life) -> None:
    """
    Neither what the system trusts nor what certifi does.
    """
    import certifi

    for context in (ssl.create_default_context(), ssl.create_default_context(cafile=certifi.where())):
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(life, context)


def test_it_is_of_no_other_name(life: Life, trust: ssl.SSLContext) -> None:
    """
    Who trusts it for this machine is not shown it for another name.
    """
    for name, right in {"127.0.0.1": True, "localhost": True, "127.0.0.2": False, "queue.fal.run": False}.items():
        with socket.create_connection(("127.0.0.1", tls_port(life)), timeout=20) as plain:
            try:
                with trust.wrap_socket(plain, server_hostname=name):
                    found = True
            except ssl.SSLCertVerificationError:
                found = False
        assert found == right, name


def test_a_plain_call_gets_no_answer_there(life: Life) -> None:
    """
    The connection is closed, and the token in it is told to nobody.
    """
    with socket.create_connection(("127.0.0.1", tls_port(life)), timeout=20) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Local-Token: " + life.token.encode() + b"\r\n\r\n")
        try:
            said = plain.recv(4096)
        except ConnectionError:
            said = b""
    assert b"HTTP" not in said


def test_old_protocols_are_refused(life: Life, trust: ssl.SSLContext) -> None:
    """
    A client that knows nothing newer than TLS 1.1 is not served; one that knows 1.2 is.
    """
    trust.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        trust.minimum_version = trust.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(life, trust)
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    assert ask(life, trust)[0] == 200


def test_another_host_is_refused_even_with_the_token(life: Life, trust: ssl.SSLContext) -> None:
    """
    Only the three names at this very port, and those at no other one.
    """
    port, plain = tls_port(life), life.port
    _, forbidden = ask(life, trust, Host="evil.example")
    for host in (
        *("", "127.0.0.1", f"127.0.0.1:{plain}", f"localhost:{plain}", f"127.0.0.2:{port}", f"0.0.0.0:{port}"),
        *(
            f"localhost.:{port}",
            f"queue.fal.run:{port}",
            "queue.fal.run",
            f"127.0.0.1:0{port}",
            f"evil@127.0.0.1:{port}",
        ),
    ):
        assert ask(life, trust, Host=host) == (403, forbidden), host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert ask(life, trust, Host=host)[0] == 200
        assert life.look("/health", host=host, x_local_token=life.token) == 403


def test_nobody_without_the_token_is_let_in(life: Life, trust: ssl.SSLContext) -> None:
    """
    No page, no login, and none of the calls that the plain port takes without a key.
    """
    port = tls_port(life)
    _, forbidden = ask(life, trust, Host="evil.example")
    code = life.http.post("/login/code").json()["code"]
    for path, method, headers in (
        ("/health", "GET", {"X_Local_Token": ""}),
        ("/health", "GET", {"X_Local_Token": "vrl_" + "a" * 43}),
        ("/nothing", "GET", {"X_Local_Token": ""}),
        ("/clips/x", "POST", {"X_Local_Token": "", "Authorization": "Key wrong"}),
        ("/proof", "POST", {"X_Local_Token": ""}),
        ("/login", "POST", {"X_Local_Token": "", "Origin": f"https://127.0.0.1:{port}"}),
        (f"/login?code={code}", "GET", {"X_Local_Token": ""}),
        ("/health", "GET", {"Origin": f"https://127.0.0.1:{port}"}),
        ("/health", "GET", {"Origin": f"http://127.0.0.1:{life.port}"}),
        ("/health", "GET", {"Sec_Fetch_Site": "cross-site"}),
    ):
        assert ask(life, trust, path, method, **headers) == (403, forbidden), (path, headers)


def test_every_way_that_sdks_send_a_key_is_let_in(life: Life, trust: ssl.SSLContext) -> None:
    """
    fal's among them.
    """
    for given in (f"Key {life.token}", f"Bearer {life.token}"):
        assert ask(life, trust, X_Local_Token="", Authorization=given)[0] == 200


@pytest.mark.parametrize(("token", "status"), [(True, b"405"), (False, b"403")])
def test_a_websocket_is_judged_there_like_a_call(life: Life, trust: ssl.SSLContext, token: bool, status: bytes) -> None:
    """
    The door that is there has none, and a stranger is not told that.
    """
    port = tls_port(life)
    lines = [
        "GET /fal/ws HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        *([f"X-Local-Token: {life.token}"] if token else []),
        *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        wrapped.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        assert wrapped.recv(65536).split()[1] == status


def test_who_shakes_no_hands_is_cut_and_keeps_nobody_out(life: Life, trust: ssl.SSLContext) -> None:
    """
    Many connections that never begin TLS hold up no call, and are closed after five seconds.
    """
    silent = [socket.create_connection(("127.0.0.1", tls_port(life)), timeout=20) for _ in range(200)]
    try:
        started = time.monotonic()
        assert ask(life, trust)[0] == 200
        assert life.look("/health", x_local_token=life.token) == 200
        assert time.monotonic() - started < 3
        assert {one.recv(1) for one in silent} == {b""}
        assert time.monotonic() - started < 10
    finally:
        for one in silent:
            one.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="The system does not tell who has how many open.")  # noqa: PTH112
def test_who_shakes_no_hands_takes_few_descriptors(life: Life, trust: ssl.SSLContext) -> None:
    """
    However many they are: a relay may have a thousand, and without any left it answers nobody and saves nothing.
    """
    silent = [socket.create_connection(("127.0.0.1", tls_port(life)), timeout=20) for _ in range(400)]
    try:
        assert ask(life, trust)[0] == 200
        assert len(os.listdir(f"/proc/{life.child.pid}/fd")) < 200  # noqa: PTH208
    finally:
        for one in silent:
            one.close()
    assert ask(life, trust)[0] == 200


def test_the_relay_stops_at_once_with_a_connection_open_there(tmp_path: Path) -> None:
    """
    A client that does not answer the farewell is not waited for.
    """
    with Life(tmp_path, CONFIG) as life:
        trust = ssl.create_default_context(cafile=trusting(life.state, {}))
        with (
            socket.create_connection(("127.0.0.1", tls_port(life)), timeout=20) as plain,
            trust.wrap_socket(plain, server_hostname="127.0.0.1") as held,
        ):
            held.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % tls_port(life))
            assert b"403" in held.recv(4096)
            started = time.monotonic()
            assert life.http.post("/shutdown").status_code == 202
            assert life.child.wait(20) == 0
            assert time.monotonic() - started < 8


def test_the_port_is_kept_with_the_token_and_left_to_another_program(tmp_path: Path) -> None:
    """
    The same after a restart; where somebody else has it by then, another one, for the certificate keeps callers safe.
    """
    with Life(tmp_path, CONFIG) as life:
        first = tls_port(life)
        assert first != life.port
        assert json.loads((life.state / "keep.json").read_text())["tlsPort"] == first
    with Life(tmp_path, CONFIG) as life:
        assert tls_port(life) == first
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", first))
        other.listen()
        with Life(tmp_path, CONFIG) as life:
            assert tls_port(life) != first


def test_a_relay_that_needs_none_has_none(tmp_path: Path) -> None:
    """
    No port, no certificate, no word of it.
    """
    with Life(tmp_path, '[accounts.a]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n') as life:
        assert "tlsPort" not in json.loads((life.state / "relay.json").read_text())
        assert not (life.state / "tls.pem").exists()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_nobody_else_can_read_the_key(life: Life) -> None:
    """
    Key, bundle and their folder are the user's alone.
    """
    trusting(life.state, {})
    for name, mode in {"tls.pem": 0o600, "trust": 0o700, "trust/roots.pem": 0o600}.items():
        assert (life.state / name).stat().st_mode & 0o777 == mode
