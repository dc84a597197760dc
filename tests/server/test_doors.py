"""
Doors as the server opens them: bodies of every kind, headers that count, errors in the provider's shape, addresses.
"""

import base64
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fake_relay import FakeRelay
from loopback import Served, app_of, call_app, serving

from vidrelay.core.adapter import asset_parameter
from vidrelay.core.lifecycle import Accepted, Lost, Started
from vidrelay.core.task import Problem
from vidrelay.providers.openai.door import make
from vidrelay.scheduler.face import DoorWay, Sender
from vidrelay.server.lifting import LONG

PNG = b"\x89PNG" + os.urandom(150_000)
SMALL = b"\x89PNG" + bytes(200)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """A relay with the Videos API's door, by its provider's name and its account's."""
    relay = FakeRelay(tmp_path)
    relay.ways = {name: DoorWay(account="main", door=make(None)) for name in ("openai", "main")}
    async with serving(relay) as served:
        yield served


def with_picture(data: bytes, **more: str) -> dict[str, object]:
    uri = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"prompt": "a boat", "input_reference": {"image_url": uri}, **more}


@pytest.mark.parametrize("data", [SMALL, PNG], ids=["short", "long"])
async def test_a_picture_in_line_is_kept_by_its_bytes(door, data):
    """Base64 in JSON becomes the picture itself, however long it is, and the parameters name it by its hash."""
    answer = await door.client.post("/openai/v1/videos", json=with_picture(data))
    assert answer.status_code == 200
    prepared, pictures = door.relay.prepared[0]
    assert door.relay.assets == [data]
    (asset,) = pictures.values()
    assert prepared.parameters["input_reference"] == asset_parameter(asset)


@pytest.mark.parametrize("start", ["DATA:image/png;base64,", "data:Image/PNG;BASE64,", ""])
async def test_a_pictures_address_is_known_in_capitals_too(door, start):
    """A scheme has no case, and neither has the word for how it is written."""
    uri = start + base64.b64encode(SMALL).decode()
    answer = await door.client.post("/openai/v1/videos", json={"prompt": "a", "input_reference": {"image_url": uri}})
    assert (answer.status_code, door.relay.assets) == (200, [SMALL])


@pytest.mark.parametrize("escape", ["\\/", "\\n"])
async def test_a_long_picture_may_be_written_with_escapes(door, escape):
    """Some JSON writers escape every slash, and some base64 writers break their lines."""
    text = base64.b64encode(PNG).decode()
    text = (
        text.replace("/", "\\/")
        if escape == "\\/"
        else "\\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    )
    body = f'{{"prompt": "a", "input_reference": {{"image_url": "data:image\\/png;base64,{text}"}}}}'
    answer = await door.client.post("/openai/v1/videos", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert door.relay.assets == [PNG]


async def test_the_same_picture_in_a_form_and_in_line_is_one(door):
    """Whichever way it comes, it is known by its content."""
    await door.client.post("/openai/v1/videos", json=with_picture(PNG))
    await door.client.post(
        "/openai/v1/videos", data={"prompt": "another"}, files={"input_reference": ("a.png", PNG, "image/png")}
    )
    first, second = (set(pictures) for _, pictures in door.relay.prepared)
    assert first == second


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"prompt": "a", "prompt": "b"}', 400),
        (b"[]", 422),
        (b'{"prompt": "a", "x": {"$asset": "sha256:00"}}', 422),
        (json.dumps({"prompt": "a", "note": "x" * (LONG + 1)}).encode(), 413),
        (json.dumps({"prompt": "a", "x": [{"n" * (LONG + 1): 1}]}).encode(), 413),
        (json.dumps({"prompt": "a", "input_reference": {"image_url": "data:image/png;base64,%%%"}}).encode(), 415),
        (b'{"prompt": "a", "x": "' + b"y" * (LONG + 9), 400),
    ],
)
async def test_what_cannot_be_read_is_refused_in_the_providers_shape(door, body, status):
    """The SDK gets its own kind of error, which tells it not to ask again; nothing is made."""
    answer = await door.client.post("/openai/v1/videos", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-should-retry"] == "false"
    assert not door.relay.tasks


async def test_a_relay_that_stops_is_asked_again(door):
    """What is not final does not say so."""
    door.stop.set()
    app = app_of(door.relay, 50_000, door.clock, door.stop, [])
    status, body = await call_app(app, "POST", "/openai/v1/videos", b'{"prompt": "a"}')
    assert (status, json.loads(body)["error"]["code"]) == (503, "shutting_down")
    assert not door.relay.tasks


@pytest.mark.parametrize("name", ["openai", "main"])
async def test_a_door_is_found_by_its_provider_and_by_its_account(door, name):
    """Both lead to the same tasks."""
    made = await door.client.post(f"/{name}/v1/videos", json={"prompt": "a"})
    assert (await door.client.get(f"/openai/v1/videos/{made.json()['id']}")).json()["status"] == "queued"


async def test_nothing_is_answered_without_the_token(door):
    """The one 403 stands before every door, known or not."""
    told = set()
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{door.port}", trust_env=False, verify=False) as stranger:
        for path in ("/openai/v1/videos", "/openai", "/nowhere/v1/videos", "/file/t1/0/" + "0" * 64 + ".mp4"):
            for headers in ({}, {"Authorization": "Bearer vrl_wrong"}):
                answer = await stranger.get(path, headers=headers)
                told.add((answer.status_code, answer.content))
    assert len(told) == 1
    assert next(iter(told))[0] == 403


@pytest.mark.parametrize("path", ["/openai", "/openai/", "/openai/v2/videos", "/openai/v1/videos/t1/remix"])
async def test_a_path_that_no_door_knows_is_told_in_its_shape(door, path):
    """404 as the SDK reads it."""
    answer = await door.client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def test_a_method_that_a_path_does_not_take_is_told(door):
    """405, and no task."""
    assert (await door.client.put("/openai/v1/videos", json={"prompt": "a"})).status_code == 405


async def test_headers_of_a_resend_and_of_another_wish_are_heard(door):
    """What tells a resend from a new wish reaches the relay, and the SDK is named by its User-Agent."""
    await door.client.post(
        "/openai/v1/videos",
        json={"prompt": "a"},
        headers={
            "Idempotency-Key": "k1",
            "X-Client-Request-Id": "r1",
            "x-stainless-retry-count": "2",
            "User-Agent": "OpenAI/Python 3.57.0",
            "X-Vidrelay-Force": "1",
        },
    )
    request, sender = door.relay.submitted[0]
    assert sender == Sender(app="OpenAI/Python", client_key="k1", request_id="r1", resend=True)
    assert request.force_refresh


async def test_another_accounts_task_is_not_there(door):
    """A door shows the tasks of its own account only."""
    door.relay.make(account="other")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        answer = await door.client.request(method, f"/openai/v1/videos/t1{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_task")


async def test_content_comes_in_ranges_from_the_file(door):
    """The clip is the local file, whole or in part."""
    door.relay.make()
    door.relay.finish("t1", b"0123456789")
    whole = await door.client.get("/openai/v1/videos/t1/content")
    assert (whole.status_code, whole.content, whole.headers["content-type"]) == (200, b"0123456789", "video/mp4")
    part = await door.client.get("/openai/v1/videos/t1/content", headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")


async def test_content_that_is_not_there_yet_or_any_more_is_told(door):
    """409 and 404, in the provider's shape."""
    door.relay.make()
    assert (await door.client.get("/openai/v1/videos/t1/content")).status_code == 409
    door.relay.finish("t1")
    await door.client.delete("/openai/v1/videos/t1")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        gone = await door.client.request(method, f"/openai/v1/videos/t1{path}")
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "unknown_task")


async def test_an_uncertain_task_reads_as_under_way_until_it_is_stale(door):
    """An SDK must not make a second one; after hours it is told, with the way out."""
    door.relay.make()
    lost = Lost(problem=Problem(code="answer_lost", title="Lost", detail="It may be charged."), place_until=None)
    door.relay.move("t1", Started(submission_key="k"), lost)
    assert (await door.client.get("/openai/v1/videos/t1")).json()["status"] == "queued"
    door.relay.stale.add("t1")
    shown = (await door.client.get("/openai/v1/videos/t1")).json()
    assert shown["status"] == "failed"
    assert shown["error"]["code"] in ("answer_lost", "uncertain")


async def test_delete_stops_what_runs(door):
    """A DELETE of a clip that is not there yet is a wish to cancel."""
    door.relay.make()
    door.relay.move("t1", Started(submission_key="k"), Accepted(remote_id="r1"))
    assert (await door.client.delete("/openai/v1/videos/t1")).json()["deleted"]
    assert door.relay.tasks["t1"].cancel_wanted


async def test_a_large_picture_is_not_held_in_memory(door):
    """Neither in line nor in a form: what the relay keeps of the body meanwhile is a small part of it."""
    import tracemalloc

    data = b"\x89PNG" + os.urandom(8 * 1024 * 1024)
    taken: list[int] = []

    async def add_asset(chunks, *, account):
        size, first = 0, b""
        async for chunk in chunks:
            size, first = size + len(chunk), first or chunk[:64]
        taken.append(size)
        return door.relay._asset(first)

    door.relay.add_asset = add_asset
    body = json.dumps(with_picture(data)).encode()
    boundary = b"b0undary"
    form = (
        b"--" + boundary + b'\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na\r\n'
        b"--" + boundary + b'\r\nContent-Disposition: form-data; name="input_reference"; filename="a.png"\r\n'
        b"Content-Type: image/png\r\n\r\n" + data + b"\r\n--" + boundary + b"--\r\n"
    )
    kinds = {"application/json": body, f"multipart/form-data; boundary={boundary.decode()}": form}

    async def pieces(content):
        for at in range(0, len(content), 65536):
            yield content[at : at + 65536]

    for kind, content in kinds.items():
        tracemalloc.start()
        answer = await door.client.post(
            "/openai/v1/videos", content=pieces(content), headers={"content-type": kind}, timeout=60
        )
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert answer.status_code == 200
        assert peak < 6 * 1024 * 1024, f"{kind}: {peak} bytes"
    assert taken == [len(data)] * 2
