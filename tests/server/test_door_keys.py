"""
A door's own key in the path: what it opens, and everything that it does not.
"""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fake_relay import FakeRelay
from loopback import TOKEN, Served, serving

from vidrelay.core.proof import door_key
from vidrelay.providers.comfyui.door import make
from vidrelay.scheduler.face import DoorWay

GRAPH = {"9": {"class_type": "SaveVideo", "inputs": {"filename_prefix": "clip", "text": "a boat"}}}
KEY = door_key(TOKEN, account="main")
OTHER = door_key(TOKEN, account="other")
OFF = door_key(TOKEN, account="off")


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """A relay with doors of two accounts that have a key, and of one that has none; no call has the token."""
    relay = FakeRelay(tmp_path)
    door = make(None)
    relay.ways = {
        "comfyui": DoorWay(account="main", door=door, door_key=True),
        "main": DoorWay(account="main", door=door, door_key=True),
        "other": DoorWay(account="other", door=door, door_key=True),
        "off": DoorWay(account="off", door=door),
    }
    async with serving(relay) as served:
        del served.client.headers["X-Local-Token"]
        yield served


@pytest.mark.parametrize("start", [f"/comfyui/~{KEY}", f"/main/~{KEY}", f"/other/~{OTHER}", f"/comfyui/%7E{KEY}"])
async def test_the_key_opens_the_routes_of_its_accounts_doors(door, start):
    """By the provider's name and by the account's; no header is needed."""
    made = await door.client.post(f"{start}/prompt", json={"prompt": GRAPH})
    # The fake relay knows one account.
    assert made.status_code == (422 if "other" in start else 200)
    assert (await door.client.get(f"{start}/api/history/nobody")).json() == {}
    assert (await door.client.head(f"{start}/queue")).status_code == 200
    async with door.client.websocket(f"ws://127.0.0.1:{door.port}{start}/ws?clientId=c1") as client:
        assert (await client.receive_json(timeout=5))["type"] == "status"


async def refusal(door: Served) -> bytes:
    """The one 403."""
    return (await door.client.get("/health")).content


SHUT = [
    f"/comfyui/~{'0' * 64}/queue",
    f"/comfyui/~{KEY[:-1]}/queue",
    f"/comfyui/~{KEY}0/queue",
    f"/comfyui/~{KEY.upper()}/queue",
    "/comfyui/~/queue",
    f"/comfyui/~{OTHER}/queue",
    f"/comfyui/~{TOKEN}/queue",
    f"/other/~{KEY}/queue",
    f"/off/~{OFF}/queue",
    f"/~{KEY}/comfyui/queue",
    f"/~{KEY}/health",
    f"/health/~{KEY}",
    f"/tasks/~{KEY}/",
    f"/task/~{KEY}/result",
    f"/nowhere/~{KEY}/queue",
    f"/comfyui/queue/~{KEY}",
    f"/comfyui/queue?key={KEY}",
    f"//comfyui/~{KEY}/queue",
]


@pytest.mark.parametrize("path", SHUT)
async def test_it_opens_nothing_else(door, path):
    """A wrong key, another account's, an account's that wants none, and ours at any other place: the one 403."""
    for method in ("GET", "POST"):
        answer = await door.client.request(method, path)
        assert (answer.status_code, answer.content) == (403, await refusal(door)), path


@pytest.mark.parametrize("path", [f"/comfyui/~{'0' * 64}/queue", f"/comfyui/~{OTHER}/queue", "/comfyui/~x"])
async def test_the_token_does_not_make_a_wrong_key_right(door, path):
    """Two credentials of which one is wrong are somebody's mistake or trick."""
    answer = await door.client.get(path, headers={"X-Local-Token": TOKEN})
    assert (answer.status_code, answer.content) == (403, await refusal(door))


@pytest.mark.parametrize("path", ["/../health", "/..%2fhealth", "/%2e%2e/tasks", "//health", "", "/", "/~/queue"])
async def test_no_path_behind_it_leads_out_of_the_door(door, path):
    """What is no route of the door is the door's own 404."""
    raw = await door.raw(
        f"GET /comfyui/~{KEY}{path} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n".encode(), seconds=0.5
    )
    assert raw.split()[1] in (b"403", b"404"), raw
    assert b'"status"' not in raw or b"not_found" in raw or b"forbidden" in raw


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ],
)
async def test_a_page_is_refused_that_has_learned_it(door, headers):
    """Host, Origin and site are judged first, for calls and for websockets."""
    for path in ("queue", "ws"):
        answer = await door.client.get(f"/comfyui/~{KEY}/{path}", headers=headers)
        assert (answer.status_code, answer.content) == (403, await refusal(door))
    with pytest.raises(httpx2.websockets.WebSocketUpgradeError) as refused:
        async with door.client.websocket(f"ws://127.0.0.1:{door.port}/comfyui/~{KEY}/ws", headers=headers):
            pass
    assert refused.value.response.status_code == 403


async def test_a_task_of_another_account_is_not_to_be_had_with_it(door):
    """Neither its entry nor its file."""
    made = (await door.client.post(f"/comfyui/~{KEY}/prompt", json={"prompt": GRAPH})).json()["prompt_id"]
    door.relay.finish(made)
    view = f"view?filename={made}-0.mp4&subfolder=vidrelay&type=output"
    assert (await door.client.get(f"/comfyui/~{KEY}/{view}")).content == b"0123456789"
    assert (await door.client.get(f"/other/~{OTHER}/{view}")).status_code == 404
    assert (await door.client.get(f"/other/~{OTHER}/history/{made}")).json() == {}
    assert (await door.client.get(f"/other/~{OTHER}/queue")).json() == {"queue_running": [], "queue_pending": []}


async def test_it_comes_into_no_log(door, caplog):
    """Whatever is logged of a call with it, right or wrong, and however it ends."""
    caplog.set_level(logging.DEBUG)
    door.relay.live = None
    wrong = "9" * 64
    assert (await door.client.get(f"/comfyui/~{KEY}/queue")).status_code == 500
    for key in (KEY, wrong):
        await door.client.get(f"/comfyui/~{key}/nothing")
        await door.raw(f"GET /comfyui/~{key}/queue HTTP/9\r\n\r\n".encode(), seconds=0.5)
        with pytest.raises(httpx2.websockets.HTTPXWSException):
            async with door.client.websocket(f"ws://127.0.0.1:{door.port}/comfyui/~{key}/x/ws"):
                pass
    ours = [one for one in caplog.records if not one.name.startswith(("httpx2", "httpcore"))]
    assert any("door.failed" in one.getMessage() for one in ours)
    for record in ours:
        told = record.getMessage() + (logging.Formatter().formatException(record.exc_info) if record.exc_info else "")
        assert KEY not in told
        assert wrong not in told


async def test_accounts_tell_which_doors_it_opens(door):
    """`vidrelay env` prints the address with the key in it for those."""
    told = await door.client.get("/accounts", headers={"X-Local-Token": TOKEN})
    assert [account["doorKey"] for account in told.json()["accounts"] if account["name"] == "main"] == [True]
    door.relay.ways = {name: DoorWay(account="main", door=way.door) for name, way in door.relay.ways.items()}
    told = await door.client.get("/accounts", headers={"X-Local-Token": TOKEN})
    assert not any(account["doorKey"] for account in told.json()["accounts"])
