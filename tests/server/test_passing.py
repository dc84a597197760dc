"""
What a door does not answer and passes on: the account's key and the relay's own token stay where they belong, nothing
goes astray, and nothing that the door answers itself goes past it.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from fake_relay import FakeRelay
from loopback import TOKEN, Served, serving

from vidrelay.core.messages import HttpRequest
from vidrelay.core.plan import AccountPlan
from vidrelay.providers.fal.adapter import make as make_fal_adapter
from vidrelay.providers.fal.door import make as make_fal
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.openai.door import make
from vidrelay.providers.openrouter.door import make as make_openrouter
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.face import DoorWay
from vidrelay.scheduler.passing import pass_on
from vidrelay.testing.clock import FakeClock

KEY = "sk-canary-0123456789"
BASES = {
    "fal-own": None,
    "fal-proxied": "https://proxy.example.com/fal",
    "fal-odd": "https://proxy.example.com/storage",
}


class Answered:
    """
    A provider's reply (fills port Reply).
    """

    def __init__(self, headers: dict[str, str], body: bytes) -> None:
        self.status = 200
        self.headers = headers
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in one piece."""
        yield self._body

    async def read(self) -> bytes:
        """The body."""
        return self._body


class Provider:
    """
    A provider that tells back whatever it is told (fills port Transport).
    """

    def __init__(self) -> None:
        self.heard: list[HttpRequest] = []
        self.media_type = "application/json"

    @asynccontextmanager
    async def send(self, request: HttpRequest, *, timeout: float) -> AsyncIterator[Answered]:
        """Take the call, and tell its headers back in the body and in a header."""
        self.heard.append(request)
        told = {"content-type": self.media_type, "x-request-id": f"for {request.headers['Authorization']}"}
        yield Answered({**told, "set-cookie": "a=b"}, str(dict(request.headers)).encode())


class PassingRelay(FakeRelay):
    """
    A relay whose accounts pass on what their doors do not answer: one of any provider, and fal's, at its own address
    and at others.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.provider = Provider()
        adapter = JsonAdapter(AdapterSettings(now=FakeClock().now, key=KEY), base_url="https://api.example.com/v1")
        plan = AccountPlan(
            name="main", provider="openai", adapter=adapter, transport=self.provider, downloader=None, door=make(None)
        )
        self.accounts = {"main": Account(plan)}
        for name, base_url in BASES.items():
            fal = make_fal_adapter(AdapterSettings(now=FakeClock().now, key=KEY, base_url=base_url))
            self.accounts[name] = Account(replace(plan, name=name, provider="fal", adapter=fal, door=make_fal(None)))
        self.ways = {
            **{name: DoorWay(account=name, door=make_fal(None), pass_through=True) for name in BASES},
            "openai": DoorWay(account="main", door=make(None), pass_through=True),
            "openrouter": DoorWay(account="main", door=make_openrouter(None), pass_through=True),
            "shut": DoorWay(account="main", door=make_openrouter(None)),
            "fal": DoorWay(account="main", door=make_fal(None)),
        }

    def pass_on(self, name: str, **call):
        """As the relay does."""
        return pass_on(self.accounts[name], FakeClock(), **call)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """
    That relay, over loopback.
    """
    async with serving(PassingRelay(tmp_path)) as served:
        yield served


async def ask(door: Served, method: str, target: str, **more: object) -> httpx2.Response:
    """
    A call whose target is sent as it stands.
    """
    request = door.client.build_request(method, "/", **more)
    request.extensions["target"] = target.encode()
    return await door.client.send(request)


@pytest.fixture
def heard(door: Served) -> Iterator[list[HttpRequest]]:
    """
    What reached the provider.
    """
    assert isinstance(door.relay, PassingRelay)
    return door.relay.provider.heard


async def test_a_key_that_the_provider_repeats_is_blotted_out(door: Served, heard: list[HttpRequest]) -> None:
    """
    In the body and in what is passed on of the headers; the call itself had it.
    """
    answer = await ask(door, "GET", "/openai/v1/models")
    assert answer.status_code == 200
    assert heard[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in answer.text
    assert answer.text.count("[key]") == 1
    assert answer.headers["x-request-id"] == "for Bearer [key]"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "OPTIONS", "PROPFIND"])
async def test_a_method_of_no_api_is_not_passed_on(door: Served, heard: list[HttpRequest], method: str) -> None:
    """
    TRACE would bring the account's key back, and CONNECT is a proxy's.
    """
    answer = await door.raw(f"{door.head(f'{method} /openai/v1/models HTTP/1.1')}Connection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert not heard


@pytest.mark.parametrize(
    "target",
    [
        *("/openai/videos", "/openai/v1/videos/", "/openai/v1/%76ideos", "/openai/videos/", "/openai/v1/video%73/"),
    ],
)
async def test_a_create_that_the_door_answers_goes_not_past_it(
    door: Served, heard: list[HttpRequest], target: str
) -> None:
    """
    Written in another way, such as without the `/v1` that the account's address has already, it would be paid for and
    nothing here would know of it.
    """
    answer = await ask(door, "POST", target, json={"prompt": "a boat"})
    assert answer.status_code == 422
    assert "/v1/videos" in answer.text
    assert not heard
    assert (await ask(door, "POST", "/openai/v1/images", json={"prompt": "a boat"})).status_code == 200
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/openrouter/api/v1/videos/models"),
        ("HEAD", "/openrouter/api/v1/videos/models"),
        ("POST", "/openai/v1/videos/edits"),
        ("POST", "/openai/v1/videos/characters"),
    ],
)
async def test_what_only_looks_like_a_path_of_a_task_is_passed_on(
    door: Served, heard: list[HttpRequest], method: str, target: str
) -> None:
    """
    A fixed path of the provider's where the door has tasks by their ids, or has them by another method.
    """
    assert (await ask(door, method, target)).status_code == 200
    assert [request.url.rpartition("/videos/")[2] for request in heard] == [target.rpartition("/")[2]]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_create_by_another_method_is_not_passed_on(door: Served, heard: list[HttpRequest], method: str) -> None:
    """
    Should the provider take it for one, it would be paid for.
    """
    assert (await ask(door, method, "/openai/v1/videos", json={"prompt": "a boat"})).status_code == 422
    assert not heard


async def test_what_only_looks_like_a_path_of_a_task_is_none(door: Served, heard: list[HttpRequest]) -> None:
    """
    Where nothing is passed on, it is told as any path that is not answered; an unknown task is told as one.
    """
    told = [await ask(door, "GET", f"/shut/api/v1/videos/{name}") for name in ("models", "t1")]
    assert [answer.status_code for answer in told] == [404, 404]
    assert [answer.json()["error"]["metadata"]["code"] for answer in told] == ["not_found", "unknown_task"]
    assert not heard


@pytest.mark.parametrize("path", ["/storage/upload/initiate", "/files/upload/multipart"])
async def test_an_upload_that_is_not_answered_makes_no_task(door: Served, path: str) -> None:
    """
    fal's door takes nearly any path for a model's.
    """
    answer = await ask(door, "POST", f"/fal{path}", json={"file_name": "a.png", "content_type": "image/png"})
    assert (answer.status_code, answer.json()["error_type"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "target", "url"),
    [
        ("POST", "/fal-own/storage/upload/initiate?a=b", "https://rest.fal.ai/storage/upload/initiate?a=b"),
        ("PUT", "/fal-own/storage/upload/part", "https://rest.fal.ai/storage/upload/part"),
        ("POST", "/fal-own/files/upload/multipart", "https://v3.fal.media/files/upload/multipart"),
        ("GET", "/fal-own/models", "https://queue.fal.run/models"),
        ("POST", "/fal-proxied/storage/upload/initiate", "https://proxy.example.com/fal/storage/upload/initiate"),
    ],
)
async def test_an_upload_that_is_not_answered_is_passed_on(
    door: Served, heard: list[HttpRequest], method: str, target: str, url: str
) -> None:
    """
    Though it has the form of a model's path; and to the host that fal has for it.
    """
    assert (await ask(door, method, target, json={} if method != "GET" else None)).status_code == 200
    assert [request.url for request in heard] == [url]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PUT", "/fal-own/acme/clips"),
        ("PUT", "/fal-own/Storage/clips"),
        ("PUT", "/fal-own/st%6frage/clips"),
        ("PUT", "/fal-own/storage"),
        ("POST", "/fal-own/storage/..;/acme/clips"),
        ("POST", "/fal-own/storage//acme/clips"),
        ("POST", "/fal-own/files/upload/"),
        ("POST", "/fal-own/storage/auth/token;a=b"),
        ("POST", "/fal-odd/storage/acme/clips"),
        ("PUT", "/fal-odd/storage/storage/acme/clips"),
    ],
)
async def test_what_may_be_a_create_is_no_upload(
    door: Served, heard: list[HttpRequest], method: str, target: str
) -> None:
    """
    Spelt almost as an upload's path, by another method, or where the account's address ends as that path begins.
    """
    assert (await ask(door, method, target, json={"prompt": "a boat"})).status_code == 422
    assert not heard


@pytest.mark.parametrize("path", ["/v1/..;/admin", "/v1/..%3b/admin", "/v1/%252e%252e/x", "/v1/a%252fb"])
async def test_what_a_careless_server_reads_as_another_place_is_not_passed_on(
    door: Served, heard: list[HttpRequest], path: str
) -> None:
    """
    Parameters of a segment that is dots, and what is encoded twice.
    """
    assert (await ask(door, "GET", f"/openai{path}")).status_code == 422
    assert not heard


BLANKS = ("%09", "%0a", "%0D", "%00", "%1f", "%20", "%7F", "%85", "%c2%a0", "%E2%80%8B", "%23x", "%3Fx", "%2509")


@pytest.mark.parametrize("blank", BLANKS)
async def test_a_create_with_a_blank_at_its_end_is_not_passed_on(
    door: Served, heard: list[HttpRequest], blank: str
) -> None:
    """
    Starlette's own routes let a line's end stand behind a path, others leave out blanks, or what is behind `?` and `#`.
    """
    for path in (f"/v1/videos{blank}", f"/v1/{blank}videos"):
        assert (await ask(door, "POST", f"/openai{path}", json={"prompt": "a boat"})).status_code == 422
    assert not heard


async def test_the_relays_own_token_is_not_passed_on(door: Served, heard: list[HttpRequest]) -> None:
    """
    Neither in the query, where some clients put a key, nor in a body.
    """
    assert (await ask(door, "GET", f"/openai/v1/models?key={TOKEN}")).status_code == 422
    assert (await ask(door, "GET", f"/openai/v1/models?key={TOKEN.replace('_', '%5F')}")).status_code == 422
    assert (await ask(door, "POST", "/openai/v1/keys", json={"key": TOKEN})).status_code == 422
    assert not heard


async def test_what_a_provider_sends_is_never_a_page_of_this_relay(door: Served) -> None:
    """
    Whatever its type is, a browser that is shown it runs nothing in it and gives it no origin.
    """
    assert isinstance(door.relay, PassingRelay)
    door.relay.provider.media_type = "text/html"
    answer = await ask(door, "GET", "/openai/v1/models")
    assert answer.headers["content-type"] == "text/html"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_packed_body_is_not_passed_on_as_if_it_were_plain(door: Served, heard: list[HttpRequest]) -> None:
    """
    As no door takes one.
    """
    answer = await ask(door, "POST", "/openai/v1/images", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415
    assert not heard


async def test_what_a_page_asks_for_is_not_passed_on(door: Served, heard: list[HttpRequest]) -> None:
    """
    A cookie alone lets look at what is here, and a link that is followed must not make a call with the account's key.
    """
    code = (await door.client.post("/login/code")).json()["code"]
    del door.client.headers["X-Local-Token"]
    origin = {"origin": f"http://127.0.0.1:{door.port}"}
    login = await door.client.post("/login", json={"code": code}, headers=origin)
    assert login.status_code == 200
    assert (await door.client.get("/openai/v1/videos")).status_code == 200
    assert (await ask(door, "GET", "/openai/v1/models")).status_code == 422
    assert not heard
