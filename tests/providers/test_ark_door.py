"""
Ark's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Cancel, Forget, Look, Page, Phase, View
from vidrelay.core.errors import UnknownTask
from vidrelay.core.messages import Inline
from vidrelay.core.task import CancelOutcome, Problem, Request, State
from vidrelay.providers.ark.adapter import make as make_adapter
from vidrelay.providers.ark.door import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.doors import (
    ASSET,
    DATA_URI,
    SOUND,
    SOUND_URI,
    Create,
    DoorContract,
    DoorSheet,
    call_door,
    view_of,
)
from vidrelay.testing.records import make_task

DOOR = make("volcengine")
TASKS = "/api/v3/contents/generations/tasks"
MODEL = "doubao-seedance-1-5-pro-251215"
TEXT = {"type": "text", "text": "a boat"}
UNSET = dict.fromkeys(("safety_identifier", "callback_url", "return_last_frame", "draft", "frames", "tools"))
"""What the SDKs send of what was not given: null."""
BODY = {"model": MODEL, "content": [TEXT], "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7, **UNSET}
BOAT = Request(prompt="a boat", model_version=MODEL, aspect_ratio="16:9", resolution="720p", duration=5, seed=7)


def picture(url: str, role: str = "first_frame") -> dict[str, Any]:
    """A part of a create's content."""
    return {"type": "image_url", "image_url": {"url": url}, "role": role}


def sound(url: str) -> dict[str, Any]:
    """A sound that a clip is made to."""
    return {"type": "audio_url", "audio_url": {"url": url}, "role": "reference_audio"}


class TestArkDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(path=TASKS, body=BODY, same=BOAT),
            Create(path=TASKS, body={**BODY, "content": [TEXT, picture(DATA_URI)]}, same=BOAT, picture="first_frame"),
            Create(
                path=TASKS,
                body={**BODY, "content": [TEXT, picture(DATA_URI, "reference_image")]},
                same=BOAT,
                picture="reference",
            ),
        ),
        media=(
            (
                Create(path=TASKS, body={**BODY, "content": [TEXT, sound(SOUND_URI)]}),
                SOUND,
                Inline(asset=ASSET.id, prefix="data:audio/wav;base64,"),
            ),
        ),
        status=f"{TASKS}/{{id}}",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "queued",
            Phase.WORKING: "running",
            Phase.DONE: "succeeded",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "cancelled",
            Phase.EXPIRED: "expired",
        },
    )


def asked(view: View, **query: Any) -> Any:
    """What a list says of that one task."""
    return call_door(DOOR, "GET", TASKS, query=query, grant=lambda _: [view]).json


def test_pictures_by_address_and_other_media_stay_as_they_are() -> None:
    """Only a picture's data URI is taken in; an asset of Ark's, a video and a sound go by their address."""
    content = [
        TEXT,
        picture("asset://a-1"),
        {"type": "video_url", "video_url": {"url": "https://x.test/a.mp4"}, "role": "reference_video"},
    ]
    called = call_door(DOOR, "POST", TASKS, {"model": MODEL, "content": content})
    assert called.wishes[0].new.prepared.parameters["content"] == content


def test_a_length_left_to_the_model_is_not_known() -> None:
    """A duration of -1 is sent on, and has no price."""
    prepared = call_door(DOOR, "POST", TASKS, {**BODY, "duration": -1}).wishes[0].new.prepared
    assert prepared.seconds is None
    assert prepared.parameters["duration"] == -1


def test_the_users_tag_comes_back() -> None:
    """In the answer to the create, and with the task."""
    body = {**BODY, "safety_identifier": "tag-1"}
    assert call_door(DOOR, "POST", TASKS, body).json["safety_identifier"] == "tag-1"
    assert "safety_identifier" not in call_door(DOOR, "POST", TASKS, BODY).json
    view = view_of(State.QUEUED, task=make_task(parameters=body))
    assert call_door(DOOR, "GET", f"{TASKS}/x", grant=lambda _: view).json["safety_identifier"] == "tag-1"


def test_the_last_frame_is_told_apart_from_the_clip() -> None:
    """It is the last file, where it was asked for."""
    still = "http://127.0.0.1:61000/file/still.png"
    for asked, told in ((True, still), (None, None)):
        plain = view_of(State.DONE, task=make_task(parameters={**BODY, "return_last_frame": asked}))
        view = replace(plain, files=(*plain.files, still))
        content = call_door(DOOR, "GET", f"{TASKS}/x", grant=lambda _, view=view: view).json["content"]
        assert content == {"video_url": plain.files[0], "last_frame_url": told, "file_url": None}


def test_a_failure_has_arks_own_code() -> None:
    """What policy refused is told from what broke."""
    for code, told in (("moderated", "OutputVideoSensitiveContentDetected"), ("remote_failed", "InternalServiceError")):
        view = view_of(State.FAILED)
        problem = Problem(code=code, title="t", detail="why it is so")
        said = call_door(
            DOOR,
            "GET",
            f"{TASKS}/x",
            grant=lambda _, view=view, p=problem: replace(view, task=replace(view.task, error=p)),
        ).json
        assert said["error"] == {"code": told, "message": "why it is so"}


@pytest.mark.parametrize(
    ("view", "wish"),
    [
        (view_of(State.QUEUED), Cancel),
        (view_of(State.RUNNING), Cancel),
        (view_of(State.DONE), Forget),
        (view_of(State.FAILED), Forget),
    ],
    ids=["queued here", "queued there", "done", "failed"],
)
def test_delete_stops_what_waits_and_lets_go_of_what_has_ended(view: View, wish: type) -> None:
    """One call has two meanings at Ark; neither of them deletes a record there."""
    called = call_door(DOOR, "DELETE", f"{TASKS}/x", grant=lambda _: view)
    assert [type(one) for one in called.wishes] == [Look, wish]
    assert called.reply.status == 200


@pytest.mark.parametrize("view", [view_of(State.RUNNING, working=True), view_of(State.DOWNLOADING)])
def test_delete_of_what_runs_is_refused(view: View) -> None:
    """As Ark refuses it, and the task goes on."""
    called = call_door(DOOR, "DELETE", f"{TASKS}/x", grant=lambda _: view)
    assert [type(one) for one in called.wishes] == [Look]
    assert called.reply.status == 400


def test_delete_that_comes_too_late_is_refused() -> None:
    """What had ended at Ark before it was stopped goes on to its result."""
    views = [view_of(State.RUNNING), view_of(State.RUNNING, cancel=CancelOutcome.TOO_LATE)]
    assert call_door(DOOR, "DELETE", f"{TASKS}/x", grant=lambda _: views.pop(0)).reply.status == 400


def test_what_was_deleted_is_not_there() -> None:
    """Neither for get nor for delete, nor in a list."""
    gone = view_of(State.DONE, gone=True)
    for method in ("GET", "DELETE"):
        with pytest.raises(UnknownTask):
            call_door(DOOR, method, f"{TASKS}/x", grant=lambda _: gone)
    assert asked(gone) == {"total": 0, "items": []}


def test_a_list_is_filtered_and_cut_into_pages() -> None:
    """The total counts what the filters leave, on all pages."""
    views = [view_of(State.DONE) for _ in range(3)] + [view_of(State.FAILED)]
    said = call_door(
        DOOR,
        "GET",
        TASKS,
        query={"filter.status": "succeeded", "page_num": "2", "page_size": "2"},
        grant=lambda _: views,
    ).json
    assert said["total"] == 3
    assert [one["id"] for one in said["items"]] == [views[2].task.id]
    assert asked(views[0], **{"filter.model": "another"})["total"] == 0
    assert asked(views[0], **{"filter.service_tier": "default"})["total"] == 1


def test_a_list_of_ids_asks_for_each_and_leaves_unknown_ones_out() -> None:
    """The name is repeated for each id; the newest comes first."""
    views = {f"t{seq}": view_of(State.DONE, task=make_task(id=f"t{seq}", seq=seq)) for seq in (1, 2)}

    def grant(wish: Any) -> View:
        if wish.task_id not in views:
            raise UnknownTask
        return views[wish.task_id]

    said = call_door(DOOR, "GET", TASKS, query={"filter.task_ids": ["t1", "nobody", "t2"]}, grant=grant).json
    assert [one["id"] for one in said["items"]] == ["t2", "t1"]


def test_a_long_list_is_read_to_its_bound() -> None:
    """Page after page, and no further than the newest 2,000 tasks."""
    called = call_door(DOOR, "GET", TASKS, grant=lambda wish: [view_of(State.QUEUED)] * wish.limit)
    assert {type(wish) for wish in called.wishes} == {Page}
    assert called.json["total"] == 2000
