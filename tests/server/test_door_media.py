"""
Films and sounds that come through a door: in line, in a form, uploaded; and what only says that it is one.
"""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_relay import FakeRelay
from loopback import Served, serving

from vidrelay.core.adapter import asset_parameter
from vidrelay.providers.openai.door import make as make_openai
from vidrelay.providers.runway.door import make as make_runway
from vidrelay.scheduler.face import DoorWay
from vidrelay.server.lifting import LONG
from vidrelay.testing.samples import film, movie, sound

PATH = "/runway/v1/video_to_video"
LONG_FILM = movie(LONG * 2)
PNG = b"\x89PNG" + bytes(200)
MEDIA = {
    "film": (film(), "video/mp4"),
    "long film": (LONG_FILM, "video/mp4"),
    "sound": (sound(), "audio/wav"),
    "long sound": (sound(10.0), "audio/wav"),
}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """
    A relay with the doors of Runway and of the Videos API, whose providers take films and sounds.
    """
    relay = FakeRelay(tmp_path)
    relay.ways = {
        "runway": DoorWay(account="main", door=make_runway(None)),
        "openai": DoorWay(account="main", door=make_openai(None)),
    }
    async with serving(relay) as served:
        yield served


def uri(data: bytes, kind: str = "video/mp4") -> str:
    """
    A data URI, whatever it says it is.
    """
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def asking(address: str) -> dict[str, str]:
    """
    A create call that goes on from that film.
    """
    return {"model": "aleph2", "promptText": "a boat", "videoUri": address}


@pytest.mark.parametrize(("data", "kind"), MEDIA.values(), ids=MEDIA)
@pytest.mark.parametrize("label", ["its own", "application/octet-stream", ""])
async def test_a_film_or_a_sound_in_line_is_kept_by_its_bytes(door: Served, data: bytes, kind: str, label: str) -> None:
    """
    However long it is, and though its SDK has no name for it.
    """
    told = kind if label == "its own" else label
    answer = await door.client.post(PATH, json=asking(uri(data, told)))
    assert answer.status_code == 200
    prepared, kept = door.relay.prepared[0]
    (asset,) = kept.values()
    assert door.relay.assets == [data]
    assert prepared.parameters["videoUri"] == asset_parameter(asset)
    assert asset.media_type == kind


@pytest.mark.parametrize("size", [600, LONG * 9], ids=["short", "long"])
@pytest.mark.parametrize("lead", range(4))
@pytest.mark.parametrize("signs", [r"%2B %2F %3D", r"%2b %2f %3d", r"\u002B \u002F \u003D", r"\u002b / ="])
async def test_base64_may_be_written_with_escapes(door: Served, signs: str, lead: int, size: int) -> None:
    """
    As browsers write it in an address, and some programs in JSON; an escape may lie across two pieces of a long one.
    """
    # Nothing but escapes lies where one piece ends, whatever stands before.
    length = size + 1 + lead % 2
    data = movie(length)[:99] + (b"\xfb\xef\xff" * size)[: length - 99]
    text = base64.b64encode(data).decode()
    for sign, written in zip("+/=", signs.split(), strict=True):
        text = text.replace(sign, written)
    body = f'{{"model": "aleph2", "videoUri": "data:video/mp4;{"x" * lead};base64,{text}"}}'
    answer = await door.client.post(PATH, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, door.relay.assets) == (200, [data])


@pytest.mark.parametrize("end", ["%", "%2", "%41", "%00", "%252B", "\\\\", "\\u0041", "\\\\u002B"])
async def test_another_escape_is_no_base64(door: Served, end: str) -> None:
    """
    Nor is one that is not whole, in the midst of a long text or at its end.
    """
    text = base64.b64encode(LONG_FILM + bytes(-len(LONG_FILM) % 3)).decode()
    for long in (text + end, text[:4000] + end + text[4000:]):
        body = f'{{"model": "aleph2", "videoUri": "data:video/mp4;base64,{long}"}}'
        answer = await door.client.post(PATH, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 415
    assert not door.relay.assets


async def test_a_label_may_say_more_than_the_kind(door: Served) -> None:
    """
    As a browser's recorder writes it.
    """
    answer = await door.client.post(PATH, json=asking(uri(LONG_FILM, "Video/MP4;codecs=avc1.42E01E")))
    assert (answer.status_code, door.relay.assets) == (200, [LONG_FILM])


async def test_one_film_is_one_whichever_way_it_came(door: Served) -> None:
    """
    In a form and in line of another call, the task's parameters name the same asset.
    """
    form = {"prompt": (None, "a"), "input_reference": ("a.bin", film(), "application/octet-stream")}
    await door.client.post("/openai/v1/videos", files=form)
    await door.client.post("/openai/v1/videos", json={"prompt": "a", "input_reference": {"image_url": uri(film())}})
    first, second = (prepared.parameters for prepared, _ in door.relay.prepared)
    assert first == second
    assert first["input_reference"]["mediaType"] == "video/mp4"


async def test_an_upload_of_a_film_is_meant_by_its_address(door: Served) -> None:
    """
    The SDK sends the form without its key, and names the film in a later create.
    """
    told = (await door.client.post("/runway/v1/uploads", json={"filename": "a.mp4", "type": "ephemeral"})).json()
    sent = await door.client.post(told["uploadUrl"], files={"file": ("a.mp4", LONG_FILM, "video/mp4")})
    assert sent.status_code == 204
    assert (await door.client.post(PATH, json=asking(told["runwayUri"]))).status_code == 200
    assert door.relay.prepared[0][0].parameters["videoUri"]["mediaType"] == "video/mp4"


@pytest.mark.parametrize("label", ["video/mp4", "audio/wav"])
async def test_a_label_that_lies_is_not_believed(door: Served, label: str) -> None:
    """
    A picture that is called a film is a picture.
    """
    answer = await door.client.post(PATH, json=asking(uri(PNG, label)))
    assert answer.status_code == 200
    assert door.relay.prepared[0][0].parameters["videoUri"]["mediaType"] == "image/png"


@pytest.mark.parametrize("size", [100, LONG * 2], ids=["short", "long"])
@pytest.mark.parametrize("label", ["video/mp4", "audio/mpeg", "image/png"])
async def test_what_only_says_that_it_is_a_film_is_a_415(door: Served, label: str, size: int) -> None:
    """
    A page, or bytes of no kind, is not sent on under a film's name.
    """
    for content in (b"<html>" * size, bytes(range(256)) * (size // 256 + 1)):
        answer = await door.client.post(PATH, json=asking(uri(content, label)))
        assert answer.status_code == 415
    assert not door.relay.prepared


@pytest.mark.parametrize(
    "text",
    [
        "data:text/html;base64," + "A" * LONG * 2,
        "data:application/octet-stream;base64," + "A" * LONG * 2,
        "data:video/mp4," + "A" * LONG * 2,
        "video/mp4;base64," + "A" * LONG * 2,
    ],
    ids=["a page", "bytes of no kind", "no base64", "no address"],
)
async def test_a_long_text_that_is_no_media_stays_a_413(door: Served, text: str) -> None:
    """
    What begins as nothing that is taken is a text, and bounded as one.
    """
    answer = await door.client.post(PATH, json=asking(text))
    assert answer.status_code == 413
    assert not door.relay.assets


@pytest.mark.parametrize("way", ["in line", "long", "form"])
async def test_a_provider_that_takes_none_is_named(door: Served, way: str) -> None:
    """
    The call is refused here, as final, in words that say what to give instead.
    """
    door.relay.media = {"audio": 10_000_000}
    if way == "form":
        form = {"prompt": (None, "a"), "input_reference": ("a.mp4", film(), "video/mp4")}
        answer = await door.client.post("/openai/v1/videos", files=form)
    else:
        answer = await door.client.post(PATH, json=asking(uri(LONG_FILM if way == "long" else film())))
    assert (answer.status_code, answer.headers["x-should-retry"]) == (422, "false")
    assert "takes no film as bytes" in answer.text
    assert "https address" in answer.text
    assert not door.relay.prepared


async def test_one_over_the_providers_limit_is_a_413(door: Served) -> None:
    """
    Before the provider is asked.
    """
    door.relay.media = {"video": len(LONG_FILM) - 1}
    answer = await door.client.post(PATH, json=asking(uri(LONG_FILM)))
    assert answer.status_code == 413
    assert str(len(LONG_FILM) - 1) in answer.text
    assert not door.relay.prepared


async def test_the_native_upload_takes_pictures_alone(door: Served) -> None:
    """
    `POST /assets` is for references, which are pictures.
    """
    answer = await door.client.post("/assets", content=film(), headers={"content-type": "application/octet-stream"})
    assert answer.status_code == 415
