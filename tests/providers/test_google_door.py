"""
The Gemini API's door, Veo's words and Omni's: what is their own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Cancel, FileReply, InlineFile, Look, Phase, Submit
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.messages import Inline
from vidrelay.core.task import CancelOutcome, Problem, RemoteFile, Request, State
from vidrelay.providers.google.adapter import make as make_adapter
from vidrelay.providers.google.door import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.doors import (
    ASSET,
    FILM,
    SOUND,
    Create,
    DoorContract,
    DoorSheet,
    call_door,
    stored,
    usual,
    view_of,
)
from vidrelay.testing.records import make_task

DOOR = make(None)
ADAPTER = make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC)))
VEO = "veo-3.1-generate-preview"
OMNI = "gemini-omni-1.2-flash"
PREDICT = f"/v1beta/models/{VEO}:predictLongRunning"
FILES = "https://generativelanguage.googleapis.com/v1beta/files/"
TASK = "0f8fad5b-d9cb-469f-a165-70867728950e"
FILE = "0f8fad5bd9cb469fa16570867728950e"
BASE64 = "iVBORw0KGgo="
ASKED: dict[str, Any] = {
    "model": OMNI,
    "background": True,
    "input": [{"type": "user_input", "content": [{"type": "text", "text": "a boat"}]}],
    "response_format": {"type": "video", "delivery": "uri", "duration": "3s"},
    "generation_config": {"video_config": {"task": "text_to_video"}},
}
SHOWN: dict[str, Any] = {
    **ASKED,
    "input": [
        {
            "type": "user_input",
            "content": [
                {"type": "text", "text": "a boat"},
                {"type": "image", "data": BASE64, "mime_type": "image/png"},
            ],
        }
    ],
    "generation_config": {"video_config": {"task": "image_to_video"}},
}
PICTURE = {"bytesBase64Encoded": BASE64, "mimeType": "image/png"}


def ended_as(operation: dict[str, Any]) -> str:
    """How an operation reads; it has no word for that."""
    if "error" in operation:
        return "error"
    return "done" if operation.get("done") else "under way"


def with_media(kind: str, data: str, mime_type: str) -> Create:
    """A create call of Omni's that goes on from something."""
    content = [{"type": "text", "text": "a boat"}, {"type": kind, "data": data, "mime_type": mime_type}]
    return Create(path="/v1/interactions", body={**ASKED, "input": [{"type": "user_input", "content": content}]})


class TestVeoDoor(DoorContract):
    """What holds for every door, of operations."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=ADAPTER,
        creates=(
            Create(
                path=PREDICT,
                body={"instances": [{"prompt": "a boat"}], "parameters": {"durationSeconds": 8, "aspectRatio": "16:9"}},
                same=Request(prompt="a boat", model_version=VEO, duration=8, aspect_ratio="16:9"),
            ),
            Create(path=PREDICT, body={"instances": [{"prompt": "a boat"}]}, same=Request(prompt="a boat")),
            Create(
                path=PREDICT,
                body={"instances": [{"prompt": "a boat", "image": PICTURE}], "parameters": {}},
                same=Request(prompt="a boat"),
                picture="first_frame",
            ),
            Create(
                path=PREDICT,
                body={
                    "instances": [{"prompt": "a", "referenceImages": [{"image": PICTURE, "referenceType": "asset"}]}]
                },
                same=Request(prompt="a"),
                picture="reference",
            ),
        ),
        media=(
            (
                Create(
                    path=PREDICT,
                    body={
                        "instances": [{"prompt": "a", "video": {"encodedVideo": "AAAA", "encoding": "video/mp4"}}],
                    },
                ),
                FILM,
                Inline(asset=ASSET.id),
            ),
        ),
        status=f"/v1beta/models/{VEO}/operations/{{id}}",
        content="/v1beta/files/{id}:download",
        word=ended_as,
        words={
            Phase.WAITING: "under way",
            Phase.WORKING: "under way",
            Phase.DONE: "done",
            Phase.FAILED: "error",
            Phase.CANCELLED: "error",
            Phase.EXPIRED: "error",
        },
        unknown=("parameters",),
    )


class TestOmniDoor(DoorContract):
    """What holds for every door, of interactions."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=ADAPTER,
        creates=(
            Create(
                path="/v1/interactions",
                body=ASKED,
                same=Request(prompt="a boat", model_version=OMNI, duration=3),
            ),
            Create(
                path="/v1/interactions",
                body=SHOWN,
                same=Request(prompt="a boat", model_version=OMNI, duration=3),
                picture="first_frame",
            ),
        ),
        media=(
            (with_media("video", "AAAA", "video/mp4"), FILM, Inline(asset=ASSET.id)),
            (with_media("audio", "UklG", "audio/wav"), SOUND, Inline(asset=ASSET.id)),
        ),
        status="/v1/interactions/{id}",
        content="/v1/files/{id}:download",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "queued",
            Phase.WORKING: "in_progress",
            Phase.DONE: "completed",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "cancelled",
            Phase.EXPIRED: "failed",
        },
    )


def done(**fields: Any) -> Any:
    """A task that is done, under an id as the relay makes them."""
    return view_of(State.DONE, task=make_task(id=TASK, model_version=VEO, **fields))


def test_a_clip_keeps_an_address_of_googles_whose_file_is_answered_here() -> None:
    """The SDK takes small letters and digits behind `files/`, and asks the door for the file of that name."""
    path = f"/v1beta/models/{VEO}/operations/{TASK}"
    answer = call_door(DOOR, "GET", path, grant=lambda _: done()).json
    samples = answer["response"]["generateVideoResponse"]["generatedSamples"]
    assert samples == [{"video": {"uri": f"{FILES}{FILE}:download?alt=media"}}]
    fetched = call_door(DOOR, "GET", f"/v1beta/files/{FILE}:download")
    assert fetched.reply == FileReply(task_id=TASK)
    assert call_door(DOOR, "GET", f"/v1beta/files/{FILE}x2:download").reply == FileReply(task_id=TASK, index=2)


def test_a_clip_that_policy_kept_back_reads_as_google_tells_it() -> None:
    """No clip, a count and the reasons, and no error."""
    failed = view_of(State.FAILED)
    moderated = Problem(code="moderated", title="Refused", detail="against the guidelines", status=422)
    failed = replace(failed, task=replace(failed.task, error=moderated))
    answer = call_door(DOOR, "GET", f"/v1beta/models/{VEO}/operations/x", grant=lambda _: failed).json
    filtered = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["against the guidelines"]}
    assert answer["response"] == {"generateVideoResponse": filtered}
    assert "error" not in answer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PREDICT, {"instances": [{"prompt": "on", "video": {"uri": f"{FILES}{FILE}:download?alt=media"}}]}),
        (
            "/v1beta/interactions",
            {**ASKED, "input": [{"type": "video", "uri": f"{FILES}{FILE}:download?alt=media"}, {"text": "on"}]},
        ),
    ],
)
def test_a_clip_to_go_on_from_is_named_to_google_as_google_knows_it(path: str, body: Any) -> None:
    """The address that this door gave out is nobody's but the relay's."""
    theirs = f"{FILES}abc-1:download?alt=media"
    view = done()
    view = replace(view, task=replace(view.task, outputs=(RemoteFile(url=theirs, needs_key=True),)))
    called = call_door(DOOR, "POST", path, body, grant=lambda wish: view if isinstance(wish, Look) else usual(wish))
    sent = str(called.wishes[-1].new.prepared.parameters)
    assert theirs in sent
    assert FILE not in sent
    assert called.wishes[0] == Look(task_id=TASK)


def test_a_clip_of_somebody_elses_is_named_as_it_came() -> None:
    """An address that no task of the relay answers for is Google's own."""
    uri = f"{FILES}{FILE}:download?alt=media"

    def grant(wish: Any) -> Any:
        if isinstance(wish, Look):
            raise UnknownTask
        return usual(wish)

    body = {"instances": [{"prompt": "on", "video": {"uri": uri}}]}
    assert uri in str(call_door(DOOR, "POST", PREDICT, body, grant=grant).wishes[-1].new.prepared.parameters)


def test_a_clip_that_came_inside_an_answer_cannot_be_gone_on_from() -> None:
    """Google keeps no file of it."""
    view = done()
    inside = RemoteFile(url="https://host.test/v1/interactions/x", needs_key=True, inside="/steps/0/content/0/data")
    view = replace(view, task=replace(view.task, outputs=(inside,)))
    body = {"instances": [{"prompt": "on", "video": {"uri": f"{FILES}{FILE}:download?alt=media"}}]}
    with pytest.raises(InvalidRequest, match="no file"):
        call_door(DOOR, "POST", PREDICT, body, grant=lambda _: view)


def test_an_interaction_goes_on_from_the_one_that_google_knows() -> None:
    """The id that this door gave out becomes the provider's own."""
    earlier = view_of(State.RUNNING)
    called = call_door(
        DOOR,
        "POST",
        "/v1/interactions",
        {**ASKED, "previous_interaction_id": TASK},
        grant=lambda wish: earlier if isinstance(wish, Look) else usual(wish),
    )
    assert called.wishes[-1].new.prepared.parameters["previous_interaction_id"] == earlier.task.remote_id


def test_an_interaction_that_waits_for_its_clip_is_held_here() -> None:
    """At the provider it is made in the background all the same, where no answer that takes minutes can be lost."""
    seen = [view_of(State.RUNNING), view_of(State.RUNNING), view_of(State.DONE)]
    body = {name: value for name, value in ASKED.items() if name != "background"}

    def grant(wish: Any) -> Any:
        return seen.pop(0) if isinstance(wish, Look) else usual(wish)

    called = call_door(DOOR, "POST", "/v1/interactions", body, grant=grant)
    made = [wish for wish in called.wishes if isinstance(wish, Submit)]
    assert made[0].new.prepared.parameters["background"] is True
    assert called.json["status"] == "completed"
    assert len(call_door(DOOR, "POST", "/v1/interactions", ASKED).wishes) == 1


def test_a_clip_stands_in_the_answer_where_that_was_asked_for() -> None:
    """`delivery` says so; without it the API answers with the clip itself."""
    path = f"/v1/interactions/{TASK}"
    for wanted, inline in (({"type": "video", "delivery": "uri"}, False), ({"type": "video"}, True)):
        view = done(parameters={"model": OMNI, "response_format": wanted})
        video = call_door(DOOR, "GET", path, grant=lambda _, view=view: view).json["steps"][0]["content"][0]
        assert isinstance(video.get("data"), InlineFile) is inline
        assert video["uri"] == f"{FILES}{FILE}:download?alt=media"


@pytest.mark.parametrize("body", [{**ASKED, "stream": True}, {**ASKED, "model": "gemini-3-pro"}, {"input": "a"}])
def test_what_is_no_clip_is_refused(body: Any) -> None:
    """Nothing is sent that the relay could not see to its end."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", "/v1/interactions", body)


def test_a_cancel_tells_how_the_interaction_stands_and_refuses_what_has_ended() -> None:
    """Where the provider has not said yet that it stopped, the answer waits a moment."""
    pending = view_of(State.RUNNING, cancel=CancelOutcome.PENDING)
    stopped = view_of(State.CANCELLED)
    path = f"/v1/interactions/{TASK}/cancel"
    called = call_door(DOOR, "POST", path, grant=lambda wish: pending if isinstance(wish, Cancel) else stopped)
    assert called.json["status"] == "cancelled"
    late = call_door(DOOR, "POST", path, grant=lambda _: view_of(State.DONE, cancel=CancelOutcome.TOO_LATE))
    assert (late.reply.status, late.json["error"]["code"]) == (400, "failed_precondition")


def test_an_interaction_that_was_deleted_is_not_there() -> None:
    """DELETE lets the file go, and then GET is a 404."""
    assert call_door(DOOR, "DELETE", f"/v1/interactions/{TASK}").json == {}
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"/v1/interactions/{TASK}", grant=lambda _: view_of(State.DONE, gone=True))


@pytest.mark.parametrize("more", [{"store": False}, {"store": False, "background": False}, {"stream": True}])
def test_an_interaction_that_is_not_kept_is_refused_before_it_is_paid(more: dict[str, Any]) -> None:
    """It is made in the background, and nothing could be asked for afterwards."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", "/v1/interactions", {**ASKED, **more})


@pytest.mark.parametrize("kind", ["video", "audio"])
def test_what_omni_goes_on_from_is_named_by_its_kind(kind: str) -> None:
    """It is written as Google's SDK writes it, with the type that its content shows."""
    asset = FILM if kind == "video" else SOUND
    create = with_media(kind, "AAAA", asset.media_type)
    made = call_door(DOOR, "POST", create.path, create.body).wishes[-1]
    assert isinstance(made, Submit)
    request = next(ADAPTER.submit(make_task(parameters=stored(made.new.prepared.parameters, asset))))
    (_, content) = request.body.value["input"][0]["content"]
    assert content == {"type": kind, "data": Inline(asset=ASSET.id), "mime_type": asset.media_type}


def test_a_film_that_veo_goes_on_from_is_encoded_as_its_sdk_does() -> None:
    """`encodedVideo` and `encoding`, not the words that a picture has."""
    video = {"encodedVideo": "AAAA", "encoding": "video/mp4"}
    made = call_door(DOOR, "POST", PREDICT, {"instances": [{"prompt": "a", "video": video}]}).wishes[-1]
    assert isinstance(made, Submit)
    request = next(ADAPTER.submit(make_task(parameters=stored(made.new.prepared.parameters, FILM))))
    assert request.body.value["instances"][0]["video"] == {**video, "encodedVideo": Inline(asset=ASSET.id)}
