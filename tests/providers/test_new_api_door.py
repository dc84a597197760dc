"""
A gateway's door: what is its own, beside what holds for every door.
"""

from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from vidrelay.core.door import FileReply, FormBody, Inlined, Part, Phase
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.new_api.adapter import make as make_adapter
from vidrelay.providers.new_api.door import make
from vidrelay.testing.doors import DATA_URI, Create, DoorContract, DoorSheet, call_door, view_of

DOOR = make(None)
VIDEOS, GENERATIONS = "/v1/videos", "/v1/video/generations"
PART = Part(number=0, name="input_reference", filename="a.png", media_type="image/png", size_bytes=900)
SORA = FormBody(fields=(("prompt", "a boat"), ("model", "sora-2"), ("seconds", "8"), ("size", "1280x720")))
KLING = FormBody(fields=(("prompt", "a boat"), ("model", "kling-v2-6"), ("seconds", "5"), ("size", "1280x720")))
JSON = {"model": "kling-v2-6", "prompt": "a boat", "duration": 5, "size": "1280x720"}
SHAPE: dict[str, Any] = {"prompt": "a boat", "aspect_ratio": "16:9", "resolution": "720p"}
OF_SORA = Request(model_version="sora-2", duration=8, **SHAPE)
OF_KLING = Request(model_version="kling-v2-6", duration=5, **SHAPE)
CREATES = (
    Create(path=VIDEOS, body=SORA, same=OF_SORA),
    Create(path=VIDEOS, body=FormBody(fields=SORA.fields, files=(PART,)), same=OF_SORA, picture="reference"),
    Create(path=VIDEOS, body=KLING, same=OF_KLING),
    Create(path=VIDEOS, body=FormBody(fields=KLING.fields, files=(PART,)), same=OF_KLING, picture="first_frame"),
    Create(path=VIDEOS, body={**JSON, "image": DATA_URI}, same=OF_KLING, picture="first_frame"),
    Create(path=GENERATIONS, body=JSON, same=OF_KLING),
    Create(
        path=GENERATIONS,
        body={**JSON, "metadata": {"negative_prompt": "rain"}},
        same=Request(model_version="kling-v2-6", duration=5, negative_prompt="rain", **SHAPE),
    ),
)


class TestOpenAiPath(DoorContract):
    """What holds for every door, at the path that OpenAI's SDK asks."""

    sheet: ClassVar[DoorSheet] = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url="https://host.test/v1", now=lambda: datetime.now(UTC))),
        creates=CREATES,
        status=f"{VIDEOS}/{{id}}",
        content=f"{VIDEOS}/{{id}}/content",
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


class TestOwnPath(DoorContract):
    """What holds for every door, at the gateway's own path."""

    sheet: ClassVar[DoorSheet] = DoorSheet(
        door=DOOR,
        adapter=TestOpenAiPath.sheet.adapter,
        creates=CREATES[-2:],
        status=f"{GENERATIONS}/{{id}}",
        word=lambda said: said["data"]["status"],
        words={
            Phase.WAITING: "QUEUED",
            Phase.WORKING: "IN_PROGRESS",
            Phase.DONE: "SUCCESS",
            Phase.FAILED: "FAILURE",
            Phase.CANCELLED: "FAILURE",
            Phase.EXPIRED: "FAILURE",
        },
    )


def sent(body: Any) -> Any:
    """The parameters that a create becomes."""
    return call_door(DOOR, "POST", VIDEOS, body).wishes[0].new.prepared.parameters


def test_what_the_gateway_reads_of_a_form_alone_is_said_in_json() -> None:
    """Of a model without forms, it takes what it does not know for metadata, and numbers for numbers."""
    fields = (*KLING.fields, ("negative_prompt", "rain"), ("cfg_scale", "0.5"), ("fps", "24"), ("mode", "pro"))
    assert sent(FormBody(fields=fields)) == {
        "prompt": "a boat",
        "model": "kling-v2-6",
        "size": "1280x720",
        "duration": 5,
        "mode": "pro",
        "metadata": {"negative_prompt": "rain", "cfg_scale": 0.5, "fps": 24},
    }


def test_json_stays_as_it_came() -> None:
    """The gateway takes no length of `seconds` in JSON, and so is none made of it."""
    body = {"model": "kling-v2-6", "prompt": "a", "seconds": "5", "image": "https://x.test/a.png", "other": [1]}
    assert sent(body) == body


def test_several_pictures_are_a_list() -> None:
    """Each of them is taken in, whether it is a form's or JSON's."""
    assert sent({**JSON, "images": [DATA_URI, "https://x.test/b.png"]})["images"] == [
        Inlined(text=DATA_URI),
        "https://x.test/b.png",
    ]
    fields = (*KLING.fields, ("images", DATA_URI), ("images", "https://x.test/b.png"))
    assert sent(FormBody(fields=fields))["images"] == [Inlined(text=DATA_URI), "https://x.test/b.png"]


def test_a_data_uri_in_openais_own_field_is_the_picture() -> None:
    """The SDK spells an object in a form as `input_reference[image_url]`."""
    body = FormBody(fields=(*SORA.fields, ("input_reference[image_url]", DATA_URI)))
    assert sent(body)["input_reference"] == Inlined(text=DATA_URI)


def test_pictures_in_two_places_are_refused() -> None:
    """One of them would be lost."""
    with pytest.raises(InvalidRequest):
        sent({**JSON, "image": DATA_URI, "input_reference": DATA_URI})


def test_what_is_not_there_has_the_gateways_own_status() -> None:
    """A task is told with 400, its content with 404."""

    def nobody(_: Any) -> Any:
        raise UnknownTask

    for grant in (nobody, lambda _: view_of(State.DONE, gone=True)):
        for path in (VIDEOS, GENERATIONS):
            called = call_door(DOOR, "GET", f"{path}/x", grant=grant)
            assert (called.reply.status, called.json["code"]) == (400, "task_not_exist")
        assert call_door(DOOR, "GET", f"{VIDEOS}/x/content", grant=grant).reply.status == 404


def test_content_is_refused_until_it_is_there() -> None:
    """With the status that clients of a gateway know."""
    called = call_door(DOOR, "GET", f"{VIDEOS}/x/content", grant=lambda _: view_of(State.RUNNING))
    assert (called.reply.status, called.json["error"]["type"]) == (400, "invalid_request_error")
    done = call_door(DOOR, "GET", f"{VIDEOS}/x/content", grant=lambda _: view_of(State.DONE))
    assert isinstance(done.reply, FileReply)


def test_a_clip_and_a_failure_are_told_at_both_paths() -> None:
    """Each has its own place for the address and for the reason."""
    done, failed = view_of(State.DONE), view_of(State.FAILED)

    def said(path: str, view: Any) -> Any:
        return call_door(DOOR, "GET", f"{path}/x", grant=lambda _: view).json

    assert said(VIDEOS, done)["metadata"] == {"url": done.files[0]}
    assert said(GENERATIONS, done)["data"]["result_url"] == done.files[0]
    assert said(VIDEOS, failed)["error"]["message"] == failed.problem.detail
    assert said(GENERATIONS, failed)["data"]["fail_reason"] == failed.problem.detail
