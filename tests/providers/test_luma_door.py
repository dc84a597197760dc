"""
Dream Machine's door: what is its own, beside what holds for every door.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Look, Page, Phase, Submit, Wish
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.luma.adapter import make as make_adapter
from vidrelay.providers.luma.door import make
from vidrelay.testing.doors import Create, DoorContract, DoorSheet, call_door, usual, view_of

DOOR = make(None)
ROOT = "/dream-machine/v1"
TEXT = {
    "model": "ray-2",
    "prompt": "a boat",
    "aspect_ratio": "16:9",
    "duration": "5s",
    "resolution": "720p",
}
BOAT = Request(prompt="a boat", model_version="ray-2", aspect_ratio="16:9", duration=5, resolution="720p")


class TestLumaDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(path=f"{ROOT}/generations/video", body=TEXT, same=BOAT),
            Create(path=f"{ROOT}/generations", body={**TEXT, "generation_type": "video"}, same=BOAT),
            Create(path=f"{ROOT}/generations/video", body={**TEXT, "callback_url": "https://x.example/"}, same=BOAT),
        ),
        status=f"{ROOT}/generations/{{id}}",
        word=lambda said: said["state"],
        words={
            Phase.WAITING: "queued",
            Phase.WORKING: "dreaming",
            Phase.DONE: "completed",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "failed",
            Phase.EXPIRED: "failed",
        },
    )


def earlier(remote_id: str | None) -> Callable[[Wish], Any]:
    """A relay that has one earlier task, of that id at Luma."""

    def grant(wish: Wish) -> Any:
        if isinstance(wish, Look):
            if wish.task_id != "ours":
                raise UnknownTask
            view = view_of(State.RUNNING)
            return replace(view, task=replace(view.task, remote_id=remote_id))
        return usual(wish)

    return grant


def frame_sent(generation: str, remote_id: str | None) -> Any:
    """What the first frame becomes that is the generation of that id."""
    frames = {"frame0": {"type": "generation", "id": generation}, "frame1": {"type": "image", "url": "https://x.e/a"}}
    path, body = f"{ROOT}/generations/video", {**TEXT, "keyframes": frames}
    called = call_door(DOOR, "POST", path, body, grant=earlier(remote_id))
    (made,) = [wish for wish in called.wishes if isinstance(wish, Submit)]
    sent = made.new.prepared.parameters["keyframes"]
    assert sent["frame1"] == frames["frame1"]
    return sent["frame0"]


def test_an_earlier_clip_is_named_as_luma_knows_it() -> None:
    """The SDK knows the relay's id alone; one that the relay does not know goes on as it is."""
    assert frame_sent("ours", "remote-7") == {"type": "generation", "id": "remote-7"}
    assert frame_sent("d1968551", None) == {"type": "generation", "id": "d1968551"}


def test_nothing_goes_on_from_a_clip_that_luma_does_not_have_yet() -> None:
    """It is said here, before anything is made."""
    with pytest.raises(InvalidRequest):
        frame_sent("ours", None)


def test_a_create_is_answered_as_created_with_the_whole_request() -> None:
    """201, and what was asked for stands in the answer."""
    called = call_door(DOOR, "POST", f"{ROOT}/generations/video", TEXT)
    assert called.reply.status == 201
    assert called.json["request"] == {**TEXT, "generation_type": "video"}
    assert (called.json["assets"], called.json["failure_reason"]) == (None, None)


def listed(count: int, **query: str) -> tuple[dict[str, Any], list[Page]]:
    """The list of an account with so many clips, of which each third is gone; and how it was paged through."""
    views = [view_of(State.DONE, gone=number % 3 == 2) for number in range(count)]
    views = [replace(view, task=replace(view.task, id=f"t{number}")) for number, view in enumerate(views)]
    pages: list[Page] = []

    def grant(wish: Wish) -> Any:
        assert isinstance(wish, Page)
        pages.append(wish)
        start = 0 if wish.after is None else int(wish.after[1:]) + 1
        return views[start : start + wish.limit]

    said: dict[str, Any] = call_door(DOOR, "GET", f"{ROOT}/generations", grant=grant, query=query).json
    return said, pages


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [
        ({"limit": "3"}, ["t0", "t1", "t3"], True),
        ({"limit": "3", "offset": "2"}, ["t3", "t4", "t6"], True),
        ({"limit": "3", "offset": "5"}, ["t7"], False),
        ({"limit": "3", "offset": "6"}, [], False),
        ({"limit": "6"}, ["t0", "t1", "t3", "t4", "t6", "t7"], False),
        ({}, ["t0", "t1", "t3", "t4", "t6", "t7"], False),
        ({"offset": "x", "limit": "1"}, ["t0"], True),
    ],
)
def test_the_list_is_by_offset_and_without_what_is_gone(query: dict[str, str], ids: list[str], more: bool) -> None:
    """Newest first, as the relay has them."""
    said, _ = listed(8, **query)
    assert [one["id"] for one in said["generations"]] == ids
    assert (said["has_more"], said["count"]) == (more, len(ids))


def test_a_long_list_is_read_in_pages() -> None:
    """No page is larger than Luma's own."""
    said, pages = listed(400, limit="100", offset="100")
    assert (len(said["generations"]), said["has_more"]) == (100, True)
    assert all(page.limit <= 100 for page in pages)


def test_a_deleted_clip_is_not_there() -> None:
    """DELETE has no body; after it the generation is a 404."""
    called = call_door(DOOR, "DELETE", f"{ROOT}/generations/x", grant=lambda _: view_of(State.DONE))
    assert (called.reply.status, called.json) == (204, None)
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"{ROOT}/generations/x", grant=lambda _: view_of(State.DONE, gone=True))


def test_ping_is_answered_here() -> None:
    """It asks whether somebody is there."""
    assert call_door(DOOR, "GET", f"{ROOT}/ping").json == {"message": "pong"}
