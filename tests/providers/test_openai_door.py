"""
The Videos API's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import FileReply, FormBody, Look, Page, Part, Phase, Wish
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.messages import FormFile
from vidrelay.core.task import Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openai.adapter import make as make_adapter
from vidrelay.providers.openai.door import make
from vidrelay.testing.doors import ASSET, DATA_URI, FILM, SOUND, Create, DoorContract, DoorSheet, call_door, view_of
from vidrelay.testing.records import make_task

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
        media=(
            (
                Create(
                    path="/v1/videos", body=FormBody(fields=TEXT.fields, files=(replace(PART, media_type="video/mp4"),))
                ),
                FILM,
                FormFile(name="input_reference", asset=ASSET.id, filename="reference-1.mp4", media_type="video/mp4"),
            ),
            (
                Create(path="/v1/videos", body=FormBody(fields=TEXT.fields, files=(replace(PART, name="audio"),))),
                SOUND,
                FormFile(name="audio", asset=ASSET.id, filename="reference-1.wav", media_type="audio/wav"),
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


@pytest.mark.parametrize(("field", "inner"), [("image_url", "https://pictures.test/a.png"), ("file_id", "file-1")])
def test_an_object_in_a_form_is_one_again(field: str, inner: str) -> None:
    """The SDK spells such an object as `input_reference[file_id]`; a server that is told JSON wants the object."""
    form = FormBody(fields=(*TEXT.fields, (f"input_reference[{field}]", inner)))
    sent = call_door(DOOR, "POST", "/v1/videos", form).wishes[0].new.prepared.parameters
    assert sent["input_reference"] == {field: inner}
    assert not [name for name in sent if "[" in name]


def test_the_oldest_come_first_where_they_are_asked_for_first() -> None:
    """Page after page, each clip stands in the list once."""
    history = [view_of(State.DONE, task=make_task(id=f"task-{number}")) for number in range(250, 0, -1)]

    def grant(wish: Wish) -> Any:
        if isinstance(wish, Look):
            return history[0]
        assert isinstance(wish, Page)
        older = [view.task.id for view in history].index(wish.after) + 1 if wish.after else 0
        return history[older : older + wish.limit]

    seen: list[str] = []
    while True:
        query = {"order": "asc", "limit": "60", **({"after": seen[-1]} if seen else {})}
        told = call_door(DOOR, "GET", "/v1/videos", query=query, grant=grant).json
        seen += [video["id"] for video in told["data"]]
        if not told["has_more"]:
            break
    assert seen == [f"task-{number}" for number in range(1, 251)]


@pytest.mark.parametrize("variant", ["thumbnail", "spritesheet", "16"])
def test_what_is_not_the_clip_is_not_given_as_it(variant: str) -> None:
    """A film that is called a thumbnail would be stored as one."""
    with pytest.raises(InvalidRequest) as refused:
        call_door(DOOR, "GET", "/v1/videos/x/content", query={"variant": variant})
    assert refused.value.field == "variant"


@pytest.mark.parametrize(("variant", "index"), [({}, 0), ({"variant": "video"}, 0), ({"variant": "2"}, 2)])
def test_a_variant_is_the_clip_or_its_number(variant: dict[str, str], index: int) -> None:
    """OpenAI's word for the clip, SGLang's number of one of several, or neither."""
    asked = call_door(DOOR, "GET", "/v1/videos/x/content", query=variant)
    assert asked.reply == FileReply(task_id="x", index=index)
