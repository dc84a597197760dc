"""
Vidu's door: what is its own, beside what holds for every door.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vidrelay.core.door import Cancel, DoorCall, Inlined, Keep, Kept, OpenAddress, Page, Phase, View, Wish
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import CancelOutcome, Problem, Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.vidu.adapter import make as make_adapter
from vidrelay.providers.vidu.door import make
from vidrelay.testing.doors import ASSET, BASE, DATA_URI, FRESH, Create, DoorContract, DoorSheet, call_door, view_of
from vidrelay.testing.records import make_task

DOOR = make(None)
UPLOADS = "/tools/v2/files/uploads"
HASH = ASSET.id.removeprefix("sha256:")
Q3 = {"model": "viduq3-turbo", "prompt": "a boat"}
BOAT = Request(prompt="a boat", model_version="viduq3-turbo")


class TestViduDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(
            AdapterSettings(key="k", base_url="https://host.test/ent/v2", now=lambda: datetime.now(UTC))
        ),
        creates=(
            Create(
                path="/ent/v2/text2video",
                body={**Q3, "duration": 5, "resolution": "720p", "aspect_ratio": "16:9", "seed": 7},
                same=Request(
                    prompt="a boat",
                    model_version="viduq3-turbo",
                    duration=5,
                    resolution="720p",
                    aspect_ratio="16:9",
                    seed=7,
                ),
            ),
            Create(path="/ent/v2/img2video", body={**Q3, "images": [DATA_URI]}, same=BOAT, picture="first_frame"),
            Create(path="/ent/v2/reference2video", body={**Q3, "images": [DATA_URI]}, same=BOAT, picture="reference"),
            Create(
                path="/ent/v2/img2video",
                body={**Q3, "images": [f"ssupload:?id={HASH}"]},
                same=BOAT,
                picture="first_frame",
            ),
            Create(path="/ent/v2/start-end2video", body={**Q3, "images": ["https://pictures.test/a.png", DATA_URI]}),
        ),
        status="/ent/v2/tasks/{id}/creations",
        word=lambda said: said["state"],
        words={
            Phase.WAITING: "queueing",
            Phase.WORKING: "processing",
            Phase.DONE: "success",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "failed",
            Phase.EXPIRED: "failed",
        },
    )


def _always(view: View) -> Callable[[Wish], Any]:
    return lambda _: view


def test_a_create_is_answered_as_in_the_sheet() -> None:
    """State `created`, and what was asked for again, with the payload that this very call came with."""
    body = {**Q3, "duration": 5, "images": ["https://pictures.test/a.png", DATA_URI], "payload": "mine"}
    said = call_door(DOOR, "POST", "/ent/v2/start-end2video", body).json
    told = {"state": "created", "model": "viduq3-turbo", "prompt": "a boat", "duration": 5, "payload": "mine"}
    assert told.items() <= said.items()
    assert said["images"] == ["https://pictures.test/a.png"]
    assert datetime.fromisoformat(said["created_at"]).tzinfo is not None


def test_a_payload_is_never_taken_for_a_picture() -> None:
    """It is the client's own, and comes back as it was."""
    body = {**Q3, "payload": DATA_URI, "subjects": [{"id": "1", "images": [DATA_URI]}]}
    sent = call_door(DOOR, "POST", "/ent/v2/reference2video", body).wishes[0].new.prepared.parameters
    assert sent["payload"] == DATA_URI
    assert sent["subjects"] == [{"id": "1", "images": [Inlined(text=DATA_URI)]}]


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("moderated", "CreationPolicyViolation"),
        ("rejected", "BadRequest"),
        ("remote_cancelled", "UserCancelled"),
        ("remote_failed", "InternalServiceFailure"),
    ],
)
def test_a_failure_has_one_of_vidus_codes(code: str, word: str) -> None:
    """And the words for people beside it."""
    error = Problem(code=code, title="t", detail="because")
    view = view_of(State.FAILED)
    view = View(task=make_task(state=State.FAILED, error=error), standing=view.standing)
    said = call_door(DOOR, "GET", "/ent/v2/tasks/x/creations", grant=_always(view)).json
    assert (said["err_code"], said["err_msg"], said["creations"]) == (word, "because", [])


def test_a_wait_is_stopped() -> None:
    """What waits is cancelled, and the answer is empty, as Vidu's."""
    called = call_door(DOOR, "POST", "/ent/v2/tasks/x/cancel", {"id": "x"}, grant=_always(view_of(State.QUEUED)))
    assert isinstance(called.wishes[-1], Cancel)
    assert called.json == {}


@pytest.mark.parametrize("state", [State.DOWNLOADING, State.DONE, State.FAILED, State.CANCELLED])
def test_what_is_scheduled_is_not_stopped(state: State) -> None:
    """Vidu refuses it with 400, so a clip that is paid for is not lost by it here."""
    called = call_door(DOOR, "POST", "/ent/v2/tasks/x/cancel", {"id": "x"}, grant=_always(view_of(state)))
    assert len(called.wishes) == 1
    assert (called.reply.status, called.json["code"], called.json["reason"]) == (400, 400, "BadRequest")


def test_a_stop_that_comes_too_late_is_refused() -> None:
    """It was scheduled between the two looks."""
    late = view_of(State.DONE, cancel=CancelOutcome.TOO_LATE)
    called = call_door(
        DOOR,
        "POST",
        "/ent/v2/tasks/x/cancel",
        {"id": "x"},
        grant=lambda wish: late if isinstance(wish, Cancel) else view_of(State.QUEUED),
    )
    assert called.reply.status == 400


def test_an_upload_is_three_calls() -> None:
    """An address for the bytes that needs no key, the bytes, and what stands for them in a create."""
    begun = call_door(DOOR, "POST", UPLOADS, {"scene": "vidu"}).json
    assert begun == {"id": FRESH, "put_url": OpenAddress(path=f"{UPLOADS}/{FRESH}", method="PUT")}
    put = call_door(DOOR, "PUT", f"{UPLOADS}/{FRESH}")
    assert put.wishes == [Keep(name=FRESH)]
    etag = put.reply.headers["etag"]
    assert etag == f'"{HASH}"'
    for told, found in ((etag, HASH), (HASH, HASH), ("", FRESH)):
        finished = call_door(DOOR, "PUT", f"{UPLOADS}/{FRESH}/finish", {"id": FRESH, "etag": told}).json
        assert finished == {"uri": f"ssupload:?id={found}"}


def test_an_upload_is_known_by_its_uri() -> None:
    """By the picture's hash, which lasts, or by the upload's id; Vidu's own goes to Vidu as it is."""
    uris = [f"ssupload:?id={one}" for one in (HASH, FRESH, "3196909373813933")]
    sent = call_door(DOOR, "POST", "/ent/v2/reference2video", {**Q3, "images": uris}).wishes[0].new.prepared.parameters
    assert sent["images"] == [Kept(asset=ASSET.id), Kept(asset=FRESH), uris[2]]


@pytest.mark.parametrize("name", ["x", HASH, f"sha256:{HASH}"])
def test_an_upload_has_an_id_that_was_given_out(name: str) -> None:
    """No picture can be called by another one's name."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "PUT", f"{UPLOADS}/{name}")


def test_a_list_is_filtered_and_goes_on_by_its_token() -> None:
    """By state, model, id and time; the token is where the next page begins."""
    start = datetime(2026, 11, 1, tzinfo=UTC)
    tasks = [
        make_task(created_at=start + timedelta(days=day), parameters={"resolution": "720p"}, model_version="viduq2")
        for day in (9, 5, 1)
    ]
    views = [
        view_of(state, task=task) for state, task in zip((State.DONE, State.RUNNING, State.DONE), tasks, strict=True)
    ]
    one, two, three = (task.id for task in tasks)

    def grant(wish: Wish) -> Any:
        assert isinstance(wish, Page)
        ids = [view.task.id for view in views]
        return views[0 if wish.after is None else 1 + ids.index(wish.after) :]

    def asked(**query: str) -> tuple[list[str], str]:
        named = {name.replace("__", "."): value for name, value in query.items()}
        said = call_door(DOOR, "GET", "/ent/v2/tasks", query=named, grant=grant).json
        return [row["id"] for row in said["tasks"]], said["next_page_token"]

    assert asked() == ([one, two, three], "")
    assert asked(pager__pagesz="2") == ([one, two], two)
    assert asked(pager__pagesz="2", pager__page_token=two) == ([three], "")
    assert asked(pager__pagesz="2", pager__page="1") == ([three], "")
    assert asked(states="success") == ([one, three], "")
    assert asked(task_ids=f"{one},{two}") == ([one, two], "")
    assert asked(created_at__from="2026-11-04T00:00:00Z", created_at__to="2026-11-08T00:00:00Z") == ([two], "")
    assert asked(model_versions="viduq3-turbo", resolutions="720p") == ([], "")


def test_a_deleted_clip_is_not_there() -> None:
    """Its status is that of an id that is not known."""
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", "/ent/v2/tasks/x/creations", grant=_always(view_of(State.DONE, gone=True)))


def test_an_unknown_task_has_vidus_own_reason() -> None:
    """`TaskNotFound`, which is final for its clients."""
    problem = Problem(code="unknown_task", title="t", detail="d", status=404)
    said = DOOR.write_error(problem, DoorCall(method="GET", path="/ent/v2/tasks/x/creations", base=BASE))
    assert (said.status, said.value["code"], said.value["reason"]) == (404, 404, "TaskNotFound")
