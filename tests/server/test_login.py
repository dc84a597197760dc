"""
A browser comes in with a one-time code, may look with its cookie, and changes things only with its page's own key.
"""

import asyncio
import base64
import hashlib
import json
import re

import pytest
from loopback import TOKEN, Served
from test_gate import GUARDED

from vidrelay.server.login import CODE_SECONDS, LOGIN_SECONDS, MAX_CODES, MAX_LOGINS, SCRIPT, Logins
from vidrelay.testing.clock import FakeClock

ORIGIN = {"Origin": "http://127.0.0.1:P", "Sec-Fetch-Site": "same-origin"}
EFFECTS = sorted({path for method, path in GUARDED if method == "POST"} - {"/login"})


class Browser:
    """
    What a browser sends: no token, its cookie, and the page key where a page of the relay's adds it.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.cookie = b""
        self.key = ""

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        told = {"Host": f"127.0.0.1:{self.served.port}", "Connection": "close", "Content-Length": str(len(data))}
        told |= {name.replace("_", "-"): value.replace(":P", f":{self.served.port}") for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
        head = "\r\n".join(lines).encode("latin-1") + (b"\r\nCookie: " + self.cookie if self.cookie else b"")
        answer = await self.served.raw(head + b"\r\n\r\n" + data)
        return int(answer[9:12]), answer

    async def effect(self, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        return await self.call("POST", path, body, **{"X_Vidrelay_Page": self.key, **ORIGIN, **headers})

    async def enter(self, code: str, **headers: str) -> int:
        status, answer = await self.call("POST", "/login", {"code": code}, **{**ORIGIN, **headers})
        if status == 200:
            head, _, body = answer.partition(b"\r\n\r\n")
            self.set_cookie = re.search(rb"set-cookie: ([^\r]+)", head)[1]
            self.cookie = self.set_cookie.partition(b";")[0]
            self.key = json.loads(body)["key"]
        return status


async def new_code(served: Served) -> str:
    return (await served.client.post("/login/code")).json()["code"]


@pytest.fixture
async def browser(served: Served) -> Browser:
    """
    One that has come in.
    """
    found = Browser(served)
    assert await found.enter(await new_code(served)) == 200
    return found


async def refusal(served: Served) -> bytes:
    return without_date((await Browser(served).call("GET", "/health"))[1])


def without_date(answer: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*\r\n", b"", answer)


# Coming in


async def test_a_code_has_256_bits_and_says_how_long_it_is_good(served):
    """
    A login code is 32 bytes long and told with its 60 seconds.
    """
    told = (await served.client.post("/login/code")).json()
    assert len(base64.urlsafe_b64decode(told["code"] + "=")) == 32
    assert told["seconds"] == CODE_SECONDS == 60


async def test_the_cookie_is_the_ports_and_the_instances_and_is_kept_from_scripts(browser):
    """
    The cookie's name has port and instance; it is HttpOnly, SameSite=Strict and for 12 hours.
    """
    name = f"vidrelay_{browser.served.port}_i-1".encode()
    told = re.escape(name) + rb"=[A-Za-z0-9_-]{43}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200"
    assert re.fullmatch(told, browser.set_cookie)


async def test_looking_at_the_link_spends_nothing(served):
    """
    Opening the link, even from another site, sets no cookie and leaves the code good.
    """
    code = await new_code(served)
    for _ in range(3):
        status, answer = await Browser(served).call("GET", f"/login?code={code}", Sec_Fetch_Site="cross-site")
        assert status == 200
        assert b"text/html" in answer
        assert b"set-cookie" not in answer
    assert await Browser(served).enter(code) == 200


async def test_the_pages_policy_lets_in_its_own_script_and_nothing_else(served):
    """
    The login page's policy names the hash of its script and lets it call home only.
    """
    _, answer = await Browser(served).call("GET", f"/login?code={await new_code(served)}")
    head, _, page = answer.partition(b"\r\n\r\n")
    script = re.search(rb"<script>(.*)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script).digest())
    policy = re.search(rb"content-security-policy: ([^\r]+)", head)[1]
    assert policy.startswith(b"default-src 'none'; script-src 'sha256-" + digest + b"'; connect-src 'self'; ")
    assert b"referrer-policy: no-referrer" in head
    assert b"cache-control: no-store" in head


STAGE = """
const [search, place, script] = process.argv.slice(1);
const world = {
  location: { search, replace: (to) => console.log("to", to) },
  history: { replaceState: (_, __, to) => console.log("shown", to) },
  sessionStorage: { setItem: (name, value) => console.log("kept", name, value) },
  document: { body: {} },
  fetch: (path, told) => fetch(place + path, { ...told, headers: { ...told.headers, Origin: place } }),
};
new Function(...Object.keys(world), script)(...Object.values(world));
process.on("exit", () => console.log("says", world.document.body.textContent ?? "nothing"));
"""


async def run_script(served: Served, code: str) -> list[str]:
    """
    What the page's script does with that code, in a JavaScript engine.
    """
    arguments = [f"?code={code}", f"http://127.0.0.1:{served.port}", SCRIPT]
    child = await asyncio.create_subprocess_exec(
        "node", "-e", STAGE, "--", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await child.communicate()
    return said.decode().splitlines()


async def test_the_pages_script_takes_the_code_out_of_sight_and_keeps_the_key_in_its_tab(served, needs):
    """
    It spends the code, keeps the key in the tab's storage and goes on; a used code is told, and leads nowhere.
    """
    needs("node")
    code = await new_code(served)
    shown, kept, to, says = await run_script(served, code)
    assert (shown, to, says) == ("shown /login", "to /", "says nothing")
    assert re.fullmatch("kept vidrelay-key [A-Za-z0-9_-]{43}", kept)
    shown, says = await run_script(served, code)
    assert "has been used" in says


@pytest.mark.parametrize(
    "query", ["", "?", "?code=", "?code=x", "?code=C&x=1", "?x=1&code=C", "?code=C%20", "?code=C&"]
)
async def test_without_a_live_code_alone_in_it_the_link_leads_nowhere(served, query):
    """
    A link with a wrong, padded or accompanied code gets the gate's 403.
    """
    path = "/login" + query.replace("C", await new_code(served))
    assert without_date((await Browser(served).call("GET", path))[1]) == await refusal(served)


async def test_the_token_does_not_open_the_page_of_a_dead_link(served):
    """
    A dead code is a 403 also for one who sends the token.
    """
    answer = await served.client.get("/login?code=" + "x" * 43)
    assert answer.status_code == 403


async def test_only_the_link_may_come_from_another_site(served):
    """
    From another site only GET of a live link is let in: no other path, and no login itself.
    """
    code = await new_code(served)
    for path in ("/health", "/login", "/login?code=" + "x" * 43, f"/health?code={code}"):
        headers = {"Sec-Fetch-Site": "cross-site", "X-Local-Token": TOKEN}
        assert (await Browser(served).call("GET", path, **headers))[0] == 403
    assert (await Browser(served).call("GET", f"/login?code={code}", Sec_Fetch_Site="same-site"))[0] == 403
    assert await Browser(served).enter(code, Sec_Fetch_Site="cross-site") == 403
    assert await Browser(served).enter(code) == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "http://localhost:P", "http://[::1]:P", "https://127.0.0.1:P", "http://evil", "tauri://localhost"],
)
async def test_a_login_comes_from_the_very_host_it_goes_to(served, origin):
    """
    A login from another origin, even another name of loopback, is refused and spends nothing.
    """
    code = await new_code(served)
    assert await Browser(served).enter(code, Origin=origin, Sec_Fetch_Site="none") == 403
    assert (await Browser(served).call("GET", f"/login?code={code}", Origin=origin))[0] == 403
    assert await Browser(served).enter(code) == 200


async def test_a_code_that_comes_twice_ends_the_login_it_made(browser):
    """
    A code used again is refused and ends the first user's login, and no other login.
    """
    code = await new_code(browser.served)
    first, second = Browser(browser.served), Browser(browser.served)
    assert await first.enter(code) == 200
    assert (await first.call("GET", "/health"))[0] == 200
    assert await second.enter(code) == 403
    assert (await first.call("GET", "/health"))[0] == 403
    assert (await browser.call("GET", "/health"))[0] == 200


async def streaming(browser: Browser) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """
    An event stream that the browser's cookie has opened.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", browser.served.port)
    head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{browser.served.port}\r\nCookie: {browser.cookie.decode()}\r\n\r\n"
    writer.write(head.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def test_a_login_that_ends_takes_its_streams_with_it(browser):
    """
    Who came in by an overheard code does not go on reading after it was used again; other streams go on.
    """
    code = await new_code(browser.served)
    other = Browser(browser.served)
    assert await other.enter(code) == 200
    (ended, closing), (going_on, open_still) = await streaming(other), await streaming(browser)
    assert await Browser(browser.served).enter(code) == 403
    async with asyncio.timeout(10):
        assert (await ended.readuntil(b"0\r\n\r\n")).endswith(b"0\r\n\r\n")
    browser.served.relay.make()
    async with asyncio.timeout(10):
        await going_on.readuntil(b"event: task")
    closing.close()
    open_still.close()


async def test_a_stream_ends_with_its_logins_time(browser):
    """
    Not before its twelve hours are over, and then at once.
    """
    reader, writer = await streaming(browser)
    await browser.served.clock.advance(LOGIN_SECONDS - 1)
    browser.served.relay.make()
    async with asyncio.timeout(10):
        await reader.readuntil(b"event: task")
    await browser.served.clock.advance(1)
    async with asyncio.timeout(10):
        await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def test_a_code_is_good_for_a_minute(served):
    """
    After its seconds neither the link nor the code is taken.
    """
    code = await new_code(served)
    await served.clock.advance(CODE_SECONDS)
    assert (await Browser(served).call("GET", f"/login?code={code}"))[0] == 403
    assert await Browser(served).enter(code) == 403


@pytest.mark.parametrize("body", [{}, [], None, {"code": 5}, {"code": ""}, {"code": "é"}, {"code": "C", "x": 1}, b"{"])
async def test_whatever_else_is_posted_gets_the_gates_own_403(served, body):
    """
    A body that is not exactly a live code gets the gate's 403, byte for byte.
    """
    if isinstance(body, dict) and body.get("code") == "C":
        body = {**body, "code": await new_code(served)}
    answer = await Browser(served).call("POST", "/login", body, **ORIGIN)
    assert without_date(answer[1]) == await refusal(served)


async def test_a_strangers_body_is_not_read_far(served):
    """
    A long body without a credential is refused, and does not disturb the next login.
    """
    status, _ = await Browser(served).call("POST", "/login", {"code": "x" * 5000}, **ORIGIN)
    assert status == 403
    assert await Browser(served).enter(await new_code(served)) == 200


async def test_a_code_is_given_to_the_token_alone(browser):
    """
    Neither a stranger nor a logged-in browser with its key can ask for a code.
    """
    assert (await Browser(browser.served).call("POST", "/login/code"))[0] == 403
    status, answer = await browser.effect("/login/code")
    assert status == 403
    assert without_date(answer) == await refusal(browser.served)


# What a login may do


async def test_with_its_cookie_a_browser_may_look(browser):
    """
    The cookie opens the calls that read, from the own page or from none.
    """
    for path in ("/health", "/tasks", "/accounts", "/stats", "/openapi.json"):
        for site in ("same-origin", "none"):
            assert (await browser.call("GET", path, Sec_Fetch_Site=site))[0] == 200


@pytest.mark.parametrize("path", [*EFFECTS, "/nowhere"])
async def test_the_cookie_alone_has_no_effect(browser, path):
    """
    Without the page's key every method and route that could change something is a 403.
    """
    browser.served.relay.make()
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = await browser.call(method, path, {"prompt": "a fox"}, **ORIGIN)
        assert without_date(answer[1]) == await refusal(browser.served), method
    assert list(browser.served.relay.tasks) == ["t1"]
    assert browser.served.relay.paused
    assert not browser.served.shutdowns


async def test_with_the_pages_key_it_has(browser):
    """
    Cookie and page key together make and cancel a task.
    """
    status, _ = await browser.effect("/generate", {"prompt": "a fox"})
    assert status == 202
    assert (await browser.effect("/task/t1/cancel"))[0] == 200


async def test_the_key_of_another_login_or_no_key_is_refused(browser):
    """
    A page key that is missing, wrong or another login's makes no task.
    """
    other = Browser(browser.served)
    await other.enter(await new_code(browser.served))
    for key in ("", "x", other.key, browser.key[:-1], browser.key + "x", browser.key.swapcase(), "\xff", "x" * 9000):
        status, _ = await browser.effect("/generate", {"prompt": "a fox"}, X_Vidrelay_Page=key)
        assert status == 403, key
    assert not browser.served.relay.tasks


async def test_the_key_without_the_cookie_is_nothing(browser):
    """
    A page key alone neither changes anything nor lets one look.
    """
    browser.cookie = b""
    assert (await browser.effect("/generate", {"prompt": "a fox"}))[0] == 403
    assert (await browser.call("GET", "/health", X_Vidrelay_Page=browser.key))[0] == 403


@pytest.mark.parametrize("path", ["/health", "/events"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost:P"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": "tauri://localhost"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": ""},
    ],
)
async def test_the_cookie_from_any_other_page_is_refused(browser, path, headers):
    """
    A cookie that comes with another origin or site gets the gate's 403.
    """
    answer = await browser.call("GET", path, **headers)
    assert without_date(answer[1]) == await refusal(browser.served)


async def test_another_ports_or_instances_cookie_is_not_this_ones(browser):
    """
    A cookie with another name or value is a 403, however near it is.
    """
    name, _, value = browser.cookie.decode().partition("=")
    port = browser.served.port
    wrong = [f"vidrelay_{port + 1}_i-1={value}", f"vidrelay_{port}_i-2={value}", f"{name}={value}x", f"{name}=", value]
    for cookie in [*wrong, name, f"{name}={value[:-1]}", f"{name.upper()}={value}", f"x{name}={value}"]:
        browser.cookie = cookie.encode()
        assert (await browser.call("GET", "/events"))[0] == 403, cookie


async def test_a_planted_cookie_of_the_same_name_locks_nobody_out(browser):
    """
    A wrong cookie beside the right one of that name does not hinder it.
    """
    name = browser.cookie.partition(b"=")[0]
    browser.cookie = b"a=b; " + name + b"=" + b"x" * 43 + b"; " + browser.cookie + b"; c"
    assert (await browser.call("GET", "/health"))[0] == 200


async def test_two_cookie_headers_are_refused(browser):
    """
    A call with two Cookie headers is a 403, though both be right.
    """
    assert (await browser.call("GET", "/health", Cookie=browser.cookie.decode()))[0] == 403


async def test_beside_a_credential_the_cookie_does_not_count(browser):
    """
    With a token in the call the cookie is passed over: the token alone decides.
    """
    assert (await browser.call("GET", "/health", X_Local_Token="wrong"))[0] == 403
    assert (await browser.call("POST", "/generate", {"prompt": "a"}, X_Local_Token=TOKEN))[0] == 202


async def test_a_page_cannot_name_a_file_of_this_machine(browser):
    """
    A reference by path is a 422 for a logged-in page, and is taken from the token.
    """
    body = {"prompt": "a fox", "references": [{"url": "https://x.example/a.png"}, {"path": "/etc/hostname"}]}
    status, answer = await browser.effect("/generate", body)
    assert status == 422
    assert b'"field":"references[1].path"' in answer
    assert not browser.served.relay.tasks
    assert (await browser.served.client.post("/generate", json=body)).status_code == 202


# How long


async def test_a_login_ends_after_twelve_hours(browser):
    """
    A cookie works up to the last second of its twelve hours, and then no more.
    """
    await browser.served.clock.advance(LOGIN_SECONDS - 1)
    assert (await browser.call("GET", "/health"))[0] == 200
    await browser.served.clock.advance(1)
    assert (await browser.call("GET", "/health"))[0] == 403


@pytest.mark.parametrize("seconds", [-86_400.0, 3600.0, 10 * 365 * 86_400.0])
async def test_setting_the_clock_neither_ends_nor_lengthens_anything(browser, seconds):
    """
    Codes and logins last by a clock that runs on evenly, however the date is set.
    """
    code = await new_code(browser.served)
    browser.served.clock.jump(seconds)
    assert (await browser.call("GET", "/health"))[0] == 200
    assert (await Browser(browser.served).call("GET", f"/login?code={code}"))[0] == 200
    await browser.served.clock.advance(CODE_SECONDS)
    assert await Browser(browser.served).enter(code) == 403


def test_a_new_token_ends_every_login_and_code() -> None:
    """
    When the relay's token changes, codes and logins made under the old one are dead.
    """
    tokens = ["one"]
    logins = Logins(lambda: tokens[-1], FakeClock(), cookie_name="c")
    code, cookie_and_key = logins.issue(), logins.enter(logins.issue())
    cookie = b"c=" + cookie_and_key[0].encode()
    assert logins.admitted(cookie, key=cookie_and_key[1].encode(), effect=True)
    tokens.append("two")
    assert not logins.is_live(code)
    assert logins.enter(code) is None
    assert not logins.admitted(cookie, key=cookie_and_key[1].encode(), effect=False)


def test_codes_and_logins_are_bounded_and_the_newest_are_kept() -> None:
    """
    Beyond the limit the oldest codes and logins are dropped.
    """
    logins = Logins(lambda: "token", FakeClock(), cookie_name="c")
    codes = [logins.issue() for _ in range(MAX_CODES + 3)]
    assert [logins.is_live(code) for code in codes] == [False] * 3 + [True] * MAX_CODES
    cookies = [b"c=" + logins.enter(logins.issue())[0].encode() for _ in range(MAX_LOGINS + 3)]
    admitted = [logins.admitted(cookie, key=None, effect=False) is not None for cookie in cookies]
    assert admitted == [False] * 3 + [True] * MAX_LOGINS
