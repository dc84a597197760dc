"""
The Videos API's door: what is its own, beside what holds for every door.
"""

from datetime import UTC, datetime

import pytest

from vidrelay.core.door import FormBody, Part, Phase
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openai.adapter import make as make_adapter
from vidrelay.providers.openai.door import make
from vidrelay.testing.doors import DATA_URI, Create, DoorContract, DoorSheet, call_door, view_of

DOOR = make(None)
TEXT = FormBody(fields=(("prompt", "a boat"), ("model", "sora-2"), ("seconds", "8"), ("size", "1280x720")))
BOAT = Request(prompt="a boat", model_version="sora-2", aspect_ratio="16:9", resolution="720p", duration=8)
PART = Part(number=0, name="input_reference", filename="a.png", media_type="image/png", size_bytes=900)


class TestOpenAiDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url="https://host.test/v1", now=lambda: datetime.now(UTC))),
        creates=(
            Create(path="/v1/videos", body=TEXT, same=BOAT),
            Create(path="/v1/videos", body=FormBody(fields=TEXT.fields, files=(PART,)), same=BOAT, picture="reference"),
            Create(
                path="/v1/videos",
                body={"prompt": "a boat", "input_reference": {"image_url": DATA_URI}},
                same=Request(prompt="a boat"),
                picture="first_frame",
            ),
        ),
        status="/v1/videos/{id}",
        content="/v1/videos/{id}/content",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "queued",
            Phase.WORKING: "in_progress",
            Phase.DONE: "completed",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "failed",
            Phase.EXPIRED: "failed",
        },
    )


def test_an_address_of_a_picture_stays_an_address() -> None:
    """What is not fetched here counts, and is sent, by its text."""
    called = call_door(
        DOOR, "POST", "/v1/videos", {"prompt": "a", "input_reference": {"image_url": "https://pictures.test/a.png"}}
    )
    sent = called.wishes[0].new.prepared.parameters
    assert sent["input_reference"] == {"image_url": "https://pictures.test/a.png"}


def test_the_sdk_is_told_to_ask_twice_a_second() -> None:
    """Its own second is longer than it must be where nothing leaves the machine."""
    called = call_door(DOOR, "GET", "/v1/videos/x")
    assert called.reply.headers["openai-poll-after-ms"] == "500"


def test_a_clip_that_was_deleted_is_not_there() -> None:
    """After DELETE the SDK must see a 404, and lists are without it."""
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", "/v1/videos/x", grant=lambda _: view_of(State.DONE, gone=True))
    pages = [view_of(State.DONE, gone=True), view_of(State.DONE)]
    assert len(call_door(DOOR, "GET", "/v1/videos", grant=lambda _: pages).json["data"]) == 1
