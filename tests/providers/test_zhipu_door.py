"""
Zhipu's and Z.ai's door: what is its own, beside what holds for every door.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import DoorCall, Inlined, Phase
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Problem, Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.zhipu.adapter import make as make_adapter
from vidrelay.providers.zhipu.door import make
from vidrelay.testing.doors import BASE, DATA_URI, Create, DoorContract, DoorSheet, call_door, view_of
from vidrelay.testing.records import make_task

DOOR = make(None)
CREATE, RESULT = "/api/paas/v4/videos/generations", "/api/paas/v4/async-result/{id}"
UNSET: dict[str, Any] = dict.fromkeys(("image_url", "quality", "fps", "style", "request_id", "user_id"))
"""What the SDKs send of what was not given: null."""
BODY = {**UNSET, "model": "cogvideox-3", "prompt": "a boat", "size": "1280x720", "duration": 5}
BOAT = Request(prompt="a boat", model_version="cogvideox-3", aspect_ratio="16:9", resolution="720p", duration=5)


class TestZhipuDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(path=CREATE, body=BODY, same=BOAT),
            Create(path=CREATE, body={**BODY, "image_url": DATA_URI}, same=BOAT, picture="first_frame"),
            Create(
                path=CREATE,
                body={"model": "vidu2-reference", "prompt": "a boat", "aspect_ratio": "1:1", "image_url": [DATA_URI]},
                same=Request(prompt="a boat", model_version="vidu2-reference", aspect_ratio="1:1"),
                picture="reference",
            ),
        ),
        status=RESULT,
        word=lambda said: said["task_status"],
        words={
            Phase.WAITING: "PROCESSING",
            Phase.WORKING: "PROCESSING",
            Phase.DONE: "SUCCESS",
            Phase.FAILED: "FAIL",
            Phase.CANCELLED: "FAIL",
            Phase.EXPIRED: "FAIL",
        },
    )


def result(view: Any) -> Any:
    """What is said of that task."""
    return call_door(DOOR, "GET", RESULT.format(id="x"), grant=lambda _: view).json


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://x.test/a.png", "https://x.test/a.png"),
        ("iVBORw0KGgo=", Inlined(text="iVBORw0KGgo=")),
        (["https://x.test/a.png", DATA_URI], ["https://x.test/a.png", Inlined(text=DATA_URI)]),
        ({"url": DATA_URI}, {"url": Inlined(text=DATA_URI)}),
    ],
    ids=["address", "bare base64", "two frames", "object"],
)
def test_a_picture_comes_in_every_way_that_the_sdks_take(given: Any, sent: Any) -> None:
    """Base64 is taken in, an address stays one."""
    new = call_door(DOOR, "POST", CREATE, {**BODY, "image_url": given}).wishes[0].new
    assert new.prepared.parameters["image_url"] == sent


def test_a_request_id_comes_back() -> None:
    """The user's own, or one that was made here; the create is answered as under way."""
    said = call_door(DOOR, "POST", CREATE, {**BODY, "request_id": "mine"}).json
    assert (said["task_status"], said["model"], said["request_id"]) == ("PROCESSING", "cogvideox-3", "mine")
    said = call_door(DOOR, "POST", CREATE, BODY).json
    assert said["request_id"] == said["id"]
    view = view_of(State.QUEUED, task=make_task(parameters={**BODY, "request_id": "mine"}))
    assert result(view)["request_id"] == "mine"


def test_a_clip_has_an_address_and_an_empty_cover() -> None:
    """The SDKs' classes want both to be text."""
    view = view_of(State.DONE)
    assert result(view)["video_result"] == [{"url": view.files[0], "cover_image_url": ""}]
    assert result(view_of(State.QUEUED))["video_result"] == []


def test_a_failure_says_why() -> None:
    """Zhipu says FAIL and no more; the relay knows the reason."""
    said = result(view_of(State.FAILED))
    assert said["error"]["code"].isdigit()
    assert said["error"]["message"] == view_of(State.FAILED).problem.detail


def test_a_clip_that_was_evicted_is_not_there() -> None:
    """Its address would lead nowhere."""
    with pytest.raises(UnknownTask):
        result(view_of(State.DONE, gone=True))


@pytest.mark.parametrize("status", [400, 403, 404, 422, 429, 500, 503])
def test_an_errors_code_is_text_of_digits(status: int) -> None:
    """So apps read it."""
    problem = Problem(code="some_code", title="t", detail="why", status=status)
    reply = DOOR.write_error(problem, DoorCall(method="POST", path=CREATE, base=BASE))
    assert reply.value["error"]["code"].isdigit()
