"""
Runway's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import FormBody, Keep, Kept, Look, OpenAddress, Part, Phase, Submit, Wish
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.messages import Inline
from vidrelay.core.task import Problem, Request, Standing, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.runway.adapter import make as make_adapter
from vidrelay.providers.runway.door import make
from vidrelay.testing.doors import (
    ASSET,
    DATA_URI,
    FILM,
    FILM_URI,
    FRESH,
    SOUND,
    SOUND_URI,
    Create,
    DoorContract,
    DoorSheet,
    call_door,
    usual,
    view_of,
)

DOOR = make(None)
TEXT = {"model": "gen4.5", "promptText": "a boat", "ratio": "1280:720", "duration": 5}
BOAT = Request(prompt="a boat", model_version="gen4.5", aspect_ratio="16:9", duration=5)
UPLOADED = f"runway://vidrelay/{FRESH}"
SEEDANCE = {"model": "seedance2", "promptText": "a boat", "references": [{"uri": DATA_URI}]}


class TestRunwayDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(path="/v1/text_to_video", body=TEXT, same=BOAT),
            Create(path="/v1/image_to_video", body={**TEXT, "promptImage": DATA_URI}, same=BOAT, picture="first_frame"),
            Create(path="/v1/image_to_video", body={**TEXT, "promptImage": UPLOADED}, same=BOAT, picture="first_frame"),
            Create(
                path="/v1/text_to_video",
                body=SEEDANCE,
                same=Request(prompt="a boat", model_version="seedance2"),
                picture="reference",
            ),
            Create(path="/v1/video_to_video", body={"model": "aleph2", "videoUri": "https://x.example/a.mp4"}),
        ),
        media=(
            (
                Create(path="/v1/video_to_video", body={"model": "aleph2", "videoUri": FILM_URI}),
                FILM,
                Inline(asset=ASSET.id, prefix="data:video/mp4;base64,"),
            ),
            (
                Create(path="/v1/video_upscale", body={"model": "upscale_v1", "videoUri": UPLOADED}),
                FILM,
                Inline(asset=ASSET.id, prefix="data:video/mp4;base64,"),
            ),
            (
                Create(path="/v1/text_to_video", body={**TEXT, "referenceAudio": [{"uri": SOUND_URI}]}),
                SOUND,
                Inline(asset=ASSET.id, prefix="data:audio/wav;base64,"),
            ),
        ),
        status="/v1/tasks/{id}",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "PENDING",
            Phase.WORKING: "RUNNING",
            Phase.DONE: "SUCCEEDED",
            Phase.FAILED: "FAILED",
            Phase.CANCELLED: "CANCELLED",
            Phase.EXPIRED: "FAILED",
        },
    )


def test_a_created_task_is_told_by_its_id_alone() -> None:
    """Runway's own answer has no status, and the SDK asks for it at once."""
    said = call_door(DOOR, "POST", "/v1/text_to_video", TEXT).json
    assert set(said) == {"id", "estimatedCost"}


def test_an_upload_is_an_address_that_needs_no_key_and_a_form_sent_there() -> None:
    """The SDK sends the form without its key; what it names the picture by is known before the bytes are."""
    told = call_door(DOOR, "POST", "/v1/uploads", {"filename": "a.png", "type": "ephemeral"}).json
    assert told["uploadUrl"] == OpenAddress(path=f"/v1/uploads/{FRESH}")
    assert told["runwayUri"] == UPLOADED
    part = Part(number=0, name="file", filename="a.png", media_type="image/png", size_bytes=9)
    form = FormBody(fields=tuple(told["fields"].items()), files=(part,))
    called = call_door(DOOR, "POST", told["uploadUrl"].path, form)
    assert called.wishes == [Keep(media=part, name=FRESH)]
    assert called.reply.status == 204


@pytest.mark.parametrize("body", [None, {}, FormBody()], ids=["bytes", "json", "no file"])
def test_an_upload_without_a_file_is_refused(body: Any) -> None:
    """It is a form with one file."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", f"/v1/uploads/{FRESH}", body)


def test_frames_by_their_position_are_pictures_and_stay_where_they_are() -> None:
    """Uploads of ours, data URIs and addresses may be mixed; Runway's own uploads stay text."""
    frames = [
        {"uri": UPLOADED, "position": "first"},
        {"uri": "runway://upload/abc", "position": "last"},
    ]
    called = call_door(DOOR, "POST", "/v1/image_to_video", {**TEXT, "promptImage": frames})
    sent = called.wishes[0].new.prepared.parameters["promptImage"]
    assert sent == [{"uri": Kept(asset=FRESH), "position": "first"}, frames[1]]


def test_every_answer_has_what_the_sdk_reads() -> None:
    """`createdAt` and costs everywhere, `progress` of what runs, `failure` and its code of what failed."""
    running = view_of(State.RUNNING, working=True, standing=Standing(progress=0.35))
    said = call_door(DOOR, "GET", "/v1/tasks/x", grant=lambda _: running).json
    assert (said["progress"], said["estimatedCost"]) == (0.35, {"credits": 0})
    assert said["createdAt"].endswith("Z")
    done = call_door(DOOR, "GET", "/v1/tasks/x", grant=lambda _: view_of(State.DONE)).json
    assert done["cost"] == {"credits": 0}


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (Problem(code="moderated", title="t", detail="SAFETY.INPUT.TEXT: text"), "SAFETY.INPUT.TEXT"),
        (Problem(code="remote_failed", title="t", detail="INTERNAL.BAD_OUTPUT.CODE01"), "INTERNAL.BAD_OUTPUT.CODE01"),
        (Problem(code="moderated", title="t", detail="Refused."), "SAFETY"),
        (Problem(code="rejected", title="t", detail="Validation of body failed"), "ASSET.INVALID"),
        (Problem(code="uncertain", title="t", detail="It is not known."), "INTERNAL"),
    ],
)
def test_a_failure_has_runways_own_code_or_the_nearest(problem: Problem, code: str) -> None:
    """Apps look at how `failureCode` begins to tell whether another try is worth anything."""
    failed = view_of(State.FAILED)
    failed = replace(failed, task=replace(failed.task, error=problem))
    said = call_door(DOOR, "GET", "/v1/tasks/x", grant=lambda _: failed).json
    assert (said["failure"], said["failureCode"]) == (problem.detail, code)


def draft_sent(draft: str, remote_id: str | None) -> Any:
    """
    What the draft of that id becomes in the create, at a relay that has one task, of that id at Runway.
    """

    def grant(wish: Wish) -> Any:
        if isinstance(wish, Look):
            if wish.task_id != "ours":
                raise UnknownTask
            view = view_of(State.RUNNING)
            return replace(view, task=replace(view.task, remote_id=remote_id))
        return usual(wish)

    body = {"model": "seedance2_5", "draftTaskId": draft}
    called = call_door(DOOR, "POST", "/v1/text_to_video", body, grant=grant)
    (made,) = [wish for wish in called.wishes if isinstance(wish, Submit)]
    return made.new.prepared.parameters["draftTaskId"]


def test_a_draft_is_named_as_runway_knows_it() -> None:
    """The SDK knows the relay's id alone; one that the relay does not know goes on as it is."""
    assert draft_sent("ours", "17f20503") == "17f20503"
    assert draft_sent("elsewhere", None) == "elsewhere"
    with pytest.raises(InvalidRequest):
        draft_sent("ours", None)


def test_a_deleted_clip_is_not_there() -> None:
    """DELETE has no body; after it the task is a 404."""
    called = call_door(DOOR, "DELETE", "/v1/tasks/x", grant=lambda _: view_of(State.DONE))
    assert (called.reply.status, called.json) == (204, None)
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", "/v1/tasks/x", grant=lambda _: view_of(State.DONE, gone=True))
