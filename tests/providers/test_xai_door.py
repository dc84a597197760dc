"""
Grok Imagine's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Phase
from vidrelay.core.task import Problem, Request, Standing, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.xai.adapter import make as make_adapter
from vidrelay.providers.xai.door import make
from vidrelay.testing.doors import DATA_URI, Create, DoorContract, DoorSheet, call_door, view_of

DOOR = make(None)
CREATE = "/v1/videos/generations"
BOAT: dict[str, Any] = {"model": "grok-imagine-video-1.5", "prompt": "a boat"}
MODEL = "grok-imagine-video-1.5"


class TestXaiDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(
                path=CREATE,
                body={**BOAT, "duration": 8, "aspect_ratio": "16:9", "resolution": "720p"},
                same=Request(prompt="a boat", model_version=MODEL, duration=8, aspect_ratio="16:9", resolution="720p"),
            ),
            Create(
                path=CREATE,
                body={**BOAT, "image": {"url": DATA_URI}},
                same=Request(prompt="a boat", model_version=MODEL),
                picture="first_frame",
            ),
            Create(
                path=CREATE,
                body={**BOAT, "reference_images": [{"url": DATA_URI}]},
                same=Request(prompt="a boat", model_version=MODEL),
                picture="reference",
            ),
            Create(path=CREATE, body={"prompt": "a boat"}, same=Request(prompt="a boat")),
        ),
        status="/v1/videos/{id}",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "pending",
            Phase.WORKING: "pending",
            Phase.DONE: "done",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "failed",
            Phase.EXPIRED: "expired",
        },
    )


@pytest.mark.parametrize(("state", "status"), [(State.QUEUED, 202), (State.RUNNING, 202), (State.FAILED, 200)])
def test_the_status_says_whether_it_has_ended(state: State, status: int) -> None:
    """202 until the end, with a body for those who read the word instead."""
    called = call_door(DOOR, "GET", "/v1/videos/x", grant=lambda _: view_of(state, standing=Standing(progress=0.3)))
    assert called.reply.status == status
    assert status == 200 or called.json == {"status": "pending", "progress": 30}


def test_a_clip_that_moderation_kept_back_reads_as_xai_tells_it() -> None:
    """Done, without an address."""
    failed = view_of(State.FAILED)
    moderated = Problem(code="moderated", title="Refused", detail="no", status=422)
    failed = replace(failed, task=replace(failed.task, error=moderated))
    answer = call_door(DOOR, "GET", "/v1/videos/x", grant=lambda _: failed).json
    assert (answer["status"], answer["video"]) == (
        "done",
        {"url": "", "duration": 8, "respect_moderation": False},
    )


def test_a_clip_whose_file_is_gone_has_expired() -> None:
    """xAI has a word for it."""
    answer = call_door(DOOR, "GET", "/v1/videos/x", grant=lambda _: view_of(State.DONE, gone=True)).json
    assert answer["status"] == "expired"


def test_an_address_and_a_file_id_stay_as_they_are() -> None:
    """They are fetched by xAI, not here."""
    body = {**BOAT, "image": {"file_id": "f"}, "last_frame": {"url": "https://pictures.test/a.png"}}
    sent = call_door(DOOR, "POST", CREATE, body).wishes[0].new.prepared.parameters
    assert sent == body
