"""
The public names as an app uses them; type-checked by `make check`, never run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

from vidrelay import (
    BlockingClient,
    Client,
    InvalidRequest,
    Reference,
    Relay,
    RelayUnavailable,
    Request,
    Resolution,
    Sender,
    State,
    TaskView,
    VidrelayError,
    open_client,
    open_relay,
)
from vidrelay.client.views import TaskEvent


async def an_app() -> None:
    """
    Submit, follow, save, look around.
    """
    request = Request(
        prompt="A paper boat",
        duration=4,
        aspect_ratio="16:9",
        seed=7,
        references=(Reference(path="/pictures/boat.png", role="first"),),
        extra={"quality": "high"},
        metadata={"scene": 12},
    )
    async with open_client("state", start=False, config=Path("vidrelay.toml"), app="storyboard") as relay:
        assert_type(relay, Client)
        task = await relay.generate(request, key="scene-12")
        assert_type(task, TaskView)
        assert_type(task.state, State)
        assert_type(task.ahead, int | None)
        assert_type(task.progress, float | None)
        async for event in relay.events(task_id=task.id):
            assert_type(event, TaskEvent)
        assert_type(await relay.ended(task.id), TaskView)
        assert_type(await relay.save_result(task.id, "boat.mp4"), Path)
        found, cursor = await relay.tasks(states=[State.DONE], limit=10)
        assert_type(found, list[TaskView])
        assert_type(cursor, str | None)
        await relay.resolve(task.id, Resolution.ADOPT, remote_id="video_1")
        assert_type(await relay.stats(), Mapping[str, Any])


def a_program_without_async() -> Path:
    """
    The blocking face has the same words.
    """
    with BlockingClient(app="storyboard") as relay:
        task = relay.generate(Request(prompt="A paper boat"))
        assert_type(relay.ended(task.id), TaskView)
        return relay.save_result(task.id, "boat.mp4")


def what_may_go_wrong(error: VidrelayError) -> str | None:
    """
    One tree of errors, whose leaves tell more.
    """
    if isinstance(error, InvalidRequest):
        return error.field
    if isinstance(error, RelayUnavailable):
        return error.hint
    return error.code


async def a_relay_inside() -> None:
    """
    A relay in this process, without its HTTP face.
    """
    async with open_relay("state") as relay:
        assert_type(relay, Relay)
        admission = await relay.submit(Request(prompt="A paper boat"), Sender(app="storyboard", client_key="scene-1"))
        assert_type(admission.task.id, str)
