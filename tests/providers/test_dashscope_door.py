"""
DashScope's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Cancel, FormBody, Keep, Kept, Look, OpenAddress, Part, Phase
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import CancelOutcome, Problem, Request, State
from vidrelay.providers.dashscope.adapter import make as make_adapter
from vidrelay.providers.dashscope.door import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.doors import (
    DATA_URI,
    FILM,
    FILM_URI,
    SOUND,
    SOUND_URI,
    Create,
    DoorContract,
    DoorSheet,
    call_door,
    view_of,
)
from vidrelay.testing.records import make_task

DOOR = make(None)
ASYNC = {"x-dashscope-async": "enable"}
VIDEO = "/api/v1/services/aigc/video-generation/video-synthesis"
FRAMES = "/api/v1/services/aigc/image2video/video-synthesis"
BOAT: dict[str, Any] = {"model": "wan3.0-video", "input": {"prompt": "a boat"}, "parameters": {}}
UPLOADED = f"oss://vidrelay/{'0' * 32}/boat.png"
PART = Part(number=0, name="file", filename="boat.png", media_type="image/png", size_bytes=900)


def made_of(model: str, **given: Any) -> dict[str, Any]:
    """A create call's body."""
    return {"model": model, "input": {"prompt": "a boat", **given}, "parameters": {}}


class TestDashScopeDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(
                path=VIDEO,
                body={**BOAT, "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}},
                same=Request(prompt="a boat", resolution="720p", aspect_ratio="16:9", duration=5, seed=7),
                headers=ASYNC,
            ),
            Create(
                path=f"{VIDEO}/",
                body={"model": "wan3.0-video", "input": {"prompt": "a boat"}},
                same=Request(prompt="a boat"),
                headers=ASYNC,
            ),
            Create(
                path=VIDEO,
                body=made_of("wan2.7-i2v", media=[{"type": "first_frame", "url": UPLOADED}]),
                same=Request(prompt="a boat", model_version="wan2.7-i2v"),
                picture="first_frame",
                headers=ASYNC,
            ),
            Create(
                path=VIDEO,
                body=made_of("wan3.0-video", media=[{"type": "reference_image", "url": DATA_URI}]),
                same=Request(prompt="a boat"),
                picture="reference",
                headers=ASYNC,
            ),
            Create(
                path=FRAMES,
                body=made_of("wan2.2-kf2v-flash", first_frame_url=DATA_URI, last_frame_url="https://a.test/b.png"),
                headers=ASYNC,
            ),
        ),
        media=(
            (
                Create(
                    path=VIDEO,
                    body=made_of("wan3.0-video", media=[{"type": "reference_video", "url": FILM_URI}]),
                    headers=ASYNC,
                ),
                FILM,
                None,
            ),
            (
                Create(
                    path=VIDEO,
                    body=made_of("wan2.7-i2v", media=[{"type": "driving_audio", "url": SOUND_URI}]),
                    headers=ASYNC,
                ),
                SOUND,
                None,
            ),
            (
                Create(
                    path=VIDEO, body=made_of("wan3.0-video", media=[{"type": "video", "url": UPLOADED}]), headers=ASYNC
                ),
                FILM,
                None,
            ),
        ),
        status="/api/v1/tasks/{id}",
        word=lambda said: said["output"]["task_status"],
        words={
            Phase.WAITING: "PENDING",
            Phase.WORKING: "RUNNING",
            Phase.DONE: "SUCCEEDED",
            Phase.FAILED: "FAILED",
            Phase.CANCELLED: "CANCELED",
            Phase.EXPIRED: "FAILED",
        },
    )


def test_a_create_that_does_not_ask_to_be_asynchronous_is_refused() -> None:
    """As DashScope does it: nothing is made, and nothing is waited for."""
    called = call_door(DOOR, "POST", VIDEO, BOAT)
    assert (called.reply.status, called.json["code"]) == (403, "AccessDenied")
    assert called.wishes == []


def test_a_service_is_the_models_own() -> None:
    """The newer surface sends every model to one service, and the relay to the right one; what is wrong is refused."""
    frames = made_of("wan2.2-kf2v-flash", first_frame_url=DATA_URI)
    assert len(call_door(DOOR, "POST", VIDEO, frames, headers=ASYNC).wishes) == 1
    with pytest.raises(InvalidRequest, match="video-generation"):
        call_door(DOOR, "POST", FRAMES, BOAT, headers=ASYNC)


@pytest.mark.parametrize("where", ["input", "parameters"])
def test_another_version_can_be_asked_for_where_the_sdk_passes_fields_on(where: str) -> None:
    """Its own arguments have no other room."""
    body = {**BOAT, where: {**BOAT[where], "vidrelay_force": True}}
    new = call_door(DOOR, "POST", VIDEO, body, headers=ASYNC).wishes[0].new
    assert new.force
    assert new.prepared.parameters == BOAT


def test_a_task_that_nobody_knows_or_whose_file_is_gone_has_a_status() -> None:
    """UNKNOWN with HTTP 200, upon which both surfaces stop waiting."""

    def unknown(_: Any) -> Any:
        raise UnknownTask

    for grant in (unknown, lambda _: view_of(State.DONE, gone=True)):
        called = call_door(DOOR, "GET", "/api/v1/tasks/nobody", grant=grant)
        assert called.json["output"] == {"task_id": "nobody", "task_status": "UNKNOWN"}
        assert called.reply.status == 200


def test_a_failure_tells_its_code_and_an_end_its_times() -> None:
    """In China's time, as DashScope writes them."""
    failed = view_of(State.FAILED)
    moderated = Problem(code="moderated", title="Refused", detail="no", status=422)
    failed = replace(failed, task=replace(failed.task, error=moderated))
    told = call_door(DOOR, "GET", "/api/v1/tasks/x/", grant=lambda _: failed).json["output"]
    assert (told["code"], told["message"]) == ("DataInspectionFailed", "no")
    made = make_task(created_at=datetime(2026, 11, 30, 20, 0, 0, 100_000, tzinfo=UTC))
    done = view_of(State.DONE, task=made)
    told = call_door(DOOR, "GET", "/api/v1/tasks/x", grant=lambda _: done).json
    assert told["output"]["submit_time"] == "2026-12-01 04:00:00.100"
    assert {"scheduled_time", "end_time", "orig_prompt"} <= told["output"].keys()
    assert told["usage"] == {"video_count": 1, "video_duration": 5, "video_ratio": ""}


def test_a_cancel_stops_what_waits_alone() -> None:
    """What runs goes on at DashScope too, and is told so."""
    path = "/api/v1/tasks/x/cancel"
    for state in (State.RUNNING, State.DONE):
        called = call_door(DOOR, "POST", path, grant=lambda _, state=state: view_of(state, working=True))
        assert (called.reply.status, called.json["code"]) == (400, "UnsupportedOperation")
        assert not any(isinstance(wish, Cancel) for wish in called.wishes)
    views = {
        Cancel(task_id="x", unless_begun=True): view_of(State.RUNNING, cancel=CancelOutcome.PENDING),
        Look(task_id="x"): view_of(State.QUEUED),
        Look(task_id="x", wait=10.0): view_of(State.CANCELLED),
    }
    assert call_door(DOOR, "POST", path, grant=lambda wish: views[wish]).reply.status == 200


def test_the_list_is_narrowed_down_and_paged() -> None:
    """By model, status and time; both surfaces find the rows under the name that they read."""
    views = [
        view_of(state, task=make_task(id=f"task-{number}", model_version=model, created_at=at))
        for number, (state, model, at) in enumerate(
            [
                (State.QUEUED, "wan3.0-video", datetime(2026, 11, 30, 3, tzinfo=UTC)),
                (State.FAILED, "wan3.0-video", datetime(2026, 11, 30, 2, tzinfo=UTC)),
                (State.FAILED, "wan2.6-t2v", datetime(2026, 11, 30, 1, tzinfo=UTC)),
            ]
        )
    ]

    def listed(**query: str) -> list[str]:
        told = call_door(DOOR, "GET", "/api/v1/tasks", query=query, grant=lambda _: views).json
        assert told["data"] == told["tasks"]
        return [row["task_id"] for row in told["tasks"]]

    assert listed() == ["task-0", "task-1", "task-2"]
    assert listed(model_name="wan3.0-video", status="FAILED") == ["task-1"]
    assert listed(page_no="2", page_size="2") == ["task-2"]
    assert listed(start_time="20261130100000", end_time="20261130105959") == ["task-1"]


def test_a_local_picture_is_uploaded_to_the_door_and_named_in_the_create() -> None:
    """The address needs no key, since the SDK sends none there, and the name becomes the picture, for one model."""
    policy = call_door(DOOR, "GET", "/api/v1/uploads", query={"action": "getPolicy", "model": "wan2.7-i2v"}).json
    assert policy["data"]["upload_host"] == OpenAddress(path="/api/v1/uploads")
    key = UPLOADED.removeprefix("oss://")
    stored = call_door(DOOR, "POST", "/api/v1/uploads", FormBody(fields=(("key", key),), files=(PART,)))
    assert stored.wishes == [Keep(media=PART, name=UPLOADED)]
    body = made_of("wan2.6-i2v", img_url=UPLOADED)
    sent = call_door(DOOR, "POST", VIDEO, body, headers=ASYNC).wishes[0].new.prepared.parameters
    assert sent["input"]["img_url"] == Kept(asset=UPLOADED, beside={"model": "wan2.6-i2v"})


def test_a_name_that_the_door_did_not_give_is_no_upload() -> None:
    """The name is what a later create finds the picture by, so nobody may choose it."""
    for form in (FormBody(fields=(("key", "mine/boat.png"),), files=(PART,)), FormBody(), None):
        with pytest.raises(InvalidRequest):
            call_door(DOOR, "POST", "/api/v1/uploads", form)


def test_a_picture_in_a_bucket_of_the_users_own_stays_there() -> None:
    """The relay gives the provider its name, as it came."""
    body = made_of("wan2.6-i2v", img_url="oss://mine/boat.png")
    assert call_door(DOOR, "POST", VIDEO, body, headers=ASYNC).wishes[0].new.prepared.parameters == body
