"""
MiniMax's doors of both generations: what is their own, beside what holds for every door.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Cancel, DoorCall, Forget, FormBody, Keep, Kept, Page, Part, Phase, View, Wish
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import CancelOutcome, Problem, Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.minimax.adapter import make as make_adapter
from vidrelay.providers.minimax.door import make
from vidrelay.testing.doors import (
    ASSET,
    BASE,
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

V1, V2 = make("v1"), make(None)
QUERY_V1, QUERY_V2 = "/v1/query/video_generation", "/v2/query/video_generation"
FINE = {"status_code": 0, "status_msg": "success"}
HAILUO = {"model": "MiniMax-Hailuo-2.3", "prompt": "a boat"}
BOAT = {"type": "text", "text": "a boat"}
H3 = {"model": "MiniMax-H3", "resolution": "768P", "duration": 5}
PART = Part(number=0, name="file", filename="a.png", media_type="image/png", size_bytes=900)
PURPOSE = ("purpose", "video_generation_input")


def _settings(dialect: str) -> AdapterSettings:
    return AdapterSettings(key="k", base_url="https://host.test", now=lambda: datetime.now(UTC), dialect=dialect)


def _shown(kind: str, url: str) -> Create:
    item = {"type": kind, kind: {"url": url}, "role": f"reference_{kind.removesuffix('_url')}"}
    return Create(path="/v2/video_generation", body={**H3, "content": [BOAT, item]})


class TestMiniMaxV1Door(DoorContract):
    """What holds for every door, of V1."""

    sheet = DoorSheet(
        door=V1,
        adapter=make_adapter(_settings("v1")),
        creates=(
            Create(
                path="/v1/video_generation",
                body={**HAILUO, "duration": 6, "resolution": "768P"},
                same=Request(prompt="a boat", model_version="MiniMax-Hailuo-2.3", duration=6, resolution="768P"),
            ),
            Create(
                path="/v1/video_generation",
                body={**HAILUO, "first_frame_image": DATA_URI},
                same=Request(prompt="a boat", model_version="MiniMax-Hailuo-2.3"),
                picture="first_frame",
            ),
            Create(
                path="/v1/video_generation",
                body={
                    "model": "S2V-01",
                    "prompt": "a boat",
                    "subject_reference": [{"type": "character", "image": [DATA_URI]}],
                },
                same=Request(prompt="a boat", model_version="S2V-01"),
                picture="reference",
            ),
        ),
        status=f"{QUERY_V1}?task_id={{id}}",
        address="/v1/files/retrieve?file_id={id}",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "Queueing",
            Phase.WORKING: "Processing",
            Phase.DONE: "Success",
            Phase.FAILED: "Fail",
            Phase.CANCELLED: "Fail",
            Phase.EXPIRED: "Fail",
        },
    )


class TestMiniMaxV2Door(DoorContract):
    """What holds for every door, of V2."""

    sheet = DoorSheet(
        door=V2,
        adapter=make_adapter(_settings("v2")),
        creates=(
            Create(
                path="/v2/video_generation",
                body={**H3, "content": [BOAT], "ratio": "16:9"},
                same=Request(prompt="a boat", model_version="MiniMax-H3", duration=5, aspect_ratio="16:9"),
            ),
            Create(
                path="/v2/video_generation",
                body={
                    **H3,
                    "content": [BOAT, {"type": "image_url", "image_url": {"url": DATA_URI}, "role": "first_frame"}],
                },
                same=Request(prompt="a boat", model_version="MiniMax-H3"),
                picture="first_frame",
            ),
            Create(
                path="/v2/video_generation",
                body={
                    **H3,
                    "content": [
                        BOAT,
                        {"type": "image_url", "image_url": {"url": f"mm_file://{ASSET.id}"}, "role": "reference_image"},
                    ],
                },
                same=Request(prompt="a boat", model_version="MiniMax-H3"),
                picture="reference",
            ),
        ),
        media=(
            (_shown("video_url", FILM_URI), FILM, None),
            (_shown("audio_url", SOUND_URI), SOUND, None),
            (_shown("video_url", f"mm_file://{ASSET.id}"), FILM, None),
        ),
        status=f"{QUERY_V2}/{{id}}",
        word=lambda said: said["task"]["status"],
        words={
            Phase.WAITING: "queued",
            Phase.WORKING: "running",
            Phase.DONE: "succeeded",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "cancelled",
            Phase.EXPIRED: "expired",
        },
    )


def _always(view: View) -> Callable[[Wish], Any]:
    return lambda _: view


def test_v1_gives_the_file_in_two_steps() -> None:
    """The status names a file, and the second call says where it is: here."""
    view = view_of(State.DONE)
    status = call_door(V1, "GET", f"{QUERY_V1}?task_id={view.task.id}", grant=_always(view)).json
    assert status["base_resp"] == FINE
    retrieved = call_door(V1, "GET", f"/v1/files/retrieve?file_id={status['file_id']}", grant=_always(view)).json
    assert retrieved["base_resp"] == FINE
    assert retrieved["file"]["download_url"] == view.files[0]
    assert retrieved["file"]["bytes"] == view.task.files[0].size_bytes


def test_v1_names_no_file_before_there_is_one() -> None:
    """An empty text, as in the sheet's sample; asking for one all the same is asking for what is not there."""
    view = view_of(State.RUNNING)
    assert call_door(V1, "GET", f"{QUERY_V1}?task_id=x", grant=_always(view)).json["file_id"] == ""
    for missing in (view, view_of(State.DONE, gone=True)):
        with pytest.raises(UnknownTask):
            call_door(V1, "GET", "/v1/files/retrieve?file_id=x", grant=_always(missing))


@pytest.mark.parametrize(
    ("code", "number"), [("moderated", 1027), ("rejected", 2013), ("remote_failed", 1000), ("remote_expired", 1000)]
)
def test_v1_says_why_a_clip_failed(code: str, number: int) -> None:
    """In `base_resp`, with HTTP 200, for that is how clients know it."""
    view = view_of(State.FAILED, task=make_task(remote_id="7"))
    view = replace(view, task=replace(view.task, error=Problem(code=code, title="t", detail="because")))
    called = call_door(V1, "GET", f"{QUERY_V1}?task_id=x", grant=_always(view))
    assert called.reply.status == 200
    assert called.json["base_resp"] == {"status_code": number, "status_msg": "because"}


def test_v2_takes_an_upload_by_the_id_that_it_gave() -> None:
    """`mm_file://` and the id is the picture; a file of MiniMax's own stays a text."""
    called = call_door(V2, "POST", "/v1/files/upload", FormBody(fields=(PURPOSE,), files=(PART,)))
    assert called.wishes == [Keep(media=PART)]
    file_id = called.json["file"]["file_id"]
    assert (called.json["file"]["bytes"], called.json["file"]["purpose"]) == (ASSET.size_bytes, PURPOSE[1])
    for given, wanted in ((file_id, Kept(asset=ASSET.id)), ("205258526306433", "mm_file://205258526306433")):
        item = {"type": "image_url", "image_url": {"url": f"mm_file://{given}"}, "role": "first_frame"}
        made = call_door(V2, "POST", "/v2/video_generation", {**H3, "content": [BOAT, item]})
        sent = made.wishes[0].new.prepared.parameters["content"][1]
        assert sent == {**item, "image_url": {"url": wanted}}


@pytest.mark.parametrize("form", [FormBody(fields=(PURPOSE,)), FormBody(files=(PART,)), None])
def test_v2_takes_no_other_upload(form: FormBody | None) -> None:
    """One for another purpose is not for a clip, and is refused in V1's shape, whose call it is."""
    with pytest.raises(InvalidRequest):
        call_door(V2, "POST", "/v1/files/upload", form)
    problem = Problem(code="invalid_request", title="t", detail="why", status=422)
    call = DoorCall(method="POST", path="/v1/files/upload", base=BASE)
    assert V2.write_error(problem, call).value == {"base_resp": {"status_code": 2013, "status_msg": "why"}}


@pytest.mark.parametrize(
    ("view", "wish", "action"),
    [
        (view_of(State.QUEUED), Cancel, "cancelled"),
        (view_of(State.DONE), Forget, "deleted"),
        (view_of(State.FAILED), Forget, "deleted"),
    ],
)
def test_v2_delete_stops_what_waits_and_erases_what_has_ended(view: View, wish: type, action: str) -> None:
    """One call for both, as MiniMax has it."""
    called = call_door(V2, "DELETE", f"/v2/video_generation/{view.task.id}", grant=_always(view))
    assert [type(one) for one in called.wishes[1:]] == [wish]
    assert called.json["action"] == action


@pytest.mark.parametrize("view", [view_of(State.RUNNING, working=True), view_of(State.CANCELLED)])
def test_v2_delete_leaves_alone_what_is_worked_on(view: View) -> None:
    """MiniMax refuses it, so a clip that is paid for is not lost by it here."""
    called = call_door(V2, "DELETE", f"/v2/video_generation/{view.task.id}", grant=_always(view))
    assert len(called.wishes) == 1
    assert called.reply.status == called.json["error"]["http_code"] == 400


def test_v2_delete_that_comes_too_late_is_refused() -> None:
    """The clip was taken from the line between the two looks."""
    late = view_of(State.DONE, cancel=CancelOutcome.TOO_LATE)
    called = call_door(
        V2,
        "DELETE",
        "/v2/video_generation/x",
        grant=lambda wish: late if isinstance(wish, Cancel) else view_of(State.QUEUED),
    )
    assert called.reply.status == 400


def test_v2_lists_by_status_model_and_ids() -> None:
    """Its filters are obeyed, and a clip that was deleted is in no list."""
    tasks = [make_task(model_version=model) for model in ("MiniMax-H3", "MiniMax-H3-Lite", "MiniMax-H3")]
    views = [
        view_of(state, task=task) for state, task in zip((State.DONE, State.DONE, State.FAILED), tasks, strict=True)
    ]
    gone = view_of(State.DONE, gone=True)

    def ids(**query: str) -> list[str]:
        named = {name if name.startswith("page") else f"filter.{name}": value for name, value in query.items()}
        said = call_door(
            V2, "GET", QUERY_V2, query=named, grant=lambda wish: [*views, gone] if isinstance(wish, Page) else None
        )
        return [row["id"] for row in said.json["tasks"]]

    one, two, three = (view.task.id for view in views)
    assert ids() == [one, two, three]
    assert ids(status="succeeded") == [one, two]
    assert ids(model="MiniMax-H3") == [one, three]
    assert ids(task_ids=f"{two},{three}") == [two, three]
    assert ids(page_num="2", page_size="2") == [three]


def test_v2_a_deleted_clip_is_not_there() -> None:
    """After DELETE its status is that of an id that is not known."""
    with pytest.raises(UnknownTask):
        call_door(V2, "GET", f"{QUERY_V2}/x", grant=_always(view_of(State.DONE, gone=True)))
