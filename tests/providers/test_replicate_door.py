"""
Replicate's door: what is its own, beside what holds for every door.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import FormBody, Inlined, InlineFile, Keep, Kept, Look, Page, Part, Phase, Submit, View
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Request, Standing, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.replicate.adapter import make as make_adapter
from vidrelay.providers.replicate.door import make
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

DOOR = make(None)
VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
BY_MODEL, BY_VERSION = "/v1/models/minimax/video-01/predictions", "/v1/predictions"
BOAT = {"input": {"prompt": "a boat", "duration": 5}}
UPLOAD = f"{BASE}/v1/files/{'ab' * 32}"


class TestReplicateDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(
                path=BY_MODEL,
                body=BOAT,
                same=Request(prompt="a boat", model_version="minimax/video-01", duration=5),
            ),
            Create(
                path=BY_VERSION,
                body={"version": VERSION, "input": {"prompt": "a boat", "image": DATA_URI}},
                same=Request(prompt="a boat", model_version=VERSION),
                picture="first_frame",
            ),
            Create(
                path=BY_VERSION,
                body={"version": f"acme/clips:{VERSION}", "input": {"prompt": "a boat"}},
                same=Request(prompt="a boat", model_version=f"acme/clips:{VERSION}"),
            ),
            Create(
                path="/v1/deployments/acme/clips/predictions",
                body={"input": {"prompt": "a boat", "image": UPLOAD}},
                same=Request(prompt="a boat", model_version="deployments/acme/clips"),
                picture="first_frame",
            ),
            Create(
                path=BY_MODEL,
                body={"input": {"prompt": "a boat", "end_image": DATA_URI}, "webhook": "https://app.test/hook"},
            ),
        ),
        media=(
            (Create(path=BY_MODEL, body={"input": {"prompt": "a boat", "video": FILM_URI}}), FILM, None),
            (Create(path=BY_MODEL, body={"input": {"prompt": "a boat", "audio": SOUND_URI}}), SOUND, None),
            (Create(path=BY_MODEL, body={"input": {"prompt": "a boat", "video": UPLOAD}}), FILM, None),
        ),
        status="/v1/predictions/{id}",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "starting",
            Phase.WORKING: "processing",
            Phase.DONE: "succeeded",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "canceled",
            # The SDK does not know `aborted`.
            Phase.EXPIRED: "failed",
        },
        unknown=("input",),
    )


def create(body: Any, path: str = BY_MODEL, **more: Any) -> Any:
    """The task that a create call makes."""
    called = call_door(DOOR, "POST", path, body, **more)
    return next(wish.new for wish in called.wishes if isinstance(wish, Submit))


def test_a_callback_is_passed_on_as_it_is() -> None:
    """The provider calls the app itself."""
    assert (
        create({**BOAT, "webhook": "https://app.test/hook"}).prepared.parameters["webhook"] == "https://app.test/hook"
    )


def test_force_may_stand_in_the_input_too() -> None:
    """The SDK passes on no field of the body that it does not know."""
    new = create({"input": {**BOAT["input"], "vidrelay_force": True}})
    assert new.force
    assert new.prepared.parameters["input"] == BOAT["input"]


def test_a_version_is_one_model_however_it_is_named() -> None:
    """Through the door as natively; else it would have two windows, two histories and two prices."""
    adapter = TestReplicateDoor.sheet.adapter
    asked = [VERSION, f"acme/clips:{VERSION}"]
    made = [create({**BOAT, "version": version}, BY_VERSION).prepared for version in asked]
    made += [adapter.prepare(Request(prompt="a boat", model_version=version, duration=5), {}) for version in asked]
    assert [prepared.model for prepared in made] == [VERSION] * 4
    assert all(prepared.parameters == made[0].parameters for prepared in made)


def test_the_model_of_a_version_is_shown_where_it_was_named() -> None:
    """The version's id alone does not tell it."""
    request = Request(prompt="a boat", model_version=f"acme/clips:{VERSION}")
    task = make_task(request=request, model_version=VERSION, parameters={"version": VERSION})
    told = call_door(DOOR, "GET", "/v1/predictions/x", grant=lambda _: view_of(State.RUNNING, task=task)).json
    assert (told["model"], told["version"]) == ("acme/clips", VERSION)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (BY_VERSION, BOAT),
        (BY_VERSION, {**BOAT, "model": "acme/clips"}),
        (BY_MODEL, {**BOAT, "deployment": "acme/clips"}),
        ("/v1/models/acme/../predictions", BOAT),
        (BY_MODEL, [BOAT]),
    ],
    ids=["no version", "a model beside it", "a deployment beside it", "no name", "no object"],
)
def test_a_create_that_could_go_to_another_address_than_it_came_to_is_refused(path: str, body: Any) -> None:
    """Only the path says which model is meant, and what it says is a name."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", path, body)


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [("wait", 60), ("wait=5", 5), ("respond-async, wait=10", 10), ("wait=0", 1), ("wait=900", 60)],
)
def test_prefer_wait_holds_the_answer_for_so_long(prefer: str, seconds: float) -> None:
    """And a little less, for the SDK hangs up half a second after."""
    called = call_door(DOOR, "POST", BY_MODEL, BOAT, headers={"prefer": prefer})
    (look,) = [wish for wish in called.wishes if isinstance(wish, Look)]
    assert seconds - 0.5 < look.wait <= seconds


def test_without_prefer_wait_nothing_is_held() -> None:
    """The answer is made as soon as the task is durable."""
    called = call_door(DOOR, "POST", BY_MODEL, BOAT, headers={"prefer": "respond-async"})
    assert [type(wish) for wish in called.wishes] == [Submit]
    assert called.reply.status == 201


@pytest.mark.parametrize(
    ("seen", "status", "word"),
    [
        (view_of(State.RUNNING, working=True), 202, "starting"),
        (view_of(State.DONE), 201, "succeeded"),
        (view_of(State.FAILED), 201, "failed"),
    ],
    ids=["still working", "done", "failed"],
)
def test_after_the_wait_it_is_answered_as_it_stands(seen: View, status: int, word: str) -> None:
    """Unended is `starting` whatever it does: `replicate.run()` takes `processing` for the end."""
    called = call_door(
        DOOR,
        "POST",
        BY_MODEL,
        BOAT,
        headers={"prefer": "wait"},
        grant=lambda wish: seen if isinstance(wish, Look) else view_of(State.QUEUED),
    )
    assert (called.reply.status, called.json["status"]) == (status, word)


def test_a_result_is_given_whole_up_to_32_mib_and_by_its_address_in_a_list() -> None:
    """A hundred clips in one list would be gigabytes."""
    view = view_of(State.DONE)
    output = call_door(DOOR, "GET", f"/v1/predictions/{view.task.id}", grant=lambda _: view).json["output"]
    assert output == InlineFile(task_id=view.task.id, index=0, max_bytes=2**25, instead=view.files[0])
    listed = call_door(DOOR, "GET", BY_VERSION, grant=lambda _: [view]).json["results"]
    assert listed[0]["output"] == view.files[0]


def test_a_result_that_is_gone_reads_as_erased() -> None:
    """As Replicate itself tells of one after an hour."""
    said = call_door(DOOR, "GET", "/v1/predictions/x", grant=lambda _: view_of(State.DONE, gone=True)).json
    assert (said["status"], said["output"], said["data_removed"]) == ("succeeded", None, True)


def test_a_full_page_names_the_next_one_at_this_relay() -> None:
    """The SDK follows the address as it is."""
    views = [view_of(State.QUEUED) for _ in range(100)]
    said = call_door(DOOR, "GET", BY_VERSION, grant=lambda _: views).json
    assert said["next"] == f"{BASE}/v1/predictions?cursor={views[-1].task.id}"
    called = call_door(DOOR, "GET", BY_VERSION, query={"cursor": views[-1].task.id}, grant=lambda _: views[:3])
    assert called.wishes == [Page(limit=100, after=views[-1].task.id)]
    assert (called.json["next"], called.json["previous"]) == (None, None)


def test_an_upload_is_kept_and_its_address_stands_for_it() -> None:
    """A create that names the address has the picture, and the answer names the address again."""
    part = Part(number=0, name="content", filename="a.png", media_type="image/png", size_bytes=900)
    form = FormBody(fields=(("metadata", '{"a": 1}'),), files=(part,))
    called = call_door(DOOR, "POST", "/v1/files", form)
    assert called.wishes == [Keep(media=part)]
    assert called.json["urls"] == {"get": UPLOAD}
    assert (called.json["name"], called.json["size"], called.json["metadata"]) == ("a.png", ASSET.size_bytes, {"a": 1})
    assert called.json["created_at"].endswith("Z")
    made = call_door(DOOR, "POST", BY_MODEL, {"input": {"prompt": "a", "image": UPLOAD}})
    assert made.wishes[0].new.prepared.parameters["input"]["image"] == Kept(asset=ASSET.id)  # type: ignore[union-attr]
    assert made.json["input"]["image"] == UPLOAD
    assert call_door(DOOR, "GET", f"/v1/files/{'ab' * 32}").wishes == [Keep(media=Kept(asset=ASSET.id))]


@pytest.mark.parametrize("form", [None, FormBody(), FormBody(fields=(("content", "text"),))])
def test_an_upload_without_a_file_is_refused(form: FormBody | None) -> None:
    """There is nothing to keep."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", "/v1/files", form)


def test_a_file_that_the_sdk_knows_no_name_of_is_a_picture_where_it_begins_as_one() -> None:
    """With `file_encoding_strategy="base64"` it writes `application/octet-stream`."""
    png, other = "data:application/octet-stream;base64,iVBORw0KGgo=", "data:application/octet-stream;base64,AAAA"
    inputs = create({"input": {"prompt": "a", "image": png, "audio": other}}).prepared.parameters["input"]
    assert (inputs["image"], inputs["audio"]) == (Inlined(text=png), other)


def test_the_sdk_reads_progress_from_the_log() -> None:
    """In the form that it looks for."""
    view = view_of(State.RUNNING, working=True, standing=Standing(progress=0.4))
    assert call_door(DOOR, "GET", "/v1/predictions/x", grant=lambda _: view).json["logs"] == " 40%|####      | 40/100"
