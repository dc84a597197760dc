"""
OpenRouter's door: what is its own, beside what holds for every door.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from vidrelay.core.door import FileReply, Inlined, JsonReply, Look, Phase, Submit, Wish
from vidrelay.core.messages import Inline
from vidrelay.core.task import Money, Problem, Request, State
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openrouter.adapter import make as make_adapter
from vidrelay.providers.openrouter.door import make
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
    usual,
    view_of,
)

DOOR = make(None)
PATH = "/api/v1/videos"
TEXT = {
    "model": "google/veo-3.1",
    "prompt": "a boat",
    "duration": 8,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "seed": 7,
}
BOAT = Request(
    prompt="a boat", model_version="google/veo-3.1", duration=8, aspect_ratio="16:9", resolution="720p", seed=7
)
IMAGE = {"type": "image_url", "image_url": {"url": DATA_URI}}
FIRST = {**TEXT, "frame_images": [{**IMAGE, "frame_type": "first_frame"}]}
REFERENCE = {**TEXT, "input_references": [IMAGE]}


class TestOpenRouterDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC))),
        creates=(
            Create(path=PATH, body=TEXT, same=BOAT),
            Create(path=PATH, body=FIRST, same=BOAT, picture="first_frame"),
            Create(path=PATH, body=REFERENCE, same=BOAT, picture="reference"),
            Create(path=PATH, body={**TEXT, "user": "u", "trace": {"a": 1}, "session_id": "s"}, same=BOAT),
        ),
        media=(
            (
                Create(
                    path=PATH,
                    body={**TEXT, "input_references": [{"type": "video_url", "video_url": {"url": FILM_URI}}]},
                ),
                FILM,
                Inline(asset=ASSET.id, prefix="data:video/mp4;base64,"),
            ),
            (
                Create(
                    path=PATH,
                    body={**TEXT, "input_references": [{"type": "audio_url", "audio_url": {"url": SOUND_URI}}]},
                ),
                SOUND,
                Inline(asset=ASSET.id, prefix="data:audio/wav;base64,"),
            ),
        ),
        status=f"{PATH}/{{id}}",
        content=f"{PATH}/{{id}}/content",
        word=lambda said: said["status"],
        words={
            Phase.WAITING: "pending",
            Phase.WORKING: "in_progress",
            Phase.DONE: "completed",
            Phase.FAILED: "failed",
            Phase.CANCELLED: "cancelled",
            Phase.EXPIRED: "expired",
        },
    )


def sent(body: Mapping[str, Any], remote_id: str = "gen-vid-7") -> Any:
    """The parameters that a body becomes, at a relay whose every task has that id at OpenRouter."""

    def grant(wish: Wish) -> Any:
        view = view_of(State.RUNNING)
        return replace(view, task=replace(view.task, remote_id=remote_id)) if isinstance(wish, Look) else usual(wish)

    called = call_door(DOOR, "POST", PATH, {**TEXT, **body}, grant=grant)
    (made,) = [wish for wish in called.wishes if isinstance(wish, Submit)]
    return made.new.prepared.parameters


def test_a_create_is_answered_with_202_and_where_to_ask() -> None:
    """Its SDK raises on any other code of success."""
    called = call_door(DOOR, "POST", PATH, TEXT)
    assert called.reply.status == 202
    assert called.json["polling_url"] == f"{BASE}{PATH}/{called.json['id']}"


def test_an_earlier_job_is_named_as_openrouter_knows_it() -> None:
    """The SDK knows the relay's id alone."""
    assert sent({"previous_job_id": "ours"})["previous_job_id"] == "gen-vid-7"


def test_only_media_are_taken_out_of_the_body() -> None:
    """Addresses, and data of any other kind, go on as they came."""
    references = [
        IMAGE,
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        {"type": "file", "file": {"url": "data:application/pdf;base64,AAAA"}},
    ]
    made = sent({"input_references": references})["input_references"]
    assert made == [{**IMAGE, "image_url": {"url": Inlined(text=DATA_URI)}}, *references[1:]]


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (None, None),
        (Money(amount=Decimal("0.40"), currency="USD"), 0.4),
        (Money(amount=Decimal(3), currency="CNY"), None),
    ],
)
def test_what_is_done_has_its_addresses_and_its_cost_where_it_is_known(cost: Money | None, told: float | None) -> None:
    """One address wants the key and one does not; OpenRouter counts in dollars."""
    view = view_of(State.DONE)
    view = replace(view, task=replace(view.task, cost=cost))
    said = call_door(DOOR, "GET", f"{PATH}/x", grant=lambda _: view).json
    assert said["unsigned_urls"] == [f"{BASE}{PATH}/{view.task.id}/content?index=0"]
    assert said["urls"] == list(view.files)
    assert said["usage"] == {"cost": told}


@pytest.mark.parametrize(("index", "number"), [("0", 0), ("1", 1), ("", 0), ("-1", 0), ("x", 0), ("9" * 5000, 0)])
def test_the_content_is_by_its_number(index: str, number: int) -> None:
    """What is no number of a file is the first."""
    called = call_door(DOOR, "GET", f"{PATH}/x/content", query={"index": index})
    assert called.reply == FileReply(task_id="x", index=number)


def test_a_failure_is_told_as_text() -> None:
    """`error` of a job is no object."""
    assert isinstance(call_door(DOOR, "GET", f"{PATH}/x", grant=lambda _: view_of(State.FAILED)).json["error"], str)


def test_an_errors_code_is_its_status() -> None:
    """The SDK's error classes want a number there."""
    problem = Problem(code="unknown_task", title="t", detail="why", status=404)
    reply = DOOR.write_error(problem, None)  # type: ignore[arg-type]
    assert reply == JsonReply(
        status=404, value={"error": {"code": 404, "message": "why", "metadata": {"code": "unknown_task"}}}
    )
