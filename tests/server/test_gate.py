"""
Nobody gets past the gate: the same fixed 403 for everything, on every route and on none.
"""

import asyncio
import re

import pytest
from fake_relay import FakeRelay
from loopback import TOKEN, Served

from vidrelay.core.proof import client_proof, server_proof
from vidrelay.server.app import routes
from vidrelay.server.dispatch import Endpoint
from vidrelay.server.gate import Gate
from vidrelay.server.login import Logins
from vidrelay.testing.clock import FakeClock


def endpoints() -> tuple[Endpoint, ...]:
    """
    The relay's own route table: what is not in it is not served, so no route can be forgotten here.
    """
    return routes(
        FakeRelay.__new__(FakeRelay),
        token=lambda: TOKEN,
        logins=Logins(lambda: TOKEN, FakeClock(), cookie_name="c"),
        port=1,
        instance="i",
        version="1",
        clock=FakeClock(),
        shutdown=lambda: None,
        stop_streams=asyncio.Event(),
    )


def route_table() -> list[tuple[str, str]]:
    paths = [(endpoint.method, re.sub(r"\{.*?\}", "t1", endpoint.path)) for endpoint in endpoints()]
    return [*paths, ("GET", "/"), ("GET", "/nowhere"), ("DELETE", "/task/t1"), ("PUT", "/../x")]


ROUTES = route_table()
GUARDED = [(method, path) for method, path in ROUTES if path != "/proof"]


def hosts(port: int) -> list[bytes]:
    """
    Hosts that are not this relay's.
    """
    own = b"127.0.0.1"
    names = [
        *(
            b"127.1",
            b"127.0.1",
            b"127.0.0.2",
            b"127.0.0.01",
            b"0127.0.0.1",
            b"0x7f000001",
            b"0x7f.0.0.1",
            b"2130706433",
        ),
        *(b"017700000001", b"0177.0.0.1", b"0.0.0.0", b"0", b"00000000", b"127.0.0.1.", b"127.0.0.1..", b"localhost."),
        *(
            b"localhost..",
            b"LOCALHOST",
            b"LocalHost",
            b"localhost.localdomain",
            b"local",
            b"relay.local",
            b"a.localhost",
        ),
        *(
            b"localhost.evil.example",
            b"evil.example",
            b"evil-localhost",
            b"127.0.0.1.evil.example",
            b"127.0.0.1.nip.io",
        ),
        *(b"evil@127.0.0.1", b"evil:x@127.0.0.1", b"127.0.0.1@evil", b"127.0.0.1#evil", b"127.0.0.1/", b"127.0.0.1\\"),
        *(
            b"http://127.0.0.1",
            b"//127.0.0.1",
            b"127.0.0.1%00",
            b"127.0.0.1%2e",
            b"[127.0.0.1]",
            b"[::]",
            b"::1",
            b"[::1",
        ),
        *(
            b"::1]",
            b"[0:0:0:0:0:0:0:1]",
            b"[::ffff:127.0.0.1]",
            b"[::ffff:7f00:1]",
            b"[::1%lo]",
            b"[::1%25lo]",
            b"[::2]",
        ),
        *(
            b"[0000:0000:0000:0000:0000:0000:0000:0001]",
            b"ip6-localhost",
            b"ip6-loopback",
            b"broadcasthost",
            b"kubernetes",
        ),
        *(
            "１２７.0.0.1".encode(),
            "localhosﬅ".encode(),
            "ⅼocalhost".encode(),
            "127。0。0。1".encode(),
            b"xn--localhost",
        ),
        *(b"192.168.0.1", b"10.0.0.1", b"169.254.169.254", b"host.docker.internal", b"metadata.google.internal"),
        *(b"127.0.0.1,evil", b"evil,127.0.0.1", b"127.0.0.1 evil", b"'127.0.0.1'", b'"127.0.0.1"', b"(127.0.0.1)"),
        *(b"127.0.0.1;", b"127.0.0.1?", b"127.0.0.1&", b"*.0.0.1", b"*", b"-", b".", b"..", b"_", b"a" * 255),
        *(
            b"127.255.255.254",
            b"127.0.0.1.1",
            b"1.0.0.127",
            b"127-0-0-1",
            b"127.0.0.1\xff",
            b"\xff",
            b"\xc2\xa0localhost",
        ),
    ]
    with_port = [name + b":%d" % port for name in names]
    ports = [
        b":0%d",
        b":%d0",
        b":%d.",
        b":+%d",
        b":-%d",
        b": %d",
        b":%d:%d",
        b"%d",
        b".%d",
        b":%d/x",
        b":%d#",
        b":%d,x",
        b":%d.evil.example",
        b":%d@evil.example",
    ]
    odd = [name + (text % ((port,) * text.count(b"%d"))) for text in ports for name in (own, b"localhost", b"[::1]")]
    plain = [
        *(
            own,
            b"localhost",
            b"[::1]",
            own + b":",
            own + b":0",
            own + b":80",
            own + b":443",
            own + b":65536",
            own + b":x",
        ),
        *(own + b":%d" % (port + 1), own + b":%d" % (port - 1), b"localhost:%d" % (port + 1), b"[::1]:%d" % (port + 1)),
        *(
            b":%d" % port,
            b"%d" % port,
            own + b":%x" % port,
            own + b":" + "５".encode() * 5,
            b"127.0.0.1:%d" % (port + 65536),
        ),
        *(b"127.0.0.1:%d, 127.0.0.1:%d" % (port, port), b"localhost:%d,localhost:%d" % (port, port)),
    ]
    return [*with_port, *odd, *plain]


def origins(port: int) -> list[bytes]:
    own = b"127.0.0.1:%d" % port
    return [
        *(b"null", b"", b"NULL", b"https://" + own, b"http://127.0.0.1", b"http://localhost", b"http://127.0.0.1:1"),
        *(
            b"http://" + own + b"/",
            b"http://" + own + b".evil",
            b"http://" + own + b"@evil",
            b"http://evil@" + own,
            own,
        ),
        *(b"HTTP://" + own, b"http://LOCALHOST:%d" % port, b"http://evil.example", b"http://evil.example:%d" % port),
        *(b"http://localhost.evil.example:%d" % port, b"http://[::]:%d" % port, b"file://", b"chrome-extension://abc"),
        *(
            b"tauri://localhost.evil",
            b"tauri://LOCALHOST",
            b"tauri://localhost/",
            b"xtauri://localhost",
            b"ws://" + own,
        ),
        *(
            b"http://" + own + b", http://" + own,
            b"http://" + own + b" http://evil",
            b"//" + own,
            b"http:" + own,
            b"\xff",
        ),
    ]


def credentials() -> list[list[tuple[bytes, bytes]]]:
    token = TOKEN.encode()
    wrong = [
        *(b"", b"x", token[:-1], token + b"x", b"x" + token, token.upper(), token[::-1], token + b"\xff", b"\xff" * 68),
        *(token.replace(b"a", "а".encode()), token + b", " + token, b'"' + token + b'"', b"vrl_" + b"a" * 12_000),
    ]
    single = [[(b"X-Local-Token", value)] for value in wrong]
    single += [[(b"x-goog-api-key", value)] for value in wrong]
    single += [
        [(b"Authorization", scheme + b" " + value)] for value in wrong for scheme in (b"Bearer", b"Key", b"Token")
    ]
    return [
        *single,
        [],
        [(b"Authorization", token)],
        [(b"Authorization", b"Basic " + token)],
        [(b"Authorization", b"Bearer")],
        [(b"Authorization", b"Bearer\t" + token)],
        [(b"Authorization", b"Bearer:" + token)],
        [(b"Cookie", b"token=" + token)],
        [(b"X-Api-Key", token)],
        [(b"Proxy-Authorization", b"Bearer " + token)],
        [(b"X-Local-Token", token), (b"X-Local-Token", token)],
        [(b"X-Local-Token", token), (b"X-Local-Token", b"x")],
        [(b"X-Local-Token", token), (b"Authorization", b"Bearer x")],
        [(b"X-Local-Token", b"x"), (b"Authorization", b"Bearer " + token)],
        [(b"X-Local-Token", token), (b"x-goog-api-key", b"")],
    ]


def call(method: str, path: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1".encode(), *(name + b": " + value for name, value in headers)]
    length = b"Content-Length: 0\r\n" if method == "POST" else b""
    return b"\r\n".join(lines) + b"\r\n" + length + b"\r\n"


def without_date(answer: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*\r\n", b"", answer)


async def refusal(served: Served) -> bytes:
    """
    The one 403, as it comes over the wire.
    """
    answer = without_date(await served.raw(call("GET", "/health", [(b"Host", b"127.0.0.1:%d" % served.port)])))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"connection: close" in answer
    assert b"content-type: application/problem+json" in answer
    return answer


async def test_there_are_enough_hosts_to_try():
    """
    The list of foreign hosts has at least 120 different ones.
    """
    assert len(set(hosts(50_000))) >= 120


async def test_every_route_refuses_every_other_host_even_with_the_token(served):
    """
    Each route answers each foreign Host with the same 403, byte for byte, and does nothing.
    """
    expected = await refusal(served)
    for host in hosts(served.port):
        for method, path in ROUTES:
            headers = [(b"Host", host), (b"X-Local-Token", TOKEN.encode())]
            answer = without_date(await served.raw(call(method, path, headers)))
            assert answer == expected, (method, path, host)
    assert not served.relay.tasks
    assert not served.shutdowns


@pytest.mark.parametrize("headers", [[], [b""], [b"%s", b"%s"], [b"%s", b"evil"], [b"evil", b"%s"]])
async def test_a_missing_empty_or_doubled_host_is_refused(served, headers):
    """
    A call of any route without exactly one Host gets the 403, though one of them be right.
    """
    own, expected = b"127.0.0.1:%d" % served.port, await refusal(served)
    lines = [*((b"Host", host.replace(b"%s", own)) for host in headers), (b"X-Local-Token", TOKEN.encode())]
    for method, path in ROUTES:
        assert without_date(await served.raw(call(method, path, lines))) == expected, (method, path)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_the_three_own_hosts_are_let_in(served, host):
    """
    The loopback name and both loopback addresses at the relay's port are its hosts.
    """
    answer = await served.client.get("/health", headers={"Host": f"{host}:{served.port}"})
    assert answer.status_code == 200


async def test_every_route_refuses_every_foreign_origin_even_with_the_token(served):
    """
    Each route answers each foreign Origin with the same 403.
    """
    expected = await refusal(served)
    own = [(b"Host", b"127.0.0.1:%d" % served.port), (b"X-Local-Token", TOKEN.encode())]
    for origin in origins(served.port):
        for method, path in ROUTES:
            answer = without_date(await served.raw(call(method, path, [*own, (b"Origin", origin)])))
            assert answer == expected, (method, path, origin)


@pytest.mark.parametrize("origin", ["http://127.0.0.1:P", "http://localhost:P", "http://[::1]:P", "tauri://localhost"])
async def test_own_and_named_origins_are_let_in_without_any_cors_header(served, origin):
    """
    Own and configured origins get their answer, and no CORS header allows others.
    """
    headers = {"Origin": origin.replace("P", str(served.port))}
    answer = await served.client.get("/health", headers=headers)
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_named_origin_still_needs_the_token(served):
    """
    A configured origin without the token gets the 403.
    """
    headers = [(b"Host", b"127.0.0.1:%d" % served.port), (b"Origin", b"tauri://localhost")]
    assert without_date(await served.raw(call("GET", "/health", headers))) == await refusal(served)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "x", "SAME-ORIGIN", "none, none"])
async def test_a_call_from_another_site_is_refused(served, site):
    """
    `Sec-Fetch-Site` of another site, or with a word we do not know, is a 403 on every route despite the token.
    """
    expected = await refusal(served)
    own = [(b"Host", b"127.0.0.1:%d" % served.port), (b"X-Local-Token", TOKEN.encode())]
    for method, path in ROUTES:
        answer = without_date(await served.raw(call(method, path, [*own, (b"Sec-Fetch-Site", site.encode())])))
        assert answer == expected, (method, path)


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_a_call_from_the_own_page_or_from_none_is_let_in(served, site):
    """
    `Sec-Fetch-Site` of the same origin, or of no page, hinders nothing.
    """
    assert (await served.client.get("/health", headers={"Sec-Fetch-Site": site})).status_code == 200


async def test_every_route_refuses_every_wrong_credential_alike(served):
    """
    A wrong, doubled, contradictory or misplaced token is always the same 403.
    """
    expected = await refusal(served)
    host = [(b"Host", b"127.0.0.1:%d" % served.port)]
    for given in credentials():
        for method, path in GUARDED:
            answer = without_date(await served.raw(call(method, path, [*host, *given])))
            assert answer == expected, (method, path, given)
    assert not served.shutdowns


@pytest.mark.parametrize("name", ["X-Local-Token", "x-goog-api-key", "Authorization", "Cookie", "X-Vidrelay-Page"])
async def test_a_credential_of_64_kb_is_refused_and_closed(served, name):
    """
    It is over the limit of a head, whatever it says; who comes next is served.
    """
    wrong = (name.encode(), b"Bearer vrl_" + b"a" * 65_536)
    answer = await served.raw(call("POST", "/shutdown", [(b"Host", b"127.0.0.1:%d" % served.port), wrong]))
    assert answer[:13] in (b"HTTP/1.1 403 ", b"HTTP/1.1 431 ")
    assert b"connection: close" in answer
    assert (await served.client.get("/health")).status_code == 200
    assert not served.shutdowns


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Local-Token": TOKEN},
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"bearer {TOKEN}"},
        {"Authorization": f"Key {TOKEN}"},
        {"Authorization": f"Token {TOKEN}"},
        {"Authorization": f"Bearer  {TOKEN}"},
        {"x-goog-api-key": TOKEN},
        {"X-Local-Token": TOKEN, "Authorization": f"Bearer {TOKEN}"},
    ],
)
async def test_every_way_that_sdks_send_a_key_is_let_in(served, headers):
    """
    The token is taken from each header and scheme in which SDKs send a key.
    """
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    host = [(b"Host", b"127.0.0.1:%d" % served.port), (b"Connection", b"close")]
    assert (await served.raw(call("GET", "/health", [*host, *lines]))).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("name", ["token", "key", "access_token", "X-Local-Token", "api_key"])
async def test_the_token_is_never_taken_from_the_address(served, name):
    """
    A token in the query, under whatever name, is a 403.
    """
    host = [(b"Host", b"127.0.0.1:%d" % served.port)]
    answer = await served.raw(call("GET", f"/health?{name}={TOKEN}", host))
    assert answer.startswith(b"HTTP/1.1 403 ")


async def test_wrong_tokens_lock_nobody_out(served):
    """
    After two hundred wrong tokens the right one still works.
    """
    for _ in range(200):
        assert (await served.client.get("/health", headers={"X-Local-Token": "x"})).status_code == 403
    assert (await served.client.get("/health")).status_code == 200


async def test_options_is_refused_without_a_token_and_not_served_with_one(served):
    """
    A preflight of any path gets the 403, and OPTIONS with the token a 405.
    """
    expected = await refusal(served)
    host = [(b"Host", b"127.0.0.1:%d" % served.port), (b"Origin", b"http://127.0.0.1:%d" % served.port)]
    asks = (b"Access-Control-Request-Method", b"POST")
    for path in {path for _, path in ROUTES}:
        assert without_date(await served.raw(call("OPTIONS", path, [*host, asks]))) == expected, path
    for endpoint in endpoints():
        answer = await served.client.options(re.sub(r"\{.*?\}", "t1", endpoint.path))
        assert answer.status_code == 405, endpoint


async def test_an_upgrade_passes_the_same_gate(served):
    """
    A WebSocket upgrade of any path from a foreign origin or without the token gets the 403.
    """
    upgrade = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Version", b"13")]
    host = [(b"Host", b"127.0.0.1:%d" % served.port), (b"Origin", b"http://evil.example")]
    token = [(b"X-Local-Token", TOKEN.encode())]
    expected = await refusal(served)
    for path in {path for _, path in ROUTES}:
        assert without_date(await served.raw(call("GET", path, [*host, *upgrade, *token]))) == expected, path
        assert without_date(await served.raw(call("GET", path, [host[0], *upgrade]))) == expected, path


async def test_what_has_an_effect_is_not_to_be_had_by_looking(served):
    """
    Every path that takes POST alone answers GET and HEAD with 405 and says what it takes.
    """
    looking = {path for method, path in ROUTES if method == "GET"}
    effects = {path for method, path in ROUTES if method == "POST"} - looking
    assert len(effects) >= 9
    for path in effects:
        for reading in ("GET", "HEAD"):
            answer = await served.client.request(reading, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), path


async def test_reading_changes_nothing(served):
    """
    GET and HEAD of every route leave tasks, pauses and the running relay as they were.
    """
    served.relay.make()
    before = dict(served.relay.tasks)
    for method, path in ROUTES:
        if "events" not in path:
            for reading in ("GET", "HEAD"):
                answer = await served.client.request(reading, path)
                allowed = (403,) if path == "/login" else (200, 404, 405, 409)
                assert answer.status_code in allowed, (method, reading, path)
    assert served.relay.tasks == before
    assert not served.shutdowns
    assert served.relay.paused


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
async def test_a_method_cannot_be_overridden(served, name):
    """
    No header makes a POST out of a GET.
    """
    await served.client.get("/shutdown", headers={name: "POST"})
    assert not served.shutdowns


async def test_forwarding_headers_change_nothing(served):
    """
    Headers of proxies neither lend a foreign host nor take away the own one.
    """
    headers = {
        "X-Forwarded-Host": "evil",
        "X-Forwarded-For": "1.2.3.4",
        "Forwarded": "host=evil",
        "X-Real-IP": "1.1.1.1",
    }
    assert (await served.client.get("/health", headers=headers)).status_code == 200


async def test_every_answer_carries_the_security_headers_and_no_server_name(served):
    """
    Every route's answer has all security headers, and no server name or CORS header.
    """
    served.relay.make()
    served.relay.finish("t1")
    for method, path in ROUTES:
        async with served.client.stream(method, path) as answer:
            pass
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        rest = "sandbox" if answer.headers["content-type"].startswith("video/") else "frame-ancestors 'none'"
        assert policy == f"default-src 'none'; {rest}", path
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control")]


NONCE = "0f" * 32


async def prove(served: Served, body: object, **headers: str) -> bytes:
    import json

    data = json.dumps(body).encode() if not isinstance(body, bytes) else body
    lines = [(b"Host", b"127.0.0.1:%d" % served.port), (b"Connection", b"close")]
    lines += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    head = call("GET", "/proof", lines).replace(b"GET", b"POST")[:-2]
    return await served.raw(head + b"Content-Length: %d\r\n\r\n" % len(data) + data)


async def test_one_who_knows_the_token_gets_the_proof_back(served):
    """
    A right proof of the client is answered with the server's.
    """
    mac = client_proof(TOKEN, nonce=NONCE, port=served.port)
    answer = await prove(served, {"nonce": NONCE, "mac": mac})
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert server_proof(TOKEN, nonce=NONCE, port=served.port, instance="i-1").encode() in answer


async def test_a_wrong_proof_gets_the_gates_own_403(served):
    """
    Any other body, form or type at `/proof` gets the gate's 403, byte for byte.
    """
    expected = await refusal(served)
    right = client_proof(TOKEN, nonce=NONCE, port=served.port)
    other_port = client_proof(TOKEN, nonce=NONCE, port=served.port + 1)
    bodies = [
        *({}, [], None, {"nonce": NONCE}, {"mac": right}, {"nonce": NONCE, "mac": right.upper()}, b"", b"{", b"\xff"),
        *({"nonce": NONCE, "mac": other_port}, {"nonce": NONCE, "mac": right[:-1]}, {"nonce": NONCE, "mac": "é" * 64}),
        *({"nonce": "x", "mac": right}, {"nonce": NONCE, "mac": 5}, {"nonce": NONCE, "mac": right, "x": 1}),
        *({"nonce": NONCE, "mac": server_proof(TOKEN, nonce=NONCE, port=served.port, instance="i-1")}, b"[" * 2000),
    ]
    for body in bodies:
        assert without_date(await prove(served, body)) == expected, body
    form = await prove(served, {"nonce": NONCE, "mac": right}, content_type="text/plain")
    assert without_date(form) == expected


async def test_proof_needs_the_right_host_and_origin_as_everything_does(served):
    """
    A right proof from a foreign origin gets the gate's 403.
    """
    mac = client_proof(TOKEN, nonce=NONCE, port=served.port)
    answer = await prove(served, {"nonce": NONCE, "mac": mac}, origin="http://evil.example")
    assert without_date(answer) == await refusal(served)


async def test_proof_is_not_asked_for_by_looking(served):
    """
    GET of `/proof` is a 405 with the token and the 403 without.
    """
    assert (await served.client.get("/proof")).status_code == 405
    host = [(b"Host", b"127.0.0.1:%d" % served.port)]
    assert (await served.raw(call("GET", "/proof", host))).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [(b"content-length", b"2", 0), (b"transfer-encoding", b"chunked", 0), (b"expect", b"100-continue", 2)],
)
async def test_a_body_under_way_is_let_pass_before_the_refusal_closes(name, value, left):
    """
    Closing on it would reset the connection, and an SDK whose key is wrong would see no 403 but try again.
    """
    parts = [{"type": "http.request", "body": b"a", "more_body": more} for more in (True, False)]
    left_when_answered = []

    async def receive():
        return parts.pop(0)

    async def send(message):
        left_when_answered.append(len(parts))

    gate = Gate(send, token=lambda: TOKEN, logins=Logins(lambda: TOKEN, FakeClock(), cookie_name="c"), port=1)
    scope = {"type": "http", "scheme": "http", "method": "POST", "raw_path": b"/x", "path": "/x", "query_string": b""}
    await gate({**scope, "headers": [(name, value)]}, receive, send)
    assert left_when_answered[0] == left
