"""
Bodies of doors that are made to cost memory, time or descriptors, or to be read as something else than they are.
"""

import asyncio
import base64
import os
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_relay import FakeRelay
from loopback import Served, serving

from vidrelay.providers.openai.door import make
from vidrelay.scheduler.face import DoorWay
from vidrelay.server.lifting import LONG, Lifted, lift

PATH = "/openai/v1/videos"
JSON = {"content-type": "application/json"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Served]:
    """
    A relay with the Videos API's door.
    """
    relay = FakeRelay(tmp_path)
    relay.ways = {"openai": DoorWay(account="main", door=make(None))}
    async with serving(relay) as served:
        yield served


def form(*fields: tuple[str, bytes], charset: str = "") -> dict[str, object]:
    """
    A form of text fields, as `client.post` takes it.
    """
    parts = (f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value for name, value in fields)
    return {
        "content": b"\r\n".join((*parts, b"--b--\r\n")),
        "headers": {"content-type": f"multipart/form-data; boundary=b{charset and f'; charset={charset}'}"},
    }


def descriptors() -> int:
    """
    How many this process has open; none where the system does not tell.
    """
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "undefined", "utf-16", "utf-7", "latin-1"])
async def test_a_form_is_read_as_utf_8_alone(door: Served, charset: str) -> None:
    """
    Whatever else its type names is refused before it is read: some codecs take for ever, or make what is no text.
    """
    answer = await door.client.post(PATH, **form(("prompt", b"a boat \\ud800"), charset=charset))
    assert answer.status_code == 415
    assert (await door.client.post(PATH, **form(("prompt", b"a boat"), charset="UTF-8"))).status_code == 200
    assert len(door.relay.submitted) == 1


async def test_a_form_brings_no_text_that_cannot_be_stored(door: Served) -> None:
    """
    As JSON does not.
    """
    for fields in ((("prompt", b"a\0b"),), (("prompt", b"a"), ("x\0y", b"b"))):
        assert (await door.client.post(PATH, **form(*fields))).status_code == 400
    assert not door.relay.submitted


@pytest.mark.parametrize(
    "fields",
    [
        [("prompt", b"a"), ("other", b"x" * (LONG + 1))],
        [("prompt", b"a"), *((f"f{number}", b"x" * 60_000) for number in range(20))],
    ],
    ids=["one", "all"],
)
async def test_a_forms_texts_are_bounded_as_those_of_json_are(door: Served, fields: list[tuple[str, bytes]]) -> None:
    """
    Each to 64 KiB where it is no picture, and all to 1 MiB: they become a task's parameters.
    """
    answer = await door.client.post(PATH, **form(*fields))
    assert answer.status_code == 413
    assert not door.relay.submitted


async def test_a_long_name_is_not_sent_on_as_another(door: Served) -> None:
    """
    What stands for a text that was lifted out of the body never reaches a task, as a name either.
    """
    body = b'{"prompt": "a", "' + b"k" * (LONG + 1) + b'": 1}'
    answer = await door.client.post(PATH, content=body, headers=JSON)
    assert answer.status_code == 413
    assert "vidrelay-lifted" not in answer.text
    assert not door.relay.submitted


async def test_two_long_pictures_in_one_body_are_each_their_own(door: Served) -> None:
    """
    They lie in one file, one behind another, and come as they were, whichever is read first and however often.
    """
    pictures = [b"\x89PNG" + os.urandom(size) for size in (2_000_000, 100_000, 300_001)]
    texts = [f'"{base64.b64encode(data).decode()}"' for data in pictures]
    body = f'{{"a": {texts[0]}, "b": "short", "c": {texts[1]}, "d": {texts[2]}}}'.encode()
    lifted = Lifted("secret")

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 65_521):
            yield body[at : at + 65_521]

    rest = await lift(chunks(), lifted, limit=10_000)
    assert rest.count(b"vidrelay-lifted-secret-") == 3
    for number in (2, 0, 1, 2):
        text = lifted.find(f"x-vidrelay-lifted-secret-{number}")
        assert text is not None
        text.rewind()
        assert f'"{text.read(10_000_000).decode()}"' == texts[number]
        assert text.read(10) == b""
    lifted.close()


async def test_very_many_long_texts_take_no_more_memory_than_one(door: Served) -> None:
    """
    Nor a descriptor each.
    """
    text = b'"' + b"A" * (LONG + 1) + b'",'
    before, most = descriptors(), 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal most
        yield b"["
        for _ in range(300):
            yield text
            most = max(most, descriptors() - before)
        yield b"1]"

    lifted = Lifted("secret")
    tracemalloc.start()
    await lift(chunks(), lifted, limit=100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    lifted.close()
    assert peak < 5_000_000
    assert most <= 2


async def test_very_many_escapes_are_read_as_quickly_as_any() -> None:
    """
    One in every two bytes: what is read of them in a second is more than comes in one.
    """

    async def chunks() -> AsyncIterator[bytes]:
        yield b'["'
        for _ in range(64):
            yield b"\\/" * 32_768
            yield b"\\"
            yield b"/"
        yield b'"]'

    lifted = Lifted("secret")
    began = time.process_time()
    await lift(chunks(), lifted, limit=100_000)
    took = time.process_time() - began
    text = lifted.find("vidrelay-lifted-secret-0")
    assert text is not None
    text.rewind()
    assert await asyncio.to_thread(text.read, 10_000_000) == b"\\/" * (64 * 32_769)
    lifted.close()
    assert took < 1.5


@pytest.mark.parametrize("is_form", [False, True])
async def test_a_full_disk_is_told_as_one(
    door: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_form: bool
) -> None:
    """
    A body that cannot be kept while it is read is asked for again later, in the provider's shape.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    if is_form:
        files = {"input_reference": ("a.png", b"\x89PNG" + bytes(2_000_000), "image/png")}
        answer = await door.client.post(PATH, data={"prompt": "a"}, files=files)
    else:
        answer = await door.client.post(PATH, content=b'{"x": "' + b"A" * 2_000_000 + b'"}', headers=JSON)
    assert answer.status_code == 507
    assert answer.json()["error"]["code"] == "disk_full"
