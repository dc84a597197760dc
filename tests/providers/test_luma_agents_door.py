"""
The Agents API's door: what is its own, beside what holds for every door.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import FormBody, Inlined, Keep, Kept, Look, OpenAddress, Part, Phase, Submit, Wish
from vidrelay.core.errors import InvalidRequest, UnknownAsset, UnknownTask
from vidrelay.core.messages import Inline
from vidrelay.core.task import Problem, Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.luma_agents.adapter import make as make_adapter
from vidrelay.providers.luma_agents.door import make
from vidrelay.testing.doors import ASSET, FILM, FRESH, Create, DoorContract, DoorSheet, call_door, usual, view_of

DOOR = make(None)
PATH = "/v1/generations"
FILE_ID = f"{FRESH[:8]}-{FRESH[8:12]}-{FRESH[12:16]}-{FRESH[16:20]}-{FRESH[20:]}"
BASE64 = {"data": "iVBORw0KGgo=", "media_type": "image/png"}
TEXT: dict[str, Any] = {
    "type": "video",
    "model": "ray-3.2",
    "prompt": "a boat",
    "aspect_ratio": "16:9",
    "video": {"duration": "5s", "resolution": "720p"},
}
BOAT = Request(prompt="a boat", model_version="ray-3.2", aspect_ratio="16:9", duration=5, resolution="720p")


def with_video(**fields: Any) -> dict[str, Any]:
    """The plain body with more under `video`."""
    return {**TEXT, "video": {**TEXT["video"], **fields}}


class TestLumaAgentsDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(path=PATH, body=TEXT, same=BOAT),
            Create(
                path=PATH,
                body={"type": "video", "model": "ray-3.2", "prompt": "a boat", "user_id": "u"},
                same=Request(prompt="a boat", model_version="ray-3.2"),
            ),
            Create(path=PATH, body=with_video(start_frame=BASE64), same=BOAT, picture="first_frame"),
            Create(path=PATH, body=with_video(end_frame={"file_id": FILE_ID}), same=BOAT, picture="last_frame"),
            Create(
                path=PATH,
                body=with_video(duration="10s", keyframes=[BASE64], keyframe_indexes=[0]),
                same=replace(BOAT, duration=10),
                picture="first_frame",
            ),
        ),
        media=(
            (
                Create(
                    path=PATH,
                    body={**TEXT, "type": "video_edit", "source": {"data": "AAAA", "media_type": "video/mp4"}},
                ),
                FILM,
                Inline(asset=ASSET.id),
            ),
            (
                Create(path=PATH, body={**TEXT, "type": "video_reframe", "source": {"file_id": FILE_ID}}),
                FILM,
                Inline(asset=ASSET.id),
            ),
        ),
        status=f"{PATH}/{{id}}",
        word=lambda said: said["state"],
        words={
            Phase.WAITING: "queued",
            Phase.WORKING: "processing",
            Phase.DONE: "completed",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "failed",
            Phase.EXPIRED: "failed",
        },
    )


def sent(body: Mapping[str, Any]) -> Any:
    """What a body becomes, at a relay whose every task is `remote-7` at Luma and that has no uploads."""

    def grant(wish: Wish) -> Any:
        match wish:
            case Look():
                view = view_of(State.RUNNING)
                return replace(view, task=replace(view.task, remote_id="remote-7"))
            case Keep():
                raise UnknownAsset
        return usual(wish)

    called = call_door(DOOR, "POST", PATH, body, grant=grant)
    (made,) = [wish for wish in called.wishes if isinstance(wish, Submit)]
    return made.new.prepared.parameters


def test_an_earlier_clip_is_named_as_luma_knows_it() -> None:
    """The SDK knows the relay's id alone."""
    body = {"type": "video_edit", "prompt": "a", "source": {"generation_id": "ours"}}
    assert sent(body)["source"] == {"generation_id": "remote-7"}


def test_a_file_that_is_at_luma_stays_text() -> None:
    """So do addresses, and bytes that are neither a picture nor a film."""
    body = with_video(start_frame={"file_id": FILE_ID}, end_frame={"url": "https://x.example/a.png"})
    body["source"] = {"data": "AAAA", "media_type": "model/gltf-binary"}
    assert sent(body) == body


def test_pictures_are_found_wherever_they_stand() -> None:
    """In `image_ref` of a picture's creation as well as in frames."""
    assert sent({"prompt": "a", "image_ref": [BASE64]})["image_ref"] == [Inlined(text=BASE64["data"])]


def test_a_presigned_upload_is_put_without_a_key_and_completed() -> None:
    """Three steps, as the SDK's documents have them; the id begins with the time it was given out."""
    asked = {"mime_type": "image/png", "size_bytes": 900, "filename": "a.png", "purpose": "reference"}
    called = call_door(DOOR, "POST", "/v1/files", asked)
    said = called.json
    assert (called.reply.status, said["id"], said["state"]) == (201, FILE_ID, "pending")
    assert said["upload"]["url"] == OpenAddress(path=f"/v1/files/{FILE_ID}/bytes", method="PUT")
    assert said["file"]["created_at"] < said["upload"]["expires_at"]
    assert (said["file"]["filename"], said["file"]["purpose"]) == ("a.png", "reference")
    put = call_door(DOOR, "PUT", said["upload"]["url"].path)
    assert put.wishes == [Keep(media=None, name=FILE_ID)]
    for method, path in (("POST", f"/v1/files/{FILE_ID}/complete"), ("GET", f"/v1/files/{FILE_ID}")):
        file = call_door(DOOR, method, path)
        assert file.wishes == [Keep(media=Kept(asset=FILE_ID))]
        assert (file.json["state"], file.json["size_bytes"]) == ("ready", ASSET.size_bytes)
        assert file.json["created_at"] == said["file"]["created_at"]


def test_a_form_is_taken_in_at_once() -> None:
    """Its file is ready as soon as it is answered."""
    part = Part(number=0, name="file", filename="a.png", media_type="image/png", size_bytes=900)
    called = call_door(DOOR, "POST", "/v1/files", FormBody(fields=(("purpose", "input"),), files=(part,)))
    assert called.wishes == [Keep(media=part, name=FILE_ID)]
    said = called.json
    assert (said["state"], said["upload"], said["file"]["filename"]) == ("ready", None, "a.png")
    assert (said["file"]["size_bytes"], said["file"]["mime_type"]) == (ASSET.size_bytes, ASSET.media_type)


def test_a_form_without_a_file_is_refused() -> None:
    """Nothing is kept."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", "/v1/files", FormBody())


def test_a_file_whose_bytes_never_came_is_a_404() -> None:
    """Whatever asks for it."""

    def grant(_: Wish) -> Any:
        raise UnknownAsset

    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"/v1/files/{FILE_ID}", grant=grant)


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (Problem(code="moderated", title="t", detail="content_moderated: no"), "content_moderated"),
        (Problem(code="rejected", title="t", detail="budget_exhausted"), "budget_exhausted"),
        (Problem(code="moderated", title="t", detail="Refused."), "content_moderated"),
        (Problem(code="rejected", title="t", detail="some_word: x"), "invalid_request"),
        (Problem(code="uncertain", title="t", detail="It is not known."), "generation_failed"),
    ],
)
def test_a_failure_has_a_code_that_the_sdk_knows(problem: Problem, code: str) -> None:
    """Luma's own, or the nearest."""
    failed = view_of(State.FAILED)
    failed = replace(failed, task=replace(failed.task, error=problem))
    said = call_door(DOOR, "GET", f"{PATH}/x", grant=lambda _: failed).json
    assert (said["failure_reason"], said["failure_code"]) == (problem.detail, code)


def test_what_is_not_done_has_no_output() -> None:
    """An empty list; a clip that was evicted is a 404."""
    assert call_door(DOOR, "GET", f"{PATH}/x").json["output"] == []
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"{PATH}/x", grant=lambda _: view_of(State.DONE, gone=True))
