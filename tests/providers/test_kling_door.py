"""
Kling's door: what is its own, beside what holds for every door.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Inlined, Page, Phase, View, Wish
from vidrelay.core.errors import UnknownTask
from vidrelay.core.task import Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.kling.adapter import make as make_adapter
from vidrelay.providers.kling.door import make
from vidrelay.testing.doors import Create, DoorContract, DoorSheet, call_door, view_of
from vidrelay.testing.records import make_task

DOOR = make(None)
TEXT = "/v1/videos/text2video"
IMAGE = "/v1/videos/image2video"
BODY = {"model_name": "kling-v2-5-turbo", "prompt": "a boat", "negative_prompt": "rain", "duration": "10"}
PNG = "iVBORw0KGgo="


class TestKlingDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url="https://host.test", now=lambda: datetime.now(UTC))),
        creates=(
            Create(
                path=TEXT,
                body={**BODY, "aspect_ratio": "16:9"},
                same=Request(
                    prompt="a boat",
                    model_version="kling-v2-5-turbo",
                    negative_prompt="rain",
                    duration=10,
                    aspect_ratio="16:9",
                ),
            ),
            Create(path=TEXT, body={"prompt": "a boat"}, same=Request(prompt="a boat")),
            Create(
                path=IMAGE,
                body={"prompt": "a boat", "image": PNG},
                same=Request(prompt="a boat"),
                picture="first_frame",
            ),
            Create(path=IMAGE, body={"image": "https://pictures.test/a.png", "image_tail": PNG, "mode": "pro"}),
        ),
        status=f"{TEXT}/{{id}}",
        word=lambda said: said["data"]["task_status"],
        words={
            Phase.WAITING: "submitted",
            Phase.WORKING: "processing",
            Phase.DONE: "succeed",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "failed",
            Phase.EXPIRED: "failed",
        },
    )


def _view(state: State, *, kind: str = "text2video", external: str | None = None) -> View:
    return view_of(state, task=make_task(parameters={"kind": kind, "duration": "10", "external_task_id": external}))


def _holding(*views: View) -> Callable[[Wish], Any]:
    """A relay that has these tasks."""

    def grant(wish: Wish) -> Any:
        if isinstance(wish, Page):
            return list(views)
        found = next((view for view in views if view.task.id == wish.task_id), None)
        if found is None:
            raise UnknownTask
        return found

    return grant


def test_an_answer_is_the_sheets_envelope() -> None:
    """Code 0, the id as text, instants in milliseconds, and the clip under `task_result`."""
    view = _view(State.DONE, external="mine-1")
    said = call_door(DOOR, "GET", f"{TEXT}/{view.task.id}", grant=_holding(view)).json
    assert (said["code"], said["message"]) == (0, "SUCCEED")
    assert said["data"]["task_info"] == {"external_task_id": "mine-1"}
    assert said["data"]["created_at"] == int(view.task.created_at.timestamp() * 1000)
    assert said["data"]["task_result"]["videos"] == [
        {"id": f"{view.task.id}-0", "url": view.files[0], "duration": "10"}
    ]


def test_a_task_is_found_by_the_clients_own_id() -> None:
    """A client that lost the answer asks by its `external_task_id`, as it would ask Kling."""
    other, wanted = _view(State.RUNNING, external="mine-1"), _view(State.RUNNING, external="mine-2")
    said = call_door(DOOR, "GET", f"{TEXT}/mine-2", grant=_holding(other, wanted)).json
    assert said["data"]["task_id"] == wanted.task.id
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"{TEXT}/mine-3", grant=_holding(other, wanted))


def test_a_create_answers_with_its_own_external_id() -> None:
    """The task that it joined may have come with another, and the client looks for the one it gave."""
    joined = _view(State.RUNNING, external="mine-1")
    body = {"prompt": "a boat", "external_task_id": "mine-2"}
    said = call_door(DOOR, "POST", TEXT, body, grant=lambda _: joined).json
    assert said["data"]["task_info"] == {"external_task_id": "mine-2"}


def test_a_joined_task_is_known_by_the_id_of_each_call() -> None:
    """Who joined it knows no other id, and would take a 404 for a create that never arrived."""
    joined, body = _view(State.RUNNING, external="mine-1"), {"prompt": "a boat", "external_task_id": "mine-2"}
    assert call_door(DOOR, "POST", TEXT, body, grant=lambda _: joined).wishes[0].new.known_as == "mine-2"
    said = call_door(DOOR, "GET", f"{TEXT}/mine-2", grant=lambda _: joined).json["data"]
    assert (said["task_id"], said["task_info"]) == (joined.task.id, {"external_task_id": "mine-2"})
    long = {**body, "external_task_id": "x" * 513}
    assert call_door(DOOR, "POST", TEXT, long, grant=lambda _: joined).wishes[0].new.known_as is None


def test_a_task_is_of_one_kind() -> None:
    """Kling knows it in the kind alone that it was made in; so do its lists."""
    text, image = _view(State.RUNNING), _view(State.RUNNING, kind="image2video")
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"{IMAGE}/{text.task.id}", grant=_holding(text, image))
    listed = call_door(DOOR, "GET", IMAGE, grant=_holding(text, image)).json["data"]
    assert [one["task_id"] for one in listed] == [image.task.id]


def test_a_list_has_numbered_pages() -> None:
    """`pageNum` counts from 1; what lies behind the last task is empty."""
    views = [_view(State.RUNNING) for _ in range(3)]
    pages = [
        call_door(DOOR, "GET", TEXT, grant=_holding(*views), query={"pageNum": number, "pageSize": "2"}).json["data"]
        for number in ("1", "2", "3")
    ]
    assert [[one["task_id"] for one in page] for page in pages] == [
        [views[0].task.id, views[1].task.id],
        [views[2].task.id],
        [],
    ]


def test_a_list_is_read_on_until_it_is_full() -> None:
    """Tasks of the other kind between them do not make a page shorter than it should be."""
    views = [_view(State.RUNNING, kind="image2video" if number < 150 else "text2video") for number in range(160)]

    def grant(wish: Wish) -> Any:
        assert isinstance(wish, Page)
        start = 0 if wish.after is None else 1 + [view.task.id for view in views].index(wish.after)
        return views[start : start + wish.limit]

    assert len(call_door(DOOR, "GET", TEXT, grant=grant).json["data"]) == 10


def test_a_deleted_clip_is_not_there() -> None:
    """Its status says so as for any id that is not known, and lists are without it."""
    gone = replace(_view(State.DONE), gone=True)
    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"{TEXT}/{gone.task.id}", grant=_holding(gone))
    assert call_door(DOOR, "GET", TEXT, grant=_holding(gone)).json["data"] == []


def test_masks_are_pictures_too() -> None:
    """They come as base64, and may be as large as the picture."""
    body = {"image": PNG, "static_mask": PNG, "dynamic_masks": [{"mask": PNG, "trajectories": [{"x": 1, "y": 2}]}]}
    sent = call_door(DOOR, "POST", IMAGE, body).wishes[0].new.prepared.parameters
    assert sent["static_mask"] == Inlined(text=PNG)
    assert sent["dynamic_masks"] == [{"mask": Inlined(text=PNG), "trajectories": [{"x": 1, "y": 2}]}]
